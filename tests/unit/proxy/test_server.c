#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "yard.h"

static const struct proxy_options plain = {.max_connections = 0};

static void
a_tunnel_to_an_allowed_host_carries_both_ways_and_keeps_half_closes(void **state)
{
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);

    int client = yard_tunnel(&y, "LOCAL.test.");
    int server = yard_accept(&y);

    yard_expect_verdict(&y, "allowed connect CONNECT local.test:");
    assert_non_null(strstr(y.verdicts[0].text, " 127.0.0.1 [local.test:"));
    assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_UNCHECKED);
    assert_true(yard_send_text(&y, client, "ping"));
    yard_expect(&y, server, "ping");
    assert_true(yard_send_text(&y, server, "pong"));
    yard_expect(&y, client, "pong");
    /* The client ends; the server goes on. */
    assert_int_equal(shutdown(client, SHUT_WR), 0);

    struct buf none = {.max = 10};

    assert_true(yard_receive(&y, server, &none, SIZE_MAX));
    assert_int_equal(none.len, 0);
    assert_true(yard_send_text(&y, server, "more"));
    yard_expect(&y, client, "more");
    fd_close(&server);
    assert_true(yard_receive(&y, client, &none, SIZE_MAX));
    assert_int_equal(none.len, 0);
    fd_close(&client);
    assert_int_equal(y.lookups, 1);
    yard_close(&y);
}

static void
another_host_is_denied_with_the_line_that_would_allow_it(void **state)
{
    static const char *const parts[] = {"HTTP/1.1 403 Forbidden by Shellyard: evil.test:443 is not",
                                        "network.allow: [..., \"evil.test\"]", NULL};
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);

    int client = yard_dial(&y);

    assert_true(
        yard_send_text(&y, client, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
    yard_expect_end(&y, client, parts);
    yard_expect_verdict(&y, "denied connect CONNECT evil.test:443  [] evil.test:443 is not in "
                            "network.allow <evil.test>");
    assert_int_equal(y.lookups, 0);
    assert_false(yard_has_waiting(&y));
    fd_close(&client);
    yard_close(&y);
}

static void
a_name_that_resolves_to_a_private_address_is_denied_unless_local(void **state)
{
    static const char *const parts[] = {"403", "public.test resolves to 127.0.0.1, a loopback",
                                        " local\"]", NULL};
    char text[200];
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);

    int client = yard_dial(&y);

    (void)snprintf(text, sizeof(text), "CONNECT public.test:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(yard_send_text(&y, client, text));
    yard_expect_end(&y, client, parts);
    yard_expect_verdict(&y, "denied connect CONNECT public.test");
    assert_int_equal(y.verdicts[0].outcome, PROXY_DENIED);
    assert_false(yard_has_waiting(&y));
    fd_close(&client);
    yard_close(&y);
}

static void
the_first_address_that_passes_is_dialled_and_the_name_resolved_once(void **state)
{
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);
    /* Not allowed, refused by the kernel (nothing listens), named. */
    y.answers[0] = "10.0.0.1";
    y.answers[1] = "169.254.169.254";
    y.answers[2] = "::1";
    y.answers[3] = "127.0.0.2";

    int client = yard_tunnel(&y, "public.test");
    int server = yard_accept(&y);

    assert_non_null(strstr(y.verdicts[0].text, " 127.0.0.2 ["));
    assert_int_equal(y.lookups, 1);
    fd_close(&client);
    fd_close(&server);
    yard_close(&y);

    yard_open(&y, &plain, PROXY_ANY);
    y.answers[0] = "::1"; /* nothing listens there: the next one is tried */
    y.answers[1] = "127.0.0.1";
    client = yard_tunnel(&y, "local.test");
    server = yard_accept(&y);
    assert_non_null(strstr(y.verdicts[0].text, " 127.0.0.1 ["));
    assert_int_equal(y.lookups, 1);
    fd_close(&client);
    fd_close(&server);
    yard_close(&y);
}

