#ifndef SY_TERMINAL_TERMINAL_H
#define SY_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "terminal/key.h"

/*
 * The terminal that a program on a PTY believes to have: what is on its screen, what it asked
 * for, and the answers to what it asks. Pure: the owner reads the PTY and feeds the bytes,
 * raw, and writes to it what is in terminal_replies().
 *
 * Feeding is cheap. The screen is made when somebody looks at it, or when a query
 * needs it; until then bytes wait, and those that can't be on the screen any more are dropped.
 * The result is the same as if each byte had been drawn at once.
 */
struct terminal;

/* Marks of a shell's integration (OSC 133 and 633). */
enum terminal_mark {
    TERMINAL_PROMPT, /* A: the prompt begins */
    TERMINAL_INPUT,  /* B: what is typed begins */
    TERMINAL_OUTPUT, /* C: the command's output begins */
    TERMINAL_DONE,   /* D: the command has ended */
};

/* exit_code: of TERMINAL_DONE, if the shell told it; else -1. Called from terminal_feed;
 * must not touch the terminal. */
typedef void terminal_mark_fn(void *arg, enum terminal_mark mark, int exit_code);

struct terminal_options {
    unsigned rows; /* 1 to LIMIT_TERMINAL_ROWS */
    unsigned cols; /* 2 to LIMIT_TERMINAL_COLS */
    /* Marks count if one of their parameters is "sy=" and this; any program could print
     * others. Borrowed for the terminal's life. NULL or empty: no marks. */
    const char *nonce;
    terminal_mark_fn *on_mark; /* may be NULL */
    void *arg;
};

/* SY_E_ARG for a size that is not possible. */
enum sy_code terminal_new(struct terminal **ret, const struct terminal_options *options,
                          struct sy_error *err) SY_NODISCARD;
void terminal_free(struct terminal *t);

/*
 * SY_E_NOMEM: the terminal lives on, but something that these bytes did is missing: an answer, a
 * title, or what was on the screen, which is then blank.
 */
enum sy_code terminal_feed(struct terminal *t, const char *bytes, size_t n) SY_NODISCARD;
/* After SY_E_NOMEM it has the new size and is blank. */
enum sy_code terminal_resize(struct terminal *t, unsigned rows, unsigned cols,
                             struct sy_error *err) SY_NODISCARD;

/* What is to be written to the PTY, in the order of the queries; the owner takes it out
 * (buf_drop). Beyond LIMIT_TERMINAL_REPLIES answers are dropped. */
struct buf *terminal_replies(struct terminal *t);

/* What is known without a look. */
struct terminal_state {
    struct key_modes keys; /* for key_encode and key_paste */
    bool alt_screen;
    bool cursor_visible;
    bool is_in_frame; /* synchronised output (2026): the screen is not whole yet */
    bool wants_mouse; /* a mode that reports the mouse is on */
    uint64_t bytes;   /* that were fed */
    uint64_t frames;  /* of synchronised output that ended */
    uint64_t pastes;  /* how often bracketed paste (2004) was switched off */
    uint64_t bells;
    uint64_t lost;       /* how often the screen was lost for want of memory */
    uint64_t unanswered; /* queries whose answer was dropped */
};

const struct terminal_state *terminal_state(const struct terminal *t);
/* What the program set, made harmless, at most LIMIT_TERMINAL_TITLE bytes. "" if none. */
const char *terminal_title(const struct terminal *t);

/* Its size now, without drawing. */
unsigned terminal_columns(const struct terminal *t);
unsigned terminal_rows(const struct terminal *t);

struct terminal_screen {
    unsigned rows;
    unsigned cols;
    unsigned cursor_row; /* from 0 */
    unsigned cursor_col;
    uint64_t seq; /* grows when a look finds something changed: text, a background, the cursor */
};

/*
 * Draws what waits. What is asked about rows afterwards holds until the next feed, resize
 * or rest. SY_E_NOMEM: there is no screen now; it may be there at the next look.
 */
enum sy_code terminal_look(struct terminal *t, struct terminal_screen *ret) SY_NODISCARD;

/* Appends a row without the blanks at its end: valid UTF-8, controls and what hides or reorders
 * text as U+FFFD (invisible characters are left out). */
enum sy_code terminal_row(const struct terminal *t, unsigned row, struct buf *out) SY_NODISCARD;
/* The same of `cols` columns from `col` on, with the blanks at the end. */
enum sy_code terminal_part(const struct terminal *t, unsigned row, unsigned col, unsigned cols,
                           struct buf *out) SY_NODISCARD;
/* The `seq` of the look that found the row changed last; 0: it is as at the beginning. */
uint64_t terminal_row_seq(const struct terminal *t, unsigned row);

/* Characters beside each other that are reversed, or have the same background that is not the
 * terminal's own: the line of a menu that is chosen, a status line, and what they lie on
 * (stand_out.h tells these apart). */
struct terminal_run {
    unsigned col;
    unsigned cols;
    uint32_t background; /* VT_COLOUR_* of vt.h; reversed, the colour of the characters */
    bool is_reverse;
};

/* Runs of a row from left to right, at most max; returns how many there are. */
size_t terminal_row_runs(const struct terminal *t, unsigned row, struct terminal_run *runs,
                         size_t max);

/* Nobody will look for a while: gives memory back that can be made again. */
void terminal_rest(struct terminal *t);
/* Bytes of heap that it holds. */
size_t terminal_memory(const struct terminal *t);

#endif
