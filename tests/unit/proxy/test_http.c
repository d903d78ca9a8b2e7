#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "proxy/http.h"

static enum parse_result
parse(struct proxy_http *ret, const char *text, size_t len, struct sy_error *err)
{
    struct proxy_http_parser p = {.scanned = 0};

    return proxy_http_parse(&p, ret, text, len, err);
}

static const struct {
    const char *text;
    const char *method;
    const char *host;
    uint16_t port;
    const char *head; /* what goes on; NULL: CONNECT */
} good[] = {
    {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",                    "CONNECT", "example.com",
     443,                                                                                                                    NULL                                                                                    },
    {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\nProxy-Connection: x\r\n\r\n",
     "CONNECT",                                                                                         "example.com", 443,  NULL                                                                                    },
    {"CONNECT EXAMPLE.com.:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",                   "CONNECT", "example.com",
     443,                                                                                                                    NULL                                                                                    },
    {"CONNECT example.com:22 HTTP/1.0\r\n\r\n",                                              "CONNECT", "example.com", 22,   NULL                                                                                    },
    {"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nContent-Length: 0\r\n\r\n",           "CONNECT", "::1",
     443,                                                                                                                    NULL                                                                                    },
    {"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\n\r\n",                     "GET",     "example.com", 80,
     "GET /a?b HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"                                                                                                                                           },
    {"GET http://example.com HTTP/1.1\r\nHost: example.com:80\r\n\r\n",                      "GET",     "example.com", 80,
     "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"                                                                                                                                              },
    {"GET HTTP://Example.COM:8080?q HTTP/1.1\r\nHost:example.com:8080 \r\n\r\n",             "GET",
     "example.com",                                                                                                    8080,
     "GET /?q HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\n\r\n"                                                                                                                                       },
    {"GET http://[2001:db8::1]/ HTTP/1.0\r\n\r\n",                                           "GET",     "2001:db8::1", 80,
     "GET / HTTP/1.0\r\nHost: [2001:db8::1]\r\nConnection: close\r\n\r\n"                                                                                                                                            },
    {"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nContent-Length: 12\r\nX-A:  1 \r\n\r\n",     "POST",
     "a.b",                                                                                                            80,
     "POST / HTTP/1.1\r\nHost: a.b\r\nContent-Length: 12\r\nX-A:  1\r\n"
     "Connection: close\r\n\r\n"                                                                                                                                                                                     },
    {"PUT http://a.b/ HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\n\r\n",          "PUT",     "a.b",
     80,                                                                                                                     "PUT / HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"},
 /* Hop by hop, and what Connection names, is the proxy's; the framing is not. */
    {"GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\nConnection: keep-alive, X-Secret,Content-Length\r\n"
     "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nX-Secret: 1\r\n"
     "Upgrade: h2c\r\nHTTP2-Settings: A\r\nTE: trailers\r\nKeep-Alive: 5\r\nContent-Length: 3\r\n"
     "Accept: */*\r\nX-Secret-Not: 2\r\n\r\n",                                          "GET",     "a.b",         80,
     "GET / HTTP/1.1\r\nHost: a.b\r\nContent-Length: 3\r\nAccept: */*\r\nX-Secret-Not: 2\r\n"
     "Connection: close\r\n\r\n"                                                                                                                                                                                     },
};

