#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "proxy/proxy.h"

#define DEADLINE_NS 20000000000ULL
#define VERDICTS    8

/* A proxy on its loop, a server that only listens, and what was told. */
struct yard {
    uv_loop_t loop;
    struct proxy *proxy;
    struct allow_list *list;
    int server; /* listens */
    uint16_t server_port;
    uint16_t port; /* the proxy's */
    size_t live;   /* blocks before */
    size_t lookups;
    bool is_closed;
    bool closes_on_verdict;
    const char *answers[4]; /* of the resolver */
    size_t verdict_count;
    struct {
        enum proxy_outcome outcome;
        enum proxy_content content;
        char text[512];
    } verdicts[VERDICTS];
};

static void
on_closed(void *arg)
{
    struct yard *y = arg;

    y->is_closed = true;
}

static void
on_verdict(void *arg, const struct proxy_verdict *v)
{
    struct yard *y = arg;
    size_t i = y->verdict_count < VERDICTS ? y->verdict_count : VERDICTS - 1;

    y->verdicts[i].outcome = v->outcome;
    y->verdicts[i].content = v->content;
    (void)snprintf(y->verdicts[i].text, sizeof(y->verdicts[i].text),
                   "%s %s %s %s:%u %s [%s] %s <%s>", proxy_outcome_name(v->outcome), v->protocol,
                   v->method, v->host, (unsigned)v->port, v->address, v->rule, v->why, v->hint);
    y->verdict_count++;
    if (y->closes_on_verdict) {
        proxy_close(y->proxy, on_closed, y);
        y->proxy = NULL;
    }
}

static size_t
resolve(void *arg, const char *name, struct address *ret, size_t max)
{
    struct yard *y = arg;
    size_t n = 0;

    (void)name;
    y->lookups++;
    for (; n < max && n < 4 && y->answers[n] != NULL; n++) {
        ret[n].is_v6 = strchr(y->answers[n], ':') != NULL;
        if (inet_pton(ret[n].is_v6 ? AF_INET6 : AF_INET, y->answers[n], ret[n].ip) != 1) {
            return 0;
        }
    }
    return n;
}

/* A TCP socket on a free port of all IPv4 addresses, listening if backlog > 0. */
static int
listener(uint16_t *ret_port, int backlog)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&in, len) != 0 ||
        (backlog > 0 && listen(fd, backlog) != 0) ||
        getsockname(fd, (struct sockaddr *)&in, &len) != 0) {
        return -1;
    }
    *ret_port = ntohs(in.sin_port);
    return fd;
}

static enum sy_code
yard_start(struct yard *y, const struct proxy_options *more, enum proxy_kind kind)
{
    struct proxy_options o = *more;
    char entries[4][64];
    const char *list[4];
    int fd = listener(&y->port, 0);

    o.on_verdict = on_verdict;
    o.resolve = resolve;
    o.arg = y;
    if (o.tls_port == 1) { /* asked for: the server's is the TLS port */
        o.tls_port = y->server_port;
    }
    (void)snprintf(entries[0], 64, "local.test:%u local", (unsigned)y->server_port);
    (void)snprintf(entries[1], 64, "public.test:%u", (unsigned)y->server_port);
    (void)snprintf(entries[2], 64, "127.0.0.2:%u", (unsigned)y->server_port);
    (void)snprintf(entries[3], 64, "192.0.2.1:%u", (unsigned)y->server_port);
    for (int i = 0; i < 4; i++) {
        list[i] = entries[i];
    }

    enum sy_code rc = allow_new(&y->list, list, 4, NULL);

    if (rc == SY_E_OK) {
        rc = proxy_new(&y->proxy, &y->loop, y->list, &o, NULL);
    }
    if (rc == SY_E_OK) {
        rc = proxy_listen_fd(y->proxy, &fd, kind, NULL);
    }
    fd_close(&fd);
    return rc;
}

static void
yard_open(struct yard *y, const struct proxy_options *more, enum proxy_kind kind)
{
    memset(y, 0, sizeof(*y));
    y->live = mem_live();
    y->answers[0] = "127.0.0.1";
    y->server = listener(&y->server_port, 64);
    assert_true(y->server >= 0);
    assert_int_equal(uv_loop_init(&y->loop), 0);
    assert_int_equal(yard_start(y, more, kind), SY_E_OK);
}

