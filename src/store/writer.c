#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "store/store_internal.h"
#include "store/writer.h"

struct entry {
    struct store_job job;
    enum sy_code rc;
    struct sy_error err;
};

/*
 * A ring, allocated at birth. Entries [head, ended) wait to be dispatched, [ended, tail)
 * for the thread; their numbers only grow. The lock guards the numbers; an entry belongs
 * to whom they say.
 */
struct store_writer {
    struct store *st; /* NULL: the thread has to open it */
    char *dir;        /* for that */
    uint32_t busy_ms;
    int event_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    uint64_t head;
    uint64_t ended;
    uint64_t tail;
    bool is_closing;
    struct entry entries[LIMIT_STORE_QUEUE];
};

static struct entry *
entry_at(struct store_writer *w, uint64_t number)
{
    return &w->entries[number % LIMIT_STORE_QUEUE];
}

static void
lock(struct store_writer *w)
{
    SY_ASSERT(pthread_mutex_lock(&w->lock) == 0);
}

static void
unlock(struct store_writer *w)
{
    SY_ASSERT(pthread_mutex_unlock(&w->lock) == 0);
}

static void
run_one(struct store *st, struct entry *e)
{
    struct store_txn txn;

    e->err = (struct sy_error){0};
    e->rc = store_begin(&txn, st, &e->err);
    if (e->rc == SY_E_OK) {
        e->rc = store_end(&txn, e->job.run(st, e->job.arg, &e->err), &e->err);
    }
}

/* Those that had succeeded share the fate of the batch. */
static void
fail_rest(struct store_writer *w, uint64_t from, uint64_t to, const struct sy_error *err)
{
    for (uint64_t i = from; i < to; i++) {
        struct entry *e = entry_at(w, i);

        if (e->rc == SY_E_OK) {
            e->rc = err->code;
            e->err = *err;
        }
    }
}

static enum sy_code
open_now(struct store_writer *w, struct sy_error *err)
{
    const struct store_options options = {.dir = w->dir, .busy_ms = w->busy_ms};

    if (w->st != NULL && w->dir != NULL && store_is_lost(w->st)) {
        store_close(w->st); /* nobody else reads it any more */
        w->st = NULL;
    }
    if (w->st != NULL) {
        return SY_E_OK;
    }

    enum sy_code rc = store_open(&w->st, &options, err);

    if (rc == SY_E_OK) {
        w->st->is_writer = true;
    }
    return rc;
}

static void
run_batch(struct store_writer *w, uint64_t from, uint64_t to)
{
    struct store_txn txn;
    struct sy_error err = {0};
    enum sy_code rc = open_now(w, &err);
    uint64_t i = from;

    rc = rc == SY_E_OK ? store_begin(&txn, w->st, &err) : rc;

    for (uint64_t k = from; k < to; k++) {
        entry_at(w, k)->rc = SY_E_OK;
    }
    while (rc == SY_E_OK && i < to) {
        struct entry *e = entry_at(w, i++);

        run_one(w->st, e);
        /* A full disk may have ended the whole transaction. */
        if (sqlite3_get_autocommit(w->st->db) != 0) {
            rc = e->rc;
            err = e->err;
        }
    }
    if (rc == SY_E_OK) {
        rc = store_end(&txn, SY_E_OK, &err);
    }
    if (rc != SY_E_OK) {
        fail_rest(w, from, to, &err);
    } else {
        store_tell(w->st);
    }
}

/* Waits for jobs; false when there are none and none will come. */
static bool
take_batch(struct store_writer *w, uint64_t *ret_from, uint64_t *ret_to)
{
    lock(w);
    while (w->ended == w->tail && !w->is_closing) {
        (void)pthread_cond_wait(&w->has_work, &w->lock);
    }
    *ret_from = w->ended;
    *ret_to = w->tail - w->ended > LIMIT_STORE_BATCH ? w->ended + LIMIT_STORE_BATCH : w->tail;
    unlock(w);
    return *ret_from != *ret_to;
}

