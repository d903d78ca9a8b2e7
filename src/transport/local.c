#include "transport/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "transport/local_internal.h"

bool
local_address(struct sockaddr_un *ret, socklen_t *ret_len, int dir_fd, const char *dir,
              const char *name)
{
    int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", dir, name);

    ret->sun_family = AF_UNIX;
    if (n < 0 || (size_t)n >= sizeof(ret->sun_path)) {
        if (access("/proc/self/fd", F_OK) != 0) {
            return false;
        }
        n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
    }
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
    return true;
}

/* Appends `text`, with its NUL; false: it does not fit. */
static bool
append(char path[LIMIT_PATH], size_t *n, const char *text)
{
    size_t len = strlen(text);

    if (len >= LIMIT_PATH - *n) {
        return false;
    }
    memcpy(path + *n, text, len + 1);
    *n += len;
    return true;
}

bool
local_is_there(char *const *environ_list)
{
    const char *state = strv_env_find(environ_list, "XDG_STATE_HOME");
    const char *home = strv_env_find(environ_list, "HOME");
    bool has_state = state != NULL && state[0] == '/';
    char path[LIMIT_PATH];
    size_t n = 0;

    /* As guard_state_dir has it (guard/guard.h), which is asked once something is there. */
    if (!has_state && (home == NULL || home[0] != '/')) {
        return false;
    }
    return append(path, &n, has_state ? state : home) &&
           append(path, &n, has_state ? "/shellyard/" : "/.local/state/shellyard/") &&
           append(path, &n, LOCAL_SOCKET) && access(path, F_OK) == 0;
}

void
local_build(char ret[LOCAL_BUILD_MAX], const struct stat *program)
{
    (void)snprintf(ret, LOCAL_BUILD_MAX, SY_VERSION " %llx:%llx:%llx.%lx",
                   (unsigned long long)program->st_dev, (unsigned long long)program->st_ino,
                   (unsigned long long)program->st_mtim.tv_sec,
                   (unsigned long)program->st_mtim.tv_nsec);
}

/* A directory in which another user could put a socket of their own is none to talk into. */
static bool
is_ours(int dir_fd)
{
    struct stat st;

    return fstat(dir_fd, &st) == 0 && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static enum sy_code
no_daemon(struct sy_error *err)
{
    return sy_err_set(err, SY_E_NOTFOUND, "no daemon is up: 'shellyard serve' starts one");
}

int
local_dial(int dir_fd, const char *dir, const char *name, int type)
{
    struct sockaddr_un to = {0};
    socklen_t to_len = 0;

    if (!local_address(&to, &to_len, dir_fd, dir, name)) {
        errno = ENOENT;
        return -1;
    }

    /* Without waiting: one that takes nobody must not hold us up. */
    SY_FD fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, to_len) != 0) {
        return -1;
    }
    return fd_take(&fd);
}

enum sy_code
local_connect(int *ret_fd, const char *dir, struct sy_error *err)
{
    struct ucred peer = {0};
    socklen_t peer_len = sizeof(peer);
    SY_FD dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0) {
        return no_daemon(err);
    }

    SY_FD fd = local_dial(dir_fd, dir, LOCAL_SOCKET, SOCK_STREAM);

    if (fd < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED) {
            return no_daemon(err);
        }
        return sy_err_sys(err, errno, "connecting to the daemon at '%s/" LOCAL_SOCKET "'", dir);
    }
    if (!is_ours(dir_fd) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) != 0 ||
        peer.uid != geteuid()) {
        return sy_err_set(err, SY_E_DENIED,
                          "the daemon at '%s/" LOCAL_SOCKET "' or its directory is another user's",
                          dir);
    }
    if (fcntl(fd, F_SETFL, 0) != 0) {
        return sy_err_sys(err, errno, "making a socket");
    }
    *ret_fd = fd_take(&fd);
    return SY_E_OK;
}
