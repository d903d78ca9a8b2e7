#include "proxy/http.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "proxy/http_internal.h"

/* More than any client sends; comparing them one with another stays cheap. */
#define FIELDS_MAX 128

static enum parse_result
bad(struct proxy_http *ret, int status, struct sy_error *err, const char *why)
{
    ret->status = status;
    (void)sy_err_set(err, SY_E_PARSE, "%s", why);
    return PARSE_BAD;
}

bool
http_is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static const char *
bad_byte(char c, char before)
{
    if (c == '\n') {
        return before == '\r' ? NULL : "the request has a bare line feed: lines end with CR LF";
    }
    if (before == '\r') {
        return "the request has a bare carriage return: lines end with CR LF";
    }
    if (c == 0x16) {
        return "this is TLS, the proxy speaks plain HTTP: its URL begins with http://";
    }
    if (c == 0x7f || ((unsigned char)c < 0x20 && c != '\t' && c != '\r')) {
        return "the request has a control character";
    }
    return NULL;
}

/* Looks at each byte once, over all calls. PARSE_DONE: *ret_len is the head's. */
static enum parse_result
scan(struct proxy_http_parser *p, size_t *ret_len, const char *data, size_t len, const char **why)
{
    char before = '\0';

    for (; p->scanned < len; p->scanned++) {
        size_t i = p->scanned;

        if (i > 0) {
            before = data[i - 1];
        }
        *why = bad_byte(data[i], before);
        if (*why == NULL && i == 0 && !http_is_token(data[0])) {
            *why = "this is no HTTP request";
        }
        if (*why != NULL) {
            return PARSE_BAD;
        }
        if (i >= 3 && data[i] == '\n' && memcmp(data + i - 3, "\r\n\r\n", 4) == 0) {
            *ret_len = i + 1;
            return PARSE_DONE;
        }
    }
    return PARSE_MORE;
}

bool
http_field_next(const char *data, size_t head_len, size_t *at, struct http_field *ret,
                bool *ret_is_bad)
{
    const char *line = data + *at;
    const char *end = memchr(line, '\r', head_len - *at);
    size_t n = 0;

    *ret_is_bad = false;
    if (end == line || end == NULL) {
        return false;
    }
    while (line + n < end && http_is_token(line[n])) {
        n++;
    }
    if (n == 0 || line[n] != ':') {
        *ret_is_bad = true;
        return false;
    }
    *ret = (struct http_field){.name = line, .name_len = n, .value = line + n + 1};
    while (ret->value < end && (*ret->value == ' ' || *ret->value == '\t')) {
        ret->value++;
    }
    ret->value_len = (size_t)(end - ret->value);
    while (ret->value_len > 0 &&
           (ret->value[ret->value_len - 1] == ' ' || ret->value[ret->value_len - 1] == '\t')) {
        ret->value_len--;
    }
    *at = (size_t)(end - data) + 2;
    return true;
}

bool
http_field_is(const struct http_field *f, const char *name)
{
    return f->name_len == strlen(name) && strncasecmp(f->name, name, f->name_len) == 0;
}

/* A part of the head. */
struct span {
    const char *data;
    size_t from;
    size_t to;
};

/* http://host[:port][/path] */
static enum parse_result
parse_absolute(struct proxy_http *ret, struct span target, struct sy_error *err)
{
    static const char scheme[] = "http://";
    const char *data = target.data;
    size_t from = target.from;
    size_t to = target.to;
    size_t at = from + sizeof(scheme) - 1;
    bool has_port = false;

    if (at > to || strncasecmp(data + from, scheme, sizeof(scheme) - 1) != 0) {
        if (data[from] == '/') {
            return bad(ret, 400, err,
                       "this is a proxy, not a server: the request must name a whole http:// URL");
        }
        if (to - from >= 8 && strncasecmp(data + from, "https://", 8) == 0) {
            return bad(ret, 400, err, "https:// goes through CONNECT host:443, not in the clear");
        }
        return bad(ret, 400, err, "the request's target is no http:// URL");
    }

    size_t end = at;

    while (end < to && data[end] != '/' && data[end] != '?' && data[end] != '#') {
        end++;
    }
    ret->port = 80;
    if (host_parse_authority(&ret->host, &ret->port, &has_port, data + at, end - at, err) !=
        SY_E_OK) {
        ret->status = 400;
        return PARSE_BAD;
    }
    if (memchr(data + end, '#', to - end) != NULL) {
        return bad(ret, 400, err, "the request's target has a fragment ('#')");
    }
    ret->path_at = end;
    ret->path_len = to - end;
    return PARSE_DONE;
}

