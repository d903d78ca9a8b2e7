#include "process/process_internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#define NS_PER_MS 1000000ULL

/* What the kernel may take to end a namespace whose first process was killed. */
#define KEEPER_END_MS 2000

/* Since Linux 6.9 each process has its own; before, all have one. */
static uint64_t
inode_of(int pidfd)
{
    struct stat st;

    return fstat(pidfd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

pid_t
process_keeper(const struct process *p)
{
    return p->is_of_template ? p->job.keeper_pid : p->keeper_pid;
}

/*
 * A remote keeper without a last word was killed: the kernel is ending all in its namespace, and
 * it with the last of them. Opened anew, since an idle session should cost no descriptor for it;
 * a number that is another process's by now tells that it is over.
 */
static void
wait_for_namespace(const struct process *p)
{
    SY_FD keeper = p->keeper_pid > 0 ? (int)syscall(SYS_pidfd_open, p->keeper_pid, 0) : -1;
    struct pollfd end = {.fd = keeper, .events = POLLIN};

    if (keeper >= 0 && inode_of(keeper) == p->keeper_ino) {
        (void)poll(&end, 1, KEEPER_END_MS);
    }
}

/*
 * The keeper is past its last word, and its exit a matter of microseconds. One
 * that a template makes has its number before anything is heard of it.
 */
static void
wait_for_keeper(struct process *p)
{
    pid_t pid = p->is_remote ? 0 : process_keeper(p);

    if (p->is_remote && p->result.outcome == PROCESS_RUNNING) {
        wait_for_namespace(p);
    }

    while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
    p->keeper_pid = 0;
    p->job.keeper_pid = 0;
    if (p->stack != NULL) {
        process_stack_put(p->stack);
        p->stack = NULL;
    }
}

/*
 * No more orders, which tells a living keeper to kill and to go. One that a
 * template was to make may not be there yet: then until the other end has been
 * closed by it, or by a template that threw the order away.
 */
static void
end_channel(struct process *p)
{
    char word[sizeof(struct keeper_report)];
    ssize_t got = p->channel_fd >= 0 && (p->is_of_template || p->is_remote) ? 1 : 0;

    /* By more than its close: a child that the host program has forked since holds it too. */
    if (p->channel_fd >= 0) {
        shutdown(p->channel_fd, SHUT_WR);
    }
    while (got > 0 || (got < 0 && (errno == EINTR || errno == ECONNRESET))) {
        got = recv(p->channel_fd, word, sizeof(word), 0);
    }
    fd_close(&p->channel_fd);
}

size_t
process_watches(const struct process *p, struct process_watch out[PROCESS_WATCHES])
{
    size_t n = 0;

    for (int s = 0; s < STREAM_COUNT; s++) {
        if (p->read_fd[s] >= 0) {
            out[n++] = (struct process_watch){
                .fd = p->read_fd[s], .events = POLLIN, .is_output = true, .id = p->id};
        }
    }
    n = process_watch_input(p, out, n);
    if (!p->has_ended) {
        out[n++] = (struct process_watch){.fd = p->channel_fd, .events = POLLIN, .id = p->id};
    }
    if (p->listener_fd >= 0) {
        out[n++] = (struct process_watch){.fd = p->listener_fd, .events = POLLIN, .id = p->id};
    }
    return n;
}

void
process_leave_listener(struct process *p)
{
    fd_close(&p->past_listener_fd);
    p->past_listener_fd = fd_take(&p->listener_fd);
}

uint64_t
process_deadline_ns(const struct process *p)
{
    uint64_t ret = p->look_ns < p->linger_ns ? p->look_ns : p->linger_ns;

    if (p->past_listener_fd >= 0) {
        return 0;
    }
    ret = p->rules_ns < ret ? p->rules_ns : ret;
    ret = p->terminal_due_ns < ret ? p->terminal_due_ns : ret;
    return p->rest_ns < ret ? p->rest_ns : ret;
}

/* Closes what the rules of terminals are made of, unless another needed it just now. */
static void
rest_rules(struct process *p, uint64_t now_ns)
{
    if (p->rules_ns != UINT64_MAX && now_ns >= p->rules_ns) {
        p->rules_ns = sandbox_ready_rest(p->rules, now_ns);
    }
}

static void
order(struct process *p, enum keeper_order_kind kind, int signal_number)
{
    struct keeper_order o = {.kind = (int32_t)kind, .signal = signal_number};

    /* A keeper that is gone needs no order. */
    if (send(p->channel_fd, &o, sizeof(o), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EAGAIN) {
        /* It has not read a queue of orders: the end of the channel says it too. */
        shutdown(p->channel_fd, SHUT_WR);
    }
}

bool
process_rouse(struct process *p)
{
    const struct keeper_order o = {.kind = KEEPER_ECHO};

    return send(p->channel_fd, &o, sizeof(o), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(o);
}

bool
process_return_listener(struct process *p)
{
    const struct keeper_order o = {.kind = KEEPER_LISTEN};

    return send(p->channel_fd, &o, sizeof(o), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(o);
}

void
process_kill(struct process *p)
{
    if (!p->is_killing && !p->has_ended) {
        p->is_killing = true;
        p->linger_ns = UINT64_MAX;
        p->look_ns = UINT64_MAX;
        order(p, KEEPER_KILL, 0);
        if (p->cgroup != NULL) {
            cgroup_kill(p->cgroup);
        }
    }
}

bool
process_signal(struct process *p, int signal_number)
{
    if (p->has_exited || p->has_ended || p->is_killing) {
        return false;
    }
    if (!process_signal_foreground(p, signal_number)) {
        order(p, KEEPER_SIGNAL, signal_number);
    }
    return true;
}

static enum sy_code
set_up_failed(struct sy_error *err, enum sandbox_stage stage, int sys)
{
    enum sy_code rc = sy_err_set(err, SY_E_SANDBOX, "sandbox set-up failed at %s: %s",
                                 sandbox_stage_text(stage), sy_errno_text(sys));

    if (err != NULL) {
        err->sys = sys;
    }
    return rc;
}

/* A sentence for a command that never ran. */
static void
explain_failure(struct process *p, enum sandbox_stage stage, int sys)
{
    struct sy_error *err = &p->result.err;

    p->result.outcome = PROCESS_FAILED;
    switch (stage) {
    case STAGE_EXEC:
        if (sys == ENOENT) {
            /* The file was found before, so its interpreter is what lacks. */
            sy_err_set(err, SY_E_NOTFOUND, "can't run '%s': its interpreter does not exist",
                       p->job.program);
        } else if (sys == E2BIG) {
            sy_err_set(err, SY_E_LIMIT,
                       "arguments and environment are too long for '%s': the kernel takes a "
                       "quarter of the stack limit in all (2 MiB by default) and 128 KiB for one "
                       "argument; pass the data in a file",
                       p->job.program);
        } else {
            sy_err_set(err, SY_E_NOEXEC, "can't run '%s': %s", p->job.program, sy_errno_text(sys));
        }
        err->sys = sys;
        break;
    case STAGE_CWD:
        sy_err_set(err, SY_E_CWD, "can't enter working directory '%s': %s", p->job.cwd,
                   sy_errno_text(sys));
        err->sys = sys;
        break;
    case STAGE_POLICY:
    case STAGE_NAMESPACES:
    case STAGE_ID_MAPS:
    case STAGE_MOUNTS:
    case STAGE_PROC:
    case STAGE_LOOPBACK:
    case STAGE_IDENTITY:
    case STAGE_PTY:
    case STAGE_RLIMITS:
    case STAGE_CAPABILITIES:
    case STAGE_NO_NEW_PRIVS:
    case STAGE_LANDLOCK:
    case STAGE_SECCOMP:
        (void)set_up_failed(err, stage, sys);
        break;
    case STAGE_NONE:
    case STAGE_KEEPER:
    case STAGE_CLONE:
    case STAGE_SESSION:
    case STAGE_DEATH_SIGNAL:
    case STAGE_STDIO:
    case STAGE_TERMINAL:
    case STAGE_CGROUP:
    case STAGE_ORDER:
        sy_err_sys(err, sys, "starting '%s' failed at %s", p->job.program,
                   sandbox_stage_text(stage));
        break;
    }
}

static void
set_outcome(struct process *p, int status)
{
    if (p->result.outcome != PROCESS_RUNNING) {
        return;
    }
    p->result.duration_ns = clock_mono_ns() - p->started_ns;
    if (WIFSIGNALED(status)) {
        p->result.outcome = PROCESS_SIGNALED;
        p->result.signal = WTERMSIG(status);
    } else {
        p->result.outcome = PROCESS_EXITED;
        p->result.exit_code = WEXITSTATUS(status);
    }
}

/* No word more will come: all descendants are gone, or the keeper is. */
static void
on_keeper_end(struct process *p)
{
    p->has_ended = true;
    rest_rules(p, UINT64_MAX);
    process_pool_hand_on(p);
    process_end_input(p);
    p->linger_ns = UINT64_MAX;
    p->look_ns = UINT64_MAX;
    wait_for_keeper(p);
    process_limits_end(p);
    p->result.is_unobserved = p->job.base.is_observed && !p->has_listener;
    if (p->result.outcome == PROCESS_RUNNING) {
        if (p->job.stage != STAGE_NONE) {
            explain_failure(p, p->job.stage, p->job.sys);
        } else {
            p->result.outcome = PROCESS_FAILED;
            sy_err_set(&p->result.err, SY_E_INTERNAL,
                       "the keeper of '%s' was killed; its command was ended with it",
                       p->job.program);
        }
    }
}

static void
take_report(struct process *p, const struct keeper_report *r, uint64_t now_ns)
{
    switch ((enum keeper_report_kind)r->kind) {
    case KEEPER_LISTENER:
    case KEEPER_TERMINAL:
    case KEEPER_ECHOED:
        break; /* its descriptor was taken by receive() */
    case KEEPER_BORN:
        p->keeper_pid = r->status;
        break;
    case KEEPER_EXITED:
        p->has_exited = true;
        p->has_listener = r->has_listener != 0;
        set_outcome(p, r->status);
        if (!p->is_killing) {
            p->linger_ns = now_ns + LIMIT_LINGER_MS * NS_PER_MS;
        }
        break;
    case KEEPER_DONE:
        p->has_exited = true;
        p->has_listener = r->has_listener != 0;
        set_outcome(p, r->status);
        p->result.ended_background = (uint32_t)r->ended;
        on_keeper_end(p);
        break;
    case KEEPER_FAILED:
        explain_failure(p, (enum sandbox_stage)r->stage, r->sys);
        on_keeper_end(p);
        break;
    }
}

/* One report, with the descriptor that came along with it. */
static ssize_t
receive(struct process *p, struct keeper_report *ret)
{
    struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };
    ssize_t got = fd_receive(p->channel_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got > 0) {
        SY_FD came = -1;

        fd_take_passed(&message, &came, 1);
        if (came >= 0 && ret->kind == KEEPER_BORN) {
            p->keeper_ino = inode_of(came);
        } else if (came >= 0 && ret->kind == KEEPER_TERMINAL) {
            fd_close(&p->read_fd[STREAM_STDOUT]);
            p->read_fd[STREAM_STDOUT] = fd_take(&came);
        } else if (came >= 0) {
            process_leave_listener(p);
            p->listener_fd = fd_take(&came);
            p->rest_ns = clock_mono_ns() + LIMIT_LISTENER_REST_MS * NS_PER_MS;
        }
    }
    return got;
}

enum sy_code
process_take_terminal(struct process *p, uint64_t now_ns, bool *ret_is_there, struct sy_error *err)
{
    *ret_is_there = p->terminal_due_ns == UINT64_MAX;
    while (!*ret_is_there) {
        struct keeper_report r;
        ssize_t got = receive(p, &r);

        if (got < 0 && errno == EAGAIN) {
            return now_ns < p->terminal_due_ns
                       ? SY_E_OK
                       : sy_err_set(err, SY_E_SANDBOX, "a pseudo terminal was not made in time");
        }
        if (got != (ssize_t)sizeof(r)) {
            return process_was_killed(err);
        }
        if (r.kind == KEEPER_FAILED && r.stage == STAGE_PTY) {
            return process_no_terminal(err, r.sys);
        }
        if (r.kind == KEEPER_FAILED) {
            return set_up_failed(err, (enum sandbox_stage)r.stage, r.sys);
        }
        take_report(p, &r, now_ns);
        *ret_is_there = p->read_fd[STREAM_STDOUT] >= 0;
    }
    if (p->terminal_due_ns != UINT64_MAX &&
        !process_set_up_terminal(p->read_fd[STREAM_STDOUT], p->rows, p->columns)) {
        return sy_err_sys(err, errno, "setting up a pseudo terminal");
    }
    p->terminal_due_ns = UINT64_MAX;
    return SY_E_OK;
}

void
process_take_birth(struct process *p)
{
    struct keeper_report r;

    if (p->keeper_pid == 0 &&
        recv(p->channel_fd, &r, sizeof(r), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(r) &&
        r.kind == KEEPER_BORN && receive(p, &r) == (ssize_t)sizeof(r)) {
        take_report(p, &r, 0);
    }
}

static enum sy_code
take_reports(struct process *p, uint64_t now_ns, struct sy_error *err)
{
    while (!p->has_ended) {
        struct keeper_report r;
        ssize_t got = receive(p, &r);

        if (got == (ssize_t)sizeof(r)) {
            take_report(p, &r, now_ns);
        } else if (got > 0) {
            return sy_err_set(err, SY_E_INTERNAL, "a keeper's report of %zd bytes", got);
        } else if (got < 0 && errno == EAGAIN) {
            return SY_E_OK;
        } else {
            on_keeper_end(p);
        }
    }
    return SY_E_OK;
}

static bool
pipes_are_closed(const struct process *p)
{
    return p->read_fd[STREAM_STDOUT] < 0 && p->read_fd[STREAM_STDERR] < 0;
}

static enum sy_code
answer(struct process *p, uint64_t now_ns, struct sy_error *err)
{
    fd_close(&p->past_listener_fd);

    enum sy_code rc = take_reports(p, now_ns, err);

    process_feed(p);
    process_limits_look(p, now_ns);
    process_answer_calls(p);
    rest_rules(p, now_ns);
    return rc;
}

enum sy_code
process_serve(struct process *p, uint64_t now_ns, struct sy_error *err)
{
    enum sy_code rc = answer(p, now_ns, err);

    if (p->linger_ns != UINT64_MAX) {
        p->linger_ns = now_ns + LIMIT_LINGER_MS * NS_PER_MS;
    }
    return rc;
}

enum sy_code
process_step(struct process *p, uint64_t now_ns, bool *ret_is_done, struct sy_error *err)
{
    enum sy_code rc = answer(p, now_ns, err);

    for (int s = 0; s < STREAM_COUNT && rc == SY_E_OK; s++) {
        rc = p->has_ended ? process_drain(p, (enum output_stream)s, err)
                          : process_read(p, (enum output_stream)s, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (p->has_exited && !p->has_ended && !p->is_killing) {
        /* The end of who leads a terminal's session hangs it up: nobody writes to it any more,
         * whoever has it open, our keeper too. */
        if (pipes_are_closed(p) || p->has_terminal) {
            process_kill(p);
        } else if (now_ns >= p->linger_ns) {
            p->result.pipe_was_held = true;
            process_kill(p);
        }
    }
    *ret_is_done = p->has_ended && pipes_are_closed(p);
    return SY_E_OK;
}

void
process_take_denials(struct process *p, struct denial_list *ret)
{
    *ret = p->denials;
    p->denials = (struct denial_list){0};
}

const struct process_result *
process_result(const struct process *p)
{
    return &p->result;
}

bool
process_has_broker(const struct process *p)
{
    /* One in another process's memory can't be looked at. */
    return p->is_remote || (p->is_of_template ? p->has_template_listener : p->job.has_listener);
}

void
process_close_gate(struct process *p)
{
    p->gate = NULL;
}

int
process_pid(const struct process *p)
{
    return p->job.pid;
}

int
process_keeper_pid(const struct process *p)
{
    return p->keeper_pid;
}

bool
process_has_executed(const struct process *p)
{
    /* A remote keeper has got a copy. Another learns the id from its vfork(2), which returns when
     * the child has left our memory. */
    return p->has_gone && (p->is_remote || p->job.pid != 0);
}

void
process_free(struct process *p)
{
    if (p == NULL) {
        return;
    }
    process_pool_hand_on(p);
    process_pool_forget(p);
    rest_rules(p, UINT64_MAX);
    if (!p->has_ended) {
        end_channel(p);
        wait_for_keeper(p);
    }
    cgroup_free(p->cgroup);
    fd_close(&p->channel_fd);
    fd_close(&p->listener_fd);
    fd_close(&p->past_listener_fd);
    template_unref(p->template);
    fd_close(&p->read_fd[STREAM_STDOUT]);
    fd_close(&p->read_fd[STREAM_STDERR]);
    process_end_input(p);
    denial_list_fini(&p->denials);
    sandbox_hidden_free(p->hidden);
    mem_free(p->large);
    mem_free(p->script_argv);
    mem_free(p);
}
