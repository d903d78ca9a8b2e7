#include "terminal/terminal_internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

static enum sy_code
check_size(unsigned rows, unsigned cols, struct sy_error *err)
{
    if (rows < 1 || rows > LIMIT_TERMINAL_ROWS || cols < 2 || cols > LIMIT_TERMINAL_COLS) {
        return sy_err_set(err, SY_E_ARG,
                          "a terminal of %u rows and %u columns; it may have 1 to %u rows and 2 to "
                          "%u columns",
                          rows, cols, LIMIT_TERMINAL_ROWS, LIMIT_TERMINAL_COLS);
    }
    return SY_E_OK;
}

/* Of a row without anything on it. */
static struct seen_row *
new_rows(unsigned rows, uint64_t seq)
{
    struct seen_row *seen = mem_alloc_zero(rows, sizeof(*seen));

    for (unsigned i = 0; seen != NULL && i < rows; i++) {
        seen[i].hash = TERMINAL_HASH_START;
        seen[i].seq = seq;
    }
    return seen;
}

enum sy_code
terminal_new(struct terminal **ret, const struct terminal_options *options, struct sy_error *err)
{
    struct terminal *t = NULL;
    enum sy_code rc = check_size(options->rows, options->cols, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    t = mem_alloc_zero(1, sizeof(*t));
    if (t != NULL) {
        t->seen = new_rows(options->rows, 0);
    }
    if (t == NULL || t->seen == NULL) {
        terminal_free(t);
        return sy_err_nomem(err);
    }
    t->opt = *options;
    t->is_pristine = true;
    t->last_visible = true;
    t->parser.sink = &forward_sink;
    t->parser.arg = t;
    t->parser.skip_max = LIMIT_TERMINAL_SKIP;
    t->replies.max = LIMIT_TERMINAL_REPLIES;
    t->screen.rows = options->rows;
    t->screen.cols = options->cols;
    forward_reset_modes(t);
    *ret = t;
    return SY_E_OK;
}

void
terminal_free(struct terminal *t)
{
    if (t == NULL) {
        return;
    }
    vt_free(t->vt);
    parser_fini(&t->parser);
    buf_fini(&t->log);
    buf_fini(&t->replies);
    buf_fini(&t->title);
    mem_free(t->seen);
    mem_free(t);
}

enum sy_code
terminal_feed(struct terminal *t, const char *bytes, size_t n)
{
    enum sy_code rc = SY_E_OK;

    t->rc = SY_E_OK;
    t->is_seen = false;
    t->state.bytes += n;
    rc = parser_feed(&t->parser, bytes, n);
    return t->rc != SY_E_OK ? t->rc : rc;
}

enum sy_code
terminal_resize(struct terminal *t, unsigned rows, unsigned cols, struct sy_error *err)
{
    enum sy_code rc = check_size(rows, cols, err);
    struct seen_row *seen = NULL;

    if (rc != SY_E_OK || (rows == t->opt.rows && cols == t->opt.cols)) {
        return rc;
    }
    seen = new_rows(rows, t->screen.seq + 1);
    if (seen == NULL) {
        return sy_err_nomem(err);
    }
    mem_free(t->seen);
    t->seen = seen;
    t->is_seen = false;
    if (t->log.len > 0 || !t->is_pristine) {
        rc = pending_draw(t);
        t->is_pristine = false;
        if (rc == SY_E_OK) {
            rc = vt_resize(t->vt, rows, cols);
        }
    }
    t->opt.rows = rows;
    t->opt.cols = cols;
    t->screen.rows = rows;
    t->screen.cols = cols;
    if (rc != SY_E_OK) {
        pending_lose(t);
        return sy_err_nomem(err);
    }
    pending_resized(t);
    return SY_E_OK;
}

struct buf *
terminal_replies(struct terminal *t)
{
    return &t->replies;
}

const struct terminal_state *
terminal_state(const struct terminal *t)
{
    return &t->state;
}

unsigned
terminal_columns(const struct terminal *t)
{
    return t->opt.cols;
}

unsigned
terminal_rows(const struct terminal *t)
{
    return t->opt.rows;
}

const char *
terminal_title(const struct terminal *t)
{
    return buf_view(&t->title);
}

uint64_t
terminal_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
    return hash ^ hash >> 32;
}

bool
terminal_is_blank(const struct vt_cell *c)
{
    return c->chars[0] == 0 || (c->chars[0] == ' ' && c->chars[1] == 0);
}

static bool
stands_out(const struct vt_cell *c)
{
    return c->is_reverse || c->background != VT_COLOUR_DEFAULT;
}

/* Blank cells count with what follows them, so that a row is the same with and without
 * blanks at its end. */
static uint64_t
row_hash(const struct vt *v, unsigned row, unsigned cols)
{
    uint64_t hash = TERMINAL_HASH_START;
    struct vt_cell c;

    for (unsigned col = 0; col < cols; col += c.width) {
        vt_cell(v, row, col, &c);
        if (terminal_is_blank(&c) && !stands_out(&c)) {
            continue;
        }
        hash = terminal_hash(hash, (uint64_t)col << 1 | (c.is_reverse ? 1U : 0));
        if (stands_out(&c)) {
            hash = terminal_hash(hash, (uint64_t)c.seen << 32 | c.background);
        }
        for (size_t i = 0; i < VT_CELL_CHARS && c.chars[i] != 0; i++) {
            hash = terminal_hash(hash, c.chars[i]);
        }
    }
    return hash;
}

