#include "terminal/vt.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <vterm.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* libvterm puts four bytes a character on the stack for one piece of text. */
#define PIECE 1024U

/* Behind a base character. A cell has no room for more, and libvterm would keep them all,
 * and look at each for every further one. */
#define MARKS_MAX 5U

struct block {
    struct block *next;
    struct block **at; /* what points here */
    size_t size;
};

#define BLOCK_HEADER ((sizeof(struct block) + 15U) & ~(size_t)15U)

struct vt {
    VTerm *term;
    VTermScreen *screen;
    struct block *blocks;
    size_t memory;
    unsigned rows;
    unsigned cols;
    unsigned marks; /* zero-width characters since the last of another kind */
    int damage_first;
    int damage_end; /* 0: none */
    struct buf *answers;
    /*
     * libvterm does not look whether it got the memory that it asked for. It holds nothing
     * but blocks of ours, so when there is no memory we leave it at once and free those.
     */
    jmp_buf out;
};

static void *
take_block(size_t size, void *arg)
{
    struct vt *v = arg;
    struct block *b = NULL;

    if (size <= LIMIT_TERMINAL_MEMORY && v->memory + size <= LIMIT_TERMINAL_MEMORY) {
        b = mem_alloc_zero(1, BLOCK_HEADER + size);
    }
    if (b == NULL) {
        longjmp(v->out, 1); /* lint: allow longjmp */
    }
    b->size = size;
    b->next = v->blocks;
    b->at = &v->blocks;
    if (b->next != NULL) {
        b->next->at = &b->next;
    }
    v->blocks = b;
    v->memory += size;
    return (char *)b + BLOCK_HEADER;
}

static void
give_block(void *p, void *arg)
{
    struct vt *v = arg;

    if (p != NULL) {
        struct block *b = (struct block *)((char *)p - BLOCK_HEADER);

        *b->at = b->next;
        if (b->next != NULL) {
            b->next->at = b->at;
        }
        v->memory -= b->size;
        mem_free(b);
    }
}

static VTermAllocatorFunctions allocator = {.malloc = take_block, .free = give_block};

static int
on_damage(VTermRect rect, void *arg)
{
    struct vt *v = arg;

    if (v->damage_end == 0 || rect.start_row < v->damage_first) {
        v->damage_first = rect.start_row;
    }
    v->damage_end = rect.end_row > v->damage_end ? rect.end_row : v->damage_end;
    return 1;
}

/* There is no scrollback. A resize calls this without looking whether it is there. */
static int
on_push_line(int cols, const VTermScreenCell *cells, void *arg)
{
    (void)cols;
    (void)cells;
    (void)arg;
    return 0;
}

static const VTermScreenCallbacks callbacks = {.damage = on_damage};
static const VTermScreenCallbacks resizing = {.damage = on_damage, .sb_pushline = on_push_line};

static void
on_answer(const char *bytes, size_t n, void *arg)
{
    struct vt *v = arg;

    if (v->answers != NULL) {
        (void)!buf_add(v->answers, bytes, n);
    }
}

typedef void vt_step(struct vt *v, void *arg);

static enum sy_code
guarded(struct vt *v, vt_step *step, void *arg)
{
    if (setjmp(v->out) != 0) { /* lint: allow setjmp */
        return SY_E_NOMEM;
    }
    step(v, arg);
    return SY_E_OK;
}

static void
step_new(struct vt *v, void *arg)
{
    (void)arg;
    v->term = vterm_new_with_allocator((int)v->rows, (int)v->cols, &allocator, v);
    vterm_set_utf8(v->term, 1);
    vterm_output_set_callback(v->term, on_answer, v);
    v->screen = vterm_obtain_screen(v->term);
    vterm_screen_set_callbacks(v->screen, &callbacks, v);
    vterm_screen_set_damage_merge(v->screen, VTERM_DAMAGE_SCREEN);
    vterm_screen_reset(v->screen, 1);
}

struct vt *
vt_new(unsigned rows, unsigned cols)
{
    struct vt *v = mem_alloc_zero(1, sizeof(*v));

    if (v == NULL) {
        return NULL;
    }
    v->rows = rows;
    v->cols = cols;
    if (guarded(v, step_new, NULL) != SY_E_OK) {
        vt_free(v);
        return NULL;
    }
    return v;
}

void
vt_free(struct vt *v)
{
    if (v == NULL) {
        return;
    }
    while (v->blocks != NULL) {
        give_block((char *)v->blocks + BLOCK_HEADER, v);
    }
    mem_free(v);
}

static void
step_use_alt(struct vt *v, void *arg)
{
    (void)arg;
    vterm_screen_enable_altscreen(v->screen, 1);
}

