#ifndef SY_CLI_EDIT_H
#define SY_CLI_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Edits of other programs' configuration: one entry is set, every other byte
 * stays. Pure; what can't be edited safely is an error that says why, and the
 * caller shows the person what to add by hand.
 */

enum edit_owner {
    EDIT_THEIRS, /* a default, kept as it is if the person has set it */
    EDIT_OURS,
    EDIT_OUR_HEAD /* an array that begins as ours does: behind the last item of ours the
                     person's stand, and stay. An array where that item is not in its place is
                     written anew. (YAML: ours has one item.) */
};

/* One field of our entry. */
struct edit_field {
    const char *key;
    const char *value; /* JSON text, which TOML and YAML read alike for strings, numbers,
                          booleans and arrays of strings */
    enum edit_owner owner;
};

/* Where our entry goes, and what it says. */
struct edit_entry {
    const char *section;
    const char *name;
    const struct edit_field *fields; /* ended by a row without key */
};

enum edit_outcome {
    EDIT_UNCHANGED, /* it was there already, `out` holds the text as it was */
    EDIT_ADDED,
    EDIT_CHANGED
};

/*
 * Sets member `entry->name` of the object `entry->section` of the root object.
 * `text` empty: a new file. SY_E_PARSE for what is not strict JSON (comments,
 * trailing commas), with the line. A byte order mark is let be.
 */
enum sy_code edit_json(struct buf *out, const struct buf *text, const struct edit_entry *entry,
                       enum edit_outcome *ret_outcome, struct sy_error *err) SY_NODISCARD;

/* The same for files that may hold comments and trailing commas, which stay. */
enum sy_code edit_jsonc(struct buf *out, const struct buf *text, const struct edit_entry *entry,
                        enum edit_outcome *ret_outcome, struct sy_error *err) SY_NODISCARD;

/* Sets the table [section.name]. SY_E_PARSE where strings or brackets do not
 * end, or where the table is written in another way (inline, dotted keys). */
enum sy_code edit_toml(struct buf *out, const struct buf *text, const struct edit_entry *entry,
                       enum edit_outcome *ret_outcome, struct sy_error *err) SY_NODISCARD;

/* Sets the name in the mapping `entry->section` of the root mapping, block or flow; of an
 * entry that is there only what differs is changed. SY_E_PARSE where that could touch more. */
enum sy_code edit_yaml(struct buf *out, const struct buf *text, const struct edit_entry *entry,
                       enum edit_outcome *ret_outcome, struct sy_error *err) SY_NODISCARD;

/*
 * Puts entries behind those of the list `section` of the root mapping, which is made at the
 * end if it is not there. `lines` are block entries with two blanks in front of each line. What
 * it makes is to be read and compared before it is used. SY_E_PARSE where the list is no
 * block.
 */
enum sy_code edit_yaml_append(struct buf *out, const struct buf *text, const char *section,
                              const char *lines, struct sy_error *err) SY_NODISCARD;

/* Appends compact JSON with line breaks and `unit` for each level, after
 * `base` on every line but the first; arrays stay on one line. */
enum sy_code edit_pretty(struct buf *out, const char *json, const char *base,
                         const char *unit) SY_NODISCARD;

/*
 * A file that is replaced as a whole: read, then written to a new file beside
 * it which takes its name, mode and owner. A symbolic link keeps pointing.
 */
struct edit_file {
    struct buf text; /* max set by edit_file_read; empty if the file is missing */
    struct buf path; /* after symbolic links */
    bool exists;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

enum sy_code edit_file_read(struct edit_file *ret, const char *path,
                            struct sy_error *err) SY_NODISCARD;
void edit_file_fini(struct edit_file *f);
/* Keeps the old text as PATH.bak-N (its name in *ret_backup, empty for a new
 * file), makes missing directories, replaces. SY_E_ARG, and nothing replaced,
 * if the file no longer holds what was read: clients write it themselves. */
enum sy_code edit_file_write(const struct edit_file *f, const struct buf *text,
                             struct buf *ret_backup, struct sy_error *err) SY_NODISCARD;

#endif
