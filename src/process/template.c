#include "process/template.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "process/keeper_internal.h"
#include "process/launch_wire.h"
#include "process/template_internal.h"
#include "sandbox/linux/raw_syscall.h"

/* What keepers need of us: standard output and error, and their channel. */
#define JOB_FDS 3
/* And, of a remote one, a standard input. */
#define REMOTE_FDS LAUNCH_KEEPER_FDS

struct template
{
    /* Set before the start, only read by the task. */
    struct sandbox_base base;
    int task_channel_fd;
    pid_t engine_pid;
    /* Ours. */
    void *stack;
    pid_t pid;
    int channel_fd;
    int listener_fd;
    unsigned refs;
    uint64_t number;
    bool is_remote;             /* a process of its own, made by the launcher */
    int fds[LAUNCH_REPORT_FDS]; /* remote: what it sent; LAUNCH_DIAG_FD -1: its network is ours */
    bool has_told;              /* what follows */
    int watch_fd;               /* remote: template_watch_fd; -1: none */
    enum sandbox_stage stage;
    int sys;
};

struct template_order {
    struct keeper_job *job;
    void *stack_top;
};

struct template_report {
    int32_t stage; /* STAGE_NONE: it is under the filter */
    int32_t sys;
};

/* A message with descriptors, either way. */
struct fd_message {
    struct iovec part;
    struct msghdr message;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * REMOTE_FDS)];
};

RAW_CODE static void
fd_message_init(struct fd_message *m, void *bytes, size_t n, size_t fds)
{
    m->part.iov_base = bytes;
    m->part.iov_len = n;
    m->message.msg_name = NULL;
    m->message.msg_namelen = 0;
    m->message.msg_iov = &m->part;
    m->message.msg_iovlen = 1;
    m->message.msg_flags = 0;
    m->message.msg_control = fds > 0 ? m->control : NULL;
    m->message.msg_controllen = fds > 0 ? CMSG_SPACE(sizeof(int) * fds) : 0;

    struct cmsghdr *header = (void *)m->control;

    header->cmsg_len = CMSG_LEN(sizeof(int) * fds);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
}

RAW_CODE static int *
fd_message_fds(struct fd_message *m)
{
    return (int *)(void *)CMSG_DATA((struct cmsghdr *)(void *)m->control);
}

RAW_CODE static void
tell_up(enum sandbox_stage stage, int sys, int listener_fd)
{
    struct template_report report = {.stage = (int32_t)stage, .sys = sys};
    struct fd_message m;

    fd_message_init(&m, &report, sizeof(report), listener_fd >= 0 ? 1 : 0);
    if (listener_fd >= 0) {
        *fd_message_fds(&m) = listener_fd;
    }
    sy_raw3(SYS_sendmsg, KEEPER_CHANNEL_FD, (long)&m.message, MSG_NOSIGNAL);
}

/* A sibling of ours under our filter: a child of the engine, which waits for it. */
RAW_CODE static void
make_keeper(const struct template_order *order, const int *fds)
{
    struct keeper_job *job = order->job;

    job->out_fd = fds[0];
    job->err_fd = fds[1];
    job->channel_fd = fds[2];
    job->in_fd = job->has_terminal ? fds[0] : -1;

    long pid = sy_raw_spawn(SYS_clone, CLONE_VM | CLONE_PARENT | CLONE_PARENT_SETTID,
                            (long)order->stack_top, (long)&job->keeper_pid, keeper_main, job);

    if (pid < 0) {
        job->stage = STAGE_CLONE;
        job->sys = (int)-pid;
    }
    for (int i = 0; i < JOB_FDS; i++) {
        sy_raw1(SYS_close, fds[i]);
    }
}

/* Sleeps until there is an order. False: the engine is gone, or wants no more. */
RAW_CODE static bool
take_order(bool has_engine_fd)
{
    struct pollfd fds[2] = {
        {.fd = KEEPER_CHANNEL_FD,                     .events = POLLIN},
        {.fd = has_engine_fd ? KEEPER_ENGINE_FD : -1, .events = POLLIN},
    };
    struct template_order order = {NULL, NULL};
    struct fd_message m;

    sy_raw5(SYS_ppoll, (long)fds, 2, 0, 0, 0);
    if ((fds[1].revents & POLLIN) != 0) {
        return false;
    }
    fd_message_init(&m, &order, sizeof(order), JOB_FDS);

    long got =
        sy_raw3(SYS_recvmsg, KEEPER_CHANNEL_FD, (long)&m.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got == -EAGAIN || got == -EINTR) {
        return true;
    }
    if (got != (long)sizeof(order) || order.job == NULL ||
        m.message.msg_controllen < CMSG_LEN(sizeof(int) * JOB_FDS)) {
        return false;
    }
    make_keeper(&order, fd_message_fds(&m));
    return true;
}

