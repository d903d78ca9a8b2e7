/* A process that is made ready before its command is known. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "process/process.h"

#define SECOND_NS 1000000000ULL

static const struct sandbox_base no_base;
static char path_variable[] = "PATH=/usr/bin:/bin";
static char *const small_env[] = {path_variable, NULL};

static void
drive(struct process *p)
{
    uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;
    bool is_done = false;

    for (;;) {
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES];
        uint64_t now = clock_mono_ns();

        assert_int_equal(process_step(p, now, &is_done, NULL), SY_E_OK);
        if (is_done) {
            return;
        }
        assert_true(now < give_up_ns);

        size_t n = process_watches(p, watches);

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        poll(fds, (nfds_t)n, (int)((give_up_ns - now) / 1000000));
    }
}

/* Runs a script in `p` to its end and gives its output. */
static void
go(struct process *p, const struct sandbox_ready *sandbox, const char *script, struct buf *ret_out)
{
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst(script), NULL};
    struct exec_env env = {
        .program = "/bin/sh", .argv = argv, .envp = small_env, .cwd = "/", .sandbox = sandbox};
    struct sy_error err = {0};

    assert_non_null(chain);
    assert_int_equal(process_go(p, &env, chain, &err), SY_E_OK);
    drive(p);
    assert_int_equal(output_finish(chain), SY_E_OK);
    assert_int_equal(output_text_all(chain, ret_out), SY_E_OK);
    output_free(chain);
}

static void
takes_its_command_later(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct process *p = NULL;

    (void)state;
    assert_int_equal(process_prepare(&p, &no_base, NULL), SY_E_OK);
    assert_true(process_is_prepared(p, &no_base));
    go(p, NULL, "echo here; exit 3", &out);
    assert_string_equal(buf_view(&out), "here\n");
    assert_int_equal(process_result(p)->outcome, PROCESS_EXITED);
    assert_int_equal(process_result(p)->exit_code, 3);
    assert_false(process_is_prepared(p, &no_base));
    process_free(p);
}

/* The time that it waited is not its command's. */
static void
counts_from_its_command_on(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct process *other = NULL;
    struct process *p = NULL;

    (void)state;
    assert_int_equal(process_prepare(&other, &no_base, NULL), SY_E_OK);
    assert_int_equal(process_prepare(&p, &no_base, NULL), SY_E_OK);
    go(other, NULL, "sleep 1", &out);
    go(p, NULL, ":", &out);
    assert_true(process_result(p)->duration_ns < process_result(other)->duration_ns);
    process_free(p);
    process_free(other);
}

static void
without_a_command_it_ends_with_its_owner(void **state)
{
    struct process *p = NULL;
    size_t live = mem_live();
    int before = dup(0);
    int after = -1;

    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(process_prepare(&p, &no_base, NULL), SY_E_OK);
        process_free(p);
    }
    assert_int_equal(mem_live(), live);
    after = dup(0);
    assert_int_equal(after, before + 1);
    fd_close(&before);
    fd_close(&after);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

/* The mask of /proc/self/status: words of 32 bits in hex, the highest first. */
static cpu_set_t
parse_mask(const struct buf *text)
{
    char digits[CPU_SETSIZE / 4] = "";
    size_t n = 0;
    cpu_set_t ret;

    for (size_t i = text->len; i > 0 && n < sizeof(digits); i--) {
        if (text->data[i - 1] != ',' && text->data[i - 1] != '\n') {
            digits[n++] = text->data[i - 1];
        }
    }
    CPU_ZERO(&ret);
    for (size_t cpu = 0; cpu < n * 4; cpu++) {
        const char digit[2] = {digits[cpu / 4], '\0'};

        if ((strtoul(digit, NULL, 16) >> cpu % 4 & 1U) != 0) {
            CPU_SET(cpu, &ret);
        }
    }
    return ret;
}

/* The processors that a command of a process made on `first` may use, when ours were `ours`
 * before it got its command. */
static cpu_set_t
cpus_of_command(const cpu_set_t *first, const cpu_set_t *ours)
{
    static const char script[] = "while read -r name mask; do [ $name != Cpus_allowed: ] || "
                                 "echo $mask; done </proc/self/status";
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct process *p = NULL;

    assert_int_equal(sched_setaffinity(0, sizeof(*first), first), 0);
    assert_int_equal(process_prepare(&p, &no_base, NULL), SY_E_OK);
    assert_int_equal(sched_setaffinity(0, sizeof(*ours), ours), 0);
    process_give_way(p);
    go(p, NULL, script, &out);
    process_free(p);
    return parse_mask(&out);
}

