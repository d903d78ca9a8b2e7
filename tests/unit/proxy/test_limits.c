#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "fault.h"
#include "yard.h"

static const struct proxy_options plain = {.max_connections = 0};

/* False where this machine is too slow for so short a time: what came in time was looked at too
 * late. */
static bool
silence_ends_after(unsigned head_ms)
{
    static const char established[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
    const struct proxy_options quick = {.head_ms = head_ms, .tls_port = 1};
    struct buf in = {.max = 1000};
    struct yard y;
    char text[200];

    yard_open(&y, &quick, PROXY_ANY);

    int silent = yard_dial(&y);

    assert_true(yard_receive(&y, silent, &in, SIZE_MAX));
    assert_int_equal(in.len, 0);
    assert_int_equal(y.verdict_count, 0);
    fd_close(&silent);

    int slow = yard_dial(&y);

    assert_true(yard_send_text(&y, slow, "GET http://local"));

    bool is_in_time = yard_receive(&y, slow, &in, SIZE_MAX);

    fd_close(&slow);
    buf_fini(&in);

    int mute = yard_dial(&y);

    (void)snprintf(text, sizeof(text), "CONNECT local.test:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(yard_send_text(&y, mute, text));
    in = (struct buf){.max = 1000};
    is_in_time = is_in_time && yard_receive(&y, mute, &in, sizeof(established) - 1);
    if (is_in_time) {
        assert_string_equal(buf_view(&in), established);
        assert_true(yard_receive(&y, mute, &in, SIZE_MAX));
        yard_expect_verdict(&y, "failed connect CONNECT local.test");
    }
    fd_close(&mute);
    buf_fini(&in);
    yard_close(&y);
    return is_in_time;
}

static void
a_client_that_says_nothing_is_hung_up_on(void **state)
{
    unsigned head_ms = 30;

    (void)state;
    while (!silence_ends_after(head_ms)) {
        assert_true(head_ms < 2000);
        head_ms *= 2;
    }
}

static void
a_server_that_does_not_answer_is_given_up(void **state)
{
    static const struct proxy_options quick = {.connect_ms = 50};
    static const char *const parts[] = {"HTTP/1.1 50", NULL};
    char text[200];
    struct yard y;

    (void)state;
    yard_open(&y, &quick, PROXY_ANY);

    int client = yard_dial(&y);

    /* TEST-NET-1: nobody answers, or the network says at once that there is no
     * way; both end the same way. */
    (void)snprintf(text, sizeof(text), "CONNECT 192.0.2.1:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(yard_send_text(&y, client, text));
    yard_expect_end(&y, client, parts);
    yard_expect_verdict(&y, "failed connect CONNECT 192.0.2.1");
    fd_close(&client);
    yard_close(&y);
}

static void
more_connections_than_the_limit_wait_their_turn(void **state)
{
    static const struct proxy_options one = {.max_connections = 1};
    struct yard y;

    (void)state;
    yard_open(&y, &one, PROXY_ANY);

    int first = yard_tunnel(&y, "local.test");
    int server = yard_accept(&y);
    int second = yard_dial(&y);

    assert_true(yard_send_text(&y, second, "CONNECT evil.test:443 HTTP/1.0\r\n\r\n"));
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&y.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(proxy_connection_count(y.proxy), 1);
    assert_int_equal(y.verdict_count, 1);
    fd_close(&first);
    fd_close(&server);
    yard_expect(&y, second, "HTTP/1.1 403");
    assert_int_equal(y.verdict_count, 2);
    fd_close(&second);
    yard_close(&y);
}

static void
a_client_that_has_gone_does_not_keep_its_place_for_ever(void **state)
{
    static const struct proxy_options quick = {.half_ms = 30};
    struct buf in = {.max = 1000};
    struct yard y;

    (void)state;
    yard_open(&y, &quick, PROXY_ANY);

    int client = yard_tunnel(&y, "local.test");
    int server = yard_accept(&y);

    fd_close(&client);
    assert_true(yard_receive(&y, server, &in, SIZE_MAX)); /* The end goes through. */
    while (proxy_connection_count(y.proxy) > 0) {
        assert_int_not_equal(uv_run(&y.loop, UV_RUN_ONCE), 0);
    }
    fd_close(&server);
    yard_close(&y);
}

static void
a_server_that_does_not_read_holds_up_the_client_and_no_byte_is_lost(void **state)
{
    const size_t total = (size_t)24 * 1024 * 1024;
    static char chunk[65536];
    struct yard y;
    size_t sent = 0;
    size_t got = 0;

    (void)state;
    memset(chunk, 'x', sizeof(chunk));
    yard_open(&y, &plain, PROXY_ANY);

    int client = yard_tunnel(&y, "local.test");
    int server = yard_accept(&y);
    bool was_held_up = false;

    while (got < total) {
        for (int i = 0; i < 50 && !was_held_up; i++) {
            ssize_t n = send(client, chunk, sizeof(chunk), MSG_NOSIGNAL | MSG_DONTWAIT);

            sent += n > 0 ? (size_t)n : 0;
            (void)uv_run(&y.loop, UV_RUN_NOWAIT);
            was_held_up = n < 0 && i == 49;
        }
        assert_true(sent < total || was_held_up);
        if (sent < total) {
            size_t want = total - sent < sizeof(chunk) ? total - sent : sizeof(chunk);
            ssize_t n = send(client, chunk, want, MSG_NOSIGNAL | MSG_DONTWAIT);

            sent += n > 0 ? (size_t)n : 0;
        }
        (void)uv_run(&y.loop, UV_RUN_NOWAIT);

        ssize_t n = was_held_up ? recv(server, chunk, sizeof(chunk), MSG_DONTWAIT) : 0;

        got += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(got, sent);
    fd_close(&client);
    fd_close(&server);
    yard_close(&y);
}

static void
the_proxy_may_be_closed_from_a_verdict_and_at_any_moment(void **state)
{
    static const char *const requests[] = {"", "CON", "CONNECT local.test:%u HTTP/1.0\r\n\r\n",
                                           "CONNECT evil.test:%u HTTP/1.0\r\n\r\n",
                                           "GET http://local.test:%u/ HTTP/1.0\r\n\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        for (int steps = 0; steps < 6; steps++) {
            char text[100] = "";
            struct yard y;

            yard_open(&y, &plain, PROXY_ANY);
            y.closes_on_verdict = steps == 5;

            int client = yard_dial(&y);

            (void)snprintf(text, sizeof(text), "%.40s", requests[i]);
            if (strchr(requests[i], '%') != NULL) {
                size_t at = strcspn(requests[i], "%");

                (void)snprintf(text, sizeof(text), "%.*s%u%s", (int)at, requests[i],
                               (unsigned)y.server_port, requests[i] + at + 2);
            }
            assert_true(yard_send_text(&y, client, text));
            for (int n = 0; n < (steps == 5 ? 20 : steps); n++) {
                (void)uv_run(&y.loop, UV_RUN_NOWAIT);
            }
            yard_close(&y);
            fd_close(&client);
        }
    }
}

static void
a_fifth_listener_and_a_bad_descriptor_are_errors(void **state)
{
    struct sy_error err = {.code = SY_E_OK};
    struct yard y;
    uint16_t port = 0;

    (void)state;
    yard_open(&y, &plain, PROXY_HTTP);

    int bad = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_int_equal(proxy_listen_fd(y.proxy, &bad, PROXY_HTTP, &err), SY_E_SYS);
    assert_int_equal(bad, -1);
    for (int i = 0; i < 2; i++) {
        int fd = yard_listener(&port, 0);

        assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_HTTP, &err), SY_E_OK);
    }

    int fd = yard_listener(&port, 0);

    assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_HTTP, &err), SY_E_LIMIT);
    assert_int_equal(fd, -1);
    yard_close(&y);
}

