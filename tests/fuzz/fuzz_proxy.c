/*
 * The network proxy's parsers: every input is given to each of them, whole and
 * byte by byte. What comes out must not depend on how the bytes came, must be
 * the same when it is read again, and must hold nothing that another parser
 * could read in another way.
 */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz_check.h"
#include "proxy/allow.h"
#include "proxy/http.h"
#include "proxy/socks.h"
#include "proxy/tls_hello.h"

/* Longer inputs are read whole only: reading all prefixes costs the square. */
#define PREFIXES_MAX 600U
#define ENTRIES_MAX  16U

static void
check_sentence(const struct sy_error *err)
{
    CHECK(err->msg[0] != '\0');
    for (const char *s = err->msg; *s != '\0'; s++) {
        CHECK(*s >= 0x20 && *s < 0x7f);
    }
}

/* A host that was accepted is in its one normal form. */
static void
check_host(const struct host *h)
{
    char text[HOST_AUTHORITY_MAX];
    struct host again;

    host_authority(h, 0, text);
    CHECK(host_parse(&again, text, strlen(text), NULL) == SY_E_OK);
    CHECK(host_equal(h, &again) && strcmp(h->text, again.text) == 0);
    CHECK(strlen(h->text) > 0 && strlen(h->text) <= HOST_LENGTH_MAX);
    for (const char *s = h->text; *s != '\0'; s++) {
        CHECK((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') ||
              strchr(h->kind == HOST_NAME ? "-_." : ".:", *s) != NULL);
    }
    if (h->kind == HOST_ADDRESS) {
        CHECK(!address_is_mapped(&h->address));
        (void)address_classify(&h->address);
    }
}

/* Nothing is allowed by the empty list; the hint allows it, and only with its
 * port. */
static void
check_judged(const struct host *h, uint16_t port)
{
    struct allow_list *list = NULL;
    struct judgement j;

    CHECK(allow_new(&list, NULL, 0, NULL) == SY_E_OK);
    allow_judge_host(list, h, port, &j);
    CHECK(!j.is_allowed && j.why[0] != '\0');
    allow_free(list);

    const char *const hint[] = {j.hint};

    /* "*.com" and its like are no hints: a host never begins with '*'. */
    CHECK(allow_new(&list, hint, 1, NULL) == SY_E_OK);
    allow_judge_host(list, h, port, &j);
    CHECK(j.is_allowed == (port != 0));
    allow_free(list);
}

static void
try_host(const char *text, size_t len)
{
    struct sy_error err = {.code = SY_E_OK};
    struct host h;
    uint16_t port = 0;
    bool has_port = false;

    if (host_parse(&h, text, len, &err) == SY_E_OK) {
        check_host(&h);
        check_judged(&h, 443);
        CHECK(memchr(text, '\0', len) == NULL && memchr(text, '%', len) == NULL);
    } else {
        check_sentence(&err);
    }
    if (host_parse_authority(&h, &port, &has_port, text, len, &err) == SY_E_OK) {
        check_host(&h);
        CHECK(has_port == (port != 0));
        check_judged(&h, port);
    } else {
        check_sentence(&err);
    }
}

static void
try_entries(char *text, size_t len)
{
    const char *entries[ENTRIES_MAX];
    struct sy_error err = {.code = SY_E_OK};
    struct allow_list *list = NULL;
    size_t n = 0;

    for (size_t at = 0; at <= len && n < ENTRIES_MAX; n++) {
        entries[n] = text + at;
        at += strcspn(text + at, "\n") + 1;
        text[at - 1 < len ? at - 1 : len] = '\0';
    }
    if (allow_new(&list, entries, n, &err) != SY_E_OK) {
        CHECK(err.code == SY_E_CONFIG);
        check_sentence(&err);
        return;
    }

    struct host h;
    struct judgement j;
    bool is_named = false;

    for (size_t i = 0; i < n; i++) {
        is_named = is_named || strcasestr(entries[i], "named-by-nobody") != NULL;
    }
    CHECK(host_parse(&h, "x.named-by-nobody", 17, NULL) == SY_E_OK);
    allow_judge_host(list, &h, 443, &j);
    CHECK(!j.is_allowed || is_named);
    allow_free(list);
}

/* What is sent on: one Host, one Connection, no CR or LF but at line ends, and
 * it is read as the same request by a reader that knows no proxy. */
static void
check_rewritten(const struct proxy_http *req, const char *data)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4 * (size_t)LIMIT_PROXY_HEAD};
    size_t hosts = 0;
    size_t connections = 0;

    CHECK(proxy_http_rewrite(&out, req, data) == SY_E_OK);
    CHECK(strncmp(out.data, req->method, strlen(req->method)) == 0);
    CHECK(out.data[strlen(req->method)] == ' ' && out.data[strlen(req->method) + 1] == '/');
    CHECK(strlen(out.data) == out.len);
    for (const char *line = out.data; *line != '\0';) {
        const char *end = strstr(line, "\r\n");

        CHECK(end != NULL);
        CHECK(memchr(line, '\n', (size_t)(end - line)) == NULL);
        hosts += strncasecmp(line, "host:", 5) == 0 ? 1U : 0U;
        connections += strncasecmp(line, "connection:", 11) == 0 ? 1U : 0U;
        CHECK(end != line || end[2] == '\0');
        line = end + 2;
    }
    CHECK(hosts == 1 && connections == 1);
}

