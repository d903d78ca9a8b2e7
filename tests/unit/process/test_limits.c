/* Limits of one command without control groups; test_cgroup.c has those. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fault.h"
#include "base/clock.h"
#include "base/mem.h"
#include "process/process.h"
#include "process/usage.h"

#define SECOND_NS 1000000000ULL

static char path_variable[] = "PATH=/usr/bin:/bin";
static char *const small_env[] = {path_variable, NULL};

struct run {
    struct process_result result;
    struct buf out;
    uint64_t looks; /* steps that came by the deadline */
};

static void
run_fini(struct run *r)
{
    buf_fini(&r->out);
}

static void
drive(struct run *r, struct process *p)
{
    uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;
    bool is_done = false;

    for (;;) {
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES];
        uint64_t now = clock_mono_ns();

        r->looks += now >= process_deadline_ns(p) ? 1 : 0;
        assert_int_equal(process_step(p, now, &is_done, NULL), SY_E_OK);
        if (is_done) {
            return;
        }
        assert_true(now < give_up_ns);

        uint64_t wake = process_deadline_ns(p) < give_up_ns ? process_deadline_ns(p) : give_up_ns;
        size_t n = process_watches(p, watches);

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        poll(fds, (nfds_t)n, wake > now ? (int)((wake - now) / 1000000) + 1 : 0);
    }
}

static void
run_sh(struct run *r, const char *script, enum resource resource, uint64_t most)
{
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst(script), NULL};
    struct exec_env env = {.program = "/bin/sh", .argv = argv, .envp = small_env, .cwd = "/tmp"};
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    struct process *p = NULL;

    *r = (struct run){.out = {.max = 1U << 24}};
    env.limits.most[resource] = most;
    assert_non_null(chain);
    assert_int_equal(process_start(&p, &env, chain, NULL), SY_E_OK);
    drive(r, p);
    r->result = *process_result(p);
    process_free(p);
    assert_int_equal(output_finish(chain), SY_E_OK);
    assert_int_equal(output_text_stream(chain, STREAM_STDOUT, &r->out), SY_E_OK);
    output_free(chain);
}

static void
must_end(const struct run *r, enum resource resource, enum resource_means means, int signal_number)
{
    assert_int_equal(r->result.hit.resource, resource);
    assert_int_equal(r->result.hit.means, means);
    assert_true(r->result.hit.is_exact);
    assert_true(r->result.hit.has_ended);
    assert_int_equal(r->result.outcome, PROCESS_SIGNALED);
    assert_int_equal(r->result.signal, signal_number);
}

static void
must_pass(const struct run *r, const char *out)
{
    assert_int_equal(r->result.hit.resource, RESOURCE_NONE);
    assert_int_equal(r->result.outcome, PROCESS_EXITED);
    assert_int_equal(r->result.exit_code, 0);
    assert_string_equal(buf_view(&r->out), out);
}

static void
a_command_without_limits_is_never_looked_at(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "sleep 0.3; echo done", RESOURCE_NONE, 0);
    must_pass(&r, "done\n");
    assert_int_equal(r.looks, 0);
    run_fini(&r);
    run_sh(&r, "sleep 0.3; echo done", RESOURCE_OPEN_FILES, 100);
    must_pass(&r, "done\n");
    assert_int_equal(r.looks, 0);
    run_fini(&r);
    run_sh(&r, "sleep 0.3; echo done", RESOURCE_PROCESSES, 100);
    must_pass(&r, "done\n");
    assert_true(r.looks > 0);
}

static void
a_process_is_lowered_to_its_limits(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "ulimit -n; ulimit -Hn", RESOURCE_OPEN_FILES, 77);
    must_pass(&r, "77\n77\n");
    run_fini(&r);
    run_sh(&r, "ulimit -f; ulimit -Hf", RESOURCE_FILE_SIZE, 1U << 20);
    must_pass(&r, "2048\n2048\n"); /* blocks of 512 bytes */
    run_fini(&r);
    run_sh(&r, "ulimit -t; ulimit -Ht", RESOURCE_CPU, 50);
    must_pass(&r, "50\n51\n");
}

