#include "cli/daemon_start.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "store/store.h"
#include "transport/local.h"

/* Held by whoever starts a daemon, so that others wait for that one. */
#define START_LOCK "daemon.start"

static enum sy_code
wait_for_turn(int *ret_fd, int dir_fd, struct sy_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    SY_FD fd = openat(dir_fd, START_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = -1;

    do {
        rc = fd >= 0 ? fcntl(fd, F_SETLKW, &lock) : -1;
    } while (rc != 0 && fd >= 0 && errno == EINTR);
    if (rc != 0) {
        return sy_err_sys(err, errno, "locking '" START_LOCK "' in the state directory");
    }
    *ret_fd = fd_take(&fd);
    return SY_E_OK;
}

/* `serve --background` ends as soon as its child serves. */
static enum sy_code
run_serve(struct sy_error *err)
{
    static char name[] = "shellyard";
    static char verb[] = "serve";
    static char background[] = "--background";
    static char empty[] = "--exit-empty";
    char *argv[] = {name, verb, background, empty, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int status = 0;
    int rc = posix_spawn_file_actions_init(&actions);

    /* The client's descriptors are nobody else's; what goes wrong, the client will meet itself. */
    for (int fd = 0; fd <= 2 && rc == 0; fd++) {
        rc = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    }
    if (rc == 0) {
        rc = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        return sy_err_sys(err, rc, "starting a daemon");
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return sy_err_sys(err, errno, "waiting for the daemon");
        }
    }
    return status == 0 ? SY_E_OK
                       : sy_err_set(err, SY_E_SYS,
                                    "the daemon could not be started ('shellyard serve' says why)");
}

enum sy_code
daemon_start(struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    SY_FD dir_fd = -1;
    SY_FD lock_fd = -1;
    SY_FD there = -1;
    enum sy_code rc = cli_state_dir(&dir, err);

    if (rc == SY_E_OK) {
        rc = store_dir_open(&dir_fd, buf_view(&dir), err);
    }
    if (rc == SY_E_OK) {
        rc = wait_for_turn(&lock_fd, dir_fd, err);
    }
    /* Perhaps another one did it meanwhile. */
    if (rc == SY_E_OK && local_connect(&there, buf_view(&dir), NULL) != SY_E_OK) {
        rc = run_serve(err);
    }
    return rc;
}
