/* The process of one policy (launcher_internal.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/netlink.h>

#include "base/fd.h"
#include "base/limits.h"
#include "launcher/launcher_internal.h"
#include "process/keeper.h"
#include "sandbox/document.h"

#define POLICY_BYTES ((size_t)1 << 20)

static const int no_fds[LAUNCH_FDS] = {-1, -1, -1, -1};

static bool
read_whole(int fd, struct buf *ret, enum sandbox_stage stage, struct failure *f)
{
    struct sy_error err = {0};

    /* A pipe has no place to go back to. */
    (void)lseek(fd, 0, SEEK_SET);
    if (fd_read_all(fd, ret, &err) != SY_E_OK) {
        return failed(f, stage, err.sys != 0 ? err.sys : EIO, err.msg);
    }
    return true;
}

/* Else it is a wrapper: nobody answers for connect(2), and there is no proxy. */
static bool
has_engine(const struct template_process *t)
{
    return t->engine_fd >= 0;
}

static bool
read_policy(struct template_process *t, int fd, struct failure *f)
{
    SY_AUTO(buf_fini) struct buf text = {.max = POLICY_BYTES};
    struct sy_error err = {0};

    if (!read_whole(fd, &text, STAGE_POLICY, f)) {
        return false;
    }
    if (sandbox_policy_read(&t->policy, buf_view(&text), text.len, &err) != SY_E_OK) {
        return failed(f, STAGE_POLICY, EINVAL, err.msg);
    }
    if (!sandbox_mode_is_enforced(t->policy.mode)) {
        return failed(f, STAGE_POLICY, EINVAL, "a mode that is not enforced needs no launcher");
    }
    return true;
}

/* The proxy itself is the engine's, and stays outside. */
static bool
bind_proxy(struct template_process *t, struct failure *f)
{
    static const uint16_t ports[] = {LAUNCH_HTTP_PORT, LAUNCH_SOCKS_PORT};
    bool is_ok = true;

    for (size_t i = 0; i < 2 && is_ok; i++) {
        is_ok = network_bind_loopback(&t->proxy_fds[i], ports[i], f);
    }
    return is_ok;
}

static bool
enter_namespaces(struct template_process *t, struct failure *f)
{
    enum sandbox_network network = sandbox_policy_network(&t->policy);
    bool is_own = network != NETWORK_ON;

    if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | (is_own ? CLONE_NEWNET : 0)) != 0) {
        return failed(f, STAGE_NAMESPACES, errno, NULL);
    }
    return !is_own || (network_raise_loopback(f) &&
                       (network != NETWORK_ALLOW_LIST || !has_engine(t) || bind_proxy(t, f)));
}

static bool
make_plan(struct template_process *t, struct failure *f)
{
    struct sandbox_caps caps;
    struct sy_error err = {0};

    sandbox_probe(&caps);
    caps.has_full_tier = true; /* we are about to see */
    if (sandbox_plan_new(&t->plan, &t->policy, &caps, &err) != SY_E_OK) {
        return failed(f, STAGE_POLICY, EINVAL, err.msg);
    }
    return true;
}

/* fork(2), with a process id namespace and a copy of the tree for the child. */
static pid_t
fork_run(int *ret_pidfd)
{
    return (pid_t)syscall(
        SYS_clone, CLONE_NEWPID | CLONE_NEWNS | (ret_pidfd != NULL ? CLONE_PIDFD : 0) | SIGCHLD,
        NULL, ret_pidfd, NULL, 0);
}

/* Everything that a run does has to work here, or the tier is not there. */
static bool
try_run(const struct template_process *t, struct failure *f)
{
    int result[2];

    if (pipe2(result, O_CLOEXEC) != 0) {
        return failed(f, STAGE_NAMESPACES, errno, NULL);
    }

    SY_FD from = result[0];
    SY_FD to = result[1];
    pid_t pid = fork_run(NULL);

    if (pid < 0) {
        return failed(f, STAGE_NAMESPACES, errno, "process id namespace");
    }
    if (pid == 0) {
        struct failure inner = {STAGE_NONE, 0, ""};

        (void)(tree_enter_run(&inner) && identity_become(&t->who, &inner));
        _exit(write(to, &inner, sizeof(inner)) == (ssize_t)sizeof(inner) ? 0 : 1);
    }
    fd_close(&to);
    if (read(from, f, sizeof(*f)) != (ssize_t)sizeof(*f)) {
        return failed(f, STAGE_NAMESPACES, ECHILD, "the first process of a namespace ended");
    }
    return f->stage == STAGE_NONE;
}

