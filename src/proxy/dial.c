#include <stdio.h>

#include <netdb.h>

#include "proxy/proxy_internal.h"

static const struct refusal denied = {PROXY_DENIED, 403, SOCKS_DENIED};
static const struct refusal failed = {PROXY_FAILED, 502, SOCKS_UNREACHABLE};

static void dial_next(struct conn *c);

static void
on_server_closed(uv_handle_t *handle)
{
    struct flow *f = handle->data;
    struct conn *c = f->conn;

    c->has_server = false;
    c->handles--;
    if (c->is_closing) {
        conn_close(c);
    } else if (c->stage == STAGE_CONNECT) {
        dial_next(c);
    }
}

void
dial_stop(struct conn *c)
{
    if (c->is_looking_up) {
        (void)uv_cancel((uv_req_t *)&c->lookup);
    }
    if (c->has_server && !uv_is_closing((uv_handle_t *)&c->server)) {
        uv_close((uv_handle_t *)&c->server, on_server_closed);
    }
}

/* The next address is dialled once this one's socket is gone. */
static void
on_failure(struct conn *c, int status)
{
    char why[SY_ERR_MSG_MAX + HOST_TEXT_MAX];

    if (c->address_next < c->address_count) {
        dial_stop(c);
        return;
    }
    (void)snprintf(why, sizeof(why), "could not connect to %s port %u (%s): %s", c->host.text,
                   (unsigned)c->port, c->address, uv_strerror(status));
    conn_refuse(c, &failed, why, "");
}

static void
on_connect(uv_connect_t *req, int status)
{
    struct conn *c = req->data;

    if (c->is_closing || c->stage != STAGE_CONNECT) {
        return;
    }
    if (status == 0) {
        conn_connected(c);
    } else {
        on_failure(c, status);
    }
}

static void
dial_one(struct conn *c, const struct address *a)
{
    struct sockaddr_storage to;
    int rc = uv_tcp_init(c->proxy->loop, &c->server);

    address_text(a, c->address);
    if (rc != 0) {
        conn_refuse(c, &failed, "the proxy could not make a socket", "");
        return;
    }
    c->has_server = true;
    c->handles++;
    relay_init(&c->down, c, (uv_stream_t *)&c->server, (uv_stream_t *)&c->client);
    c->connect.data = c;
    address_to_sockaddr(a, c->port, &to);
    rc = uv_tcp_connect(&c->connect, &c->server, (const struct sockaddr *)&to, on_connect);
    if (rc != 0) {
        on_failure(c, rc);
    }
}

/* The next address that passes. All come from one answer of the resolver. */
static void
dial_next(struct conn *c)
{
    struct judgement judgement = c->judgement;

    c->stage = STAGE_CONNECT;
    while (c->address_next < c->address_count) {
        const struct address *a = &c->addresses[c->address_next++];

        judgement = c->judgement;
        if (!allow_judge_address(c->proxy->list, &c->host, c->port, a, &judgement)) {
            address_text(a, c->address);
            continue;
        }
        dial_one(c, a);
        return;
    }
    if (judgement.is_allowed) {
        conn_refuse(c, &failed, "the name has no address that can be reached", "");
    } else {
        conn_refuse(c, &denied, judgement.why, judgement.hint);
    }
}

static void
on_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct conn *c = req->data;

    c->is_looking_up = false;
    for (const struct addrinfo *one = list; one != NULL && c->address_count < LIMIT_PROXY_ADDRESSES;
         one = one->ai_next) {
        if (address_from_sockaddr(&c->addresses[c->address_count], one->ai_addr)) {
            c->address_count++;
        }
    }
    uv_freeaddrinfo(list);
    if (c->is_closing) {
        conn_close(c);
    } else if (c->stage == STAGE_LOOKUP && (status != 0 || c->address_count == 0)) {
        char why[SY_ERR_MSG_MAX + HOST_TEXT_MAX];

        (void)snprintf(why, sizeof(why), "could not resolve %s: %s", c->host.text,
                       status != 0 ? uv_strerror(status) : "it has no address");
        conn_refuse(c, &failed, why, "");
    } else if (c->stage == STAGE_LOOKUP) {
        dial_next(c);
    }
}

static void
look_up(struct conn *c)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    c->lookup.data = c;
    if (uv_getaddrinfo(c->proxy->loop, &c->lookup, on_lookup, c->host.text, NULL, &hints) != 0) {
        conn_refuse(c, &failed, "the proxy could not ask the resolver", "");
        return;
    }
    c->is_looking_up = true;
}

void
dial_start(struct conn *c)
{
    const struct proxy_options *o = &c->proxy->options;

    conn_set_timer(c, o->connect_ms);
    c->stage = STAGE_LOOKUP;
    if (c->host.kind == HOST_ADDRESS) {
        c->addresses[0] = c->host.address;
        c->address_count = 1;
        dial_next(c);
    } else if (o->resolve != NULL) {
        c->address_count = o->resolve(o->arg, c->host.text, c->addresses, LIMIT_PROXY_ADDRESSES);
        SY_ASSERT(c->address_count <= LIMIT_PROXY_ADDRESSES);
        dial_next(c);
    } else {
        look_up(c);
    }
}
