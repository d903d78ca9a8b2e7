#ifndef SY_HTTP_FRAME_H
#define SY_HTTP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What the engine and shellyard-http say to each other: lines "word value", an empty line, then
 * as many bytes as the line `body` says and no more. A request:
 *
 *     shellyard-http 1
 *     method POST
 *     url https://example.org/v1
 *     timeout-ms 5000
 *     max-bytes 65536
 *     header Content-Type: application/json
 *     body 2
 *
 *     {}
 *
 * An answer has `status` (a number) and `type` (the content type, perhaps empty), or `error` (a
 * word) and the sentence as its body. Pure.
 */

/* Borrowed. */
struct frame_request {
    const char *url;
    char *const *headers; /* "Name: value", NULL-terminated; or NULL */
    const char *body;
    size_t len;
    uint32_t timeout_ms; /* from 1 */
    size_t max_bytes;    /* of the answer's body, LIMIT_HTTP_ANSWER at most */
};

/* SY_E_ARG for what can't be said in lines or is no header, SY_E_LIMIT for what is too long. */
enum sy_code frame_write_request(struct buf *ret, const struct frame_request *r,
                                 struct sy_error *err) SY_NODISCARD;
/* Takes the text apart in place, and owns what the request borrows. */
struct frame_parsed {
    struct frame_request request;
    struct strv headers;
};
enum sy_code frame_read_request(struct frame_parsed *ret, struct buf *text,
                                struct sy_error *err) SY_NODISCARD;
void frame_parsed_fini(struct frame_parsed *p);

enum frame_failure {
    FRAME_NONE,
    FRAME_URL,     /* it is none, or of another kind than http and https */
    FRAME_CONNECT, /* no such host, nobody listens, the connection broke */
    FRAME_TLS,     /* the other side could not prove who it is */
    FRAME_TIMEOUT,
    FRAME_SIZE,   /* the answer is longer than was asked for */
    FRAME_ANSWER, /* what came is no HTTP */
    FRAME_OTHER
};

struct frame_answer {
    enum frame_failure failure;
    int status;       /* 100 to 999, FRAME_NONE */
    const char *type; /* content type, "" unknown */
    const char *body; /* or the sentence */
    size_t len;
};

enum sy_code frame_write_answer(struct buf *ret, const struct frame_answer *a) SY_NODISCARD;
/* Takes the text apart in place; the answer borrows from it. SY_E_PARSE for what is none. */
enum sy_code frame_read_answer(struct frame_answer *ret, struct buf *text,
                               struct sy_error *err) SY_NODISCARD;

#endif
