#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fake_front.h"
#include "fault.h"
#include "transport/transport.h"

/* A server between two descriptors and the peer's ends of them. */
struct fixture {
    uv_loop_t loop;
    struct stdio_server *server;
    int to;   /* the peer writes here */
    int from; /* and reads here */
    bool has_ended;
    struct sy_error why;
};

static void
on_ended(void *arg, const struct sy_error *why)
{
    struct fixture *f = arg;

    f->has_ended = true;
    f->why = *why;
    stdio_server_free(f->server);
    f->server = NULL;
}

static enum sy_code
start(struct fixture *f, int in_fd, int out_fd)
{
    const struct stdio_server_options options = {
        .loop = &f->loop,
        .front = fake_front_new,
        .in_fd = in_fd,
        .out_fd = out_fd,
        .ended = on_ended,
        .arg = f,
    };

    SY_ASSERT(uv_loop_init(&f->loop) == 0);
    return stdio_server_new(&f->server, &options, NULL);
}

static void
start_on_pipes(struct fixture *f)
{
    int in = -1;
    int out = -1;

    *f = (struct fixture){.to = -1, .from = -1};
    assert_int_equal(fd_pipe(&in, &f->to, NULL), SY_E_OK);
    assert_int_equal(fd_pipe(&f->from, &out, NULL), SY_E_OK);
    assert_int_equal(start(f, in, out), SY_E_OK);
}

static void
tell(struct fixture *f, const char *text)
{
    assert_int_equal(fd_write_all(f->to, text, strlen(text), NULL), SY_E_OK);
}

/* One turn of the loop, waiting for something to happen. */
static void
turn(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_ONCE);
}

static void
run_to_the_end(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->has_ended);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    fd_close(&f->to);
    fd_close(&f->from);
}

/* Reads what is there into `text` until it holds `n` bytes, running the server
 * meanwhile. */
static void
read_bytes(struct fixture *f, struct buf *text, size_t n)
{
    static char chunk[256 * 1024];

    while (text->len < n) {
        struct pollfd p = {.fd = f->from, .events = POLLIN};

        uv_run(&f->loop, UV_RUN_NOWAIT);
        if (poll(&p, 1, 0) == 1) {
            ssize_t got = read(f->from, chunk, sizeof(chunk));

            assert_true(got > 0);
            assert_int_equal(buf_add(text, chunk, (size_t)got), SY_E_OK);
        }
    }
}

static void
carries_lines_both_ways(void **state)
{
    struct fixture f;
    struct buf text = {.max = 1000};

    (void)state;
    start_on_pipes(&f);
    tell(&f, "echo {\"a\":1}\r\necho 2\necho thr");
    read_bytes(&f, &text, 10);
    assert_string_equal(text.data, "{\"a\":1}\n2\n");
    tell(&f, "ee\n");
    read_bytes(&f, &text, 16);
    assert_string_equal(text.data, "{\"a\":1}\n2\nthree\n");
    fd_close(&f.to);
    run_to_the_end(&f);
    assert_true(fake_front()->has_eof);
    assert_int_equal(f.why.code, SY_E_OK);
    buf_fini(&text);
}

static void
a_last_line_without_newline_counts(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    tell(&f, "last");
    fd_close(&f.to);
    run_to_the_end(&f);
    assert_string_equal(fake_front()->last, "last");
}

static void
files_serve_as_both_ends(void **state)
{
    struct fixture f = {.to = -1, .from = -1};
    int in = memfd_create("in", MFD_CLOEXEC);
    int out = memfd_create("out", MFD_CLOEXEC);
    int out_again = dup(out);
    char text[32] = "";

    (void)state;
    assert_true(in >= 0 && out >= 0 && out_again >= 0);
    assert_int_equal(fd_write_all(in, "echo one\necho two\n", 18, NULL), SY_E_OK);
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    assert_int_equal(start(&f, in, out), SY_E_OK);
    run_to_the_end(&f);
    assert_int_equal(pread(out_again, text, sizeof(text) - 1, 0), 8);
    assert_string_equal(text, "one\ntwo\n");
    fd_close(&out_again);
}

static void
dev_null_ends_at_once(void **state)
{
    struct fixture f = {.to = -1, .from = -1};

    (void)state;
    assert_int_equal(
        start(&f, open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC)),
        SY_E_OK);
    run_to_the_end(&f);
    assert_true(fake_front()->has_eof);
}

static void
a_slow_reader_gets_all_and_blocks_nothing(void **state)
{
    const size_t n = 32;
    struct fixture f;
    struct buf text = {.max = 64U * FLOOD_BYTES};

    (void)state;
    start_on_pipes(&f);
    tell(&f, "flood 32\n");
    while (fake_front()->n_lines < 1) {
        turn(&f);
    }
    /* Nobody has read a byte, yet the next line is heard. */
    tell(&f, "echo after\n");
    while (fake_front()->n_lines < 2) {
        turn(&f);
    }
    read_bytes(&f, &text, n * (FLOOD_BYTES + 1) + 6);
    for (size_t i = 0; i < n; i++) {
        const char *block = text.data + i * (FLOOD_BYTES + 1);

        assert_int_equal(block[0], 'a' + (int)(i % 26));
        assert_int_equal(block[FLOOD_BYTES - 1], 'a' + (int)(i % 26));
        assert_int_equal(block[FLOOD_BYTES], '\n');
    }
    assert_string_equal(text.data + n * (FLOOD_BYTES + 1), "after\n");
    fd_close(&f.to);
    run_to_the_end(&f);
    assert_int_equal(f.why.code, SY_E_OK);
    buf_fini(&text);
}

