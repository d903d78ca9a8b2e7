/*
 * The reviewer's connections to the store: opened when they are first needed, and anew when the
 * files were moved or removed.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "approval/review_internal.h"

void
review_close_store(struct review *r)
{
    store_watch_close(r->watch);
    store_writer_close(r->writer);
    store_close(r->reader);
    r->watch = NULL;
    r->writer = NULL;
    r->reader = NULL;
}

static enum sy_code
watch_fd(struct review *r, int fd, struct sy_error *err)
{
    struct epoll_event e = {.events = EPOLLIN};

    return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0
               ? SY_E_OK
               : sy_err_sys(err, errno, "watching the store of approvals");
}

/* The store's files were moved or removed: nobody can answer there any more. What asks next
 * opens what is there by then. */
void
review_lose_store(struct review *r)
{
    struct sy_error err = {0};

    (void)sy_err_set(&err, SY_E_SYS,
                     "the store of approvals was moved or removed while it was open: make the same "
                     "call again");
    for (struct review_ticket *t = r->tickets; t != NULL; t = t->next) {
        if (t->state == TICKET_OPEN) {
            review_settle_failed(t, &err);
        }
    }
}

enum sy_code
review_open_reader(struct review *r, struct sy_error *err)
{
    const struct store_options options = {.dir = r->state_dir};

    if (r->reader != NULL && store_is_lost(r->reader)) {
        review_lose_store(r);
        review_close_store(r); /* what goes on there ends first */
    }
    return r->reader != NULL ? SY_E_OK : store_open(&r->reader, &options, err);
}

enum sy_code
review_open_store(struct review *r, struct sy_error *err)
{
    const struct store_options options = {.dir = r->state_dir};
    enum sy_code rc = review_open_reader(r, err);

    if (rc == SY_E_OK && r->writer != NULL) {
        return rc;
    }
    if (rc == SY_E_OK) {
        rc = store_watch_open(&r->watch, r->reader, err);
    }
    if (rc == SY_E_OK) {
        rc = store_writer_open(&r->writer, &options, err);
    }
    if (rc == SY_E_OK) {
        rc = watch_fd(r, store_watch_fd(r->watch), err);
    }
    if (rc == SY_E_OK) {
        rc = watch_fd(r, store_writer_fd(r->writer), err);
    }
    if (rc != SY_E_OK) {
        review_close_store(r);
    }
    return rc;
}
