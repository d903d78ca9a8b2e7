/* Threads that stay: what becomes of those that wait for ever, and what they may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/clock.h"
#include "base/fd.h"
#include "process/limited.h"
#include "process/worker.h"

#define WORKERS  8
#define SHORT_MS 20
#define LONG_MS  20000
#define NS_PER_S 1000000000ULL

/* -ETIMEDOUT: not in time, and it is not ours any more. */
static long
make(struct limited_call *w, int timeout_ms)
{
    long ret = 0;

    if (!worker_call(w, timeout_ms, &ret)) {
        return -ETIMEDOUT;
    }
    worker_give_back(w);
    return ret;
}

/* A call that waits until something comes through the pipe. */
static long
wait_at(int pipe_fd, int timeout_ms)
{
    struct limited_call *w = worker_take(true);

    assert_non_null(w);
    w->nr = SYS_read;
    w->args[0] = pipe_fd;
    w->args[1] = (long)(uintptr_t)w->bytes;
    w->args[2] = 1;
    return make(w, timeout_ms);
}

static long
call_getpid(void)
{
    struct limited_call *w = worker_take(true);

    if (w == NULL) {
        return -EBUSY;
    }
    w->nr = SYS_getpid;
    return make(w, LONG_MS);
}

static void
those_that_wait_are_left_and_come_back(void **state)
{
    int ends[2];
    const uint64_t give_up_ns = clock_mono_ns() + 20 * NS_PER_S;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(call_getpid(), getpid());
        assert_int_equal(wait_at(ends[0], SHORT_MS), -ETIMEDOUT);
    }
    assert_null(worker_take(true));
    /* The other kind has its own. */
    struct limited_call *other = worker_take(false);

    assert_non_null(other);
    worker_give_back(other);
    assert_int_equal(write(ends[1], "12345678", WORKERS), WORKERS);
    while (call_getpid() == -EBUSY) {
        assert_true(clock_mono_ns() < give_up_ns);
        (void)sched_yield();
    }
    /* Each has taken its byte, and nobody else's answer is taken for one's own. */
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(wait_at(ends[0], LONG_MS), 1);
    close(ends[0]);
    close(ends[1]);
}

static size_t
open_descriptors(void)
{
    size_t n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    }
    return n;
}

static void
a_descriptor_that_comes_too_late_is_closed(void **state)
{
    char dir[] = "/tmp/shellyard-worker-XXXXXX";
    char fifo[64];
    const uint64_t give_up_ns = clock_mono_ns() + 20 * NS_PER_S;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    call_getpid();

    const size_t before = open_descriptors();
    struct limited_call *w = worker_take(true);

    assert_non_null(w);
    w->nr = SYS_openat;
    w->returns_fd = true;
    (void)snprintf(w->bytes, sizeof(w->bytes), "%s", fifo);
    w->args[0] = AT_FDCWD;
    w->args[1] = (long)(uintptr_t)w->bytes;
    w->args[2] = O_RDONLY | O_CLOEXEC;
    assert_int_equal(make(w, SHORT_MS), -ETIMEDOUT);

    /* Opened for writing once it reads; broken once it has let go of it. */
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    struct pollfd end = {.fd = fd};

    assert_true(fd >= 0);
    while (poll(&end, 1, 1000) == 0 || (end.revents & POLLERR) == 0) {
        assert_true(clock_mono_ns() < give_up_ns);
    }
    close(fd);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void
one_kind_has_no_rights_and_takes_none_of_ours(void **state)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct before[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct __user_cap_data_struct after[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct __user_cap_data_struct found[_LINUX_CAPABILITY_U32S_3] = {{0}};
    static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

    (void)state;
    assert_int_equal(syscall(SYS_capget, &header, before), 0);
    for (int i = 0; i < 2; i++) {
        const bool keeps = i == 1;
        struct limited_call *w = worker_take(keeps);
        long got = -1;

        assert_non_null(w);
        memcpy(w->bytes, &header, sizeof(header));
        w->nr = SYS_capget;
        w->args[0] = (long)(uintptr_t)w->bytes;
        w->args[1] = (long)(uintptr_t)(w->bytes + 64);
        assert_true(worker_call(w, LONG_MS, &got));
        assert_int_equal(got, 0);
        memcpy(found, w->bytes + 64, sizeof(found));
        worker_give_back(w);
        assert_memory_equal(found, keeps ? before : none, sizeof(found));
    }
    assert_int_equal(syscall(SYS_capget, &header, after), 0);
    assert_memory_equal(before, after, sizeof(before));
}

static void
the_child_of_a_fork_has_its_own(void **state)
{
    int status = 0;

    (void)state;
    assert_int_equal(call_getpid(), getpid());

    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(call_getpid() == getpid() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(call_getpid(), getpid());
}

static void
memory_of_another_is_read_as_far_as_it_is_there(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char got[LIMITED_READ_MAX];
    int ends[2];
    char byte = 0;

    (void)state;
    assert_ptr_not_equal(two, MAP_FAILED);
    assert_int_equal(munmap(two + page, page), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);

    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[1]);
        memcpy(two + page - 6, "there", 6);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);

    const uintptr_t last = (uintptr_t)two + page - 6;
    const uint64_t give_up_ns = clock_mono_ns() + 20 * NS_PER_S;

    do {
        assert_true(clock_mono_ns() < give_up_ns);
        assert_int_equal(limited_read_string(pid, last, got, LONG_MS), 0);
    } while (got[0] == '\0');
    assert_string_equal(got, "there");
    assert_int_equal(limited_read(pid, last, got, 6, LONG_MS), 0);
    assert_int_equal(limited_read(pid, last, got, 7, LONG_MS), EFAULT);
    assert_int_equal(limited_read(pid, (uintptr_t)two + page, got, 1, LONG_MS), EFAULT);
    assert_int_equal(limited_read(pid, last, got, LIMITED_READ_MAX + 1, LONG_MS), EBUSY);
    close(ends[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(limited_read(pid, last, got, 1, LONG_MS), ESRCH);
    assert_int_equal(munmap(two, page), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_wait_are_left_and_come_back),
        cmocka_unit_test(a_descriptor_that_comes_too_late_is_closed),
        cmocka_unit_test(one_kind_has_no_rights_and_takes_none_of_ours),
        cmocka_unit_test(the_child_of_a_fork_has_its_own),
        cmocka_unit_test(memory_of_another_is_read_as_far_as_it_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
