#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <uv.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "transport/lines.h"

/* One read: what a pipe holds. */
#define CHUNK ((size_t)64 * 1024)

/* A longer queue is given back once it has drained. */
#define KEEP_QUEUE ((size_t)256 * 1024)

struct stdio_server {
    struct stdio_server_options options;
    struct protocol *protocol; /* NULL once it has finished */
    struct lines lines;
    uv_poll_t in_poll;
    uv_idle_t in_idle; /* reads what epoll does not take: files, /dev/null */
    uv_poll_t out_poll;
    uv_timer_t timer; /* tells the front that the peer is gone; then the drain deadline */
    bool in_is_pollable;
    bool out_is_pollable;
    bool in_is_socket; /* never waits, whatever others do to the flags that they share with us */
    bool out_is_socket;
    bool has_half_close; /* the peer shut its sending side of our output socket */
    bool has_ended_input;
    bool is_gone;
    bool is_closing;
    unsigned n_handles;
    int in_flags; /* as they were, given back at the end: others share them */
    int out_flags;
    struct buf queue; /* from queue_at on: not yet written */
    size_t queue_at;
    struct sy_error why;
    char *chunk; /* CHUNK bytes, not zeroed: pages that nothing comes to stay untouched */
};

static enum sy_code
ensure_open(int fd, struct sy_error *err)
{
    /* Called from 0 up, so that open gives just this one. */
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd) {
        return sy_err_sys(err, errno, "opening /dev/null for closed descriptor %d", fd);
    }
    return SY_E_OK;
}

enum sy_code
transport_claim_stdio(int *ret_in, int *ret_out, struct sy_error *err)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        enum sy_code rc = ensure_open(fd, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }

    SY_FD in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    SY_FD out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    SY_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (in < 0 || out < 0 || null < 0) {
        return sy_err_sys(err, errno, "taking standard input and output for the protocol");
    }
    if (dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return sy_err_sys(err, errno, "replacing standard input and output");
    }
    *ret_in = fd_take(&in);
    *ret_out = fd_take(&out);
    return SY_E_OK;
}

static void
restore_flags(int fd, int flags)
{
    if (fd >= 0 && flags >= 0) {
        (void)fcntl(fd, F_SETFL, flags);
    }
}

static void
on_closed(uv_handle_t *handle)
{
    struct stdio_server *s = handle->data;

    if (--s->n_handles > 0) {
        return;
    }
    restore_flags(s->options.in_fd, s->in_flags);
    restore_flags(s->options.out_fd, s->out_flags);
    fd_close(&s->options.in_fd);
    fd_close(&s->options.out_fd);
    s->options.ended(s->options.arg, &s->why);
}

