#ifndef SY_TESTS_UNIT_TERMINAL_SCREENS_H
#define SY_TESTS_UNIT_TERMINAL_SCREENS_H

#include "terminal/terminal.h"

/* A terminal of that size; ends the run when there is none. */
struct terminal *screens_new(unsigned rows, unsigned cols);
/* NULL: equal; else what differs first. Looks at both. */
const char *screens_differ(struct terminal *a, struct terminal *b);
/* NULL: each cell has the same text and looks the same; else what differs first. Looks at both. */
const char *screens_cells_differ(struct terminal *a, struct terminal *b);
/* The rows, one below the other, without blank ones at the end. Fails the run without memory. */
enum sy_code screens_text(struct terminal *t, struct buf *out) SY_NODISCARD;
/* What is fed from now on is drawn at once, and nothing is left out. */
enum sy_code screens_feed_eagerly(struct terminal *t, const char *bytes, size_t n) SY_NODISCARD;

#endif
