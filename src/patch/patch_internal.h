#ifndef SY_PATCH_PATCH_INTERNAL_H
#define SY_PATCH_PATCH_INTERNAL_H

#include <sys/stat.h>

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

/* Where lines are looked for: at places from line `from` up to the one that begins at `last`. */
struct match_range {
    size_t from;
    size_t last;
    uint64_t *work; /* counts places that were looked at */
};

/*
 * The first place in the range at which `pattern` stands, by the best level at which there is
 * one. SY_E_NOTFOUND; SY_E_LIMIT when *work goes beyond LIMIT_PATCH_WORK.
 */
enum sy_code match_find(struct match *ret, struct text *t, const struct patch_line *pattern,
                        size_t n, const struct match_range *range) SY_NODISCARD;

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
/* What comes of fitting all files of a patch. */
struct fit_report {
    uint64_t work;
    struct notes notes;
    struct buf *fault; /* the whole message of what failed; borrowed */
};
/*
 * Fits the chunks of a PATCH_UPDATE. A chunk that stands nowhere: SY_E_NOTFOUND, with the whole
 * message, which may have many lines, in the report's fault.
 */
enum sy_code fit_update(struct fit *ret, struct text *t, const struct patch *p,
                        const struct patch_section *s, struct fit_report *report,
                        struct sy_error *err) SY_NODISCARD;
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
/* A file, or where one will be (site.c). */
struct site {
    char *path;  /* absolute, without links */
    char *rest;  /* its name, or "new/dirs/name", below */
    int dir_fd;  /* the deepest directory above it that exists (O_PATH) */
    bool exists; /* then rest is a name: */
    struct stat st;
    bool is_outside; /* of all roots: of the others only `path` is known */
};
#define SITE_NONE ((struct site){.dir_fd = -1})

/* The roots, each held open. */
struct sites {
    const struct patch_world *world;
    int *root_fds;
    size_t n_roots;
};
enum sy_code sites_open(struct sites *ret, const struct patch_world *world,
                        struct sy_error *err) SY_NODISCARD;
void sites_close(struct sites *s);

/*
 * Resolves a path of a patch. `follows`: a link that it names itself is followed, else it is the
 * file. What is not in a root is SY_E_DENIED. `what` begins the sentence ("Failed to ...").
 */
enum sy_code site_find(struct site *ret, const struct sites *s, const char *path, bool follows,
                       const char *what, struct sy_error *err) SY_NODISCARD;
/* Its path alone. */
enum sy_code site_resolve(struct buf *ret, const char *cwd, const char *path,
                          bool follows) SY_NODISCARD;
void site_fini(struct site *s);
/* The file is still the one that it was: not replaced, not written to. */
bool site_is_same(const struct stat *a, const struct stat *b);

/* The user as whom this thread touches files (identity.c); leave gives back what was. */
struct identity {
    bool has_changed;
    uint32_t uid;
    uint32_t gid;
    uint32_t *groups;
    size_t n_groups;
};
enum sy_code identity_enter(struct identity *was, const struct patch_world *world,
                            struct sy_error *err) SY_NODISCARD;
void identity_leave(struct identity *was);

/* One section, found out. */
struct planned {
    const struct patch_section *section;
    struct site source; /* PATCH_UPDATE, PATCH_DELETE: the file; PATCH_ADD: where it will be */
    struct site target; /* of a move; else without path */
    struct buf old;
    struct text text;
    struct fit fit;
    struct buf content; /* what will be there */
};

struct patch_plan {
    const struct patch *patch;
    const struct patch_world *world;
    struct planned *v;
    size_t n;
    struct strv paths; /* of all sites */
    struct fit_report report;
    size_t total;
};

static inline bool
planned_moves(const struct planned *p)
{
    return p->target.path != NULL;
}

/* Where its content goes. */
static inline const struct site *
planned_site(const struct planned *p)
{
    return planned_moves(p) ? &p->target : &p->source;
}

/* The end that lines have which are put at `at`: that of their surroundings. */
const char *fit_end(const struct fit *f, const struct text *t, size_t at);
/* Of a line that is inserted, without what its end has already. */
size_t fit_inserted_len(const struct patch_line *line, const char *end);

#endif