static const struct {
    const char *text;
    size_t len;
    int status;
    const char *why;
} refused[] = {
#define R(text, status, why)                                                                       \
    {                                                                                              \
        text, sizeof(text) - 1, status, why                                                        \
    }
#define GET(fields) "GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n" fields "\r\n"
    R("GET / HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "not a server"),
    R("GET a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no http:// URL"),
    R("GET https://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "CONNECT"),
    R("GET ftp://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no http:// URL"),
    R("GET http:/a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no http:// URL"),
    R("GET http:///a HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "empty"),
    R("OPTIONS * HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no http:// URL"),
    R("GET http://u:@a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "'@'"),
    R("GET http://u@a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "'@'"),
    R("GET http://a.b\\@evil/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "'a.b\\x5c@evil'"),
    R("GET http://a.b#@evil/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "fragment"),
    R("GET http://a%2eb/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "'%'"),
    R("GET http://a.b:0/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "1 to 65535"),
    R("GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n", 400, "IPv4"),
    R("GET http://a.b/ HTTP/1.1\r\nHost: evil\r\n\r\n", 400, "another host"),
    R("GET http://a.b/ HTTP/1.1\r\nHost: a.b:81\r\n\r\n", 400, "another host"),
    R("GET http://a.b/ HTTP/1.1\r\nHost: a.b, evil\r\n\r\n", 400, "Host header"),
    R("GET http://a.b/ HTTP/1.1\r\nHost:\r\n\r\n", 400, "empty"),
    R("GET http://a.b/ HTTP/1.1\r\n\r\n", 400, "no Host"),
    R(GET("Host: a.b\r\n"), 400, "two Host"),
    R(GET("HOST: evil\r\n"), 400, "two Host"),
    R(GET("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400, "both"),
    R(GET("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 400, "both"),
    R(GET("Content-Length: 1\r\nContent-Length: 1\r\n"), 400, "two Content-Length"),
    R(GET("Content-Length: +1\r\n"), 400, "no number"),
    R(GET("Content-Length: 1,1\r\n"), 400, "no number"),
    R(GET("Content-Length: 0x1\r\n"), 400, "no number"),
    R(GET("Content-Length:\r\n"), 400, "no number"),
    R(GET("Content-Length: 1234567890123456789\r\n"), 400, "no number"),
    R(GET("Transfer-Encoding: gzip, chunked\r\n"), 400, "'chunked' alone"),
    R(GET("Transfer-Encoding: identity\r\n"), 400, "'chunked' alone"),
    R(GET("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400, "two Transfer"),
    R("GET http://a.b/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0"),
    R(GET("X: 1\r\n folded\r\n"), 400, "folded"),
    R(GET("X: 1\r\n\tfolded\r\n"), 400, "folded"),
    R("GET http://a.b/ HTTP/1.1\r\n Host: a.b\r\n\r\n", 400, "folded"),
    R(GET("X : 1\r\n"), 400, "'Name: value'"),
    R(GET("Transfer-Encoding : chunked\r\n"), 400, "'Name: value'"),
    R(GET(": 1\r\n"), 400, "'Name: value'"),
    R(GET("nothing\r\n"), 400, "'Name: value'"),
    R(GET("X: 1\nHost: evil\r\n"), 400, "bare line feed"),
    R("GET http://a.b/ HTTP/1.1\nHost: a.b\n\n", 400, "bare line feed"),
    R(GET("X: 1\rHost: evil\r\n"), 400, "bare carriage"),
    R(GET("X: \0\r\n"), 400, "control"),
    R(GET("X: \x1b\r\n"), 400, "control"),
    R(GET("X: \x7f\r\n"), 400, "control"),
    R("GET  http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "request line"),
    R("GET http://a.b/ x HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "HTTP/1.1"),
    R("GET http://a.b/\tHTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "request line"),
    R("GET http://a.b/\r\nHost: a.b\r\n\r\n", 400, "request line"),
    R("GET\r\n\r\n", 400, "request line"),
    R("GET http://a.b/ HTTP/1.2\r\nHost: a.b\r\n\r\n", 505, "HTTP/1.1"),
    R("GET http://a.b/ HTTP/2.0\r\nHost: a.b\r\n\r\n", 505, "HTTP/1.1"),
    R("GET http://a.b/ http/1.1\r\nHost: a.b\r\n\r\n", 400, "HTTP/1.1"),
    R("PRI * HTTP/2.0\r\n\r\n", 505, "HTTP/1.1"),
    R("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA http://a.b/ HTTP/1.1\r\n\r\n", 501, "method"),
    R("G<T http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "request line"),
    R("\r\nGET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no HTTP request"),
    R("\x16\x03\x01\x02", 400, "TLS"),
    R("CONNECT a.b HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no port"),
    R("CONNECT a.b: HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "1 to 65535"),
    R("CONNECT http://a.b:80/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "':'"),
    R("CONNECT u@a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "'@'"),
    R("CONNECT a.b:443/ HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "1 to 65535"),
    R("CONNECT a.b:443 HTTP/1.1\r\nHost: evil:443\r\n\r\n", 400, "another host"),
    R("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:80\r\n\r\n", 400, "another host"),
    R("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\nContent-Length: 5\r\n\r\n", 400, "no body"),
    R("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
      "no body"),
    R("connect a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "no http:// URL"),
    R("CONNECT a.b\0.evil:443 HTTP/1.1\r\nHost: a.b\r\n\r\n", 400, "control"),
#undef R
};

static void
plain_requests_are_read_and_rewritten(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct proxy_http req;
        size_t len = strlen(good[i].text);

        if (parse(&req, good[i].text, len, &err) != PARSE_DONE) {
            fail_msg("%s: %s", good[i].text, err.msg);
        }
        assert_string_equal(req.method, good[i].method);
        assert_string_equal(req.host.text, good[i].host);
        assert_int_equal(req.port, good[i].port);
        assert_int_equal(req.head_len, len);
        assert_int_equal(req.is_connect, good[i].head == NULL);
        if (good[i].head != NULL) {
            struct buf out = {.max = 65536};

            assert_int_equal(proxy_http_rewrite(&out, &req, good[i].text), SY_E_OK);
            assert_string_equal(out.data, good[i].head);
            buf_fini(&out);
        }
    }
}

static void
what_two_parsers_could_read_in_two_ways_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct sy_error err = {.code = SY_E_OK};
        struct proxy_http req;
        enum parse_result rc = parse(&req, refused[i].text, refused[i].len, &err);

        if (rc != PARSE_BAD || strstr(err.msg, refused[i].why) == NULL ||
            req.status != refused[i].status) {
            fail_msg("row %zu %s gave %d, %d: %s", i, refused[i].text, rc, req.status, err.msg);
        }
    }
}

static void
the_result_is_the_same_however_the_bytes_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct proxy_http_parser p = {.scanned = 0};
        struct proxy_http req;
        size_t len = strlen(good[i].text);

        for (size_t n = 1; n < len; n++) {
            assert_int_equal(proxy_http_parse(&p, &req, good[i].text, n, NULL), PARSE_MORE);
        }
        assert_int_equal(proxy_http_parse(&p, &req, good[i].text, len, NULL), PARSE_DONE);
        assert_string_equal(req.host.text, good[i].host);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct proxy_http_parser p = {.scanned = 0};
        struct proxy_http req;
        enum parse_result rc = PARSE_MORE;

        for (size_t n = 1; n <= refused[i].len && rc == PARSE_MORE; n++) {
            rc = proxy_http_parse(&p, &req, refused[i].text, n, NULL);
        }
        assert_int_equal(rc, PARSE_BAD);
    }
}

static void
inside_a_tunnel_a_request_names_the_tunnels_host_and_no_other(void **state)
{
    static const struct {
        const char *text;
        const char *head; /* NULL: refused */
        const char *why;
    } rows[] = {
        {"GET /x HTTP/1.1\r\nHost: a.b\r\n\r\n",
         "GET /x HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n",                                                     ""              },
        {"GET / HTTP/1.0\r\n\r\n",                            "GET / HTTP/1.0\r\nHost: a.b\r\nConnection: close\r\n\r\n", ""              },
        {"GET http://A.b/x HTTP/1.1\r\nHost: a.b:80\r\n\r\n",
         "GET /x HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n",                                                     ""              },
        {"GET / HTTP/1.1\r\nHost: evil\r\n\r\n",              NULL,                                                       "another host"  },
        {"GET / HTTP/1.1\r\nHost: a.b:81\r\n\r\n",            NULL,                                                       "another host"  },
        {"GET / HTTP/1.1\r\n\r\n",                            NULL,                                                       "no Host"       },
        {"GET http://evil/ HTTP/1.1\r\nHost: evil\r\n\r\n",   NULL,                                                       "another host"  },
        {"GET http://evil/ HTTP/1.1\r\nHost: a.b\r\n\r\n",    NULL,                                                       "another host"  },
        {"CONNECT evil:80 HTTP/1.1\r\nHost: a.b\r\n\r\n",     NULL,                                                       "CONNECT inside"},
        {"GET x HTTP/1.1\r\nHost: a.b\r\n\r\n",               NULL,                                                       "no http:// URL"},
        {"SSH-2.0-OpenSSH\r\n\r\n",                           NULL,                                                       "request line"  },
    };
    struct host host;

    (void)state;
    assert_int_equal(host_parse(&host, "a.b", 3, NULL), SY_E_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct proxy_http_parser p = {.tunnel = &host, .tunnel_port = 80};
        struct buf out = {.max = 1000};
        struct sy_error err = {.code = SY_E_OK};
        struct proxy_http req;
        enum parse_result rc = proxy_http_parse(&p, &req, rows[i].text, strlen(rows[i].text), &err);

        if (rc != (rows[i].head != NULL ? PARSE_DONE : PARSE_BAD) ||
            strstr(err.msg, rows[i].why) == NULL) {
            fail_msg("row %zu gave %d: %s", i, rc, err.msg);
        }
        if (rows[i].head != NULL) {
            assert_int_equal(proxy_http_rewrite(&out, &req, rows[i].text), SY_E_OK);
            assert_string_equal(out.data, rows[i].head);
        }
        buf_fini(&out);
    }
}

static void
a_head_above_the_limit_is_refused(void **state)
{
    static char text[LIMIT_PROXY_HEAD + 1];
    static const char start[] = "GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\nX: ";
    struct sy_error err = {.code = SY_E_OK};
    struct proxy_http req;

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, start, sizeof(start) - 1);
    assert_int_equal(parse(&req, text, LIMIT_PROXY_HEAD - 1, &err), PARSE_MORE);
    assert_int_equal(parse(&req, text, LIMIT_PROXY_HEAD, &err), PARSE_BAD);
    assert_int_equal(req.status, 431);
    for (size_t i = 1; i <= 4; i++) {
        text[LIMIT_PROXY_HEAD - i] = i % 2 == 1 ? '\n' : '\r';
    }
    assert_int_equal(parse(&req, text, LIMIT_PROXY_HEAD, &err), PARSE_DONE);
}

static void
more_than_128_headers_are_refused(void **state)
{
    struct buf text = {.max = 65536};
    struct proxy_http req;

    (void)state;
    assert_int_equal(buf_add_str(&text, "GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n"), SY_E_OK);
    for (int i = 0; i < 127; i++) {
        assert_int_equal(buf_add_str(&text, "X: y\r\n"), SY_E_OK);
    }
    assert_int_equal(buf_add_str(&text, "\r\n"), SY_E_OK);
    assert_int_equal(parse(&req, text.data, text.len, NULL), PARSE_DONE);
    text.len -= 2;
    assert_int_equal(buf_add_str(&text, "X: y\r\n\r\n"), SY_E_OK);
    assert_int_equal(parse(&req, text.data, text.len, NULL), PARSE_BAD);
    assert_int_equal(req.status, 431);
    buf_fini(&text);
}

static const struct {
    const char *body;
    size_t belongs; /* bytes of it */
    enum proxy_http_stage stage;
} bodies[] = {
    {"0\r\n\r\nGET http://evil/",                                         5,  HTTP_BODY_DONE},
    {"3\r\nabc\r\n0\r\n\r\n",                                             13, HTTP_BODY_DONE},
    {"A\r\n0123456789\r\na;x=\"y\"\r\n0123456789\r\n00\r\nX: y\r\n\r\nZ", 48, HTTP_BODY_DONE},
    {"3\r\nab",                                                           5,  HTTP_BODY_DATA},
    {"",                                                                  0,  HTTP_BODY_SIZE},
    {"\r\n",                                                              0,  HTTP_BODY_BAD },
    {"3\nabc",                                                            1,  HTTP_BODY_BAD },
    {"3 \r\nabc",                                                         1,  HTTP_BODY_BAD },
    {"0x3\r\nabc",                                                        1,  HTTP_BODY_BAD },
    {"-3\r\nabc",                                                         0,  HTTP_BODY_BAD },
    {"3\r\nabcd",                                                         6,  HTTP_BODY_BAD },
    {"3\r\nabc\n",                                                        6,  HTTP_BODY_BAD },
    {"3;\n\r\n",                                                          2,  HTTP_BODY_BAD },
    {"3\rX",                                                              2,  HTTP_BODY_BAD },
    {"0000000000000003\r\n",                                              15, HTTP_BODY_BAD },
    {"0\r\nX: y\n",                                                       7,  HTTP_BODY_BAD },
    {"0\r\n\r\r",                                                         4,  HTTP_BODY_BAD },
};

static void
a_chunked_body_ends_where_its_framing_says(void **state)
{
    struct proxy_http req = {.is_chunked = true};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct proxy_http_body whole;
        struct proxy_http_body bytes;
        size_t len = strlen(bodies[i].body);
        size_t sum = 0;

        proxy_http_body_init(&whole, &req);
        proxy_http_body_init(&bytes, &req);

        size_t n = proxy_http_body_feed(&whole, bodies[i].body, len);

        for (size_t at = 0; at < len; at++) {
            sum += proxy_http_body_feed(&bytes, bodies[i].body + at, 1);
        }
        if (n != bodies[i].belongs || whole.stage != bodies[i].stage || sum != n ||
            bytes.stage != whole.stage) {
            fail_msg("row %zu: %zu bytes, %zu one by one, stage %d", i, n, sum, whole.stage);
        }
    }
}

static void
a_counted_body_ends_after_its_length(void **state)
{
    struct proxy_http req = {.has_length = true, .length = 5};
    struct proxy_http_body b;

    (void)state;
    proxy_http_body_init(&b, &req);
    assert_int_equal(proxy_http_body_feed(&b, "abc", 3), 3);
    assert_int_equal(proxy_http_body_feed(&b, "deGET", 5), 2);
    assert_int_equal(b.stage, HTTP_BODY_DONE);
    assert_int_equal(proxy_http_body_feed(&b, "x", 1), 0);
    req.length = 0;
    proxy_http_body_init(&b, &req);
    assert_int_equal(b.stage, HTTP_BODY_DONE);
}

static void
trailers_and_extensions_are_bounded(void **state)
{
    struct proxy_http req = {.is_chunked = true};
    struct proxy_http_body b;
    size_t n = 0;

    (void)state;
    proxy_http_body_init(&b, &req);
    assert_int_equal(proxy_http_body_feed(&b, "0\r\n", 3), 3);
    while (b.stage != HTTP_BODY_BAD && n < 100000) {
        n += proxy_http_body_feed(&b, "x", 1);
    }
    assert_int_equal(n, 8192);
}

static void
an_answer_says_why_and_what_would_allow_it(void **state)
{
    struct buf out = {.max = 65536};

    (void)state;
    assert_int_equal(proxy_http_answer(&out, 403, "a.b:443 is not in network.allow", "a.b"),
                     SY_E_OK);
    assert_non_null(strstr(out.data, "HTTP/1.1 403 Forbidden by Shellyard: a.b:443 is not in"));
    assert_non_null(strstr(out.data, "Connection: close\r\n"));
    assert_non_null(strstr(out.data, "network.allow: [..., \"a.b\"]\n"));

    const char *body = strstr(out.data, "\r\n\r\n");
    char length[40];

    assert_non_null(body);
    (void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body + 4));
    assert_non_null(strstr(out.data, length));
    buf_reset(&out);
    assert_int_equal(proxy_http_answer(&out, 400, "it is bad", ""), SY_E_OK);
    assert_null(strstr(out.data, "allow"));
    buf_fini(&out);
}

static enum sy_code
rewrite_and_answer(void *arg)
{
    const char *text = good[sizeof(good) / sizeof(good[0]) - 1].text;
    struct buf out = {.max = 65536};
    struct proxy_http req;

    (void)arg;
    (void)parse(&req, text, strlen(text), NULL);

    enum sy_code rc = proxy_http_rewrite(&out, &req, text);

    if (rc == SY_E_OK) {
        rc = proxy_http_answer(&out, 403, "why", "hint");
    }
    buf_fini(&out);
    return rc;
}

static void
running_out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    fault_run(rewrite_and_answer, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_requests_are_read_and_rewritten),
        cmocka_unit_test(what_two_parsers_could_read_in_two_ways_is_refused),
        cmocka_unit_test(the_result_is_the_same_however_the_bytes_come),
        cmocka_unit_test(inside_a_tunnel_a_request_names_the_tunnels_host_and_no_other),
        cmocka_unit_test(a_head_above_the_limit_is_refused),
        cmocka_unit_test(more_than_128_headers_are_refused),
        cmocka_unit_test(a_chunked_body_ends_where_its_framing_says),
        cmocka_unit_test(a_counted_body_ends_after_its_length),
        cmocka_unit_test(trailers_and_extensions_are_bounded),
        cmocka_unit_test(an_answer_says_why_and_what_would_allow_it),
        cmocka_unit_test(running_out_of_memory_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
