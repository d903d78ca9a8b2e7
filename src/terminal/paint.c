#include "terminal/paint.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "terminal/terminal_internal.h"

/* Whatever was on: colours, regions, character sets, insert mode. Lines that are too long do not
 * wrap, so that a character which the other terminal takes for wider harms its own row alone. */
#define CLEAN                                                                                      \
    "\x1b[?25l\x1b[m\x1b[?6l\x1b[r\x1b[4l\x1b(B\x0f\x1b[?7l"                                       \
    "\x1b[?1;5;1000;1002;1003;1004;1005;1006;1015;2004l\x1b>\x1b[>4m\x1b[0 q"                      \
    "\x1b[H\x1b[2J"

/* Of the cursor, where the program has said nothing: the person's own is shown then. */
#define SHAPE_BORN 1U

/* Modes that the other terminal gets as the program has them. */
static const struct {
    unsigned number;
    enum mode_bit bit;
    bool is_for_input; /* not where somebody only watches */
} modes[] = {
    {1,    MODE_APP_CURSOR,  true },
    {5,    MODE_REVERSE,     false},
    {1000, MODE_MOUSE_CLICK, true },
    {1002, MODE_MOUSE_DRAG,  true },
    {1003, MODE_MOUSE_MOVE,  true },
    {1004, MODE_FOCUS,       true },
    {1005, MODE_MOUSE_UTF8,  true },
    {1006, MODE_MOUSE_SGR,   true },
    {1015, MODE_MOUSE_RXVT,  true },
    {2004, MODE_PASTE,       true },
};

/* What the other terminal shows, as far as it was told. */
struct paint {
    unsigned rows;
    unsigned cols;
    unsigned top;  /* the row and the column of the screen that are its first, */
    unsigned left; /* since the last look */
    bool is_watching;
    bool is_clean;  /* CLEAN was sent */
    bool is_shown;  /* the cursor */
    bool is_whole;  /* nothing was left for the next call */
    uint64_t *seen; /* a hash for each row */
    struct vt_style style;
    uint32_t modes;
    struct key_modes keys;
    unsigned shape;
    unsigned cursor_row;
    unsigned cursor_col;
    uint64_t bells;
    char title[LIMIT_TERMINAL_TITLE + 1];
};

static unsigned
within(unsigned n, unsigned min, unsigned max)
{
    n = n < min ? min : n;
    return n < max ? n : max;
}

enum sy_code
paint_resize(struct paint *p, unsigned rows, unsigned cols, struct sy_error *err)
{
    unsigned n = within(rows, 1, LIMIT_TERMINAL_ROWS);
    uint64_t *seen = mem_alloc_zero(n, sizeof(*seen));

    if (seen == NULL) {
        return sy_err_nomem(err);
    }
    mem_free(p->seen);
    p->seen = seen;
    p->rows = n;
    p->cols = within(cols, 2, LIMIT_TERMINAL_COLS);
    p->is_clean = false;
    return SY_E_OK;
}

enum sy_code
paint_new(struct paint **ret, unsigned rows, unsigned cols, bool is_watching, struct sy_error *err)
{
    struct paint *p = mem_alloc_zero(1, sizeof(*p));

    if (p == NULL || paint_resize(p, rows, cols, err) != SY_E_OK) {
        mem_free(p);
        return sy_err_nomem(err);
    }
    p->is_watching = is_watching;
    *ret = p;
    return SY_E_OK;
}

void
paint_free(struct paint *p)
{
    if (p != NULL) {
        mem_free(p->seen);
        mem_free(p);
    }
}

static enum sy_code
clean(struct paint *p, const struct terminal *t, struct buf *out)
{
    enum sy_code rc = buf_add_str(out, CLEAN);

    for (unsigned row = 0; row < p->rows; row++) {
        p->seen[row] = TERMINAL_HASH_START;
    }
    memset(&p->style, 0, sizeof(p->style));
    memset(&p->keys, 0, sizeof(p->keys));
    p->modes = 0;
    p->shape = SHAPE_BORN;
    p->cursor_row = 0;
    p->cursor_col = 0;
    p->bells = t->state.bells;
    p->is_shown = false;
    p->is_clean = rc == SY_E_OK;
    return rc;
}

