#ifndef SY_TERMINAL_VIEW_H
#define SY_TERMINAL_VIEW_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "terminal/terminal.h"

/*
 * What is shown of a terminal. All speak of the screen at the last terminal_look, of which
 * `screen` is the result. The texts are what the program wrote: a filter for secrets
 * comes behind.
 */

/* All rows, each ended by a newline, without the empty ones at the end. */
enum sy_code view_screen(const struct terminal *t, const struct terminal_screen *screen,
                         struct buf *out) SY_NODISCARD;

/* The rows that changed after the look that had the number `since`, as "ROW: TEXT" (from 0), each
 * ended by a newline. A row that is empty now is told too. */
enum sy_code view_diff(const struct terminal *t, const struct terminal_screen *screen,
                       uint64_t since, struct buf *out) SY_NODISCARD;

/* Fields of an open object: rows, cols, cursor {row, col, visible}, alt_screen, seq, and if there
 * are such, title, and highlighted [{row, col, text}] with at most LIMIT_TERMINAL_RUNS parts.
 * Errors are those of the writer (jw_done), or SY_E_NOMEM. */
enum sy_code view_facts(struct jw *w, const struct terminal *t,
                        const struct terminal_screen *screen) SY_NODISCARD;

#endif