enum sy_code
vt_use_alt(struct vt *v)
{
    return guarded(v, step_use_alt, NULL);
}

static const struct {
    uint32_t first;
    uint32_t last;
} zero_width[] = {
#define ZERO_WIDTH(first, last) {first, last},
#include "terminal/zero_width.def"
#undef ZERO_WIDTH
};

bool
vt_is_zero_width(uint32_t c)
{
    size_t low = 0;
    size_t high = sizeof(zero_width) / sizeof(zero_width[0]);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c > zero_width[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sizeof(zero_width) / sizeof(zero_width[0]) && c >= zero_width[low].first;
}

static void
put(struct vt *v, const char *bytes, size_t n)
{
    while (n > 0) {
        size_t piece = n < PIECE ? n : utf8_cut(bytes, n, PIECE);

        (void)vterm_input_write(v->term, bytes, piece);
        bytes += piece;
        n -= piece;
    }
}

size_t
vt_sequence_len(const char *s, size_t n)
{
    size_t i = 1;
    unsigned char low = 0x30;

    if (i < n && s[i] == '[') {
        i++;
        low = 0x40;
    }
    while (i < n && (unsigned char)s[i] < low) {
        i++;
    }
    return i < n ? i + 1 : n;
}

/* ASCII and sequences. */
static size_t
put_ascii(struct vt *v, const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && (unsigned char)s[i] < 0x80U) {
        if (s[i] == '\x1b') {
            i += vt_sequence_len(s + i, n - i);
        } else {
            v->marks = (unsigned char)s[i] >= 0x20U ? 0 : v->marks;
            i++;
        }
    }
    put(v, s, i);
    return i;
}

/*
 * libvterm joins a zero-width character to the one before it, but if that reaches into the
 * last column, only if both come in the same piece: the cursor is still on it then. There it is
 * left out, and elsewhere it is always a piece of its own, so that the result is the same for all
 * cuts.
 */
static void
put_zero_width(struct vt *v, const char *s, size_t n)
{
    unsigned row = 0;
    unsigned col = 0;
    struct vt_cell cell;

    vt_cursor(v, &row, &col);
    vt_cell(v, row, col, &cell);
    if (col + cell.width < v->cols && v->marks < MARKS_MAX) {
        v->marks++;
        (void)vterm_input_write(v->term, s, n);
    }
}

/* Length of what one U+FFFD stands for: a character that is not complete, or a byte. */
static size_t
invalid_len(const char *s, size_t n)
{
    for (size_t len = n < 3 ? n : 3; len > 1; len--) {
        if (utf8_incomplete_tail(s, len) == len) {
            return len;
        }
    }
    return 1;
}

static size_t
put_other(struct vt *v, const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && (unsigned char)s[i] >= 0x80U) {
        uint32_t c = 0;
        size_t len = utf8_decode(&c, s + i, n - i);

        /* Controls beyond ASCII would count as a column less than none. */
        if (len == 0 || c < 0xA0U) {
            put(v, s, i);
            put(v, REPLACEMENT, sizeof(REPLACEMENT) - 1);
            v->marks = 0;
            return i + (len > 0 ? len : invalid_len(s + i, n - i));
        }
        if (vt_is_zero_width(c)) {
            put(v, s, i);
            put_zero_width(v, s + i, len);
            return i + len;
        }
        v->marks = 0;
        i += len;
    }
    put(v, s, i);
    return i;
}

struct bytes {
    const char *s;
    size_t n;
};

static void
step_write(struct vt *v, void *arg)
{
    const struct bytes *b = arg;

    for (size_t i = 0; i < b->n;) {
        bool is_ascii = (unsigned char)b->s[i] < 0x80U;

        i += is_ascii ? put_ascii(v, b->s + i, b->n - i) : put_other(v, b->s + i, b->n - i);
    }
}

enum sy_code
vt_write(struct vt *v, const char *bytes, size_t n)
{
    struct bytes b = {bytes, n};

    return guarded(v, step_write, &b);
}

static void
put_text(struct vt *v, const char *s)
{
    put(v, s, strlen(s));
}

/*
 * libvterm keeps margins and the saved cursor as they are, even beyond a smaller screen, and then
 * writes there. Margins go, as xterm has it; who restores a cursor puts it into the screen
 * (forward.c).
 */
static void
reset_margins(struct vt *v)
{
    char at[48];
    unsigned row = 0;
    unsigned col = 0;

    vt_cursor(v, &row, &col);
    put_text(v, "\x1b[?6l\x1b[r\x1b[s\x1b[?69l");
    (void)snprintf(at, sizeof(at), "\x1b[%u;%uH", row + 1, col + 1);
    put_text(v, at);
}

struct size {
    unsigned rows;
    unsigned cols;
};

