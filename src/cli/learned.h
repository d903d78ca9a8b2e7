#ifndef SY_CLI_LEARNED_H
#define SY_CLI_LEARNED_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "sandbox/denial.h"

/*
 * What refusals come to: the smallest change of the configuration that allows all of them. Each
 * line that a denial has for itself counts as the configuration would take it; one that it would
 * not take, or that an administrator's requirements refuse, allows nothing.
 */
struct learned {
    struct strv lines; /* of the section sandbox: "network_access: true" */
    struct strv roots; /* the smallest set, none below another */
    struct strv reads; /* allow_read: the same */
    struct strv names; /* protected ones that would be lifted */
    struct strv hosts; /* network.allow */
    struct strv late;  /* those of the roots that have to be made first */
    struct strv never; /* refusals that no line would lift */
};

void learned_fini(struct learned *l);
enum sy_code learned_decide(struct learned *ret, const struct cli_engine *engine,
                            const struct denial_list *list, struct sy_error *err) SY_NODISCARD;
bool learned_has_any(const struct learned *l);
/* YAML: what holds today; what has to be otherwise, or nothing. */
enum sy_code learned_put_today(struct buf *out, const struct cli_engine *engine) SY_NODISCARD;
enum sy_code learned_put_needed(struct buf *out, const struct learned *l,
                                const struct cli_engine *engine) SY_NODISCARD;

#endif
