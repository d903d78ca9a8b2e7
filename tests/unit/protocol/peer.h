#ifndef SY_TESTS_UNIT_PROTOCOL_PEER_H
#define SY_TESTS_UNIT_PROTOCOL_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "protocol/protocol.h"

/*
 * A peer for tests: a front on a loop, with what it said kept as lines. Each
 * message is checked to be one line of valid JSON as it comes.
 */
struct peer {
    uv_loop_t loop;
    struct protocol *protocol;
    char *said[2048];
    size_t n;
    size_t backlog;
    bool has_finished;
    bool is_broken; /* something that is not JSON was said */
};

/* SY_E_NOMEM when memory is out: nothing is left then. */
enum sy_code peer_open(struct peer *p, protocol_new_fn *front, uint64_t progress_ms);
/* Says EOF if nobody did, ends open calls, runs the loop to its end, frees. */
void peer_close(struct peer *p);
/* Forgets what was said. */
void peer_forget(struct peer *p);
/* One line to the front; what it says meanwhile is kept after the rest. */
void peer_line(struct peer *p, const char *line);
/* As peer_line, but what was said before is forgotten; returns the first
 * message of the answer, "" if there is none. */
const char *peer_ask(struct peer *p, const char *line);
/* Runs the loop until `n` messages were said (fails the test after 10 s). */
void peer_wait(struct peer *p, size_t n);
/* Runs the loop n times without waiting. */
void peer_turn(struct peer *p, unsigned n);
/* The i-th message, "" beyond the last. */
const char *peer_said(const struct peer *p, size_t i);

#endif
