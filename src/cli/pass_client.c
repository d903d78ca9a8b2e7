#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cli/pass.h"
#include "transport/local.h"

uint64_t
pass_deadline_ns(void)
{
    return clock_mono_ns() + (uint64_t)LIMIT_HELLO_WAIT_MS * 1000000;
}

static enum sy_code
wait_for(int fd, short events, uint64_t deadline_ns, struct sy_error *err)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        uint64_t now = clock_mono_ns();
        int left_ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000 + 1) : 0;
        int n = poll(&p, 1, left_ms);

        if (n > 0) {
            return SY_E_OK;
        }
        if (n < 0 && errno != EINTR) {
            return sy_err_sys(err, errno, "waiting for the daemon");
        }
        if (n == 0) {
            return sy_err_set(err, SY_E_SYS,
                              "the daemon does not answer; end it ('shellyard serve --status' "
                              "tells its process) or use --no-daemon");
        }
    }
}

/* Descriptors go with the first byte. */
static enum sy_code
send_all(int fd, const struct buf *frame, const int *fds, struct sy_error *err)
{
    uint64_t deadline_ns = pass_deadline_ns();
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    size_t at = 0;

    while (at < frame->len) {
        struct iovec part = {.iov_base = frame->data + at, .iov_len = frame->len - at};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

        if (at == 0 && fds != NULL) {
            control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(2 * sizeof(int)),
                                              .cmsg_level = SOL_SOCKET,
                                              .cmsg_type = SCM_RIGHTS};
            memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof(int));
            message.msg_control = &control;
            message.msg_controllen = sizeof(control.room);
        }

        ssize_t n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            at += (size_t)n;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return SY_E_OK; /* it has said why */
        } else if (errno != EAGAIN && errno != EINTR) {
            return sy_err_sys(err, errno, "talking to the daemon");
        } else if (wait_for(fd, POLLOUT, deadline_ns, err) != SY_E_OK) {
            return SY_E_SYS;
        }
    }
    return SY_E_OK;
}

static enum sy_code
write_hello(struct buf *out, const char *protocol, char *const *words, const struct stat *program,
            bool needs_cwd, struct sy_error *err)
{
    char build[LOCAL_BUILD_MAX];
    char cwd[LIMIT_PATH];
    const struct hello h = {
        .protocol = protocol, .build = build, .cwd = cwd, .args = words, .environ_list = environ};

    local_build(build, program);
    if (getcwd(cwd, sizeof(cwd)) == NULL || cwd[0] != '/') {
        memcpy(cwd, "/", sizeof("/"));
    } else {
        needs_cwd = false;
    }
    if (needs_cwd) {
        /* Not for the daemon: where this program can't work it says so itself. */
        return sy_err_set(err, SY_E_NOTFOUND, "the working directory can't be named");
    }
    return hello_write(out, &h, err);
}

enum sy_code
pass_open(struct pass_client *ret, const char *protocol, char *const *words,
          const struct stat *program, const int *fds, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf frame = {.max = LIMIT_HELLO};

    ret->fd = -1;
    ret->n = 0;

    enum sy_code rc = cli_state_dir(&dir, err);

    if (rc != SY_E_OK) {
        err->code = SY_E_NOTFOUND;
        return SY_E_NOTFOUND;
    }
    rc = local_connect(&ret->fd, buf_view(&dir), err);
    if (rc == SY_E_OK) {
        rc = write_hello(&frame, protocol, words, program, fds != NULL, err);
    }
    if (rc == SY_E_OK) {
        rc = send_all(ret->fd, &frame, fds, err);
    }
    if (rc != SY_E_OK) {
        pass_close(ret);
    }
    return rc;
}

/* Takes a whole line out of what was read. */
static bool
take_line(struct hello_answer *ret, struct pass_client *c, bool *ret_is_wrong)
{
    const char *newline = memchr(c->line, '\n', c->n);

    *ret_is_wrong = newline == NULL && c->n == sizeof(c->line);
    if (newline == NULL) {
        return false;
    }

    size_t len = (size_t)(newline - c->line);

    *ret_is_wrong = !hello_answer_read(ret, c->line, len);
    c->n -= len + 1;
    memmove(c->line, newline + 1, c->n);
    return !*ret_is_wrong;
}

enum sy_code
pass_try_read(struct hello_answer *ret, struct pass_client *c, struct sy_error *err)
{
    bool is_wrong = false;

    for (;;) {
        if (take_line(ret, c, &is_wrong)) {
            return SY_E_OK;
        }
        if (is_wrong) {
            return sy_err_set(err, SY_E_PARSE, "what listens at the daemon's socket is no daemon");
        }

        ssize_t n = recv(c->fd, c->line + c->n, sizeof(c->line) - c->n, MSG_DONTWAIT);

        if (n > 0) {
            c->n += (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            (void)sy_err_set(err, SY_E_SYS,
                             "the daemon, or its host for this client, has ended without a word, "
                             "and what it ran for this client with it");
            err->sys = EPIPE;
            return SY_E_SYS;
        } else if (errno == EAGAIN) {
            return SY_E_LIMIT;
        }
    }
}

enum sy_code
pass_read(struct hello_answer *ret, struct pass_client *c, uint64_t deadline_ns,
          struct sy_error *err)
{
    for (;;) {
        enum sy_code rc = pass_try_read(ret, c, err);

        if (rc != SY_E_LIMIT) {
            return rc;
        }
        rc = wait_for(c->fd, POLLIN, deadline_ns, err);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

void
pass_close(struct pass_client *c)
{
    fd_close(&c->fd);
}