static void
a_host_that_can_not_be_reached_is_a_failure_and_no_denial(void **state)
{
    static const char *const parts[] = {"HTTP/1.1 502", "could not connect", NULL};
    static const char *const unknown[] = {"HTTP/1.1 502", "no address", NULL};
    char text[200];
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);
    fd_close(&y.server);

    int client = yard_dial(&y);

    (void)snprintf(text, sizeof(text), "CONNECT local.test:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(yard_send_text(&y, client, text));
    yard_expect_end(&y, client, parts);
    yard_expect_verdict(&y, "failed connect CONNECT local.test");
    fd_close(&client);
    y.answers[0] = NULL;
    y.verdict_count = 0;
    client = yard_dial(&y);
    assert_true(yard_send_text(&y, client, text));
    yard_expect_end(&y, client, unknown);
    yard_expect_verdict(&y, "failed connect CONNECT local.test");
    fd_close(&client);
    yard_close(&y);
}

static void
a_request_in_the_clear_goes_on_alone(void **state)
{
    char text[600];
    char head[300];
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);

    int client = yard_dial(&y);

    /* Behind its body: a second request, for a host that is not allowed. */
    (void)snprintf(text, sizeof(text),
                   "POST http://local.test:%u/x HTTP/1.1\r\nHost: local.test:%u\r\n"
                   "Connection: keep-alive\r\nContent-Length: 4\r\n\r\nbody"
                   "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                   (unsigned)y.server_port, (unsigned)y.server_port);
    (void)snprintf(head, sizeof(head),
                   "POST /x HTTP/1.1\r\nHost: local.test:%u\r\nContent-Length: 4\r\n"
                   "Connection: close\r\n\r\nbody",
                   (unsigned)y.server_port);
    assert_true(yard_send_text(&y, client, text));

    int server = yard_accept(&y);

    yard_expect(&y, server, head);
    yard_expect_verdict(&y, "allowed http POST local.test");
    assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_HTTP);
    /* And one that comes later. */
    assert_true(yard_send_text(&y, client, "GET http://evil.test/ HTTP/1.1\r\n\r\n"));
    assert_true(yard_send_text(&y, server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    yard_expect(&y, client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");

    struct buf rest = {.max = 1000};

    assert_int_equal(shutdown(server, SHUT_WR), 0);
    assert_true(yard_receive(&y, client, &rest, SIZE_MAX));
    fd_close(&client);
    (void)yard_receive(&y, server, &rest, SIZE_MAX);
    assert_int_equal(rest.len, 0);
    assert_int_equal(y.verdict_count, 1);
    fd_close(&server);
    buf_fini(&rest);
    yard_close(&y);
}

static void
a_request_that_is_not_plain_is_answered_400(void **state)
{
    static const char *const parts[] = {
        "HTTP/1.1 400 Bad Request: the request has a bare line feed", NULL};
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);

    int client = yard_dial(&y);

    assert_true(yard_send_text(&y, client, "GET http://local.test/\nHost: x\n\n"));
    yard_expect_end(&y, client, parts);
    yard_expect_verdict(&y, "malformed http  :0  [] the request has a bare line feed");
    fd_close(&client);
    yard_close(&y);
}

static void
socks_carries_names_and_says_when_they_are_denied(void **state)
{
    static const uint8_t ok[] = {5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    static const uint8_t denied[] = {5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0};
    static const uint8_t socks4[] = {0, 91, 0, 0, 0, 0, 0, 0};
    static const struct {
        const char *host;
        const uint8_t *reply;
        size_t reply_len;
    } rows[] = {
        {"local.test",  ok,     sizeof(ok)    },
        {"evil.test",   denied, sizeof(denied)},
        {"public.test", denied, sizeof(denied)},
        {NULL,          socks4, sizeof(socks4)},
    };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct buf in = {.max = 1000};
        struct buf out = {.max = 1000};
        struct yard y;

        yard_open(&y, &plain, i % 2 == 0 ? PROXY_ANY : PROXY_SOCKS);

        int client = yard_dial(&y);

        if (rows[i].host != NULL) {
            assert_int_equal(buf_add(&out, "\x05\x01\x00\x05\x01\x00\x03", 7), SY_E_OK);
            assert_int_equal(buf_add_char(&out, (char)strlen(rows[i].host)), SY_E_OK);
            assert_int_equal(
                buf_addf(&out, "%s%c%c", rows[i].host, y.server_port >> 8, y.server_port & 0xff),
                SY_E_OK);
        } else {
            assert_int_equal(buf_add(&out, "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", 9), SY_E_OK);
        }
        /* The greeting and the request at once. */
        assert_true(yard_send(&y, client, out.data, out.len));
        assert_true(yard_receive(&y, client, &in, rows[i].reply_len));
        assert_memory_equal(in.data, rows[i].reply, rows[i].reply_len);
        assert_int_equal(y.verdict_count, 1);
        assert_int_equal(y.verdicts[0].outcome,
                         i == 0 ? PROXY_ALLOWED : (i < 3 ? PROXY_DENIED : PROXY_MALFORMED));
        assert_int_equal(yard_has_waiting(&y), i == 0);
        fd_close(&client);
        buf_fini(&in);
        buf_fini(&out);
        yard_close(&y);
    }
}

/* A ClientHello for a name of 10 letters, in one record. */
static size_t
client_hello(uint8_t *out, const char *name)
{
    static const uint8_t start[] = {22, 3, 1, 0, 66, 1, 0, 0, 62, 3, 3};
    static const uint8_t middle[] = {0, 0, 2, 0x13, 1, 1, 0, 0, 19, 0, 0, 0, 15, 0, 13, 0, 0, 10};
    size_t n = 0;

    memcpy(out, start, sizeof(start));
    n = sizeof(start);
    memset(out + n, 7, 32);
    n += 32;
    memcpy(out + n, middle, sizeof(middle));
    n += sizeof(middle);
    memcpy(out + n, name, 10);
    return n + 10;
}

static void
on_the_tls_port_the_server_name_must_be_the_tunnels_host(void **state)
{
    static const struct proxy_options tls = {.tls_port = 1};
    static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 49};
    uint8_t hello[200];
    struct yard y;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct buf in = {.max = 1000};

        yard_open(&y, &tls, PROXY_ANY);

        int client = yard_tunnel(&y, "local.test");
        int server = yard_accept(&y);
        size_t n = client_hello(hello, i == 0 ? "LOCAL.test" : "other.test");

        assert_int_equal(y.verdict_count, 0);
        if (i == 2) {
            memset(hello, 'G', 16);
        }
        assert_true(yard_send(&y, client, hello, 2));
        assert_true(yard_send(&y, client, hello + 2, n - 2));
        if (i == 0) {
            assert_true(yard_receive(&y, server, &in, n));
            assert_memory_equal(in.data, hello, n);
            yard_expect_verdict(&y, "allowed connect CONNECT local.test");
            assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_TLS);
        } else {
            assert_true(yard_receive(&y, client, &in, sizeof(alert)));
            assert_memory_equal(in.data, alert, sizeof(alert));
            yard_expect_verdict(&y, i == 1 ? "names other.test, the tunnel is for local.test"
                                           : "is not TLS");
            assert_int_equal(y.verdicts[0].outcome, PROXY_DENIED);
            buf_reset(&in);
            assert_true(yard_receive(&y, server, &in, SIZE_MAX)); /* Not a byte arrives. */
            assert_int_equal(in.len, 0);
        }
        fd_close(&client);
        fd_close(&server);
        buf_fini(&in);
        yard_close(&y);
    }
}

