#ifndef SY_TERMINAL_STAND_OUT_H
#define SY_TERMINAL_STAND_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "terminal/terminal.h"

/*
 * What stands out on a screen: parts of rows that are reversed or have a background, but for paper.
 * What touches and looks the same is one area; an area is paper if it covers more than half of the
 * screen, or if in one row something that looks different, and not like the terminal's own
 * background, of two columns or more lies between two parts of it: the box of a menu in which one
 * line is chosen, and what that box lies on. (A hole of one column is a cursor in a selection.)
 */
struct stand_out_part {
    struct terminal_run run;
    unsigned row;
    bool is_paper;
    size_t area; /* its own */
};

struct stand_out {
    struct stand_out_part *parts; /* by row and column */
    size_t n;
    /* Its own. */
    size_t cap;
    struct terminal_run *runs;
    size_t cols;
};

/* Of the screen at the last terminal_look, of which `screen` is the result. `ret` is empty before,
 * and is the caller's to free in each case. SY_E_NOMEM. */
enum sy_code stand_out_find(struct stand_out *ret, const struct terminal *t,
                            const struct terminal_screen *screen) SY_NODISCARD;
void stand_out_fini(struct stand_out *s);

#endif
