#ifndef SY_GUARD_PLACE_H
#define SY_GUARD_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guard/journal.h"

/*
 * One placeholder on the disk. It is made under a random name of ours, journalled
 * by inode and birth, and then moved to where it stands, where nothing must be: at each
 * moment the journal knows what is ours.
 */

/*
 * When each was changed last, by its own word: an engine of another user, or with another state
 * directory, has another journal and knows them by this. It stays until somebody writes into one.
 */
#define PLACE_TIME_S  1398358354
#define PLACE_TIME_NS 398358354L

/* A random name: ".shellyard-" and 16 digits. SY_E_SYS without random bytes. */
enum sy_code place_temp(struct journal_entry *e, struct sy_error *err) SY_NODISCARD;
/* Under its temporary name; fills dev, ino, btime_ns. false: can't be made there. */
bool place_make(struct journal_entry *e);
/* To its path; false: something is there, or the file system can't (then it is gone). */
bool place_move(const struct journal_entry *e);
/* Does what is there look like one, whoever made it? It is empty then, so that there is nothing to
 * judge in one that somebody else has made to look like it. */
bool place_looks_like_one(int dir_fd, const char *name);
/* The same by what was known of it, emptiness of a directory apart. */
bool place_has_time(mode_t mode, int64_t size, int64_t mtime_ns);
/* Is it there, and still what was made? */
bool place_is_there(const struct journal_entry *e);
/* Removes what is ours and empty. false: could not be tried now; keep the entry. */
bool place_remove(const struct journal_entry *e);

#endif