static void
what_was_said_before_eof_still_goes_out(void **state)
{
    struct fixture f;
    struct buf text = {.max = 64U * FLOOD_BYTES};

    (void)state;
    start_on_pipes(&f);
    tell(&f, "flood 16\n");
    fd_close(&f.to);
    while (!fake_front()->has_eof) {
        turn(&f);
    }
    read_bytes(&f, &text, 16 * (FLOOD_BYTES + 1));
    run_to_the_end(&f);
    assert_int_equal(f.why.code, SY_E_OK);
    buf_fini(&text);
}

static void
a_peer_that_never_reads_is_left(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    tell(&f, "flood 1200\n");
    run_to_the_end(&f);
    assert_true(fake_front()->is_gone);
    assert_int_not_equal(fake_front()->sent, SY_E_OK);
    assert_int_equal(f.why.code, SY_E_LIMIT);
    assert_non_null(strstr(f.why.msg, "does not read"));
}

static void
a_reader_that_stops_does_not_hold_up_the_end(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    tell(&f, "flood 16\n");
    fd_close(&f.to);

    uint64_t before = clock_mono_ns();

    run_to_the_end(&f);
    assert_in_range((clock_mono_ns() - before) / 1000000, LIMIT_DRAIN_MS - 10,
                    LIMIT_DRAIN_MS + 8000);
    assert_int_equal(f.why.code, SY_E_LIMIT);
}

static void
a_closed_reader_is_noticed_without_writing(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    fd_close(&f.from);
    run_to_the_end(&f); /* standard input is still open */
    assert_true(fake_front()->is_gone);
    assert_false(fake_front()->has_eof);
    assert_int_equal(f.why.code, SY_E_OK); /* it has missed nothing */
}

static void
writing_to_a_closed_reader_is_no_signal(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    fd_close(&f.from);
    tell(&f, "echo x\n");
    run_to_the_end(&f);
    assert_true(fake_front()->is_gone);
    assert_int_equal(f.why.sys, EPIPE);
}

static void
a_reader_that_leaves_early_is_an_error(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    tell(&f, "flood 16\n");
    while (fake_front()->n_lines < 1) {
        turn(&f);
    }
    fd_close(&f.from);
    run_to_the_end(&f);
    assert_true(fake_front()->is_gone);
    assert_int_equal(f.why.sys, EPIPE);
}

static void
a_socket_serves_both_ways_and_may_be_half_closed(void **state)
{
    struct fixture f = {.to = -1, .from = -1};
    int ends[2];
    struct buf text = {.max = 100};

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(start(&f, ends[0], dup(ends[0])), SY_E_OK);
    f.to = ends[1];
    f.from = dup(ends[1]);
    tell(&f, "echo x\n");
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    read_bytes(&f, &text, 2);
    assert_string_equal(text.data, "x\n");
    run_to_the_end(&f);
    assert_true(fake_front()->has_eof);
    assert_int_equal(f.why.code, SY_E_OK);
    buf_fini(&text);
}