static void
step_resize(struct vt *v, void *arg)
{
    const struct size *size = arg;

    reset_margins(v);
    vterm_screen_set_callbacks(v->screen, &resizing, v);
    vterm_set_size(v->term, (int)size->rows, (int)size->cols);
    put_text(v, "\x1b[0n"); /* looks whether the cursor is on the screen, which it may not be */
    vterm_screen_set_callbacks(v->screen, &callbacks, v);
    v->rows = size->rows;
    v->cols = size->cols;
    on_damage((VTermRect){.start_row = 0, .end_row = (int)size->rows}, v);
}

enum sy_code
vt_resize(struct vt *v, unsigned rows, unsigned cols)
{
    struct size size = {rows, cols};

    return guarded(v, step_resize, &size);
}

/* Leaves nothing behind (in origin mode: query.c): when the screen is drawn again, nobody asks. */
static void
step_ask(struct vt *v, void *arg)
{
    const struct bytes *b = arg;

    put(v, b->s, b->n);
}

enum sy_code
vt_ask(struct vt *v, const char *query, size_t n, struct buf *out)
{
    struct bytes b = {query, n};
    enum sy_code rc = SY_E_OK;

    v->answers = out;
    rc = guarded(v, step_ask, &b);
    v->answers = NULL;
    return rc;
}

void
vt_cursor(const struct vt *v, unsigned *ret_row, unsigned *ret_col)
{
    VTermPos pos = {0, 0};

    vterm_state_get_cursorpos(vterm_obtain_state(v->term), &pos);
    *ret_row = (unsigned)pos.row;
    *ret_col = (unsigned)pos.col;
}

static uint32_t
colour(const VTermColor *c, bool is_default)
{
    if (is_default) {
        return VT_COLOUR_DEFAULT;
    }
    if (VTERM_COLOR_IS_INDEXED(c)) {
        return VT_COLOUR_INDEX | c->indexed.idx;
    }
    return VT_COLOUR_RGB | (uint32_t)c->rgb.red << 16 | (uint32_t)c->rgb.green << 8 | c->rgb.blue;
}

static void
read_cell(const struct vt *v, unsigned row, unsigned col, VTermScreenCell *cell,
          struct vt_cell *ret)
{
    VTermPos pos = {.row = (int)row, .col = (int)col};

    _Static_assert(VT_CELL_CHARS == VTERM_MAX_CHARS_PER_CELL, "cells hold as much");
    memset(cell, 0, sizeof(*cell));
    (void)vterm_screen_get_cell(v->screen, pos, cell);
    memcpy(ret->chars, cell->chars, sizeof(ret->chars));
    /* The right half of a wide character whose left half was written over. */
    if (ret->chars[0] == UINT32_MAX) {
        ret->chars[0] = 0;
    }
    ret->width = cell->width == 2 && col + 1 < v->cols ? 2 : 1;
    ret->is_reverse = cell->attrs.reverse != 0;
    ret->background = colour(&cell->bg, VTERM_COLOR_IS_DEFAULT_BG(&cell->bg));
    ret->seen =
        ret->is_reverse ? colour(&cell->fg, VTERM_COLOR_IS_DEFAULT_FG(&cell->fg)) : ret->background;
}

void
vt_cell(const struct vt *v, unsigned row, unsigned col, struct vt_cell *ret)
{
    VTermScreenCell cell;

    read_cell(v, row, col, &cell, ret);
}

void
vt_styled_cell(const struct vt *v, unsigned row, unsigned col, struct vt_cell *ret,
               struct vt_style *ret_style)
{
    VTermScreenCell cell;

    read_cell(v, row, col, &cell, ret);
    *ret_style = (struct vt_style){
        .foreground = colour(&cell.fg, VTERM_COLOR_IS_DEFAULT_FG(&cell.fg)),
        .background = ret->background,
        .underline = cell.attrs.underline,
        .is_bold = cell.attrs.bold != 0,
        .is_italic = cell.attrs.italic != 0,
        .is_blinking = cell.attrs.blink != 0,
        .is_reverse = ret->is_reverse,
        .is_struck = cell.attrs.strike != 0,
    };
}

bool
vt_damage(struct vt *v, unsigned *ret_first, unsigned *ret_end)
{
    vterm_screen_flush_damage(v->screen);
    if (v->damage_end == 0) {
        return false;
    }
    *ret_first = (unsigned)v->damage_first;
    *ret_end = (unsigned)v->damage_end < v->rows ? (unsigned)v->damage_end : v->rows;
    v->damage_end = 0;
    return *ret_first < *ret_end;
}

size_t
vt_memory(const struct vt *v)
{
    return sizeof(*v) + v->memory;
}
