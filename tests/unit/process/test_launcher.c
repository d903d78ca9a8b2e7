/* Commands of the full tier: how they begin and how they end. The first argument is the launcher.
 */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "launched.h"

#include "../fault.h"

#define DAEMONS 40

static const char daemons[] =
    "i=0; while [ $i -lt 40 ]; do i=$((i+1)); "
    "(setsid sh -c 'trap \"\" TERM HUP INT; (sleep 1000; :) & sleep 1000; :' \"$0\" "
    ">/dev/null 2>&1 &) ; done; echo up; ";

static void
a_command_sees_its_own_processes_and_the_walls(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};
    static const char script[] =
        "echo self=$$ keeper=$(cat /proc/1/comm) n=$(ls /proc | grep -c '^[0-9]');"
        "grep -E '^(NoNewPrivs|Seccomp|CapEff|CapPrm|NSpid):' /proc/self/status;"
        "echo x > here && rm here && echo inside=writable;"
        "(echo x > /var/tmp/sy-launcher-x) 2>/dev/null || echo outside=refused;"
        "(chmod 700 /etc/passwd) 2>/dev/null || echo metadata=refused;"
        "(echo x > /proc/sys/kernel/hostname) 2>/dev/null || echo proc=refused;"
        "[ -e /run/systemd/private ] || echo run=hidden; echo y > /tmp/y && cat /tmp/y";

    assert_int_equal(run(*state, script, &out), 0);
    assert_non_null(strstr(buf_view(&out), "self=2 keeper=sy-keeper n="));
    assert_non_null(strstr(buf_view(&out), "CapEff:\t0000000000000000\n"));
    assert_non_null(strstr(buf_view(&out), "CapPrm:\t0000000000000000\n"));
    assert_non_null(strstr(buf_view(&out), "NoNewPrivs:\t1\n"));
    assert_non_null(strstr(buf_view(&out), "Seccomp:\t2\n"));
    assert_non_null(strstr(buf_view(&out), "inside=writable\n"));
    assert_non_null(strstr(buf_view(&out), "outside=refused\n"));
    assert_non_null(strstr(buf_view(&out), "metadata=refused\n"));
    assert_non_null(strstr(buf_view(&out), "proc=refused\n"));
    assert_non_null(strstr(buf_view(&out), "run=hidden\ny\n"));
    assert_int_equal(access("/tmp/y", F_OK), -1);
    /* Temporary files are the session's: the next command has them. */
    assert_int_equal(run(*state, "cat /tmp/y", NULL), 0);
}

static void
what_never_ran_is_told_by_its_stage(void **state)
{
    struct world *w = *state;
    char *argv[] = {mem_unconst("/nonexistent/program"), NULL};
    char *good[] = {mem_unconst("/bin/true"), NULL};
    struct exec_env env = env_of(w, argv);
    struct command c;

    start_env(&c, w, &env);
    drive(&c, NULL);
    assert_int_equal(process_result(c.process)->outcome, PROCESS_FAILED);
    assert_int_equal(process_result(c.process)->err.code, SY_E_NOTFOUND);
    end(&c);
    env = env_of(w, good);
    env.cwd = "/nonexistent";
    start_env(&c, w, &env);
    drive(&c, NULL);
    assert_int_equal(process_result(c.process)->outcome, PROCESS_FAILED);
    assert_int_equal(process_result(c.process)->err.code, SY_E_CWD);
    end(&c);
    /* The command's own 126 and 127 are results. */
    assert_int_equal(run(w, "exit 126", NULL), 126);
    assert_int_equal(run(w, "exit 127", NULL), 127);
}

static void
a_long_command_arrives_whole(void **state)
{
    struct world *w = *state;
    SY_AUTO(strv_fini) struct strv argv = {.max = 5000};
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};
    SY_AUTO(buf_fini) struct buf word = {.max = 100000};
    struct command c;

    for (int i = 0; i < 90000; i++) {
        assert_int_equal(buf_add_char(&word, (char)('a' + i % 26)), SY_E_OK);
    }
    assert_int_equal(strv_add(&argv, "/bin/sh"), SY_E_OK);
    assert_int_equal(strv_add(&argv, "-c"), SY_E_OK);
    assert_int_equal(strv_add(&argv, "echo $# ${#1} \"[$2]\" ${#4000}"), SY_E_OK);
    assert_int_equal(strv_add(&argv, w->mark), SY_E_OK);
    assert_int_equal(strv_add(&argv, buf_view(&word)), SY_E_OK);
    assert_int_equal(strv_add(&argv, ""), SY_E_OK);
    for (int i = 0; i < 3998; i++) {
        assert_int_equal(strv_add(&argv, "0123456789"), SY_E_OK);
    }

    const struct exec_env env = env_of(w, strv_view(&argv));

    start_env(&c, w, &env);
    drive(&c, NULL);
    assert_int_equal(output_text_all(c.chain, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "4000 90000 [] 10\n");
    end(&c);
}