static void
names_are_resolved_by_the_system_when_no_resolver_is_given(void **state)
{
    const char *const entries[] = {"localhost:*", "name.invalid:*"};
    struct proxy_options o = {.on_verdict = yard_on_verdict};
    static const char *const loopback[] = {"403", "a loopback address", NULL};
    static const char *const unknown[] = {"502", "could not resolve name.invalid", NULL};
    struct yard y = {.server = -1, .live = mem_live()};
    int fd = yard_listener(&y.port, 0);

    (void)state;
    o.arg = &y;
    assert_int_equal(uv_loop_init(&y.loop), 0);
    assert_int_equal(allow_new(&y.list, entries, 2, NULL), SY_E_OK);
    assert_int_equal(proxy_new(&y.proxy, &y.loop, y.list, &o, NULL), SY_E_OK);
    assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_HTTP, NULL), SY_E_OK);

    int client = yard_dial(&y);

    assert_true(yard_send_text(&y, client, "CONNECT localhost:9 HTTP/1.0\r\n\r\n"));
    yard_expect_end(&y, client, loopback);
    fd_close(&client);
    client = yard_dial(&y);
    assert_true(yard_send_text(&y, client, "CONNECT name.invalid:9 HTTP/1.0\r\n\r\n"));
    yard_expect_end(&y, client, unknown);
    fd_close(&client);
    yard_close(&y);
}