static void
half_closing_the_output_alone_is_not_the_end(void **state)
{
    struct fixture f = {.to = -1, .from = -1};
    int in = -1;
    int ends[2];
    struct buf text = {.max = 100};

    (void)state;
    assert_int_equal(fd_pipe(&in, &f.to, NULL), SY_E_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(start(&f, in, ends[0]), SY_E_OK);
    f.from = ends[1];
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    turn(&f);
    tell(&f, "echo x\n");
    read_bytes(&f, &text, 2);
    assert_false(fake_front()->is_gone);
    fd_close(&f.to);
    run_to_the_end(&f);
    assert_int_equal(f.why.code, SY_E_OK);
    buf_fini(&text);
}

static void
stop_ends_it_from_outside(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    stdio_server_stop(f.server);
    run_to_the_end(&f);
    assert_true(fake_front()->is_gone);
}

static void
the_front_may_end_it(void **state)
{
    struct fixture f;

    (void)state;
    start_on_pipes(&f);
    tell(&f, "echo x\nend\n");
    run_to_the_end(&f);
    assert_false(fake_front()->has_eof);
}

static void
shared_descriptors_get_their_flags_back(void **state)
{
    struct fixture f = {.to = -1, .from = -1};
    int in = -1;
    int out = -1;

    (void)state;
    assert_int_equal(fd_pipe(&in, &f.to, NULL), SY_E_OK);
    assert_int_equal(fd_pipe(&f.from, &out, NULL), SY_E_OK);

    int in_again = dup(in);
    int out_again = dup(out);

    assert_int_equal(start(&f, in, out), SY_E_OK);
    tell(&f, "end\n");
    run_to_the_end(&f);
    assert_int_equal(fcntl(in_again, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(out_again, F_GETFL) & O_NONBLOCK, 0);
    fd_close(&in_again);
    fd_close(&out_again);
}

static void
closed_descriptors_are_an_error(void **state)
{
    struct fixture f = {.to = -1, .from = -1};

    (void)state;
    assert_int_equal(start(&f, -1, -1), SY_E_SYS);
    assert_int_equal(uv_loop_close(&f.loop), 0);
}

/* In a child: exit status 0 if the claim did what it says. */
static int
claim_and_look(void)
{
    int in = -1;
    int out = -1;
    char c = 0;

    if (transport_claim_stdio(&in, &out, NULL) != SY_E_OK || in < 3 || out < 3) {
        return 1;
    }
    if ((fcntl(in, F_GETFD) & FD_CLOEXEC) == 0 || (fcntl(out, F_GETFD) & FD_CLOEXEC) == 0) {
        return 2;
    }
    if (read(in, &c, 1) != 1 || c != 'i' || read(0, &c, 1) != 0) {
        return 3;
    }
    return write(1, "noise", 5) == 5 && write(out, "out", 3) == 3 ? 0 : 4;
}

static void
claiming_sends_stray_output_to_standard_error(void **state)
{
    int in[2];
    int out[2];
    int err[2];
    char text[16] = "";
    int status = -1;

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);

    pid_t pid = fork();

    if (pid == 0) {
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0) {
            _exit(9);
        }
        _exit(claim_and_look());
    }
    assert_true(pid > 0);
    assert_int_equal(write(in[1], "i", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(out[0], text, sizeof(text)), 3);
    assert_memory_equal(text, "out", 3);
    assert_int_equal(read(err[0], text, sizeof(text)), 5);
    assert_memory_equal(text, "noise", 5);
    for (size_t i = 0; i < 2; i++) {
        fd_close(&in[i]);
        fd_close(&out[i]);
        fd_close(&err[i]);
    }
}

static void
claiming_works_with_nothing_open(void **state)
{
    int status = -1;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        int in = -1;
        int out = -1;

        for (int fd = 0; fd < 3; fd++) {
            int closing = fd;

            fd_close(&closing);
        }
        _exit(transport_claim_stdio(&in, &out, NULL) == SY_E_OK && in > 2 && out > 2 &&
                      write(1, "x", 1) == 1
                  ? 0
                  : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static enum sy_code
serve_once(void *arg)
{
    struct fixture f = {.to = -1, .from = -1};
    int in = -1;
    int out = -1;

    (void)arg;
    SY_ASSERT(fd_pipe(&in, &f.to, NULL) == SY_E_OK && fd_pipe(&f.from, &out, NULL) == SY_E_OK);

    enum sy_code rc = start(&f, in, out);

    if (rc == SY_E_OK) {
        /* A partial line and a queue: both want memory. */
        SY_ASSERT(fd_write_all(f.to, "echo x", 6, NULL) == SY_E_OK);
        uv_run(&f.loop, UV_RUN_ONCE);
        SY_ASSERT(fd_write_all(f.to, "\nflood 2\nend\n", 13, NULL) == SY_E_OK);
        uv_run(&f.loop, UV_RUN_ONCE);
        fd_close(&f.from);
        uv_run(&f.loop, UV_RUN_DEFAULT);
        SY_ASSERT(f.has_ended);
        rc = mem_fault_fired() ? SY_E_NOMEM : SY_E_OK;
    }
    SY_ASSERT(uv_loop_close(&f.loop) == 0);
    fd_close(&f.to);
    fd_close(&f.from);
    return rc;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(serve_once, NULL);
}

int
main(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_lines_both_ways),
        cmocka_unit_test(a_last_line_without_newline_counts),
        cmocka_unit_test(files_serve_as_both_ends),
        cmocka_unit_test(dev_null_ends_at_once),
        cmocka_unit_test(a_slow_reader_gets_all_and_blocks_nothing),
        cmocka_unit_test(what_was_said_before_eof_still_goes_out),
        cmocka_unit_test(a_peer_that_never_reads_is_left),
        cmocka_unit_test(a_reader_that_stops_does_not_hold_up_the_end),
        cmocka_unit_test(a_closed_reader_is_noticed_without_writing),
        cmocka_unit_test(writing_to_a_closed_reader_is_no_signal),
        cmocka_unit_test(a_reader_that_leaves_early_is_an_error),
        cmocka_unit_test(a_socket_serves_both_ways_and_may_be_half_closed),
        cmocka_unit_test(half_closing_the_output_alone_is_not_the_end),
        cmocka_unit_test(stop_ends_it_from_outside),
        cmocka_unit_test(the_front_may_end_it),
        cmocka_unit_test(shared_descriptors_get_their_flags_back),
        cmocka_unit_test(closed_descriptors_are_an_error),
        cmocka_unit_test(claiming_sends_stray_output_to_standard_error),
        cmocka_unit_test(claiming_works_with_nothing_open),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    if (sigaction(SIGPIPE, &ignore, NULL) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
