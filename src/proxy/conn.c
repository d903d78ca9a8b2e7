#include <string.h>

#include "base/mem.h"
#include "proxy/proxy_internal.h"
#include "proxy/tls_hello.h"

static const struct refusal malformed = {PROXY_MALFORMED, 400, SOCKS_FAILED};
static const struct refusal denied = {PROXY_DENIED, 403, SOCKS_DENIED};
static const struct refusal timed_out = {PROXY_FAILED, 504, SOCKS_FAILED};
static const struct refusal out_of_memory = {PROXY_FAILED, 502, SOCKS_FAILED};

static void
conn_free(struct conn *c)
{
    struct proxy *p = c->proxy;

    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        p->conns = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    buf_fini(&c->out);
    mem_free(c->up.data);
    mem_free(c->down.data);
    mem_free(c);
    proxy_conn_gone(p);
}

static void
on_timer_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;

    c->handles--;
    conn_close(c);
}

static void
on_client_closed(uv_handle_t *handle)
{
    const struct flow *f = handle->data;
    struct conn *c = f->conn;

    c->handles--;
    conn_close(c);
}

void
conn_close(struct conn *c)
{
    if (!c->is_closing) {
        c->is_closing = true;
        dial_stop(c);
        uv_close((uv_handle_t *)&c->timer, on_timer_closed);
        uv_close((uv_handle_t *)&c->client, on_client_closed);
    } else if (c->handles == 0 && !c->is_looking_up) {
        conn_free(c);
    }
}

static const char *
protocol_of(const struct conn *c)
{
    if (c->kind == PROXY_SOCKS) {
        return "socks5";
    }
    return c->is_tunnel ? "connect" : "http";
}

static enum proxy_content
content_of(const struct conn *c)
{
    const struct proxy_options *o = &c->proxy->options;
    bool is_tunnel = c->kind == PROXY_SOCKS || c->is_tunnel;

    if (is_tunnel && c->port == o->tls_port) {
        return PROXY_CONTENT_TLS;
    }
    return is_tunnel && c->port != o->http_port ? PROXY_CONTENT_UNCHECKED : PROXY_CONTENT_HTTP;
}

bool
conn_tell(struct conn *c, enum proxy_outcome outcome, const char *why, const char *hint)
{
    const struct proxy_options *o = &c->proxy->options;
    struct proxy_verdict v = {
        .owner = c->owner,
        .outcome = outcome,
        .content = content_of(c),
        .protocol = protocol_of(c),
        .method = c->http.method,
        .host = c->host.text,
        .port = c->port,
        .address = c->address,
        .rule = c->judgement.rule != NULL ? c->judgement.rule : "",
        .why = why,
        .hint = hint,
    };

    if (!c->is_told && !c->is_closing && o->on_verdict != NULL) {
        c->is_told = true;
        o->on_verdict(o->arg, &v);
    }
    c->is_told = true;
    return !c->is_closing;
}

/* Our own words to the client. They are few: a socket that does not take them
 * at once belongs to a client that does not read. */
static bool
say(struct conn *c, const void *bytes, size_t len)
{
    uv_buf_t out = uv_buf_init(mem_unconst(bytes), (unsigned)len);

    if (len > 0 && uv_try_write((uv_stream_t *)&c->client, &out, 1) != (int)len) {
        conn_close(c);
        return false;
    }
    return true;
}

static void
on_timer(uv_timer_t *timer)
{
    struct conn *c = timer->data;

    switch (c->stage) {
    case STAGE_LOOKUP:
    case STAGE_CONNECT:
        conn_refuse(c, &timed_out, "the server did not answer in time", "");
        return;
    case STAGE_HELLO:
    case STAGE_INSIDE:
        (void)conn_tell(c, PROXY_FAILED, "the client sent nothing in its tunnel in time", "");
        break;
    case STAGE_FIRST:
    case STAGE_HTTP:
    case STAGE_SOCKS_GREETING:
    case STAGE_SOCKS_REQUEST:
    case STAGE_RELAY:
    case STAGE_REFUSED:
        break;
    }
    conn_close(c);
}

