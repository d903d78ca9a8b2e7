/*
 * What limits cost in system calls, counted by ptrace(2) over `shellyard exec` with
 * all that it starts: nothing where none is set, and prlimit64 alone where
 * those that are set need no more.
 *
 *     test_limits_cost SHELLYARD
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include <cmocka.h>

static const char *program;

/* Those that do not depend on who is faster; polls and messages do. */
static const struct {
    long number;
    const char *name;
} counted[] = {
    {SYS_prlimit64,  "prlimit64" },
    {SYS_mkdirat,    "mkdirat"   },
    {SYS_unlinkat,   "unlinkat"  },
    {SYS_flock,      "flock"     },
    {SYS_openat,     "openat"    },
    {SYS_getdents64, "getdents64"},
    {SYS_faccessat,  "faccessat" },
    {SYS_write,      "write"     },
};

#define COUNTED (sizeof(counted) / sizeof(counted[0]))

struct counts {
    unsigned of[COUNTED];
    unsigned all;
};

static void
count(struct counts *c, pid_t pid)
{
    struct ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY) {
        return;
    }
    c->all++;
    for (size_t i = 0; i < COUNTED; i++) {
        if ((long)info.entry.nr == counted[i].number) {
            c->of[i]++;
        }
    }
}

/* Lets a stopped task go on; what it was stopped by decides how. */
static void
resume(struct counts *c, pid_t pid, int status)
{
    int sig = WSTOPSIG(status);
    bool is_event = (status >> 16) != 0;

    if (sig == (SIGTRAP | 0x80)) {
        count(c, pid);
        sig = 0;
    } else if (is_event || sig == SIGTRAP || sig == SIGSTOP) {
        sig = 0;
    }
    /* It may have been killed meanwhile. */
    (void)ptrace(PTRACE_SYSCALL, pid, 0, sig);
}

static void
trace(struct counts *c, const char *setting)
{
    static const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                                PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int status = 0;
    pid_t first = fork();

    *c = (struct counts){.all = 0};
    assert_true(first >= 0);
    if (first == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) {
            _exit(97);
        }
        /* Whoever runs this test may have a journal of the guard to look through. */
        (void)setenv("XDG_STATE_HOME", "/nonexistent", 1);
        (void)raise(SIGSTOP);
        (void)execl(program, "shellyard", "exec", "-s", "workspace-write", "-C", "/tmp", "-c",
                    setting, "--", "/bin/true", (char *)NULL);
        _exit(96);
    }
    assert_int_equal(waitpid(first, &status, 0), first);
    if (!WIFSTOPPED(status)) {
        fail_msg("ptrace(2) is not to be had here: status %d", status);
    }
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, first, 0, options), 0);
    resume(c, first, status);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);

        if (pid < 0) {
            assert_int_equal(errno, ECHILD);
            return;
        }
        if (WIFSTOPPED(status)) {
            resume(c, pid, status);
        } else if (pid == first) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
        }
    }
}

static unsigned
number_of(const struct counts *c, const char *name)
{
    for (size_t i = 0; i < COUNTED; i++) {
        if (strcmp(counted[i].name, name) == 0) {
            return c->of[i];
        }
    }
    fail_msg("%s is not counted", name);
    return 0;
}

/* Of all but `name`. */
static void
must_be_equal_but(const struct counts *a, const struct counts *b, const char *name)
{
    for (size_t i = 0; i < COUNTED; i++) {
        if (strcmp(counted[i].name, name) != 0 && a->of[i] != b->of[i]) {
            fail_msg("%u calls of %s became %u", a->of[i], counted[i].name, b->of[i]);
        }
    }
}

static void
no_limit_costs_no_call(void **state)
{
    struct counts c;

    (void)state;
    trace(&c, "log.level=warn");
    assert_true(c.all > 50); /* it was counted at all */
    assert_true(number_of(&c, "openat") > 0);
    assert_int_equal(number_of(&c, "mkdirat"), 0);
    assert_int_equal(number_of(&c, "unlinkat"), 0);
    assert_int_equal(number_of(&c, "flock"), 0);
}

static void
a_limit_of_a_process_costs_two_prlimits_and_nothing_else(void **state)
{
    struct counts none;
    struct counts one;
    struct counts two;

    (void)state;
    trace(&none, "log.level=warn");
    trace(&one, "limits.open_files=64");
    must_be_equal_but(&none, &one, "prlimit64");
    assert_int_equal(number_of(&one, "prlimit64"), number_of(&none, "prlimit64") + 2);
    trace(&two, "limits.file_bytes=1G");
    must_be_equal_but(&none, &two, "prlimit64");
    assert_int_equal(number_of(&two, "prlimit64"), number_of(&none, "prlimit64") + 2);
}

static void
a_limit_of_the_output_costs_nothing(void **state)
{
    struct counts none;
    struct counts one;

    (void)state;
    trace(&none, "log.level=warn");
    trace(&one, "limits.output_bytes=64M");
    must_be_equal_but(&none, &one, "");
}

static void
a_limit_of_the_tree_does_cost_calls(void **state)
{
    struct counts none;
    struct counts one;

    (void)state;
    trace(&none, "log.level=warn");
    trace(&one, "limits.processes=64");
    assert_true(one.all > none.all);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_costs_no_call),
        cmocka_unit_test(a_limit_of_a_process_costs_two_prlimits_and_nothing_else),
        cmocka_unit_test(a_limit_of_the_output_costs_nothing),
        cmocka_unit_test(a_limit_of_the_tree_does_cost_calls),
    };

    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s SHELLYARD\n", argv[0]);
        return 2;
    }
    program = argv[1];
    return cmocka_run_group_tests_name("cost of limits", tests, NULL, NULL);
}
