#include "cli/exec_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"

/* A pipe that poll(2) calls writable takes PIPE_BUF bytes without blocking. */
#define PIECE_POLLED ((size_t)4096)
#define PIECE_FILE   ((size_t)64 * 1024)

static const int stream_fd[STREAM_COUNT] = {
    [STREAM_STDOUT] = STDOUT_FILENO,
    [STREAM_STDERR] = STDERR_FILENO,
};

void
exec_stream_init(struct exec_stream *s)
{
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct stat st;

        s->pending[i].max = LIMIT_CLI_PENDING;
        s->own_fd[i] = -1;
        s->is_file[i] = fstat(stream_fd[i], &st) == 0 && S_ISREG(st.st_mode);
    }
}

void
exec_stream_fini(struct exec_stream *s)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        buf_fini(&s->pending[i]);
        fd_close(&s->own_fd[i]);
    }
}

/*
 * Much output in pieces of PIPE_BUF is slow. O_NONBLOCK on the descriptor
 * that we were given would hit everybody who shares it, so that the pipe or
 * terminal is opened once more; sockets can't be, and stay with poll(2).
 */
static void
open_own(struct exec_stream *s, enum output_stream stream)
{
    s->has_tried[stream] = true;
    s->own_fd[stream] = open(stream == STREAM_STDOUT ? "/proc/self/fd/1" : "/proc/self/fd/2",
                             O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* One write that does not wait; false when nothing more goes out now. */
static bool
write_piece(struct exec_stream *s, enum output_stream stream, const char *bytes, size_t n,
            size_t *done)
{
    int fd = s->own_fd[stream] >= 0 ? s->own_fd[stream] : stream_fd[stream];
    size_t piece = n;

    if (s->is_file[stream]) {
        piece = n < PIECE_FILE ? n : PIECE_FILE;
    } else if (s->own_fd[stream] < 0) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        piece = n < PIECE_POLLED ? n : PIECE_POLLED;
        if (poll(&ready, 1, 0) == 0) {
            return false;
        }
    }

    ssize_t put = write(fd, bytes, piece);

    if (put >= 0) {
        *done += (size_t)put;
    } else if (errno != EINTR && errno != EAGAIN) {
        s->failed = errno;
    }
    return put >= 0 || errno == EINTR;
}

/* How many of the n bytes went out without blocking. */
static size_t
write_now(struct exec_stream *s, enum output_stream stream, const char *bytes, size_t n)
{
    size_t done = 0;

    if (n > PIECE_POLLED && !s->is_file[stream] && !s->has_tried[stream]) {
        open_own(s, stream);
    }
    while (done < n && s->failed == 0 && write_piece(s, stream, bytes + done, n - done, &done)) {
    }
    return done;
}

enum sy_code
exec_stream_raw(void *arg, enum output_stream stream, const char *bytes, size_t n)
{
    struct exec_stream *s = arg;
    size_t done = 0;

    /* Order: nothing overtakes what waits, not even on the other stream, since
     * both often end in the same file or terminal. */
    if (!exec_stream_is_pending(s)) {
        done = write_now(s, stream, bytes, n);
    }
    if (s->failed != 0) {
        return SY_E_OK; /* the owner sees it and cancels the call */
    }
    return done < n ? buf_add(&s->pending[stream], bytes + done, n - done) : SY_E_OK;
}

bool
exec_stream_is_pending(const struct exec_stream *s)
{
    return s->failed == 0 &&
           (s->pending[STREAM_STDOUT].len > 0 || s->pending[STREAM_STDERR].len > 0);
}

size_t
exec_stream_watches(const struct exec_stream *s, struct pollfd out[STREAM_COUNT])
{
    size_t n = 0;

    for (int i = 0; i < STREAM_COUNT; i++) {
        if (s->pending[i].len > 0) {
            out[n++] = (struct pollfd){.fd = stream_fd[i], .events = POLLOUT};
        }
    }
    return n;
}

void
exec_stream_flush(struct exec_stream *s)
{
    for (enum output_stream i = STREAM_STDOUT; i < STREAM_COUNT; i++) {
        struct buf *b = &s->pending[i];

        if (b->len > 0) {
            s->sent[i] += write_now(s, i, b->data + s->sent[i], b->len - s->sent[i]);
        }
        if (s->sent[i] == b->len) {
            s->sent[i] = 0;
            buf_reset(b);
        }
    }
}
