#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Small: on a stack that is used anyway. */
#define READ_CHUNK 8192

void
fd_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0) {
        /* EINTR leaves the descriptor closed on Linux: close(2). */
        close(*fd);
    }
    *fd = -1;
    errno = saved;
}

int
fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

void
fd_leave_epoll(int epoll_fd, int fd)
{
    int saved = errno;

    (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    errno = saved;
}

void
fd_take_passed(struct msghdr *message, int *fds, size_t n)
{
    size_t i = 0;

    for (struct cmsghdr *m = CMSG_FIRSTHDR(message); m != NULL; m = CMSG_NXTHDR(message, m)) {
        if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= m->cmsg_len; at += sizeof(int)) {
            int fd = -1;

            memcpy(&fd, (const char *)m + at, sizeof(fd));
            while (i < n && fds[i] >= 0) {
                i++;
            }
            if (i < n) {
                fds[i] = fd;
            } else {
                fd_close(&fd);
            }
        }
    }
}

ssize_t
fd_receive(int fd, struct msghdr *message, int flags)
{
    const struct msghdr room = *message;
    ssize_t got = -1;
    int ends = 0;

    /* Where the first look met the end, all that was said is there for the second. */
    while (ends < 2) {
        *message = room;
        got = recvmsg(fd, message, flags);
        if (got > 0 || (got < 0 && errno != EINTR && errno != ECONNRESET)) {
            return got;
        }
        ends += got == 0 ? 1 : 0;
    }
    return 0;
}

int
fd_check_room(unsigned n)
{
    int fds[8];
    unsigned have = 0;
    int failed = 0;

    SY_ASSERT(n <= sizeof(fds) / sizeof(fds[0]));
    while (have < n && failed == 0) {
        fds[have] = eventfd(0, EFD_CLOEXEC);
        failed = fds[have] < 0 ? errno : 0;
        have += failed == 0 ? 1 : 0;
    }
    while (have > 0) {
        fd_close(&fds[--have]);
    }
    return failed;
}

enum sy_code
fd_pipe(int *ret_read, int *ret_write, struct sy_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return sy_err_sys(err, errno, "making a pipe");
    }
    *ret_read = ends[0];
    *ret_write = ends[1];
    return SY_E_OK;
}

enum sy_code
fd_set_nonblock(int fd, struct sy_error *err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return sy_err_sys(err, errno, "making descriptor %d non-blocking", fd);
    }
    return SY_E_OK;
}

enum sy_code
fd_write_all(int fd, const void *bytes, size_t n, struct sy_error *err)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done >= 0) {
            p += done;
            n -= (size_t)done;
        } else if (errno == EAGAIN) {
            struct pollfd wait_fd = {.fd = fd, .events = POLLOUT};

            if (poll(&wait_fd, 1, -1) < 0 && errno != EINTR) {
                return sy_err_sys(err, errno, "waiting to write");
            }
        } else if (errno != EINTR) {
            return sy_err_sys(err, errno, "writing %zu bytes", n);
        }
    }
    return SY_E_OK;
}

enum sy_code
fd_read_all(int fd, struct buf *b, struct sy_error *err)
{
    for (;;) {
        size_t room = b->max - b->len;
        char chunk[READ_CHUNK];
        size_t want = room < sizeof(chunk) ? room + 1 : sizeof(chunk);
        ssize_t got = read(fd, chunk, want);

        if (got == 0) {
            return SY_E_OK;
        }
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return sy_err_sys(err, errno, "reading");
        }

        enum sy_code rc = buf_add(b, chunk, (size_t)got);

        if (rc == SY_E_LIMIT) {
            return sy_err_set(err, rc, "more than %zu bytes", b->max);
        }
        if (rc != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
}

enum sy_code
fd_read_file(const char *path, struct buf *b, struct sy_error *err)
{
    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return sy_err_set(err, SY_E_NOTFOUND, "no file '%s'", path);
        }
        return sy_err_sys(err, errno, "opening '%s'", path);
    }

    enum sy_code rc = fd_read_all(fd, b, err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "reading '%s'", path);
    }
    return rc;
}

enum sy_code
fd_memory_file(int *ret, const char *name, const void *bytes, size_t n, struct sy_error *err)
{
    SY_FD fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC);

    if (fd < 0) {
        return sy_err_sys(err, errno, "making the file '%s' in memory", name);
    }

    enum sy_code rc = fd_write_all(fd, bytes, n, err);

    if (rc == SY_E_OK) {
        *ret = fd_take(&fd);
    }
    return rc;
}
