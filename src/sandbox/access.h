#ifndef SY_SANDBOX_ACCESS_H
#define SY_SANDBOX_ACCESS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/sandbox.h"

/*
 * One thing more that commands may do: the narrowest widening of a policy. Pure: paths are given
 * without links, and what hides a file has been found before (sandbox_explain_hider).
 */
enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_CONNECT, ACCESS_RUN };

/* "read", "write", "connect", "run". */
const char *access_kind_name(enum access_kind kind);
bool access_kind_parse(enum access_kind *ret, const char *name) SY_NODISCARD;

struct access {
    enum access_kind kind;
    char *object; /* an absolute path; ACCESS_CONNECT: an entry of network.allow */
    struct strv
        lifts; /* ACCESS_READ, ACCESS_RUN: the defaults that hide it, as explain names them */
};

void access_fini(struct access *a);
enum sy_code access_copy(struct access *ret, const struct access *from) SY_NODISCARD;

/*
 * Adds what `a` names to the policy and nothing else: a writable root, an entry of the allow list,
 * a default of what can't be read taken out. What is there already is not added again. A root that
 * is added is one without links for good (n_granted_roots). SY_E_LIMIT: the policy has no room.
 */
enum sy_code access_widen(struct sandbox_policy *p, const struct access *a) SY_NODISCARD;

/*
 * The key that an administrator requires and that such an access would widen, so that nobody can
 * grant it: "sandbox.writable_roots". NULL: there is none.
 */
const char *access_kept_by(const struct sandbox_policy *p, enum access_kind kind);

/* How much a person should think about it. */
enum access_weight {
    ACCESS_PLAIN,
    ACCESS_GRAVE,  /* why; it can't be made a rule */
    ACCESS_REFUSED /* why; nobody is asked */
};

/* What is looked after. Lists of absolute paths without links, or names; NULL: none. */
struct access_world {
    char *const *homes;     /* of people */
    char *const *own;       /* Shellyard's directories and sockets: nobody gets them */
    char *const *programs;  /* Shellyard's programs and hooks: nobody may write them */
    char *const *protected; /* names that stay as they are */
};

struct access_verdict {
    enum access_weight weight;
    char why[SY_ERR_MSG_MAX]; /* "" for ACCESS_PLAIN */
};

void access_judge(struct access_verdict *ret, const struct access *a, const struct access_world *w);

#endif
