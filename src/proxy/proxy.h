#ifndef SY_PROXY_PROXY_H
#define SY_PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proxy/address.h"
#include "proxy/allow.h"

/*
 * The network proxy: HTTP (CONNECT and absolute form) and SOCKS5 on listening
 * sockets that are handed to it, and out of them only what an allow list names.
 * Sockets keep the network namespace in which they were made, so commands
 * inside a namespace reach it while it dials from outside. It knows neither
 * sandbox nor process.
 *
 * Each request is judged by itself: host and port, then every address that the
 * name resolves to (once, and that very address is dialled), then, in tunnels to
 * port 443, the server name of the TLS hello, and in tunnels to port 80 the HTTP
 * request. One HTTP request a connection.
 */

enum proxy_kind { PROXY_ANY, PROXY_HTTP, PROXY_SOCKS };

/* ALLOWED: bytes went on. DENIED: by the list, or by an address or a server
 * name that is not what was allowed. MALFORMED: no parser could tell safely
 * what was asked. FAILED: allowed, but it could not be reached. */
enum proxy_outcome { PROXY_ALLOWED, PROXY_DENIED, PROXY_MALFORMED, PROXY_FAILED };
const char *proxy_outcome_name(enum proxy_outcome o);

/* What is known of what goes through: one HTTP request, all of it judged; TLS
 * whose server name was checked; anything else, unchecked (a tunnel to another
 * port than 80 and 443). */
enum proxy_content { PROXY_CONTENT_HTTP, PROXY_CONTENT_TLS, PROXY_CONTENT_UNCHECKED };

/* Texts are borrowed for the time of the callback; never NULL. */
struct proxy_verdict {
    uint64_t owner; /* of the connection, as proxy_admit_fn said */
    enum proxy_outcome outcome;
    enum proxy_content content;
    const char *protocol; /* "http", "connect", "socks5" */
    const char *method;   /* of HTTP, else "" */
    const char *host;     /* "" if it could not be told */
    uint16_t port;
    const char *address; /* that was dialled or refused, "" if it did not get so far */
    const char *rule;    /* the entry that allowed it, else "" */
    const char *why;     /* of what was not allowed: one sentence */
    const char *hint;    /* the entry of network.allow that would allow it, "" if none would */
};

/* Once for each request. May call proxy_close. */
typedef void proxy_verdict_fn(void *arg, const struct proxy_verdict *v);

/* Tests' resolver: writes up to max addresses, returns how many. */
typedef size_t proxy_resolve_fn(void *arg, const char *name, struct address *ret, size_t max);

/*
 * Whose is this connection, which has just been accepted (fd is borrowed) by the listening socket
 * that was the `listener`-th, from 0, to be handed over? False: nobody's, it is hung up on.
 */
typedef bool proxy_admit_fn(void *arg, size_t listener, int fd, uint64_t *ret_owner);

/*
 * A second word on what a request names, after the list's: it may refuse what the list allows, and
 * allow what the list does not name. `protocol` is that of struct proxy_verdict. Addresses are
 * judged afterwards all the same.
 */
typedef void proxy_judge_fn(void *arg, const char *protocol, const struct host *h, uint16_t port,
                            struct judgement *j);

struct proxy_options {
    proxy_admit_fn *admit;        /* NULL: all are, of owner 0 */
    proxy_verdict_fn *on_verdict; /* may be NULL */
    proxy_judge_fn *judge;        /* may be NULL */
    proxy_resolve_fn *resolve;    /* NULL: the system's, in libuv's threads */
    void *arg;                    /* of all four */
    unsigned max_connections;     /* 0: LIMIT_PROXY_CONNECTIONS; so below */
    unsigned head_ms;
    unsigned connect_ms;
    unsigned half_ms;
    uint16_t tls_port;  /* 0: 443. Tests may not listen there */
    uint16_t http_port; /* 0: 80 */
};

struct proxy;
struct uv_loop_s;

/* Loop and list are borrowed until the proxy is closed; options are copied. */
enum sy_code proxy_new(struct proxy **ret, struct uv_loop_s *loop, const struct allow_list *list,
                       const struct proxy_options *options, struct sy_error *err) SY_NODISCARD;

/* Serves a bound TCP socket; takes *fd (-1 then), also when it fails. At most
 * PROXY_LISTENERS. */
#define PROXY_LISTENERS 4
enum sy_code proxy_listen_fd(struct proxy *p, int *fd, enum proxy_kind kind,
                             struct sy_error *err) SY_NODISCARD;

/* Ends all connections of an owner; no verdict of them comes any more. */
void proxy_end_owner(struct proxy *p, uint64_t owner);

size_t proxy_connection_count(const struct proxy *p);

/* Ends every connection; the proxy is freed, then `done` is called (may be
 * NULL), from the loop. No verdict comes after this call. */
typedef void proxy_closed_fn(void *arg);
void proxy_close(struct proxy *p, proxy_closed_fn *done, void *arg);

#endif
