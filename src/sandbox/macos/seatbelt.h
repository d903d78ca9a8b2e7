#ifndef SY_SANDBOX_MACOS_SEATBELT_H
#define SY_SANDBOX_MACOS_SEATBELT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/elsewhere.h"

/*
 * The planner for macOS: a policy becomes a profile in Seatbelt's language
 * (SBPL) and the parameters that go with it. Pure; made and tested elsewhere
 * too, and never yet run on macOS.
 *
 * No byte of the policy stands in the profile. Its text depends on how many
 * roots and secrets there are and on numbers alone; every path and pattern is
 * a parameter, which Seatbelt never reads as code.
 */
struct seatbelt_plan {
    enum sandbox_mode mode;
    bool is_enforced; /* false: nothing to wrap */
    bool has_network;
    uint16_t proxy_port;
    struct buf profile; /* printable ASCII and newlines */
    struct strv params; /* "NAME=value", CWD first; the value may hold any byte */
    enum feature_state features[FEATURE_COUNT];
};

/*
 * SY_E_CONFIG for a path that is not absolute or too long, for more roots or
 * names than there may be, and for parameters beyond what an exec takes;
 * SY_E_ARG for a policy without an absolute cwd. On an error nothing is to be
 * freed. The plan of an unenforced mode is valid and empty.
 *
 * Paths are put through r->resolve if there is one. Where it leaves /tmp, /var
 * or /etc, which are links on every Mac, the canonical /private/... is named.
 */
enum sy_code seatbelt_plan_init(struct seatbelt_plan *ret, const struct elsewhere_request *r,
                                struct sy_error *err) SY_NODISCARD;
void seatbelt_plan_fini(struct seatbelt_plan *p);
/* "seatbelt" or "none". */
const char *seatbelt_plan_tier(const struct seatbelt_plan *p);
/* Members of an open object: what `sandbox plan` shows. */
void seatbelt_plan_write(struct jw *w, const struct seatbelt_plan *p);

/* Appends `text` as a regular expression that matches it and nothing else. */
enum sy_code seatbelt_regex_quote(struct buf *out, const char *text) SY_NODISCARD;
/*
 * Appends the expression for protected names below a root (which is to be
 * written before it): letters of both cases, since APFS as shipped takes .GIT
 * for .git, and with what is below them. For `is_pin` that of their parents
 * alone: what must not be moved away, or the name would be a new one.
 * Appends nothing if there is nothing to match.
 */
enum sy_code seatbelt_regex_names(struct buf *out, char *const *names, bool is_pin) SY_NODISCARD;

#endif
