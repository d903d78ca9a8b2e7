#ifndef SY_PROTOCOL_PROTOCOL_INTERNAL_H
#define SY_PROTOCOL_PROTOCOL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "base/buf.h"
#include "base/json.h"
#include "protocol/protocol.h"

/* What each front does; one row each of the functions in protocol.h. */
struct front {
    void (*on_line)(struct protocol *p, const char *text, size_t len);
    void (*on_dropped)(struct protocol *p, enum sy_code why);
    void (*on_eof)(struct protocol *p);
    void (*on_gone)(struct protocol *p);
    void (*free)(struct protocol *p);
};

/* First member of each front's own struct. */
struct protocol {
    const struct front *front;
    struct protocol_options options;
    struct buf out;   /* the message being written */
    uv_timer_t timer; /* progress; closing it is the way to the finished callback */
    bool has_timer;
    bool is_ending;  /* takes no more lines */
    bool is_closing; /* the finished callback is on its way */
};

enum sy_code protocol_init(struct protocol *p, const struct front *front,
                           const struct protocol_options *options,
                           struct sy_error *err) SY_NODISCARD;
void protocol_fini(struct protocol *p);
/* No call is open and no message follows. Idempotent. */
void protocol_finish(struct protocol *p);
/* The timer, made at its first use. It does not keep the loop alive. */
uv_timer_t *protocol_timer(struct protocol *p);

/* Room that p->out always has: enough for each error reply (id, method and
 * sentence escaped at worst six-fold), so that an answer is possible when
 * memory is out. */
#define OUT_RESERVE 4096U

/* Starts a message in p->out. */
void out_begin(struct protocol *p, struct jw *w);
/* Passes a finished p->out on. */
void out_send(struct protocol *p);

/* A line that is nothing but spaces. */
bool protocol_line_is_blank(const char *text, size_t len);

#endif
