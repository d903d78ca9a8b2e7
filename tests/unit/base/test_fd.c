#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "fault.h"

static void
closing_empties_the_descriptor_and_keeps_errno(void **state)
{
    int read_end = -1;
    int write_end = -1;

    (void)state;
    assert_int_equal(fd_pipe(&read_end, &write_end, NULL), SY_E_OK);

    int number = read_end;

    errno = EDOM;
    fd_close(&read_end);
    assert_int_equal(errno, EDOM);
    assert_int_equal(read_end, -1);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    fd_close(&read_end);

    int moved = fd_take(&write_end);

    assert_int_equal(write_end, -1);
    assert_true(fcntl(moved, F_GETFD) >= 0);
    fd_close(&moved);
    assert_int_equal(fd_take(&write_end), -1);
}

static void
pipes_close_on_exec_and_block(void **state)
{
    SY_FD read_end = -1;
    SY_FD write_end = -1;

    (void)state;
    assert_int_equal(fd_pipe(&read_end, &write_end, NULL), SY_E_OK);
    assert_int_equal(fcntl(read_end, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(write_end, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(read_end, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fd_set_nonblock(read_end, NULL), SY_E_OK);
    assert_int_equal(fcntl(read_end, F_GETFL) & O_NONBLOCK, O_NONBLOCK);

    struct sy_error err = {0};

    assert_int_equal(fd_set_nonblock(-1, &err), SY_E_SYS);
    assert_int_equal(err.sys, EBADF);
}

struct transfer {
    int fd;
    const char *bytes;
    size_t n;
    enum sy_code rc;
};

static void *
write_in_thread(void *arg)
{
    struct transfer *t = arg;

    t->rc = fd_write_all(t->fd, t->bytes, t->n, NULL);
    fd_close(&t->fd);
    return NULL;
}

/* More than a pipe holds, so that both sides wait for each other. */
static void
all_bytes_arrive_through_a_full_pipe(void **state)
{
    enum { TOTAL = 1000000 };
    SY_AUTO(mem_free_charp) char *bytes = mem_alloc(TOTAL);

    (void)state;
    for (size_t i = 0; i < TOTAL; i++) {
        bytes[i] = (char)(i * 7 % 251);
    }
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        SY_FD read_end = -1;
        SY_FD write_end = -1;
        SY_AUTO(buf_fini) struct buf got = {.max = TOTAL};
        pthread_t thread;

        assert_int_equal(fd_pipe(&read_end, &write_end, NULL), SY_E_OK);
        if (nonblocking != 0) {
            assert_int_equal(fd_set_nonblock(write_end, NULL), SY_E_OK);
        }

        struct transfer t = {.fd = fd_take(&write_end), .bytes = bytes, .n = TOTAL};

        assert_int_equal(pthread_create(&thread, NULL, write_in_thread, &t), 0);

        enum sy_code rc = fd_read_all(read_end, &got, NULL);

        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(rc, SY_E_OK);
        assert_int_equal(t.rc, SY_E_OK);
        assert_int_equal(got.len, TOTAL);
        assert_memory_equal(got.data, bytes, TOTAL);
    }
}

static void
writing_fails_with_its_errno(void **state)
{
    SY_FD fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct sy_error err = {0};

    (void)state;
    if (fd < 0) {
        skip();
    }
    assert_int_equal(fd_write_all(fd, "x", 1, &err), SY_E_SYS);
    assert_int_equal(err.sys, ENOSPC);
    assert_int_equal(fd_write_all(fd, "", 0, &err), SY_E_OK);
}

static char dir[64];

static int
make_dir(void **state)
{
    (void)state;
    memcpy(dir, "/tmp/test_fd.XXXXXX", sizeof("/tmp/test_fd.XXXXXX"));
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int
remove_dir(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof(path), "%s/file", dir);
    unlink(path);
    return rmdir(dir);
}

static void
put_file(char *path, size_t size, size_t bytes)
{
    assert_true(snprintf(path, size, "%s/file", dir) < (int)size);

    FILE *f = fopen(path, "w");

    assert_non_null(f);
    for (size_t i = 0; i < bytes; i++) {
        assert_true(fputc('a' + (int)(i % 26), f) != EOF);
    }
    assert_int_equal(fclose(f), 0);
}

static void
a_file_is_read_up_to_the_maximum_and_not_beyond(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 200000};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        SY_AUTO(buf_fini) struct buf exact = {.max = sizes[i]};
        struct sy_error err = {0};

        put_file(path, sizeof(path), sizes[i]);
        assert_int_equal(fd_read_file(path, &exact, &err), SY_E_OK);
        assert_int_equal(exact.len, sizes[i]);
        if (sizes[i] > 0) {
            SY_AUTO(buf_fini) struct buf small = {.max = sizes[i] - 1};

            assert_int_equal(exact.data[sizes[i] - 1], 'a' + (int)((sizes[i] - 1) % 26));
            assert_int_equal(fd_read_file(path, &small, &err), SY_E_LIMIT);
            assert_true(small.len < sizes[i]);
            assert_non_null(strstr(err.msg, path));
        }
    }
}