void
conn_set_timer(struct conn *c, unsigned ms)
{
    /* libuv counts from its cached time: a stale one would fire early. */
    uv_update_time(c->proxy->loop);
    (void)uv_timer_start(&c->timer, on_timer, ms, 0);
}

static void
on_refusal_sent(uv_shutdown_t *req, int status)
{
    struct conn *c = req->data;

    if (status != 0) {
        conn_close(c);
    }
}

/* Says no more, and reads until the client has hung up: closing with unread
 * bytes would reset the connection under the words that explain it. */
static void
hang_up(struct conn *c)
{
    c->stage = STAGE_REFUSED;
    c->up.len = 0;
    c->up.shutdown.data = c;
    if (c->up.is_eof ||
        uv_shutdown(&c->up.shutdown, (uv_stream_t *)&c->client, on_refusal_sent) != 0) {
        conn_close(c);
        return;
    }
    conn_set_timer(c, LIMIT_PROXY_LINGER_MS);
    relay_read(&c->up);
}

static bool
say_refusal(struct conn *c, const struct refusal *how, const char *why, const char *hint)
{
    uint8_t reply[SOCKS_REPLY_LEN];

    if (c->stage == STAGE_HELLO) {
        return say(c, tls_hello_denied, sizeof(tls_hello_denied));
    }
    if (c->kind == PROXY_SOCKS && c->stage != STAGE_INSIDE) {
        socks_reply(how->reply, reply);
        return say(c, reply, sizeof(reply));
    }
    buf_reset(&c->out);
    if (proxy_http_answer(&c->out, how->status, why, hint) != SY_E_OK) {
        conn_close(c);
        return false;
    }
    return say(c, c->out.data, c->out.len);
}

void
conn_refuse(struct conn *c, const struct refusal *how, const char *why, const char *hint)
{
    if (!conn_tell(c, how->outcome, why, hint) || !say_refusal(c, how, why, hint)) {
        return;
    }
    hang_up(c);
    dial_stop(c);
}

/* Host and port are known. */
static void
judge(struct conn *c)
{
    char why[sizeof(c->judgement.why)];
    char hint[sizeof(c->judgement.hint)];

    relay_pause(&c->up);
    allow_judge_host(c->proxy->list, &c->host, c->port, &c->judgement);
    if (c->proxy->options.judge != NULL) {
        c->proxy->options.judge(c->proxy->options.arg, protocol_of(c), &c->host, c->port,
                                &c->judgement);
    }
    if (c->judgement.is_allowed) {
        dial_start(c);
        return;
    }
    memcpy(why, c->judgement.why, sizeof(why));
    memcpy(hint, c->judgement.hint, sizeof(hint));
    conn_refuse(c, &denied, why, hint);
}

static void
step_first(struct conn *c)
{
    if (c->up.len == 0) {
        return;
    }
    if (c->kind == PROXY_ANY) {
        c->kind = c->up.data[0] == 4 || c->up.data[0] == 5 ? PROXY_SOCKS : PROXY_HTTP;
    }
    c->stage = c->kind == PROXY_SOCKS ? STAGE_SOCKS_GREETING : STAGE_HTTP;
}

/* The request that is about to be judged, or inside a tunnel. PARSE_DONE: its
 * new head is in c->out, and what comes behind it is bounded. */
static enum parse_result
read_request(struct conn *c)
{
    struct sy_error err = {.code = SY_E_OK};
    struct refusal how = malformed;
    enum parse_result rc = proxy_http_parse(&c->parser, &c->http, c->up.data, c->up.len, &err);

    if (rc == PARSE_BAD) {
        how.status = c->http.status;
        conn_refuse(c, &how, err.msg, "");
    }
    if (rc != PARSE_DONE) {
        return rc;
    }
    if (!c->http.is_connect) {
        proxy_http_body_init(&c->body, &c->http);
        c->is_body = true;
        if (proxy_http_rewrite(&c->out, &c->http, c->up.data) != SY_E_OK) {
            conn_refuse(c, &out_of_memory, "the proxy is out of memory", "");
            return PARSE_BAD;
        }
    }
    relay_drop(&c->up, c->http.head_len);
    return PARSE_DONE;
}

