#ifndef SY_GUARD_PLACE_H
#define SY_GUARD_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/journal.h"

/*
 * One placeholder on the disk. It is made under a random name of ours, journalled
 * by inode and birth, and then moved to where it stands, where nothing must be: at each
 * moment the journal knows what is ours.
 */

/* A random name: ".shellyard-" and 16 digits. SY_E_SYS without random bytes. */
enum sy_code place_temp(struct journal_entry *e, struct sy_error *err) SY_NODISCARD;
/* Under its temporary name; fills dev, ino, btime_ns. false: can't be made there. */
bool place_make(struct journal_entry *e);
/* To its path; false: something is there, or the file system can't (then it is gone). */
bool place_move(const struct journal_entry *e);
/* Is it there, and still what was made? */
bool place_is_there(const struct journal_entry *e);
/* Removes what is ours and empty. false: could not be tried now; keep the entry. */
bool place_remove(const struct journal_entry *e);

#endif
