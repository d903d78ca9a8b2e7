#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/exec_stream.h"

#define CHUNK ((size_t)256 * 1024)

/* The streams under test write to descriptors 1 and 2: each test puts a pipe
 * on 1 and gives the reading end; the true one comes back afterwards. */
struct pipe_on_stdout {
    int read_fd;
    int saved_fd;
};

static int
put_pipe(void **state)
{
    static struct pipe_on_stdout p;
    int write_fd = -1;

    if (fd_pipe(&p.read_fd, &write_fd, NULL) != SY_E_OK) {
        return -1;
    }
    p.saved_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (p.saved_fd < 0 || dup2(write_fd, STDOUT_FILENO) < 0) {
        return -1;
    }
    fd_close(&write_fd);
    *state = &p;
    return 0;
}

static int
take_pipe(void **state)
{
    struct pipe_on_stdout *p = *state;

    if (dup2(p->saved_fd, STDOUT_FILENO) < 0) {
        return -1;
    }
    fd_close(&p->saved_fd);
    fd_close(&p->read_fd);
    return 0;
}

static void
fill(char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(i * 31 % 251);
    }
}

/* Reads what is there now; returns how much. */
static size_t
drain(int fd, char *into, size_t room)
{
    size_t got = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    while (got < room && poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
        ssize_t n = read(fd, into + got, room - got);

        if (n <= 0) {
            break;
        }
        got += (size_t)n;
    }
    return got;
}

static void
a_reader_that_sleeps_does_not_block_and_gets_all_in_order(void **state)
{
    struct pipe_on_stdout *p = *state;
    SY_AUTO(exec_stream_fini) struct exec_stream s;
    char *sent = mem_alloc(CHUNK);
    char *got = mem_alloc(CHUNK);
    size_t n = 0;

    assert_non_null(sent);
    assert_non_null(got);
    fill(sent, CHUNK);
    exec_stream_init(&s);
    /* More than a pipe holds, in a small and a large piece. */
    assert_int_equal(exec_stream_raw(&s, STREAM_STDOUT, sent, 100), SY_E_OK);
    assert_int_equal(exec_stream_raw(&s, STREAM_STDOUT, sent + 100, CHUNK - 100), SY_E_OK);
    assert_true(exec_stream_is_pending(&s));
    while (n < CHUNK) {
        size_t more = drain(p->read_fd, got + n, CHUNK - n);

        assert_true(more > 0);
        n += more;
        exec_stream_flush(&s);
    }
    assert_false(exec_stream_is_pending(&s));
    assert_int_equal(s.failed, 0);
    assert_memory_equal(got, sent, CHUNK);
    mem_free(sent);
    mem_free(got);
}

static void
small_output_goes_out_at_once(void **state)
{
    struct pipe_on_stdout *p = *state;
    SY_AUTO(exec_stream_fini) struct exec_stream s;
    char got[16];

    exec_stream_init(&s);
    assert_int_equal(exec_stream_raw(&s, STREAM_STDOUT, "hello", 5), SY_E_OK);
    assert_false(exec_stream_is_pending(&s));
    assert_int_equal(drain(p->read_fd, got, sizeof(got)), 5);
    assert_memory_equal(got, "hello", 5);
}

static void
a_reader_that_went_away_is_remembered(void **state)
{
    struct pipe_on_stdout *p = *state;
    SY_AUTO(exec_stream_fini) struct exec_stream s;
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    assert_int_equal(sigaction(SIGPIPE, &ignore, NULL), 0);
    exec_stream_init(&s);
    fd_close(&p->read_fd);
    assert_int_equal(exec_stream_raw(&s, STREAM_STDOUT, "hello", 5), SY_E_OK);
    assert_int_equal(s.failed, EPIPE);
    assert_false(exec_stream_is_pending(&s));
    /* More is dropped, without an error: the owner ends the call. */
    assert_int_equal(exec_stream_raw(&s, STREAM_STDOUT, "world", 5), SY_E_OK);
}

static void
the_descriptor_that_we_were_given_stays_blocking(void **state)
{
    SY_AUTO(exec_stream_fini) struct exec_stream s;
    char *bytes = mem_alloc_zero(1, CHUNK);

    (void)state;
    assert_non_null(bytes);
    exec_stream_init(&s);
    assert_int_equal(exec_stream_raw(&s, STREAM_STDOUT, bytes, CHUNK), SY_E_OK);
    assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, 0);
    mem_free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_that_sleeps_does_not_block_and_gets_all_in_order,
                                        put_pipe, take_pipe),
        cmocka_unit_test_setup_teardown(small_output_goes_out_at_once, put_pipe, take_pipe),
        cmocka_unit_test_setup_teardown(a_reader_that_went_away_is_remembered, put_pipe, take_pipe),
        cmocka_unit_test_setup_teardown(the_descriptor_that_we_were_given_stays_blocking, put_pipe,
                                        take_pipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