static enum parse_result
parse_version(struct proxy_http *ret, const char *s, size_t len, struct sy_error *err)
{
    if (len != 8 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1')) {
        return bad(ret, len == 8 && memcmp(s, "HTTP/", 5) == 0 ? 505 : 400, err,
                   "the proxy speaks HTTP/1.1 and HTTP/1.0 only");
    }
    ret->is_1_0 = s[7] == '0';
    return PARSE_DONE;
}

/* Inside a tunnel: a path, or a URL of the very host that it leads to. */
static enum parse_result
parse_inner(const struct proxy_http_parser *p, struct proxy_http *ret, struct span target,
            struct sy_error *err)
{
    ret->host = *p->tunnel;
    ret->port = p->tunnel_port;
    if (ret->is_connect) {
        return bad(ret, 400, err, "the request is a CONNECT inside a tunnel");
    }
    if (target.data[target.from] == '/') {
        ret->path_at = target.from;
        ret->path_len = target.to - target.from;
        return PARSE_DONE;
    }

    enum parse_result rc = parse_absolute(ret, target, err);

    if (rc == PARSE_DONE && (!host_equal(&ret->host, p->tunnel) || ret->port != p->tunnel_port)) {
        return bad(ret, 400, err, "the request names another host than its tunnel");
    }
    return rc;
}

static enum parse_result
parse_target(const struct proxy_http_parser *p, struct proxy_http *ret, struct span target,
             struct sy_error *err)
{
    if (p->tunnel != NULL) {
        return parse_inner(p, ret, target, err);
    }
    if (!ret->is_connect) {
        return parse_absolute(ret, target, err);
    }
    if (host_parse_authority(&ret->host, &ret->port, NULL, target.data + target.from,
                             target.to - target.from, err) != SY_E_OK) {
        ret->status = 400;
        return PARSE_BAD;
    }
    return PARSE_DONE;
}

/* METHOD SP target SP version CR LF; *ret_at: behind it. */
static enum parse_result
parse_line(const struct proxy_http_parser *p, struct proxy_http *ret, const char *data,
           size_t *ret_at, struct sy_error *err)
{
    const char *end = memchr(data, '\r', ret->head_len);
    size_t method = 0;

    SY_ASSERT(end != NULL);
    while (http_is_token(data[method])) {
        method++;
    }
    if (method == 0 || data[method] != ' ') {
        return bad(ret, 400, err, "the request line is not 'METHOD target HTTP/1.1'");
    }
    if (method > PROXY_HTTP_METHOD_MAX) {
        return bad(ret, 501, err, "the request's method is longer than 32 characters");
    }
    memcpy(ret->method, data, method);
    ret->is_connect = strcmp(ret->method, "CONNECT") == 0;

    const char *target = data + method + 1;
    const char *space = memchr(target, ' ', (size_t)(end - target));

    if (space == NULL || space == target || memchr(target, '\t', (size_t)(end - target)) != NULL) {
        return bad(ret, 400, err, "the request line is not 'METHOD target HTTP/1.1'");
    }

    enum parse_result rc = parse_version(ret, space + 1, (size_t)(end - space) - 1, err);

    if (rc != PARSE_DONE) {
        return rc;
    }
    *ret_at = (size_t)(end - data) + 2;
    return parse_target(p, ret, (struct span){data, method + 1, (size_t)(space - data)}, err);
}

static enum parse_result
check_host(struct proxy_http *ret, const struct http_field *f, struct sy_error *err)
{
    struct host host;
    uint16_t port = ret->is_connect ? ret->port : 80;
    bool has_port = false;

    if (host_parse_authority(&host, &port, &has_port, f->value, f->value_len, err) != SY_E_OK) {
        ret->status = 400;
        (void)sy_err_wrap(err, "Host header");
        return PARSE_BAD;
    }
    if (!host_equal(&host, &ret->host) || port != ret->port) {
        return bad(ret, 400, err,
                   "the Host header names another host than the request or its tunnel");
    }
    return PARSE_DONE;
}

