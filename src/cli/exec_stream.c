#include "cli/exec_stream.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

/* A pipe that poll(2) calls writable takes PIPE_BUF bytes without blocking. */
#define PIECE_PIPE 4096U
#define PIECE_FILE (64U * 1024)

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
        s->is_pipe[i] = fstat(stream_fd[i], &st) != 0 || !S_ISREG(st.st_mode);
    }
}

void
exec_stream_fini(struct exec_stream *s)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        buf_fini(&s->pending[i]);
    }
}

/* How many of the n bytes went out without blocking. */
static size_t
write_now(struct exec_stream *s, enum output_stream stream, const char *bytes, size_t n)
{
    size_t done = 0;

    while (done < n && s->failed == 0) {
        size_t piece = s->is_pipe[stream] ? PIECE_PIPE : PIECE_FILE;
        struct pollfd ready = {.fd = stream_fd[stream], .events = POLLOUT};

        if (s->is_pipe[stream] && poll(&ready, 1, 0) == 0) {
            break;
        }

        ssize_t put = write(stream_fd[stream], bytes + done, n - done < piece ? n - done : piece);

        if (put >= 0) {
            done += (size_t)put;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            s->failed = errno;
        }
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
        if (s->pending[i].len > 0) {
            buf_drop(&s->pending[i], write_now(s, i, s->pending[i].data, s->pending[i].len));
        }
    }
}
