#ifndef SY_GUARD_GIT_CONFIG_H
#define SY_GUARD_GIT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* One setting. Section and key are in lower case; borrowed for the call. */
struct git_config_entry {
    const char *section;
    const char *subsection; /* NULL: none */
    const char *key;
    const char *value; /* NULL: a key alone, which means true */
};

/* Anything but SY_E_OK ends the reading and is its result. */
typedef enum sy_code git_config_fn(void *arg, const struct git_config_entry *e);

/*
 * Reads a git configuration file as git does. SY_E_PARSE with the line where git
 * would refuse it too, and for NUL bytes. Includes are entries like any other.
 */
enum sy_code git_config_read(const char *text, size_t len, git_config_fn *fn, void *arg,
                             struct sy_error *err) SY_NODISCARD;

/* Where the file is, for the values that are paths. */
struct git_config_place {
    const char *git_dir; /* absolute */
    char *const *roots;  /* core.worktree must stay below one */
};

/*
 * True for what is known to run no program, read no other configuration and send
 * nothing elsewhere than the eye sees. What is not known is not harmless.
 */
bool git_config_is_harmless(const struct git_config_entry *e, const struct git_config_place *at);

/* "section.sub.key=value". */
enum sy_code git_config_text(struct buf *out, const struct git_config_entry *e) SY_NODISCARD;

#endif
