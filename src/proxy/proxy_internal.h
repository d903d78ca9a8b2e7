#ifndef SY_PROXY_PROXY_INTERNAL_H
#define SY_PROXY_PROXY_INTERNAL_H

#include <uv.h>

#include "base/buf.h"
#include "base/limits.h"
#include "proxy/http.h"
#include "proxy/proxy.h"
#include "proxy/socks.h"

struct conn;

struct listener {
    uv_tcp_t handle;
    struct proxy *proxy;
    enum proxy_kind kind;
    bool is_waiting; /* a connection that was not accepted: the proxy is full */
};

struct proxy {
    uv_loop_t *loop;
    const struct allow_list *list;
    struct proxy_options options;
    struct listener listeners[PROXY_LISTENERS];
    size_t listener_count;
    size_t handles; /* open ones; freed when they and the connections are gone */
    struct conn *conns;
    size_t conn_count;
    bool is_closing;
    proxy_closed_fn *done;
    void *done_arg;
    uv_timer_t timer; /* for listeners that wait with no connection left to end */
};

/* One direction. Reading goes on only while its buffer is empty. */
struct flow {
    struct conn *conn;
    uv_stream_t *from;
    uv_stream_t *to;
    uv_write_t write;
    uv_shutdown_t shutdown;
    char *data; /* LIMIT_PROXY_HEAD bytes */
    size_t at;  /* what was written on of len */
    size_t len;
    bool is_reading;
    bool is_writing;
    bool is_eof;
    bool is_shut;
};

enum stage {
    STAGE_FIRST, /* which protocol? */
    STAGE_HTTP,
    STAGE_SOCKS_GREETING,
    STAGE_SOCKS_REQUEST,
    STAGE_LOOKUP,
    STAGE_CONNECT,
    STAGE_HELLO,  /* in a tunnel to the TLS port */
    STAGE_INSIDE, /* in a tunnel to the HTTP port */
    STAGE_RELAY,
    STAGE_REFUSED
};

struct conn {
    struct proxy *proxy;
    uint64_t owner;
    struct conn *next;
    struct conn *prev;
    enum proxy_kind kind;
    enum stage stage;
    unsigned handles; /* open ones; freed at 0 */
    bool is_closing;
    bool is_looking_up;
    bool has_server;
    bool is_told;   /* the verdict */
    bool is_tunnel; /* HTTP CONNECT */
    bool is_body;   /* `body` bounds what goes up */
    uv_tcp_t client;
    uv_tcp_t server;
    uv_timer_t timer;
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    struct flow up;
    struct flow down;
    struct proxy_http_parser parser;
    struct proxy_http http;
    struct proxy_http_body body;
    struct buf out; /* the rewritten head */
    uv_write_t out_write;
    struct host host;
    uint16_t port;
    struct judgement judgement;
    struct address addresses[LIMIT_PROXY_ADDRESSES];
    size_t address_count;
    size_t address_next;
    char address[ADDRESS_TEXT_MAX];
};

/* conn.c */
/* Takes a waiting connection of the listener. */
void conn_accept(struct listener *l);
/* Ends it; its memory goes in a callback of the loop. May be called twice. */
void conn_close(struct conn *c);
/* More bytes came from the client, or their end. */
void conn_step(struct conn *c);
/* false: the connection is closing, touch it no more. */
bool conn_tell(struct conn *c, enum proxy_outcome outcome, const char *why, const char *hint);

/* dial.c: resolves, checks, connects; then conn_connected or conn_refuse. */
void dial_start(struct conn *c);
void dial_stop(struct conn *c);
void conn_connected(struct conn *c);

/* How a refusal is said in each protocol. */
struct refusal {
    enum proxy_outcome outcome;
    int status; /* HTTP */
    enum socks_reply reply;
};
void conn_refuse(struct conn *c, const struct refusal *how, const char *why, const char *hint);
void conn_set_timer(struct conn *c, unsigned ms);

/* relay.c */
void relay_init(struct flow *f, struct conn *c, uv_stream_t *from, uv_stream_t *to);
/* Reads from the client before it is relayed: bytes are added to f->data. */
void relay_read(struct flow *f);
void relay_pause(struct flow *f);
/* Forgets the first n bytes. */
void relay_drop(struct flow *f, size_t n);
/* Writes what there is, then reads on. */
void relay_pump(struct flow *f);

/* proxy.c */
void proxy_conn_gone(struct proxy *p);
/* The listener's next connection is accepted when one has ended, or later. */
void proxy_wait(struct listener *l);

#endif