static void
step_http(struct conn *c)
{
    if (read_request(c) == PARSE_DONE) {
        c->is_tunnel = c->http.is_connect;
        c->host = c->http.host;
        c->port = c->http.port;
        judge(c);
    }
}

static void
refuse_socks(struct conn *c, const struct socks *s, const char *why)
{
    if (conn_tell(c, PROXY_MALFORMED, why, "") && say(c, s->reply, s->reply_len)) {
        hang_up(c);
    }
}

static void
step_greeting(struct conn *c)
{
    struct sy_error err = {.code = SY_E_OK};
    struct socks s;

    switch (socks_parse_greeting(&s, (const uint8_t *)c->up.data, c->up.len, &err)) {
    case PARSE_MORE:
        return;
    case PARSE_BAD:
        refuse_socks(c, &s, err.msg);
        return;
    case PARSE_DONE:
        break;
    }
    if (say(c, s.reply, s.reply_len)) {
        relay_drop(&c->up, s.used);
        c->stage = STAGE_SOCKS_REQUEST;
    }
}

static void
step_request(struct conn *c)
{
    struct sy_error err = {.code = SY_E_OK};
    struct socks s;

    switch (socks_parse_request(&s, (const uint8_t *)c->up.data, c->up.len, &err)) {
    case PARSE_MORE:
        return;
    case PARSE_BAD:
        refuse_socks(c, &s, err.msg);
        return;
    case PARSE_DONE:
        break;
    }
    c->host = s.host;
    c->port = s.port;
    relay_drop(&c->up, s.used);
    judge(c);
}

static void
on_head_written(uv_write_t *req, int status)
{
    struct conn *c = req->data;

    if (c->is_closing) {
        return;
    }
    if (status != 0) {
        conn_close(c);
        return;
    }
    buf_fini(&c->out);
    relay_pump(&c->up);
}

static void
relay_start(struct conn *c)
{
    uv_buf_t head = uv_buf_init(c->out.data, (unsigned)c->out.len);

    if (!conn_tell(c, PROXY_ALLOWED, "", "")) {
        return;
    }
    c->stage = STAGE_RELAY;
    (void)uv_timer_stop(&c->timer);
    c->up.to = (uv_stream_t *)&c->server;
    relay_pump(&c->down);
    if (c->is_closing) {
        return;
    }
    if (!c->is_body) {
        relay_pump(&c->up);
        return;
    }
    /* What came after the head is bounded like all that follows it. */
    c->up.len = proxy_http_body_feed(&c->body, c->up.data, c->up.len);
    c->out_write.data = c;
    if (uv_write(&c->out_write, (uv_stream_t *)&c->server, &head, 1, on_head_written) != 0) {
        conn_close(c);
    }
}

static void
step_inside(struct conn *c)
{
    if (read_request(c) == PARSE_DONE) {
        relay_start(c);
    }
}

static void
step_hello(struct conn *c)
{
    struct sy_error err = {.code = SY_E_OK};
    struct tls_hello hello;

    switch (tls_hello_parse(&hello, (const uint8_t *)c->up.data, c->up.len, &err)) {
    case PARSE_MORE:
        return;
    case PARSE_BAD:
        conn_refuse(c, &denied, err.msg, "");
        return;
    case PARSE_DONE:
        break;
    }
    if (tls_hello_check(&hello, &c->host, &err) != SY_E_OK) {
        conn_refuse(c, &denied, err.msg, "");
        return;
    }
    relay_start(c);
}

