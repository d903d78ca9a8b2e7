#ifndef SY_GUARD_QUARANTINE_H
#define SY_GUARD_QUARANTINE_H

#include "guard/guard_internal.h"

/*
 * Moves `name` of a directory to STATE/quarantine/RUN/N-NAME and appends where it lies now.
 * On another file system it is first given a name that nobody looks for, then copied;
 * what can't be copied whole stays under that name. false, with `why`: it could
 * not be moved at all. Nothing is ever overwritten, nothing deleted before its copy is whole.
 */
bool quarantine_move(struct guard *g, int dir_fd, const char *dir_path, const char *name,
                     struct buf *ret_path, const char **ret_why);
/* Puts what stood there at the baseline where nothing is now. false: could not. */
bool quarantine_restore(int dir_fd, const struct guard_file *f);

#endif
