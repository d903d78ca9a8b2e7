#ifndef SY_TOOLS_LIVE_SHOW_H
#define SY_TOOLS_LIVE_SHOW_H

#include "output/output.h"
#include "sessions/sessions.h"

/*
 * What is shown of a session, in answers and in resources alike: all of it has come through the
 * command's output chain, and so through its filters.
 */
struct terminal_screen;

/* A screen as text: of the largest, most is blank. */
#define LIVE_SCREEN_BYTES ((size_t)256 * 1024)

/* A part of what it wrote, as text. */
struct live_shown {
    struct buf text; /* its maximum is the caller's */
    struct output_stats stats;
    bool is_truncated;
    uint64_t next_seq; /* where the next reading begins */
    uint64_t omitted;  /* bytes that were not kept */
    uint64_t cut_seq;  /* from where on it was left out and is kept; 0: nothing was, or unknown */
};

/* What it wrote from number `from` on, without escape sequences, head and tail within `max_bytes`.
 * Of one that still runs only whole characters. Nothing counts as read by it. */
struct live_part {
    uint64_t from;
    size_t max_bytes;
    bool leaves_drawing_out; /* what it drew on the whole screen, and has left */
    bool was_drawing;        /* it did at `from` already */
};
enum sy_code live_show_stream(struct live_shown *ret, struct live *l,
                              const struct live_part *part) SY_NODISCARD;
/* Of a text, its last one whole or not. */
uint64_t live_show_lines(const struct buf *text);
/* Its rows, or (has_changes) those that changed since live_seen. It must have a terminal. */
enum sy_code live_show_screen(struct buf *out, struct live *l, struct terminal_screen *ret_screen,
                              bool has_changes) SY_NODISCARD;
/* The last line that says something, without escape sequences, in place of what is in `out`; ""
 * where there is none. Of one that draws, of its screen. */
enum sy_code live_show_last_line(struct buf *out, struct live *l) SY_NODISCARD;
/* The same of the end of another text. */
enum sy_code live_show_last_line_of(struct buf *out, const char *text, size_t n) SY_NODISCARD;

/* Has it drawn on its screen since `from`, so that what it wrote is no text? Of one on the
 * alternate screen the terminal itself tells; what was drawn there and left does not count. False
 * where memory is out, too. */
bool live_show_draws(struct live *l, uint64_t from) SY_NODISCARD;

#endif
