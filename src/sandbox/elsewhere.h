#ifndef SY_SANDBOX_ELSEWHERE_H
#define SY_SANDBOX_ELSEWHERE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/sandbox.h"

/*
 * Plans for platforms that need not be the one that plans: what they ask, and
 * what is the same for all. Pure, as sandbox_plan_new is: they ask the file
 * system through `resolve` alone.
 */

/* Platforms (X-macro): id, name. */
#define SANDBOX_PLATFORMS(X)                                                                       \
    X(PLATFORM_LINUX, "linux")                                                                     \
    X(PLATFORM_MACOS, "macos")                                                                     \
    X(PLATFORM_WINDOWS, "windows")

enum sandbox_platform {
#define SANDBOX_PLATFORM_ENUM(id, name) id,
    SANDBOX_PLATFORMS(SANDBOX_PLATFORM_ENUM)
#undef SANDBOX_PLATFORM_ENUM
        PLATFORM_COUNT
};

const char *sandbox_platform_name(enum sandbox_platform p);
bool sandbox_platform_parse(enum sandbox_platform *ret, const char *name) SY_NODISCARD;

/*
 * Puts the name by which the kernel knows `path` into `ret` (reset first):
 * every link resolved, letters in the case that the file system has. A path
 * that does not exist is resolved as far as it does.
 */
typedef enum sy_code elsewhere_resolve_fn(struct buf *ret, const char *path, void *arg);

/* What a plan is made from. Borrows everything. */
struct elsewhere_request {
    const struct sandbox_policy *policy;
    char *const *deny_read;       /* absolute paths; NULL: none */
    char *const *protected_names; /* NULL: elsewhere_protected */
    uint16_t proxy_port;          /* on localhost, the one way out while network is off; 0: none */
    elsewhere_resolve_fn *resolve;
    void *resolve_arg;
};

/*
 * Names that stay read-only below a writable root, at any depth: what runs
 * outside of the sandbox when a person next uses git, an editor, a shell or an
 * agent there. Components are split by '/'; '*' stands for any part of a
 * component, a component of "**" for any number of them. NULL-terminated.
 */
extern char *const elsewhere_protected[];
char *const *elsewhere_names(const struct elsewhere_request *r);
/* SY_E_CONFIG with a sentence unless each protected name is one or more
 * components, none empty, "." or "..", and no more than LIMIT_PROTECTED. */
enum sy_code elsewhere_check_names(const struct elsewhere_request *r,
                                   struct sy_error *err) SY_NODISCARD;
/* A name without '*' stands for one path below a root. */
bool elsewhere_name_is_plain(const char *name);

/*
 * Whether a path below a root ("a/.git/hooks/x", '/' between components) is a
 * protected name or below one. Letters of either ASCII case are alike.
 */
bool elsewhere_is_protected(char *const *names, const char *below);
/* Whether a protected name may end with this component: a quick no for most. */
bool elsewhere_may_end(char *const *names, const char *component);

/* All absent: the state of a mode that is not ours to enforce. */
void elsewhere_features_none(enum feature_state features[FEATURE_COUNT]);
/* "features": {name: state} into an open object. */
void elsewhere_write_features(struct jw *w, const enum feature_state features[FEATURE_COUNT]);

#endif