/* Rows that changed get the next number; true if any did. */
static bool
see_rows(struct terminal *t)
{
    unsigned first = 0;
    unsigned end = 0;
    bool has_changed = false;

    if (!vt_damage(t->vt, &first, &end)) {
        return false;
    }
    for (unsigned row = first; row < end; row++) {
        uint64_t hash = row_hash(t->vt, row, t->opt.cols);

        if (hash != t->seen[row].hash) {
            t->seen[row].hash = hash;
            t->seen[row].seq = t->screen.seq + 1;
            has_changed = true;
        }
    }
    return has_changed;
}

enum sy_code
terminal_look(struct terminal *t, struct terminal_screen *ret)
{
    enum sy_code rc = pending_draw(t);
    unsigned row = 0;
    unsigned col = 0;
    bool has_changed = false;

    if (rc != SY_E_OK) {
        return rc;
    }
    vt_cursor(t->vt, &row, &col);
    has_changed = see_rows(t);
    /* A new size has given its rows the next number. */
    has_changed |= t->seen[0].seq > t->screen.seq || row != t->screen.cursor_row ||
                   col != t->screen.cursor_col || t->last_alt != t->state.alt_screen ||
                   t->last_visible != t->state.cursor_visible;
    t->screen.cursor_row = row;
    t->screen.cursor_col = col;
    t->last_alt = t->state.alt_screen;
    t->last_visible = t->state.cursor_visible;
    t->screen.seq += has_changed ? 1 : 0;
    t->is_seen = true;
    *ret = t->screen;
    return SY_E_OK;
}

enum sy_code
terminal_add_cell(struct buf *out, const struct vt_cell *c)
{
    enum sy_code rc = SY_E_OK;

    if (terminal_is_blank(c)) {
        return buf_add_char(out, ' ');
    }
    for (size_t i = 0; i < VT_CELL_CHARS && c->chars[i] != 0 && rc == SY_E_OK; i++) {
        char bytes[UTF8_MAX];

        if (!place_is_deceptive(c->chars[i])) {
            rc = buf_add(out, bytes, utf8_put(bytes, c->chars[i]));
        } else if (!vt_is_zero_width(c->chars[i])) {
            rc = buf_add_str(out, REPLACEMENT);
        }
    }
    return rc;
}

enum sy_code
terminal_part(const struct terminal *t, unsigned row, unsigned col, unsigned cols, struct buf *out)
{
    unsigned end = cols < t->opt.cols - col ? col + cols : t->opt.cols;
    enum sy_code rc = SY_E_OK;
    struct vt_cell c;

    for (; t->vt != NULL && col < end && rc == SY_E_OK; col += c.width) {
        vt_cell(t->vt, row, col, &c);
        rc = terminal_add_cell(out, &c);
    }
    return rc;
}

/* Most rows of most screens: what the look has found out need not be read cell by cell. */
static bool
is_known_blank(const struct terminal *t, unsigned row)
{
    return t->is_seen && t->seen[row].hash == TERMINAL_HASH_START;
}

enum sy_code
terminal_row(const struct terminal *t, unsigned row, struct buf *out)
{
    size_t start = out->len;
    enum sy_code rc = is_known_blank(t, row) ? SY_E_OK : terminal_part(t, row, 0, t->opt.cols, out);

    while (out->len > start && out->data[out->len - 1] == ' ') {
        out->len--;
        out->data[out->len] = '\0';
    }
    return rc;
}

uint64_t
terminal_row_seq(const struct terminal *t, unsigned row)
{
    return t->seen[row].seq;
}

size_t
terminal_row_runs(const struct terminal *t, unsigned row, struct terminal_run *runs, size_t max)
{
    size_t n = 0;
    struct terminal_run run = {.cols = 0};
    struct vt_cell c;

    if (is_known_blank(t, row)) {
        return 0;
    }
    for (unsigned col = 0; t->vt != NULL && col <= t->opt.cols; col += c.width) {
        bool is_end = col == t->opt.cols;

        memset(&c, 0, sizeof(c));
        c.width = 1;
        if (!is_end) {
            vt_cell(t->vt, row, col, &c);
        }
        if (run.cols > 0 && (run.is_reverse != c.is_reverse || run.background != c.background)) {
            if (n < max) {
                runs[n] = run;
            }
            n++;
            run.cols = 0;
        }
        if (!is_end && stands_out(&c)) {
            run.col = run.cols == 0 ? col : run.col;
            run.is_reverse = c.is_reverse;
            run.background = c.background;
            run.cols += c.width;
        }
    }
    return n;
}

/* A block that has not half of its size in use is not worth it. */
static void
shrink(struct buf *b)
{
    if (b->len == 0) {
        buf_fini(b);
    } else if (b->cap > b->len + 1) {
        char *smaller = mem_realloc(b->data, b->len + 1);

        if (smaller != NULL) {
            b->data = smaller;
            b->cap = b->len + 1;
        }
    }
}

void
terminal_rest(struct terminal *t)
{
    if (t->is_pristine) {
        vt_free(t->vt);
        t->vt = NULL;
        t->fed = 0;
    }
    shrink(&t->log);
    shrink(&t->replies);
}

size_t
terminal_memory(const struct terminal *t)
{
    return sizeof(*t) + t->opt.rows * sizeof(*t->seen) + t->log.cap + t->replies.cap +
           t->title.cap + t->parser.string.cap + (t->vt != NULL ? vt_memory(t->vt) : 0);
}