/* The i-th of them, counted round and round. */
static cpu_set_t
one_of(const cpu_set_t *all, int i)
{
    cpu_set_t ret;
    int left = i % CPU_COUNT(all);
    size_t cpu = 0;

    while (left > 0 || !CPU_ISSET(cpu, all)) {
        left -= CPU_ISSET(cpu, all) ? 1 : 0;
        cpu++;
    }
    CPU_ZERO(&ret);
    CPU_SET(cpu, &ret);
    return ret;
}

/* True: it had waited behind us. False: it had begun already. */
static bool
gave_way(const cpu_set_t *one, const cpu_set_t *all)
{
    cpu_set_t got = cpus_of_command(one, all);
    bool has_all = CPU_EQUAL(&got, all);

    assert_true(has_all || CPU_EQUAL(&got, one));
    return has_all;
}

static void
one_that_gave_way_gets_all_our_processors(void **state)
{
    uint64_t give_up_ns = clock_mono_ns() + 60 * SECOND_NS;
    struct sched_param param = {.sched_priority = 0};
    cpu_set_t all;
    cpu_set_t one;
    int n_moved = 0;

    (void)state;
    /* So that a new task does not run before us, where we may. */
    (void)sched_setscheduler(0, SCHED_BATCH, &param);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    /* On a busy machine it may run first all the same. */
    for (int i = 0; i < 20 || (n_moved == 0 && clock_mono_ns() < give_up_ns); i++) {
        one = one_of(&all, i);
        n_moved += gave_way(&one, &all) ? 1 : 0;
    }
    assert_true(n_moved > 0);

    /* Where there is no other, it stays. */
    cpu_set_t got = cpus_of_command(&one, &one);

    assert_true(CPU_EQUAL(&got, &one));
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    (void)sched_setscheduler(0, SCHED_OTHER, &param);
}

/* All that this process has become the parent of, gone within five seconds. */
static void
assert_no_child_is_left(void)
{
    uint64_t give_up_ns = clock_mono_ns() + 5 * SECOND_NS;

    while (waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD) {
        assert_true(clock_mono_ns() < give_up_ns);
    }
}

