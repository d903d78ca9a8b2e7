/* What a command reads: a pipe or a terminal that we feed. */
#include "process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

/* A process and two mounts. */
#define TERMINAL_BIRTH_MS 5000
#define NS_PER_MS         1000000ULL

static struct winsize
window(unsigned rows, unsigned columns)
{
    return (struct winsize){
        .ws_row = (unsigned short)(rows > 0 ? rows : LIMIT_TERMINAL_ROWS_DEFAULT),
        .ws_col = (unsigned short)(columns > 0 ? columns : LIMIT_TERMINAL_COLS_DEFAULT),
    };
}

/* Erasing takes away a whole character of UTF-8, not a byte: termios(3), IUTF8. */
bool
process_set_up_terminal(int master, unsigned rows, unsigned columns)
{
    const struct winsize size = window(rows, columns);
    struct termios t;

    if (tcgetattr(master, &t) != 0) {
        return false;
    }
    t.c_iflag |= IUTF8;
    return tcsetattr(master, TCSANOW, &t) == 0 && ioctl(master, TIOCSWINSZ, &size) == 0;
}

enum sy_code
process_no_terminal(struct sy_error *err, int sys)
{
    return sys == ENOSPC || sys == EIO
               ? sy_err_set(err, SY_E_LIMIT,
                            "no pseudo terminal is free (kernel.pty.max): end a session first")
               : sy_err_sys(err, sys, "opening a pseudo terminal");
}

/*
 * Both ends, by descriptor alone (TIOCGPTPEER, 4.13): a name could be another terminal in
 * another tree.
 */
static enum sy_code
open_terminal(int *ret_master, int *ret_slave, const struct process_input_way *way,
              struct sy_error *err)
{
    SY_FD master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    int unlocked = 0;

    if (master < 0) {
        return process_no_terminal(err, errno);
    }
    if (ioctl(master, TIOCSPTLCK, &unlocked) != 0) {
        return sy_err_sys(err, errno, "unlocking a pseudo terminal");
    }

    SY_FD slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (slave < 0 || !process_set_up_terminal(master, way->rows, way->columns)) {
        return sy_err_sys(err, errno, "setting up a pseudo terminal");
    }
    *ret_master = fd_take(&master);
    *ret_slave = fd_take(&slave);
    return SY_E_OK;
}

/* A run with a tree of its own has terminals of its own, which alone have names there: it sends our
 * end when it has made one. */
