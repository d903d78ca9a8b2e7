#include <dirent.h>
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "process/process.h"

#define SECOND_NS 1000000000ULL

static char path_variable[] = "PATH=/usr/bin:/bin";
static char lang_variable[] = "LANG=C.UTF-8";
static char *const small_env[] = {path_variable, lang_variable, NULL};

/* Drives p until it is done; kills it at kill_ns (0: never). */
static void
drive(struct process *p, uint64_t kill_ns)
{
    bool is_done = false;
    struct sy_error err = {0};
    uint64_t give_up_ns = clock_mono_ns() + 20 * SECOND_NS;

    for (;;) {
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES];
        uint64_t now = clock_mono_ns();
        uint64_t wake = process_deadline_ns(p);

        if (kill_ns != 0 && now >= kill_ns) {
            process_kill(p);
            kill_ns = 0;
        }
        assert_int_equal(process_step(p, now, &is_done, &err), SY_E_OK);
        if (is_done) {
            return;
        }
        assert_true(now < give_up_ns);
        wake = kill_ns != 0 && kill_ns < wake ? kill_ns : wake;
        wake = give_up_ns < wake ? give_up_ns : wake;

        size_t n = process_watches(p, watches);

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        poll(fds, (nfds_t)n, wake > now ? (int)((wake - now) / 1000000) + 1 : 0);
    }
}

struct run {
    struct process_result result;
    struct buf out;
    struct buf err;
    uint64_t took_ns;
};

static void
run_fini(struct run *r)
{
    buf_fini(&r->out);
    buf_fini(&r->err);
}

static void
run_in(struct run *r, const char *program, char *const *argv, const char *cwd, uint64_t kill_after)
{
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    struct exec_env env = {.program = program, .argv = argv, .envp = small_env, .cwd = cwd};
    struct process *p = NULL;
    struct sy_error err = {0};
    uint64_t start = clock_mono_ns();

    *r = (struct run){.out = {.max = 1U << 24}, .err = {.max = 1U << 24}};
    assert_non_null(chain);
    assert_int_equal(process_start(&p, &env, chain, &err), SY_E_OK);
    drive(p, kill_after != 0 ? start + kill_after : 0);
    r->took_ns = clock_mono_ns() - start;
    r->result = *process_result(p);
    process_free(p);
    assert_int_equal(output_finish(chain), SY_E_OK);
    assert_int_equal(output_text_stream(chain, STREAM_STDOUT, &r->out), SY_E_OK);
    assert_int_equal(output_text_stream(chain, STREAM_STDERR, &r->err), SY_E_OK);
    output_free(chain);
}

static void
run_sh(struct run *r, const char *script, uint64_t kill_after)
{
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst(script), NULL};

    run_in(r, "/bin/sh", argv, "/", kill_after);
}

static void
keeps_both_streams_and_the_exit_code(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "echo out; echo err >&2; exit 7", 0);
    assert_int_equal(r.result.outcome, PROCESS_EXITED);
    assert_int_equal(r.result.exit_code, 7);
    assert_string_equal(buf_view(&r.out), "out\n");
    assert_string_equal(buf_view(&r.err), "err\n");
}

static void
tells_death_by_signal_with_its_output(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "echo before; kill -9 $$", 0);
    assert_int_equal(r.result.outcome, PROCESS_SIGNALED);
    assert_int_equal(r.result.signal, SIGKILL);
    assert_string_equal(buf_view(&r.out), "before\n");
}

static void
gives_an_empty_standard_input(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "wc -c; readlink /proc/self/fd/0", 0);
    assert_string_equal(buf_view(&r.out), "0\n/dev/null\n");
}

static void
shows_no_descriptor_but_the_three(void **state)
{
    SY_AUTO(run_fini) struct run r;
    int leaked[40];

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        leaked[i] = open("/", O_RDONLY); /* without O_CLOEXEC on purpose */
        assert_true(leaked[i] >= 0);
    }
    /* No pipe: the shell would hold an end of it for a moment. The colon keeps it the shell. */
    run_sh(&r, "ls /proc/$$/fd; :", 0);
    for (size_t i = 0; i < 40; i++) {
        fd_close(&leaked[i]);
    }
    assert_string_equal(buf_view(&r.out), "0\n1\n2\n");
}

static void
has_a_session_of_its_own_and_default_signals(void **state)
{
    SY_AUTO(run_fini) struct run r;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
    run_sh(&r,
           "set -- $(cat /proc/self/stat | sed 's/.*) //'); echo $(( $4 == $$ ));"
           "grep -E 'SigIgn|SigBlk' /proc/$$/status | tr -d '\\t '",
           0);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
    assert_string_equal(buf_view(&r.out), "1\nSigBlk:0000000000000000\nSigIgn:0000000000000000\n");
}

