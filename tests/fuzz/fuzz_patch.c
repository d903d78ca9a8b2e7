/*
 * The reader of patches, the fitting of chunks and the recognition of commands. The input is a
 * file's content, a NUL, and a patch; without a NUL it is a patch for an empty file, and a script.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fuzz_check.h"
#include "patch/patch_internal.h"

static void
add(struct buf *b, const char *s, size_t n)
{
    SY_ASSERT(buf_add(b, s, n) == SY_E_OK);
}

/* As it would be written by the book. */
static void
write_line(struct buf *b, const struct patch_line *l)
{
    static const char marks[] = {[PATCH_KEEP] = ' ', [PATCH_REMOVE] = '-', [PATCH_INSERT] = '+'};

    if (l->mark == PATCH_SEEK) {
        add(b, "@@ ", 3);
    } else {
        add(b, &marks[l->mark], 1);
    }
    add(b, l->text, l->len);
    add(b, "\n", 1);
}

static void
write_chunk(struct buf *b, const struct patch *p, const struct patch_chunk *c)
{
    SY_ASSERT(c->n > c->n_seeks && c->first + c->n <= p->n_lines);
    if (c->n_seeks == 0) {
        add(b, "@@\n", 3);
    }
    for (size_t i = 0; i < c->n; i++) {
        SY_ASSERT((p->lines[c->first + i].mark == PATCH_SEEK) == (i < c->n_seeks));
        write_line(b, &p->lines[c->first + i]);
    }
    if (c->is_file_end) {
        SY_ASSERT(buf_add_str(b, "*** End of File\n") == SY_E_OK);
    }
}

static void
write_section(struct buf *b, const struct patch *p, const struct patch_section *s)
{
    static const char *const names[] = {
        [PATCH_ADD] = "Add", [PATCH_DELETE] = "Delete", [PATCH_UPDATE] = "Update"};

    SY_ASSERT(s->path[0] != '\0' && strchr(s->path, '\n') == NULL);
    SY_ASSERT(buf_addf(b, "*** %s File: %s\n", names[s->kind], s->path) == SY_E_OK);
    if (s->move_to != NULL) {
        SY_ASSERT(buf_addf(b, "*** Move to: %s\n", s->move_to) == SY_E_OK);
    }
    for (size_t k = 0; s->kind == PATCH_ADD && k < s->n; k++) {
        write_line(b, &p->lines[s->first + k]);
    }
    for (size_t k = 0; s->kind == PATCH_UPDATE && k < s->n; k++) {
        write_chunk(b, p, &p->chunks[s->first + k]);
    }
}

static void
write_patch(struct buf *b, const struct patch *p)
{
    SY_ASSERT(buf_add_str(b, "*** Begin Patch\n") == SY_E_OK && p->n_sections > 0);
    for (size_t i = 0; i < p->n_sections; i++) {
        write_section(b, p, &p->sections[i]);
    }
    SY_ASSERT(buf_add_str(b, "*** End Patch\n") == SY_E_OK);
}

