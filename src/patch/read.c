/* The reader of patches. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "base/utf8.h"
#include "patch/patch_internal.h"

static const char begin_marker[] = "*** Begin Patch";
static const char end_marker[] = "*** End Patch";
static const char add_marker[] = "*** Add File:";
static const char delete_marker[] = "*** Delete File:";
static const char update_marker[] = "*** Update File:";
static const char move_marker[] = "*** Move to:";
static const char environment_marker[] = "*** Environment ID:";
static const char file_end_marker[] = "*** End of File";

/* Indices of patch.store. */
enum { STORE_SECTIONS, STORE_CHUNKS, STORE_LINES };

struct view {
    const char *text;
    size_t len;
};

struct reader {
    struct patch *out;
    struct view rest;
    size_t line; /* of the beginning of `rest`, from 1 */
    size_t n_lines;
    bool has_crlf;
    struct sy_error *err;
};

static struct view
trim(struct view v)
{
    while (v.len > 0 && patch_is_blank(v.text[0])) {
        v.text++;
        v.len--;
    }
    while (v.len > 0 && patch_is_blank(v.text[v.len - 1])) {
        v.len--;
    }
    return v;
}

static bool
view_is(struct view v, const char *text)
{
    return str_is(text, v.text, v.len);
}

static bool
view_starts(struct view v, const char *text)
{
    size_t n = strlen(text);

    return v.len >= n && memcmp(v.text, text, n) == 0;
}

/* The line at the beginning, without its end. */
static struct view
first_line(struct view v)
{
    const char *end = v.len > 0 ? memchr(v.text, '\n', v.len) : NULL;

    return (struct view){v.text, end != NULL ? (size_t)(end - v.text) : v.len};
}

static struct view
last_line(struct view v)
{
    size_t at = v.len;

    while (at > 0 && v.text[at - 1] != '\n') {
        at--;
    }
    return (struct view){v.text + at, v.len - at};
}

static size_t
count_lines(const char *from, const char *to)
{
    size_t n = 0;

    while (from < to && (from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
        from++;
        n++;
    }
    return n;
}

static struct view
peek(const struct reader *r)
{
    struct view v = first_line(r->rest);

    if (r->has_crlf && v.len > 0 && v.text[v.len - 1] == '\r') {
        v.len--;
    }
    return v;
}

static void
advance(struct reader *r)
{
    size_t n = first_line(r->rest).len;

    n += n < r->rest.len ? 1 : 0;
    r->rest = (struct view){r->rest.text + n, r->rest.len - n};
    r->line++;
}

static enum sy_code
add(struct reader *r, int store, const void *element, size_t size)
{
    enum sy_code rc = buf_add(&r->out->store[store], element, size);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(r->err, rc,
                          "the patch is too large at line %zu: a patch has at most %u files, %u "
                          "chunks and %u lines; split it",
                          r->line, LIMIT_PATCH_FILES, LIMIT_PATCH_CHUNKS, LIMIT_PATCH_LINES);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(r->err);
}

static enum sy_code
add_line(struct reader *r, enum patch_mark mark, struct view v)
{
    const struct patch_line line = {.mark = mark, .text = v.text, .len = v.len};

    r->n_lines++;
    return add(r, STORE_LINES, &line, sizeof(line));
}

/* A line that belongs to no section. */
static enum sy_code
bad_header(struct reader *r, struct view line)
{
    struct place_shown shown;

    return sy_err_set(r->err, SY_E_PARSE,
                      "invalid hunk at line %zu, '%s' is not a valid hunk header. Valid hunk "
                      "headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update "
                      "File: {path}'",
                      r->line, place_visible(&shown, line.text, line.len));
}

static enum sy_code
take_path(struct reader *r, char **ret, struct view line, const char *marker)
{
    size_t n = strlen(marker);
    struct view path = trim((struct view){line.text + n, line.len - n});

    if (path.len == 0) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "invalid hunk at line %zu, '%s' names no file: write the path after it",
                          r->line, marker);
    }
    if (path.len >= LIMIT_PATH) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "invalid hunk at line %zu, the path is longer than %u bytes", r->line,
                          LIMIT_PATH - 1);
    }
    *ret = mem_strndup(path.text, path.len);
    return *ret != NULL ? SY_E_OK : sy_err_nomem(r->err);
}