bool
template_prepare(struct template_process *t, const struct yard *y, int policy_fd, struct failure *f)
{
    struct sy_error err = {0};

    /* The workspace may be where the yard's tmpfs lies until the tree is built. */
    if (!read_policy(t, policy_fd, f) || !yard_limit(t->policy.temp_bytes, f) ||
        !enter_namespaces(t, f) || !make_plan(t, f) || !tree_build(&t->tree, t->plan, f) ||
        !identity_find(&t->who, &t->policy, geteuid() == 0 && !y->has_user_namespace, f)) {
        return false;
    }
    if (sandbox_ready_new(&t->ready, t->plan, &err) != SY_E_OK) {
        return failed(f, STAGE_LANDLOCK, err.sys != 0 ? err.sys : EINVAL, err.msg);
    }
    /* An engine sends marks for what it finds to hide, and counts them. */
    return (has_engine(t) || protect_secrets(&t->tree, t->plan, t->ready, f)) &&
           protect_names(&t->tree, t->plan, strv_view(&t->policy.protected_names), f) &&
           try_run(t, f);
}

void
template_fini(struct template_process *t)
{
    sandbox_ready_free(t->ready);
    sandbox_plan_free(t->plan);
    sandbox_policy_fini(&t->policy);
    fd_close(&t->tree.covers_fd);
    fd_close(&t->tree.watch_fd);
    fd_close(&t->held_fd);
    fd_close(&t->proxy_fds[0]);
    fd_close(&t->proxy_fds[1]);
}

/* The terminal of this run, among those of the run: nobody else has it by a name. */
static bool
open_terminal(int channel_fd, int *ret_fd, struct failure *f)
{
    const struct keeper_report told = {.kind = KEEPER_TERMINAL};
    SY_FD master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    int unlocked = 0;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) != 0) {
        return failed(f, STAGE_PTY, errno, NULL);
    }
    *ret_fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return *ret_fd >= 0 && send_with_fd(channel_fd, &told, sizeof(told), master)
               ? true
               : failed(f, STAGE_PTY, errno, NULL);
}

/* The keeper, process 1 of its namespace, up to where all keepers are alike. */
static int
run_keeper(const struct template_process *t, const struct run_fds *fds)
{
    struct failure f = {STAGE_NONE, 0, ""};
    struct keeper_job job = {
        .is_init = true,
        .is_remote = true,
        .starts_with_base = true,
        .base = sandbox_ready_base(t->ready),
        .in_fd = fds->in,
        .out_fd = fds->out,
        .err_fd = fds->err,
        .channel_fd = fds->channel,
        .engine_fd = t->engine_fd,
        .ruleset_fd = sandbox_ready_fd(t->ready),
        .listener_fd = -1,
    };
    enum sandbox_stage stage = STAGE_NONE;
    sigset_t all;

    if (!has_engine(t)) {
        job.base.broker_program = NULL;
        job.base.is_observed = false;
    }
    /* It reads SIGCHLD from a descriptor, whoever forks it. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    /* The terminal belongs to whoever opens it first. */
    if (!tree_enter_run(&f) || !identity_become(&t->who, &f) ||
        (fds->has_terminal && !open_terminal(job.channel_fd, &job.in_fd, &f))) {
        keeper_tell_failure(job.channel_fd, f.stage, f.sys);
        return 1;
    }
    if (fds->has_terminal) {
        job.out_fd = job.in_fd;
        job.err_fd = job.in_fd;
    }

    int sys = sandbox_apply_privileges(&stage);

    if (sys != 0) {
        keeper_tell_failure(job.channel_fd, stage, sys);
        return 1;
    }
    return keeper_main(&job);
}

