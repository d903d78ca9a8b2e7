/* Chunks become changes of the lines of a file. */
#include <stdarg.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "patch/patch_internal.h"

/* Of a message, the lines that were looked for. */
#define SHOWN_LINES 4096U

struct fitting {
    struct fit *out;
    struct text *text;
    const struct patch *patch;
    const struct patch_section *section;
    struct fit_report *report;
    struct sy_error *err;
    size_t cursor;  /* the first line behind the chunks so far */
    size_t touched; /* the first line behind the changes so far */
    struct buf old; /* struct patch_line: of the chunk at hand */
};

void
fit_fini(struct fit *f)
{
    buf_fini(&f->store);
    *f = (struct fit){0};
}

enum sy_code
notes_add(struct notes *n, const char *fmt, ...)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1024};
    enum sy_code rc = SY_E_OK;
    va_list ap;

    n->list.max = LIMIT_PATCH_NOTES;
    if (n->list.n == n->list.max) {
        n->more++;
        return SY_E_OK;
    }
    va_start(ap, fmt);
    rc = buf_addv(&text, fmt, ap);
    va_end(ap);
    if (rc == SY_E_OK) {
        rc = strv_add(&n->list, buf_view(&text));
    }
    return rc == SY_E_LIMIT ? SY_E_OK : rc;
}

static enum sy_code
add_change(struct fitting *f, struct change c)
{
    const struct text *t = f->text;

    /* The last line needs an end now, unless an earlier change has dealt with it. */
    if (c.n_old == 0 && c.at == t->n && t->ends_open && f->touched < t->n) {
        c.at--;
        c.n_old = 1;
        c.adds_end = true;
    }
    f->touched = c.at + c.n_old;
    return buf_add(&f->out->store, &c, sizeof(c)) == SY_E_OK ? SY_E_OK : sy_err_nomem(f->err);
}

/* What stands at `at` is as the old lines of the chunk, `n_old` of them. */
static enum sy_code
add_changes(struct fitting *f, const struct patch_chunk *c, size_t at, size_t n_old)
{
    struct change change = {.first = SIZE_MAX};
    size_t end = c->first + c->n;
    size_t used = 0;
    enum sy_code rc = SY_E_OK;

    for (size_t i = c->first + c->n_seeks; i < end && rc == SY_E_OK; i++) {
        enum patch_mark mark = f->patch->lines[i].mark;
        bool is_old = mark != PATCH_INSERT;

        if (is_old && used == n_old) {
            continue; /* an empty line at the end that the file has not */
        }
        if (mark == PATCH_KEEP) {
            rc = change.first != SIZE_MAX ? add_change(f, change) : SY_E_OK;
            change.first = SIZE_MAX;
            used++;
            continue;
        }
        if (change.first == SIZE_MAX) {
            change = (struct change){.at = at + used, .first = i};
        }
        change.n = i + 1 - change.first;
        change.n_old += is_old ? 1 : 0;
        used += is_old ? 1 : 0;
    }
    return rc == SY_E_OK && change.first != SIZE_MAX ? add_change(f, change) : rc;
}

static enum sy_code
over_limit(const struct fitting *f)
{
    return sy_err_set(
        f->err, SY_E_LIMIT,
        "the patch takes too much searching (more than %u places): give chunks in the "
        "order of the file, with exact lines",
        LIMIT_PATCH_WORK);
}

static enum sy_code
find(const struct fitting *f, struct match *ret, const struct patch_line *lines, size_t n,
     struct match_range range)
{
    range.work = &f->report->work;
    return match_find(ret, f->text, lines, n, &range);
}

