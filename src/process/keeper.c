#include "process/keeper_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/linux/raw_syscall.h"

RAW_CODE static void
report(const struct keeper *k, enum keeper_report_kind kind)
{
    struct keeper_report r = {
        .kind = (int32_t)kind,
        .status = k->status,
        .ended = k->ended,
        .stage = (int32_t)k->job->stage,
        .sys = k->job->sys,
        .has_listener = k->job->has_listener ? 1 : 0,
    };

    /* The peer may be gone: then nobody needs it. */
    sy_raw6(SYS_sendto, KEEPER_CHANNEL_FD, (long)&r, (long)sizeof(r), MSG_NOSIGNAL, 0, 0);
}

RAW_CODE void
keeper_tell_failure(int channel_fd, enum sandbox_stage stage, int sys)
{
    struct keeper_report r = {.kind = KEEPER_FAILED, .stage = (int32_t)stage, .sys = sys};

    sy_raw6(SYS_sendto, channel_fd, (long)&r, (long)sizeof(r), MSG_NOSIGNAL, 0, 0);
}

/* Lends the listener to the engine, which answers from then on. */
RAW_CODE static void
pass_listener(struct keeper *k)
{
    struct keeper_report r = {.kind = KEEPER_LISTENER};
    struct iovec part = {.iov_base = &r, .iov_len = sizeof(r)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {
        .header = {
                   .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}
    };
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };

    *(int *)(void *)CMSG_DATA(&control.header) = k->job->listener_fd;
    sy_raw3(SYS_sendmsg, KEEPER_CHANNEL_FD, (long)&message, MSG_NOSIGNAL);
    k->has_lent = true;
}

RAW_CODE int
keeper_lift(int fd)
{
    if (fd < 0 || fd >= KEEPER_FIRST_FREE) {
        return fd;
    }
    return (int)sy_raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KEEPER_FIRST_FREE);
}

RAW_CODE void
keeper_close_span(unsigned first, unsigned last)
{
    if (first > last || sy_raw3(SYS_close_range, first, last, 0) == 0) {
        return;
    }

    struct {
        unsigned long now;
        unsigned long max;
    } limit = {0, 0};

    if (sy_raw4(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, (long)&limit) != 0) {
        limit.now = 1048576;
    }
    for (unsigned fd = first; fd <= last && fd < limit.now; fd++) {
        sy_raw1(SYS_close, fd);
    }
}

/* Makes the descriptor table what the command may see: 0-2, and ours that
 * close on exec. */
RAW_CODE static int
arrange_descriptors(struct keeper *k)
{
    struct keeper_job *job = k->job;
    int out = keeper_lift(job->out_fd);
    int err = keeper_lift(job->err_fd);
    int channel = keeper_lift(job->channel_fd);
    int in = keeper_lift(job->in_fd >= 0 ? job->in_fd
                                         : (int)sy_raw4(SYS_openat, AT_FDCWD, (long)"/dev/null",
                                                        O_RDONLY | O_CLOEXEC, 0));
    int ruleset = keeper_lift(job->ruleset_fd);
    int engine = keeper_lift(
        job->engine_fd >= 0 ? job->engine_fd : (int)sy_raw2(SYS_pidfd_open, job->engine_pid, 0));

    if (out < 0 || err < 0 || channel < 0 || in < 0) {
        return in < 0 ? -in : EBADF;
    }

    long rc = sy_raw3(SYS_dup3, in, 0, 0);

    rc = rc < 0 ? rc : sy_raw3(SYS_dup3, out, 1, 0);
    rc = rc < 0 ? rc : sy_raw3(SYS_dup3, err, 2, 0);
    rc = rc < 0 ? rc : sy_raw3(SYS_dup3, channel, KEEPER_CHANNEL_FD, O_CLOEXEC);
    if (rc >= 0 && engine >= 0) {
        rc = sy_raw3(SYS_dup3, engine, KEEPER_ENGINE_FD, O_CLOEXEC);
        k->has_engine_fd = true;
    } else if (rc >= 0) {
        /* The channel alone tells then. */
        sy_raw1(SYS_close, KEEPER_ENGINE_FD);
    }
    if (rc >= 0 && ruleset >= 0) {
        rc = sy_raw3(SYS_dup3, ruleset, KEEPER_RULESET_FD, O_CLOEXEC);
        job->ruleset_fd = KEEPER_RULESET_FD;
    }
    if (rc < 0) {
        return (int)-rc;
    }
    sy_raw1(SYS_close, KEEPER_SIGNAL_FD);
    keeper_close_span(ruleset >= 0 ? KEEPER_FIRST_FREE : KEEPER_RULESET_FD, ~0U);

    kernel_sigset child_signal = 1UL << (SIGCHLD - 1);

    /* Whoever started the engine may have had it ignored, which is inherited:
     * the kernel would then reap the command unasked and tell nobody how it
     * ended. */
    keeper_reset_signal(SIGCHLD);
    /* All above is closed, so this is KEEPER_SIGNAL_FD (or KEEPER_ENGINE_FD
     * where that is empty). */
    rc = sy_raw4(SYS_signalfd4, -1, (long)&child_signal, sizeof(child_signal),
                 SFD_CLOEXEC | SFD_NONBLOCK);
    if (rc >= 0 && rc != KEEPER_SIGNAL_FD) {
        int got = (int)rc;

        rc = sy_raw3(SYS_dup3, got, KEEPER_SIGNAL_FD, O_CLOEXEC);
        sy_raw1(SYS_close, got);
    }
    return rc < 0 ? (int)-rc : 0;
}