static bool
is_same_style(const struct vt_style *a, const struct vt_style *b)
{
    return a->foreground == b->foreground && a->background == b->background &&
           a->underline == b->underline && a->is_bold == b->is_bold &&
           a->is_italic == b->is_italic && a->is_blinking == b->is_blinking &&
           a->is_reverse == b->is_reverse && a->is_struck == b->is_struck;
}

/* Nothing of it is seen in a blank cell. */
static bool
is_plain(const struct vt_style *s)
{
    return s->background == VT_COLOUR_DEFAULT && !s->is_reverse && s->underline == 0 &&
           !s->is_struck;
}

static uint64_t
hash_style(uint64_t hash, const struct vt_style *s)
{
    unsigned bits = s->underline << 5 | (s->is_bold ? 1U : 0) | (s->is_italic ? 2U : 0) |
                    (s->is_blinking ? 4U : 0) | (s->is_reverse ? 8U : 0) | (s->is_struck ? 16U : 0);

    return terminal_hash(terminal_hash(hash, (uint64_t)s->foreground << 32 | s->background), bits);
}

/* The column of a row to begin with; the right half of a wide character is blank there. */
static unsigned
first_col(const struct vt *v, unsigned row, unsigned left)
{
    struct vt_cell c;
    struct vt_style s;

    if (left == 0) {
        return 0;
    }
    vt_styled_cell(v, row, left - 1, &c, &s);
    return left - 1 + c.width;
}

/* The hash of a row as it is seen from column `left` up to `cols`, and behind which column only
 * blanks are. */
static uint64_t
row_hash(const struct vt *v, unsigned row, unsigned left, unsigned cols, unsigned *ret_end)
{
    uint64_t hash = TERMINAL_HASH_START;
    struct vt_cell c;
    struct vt_style s;

    *ret_end = 0;
    for (unsigned col = first_col(v, row, left); col < cols; col += c.width) {
        vt_styled_cell(v, row, col, &c, &s);
        if (terminal_is_blank(&c) && is_plain(&s)) {
            continue;
        }
        *ret_end = col + c.width;
        hash = hash_style(terminal_hash(hash, col - left), &s);
        for (size_t i = 0; i < VT_CELL_CHARS && c.chars[i] != 0; i++) {
            hash = terminal_hash(hash, c.chars[i]);
        }
    }
    return hash;
}

/* SGR of a colour: `base` is 30 or 40. */
static enum sy_code
add_colour(struct buf *out, unsigned base, uint32_t colour)
{
    uint32_t value = colour & ~VT_COLOUR_KIND;

    if (colour == VT_COLOUR_DEFAULT) {
        return SY_E_OK;
    }
    if ((colour & VT_COLOUR_KIND) == VT_COLOUR_RGB) {
        /* A sequence of its own: with all else it would have more numbers than some take. */
        return buf_addf(out, "m\x1b[%u;2;%u;%u;%u", base + 8, value >> 16, value >> 8 & 0xFFU,
                        value & 0xFFU);
    }
    if (value < 8) {
        return buf_addf(out, ";%u", base + value);
    }
    return value < 16 ? buf_addf(out, ";%u", base + 60 + value - 8)
                      : buf_addf(out, ";%u;5;%u", base + 8, value);
}

static enum sy_code
set_style(struct paint *p, const struct vt_style *s, struct buf *out)
{
    /* A terminal without the finer ones takes the number behind the colon for none of its own. */
    static const char *const underlines[] = {"", ";4", ";21", ";4:3"};
    enum sy_code rc = SY_E_OK;

    if (is_same_style(&p->style, s)) {
        return SY_E_OK;
    }
    rc = buf_addf(out, "\x1b[0%s%s%s%s%s%s", s->is_bold ? ";1" : "", s->is_italic ? ";3" : "",
                  underlines[s->underline & 3U], s->is_blinking ? ";5" : "",
                  s->is_reverse ? ";7" : "", s->is_struck ? ";9" : "");
    rc = rc == SY_E_OK ? add_colour(out, 30, s->foreground) : rc;
    rc = rc == SY_E_OK ? add_colour(out, 40, s->background) : rc;
    p->style = *s;
    return rc == SY_E_OK ? buf_add_char(out, 'm') : rc;
}

/* One that all terminals take for one column: Latin and the like, lines and boxes, Braille. */
static bool
is_simple(const struct vt_cell *c)
{
    uint32_t first = c->chars[0];

    return c->width == 1 && c->chars[1] == 0 &&
           (first < 0x1100U || (first >= 0x2500U && first < 0x25FDU) ||
            (first >= 0x2800U && first < 0x2900U));
}

