#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "pty.h"
#include "terminal/state.h"

#define SHELL 100
#define OTHER 200

static void
tells_prompts_passwords_and_screens_apart(void **state)
{
    static const struct {
        struct state_facts facts;
        enum state_kind kind;
    } rows[] = {
  /* bash with readline, waiting */
        {{.foreground = SHELL},                                                                     STATE_PROMPT  },
 /* cat or sleep */
        {{.echo = true, .canonical = true, .foreground = OTHER},                                    STATE_RUNNING },
        {{.echo = true, .canonical = true, .foreground = OTHER, .reads = STATE_UNKNOWN},
         STATE_RUNNING                                                                                            },
        {{.echo = true, .canonical = true, .foreground = OTHER, .reads = STATE_YES},                STATE_LINE    },
 /* a shell without readline, and bash's read */
        {{.echo = true, .canonical = true, .foreground = SHELL, .reads = STATE_YES},                STATE_LINE    },
 /* getpass, ssh; bash's read -s */
        {{.canonical = true, .foreground = OTHER},                                                  STATE_PASSWORD},
        {{.canonical = true, .foreground = SHELL},                                                  STATE_PASSWORD},
 /* vim */
        {{.foreground = OTHER},                                                                     STATE_SCREEN  },
        {{.echo = true, .foreground = OTHER},                                                       STATE_SCREEN  },
        {{.foreground = 0},                                                                         STATE_SCREEN  },
 /* sudo that shows stars; one that reads with echo */
        {{.foreground = OTHER, .asks_password = true},                                              STATE_PASSWORD},
        {{.echo = true,
          .canonical = true,
          .foreground = OTHER,
          .reads = STATE_YES,
          .asks_password = true},
         STATE_PASSWORD                                                                                           },
 /* the same, started without a shell */
        {{.foreground = SHELL, .asks_password = true},                                              STATE_PASSWORD},
 /* the word alone is none, nor is one that was typed to a shell */
        {{.foreground = SHELL, .asks_password = true, .is_shell_line = true},                       STATE_PROMPT  },
 /* a shell that another one has started */
        {{.foreground = OTHER, .asks_password = true, .is_shell_line = true},                       STATE_PROMPT  },
        {{.foreground = OTHER, .is_shell_line = true},                                              STATE_PROMPT  },
        {{.echo = true,
          .canonical = true,
          .foreground = OTHER,
          .reads = STATE_YES,
          .reads_commands = STATE_YES},
         STATE_PROMPT                                                                                             },
        {{.canonical = true, .foreground = SHELL, .reads = STATE_YES, .reads_commands = STATE_YES},
         STATE_PASSWORD                                                                                           },
        {{.echo = true, .canonical = true, .foreground = OTHER, .asks_password = true},
         STATE_RUNNING                                                                                            },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct state_facts f = rows[i].facts;

        f.shell = SHELL;
        if (state_of(&f) != rows[i].kind) {
            fail_msg("row %zu: %s", i, state_name(state_of(&f)));
        }
    }
}

static void
knows_a_line_that_asks_for_a_password(void **state)
{
    static const char *const yes[] = {
        "Password:",
        "[sudo] password for bob: ",
        "Enter passphrase for key '/x': ",
        "Password: ****",
        "PASSWORD:",
        "Enter encryption key: ***",
        "Enter same key again: ",
        "Enter PIN for 'card': ",
    };
    static const char *const no[] = {
        "", "$ ", "password", "the password was wrong", "user:", "a: password b", "key:"};

    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        assert_true(state_asks_password(yes[i], strlen(yes[i])));
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        assert_false(state_asks_password(no[i], strlen(no[i])));
    }
}

