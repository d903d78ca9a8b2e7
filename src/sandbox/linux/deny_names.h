#ifndef SY_SANDBOX_LINUX_DENY_NAMES_H
#define SY_SANDBOX_LINUX_DENY_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The names of a directory as getdents64(2) gives them, one read for any number
 * of looks.
 */

/* Appends all of them, so that no byte of memory is left over where one read has
 * them all. SY_E_LIMIT beyond names->max; *ret_failed: an errno value, or 0. */
enum sy_code deny_names_read(struct buf *names, int dir_fd, int *ret_failed) SY_NODISCARD;

/* The name at byte *at, "." and ".." left out, and its DT_* type; *at moves behind
 * it. False past the last. Borrows. */
bool deny_name_next(const struct buf *names, size_t *at, const char **ret_name,
                    unsigned char *ret_type);

/* Of the name that deny_name_next began to look for at byte `at`. */
void deny_name_set_type(struct buf *names, size_t at, unsigned char type);

#endif