/* What is written by the book is read as the same. */
static void
check_reading(const struct patch *p)
{
    struct buf first = {.max = (size_t)1 << 26};
    struct buf second = {.max = (size_t)1 << 26};
    struct patch again;

    write_patch(&first, p);
    if (first.len <= LIMIT_PATCH) {
        SY_ASSERT(patch_read(&again, first.data, first.len, NULL) == SY_E_OK);
        write_patch(&second, &again);
        SY_ASSERT(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        patch_fini(&again);
    }
    buf_fini(&first);
    buf_fini(&second);
}

/* The two sides of a difference, each appended to what was between hunks. */
struct sides {
    const char *old;
    size_t at; /* of old */
    size_t line;
    struct buf result;
};

static size_t
line_len(const char *s, size_t n)
{
    const char *end = n > 0 ? memchr(s, '\n', n) : NULL;

    return end != NULL ? (size_t)(end - s) + 1 : n;
}

static void
copy_to_line(struct sides *s, size_t old_len, size_t line)
{
    while (s->line < line) {
        size_t n = line_len(s->old + s->at, old_len - s->at);

        SY_ASSERT(n > 0);
        add(&s->result, s->old + s->at, n);
        s->at += n;
        s->line++;
    }
}

static size_t
number_at(const char *s)
{
    size_t n = 0;

    while (*s >= '0' && *s <= '9') {
        n = n * 10 + (size_t)(*s++ - '0');
    }
    return n;
}

static void
apply_hunk_head(struct sides *s, size_t old_len, const char *head)
{
    size_t start = number_at(head + 4);
    bool is_empty = number_at(strchr(head, ',') + 1) == 0;

    copy_to_line(s, old_len, is_empty ? start : start - 1);
}

static void
apply_line(struct sides *s, size_t old_len, const char *line, size_t n, bool lacks_end)
{
    size_t len = n - 1 - (lacks_end ? 1 : 0);

    if (line[0] != '+') {
        SY_ASSERT(s->at + len <= old_len && memcmp(s->old + s->at, line + 1, len) == 0);
        s->at += len;
        s->line++;
    }
    if (line[0] != '-') {
        add(&s->result, line + 1, len);
    }
}

/* The difference, applied to the old content, gives the new one. */
static void
check_diff(const char *old, size_t len, const struct buf *diff, const struct buf *expected)
{
    struct sides s = {.old = old, .result = {.max = (size_t)1 << 26}};
    const char *at = strstr(buf_view(diff), "\n@@ ");
    const char *end = buf_view(diff) + diff->len;

    at = at != NULL ? at + 1 : end;
    while (at < end) {
        size_t n = line_len(at, (size_t)(end - at));
        bool lacks_end = end - (at + n) > 1 && at[n] == '\\';

        if (at[0] == '@') {
            apply_hunk_head(&s, len, at);
        } else if (at[0] != '\\') {
            apply_line(&s, len, at, n, lacks_end);
        }
        at += n;
    }
    add(&s.result, old + s.at, len - s.at);
    SY_ASSERT(s.result.len == expected->len &&
              memcmp(buf_view(&s.result), buf_view(expected), expected->len) == 0);
    buf_fini(&s.result);
}

static void
check_fit(const char *old, size_t len, const struct patch *p, const struct patch_section *s)
{
    const struct diff_file names = {
        .kind = PATCH_UPDATE, .old_path = "f", .new_path = "f", .old_mode = 0100644};
    struct buf fault = {.max = (size_t)1 << 15};
    struct buf result = {.max = (size_t)1 << 26};
    struct buf diff = {.max = (size_t)1 << 26};
    struct fit_report report = {.fault = &fault};
    struct text t;
    struct fit f;

    SY_ASSERT(text_split(&t, old, len) == SY_E_OK);
    if (fit_update(&f, &t, p, s, &report, NULL) == SY_E_OK) {
        SY_ASSERT(fit_write(&result, &f, &t, p) == SY_E_OK);
        SY_ASSERT(diff_add(&diff, &names, &f, &t, p) == SY_E_OK);
        /* Of a file with NUL bytes it says only that it differs. */
        if (len == 0 || memchr(old, '\0', len) == NULL) {
            check_diff(old, len, &diff, &result);
        }
        fit_fini(&f);
    }
    text_fini(&t);
    strv_fini(&report.notes.list);
    buf_fini(&fault);
    buf_fini(&result);
    buf_fini(&diff);
}

static void
check_script(const char *text, size_t len)
{
    char *script = mem_strndup(text, len);
    struct intercept i;

    SY_ASSERT(script != NULL && patch_intercept_script(&i, script) == SY_E_OK);
    if (i.kind == INTERCEPT_PATCH) {
        SY_ASSERT(strstr(script, "<<") != NULL && strlen(i.body) == i.len);
        SY_ASSERT(i.workdir == NULL || strstr(script, "&&") != NULL);
    }
    intercept_fini(&i);
    mem_free(script);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *nul = size > 0 ? memchr(text, '\0', size) : NULL;
    size_t old_len = nul != NULL ? (size_t)(nul - text) : 0;
    const char *patch = nul != NULL ? nul + 1 : text;
    size_t len = size - (size_t)(patch - text);
    struct sy_error err = {0};
    struct patch p;

    if (patch_read(&p, patch, len, &err) == SY_E_OK) {
        check_reading(&p);
        for (size_t i = 0; i < p.n_sections; i++) {
            if (p.sections[i].kind == PATCH_UPDATE) {
                check_fit(text, old_len, &p, &p.sections[i]);
            }
        }
        patch_fini(&p);
    } else {
        SY_ASSERT(err.msg[0] != '\0' && p.n_sections == 0);
    }
    if (nul == NULL) {
        check_script(text, size);
    }
    return 0;
}
