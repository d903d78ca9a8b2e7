#include "screens.h"

#include <string.h>

#include "terminal/terminal_internal.h"

#define ROW_MAX 65536

struct terminal *
screens_new(unsigned rows, unsigned cols)
{
    struct terminal_options o = {.rows = rows, .cols = cols};
    struct terminal *t = NULL;

    SY_ASSERT(terminal_new(&t, &o, NULL) == SY_E_OK);
    return t;
}

static const char *
rows_differ(struct terminal *a, struct terminal *b, unsigned row)
{
    SY_AUTO(buf_fini) struct buf x = {.max = ROW_MAX};
    SY_AUTO(buf_fini) struct buf y = {.max = ROW_MAX};
    struct terminal_run p[64] = {{0}};
    struct terminal_run q[64] = {{0}};

    if (terminal_row(a, row, &x) != SY_E_OK || terminal_row(b, row, &y) != SY_E_OK) {
        return "no memory";
    }
    if (x.len != y.len || memcmp(buf_view(&x), buf_view(&y), x.len) != 0) {
        return "the text of a row";
    }

    size_t n = terminal_row_runs(a, row, p, 64);

    if (terminal_row_runs(b, row, q, 64) != n) {
        return "the number of runs";
    }
    for (size_t i = 0; i < n && i < 64; i++) {
        if (p[i].col != q[i].col || p[i].cols != q[i].cols || p[i].is_reverse != q[i].is_reverse ||
            p[i].background != q[i].background) {
            return "the runs of a row";
        }
    }
    return NULL;
}

static const char *
states_differ(struct terminal *a, struct terminal *b)
{
    const struct terminal_state *p = terminal_state(a);
    const struct terminal_state *q = terminal_state(b);

    if (memcmp(&p->keys, &q->keys, sizeof(p->keys)) != 0) {
        return "the modes of keys";
    }
    if (p->alt_screen != q->alt_screen || p->cursor_visible != q->cursor_visible ||
        p->is_in_frame != q->is_in_frame || p->wants_mouse != q->wants_mouse) {
        return "the modes";
    }
    if (p->frames != q->frames || p->bells != q->bells || p->lost != q->lost) {
        return "the counters";
    }
    if (strcmp(terminal_title(a), terminal_title(b)) != 0) {
        return "the title";
    }
    return strcmp(buf_view(terminal_replies(a)), buf_view(terminal_replies(b))) != 0 ? "the answers"
                                                                                     : NULL;
}

const char *
screens_differ(struct terminal *a, struct terminal *b)
{
    struct terminal_screen x;
    struct terminal_screen y;
    const char *what = states_differ(a, b);

    if (terminal_look(a, &x) != SY_E_OK || terminal_look(b, &y) != SY_E_OK) {
        return "no memory";
    }
    if (x.rows != y.rows || x.cols != y.cols) {
        return "the size";
    }
    for (unsigned row = 0; row < x.rows && what == NULL; row++) {
        what = rows_differ(a, b, row);
    }
    if (what == NULL && (x.cursor_row != y.cursor_row || x.cursor_col != y.cursor_col)) {
        return "the cursor";
    }
    return what;
}

/* A blank that shows nothing looks like any other. */
static bool
shows_nothing(const struct vt_cell *c, const struct vt_style *s)
{
    return terminal_is_blank(c) && s->background == VT_COLOUR_DEFAULT && !s->is_reverse &&
           s->underline == 0 && !s->is_struck;
}

static const char *
styles_differ(const struct vt_style *a, const struct vt_style *b)
{
    if (a->foreground != b->foreground || a->background != b->background) {
        return "a colour";
    }
    return a->underline != b->underline || a->is_bold != b->is_bold ||
                   a->is_italic != b->is_italic || a->is_blinking != b->is_blinking ||
                   a->is_reverse != b->is_reverse || a->is_struck != b->is_struck
               ? "an attribute"
               : NULL;
}

static const char *
cells_differ(struct terminal *a, struct terminal *b, unsigned row, unsigned *col)
{
    SY_AUTO(buf_fini) struct buf x = {.max = 64};
    SY_AUTO(buf_fini) struct buf y = {.max = 64};
    struct vt_cell p;
    struct vt_cell q;
    struct vt_style s;
    struct vt_style r;

    vt_styled_cell(a->vt, row, *col, &p, &s);
    vt_styled_cell(b->vt, row, *col, &q, &r);
    *col += p.width; /* the right half of a wide one looks like nothing */
    /* Marks are left out there, but may have been moved there. Half a wide one is painted whole. */
    if (*col + (p.width == 1 && p.chars[0] >= 0x1100 ? 2 : 1) >= a->opt.cols) {
        p.chars[1] = 0;
        q.chars[1] = 0;
    }
    if (shows_nothing(&p, &s) && shows_nothing(&q, &r)) {
        return NULL;
    }
    if (terminal_add_cell(&x, &p) != SY_E_OK || terminal_add_cell(&y, &q) != SY_E_OK) {
        return "no memory";
    }
    if (terminal_is_blank(&q) &&
        (vt_is_zero_width(p.chars[0]) || (*col == a->opt.cols && p.chars[0] >= 0x1100))) {
        return NULL; /* not painted: a mark alone, half a wide character in the last column */
    }
    return strcmp(buf_view(&x), buf_view(&y)) != 0 ? "the text of a cell" : styles_differ(&s, &r);
}

const char *
screens_cells_differ(struct terminal *a, struct terminal *b)
{
    struct terminal_screen x;
    struct terminal_screen y;
    const char *what = NULL;

    if (terminal_look(a, &x) != SY_E_OK || terminal_look(b, &y) != SY_E_OK) {
        return "no memory";
    }
    for (unsigned row = 0; row < x.rows && row < y.rows && what == NULL; row++) {
        for (unsigned col = 0; col < x.cols && col < y.cols && what == NULL;) {
            what = cells_differ(a, b, row, &col);
        }
    }
    return what;
}

enum sy_code
screens_text(struct terminal *t, struct buf *out)
{
    struct terminal_screen s;
    enum sy_code rc = terminal_look(t, &s);

    for (unsigned row = 0; rc == SY_E_OK && row < s.rows; row++) {
        rc = terminal_row(t, row, out);
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\n');
        }
    }
    while (out->len > 0 && out->data[out->len - 1] == '\n') {
        out->data[--out->len] = '\0';
    }
    return rc;
}

enum sy_code
screens_feed_eagerly(struct terminal *t, const char *bytes, size_t n)
{
    enum sy_code rc = pending_draw(t);

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        t->is_pristine = false;
        rc = terminal_feed(t, bytes + i, 1);
        if (rc == SY_E_OK) {
            rc = pending_draw(t);
        }
    }
    return rc;
}