static void
reads_the_modes_from_the_master(void **state)
{
    struct pty p;
    struct termios modes;
    struct state_facts f = {.shell = SHELL};
    struct sy_error err = {0};

    (void)state;
    pty_open(&p);
    assert_int_equal(state_read(p.master, &f, &err), SY_E_OK);
    assert_true(f.echo && f.canonical && f.foreground == 0);
    assert_int_equal(tcgetattr(p.slave, &modes), 0);
    modes.c_lflag &= ~(tcflag_t)ECHO;
    assert_int_equal(tcsetattr(p.slave, TCSANOW, &modes), 0);
    assert_int_equal(state_read(p.master, &f, &err), SY_E_OK);
    assert_true(!f.echo && f.canonical);
    pty_close(&p);

    SY_FD none = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_int_equal(state_read(none, &f, &err), SY_E_SYS);
}

static void
sees_a_process_that_reads_the_terminal(void **state)
{
    struct pty p;
    pid_t pid = 0;
    enum state_answer answer = STATE_NO;

    (void)state;
    pty_open(&p);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child_reads(p.slave);
    }
    /* Until it is there; a kernel that does not tell says so at once. */
    while (answer == STATE_NO) {
        answer = state_reads_terminal(pid, p.name, NULL, NULL);
        (void)sched_yield();
    }
    assert_true(answer == STATE_YES || access("/proc/self/syscall", R_OK) != 0 ||
                answer == STATE_UNKNOWN);
    if (answer == STATE_YES) {
        assert_int_equal(state_reads_terminal(pid, "/dev/pts/none", NULL, NULL), STATE_NO);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(state_reads_terminal(pid, p.name, NULL, NULL), STATE_UNKNOWN);
    pty_close(&p);
}

static int
peek(pid_t pid, uintptr_t there, void *ret, size_t n)
{
    const struct iovec here = {ret, n};
    const struct iovec other = {(void *)there, n}; /* NOLINT(performance-no-int-to-ptr) */

    return process_vm_readv(pid, &here, 1, &other, 1, 0) == (ssize_t)n ? 0 : EFAULT;
}

enum waits { BY_POLL, BY_SELECT, BY_EPOLL, WAITS };

/* In the child: waits for that descriptor until it is killed, and for another (-1: for no other).
 */
static void
child_waits(enum waits how, int fd, int other)
{
    struct pollfd fds[2] = {
        {.fd = other, .events = POLLIN},
        {.fd = fd,    .events = POLLIN}
    };
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    fd_set set;

    FD_ZERO(&set);
    FD_SET(fd, &set);
    event.data.fd = fd;
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    if (other >= 0) {
        FD_SET(other, &set);
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, other, &event);
    }
    switch (how) {
    case BY_POLL:
        (void)poll(fds, 2, -1);
        break;
    case BY_SELECT:
        (void)select((fd > other ? fd : other) + 1, &set, NULL, NULL, NULL);
        break;
    case BY_EPOLL:
        (void)epoll_wait(epoll, &event, 1, -1);
        break;
    case WAITS:
        break;
    }
    _exit(0);
}

