#include "process/keeper.h"

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

/*
 * Everything below keeper_main runs while the engine's threads run on in the
 * same memory: no libc, no errno, no heap, no sanitizer.
 */
#if defined(__clang__)
#    define RAW_CODE __attribute__((no_sanitize("address", "undefined", "thread"), noinline))
#else
#    define RAW_CODE                                                                               \
        __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread, noinline))
#endif

/* The keeper's own descriptors; 0-2 are the command's until it has started. */
enum { KEEPER_CHANNEL_FD = 3, KEEPER_ENGINE_FD = 4, KEEPER_SIGNAL_FD = 5, KEEPER_FIRST_FREE = 6 };

struct keeper {
    struct keeper_job *job;
    pid_t self;
    int32_t status;  /* of the command, once it has exited */
    int32_t ended;   /* others killed after the order to kill */
    bool has_exited; /* the command */
    bool is_killing;
    bool told_exited;
    bool has_engine_fd; /* an outer sandbox may refuse pidfd_open */
};

typedef unsigned long kernel_sigset; /* 64 signals on both architectures */

#define SIG_BIT(n) (1UL << ((n)-1))

RAW_CODE static void
report(const struct keeper *k, enum keeper_report_kind kind)
{
    struct keeper_report r = {
        .kind = (int32_t)kind,
        .status = k->status,
        .ended = k->ended,
        .stage = (int32_t)k->job->stage,
        .sys = k->job->sys,
    };

    /* The peer may be gone: then nobody needs it. */
    sy_raw6(SYS_sendto, KEEPER_CHANNEL_FD, (long)&r, (long)sizeof(r), MSG_NOSIGNAL, 0, 0);
}

/* Hands the listener to the engine and forgets it here. */
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
    sy_raw1(SYS_close, k->job->listener_fd);
    k->job->listener_fd = -1;
}

/* Moves fd out of the way of the fixed numbers. Returns it, or -errno. */
RAW_CODE static int
lift(int fd)
{
    if (fd < 0 || fd >= KEEPER_FIRST_FREE) {
        return fd;
    }
    return (int)sy_raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KEEPER_FIRST_FREE);
}

/* Closes [first, last] whatever the kernel has: close_range(2) is 5.9. */
RAW_CODE static void
close_span(unsigned first, unsigned last)
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

/*
 * Makes the descriptor table what the command may see: 0-2, and ours that
 * close on exec. The ruleset keeps its number (sandbox_apply knows it).
 */
RAW_CODE static int
arrange_descriptors(struct keeper *k)
{
    struct keeper_job *job = k->job;
    int out = lift(job->out_fd);
    int err = lift(job->err_fd);
    int channel = lift(job->channel_fd);
    int null = lift((int)sy_raw4(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDONLY | O_CLOEXEC, 0));
    int engine = lift((int)sy_raw2(SYS_pidfd_open, job->engine_pid, 0));

    if (out < 0 || err < 0 || channel < 0 || null < 0) {
        return null < 0 ? -null : EBADF;
    }

    long rc = sy_raw3(SYS_dup3, null, 0, 0);

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
    if (rc < 0) {
        return (int)-rc;
    }
    if (job->ruleset_fd >= KEEPER_FIRST_FREE) {
        close_span(KEEPER_SIGNAL_FD, (unsigned)job->ruleset_fd - 1);
        close_span((unsigned)job->ruleset_fd + 1, ~0U);
    } else {
        close_span(KEEPER_SIGNAL_FD, ~0U);
    }

    kernel_sigset child_signal = SIG_BIT(SIGCHLD);

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

RAW_CODE __attribute__((noreturn)) static void
child_die(struct keeper_job *job, enum sandbox_stage stage, int sys)
{
    job->stage = stage;
    job->sys = sys;
    for (;;) {
        sy_raw1(SYS_exit_group, 127);
    }
}

/* execve as execvp does it: a file that the kernel knows no format for is a
 * shell script (POSIX, execvp). */
RAW_CODE static int
execute(const struct keeper_job *job)
{
    long rc = sy_raw3(SYS_execve, (long)job->program, (long)job->argv, (long)job->envp);

    if (rc == -ENOEXEC) {
        sy_raw3(SYS_execve, (long)job->script_argv[0], (long)job->script_argv, (long)job->envp);
    }
    return (int)-rc;
}

/* Back to the default: an ignored signal stays ignored over execve(2). */
RAW_CODE static void
reset(uint64_t signals)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        kernel_sigset mask;
    } fallback = {NULL, 0, NULL, 0};

    for (int n = 1; signals != 0; n++, signals >>= 1) {
        if ((signals & 1U) != 0) {
            sy_raw4(SYS_rt_sigaction, n, (long)&fallback, 0, sizeof(kernel_sigset));
        }
    }
}

/*
 * The command's process up to its exec. Shares memory with keeper and engine;
 * the keeper waits until it has exec'd or died.
 */
