#ifndef SY_PATCH_PATCH_INTERNAL_H
#define SY_PATCH_PATCH_INTERNAL_H

#include "patch/patch.h"

static inline bool
patch_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* How exactly lines must agree, the best first. */
enum match_level {
    MATCH_EXACT,
    MATCH_TRAILING,    /* but for blanks at their ends */
    MATCH_TRIMMED,     /* and at their beginnings */
    MATCH_PUNCTUATION, /* and dashes, quotes and spaces are those of ASCII */
    MATCH_LEVELS
};

struct text_line {
    uint32_t start;
    uint32_t len; /* without its end */
};

/* A file's content as lines. */
struct text {
    const char *bytes; /* borrowed */
    size_t len;
    const struct text_line *v;
    size_t n;
    bool ends_open; /* the last line has no end */
    struct buf store;
    /* Once that level was needed: of the first i lines; and a bit for each number that a line
     * may have, out of seen_mask + 1, which is a power of two. */
    uint64_t *sums[MATCH_LEVELS];
    uint64_t *seen[MATCH_LEVELS];
    size_t seen_mask;
};

/* SY_E_LIMIT: more than LIMIT_PATCH_FILE_LINES. */
enum sy_code text_split(struct text *ret, const char *bytes, size_t len) SY_NODISCARD;
void text_fini(struct text *t);
/* "\n", "\r\n", or "" where a file ends without. */
static inline size_t
text_end_len(const struct text *t, size_t line)
{
    size_t next = line + 1 < t->n ? t->v[line + 1].start : t->len;

    return next - t->v[line].start - t->v[line].len;
}

/* Where lines stand. */
#define MATCH_OTHERS 3
struct match {
    size_t at;
    enum match_level level;
    size_t n;                    /* places that fit as well as this one, itself among them */
    size_t others[MATCH_OTHERS]; /* the first of the others */
};

/*
 * The first place from line `from` up to the one that begins at `last` at which `pattern` stands,
 * by the best level at which there is one. SY_E_NOTFOUND; SY_E_LIMIT when *work, the places looked
 * at so far, goes beyond LIMIT_PATCH_WORK.
 */
enum sy_code match_find(struct match *ret, struct text *t, const struct patch_line *pattern,
                        size_t n, size_t from, size_t last, uint64_t *work) SY_NODISCARD;

/* Old lines from `at` on become those among patch.lines [first, first + n) that are PATCH_INSERT.
 */
struct change {
    size_t at;
    size_t n_old;
    size_t first;
    size_t n;
    bool adds_end; /* the one old line stays, and gets the end that it has not */
};

/* What is said about a patch besides its success. */
struct notes {
    struct strv list;
    uint32_t more;
};
enum sy_code notes_add(struct notes *n, const char *fmt, ...) SY_NODISCARD SY_PRINTF(2, 3);

/* What a section does to the lines of its file, in their order. */
struct fit {
    struct buf store; /* struct change */
    const struct change *v;
    size_t n;
    bool is_whole; /* PATCH_ADD: the content has nothing of the file's */
};

void fit_fini(struct fit *f);
/*
 * Fits the chunks of a PATCH_UPDATE. A chunk that stands nowhere: SY_E_NOTFOUND, with the whole
 * message, which may have many lines, in *fault.
 */
enum sy_code fit_update(struct fit *ret, struct text *t, const struct patch *p,
                        const struct patch_section *s, uint64_t *work, struct notes *notes,
                        struct buf *fault, struct sy_error *err) SY_NODISCARD;
/* All of the old lines for those of a PATCH_ADD, or for nothing. */
enum sy_code fit_whole(struct fit *ret, const struct text *t,
                       const struct patch_section *s) SY_NODISCARD;
/* Appends the new content; within out->max. */
enum sy_code fit_write(struct buf *out, const struct fit *f, const struct text *t,
                       const struct patch *p) SY_NODISCARD;

/* One file of a unified difference, as git writes it (diff.c). */
struct diff_file {
    enum patch_kind kind;
    const char *old_path; /* as shown */
    const char *new_path;
    unsigned old_mode; /* 0: there was none */
    unsigned new_mode;
};
enum sy_code diff_add(struct buf *out, const struct diff_file *file, const struct fit *f,
                      const struct text *t, const struct patch *p) SY_NODISCARD;
/* The end that lines have which are put at `at`: that of their surroundings. */
const char *fit_end(const struct fit *f, const struct text *t, size_t at);
/* Of a line that is inserted, without what its end has already. */
size_t fit_inserted_len(const struct patch_line *line, const char *end);

#endif