/* The whole message in *fault, as much of it as fits in *err. */
static enum sy_code
not_found(struct fitting *f, const struct patch_chunk *c, const struct patch_line *lines, size_t n,
          const char *what)
{
    struct place_shown_path shown;
    const char *path = f->section->path;
    struct match elsewhere;
    enum sy_code rc = SY_E_OK;

    buf_reset(f->report->fault);
    rc = buf_addf(f->report->fault, "%s%s:", what, path);
    for (size_t i = 0; i < n && rc == SY_E_OK && f->report->fault->len < SHOWN_LINES; i++) {
        rc = buf_add_char(f->report->fault, '\n');
        if (rc == SY_E_OK) {
            rc = str_add_visible(f->report->fault, lines[i].text, lines[i].len, 256);
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(f->report->fault, "\n(the chunk at line %zu of the patch%s", c->line,
                      c->is_file_end ? ", which is to stand at the end of the file" : "");
    }
    if (rc == SY_E_OK && f->cursor > 0 &&
        find(f, &elsewhere, lines, n, (struct match_range){.last = f->cursor - 1}) == SY_E_OK) {
        rc =
            buf_addf(f->report->fault,
                     "; they stand at line %zu, before the end of the chunk in front of it: chunks "
                     "go in the order of the file",
                     elsewhere.at + 1);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(f->report->fault, "; read the file again and use its lines as they are)");
    }
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(f->err);
    }
    return sy_err_set(f->err, SY_E_NOTFOUND, "%s%s (the chunk at line %zu of the patch)", what,
                      place_visible_path(&shown, path), c->line);
}

static enum sy_code
note_level(struct fitting *f, const struct patch_chunk *c, const struct match *m)
{
    static const char *const means[] = {
        [MATCH_TRAILING] = "blanks at the ends of lines",
        [MATCH_TRIMMED] = "blanks around lines",
        [MATCH_PUNCTUATION] = "blanks, and the kinds of dashes, quotes and spaces",
    };

    if (m->level == MATCH_EXACT || m->level >= MATCH_LEVELS) {
        return SY_E_OK;
    }
    return notes_add(&f->report->notes,
                     "%s: the chunk at line %zu of the patch fits at line %zu but for %s",
                     f->section->path, c->line, m->at + 1, means[m->level]);
}

static enum sy_code
note_ambiguous(struct fitting *f, const struct patch_chunk *c, const struct match *m,
               const char *what)
{
    SY_AUTO(buf_fini) struct buf others = {.max = 128};
    enum sy_code rc = SY_E_OK;

    if (m->n < 2) {
        return SY_E_OK;
    }
    for (size_t i = 0; i + 1 < m->n && i < MATCH_OTHERS && rc == SY_E_OK; i++) {
        rc = buf_addf(&others, "%s%zu", i > 0 ? ", " : "", m->others[i] + 1);
    }
    if (rc == SY_E_OK && m->n - 1 > MATCH_OTHERS) {
        rc = buf_addf(&others, " and %zu more", m->n - 1 - MATCH_OTHERS);
    }
    if (rc == SY_E_OK) {
        rc = notes_add(&f->report->notes,
                       "%s: ambiguous: the %s at line %zu of the patch fits at line %zu, which was "
                       "used, and at %s; a line after '@@' or more lines around it would tell",
                       f->section->path, what, c->line, m->at + 1, buf_view(&others));
    }
    return rc;
}

static enum sy_code
no_context(struct fitting *f, const struct patch_chunk *c, const struct patch_line *line)
{
    struct place_shown shown;
    struct place_shown_path shown_path;
    enum sy_code rc = SY_E_OK;

    buf_reset(f->report->fault);
    rc = buf_add_str(f->report->fault, "Failed to find context '");
    if (rc == SY_E_OK) {
        rc = str_add_visible(f->report->fault, line->text, line->len, SHOWN_LINES);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(f->report->fault,
                      "' in %s\n(the chunk at line %zu of the patch; after '@@' stands one whole "
                      "line of the file, from which on the chunk is looked for%s)",
                      f->section->path, c->line,
                      f->cursor > 0 ? ", behind the chunk in front of it" : "");
    }
    return rc == SY_E_NOMEM
               ? sy_err_nomem(f->err)
               : sy_err_set(f->err, SY_E_NOTFOUND,
                            "Failed to find context '%s' in %s (the chunk at line %zu of the "
                            "patch)",
                            place_visible(&shown, line->text, line->len),
                            place_visible_path(&shown_path, f->section->path), c->line);
}

