#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "transport/local_internal.h"

#define NAME_MAX_BYTES 32U

static void
name_of(char ret[NAME_MAX_BYTES], pid_t pid)
{
    (void)snprintf(ret, NAME_MAX_BYTES, LOCAL_HOST "%d", (int)pid);
}

enum sy_code
local_host_listen(int *ret_fd, int dir_fd, const char *dir, struct sy_error *err)
{
    char name[NAME_MAX_BYTES];

    name_of(name, getpid());
    /* The number was somebody else's, who is no more. */
    (void)unlinkat(dir_fd, name, 0);
    *ret_fd = local_bind(dir_fd, dir, name, SOCK_SEQPACKET, 2);
    return *ret_fd >= 0 ? SY_E_OK
                        : sy_err_sys(err, errno, "listening for a daemon at '%s/%s'", dir, name);
}

void
local_host_unlink(int dir_fd)
{
    char name[NAME_MAX_BYTES];

    name_of(name, getpid());
    (void)unlinkat(dir_fd, name, 0);
}

/* Its number, if it is the name of a host's socket; 0: it is none. */
static pid_t
number_of(const char *name)
{
    uint64_t pid = 0;

    return strncmp(name, LOCAL_HOST, strlen(LOCAL_HOST)) == 0 &&
                   str_to_u64(&pid, name + strlen(LOCAL_HOST), 1, INT32_MAX)
               ? (pid_t)pid
               : 0;
}

static void
meet(int dir_fd, const char *dir, const char *name, void (*fn)(void *arg, int fd, pid_t pid),
     void *arg)
{
    struct ucred peer = {0};
    socklen_t peer_len = sizeof(peer);
    SY_FD fd = local_dial(dir_fd, dir, name, SOCK_SEQPACKET);

    if (fd < 0) {
        if (errno == ECONNREFUSED) {
            (void)unlinkat(dir_fd, name, 0);
        }
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0 && peer.uid == geteuid()) {
        fn(arg, fd_take(&fd), peer.pid);
    }
}

void
local_host_each(int dir_fd, const char *dir, void (*fn)(void *arg, int fd, pid_t pid), void *arg)
{
    int again = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;

    if (d == NULL) {
        fd_close(&again);
        return;
    }
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (number_of(e->d_name) > 0) {
            meet(dir_fd, dir, e->d_name, fn, arg);
        }
    }
    (void)closedir(d);
}
