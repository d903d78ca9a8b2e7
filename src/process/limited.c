#include "process/limited.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/openat2.h>

#include "base/clock.h"
#include "base/fd.h"
#include "process/keeper_internal.h" /* RAW_CODE: the helper runs in our memory too */
#include "process/limited_call.h"
#include "process/worker.h"
#include "sandbox/linux/raw_syscall.h"

#ifndef RESOLVE_CACHED
#    define RESOLVE_CACHED 0x20
#endif

/* A helper that sleeps where no signal reaches it keeps its slot: with all of
 * them gone the calls are refused, the engine goes on. */
#define SLOTS      8
#define STACK_SIZE ((size_t)16 * 1024)
#define KILL_MS    50
#define NS_PER_MS  1000000ULL
#define NS_PER_S   1000000000ULL

struct slot {
    char *stack;
    volatile long result;
    pid_t pid; /* not waited for yet; 0: none */
    pid_t engine;
    bool is_taken;
    bool has_user; /* it is to be this one */
    struct limited_user user;
    atomic_uint_fast64_t begun_ns; /* 0: not yet */
    atomic_bool is_done;
    struct limited_call call;
};

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots[SLOTS]; /* mapped when they are first needed, for ever */

RAW_CODE static int
helper_main(void *arg)
{
    struct slot *s = arg;

    /* Our memory would live on for as long as it waits. */
    sy_raw5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (sy_raw0(SYS_getppid) != s->engine) {
        return 1;
    }
    /* These calls change the helper alone: the C library is what does it for all threads. */
    if (s->has_user && (sy_raw2(SYS_setgroups, 0, 0) != 0 ||
                        sy_raw3(SYS_setresgid, s->user.gid, s->user.gid, s->user.gid) != 0 ||
                        sy_raw3(SYS_setresuid, s->user.uid, s->user.uid, s->user.uid) != 0)) {
        return 1;
    }

    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    struct timespec now = {0};

    if (sy_raw2(SYS_capset, sy_raw_ptr(&header), sy_raw_ptr(none)) != 0 ||
        sy_raw2(SYS_clock_gettime, CLOCK_MONOTONIC, sy_raw_ptr(&now)) != 0) {
        return 1;
    }
    s->begun_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
    s->result = sy_raw6(s->call.nr, s->call.args[0], s->call.args[1], s->call.args[2],
                        s->call.args[3], s->call.args[4], 0);
    s->is_done = true;
    return 0;
}

static void
reap(struct slot *s, int flags)
{
    pid_t got = 0;

    while (s->pid > 0 && (got = waitpid(s->pid, NULL, __WALL | flags)) < 0 && errno == EINTR) {
    }
    if (got != 0) { /* ECHILD too: somebody else has waited for it */
        s->pid = 0;
    }
}

/* With its stack behind it; NULL: no memory. */
static struct slot *
slot_map(void)
{
    const size_t room = (sizeof(struct slot) + 63) & ~(size_t)63;
    char *bytes = mmap(NULL, room + STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    struct slot *s = (struct slot *)(void *)bytes;

    if (bytes == MAP_FAILED) {
        return NULL;
    }
    s->stack = bytes + room;
    return s;
}

static struct slot *
slot_take(void)
{
    struct slot *found = NULL;

    pthread_mutex_lock(&slots_lock);
    for (size_t i = 0; i < SLOTS && found == NULL; i++) {
        if (slots[i] == NULL) {
            slots[i] = slot_map();
            found = slots[i];
            break; /* those behind it are not there either */
        }
        if (!slots[i]->is_taken) {
            reap(slots[i], WNOHANG);
        }
        found = slots[i]->is_taken || slots[i]->pid != 0 ? NULL : slots[i];
    }
    if (found != NULL) {
        found->is_taken = true;
    }
    pthread_mutex_unlock(&slots_lock);
    return found;
}

static void
slot_give_back(struct slot *s)
{
    pthread_mutex_lock(&slots_lock);
    s->is_taken = false;
    pthread_mutex_unlock(&slots_lock);
}

/* Waits for the end of the helper. */
static bool
has_ended(int pidfd, int timeout_ms)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    uint64_t until = clock_mono_ns() + (unsigned)timeout_ms * NS_PER_MS;

    for (;;) {
        uint64_t now = clock_mono_ns();
        int left = now < until ? (int)((until - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
        int rc = poll(&end, 1, left);

        if (rc != 0 && !(rc < 0 && errno == EINTR)) {
            return rc > 0;
        }
        if (left == 0) {
            return false;
        }
    }
}

/* Waits for it as long as the call may take. */
static bool
has_ended_in_time(const struct slot *s, int pidfd, int timeout_ms)
{
    const uint64_t limit_ns = (unsigned)timeout_ms * NS_PER_MS;
    const uint64_t asked_ns = clock_mono_ns();

    for (;;) {
        const uint64_t wait_ns = limited_wait_ns(asked_ns, s->begun_ns, limit_ns, clock_mono_ns());

        if (has_ended(pidfd, (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS))) {
            return true;
        }
        if (wait_ns == 0) {
            return false;
        }
    }
}

/* Makes the call that the slot describes. Returns what the kernel returned. */
static long
make_call(struct slot *s, int timeout_ms)
{
    SY_FD pidfd = -1;
    sigset_t all;
    sigset_t before;

    s->engine = getpid();
    s->begun_ns = 0;
    s->is_done = false;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return -EAGAIN;
    }

    /* No exit signal: a host program's SIGCHLD handling never meets it. */
    pid_t pid =
        clone(helper_main, s->stack + STACK_SIZE, CLONE_VM | CLONE_FILES | CLONE_PIDFD, s, &pidfd);
    int sys = errno;

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        pidfd = -1;
        return -sys;
    }
    s->pid = pid;

    if (has_ended_in_time(s, pidfd, timeout_ms)) {
        reap(s, 0);
    } else {
        /* Not reaped, so the number is still its own. */
        kill(pid, SIGKILL);
        if (has_ended(pidfd, KILL_MS)) {
            reap(s, 0);
        }
    }
    if (s->pid != 0) {
        return -ETIMEDOUT;
    }
    return s->is_done ? s->result : -ETIMEDOUT;
}

