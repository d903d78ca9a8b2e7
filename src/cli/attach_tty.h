#ifndef SY_CLI_ATTACH_TTY_H
#define SY_CLI_ATTACH_TTY_H

#include "base/err.h"

/*
 * The person's terminal while it shows a session: keys come raw, and what was on it is kept. There
 * is one. It is given back by attach_tty_close, and if this process dies of an error of its own, by
 * that.
 */

/* SY_E_ARG: standard input or output is none. */
enum sy_code attach_tty_check(struct sy_error *err) SY_NODISCARD;
/* After that. *ret_out takes what is to be shown and
 * does not block; it is closed by attach_tty_close. */
enum sy_code attach_tty_open(int *ret_out, struct sy_error *err) SY_NODISCARD;
/* After somebody else has used it (SIGCONT). */
void attach_tty_again(void);
void attach_tty_close(void);
/* Its size; the usual one where it knows none. */
void attach_tty_size(unsigned *ret_rows, unsigned *ret_cols);

#endif