RAW_CODE static int
template_main(void *arg)
{
    const struct template *t = arg;
    enum sandbox_stage stage = STAGE_NONE;
    volatile int listener_fd = -1;
    int channel = keeper_lift(t->task_channel_fd);
    int engine = keeper_lift((int)sy_raw2(SYS_pidfd_open, t->engine_pid, 0));

    sy_raw5(SYS_prctl, PR_SET_NAME, (long)"sy-template", 0, 0, 0);
    keeper_reset_signals(); /* once for all that come of it */
    sy_raw3(SYS_dup3, channel, KEEPER_CHANNEL_FD, O_CLOEXEC);
    if (engine >= 0) {
        sy_raw3(SYS_dup3, engine, KEEPER_ENGINE_FD, O_CLOEXEC);
    } else {
        sy_raw1(SYS_close, KEEPER_ENGINE_FD);
    }
    keeper_close_span(0, KEEPER_CHANNEL_FD - 1);
    keeper_close_span(KEEPER_ENGINE_FD + 1, ~0U);

    int sys = sandbox_apply_base(&t->base, &listener_fd, &stage);

    tell_up(stage, sys, listener_fd);
    if (listener_fd >= 0) {
        sy_raw1(SYS_close, listener_fd);
    }
    while (sys == 0 && take_order(engine >= 0)) {
    }
    return 0;
}

static atomic_uint_fast64_t next_number = 1;