static bool
has_effective(const struct __user_cap_data_struct *data)
{
    return (data[0].effective | data[1].effective) != 0;
}

/*
 * A walk through names that the kernel has at hand waits for nobody, so it needs no helper; without
 * capabilities, as that would have none: they are this thread's own, and it gets back what it had.
 * True: it was answered, by a descriptor or by the errno of what is not there.
 */
static bool
opens_at_once(int dir_fd, const char *path, uint64_t resolve, int *ret_fd, int *ret_sys)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct ours[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve | RESOLVE_CACHED};

    if (syscall(SYS_capget, &header, ours) != 0) {
        return false;
    }

    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {ours[0], ours[1]};
    const bool had = has_effective(ours);

    none[0].effective = 0;
    none[1].effective = 0;
    if (had && syscall(SYS_capset, &header, none) != 0) {
        return false;
    }

    long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
    int sys = fd < 0 ? errno : 0;

    /* What is permitted may always be made effective (capabilities(7)). */
    const bool is_back = !had || syscall(SYS_capset, &header, ours) == 0;

    SY_ASSERT(is_back);
    if (fd >= 0) {
        *ret_fd = (int)fd;
    }
    *ret_sys = sys;
    /* EAGAIN: it is not at hand. Others may come of a kernel that knows no such walk (before 5.12).
     */
    return fd >= 0 || sys == ENOENT;
}

/* A call on these bytes; NULL: they are too many, or no thread is to be had. */
static struct limited_call *
call_for(const void *bytes, size_t n)
{
    struct limited_call *c = n <= LIMITED_CALL_BYTES ? worker_take(false) : NULL;

    if (c != NULL) {
        memcpy(c->bytes, bytes, n);
    }
    return c;
}

/* The same for a helper, as a user (NULL: ours), which a thread could not take back. */
static struct slot *
slot_for(const struct limited_user *who, const void *bytes, size_t n)
{
    struct slot *s = n <= LIMITED_CALL_BYTES ? slot_take() : NULL;

    if (s != NULL) {
        memcpy(s->call.bytes, bytes, n);
        s->has_user = who != NULL;
        s->user = who != NULL ? *who : (struct limited_user){0};
    }
    return s;
}

/* Makes the call that a thread was taken for, and gives it back. */
static long
make_by_worker(struct limited_call *c, int timeout_ms)
{
    long ret = 0;

    if (!worker_call(c, timeout_ms, &ret)) {
        return -ETIMEDOUT;
    }
    worker_give_back(c);
    return ret;
}

static long
make_by_slot(struct slot *s, int timeout_ms)
{
    long ret = make_call(s, timeout_ms);

    slot_give_back(s);
    return ret;
}

