#ifndef SY_TOOLS_LIVE_CALL_INTERNAL_H
#define SY_TOOLS_LIVE_CALL_INTERNAL_H

#include "sessions/sessions.h"
#include "tools/live_call.h"

/* A call about a session: how it goes (live_call.c), and its answer (live_result.c). */
struct live_call {
    struct tool_call *call; /* borrowed */
    struct live *live;      /* borrowed from the store; NULL: it is not known any more */
    struct live_wait wait;
    bool is_waiting;
    bool is_starter; /* it started the session, and has not been answered */
    bool has_begun;
    struct live_order order; /* its texts are ours */
    struct buf input;
    struct strv keys;
    struct pattern *pattern; /* NULL: none */
    struct pattern_scan *scan;
    enum live_reason reason;
    struct live_typing *typing; /* NULL: nothing is being typed */
    bool is_made;               /* `input` is what is typed */
    bool loses_input;           /* a line of it is too long for the terminal */
    char control;               /* in `input`, by which a line before it may be lost; 0: none */
    bool wrote_nothing;         /* it had ended by its turn */
    bool has_signalled;         /* and by a signal of this call before that */
    struct sy_error refused;    /* what `begin` could not do */
    uint64_t began_ns;          /* when its turn came */
};

#endif