void
conn_connected(struct conn *c)
{
    static const char established[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
    uint8_t reply[SOCKS_REPLY_LEN];

    (void)uv_tcp_nodelay(&c->server, 1);
    c->down.data = mem_alloc(LIMIT_PROXY_HEAD);
    if (c->down.data == NULL) {
        conn_refuse(c, &out_of_memory, "the proxy is out of memory", "");
        return;
    }
    if (c->is_body) {
        relay_start(c);
        return;
    }
    socks_reply(SOCKS_OK, reply);
    if (c->kind == PROXY_SOCKS ? !say(c, reply, sizeof(reply))
                               : !say(c, established, sizeof(established) - 1)) {
        return;
    }
    if (content_of(c) == PROXY_CONTENT_UNCHECKED) {
        relay_start(c);
        return;
    }
    c->stage = content_of(c) == PROXY_CONTENT_TLS ? STAGE_HELLO : STAGE_INSIDE;
    c->parser = (struct proxy_http_parser){.tunnel = &c->host, .tunnel_port = c->port};
    conn_set_timer(c, c->proxy->options.head_ms);
    conn_step(c);
}

/* The client has hung up before its request was whole. */
static void
step_end(struct conn *c)
{
    if (c->stage == STAGE_HELLO || c->stage == STAGE_INSIDE) {
        (void)conn_tell(c, PROXY_FAILED, "the client hung up before it used its tunnel", "");
    }
    conn_close(c);
}

static void
step_once(struct conn *c)
{
    switch (c->stage) {
    case STAGE_FIRST:
        step_first(c);
        return;
    case STAGE_HTTP:
        step_http(c);
        return;
    case STAGE_SOCKS_GREETING:
        step_greeting(c);
        return;
    case STAGE_SOCKS_REQUEST:
        step_request(c);
        return;
    case STAGE_HELLO:
        step_hello(c);
        return;
    case STAGE_INSIDE:
        step_inside(c);
        return;
    case STAGE_REFUSED:
        c->up.len = 0;
        return;
    case STAGE_LOOKUP:
    case STAGE_CONNECT:
    case STAGE_RELAY:
        return;
    }
}

void
conn_step(struct conn *c)
{
    enum stage before;

    do {
        before = c->stage;
        step_once(c);
    } while (!c->is_closing && c->stage != before);

    bool is_reading = c->stage != STAGE_LOOKUP && c->stage != STAGE_CONNECT;

    if (c->is_closing || c->stage == STAGE_RELAY || !is_reading) {
        return;
    }
    if (c->up.is_eof) {
        step_end(c);
        return;
    }
    relay_read(&c->up);
}

static struct conn *
conn_new(struct listener *l)
{
    struct conn *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL) {
        return NULL;
    }
    c->up.data = mem_alloc(LIMIT_PROXY_HEAD);
    if (c->up.data == NULL || uv_tcp_init(l->proxy->loop, &c->client) != 0) {
        mem_free(c->up.data);
        mem_free(c);
        return NULL;
    }
    (void)uv_timer_init(l->proxy->loop, &c->timer); /* Can't fail. */
    c->timer.data = c;
    c->handles = 2;
    c->proxy = l->proxy;
    c->kind = l->kind;
    c->out.max = 2 * (size_t)LIMIT_PROXY_HEAD;
    c->next = l->proxy->conns;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    l->proxy->conns = c;
    l->proxy->conn_count++;
    relay_init(&c->up, c, (uv_stream_t *)&c->client, NULL);
    return c;
}

static bool
is_admitted(const struct listener *l, struct conn *c)
{
    const struct proxy_options *o = &l->proxy->options;
    size_t which = (size_t)(l - l->proxy->listeners);
    uv_os_fd_t fd = -1;

    return o->admit == NULL || (uv_fileno((uv_handle_t *)&c->client, &fd) == 0 &&
                                o->admit(o->arg, which, fd, &c->owner));
}

void
conn_accept(struct listener *l)
{
    bool is_full = l->proxy->conn_count >= l->proxy->options.max_connections;
    struct conn *c = is_full || l->proxy->is_closing ? NULL : conn_new(l);

    if (c == NULL) {
        /* libuv does not poll the socket again until this one was accepted. */
        proxy_wait(l);
        return;
    }
    if (uv_accept((uv_stream_t *)&l->handle, (uv_stream_t *)&c->client) != 0) {
        conn_close(c);
        return;
    }
    if (!is_admitted(l, c)) {
        conn_close(c);
        return;
    }
    (void)uv_tcp_nodelay(&c->client, 1);
    conn_set_timer(c, l->proxy->options.head_ms);
    conn_step(c);
}