/* Ends all, and the test if something is left. */
static bool
yard_end(struct yard *y)
{
    if (y->proxy != NULL) {
        proxy_close(y->proxy, on_closed, y);
    }
    while (uv_run(&y->loop, UV_RUN_DEFAULT) != 0) {
    }
    allow_free(y->list);
    fd_close(&y->server);
    return uv_loop_close(&y->loop) == 0;
}

static void
yard_close(struct yard *y)
{
    assert_true(yard_end(y));
    assert_true(y->is_closed);
    assert_int_equal(mem_live(), y->live);
}

/* Lets the proxy work until the descriptor has one of the events. */
static bool
run_until(struct yard *y, int fd, short events)
{
    uint64_t end = clock_mono_ns() + DEADLINE_NS;

    while (clock_mono_ns() < end) {
        struct pollfd p[] = {
            {.fd = fd,                      .events = events},
            {.fd = uv_backend_fd(&y->loop), .events = POLLIN}
        };
        int timeout = uv_backend_timeout(&y->loop);

        (void)poll(p, 2, timeout < 0 || timeout > 1000 ? 1000 : timeout);
        if ((p[0].revents & (events | POLLHUP | POLLERR)) != 0) {
            return true;
        }
        (void)uv_run(&y->loop, UV_RUN_NOWAIT);
    }
    return false;
}

static int
dial(const struct yard *y)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(y->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0) {
        (void)connect(fd, (const struct sockaddr *)&in, sizeof(in));
    }
    return fd;
}

static bool
send_all(struct yard *y, int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n > 0) {
        if (!run_until(y, fd, POLLOUT)) {
            return false;
        }

        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0) {
            return false;
        }
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool
send_text(struct yard *y, int fd, const char *text)
{
    return send_all(y, fd, text, strlen(text));
}

/* Reads n bytes, or up to the end with n = SIZE_MAX; what came is in `in`. */
static bool
receive(struct yard *y, int fd, struct buf *in, size_t n)
{
    char chunk[65536];
    size_t got = 0;

    while (got < n) {
        if (!run_until(y, fd, POLLIN)) {
            return false;
        }

        ssize_t len =
            recv(fd, chunk, sizeof(chunk) < n - got ? sizeof(chunk) : n - got, MSG_DONTWAIT);

        if (len <= 0) {
            return n == SIZE_MAX && len == 0;
        }
        got += (size_t)len;
        if (buf_add(in, chunk, (size_t)len) != SY_E_OK) {
            return false;
        }
    }
    return true;
}

static void
expect(struct yard *y, int fd, const char *text)
{
    struct buf in = {.max = 1048576};
    bool is_there = receive(y, fd, &in, strlen(text));
    bool is_equal = strcmp(buf_view(&in), text) == 0;

    if (!is_there || !is_equal) {
        char got[300];

        (void)snprintf(got, sizeof(got), "%s", buf_view(&in));
        buf_fini(&in);
        fail_msg("got '%s', expected '%s'", got, text);
    }
    buf_fini(&in);
}

/* All up to the end; the text must hold each of the NULL-terminated parts. */
static void
expect_end_with(struct yard *y, int fd, const char *const *parts)
{
    struct buf in = {.max = 1048576};
    char got[2000];
    bool is_there = receive(y, fd, &in, SIZE_MAX);

    (void)snprintf(got, sizeof(got), "%s", buf_view(&in));
    buf_fini(&in);
    assert_true(is_there);
    for (; *parts != NULL; parts++) {
        if (strstr(got, *parts) == NULL) {
            fail_msg("'%s' is not in '%s'", *parts, got);
        }
    }
}

