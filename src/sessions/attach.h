#ifndef SY_SESSIONS_ATTACH_H
#define SY_SESSIONS_ATTACH_H

#include <stdbool.h>

#include "base/err.h"
#include "sessions/sessions.h"

/*
 * A person who has joined a session, over a connected stream socket: frames (attach_frame.h) carry
 * what its screen shows to the person's terminal (terminal/paint.h), and what the person types
 * back.
 *
 * A terminal that takes nothing holds up nobody: while something waits for it, nothing more is
 * painted, and then what is on the screen by that time. Unless it only watches, the size of the
 * person's terminal counts for that of the session's (live_fit); when it has left, that stays.
 */
struct attach;

struct attach_options {
    struct uv_loop_s *loop;
    int fd; /* taken, whatever comes of it; nothing else may be said there */
    struct live *live;
    bool is_read_only; /* what is typed is refused */
    unsigned rows;     /* of the person's terminal */
    unsigned cols;
    /* It is over, its descriptor closed; from the loop, and only after attach_open gave SY_E_OK.
     * The attach is gone behind it. */
    void (*ended)(void *arg);
    void *arg;
};

/* SY_E_CANCELLED: the session has ended. SY_E_ARG: it has no terminal. */
enum sy_code attach_open(struct attach **ret, const struct attach_options *options,
                         struct sy_error *err) SY_NODISCARD;
/* Ends it with this sentence for the person; `ended` comes. Nothing where it is ending. */
void attach_stop(struct attach *a, const char *sentence);

#endif
