#ifndef SY_TRANSPORT_LINES_H
#define SY_TRANSPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * Cuts a stream into lines. Pure. A line ends with "\n" or "\r\n"; a line that
 * lies whole in one piece of input is handed on without a copy. A line longer
 * than the maximum is reported once and skipped to its newline.
 */
struct lines {
    struct buf partial; /* the beginning of a line; max: longest line */
    bool is_skipping;
    /* Borrowed for the time of the call. */
    void (*on_line)(void *arg, const char *text, size_t len);
    /* SY_E_LIMIT or SY_E_NOMEM. */
    void (*on_dropped)(void *arg, enum sy_code why);
    void *arg;
};

void lines_fini(struct lines *l);
void lines_push(struct lines *l, const char *bytes, size_t n);
/* No more input: what stands without a newline is a line too. */
void lines_finish(struct lines *l);

#endif
