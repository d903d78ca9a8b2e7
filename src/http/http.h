#ifndef SY_HTTP_HTTP_H
#define SY_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * One HTTP POST, on a libuv loop. A program of its own, shellyard-http, makes the connection
 * (docs/adr/0015-http-in-a-program-of-its-own.md): one start for each exchange, some 10 ms.
 * http and https alone, certificates always verified, no redirect followed, no cookie, no
 * user name in a URL; a proxy and other certificates as the usual variables say.
 */
struct uv_loop_s;

/* What the exchanges of one engine share. Borrowed as long as one goes on. */
struct http_client {
    struct uv_loop_s *loop;
    const char *helper;        /* shellyard-http, absolute; NULL: this installation has none */
    char *const *environ_list; /* of which it gets what is about proxies and certificates */
    bool keeps_no_loop;        /* a loop that has nothing else may end; then http_cancel */
};

/* Borrowed for the call of http_post alone. */
struct http_request {
    const char *url;
    char *const *headers; /* "Name: value", NULL-terminated; or NULL. Secrets are fine here */
    const char *body;
    size_t len;
    uint32_t timeout_ms; /* in all; from 1 */
    size_t max_bytes;    /* of the answer's body, LIMIT_HTTP_ANSWER at most */
};

/* Borrowed for the callback. */
struct http_answer {
    struct sy_error err; /* code not SY_E_OK: there was no answer, for that reason */
    int status;          /* whatever the server said, 500 too */
    const char *type;
    const char *body; /* any bytes, and a NUL behind them */
    size_t len;
};

/*
 * Exactly once, from the loop, never from inside http_post, unless the exchange was cancelled. May
 * start another one. Codes: SY_E_ARG bad URL, SY_E_NOTFOUND not reached, SY_E_DENIED certificate
 * refused, SY_E_LIMIT out of time or answer too long, SY_E_PARSE no HTTP; any other: our own fault.
 */
typedef void http_done_fn(void *arg, const struct http_answer *answer);

struct http_exchange; /* gone once `done` was called */

/* SY_E_NOTFOUND: no shellyard-http. */
enum sy_code http_post(struct http_exchange **ret, const struct http_client *client,
                       const struct http_request *request, http_done_fn *done, void *arg,
                       struct sy_error *err) SY_NODISCARD;
/* `done` will not be called. Ends the program; blocks no longer than the kernel takes to kill it.
 * Accepts NULL. */
void http_cancel(struct http_exchange *x);

#endif