/* In a child: a hard limit that an ordinary user lowers stays. */
static void
a_limit_never_raises_what_is_there(void **state)
{
    int status = 0;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit low = {.rlim_cur = 60, .rlim_max = 70};
        struct run r;

        if (setrlimit(RLIMIT_NOFILE, &low) != 0) {
            _exit(2);
        }
        run_sh(&r, "ulimit -n; ulimit -Hn", RESOURCE_OPEN_FILES, 65);
        _exit(strcmp(buf_view(&r.out), "60\n65\n") == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void
a_tree_of_too_many_is_ended(void **state)
{
    SY_AUTO(run_fini) struct run r;
    static const char many[] = "i=0; while [ $i -lt 12 ]; do sleep 10 & i=$((i+1)); done; wait";

    (void)state;
    run_sh(&r, many, RESOURCE_PROCESSES, 8);
    must_end(&r, RESOURCE_PROCESSES, MEANS_SAMPLING, SIGKILL);
    assert_int_equal(r.result.hit.most, 8);
    run_fini(&r);
    run_sh(&r, "sleep 0.3 & sleep 0.3 & wait; echo done", RESOURCE_PROCESSES, 8);
    must_pass(&r, "done\n");
}

static void
those_who_left_the_session_count(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(
        &r,
        "i=0; while [ $i -lt 12 ]; do (setsid sh -c 'sleep 10 & sleep 10' &) ; i=$((i+1)); done; "
        "sleep 10",
        RESOURCE_PROCESSES, 12);
    must_end(&r, RESOURCE_PROCESSES, MEANS_SAMPLING, SIGKILL);
}

static void
memory_that_grows_is_ended(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    /* tail keeps in memory what it may have to print. */
    run_sh(&r, "head -c 1000000000 /dev/zero | tail -c 900000000 | wc -c", RESOURCE_MEMORY,
           64U << 20);
    must_end(&r, RESOURCE_MEMORY, MEANS_SAMPLING, SIGKILL);
    run_fini(&r);
    run_sh(&r, "head -c 1000000 /dev/zero | tail -c 40000 | wc -c", RESOURCE_MEMORY, 64U << 20);
    must_pass(&r, "40000\n");
}

static void
time_of_those_that_have_ended_counts_too(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    /* Each child takes a little and is waited for; together they never end. */
    run_sh(&r, "while :; do i=0; (while [ $i -lt 20000 ]; do i=$((i+1)); done); done", RESOURCE_CPU,
           1);
    assert_int_equal(r.result.hit.resource, RESOURCE_CPU);
    assert_true(r.result.hit.has_ended);
    assert_int_equal(r.result.outcome, PROCESS_SIGNALED);
    run_fini(&r);
    run_sh(&r, "echo done", RESOURCE_CPU, 1);
    must_pass(&r, "done\n");
}

static void
signals_of_the_kernel_are_told_and_only_under_a_limit(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "f=$(mktemp); exec 3>\"$f\"; rm \"$f\"; exec head -c 9000 /dev/zero >&3",
           RESOURCE_FILE_SIZE, 4096);
    must_end(&r, RESOURCE_FILE_SIZE, MEANS_RLIMIT, SIGXFSZ);
    run_fini(&r);
    run_sh(&r, "kill -XCPU $$", RESOURCE_CPU, 100);
    must_end(&r, RESOURCE_CPU, MEANS_RLIMIT, SIGXCPU);
    run_fini(&r);
    run_sh(&r, "kill -XCPU $$", RESOURCE_FILE_SIZE, 1U << 30);
    assert_int_equal(r.result.signal, SIGXCPU);
    assert_int_equal(r.result.hit.resource, RESOURCE_NONE);
    run_fini(&r);
    /* A shell's word for what ended its child is not the kernel's. */
    run_sh(&r, "sh -c 'kill -XFSZ $$'; exit $?", RESOURCE_FILE_SIZE, 1U << 30);
    assert_int_equal(r.result.hit.resource, RESOURCE_FILE_SIZE);
    assert_false(r.result.hit.is_exact);
}

static void
output_ends_at_the_byte_and_what_came_before_is_kept(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "printf 12345678; printf abc; sleep 10", RESOURCE_OUTPUT, 10);
    must_end(&r, RESOURCE_OUTPUT, MEANS_ENGINE, SIGKILL);
    assert_string_equal(buf_view(&r.out), "12345678ab");
    run_fini(&r);
    run_sh(&r, "printf 1234567890", RESOURCE_OUTPUT, 10);
    must_pass(&r, "1234567890");
    run_fini(&r);
    /* It is over before the rest is read: nobody can be ended, yet it is told. */
    run_sh(&r, "printf 12345678; printf abc >&2", RESOURCE_OUTPUT, 10);
    assert_int_equal(r.result.hit.resource, RESOURCE_OUTPUT);
    run_fini(&r);
    /* It has exited, and what it left behind goes beyond: that ended nothing of it. */
    run_sh(&r, "(while kill -0 $$; do :; done; printf 12345678901) 2>/dev/null & exit 3",
           RESOURCE_OUTPUT, 10);
    assert_int_equal(r.result.outcome, PROCESS_EXITED);
    assert_int_equal(r.result.exit_code, 3);
    assert_false(r.result.hit.has_ended);
}

