/* Who reads a terminal among all that is behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "pty.h"
#include "terminal/state.h"

static void *
thread_reads(void *fd)
{
    child_reads(*(int *)fd);
    return NULL;
}

/* In the child: has another thread read, or start who does. */
static void
child_reads_by_thread(int fd)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_reads, &fd) == 0) {
        (void)pthread_join(thread, NULL);
    }
    _exit(1);
}

static void *
thread_starts(void *fd)
{
    pid_t child = fork();

    if (child == 0) {
        child_reads(*(int *)fd);
    }
    (void)waitpid(child, NULL, 0);
    return NULL;
}

static void
child_starts_by_thread(int fd)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_starts, &fd) == 0) {
        (void)pthread_join(thread, NULL);
    }
    _exit(1);
}

/* In the child: the last of many, and below many levels. */
static void
child_reads_last(int fd)
{
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) {
            (void)pause();
            _exit(0);
        }
    }
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();

        if (child != 0) {
            (void)waitpid(child, NULL, 0);
            _exit(0);
        }
    }
    child_reads(fd);
}

static void
sees_who_reads_wherever_it_is(void **state)
{
    static void (*const readers[])(int) = {child_reads_by_thread, child_starts_by_thread,
                                           child_reads_last};

    (void)state;
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        struct pty p;
        pid_t pid = 0;
        enum state_answer answer = STATE_NO;

        pty_open(&p);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)setpgid(0, 0);
            readers[i](p.slave);
        }
        while (answer == STATE_NO) {
            answer = state_group_reads(pid, p.name, NULL, NULL);
            (void)sched_yield();
        }
        assert_true(answer == STATE_YES || access("/proc/thread-self/children", R_OK) != 0 ||
                    access("/proc/self/syscall", R_OK) != 0);
        assert_int_equal(kill(-pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        pty_close(&p);
    }
}

/* A child in a group of its own (0), or another's. */
static pid_t
start(pid_t group, void (*body)(int), int fd)
{
    pid_t ret = fork();

    assert_true(ret >= 0);
    if (ret == 0) {
        (void)setpgid(0, group);
        body(fd);
        _exit(0);
    }
    (void)setpgid(ret, group == 0 ? ret : group);
    return ret;
}

static void
child_rests(int fd)
{
    (void)fd;
    (void)pause();
}

static void
child_works(int fd)
{
    for (unsigned i = 1; i != 0 || fd == 0; i++) {
    }
}

static void
end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The first of a pipeline leads the group; a job in the background is not of it. */
static void
sees_who_stands_beside_the_leader(void **state)
{
    struct pty p;
    pid_t first = 0;
    pid_t second = 0;
    pid_t job = 0;
    enum state_answer answer = STATE_NO;
    const bool is_told =
        access("/proc/thread-self/children", R_OK) == 0 && access("/proc/self/syscall", R_OK) == 0;

    (void)state;
    pty_open(&p);
    first = start(0, child_rests, -1);
    job = start(0, child_reads, p.slave);
    while (is_told && answer != STATE_YES) {
        answer = state_group_reads(job, p.name, NULL, NULL);
        (void)sched_yield();
    }
    if (is_told) {
        while (state_works(first)) {
            (void)sched_yield();
        }
        assert_int_equal(state_group_reads(first, p.name, NULL, NULL), STATE_NO);
    }
    second = start(first, child_reads, p.slave);
    answer = STATE_NO;
    while (is_told && answer != STATE_YES) {
        answer = state_group_reads(first, p.name, NULL, NULL);
        (void)sched_yield();
    }
    end(job);
    job = start(0, child_works, 0);
    while (is_told && !state_group_works(job)) {
        (void)sched_yield();
    }
    /* The second is roused by the end of the other reader, for which it had to wait. */
    while (is_told && state_group_works(first)) {
        (void)sched_yield();
    }
    end(job);
    end(second);
    second = start(first, child_works, 0);
    while (is_told && !state_group_works(first)) {
        (void)sched_yield();
    }
    end(second);
    end(first);
    pty_close(&p);
}

/* With more than are looked at "no" would be a guess. */
static void
does_not_know_of_too_many(void **state)
{
    struct pty p;
    int ends[2] = {-1, -1};
    pid_t pid = 0;
    char c = 0;

    (void)state;
    pty_open(&p);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setpgid(0, 0);
        for (unsigned i = 0; i < LIMIT_STATE_PROCESSES; i++) {
            if (fork() == 0) {
                (void)pause();
                _exit(0);
            }
        }
        (void)!write(ends[1], "x", 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &c, 1), 1);
    assert_int_equal(state_group_reads(pid, p.name, NULL, NULL), STATE_UNKNOWN);
    assert_int_equal(kill(-pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    pty_close(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_who_reads_wherever_it_is),
        cmocka_unit_test(sees_who_stands_beside_the_leader),
        cmocka_unit_test(does_not_know_of_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
