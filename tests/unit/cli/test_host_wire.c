/* Messages between the daemon and its hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "cli/host_wire.h"

static void
make_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void
close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fd_close(&fds[i]);
    }
}

static void
a_message_arrives_with_its_descriptors(void **state)
{
    const struct host_message sent = {.kind = HOST_GUEST, .number = 7, .pid = 11, .id = "c1/work"};
    struct host_message got;
    int pair[2];
    int pipes[2];
    int fds[HOST_FDS];
    char byte = 0;

    (void)state;
    make_pair(pair);
    assert_int_equal(host_receive(pair[1], &got, fds), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_true(host_send(pair[0], &sent, pipes, 2));
    assert_int_equal(host_receive(pair[1], &got, fds), 1);
    assert_int_equal(got.version, HOST_VERSION);
    assert_int_equal(got.kind, HOST_GUEST);
    assert_int_equal(got.number, 7);
    assert_int_equal(got.pid, 11);
    assert_string_equal(got.id, "c1/work");
    assert_int_equal(fds[2], -1);
    assert_int_equal(fds[3], -1);
    assert_true((fcntl(fds[0], F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close_all(fds, HOST_FDS);
    close_all(pipes, 2);
    close_all(pair, 2);
}

static void
what_is_no_message_ends_the_channel(void **state)
{
    struct host_message m = {.version = HOST_VERSION + 1, .kind = HOST_STOP};
    int fds[HOST_FDS];
    int pair[2];

    (void)state;
    make_pair(pair);
    assert_int_equal(send(pair[0], &m, sizeof(m), 0), (ssize_t)sizeof(m));
    assert_int_equal(host_receive(pair[1], &m, fds), -1);
    m.version = HOST_VERSION;
    assert_int_equal(send(pair[0], &m, sizeof(m) - 1, 0), (ssize_t)sizeof(m) - 1);
    assert_int_equal(host_receive(pair[1], &m, fds), -1);
    /* A text without an end gets one. */
    memset(m.id, 'x', sizeof(m.id));
    memset(m.build, 'x', sizeof(m.build));
    assert_int_equal(send(pair[0], &m, sizeof(m), 0), (ssize_t)sizeof(m));
    assert_int_equal(host_receive(pair[1], &m, fds), 1);
    assert_int_equal(strlen(m.id), HOST_ID - 1);
    assert_int_equal(strlen(m.build), LOCAL_BUILD_MAX - 1);
    fd_close(&pair[0]);
    assert_int_equal(host_receive(pair[1], &m, fds), -1);
    assert_false(host_send(pair[1], &m, NULL, 0));
    fd_close(&pair[1]);
}

static void
one_that_does_not_read_is_told_from_one_that_does(void **state)
{
    const struct host_message m = {.kind = HOST_LIST};
    int pair[2];
    size_t n = 0;

    (void)state;
    make_pair(pair);
    while (host_send(pair[0], &m, NULL, 0)) {
        n++;
    }
    assert_true(n > 16);
    close_all(pair, 2);
}

static void
a_file_is_read_from_its_beginning(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64};
    struct sy_error err = {0};
    SY_FD file = -1;

    (void)state;
    assert_int_equal(host_read_file(-1, &text, &err), SY_E_PARSE);
    assert_int_equal(fd_memory_file(&file, "test", "hello", 5, &err), SY_E_OK);
    assert_int_equal(host_read_file(file, &text, &err), SY_E_OK);
    assert_string_equal(buf_view(&text), "hello");
}

static void
clients_are_alike_by_protocol_place_and_arguments(void **state)
{
    char *none[] = {NULL};
    char flag[] = "-s";
    char mode[] = "read-only";
    char joined[] = "-sread-only";
    char *two[] = {flag, mode, NULL};
    char *one[] = {joined, NULL};
    const struct hello base = {.protocol = "mcp", .cwd = "/a", .args = none};
    struct hello other = base;

    (void)state;
    assert_true(host_key(&base) != 0);
    assert_true(host_key(&base) == host_key(&other));
    other.cwd = "/b";
    assert_true(host_key(&base) != host_key(&other));
    other.cwd = "/a";
    other.protocol = "proto";
    assert_true(host_key(&base) != host_key(&other));
    other = (struct hello){.protocol = "mcp", .cwd = "/a", .args = two};
    assert_true(host_key(&base) != host_key(&other));

    uint64_t with_two = host_key(&other);

    other.args = one;
    assert_true(with_two != host_key(&other));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_arrives_with_its_descriptors),
        cmocka_unit_test(what_is_no_message_ends_the_channel),
        cmocka_unit_test(one_that_does_not_read_is_told_from_one_that_does),
        cmocka_unit_test(a_file_is_read_from_its_beginning),
        cmocka_unit_test(clients_are_alike_by_protocol_place_and_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