RAW_CODE __attribute__((noreturn)) static void
child_main(struct keeper_job *job, pid_t keeper_pid, uint64_t reset_signals)
{
    long rc = sy_raw0(SYS_setsid);

    if (rc < 0) {
        child_die(job, STAGE_SESSION, (int)-rc);
    }
    rc = sy_raw5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (rc < 0) {
        child_die(job, STAGE_DEATH_SIGNAL, (int)-rc);
    }
    if (sy_raw0(SYS_getppid) != keeper_pid) {
        /* It died before the signal was armed. */
        child_die(job, STAGE_DEATH_SIGNAL, ESRCH);
    }
    reset(reset_signals);
    rc = sy_raw1(SYS_chdir, (long)job->cwd);
    if (rc < 0) {
        child_die(job, STAGE_CWD, (int)-rc);
    }

    enum sandbox_stage stage = STAGE_NONE;
    int sys = sandbox_apply_brokered(job->sandbox, &job->listener_fd, &stage);

    if (sys != 0) {
        child_die(job, stage, sys);
    }

    kernel_sigset none = 0;

    sy_raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none));
    child_die(job, STAGE_EXEC, execute(job));
}

/*
 * vfork: the child runs on our stack below this frame while we are suspended,
 * so nothing here may be changed by it but through `job`. clone3 clears the
 * signal handlers for free (5.5), so that only ignored signals are left to
 * reset; an outer seccomp filter may refuse it. The descriptor table is shared
 * up to the exec, which parts it, so that the listener of the child's filter
 * appears in ours.
 */
RAW_CODE static pid_t
start_child(struct keeper *k)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_CLEAR_SIGHAND,
        .exit_signal = SIGCHLD,
    };
    long pid = sy_raw2(SYS_clone3, (long)&args, sizeof(args));

    if (pid == 0) {
        child_main(k->job, k->self, k->job->reset_signals);
    }
    if (pid == -ENOSYS || pid == -EPERM || pid == -EINVAL) {
        pid = sy_raw5(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) {
            child_main(k->job, k->self, ~0ULL);
        }
    }
    return (pid_t)pid;
}

/* Writes "<prefix><number><suffix>" with its NUL; returns its length. */
RAW_CODE static size_t
put_path(char *out, const char *prefix, pid_t number, const char *suffix)
{
    char digits[12];
    size_t n = 0;
    size_t len = 0;

    while (*prefix != '\0') {
        out[len++] = *prefix++;
    }
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0) {
        out[len++] = digits[--n];
    }
    while (*suffix != '\0') {
        out[len++] = *suffix++;
    }
    out[len] = '\0';
    return len;
}

/*
 * SIGKILL to each child of ours now. Children can't be reaped by anyone but
 * us, so their numbers are theirs until we wait. Returns false when the list
 * can't be read (no /proc, or a kernel without CONFIG_PROC_CHILDREN).
 */
RAW_CODE static bool
kill_listed_children(pid_t self)
{
    char path[64];
    char text[1024];
    size_t at = put_path(path, "/proc/", self, "/task/");

    put_path(path + at, "", self, "/children");

    int fd = (int)sy_raw4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0) {
        return false;
    }

    pid_t number = 0;

    for (;;) {
        long got = sy_raw3(SYS_read, fd, (long)text, sizeof(text));

        if (got <= 0) {
            break;
        }
        for (long i = 0; i < got; i++) {
            /* The kernel filled it. NOLINTNEXTLINE(clang-analyzer-core.*) */
            if (text[i] >= '0' && text[i] <= '9') {
                number = number * 10 + (text[i] - '0');
            } else if (number > 0) {
                sy_raw2(SYS_kill, number, SIGKILL);
                number = 0;
            }
        }
    }
    sy_raw1(SYS_close, fd);
    return true;
}

struct kernel_dirent {
    unsigned long long inode;
    long long offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Parent of a process by the fourth field of /proc/PID/stat, 0 if unknown. */
RAW_CODE static pid_t
parent_of(pid_t pid)
{
    char path[64];
    char text[512];

    put_path(path, "/proc/", pid, "/stat");

    int fd = (int)sy_raw4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0) {
        return 0;
    }

    long got = sy_raw3(SYS_read, fd, (long)text, sizeof(text));
    long at = 0;
    pid_t parent = 0;

    sy_raw1(SYS_close, fd);
    /* The name in brackets may hold anything: count from its last bracket. */
    for (long i = 0; i < got; i++) {
        /* The kernel filled it. NOLINTNEXTLINE(clang-analyzer-core.*) */
        if (text[i] == ')') {
            at = i;
        }
    }
    for (at += 4; at > 4 && at < got && text[at] >= '0' && text[at] <= '9'; at++) {
        parent = parent * 10 + (text[at] - '0');
    }
    return parent;
}

/* The same by a walk over /proc. */
RAW_CODE static void
kill_scanned_children(pid_t self)
{
    _Alignas(struct kernel_dirent) char entries[2048];
    int fd =
        (int)sy_raw4(SYS_openat, AT_FDCWD, (long)"/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0) {
        return;
    }
    for (;;) {
        long got = sy_raw3(SYS_getdents64, fd, (long)entries, sizeof(entries));

        if (got <= 0) {
            break;
        }
        for (long at = 0; at < got;) {
            const struct kernel_dirent *entry = (const void *)(entries + at);
            pid_t pid = 0;

            /* The kernel filled it. NOLINTNEXTLINE(clang-analyzer-core.*) */
            for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++) {
                pid = pid * 10 + (*c - '0');
            }
            if (pid > 1 && parent_of(pid) == self) {
                sy_raw2(SYS_kill, pid, SIGKILL);
            }
            at += entry->length;
        }
    }
    sy_raw1(SYS_close, fd);
}

