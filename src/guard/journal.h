#ifndef SY_GUARD_JOURNAL_H
#define SY_GUARD_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The placeholders of all engines that share a state directory:
 *
 *     STATE/guard/lock            held while the journal is read and written
 *     STATE/guard/journal         one line a placeholder
 *     STATE/guard/owners/ID       one an engine, locked for as long as it lives
 *
 * An owner is alive while somebody holds the lock of its file: the kernel lets go
 * of it however an engine ends, and no process number can come again.
 */

/* 16 hexadecimal digits. */
#define JOURNAL_ID 17

struct journal_entry {
    char *path; /* absolute, where it stands */
    char *temp; /* name in the same directory under which it is made first */
    bool is_dir;
    uint64_t dev;
    uint64_t ino;       /* 0: not known to be made yet */
    uint64_t btime_ns;  /* of its birth: inode numbers come again; 0: not told by the disk */
    struct strv owners; /* ids */
};

struct journal_entries {
    struct journal_entry *v;
    size_t n;
};

void journal_entries_fini(struct journal_entries *e);
/* Takes *entry (left empty), also when it fails. */
enum sy_code journal_entries_add(struct journal_entries *e,
                                 struct journal_entry *entry) SY_NODISCARD;
void journal_entries_remove(struct journal_entries *e, size_t i);

/* SY_E_PARSE: not a journal of ours; nothing in it is believed then. */
enum sy_code journal_parse(struct journal_entries *ret, const char *text, size_t len,
                           struct sy_error *err) SY_NODISCARD;
enum sy_code journal_format(struct buf *out, const struct journal_entries *e) SY_NODISCARD;

struct journal;

/* Is there anything to recover? */
bool journal_exists(const char *state_dir);

enum sy_code journal_open(struct journal **ret, const char *state_dir,
                          struct sy_error *err) SY_NODISCARD;
void journal_close(struct journal *j);
const char *journal_id(const struct journal *j);
/* The state directory: for the quarantine. */
int journal_state_fd(const struct journal *j);
const char *journal_state_path(const struct journal *j);

/* Between the two nobody else reads or writes. Owners that are dead are not
 * among the entries' any more; entries without owners are to be cleared away. */
enum sy_code journal_begin(struct journal *j, struct journal_entries *ret,
                           struct sy_error *err) SY_NODISCARD;
enum sy_code journal_write(struct journal *j, const struct journal_entries *e,
                           struct sy_error *err) SY_NODISCARD;
void journal_end(struct journal *j);

#endif