static void
close_all(struct stdio_server *s)
{
    if (s->is_closing) {
        return;
    }
    s->is_closing = true;
    if (s->in_is_pollable) {
        uv_close((uv_handle_t *)&s->in_poll, on_closed);
    }
    if (s->out_is_pollable) {
        uv_close((uv_handle_t *)&s->out_poll, on_closed);
    }
    uv_close((uv_handle_t *)&s->in_idle, on_closed);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

static size_t
waiting(const struct stdio_server *s)
{
    return s->queue.len - s->queue_at;
}

static void
on_timer(uv_timer_t *timer)
{
    struct stdio_server *s = timer->data;

    if (s->protocol != NULL) {
        protocol_on_gone(s->protocol);
        return;
    }
    if (s->why.code == SY_E_OK) {
        sy_err_set(&s->why, SY_E_LIMIT, "the peer did not read the last %zu bytes within %u ms",
                   waiting(s), LIMIT_DRAIN_MS);
    }
    close_all(s);
}

/* The peer can't be reached any more, for the reason in s->why. Not from
 * inside the front, which may be the one that sends: the timer tells it. */
static void
peer_gone(struct stdio_server *s)
{
    if (s->is_gone) {
        return;
    }
    s->is_gone = true;
    buf_fini(&s->queue);
    s->queue_at = 0;
    if (s->out_is_pollable && !s->is_closing) {
        uv_poll_stop(&s->out_poll);
    }
    if (s->protocol == NULL) {
        close_all(s);
    } else {
        SY_ASSERT(uv_timer_start(&s->timer, on_timer, 0, 0) == 0);
    }
}

static void on_out(uv_poll_t *poll_handle, int status, int events);

static void
watch_out(struct stdio_server *s)
{
    int events = s->has_half_close ? 0 : UV_DISCONNECT;

    if (!s->out_is_pollable || s->is_gone || s->is_closing) {
        return;
    }
    if (waiting(s) > 0) {
        events |= UV_WRITABLE;
    }
    if (events != 0) {
        (void)uv_poll_start(&s->out_poll, events, on_out);
    } else {
        uv_poll_stop(&s->out_poll);
    }
}

static ssize_t
send_parts(int fd, const struct iovec *parts, int n)
{
    /* As writev: nothing of it is changed. */
    struct msghdr message = {.msg_iov = mem_unconst(parts), .msg_iovlen = (size_t)n};

    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Writes what goes without waiting; returns the bytes that went, -1 with the
 * reason set when the peer is gone. */
static ssize_t
write_some(struct stdio_server *s, const struct iovec *parts, int n)
{
    for (;;) {
        ssize_t done = s->out_is_socket ? send_parts(s->options.out_fd, parts, n)
                                        : writev(s->options.out_fd, parts, n);

        if (done >= 0) {
            return done;
        }
        if (errno == EAGAIN) {
            return 0;
        }
        if (errno != EINTR) {
            sy_err_sys(&s->why, errno, "writing to the peer");
            return -1;
        }
    }
}

static void
flush(struct stdio_server *s)
{
    while (waiting(s) > 0) {
        struct iovec part = {.iov_base = s->queue.data + s->queue_at, .iov_len = waiting(s)};
        ssize_t done = write_some(s, &part, 1);

        if (done < 0) {
            peer_gone(s);
            return;
        }
        if (done == 0) {
            break;
        }
        s->queue_at += (size_t)done;
    }
    if (waiting(s) == 0) {
        s->queue_at = 0;
        if (s->queue.cap > KEEP_QUEUE) {
            buf_fini(&s->queue);
        } else {
            buf_reset(&s->queue);
        }
        if (s->protocol == NULL) {
            close_all(s);
        }
    }
    watch_out(s);
}

static void
on_out(uv_poll_t *poll_handle, int status, int events)
{
    struct stdio_server *s = poll_handle->data;

    if (status < 0 || (events & UV_DISCONNECT) != 0) {
        struct pollfd p = {.fd = s->options.out_fd, .events = 0};

        (void)poll(&p, 1, 0);
        if (status < 0 || (p.revents & (POLLERR | POLLHUP)) != 0) {
            /* Peers that end close all at once; it is an error if they miss something. */
            if (waiting(s) > 0) {
                sy_err_sys(&s->why, EPIPE, "the peer closed its end with %zu bytes unread",
                           waiting(s));
            }
            peer_gone(s);
            return;
        }
        /* Only its sending side, which we never read. */
        s->has_half_close = true;
    }
    flush(s);
}

static enum sy_code
enqueue(struct stdio_server *s, const char *bytes, size_t n)
{
    /* Moving the rest to the front costs at most as much as was written. */
    if (s->queue_at > s->queue.len / 2) {
        buf_drop(&s->queue, s->queue_at);
        s->queue_at = 0;
    }

    enum sy_code rc = buf_add(&s->queue, bytes, n);

    if (rc == SY_E_LIMIT) {
        sy_err_set(&s->why, rc, "the peer does not read: %zu bytes wait and %u is the maximum",
                   waiting(s), LIMIT_SEND_QUEUE);
    } else if (rc != SY_E_OK) {
        sy_err_set(&s->why, rc, "queueing a message for the peer: %s", sy_code_text(rc));
    }
    return rc;
}

/* A file or the like: takes all at once. */
static enum sy_code
send_unpolled(struct stdio_server *s, const char *json, size_t len)
{
    enum sy_code rc = fd_write_all(s->options.out_fd, json, len, &s->why);

    return rc != SY_E_OK ? rc : fd_write_all(s->options.out_fd, "\n", 1, &s->why);
}

static enum sy_code
send_polled(struct stdio_server *s, const char *json, size_t len)
{
    char newline[] = "\n";
    struct iovec parts[2] = {
        {.iov_len = len},
        { .iov_base = newline,  .iov_len = 1}
    };
    size_t done = 0;

    /* writev changes nothing of what it is given; a cast would drop the const. */
    memcpy(&parts[0].iov_base, &json, sizeof(json));
    if (waiting(s) == 0) {
        ssize_t n = write_some(s, parts, 2);

        if (n < 0) {
            return s->why.code;
        }
        done = (size_t)n;
        if (done == len + 1) {
            return SY_E_OK;
        }
    }

    enum sy_code rc = done < len ? enqueue(s, json + done, len - done) : SY_E_OK;

    if (rc == SY_E_OK) {
        rc = enqueue(s, newline, 1);
    }
    watch_out(s);
    return rc;
}

static enum sy_code
on_send(void *arg, const char *json, size_t len)
{
    struct stdio_server *s = arg;

    if (s->is_gone) {
        return SY_E_SYS;
    }

    enum sy_code rc = s->out_is_pollable ? send_polled(s, json, len) : send_unpolled(s, json, len);

    if (rc != SY_E_OK) {
        peer_gone(s);
    }
    return rc;
}

static size_t
on_backlog(void *arg)
{
    return waiting(arg);
}

static void
on_leaving(void *arg)
{
    const struct stdio_server *s = arg;

    if (s->options.leaving != NULL) {
        s->options.leaving(s->options.arg);
    }
}

/* The front has nothing more to say: the queue drains, then all is closed. */
static void
on_finished(void *arg)
{
    struct stdio_server *s = arg;

    protocol_free(s->protocol);
    s->protocol = NULL;
    if (s->is_gone || waiting(s) == 0) {
        close_all(s);
    } else {
        SY_ASSERT(uv_timer_start(&s->timer, on_timer, LIMIT_DRAIN_MS, 0) == 0);
    }
}

static void
stop_reading(struct stdio_server *s)
{
    s->has_ended_input = true;
    uv_idle_stop(&s->in_idle);
    if (s->in_is_pollable) {
        uv_poll_stop(&s->in_poll);
    }
}

static void
read_some(struct stdio_server *s)
{
    ssize_t n = s->in_is_socket ? recv(s->options.in_fd, s->chunk, CHUNK, MSG_DONTWAIT)
                                : read(s->options.in_fd, s->chunk, CHUNK);

    if (n > 0) {
        lines_push(&s->lines, s->chunk, (size_t)n);
    } else if (n == 0) {
        stop_reading(s);
        lines_finish(&s->lines);
        if (s->protocol != NULL) {
            protocol_on_eof(s->protocol);
        }
    } else if (errno != EAGAIN && errno != EINTR) {
        stop_reading(s);
        if (!s->is_gone) {
            sy_err_sys(&s->why, errno, "reading from the peer");
        }
        peer_gone(s);
    }
}

static void
on_in(uv_poll_t *poll_handle, int status, int events)
{
    struct stdio_server *s = poll_handle->data;

    (void)events;
    /* Whatever it is, read tells. */
    read_some(s);
    if (status < 0 && !s->has_ended_input && !s->is_closing) {
        /* libuv stopped the handle, yet the error has passed. */
        (void)uv_poll_start(poll_handle, UV_READABLE, on_in);
    }
}

static void
on_idle(uv_idle_t *idle)
{
    read_some(idle->data);
}

static void
on_line(void *arg, const char *text, size_t len)
{
    struct stdio_server *s = arg;

    if (s->protocol != NULL) {
        protocol_on_line(s->protocol, text, len);
    }
}

static void
on_dropped(void *arg, enum sy_code why)
{
    struct stdio_server *s = arg;

    if (s->protocol != NULL) {
        protocol_on_dropped(s->protocol, why);
    }
}

/* Nothing here fails: what can't be polled is read and written without. */
static void
open_handles(struct stdio_server *s)
{
    uv_loop_t *loop = s->options.loop;

    s->in_is_pollable = uv_poll_init(loop, &s->in_poll, s->options.in_fd) == 0;
    s->out_is_pollable = uv_poll_init(loop, &s->out_poll, s->options.out_fd) == 0;
    uv_idle_init(loop, &s->in_idle);
    uv_timer_init(loop, &s->timer);
    s->in_poll.data = s;
    s->out_poll.data = s;
    s->in_idle.data = s;
    s->timer.data = s;
    s->n_handles = 2U + (s->in_is_pollable ? 1U : 0U) + (s->out_is_pollable ? 1U : 0U);
    if (!s->in_is_pollable || uv_poll_start(&s->in_poll, UV_READABLE, on_in) != 0) {
        uv_idle_start(&s->in_idle, on_idle);
    }
    watch_out(s);
}

static bool
is_socket(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static enum sy_code
server_init(struct stdio_server *s, struct sy_error *err)
{
    const struct protocol_options front = {
        .context = s->options.context,
        .loop = s->options.loop,
        .send = on_send,
        .backlog = on_backlog,
        .leaving = on_leaving,
        .finished = on_finished,
        .arg = s,
    };

    s->lines = (struct lines){.partial = {.max = LIMIT_RPC_FRAME},
                              .on_line = on_line,
                              .on_dropped = on_dropped,
                              .arg = s};
    s->queue.max = LIMIT_SEND_QUEUE;
    s->chunk = mem_alloc(CHUNK);
    if (s->chunk == NULL) {
        return sy_err_nomem(err);
    }
    s->in_is_socket = is_socket(s->options.in_fd);
    s->out_is_socket = is_socket(s->options.out_fd);
    s->in_flags = fcntl(s->options.in_fd, F_GETFL);
    s->out_flags = fcntl(s->options.out_fd, F_GETFL);
    if (s->in_flags < 0 || s->out_flags < 0) {
        return sy_err_sys(err, errno, "standard input or output is not open");
    }
    return s->options.front(&s->protocol, &front, err);
}

enum sy_code
stdio_server_new(struct stdio_server **ret, const struct stdio_server_options *options,
                 struct sy_error *err)
{
    struct stdio_server *s = mem_alloc_zero(1, sizeof(*s));
    SY_FD in = options->in_fd;
    SY_FD out = options->out_fd;

    if (s == NULL) {
        return sy_err_nomem(err);
    }
    s->options = *options;

    enum sy_code rc = server_init(s, err);

    if (rc != SY_E_OK) {
        stdio_server_free(s);
        return rc;
    }
    (void)fd_take(&in);
    (void)fd_take(&out);
    open_handles(s);
    *ret = s;
    return SY_E_OK;
}

void
stdio_server_stop(struct stdio_server *s)
{
    if (s->protocol != NULL) {
        protocol_on_gone(s->protocol);
    }
}

void
stdio_server_free(struct stdio_server *s)
{
    if (s != NULL) {
        lines_fini(&s->lines);
        buf_fini(&s->queue);
        mem_free(s->chunk);
        mem_free(s);
    }
}
