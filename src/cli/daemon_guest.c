#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/daemon.h"
#include "sessions/attach.h"

/* Of one connection, in one turn of the loop. */
#define CHUNK ((size_t)64 * 1024)

static const struct {
    const char *name;
    bool needs_alike; /* of the same build, under the same umask: as if it did it itself */
    enum sy_code (*start)(struct guest *c, struct sy_error *err);
} protocols[] = {
    {"mcp",    true,  guest_start_mcp   },
    {"proto",  true,  guest_start_proto },
    {"attach", false, guest_start_attach},
    {"ctl",    false, guest_start_ctl   },
};

bool
guest_say(int fd, enum hello_kind kind, unsigned number, const char *sentence)
{
    struct hello_answer answer = {.kind = kind, .number = number};
    char line[HELLO_ANSWER_MAX];

    (void)snprintf(answer.sentence, sizeof(answer.sentence), "%s", sentence);

    size_t n = hello_answer_write(line, &answer);

    return send(fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

static void
on_handle_closed(uv_handle_t *handle)
{
    struct guest *c = handle->data;
    struct daemon *d = c->daemon;

    if (--c->n_handles > 0) {
        return;
    }
    fd_close(&c->fd);
    fd_close(&c->fds[0]);
    fd_close(&c->fds[1]);
    hello_fini(&c->hello);
    buf_fini(&c->in);
    buf_fini(&c->out);
    for (struct guest **at = &d->guests; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    mem_free(c);
    d->n_guests--;
    daemon_guest_gone(d);
}

static void
guest_close(struct guest *c)
{
    if (c->state != GUEST_CLOSED) {
        c->state = GUEST_CLOSED;
        uv_close((uv_handle_t *)&c->poll, on_handle_closed);
        uv_close((uv_handle_t *)&c->timer, on_handle_closed);
        uv_close((uv_handle_t *)&c->prepare, on_handle_closed);
    }
}

void
guest_refuse(struct guest *c, enum hello_kind kind, const struct sy_error *err)
{
    unsigned status = kind == HELLO_OWN ? 0 : (unsigned)sy_code_status(err->code);

    LOG(LOG_INFO, "daemon", "a client was refused", kv_int("pid", c->peer.pid),
        kv_str("error", err->msg));
    (void)guest_say(c->fd, kind, status, err->msg);
    guest_close(c);
}

void
guest_stop(struct guest *c)
{
    switch (c->state) {
    case GUEST_HELLO:
        guest_close(c);
        break;
    case GUEST_SERVING:
        stdio_server_stop(c->server);
        break;
    case GUEST_ATTACHED:
        attach_stop(c->attach, c->daemon->is_stopping ? "the daemon was stopped" : "");
        break;
    case GUEST_ANSWERING: /* has its own end */
    case GUEST_ENDING:
    case GUEST_CLOSED:
        break;
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct guest *c = timer->data;
    struct sy_error err = {0};

    if (c->state == GUEST_HELLO) {
        (void)sy_err_set(&err, SY_E_LIMIT, "its hello did not come within %u ms", LIMIT_HELLO_MS);
        guest_refuse(c, HELLO_ERROR, &err);
        return;
    }
    if (c->state == GUEST_ENDING) {
        serve_engine_fini(&c->engine);
    }
    guest_close(c);
}

/* Descriptors that came along; more than two are nobody's. */
static void
take_descriptors(struct guest *c, struct msghdr *message)
{
    for (struct cmsghdr *m = CMSG_FIRSTHDR(message); m != NULL; m = CMSG_NXTHDR(message, m)) {
        if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= m->cmsg_len; at += sizeof(int)) {
            int fd = -1;

            memcpy(&fd, (const char *)m + at, sizeof(fd));
            if (c->fds[0] < 0) {
                c->fds[0] = fd;
            } else if (c->fds[1] < 0) {
                c->fds[1] = fd;
            } else {
                fd_close(&fd);
            }
        }
    }
}

/* Reads a piece of the hello. 0: the client has ended; -1 with errno. */
static ssize_t
receive(struct guest *c)
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
        take_descriptors(c, &message);
        c->in.len += (size_t)n;
        c->in.data[c->in.len] = '\0';
    }
    return n;
}

/* SY_E_CANCELLED: it would get something else than from its own program. */
static enum sy_code
check_alike(const struct guest *c, struct sy_error *err)
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
start(struct guest *c)
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
        guest_refuse(c, rc == SY_E_CANCELLED ? HELLO_OWN : HELLO_ERROR, &err);
    }
}

static void
read_hello(struct guest *c)
{
    struct sy_error err = {0};
    ssize_t n = receive(c);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        guest_close(c);
        return;
    }
    switch (hello_read(&c->hello, c->in.data, c->in.len, &err)) {
    case HELLO_MORE:
        break;
    case HELLO_WHOLE:
        start(c);
        break;
    case HELLO_OTHER:
        guest_refuse(c, HELLO_OWN, &err);
        break;
    case HELLO_BAD:
        guest_refuse(c, HELLO_ERROR, &err);
        break;
    }
}

/* A client that is served says nothing here: all that can come is its end. */
static void
read_end(struct guest *c)
{
    char rest[64];
    ssize_t n = recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);

    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
        uv_poll_stop(&c->poll);
        guest_stop(c);
    }
}

/* What a reader does not take waits, and ends with it. */
static void
write_answer(struct guest *c)
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
    guest_close(c);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct guest *c = poll->data;

    (void)status;
    (void)events;
    switch (c->state) {
    case GUEST_HELLO:
        read_hello(c);
        break;
    case GUEST_SERVING:
        read_end(c);
        break;
    case GUEST_ANSWERING:
        write_answer(c);
        break;
    case GUEST_ATTACHED: /* has its own */
    case GUEST_ENDING:
    case GUEST_CLOSED:
        uv_poll_stop(poll);
        break;
    }
}

void
guest_end(struct guest *c, uint64_t after_ms)
{
    c->state = GUEST_ENDING;
    SY_ASSERT(uv_timer_start(&c->timer, on_timer, after_ms, 0) == 0);
}

void
guest_answer(struct guest *c)
{
    c->state = GUEST_ANSWERING;
    SY_ASSERT(uv_timer_start(&c->timer, on_timer, LIMIT_DRAIN_MS, 0) == 0);
    if (uv_poll_start(&c->poll, UV_WRITABLE, on_poll) != 0) {
        guest_close(c);
    }
}

void
guest_open(struct daemon *d, int fd, const struct peer *peer)
{
    struct guest *c = mem_alloc_zero(1, sizeof(*c));

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
    SY_ASSERT(uv_prepare_init(&d->loop, &c->prepare) == 0);
    c->n_handles = 3;
    c->prepare.data = c;
    c->poll.data = c;
    c->timer.data = c;
    c->id = ++d->last_id;
    c->next = d->guests;
    d->guests = c;
    d->n_guests++;
    if (uv_poll_start(&c->poll, UV_READABLE, on_poll) != 0 ||
        uv_timer_start(&c->timer, on_timer, LIMIT_HELLO_MS, 0) != 0) {
        guest_close(c);
    }
}
