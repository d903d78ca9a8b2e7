/* Commands with an input that we feed: a pipe, or a terminal; without a sandbox and in namespaces.
 */
#include <errno.h>
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
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "launched.h"

static char path_variable[] = "PATH=/usr/bin:/bin";
static char *const small_env[] = {path_variable, NULL};

/* A command with an input, in the world's namespaces or, without one, in none. */
struct fed {
    struct command command;
    char *argv[4];   /* as long as it runs */
    struct buf text; /* what `said` has given last */
};

/* One of a run with a tree of its own comes when its keeper has made it. */
static void
await_terminal(struct process *p)
{
    bool is_there = false;
    struct sy_error err = {0};

    for (;;) {
        struct process_watch watches[PROCESS_WATCHES];

        if (process_take_terminal(p, clock_mono_ns(), &is_there, &err) != SY_E_OK) {
            fail_msg("%s", err.msg);
        }
        if (is_there) {
            return;
        }
        assert_int_equal(process_watches(p, watches), 1);
        assert_true(process_deadline_ns(p) != UINT64_MAX);

        struct pollfd channel = {.fd = watches[0].fd, .events = watches[0].events};

        assert_int_equal(poll(&channel, 1, 20000), 1);
    }
}

static void
feed_start(struct fed *f, const struct world *w, enum process_input kind, const char *script)
{
    struct exec_env env = {.program = "/bin/bash", .argv = f->argv, .envp = small_env, .cwd = "/"};
    const struct process_input_way way = {.kind = kind};
    struct output_options options = {0};
    struct sy_error err = {0};

    *f = (struct fed){
        .argv = {mem_unconst("/bin/bash"), mem_unconst("-c"), mem_unconst(script), NULL},
        .text = {.max = (size_t)4 << 20    },
    };
    if (w != NULL) {
        env = env_of(w, f->argv);
    }

    const struct sandbox_base base = process_base(&env);

    f->command.chain = output_new(&options);
    assert_non_null(f->command.chain);
    if (process_prepare_input(&f->command.process, &base, &way, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    await_terminal(f->command.process);
    if (process_go(f->command.process, &env, f->command.chain, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
}

static void
feed(struct fed *f, const char *bytes, size_t n)
{
    struct sy_error err = {0};

    if (process_write(f->command.process, bytes, n, &err) != SY_E_OK) {
        fail_msg("%s: %s", err.msg, process_result(f->command.process)->err.msg);
    }
}

static void
feed_line(struct fed *f, const char *line)
{
    feed(f, line, strlen(line));
}

static const char *
said(struct fed *f)
{
    buf_reset(&f->text);
    assert_int_equal(output_text_all(f->command.chain, &f->text), SY_E_OK);
    return buf_view(&f->text);
}

static void
feed_end(struct fed *f)
{
    buf_fini(&f->text);
    if (process_result(f->command.process)->outcome == PROCESS_FAILED) {
        fail_msg("%s", process_result(f->command.process)->err.msg);
    }
    end(&f->command);
}

static void
hears_by_a_pipe_what_we_write_until_its_end(void **state)
{
    struct fed f;
    struct sy_error err = {0};

    (void)state;
    feed_start(&f, NULL, INPUT_PIPE, "while read -r line; do echo \"<$line>\"; done; echo over");
    feed_line(&f, "one\n");
    drive(&f.command, "<one>");
    feed_line(&f, "two\nthree\n");
    process_close_input(f.command.process);
    drive(&f.command, NULL);
    assert_string_equal(said(&f), "<one>\n<two>\n<three>\nover\n");
    assert_int_equal(process_write(f.command.process, "x", 1, &err), SY_E_ARG);
    assert_string_equal(err.msg, "the command has ended");
    feed_end(&f);
}

/* Whoever frees what a command was started with as soon as that is allowed loses none of it. */
static void
needs_its_environment_no_longer_than_it_says(void **state)
{
    static const char marked[] = "MARK=of the first hour";
    struct fed f = {.text = {.max = (size_t)4 << 20}};
    char *argv[] = {mem_strdup("/bin/bash"), mem_strdup("-c"),
                    mem_strdup("read -r line; echo \"$line $MARK\""), NULL};
    char *envp[] = {mem_strdup(marked), NULL};
    const struct exec_env env = {.program = "/bin/bash", .argv = argv, .envp = envp, .cwd = "/"};
    const struct sandbox_base base = process_base(&env);
    const struct process_input_way way = {.kind = INPUT_PIPE};
    struct output_options options = {0};
    struct sy_error err = {0};
    uint64_t give_up_ns = clock_mono_ns() + 20000000000ULL;

    (void)state;
    f.command.chain = output_new(&options);
    assert_non_null(f.command.chain);
    assert_int_equal(process_prepare_input(&f.command.process, &base, &way, &err), SY_E_OK);
    assert_false(process_has_executed(f.command.process));
    assert_int_equal(process_go(f.command.process, &env, f.command.chain, &err), SY_E_OK);
    while (!process_has_executed(f.command.process)) {
        assert_true(clock_mono_ns() < give_up_ns);
        (void)sched_yield();
    }
    for (size_t i = 0; i < 3; i++) {
        memset(argv[i], 'x', strlen(argv[i]));
        mem_free(argv[i]);
    }
    memset(envp[0], 'x', sizeof(marked) - 1);
    mem_free(envp[0]);
    feed_line(&f, "still\n");
    drive(&f.command, NULL);
    assert_string_equal(said(&f), "still of the first hour\n");
    feed_end(&f);
}

/* More than a pipe holds is queued. */
static void
is_not_held_up_by_a_command_that_does_not_read(void **state)
{
    static char much[LIMIT_INPUT_PENDING];
    struct fed f;
    struct sy_error err = {0};

    (void)state;
    memset(much, 'q', sizeof(much));
    feed_start(&f, NULL, INPUT_PIPE, "echo here; sleep 300");
    drive(&f.command, "here");
    feed(&f, much, sizeof(much));
    assert_true(process_unwritten(f.command.process) > 0);
    assert_int_equal(process_write(f.command.process, much, sizeof(much), &err), SY_E_LIMIT);
    process_kill(f.command.process);
    drive(&f.command, NULL);
    assert_int_equal(process_unwritten(f.command.process), 0);
    feed_end(&f);
}

static void
is_not_ended_by_the_signal_of_a_closed_pipe(void **state)
{
    const struct sigaction fallback = {.sa_handler = SIG_DFL};
    struct sigaction before;
    struct sy_error err = {0};
    struct fed f;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &fallback, &before), 0);
    feed_start(&f, NULL, INPUT_PIPE, "exec <&-; echo closed; sleep 300");
    drive(&f.command, "closed");
    feed_line(&f, "lost\n");
    /* The keeper may hold the other end for a moment longer than the command. */
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK) {
        (void)sched_yield();
        rc = process_write(f.command.process, "x", 1, &err);
    }
    assert_int_equal(rc, SY_E_ARG);
    assert_string_equal(err.msg, "the command has closed its standard input");
    process_kill(f.command.process);
    drive(&f.command, NULL);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
    feed_end(&f);
}

static void
has_no_input_where_none_was_asked_for(void **state)
{
    struct fed f;
    struct sy_error err = {0};

    (void)state;
    feed_start(&f, NULL, INPUT_NONE, "cat; echo end; sleep 5");
    drive(&f.command, "end");
    assert_int_equal(process_write(f.command.process, "x", 1, &err), SY_E_ARG);
    assert_int_equal(process_terminal_fd(f.command.process), -1);
    assert_false(process_resize(f.command.process, 10, 10));
    process_kill(f.command.process);
    drive(&f.command, NULL);
    feed_end(&f);
}

static void
check_terminal(const struct world *w)
{
    struct fed f;

    feed_start(
        &f, w, INPUT_TERMINAL,
        "test -t 0 && test -t 1 && test -t 2 && stty size && tty >/tmp/sy-tty.$$ && "
        "test \"$(tty </dev/tty)\" = /dev/tty -o -n \"$(tty)\" && "
        "test \"$(ps -o tty= -p $$ 2>/dev/null || tty | cut -c6-)\" = \"$(tty | cut -c6-)\" && "
        "echo own >\"$(tty)\" && rm /tmp/sy-tty.$$ && read -r line && echo \"<$line>\"");
    drive(&f.command, "own\r\n");
    feed_line(&f, "typed\r");
    drive(&f.command, NULL);
    assert_string_equal(said(&f), "24 80\r\nown\r\ntyped\r\n<typed>\r\n");
    assert_int_equal(process_result(f.command.process)->exit_code, 0);
    feed_end(&f);
}

static void
is_the_controlling_terminal_and_has_a_name(void **state)
{
    check_terminal(NULL);
    check_terminal(*state);
}

static void
check_interrupt(const struct world *w)
{
    struct fed f;

    feed_start(&f, w, INPUT_TERMINAL, "echo ready; sleep 300; echo SURVIVED");
    drive(&f.command, "ready");
    feed_line(&f, "\003");
    drive(&f.command, NULL);
    assert_null(strstr(said(&f), "SURVIVED"));
    assert_int_equal(process_result(f.command.process)->outcome, PROCESS_SIGNALED);
    assert_int_equal(process_result(f.command.process)->signal, SIGINT);
    feed_end(&f);
}

static void
interrupts_what_is_in_the_foreground(void **state)
{
    check_interrupt(NULL);
    check_interrupt(*state);
}

/* The shell is not in the foreground while its job is: who sends a signal means that one. */
static void
signals_go_to_the_foreground(void **state)
{
    struct fed f;

    (void)state;
    feed_start(&f, NULL, INPUT_TERMINAL,
               "set -m; bash -c 'trap \"echo job; exit 7\" TERM; echo ready; sleep 300 & wait'; "
               "echo \"shell $?\"");
    drive(&f.command, "ready");
    assert_true(process_signal(f.command.process, SIGTERM));
    drive(&f.command, NULL);
    assert_non_null(strstr(said(&f), "job\r\nshell 7\r\n"));
    feed_end(&f);
}

static void
stops_and_goes_on(void **state)
{
    struct fed f;

    (void)state;
    feed_start(&f, NULL, INPUT_TERMINAL,
               "set -m; bash -c 'echo ready; read -r x; echo \"got $x\"'; echo \"stopped $?\"; fg "
               ">/dev/null; echo \"end $?\"");
    drive(&f.command, "ready");
    feed_line(&f, "\032");
    drive(&f.command, "stopped 148");
    feed_line(&f, "word\n");
    drive(&f.command, NULL);
    assert_non_null(strstr(said(&f), "got word\r\nend 0\r\n"));
    feed_end(&f);
}

static void
says_everything_up_to_the_last_byte(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct fed f;

        feed_start(&f, i % 10 == 0 ? *state : NULL, INPUT_TERMINAL,
                   "head -c 20480 /dev/zero | tr '\\0' h");
        drive(&f.command, NULL);
        assert_int_equal(strspn(said(&f), "h"), 20480);
        assert_int_equal(f.text.len, 20480);
        feed_end(&f);
    }
}

