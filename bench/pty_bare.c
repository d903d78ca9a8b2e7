/* Programs on terminals by as little as there can be. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "pty.h"

#define READ_BYTES ((size_t)64 << 10)

size_t
pty_typed(char ret[PTY_TYPED], const struct pty_task *task, unsigned number)
{
    return (size_t)snprintf(ret, PTY_TYPED, task->is_shell ? "echo R$((%u))Z\n" : "%u\n", number);
}

size_t
pty_wanted(char ret[PTY_TYPED], unsigned number)
{
    return (size_t)snprintf(ret, PTY_TYPED, "R%uZ", number);
}

enum sy_code
pty_bare_open(struct pty_bare *ret, char *const argv[], struct sy_error *err)
{
    char name[64];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    SY_FD master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, name, sizeof(name)) != 0) {
        return sy_err_sys(err, errno, "a terminal");
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
    /* The first terminal that a session opens is its own. */
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, name, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);

    int rc = posix_spawn(&ret->pid, argv[0], &actions, &attr, argv, environ);

    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        return sy_err_sys(err, rc, "starting '%s'", argv[0]);
    }
    ret->master = fd_take(&master);
    return SY_E_OK;
}

enum sy_code
pty_bare_read(struct pty_bare *b, const char *text, uint64_t *bytes, struct buf *into,
              struct sy_error *err)
{
    static char block[READ_BYTES];

    buf_reset(into);
    for (;;) {
        ssize_t n = read(b->master, block, sizeof(block));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            /* EIO: nobody has its other end any more. */
            return text == NULL ? SY_E_OK
                                : sy_err_set(err, SY_E_SYS, "the program ended before '%s'", text);
        }
        if (bytes != NULL) {
            *bytes += (uint64_t)n;
        }
        if (text == NULL && into->max == 0) {
            continue;
        }
        if (buf_add(into, block, (size_t)n) != SY_E_OK) {
            return sy_err_nomem(err);
        }
        if (text != NULL && strstr(buf_view(into), text) != NULL) {
            return SY_E_OK;
        }
    }
}

enum sy_code
pty_bare_trip(struct pty_bare *b, const struct pty_task *task, unsigned number, double *ret_us,
              struct sy_error *err)
{
    char typed[PTY_TYPED];
    char wanted[PTY_TYPED];
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 16};
    size_t n = pty_typed(typed, task, number);

    (void)pty_wanted(wanted, number);

    uint64_t start_ns = clock_mono_ns();
    enum sy_code rc = fd_write_all(b->master, typed, n, err);

    if (rc == SY_E_OK) {
        rc = pty_bare_read(b, wanted, NULL, &text, err);
    }
    *ret_us = (double)(clock_mono_ns() - start_ns) / 1e3;
    return rc;
}

void
pty_bare_wait(struct pty_bare *b)
{
    while (b->pid > 0 && waitpid(b->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    b->pid = 0;
}

void
pty_bare_close(struct pty_bare *b)
{
    if (b->pid > 0) {
        kill(b->pid, SIGKILL);
    }
    pty_bare_wait(b);
    fd_close(&b->master);
}
