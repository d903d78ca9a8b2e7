#include "process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

/* Reads of one step: small first, so that a quiet command costs no pages, then
 * large ones straight from a full pipe (docs/bench.md). */
#define READ_SMALL 4096U
#define READ_LARGE ((size_t)256 * 1024)
#define PIPE_BYTES (1024 * 1024)
#define STEP_BYTES ((size_t)4 * 1024 * 1024)

/*
 * n_tty_read() (drivers/tty/n_tty.c) looks for what is on its way, then whether the other end is
 * closed: what was written and closed in between would be lost with the first EIO. Past it nothing
 * is written any more.
 */
static bool
looks_again(struct process *p)
{
    bool is_first = p->has_terminal && !p->saw_end;

    p->saw_end = true;
    return is_first;
}

/* One read; *ret_more: there may be more at once. */
static enum sy_code
read_once(struct process *p, enum output_stream s, bool *ret_more, size_t *ret_got,
          struct sy_error *err)
{
    char small[READ_SMALL];
    char *into = p->large != NULL ? p->large : small;
    size_t room = p->large != NULL ? READ_LARGE : READ_SMALL;
    ssize_t got = read(p->read_fd[s], into, room);

    *ret_more = false;
    *ret_got = 0;
    if (got < 0) {
        *ret_more = errno == EINTR || (errno == EIO && looks_again(p));
        if (!*ret_more && errno != EAGAIN) {
            fd_close(&p->read_fd[s]);
        }
        return SY_E_OK;
    }
    if (got == 0) {
        fd_close(&p->read_fd[s]);
        return SY_E_OK;
    }
    *ret_got = (size_t)got;

    enum sy_code rc = output_push(p->chain, s, into, process_limits_output(p, (size_t)got));

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, rc, "taking the command's output");
    }
    /* A terminal gives what the kernel has in one piece, which is less than there is. */
    *ret_more = p->has_terminal && (size_t)got >= READ_SMALL / 4;
    if ((size_t)got == room) {
        *ret_more = true;
        if (p->large == NULL) {
            /* Memory out here only means smaller reads. */
            p->large = mem_alloc(READ_LARGE);
        }
        if (!p->grew_pipe[s]) {
            /* Refused beyond the user's pipe-user-pages-soft: pipe(7). */
            p->grew_pipe[s] = true;
            fcntl(p->read_fd[s], F_SETPIPE_SZ, PIPE_BYTES);
        }
    }
    return SY_E_OK;
}

enum sy_code
process_read(struct process *p, enum output_stream s, struct sy_error *err)
{
    size_t taken = 0;
    bool more = true;

    while (p->read_fd[s] >= 0 && more && taken < STEP_BYTES) {
        size_t got = 0;
        enum sy_code rc = read_once(p, s, &more, &got, err);

        if (rc != SY_E_OK) {
            return rc;
        }
        taken += got;
    }
    return SY_E_OK;
}

enum sy_code
process_drain(struct process *p, enum output_stream s, struct sy_error *err)
{
    while (p->read_fd[s] >= 0) {
        bool more = false;
        size_t got = 0;
        enum sy_code rc = read_once(p, s, &more, &got, err);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (got == 0 && !more) {
            fd_close(&p->read_fd[s]);
        }
    }
    return SY_E_OK;
}