static enum sy_code
start(struct template *t, struct sy_error *err)
{
    int pair[2];

    t->stack = mmap(NULL, KEEPER_STACK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (t->stack == MAP_FAILED) {
        t->stack = NULL;
        return sy_err_nomem(err);
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return sy_err_sys(err, errno, "making a template's channel");
    }
    t->channel_fd = pair[0];
    t->task_channel_fd = pair[1];
    t->engine_pid = getpid();
    t->pid = keeper_start_task(template_main, t, (char *)t->stack + KEEPER_STACK);

    int saved = errno;

    fd_close(&pair[1]);
    return t->pid > 0 ? SY_E_OK : sy_err_sys(err, saved, "starting a template");
}

enum sy_code
template_start(struct template **ret, const struct sandbox_base *base, struct sy_error *err)
{
    struct template *t = mem_alloc_zero(1, sizeof(*t));

    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->refs = 1;
    t->number = atomic_fetch_add(&next_number, 1);
    t->base = *base;
    t->channel_fd = -1;
    t->listener_fd = -1;
    for (size_t i = 0; i < LAUNCH_REPORT_FDS; i++) {
        t->fds[i] = -1;
    }
    t->watch_fd = -1;

    enum sy_code rc = start(t, err);

    if (rc != SY_E_OK) {
        template_unref(t);
        return rc;
    }
    *ret = t;
    return SY_E_OK;
}

enum sy_code
template_new_remote(struct template **ret, int *channel_fd, int fds[LAUNCH_REPORT_FDS],
                    struct sy_error *err)
{
    struct template *t = mem_alloc_zero(1, sizeof(*t));

    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->refs = 1;
    t->engine_pid = getpid();
    t->is_remote = true;
    t->has_told = true;
    t->channel_fd = fd_take(channel_fd);
    for (size_t i = 0; i < LAUNCH_REPORT_FDS; i++) {
        t->fds[i] = fd_take(&fds[i]);
    }
    t->listener_fd = -1;
    t->watch_fd = -1;
    *ret = t;
    return SY_E_OK;
}

int
template_watch_fd(const struct template *t)
{
    return t->watch_fd;
}

void
template_set_watch(struct template *t, int fd)
{
    fd_close(&t->watch_fd);
    t->watch_fd = fd;
}

bool
template_is_remote(const struct template *t)
{
    return t->is_remote;
}

int
template_diag_fd(const struct template *t)
{
    return t->fds[LAUNCH_DIAG_FD];
}

void
template_take_proxy(struct template *t, int *ret_http_fd, int *ret_socks_fd)
{
    *ret_http_fd = fd_take(&t->fds[LAUNCH_HTTP_FD]);
    *ret_socks_fd = fd_take(&t->fds[LAUNCH_SOCKS_FD]);
}

int
template_top_fd(const struct template *t)
{
    return t->fds[LAUNCH_TOP_FD];
}

bool
template_is_there(const struct template *t)
{
    char byte = 0;

    return recv(t->channel_fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int
template_channel_fd(const struct template *t)
{
    return t->channel_fd;
}

static bool
send_order(const struct template *t, enum launch_order_kind kind, int fd)
{
    struct launch_order order = {.kind = (int32_t)kind};
    struct fd_message m;

    fd_message_init(&m, &order, sizeof(order), 1);
    *fd_message_fds(&m) = fd;
    return sendmsg(t->channel_fd, &m.message, MSG_NOSIGNAL) == (ssize_t)sizeof(order);
}

bool
template_send_marks(struct template *t, int marks_fd)
{
    return send_order(t, LAUNCH_MARKS, marks_fd);
}

bool
template_send_hold(struct template *t, int fd)
{
    return send_order(t, LAUNCH_HOLD, fd);
}

static bool
order_remote(const struct template *t, const struct keeper_job *job)
{
    struct launch_order order = {.kind = job->has_terminal ? LAUNCH_TERMINAL : LAUNCH_KEEPER};
    const int plain[REMOTE_FDS] = {job->out_fd, job->err_fd, job->channel_fd, job->in_fd};
    const int *fds = job->has_terminal ? &job->channel_fd : plain;
    const size_t n = job->has_terminal ? 1 : job->in_fd >= 0 ? REMOTE_FDS : JOB_FDS;
    struct fd_message m;

    fd_message_init(&m, &order, sizeof(order), n);
    memcpy(fd_message_fds(&m), fds, sizeof(int) * n);
    return sendmsg(t->channel_fd, &m.message, MSG_NOSIGNAL) == (ssize_t)sizeof(order);
}

bool
template_make_keeper(struct template *t, struct keeper_job *job, void *stack_top)
{
    struct template_order order = {.job = job, .stack_top = stack_top};
    struct fd_message m;

    if (t->is_remote) {
        return order_remote(t, job);
    }
    fd_message_init(&m, &order, sizeof(order), JOB_FDS);

    int fds[JOB_FDS] = {job->out_fd, job->err_fd, job->channel_fd};

    memcpy(fd_message_fds(&m), fds, sizeof(fds));
    job->has_base = true;
    return sendmsg(t->channel_fd, &m.message, MSG_NOSIGNAL) == (ssize_t)sizeof(order);
}

/* The task's one report. */
static void
take_report(struct template *t)
{
    struct template_report report;
    struct fd_message m;

    fd_message_init(&m, &report, sizeof(report), 1);

    ssize_t got = fd_receive(t->channel_fd, &m.message, MSG_CMSG_CLOEXEC);

    t->has_told = true;
    if (got != (ssize_t)sizeof(report)) {
        t->stage = STAGE_KEEPER; /* killed before */
        t->sys = ECHILD;
        return;
    }
    t->stage = (enum sandbox_stage)report.stage;
    t->sys = report.sys;
    if (m.message.msg_controllen >= CMSG_LEN(sizeof(int))) {
        t->listener_fd = *fd_message_fds(&m);
    }
}

bool
template_await(struct template *t, int *ret_fd, enum sandbox_stage *ret_stage, int *ret_sys)
{
    if (!t->has_told) {
        take_report(t);
    }
    *ret_fd = t->listener_fd;
    *ret_stage = t->stage;
    *ret_sys = t->sys;
    return t->stage == STAGE_NONE;
}

uint64_t
template_number(const struct template *t)
{
    return t->number;
}

const struct sandbox_base *
template_base(const struct template *t)
{
    return &t->base;
}

struct template *
template_ref(struct template *t)
{
    t->refs++;
    return t;
}

void
template_unref(struct template *t)
{
    if (t == NULL || --t->refs > 0) {
        return;
    }
    /* A child that the host program has forked since holds it too. */
    if (t->channel_fd >= 0 && t->engine_pid == getpid()) {
        (void)shutdown(t->channel_fd, SHUT_RDWR);
    }
    fd_close(&t->channel_fd);
    fd_close(&t->listener_fd);
    for (size_t i = 0; i < LAUNCH_REPORT_FDS; i++) {
        fd_close(&t->fds[i]);
    }
    fd_close(&t->watch_fd);
    while (t->pid > 0 && waitpid(t->pid, NULL, __WALL) < 0 && errno == EINTR) {
    }
    if (t->stack != NULL) {
        munmap(t->stack, KEEPER_STACK);
    }
    mem_free(t);
}