RAW_CODE static void
kill_tree(const struct keeper *k)
{
    if (!k->has_exited) {
        sy_raw2(SYS_kill, -k->job->pid, SIGKILL);
        sy_raw2(SYS_kill, k->job->pid, SIGKILL);
    }
    if (!kill_listed_children(k->self)) {
        kill_scanned_children(k->self);
    }
}

/* Reaps all that has ended. Returns false when no child is left. */
RAW_CODE static bool
reap(struct keeper *k)
{
    for (;;) {
        int status = 0;
        long pid = sy_raw4(SYS_wait4, -1, (long)&status, WNOHANG | __WALL, 0);

        if (pid == -ECHILD) {
            return false;
        }
        if (pid <= 0) {
            return true;
        }
        if (pid == k->job->pid) {
            k->has_exited = true;
            k->status = status;
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
    k->is_killing = true;
}

RAW_CODE static void
wait_for_something(struct keeper *k)
{
    struct pollfd fds[4] = {
        {.fd = KEEPER_SIGNAL_FD,                                           .events = POLLIN},
        {.fd = k->is_killing ? -1 : KEEPER_CHANNEL_FD,                     .events = POLLIN},
        {.fd = k->is_killing || !k->has_engine_fd ? -1 : KEEPER_ENGINE_FD, .events = POLLIN},
        {.fd = k->is_killing ? -1 : k->job->listener_fd,                   .events = POLLIN},
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
    }
    if ((fds[3].revents & POLLIN) != 0) {
        pass_listener(k);
    } else if (fds[3].revents != 0) {
        /* POLLHUP: nobody is left under the filter. */
        sy_raw1(SYS_close, k->job->listener_fd);
        k->job->listener_fd = -1;
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

RAW_CODE static int
keeper_main(void *arg)
{
    struct keeper_job *job = arg;
    struct keeper k = {.job = job, .self = (pid_t)sy_raw0(SYS_getpid)};

    sy_raw5(SYS_prctl, PR_SET_NAME, (long)"sy-keeper", 0, 0, 0);

    long rc = sy_raw5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int sys = rc < 0 ? (int)-rc : arrange_descriptors(&k);

    if (sys != 0) {
        /* Descriptor 3 may not be the channel yet: answer through the job,
         * and by the end of the channel that our exit gives. */
        job->stage = STAGE_KEEPER;
        job->sys = sys;
        return 1;
    }

    pid_t pid = start_child(&k);

    if (pid < 0) {
        job->stage = STAGE_CLONE;
        job->sys = -pid;
        report(&k, KEEPER_FAILED);
        return 1;
    }
    job->pid = pid;
    close_span(0, 2);
    if (job->ruleset_fd >= 0) {
        sy_raw1(SYS_close, job->ruleset_fd);
    }
    if (job->stage != STAGE_NONE) {
        sy_raw4(SYS_wait4, pid, 0, __WALL, 0);
        report(&k, KEEPER_FAILED);
        return 1;
    }
    keep(&k);
    report(&k, KEEPER_DONE);
    return 0;
}

/* Signals that a program commonly ignores at some time of its life. */
static const int often_ignored[] = {
    SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM, SIGTERM,
    SIGUSR1, SIGUSR2, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU,
};

/* Those that this program was started with ignored (nohup(1)), asked once,
 * and those that it may have ignored since. */
static uint64_t
maybe_ignored(void)
{
    static _Atomic uint64_t known;
    uint64_t mask = known;

    if (mask != 0) {
        return mask;
    }
    for (size_t i = 0; i < sizeof(often_ignored) / sizeof(often_ignored[0]); i++) {
        mask |= 1ULL << (often_ignored[i] - 1);
    }
    for (int n = 1; n <= 64; n++) {
        struct sigaction now;

        /* The C library hides 32 and 33, which it uses itself and which make(1)
         * leaves ignored. */
        if (sigaction(n, NULL, &now) != 0 || now.sa_handler == SIG_IGN) {
            mask |= 1ULL << (n - 1);
        }
    }
    known = mask;
    return mask;
}

pid_t
keeper_start(struct keeper_job *job, void *stack_top)
{
    sigset_t all;
    sigset_t before;

    /* The keeper never takes a signal: a handler of ours would run in it. */
    job->reset_signals = maybe_ignored();
    sigfillset(&all);

    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);

    if (rc != 0) {
        errno = rc;
        return -1;
    }

    /* No exit signal: it is waited for with __WALL, and a host program's own
     * SIGCHLD handling never meets it. */
    pid_t pid = clone(keeper_main, stack_top, CLONE_VM, job);
    int saved = errno;

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}
