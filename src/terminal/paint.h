#ifndef SY_TERMINAL_PAINT_H
#define SY_TERMINAL_PAINT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "terminal/terminal.h"

/*
 * What has to be written to another terminal, a person's, so that it shows what a terminal shows:
 * characters with their colours, the cursor, the title, the bell, and the modes that its keys
 * and its mouse depend on. Pure. It is made of the screen and not of what the program wrote: no
 * byte of the program's passes, no query, no clipboard, no change of the person's
 * terminal that PAINT_LEAVE does not take back.
 *
 * The other terminal may have another size. One that is smaller shows the part with the cursor,
 * one that is larger has nothing in the rest.
 */
struct paint;

/* Before all painting, and after it: the other terminal's own screen and title are kept
 * meanwhile, and its modes are those that most are born with. */
#define PAINT_ENTER "\x1b[?1049h\x1b[22;2t"
#define PAINT_LEAVE                                                                                \
    "\x1b[m\x1b[r\x1b(B\x0f\x1b[?1;5;1000;1002;1003;1004;1005;1006;1015;2004l\x1b>\x1b[>4m"        \
    "\x1b[0 q\x1b[?7;25h\x1b[23;2t\x1b[?1049l"

/* A size beyond that of a terminal (terminal.h) is taken as the nearest. `is_watching`: its keys
 * are not for the program, so their modes and the mouse stay its own. */
enum sy_code paint_new(struct paint **ret, unsigned rows, unsigned cols, bool is_watching,
                       struct sy_error *err) SY_NODISCARD;
void paint_free(struct paint *p);
/* The other terminal has this size now, and nobody knows what is on it. */
enum sy_code paint_resize(struct paint *p, unsigned rows, unsigned cols,
                          struct sy_error *err) SY_NODISCARD;

/*
 * Looks at `t` and appends what has changed since the last call; nothing if nothing has. `out` has
 * room for LIMIT_PAINT_MOST bytes. Behind LIMIT_PAINT bytes of `out` it stops: *ret_is_whole is
 * false then, and the next call goes on. SY_E_NOMEM: all is to be painted anew.
 */
enum sy_code paint_add(struct paint *p, struct terminal *t, struct buf *out,
                       bool *ret_is_whole) SY_NODISCARD;
/* What was appended never got there: all is to be painted anew. */
void paint_lose(struct paint *p);

#endif
