#ifndef SY_SANDBOX_DENIAL_H
#define SY_SANDBOX_DENIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/*
 * What a sandbox refused to one run, as every answer tells it under "denials".
 * Output words alone never make a denial: each has a witness, its layer.
 */

/* Who refused it (X-macro): id, name in JSON. */
#define DENIAL_LAYERS(X)                                                                           \
    X(DENIAL_LANDLOCK, "landlock")                                                                 \
    X(DENIAL_MOUNT, "mount")                                                                       \
    X(DENIAL_NAMESPACE, "namespace")                                                               \
    X(DENIAL_SECCOMP, "seccomp")                                                                   \
    X(DENIAL_BROKER, "broker")                                                                     \
    X(DENIAL_PROXY, "proxy")                                                                       \
    X(DENIAL_GUARD, "guard")                                                                       \
    X(DENIAL_POLICY, "policy") /* what Shellyard does itself, by the policy of commands */

enum denial_layer {
#define DENIAL_LAYER_ENUM(id, name) id,
    DENIAL_LAYERS(DENIAL_LAYER_ENUM)
#undef DENIAL_LAYER_ENUM
        DENIAL_LAYER_COUNT
};

const char *denial_layer_name(enum denial_layer layer);

/* Exact: somebody of ours refused this very act. Inferred: the command failed, named
 * the object, and the policy would refuse it. */
enum denial_confidence { DENIAL_EXACT, DENIAL_INFERRED };

const char *denial_confidence_name(enum denial_confidence c);

struct denial {
    enum denial_layer layer;
    enum denial_confidence confidence;
    const char *operation; /* static: "read", "write", "create", "connect", "bind", "call", ... */
    char *object;          /* a path, "host:port", "unix:PATH", the name of a system call */
    char *rule;            /* which rule refused it, as explain says it; may be NULL */
    char *fix;             /* the one configuration line that would allow it; NULL: none would */
    uint32_t count;        /* how often */
};

/* The denials of one run: different ones in their order, equal ones counted. */
#define DENIALS_MAX 64
struct denial_list {
    struct denial *v;
    size_t n;
    uint32_t more; /* that were not kept: more than DENIALS_MAX different ones */
};

/* Copies the strings of *d (its count is ignored). One with the same operation
 * and object as a kept one is counted there; an exact one then replaces an inferred one. SY_E_NOMEM
 * leaves the list as it was. */
enum sy_code denial_add(struct denial_list *list, const struct denial *d) SY_NODISCARD;
void denial_list_fini(struct denial_list *list);

/* The array under "denials", and "denials_more" if there were more. Nothing for an empty list. */
void denial_list_write(struct jw *w, const struct denial_list *list);
/* One denial as a sentence without its full stop, for people and models:
 * "write /etc/hosts was refused by landlock (exact); to allow it: sandbox.writable_roots: [/etc]".
 */
enum sy_code denial_sentence(struct buf *out, const struct denial *d) SY_NODISCARD;

#endif