pid_t
template_fork_keeper(const struct template_process *t, const struct run_fds *fds, int *ret_pidfd)
{
    pid_t pid = fork_run(ret_pidfd);

    if (pid == 0) {
        _exit(run_keeper(t, fds));
    }
    if (pid < 0) {
        keeper_tell_failure(fds->channel, STAGE_CLONE, errno);
    }
    return pid;
}

static void
make_keeper(const struct template_process *t, const struct run_fds *fds)
{
    struct keeper_report born = {.kind = KEEPER_BORN};
    SY_FD pidfd = -1;
    pid_t pid = template_fork_keeper(t, fds, &pidfd);

    if (pid < 0) {
        return;
    }
    born.status = pid;
    (void)send_with_fd(fds->channel, &born, sizeof(born), pidfd);
}

/* Half of the marks are none: the template ends with those that it could not make. */
static bool
take_marks(struct template_process *t, int fd)
{
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};
    bool is_ok = read_whole(fd, &marks, STAGE_MOUNTS, &f) &&
                 tree_mark(&t->tree, buf_view(&marks), marks.len, &f);

    const int fds[LAUNCH_FDS] = {t->tree.watch_fd, -1, -1, -1};

    return send_report(t->channel_fd, &f, fds) && is_ok;
}

static bool
take_order(struct template_process *t)
{
    struct launch_order order = {0};
    int fds[LAUNCH_FDS];
    ssize_t got = receive_with_fds(t->channel_fd, &order, sizeof(order), fds);
    bool goes_on = false;

    if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (got == (ssize_t)sizeof(order) && order.kind == LAUNCH_KEEPER && fds[2] >= 0) {
        make_keeper(t, &(const struct run_fds){
                           .channel = fds[2], .in = fds[3], .out = fds[0], .err = fds[1]});
        goes_on = true;
    } else if (got == (ssize_t)sizeof(order) && order.kind == LAUNCH_TERMINAL && fds[0] >= 0) {
        make_keeper(t,
                    &(const struct run_fds){
                        .channel = fds[0], .in = -1, .out = -1, .err = -1, .has_terminal = true});
        goes_on = true;
    } else if (got == (ssize_t)sizeof(order) && order.kind == LAUNCH_MARKS && fds[0] >= 0) {
        goes_on = take_marks(t, fds[0]);
    } else if (got == (ssize_t)sizeof(order) && order.kind == LAUNCH_HOLD && fds[0] >= 0) {
        fd_close(&t->held_fd);
        t->held_fd = fd_take(&fds[0]);
        goes_on = true;
    }
    for (size_t i = 0; i < LAUNCH_FDS; i++) {
        fd_close(&fds[i]);
    }
    return goes_on;
}

static void
serve(struct template_process *t)
{
    struct pollfd fds[2] = {
        {.fd = t->channel_fd, .events = POLLIN},
        {.fd = t->engine_fd,  .events = POLLIN},
    };

    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            return;
        }
        if ((fds[1].revents & POLLIN) != 0 || (fds[0].revents != 0 && !take_order(t))) {
            return;
        }
    }
}

void
template_run(const struct yard *y, const struct template_start *start)
{
    struct template_process t = {
        .channel_fd = start->channel_fd,
        .engine_fd = start->engine_fd,
        .held_fd = -1,
        .tree = {-1, -1, 0},
        .proxy_fds = {-1,  -1  }
    };
    struct failure f = {STAGE_NONE, 0, ""};

    prctl(PR_SET_NAME, "sy-template", 0, 0, 0);
    if (!template_prepare(&t, y, start->policy_fd, &f)) {
        (void)send_report(t.channel_fd, &f, no_fds);
        _exit(1);
    }
    /* Nobody looks into us or our keepers, whoever they run as. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

    SY_FD diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    const int fds[LAUNCH_FDS] = {open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), diag, t.proxy_fds[0],
                                 t.proxy_fds[1]};

    if (send_report(t.channel_fd, &f, fds)) {
        fd_close(&diag);
        fd_close(&t.proxy_fds[0]);
        fd_close(&t.proxy_fds[1]);
        serve(&t);
    }
    _exit(0);
}