/* "@@" or "@@ context"; false: neither. */
static bool
is_seek(struct view line, struct view *ret)
{
    if (!view_starts(line, "@@") || (line.len > 2 && !patch_is_blank(line.text[2]))) {
        return false;
    }
    *ret = trim((struct view){line.text + 2, line.len - 2});
    if (ret->len > 0 && line.text[2] == ' ') {
        /* Blanks of the line's own beginning count. */
        ret->len += (size_t)(ret->text - (line.text + 3));
        ret->text = line.text + 3;
    }
    return true;
}

static enum sy_code
read_seeks(struct reader *r, struct patch_chunk *chunk, bool is_first)
{
    struct view line = peek(r);
    struct view context = {0};
    struct place_shown shown;
    bool has_marker = false;

    while (r->rest.len > 0 && is_seek(line = peek(r), &context)) {
        has_marker = true;
        advance(r);
        if (context.len > 0) {
            enum sy_code rc = add_line(r, PATCH_SEEK, context);

            if (rc != SY_E_OK) {
                return rc;
            }
            chunk->n_seeks++;
        }
    }
    if (!has_marker && !is_first) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "invalid hunk at line %zu, Expected update hunk to start with a @@ "
                          "context marker, got: '%s'",
                          r->line, place_visible(&shown, line.text, line.len));
    }
    return SY_E_OK;
}

/* Is this the line after the last of a chunk? */
static bool
ends_chunk(const struct reader *r, struct view line)
{
    struct view context;

    return r->rest.len == 0 || view_starts(line, "***") || is_seek(line, &context);
}

static enum sy_code
read_chunk_line(struct reader *r, struct view line)
{
    static const char marks[] = {' ', '-', '+'};
    static const enum patch_mark meaning[] = {PATCH_KEEP, PATCH_REMOVE, PATCH_INSERT};
    struct place_shown shown;

    if (line.len == 0) { /* an empty line of which the blank was lost */
        return add_line(r, PATCH_KEEP, line);
    }
    for (size_t i = 0; i < sizeof(marks); i++) {
        if (line.text[0] == marks[i]) {
            return add_line(r, meaning[i], (struct view){line.text + 1, line.len - 1});
        }
    }
    return sy_err_set(r->err, SY_E_PARSE,
                      "invalid hunk at line %zu, Unexpected line found in update hunk: '%s'. Every "
                      "line should start with ' ' (context line), '+' (added line), or '-' "
                      "(removed line)",
                      r->line, place_visible(&shown, line.text, line.len));
}

static enum sy_code
read_chunk(struct reader *r, bool is_first)
{
    struct patch_chunk chunk = {.first = r->n_lines, .line = r->line};
    enum sy_code rc = read_seeks(r, &chunk, is_first);
    size_t body = r->n_lines;
    struct view line = peek(r);

    while (rc == SY_E_OK && !ends_chunk(r, line)) {
        rc = read_chunk_line(r, line);
        if (rc == SY_E_OK) {
            advance(r);
            line = peek(r);
        }
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (r->n_lines == body) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "invalid hunk at line %zu, Update hunk does not contain any lines: after "
                          "'@@' come lines that start with ' ', '+' or '-'",
                          chunk.line);
    }
    if (r->rest.len > 0 && view_is(trim(line), file_end_marker)) {
        chunk.is_file_end = true;
        advance(r);
    }
    chunk.n = r->n_lines - chunk.first;
    return add(r, STORE_CHUNKS, &chunk, sizeof(chunk));
}

static void
skip_blank_lines(struct reader *r)
{
    while (r->rest.len > 0 && trim(peek(r)).len == 0) {
        advance(r);
    }
}

static enum sy_code
read_update(struct reader *r, struct patch_section *s)
{
    struct view line = trim(peek(r));
    struct place_shown_path shown;
    enum sy_code rc = SY_E_OK;

    if (r->rest.len > 0 && view_starts(line, move_marker)) {
        rc = take_path(r, &s->move_to, line, move_marker);
        advance(r);
    }
    skip_blank_lines(r);
    while (rc == SY_E_OK && r->rest.len > 0 && !view_starts(peek(r), "***")) {
        rc = read_chunk(r, s->n == 0);
        s->n++;
        skip_blank_lines(r);
    }
    if (rc == SY_E_OK && s->n == 0) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "invalid hunk at line %zu, Update file hunk for path '%s' is empty: it "
                          "needs at least one chunk of lines",
                          s->line, place_visible_path(&shown, s->path));
    }
    return rc;
}

