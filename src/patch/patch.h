#ifndef SY_PATCH_PATCH_H
#define SY_PATCH_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "sandbox/sandbox.h"

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

/*
 * May `op` be done to `path` (absolute, without links)? SY_E_DENIED with a sentence: no. `all` are
 * the paths of the whole plan, for what only several of them make together.
 */
typedef enum sy_code patch_judge_fn(void *arg, enum sandbox_operation op, const char *path,
                                    char *const *all, struct sy_error *err);

/* Told of a file that lies in none of the roots: `path` as above. An error takes the place of the
 * refusal. */
typedef enum sy_code patch_refused_fn(void *arg, enum sandbox_operation op, const char *path,
                                      struct sy_error *err);

/* Where a patch is applied, and as whom. Borrowed while the plan lives. */
struct patch_world {
    const char *cwd;           /* absolute: what paths are relative to */
    char *const *roots;        /* absolute, without links: where it may write; NULL: anywhere */
    const char *outside;       /* a sentence for what lies in none of them */
    patch_judge_fn *judge;     /* NULL: all else may be done */
    patch_refused_fn *refused; /* NULL: nobody need be told */
    void *arg;                 /* of both */
    bool changes_identity;     /* files are touched and made as this user, else as ourselves */
    uint32_t uid;
    uint32_t gid;
    bool wants_diff; /* patch_plan_diff will be called */
};

/*
 * The keys under which an approval of this patch is remembered, one for each file that it touches
 * (both names of one that moves): "patch:" and the path without links. Sorted, each once. `cwd` is
 * absolute. What can't be resolved is its text without "." and "..".
 */
enum sy_code patch_keys(struct strv *ret, const struct patch *p, const char *cwd) SY_NODISCARD;

/* What a patch will do, found out whole; nothing has changed so far. */
struct patch_plan;

/*
 * Resolves each path to directories that are held open from then on (no link leads out of the
 * roots), asks the judge, reads the files and fits the chunks. `p` must stay. On an error the whole
 * message is in *fault (which needs some KiB), its beginning in *err. What is refused is looked for
 * in all sections; the error is the first.
 */
enum sy_code patch_plan_new(struct patch_plan **ret, const struct patch *p,
                            const struct patch_world *world, struct buf *fault,
                            struct sy_error *err) SY_NODISCARD;
/* Accepts NULL. */
void patch_plan_free(struct patch_plan *plan);

/* "A path" lines of added files, then "M path" (a moved one by its new name), then "D path". */
enum sy_code patch_plan_summary(struct buf *out, const struct patch_plan *plan) SY_NODISCARD;
/* As a unified difference; cut within LIMIT_PATCH_DIFF and said so. */
enum sy_code patch_plan_diff(struct buf *out, const struct patch_plan *plan) SY_NODISCARD;
/* An array of {"action", "path", "from"}. */
void patch_plan_write(struct jw *w, const struct patch_plan *plan);
/* The i-th thing that should be said; NULL beyond. */
const char *patch_plan_note(const struct patch_plan *plan, size_t i);
/* How many notes there were no room for. */
uint32_t patch_plan_more_notes(const struct patch_plan *plan);

/*
 * Applies it: new contents are written beside, then all names are exchanged. If any
 * part fails all is put back as it was; SY_E_SYS then, or SY_E_DENIED when a file is another than
 * the plan has seen. Once. What could not be cleared away is a note.
 *
 * Nothing is flushed to the disk (docs/internals/patch.md). `before` (for tests; may be NULL) is
 * called before each step that changes something, and makes it fail with the errno value that it
 * returns.
 */
typedef int patch_before_fn(void *arg);
enum sy_code patch_apply(struct patch_plan *plan, patch_before_fn *before, void *arg,
                         struct sy_error *err) SY_NODISCARD;

/* A patch that stands in a command for a shell or in an argument list. */
enum intercept_kind {
    INTERCEPT_NONE,  /* an ordinary command */
    INTERCEPT_PATCH, /* a call of apply_patch, and nothing else */
    INTERCEPT_BARE   /* a patch where a command should be */
};

struct intercept {
    enum intercept_kind kind;
    char *body; /* INTERCEPT_PATCH: what apply_patch would be given */
    size_t len;
    char *workdir; /* from where on, relative to the call's directory; NULL: from there */
};

/* Frees; accepts zeroed, and leaves it so. */
void intercept_fini(struct intercept *i);

/*
 * Pure. Calls are
 *     apply_patch PATCH               (an argument list; also by the name applypatch)
 *     apply_patch <<'WORD' ... WORD   (a script; the word may be quoted or not)
 *     cd DIR && apply_patch <<...     (one word, that the shell does not compute)
 * and such a script after bash, zsh or sh with -c or -lc, pwsh or powershell with
 * -Command, cmd with /c. What stands in the here-document is taken as it is. Anything beside it,
 * and it is an ordinary command. The only error is memory.
 */
enum sy_code patch_intercept_argv(struct intercept *ret, char *const *argv) SY_NODISCARD;
enum sy_code patch_intercept_script(struct intercept *ret, const char *script) SY_NODISCARD;
/* What a model is told that sends INTERCEPT_BARE. */
extern const char patch_bare_advice[];

#endif
