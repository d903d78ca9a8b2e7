#include "proxy/proxy_internal.h"

#include "base/fd.h"
#include "base/mem.h"

#define BACKLOG 128
/* When a listener that waits looks for memory again. */
#define RETRY_MS 100

const char *
proxy_outcome_name(enum proxy_outcome o)
{
    switch (o) {
    case PROXY_ALLOWED:
        return "allowed";
    case PROXY_DENIED:
        return "denied";
    case PROXY_MALFORMED:
        return "malformed";
    case PROXY_FAILED:
        break;
    }
    return "failed";
}

static void
free_if_over(struct proxy *p)
{
    proxy_closed_fn *done = p->done;
    void *arg = p->done_arg;

    if (!p->is_closing || p->handles > 0 || p->conn_count > 0) {
        return;
    }
    mem_free(p);
    if (done != NULL) {
        done(arg);
    }
}

static void
accept_waiting(struct proxy *p)
{
    for (size_t i = 0; i < p->listener_count && !p->is_closing; i++) {
        struct listener *l = &p->listeners[i];

        if (l->is_waiting) {
            l->is_waiting = false;
            conn_accept(l);
        }
    }
}

static void
on_retry(uv_timer_t *timer)
{
    accept_waiting(timer->data);
}

void
proxy_wait(struct listener *l)
{
    l->is_waiting = true;
    if (l->proxy->conn_count == 0 && !l->proxy->is_closing) {
        (void)uv_timer_start(&l->proxy->timer, on_retry, RETRY_MS, 0);
    }
}

void
proxy_conn_gone(struct proxy *p)
{
    p->conn_count--;
    accept_waiting(p);
    free_if_over(p);
}

static void
on_closed(uv_handle_t *handle)
{
    struct proxy *p = handle->data;

    p->handles--;
    free_if_over(p);
}

static void
on_listener_closed(uv_handle_t *handle)
{
    const struct listener *l = handle->data;

    l->proxy->handles--;
    free_if_over(l->proxy);
}

static void
on_connection(uv_stream_t *stream, int status)
{
    /* A failed accept is libuv's to try again. */
    if (status == 0) {
        conn_accept(stream->data);
    }
}

static void
set_default(unsigned *value, unsigned otherwise)
{
    if (*value == 0) {
        *value = otherwise;
    }
}

static void
set_defaults(struct proxy_options *o)
{
    set_default(&o->max_connections, LIMIT_PROXY_CONNECTIONS);
    set_default(&o->head_ms, LIMIT_PROXY_HEAD_MS);
    set_default(&o->connect_ms, LIMIT_PROXY_CONNECT_MS);
    set_default(&o->half_ms, LIMIT_PROXY_HALF_MS);
    o->tls_port = o->tls_port != 0 ? o->tls_port : 443;
    o->http_port = o->http_port != 0 ? o->http_port : 80;
}

enum sy_code
proxy_new(struct proxy **ret, struct uv_loop_s *loop, const struct allow_list *list,
          const struct proxy_options *options, struct sy_error *err)
{
    struct proxy *p = mem_alloc_zero(1, sizeof(*p));

    if (p == NULL) {
        return sy_err_nomem(err);
    }
    p->loop = loop;
    p->list = list;
    p->options = *options;
    set_defaults(&p->options);
    (void)uv_timer_init(loop, &p->timer); /* Can't fail. */
    p->timer.data = p;
    p->handles = 1;
    *ret = p;
    return SY_E_OK;
}

enum sy_code
proxy_listen_fd(struct proxy *p, int *fd, enum proxy_kind kind, struct sy_error *err)
{
    SY_FD taken = fd_take(fd);
    struct listener *l = &p->listeners[p->listener_count];

    if (p->listener_count == PROXY_LISTENERS) {
        return sy_err_set(err, SY_E_LIMIT, "the network proxy has %d listening sockets already",
                          PROXY_LISTENERS);
    }

    int rc = uv_tcp_init(p->loop, &l->handle);

    if (rc != 0) {
        return sy_err_set(err, SY_E_INTERNAL, "event loop: %s", uv_strerror(rc));
    }
    /* It stays a listener of ours, also if it is closed at once. */
    p->listener_count++;
    p->handles++;
    l->handle.data = l;
    l->proxy = p;
    l->kind = kind;
    rc = uv_tcp_open(&l->handle, taken);
    if (rc == 0) {
        (void)fd_take(&taken);
        rc = uv_listen((uv_stream_t *)&l->handle, BACKLOG, on_connection);
    }
    if (rc != 0) {
        uv_close((uv_handle_t *)&l->handle, on_listener_closed);
        return sy_err_sys(err, -rc, "listening for the network proxy");
    }
    return SY_E_OK;
}

void
proxy_end_owner(struct proxy *p, uint64_t owner)
{
    struct conn *next = NULL;

    /* conn_close frees nothing at once that still has a handle open. */
    for (struct conn *c = p->conns; c != NULL; c = next) {
        next = c->next;
        if (c->owner == owner && !c->is_closing) {
            conn_close(c);
        }
    }
}

size_t
proxy_connection_count(const struct proxy *p)
{
    return p->conn_count;
}

void
proxy_close(struct proxy *p, proxy_closed_fn *done, void *arg)
{
    struct conn *next = NULL;

    SY_ASSERT(!p->is_closing);
    p->is_closing = true;
    p->done = done;
    p->done_arg = arg;
    for (size_t i = 0; i < p->listener_count; i++) {
        if (!uv_is_closing((uv_handle_t *)&p->listeners[i].handle)) {
            uv_close((uv_handle_t *)&p->listeners[i].handle, on_listener_closed);
        }
    }
    for (struct conn *c = p->conns; c != NULL; c = next) {
        next = c->next;
        if (!c->is_closing) {
            conn_close(c);
        }
    }
    uv_close((uv_handle_t *)&p->timer, on_closed);
}