static int
accept_one(struct yard *y)
{
    assert_true(run_until(y, y->server, POLLIN));

    int fd = accept4(y->server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    assert_true(fd >= 0);
    return fd;
}

static bool
has_waiting_connection(const struct yard *y)
{
    struct pollfd p = {.fd = y->server, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static void
expect_verdict(const struct yard *y, const char *text)
{
    assert_int_equal(y->verdict_count, 1);
    if (strstr(y->verdicts[0].text, text) == NULL) {
        fail_msg("the verdict is '%s', expected '%s'", y->verdicts[0].text, text);
    }
}

/* CONNECT for the host on the server's port, up to the 200. */
static int
tunnel(struct yard *y, const char *host)
{
    char text[200];
    int fd = dial(y);

    (void)snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.1\r\nHost: %s\r\n\r\n", host,
                   (unsigned)y->server_port, host);
    assert_true(send_text(y, fd, text));
    expect(y, fd, "HTTP/1.1 200 Connection Established\r\n\r\n");
    return fd;
}

static const struct proxy_options plain = {.max_connections = 0};

static void
a_tunnel_to_an_allowed_host_carries_both_ways_and_keeps_half_closes(void **state)
{
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);

    int client = tunnel(&y, "LOCAL.test.");
    int server = accept_one(&y);

    expect_verdict(&y, "allowed connect CONNECT local.test:");
    assert_non_null(strstr(y.verdicts[0].text, " 127.0.0.1 [local.test:"));
    assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_UNCHECKED);
    assert_true(send_text(&y, client, "ping"));
    expect(&y, server, "ping");
    assert_true(send_text(&y, server, "pong"));
    expect(&y, client, "pong");
    /* The client ends; the server goes on. */
    assert_int_equal(shutdown(client, SHUT_WR), 0);

    struct buf none = {.max = 10};

    assert_true(receive(&y, server, &none, SIZE_MAX));
    assert_int_equal(none.len, 0);
    assert_true(send_text(&y, server, "more"));
    expect(&y, client, "more");
    fd_close(&server);
    assert_true(receive(&y, client, &none, SIZE_MAX));
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

    int client = dial(&y);

    assert_true(send_text(&y, client, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
    expect_end_with(&y, client, parts);
    expect_verdict(&y, "denied connect CONNECT evil.test:443  [] evil.test:443 is not in "
                       "network.allow <evil.test>");
    assert_int_equal(y.lookups, 0);
    assert_false(has_waiting_connection(&y));
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

    int client = dial(&y);

    (void)snprintf(text, sizeof(text), "CONNECT public.test:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(send_text(&y, client, text));
    expect_end_with(&y, client, parts);
    expect_verdict(&y, "denied connect CONNECT public.test");
    assert_int_equal(y.verdicts[0].outcome, PROXY_DENIED);
    assert_false(has_waiting_connection(&y));
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

    int client = tunnel(&y, "public.test");
    int server = accept_one(&y);

    assert_non_null(strstr(y.verdicts[0].text, " 127.0.0.2 ["));
    assert_int_equal(y.lookups, 1);
    fd_close(&client);
    fd_close(&server);
    yard_close(&y);

    yard_open(&y, &plain, PROXY_ANY);
    y.answers[0] = "::1"; /* nothing listens there: the next one is tried */
    y.answers[1] = "127.0.0.1";
    client = tunnel(&y, "local.test");
    server = accept_one(&y);
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

    int client = dial(&y);

    (void)snprintf(text, sizeof(text), "CONNECT local.test:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(send_text(&y, client, text));
    expect_end_with(&y, client, parts);
    expect_verdict(&y, "failed connect CONNECT local.test");
    fd_close(&client);
    y.answers[0] = NULL;
    y.verdict_count = 0;
    client = dial(&y);
    assert_true(send_text(&y, client, text));
    expect_end_with(&y, client, unknown);
    expect_verdict(&y, "failed connect CONNECT local.test");
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

    int client = dial(&y);

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
    assert_true(send_text(&y, client, text));

    int server = accept_one(&y);

    expect(&y, server, head);
    expect_verdict(&y, "allowed http POST local.test");
    assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_HTTP);
    /* And one that comes later. */
    assert_true(send_text(&y, client, "GET http://evil.test/ HTTP/1.1\r\n\r\n"));
    assert_true(send_text(&y, server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    expect(&y, client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");

    struct buf rest = {.max = 1000};

    assert_int_equal(shutdown(server, SHUT_WR), 0);
    assert_true(receive(&y, client, &rest, SIZE_MAX));
    fd_close(&client);
    (void)receive(&y, server, &rest, SIZE_MAX);
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

    int client = dial(&y);

    assert_true(send_text(&y, client, "GET http://local.test/\nHost: x\n\n"));
    expect_end_with(&y, client, parts);
    expect_verdict(&y, "malformed http  :0  [] the request has a bare line feed");
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

        int client = dial(&y);

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
        assert_true(send_all(&y, client, out.data, out.len));
        assert_true(receive(&y, client, &in, rows[i].reply_len));
        assert_memory_equal(in.data, rows[i].reply, rows[i].reply_len);
        assert_int_equal(y.verdict_count, 1);
        assert_int_equal(y.verdicts[0].outcome,
                         i == 0 ? PROXY_ALLOWED : (i < 3 ? PROXY_DENIED : PROXY_MALFORMED));
        assert_int_equal(has_waiting_connection(&y), i == 0);
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

        int client = tunnel(&y, "local.test");
        int server = accept_one(&y);
        size_t n = client_hello(hello, i == 0 ? "LOCAL.test" : "other.test");

        assert_int_equal(y.verdict_count, 0);
        if (i == 2) {
            memcpy(hello, "GET / HTTP/1.1\r\n", 16);
        }
        assert_true(send_all(&y, client, hello, 2));
        assert_true(send_all(&y, client, hello + 2, n - 2));
        if (i == 0) {
            assert_true(receive(&y, server, &in, n));
            assert_memory_equal(in.data, hello, n);
            expect_verdict(&y, "allowed connect CONNECT local.test");
            assert_int_equal(y.verdicts[0].content, PROXY_CONTENT_TLS);
        } else {
            assert_true(receive(&y, client, &in, sizeof(alert)));
            assert_memory_equal(in.data, alert, sizeof(alert));
            expect_verdict(&y, i == 1 ? "names other.test, the tunnel is for local.test"
                                      : "is not TLS");
            assert_int_equal(y.verdicts[0].outcome, PROXY_DENIED);
            buf_reset(&in);
            assert_true(receive(&y, server, &in, SIZE_MAX)); /* Not a byte arrives. */
            assert_int_equal(in.len, 0);
        }
        fd_close(&client);
        fd_close(&server);
        buf_fini(&in);
        yard_close(&y);
    }
}

static void
a_client_that_says_nothing_is_hung_up_on(void **state)
{
    static const struct proxy_options quick = {.head_ms = 30, .tls_port = 1};
    struct buf in = {.max = 1000};
    struct yard y;

    (void)state;
    yard_open(&y, &quick, PROXY_ANY);

    int silent = dial(&y);

    assert_true(receive(&y, silent, &in, SIZE_MAX));
    assert_int_equal(in.len, 0);
    assert_int_equal(y.verdict_count, 0);
    fd_close(&silent);

    int slow = dial(&y);

    assert_true(send_text(&y, slow, "GET http://local"));
    assert_true(receive(&y, slow, &in, SIZE_MAX));
    fd_close(&slow);

    int mute = tunnel(&y, "local.test");

    assert_true(receive(&y, mute, &in, SIZE_MAX));
    expect_verdict(&y, "failed connect CONNECT local.test");
    fd_close(&mute);
    buf_fini(&in);
    yard_close(&y);
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

    int client = dial(&y);

    /* TEST-NET-1: nobody answers, or the network says at once that there is no
     * way; both end the same way. */
    (void)snprintf(text, sizeof(text), "CONNECT 192.0.2.1:%u HTTP/1.0\r\n\r\n",
                   (unsigned)y.server_port);
    assert_true(send_text(&y, client, text));
    expect_end_with(&y, client, parts);
    expect_verdict(&y, "failed connect CONNECT 192.0.2.1");
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

    int first = tunnel(&y, "local.test");
    int server = accept_one(&y);
    int second = dial(&y);

    assert_true(send_text(&y, second, "CONNECT evil.test:443 HTTP/1.0\r\n\r\n"));
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&y.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(proxy_connection_count(y.proxy), 1);
    assert_int_equal(y.verdict_count, 1);
    fd_close(&first);
    fd_close(&server);
    expect(&y, second, "HTTP/1.1 403");
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

    int client = tunnel(&y, "local.test");
    int server = accept_one(&y);

    fd_close(&client);
    assert_true(receive(&y, server, &in, SIZE_MAX)); /* The end goes through. */
    while (proxy_connection_count(y.proxy) > 0) {
        assert_int_not_equal(uv_run(&y.loop, UV_RUN_ONCE), 0);
    }
    fd_close(&server);
    yard_close(&y);
}

static void
a_server_that_does_not_read_holds_up_the_client_and_no_byte_is_lost(void **state)
{
    const size_t total = 24 * 1024 * 1024;
    static char chunk[65536];
    struct yard y;
    size_t sent = 0;
    size_t got = 0;

    (void)state;
    memset(chunk, 'x', sizeof(chunk));
    yard_open(&y, &plain, PROXY_ANY);

    int client = tunnel(&y, "local.test");
    int server = accept_one(&y);
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

            int client = dial(&y);

            (void)snprintf(text, sizeof(text), "%.40s", requests[i]);
            if (strchr(requests[i], '%') != NULL) {
                size_t at = strcspn(requests[i], "%");

                (void)snprintf(text, sizeof(text), "%.*s%u%s", (int)at, requests[i],
                               (unsigned)y.server_port, requests[i] + at + 2);
            }
            assert_true(send_text(&y, client, text));
            for (int n = 0; n < (steps == 5 ? 20 : steps); n++) {
                (void)uv_run(&y.loop, UV_RUN_NOWAIT);
            }
            yard_close(&y);
            fd_close(&client);
        }
    }
}

static void
names_are_resolved_by_the_system_when_no_resolver_is_given(void **state)
{
    const char *const entries[] = {"localhost:*", "name.invalid:*"};
    struct proxy_options o = {.on_verdict = on_verdict};
    static const char *const loopback[] = {"403", "a loopback address", NULL};
    static const char *const unknown[] = {"502", "could not resolve name.invalid", NULL};
    struct yard y = {.server = -1, .live = mem_live()};
    int fd = listener(&y.port, 0);

    (void)state;
    o.arg = &y;
    assert_int_equal(uv_loop_init(&y.loop), 0);
    assert_int_equal(allow_new(&y.list, entries, 2, NULL), SY_E_OK);
    assert_int_equal(proxy_new(&y.proxy, &y.loop, y.list, &o, NULL), SY_E_OK);
    assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_HTTP, NULL), SY_E_OK);

    int client = dial(&y);

    assert_true(send_text(&y, client, "CONNECT localhost:9 HTTP/1.0\r\n\r\n"));
    expect_end_with(&y, client, loopback);
    fd_close(&client);
    client = dial(&y);
    assert_true(send_text(&y, client, "CONNECT name.invalid:9 HTTP/1.0\r\n\r\n"));
    expect_end_with(&y, client, unknown);
    fd_close(&client);
    yard_close(&y);
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
        int fd = listener(&port, 0);

        assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_HTTP, &err), SY_E_OK);
    }

    int fd = listener(&port, 0);

    assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_HTTP, &err), SY_E_LIMIT);
    assert_int_equal(fd, -1);
    yard_close(&y);
}