/* One request in the clear, whatever comes of it: the client's end is awaited. */

static void
in_a_tunnel_to_the_http_port_one_request_for_its_host_goes_on(void **state)
{
    static const struct proxy_options http = {.http_port = 1};
    char text[300];
    char head[300];
    struct yard y;

    (void)state;
    for (int i = 0; i < 2; i++) {
        yard_open(&y, &http, PROXY_ANY);

        int client = yard_tunnel(&y, "local.test");
        int server = yard_accept(&y);

        assert_int_equal(y.verdict_count, 0);
        (void)snprintf(text, sizeof(text),
                       "GET /x HTTP/1.1\r\nHost: %s.test:%u\r\n\r\n"
                       "GET /y HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                       i == 0 ? "local" : "evil", (unsigned)y.server_port);
        (void)snprintf(head, sizeof(head),
                       "GET /x HTTP/1.1\r\nHost: local.test:%u\r\nConnection: close\r\n\r\n",
                       (unsigned)y.server_port);
        assert_true(yard_send_text(&y, client, text));
        if (i == 0) {
            struct buf rest = {.max = 1000};

            yard_expect(&y, server, head);
            yard_expect_verdict(&y, "allowed connect GET local.test");
            assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_HTTP);
            assert_true(yard_send_text(&y, server, "HTTP/1.1 200 OK\r\n\r\n"));
            yard_expect(&y, client, "HTTP/1.1 200 OK\r\n\r\n");
            fd_close(&client);
            (void)yard_receive(&y, server, &rest, SIZE_MAX);
            assert_int_equal(rest.len, 0);
            buf_fini(&rest);
        } else {
            yard_expect(&y, client, "HTTP/1.1 400 Bad Request: the Host header names another host");
            yard_expect_verdict(&y, "malformed connect GET local.test");
        }
        fd_close(&client);
        fd_close(&server);
        yard_close(&y);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tunnel_to_an_allowed_host_carries_both_ways_and_keeps_half_closes),
        cmocka_unit_test(another_host_is_denied_with_the_line_that_would_allow_it),
        cmocka_unit_test(a_name_that_resolves_to_a_private_address_is_denied_unless_local),
        cmocka_unit_test(the_first_address_that_passes_is_dialled_and_the_name_resolved_once),
        cmocka_unit_test(a_host_that_can_not_be_reached_is_a_failure_and_no_denial),
        cmocka_unit_test(a_request_in_the_clear_goes_on_alone),
        cmocka_unit_test(a_request_that_is_not_plain_is_answered_400),
        cmocka_unit_test(socks_carries_names_and_says_when_they_are_denied),
        cmocka_unit_test(on_the_tls_port_the_server_name_must_be_the_tunnels_host),
        cmocka_unit_test(names_are_resolved_by_the_system_when_no_resolver_is_given),
        cmocka_unit_test(in_a_tunnel_to_the_http_port_one_request_for_its_host_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
