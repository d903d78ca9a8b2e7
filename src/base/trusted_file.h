#ifndef SY_BASE_TRUSTED_FILE_H
#define SY_BASE_TRUSTED_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * A file whose word counts: only its owner, who is the effective user or root, may write it (and a
 * group that is the owner's alone, private_group.h), and it does not lie in a workspace, where
 * commands could: not by this name, nor, if we can write it, by any other.
 */
struct trusted_file {
    const char *path;
    const char *workspace; /* absolute; NULL: none */
    bool must_be_root;     /* the owner; else the effective user or root */
    const char *way_out; /* how else to keep it out of the workspace ("or move ..."); may be NULL */
};

/*
 * Reads it whole, b->max at most; *ret_exists says whether there is one.
 * Everything else, a link to nothing too, is SY_E_CONFIG with the path.
 */
enum sy_code trusted_file_read(struct buf *b, bool *ret_exists, const struct trusted_file *file,
                               struct sy_error *err) SY_NODISCARD;

#endif
