/* Making a keeper ready, and giving it a command. */
#include "process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/keeper_spec.h"
#include "sandbox/linux/raw_syscall.h"

/* One cached stack: most engines run one command at a time, and its pages are
 * then mapped already. The first is of our own memory, which needs no page tables
 * more; it always comes back here. */
static pthread_mutex_t stack_lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) char first_stack[KEEPER_STACK];
static void *spare_stack = first_stack;

static atomic_uint_fast64_t next_id = 1;

static void *
stack_get(void)
{
    pthread_mutex_lock(&stack_lock);

    void *stack = spare_stack;

    spare_stack = NULL;
    pthread_mutex_unlock(&stack_lock);
    if (stack != NULL) {
        return stack;
    }
    stack = mmap(NULL, KEEPER_STACK, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    return stack == MAP_FAILED ? NULL : stack;
}

void
process_stack_put(void *stack)
{
    void *surplus = stack;

    pthread_mutex_lock(&stack_lock);
    if (stack == first_stack || spare_stack == NULL) {
        surplus = spare_stack;
        spare_stack = stack;
    }
    pthread_mutex_unlock(&stack_lock);
    if (surplus != NULL) {
        munmap(surplus, KEEPER_STACK);
    }
}

/* Text as far as its first line goes, as shells tell it: a program for another machine is none. It
 * is asked here since the command's process can't open a file that its filter asks about. What lies
 * where systems keep their programs, or can't be read, is left to the kernel. */
static bool
may_be_script(const char *program)
{
    char head[128];

    if (path_is_below(program, "/usr") || path_is_below(program, "/bin")) {
        return true;
    }

    SY_FD fd = open(program, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : -1;

    for (ssize_t i = 0; i < n && head[i] != '\n'; i++) {
        if (head[i] == '\0') {
            return false;
        }
    }
    return true;
}

/* argv of a script without "#!", as execvp(3) builds it; empty where it can be none. */
static char **
script_argv_new(const struct exec_env *env)
{
    size_t n = 0;

    while (env->argv[n] != NULL) {
        n++;
    }

    char **argv = mem_alloc((n + 3) * sizeof(char *));

    if (argv == NULL) {
        return NULL;
    }
    argv[0] = may_be_script(env->program) ? mem_unconst("/bin/sh") : NULL;
    argv[1] = mem_unconst(env->program);
    for (size_t i = 1; i <= n; i++) {
        argv[i + 1] = env->argv[i];
    }
    argv[n > 0 ? n + 1 : 2] = NULL;
    return argv;
}

/* The standard descriptor that it has for a command; -1: none. */
static int
given(const struct process_way *way, int fd)
{
    return way->stdio != NULL ? way->stdio[fd] : -1;
}

static enum sy_code
open_pipes(struct process *p, const struct process_way *way, int ret_write[STREAM_COUNT],
           int *ret_keeper_end, struct sy_error *err)
{
    int pair[2];

    for (int s = 0; s < STREAM_COUNT; s++) {
        if (given(way, 1 + s) >= 0 || way->has_terminal) {
            continue;
        }

        enum sy_code rc = fd_pipe(&p->read_fd[s], &ret_write[s], err);

        if (rc == SY_E_OK) {
            rc = fd_set_nonblock(p->read_fd[s], err);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return sy_err_sys(err, errno, "making the keeper's channel");
    }
    p->channel_fd = pair[0];
    *ret_keeper_end = pair[1];
    return SY_E_OK;
}

static enum sy_code
clone_keeper(struct process *p, struct template *t, struct sy_error *err)
{
    if (t != NULL && template_is_remote(t)) {
        if (!template_make_keeper(t, &p->job, NULL)) {
            return SY_E_NOTFOUND;
        }
        p->template = template_ref(t);
        p->is_remote = true;
        p->job.is_remote = true;
        return SY_E_OK;
    }

    void *stack_top = (char *)p->stack + KEEPER_STACK;

    if (t != NULL) {
        if (!template_make_keeper(t, &p->job, stack_top)) {
            return SY_E_NOTFOUND;
        }
        p->template = template_ref(t);
        p->is_of_template = true;
        return SY_E_OK;
    }

    pid_t pid = keeper_start(&p->job, stack_top);

    if (pid < 0) {
        return sy_err_sys(err, errno, "starting a process");
    }
    p->keeper_pid = pid;
    return SY_E_OK;
}

static enum sy_code
start_keeper(struct process *p, const struct sandbox_base *base, const struct process_way *way,
             struct sy_error *err)
{
    SY_FD out = -1;
    SY_FD errfd = -1;
    SY_FD keeper_end = -1;
    int write_fd[STREAM_COUNT] = {-1, -1};
    enum sy_code rc = open_pipes(p, way, write_fd, &keeper_end, err);

    out = write_fd[STREAM_STDOUT];
    errfd = write_fd[STREAM_STDERR];
    if (rc != SY_E_OK) {
        return rc;
    }
    if (way->template == NULL || !template_is_remote(way->template)) {
        p->stack = stack_get();
        if (p->stack == NULL) {
            return sy_err_nomem(err);
        }
    }
    p->job = (struct keeper_job){
        .base = base != NULL ? *base : (struct sandbox_base){0},
        .starts_with_base = base != NULL,
        .in_fd = given(way, 0),
        .out_fd = out >= 0 ? out : given(way, 1),
        .err_fd = errfd >= 0 ? errfd : given(way, 2),
        .channel_fd = keeper_end,
        .engine_pid = getpid(),
        .engine_fd = -1,
        .ruleset_fd = -1,
        .listener_fd = -1,
    };
    p->job.has_terminal = way->has_terminal;
    p->has_terminal = way->has_terminal;
    p->knows_base = base != NULL;
    return clone_keeper(p, way->template, err);
}

enum sy_code
process_prepare_by(struct process **ret, const struct sandbox_base *base,
                   const struct process_way *way, struct sy_error *err)
{
    struct process *p = mem_alloc_zero(1, sizeof(*p));

    if (p == NULL) {
        (void)sy_err_nomem(err);
        return SY_E_NOMEM;
    }
    p->id = atomic_fetch_add(&next_id, 1);
    p->channel_fd = -1;
    p->listener_fd = -1;
    p->past_listener_fd = -1;
    p->read_fd[STREAM_STDOUT] = -1;
    p->read_fd[STREAM_STDERR] = -1;
    p->write_fd = -1;
    p->unwritten.max = LIMIT_INPUT_PENDING;
    p->linger_ns = UINT64_MAX;
    p->look_ns = UINT64_MAX;
    p->rest_ns = UINT64_MAX;
    p->rules_ns = UINT64_MAX;
    p->terminal_due_ns = UINT64_MAX;

    enum sy_code rc = start_keeper(p, base, way, err);

    if (rc != SY_E_OK) {
        process_free(p);
        return rc;
    }
    *ret = p;
    return SY_E_OK;
}

enum sy_code
process_prepare(struct process **ret, const struct sandbox_base *base, struct sy_error *err)
{
    return process_prepare_by(ret, base, &(const struct process_way){0}, err);
}

enum sy_code
process_was_killed(struct sy_error *err)
{
    return sy_err_set(err, SY_E_SANDBOX,
                      "the sandbox's process was killed just now: call once more");
}

enum sy_code
process_prepare_in(struct process **ret, const struct sandbox_base *base, const int stdio[3],
                   bool has_terminal, struct sy_error *err)
{
    const struct process_way way = {
        .template = base != NULL ? base->template : NULL,
        .stdio = stdio,
        .has_terminal = has_terminal,
    };
    enum sy_code rc = process_prepare_by(ret, base, &way, err);

    return rc == SY_E_NOTFOUND && way.template != NULL ? process_was_killed(err) : rc;
}

enum sy_code
process_prepare_on(struct process **ret, const struct sandbox_base *base, const int stdio[3],
                   struct sy_error *err)
{
    return process_prepare_in(ret, base, stdio, false, err);
}

bool
process_is_prepared(struct process *p, const struct sandbox_base *base)
{
    char byte = 0;

    if (p->is_remote) {
        process_take_birth(p);
    }
    /* A keeper that waits has nothing to say; one that is gone has ended the
     * channel. */
    return !p->has_gone && (base == NULL || (base->template != NULL) == p->is_remote) &&
           (!p->knows_base || base == NULL || sandbox_base_equal(&p->job.base, base)) &&
           recv(p->channel_fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

void
process_give_way(struct process *p)
{
    struct keeper_job *job = &p->job;
    unsigned long others[KEEPER_CPUS / 64];
    unsigned long any = 0;
    unsigned cpu = 0;

    if (p->keeper_pid <= 0 || p->has_gone || job->has_begun ||
        sy_raw3(SYS_getcpu, sy_raw_ptr(&cpu), 0, 0) < 0 || cpu >= KEEPER_CPUS) {
        return;
    }

    long bytes = sy_raw3(SYS_sched_getaffinity, 0, sizeof(job->cpus), sy_raw_ptr(job->cpus));

    if (bytes <= 0) {
        return;
    }
    memcpy(others, job->cpus, (size_t)bytes);
    others[cpu / 64] &= ~(1UL << cpu % 64);
    for (size_t i = 0; i < (size_t)bytes / sizeof(others[0]); i++) {
        any |= others[i];
    }
    if (any != 0) {
        job->cpus_bytes = (size_t)bytes;
        (void)sy_raw3(SYS_sched_setaffinity, p->keeper_pid, bytes, sy_raw_ptr(others));
    }
}

void
process_set_base(struct process *p, const struct sandbox_base *base)
{
    const struct keeper_order order = {.kind = KEEPER_BASE};

    if (p->knows_base) {
        return;
    }
    p->job.base = *base;
    p->knows_base = true;
    /* Lost with a keeper that is gone, which process_go will find. */
    (void)send(p->channel_fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The order to execute, with the ruleset (a remote one: the command) and the ways into control
 * groups. A keeper that is gone needs none: its last word, or the end of the channel, tells what
 * happened. */
static enum sy_code
send_go(const struct process *p, int first_fd, struct sy_error *err)
{
    struct keeper_order order = {.kind = KEEPER_GO};
    struct iovec part = {.iov_base = &order, .iov_len = sizeof(order)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * KEEPER_GO_FDS)];
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int fds[KEEPER_GO_FDS] = {first_fd};
    size_t n = first_fd >= 0 ? 1 : 0;

    if (p->cgroup != NULL) {
        n += cgroup_entrances(p->cgroup, fds + n);
    }
    if (n > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n);
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * n);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n);
    }
    if (sendmsg(p->channel_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE &&
        errno != ECONNRESET) {
        return sy_err_sys(err, errno, "telling the keeper to start '%s'", p->job.program);
    }
    return SY_E_OK;
}

/*
 * Of a template: the listener of its filter is everybody's; each process has a
 * descriptor of its own, so that whoever is looked after answers. Where the
 * template never came under its filter, that is what kept the command from
 * running.
 */
static enum sy_code
leave_template(struct process *p, struct sy_error *err)
{
    SY_AUTO(template_unrefp) struct template *t = p->template;
    enum sandbox_stage stage = STAGE_NONE;
    int listener_fd = -1;
    int sys = 0;

    p->template = NULL;
    if (t == NULL) {
        return SY_E_OK;
    }
    if (!template_await(t, &listener_fd, &stage, &sys)) {
        p->job.stage = stage;
        p->job.sys = sys;
        return SY_E_OK;
    }
    p->has_template_listener = listener_fd >= 0;
    p->template_number = template_number(t);
    if (listener_fd >= 0 && !(p->has_terminal && process_pool_listens(p))) {
        p->listener_fd = fcntl(listener_fd, F_DUPFD_CLOEXEC, 0);
        if (p->listener_fd < 0) {
            return sy_err_sys(err, errno, "a descriptor of the connect(2) listener");
        }
    }
    return SY_E_OK;
}

static enum sy_code
go_remote(struct process *p, struct sy_error *err)
{
    SY_FD spec = -1;

    enum sy_code rc = keeper_spec_new(&spec, &p->job, err);

    return rc == SY_E_OK ? send_go(p, spec, err) : rc;
}

struct sandbox_base
process_base(const struct exec_env *env)
{
    struct sandbox_base base = sandbox_ready_base(env->sandbox);

    base.template = env->template;
    return base;
}

/*
 * The rules for its files. One with a terminal may open that by its name too, as what writes to
 * /dev/stdout does: each such command has a ruleset of its own, since no other's terminal is in it.
 */
static enum sy_code
make_own_rules(int *ret_fd, struct process *p, const struct exec_env *env, struct sy_error *err)
{
    SY_FD terminal = ioctl(p->read_fd[STREAM_STDOUT], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    bool keeps = false;

    if (terminal < 0) {
        return sy_err_sys(err, errno, "the other end of a pseudo terminal");
    }

    enum sy_code rc =
        sandbox_ready_for_terminal(ret_fd, &keeps, env->sandbox, env->plan, terminal, err);

    if (keeps) {
        p->rules = env->sandbox;
        p->rules_ns = sandbox_ready_rest(p->rules, p->started_ns);
    }
    return rc;
}

static enum sy_code
go_near(struct process *p, const struct exec_env *env, struct sy_error *err)
{
    int ruleset_fd = env->sandbox != NULL ? sandbox_ready_fd(env->sandbox) : -1;
    SY_FD own = -1;
    enum sy_code rc = SY_E_OK;

    p->job.has_ruleset = ruleset_fd >= 0;
    if (ruleset_fd >= 0 && p->has_terminal && env->plan != NULL) {
        rc = make_own_rules(&own, p, env, err);
    }
    if (rc == SY_E_OK) {
        rc = leave_template(p, err);
    }
    return rc == SY_E_OK ? send_go(p, own >= 0 ? own : ruleset_fd, err) : rc;
}

enum sy_code
process_go(struct process *p, const struct exec_env *env, struct output_chain *chain,
           struct sy_error *err)
{
    const struct sandbox_base base = process_base(env);

    if (!p->knows_base) {
        p->job.base = base;
        p->knows_base = true;
    }
    /* What it was made ready for is what it gets, or a command would run outside. */
    SY_ASSERT(!p->has_gone && p->terminal_due_ns == UINT64_MAX &&
              sandbox_base_equal(&p->job.base, &base) && p->is_remote == (base.template != NULL));
    p->script_argv = script_argv_new(env);
    if (p->script_argv == NULL) {
        return sy_err_nomem(err);
    }
    p->chain = chain;
    p->job.program = env->program;
    p->plan = env->plan;
    p->held = env->held;
    p->held_arg = env->held_arg;
    p->job.argv = env->argv;
    p->job.script_argv = p->script_argv;
    p->job.envp = env->envp;
    p->job.cwd = env->cwd;
    p->started_ns = clock_mono_ns();
    p->has_gone = true;
    p->gate = env->gate;

    enum sy_code rc = process_limits_begin(p, env, err);

    if (rc == SY_E_OK && p->is_remote) {
        return go_remote(p, err);
    }
    return rc == SY_E_OK ? go_near(p, env, err) : rc;
}

enum sy_code
process_start(struct process **ret, const struct exec_env *env, struct output_chain *chain,
              struct sy_error *err)
{
    const struct sandbox_base base = process_base(env);
    struct process *p = NULL;

    const struct process_way way = {.template = env->template};
    enum sy_code rc = process_prepare_by(&p, &base, &way, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = process_go(p, env, chain, err);
    if (rc != SY_E_OK) {
        process_free(p);
        return rc;
    }
    *ret = p;
    return SY_E_OK;
}