static enum sy_code
fit_seeks(struct fitting *f, const struct patch_chunk *c)
{
    for (size_t i = 0; i < c->n_seeks; i++) {
        const struct patch_line *line = &f->patch->lines[c->first + i];
        struct match m;
        enum sy_code rc =
            find(f, &m, line, 1, (struct match_range){.from = f->cursor, .last = SIZE_MAX});

        if (rc == SY_E_NOTFOUND) {
            return no_context(f, c, line);
        }
        if (rc == SY_E_OK && c->n_seeks == 1) {
            rc = note_ambiguous(f, c, &m, "context");
        }
        if (rc != SY_E_OK) {
            return rc == SY_E_LIMIT ? over_limit(f) : sy_err_nomem(f->err);
        }
        f->cursor = m.at + 1;
    }
    return SY_E_OK;
}

/* The lines that the file must have, into f->old. */
static enum sy_code
gather_old(struct fitting *f, const struct patch_chunk *c)
{
    buf_reset(&f->old);
    for (size_t i = c->n_seeks; i < c->n; i++) {
        const struct patch_line *line = &f->patch->lines[c->first + i];

        if (line->mark != PATCH_INSERT && buf_add(&f->old, line, sizeof(*line)) != SY_E_OK) {
            return sy_err_nomem(f->err);
        }
    }
    return SY_E_OK;
}

/* Where they stand. An empty line at their end may be the end of the file, or stand between
 * chunks: then without. */
static enum sy_code
find_old(struct fitting *f, const struct patch_chunk *c, struct match *ret, size_t *n)
{
    const struct patch_line *old = (const void *)f->old.data;
    enum sy_code rc = SY_E_NOTFOUND;

    for (size_t used = *n; used > 0; used--) {
        size_t from = f->cursor;

        if (c->is_file_end && f->text->n >= used && f->text->n - used > from) {
            from = f->text->n - used;
        }
        rc = find(f, ret, old, used, (struct match_range){.from = from, .last = SIZE_MAX});
        if (rc != SY_E_NOTFOUND) {
            *n = used;
            return rc;
        }
        if (old[used - 1].len > 0) {
            break;
        }
    }
    return rc;
}

static enum sy_code
fit_chunk(struct fitting *f, const struct patch_chunk *c)
{
    struct match m;
    enum sy_code rc = fit_seeks(f, c);

    if (rc == SY_E_OK) {
        rc = gather_old(f, c);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    size_t n_old = f->old.len / sizeof(struct patch_line);
    size_t all = n_old;

    if (n_old == 0) {
        return SY_E_OK; /* appended when all others have their place */
    }
    rc = find_old(f, c, &m, &n_old);
    if (rc == SY_E_NOTFOUND) {
        return not_found(f, c, (const void *)f->old.data, all, "Failed to find expected lines in ");
    }
    if (rc == SY_E_OK) {
        rc = note_level(f, c, &m);
    }
    if (rc == SY_E_OK && c->n_seeks == 0) {
        rc = note_ambiguous(f, c, &m, "chunk");
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_LIMIT ? over_limit(f) : sy_err_nomem(f->err);
    }
    f->cursor = m.at + n_old;
    return add_changes(f, c, m.at, n_old);
}

static bool
has_old(const struct patch *p, const struct patch_chunk *c)
{
    for (size_t i = c->n_seeks; i < c->n; i++) {
        if (p->lines[c->first + i].mark != PATCH_INSERT) {
            return true;
        }
    }
    return false;
}

/* Chunks without old lines add at the end of the file. */
static enum sy_code
fit_appended(struct fitting *f)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < f->section->n && rc == SY_E_OK; i++) {
        const struct patch_chunk *c = &f->patch->chunks[f->section->first + i];

        if (has_old(f->patch, c)) {
            continue;
        }
        if (c->n_seeks > 0) {
            rc =
                notes_add(&f->report->notes,
                          "%s: the chunk at line %zu of the patch only adds, so its lines stand at "
                          "the end of the file; lines to add after must be in the chunk, each "
                          "after a ' '",
                          f->section->path, c->line);
        }
        if (rc == SY_E_OK) {
            rc = add_changes(f, c, f->text->n, 0);
        }
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(f->err) : rc;
}

