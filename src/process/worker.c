#include "process/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define WORKERS     8
#define STACK_BYTES ((size_t)256 * 1024) /* mapped where it is touched */
#define NS_PER_MS   1000000ULL
#define NS_PER_S    1000000000ULL

enum worker_state {
    WORKER_NONE, /* not started */
    WORKER_IDLE,
    WORKER_TAKEN,
    WORKER_ASKED,
    WORKER_BEGUN,
    WORKER_DONE,
    WORKER_LEFT /* who asked is gone */
};

struct place {
    struct limited_call call; /* first: it is given out */
    enum worker_state state;
    bool keeps_rights;
    pthread_cond_t asked;
    pthread_cond_t answered;
    uint64_t begun_ns;
    long result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* With rights and without; made when they are first needed, for ever. */
static struct place *places[2][WORKERS];

/* Of this thread alone: the C library is what does it for all. */
static bool
drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capset, &header, none) == 0;
}

static long
make(const struct limited_call *c)
{
    long got = syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], 0L);

    return got >= 0 ? got : -(long)errno;
}

static void *
worker_main(void *arg)
{
    struct place *p = arg;
    const bool may_work = p->keeps_rights || drop_rights();

    pthread_mutex_lock(&lock);
    for (;;) {
        while (p->state != WORKER_ASKED) {
            pthread_cond_wait(&p->asked, &lock);
        }
        p->state = WORKER_BEGUN;
        p->begun_ns = clock_mono_ns();
        pthread_mutex_unlock(&lock);

        /* Nobody writes to it before it is idle again. */
        long result = may_work ? make(&p->call) : -EPERM;

        pthread_mutex_lock(&lock);
        p->result = result;
        if (p->state == WORKER_LEFT) {
            SY_FD late = p->call.returns_fd && result >= 0 ? (int)result : -1;

            fd_close(&late);
            p->state = WORKER_IDLE;
        } else {
            p->state = WORKER_DONE;
            pthread_cond_signal(&p->answered);
        }
    }
    return NULL;
}

/* In the child of a host program's fork(2) there is none of them. */
static void
forget_all(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    memset(places, 0, sizeof(places));
}

static void
prepare(void)
{
    (void)pthread_atfork(NULL, NULL, forget_all);
}

/* No signal of the host program meets it. */
static bool
start_thread(struct place *p)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    bool is_ok = false;

    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    if (pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
        pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        is_ok = pthread_create(&thread, &attributes, worker_main, p) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return is_ok;
}

/* NULL: no memory, or no thread. */
static struct place *
place_new(bool keeps_rights)
{
    struct place *p = mem_alloc_zero(1, sizeof(*p));
    pthread_condattr_t by_mono;

    if (p == NULL) {
        return NULL;
    }
    p->keeps_rights = keeps_rights;
    p->state = WORKER_IDLE;
    if (pthread_condattr_init(&by_mono) == 0) {
        bool is_ok = pthread_condattr_setclock(&by_mono, CLOCK_MONOTONIC) == 0 &&
                     pthread_cond_init(&p->asked, &by_mono) == 0 &&
                     pthread_cond_init(&p->answered, &by_mono) == 0 && start_thread(p);

        (void)pthread_condattr_destroy(&by_mono);
        if (is_ok) {
            return p;
        }
    }
    mem_free(p);
    return NULL;
}

struct limited_call *
worker_take(bool keeps_rights)
{
    struct place **of_kind = places[keeps_rights ? 1 : 0];
    struct place *found = NULL;

    (void)pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < WORKERS && found == NULL; i++) {
        if (of_kind[i] == NULL) {
            of_kind[i] = place_new(keeps_rights);
            found = of_kind[i];
            break; /* those behind it are not there either */
        }
        if (of_kind[i]->state == WORKER_IDLE) {
            found = of_kind[i];
        }
    }
    if (found != NULL) {
        found->state = WORKER_TAKEN;
        found->call.returns_fd = false;
        memset(found->call.args, 0, sizeof(found->call.args));
    }
    pthread_mutex_unlock(&lock);
    return found != NULL ? &found->call : NULL;
}

static void
await_answer(struct place *p, uint64_t limit_ns)
{
    const uint64_t asked_ns = clock_mono_ns();

    while (p->state != WORKER_DONE) {
        const uint64_t begun_ns = p->state == WORKER_BEGUN ? p->begun_ns : 0;
        const uint64_t now_ns = clock_mono_ns();
        const uint64_t wait_ns = limited_wait_ns(asked_ns, begun_ns, limit_ns, now_ns);
        const struct timespec until = {.tv_sec = (time_t)((now_ns + wait_ns) / NS_PER_S),
                                       .tv_nsec = (long)((now_ns + wait_ns) % NS_PER_S)};

        if (wait_ns == 0) {
            return;
        }
        (void)pthread_cond_timedwait(&p->answered, &lock, &until);
    }
}

bool
worker_call(struct limited_call *call, int timeout_ms, long *ret)
{
    struct place *p = (struct place *)(void *)call;

    pthread_mutex_lock(&lock);
    p->state = WORKER_ASKED;
    pthread_cond_signal(&p->asked);
    await_answer(p, (unsigned)timeout_ms * NS_PER_MS);

    const bool is_done = p->state == WORKER_DONE;

    if (is_done) {
        *ret = p->result;
        p->state = WORKER_TAKEN;
    } else {
        /* What it has not begun, it won't. */
        p->state = p->state == WORKER_BEGUN ? WORKER_LEFT : WORKER_IDLE;
    }
    pthread_mutex_unlock(&lock);
    return is_done;
}

void
worker_give_back(struct limited_call *call)
{
    struct place *p = (struct place *)(void *)call;

    pthread_mutex_lock(&lock);
    p->state = WORKER_IDLE;
    pthread_mutex_unlock(&lock);
}
