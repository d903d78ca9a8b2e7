/*
 * The command's process up to its exec. It shares memory with keeper and engine
 * and runs on the keeper's stack, below the frame of keeper_start_child, while
 * the keeper sleeps in clone: it never returns.
 */
#include "process/keeper_internal.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "process/keeper_spec.h"
#include "sandbox/linux/raw_syscall.h"

RAW_CODE __attribute__((noreturn)) static void
child_die(struct keeper_job *job, enum sandbox_stage stage, int sys)
{
    job->stage = stage;
    job->sys = sys;
    for (;;) {
        sy_raw1(SYS_exit_group, 127);
    }
}

/* execve as execvp does it: a text that the kernel knows no format for is a
 * shell script (POSIX, execvp). */
RAW_CODE static int
execute(const struct keeper_job *job)
{
    long rc = sy_raw3(SYS_execve, (long)job->program, (long)job->argv, (long)job->envp);

    if (rc == -ENOEXEC && job->script_argv[0] != NULL) {
        sy_raw3(SYS_execve, (long)job->script_argv[0], (long)job->script_argv, (long)job->envp);
    }
    return (int)-rc;
}

struct kernel_action {
    void *handler; /* NULL: SIG_DFL */
    unsigned long flags;
    void *restorer;
    kernel_sigset mask;
};

RAW_CODE long
keeper_reset_signal(int n)
{
    struct kernel_action fallback = {NULL, 0, NULL, 0};

    return sy_raw4(SYS_rt_sigaction, n, (long)&fallback, 0, sizeof(kernel_sigset));
}

/*
 * Back to the default: an ignored signal stays ignored over execve(2). Asked of
 * the kernel, since the engine may have been started with some ignored
 * (nohup(1)), and the C library hides two that it uses itself.
 */
RAW_CODE void
keeper_reset_signals(void)
{
    for (int n = 1; n <= 64; n++) {
        struct kernel_action now = {NULL, 0, NULL, 0};

        if (sy_raw4(SYS_rt_sigaction, n, 0, (long)&now, sizeof(kernel_sigset)) == 0 &&
            now.handler != NULL) {
            keeper_reset_signal(n);
        }
    }
}

/* What came along with KEEPER_GO. Any number in *cgroup_fds is ours to close. */
struct go_fds {
    int spec_fd; /* -1: none */
    int cgroup_fds[CGROUP_PLACES];
    size_t n_cgroups;
};

RAW_CODE static void
sort_fds(struct keeper_job *job, struct go_fds *ret, const int *fds, size_t n)
{
    size_t i = 0;

    if (job->is_remote && n > 0) {
        ret->spec_fd = fds[i++];
    } else if (job->has_ruleset && n > 0) {
        job->ruleset_fd = fds[i++];
    }
    while (i < n && ret->n_cgroups < CGROUP_PLACES) {
        ret->cgroup_fds[ret->n_cgroups++] = fds[i++];
    }
}

/* One order, if there is one, with the descriptors that may come along. Returns as
 * recvmsg(2). */