static void
tells_what_keeps_a_program_from_running(void **state)
{
    SY_AUTO(run_fini) struct run missing;
    SY_AUTO(run_fini) struct run directory;
    SY_AUTO(run_fini) struct run cwd;
    char *argv[] = {mem_unconst("x"), NULL};

    (void)state;
    run_in(&missing, "/nonexistent/program", argv, "/", 0);
    assert_int_equal(missing.result.outcome, PROCESS_FAILED);
    assert_int_equal(missing.result.err.code, SY_E_NOTFOUND);
    run_in(&directory, "/usr", argv, "/", 0);
    assert_int_equal(directory.result.err.code, SY_E_NOEXEC);
    run_in(&cwd, "/bin/true", argv, "/nonexistent-dir", 0);
    assert_int_equal(cwd.result.err.code, SY_E_CWD);
    assert_non_null(strstr(cwd.result.err.msg, "/nonexistent-dir"));
}

static void
runs_a_script_without_interpreter_line(void **state)
{
    SY_AUTO(run_fini) struct run r;
    char path[] = "/tmp/sy-script-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    char *argv[] = {path, mem_unconst("one"), mem_unconst("two"), NULL};

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, "echo $# $2\n", 11, NULL), SY_E_OK);
    assert_int_equal(fchmod(fd, 0700), 0);
    fd_close(&fd);
    run_in(&r, path, argv, "/", 0);
    unlink(path);
    assert_int_equal(r.result.outcome, PROCESS_EXITED);
    assert_string_equal(buf_view(&r.out), "2 two\n");
}

/* A number of seconds that only this run of the test sleeps for: 1000 hours
 * and our process id behind the point. */
static const char *
long_sleep(void)
{
    static char text[32];

    snprintf(text, sizeof(text), "3600000.%d1", (int)getpid());
    return text;
}

/* Processes that run `sleep` for that long. */
static size_t
count_sleepers(void)
{
    DIR *proc = opendir("/proc");
    size_t n = 0;

    assert_non_null(proc);
    for (struct dirent *e = readdir(proc); e != NULL; e = readdir(proc)) {
        char path[300];
        SY_AUTO(buf_fini) struct buf line = {.max = 65536};

        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
            fd_read_file(path, &line, NULL) == SY_E_OK && line.len > 6 &&
            strcmp(line.data, "sleep") == 0 && strcmp(line.data + 6, long_sleep()) == 0) {
            n++;
        }
    }
    closedir(proc);
    return n;
}

static void
ends_what_left_the_session_when_killed(void **state)
{
    SY_AUTO(run_fini) struct run r;
    char script[400];

    (void)state;
    snprintf(script, sizeof(script),
             "for i in 1 2 3 4 5 6 7 8; do setsid sh -c '(trap \"\" TERM HUP; exec sleep $0) & "
             "exec sleep $0' %s & done; setsid setsid sleep %s & echo up; sleep %s",
             long_sleep(), long_sleep(), long_sleep());
    run_sh(&r, script, SECOND_NS / 2);
    assert_string_equal(buf_view(&r.out), "up\n");
    assert_true(r.took_ns < 3 * SECOND_NS);
    assert_int_equal(count_sleepers(), 0);
}

static void
a_background_child_that_holds_the_pipe_delays_half_a_second(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "(while :; do echo tick; sleep 0.1; done) & echo done; exit 3", 0);
    assert_int_equal(r.result.outcome, PROCESS_EXITED);
    assert_int_equal(r.result.exit_code, 3);
    assert_true(r.took_ns > SECOND_NS / 3 && r.took_ns < 2 * SECOND_NS);
    assert_true(r.result.pipe_was_held);
    assert_true(r.result.ended_background >= 1);
    assert_non_null(strstr(buf_view(&r.out), "done\n"));
    assert_non_null(strstr(buf_view(&r.out), "tick\n"));
}

static void
a_background_child_without_the_pipe_is_ended_at_once(void **state)
{
    SY_AUTO(run_fini) struct run r;
    char script[100];

    (void)state;
    snprintf(script, sizeof(script), "sleep %s >/dev/null 2>&1 & exit 0", long_sleep());
    run_sh(&r, script, 0);
    assert_true(r.took_ns < SECOND_NS / 2);
    assert_false(r.result.pipe_was_held);
    assert_int_equal(r.result.ended_background, 1);
    assert_int_equal(count_sleepers(), 0);
}

