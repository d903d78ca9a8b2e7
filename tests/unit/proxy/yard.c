#include "yard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define DEADLINE_NS 20000000000ULL

static void
on_closed(void *arg)
{
    struct yard *y = arg;

    y->is_closed = true;
}

void
yard_on_verdict(void *arg, const struct proxy_verdict *v)
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

int
yard_listener(uint16_t *ret_port, int backlog)
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

enum sy_code
yard_start(struct yard *y, const struct proxy_options *more, enum proxy_kind kind)
{
    struct proxy_options o = *more;
    char entries[4][64];
    const char *list[4];
    int fd = yard_listener(&y->port, 0);

    o.on_verdict = yard_on_verdict;
    o.resolve = resolve;
    o.arg = y;
    if (o.tls_port == 1) { /* asked for: the server's is the TLS port */
        o.tls_port = y->server_port;
    }
    if (o.http_port == 1) {
        o.http_port = y->server_port;
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

void
yard_open(struct yard *y, const struct proxy_options *more, enum proxy_kind kind)
{
    memset(y, 0, sizeof(*y));
    y->live = mem_live();
    y->answers[0] = "127.0.0.1";
    y->server = yard_listener(&y->server_port, 64);
    assert_true(y->server >= 0);
    assert_int_equal(uv_loop_init(&y->loop), 0);
    assert_int_equal(yard_start(y, more, kind), SY_E_OK);
}

bool
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

void
yard_close(struct yard *y)
{
    assert_true(yard_end(y));
    assert_true(y->is_closed);
    assert_int_equal(mem_live(), y->live);
}

bool
yard_run_until(struct yard *y, int fd, short events)
{
    uint64_t end = clock_mono_ns() + DEADLINE_NS;

    while (clock_mono_ns() < end) {
        struct pollfd p[] = {
            {.fd = fd,                      .events = events},
            {.fd = uv_backend_fd(&y->loop), .events = POLLIN}
        };
        int timeout = uv_backend_timeout(&y->loop);

        /* What a callback has begun to watch is watched by the next run alone (libuv 1.43). */
        (void)poll(p, 2, timeout < 0 || timeout > 10 ? 10 : timeout);
        if ((p[0].revents & (events | POLLHUP | POLLERR)) != 0) {
            return true;
        }
        (void)uv_run(&y->loop, UV_RUN_NOWAIT);
    }
    return false;
}

int
yard_dial(const struct yard *y)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(y->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0) {
        (void)connect(fd, (const struct sockaddr *)&in, sizeof(in));
    }
    return fd;
}

bool
yard_send(struct yard *y, int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n > 0) {
        if (!yard_run_until(y, fd, POLLOUT)) {
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

bool
yard_send_text(struct yard *y, int fd, const char *text)
{
    return yard_send(y, fd, text, strlen(text));
}

bool
yard_receive(struct yard *y, int fd, struct buf *in, size_t n)
{
    char chunk[65536];
    size_t got = 0;

    while (got < n) {
        if (!yard_run_until(y, fd, POLLIN)) {
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

void
yard_expect(struct yard *y, int fd, const char *text)
{
    struct buf in = {.max = 1048576};
    bool is_there = yard_receive(y, fd, &in, strlen(text));
    bool is_equal = strcmp(buf_view(&in), text) == 0;

    if (!is_there || !is_equal) {
        char got[300];

        (void)snprintf(got, sizeof(got), "%s", buf_view(&in));
        buf_fini(&in);
        fail_msg("got '%s', expected '%s'", got, text);
    }
    buf_fini(&in);
}

void
yard_expect_end(struct yard *y, int fd, const char *const *parts)
{
    struct buf in = {.max = 1048576};
    char got[2000];
    bool is_there = yard_receive(y, fd, &in, SIZE_MAX);

    (void)snprintf(got, sizeof(got), "%s", buf_view(&in));
    buf_fini(&in);
    assert_true(is_there);
    for (; *parts != NULL; parts++) {
        if (strstr(got, *parts) == NULL) {
            fail_msg("'%s' is not in '%s'", *parts, got);
        }
    }
}

int
yard_accept(struct yard *y)
{
    assert_true(yard_run_until(y, y->server, POLLIN));

    int fd = accept4(y->server, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    assert_true(fd >= 0);
    return fd;
}

bool
yard_has_waiting(const struct yard *y)
{
    struct pollfd p = {.fd = y->server, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

void
yard_expect_verdict(const struct yard *y, const char *text)
{
    assert_int_equal(y->verdict_count, 1);
    if (strstr(y->verdicts[0].text, text) == NULL) {
        fail_msg("the verdict is '%s', expected '%s'", y->verdicts[0].text, text);
    }
}

int
yard_tunnel(struct yard *y, const char *host)
{
    char text[200];
    int fd = yard_dial(y);

    (void)snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.1\r\nHost: %s\r\n\r\n", host,
                   (unsigned)y->server_port, host);
    assert_true(yard_send_text(y, fd, text));
    yard_expect(y, fd, "HTTP/1.1 200 Connection Established\r\n\r\n");
    return fd;
}
