#ifndef SY_PROCESS_ENV_INTERNAL_H
#define SY_PROCESS_ENV_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The name of an entry, not NUL-terminated. */
struct name {
    const char *s;
    size_t n;
};

bool name_is(struct name name, const char *text);
bool name_is_listed(struct name name, const char *const *list, size_t count);
/* The name of a well-formed entry; .n = 0 for others. Blanks and control
 * characters are in no name that a program reads. */
struct name name_of(const char *entry);
/* Where the list has an entry of this name; list->n when it has none. */
size_t name_index(const struct strv *list, struct name name);
/*
 * bash reads ~/.bashrc for a `-c` that it takes for one of sshd: with such a variable of ssh, and
 * no shell above it. Says that there is one.
 */
enum sy_code env_keep_from_rc(struct strv *ret) SY_NODISCARD;

#endif