/* In one column it is half a wide character, of which the other half was written over. */
static bool
is_wide(uint32_t c)
{
    return (c >= 0x1100U && c <= 0x115FU) || (c >= 0x2E80U && c <= 0xA4CFU) ||
           (c >= 0xAC00U && c <= 0xD7A3U) || (c >= 0xF900U && c <= 0xFAFFU) ||
           (c >= 0xFE30U && c <= 0xFE6FU) || (c >= 0xFF00U && c <= 0xFF60U) ||
           (c >= 0xFFE0U && c <= 0xFFE6U) || (c >= 0x1F300U && c <= 0x1F9FFU) ||
           (c >= 0x20000U && c <= 0x3FFFDU);
}

/* `col` is that of the other terminal. */
static enum sy_code
add_cell(const struct paint *p, unsigned col, const struct vt_cell *c, struct buf *out)
{
    size_t start = out->len;
    enum sy_code rc = SY_E_OK;

    /* No half of a wide one in the last column: it would wrap. */
    if (col + c->width > p->cols || (col + 1 == p->cols && is_wide(c->chars[0]))) {
        return buf_add_char(out, ' ');
    }
    /* A mark that stands alone would go to the cell before. */
    if (!vt_is_zero_width(c->chars[0])) {
        rc = terminal_add_cell(out, c);
    }
    /* Written over the left half of a wide one, it is as wide. */
    if (rc == SY_E_OK && out->len == start) {
        rc = buf_add_str(out, c->width == 2 ? "  " : " ");
    }
    if (rc != SY_E_OK || is_simple(c)) {
        return rc;
    }
    if (c->width == 2 && place_is_deceptive(c->chars[0])) {
        rc = buf_add_char(out, ' ');
    }
    /* However wide it is there. Not behind the last column: the cursor does not go there. */
    return rc == SY_E_OK && col + c->width < p->cols ? buf_addf(out, "\x1b[%uG", col + c->width + 1)
                                                     : rc;
}

/* Row `row` of the other terminal, up to column `end` of the screen. */
static enum sy_code
paint_row(struct paint *p, const struct vt *v, unsigned row, unsigned end, struct buf *out)
{
    const struct vt_style none = {.underline = 0};
    unsigned limit = p->left + p->cols;
    unsigned from = row + p->top;
    unsigned first = end > 0 ? first_col(v, from, p->left) : 0;
    enum sy_code rc = buf_addf(out, "%s\x1b[%u;1H", p->is_shown ? "\x1b[?25l" : "", row + 1);
    struct vt_cell c;
    struct vt_style s;

    p->is_shown = false;
    if (first > p->left) {
        rc = set_style(p, &none, out);
        rc = rc == SY_E_OK ? buf_add_char(out, ' ') : rc;
    }
    for (unsigned col = first; col < end && col < limit && rc == SY_E_OK; col += c.width) {
        vt_styled_cell(v, from, col, &c, &s);
        rc = set_style(p, &s, out);
        rc = rc == SY_E_OK ? add_cell(p, col - p->left, &c, out) : rc;
    }
    if (rc == SY_E_OK && end < limit) {
        rc = set_style(p, &none, out);
        rc = rc == SY_E_OK ? buf_add_str(out, "\x1b[K") : rc;
    }
    return rc;
}

static enum sy_code
paint_rows(struct paint *p, const struct terminal *t, struct buf *out)
{
    unsigned cols = p->cols < t->opt.cols - p->left ? p->left + p->cols : t->opt.cols;
    enum sy_code rc = SY_E_OK;

    p->is_whole = true;
    for (unsigned row = 0; row < p->rows && rc == SY_E_OK; row++) {
        bool is_there = row + p->top < t->opt.rows;
        unsigned end = 0;
        uint64_t hash =
            is_there ? row_hash(t->vt, row + p->top, p->left, cols, &end) : TERMINAL_HASH_START;

        if (hash == p->seen[row]) {
            continue;
        }
        if (out->len >= LIMIT_PAINT) {
            p->is_whole = false;
            return SY_E_OK;
        }
        rc = paint_row(p, t->vt, row, end, out);
        p->seen[row] = hash;
    }
    return rc;
}