static void *
writer_main(void *arg)
{
    struct store_writer *w = arg;
    const uint64_t one = 1;
    uint64_t from = 0;
    uint64_t to = 0;

    while (take_batch(w, &from, &to)) {
        run_batch(w, from, to);
        lock(w);
        w->ended = to;
        unlock(w);
        (void)!write(w->event_fd, &one, sizeof(one)); /* it never fills up */
    }
    return NULL;
}

/* Signals are for the threads that expect them. */
static int
start_thread(struct store_writer *w)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);

    int rc = pthread_create(&w->thread, NULL, writer_main, w);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* Takes w, which has its store or its directory. */
static enum sy_code
start(struct store_writer **ret, struct store_writer *w, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->event_fd < 0) {
        rc = sy_err_sys(err, errno, "making the store's eventfd");
    }
    if (rc == SY_E_OK) {
        SY_ASSERT(pthread_mutex_init(&w->lock, NULL) == 0);
        SY_ASSERT(pthread_cond_init(&w->has_work, NULL) == 0);

        int errnum = start_thread(w);

        if (errnum != 0) {
            rc = sy_err_sys(err, errnum, "starting the store's thread");
        }
    }
    if (rc != SY_E_OK) {
        store_close(w->st);
        fd_close(&w->event_fd);
        mem_free(w->dir);
        mem_free(w);
        return rc;
    }
    *ret = w;
    return SY_E_OK;
}

enum sy_code
store_writer_open(struct store_writer **ret, const struct store_options *options,
                  struct sy_error *err)
{
    struct store_writer *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = store_open(&w->st, options, err);

    if (rc != SY_E_OK) {
        mem_free(w);
        return rc;
    }
    w->st->is_writer = true;
    return start(ret, w, err);
}

enum sy_code
store_writer_open_later(struct store_writer **ret, const struct store_options *options,
                        struct sy_error *err)
{
    struct store_writer *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return sy_err_nomem(err);
    }
    w->busy_ms = options->busy_ms;
    w->dir = mem_strdup(options->dir);
    if (w->dir == NULL) {
        mem_free(w);
        return sy_err_nomem(err);
    }
    return start(ret, w, err);
}

void
store_writer_close(struct store_writer *w)
{
    if (w == NULL) {
        return;
    }
    lock(w);
    w->is_closing = true;
    unlock(w);
    (void)pthread_cond_signal(&w->has_work);
    SY_ASSERT(pthread_join(w->thread, NULL) == 0);
    store_writer_dispatch(w);
    store_close(w->st);
    fd_close(&w->event_fd);
    (void)pthread_cond_destroy(&w->has_work);
    (void)pthread_mutex_destroy(&w->lock);
    mem_free(w->dir);
    mem_free(w);
}

enum sy_code
store_writer_submit(struct store_writer *w, const struct store_job *job, struct sy_error *err)
{
    lock(w);

    bool is_closed = w->is_closing;
    bool is_full = w->tail - w->head == LIMIT_STORE_QUEUE;

    if (!is_full && !is_closed) {
        entry_at(w, w->tail)->job = *job;
        w->tail++;
    }
    unlock(w);
    if (is_closed) {
        return sy_err_set(err, SY_E_CANCELLED, "the store is being closed; nothing was stored");
    }
    if (is_full) {
        return sy_err_set(
            err, SY_E_LIMIT,
            "%u writes wait for the disk already; nothing was stored; try again later",
            LIMIT_STORE_QUEUE);
    }
    (void)pthread_cond_signal(&w->has_work);
    return SY_E_OK;
}

int
store_writer_fd(const struct store_writer *w)
{
    return w->event_fd;
}

void
store_writer_dispatch(struct store_writer *w)
{
    uint64_t count = 0;

    (void)!read(w->event_fd, &count, sizeof(count));
    for (;;) {
        struct entry e;

        lock(w);

        bool is_any = w->head != w->ended;

        if (is_any) {
            e = *entry_at(w, w->head);
            w->head++;
        }
        unlock(w);
        if (!is_any) {
            return;
        }
        if (e.job.done != NULL) {
            e.job.done(e.job.arg, e.rc, &e.err);
        }
    }
}
