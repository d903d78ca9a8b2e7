#ifndef SY_TERMINAL_STRIP_H
#define SY_TERMINAL_STRIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "terminal/parser.h"

/*
 * A stream without its escape sequences, whatever pieces it comes in. Left out are the sequences
 * of ECMA-48 (CSI, OSC, DCS, SOS, PM, APC, and those of two characters), BEL, SO and SI. What
 * could hide or turn text (C1 controls, bidirectional and zero-width ones) becomes
 * \u{202E}. What only begins like a sequence is shown, its ESC as \x1b, so that nothing can be
 * hidden behind it; of one that is longer than LIMIT_TERMINAL_STRING, how many bytes it had. All
 * else stays as it is: tabs, carriage returns, invalid bytes.
 *
 * A zeroed one is ready. Carriage returns are folded before this, as that needs to
 * see which part of a line is erased.
 */
struct strip {
    struct parser parser;
    struct buf *out;
    enum sy_code rc;
    size_t held_n;
    char held[4]; /* of a character that is not complete */
};

void strip_fini(struct strip *s);
/* Appends. SY_E_LIMIT, SY_E_NOMEM: something is missing. */
enum sy_code strip_feed(struct strip *s, const char *bytes, size_t n, struct buf *out) SY_NODISCARD;
/* The end of the stream: what was held back. */
enum sy_code strip_finish(struct strip *s, struct buf *out) SY_NODISCARD;

/*
 * Leaves out, in place, what a program wrote to the alternate screen (modes 47, 1047 and 1049) and
 * has left again: it is drawn over, and no text. `is_alternate`: it was there at the beginning
 * already. What it has not left stays.
 */
void strip_alternate(struct buf *text, bool is_alternate);

/*
 * Is the stream a drawing that stands on a screen of so many rows? It places the cursor (CUP, HVP,
 * VPA) or erases all (ED 2, 3), and what comes before the first and behind the last of these has
 * not as many lines. One between a saved and a restored cursor is none: a status line below text
 * that goes on. What prompts and bars of progress do to their own line is none either.
 */
bool strip_draws(const char *text, size_t n, unsigned rows) SY_NODISCARD;

#endif