static enum sy_code
read_added(struct reader *r, struct patch_section *s)
{
    struct view line = peek(r);
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && r->rest.len > 0 && line.len > 0 && line.text[0] == '+') {
        rc = add_line(r, PATCH_INSERT, (struct view){line.text + 1, line.len - 1});
        s->n++;
        advance(r);
        line = peek(r);
    }
    return rc;
}

static size_t
n_chunks(const struct reader *r)
{
    return r->out->store[STORE_CHUNKS].len / sizeof(struct patch_chunk);
}

static enum sy_code
read_section(struct reader *r, struct view header, struct patch_section *s)
{
    enum sy_code rc = SY_E_OK;

    s->line = r->line;
    if (view_starts(header, add_marker)) {
        s->kind = PATCH_ADD;
        s->first = r->n_lines;
        rc = take_path(r, &s->path, header, add_marker);
    } else if (view_starts(header, delete_marker)) {
        s->kind = PATCH_DELETE;
        rc = take_path(r, &s->path, header, delete_marker);
    } else if (view_starts(header, update_marker)) {
        s->kind = PATCH_UPDATE;
        s->first = n_chunks(r);
        rc = take_path(r, &s->path, header, update_marker);
    } else {
        return bad_header(r, header);
    }
    advance(r);
    if (rc != SY_E_OK || s->kind == PATCH_DELETE) {
        return rc;
    }
    return s->kind == PATCH_ADD ? read_added(r, s) : read_update(r, s);
}

/* A file has one section: what two of them would mean together is anybody's guess. */
static enum sy_code
check_twice(const struct reader *r, const struct patch_section *s)
{
    const struct buf *b = &r->out->store[STORE_SECTIONS];
    const struct patch_section *all = (const void *)buf_view(b);
    struct place_shown_path shown;

    for (size_t i = 0; i < b->len / sizeof(*all); i++) {
        if (str_eq(all[i].path, s->path)) {
            return sy_err_set(r->err, SY_E_PARSE,
                              "invalid hunk at line %zu, '%s' has a section at line %zu already: "
                              "put all of its changes into one",
                              s->line, place_visible_path(&shown, s->path), all[i].line);
        }
    }
    return SY_E_OK;
}

static enum sy_code
read_sections(struct reader *r)
{
    for (;;) {
        struct patch_section s = {0};
        enum sy_code rc = SY_E_OK;

        skip_blank_lines(r);
        if (r->rest.len == 0) {
            return SY_E_OK;
        }
        rc = read_section(r, trim(peek(r)), &s);
        if (rc == SY_E_OK) {
            rc = check_twice(r, &s);
        }
        if (rc == SY_E_OK) {
            rc = add(r, STORE_SECTIONS, &s, sizeof(s));
        }
        if (rc != SY_E_OK) {
            mem_free(s.path);
            mem_free(s.move_to);
            return rc;
        }
    }
}

static enum sy_code
check_text(const char *text, size_t len, struct sy_error *err)
{
    size_t n = utf8_valid_prefix(text, len);
    const char *nul = len > 0 ? memchr(text, '\0', len) : NULL;

    if (len > LIMIT_PATCH) {
        return sy_err_set(err, SY_E_LIMIT,
                          "the patch has %zu bytes; at most %u are taken: split it", len,
                          LIMIT_PATCH);
    }
    if (nul != NULL) {
        return sy_err_set(err, SY_E_PARSE,
                          "invalid hunk at line %zu, there is a NUL byte: a patch is text",
                          1 + count_lines(text, nul));
    }
    if (n < len) {
        return sy_err_set(err, SY_E_PARSE,
                          "invalid hunk at line %zu, there is invalid UTF-8: a patch is text",
                          1 + count_lines(text, text + n));
    }
    return SY_E_OK;
}

