#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "launcher/launcher_internal.h"

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int) * LAUNCH_FDS)];
};

ssize_t
receive_with_fds(int channel_fd, void *bytes, size_t n, int fds[LAUNCH_FDS])
{
    struct iovec part = {.iov_base = bytes, .iov_len = n};
    union control control = {.header = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};
    ssize_t got = fd_receive(channel_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    for (size_t i = 0; i < LAUNCH_FDS; i++) {
        fds[i] = -1;
    }
    if (got < 0) {
        return got;
    }
    fd_take_passed(&message, fds, LAUNCH_FDS);
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        for (size_t i = 0; i < LAUNCH_FDS; i++) {
            fd_close(&fds[i]);
        }
        errno = EMSGSIZE;
        return -1;
    }
    return got;
}

static bool
send_with_fds(int channel_fd, const void *bytes, size_t n, const int *fds, size_t n_fds)
{
    union {
        const void *from;
        void *to;
    } unconst = {.from = bytes}; /* sendmsg(2) only reads */
    struct iovec part = {.iov_base = unconst.to, .iov_len = n};
    union control control = {.header = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (n_fds > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
    }
    return sendmsg(channel_fd, &message, MSG_NOSIGNAL) == (ssize_t)n;
}

bool
send_with_fd(int channel_fd, const void *bytes, size_t n, int fd)
{
    return send_with_fds(channel_fd, bytes, n, &fd, fd >= 0 ? 1 : 0);
}

bool
send_report(int channel_fd, const struct failure *f, const int fds[LAUNCH_FDS])
{
    size_t n = 0;

    struct launch_report r = {.version = LAUNCH_VERSION, .stage = (int32_t)f->stage, .sys = f->sys};

    memcpy(r.detail, f->detail, sizeof(r.detail));
    while (n < LAUNCH_FDS && fds[n] >= 0) {
        n++;
    }
    return send_with_fds(channel_fd, &r, sizeof(r), fds, n);
}