static void
describe_open(struct limited_call *c, int dir_fd, uint64_t resolve)
{
    c->how = (struct open_how){.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
    c->returns_fd = true;
    c->nr = SYS_openat2;
    c->args[0] = dir_fd;
    c->args[1] = sy_raw_ptr(c->bytes);
    c->args[2] = sy_raw_ptr(&c->how);
    c->args[3] = sizeof(c->how);
}

/* AT_EACCESS: by the rights that it is asked with, not by those of user 0. */
static void
describe_access(struct limited_call *c, int how)
{
    c->nr = SYS_faccessat2;
    c->args[0] = AT_FDCWD;
    c->args[1] = sy_raw_ptr(c->bytes);
    c->args[2] = how;
    c->args[3] = AT_EACCESS;
}

static int
open_limited(int dir_fd, const char *path, uint64_t resolve, const struct limited_user *who,
             int *ret_fd, int timeout_ms)
{
    const size_t n = strlen(path) + 1;
    long fd = -EBUSY;
    int sys = 0;

    if (who == NULL && opens_at_once(dir_fd, path, resolve, ret_fd, &sys)) {
        return sys;
    }
    if (who == NULL) {
        struct limited_call *c = call_for(path, n);

        if (c != NULL) {
            describe_open(c, dir_fd, resolve);
            fd = make_by_worker(c, timeout_ms);
        }
    } else {
        struct slot *s = slot_for(who, path, n);

        if (s != NULL) {
            describe_open(&s->call, dir_fd, resolve);
            fd = make_by_slot(s, timeout_ms);
        }
    }
    if (fd >= 0) {
        *ret_fd = (int)fd;
    }
    return fd >= 0 ? 0 : (int)-fd;
}

const struct limited_user *
limited_user_of(pid_t tid, struct limited_user *room)
{
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)tid);
    if (geteuid() != 0 || stat(path, &st) != 0 || st.st_uid == 0) {
        return NULL;
    }
    *room = (struct limited_user){.uid = st.st_uid, .gid = st.st_gid};
    return room;
}

int
limited_read(pid_t tid, uintptr_t there, void *ret, size_t n, int timeout_ms)
{
    struct limited_call *c = n <= LIMITED_READ_MAX ? worker_take(true) : NULL;
    long got = 0;

    if (c == NULL) {
        return EBUSY;
    }
    c->to = (struct iovec){.iov_base = c->bytes, .iov_len = n};
    c->from = (struct iovec){.iov_len = n};
    memcpy(&c->from.iov_base, &there, sizeof(there)); /* an address of the other, not ours */
    c->nr = SYS_process_vm_readv;
    c->args[0] = tid;
    c->args[1] = sy_raw_ptr(&c->to);
    c->args[2] = 1;
    c->args[3] = sy_raw_ptr(&c->from);
    c->args[4] = 1;
    if (!worker_call(c, timeout_ms, &got)) {
        return ETIMEDOUT;
    }
    if (got == (long)n) {
        memcpy(ret, c->bytes, n);
    }
    worker_give_back(c);
    return got == (long)n ? 0 : got < 0 ? (int)-got : EFAULT;
}

int
limited_read_string(pid_t tid, uintptr_t there, char *ret, int timeout_ms)
{
    const uintptr_t page = 4096; /* at least: what lies beyond may not be there */
    size_t have = 0;

    while (have < LIMITED_READ_MAX) {
        size_t n = (size_t)(page - (there + have) % page);

        n = n < LIMITED_READ_MAX - have ? n : LIMITED_READ_MAX - have;

        int sys = limited_read(tid, there + have, ret + have, n, timeout_ms);

        if (sys != 0) {
            return sys;
        }
        if (memchr(ret + have, '\0', n) != NULL) {
            return 0;
        }
        have += n;
    }
    return ENAMETOOLONG;
}

int
limited_access(const char *path, int how, const struct limited_user *who, int timeout_ms)
{
    const size_t n = strlen(path) + 1;
    struct limited_call *c = who == NULL ? call_for(path, n) : NULL;
    struct slot *s = who != NULL ? slot_for(who, path, n) : NULL;

    if (c != NULL) {
        describe_access(c, how);
        return (int)-make_by_worker(c, timeout_ms);
    }
    if (s != NULL) {
        describe_access(&s->call, how);
        return (int)-make_by_slot(s, timeout_ms);
    }
    return EBUSY;
}

int
limited_open(int dir_fd, const char *path, const struct limited_user *who, int *ret_fd,
             int timeout_ms)
{
    return open_limited(dir_fd, path, RESOLVE_NO_MAGICLINKS, who, ret_fd, timeout_ms);
}

int
limited_open_inside(int top_fd, const char *path, const struct limited_user *who, int *ret_fd,
                    int timeout_ms)
{
    return open_limited(top_fd, path, RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT, who, ret_fd,
                        timeout_ms);
}

int
limited_connect(int fd, const struct sockaddr *address, socklen_t length,
                const struct limited_user *who, int timeout_ms)
{
    struct slot *s = slot_for(who, address, length);

    if (s == NULL) {
        return EBUSY;
    }
    s->call.nr = SYS_connect;
    s->call.args[0] = fd;
    s->call.args[1] = sy_raw_ptr(s->call.bytes);
    s->call.args[2] = (long)length;
    return (int)-make_by_slot(s, timeout_ms);
}