static void
daemons_are_gone_with_their_command(void **state)
{
    struct world *w = *state;
    struct command c;
    SY_AUTO(buf_fini) struct buf script = {.max = 4096};

    /* Ended by an order. */
    assert_int_equal(buf_addf(&script, "%s sleep 1000", daemons), SY_E_OK);
    start(&c, w, buf_view(&script));
    drive(&c, "up");
    assert_true(count_marked(w->mark) >= DAEMONS); /* the control: they do live */
    process_kill(c.process);
    drive(&c, NULL);
    assert_int_equal(count_marked(w->mark), 0);
    end(&c);
    /* Left behind by a command that ends. */
    assert_int_equal(run(w, daemons, NULL), 0);
    assert_int_equal(count_marked(w->mark), 0);
}

static void
the_end_of_the_keeper_is_the_end_of_all(void **state)
{
    struct world *w = *state;
    struct command c;
    pid_t launcher = find_child(getpid(), "sy-launch");
    pid_t template = find_child(launcher, "sy-template");
    SY_AUTO(buf_fini) struct buf script = {.max = 4096};

    assert_int_equal(buf_addf(&script, "%s sleep 1000", daemons), SY_E_OK);
    start(&c, w, buf_view(&script));
    drive(&c, "up");
    assert_int_equal(kill(find_child(template, "sy-keeper"), SIGKILL), 0);
    drive(&c, NULL);
    assert_int_equal(process_result(c.process)->outcome, PROCESS_FAILED);
    assert_non_null(strstr(process_result(c.process)->err.msg, "keeper"));
    assert_int_equal(count_marked(w->mark), 0);
    end(&c);
}

static void
a_command_outlives_launcher_and_template(void **state)
{
    struct world *w = *state;
    struct command c;
    struct template *other = NULL;
    pid_t launcher = find_child(getpid(), "sy-launch");
    pid_t template = find_child(launcher, "sy-template");

    start(&c, w, "mkfifo gate; echo up; read x < gate; echo went on");
    drive(&c, "up");
    kill_for_certain(launcher);
    kill_for_certain(template);
    assert_false(template_is_there(w->template));
    assert_int_equal(launcher_make_template(w->launcher, &other, &w->policy, NULL), SY_E_NOTFOUND);

    char gate[128];

    (void)snprintf(gate, sizeof(gate), "%s/gate", w->dir);

    SY_FD fd = open(gate, O_WRONLY | O_CLOEXEC);

    assert_int_equal(write(fd, "x\n", 2), 2);
    drive(&c, NULL);
    assert_true(has_said(&c, "went on"));
    assert_int_equal(process_result(c.process)->outcome, PROCESS_EXITED);
    end(&c);
    /* What is asked for next says what happened. */
    struct process *p = NULL;
    char *argv[] = {mem_unconst("/bin/true"), NULL};
    const struct exec_env env = env_of(w, argv);
    const struct sandbox_base base = process_base(&env);
    struct sy_error err = {0};

    assert_int_equal(process_pool_take(w->pool, &p, &base, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "killed"));
}

/* An engine of its own, as a child of the test, that is killed after `wait_us`. */
static void
kill_engine_after(const struct world *w, long wait_us)
{
    int gone[2];
    pid_t engine = -1;
    SY_AUTO(buf_fini) struct buf script = {.max = 4096};

    assert_int_equal(buf_addf(&script, "%s sleep 1000", daemons), SY_E_OK);
    assert_int_equal(pipe2(gone, O_CLOEXEC), 0);
    engine = fork();
    if (engine == 0) {
        struct world own = *w;
        struct command c;

        own.pool = NULL;
        own.template = NULL;
        if (launcher_start(&own.launcher, launched_program(), NULL) == SY_E_OK &&
            launcher_make_template(own.launcher, &own.template, &own.policy, NULL) == SY_E_OK &&
            process_pool_new(&own.pool, true, NULL) == SY_E_OK) {
            start(&c, &own, buf_view(&script));
            drive(&c, "never");
        }
        _exit(0);
    }

    struct pollfd never = {.fd = gone[0], .events = POLLIN};
    struct timespec wait = {.tv_nsec = wait_us * 1000};

    /* A moment, not an event, is what this is about. */
    (void)ppoll(&never, 1, &wait, NULL);
    assert_int_equal(kill(engine, SIGKILL), 0);
    assert_int_equal(waitpid(engine, NULL, 0), engine);
    close(gone[0]);
    close(gone[1]);
    await_no_marked(w->mark, 2 * SECOND_NS);
}

static void
nothing_is_left_of_an_engine_that_was_killed(void **state)
{
    for (long us = 0; us < 40000; us += 1300) {
        kill_engine_after(*state, us);
    }
}