static enum sy_code
paint_modes(struct paint *p, const struct terminal *t, struct buf *out)
{
    const struct key_modes *keys = &t->state.keys;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && rc == SY_E_OK; i++) {
        uint32_t bit = 1U << modes[i].bit;

        if ((modes[i].is_for_input && p->is_watching) || ((p->modes ^ t->modes) & bit) == 0) {
            continue;
        }
        p->modes ^= bit;
        rc = buf_addf(out, "\x1b[?%u%c", modes[i].number, (t->modes & bit) != 0 ? 'h' : 'l');
    }
    if (rc == SY_E_OK && !p->is_watching && keys->app_keypad != p->keys.app_keypad) {
        rc = buf_addf(out, "\x1b%c", keys->app_keypad ? '=' : '>');
    }
    if (rc == SY_E_OK && !p->is_watching && keys->other_keys != p->keys.other_keys) {
        rc = buf_add_str(out, keys->other_keys ? "\x1b[>4;1m" : "\x1b[>4m");
    }
    p->keys = *keys;
    return rc;
}

static enum sy_code
paint_rest(struct paint *p, const struct terminal *t, struct buf *out)
{
    const char *title = terminal_title(t);
    enum sy_code rc = SY_E_OK;

    if (strcmp(title, p->title) != 0) {
        memcpy(p->title, title, strlen(title) + 1);
        rc = buf_addf(out, "\x1b]2;%s\x1b\\", title);
    }
    if (rc == SY_E_OK && t->shape != p->shape) {
        p->shape = t->shape;
        rc = buf_addf(out, "\x1b[%u q", t->shape != SHAPE_BORN ? t->shape : 0);
    }
    if (rc == SY_E_OK && t->state.bells != p->bells) {
        p->bells = t->state.bells;
        rc = buf_add_char(out, '\a');
    }
    return rc;
}

static enum sy_code
paint_cursor(struct paint *p, const struct terminal *t, bool has_moved, struct buf *out)
{
    unsigned row = t->screen.cursor_row - p->top;
    unsigned col = t->screen.cursor_col - p->left;
    bool is_shown = t->state.cursor_visible && col < p->cols;
    enum sy_code rc = SY_E_OK;

    col = col < p->cols ? col : p->cols - 1;
    if (has_moved || row != p->cursor_row || col != p->cursor_col) {
        rc = buf_addf(out, "\x1b[%u;%uH", row + 1, col + 1);
    }
    if (rc == SY_E_OK && is_shown != p->is_shown) {
        rc = buf_addf(out, "\x1b[?25%c", is_shown ? 'h' : 'l');
    }
    p->cursor_row = row;
    p->cursor_col = col;
    p->is_shown = is_shown;
    return rc;
}

/* Where the part with the cursor begins. It goes by half the width, so that what is typed does not
 * move everything with each character. */
static void
find_part(struct paint *p, const struct terminal *t)
{
    unsigned row = t->screen.cursor_row;
    unsigned col = t->screen.cursor_col;
    unsigned step = p->cols / 2;
    unsigned most = t->opt.cols > p->cols ? t->opt.cols - p->cols : 0;

    p->top = row < p->rows ? 0 : row - p->rows + 1;
    p->left = col < p->cols ? 0 : ((col - p->cols) / step + 1) * step;
    p->left = p->left < most ? p->left : most;
}

static enum sy_code
add(struct paint *p, struct terminal *t, struct buf *out)
{
    struct terminal_screen screen;
    size_t start = out->len;
    bool was_whole = p->is_whole;
    enum sy_code rc = terminal_look(t, &screen);

    if (rc == SY_E_OK && !p->is_clean) {
        rc = clean(p, t, out);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    find_part(p, t);
    rc = paint_rows(p, t, out);
    if (rc != SY_E_OK || !p->is_whole) {
        return rc;
    }
    rc = paint_modes(p, t, out);
    rc = rc == SY_E_OK ? paint_rest(p, t, out) : rc;
    return rc == SY_E_OK ? paint_cursor(p, t, !was_whole || out->len > start, out) : rc;
}

enum sy_code
paint_add(struct paint *p, struct terminal *t, struct buf *out, bool *ret_is_whole)
{
    enum sy_code rc = add(p, t, out);

    if (rc != SY_E_OK) {
        paint_lose(p);
    }
    *ret_is_whole = p->is_whole;
    return rc;
}

void
paint_lose(struct paint *p)
{
    p->is_clean = false;
}