/* A child that has touched that much, and waits. */
static pid_t
start_child(size_t bytes)
{
    int fds[2];
    char word = 0;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);

    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED) {
            _exit(1);
        }
        memset(p, 1, bytes);
        (void)!write(fds[1], "x", 1);
        (void)pause();
        _exit(0);
    }
    (void)close(fds[1]);
    assert_int_equal(read(fds[0], &word, 1), 1);
    (void)close(fds[0]);
    return pid;
}

static void
usage_of_a_child_is_seen(void **state)
{
    static const size_t bytes = (size_t)16 << 20;
    static const size_t slack = (size_t)8 << 20; /* of itself, and what a kernel counts late */
    /* A sanitizer's shadow is memory too. */
    const size_t most = bytes + slack * (getenv("TESTS_SANITIZER") != NULL ? 16 : 1);
    struct usage resident;
    struct usage proportional;
    struct usage gone;
    pid_t pid = start_child(bytes);

    (void)state;
    usage_look(&resident, getpid(), 100, false);
    usage_look(&proportional, getpid(), 100, true);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    usage_look(&gone, getpid(), 100, false);
    assert_int_equal(resident.tasks, 1);
    assert_in_range(resident.memory_bytes, bytes - slack, most);
    assert_int_equal(proportional.tasks, 1);
    assert_in_range(proportional.memory_bytes, bytes - slack, most);
    assert_int_equal(gone.tasks, 0);
    assert_int_equal(gone.memory_bytes, 0);
}

static enum sy_code
look(void *arg)
{
    struct usage u;

    (void)arg;
    usage_look(&u, getppid(), 100, true);
    return SY_E_OK;
}

static void
a_look_without_memory_sees_less_and_leaks_nothing(void **state)
{
    (void)state;
    fault_run_lenient(look, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_without_limits_is_never_looked_at),
        cmocka_unit_test(a_process_is_lowered_to_its_limits),
        cmocka_unit_test(a_limit_never_raises_what_is_there),
        cmocka_unit_test(a_tree_of_too_many_is_ended),
        cmocka_unit_test(those_who_left_the_session_count),
        cmocka_unit_test(memory_that_grows_is_ended),
        cmocka_unit_test(time_of_those_that_have_ended_counts_too),
        cmocka_unit_test(signals_of_the_kernel_are_told_and_only_under_a_limit),
        cmocka_unit_test(output_ends_at_the_byte_and_what_came_before_is_kept),
        cmocka_unit_test(usage_of_a_child_is_seen),
        cmocka_unit_test(a_look_without_memory_sees_less_and_leaks_nothing),
    };

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