static void
many_runs_leave_no_zombie_and_no_descriptor(void **state)
{
    struct world *w = *state;
    pid_t launcher = find_child(getpid(), "sy-launch");
    pid_t template = find_child(launcher, "sy-template");
    size_t live = 0;
    int before = -1;
    int after = -1;
    uint64_t give_up_ns = 0;

    assert_int_equal(run(w, "exit 3", NULL), 3);
    live = mem_live();
    before = dup(0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(run(w, "exit 3", NULL), 3);
    }
    after = dup(0);
    assert_int_equal(mem_live(), live);
    assert_int_equal(after, before + 1);
    fd_close(&before);
    fd_close(&after);
    give_up_ns = clock_mono_ns() + 5 * SECOND_NS;
    while (find_child(template, "sy-keeper") != 0) {
        assert_true(clock_mono_ns() < give_up_ns); /* the last one may be on its way out */
    }
}

static bool
has_hung_up(int fd, int timeout_ms)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};

    return poll(&end, 1, timeout_ms) == 1 && (end.revents & POLLHUP) != 0;
}

/* Until something else takes its place, or the template ends. No command has it. */
static void
what_is_shared_stays_open_with_the_template(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(buf_fini) struct buf before = {.max = 4096};
    int ends[2] = {-1, -1};
    int shared = -1;

    assert_int_equal(run(w, "ls /proc/self/fd", &before), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fd_pipe(&ends[i], &shared, NULL), SY_E_OK);
        launcher_share(w->template, shared);
        fd_close(&shared);
    }
    assert_true(has_hung_up(ends[0], 20000));
    assert_int_equal(run(w, "ls /proc/self/fd", &out), 0);
    assert_string_equal(buf_view(&out), buf_view(&before));
    assert_false(has_hung_up(ends[1], 0));
    template_unref(w->template);
    w->template = NULL;
    assert_true(has_hung_up(ends[1], 20000));
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

/* A process made ready by a template that is let go of is not taken for one of the next. */
static void
a_spare_is_of_its_template_alone(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = 4096};
    struct sandbox_base base = sandbox_plan_base(w->plan);
    struct sy_error err = {0};

    put_file(w, "held", "good\n");
    base.template = w->template;
    process_pool_make_spare(w->pool, &base);
    template_unref(w->template);
    w->template = NULL;
    assert_int_equal(launcher_make_template(w->launcher, &w->template, &w->policy, &err), SY_E_OK);
    add_mark(&marks, w, LAUNCH_MARK_READ_ONLY, "held");
    assert_int_equal(launcher_add_marks(w->template, marks.data, marks.len, NULL), SY_E_OK);
    assert_int_equal(run(w, "! echo bad 2>/dev/null >held", NULL), 0);
    assert_int_equal(run(w, "echo good >free", NULL), 0);
}

static void
a_policy_that_can_not_be_had_says_why(void **state)
{
    struct world *w = *state;
    struct sandbox_policy missing = w->policy;
    struct template *t = NULL;
    struct launcher *l = NULL;
    struct sy_error err = {0};

    missing.cwd = mem_unconst("/nonexistent/workspace");
    assert_int_equal(launcher_make_template(w->launcher, &t, &missing, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "/nonexistent/workspace"));
    assert_int_equal(launcher_start(&l, "/nonexistent/launcher", &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "/nonexistent/launcher"));
    /* The launcher lives on. */
    assert_int_equal(launcher_make_template(w->launcher, &t, &w->policy, &err), SY_E_OK);
    template_unref(t);
}

static enum sy_code
make_and_run(void *arg)
{
    struct world *w = arg;
    struct template *t = NULL;
    struct process *p = NULL;
    struct output_options options = {0};
    char *argv[] = {mem_unconst("/bin/true"), NULL};
    struct output_chain *chain = output_new(&options);
    enum sy_code rc =
        chain != NULL ? launcher_make_template(w->launcher, &t, &w->policy, NULL) : SY_E_NOMEM;

    if (rc == SY_E_OK) {
        struct exec_env env = env_of(w, argv);

        env.template = t;
        rc = process_start(&p, &env, chain, NULL);
    }
    process_free(p);
    template_unref(t);
    output_free(chain);
    return rc;
}

static void
a_start_survives_each_failed_allocation(void **state)
{
    fault_run(make_and_run, *state);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LAUNCHED(a_command_sees_its_own_processes_and_the_walls),
        LAUNCHED(what_never_ran_is_told_by_its_stage),
        LAUNCHED(a_long_command_arrives_whole),
        LAUNCHED(daemons_are_gone_with_their_command),
        LAUNCHED(the_end_of_the_keeper_is_the_end_of_all),
        LAUNCHED(a_command_outlives_launcher_and_template),
        LAUNCHED(nothing_is_left_of_an_engine_that_was_killed),
        LAUNCHED(many_runs_leave_no_zombie_and_no_descriptor),
        LAUNCHED(what_is_shared_stays_open_with_the_template),
        LAUNCHED(a_spare_is_of_its_template_alone),
        LAUNCHED(a_policy_that_can_not_be_had_says_why),
        LAUNCHED(a_start_survives_each_failed_allocation),
    };

    return launched_by(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