/* Nobody reads the echo while we write: a write that blocked would never end. */
static void
takes_a_paste_of_any_size_byte_for_byte(void **state)
{
    enum { BYTES = 300000 };

    SY_AUTO(buf_fini) struct buf paste = {.max = BYTES + 1};
    struct fed f;
    size_t at = 0;

    (void)state;
    for (int i = 0; i < BYTES; i++) {
        assert_int_equal(buf_add_char(&paste, (char)('a' + i % 26)), SY_E_OK);
    }
    feed_start(&f, NULL, INPUT_TERMINAL,
               "stty -icanon -echo min 1; echo RDY; head -c 300000; echo; stty sane");
    drive(&f.command, "RDY");
    feed(&f, buf_view(&paste), paste.len);
    drive(&f.command, NULL);
    at = (size_t)(strstr(said(&f), "RDY\r\n") + 5 - buf_view(&f.text));
    assert_memory_equal(buf_view(&f.text) + at, buf_view(&paste), BYTES);
    feed_end(&f);
}

static void
tells_a_program_of_its_new_size(void **state)
{
    struct fed f;

    (void)state;
    feed_start(&f, NULL, INPUT_TERMINAL,
               "trap 'stty size; exit 0' WINCH; echo ready; sleep 300 & wait");
    drive(&f.command, "ready");
    assert_true(process_resize(f.command.process, 50, 132));
    drive(&f.command, NULL);
    assert_non_null(strstr(said(&f), "50 132\r\n"));
    feed_end(&f);
}