RAW_CODE static long
receive_order(struct keeper_job *job, struct keeper_order *ret, struct go_fds *ret_fds)
{
    struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * KEEPER_GO_FDS)];
    } control = {.header = {0}};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };
    long got =
        sy_raw3(SYS_recvmsg, KEEPER_CHANNEL_FD, (long)&message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got > 0 && message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
        control.header.cmsg_type == SCM_RIGHTS) {
        sort_fds(job, ret_fds, (const int *)(const void *)CMSG_DATA(&control.header),
                 (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
    }
    return got;
}

RAW_CODE static void
apply_base(struct keeper_job *job)
{
    enum sandbox_stage stage = STAGE_NONE;
    int sys = sandbox_apply_base(&job->base, &job->listener_fd, &stage);

    job->has_listener = job->listener_fd >= 0;

    if (sys != 0) {
        child_die(job, stage, sys);
    }
}

/* Sleeps until the order to go. Any other, or the engine's end, is ours too. */
RAW_CODE static void
await_go(const struct keeper *k, struct go_fds *ret_fds)
{
    bool has_base = k->job->has_base;

    struct pollfd fds[2] = {
        {.fd = KEEPER_CHANNEL_FD,                        .events = POLLIN},
        {.fd = k->has_engine_fd ? KEEPER_ENGINE_FD : -1, .events = POLLIN},
    };

    if (!has_base && k->job->starts_with_base) {
        apply_base(k->job);
        has_base = true;
    }
    for (;;) {
        struct keeper_order order = {0, 0};
        long got = receive_order(k->job, &order, ret_fds);

        if (got == (long)sizeof(order) && (order.kind == KEEPER_BASE || order.kind == KEEPER_GO)) {
            if (!has_base) {
                apply_base(k->job);
                has_base = true;
            }
            if (order.kind == KEEPER_GO) {
                return;
            }
            continue;
        }
        if (got != -EAGAIN && got != -EINTR) {
            child_die(k->job, STAGE_ORDER, ECANCELED);
        }
        sy_raw5(SYS_ppoll, (long)fds, 2, 0, 0, 0);
        if ((fds[1].revents & POLLIN) != 0) {
            child_die(k->job, STAGE_ORDER, ECANCELED);
        }
    }
}

RAW_CODE void
keeper_restore_cpus(const struct keeper_job *job)
{
    if (job->cpus_bytes > 0) {
        /* It can fail only where these processors were taken from us meanwhile. */
        sy_raw3(SYS_sched_setaffinity, 0, (long)job->cpus_bytes, sy_raw_ptr(job->cpus));
    }
}

/* All that depends on neither command nor sandbox. */
RAW_CODE static void
make_ready(const struct keeper *k)
{
    struct keeper_job *job = k->job;
    long rc = sy_raw0(SYS_setsid);

    if (rc < 0) {
        child_die(job, STAGE_SESSION, (int)-rc);
    }
    rc = sy_raw5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (rc < 0) {
        child_die(job, STAGE_DEATH_SIGNAL, (int)-rc);
    }
    if (sy_raw0(SYS_getppid) != k->self) {
        /* It died before the signal was armed. */
        child_die(job, STAGE_DEATH_SIGNAL, ESRCH);
    }
    if (!job->has_base) {
        keeper_reset_signals(); /* a template has done it */
    }
}

/* Never above what is there: our own limits hold for commands too. */
RAW_CODE static long
lower(const struct keeper_rlimit *to)
{
    struct {
        uint64_t soft;
        uint64_t hard;
    } limit = {0, 0};
    long rc = sy_raw4(SYS_prlimit64, 0, to->resource, 0, sy_raw_ptr(&limit));

    if (rc < 0) {
        return rc;
    }
    limit.soft = to->soft < limit.soft ? to->soft : limit.soft;
    limit.hard = to->hard < limit.hard ? to->hard : limit.hard;
    return sy_raw4(SYS_prlimit64, 0, to->resource, sy_raw_ptr(&limit), 0);
}

/*
 * Into the control groups by descriptors that the engine opened: the kernel asks
 * for the opener's rights. The keeper stays outside: an out-of-memory kill takes
 * whoever shares the victim's memory, which for the keeper is the engine's.
 */
RAW_CODE static void
apply_limits(struct keeper_job *job, const struct go_fds *fds)
{
    for (size_t i = 0; i < fds->n_cgroups; i++) {
        static const char self[] = "0";
        long rc = sy_raw3(SYS_write, fds->cgroup_fds[i], sy_raw_ptr(self), 1);

        /* Shared with the keeper, which must not keep it. */
        sy_raw1(SYS_close, fds->cgroup_fds[i]);
        if (rc < 0) {
            child_die(job, STAGE_CGROUP, (int)-rc);
        }
    }
    for (size_t i = 0; i < job->n_rlimits; i++) {
        long rc = lower(&job->rlimits[i]);

        if (rc < 0) {
            child_die(job, STAGE_RLIMITS, (int)-rc);
        }
    }
}

/* Ours is a session without a terminal so far: tty_ioctl(4), TIOCSCTTY. */
RAW_CODE static void
take_terminal(struct keeper_job *job)
{
    long rc = job->has_terminal ? sy_raw3(SYS_ioctl, 0, TIOCSCTTY, 0) : 0;

    if (rc < 0) {
        child_die(job, STAGE_TERMINAL, (int)-rc);
    }
}

RAW_CODE static void
take_spec(struct keeper_job *job, int fd)
{
    if (!job->is_remote) {
        return;
    }

    int sys = fd >= 0 ? keeper_spec_load(job, fd) : EPROTO;

    /* Shared with the keeper, which needs it no more. */
    sy_raw1(SYS_close, fd);
    if (sys != 0) {
        child_die(job, STAGE_ORDER, sys);
    }
}

RAW_CODE __attribute__((noreturn)) static void
child_main(const struct keeper *k)
{
    struct keeper_job *job = k->job;
    enum sandbox_stage stage = STAGE_NONE;
    struct go_fds fds = {.spec_fd = -1, .n_cgroups = 0};

    make_ready(k);
    await_go(k, &fds);
    keeper_restore_cpus(job);
    take_spec(job, fds.spec_fd);
    take_terminal(job);
    apply_limits(job, &fds);

    long rc = sy_raw1(SYS_chdir, (long)job->cwd);

    if (rc < 0) {
        child_die(job, STAGE_CWD, (int)-rc);
    }

    int sys = sandbox_apply_paths(&job->base, job->ruleset_fd, &stage);

    if (sys != 0) {
        child_die(job, stage, sys);
    }

    kernel_sigset none = 0;

    sy_raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none));
    child_die(job, STAGE_EXEC, execute(job));
}

/*
 * vfork: the child runs on our stack below this frame while we are suspended,
 * so nothing here may be changed by it but through `job`. clone, since our own
 * filter refuses clone3 where we are under it. The descriptor table is shared
 * up to the exec, which parts it, so that the listener of the child's filter
 * appears in ours.
 */
RAW_CODE pid_t
keeper_start_child(struct keeper *k)
{
    long pid = sy_raw5(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0) {
        child_main(k);
    }
    return (pid_t)pid;
}