static void
without_a_command_it_dies_with_the_engine(void **state)
{
    int ready[2];
    char byte = 0;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // what it leaves comes to us
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);

    pid_t engine = fork();

    if (engine == 0) {
        struct process *p = NULL;
        if (process_prepare(&p, &no_base, NULL) != SY_E_OK ||
            fd_write_all(ready[1], "!", 1, NULL) != SY_E_OK) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    fd_close(&ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(kill(engine, SIGKILL), 0);
    assert_no_child_is_left();
    fd_close(&ready[0]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* The keeper that was started last, by the list of our children. */
static pid_t
last_child(void)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    char path[64];
    char *at = NULL;
    pid_t last = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    assert_int_equal(fd_read_file(path, &text, NULL), SY_E_OK);
    at = text.data;
    while (at != NULL && *at >= '0' && *at <= '9') {
        last = (pid_t)strtol(at, &at, 10); // NOLINT(cert-err34-c): the kernel wrote it
        at += *at == ' ';
    }
    return last;
}

static void
one_that_was_killed_is_not_used(void **state)
{
    struct process *p = NULL;
    struct pollfd end = {.events = POLLIN};
    struct process_watch watches[PROCESS_WATCHES];

    (void)state;
    assert_int_equal(process_prepare(&p, &no_base, NULL), SY_E_OK);
    assert_true(last_child() > 0);
    assert_int_equal(kill(last_child(), SIGKILL), 0);

    size_t n = process_watches(p, watches);

    end.fd = watches[n - 1].fd; // the channel
    assert_int_equal(poll(&end, 1, 5000), 1);
    assert_false(process_is_prepared(p, &no_base));
    process_free(p);
    assert_no_child_is_left();
}

struct sandboxed {
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
};

static void
sandboxed_make(struct sandboxed *s, bool has_network)
{
    struct sandbox_caps caps;
    struct sy_error err = {0};

    *s = (struct sandboxed){
        .policy = {.mode = SANDBOX_READ_ONLY, .has_network = has_network}
    };
    s->policy.cwd = mem_strdup("/");
    assert_non_null(s->policy.cwd);
    sandbox_probe(&caps);
    assert_int_equal(sandbox_plan_new(&s->plan, &s->policy, &caps, &err), SY_E_OK);
    assert_int_equal(sandbox_ready_new(&s->ready, s->plan, &err), SY_E_OK);
}

static void
sandboxed_fini(struct sandboxed *s)
{
    sandbox_ready_free(s->ready);
    sandbox_plan_free(s->plan);
    sandbox_policy_fini(&s->policy);
}

static void
a_sandbox_of_another_kind_does_not_fit(void **state)
{
    SY_AUTO(sandboxed_fini) struct sandboxed off;
    SY_AUTO(sandboxed_fini) struct sandboxed on;
    struct process *p = NULL;

    (void)state;
    sandboxed_make(&off, false);
    sandboxed_make(&on, true);

    struct sandbox_base base = sandbox_plan_base(off.plan);
    struct sandbox_base other = sandbox_ready_base(on.ready);

    assert_int_equal(process_prepare(&p, &base, NULL), SY_E_OK);
    assert_true(process_is_prepared(p, &base));
    assert_false(process_is_prepared(p, &other));
    assert_false(process_is_prepared(p, &no_base));
    process_free(p);
}

static void
the_roots_come_with_the_command(void **state)
{
    static const char script[] = "grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status; "
                                 "echo x > /var/tmp/sy-prepare-$$ || echo refused";
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(sandboxed_fini) struct sandboxed s;
    struct process *p = NULL;

    (void)state;
    sandboxed_make(&s, false);

    struct sandbox_base base = sandbox_plan_base(s.plan);

    assert_int_equal(process_prepare(&p, &base, NULL), SY_E_OK);
    go(p, s.ready, script, &out);
    assert_non_null(strstr(buf_view(&out), "CapEff:\t0000000000000000\n"));
    assert_non_null(strstr(buf_view(&out), "NoNewPrivs:\t1\n"));
    assert_non_null(strstr(buf_view(&out), "Seccomp:\t2\n"));
    assert_non_null(strstr(buf_view(&out), "refused\n"));
    process_free(p);

    /* The same write, where nothing forbids it. */
    buf_reset(&out);
    assert_int_equal(process_prepare(&p, &no_base, NULL), SY_E_OK);
    go(p, NULL, "echo x > /var/tmp/sy-prepare-$$ && rm /var/tmp/sy-prepare-$$ && echo done", &out);
    assert_string_equal(buf_view(&out), "done\n");
    process_free(p);
}

/* As `exec` has it: the process before the configuration, the sandbox later. */
static void
the_sandbox_may_come_before_the_command_or_with_it(void **state)
{
    static const char script[] = "grep Seccomp: /proc/self/status; "
                                 "echo x > /var/tmp/sy-prepare-$$ || echo refused";
    SY_AUTO(sandboxed_fini) struct sandboxed s;

    (void)state;
    sandboxed_make(&s, false);

    struct sandbox_base base = sandbox_plan_base(s.plan);

    for (int i = 0; i < 40; i++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 4096};
        struct process *p = NULL;

        assert_int_equal(process_prepare(&p, NULL, NULL), SY_E_OK);
        assert_true(process_is_prepared(p, &base));
        assert_true(process_is_prepared(p, &no_base));
        if (i % 2 == 0) {
            process_set_base(p, &base);
            assert_false(process_is_prepared(p, &no_base));
        }
        go(p, s.ready, script, &out);
        assert_non_null(strstr(buf_view(&out), "Seccomp:\t2\n"));
        assert_non_null(strstr(buf_view(&out), "refused\n"));
        process_free(p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_its_command_later),
        cmocka_unit_test(counts_from_its_command_on),
        cmocka_unit_test(one_that_gave_way_gets_all_our_processors),
        cmocka_unit_test(without_a_command_it_ends_with_its_owner),
        cmocka_unit_test(without_a_command_it_dies_with_the_engine),
        cmocka_unit_test(one_that_was_killed_is_not_used),
        cmocka_unit_test(a_sandbox_of_another_kind_does_not_fit),
        cmocka_unit_test(the_roots_come_with_the_command),
        cmocka_unit_test(the_sandbox_may_come_before_the_command_or_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
