#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "transport/local_internal.h"

/*
 * A record lock, not flock(2): it is the process's alone, so that no keeper that was cloned while
 * the descriptor was open could hold it for a dead daemon.
 */
static enum sy_code
take_lock(int *ret_fd, int dir_fd, struct sy_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    SY_FD fd = openat(dir_fd, LOCAL_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        return sy_err_sys(err, errno, "opening '" LOCAL_LOCK "' in the state directory");
    }
    if (fcntl(fd, F_SETLK, &lock) == 0) {
        *ret_fd = fd_take(&fd);
        return SY_E_OK;
    }
    if (errno != EACCES && errno != EAGAIN) {
        return sy_err_sys(err, errno, "locking '" LOCAL_LOCK "' in the state directory");
    }
    (void)sy_err_set(err, SY_E_SYS, "a daemon is up already");
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0) {
        (void)sy_err_set(err, SY_E_SYS, "a daemon is up already, process %d", (int)lock.l_pid);
    }
    if (err != NULL) {
        err->sys = EBUSY;
    }
    return SY_E_SYS;
}

int
local_bind(int dir_fd, const char *dir, const char *name, int type, int backlog)
{
    struct sockaddr_un at = {0};
    socklen_t at_len = 0;

    if (!local_address(&at, &at_len, dir_fd, dir, name)) {
        errno = ENAMETOOLONG; /* and there is no /proc */
        return -1;
    }

    SY_FD fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    /* Its mode is set before anybody could connect. */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, at_len) != 0 ||
        fchmodat(dir_fd, name, 0600, 0) != 0 || listen(fd, backlog) != 0) {
        return -1;
    }
    return fd_take(&fd);
}

static enum sy_code
listen_there(struct local_listener *l, const char *dir, struct sy_error *err)
{
    if (unlinkat(l->dir_fd, LOCAL_SOCKET, 0) != 0 && errno != ENOENT) {
        return sy_err_sys(err, errno, "removing what a daemon left, '%s/" LOCAL_SOCKET "'", dir);
    }
    l->fd = local_bind(l->dir_fd, dir, LOCAL_SOCKET, SOCK_STREAM, (int)LIMIT_DAEMON_CLIENTS);
    if (l->fd < 0) {
        return sy_err_sys(err, errno, "listening at '%s/" LOCAL_SOCKET "'", dir);
    }
    return SY_E_OK;
}

enum sy_code
local_listen(struct local_listener *ret, int dir_fd, const char *dir, struct sy_error *err)
{
    *ret = (struct local_listener)LOCAL_LISTENER_NONE;
    ret->dir_fd = dir_fd;

    enum sy_code rc = take_lock(&ret->lock_fd, dir_fd, err);

    if (rc == SY_E_OK) {
        rc = listen_there(ret, dir, err);
    }
    if (rc != SY_E_OK) {
        fd_close(&ret->fd);
        fd_close(&ret->lock_fd);
        fd_close(&ret->dir_fd);
    }
    return rc;
}

void
local_listener_fini(struct local_listener *l)
{
    if (l->fd >= 0) {
        (void)unlinkat(l->dir_fd, LOCAL_SOCKET, 0);
    }
    fd_close(&l->fd);
    fd_close(&l->lock_fd);
    fd_close(&l->dir_fd);
}
