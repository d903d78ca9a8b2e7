/* connect(2) in a network of its own, as the broker makes it: here in ours. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/fd.h"
#include "process/own_network.h"

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t
size_of(const union any_address *a)
{
    return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static union any_address
address(const char *text, uint16_t port)
{
    union any_address a = {.v6 = {0}};

    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
    } else {
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
        assert_int_equal(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
    }
    return a;
}

static struct broker_address
parse(const union any_address *a)
{
    return broker_address_parse(a, size_of(a));
}

static void
addresses_of_the_machine_itself_are_known(void **state)
{
    static const struct {
        const char *text;
        bool is_local;
        bool is_loopback;
        bool is_any;
    } rows[] = {
        {"127.0.0.1",          true,  true,  false},
        {"127.255.0.9",        true,  false, false},
        {"0.0.0.0",            true,  false, true },
        {"::1",                true,  false, false},
        {"::",                 true,  false, true },
        {"::ffff:127.0.0.1",   true,  true,  false},
        {"::ffff:0.0.0.0",     true,  false, true },
        {"128.0.0.1",          false, false, false},
        {"126.255.255.255",    false, false, false},
        {"1.0.0.127",          false, false, false},
        {"169.254.169.254",    false, false, false},
        {"::ffff:10.0.0.1",    false, false, false},
        {"::127.0.0.1",        false, false, false},
        {"64:ff9b::127.0.0.1", false, false, false},
        {"fe80::1",            false, false, false},
        {"2001:db8::1",        false, false, false},
        {"::2",                false, false, false},
        {"255.255.255.255",    false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const union any_address to = address(rows[i].text, 80);
        struct broker_address a = parse(&to);

        assert_int_equal(a.kind, ADDRESS_INET);
        if (a.is_local != rows[i].is_local || a.is_loopback != rows[i].is_loopback ||
            a.is_any != rows[i].is_any) {
            fail_msg("%s is taken for another address", rows[i].text);
        }
    }
}

/* A server there; *ret_port is its port. -1: this machine has no such address. */
static int
serve(const char *text, int type, uint16_t *ret_port)
{
    union any_address at = address(text, 0);
    socklen_t size = size_of(&at);
    int fd = socket(at.any.sa_family, type | SOCK_CLOEXEC, 0);

    if (fd >= 0 && bind(fd, &at.any, size) != 0) {
        fd_close(&fd);
    }
    if (fd >= 0) {
        assert_true(type == SOCK_DGRAM || listen(fd, 4) == 0);
        assert_int_equal(getsockname(fd, &at.any, &size), 0);
        *ret_port = ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
    }
    return fd;
}

static bool
is_served(const char *text, uint16_t port)
{
    const union any_address to = address(text, port);
    const struct broker_address a = parse(&to);

    return own_network_is_served_outside(&a);
}

static void
a_server_of_this_machine_is_found(void **state)
{
    uint16_t port = 0;
    SY_FD fd = serve("127.0.0.1", SOCK_STREAM, &port);

    (void)state;
    assert_true(fd >= 0);
    assert_true(is_served("127.0.0.1", port));
    assert_true(is_served("::ffff:127.0.0.1", port));
    assert_true(is_served("0.0.0.0", port));
    assert_false(is_served("127.0.0.2", port));
    assert_false(is_served("::1", port));
    fd_close(&fd);
    assert_false(is_served("127.0.0.1", port));
    fd = serve("0.0.0.0", SOCK_STREAM, &port);
    assert_true(is_served("127.0.0.2", port));
    fd_close(&fd);
    fd = serve("127.0.0.1", SOCK_DGRAM, &port);
    assert_false(is_served("127.0.0.1", port));
    fd_close(&fd);
    fd = serve("::1", SOCK_STREAM, &port);
    if (fd >= 0) {
        assert_true(is_served("::1", port));
        assert_false(is_served("127.0.0.1", port));
    }
}

static struct own_answer
connect_to(int type, const char *text, uint16_t port)
{
    const union any_address to = address(text, port);
    const struct broker_address a = parse(&to);
    SY_FD fd = socket(to.any.sa_family, type | SOCK_CLOEXEC, 0);
    struct own_answer answer;
    union any_address peer;
    socklen_t size = sizeof(peer);

    assert_true(fd >= 0);
    answer = own_network_connect(fd, &a, &to, size_of(&to));
    assert_int_equal(getpeername(fd, &peer.any, &size) == 0, answer.sys == 0);
    return answer;
}

static void
what_is_here_is_connected_to_and_nothing_else(void **state)
{
    uint16_t port = 0;
    SY_FD fd = serve("127.0.0.1", SOCK_STREAM, &port);
    struct own_answer got;

    (void)state;
    got = connect_to(SOCK_STREAM, "127.0.0.1", port);
    assert_int_equal(got.sys, 0);
    assert_true(got.is_tcp);
    assert_int_equal(got.miss, MISS_NOTHING);
    got = connect_to(SOCK_DGRAM, "127.0.0.1", port);
    assert_int_equal(got.sys, 0);
    assert_false(got.is_tcp);
    fd_close(&fd);
    got = connect_to(SOCK_STREAM, "127.0.0.1", port);
    assert_int_equal(got.sys, ECONNREFUSED);
    assert_int_equal(got.miss, MISS_NOTHING);
    /* Where this machine could go, too. */
    got = connect_to(SOCK_DGRAM, "192.0.2.53", 53);
    assert_int_equal(got.sys, ENETUNREACH);
    assert_int_equal(got.miss, MISS_DATAGRAM);
    got = connect_to(SOCK_STREAM, "192.0.2.1", 80);
    assert_int_equal(got.sys, ENETUNREACH);
    assert_int_equal(got.miss, MISS_OUTSIDE);
}

/* An address of the internet for a socket that is none: the kernel's own words, and no refusal. */
static void
a_socket_of_another_kind_is_the_kernels(void **state)
{
    const union any_address to = address("192.0.2.1", 80);
    const struct broker_address a = parse(&to);
    SY_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct own_answer got = own_network_connect(fd, &a, &to, size_of(&to));

    (void)state;
    assert_int_equal(got.sys, EINVAL);
    assert_int_equal(got.miss, MISS_NOTHING);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_the_machine_itself_are_known),
        cmocka_unit_test(a_server_of_this_machine_is_found),
        cmocka_unit_test(what_is_here_is_connected_to_and_nothing_else),
        cmocka_unit_test(a_socket_of_another_kind_is_the_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
