#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/pass.h"

/* As much as a pipe holds. */
#define CHUNK ((size_t)64 * 1024)

/* Pipes and sockets are handed over. A file could hold up the daemon where its file system is
 * slow, and a terminal's flags are shared with whoever else uses it. */
static bool
can_be_handed_over(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static enum sy_code
open_in(struct pass_pumps *p, int from, int *ret_fd, int *ret_far, struct sy_error *err)
{
    enum sy_code rc = fd_pipe(ret_far, &p->in_to, err);

    if (rc == SY_E_OK) {
        rc = fd_set_nonblock(p->in_to, err);
        p->in_from = from;
        *ret_fd = *ret_far;
    }
    return rc;
}

static enum sy_code
open_out(struct pass_pumps *p, int to, int *ret_fd, int *ret_far, struct sy_error *err)
{
    enum sy_code rc = fd_pipe(&p->out_from, ret_far, err);

    p->out_to = to;
    *ret_fd = *ret_far;
    return rc;
}

enum sy_code
pass_pumps_open(struct pass_pumps *ret, int ret_fds[2], int ret_far[2], const int stdio[2],
                struct sy_error *err)
{
    bool has_in = !can_be_handed_over(stdio[0]);
    bool has_out = !can_be_handed_over(stdio[1]);
    enum sy_code rc = SY_E_OK;

    ret_fds[0] = stdio[0];
    ret_fds[1] = stdio[1];
    if (has_in || has_out) {
        ret->bytes = mem_alloc(CHUNK);
        rc = ret->bytes != NULL ? SY_E_OK : sy_err_nomem(err);
    }
    if (rc == SY_E_OK && has_in) {
        rc = open_in(ret, stdio[0], &ret_fds[0], &ret_far[0], err);
    }
    if (rc == SY_E_OK && has_out) {
        rc = open_out(ret, stdio[1], &ret_fds[1], &ret_far[1], err);
    }
    return rc;
}

void
pass_pumps_want(const struct pass_pumps *p, struct pollfd ret[2])
{
    bool is_full = p->in_n > 0;

    ret[0] = (struct pollfd){.fd = is_full ? p->in_to : p->in_from,
                             .events = is_full ? POLLOUT : POLLIN};
    ret[1] = (struct pollfd){.fd = p->out_from, .events = POLLIN};
}

/* Standard input itself stays open: it is not ours to close. */
static void
end_in(struct pass_pumps *p)
{
    p->in_from = -1;
    p->in_n = 0;
    fd_close(&p->in_to);
}

static void
step_in(struct pass_pumps *p)
{
    if (p->in_n == 0) {
        ssize_t n = read(p->in_from, p->bytes, CHUNK);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n < 0) {
            /* No end: what was read may stop in the middle of a call. The pipe stays open. */
            sy_err_sys(&p->why, errno, "reading standard input");
            p->in_from = -1;
            return;
        }
        if (n == 0) {
            end_in(p);
            return;
        }
        p->in_at = 0;
        p->in_n = (size_t)n;
    }

    ssize_t n = write(p->in_to, p->bytes + p->in_at, p->in_n);

    if (n > 0) {
        p->in_at += (size_t)n;
        p->in_n -= (size_t)n;
    } else if (errno != EAGAIN && errno != EINTR) {
        end_in(p);
    }
}

/* One piece; false: no more comes, or nobody takes it. */
static bool
step_out(struct pass_pumps *p)
{
    char piece[4096]; /* `bytes` may hold input */
    ssize_t n = read(p->out_from, piece, sizeof(piece));

    if (n < 0 && errno == EINTR) {
        return true;
    }
    /* Closing the pipe tells the daemon that its reader is gone. */
    if (n < 0) {
        sy_err_sys(&p->why, errno, "reading what the daemon answers");
        return false;
    }
    if (n > 0 && fd_write_all(p->out_to, piece, (size_t)n, &p->why) != SY_E_OK) {
        sy_err_wrap(&p->why, "standard output");
        return false;
    }
    return n > 0;
}

void
pass_pumps_step(struct pass_pumps *p, const struct pollfd got[2])
{
    if (got[0].revents != 0) {
        step_in(p);
    }
    if (got[1].revents != 0 && !step_out(p)) {
        fd_close(&p->out_from);
    }
}

void
pass_pumps_finish(struct pass_pumps *p)
{
    end_in(p);
    while (p->out_from >= 0) {
        if (!step_out(p)) {
            fd_close(&p->out_from);
        }
    }
    mem_free(p->bytes);
    p->bytes = NULL;
}