static enum sy_code
serve_one(void *arg)
{
    struct yard y = {.answers = {"127.0.0.1"}};
    char text[200];
    char chunk[4096];
    enum sy_code rc = SY_E_INTERNAL;

    (void)arg;
    y.server = yard_listener(&y.server_port, 8);
    if (uv_loop_init(&y.loop) != 0) {
        return rc;
    }
    rc = yard_start(&y, &plain, PROXY_ANY);
    if (rc == SY_E_OK) {
        int client = yard_dial(&y);
        int server = -1;

        (void)snprintf(text, sizeof(text), "GET http://local.test:%u/ HTTP/1.0\r\n\r\n",
                       (unsigned)y.server_port);
        (void)yard_send_text(&y, client, text);
        /* Either the server is reached, or the client is answered. */
        for (int i = 0; i < 400 && server < 0; i++) {
            struct pollfd p[] = {
                {.fd = y.server,               .events = POLLIN},
                {.fd = client,                 .events = POLLIN},
                {.fd = uv_backend_fd(&y.loop), .events = POLLIN}
            };

            (void)poll(p, 3, 50);
            if ((p[1].revents & POLLIN) != 0) {
                break;
            }
            if ((p[0].revents & POLLIN) != 0) {
                server = accept4(y.server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            }
            (void)uv_run(&y.loop, UV_RUN_NOWAIT);
        }
        if (server >= 0) {
            (void)send(server, "HTTP/1.0 200 OK\r\n\r\n", 19, MSG_NOSIGNAL);
            (void)shutdown(server, SHUT_WR);
        }
        while (yard_run_until(&y, client, POLLIN) && recv(client, chunk, sizeof(chunk), 0) > 0) {
        }
        fd_close(&client);
        fd_close(&server);
    }
    if (!yard_end(&y)) {
        return SY_E_INTERNAL;
    }
    return rc;
}

static void
running_out_of_memory_at_any_point_leaks_nothing_and_crashes_nothing(void **state)
{
    (void)state;
    fault_run_lenient(serve_one, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_says_nothing_is_hung_up_on),
        cmocka_unit_test(a_server_that_does_not_answer_is_given_up),
        cmocka_unit_test(more_connections_than_the_limit_wait_their_turn),
        cmocka_unit_test(a_client_that_has_gone_does_not_keep_its_place_for_ever),
        cmocka_unit_test(a_server_that_does_not_read_holds_up_the_client_and_no_byte_is_lost),
        cmocka_unit_test(the_proxy_may_be_closed_from_a_verdict_and_at_any_moment),
        cmocka_unit_test(a_fifth_listener_and_a_bad_descriptor_are_errors),
        cmocka_unit_test(running_out_of_memory_at_any_point_leaks_nothing_and_crashes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