RAW_CODE static void
kill_tree(const struct keeper *k)
{
    if (k->job->is_init && k->self == 1) {
        /* All of the namespace but us. */
        sy_raw2(SYS_kill, -1, SIGKILL);
        return;
    }
    if (!k->has_exited) {
        sy_raw2(SYS_kill, -k->job->pid, SIGKILL);
        sy_raw2(SYS_kill, k->job->pid, SIGKILL);
    }
    keeper_kill_children(k->self);
}

/* Reaps all that has ended, or, where nothing else is left, will end at once.
 * Returns false when no child is left. */
RAW_CODE static bool
reap(struct keeper *k)
{
    int32_t hung_up = 0;

    for (;;) {
        int status = 0;
        long pid = sy_raw4(SYS_wait4, -1, (long)&status, (k->is_last ? 0 : WNOHANG) | __WALL, 0);

        if (pid <= 0) {
            /* The end of a terminal's session takes those in its foreground along. */
            bool is_end = k->has_exited && (!k->is_killing || k->told_exited);

            is_end = is_end && k->job->has_terminal &&
                     !(WIFSIGNALED(k->status) && WTERMSIG(k->status) == SIGHUP);
            k->ended += is_end ? hung_up : 0;
            return pid != -ECHILD;
        }
        if (pid == k->job->pid) {
            k->has_exited = true;
            k->status = status;
        } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP) {
            hung_up++;
        } else if (k->is_killing && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            k->ended++;
        }
    }
}

/* Orders from the engine. Its end (or an empty message) is an order to kill. */
RAW_CODE static void
take_orders(struct keeper *k)
{
    struct keeper_order order = {0, 0};
    long got =
        sy_raw6(SYS_recvfrom, KEEPER_CHANNEL_FD, (long)&order, sizeof(order), MSG_DONTWAIT, 0, 0);

    if (got == -EAGAIN || got == -EINTR) {
        return;
    }
    if (got == (long)sizeof(order) && order.kind == KEEPER_SIGNAL) {
        if (!k->has_exited) {
            sy_raw2(SYS_kill, -k->job->pid, order.signal);
        }
        return;
    }
    if (got == (long)sizeof(order) && order.kind == KEEPER_LISTEN) {
        k->has_lent = false;
        return;
    }
    if (got == (long)sizeof(order) && order.kind == KEEPER_ECHO) {
        report(k, KEEPER_ECHOED);
        return;
    }
    k->is_killing = true;
    k->is_orphan = got <= 0;
}

RAW_CODE static void
wait_for_something(struct keeper *k)
{
    struct pollfd fds[4] = {
        {.fd = KEEPER_SIGNAL_FD,                                           .events = POLLIN                  },
        {.fd = k->is_killing ? -1 : KEEPER_CHANNEL_FD,                     .events = POLLIN                  },
        {.fd = k->is_killing || !k->has_engine_fd ? -1 : KEEPER_ENGINE_FD, .events = POLLIN                  },
        {.fd = k->is_killing ? -1 : k->job->listener_fd,                   .events = k->has_lent ? 0 : POLLIN},
    };
    /* While killing, look again soon: children of the killed arrive here. */
    struct {
        long sec;
        long nsec;
    } soon = {0, 2000000};

    sy_raw5(SYS_ppoll, (long)fds, 4, k->is_killing ? (long)&soon : 0, 0, 0);
    if (fds[0].revents != 0) {
        struct signalfd_siginfo info;

        while (sy_raw3(SYS_read, KEEPER_SIGNAL_FD, (long)&info, sizeof(info)) > 0) {
        }
    }
    if (fds[1].revents != 0) {
        take_orders(k);
    }
    if ((fds[2].revents & POLLIN) != 0) {
        k->is_killing = true;
        k->is_orphan = true;
    }
    if ((fds[3].revents & POLLIN) != 0) {
        pass_listener(k);
    } else if (fds[3].revents != 0) {
        /* POLLHUP: nobody is left under the filter but who is in exit(2) (6.11)
         * or a zombie. So there is nothing to look out for but that. It is not
         * closed: the filter would be freed, which stops all processors for a
         * moment, while the command takes down its memory. */
        k->job->listener_fd = -1;
        k->is_last = true;
    }
}