static void
loses_no_byte_of_a_large_output(void **state)
{
    SY_AUTO(run_fini) struct run r;

    (void)state;
    run_sh(&r, "head -c 900000 /dev/zero | tr '\\0' h", 0);
    assert_int_equal(r.out.len, 900000);
}

/* An engine of its own process: it starts a command and waits for death. */
static void
be_an_engine(int ready_fd, const char *mark)
{
    char script[200];
    struct output_options options = {0};
    struct exec_env env = {
        .program = "/bin/sh",
        .argv = (char *[]){mem_unconst("sh"), mem_unconst("-c"), script, NULL},
        .envp = small_env,
        .cwd = "/",
    };
    struct process *p = NULL;
    struct output_chain *chain = output_new(&options);

    /* A failing test must not leave it behind. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The mark is that of the test's own process. */
    snprintf(script, sizeof(script), "setsid sleep %s & sleep %s & echo up; wait", mark, mark);
    if (chain == NULL || process_start(&p, &env, chain, NULL) != SY_E_OK) {
        _exit(1);
    }
    for (;;) {
        struct output_stats stats;
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES];
        size_t n = process_watches(p, watches);
        bool is_done = false;

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = POLLIN};
        }
        poll(fds, (nfds_t)n, -1);
        if (process_step(p, clock_mono_ns(), &is_done, NULL) != SY_E_OK) {
            _exit(1);
        }
        output_stats_all(chain, &stats);
        if (stats.total_bytes == 3 && fd_write_all(ready_fd, "!", 1, NULL) != SY_E_OK) {
            _exit(1);
        }
    }
}

static void
the_tree_dies_with_the_engine(void **state)
{
    int ready[2];
    char byte = 0;
    uint64_t give_up = clock_mono_ns() + 5 * SECOND_NS;

    (void)state;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);

    const char *mark = long_sleep();
    pid_t engine = fork();

    if (engine == 0) {
        be_an_engine(ready[1], mark);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    while (count_sleepers() < 2) {
        /* The shell has said "up" before both of them are what they will be. */
        assert_true(clock_mono_ns() < give_up);
    }
    assert_int_equal(kill(engine, SIGKILL), 0);
    assert_int_equal(waitpid(engine, NULL, 0), engine);
    while (count_sleepers() > 0) {
        assert_true(clock_mono_ns() < give_up);
    }
    fd_close(&ready[0]);
    fd_close(&ready[1]);
}

static void
freeing_a_running_process_ends_it(void **state)
{
    struct output_options options = {0};
    struct output_chain *chain = output_new(&options);
    char *argv[] = {mem_unconst("sleep"), mem_unconst(long_sleep()), NULL};
    struct exec_env env = {.program = "/bin/sleep", .argv = argv, .envp = small_env, .cwd = "/"};
    struct process *p = NULL;
    size_t live = mem_live();

    (void)state;
    assert_non_null(chain);
    assert_int_equal(process_start(&p, &env, chain, NULL), SY_E_OK);
    process_free(p);
    assert_int_equal(count_sleepers(), 0);
    output_free(chain);
    assert_true(mem_live() <= live);
}

static void
two_hundred_runs_leave_no_zombie_and_no_descriptor(void **state)
{
    char *argv[] = {mem_unconst("true"), NULL};
    int before = dup(0);
    int after = -1;

    (void)state;
    for (int i = 0; i < 200; i++) {
        SY_AUTO(run_fini) struct run r;

        run_in(&r, "/bin/true", argv, "/", 0);
        assert_int_equal(r.result.outcome, PROCESS_EXITED);
    }
    after = dup(0);
    assert_int_equal(before + 1, after);
    fd_close(&before);
    fd_close(&after);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_both_streams_and_the_exit_code),
        cmocka_unit_test(tells_death_by_signal_with_its_output),
        cmocka_unit_test(gives_an_empty_standard_input),
        cmocka_unit_test(shows_no_descriptor_but_the_three),
        cmocka_unit_test(has_a_session_of_its_own_and_default_signals),
        cmocka_unit_test(tells_what_keeps_a_program_from_running),
        cmocka_unit_test(runs_a_script_without_interpreter_line),
        cmocka_unit_test(ends_what_left_the_session_when_killed),
        cmocka_unit_test(a_background_child_that_holds_the_pipe_delays_half_a_second),
        cmocka_unit_test(a_background_child_without_the_pipe_is_ended_at_once),
        cmocka_unit_test(loses_no_byte_of_a_large_output),
        cmocka_unit_test(the_tree_dies_with_the_engine),
        cmocka_unit_test(freeing_a_running_process_ends_it),
        cmocka_unit_test(two_hundred_runs_leave_no_zombie_and_no_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