/* One request in the clear, whatever comes of it: the client's end is awaited. */
static enum sy_code
serve_one(void *arg)
{
    struct yard y = {.answers = {"127.0.0.1"}};
    char text[200];
    char chunk[4096];
    enum sy_code rc = SY_E_INTERNAL;

    (void)arg;
    y.server = listener(&y.server_port, 8);
    if (uv_loop_init(&y.loop) != 0) {
        return rc;
    }
    rc = yard_start(&y, &plain, PROXY_ANY);
    if (rc == SY_E_OK) {
        int client = dial(&y);
        int server = -1;

        (void)snprintf(text, sizeof(text), "GET http://local.test:%u/ HTTP/1.0\r\n\r\n",
                       (unsigned)y.server_port);
        (void)send_text(&y, client, text);
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
        while (run_until(&y, client, POLLIN) && recv(client, chunk, sizeof(chunk), 0) > 0) {
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
        cmocka_unit_test(a_tunnel_to_an_allowed_host_carries_both_ways_and_keeps_half_closes),
        cmocka_unit_test(another_host_is_denied_with_the_line_that_would_allow_it),
        cmocka_unit_test(a_name_that_resolves_to_a_private_address_is_denied_unless_local),
        cmocka_unit_test(the_first_address_that_passes_is_dialled_and_the_name_resolved_once),
        cmocka_unit_test(a_host_that_can_not_be_reached_is_a_failure_and_no_denial),
        cmocka_unit_test(a_request_in_the_clear_goes_on_alone),
        cmocka_unit_test(a_request_that_is_not_plain_is_answered_400),
        cmocka_unit_test(socks_carries_names_and_says_when_they_are_denied),
        cmocka_unit_test(on_the_tls_port_the_server_name_must_be_the_tunnels_host),
        cmocka_unit_test(a_client_that_says_nothing_is_hung_up_on),
        cmocka_unit_test(a_server_that_does_not_answer_is_given_up),
        cmocka_unit_test(more_connections_than_the_limit_wait_their_turn),
        cmocka_unit_test(a_client_that_has_gone_does_not_keep_its_place_for_ever),
        cmocka_unit_test(a_server_that_does_not_read_holds_up_the_client_and_no_byte_is_lost),
        cmocka_unit_test(the_proxy_may_be_closed_from_a_verdict_and_at_any_moment),
        cmocka_unit_test(names_are_resolved_by_the_system_when_no_resolver_is_given),
        cmocka_unit_test(a_fifth_listener_and_a_bad_descriptor_are_errors),
        cmocka_unit_test(running_out_of_memory_at_any_point_leaks_nothing_and_crashes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
