#ifndef SY_STORE_WRITER_H
#define SY_STORE_WRITER_H

#include "base/err.h"
#include "store/store.h"

/*
 * A thread that writes, so that the event loop never waits for a disk. It has a
 * connection of its own and a queue of LIMIT_STORE_QUEUE jobs; what waits is committed as
 * one, LIMIT_STORE_BATCH at most, in the order of arrival.
 */
struct store_writer;

/* On the writer's thread, inside a transaction: calls functions of the room with this
 * store. What it returns other than SY_E_OK takes back what this job wrote, and no other
 * job's. It may be that it succeeds and the commit does not. */
typedef enum sy_code store_job_fn(struct store *st, void *arg, struct sy_error *err);
/* On the thread that dispatches, once for each job, in order: SY_E_OK when what the job
 * wrote is on the disk, else `err` says why and nothing of it is. May submit, must not close. */
typedef void store_done_fn(void *arg, enum sy_code rc, const struct sy_error *err);

struct store_job {
    store_job_fn *run;
    store_done_fn *done; /* NULL: nobody wants to know */
    void *arg;           /* the job's from store_writer_submit to `done` */
};

enum sy_code store_writer_open(struct store_writer **ret, const struct store_options *options,
                               struct sy_error *err) SY_NODISCARD;
/* The same, but the thread opens the store with the first job, so that the caller does not wait for
 * a disk or for others. Where that fails the jobs fail, and the next ones try again. Opens it anew
 * where its files were moved or removed meanwhile. */
enum sy_code store_writer_open_later(struct store_writer **ret, const struct store_options *options,
                                     struct sy_error *err) SY_NODISCARD;
/* Lets all jobs end, calls their `done`, ends the thread. It may take busy_ms for each
 * batch. Accepts NULL. */
void store_writer_close(struct store_writer *w);

/* From any thread. SY_E_LIMIT when the queue is full: nothing was taken; a place is free
 * after the next store_writer_dispatch. */
enum sy_code store_writer_submit(struct store_writer *w, const struct store_job *job,
                                 struct sy_error *err) SY_NODISCARD;

/* An eventfd that is readable when jobs have ended; then one thread, always the same,
 * calls store_writer_dispatch, which calls `done`. */
int store_writer_fd(const struct store_writer *w);
void store_writer_dispatch(struct store_writer *w);

#endif
