#ifndef SY_SANDBOX_DELTA_H
#define SY_SANDBOX_DELTA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/access.h"
#include "sandbox/sandbox.h"

/*
 * What commands can do under one policy and could not under another: for a person who decides
 * about it. Pure: it compares two policies and asks no file system, so it speaks of names, whether
 * something is there or not.
 */
struct delta_input {
    const struct sandbox_policy *before;
    const struct sandbox_policy *after;
    bool has_mounts;        /* full tier: what is hidden stays so in writable roots */
    bool scopes_unix;       /* the kernel keeps commands from Unix sockets outside of roots */
    char *const *protected; /* names that stay as they are below writable roots; NULL: none */
};

/* ACCESS_READ: a name or pattern (base/path_pattern.h), and all below; ACCESS_WRITE: a path, and
 * all below; ACCESS_CONNECT: an entry of network.allow, "*" for all, or "unix:PATH". */
struct delta_gain {
    enum access_kind kind;
    char *object;
    bool is_secret; /* ACCESS_READ: it is on the list of what is to be hidden */
};

struct sandbox_delta {
    struct delta_gain *v;
    size_t n;
    struct strv kept;   /* protected names that stay, if anything becomes writable */
    struct strv hidden; /* below what becomes writable, and hidden all the same */
};

void sandbox_delta_fini(struct sandbox_delta *d);
enum sy_code sandbox_delta_new(struct sandbox_delta *ret,
                               const struct delta_input *in) SY_NODISCARD;
/* Nothing more than before. */
bool sandbox_delta_is_empty(const struct sandbox_delta *d);
/* Is it in what is new? Paths absolute and without links; for connect "host:port". A name is made,
 * removed or renamed where its directory may be written. */
enum sy_code sandbox_delta_covers(bool *ret, const struct sandbox_delta *d,
                                  enum sandbox_operation op, const char *object,
                                  struct sy_error *err) SY_NODISCARD;
/* The members "gains", "kept" and "hidden" of an object. */
void sandbox_delta_write(struct jw *w, const struct sandbox_delta *d);

#endif