static void
missing_files_are_told_from_unreadable_ones(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100};
    struct sy_error err = {0};
    char path[128];

    (void)state;
    put_file(path, sizeof(path), 1);
    assert_int_equal(fd_read_file("/nowhere/at/all", &b, &err), SY_E_NOTFOUND);
    assert_string_equal(err.msg, "no file '/nowhere/at/all'");
    assert_true(snprintf(path, sizeof(path), "%s/file/below", dir) > 0);
    assert_int_equal(fd_read_file(path, &b, &err), SY_E_NOTFOUND);
    assert_int_equal(fd_read_file(dir, &b, &err), SY_E_SYS);
    assert_int_equal(err.sys, EISDIR);
    assert_non_null(strstr(err.msg, dir));
}

static enum sy_code
read_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 200000};

    return fd_read_file(arg, &b, NULL);
}

/* One byte, with n times standard input. */
static void
pass(int to, size_t n)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (char[1]){'x'}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    const int zero[3] = {0};

    if (n > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), zero, n * sizeof(int));
    }
    assert_int_equal(sendmsg(to, &message, MSG_NOSIGNAL), 1);
}

static void
take(int from, int *fds, size_t n)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control;
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};

    assert_int_equal(recvmsg(from, &message, MSG_CMSG_CLOEXEC), 1);
    fd_take_passed(&message, fds, n);
}

static int
lowest_free(void)
{
    SY_FD fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

    return fd;
}

static void
descriptors_that_come_fill_empty_places_and_are_closed_beyond(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);

    int lowest = lowest_free();
    int fds[2] = {ends[0], -1};

    pass(ends[0], 3);
    take(ends[1], fds, 2);
    assert_int_equal(fds[0], ends[0]);
    assert_int_equal(fds[1], lowest);
    fd_close(&fds[1]);
    assert_int_equal(lowest_free(), lowest);
    pass(ends[0], 0);
    take(ends[1], fds, 2);
    assert_int_equal(fds[1], -1);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

static ssize_t
receive(int fd, void *ret, size_t n)
{
    struct iovec part = {.iov_base = ret, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    return fd_receive(fd, &message, MSG_DONTWAIT);
}

static void
the_last_words_come_before_the_end(void **state)
{
    int ends[2];
    char word[8];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(receive(ends[0], word, sizeof(word)), -1);
    assert_int_equal(errno, EAGAIN);
    /* What an end looks like that the kernel tells too early: nothing, and a message behind it. */
    assert_int_equal(send(ends[1], "", 0, 0), 0);
    assert_int_equal(send(ends[1], "last", 4, 0), 4);
    assert_int_equal(receive(ends[0], word, sizeof(word)), 4);
    assert_memory_equal(word, "last", 4);
    /* A peer that goes and leaves something unread. */
    assert_int_equal(send(ends[0], "order", 5, 0), 5);
    assert_int_equal(send(ends[1], "two", 3, 0), 3);
    fd_close(&ends[1]);
    assert_int_equal(receive(ends[0], word, sizeof(word)), 3);
    assert_memory_equal(word, "two", 3);
    assert_int_equal(receive(ends[0], word, sizeof(word)), 0);
    assert_int_equal(receive(ends[0], word, sizeof(word)), 0);
    fd_close(&ends[0]);
}

static void
reading_survives_each_failed_allocation(void **state)
{
    char path[128];

    (void)state;
    put_file(path, sizeof(path), 150000);
    fault_run(read_once, path);
}

static void
room_for_descriptors_is_known_and_nothing_stays_open(void **state)
{
    struct rlimit before;
    struct rlimit few;
    int next = dup(STDERR_FILENO);

    (void)state;
    assert_true(next >= 0);
    fd_close(&(int){next});
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)next + 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);

    int of_three = fd_check_room(3);
    int of_more = fd_check_room(FD_ROOM_LOOP);
    int again = dup(STDERR_FILENO);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(of_three, 0);
    assert_int_equal(of_more, EMFILE);
    assert_int_equal(again, next);
    fd_close(&again);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_empties_the_descriptor_and_keeps_errno),
        cmocka_unit_test(pipes_close_on_exec_and_block),
        cmocka_unit_test(all_bytes_arrive_through_a_full_pipe),
        cmocka_unit_test(writing_fails_with_its_errno),
        cmocka_unit_test(a_file_is_read_up_to_the_maximum_and_not_beyond),
        cmocka_unit_test(missing_files_are_told_from_unreadable_ones),
        cmocka_unit_test(descriptors_that_come_fill_empty_places_and_are_closed_beyond),
        cmocka_unit_test(the_last_words_come_before_the_end),
        cmocka_unit_test(room_for_descriptors_is_known_and_nothing_stays_open),
        cmocka_unit_test(reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