/* "<<EOF", "<<'EOF'", "<<\"EOF\"" ... a last line "EOF": what is between. */
static struct view
unwrap(struct view v)
{
    struct view first = trim(first_line(v));
    struct view last = trim(last_line(v));
    struct view word = {first.text + 2, first.len > 2 ? first.len - 2 : 0};

    if (!view_starts(first, "<<") || v.len < first.len + last.len) {
        return v;
    }
    if (word.len > 0 && word.text[0] == '-') {
        word = (struct view){word.text + 1, word.len - 1};
    }
    if (word.len > 2 && (word.text[0] == '\'' || word.text[0] == '"') &&
        word.text[word.len - 1] == word.text[0]) {
        word = (struct view){word.text + 1, word.len - 2};
    }
    if (word.len == 0 || last.len < word.len ||
        memcmp(last.text + last.len - word.len, word.text, word.len) != 0) {
        return v;
    }

    const char *from = first_line(v).text + first_line(v).len;

    /* "*** End PatchEOF" is what is left of a lost end of line. */
    return trim((struct view){from, (size_t)(last.text + last.len - word.len - from)});
}

static enum sy_code
find_markers(struct reader *r, const char *text, size_t len)
{
    struct view whole = unwrap(trim((struct view){text, len}));
    struct view first = first_line(whole);
    struct view last = last_line(whole);
    struct place_shown shown;

    r->line = 1 + count_lines(text, whole.text);
    if (!view_is(trim(first), begin_marker)) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "Invalid patch: The first line of the patch must be '*** Begin Patch', "
                          "not '%s'",
                          place_visible(&shown, first.text, first.len));
    }
    if (!view_is(trim(last), end_marker)) {
        return sy_err_set(r->err, SY_E_PARSE,
                          "Invalid patch: The last line of the patch must be '*** End Patch', not "
                          "'%s'",
                          place_visible(&shown, last.text, last.len));
    }
    r->has_crlf = first.text[first.len - 1] == '\r';
    r->rest = (struct view){whole.text, (size_t)(last.text - whole.text)};
    advance(r);
    if (r->rest.len > 0 && view_starts(trim(peek(r)), environment_marker)) {
        advance(r); /* there is one environment: this machine */
    }
    return SY_E_OK;
}

static void
finish(struct patch *p)
{
    p->sections = (const void *)p->store[STORE_SECTIONS].data;
    p->n_sections = p->store[STORE_SECTIONS].len / sizeof(*p->sections);
    p->chunks = (const void *)p->store[STORE_CHUNKS].data;
    p->n_chunks = p->store[STORE_CHUNKS].len / sizeof(*p->chunks);
    p->lines = (const void *)p->store[STORE_LINES].data;
    p->n_lines = p->store[STORE_LINES].len / sizeof(*p->lines);
}

enum sy_code
patch_read(struct patch *ret, const char *text, size_t len, struct sy_error *err)
{
    struct reader r = {.out = ret, .err = err};
    enum sy_code rc = check_text(text, len, err);

    *ret = (struct patch){0};
    ret->store[STORE_SECTIONS].max = (size_t)LIMIT_PATCH_FILES * sizeof(struct patch_section);
    ret->store[STORE_CHUNKS].max = (size_t)LIMIT_PATCH_CHUNKS * sizeof(struct patch_chunk);
    ret->store[STORE_LINES].max = (size_t)LIMIT_PATCH_LINES * sizeof(struct patch_line);
    if (rc == SY_E_OK) {
        rc = find_markers(&r, text, len);
    }
    if (rc == SY_E_OK) {
        rc = read_sections(&r);
    }
    finish(ret);
    if (rc == SY_E_OK && ret->n_sections == 0) {
        rc = sy_err_set(err, SY_E_PARSE,
                        "the patch is empty: between its markers stands no '*** Add File: {path}', "
                        "'*** Delete File: {path}' or '*** Update File: {path}'");
    }
    if (rc != SY_E_OK) {
        patch_fini(ret);
    }
    return rc;
}

void
patch_fini(struct patch *p)
{
    struct patch_section *sections = (void *)p->store[STORE_SECTIONS].data;

    for (size_t i = 0; i < p->n_sections; i++) {
        mem_free(sections[i].path);
        mem_free(sections[i].move_to);
    }
    for (size_t i = 0; i < sizeof(p->store) / sizeof(p->store[0]); i++) {
        buf_fini(&p->store[i]);
    }
    *p = (struct patch){0};
}

bool
patch_looks_like(const char *text, size_t len)
{
    return view_is(trim(first_line(trim((struct view){text, len}))), begin_marker);
}
