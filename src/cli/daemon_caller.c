#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/daemon.h"

/* Of one connection, in one turn of the loop. */
#define CHUNK ((size_t)64 * 1024)

static const struct {
    const char *name;
    bool needs_alike; /* of the same build, under the same umask: as if it did it itself */
    enum sy_code (*start)(struct caller *c, struct sy_error *err);
} protocols[] = {
    {"mcp",    true,  caller_start_client},
    {"proto",  true,  caller_start_client},
    {"ctl",    false, caller_start_ctl   },
    {"attach", false, caller_start_attach},
};

static void
on_handle_closed(uv_handle_t *handle)
{
    struct caller *c = handle->data;
    struct daemon *d = c->daemon;

    if (--c->n_handles > 0) {
        return;
    }
    fd_close(&c->fd);
    fd_close(&c->fds[0]);
    fd_close(&c->fds[1]);
    question_free(c->question);
    hello_fini(&c->hello);
    buf_fini(&c->in);
    buf_fini(&c->out);
    for (struct caller **at = &d->callers; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    mem_free(c);
    d->n_callers--;
    daemon_look(d);
}

void
caller_close(struct caller *c)
{
    if (c->state != CALLER_CLOSED) {
        c->state = CALLER_CLOSED;
        uv_close((uv_handle_t *)&c->poll, on_handle_closed);
        uv_close((uv_handle_t *)&c->timer, on_handle_closed);
    }
}

void
caller_refuse(struct caller *c, enum hello_kind kind, const struct sy_error *err)
{
    host_refuse(c->fd, c->peer.pid, kind, err);
    caller_close(c);
}

void
caller_stop(struct caller *c)
{
    if (c->state == CALLER_HELLO) {
        caller_close(c);
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct caller *c = timer->data;
    struct sy_error err = {0};

    if (c->state == CALLER_HELLO) {
        (void)sy_err_set(&err, SY_E_LIMIT, "its hello did not come within %u ms", LIMIT_HELLO_MS);
        caller_refuse(c, HELLO_ERROR, &err);
        return;
    }
    if (c->state == CALLER_ASKING) {
        caller_stop_asking(c);
        return;
    }
    caller_close(c);
}

/* Reads a piece of the hello. 0: the client has ended; -1 with errno. */
static ssize_t
receive(struct caller *c)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    size_t room = c->in.max - c->in.len < CHUNK ? c->in.max - c->in.len : CHUNK;

    if (buf_reserve(&c->in, room) != SY_E_OK) {
        errno = ENOMEM;
        return -1;
    }

    struct iovec part = {.iov_base = c->in.data + c->in.len, .iov_len = room};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};
    ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n > 0) {
        fd_take_passed(&message, c->fds, sizeof(c->fds) / sizeof(c->fds[0]));
        c->in.len += (size_t)n;
        c->in.data[c->in.len] = '\0';
    }
    return n;
}

/* SY_E_CANCELLED: it would get something else than from its own program. */
static enum sy_code
check_alike(const struct caller *c, struct sy_error *err)
{
    if (!str_eq(c->hello.build, c->daemon->build)) {
        return sy_err_set(err, SY_E_CANCELLED,
                          "it is of another build (process %d; 'shellyard serve --stop' ends it)",
                          (int)getpid());
    }
    return c->peer.other_umask
               ? sy_err_set(err, SY_E_CANCELLED, "its umask differs from the daemon's")
               : SY_E_OK;
}

static void
start(struct caller *c)
{
    struct sy_error err = {0};
    size_t n = sizeof(protocols) / sizeof(protocols[0]);
    size_t i = 0;
    enum sy_code rc = SY_E_OK;

    uv_timer_stop(&c->timer);
    while (i < n && !str_eq(protocols[i].name, c->hello.protocol)) {
        i++;
    }
    if (i == n) {
        rc = sy_err_set(&err, SY_E_PARSE, "the hello names a protocol that the daemon lacks");
    } else if (protocols[i].needs_alike) {
        rc = check_alike(c, &err);
    }
    rc = rc == SY_E_OK ? protocols[i].start(c, &err) : rc;
    if (rc != SY_E_OK) {
        /* Another way is open to a client that is not to be served here. */
        caller_refuse(c, rc == SY_E_CANCELLED ? HELLO_OWN : HELLO_ERROR, &err);
    }
}

static void
read_hello(struct caller *c)
{
    struct sy_error err = {0};
    ssize_t n = receive(c);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        caller_close(c);
        return;
    }
    switch (hello_read(&c->hello, c->in.data, c->in.len, &err)) {
    case HELLO_MORE:
        break;
    case HELLO_WHOLE:
        start(c);
        break;
    case HELLO_OTHER:
        caller_refuse(c, HELLO_OWN, &err);
        break;
    case HELLO_BAD:
        caller_refuse(c, HELLO_ERROR, &err);
        break;
    }
}

/* What a reader does not take waits, and ends with it. */
static void
write_answer(struct caller *c)
{
    while (c->out_at < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n < 0) {
            break;
        }
        c->out_at += (size_t)n;
    }
    caller_close(c);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct caller *c = poll->data;

    (void)status;
    (void)events;
    switch (c->state) {
    case CALLER_HELLO:
        read_hello(c);
        break;
    case CALLER_ANSWERING:
        write_answer(c);
        break;
    case CALLER_ASKING:
    case CALLER_CLOSED:
        uv_poll_stop(poll);
        break;
    }
}

void
caller_answer(struct caller *c)
{
    c->state = CALLER_ANSWERING;
    SY_ASSERT(uv_timer_start(&c->timer, on_timer, LIMIT_DRAIN_MS, 0) == 0);
    if (uv_poll_start(&c->poll, UV_WRITABLE, on_poll) != 0) {
        caller_close(c);
    }
}

void
caller_open(struct daemon *d, int fd, const struct peer *peer)
{
    struct caller *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL) {
        fd_close(&fd);
        return;
    }
    c->daemon = d;
    c->fd = fd;
    c->fds[0] = -1;
    c->fds[1] = -1;
    c->peer = *peer;
    c->in.max = LIMIT_HELLO;
    c->out.max = LIMIT_DAEMON_ANSWER;
    c->since_ns = clock_mono_ns();
    if (uv_poll_init(&d->loop, &c->poll, fd) != 0) {
        fd_close(&c->fd);
        mem_free(c);
        return;
    }
    SY_ASSERT(uv_timer_init(&d->loop, &c->timer) == 0);
    c->n_handles = 2;
    c->poll.data = c;
    c->timer.data = c;
    c->next = d->callers;
    d->callers = c;
    d->n_callers++;
    if (uv_poll_start(&c->poll, UV_READABLE, on_poll) != 0 ||
        uv_timer_start(&c->timer, on_timer, LIMIT_HELLO_MS, 0) != 0) {
        caller_close(c);
    }
}
