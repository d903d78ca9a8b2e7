/* The sandbox for programs that bring a policy and a command, and no engine. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "launcher/launcher_internal.h"
#include "process/keeper.h"
#include "process/keeper_spec.h"

#define EXIT_SIGNAL_BASE 128

static int
complain(const struct failure *f)
{
    (void)fprintf(stderr, "shellyard-launch: %s failed: %s%s%s%s\n", sandbox_stage_text(f->stage),
                  sy_errno_text(f->sys), f->detail[0] != '\0' ? " (" : "", f->detail,
                  f->detail[0] != '\0' ? ")" : "");
    return EXIT_SETUP;
}

/* As execvp(3) looks for it: the first file of that name that may be executed. */
static bool
find_program(struct buf *ret, const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/') != NULL) {
        return buf_add_str(ret, name) == SY_E_OK;
    }
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; at != NULL;) {
        size_t n = strcspn(at, ":");

        buf_reset(ret);
        if (buf_addf(ret, "%.*s%s%s", (int)n, at, n > 0 ? "/" : "", name) == SY_E_OK &&
            access(buf_view(ret), X_OK) == 0) {
            return true;
        }
        at = at[n] == ':' ? at + n + 1 : NULL;
    }
    return false;
}

/* [sh, program, argv[1]...], for a file without "#!". */
static bool
script_argv(struct strv *ret, char **argv, const char *program)
{
    bool is_ok = strv_add(ret, "/bin/sh") == SY_E_OK && strv_add(ret, program) == SY_E_OK;

    for (char **word = argv + 1; is_ok && *word != NULL; word++) {
        is_ok = strv_add(ret, *word) == SY_E_OK;
    }
    return is_ok;
}

static bool
send_command(int channel_fd, char **argv, const char *program, struct failure *f)
{
    SY_AUTO(strv_fini) struct strv script = {.max = LIMIT_ARGV};
    const struct keeper_order go = {.kind = KEEPER_GO};
    struct sy_error err = {0};
    SY_FD spec = -1;
    char cwd[LIMIT_PATH];

    if (!script_argv(&script, argv, program)) {
        return failed(f, STAGE_EXEC, ENOMEM, program);
    }
    if (getcwd(cwd, sizeof(cwd)) == NULL) {
        return failed(f, STAGE_CWD, errno, NULL);
    }

    const struct keeper_job job = {
        .program = program, .argv = argv, .script_argv = script.v, .envp = environ, .cwd = cwd};

    if (keeper_spec_new(&spec, &job, &err) != SY_E_OK) {
        return failed(f, STAGE_EXEC, err.sys != 0 ? err.sys : ENOMEM, program);
    }
    return send_with_fd(channel_fd, &go, sizeof(go), spec) ? true
                                                           : failed(f, STAGE_ORDER, errno, NULL);
}

/* The exit status of a last report; -1: it is not the last. */
static int
status_of(const struct keeper_report *r, const char *name)
{
    struct failure f = {(enum sandbox_stage)r->stage, r->sys, ""};

    if (r->kind == KEEPER_DONE) {
        return WIFSIGNALED(r->status) ? EXIT_SIGNAL_BASE + WTERMSIG(r->status)
                                      : WEXITSTATUS(r->status);
    }
    if (r->kind != KEEPER_FAILED) {
        return -1;
    }
    (void)snprintf(f.detail, sizeof(f.detail), "%s", name);
    (void)complain(&f);
    return f.stage != STAGE_EXEC ? EXIT_SETUP : f.sys == ENOENT ? EXIT_NOTFOUND : EXIT_NOEXEC;
}

/*
 * Until the last report. When the command itself is over, what it left behind is
 * ended: there is nobody who could wait for it.
 */
static int
await_end(int channel_fd, const char *name)
{
    for (;;) {
        struct pollfd waits = {.fd = channel_fd, .events = POLLIN};
        const struct keeper_order kill = {.kind = KEEPER_KILL};
        struct keeper_report r = {0};
        int fds[LAUNCH_FDS];

        (void)poll(&waits, 1, -1);

        ssize_t got = receive_with_fds(channel_fd, &r, sizeof(r), fds);
        bool is_nothing = got < 0 && errno == EAGAIN;

        for (size_t i = 0; i < LAUNCH_FDS; i++) {
            fd_close(&fds[i]);
        }
        if (is_nothing) {
            continue;
        }
        if (got != (ssize_t)sizeof(r)) {
            (void)fprintf(stderr, "shellyard-launch: the keeper of '%s' was killed\n", name);
            return EXIT_SETUP;
        }

        int status = status_of(&r, name);

        if (status >= 0) {
            return status;
        }
        if (r.kind == KEEPER_EXITED) {
            (void)send_with_fd(channel_fd, &kill, sizeof(kill), -1);
        }
    }
}

static int
run(const struct template_process *t, char **argv, const char *program, struct failure *f)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        (void)failed(f, STAGE_KEEPER, errno, NULL);
        return complain(f);
    }

    SY_FD channel = pair[0];
    SY_FD theirs = pair[1];
    const struct run_fds fds = {
        .channel = theirs, .in = STDIN_FILENO, .out = STDOUT_FILENO, .err = STDERR_FILENO};
    SY_FD pidfd = -1;
    pid_t pid = template_fork_keeper(t, &fds, &pidfd);

    fd_close(&theirs);
    if (pid > 0 && !send_command(channel, argv, program, f)) {
        return complain(f);
    }
    return await_end(channel, argv[0]);
}

int
wrapper_run(int policy_fd, char **argv)
{
    struct yard yard = {.is_open = false};
    struct template_process t = {
        .channel_fd = -1,
        .engine_fd = -1,
        .held_fd = -1,
        .tree = {-1, -1, 0},
        .proxy_fds = {-1,  -1  }
    };
    struct failure f = {STAGE_NONE, 0, ""};
    SY_AUTO(buf_fini) struct buf program = {.max = LIMIT_PATH};

    if (!find_program(&program, argv[0])) {
        (void)fprintf(stderr, "shellyard-launch: no program '%s' in PATH\n", argv[0]);
        return EXIT_NOTFOUND;
    }

    bool is_ready = yard_open(&yard, &f) && template_prepare(&t, &yard, policy_fd, &f);
    int status = is_ready ? run(&t, argv, buf_view(&program), &f) : complain(&f);

    template_fini(&t);
    return status;
}