static enum sy_code
prepare_far_terminal(struct process **ret, const struct sandbox_base *base,
                     const struct process_input_way *way, struct sy_error *err)
{
    struct process *p = NULL;
    enum sy_code rc = process_prepare_in(&p, base, NULL, true, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    p->terminal_due_ns = clock_mono_ns() + TERMINAL_BIRTH_MS * NS_PER_MS;
    p->rows = way->rows;
    p->columns = way->columns;
    p->has_input = true;
    *ret = p;
    return SY_E_OK;
}

static enum sy_code
prepare_terminal(struct process **ret, const struct sandbox_base *base,
                 const struct process_input_way *way, struct sy_error *err)
{
    SY_FD master = -1;
    SY_FD slave = -1;
    struct process *p = NULL;
    enum sy_code rc = open_terminal(&master, &slave, way, err);

    if (rc == SY_E_OK) {
        const int stdio[3] = {slave, slave, slave};

        rc = way->pool != NULL ? process_pool_make_terminal(way->pool, &p, base, stdio, err)
                               : process_prepare_in(&p, base, stdio, true, err);
    }
    if (rc == SY_E_OK) {
        p->read_fd[STREAM_STDOUT] = fd_take(&master);
        p->has_input = true;
        *ret = p;
    }
    return rc;
}

static enum sy_code
prepare_pipe(struct process **ret, const struct sandbox_base *base, struct sy_error *err)
{
    SY_FD read_end = -1;
    SY_FD write_end = -1;
    struct process *p = NULL;
    enum sy_code rc = fd_pipe(&read_end, &write_end, err);

    if (rc == SY_E_OK) {
        rc = fd_set_nonblock(write_end, err);
    }
    if (rc == SY_E_OK) {
        rc = process_prepare_in(&p, base, (const int[3]){read_end, -1, -1}, false, err);
    }
    if (rc == SY_E_OK) {
        p->write_fd = fd_take(&write_end);
        p->has_input = true;
        *ret = p;
    }
    return rc;
}

enum sy_code
process_prepare_input(struct process **ret, const struct sandbox_base *base,
                      const struct process_input_way *way, struct sy_error *err)
{
    switch (way->kind) {
    case INPUT_NONE:
        break;
    case INPUT_PIPE:
        return prepare_pipe(ret, base, err);
    case INPUT_TERMINAL:
        return base != NULL && base->template != NULL && template_is_remote(base->template)
                   ? prepare_far_terminal(ret, base, way, err)
                   : prepare_terminal(ret, base, way, err);
    }
    return process_prepare_in(ret, base, NULL, false, err);
}

/* Where input goes; -1: nowhere. */
static int
input_fd(const struct process *p)
{
    return p->has_terminal ? p->read_fd[STREAM_STDOUT] : p->write_fd;
}

/*
 * write(2) to a pipe that nobody reads any more raises SIGPIPE, which a host program may not
 * ignore: it is held up for this thread, and taken away. A terminal raises none.
 */
static ssize_t
write_quietly(int fd, const void *bytes, size_t n)
{
    const struct timespec at_once = {0, 0};
    sigset_t broken;
    sigset_t before;
    sigset_t pending;

    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken, &before);

    ssize_t got = write(fd, bytes, n);
    int sys = errno;

    if (got < 0 && sys == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        (void)sigtimedwait(&broken, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = sys;
    return got;
}

void
process_feed(struct process *p)
{
    int fd = input_fd(p);

    while (fd >= 0 && p->n_written < p->unwritten.len) {
        const char *rest = buf_view(&p->unwritten) + p->n_written;
        ssize_t got = p->has_terminal ? write(fd, rest, process_unwritten(p))
                                      : write_quietly(fd, rest, process_unwritten(p));

        if (got > 0) {
            p->n_written += (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            break;
        } else if (got == 0 || errno != EINTR) {
            /* Nobody reads it any more. */
            fd_close(&p->write_fd);
            p->n_written = p->unwritten.len;
        }
    }
    if (p->n_written == p->unwritten.len && p->unwritten.len > 0) {
        buf_fini(&p->unwritten); /* an idle one holds no memory */
        p->unwritten.max = LIMIT_INPUT_PENDING;
        p->n_written = 0;
    }
    if (p->ends_input && process_unwritten(p) == 0) {
        fd_close(&p->write_fd);
    }
}

static const char *
why_not(const struct process *p)
{
    if (p->has_ended || p->has_exited) {
        return "the command has ended";
    }
    if (!p->has_input) {
        return "its standard input is closed: run the command with a terminal (tty) or a pipe "
               "(stdin) to write to it";
    }
    return p->ends_input ? "its standard input was closed"
                         : "the command has closed its standard input";
}

enum sy_code
process_write(struct process *p, const void *bytes, size_t n, struct sy_error *err)
{
    if (input_fd(p) < 0 || p->ends_input || p->has_ended) {
        return sy_err_set(err, SY_E_ARG, "%s", why_not(p));
    }
    if (n > LIMIT_INPUT_PENDING - process_unwritten(p)) {
        return sy_err_set(err, SY_E_LIMIT,
                          "%zu bytes of input, and %zu that the command has not read yet, are more "
                          "than %u: send less, or wait until it has read",
                          n, process_unwritten(p), LIMIT_INPUT_PENDING);
    }
    if (p->n_written > 0) {
        buf_drop(&p->unwritten, p->n_written);
        p->n_written = 0;
    }
    if (buf_add(&p->unwritten, bytes, n) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    process_feed(p);
    return SY_E_OK;
}

/* Does the terminal make a signal of one of them, and drop what was typed before? */
static bool
makes_signal(int master, const char *bytes, size_t n)
{
    static const size_t kinds[] = {VINTR, VQUIT, VSUSP};
    struct termios t;

    if (tcgetattr(master, &t) != 0 || (t.c_lflag & ISIG) == 0 || (t.c_lflag & NOFLSH) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        cc_t c = t.c_cc[kinds[i]];

        if (c != _POSIX_VDISABLE && memchr(bytes, c, n) != NULL) {
            return true;
        }
    }
    return false;
}

size_t
process_interrupt(struct process *p, const void *bytes, size_t n)
{
    size_t ret = process_unwritten(p);
    int master = process_terminal_fd(p);

    if (master < 0 || ret == 0 || !makes_signal(master, bytes, n)) {
        return 0;
    }
    p->n_written = p->unwritten.len;
    process_feed(p);

    SY_FD slave = ioctl(master, TIOCGPTPEER, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    /* What is on its way, then what has arrived: the character has room behind both. */
    (void)tcflush(master, TCOFLUSH);
    if (slave >= 0) {
        (void)tcflush(slave, TCIFLUSH);
    }
    return ret;
}

size_t
process_unwritten(const struct process *p)
{
    return p->unwritten.len - p->n_written;
}

void
process_close_input(struct process *p)
{
    p->ends_input = !p->has_terminal;
    process_feed(p);
}

bool
process_resize(struct process *p, unsigned rows, unsigned columns)
{
    const struct winsize size = window(rows, columns);

    return process_terminal_fd(p) >= 0 && ioctl(process_terminal_fd(p), TIOCSWINSZ, &size) == 0;
}

int
process_terminal_fd(const struct process *p)
{
    return p->has_terminal ? p->read_fd[STREAM_STDOUT] : -1;
}

size_t
process_watch_input(const struct process *p, struct process_watch *out, size_t n)
{
    if (process_unwritten(p) == 0) {
        return n;
    }
    if (!p->has_terminal && p->write_fd >= 0) {
        out[n++] = (struct process_watch){.fd = p->write_fd, .events = POLLOUT, .id = p->id};
        return n;
    }
    for (size_t i = 0; p->has_terminal && i < n; i++) {
        if (out[i].fd == p->read_fd[STREAM_STDOUT]) {
            out[i].events |= POLLOUT;
        }
    }
    return n;
}

void
process_end_input(struct process *p)
{
    fd_close(&p->write_fd);
    buf_fini(&p->unwritten);
    p->n_written = 0;
}

bool
process_signal_foreground(const struct process *p, int signal_number)
{
    pid_t group = 0;

    return process_terminal_fd(p) >= 0 && ioctl(process_terminal_fd(p), TIOCGPGRP, &group) == 0 &&
           group > 1 && kill(-group, signal_number) == 0;
}
