#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "proxy/http.h"
#include "proxy/http_internal.h"

/* Chunk extensions and trailers of one body, all together. */
#define EXTRA_MAX 8192
/* Digits of a chunk's size: no sum of ours can overflow. */
#define DIGITS_MAX 15

static bool
is_in_list(const struct http_field *list, const struct http_field *f)
{
    size_t at = 0;

    while (at < list->value_len) {
        size_t from = at;

        while (at < list->value_len && http_is_token(list->value[at])) {
            at++;
        }
        if (at - from == f->name_len &&
            strncasecmp(list->value + from, f->name, f->name_len) == 0) {
            return true;
        }
        at += at == from || at < list->value_len ? 1 : 0;
    }
    return false;
}

/* Does a Connection header name this one as meant for the proxy alone? */
static bool
is_named_by_connection(const char *data, size_t head_len, size_t at, const struct http_field *f)
{
    struct http_field one;
    bool is_bad = false;

    while (http_field_next(data, head_len, &at, &one, &is_bad)) {
        if (http_field_is(&one, "connection") && is_in_list(&one, f)) {
            return true;
        }
    }
    return false;
}

static bool
is_for_server(const char *data, size_t head_len, size_t first, const struct http_field *f)
{
    static const char *const hop_by_hop[] = {
        "host",
        "connection",
        "keep-alive",
        "upgrade",
        "te",
        "trailer",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
        "http2-settings",
    };

    /* What frames the body is ours to tell: nobody may have it taken out. */
    if (http_field_is(f, "content-length") || http_field_is(f, "transfer-encoding")) {
        return true;
    }
    for (size_t i = 0; i < sizeof(hop_by_hop) / sizeof(hop_by_hop[0]); i++) {
        if (http_field_is(f, hop_by_hop[i])) {
            return false;
        }
    }
    return !is_named_by_connection(data, head_len, first, f);
}

enum sy_code
proxy_http_rewrite(struct buf *out, const struct proxy_http *req, const char *data)
{
    const char *line_end = memchr(data, '\r', req->head_len);
    size_t first = line_end != NULL ? (size_t)(line_end - data) + 2 : req->head_len;
    bool has_slash = req->path_len > 0 && data[req->path_at] == '/';
    char authority[HOST_AUTHORITY_MAX];
    struct http_field f;
    bool is_bad = false;

    host_authority(&req->host, req->port == 80 ? 0 : req->port, authority);

    enum sy_code rc = buf_addf(out, "%s %s", req->method, has_slash ? "" : "/");

    if (rc == SY_E_OK) {
        rc = buf_add(out, data + req->path_at, req->path_len);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, " HTTP/1.%d\r\nHost: %s\r\n", req->is_1_0 ? 0 : 1, authority);
    }
    for (size_t at = first;
         rc == SY_E_OK && http_field_next(data, req->head_len, &at, &f, &is_bad);) {
        if (is_for_server(data, req->head_len, first, &f)) {
            rc = buf_add(out, f.name, (size_t)(f.value - f.name) + f.value_len);
            rc = rc == SY_E_OK ? buf_add_str(out, "\r\n") : rc;
        }
    }
    return rc == SY_E_OK ? buf_add_str(out, "Connection: close\r\n\r\n") : rc;
}

static const char *
reason_of(int status)
{
    switch (status) {
    case 403:
        return "Forbidden by Shellyard";
    case 431:
        return "Request Header Fields Too Large";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Bad Request";
    }
}

enum sy_code
proxy_http_answer(struct buf *out, int status, const char *why, const char *hint)
{
    SY_AUTO(buf_fini) struct buf body = {.max = LIMIT_PROXY_HEAD};
    enum sy_code rc = buf_addf(&body, "Shellyard's network proxy: %s.\n", why);

    if (rc == SY_E_OK && hint[0] != '\0') {
        rc = buf_addf(&body,
                      "A person can allow it by one more entry in Shellyard's configuration:\n"
                      "network.allow: [..., \"%s\"]\n",
                      hint);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out,
                      "HTTP/1.1 %d %s: %s\r\n"
                      "Content-Type: text/plain; charset=utf-8\r\n"
                      "Content-Length: %zu\r\n"
                      "Connection: close\r\n"
                      "\r\n",
                      status, reason_of(status), why, body.len);
    }
    return rc == SY_E_OK ? buf_add(out, body.data, body.len) : rc;
}