static void
finish(struct fit *f)
{
    f->v = (const void *)f->store.data;
    f->n = f->store.len / sizeof(*f->v);
}

enum sy_code
fit_update(struct fit *ret, struct text *t, const struct patch *p, const struct patch_section *s,
           struct fit_report *report, struct sy_error *err)
{
    struct fitting f = {
        .out = ret, .text = t, .patch = p, .section = s, .report = report, .err = err};
    enum sy_code rc = SY_E_OK;

    *ret = (struct fit){0};
    ret->store.max = (size_t)LIMIT_PATCH_LINES * sizeof(struct change);
    f.old.max = (size_t)LIMIT_PATCH_LINES * sizeof(struct patch_line);
    for (size_t i = 0; i < s->n && rc == SY_E_OK; i++) {
        rc = fit_chunk(&f, &p->chunks[s->first + i]);
    }
    if (rc == SY_E_OK) {
        rc = fit_appended(&f);
    }
    buf_fini(&f.old);
    finish(ret);
    if (rc != SY_E_OK) {
        fit_fini(ret);
    }
    return rc;
}

enum sy_code
fit_whole(struct fit *ret, const struct text *t, const struct patch_section *s)
{
    const struct change c = {
        .n_old = t->n,
        .first = s->kind == PATCH_ADD ? s->first : 0,
        .n = s->kind == PATCH_ADD ? s->n : 0,
    };
    enum sy_code rc = SY_E_OK;

    *ret = (struct fit){.is_whole = true, .store = {.max = sizeof(c)}};
    if (c.n > 0 || c.n_old > 0) {
        rc = buf_add(&ret->store, &c, sizeof(c));
    }
    finish(ret);
    return rc;
}

const char *
fit_end(const struct fit *f, const struct text *t, size_t at)
{
    size_t tries[] = {at, at > 0 ? at - 1 : 0, 0};

    for (size_t i = 0; !f->is_whole && i < sizeof(tries) / sizeof(tries[0]); i++) {
        if (tries[i] < t->n && text_end_len(t, tries[i]) > 0) {
            return text_end_len(t, tries[i]) == 2 ? "\r\n" : "\n";
        }
    }
    return "\n";
}

size_t
fit_inserted_len(const struct patch_line *line, const char *end)
{
    bool has_cr = end[0] == '\r' && line->len > 0 && line->text[line->len - 1] == '\r';

    return line->len - (has_cr ? 1 : 0);
}

static enum sy_code
write_change(struct buf *out, const struct fit *f, const struct text *t, const struct patch *p,
             const struct change *c)
{
    const char *end = fit_end(f, t, c->at);
    enum sy_code rc = SY_E_OK;

    if (c->adds_end) {
        rc = buf_add(out, t->bytes + t->v[c->at].start, t->v[c->at].len);
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, end);
        }
    }
    for (size_t i = 0; i < c->n && rc == SY_E_OK; i++) {
        const struct patch_line *line = &p->lines[c->first + i];

        if (line->mark != PATCH_INSERT) {
            continue;
        }
        rc = buf_add(out, line->text, fit_inserted_len(line, end));
        if (rc == SY_E_OK) {
            rc = buf_add_str(out, end);
        }
    }
    return rc;
}

static size_t
start_of(const struct text *t, size_t line)
{
    return line < t->n ? t->v[line].start : t->len;
}

enum sy_code
fit_write(struct buf *out, const struct fit *f, const struct text *t, const struct patch *p)
{
    size_t at = 0; /* the first old line that is not dealt with */
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < f->n && rc == SY_E_OK; i++) {
        const struct change *c = &f->v[i];
        size_t from = start_of(t, at);

        SY_ASSERT(c->at >= at);
        rc = buf_add(out, t->bytes + from, start_of(t, c->at) - from);
        if (rc == SY_E_OK) {
            rc = write_change(out, f, t, p, c);
        }
        at = c->at + c->n_old;
    }
    if (rc == SY_E_OK) {
        rc = buf_add(out, t->bytes + start_of(t, at), t->len - start_of(t, at));
    }
    return rc;
}