/* tunnel: NULL, or the host that an inner request must name. */
static void
try_http(const struct host *tunnel, const char *data, size_t len)
{
    struct proxy_http_parser p = {.tunnel = tunnel, .tunnel_port = 80};
    struct sy_error err = {.code = SY_E_OK};
    struct proxy_http req;
    struct proxy_http other;
    enum parse_result rc = proxy_http_parse(&p, &req, data, len, &err);

    if (rc == PARSE_BAD) {
        check_sentence(&err);
        CHECK(req.status >= 400 && req.status < 600);
    }
    if (rc == PARSE_DONE) {
        CHECK(req.head_len <= len && req.port != 0);
        CHECK(!(req.has_length && req.is_chunked));
        CHECK(tunnel == NULL ||
              (host_equal(tunnel, &req.host) && req.port == 80 && !req.is_connect));
        check_host(&req.host);
        if (!req.is_connect) {
            check_rewritten(&req, data);
        }
    }
    p.scanned = 0;
    for (size_t n = 0; n <= len && len <= PREFIXES_MAX; n++) {
        enum parse_result one = proxy_http_parse(&p, &other, data, n, NULL);

        if (one != PARSE_MORE) {
            CHECK(one == rc && other.head_len == req.head_len);
            break;
        }
        CHECK(n < len || rc == PARSE_MORE);
    }
}

static void
try_body(const char *data, size_t len)
{
    struct proxy_http req = {.is_chunked = true};
    struct proxy_http_body whole;
    struct proxy_http_body bytes;
    size_t sum = 0;

    proxy_http_body_init(&whole, &req);
    proxy_http_body_init(&bytes, &req);

    size_t n = proxy_http_body_feed(&whole, data, len);

    CHECK(n <= len);
    CHECK(n == len || whole.stage == HTTP_BODY_DONE || whole.stage == HTTP_BODY_BAD);
    for (size_t i = 0; i < len; i++) {
        sum += proxy_http_body_feed(&bytes, data + i, 1);
    }
    CHECK(sum == n && whole.stage == bytes.stage);
}

typedef enum parse_result socks_parse_fn(struct socks *, const uint8_t *, size_t,
                                         struct sy_error *);

static void
try_socks(socks_parse_fn *parse, const uint8_t *data, size_t len)
{
    struct sy_error err = {.code = SY_E_OK};
    struct socks s = {.used = 0};
    enum parse_result rc = PARSE_MORE;

    for (size_t n = 0; n <= len && n < 300; n++) {
        enum parse_result before = rc;
        size_t used = s.used;

        rc = parse(&s, data, n, &err);
        CHECK(n == 0 || before == PARSE_MORE || before == rc);
        if (rc == PARSE_DONE) {
            CHECK(s.used <= n && (before != PARSE_DONE || s.used == used));
        }
        CHECK(s.reply_len <= SOCKS_REPLY_LEN);
        if (rc == PARSE_BAD) {
            check_sentence(&err);
        }
    }
    if (rc == PARSE_DONE && parse == socks_parse_request) {
        check_host(&s.host);
        CHECK(s.port != 0);
    }
}

static void
try_hello(const uint8_t *data, size_t len)
{
    struct sy_error err = {.code = SY_E_OK};
    struct tls_hello hello;
    struct tls_hello other;
    enum parse_result rc = tls_hello_parse(&hello, data, len, &err);

    if (rc == PARSE_BAD) {
        check_sentence(&err);
    }
    if (rc == PARSE_DONE && hello.has_name) {
        check_host(&hello.name);
        CHECK(tls_hello_check(&hello, &hello.name, &err) == SY_E_OK);
    }
    for (size_t n = 0; n <= len && len <= PREFIXES_MAX; n++) {
        enum parse_result one = tls_hello_parse(&other, data, n, NULL);

        if (one != PARSE_MORE) {
            CHECK(one == rc && other.has_name == hello.has_name);
            break;
        }
        CHECK(n < len || rc == PARSE_MORE);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2 * (size_t)LIMIT_PROXY_HEAD) {
        return 0;
    }

    struct host tunnel;
    size_t live = mem_live();
    char *text = mem_alloc(size + 1);

    CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    try_host(text, size);
    try_http(NULL, text, size);
    CHECK(host_parse(&tunnel, "a.b", 3, NULL) == SY_E_OK);
    try_http(&tunnel, text, size);
    try_body(text, size);
    try_socks(socks_parse_greeting, data, size);
    try_socks(socks_parse_request, data, size);
    try_hello(data, size);
    try_entries(text, size);
    mem_free(text);
    CHECK(mem_live() == live);
    return 0;
}
