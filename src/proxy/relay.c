#include <string.h>

#include "proxy/proxy_internal.h"

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct flow *f = handle->data;

    (void)suggested;
    *ret = uv_buf_init(f->data + f->len, (unsigned)(LIMIT_PROXY_HEAD - f->len));
}

static bool
is_relaying(const struct flow *f)
{
    return f->conn->stage == STAGE_RELAY;
}

/* Keeps only what belongs to the one request. What follows it is dropped, and
 * the client is not read any more. */
static void
bound_body(struct flow *f)
{
    struct conn *c = f->conn;

    if (!c->is_body || f != &c->up) {
        return;
    }

    size_t n = proxy_http_body_feed(&c->body, f->data + f->at, f->len - f->at);

    if (n < f->len - f->at) {
        f->len = f->at + n;
        f->is_eof = true;
        relay_pause(f);
    }
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct flow *f = stream->data;

    (void)buf;
    if (n == 0) {
        return;
    }
    if (n > 0) {
        f->len += (size_t)n;
    } else if (n == UV_EOF || !is_relaying(f)) {
        f->is_eof = true;
        relay_pause(f);
    } else {
        conn_close(f->conn);
        return;
    }
    if (!is_relaying(f)) {
        conn_step(f->conn);
        return;
    }
    if (n > 0) {
        bound_body(f);
    }
    if (f->conn->up.is_shut || f->conn->down.is_shut) {
        conn_set_timer(f->conn, f->conn->proxy->options.half_ms);
    }
    relay_pump(f);
}

void
relay_init(struct flow *f, struct conn *c, uv_stream_t *from, uv_stream_t *to)
{
    f->conn = c;
    f->from = from;
    f->to = to;
    from->data = f;
}

void
relay_read(struct flow *f)
{
    if (f->is_reading || f->is_eof || f->len == LIMIT_PROXY_HEAD) {
        return;
    }
    if (uv_read_start(f->from, on_alloc, on_read) != 0) {
        conn_close(f->conn);
        return;
    }
    f->is_reading = true;
}

void
relay_pause(struct flow *f)
{
    if (f->is_reading) {
        (void)uv_read_stop(f->from);
        f->is_reading = false;
    }
}

void
relay_drop(struct flow *f, size_t n)
{
    SY_ASSERT(n <= f->len && f->at == 0);
    memmove(f->data, f->data + n, f->len - n);
    f->len -= n;
}

static void
on_shutdown(uv_shutdown_t *req, int status)
{
    const struct flow *f = req->data;
    struct conn *c = f->conn;

    if (status != 0 || (c->up.is_shut && c->down.is_shut)) {
        conn_close(c);
    }
}

static void
on_written(uv_write_t *req, int status)
{
    struct flow *f = req->data;

    f->is_writing = false;
    if (f->conn->is_closing) {
        return;
    }
    if (status != 0) {
        conn_close(f->conn);
        return;
    }
    f->at = f->len;
    relay_pump(f);
}

/* false: all is written, or the connection ends. */
static bool
write_rest(struct flow *f)
{
    uv_buf_t rest = uv_buf_init(f->data + f->at, (unsigned)(f->len - f->at));
    int n = f->at < f->len ? uv_try_write(f->to, &rest, 1) : 0;

    if (n > 0) {
        f->at += (size_t)n;
    } else if (n < 0 && n != UV_EAGAIN) {
        conn_close(f->conn);
        return false;
    }
    if (f->at == f->len) {
        f->at = 0;
        f->len = 0;
        return false;
    }
    relay_pause(f);
    rest = uv_buf_init(f->data + f->at, (unsigned)(f->len - f->at));
    f->write.data = f;
    if (uv_write(&f->write, f->to, &rest, 1, on_written) != 0) {
        conn_close(f->conn);
        return false;
    }
    f->is_writing = true;
    return true;
}

void
relay_pump(struct flow *f)
{
    if (f->is_writing || f->conn->is_closing || write_rest(f) || f->conn->is_closing) {
        return;
    }
    if (!f->is_eof) {
        relay_read(f);
        return;
    }
    if (f->is_shut) {
        return;
    }
    f->is_shut = true;
    conn_set_timer(f->conn, f->conn->proxy->options.half_ms);
    f->shutdown.data = f;
    if (uv_shutdown(&f->shutdown, f->to, on_shutdown) != 0) {
        conn_close(f->conn);
    }
}
