#ifndef SY_PATCH_PATCH_H
#define SY_PATCH_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Patches as models write them for apply_patch: read, planned against the files, and applied
 * whole or not at all.
 *
 *     *** Begin Patch
 *     *** Update File: src/a.c
 *     *** Move to: src/b.c
 *     @@ main(void)
 *      kept
 *     -removed
 *     +added
 *     *** End of File
 *     *** Add File: docs/new.md
 *     +each of its lines
 *     *** Delete File: old.c
 *     *** End Patch
 */

/* What a section does with its file. */
enum patch_kind { PATCH_ADD, PATCH_DELETE, PATCH_UPDATE };

enum patch_mark {
    PATCH_SEEK,   /* after "@@ ": a line from which on the chunk is looked for */
    PATCH_KEEP,   /* ' ' */
    PATCH_REMOVE, /* '-' */
    PATCH_INSERT  /* '+' */
};

/* Without its mark and its end; borrowed from the text. */
struct patch_line {
    enum patch_mark mark;
    const char *text;
    size_t len;
};

/* Lines that stand together in the file. PATCH_SEEK come first. */
struct patch_chunk {
    size_t first; /* of patch.lines */
    size_t n;
    size_t n_seeks;
    size_t line;      /* in the patch, from 1 */
    bool is_file_end; /* "*** End of File": nothing comes after it */
};

struct patch_section {
    enum patch_kind kind;
    char *path;    /* as written; never empty */
    char *move_to; /* PATCH_UPDATE: or NULL */
    size_t line;   /* in the patch, from 1 */
    size_t first;  /* PATCH_ADD: of patch.lines; PATCH_UPDATE: of patch.chunks */
    size_t n;
};

struct patch {
    const struct patch_section *sections; /* at least one */
    size_t n_sections;
    const struct patch_chunk *chunks;
    size_t n_chunks;
    const struct patch_line *lines;
    size_t n_lines;
    struct buf store[3]; /* memory of all of these */
};

/* Frees; accepts zeroed, and leaves it so. */
void patch_fini(struct patch *p);

/*
 * Reads `len` bytes, which must stay. Blanks around the patch and around markers are of no
 * account, nor is a here-document around the whole ("<<EOF" ... "EOF"), nor CRLF. SY_E_PARSE names
 * the line and what would be right; SY_E_LIMIT: LIMIT_PATCH and its like.
 */
enum sy_code patch_read(struct patch *ret, const char *text, size_t len,
                        struct sy_error *err) SY_NODISCARD;

/* Does a text begin as a patch does? */
bool patch_looks_like(const char *text, size_t len);

#endif
