#ifndef SY_TERMINAL_VT_H
#define SY_TERMINAL_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * libvterm, kept from what it can't stand (docs/internals/terminal.md): it gets text and
 * whole, well-formed sequences of a chosen set, and its result does not depend on
 * where the bytes were cut. Its memory is ours.
 *
 * After an error other than SY_E_OK a vt can only be freed.
 */
struct vt;

/* NULL: memory is out. cols is 2 or more: a wide character needs them. */
struct vt *vt_new(unsigned rows, unsigned cols);
void vt_free(struct vt *v);
/* Text in UTF-8 (what is invalid becomes U+FFFD) and sequences that are complete. The
 * text ends on a character. */
enum sy_code vt_write(struct vt *v, const char *bytes, size_t n) SY_NODISCARD;
/* Before what is written needs the alternate screen. */
enum sy_code vt_use_alt(struct vt *v) SY_NODISCARD;
enum sy_code vt_resize(struct vt *v, unsigned rows, unsigned cols) SY_NODISCARD;
/* Writes a query and appends the answer to `out`, which was given room before. */
enum sy_code vt_ask(struct vt *v, const char *query, size_t n, struct buf *out) SY_NODISCARD;

void vt_cursor(const struct vt *v, unsigned *ret_row, unsigned *ret_col);

/* A colour: the kind, and a number of the palette or 0xRRGGBB. */
#define VT_COLOUR_DEFAULT 0U
#define VT_COLOUR_INDEX   0x01000000U
#define VT_COLOUR_RGB     0x02000000U
#define VT_COLOUR_KIND    0xFF000000U

#define VT_CELL_CHARS 6

struct vt_cell {
    uint32_t chars[VT_CELL_CHARS]; /* scalar values, ended by 0; none: blank */
    unsigned width;                /* 1 or 2 columns */
    bool is_reverse;
    uint32_t background; /* as it was set; reversed, what is seen there is the foreground */
    uint32_t seen;       /* the colour behind the character */
};

void vt_cell(const struct vt *v, unsigned row, unsigned col, struct vt_cell *ret);

/* How a cell looks. Two are equal if all members are. */
struct vt_style {
    uint32_t foreground;
    uint32_t background;
    unsigned underline; /* 0 none, 1 single, 2 double, 3 curly */
    bool is_bold;
    bool is_italic;
    bool is_blinking;
    bool is_reverse;
    bool is_struck;
};

/* As vt_cell, and how it looks. */
void vt_styled_cell(const struct vt *v, unsigned row, unsigned col, struct vt_cell *ret,
                    struct vt_style *ret_style);
/* The rows [first, end) that may have changed since the last call; false: none. */
bool vt_damage(struct vt *v, unsigned *ret_first, unsigned *ret_end);
/* Bytes that are allocated for it. */
size_t vt_memory(const struct vt *v);

/* Length of the sequence at s, which is ESC and what belongs to it, of those that
 * vt_write takes. */
size_t vt_sequence_len(const char *s, size_t n);
/* A character that goes into the cell of the one before it. */
bool vt_is_zero_width(uint32_t c);

#endif
