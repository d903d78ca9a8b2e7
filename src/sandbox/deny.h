#ifndef SY_SANDBOX_DENY_H
#define SY_SANDBOX_DENY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What commands can't read: the defaults, one table with the reason of each.
 * Pure: what exists of it is found by deny_expand (linux/deny_expand.h).
 */
struct deny_default {
    const char *path;     /* "~/..." in each home; "/...": everybody's, for root alone */
    const char *variable; /* names another place of it; NULL: none does */
    const char *below;    /* what is meant below that other place; "": itself */
    const char *reason;
};

/* NULL past the last. */
const struct deny_default *deny_default(size_t i);

struct deny_sources {
    char *const *homes; /* NULL-terminated, absolute; the first is $HOME's */
    char *const *environ_list;
    char *const *allow_read; /* absolute paths; takes out what is equal or below */
    bool is_root;            /* others' permissions close the rest to everybody else */
};

/*
 * Adds the patterns of the defaults to *ret. SY_E_CONFIG for an
 * entry of allow_read that lies inside a default (a part can't be left out).
 */
enum sy_code deny_add_defaults(struct strv *ret, const struct deny_sources *from,
                               struct sy_error *err) SY_NODISCARD;

#endif