static enum parse_result
parse_length(struct proxy_http *ret, const struct http_field *f, struct sy_error *err)
{
    uint64_t value = 0;

    if (ret->has_length) {
        return bad(ret, 400, err, "the request has two Content-Length headers");
    }
    if (f->value_len == 0 || f->value_len > 18) {
        return bad(ret, 400, err, "the request's Content-Length is no number");
    }
    for (size_t i = 0; i < f->value_len; i++) {
        if (f->value[i] < '0' || f->value[i] > '9') {
            return bad(ret, 400, err, "the request's Content-Length is no number");
        }
        value = value * 10 + (uint64_t)(f->value[i] - '0');
    }
    ret->has_length = true;
    ret->length = value;
    return PARSE_DONE;
}

static enum parse_result
parse_coding(struct proxy_http *ret, const struct http_field *f, struct sy_error *err)
{
    if (ret->is_chunked) {
        return bad(ret, 400, err, "the request has two Transfer-Encoding headers");
    }
    if (f->value_len != 7 || strncasecmp(f->value, "chunked", 7) != 0) {
        return bad(ret, 400, err, "the request's Transfer-Encoding is not 'chunked' alone");
    }
    if (ret->is_1_0) {
        return bad(ret, 400, err, "the request has a Transfer-Encoding, but is HTTP/1.0");
    }
    ret->is_chunked = true;
    return PARSE_DONE;
}

static enum parse_result
parse_field(struct proxy_http *ret, const struct http_field *f, bool *has_host,
            struct sy_error *err)
{
    if (http_field_is(f, "host")) {
        if (*has_host) {
            return bad(ret, 400, err, "the request has two Host headers");
        }
        *has_host = true;
        return check_host(ret, f, err);
    }
    if (http_field_is(f, "content-length")) {
        return parse_length(ret, f, err);
    }
    if (http_field_is(f, "transfer-encoding")) {
        return parse_coding(ret, f, err);
    }
    return PARSE_DONE;
}

static enum parse_result
parse_fields(struct proxy_http *ret, const char *data, size_t at, struct sy_error *err)
{
    struct http_field f;
    bool has_host = false;
    bool is_bad = false;

    for (unsigned n = 0; http_field_next(data, ret->head_len, &at, &f, &is_bad); n++) {
        if (n == FIELDS_MAX) {
            return bad(ret, 431, err, "the request has more than 128 headers");
        }

        enum parse_result rc = parse_field(ret, &f, &has_host, err);

        if (rc != PARSE_DONE) {
            return rc;
        }
    }
    if (is_bad) {
        return bad(ret, 400, err,
                   data[at] == ' ' || data[at] == '\t'
                       ? "the request has a folded header line"
                       : "the request has a line that is not 'Name: value'");
    }
    if (ret->has_length && ret->is_chunked) {
        return bad(ret, 400, err, "the request has both Content-Length and Transfer-Encoding");
    }
    if (ret->is_connect && (ret->length > 0 || ret->is_chunked)) {
        return bad(ret, 400, err, "a CONNECT request has no body");
    }
    if (!has_host && !ret->is_1_0) {
        return bad(ret, 400, err, "the request has no Host header");
    }
    return PARSE_DONE;
}

enum parse_result
proxy_http_parse(struct proxy_http_parser *p, struct proxy_http *ret, const char *data, size_t len,
                 struct sy_error *err)
{
    const char *why = NULL;
    size_t head_len = 0;
    size_t max = len < LIMIT_PROXY_HEAD ? len : LIMIT_PROXY_HEAD;
    enum parse_result rc = scan(p, &head_len, data, max, &why);
    size_t at = 0;

    memset(ret, 0, sizeof(*ret));
    if (rc == PARSE_BAD) {
        return bad(ret, 400, err, why);
    }
    if (rc == PARSE_MORE && len >= LIMIT_PROXY_HEAD) {
        return bad(ret, 431, err, "the request's head is longer than 32 KiB");
    }
    if (rc == PARSE_MORE) {
        return rc;
    }
    ret->head_len = head_len;
    rc = parse_line(p, ret, data, &at, err);
    return rc == PARSE_DONE ? parse_fields(ret, data, at, err) : rc;
}