static void
sees_a_process_that_waits_for_the_terminal_among_others(void **state)
{
    (void)state;
    for (int i = 0; i < WAITS * 2; i++) {
        const enum waits how = (enum waits)(i / 2);
        const bool is_alone = i % 2 == 0;
        struct pty p;
        int other[2] = {-1, -1};
        pid_t pid = 0;
        pid_t server = 0;
        enum state_answer answer = STATE_NO;
        bool was_alone = false;

        pty_open(&p);
        assert_int_equal(pipe2(other, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            child_waits(how, p.slave, is_alone ? -1 : other[0]);
        }
        server = fork();
        assert_true(server >= 0);
        if (server == 0) {
            child_waits(how, other[0], -1);
        }
        while (answer == STATE_NO) {
            answer = state_reads_terminal(pid, p.name, peek, &was_alone);
            (void)sched_yield();
        }
        assert_true(answer == STATE_YES || access("/proc/self/syscall", R_OK) != 0);
        if (answer == STATE_YES) {
            assert_int_equal(was_alone, is_alone);
            /* One that waits for something else never does. */
            while (state_works(server)) {
                assert_int_equal(state_reads_terminal(server, p.name, peek, NULL), STATE_NO);
            }
            assert_int_equal(state_reads_terminal(server, p.name, peek, NULL), STATE_NO);
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(kill(server, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(waitpid(server, NULL, 0), server);
        fd_close(&other[0]);
        fd_close(&other[1]);
        pty_close(&p);
    }
}

static void
sees_that_a_child_of_the_leader_reads(void **state)
{
    struct pty p;
    pid_t pid = 0;
    enum state_answer answer = STATE_NO;

    (void)state;
    pty_open(&p);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setpgid(0, 0);

        pid_t child = fork();

        if (child == 0) {
            child_reads(p.slave);
        }
        (void)waitpid(child, NULL, 0);
        _exit(0);
    }
    while (answer == STATE_NO) {
        answer = state_group_reads(pid, p.name, NULL, NULL);
        (void)sched_yield();
    }
    assert_true(answer == STATE_YES || access("/proc/thread-self/children", R_OK) != 0 ||
                state_reads_terminal(pid, p.name, NULL, NULL) == STATE_UNKNOWN);
    assert_false(state_is_shell(pid));
    assert_int_equal(kill(-pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(state_is_shell(pid));
    pty_close(&p);
}

static void
tells_work_from_rest(void **state)
{
    int ends[2];
    char name[16] = "";
    pid_t pid = 0;

    (void)state;
    /* Ourselves, as we look, whatever we are called. */
    assert_true(state_works(getpid()));
    assert_int_equal(prctl(PR_GET_NAME, name), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) S (b"), 0);
    assert_true(state_works(getpid()));
    assert_int_equal(prctl(PR_SET_NAME, name), 0);

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child_reads(ends[0]);
    }
    while (state_works(pid)) {
        (void)sched_yield();
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(state_works(pid));
    assert_false(state_works(0));
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

/* In the child: leads a group and starts one in it, or in a group of its own; tells that it is
 * there, and waits. */
static void
child_leads(int told, int held, bool is_helper)
{
    pid_t helper = 0;

    (void)setpgid(0, 0);
    helper = fork();
    if (helper == 0) {
        char c = 0;

        if (!is_helper) {
            (void)setpgid(0, 0);
        }
        (void)!write(told, "x", 1);
        (void)!read(held, &c, 1);
        _exit(0);
    }
    for (;;) {
        (void)pause();
    }
}

static void
tells_whether_a_shell_waits_for_one_of_its_own_group(void **state)
{
    (void)state;
    for (int is_helper = 0; is_helper < 2; is_helper++) {
        int told[2];
        int held[2];
        char c = 0;
        pid_t pid = -1;

        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        assert_int_equal(pipe2(held, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)close(held[1]);
            child_leads(told[1], held[0], is_helper != 0);
        }
        assert_int_equal(read(told[0], &c, 1), 1);
        assert_int_equal(state_has_helper(pid), is_helper != 0);
        /* Once it has ended, nobody is left that it waits for, though it is not reaped. */
        assert_int_equal(close(held[1]), 0);
        while (state_has_helper(pid)) {
            (void)sched_yield();
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_false(state_has_helper(pid));
        assert_int_equal(close(held[0]), 0);
        assert_int_equal(close(told[0]), 0);
        assert_int_equal(close(told[1]), 0);
    }
}

/* In the child: a shell without a line editor reads commands, or one line by its own read. */
static void
child_is_shell(int fd, const char *const *words)
{
    char *argv[6] = {NULL};

    for (size_t i = 0; words[i] != NULL && i < 5; i++) {
        argv[i] = strdup(words[i]);
    }
    if (dup2(fd, STDIN_FILENO) == STDIN_FILENO && dup2(fd, STDERR_FILENO) == STDERR_FILENO) {
        (void)execv(words[0], argv);
    }
    _exit(127);
}

static void
tells_a_shell_that_waits_from_its_read(void **state)
{
    static const struct {
        const char *words[6];
        enum state_answer answer;
    } rows[] = {
        {{"/bin/dash", NULL},                                STATE_YES    },
        {{"/bin/dash", "-c", "read x", NULL},                STATE_NO     },
        {{"/bin/bash", "--noediting", "--norc", "-i", NULL}, STATE_YES    },
        {{"/bin/bash", "-c", "read x", NULL},                STATE_NO     },
        {{"/bin/bash", "-c", "read -n 9 x", NULL},           STATE_NO     },
 /* Commands, by as much as `read` asks for. */
        {{"/bin/bash", "-c", ". /dev/stdin", NULL},          STATE_UNKNOWN},
        {{"/bin/bash", "-c", ". /dev/stdin <&-", NULL},      STATE_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pty p;
        enum state_answer answer = STATE_NO;
        pid_t pid = 0;

        if (access(rows[i].words[0], X_OK) != 0) {
            continue;
        }
        pty_open(&p);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            child_is_shell(p.slave, rows[i].words);
        }
        while (answer == STATE_NO) {
            answer = state_reads_terminal(pid, p.name, NULL, NULL);
            (void)sched_yield();
        }
        /* A kernel that does not tell, or a bash of other sizes. */
        answer = state_reads_commands(pid, p.name);
        if (answer != STATE_UNKNOWN) {
            assert_int_equal(answer, rows[i].answer);
        }
        assert_int_equal(state_reads_commands(pid, "/dev/pts/none"), STATE_UNKNOWN);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(state_reads_commands(pid, p.name), STATE_UNKNOWN);
        pty_close(&p);
    }
}

/* What may read commands, started with the terminal as its input. */
static void
finds_the_shells_that_may_read_commands(void **state)
{
    static const struct {
        const char *words[6];
        bool may_read;
    } rows[] = {
        {{"/bin/sh", "-c", "exec cat", NULL},                                   false},
        {{"/bin/sh", "-c", "read x", NULL},                                     false},
        {{"/bin/sh", "-c", "cat | /bin/sh", NULL},                              true },
        {{"/bin/sh", "/dev/stdin", NULL},                                       true },
        {{"/bin/sh", "-c", "exec xargs -I{} echo {}", NULL},                    true },
        {{"/bin/bash", "-c", "cat > >(/bin/sh)", NULL},                         true },
        {{"/bin/bash", "-c", "exec -a rdr /bin/bash --norc --noediting", NULL}, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pty p;
        bool may_read = !rows[i].may_read;
        pid_t pid = 0;

        if (access(rows[i].words[0], X_OK) != 0) {
            continue;
        }
        pty_open(&p);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)setpgid(0, 0);
            child_is_shell(p.slave, rows[i].words);
        }
        (void)setpgid(pid, pid); /* whoever comes first */
        /* It comes to that. */
        while (may_read != rows[i].may_read) {
            may_read = state_may_read_commands(pid, pid, p.name);
            (void)sched_yield();
        }
        assert_int_equal(kill(-pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(state_may_read_commands(pid, pid, p.name));
        pty_close(&p);
    }
}

static void
finds_the_names_of_shells_in_a_text(void **state)
{
    static const char *const with[] = {"zsh",       "exec fish -N", "a;dash", "ls\nssh host\n",
                                       "/bin/sh x", "busybox|ash"};
    static const char *const without[] = {"",          "bash",  "push shutil sh_x",
                                          "dashboard", "a.b-c", "0123456789abcdefsh sh1"};

    (void)state;
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        assert_true(state_names_shell(with[i], strlen(with[i])));
    }
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        assert_false(state_names_shell(without[i], strlen(without[i])));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_names_of_shells_in_a_text),
        cmocka_unit_test(tells_prompts_passwords_and_screens_apart),
        cmocka_unit_test(knows_a_line_that_asks_for_a_password),
        cmocka_unit_test(reads_the_modes_from_the_master),
        cmocka_unit_test(sees_a_process_that_reads_the_terminal),
        cmocka_unit_test(sees_a_process_that_waits_for_the_terminal_among_others),
        cmocka_unit_test(sees_that_a_child_of_the_leader_reads),
        cmocka_unit_test(tells_whether_a_shell_waits_for_one_of_its_own_group),
        cmocka_unit_test(tells_a_shell_that_waits_from_its_read),
        cmocka_unit_test(finds_the_shells_that_may_read_commands),
        cmocka_unit_test(tells_work_from_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
