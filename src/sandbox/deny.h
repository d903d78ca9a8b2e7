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
    const char *below;    /* a home, or "/" for those of the system, without a '/' in front */
    const char *variable; /* names another place of it; NULL: none does */
    const char *tail;     /* what is meant below that other place; "": itself */
    const char *reason;
};

/* Those of a home and those of the system, each in the order of deny_order; NULL
 * past the last. Less than DENY_ROWS_MAX. */
const struct deny_default *deny_home_default(size_t i);
const struct deny_default *deny_system_default(size_t i);
size_t deny_home_defaults(void); /* how many there are */
/* The row of the system that a plan has by its own flag (closes_devices), not with the others. */
#define DENY_DEVICES_ROW ((size_t)0)
/* Are its names those that programs give, the same for everybody? Those of stored passwords are
 * accounts, those of a browser sites. */
bool deny_has_plain_names(const struct deny_default *d);

/*
 * Rules by number: the patterns of a plan (Shellyard's own places, defaults that variables name,
 * the configuration's), then from DENY_SYSTEM on the rows of
 * the system, then from DENY_HOME on for each home DENY_ROWS_MAX numbers, for its rows.
 */
#define DENY_ROWS_MAX ((size_t)1024)
#define DENY_SYSTEM   ((size_t)1 << 16)
#define DENY_HOME     ((size_t)1 << 17)
/* A home itself: no rule, but the place of its rows. */
#define DENY_HOME_ITSELF ((size_t)1 << 20)

struct deny_sources {
    char *const *homes; /* absolute, normalized */
    char *const *environ_list;
    char *const *allow_read; /* absolute paths; takes out what is equal or below */
};

/* Whether allow_read takes a default out, which is `below` a home ("" : of the system). */
bool deny_is_left_out(char *const *allow_read, const char *home, const char *below);

/* SY_E_CONFIG for an entry of allow_read that is, or lies in, a directory of Shellyard's own:
 * nothing shows these to commands, and who names one believes that it would. */
enum sy_code deny_check_own(char *const *allow_read, char *const *own_dirs,
                            struct sy_error *err) SY_NODISCARD;

/*
 * Adds those places of defaults that variables name, as patterns. SY_E_CONFIG for
 * an entry of allow_read that lies inside a default: a part can't be left out.
 */
enum sy_code deny_add_named(struct strv *ret, const struct deny_sources *from,
                            struct sy_error *err) SY_NODISCARD;

#endif