RAW_CODE static void
keep(struct keeper *k)
{
    while (reap(k)) {
        if (k->is_killing) {
            kill_tree(k);
        } else if (k->has_exited && !k->told_exited) {
            k->told_exited = true;
            report(k, KEEPER_EXITED);
        }
        wait_for_something(k);
    }
}

/* Nobody is left in them. Who was killed with the order to end on its way, or
 * before the next command, leaves them for the next engine (cgroup.h). */
RAW_CODE static void
remove_cgroups(const struct keeper_job *job)
{
    for (size_t i = 0; i < CGROUP_PLACES; i++) {
        long rc = job->cgroups[i] == NULL ? 0 : -EBUSY;

        /* Whoever was waited for may leave his group a moment later. */
        for (int n = 0; n < 2500 && rc == -EBUSY; n++) {
            struct {
                long sec;
                long nsec;
            } soon = {0, n == 0 ? 0 : 2000000};

            sy_raw5(SYS_ppoll, 0, 0, (long)&soon, 0, 0);
            rc = sy_raw3(SYS_unlinkat, AT_FDCWD, sy_raw_ptr(job->cgroups[i]), AT_REMOVEDIR);
        }
    }
}

/* It may have been killed while we carried out its last order. */
RAW_CODE static bool
engine_is_gone(const struct keeper *k)
{
    struct pollfd fd = {.fd = k->has_engine_fd ? KEEPER_ENGINE_FD : -1, .events = POLLIN};
    struct {
        long sec;
        long nsec;
    } now = {0, 0};

    return sy_raw5(SYS_ppoll, (long)&fd, 1, (long)&now, 0, 0) > 0;
}

RAW_CODE int
keeper_main(void *arg)
{
    struct keeper_job *job = arg;
    struct keeper k = {.job = job, .self = (pid_t)sy_raw0(SYS_getpid)};

    job->has_begun = true;
    sy_raw5(SYS_prctl, PR_SET_NAME, (long)"sy-keeper", 0, 0, 0);

    long rc = sy_raw5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int sys = rc < 0 ? (int)-rc : arrange_descriptors(&k);

    if (sys != 0) {
        /* Descriptor 3 may not be the channel yet: answer through the job,
         * and by the end of the channel that our exit gives. */
        job->stage = STAGE_KEEPER;
        job->sys = sys;
        if (job->is_remote) {
            keeper_tell_failure(job->channel_fd, STAGE_KEEPER, sys);
        }
        return 1;
    }

    pid_t pid = keeper_start_child(&k);

    if (pid < 0) {
        job->stage = STAGE_CLONE;
        job->sys = -pid;
        report(&k, KEEPER_FAILED);
        return 1;
    }
    job->pid = pid;
    keeper_restore_cpus(job); /* the child is past KEEPER_GO */
    /* A terminal that nobody has open reads as ended (EIO): a command may close its own and open
     * /dev/tty later. */
    keeper_close_span(job->has_terminal ? 1 : 0, 2);
    if (job->ruleset_fd >= 0) {
        sy_raw1(SYS_close, job->ruleset_fd);
    }
    if (job->stage != STAGE_NONE) {
        sy_raw4(SYS_wait4, pid, 0, __WALL, 0);
        report(&k, KEEPER_FAILED);
        return 1;
    }
    keep(&k);
    if (k.is_orphan || engine_is_gone(&k)) {
        remove_cgroups(job);
    }
    report(&k, KEEPER_DONE);
    return 0;
}

pid_t
keeper_start_task(int (*fn)(void *), void *arg, void *stack_top)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_CLEAR_SIGHAND,
        .stack = (uint64_t)(uintptr_t)stack_top - KEEPER_STACK,
        .stack_size = KEEPER_STACK,
    };
    sigset_t all;
    sigset_t before;

    /* It never takes a signal: a handler of ours would run in it. */
    sigfillset(&all);

    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);

    if (rc != 0) {
        errno = rc;
        return -1;
    }

    /* No exit signal: it is waited for with __WALL, and a host program's own
     * SIGCHLD handling never meets it. clone3 clears the signal handlers for
     * free (5.5); an outer seccomp filter may refuse it. */
    long pid = sy_raw_spawn(SYS_clone3, (long)&args, sizeof(args), 0, fn, arg);

    if (pid == -ENOSYS || pid == -EPERM || pid == -EINVAL) {
        pid = sy_raw_spawn(SYS_clone, CLONE_VM, (long)stack_top, 0, fn, arg);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        errno = (int)-pid;
        return -1;
    }
    return (pid_t)pid;
}

pid_t
keeper_start(struct keeper_job *job, void *stack_top)
{
    return keeper_start_task(keeper_main, job, stack_top);
}
