/* A unified difference out of changes that are known already. */
#include <string.h>

#include "base/str.h"
#include "patch/patch_internal.h"

/* Unchanged lines around changes. */
#define CONTEXT ((size_t)3)

static const char no_end[] = "\n\\ No newline at end of file\n";

struct diff {
    struct buf *out;
    const struct fit *fit;
    const struct text *text;
    const struct patch *patch;
    enum sy_code rc;
};

static void
add(struct diff *d, const char *bytes, size_t n)
{
    if (d->rc == SY_E_OK) {
        d->rc = buf_add(d->out, bytes, n);
    }
}

static void
add_old(struct diff *d, char mark, size_t line)
{
    const struct text_line *l = &d->text->v[line];
    size_t end = text_end_len(d->text, line);

    add(d, &mark, 1);
    add(d, d->text->bytes + l->start, l->len + end);
    if (end == 0) {
        add(d, no_end, sizeof(no_end) - 1);
    }
}

static void
add_change(struct diff *d, const struct change *c)
{
    const char *end = fit_end(d->fit, d->text, c->at);

    for (size_t i = 0; i < c->n_old; i++) {
        add_old(d, '-', c->at + i);
    }
    if (c->adds_end) {
        const struct text_line *l = &d->text->v[c->at];

        add(d, "+", 1);
        add(d, d->text->bytes + l->start, l->len);
        add(d, end, strlen(end));
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct patch_line *line = &d->patch->lines[c->first + i];

        if (line->mark == PATCH_INSERT) {
            add(d, "+", 1);
            add(d, line->text, fit_inserted_len(line, end));
            add(d, end, strlen(end));
        }
    }
}

static size_t
n_new(const struct patch *p, const struct change *c)
{
    size_t n = c->adds_end ? 1 : 0;

    for (size_t i = 0; i < c->n; i++) {
        n += p->lines[c->first + i].mark == PATCH_INSERT ? 1 : 0;
    }
    return n;
}

/* How many changes from the i-th on stand in one hunk. */
static size_t
hunk_size(const struct fit *f, size_t i)
{
    size_t n = 1;

    while (i + n < f->n &&
           f->v[i + n].at - (f->v[i + n - 1].at + f->v[i + n - 1].n_old) <= 2 * CONTEXT) {
        n++;
    }
    return n;
}

/* A range is named by the line in front of it when it is empty. */
static size_t
range_start(size_t start, size_t n)
{
    return n > 0 ? start + 1 : start;
}

/* Returns by how many lines the new file is longer after it. */
static size_t
add_hunk(struct diff *d, const struct change *c, size_t n, size_t shift)
{
    const struct change *last = &c[n - 1];
    size_t from = c->at > CONTEXT ? c->at - CONTEXT : 0;
    size_t behind = last->at + last->n_old;
    size_t to = d->text->n - behind > CONTEXT ? behind + CONTEXT : d->text->n;
    size_t grows = 0; /* modulo 2^64, as `shift` */

    for (size_t i = 0; i < n; i++) {
        grows += n_new(d->patch, &c[i]) - c[i].n_old;
    }
    if (d->rc == SY_E_OK) {
        size_t n_after = to - from + grows;

        d->rc = buf_addf(d->out, "@@ -%zu,%zu +%zu,%zu @@\n", range_start(from, to - from),
                         to - from, range_start(from + shift, n_after), n_after);
    }
    for (size_t i = 0; i < n; i++) {
        for (; from < c[i].at; from++) {
            add_old(d, ' ', from);
        }
        add_change(d, &c[i]);
        from = c[i].at + c[i].n_old;
    }
    for (; from < to; from++) {
        add_old(d, ' ', from);
    }
    return grows;
}

static enum sy_code
add_header(struct buf *out, const struct diff_file *file)
{
    bool moves = !str_eq(file->old_path, file->new_path);
    enum sy_code rc = buf_addf(out, "diff --git a/%s b/%s\n", file->old_path, file->new_path);

    if (rc == SY_E_OK && file->old_mode == 0) {
        rc = buf_addf(out, "new file mode %06o\n", file->new_mode);
    } else if (rc == SY_E_OK && file->kind == PATCH_DELETE) {
        rc = buf_addf(out, "deleted file mode %06o\n", file->old_mode);
    } else if (rc == SY_E_OK && moves) {
        rc = buf_addf(out, "rename from %s\nrename to %s\n", file->old_path, file->new_path);
    }
    return rc;
}

static bool
is_binary(const struct text *t)
{
    return t->len > 0 && memchr(t->bytes, '\0', t->len) != NULL;
}

enum sy_code
diff_add(struct buf *out, const struct diff_file *file, const struct fit *f, const struct text *t,
         const struct patch *p)
{
    struct diff d = {.out = out, .fit = f, .text = t, .patch = p};
    bool is_new = file->old_mode == 0;
    bool is_gone = file->kind == PATCH_DELETE;
    size_t shift = 0;

    d.rc = add_header(out, file);
    if (d.rc != SY_E_OK || f->n == 0) {
        return d.rc;
    }
    if (is_binary(t)) {
        return buf_addf(out, "Binary files a/%s and %s%s differ\n", file->old_path,
                        is_gone ? "" : "b/", is_gone ? "/dev/null" : file->new_path);
    }
    d.rc = buf_addf(out, "--- %s%s\n+++ %s%s\n", is_new ? "" : "a/",
                    is_new ? "/dev/null" : file->old_path, is_gone ? "" : "b/",
                    is_gone ? "/dev/null" : file->new_path);
    for (size_t i = 0; i < f->n && d.rc == SY_E_OK;) {
        size_t n = hunk_size(f, i);

        shift += add_hunk(&d, &f->v[i], n, shift);
        i += n;
    }
    return d.rc;
}