void
proxy_http_body_init(struct proxy_http_body *b, const struct proxy_http *req)
{
    memset(b, 0, sizeof(*b));
    b->left = req->length;
    b->stage = req->is_chunked    ? HTTP_BODY_SIZE
               : req->length == 0 ? HTTP_BODY_DONE
                                  : HTTP_BODY_COUNTED;
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum proxy_http_stage
feed_size(struct proxy_http_body *b, char c)
{
    int value = hex_value(c);

    if (value >= 0) {
        b->left = b->left * 16 + (uint64_t)value;
        return ++b->digits <= DIGITS_MAX ? HTTP_BODY_SIZE : HTTP_BODY_BAD;
    }
    if (b->digits == 0) {
        return HTTP_BODY_BAD;
    }
    if (c == ';') {
        return HTTP_BODY_EXTENSION;
    }
    return c == '\r' ? HTTP_BODY_SIZE_LF : HTTP_BODY_BAD;
}

static enum proxy_http_stage
feed_line_byte(struct proxy_http_body *b, char c, enum proxy_http_stage at_cr)
{
    if (c == '\r') {
        return at_cr;
    }
    if (++b->extra > EXTRA_MAX || c == 0x7f || ((unsigned char)c < 0x20 && c != '\t')) {
        return HTTP_BODY_BAD;
    }
    b->is_line_empty = false;
    return b->stage;
}

static enum proxy_http_stage
feed_byte(struct proxy_http_body *b, char c)
{
    switch (b->stage) {
    case HTTP_BODY_SIZE:
        return feed_size(b, c);
    case HTTP_BODY_EXTENSION:
        return feed_line_byte(b, c, HTTP_BODY_SIZE_LF);
    case HTTP_BODY_SIZE_LF:
        b->digits = 0;
        b->is_last = b->left == 0;
        b->is_line_empty = true;
        if (c != '\n') {
            return HTTP_BODY_BAD;
        }
        return b->is_last ? HTTP_BODY_TRAILER : HTTP_BODY_DATA;
    case HTTP_BODY_DATA_CR:
        return c == '\r' ? HTTP_BODY_DATA_LF : HTTP_BODY_BAD;
    case HTTP_BODY_DATA_LF:
        return c == '\n' ? HTTP_BODY_SIZE : HTTP_BODY_BAD;
    case HTTP_BODY_TRAILER:
        return feed_line_byte(b, c, HTTP_BODY_TRAILER_LF);
    case HTTP_BODY_TRAILER_LF:
        if (c != '\n') {
            return HTTP_BODY_BAD;
        }
        if (b->is_line_empty) {
            return HTTP_BODY_DONE;
        }
        b->is_line_empty = true;
        return HTTP_BODY_TRAILER;
    case HTTP_BODY_COUNTED:
    case HTTP_BODY_DATA:
    case HTTP_BODY_DONE:
    case HTTP_BODY_BAD:
        break;
    }
    return HTTP_BODY_BAD;
}

size_t
proxy_http_body_feed(struct proxy_http_body *b, const char *data, size_t len)
{
    size_t at = 0;

    while (at < len && b->stage != HTTP_BODY_DONE && b->stage != HTTP_BODY_BAD) {
        if (b->stage != HTTP_BODY_COUNTED && b->stage != HTTP_BODY_DATA) {
            b->stage = feed_byte(b, data[at]);
            at += b->stage != HTTP_BODY_BAD ? 1 : 0;
            continue;
        }

        size_t n = b->left < len - at ? (size_t)b->left : len - at;

        at += n;
        b->left -= n;
        if (b->left == 0) {
            b->stage = b->stage == HTTP_BODY_COUNTED ? HTTP_BODY_DONE : HTTP_BODY_DATA_CR;
        }
    }
    return at;
}
