#include "protocol/protocol.h"

#include "base/limits.h"
#include "protocol/protocol_internal.h"

/* Above this the buffer of outgoing messages is given back after use. */
#define OUT_KEEP ((size_t)1024 * 1024)

enum sy_code
protocol_init(struct protocol *p, const struct front *front, const struct protocol_options *options,
              struct sy_error *err)
{
    p->front = front;
    p->options = *options;
    p->out = (struct buf){.max = LIMIT_SEND_QUEUE};
    if (buf_reserve(&p->out, OUT_RESERVE) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return SY_E_OK;
}

void
protocol_fini(struct protocol *p)
{
    SY_ASSERT(!p->has_timer);
    buf_fini(&p->out);
}

uv_timer_t *
protocol_timer(struct protocol *p)
{
    if (!p->has_timer) {
        SY_ASSERT(uv_timer_init(p->options.loop, &p->timer) == 0);
        p->timer.data = p;
        uv_unref((uv_handle_t *)&p->timer);
        p->has_timer = true;
    }
    return &p->timer;
}

static void
on_timer_closed(uv_handle_t *handle)
{
    struct protocol *p = handle->data;

    p->has_timer = false;
    p->options.finished(p->options.arg);
}

void
protocol_finish(struct protocol *p)
{
    if (!p->is_closing) {
        p->is_closing = true;
        uv_close((uv_handle_t *)protocol_timer(p), on_timer_closed);
    }
}

void
out_begin(struct protocol *p, struct jw *w)
{
    if (p->out.cap > OUT_KEEP) {
        struct buf small = {.max = p->out.max};

        /* The reserve must never be missing: swap only what is there. */
        if (buf_reserve(&small, OUT_RESERVE) == SY_E_OK) {
            buf_fini(&p->out);
            p->out = small;
        }
    }
    buf_reset(&p->out);
    *w = (struct jw){.out = &p->out};
}

void
out_send(struct protocol *p)
{
    /* A peer that can't be reached is told to us by protocol_on_gone. */
    (void)p->options.send(p->options.arg, p->out.data, p->out.len);
}

bool
protocol_line_is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') {
            return false;
        }
    }
    return true;
}

void
protocol_on_line(struct protocol *p, const char *text, size_t len)
{
    if (!p->is_ending) {
        p->front->on_line(p, text, len);
    }
}

void
protocol_on_dropped(struct protocol *p, enum sy_code why)
{
    if (!p->is_ending) {
        p->front->on_dropped(p, why);
    }
}

void
protocol_on_eof(struct protocol *p)
{
    if (!p->is_ending) {
        p->is_ending = true;
        p->front->on_eof(p);
    }
}

void
protocol_on_gone(struct protocol *p)
{
    p->is_ending = true;
    if (!p->is_closing) {
        p->front->on_gone(p);
    }
}

void
protocol_free(struct protocol *p)
{
    if (p != NULL) {
        p->front->free(p);
    }
}
