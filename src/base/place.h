#ifndef SY_BASE_PLACE_H
#define SY_BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Places in texts that people wrote, and errors that name them. No heap.
 */
struct place {
    const char *prefix; /* in front of the name ("-c "); NULL: nothing */
    const char *name;   /* a path or what stands for it; borrowed */
    size_t line;        /* from 1; 0: none */
    size_t column;
};

/* A text with its name. */
struct place_text {
    const char *prefix; /* as in struct place */
    const char *name;
    const char *text;
    size_t len;
    bool is_one_line; /* places in it have no line */
};

/* "NAME:LINE:COLUMN: ..." or "NAME: ...", code SY_E_CONFIG. A long name keeps its end. */
enum sy_code place_error(struct sy_error *err, const struct place *at, const char *fmt, ...)
    SY_PRINTF(3, 4);

/* Line and column (in characters) of a byte of the text. */
struct place place_of_byte(const struct place_text *in, size_t offset);
/* SY_E_CONFIG with the place when the text is no UTF-8. */
enum sy_code place_check_utf8(const struct place_text *in, struct sy_error *err) SY_NODISCARD;

/* Controls, and characters that hide or reorder text. */
bool place_is_deceptive(uint32_t c);
/* Foreign text for an error: what could deceive a reader becomes '?', and what
 * is too long is cut with "...". */
struct place_shown {
    char text[48];
};
const char *place_visible(struct place_shown *shown, const char *text, size_t len);
/* The same for a path of which the end counts. */
struct place_shown_path {
    char text[84];
};
const char *place_visible_path(struct place_shown_path *shown, const char *path);

#endif
