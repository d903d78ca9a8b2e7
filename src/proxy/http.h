#ifndef SY_PROXY_HTTP_H
#define SY_PROXY_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proxy/host.h"
#include "proxy/parse.h"

/*
 * Requests to an HTTP proxy, strictly: CONNECT host:port, or a method with an
 * absolute http:// URI. One request a connection: what goes on carries
 * "Connection: close", and nothing after its body is ever sent on.
 */
#define PROXY_HTTP_METHOD_MAX 32

struct proxy_http {
    char method[PROXY_HTTP_METHOD_MAX + 1];
    bool is_connect;
    bool is_1_0;
    bool is_chunked;
    bool has_length;
    uint16_t port;
    int status; /* of a refused request: 400, 431, 501 or 505 */
    uint64_t length;
    struct host host;
    size_t head_len; /* with its empty line */
    size_t path_at;  /* path and query inside the head */
    size_t path_len;
};

/* Zeroed at first. */
struct proxy_http_parser {
    size_t scanned; /* how far earlier calls have looked */
    /* Inside a tunnel: the host (borrowed) and port that it was asked for. The
     * request is then in origin form, and both must be what it names. */
    const struct host *tunnel;
    uint16_t tunnel_port;
};

/*
 * data: all bytes from the connection's first on. PARSE_DONE once the head is
 * whole; PARSE_BAD: ret->status and *err say why. Host must equal the URI's
 * host. Refused: bare CR or LF, NUL and controls, folded lines, more than one
 * Host, both lengths, other codings than chunked, https:// and other schemes,
 * origin form, userinfo, heads above LIMIT_PROXY_HEAD.
 */
enum parse_result proxy_http_parse(struct proxy_http_parser *p, struct proxy_http *ret,
                                   const char *data, size_t len, struct sy_error *err);

/* The head for the server: origin form, one canonical Host, no hop-by-hop
 * headers, "Connection: close". data: what was parsed. */
enum sy_code proxy_http_rewrite(struct buf *out, const struct proxy_http *req,
                                const char *data) SY_NODISCARD;

/* An answer of the proxy's own. why stands in the status line too, since many
 * clients show nothing else of a failed CONNECT; printable ASCII. hint may be
 * "": the entry of network.allow that would allow it. */
enum sy_code proxy_http_answer(struct buf *out, int status, const char *why,
                               const char *hint) SY_NODISCARD;

/* Follows a request's body to its end. */
enum proxy_http_stage {
    HTTP_BODY_COUNTED,
    HTTP_BODY_SIZE,
    HTTP_BODY_EXTENSION,
    HTTP_BODY_SIZE_LF,
    HTTP_BODY_DATA,
    HTTP_BODY_DATA_CR,
    HTTP_BODY_DATA_LF,
    HTTP_BODY_TRAILER,
    HTTP_BODY_TRAILER_LF,
    HTTP_BODY_DONE,
    HTTP_BODY_BAD
};

struct proxy_http_body {
    enum proxy_http_stage stage;
    uint64_t left;
    unsigned digits;
    size_t extra;       /* bytes of extensions and trailers so far */
    bool is_last;       /* the chunk of size 0 was seen */
    bool is_line_empty; /* of a trailer */
};

void proxy_http_body_init(struct proxy_http_body *b, const struct proxy_http *req);
/* How many of the bytes belong to the body. stage is then HTTP_BODY_DONE at its
 * end, HTTP_BODY_BAD if the framing is not plain. */
size_t proxy_http_body_feed(struct proxy_http_body *b, const char *data, size_t len);

#endif