/* Where nobody has a terminal open it reads as ended; this one is opened again. */
static void
outlives_a_moment_without_anybody_at_it(void **state)
{
    struct fed f;

    (void)state;
    feed_start(&f, NULL, INPUT_TERMINAL,
               "exec <&- >&- 2>&-; exec </dev/tty >/dev/tty; read -r x; echo \"<$x>\"");
    feed_line(&f, "late\n");
    drive(&f.command, NULL);
    assert_non_null(strstr(said(&f), "<late>\r\n"));
    feed_end(&f);
}

static void
leaves_nothing_behind(void **state)
{
    size_t live = mem_live();
    int before = dup(0);
    int after = -1;

    for (int i = 0; i < 200; i++) {
        struct fed f;

        feed_start(&f, i % 20 == 0 ? *state : NULL, i % 2 == 0 ? INPUT_TERMINAL : INPUT_PIPE, ":");
        if (i % 3 != 0) {
            drive(&f.command, NULL);
        }
        feed_end(&f);
    }
    assert_int_equal(mem_live(), live);
    after = dup(0);
    assert_int_equal(after, before + 1);
    fd_close(&before);
    fd_close(&after);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hears_by_a_pipe_what_we_write_until_its_end),
        cmocka_unit_test(needs_its_environment_no_longer_than_it_says),
        cmocka_unit_test(is_not_held_up_by_a_command_that_does_not_read),
        cmocka_unit_test(is_not_ended_by_the_signal_of_a_closed_pipe),
        cmocka_unit_test(has_no_input_where_none_was_asked_for),
        LAUNCHED(is_the_controlling_terminal_and_has_a_name),
        LAUNCHED(interrupts_what_is_in_the_foreground),
        cmocka_unit_test(signals_go_to_the_foreground),
        cmocka_unit_test(stops_and_goes_on),
        LAUNCHED(says_everything_up_to_the_last_byte),
        cmocka_unit_test(takes_a_paste_of_any_size_byte_for_byte),
        cmocka_unit_test(tells_a_program_of_its_new_size),
        cmocka_unit_test(outlives_a_moment_without_anybody_at_it),
        LAUNCHED(leaves_nothing_behind),
    };

    return launched_by(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
