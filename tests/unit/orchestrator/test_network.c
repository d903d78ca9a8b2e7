/* The network of allow lists by itself: whom its proxy serves, and what it tells. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "fault.h"
#include "orchestrator/network.h"

#define SECOND_NS 1000000000ULL

/* No rules. */
static const struct assess_by no_rules;

static const char request[] = "GET http://name.invalid/ HTTP/1.1\r\nHost: name.invalid\r\n\r\n";

struct world {
    struct strv allow;
    struct network *network;
    struct network_seat *seat;
};

static int
setup(void **state)
{
    struct world *w = mem_alloc_zero(1, sizeof(*w));

    assert_non_null(w);
    w->allow.max = 4;
    assert_int_equal(strv_add(&w->allow, "other.invalid"), SY_E_OK);
    assert_int_equal(network_new(&w->network, &w->allow, &no_rules, NULL), SY_E_OK);
    assert_int_equal(network_join(w->network, &w->seat, NULL), SY_E_OK);
    *state = w;
    return 0;
}

static int
teardown(void **state)
{
    struct world *w = *state;

    network_leave(w->seat);
    network_free(w->network);
    strv_fini(&w->allow);
    mem_free(w);
    return 0;
}

static int
connect_to(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* As the broker: the gate gets a descriptor of the socket, its process keeps its own. */
static void
tell_gate(const struct network_seat *seat, int fd)
{
    const struct process_gate *gate = network_gate(seat);
    SY_FD copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    assert_true(copy >= 0);
    gate->on_connected(gate->arg, &copy);
}

/* All that comes up to the end of the connection, as far as it fits. */
static void
read_all(struct network_seat *seat, int fd, char *ret, size_t size)
{
    uint64_t until = clock_mono_ns() + 20 * SECOND_NS;
    size_t n = 0;

    for (;;) {
        struct pollfd fds[2] = {
            {.fd = fd,                    .events = POLLIN},
            {.fd = network_seat_fd(seat), .events = POLLIN},
        };

        assert_true(clock_mono_ns() < until);
        (void)poll(fds, 2, network_deadline_ns(seat) <= clock_mono_ns() ? 0 : 1000);
        network_step(seat);
        if (fds[0].revents == 0) {
            continue;
        }

        ssize_t got = read(fd, ret + n, size - 1 - n);

        if (got <= 0) {
            break;
        }
        n += (size_t)got;
    }
    ret[n] = '\0';
}

static void
a_connection_that_the_broker_made_is_served_and_told(void **state)
{
    struct world *w = *state;
    char answer[2000];
    SY_FD fd = connect_to(network_gate(w->seat)->port);

    tell_gate(w->seat, fd);
    assert_int_equal(write(fd, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    read_all(w->seat, fd, answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));

    const struct denial_list *list = network_denials(w->seat);

    assert_int_equal(list->n, 1);
    assert_string_equal(list->v[0].object, "name.invalid:80");
    assert_int_equal(list->v[0].layer, DENIAL_PROXY);
    assert_int_equal(list->v[0].confidence, DENIAL_EXACT);
    assert_string_equal(list->v[0].fix, "network.allow: [name.invalid]");
    assert_int_equal(network_hosts(w->seat)->n, 0);
}

static void
a_stranger_is_hung_up_on_unread(void **state)
{
    struct world *w = *state;
    char answer[2000];
    SY_FD fd = connect_to(network_gate(w->seat)->port);

    assert_int_equal(write(fd, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    read_all(w->seat, fd, answer, sizeof(answer));
    assert_string_equal(answer, "");
    assert_int_equal(network_denials(w->seat)->n, 0);
}

/* The socket that the broker connected has let go of its port, and somebody else takes it. */
static void
a_stranger_with_the_port_of_a_socket_of_ours_is_hung_up_on(void **state)
{
    struct world *w = *state;
    char answer[2000];
    uint16_t port = network_gate(w->seat)->port;
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    const struct linger hard = {.l_onoff = 1};
    struct sockaddr_in own;
    socklen_t size = sizeof(own);
    SY_FD fd = connect_to(port);
    SY_FD thief = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    tell_gate(w->seat, fd);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    assert_int_equal(connect(fd, &nobody, sizeof(nobody)), 0);
    assert_int_equal(bind(thief, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(thief, (const struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write(thief, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    read_all(w->seat, thief, answer, sizeof(answer));
    assert_string_equal(answer, "");
    assert_int_equal(network_denials(w->seat)->n, 0);
}

static void
a_connection_ends_with_its_call_and_no_other_does(void **state)
{
    struct world *w = *state;
    struct network_seat *second = NULL;
    char answer[2000];
    char byte;

    assert_int_equal(network_join(w->network, &second, NULL), SY_E_OK);

    SY_FD mine = connect_to(network_gate(second)->port);
    SY_FD other = connect_to(network_gate(w->seat)->port);

    tell_gate(second, mine);
    tell_gate(w->seat, other);
    network_step(w->seat);
    network_leave(second);
    network_step(w->seat);

    struct pollfd gone = {.fd = mine, .events = POLLIN};

    assert_int_equal(poll(&gone, 1, 10000), 1);
    assert_true(read(mine, &byte, 1) <= 0);
    assert_int_equal(write(other, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    read_all(w->seat, other, answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
}

static int
listen_on_loopback(uint16_t *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

/* Sockets of a namespace; here of this one, so that the test reaches them. */
static void
listeners_that_were_handed_in_serve_whoever_is_there(void **state)
{
    struct world *w = *state;
    struct network_seat *second = NULL;
    SY_AUTO(strv_fini) struct strv env = {.max = 100};
    char answer[2000];
    uint16_t http_port = 0;
    uint16_t socks_port = 0;
    char url[48];
    int http = listen_on_loopback(&http_port);
    int socks = listen_on_loopback(&socks_port);

    network_leave(w->seat);
    network_free(w->network);
    assert_int_equal(network_new(&w->network, &w->allow, &no_rules, NULL), SY_E_OK);
    assert_int_equal(network_hand_in(w->network, &http, &socks, NULL), SY_E_OK);
    assert_int_equal(network_join(w->network, &w->seat, NULL), SY_E_OK);
    assert_int_equal(http, -1);
    assert_int_equal(socks, -1);
    assert_int_equal(network_gate(w->seat)->port, http_port);
    assert_int_equal(network_gate(w->seat)->socks_port, socks_port);
    assert_int_equal(network_environment(w->seat, &env, NULL), SY_E_OK);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)http_port);
    assert_string_equal(strv_env_get(&env, "HTTPS_PROXY"), url);
    (void)snprintf(url, sizeof(url), "socks5h://127.0.0.1:%u", (unsigned)socks_port);
    assert_string_equal(strv_env_get(&env, "ALL_PROXY"), url);
    /* Servers of the command itself are in the same namespace. */
    assert_string_equal(strv_env_get(&env, "NO_PROXY"), "localhost,127.0.0.1,::1");

    SY_FD fd = connect_to(http_port);

    assert_int_equal(write(fd, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    read_all(w->seat, fd, answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    assert_int_equal(network_denials(w->seat)->v[0].confidence, DENIAL_EXACT);

    /* SOCKS5: name.invalid:80 is refused with reply 2. */
    static const char greeting[] = "\x05\x01\x00\x05\x01\x00\x03\x0cname.invalid\x00\x50";

    fd_close(&fd);
    assert_int_equal(network_join(w->network, &second, NULL), SY_E_OK);
    fd = connect_to(socks_port);
    assert_int_equal(write(fd, greeting, sizeof(greeting) - 1), (ssize_t)sizeof(greeting) - 1);
    read_all(w->seat, fd, answer, sizeof(answer));
    assert_memory_equal(answer, "\x05\x00\x05\x02", 4);
    /* Which of the two calls it was can't be told. */
    assert_int_equal(network_denials(second)->v[0].confidence, DENIAL_INFERRED);
    assert_int_equal(network_denials(w->seat)->v[0].count, 2);

    /* But where the broker made it. */
    fd_close(&fd);
    fd = connect_to(socks_port);
    tell_gate(second, fd);
    assert_int_equal(write(fd, greeting, sizeof(greeting) - 1), (ssize_t)sizeof(greeting) - 1);
    read_all(w->seat, fd, answer, sizeof(answer));
    assert_int_equal(network_denials(second)->v[0].confidence, DENIAL_EXACT);
    assert_int_equal(network_denials(second)->v[0].count, 2);
    assert_int_equal(network_denials(w->seat)->v[0].count, 2);
    network_leave(second);
}

static void
the_environment_names_the_gate(void **state)
{
    struct world *w = *state;
    SY_AUTO(strv_fini) struct strv env = {.max = 100};
    char url[40];

    assert_int_equal(network_environment(w->seat, &env, NULL), SY_E_OK);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)network_gate(w->seat)->port);
    assert_string_equal(strv_env_get(&env, "http_proxy"), url);
    assert_string_equal(strv_env_get(&env, "NO_PROXY"), "");
}

static enum sy_code
join_and_leave(void *arg)
{
    struct strv *allow = arg;
    struct network *n = NULL;
    struct network_seat *seat = NULL;
    enum sy_code rc = network_new(&n, allow, &no_rules, NULL);

    if (rc == SY_E_OK) {
        rc = network_join(n, &seat, NULL);
    }
    network_leave(seat);
    network_free(n);
    return rc;
}

static void
each_failed_allocation_is_survived(void **state)
{
    SY_AUTO(strv_fini) struct strv allow = {.max = 4};

    (void)state;
    assert_int_equal(strv_add(&allow, "name.invalid"), SY_E_OK);
    fault_run(join_and_leave, &allow);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define NETWORK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        NETWORK_TEST(a_connection_that_the_broker_made_is_served_and_told),
        NETWORK_TEST(a_stranger_is_hung_up_on_unread),
        NETWORK_TEST(a_stranger_with_the_port_of_a_socket_of_ours_is_hung_up_on),
        NETWORK_TEST(a_connection_ends_with_its_call_and_no_other_does),
        NETWORK_TEST(listeners_that_were_handed_in_serve_whoever_is_there),
        NETWORK_TEST(the_environment_names_the_gate),
        cmocka_unit_test(each_failed_allocation_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
