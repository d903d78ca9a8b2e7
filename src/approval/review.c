#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "approval/review_internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/grant.h"

#define NS_PER_MS 1000000ULL

static void
copy_text(char *ret, size_t size, const char *text)
{
    size_t n = utf8_cut(text, strlen(text), size - 1);

    memcpy(ret, text, n);
    ret[n] = '\0';
}

enum sy_code
review_new(struct review **ret, const struct review_options *options, struct sy_error *err)
{
    struct review *r = mem_alloc_zero(1, sizeof(*r));

    if (r == NULL) {
        return sy_err_nomem(err);
    }
    r->ttl_ms = options->ttl_ms;
    r->state_dir = mem_strdup(options->state_dir);
    r->session = mem_strdup(options->session);
    r->principal = mem_strdup(options->principal);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (r->state_dir == NULL || r->session == NULL || r->principal == NULL) {
        review_free(r);
        return sy_err_nomem(err);
    }
    if (r->epoll_fd < 0) {
        enum sy_code rc = sy_err_sys(err, errno, "making an epoll descriptor");

        review_free(r);
        return rc;
    }
    *ret = r;
    return SY_E_OK;
}

static enum sy_code
end_session(struct store *st, void *session, struct sy_error *err)
{
    size_t n = 0;
    enum sy_code rc = store_requests_cancel(&n, st, session, err);

    return rc == SY_E_OK ? store_grants_end(st, session, err) : rc;
}

/* What nobody has answered, and what was approved for this session. */
static void
take_back(struct review *r)
{
    const struct store_job job = {.run = end_session, .arg = r->session};
    struct sy_error err = {0};

    if (r->writer != NULL && store_writer_submit(r->writer, &job, &err) != SY_E_OK) {
        LOG(LOG_DEBUG, "approval", "requests of this session stay until their time is over",
            kv_str("error", err.msg));
    }
}

void
review_free(struct review *r)
{
    if (r == NULL) {
        return;
    }
    r->is_ending = true;
    take_back(r);
    review_close_store(r); /* jobs that go on hold tickets that were left */
    SY_ASSERT(r->tickets == NULL);
    fd_close(&r->epoll_fd);
    mem_free(r->state_dir);
    mem_free(r->session);
    mem_free(r->principal);
    mem_free(r);
}

int
review_fd(const struct review *r)
{
    return r->epoll_fd;
}

/* Tickets. A job holds its ticket, so that it is there when the job has ended. */

void
review_ticket_unref(struct review_ticket *t)
{
    struct review_ticket **at = &t->review->tickets;

    if (--t->refs > 0) {
        return;
    }
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
    mem_free(t->session);
    mem_free(t->text);
    mem_free(t->commented);
    mem_free(t->keys);
    mem_free(t->reply_reason);
    mem_free(t->reply_by);
    mem_free(t);
}

void
review_ticket_wake(struct review_ticket *t)
{
    if (!t->is_left && t->wake != NULL) {
        t->wake(t->arg);
    }
}

static const char *
word_of(const struct review_answer *a)
{
    switch (a->outcome) {
    case REVIEW_TIMED_OUT:
        return store_status_name(STORE_TIMED_OUT);
    case REVIEW_PENDING:
        return store_status_name(STORE_PENDING);
    case REVIEW_FAILED:
        return "failed";
    case REVIEW_APPROVED:
    case REVIEW_DENIED:
    case REVIEW_ABORTED:
        break;
    }
    return store_status_name(a->status);
}

void
review_ticket_settle(struct review_ticket *t, enum review_outcome outcome)
{
    t->state = TICKET_ANSWERED;
    t->answer.outcome = outcome;
    t->answer.word = word_of(&t->answer);
    memcpy(t->answer.id, t->id, sizeof(t->answer.id));
    review_ticket_wake(t);
}

void
review_settle_failed(struct review_ticket *t, const struct sy_error *err)
{
    t->answer.err = *err;
    review_ticket_settle(t, REVIEW_FAILED);
}

void
review_ticket_submit(struct review_ticket *t, store_job_fn *run, store_done_fn *done)
{
    struct sy_error err = {0};
    const struct store_job job = {.run = run, .done = done, .arg = t};

    t->refs++;
    if (store_writer_submit(t->review->writer, &job, &err) != SY_E_OK) {
        t->refs--;
        review_settle_failed(t, &err);
    }
}

static enum sy_code
run_take(struct store *st, void *arg, struct sy_error *err)
{
    struct review_ticket *t = arg;
    const struct store_grant grant = {.session = t->session, .keys = t->keys, .n = t->n_keys};
    enum sy_code rc = store_request_use(&t->may, st, t->id, t->session, t->digest, err);

    if (rc == SY_E_OK && t->may && t->answer.status == STORE_APPROVED_FOR_SESSION) {
        rc = store_grant_put(st, &grant, STORE_APPROVED_FOR_SESSION, LIMIT_GRANT_MS, err);
    }
    return rc;
}

static void
done_take(void *arg, enum sy_code rc, const struct sy_error *err)
{
    struct review_ticket *t = arg;
    struct sy_error gone = {0};

    if (rc != SY_E_OK) {
        review_settle_failed(t, err);
    } else if (t->may) {
        review_ticket_settle(t, REVIEW_APPROVED);
    } else {
        (void)sy_err_set(&gone, SY_E_DENIED, "the approval was used already, or its time is over");
        review_settle_failed(t, &gone);
    }
    review_ticket_unref(t);
}

void
review_ticket_apply(struct review_ticket *t, const struct store_request *q, bool is_remembered)
{
    t->answer.status = q->status;
    t->answer.is_remembered = is_remembered && q->status != STORE_PENDING;
    t->answer.waited_ms =
        q->decided_ms > q->created_ms ? (uint64_t)(q->decided_ms - q->created_ms) : 0;
    copy_text(t->answer.reason, sizeof(t->answer.reason), q->reason);
    copy_text(t->answer.decided_by, sizeof(t->answer.decided_by), q->decided_by);
    switch (q->status) {
    case STORE_PENDING:
        t->state = TICKET_OPEN;
        t->expires_ns = clock_mono_ns() + q->left_ms * NS_PER_MS;
        return;
    case STORE_APPROVED:
    case STORE_APPROVED_FOR_SESSION:
    case STORE_APPROVED_WITH_RULE:
        t->state = TICKET_BUSY;
        review_ticket_submit(t, run_take, done_take);
        return;
    case STORE_DENIED:
        review_ticket_settle(t, REVIEW_DENIED);
        return;
    case STORE_ABORTED:
        review_ticket_settle(t, REVIEW_ABORTED);
        return;
    case STORE_TIMED_OUT:
    case STORE_CANCELLED:
        review_ticket_settle(t, REVIEW_TIMED_OUT);
        return;
    }
}

static void
refresh(struct review_ticket *t)
{
    struct store_request q = {0};
    struct sy_error err = {0};

    if (store_request_get(&q, t->review->reader, t->id, &err) != SY_E_OK) {
        review_settle_failed(t, &err);
        return;
    }
    review_ticket_apply(t, &q, false);
    store_request_fini(&q);
}

static enum sy_code
run_cancel(struct store *st, void *arg, struct sy_error *err)
{
    const struct review_ticket *t = arg;
    struct store_answer answer = {0};

    return store_request_cancel(&answer, st, t->id, err);
}

static void
done_cancel(void *arg, enum sy_code rc, const struct sy_error *err)
{
    if (rc != SY_E_OK) {
        LOG(LOG_DEBUG, "approval", "a request for approval could not be taken back",
            kv_str("error", err->msg));
    }
    review_ticket_unref(arg);
}

void
review_ticket_cancel(struct review_ticket *t)
{
    review_ticket_submit(t, run_cancel, done_cancel);
}

/* How long, from the moment at which a person can look at it. */
void
review_ticket_hold(struct review_ticket *t)
{
    t->hold_ns =
        t->hold_ms >= t->review->ttl_ms ? UINT64_MAX : clock_mono_ns() + t->hold_ms * NS_PER_MS;
    review_ticket_wake(t);
}

void
review_ticket_open(struct review_ticket *t)
{
    t->state = TICKET_OPEN;
    t->expires_ns = clock_mono_ns() + t->review->ttl_ms * NS_PER_MS;
    review_ticket_begin_comment(t);
    if (t->hold_ms == 0) {
        review_ticket_settle(t, REVIEW_PENDING);
    } else if (!t->is_commenting || !t->asks_once) {
        review_ticket_hold(t);
    }
}

static const struct review_answer *
store_answer(const struct review_ticket *t)
{
    return t->state == TICKET_ANSWERED ? &t->answer : NULL;
}

static const char *
store_id(const struct review_ticket *t)
{
    bool is_due = t->state == TICKET_OPEN && !(t->asks_once && t->is_commenting);

    return is_due || t->state == TICKET_ANSWERED ? t->id : "";
}

static const char *
store_text(const struct review_ticket *t)
{
    return t->commented != NULL ? t->commented : t->text;
}

static enum sy_code
run_reply(struct store *st, void *arg, struct sy_error *err)
{
    struct review_ticket *t = arg;
    struct store_answer answer = {0};
    const struct review_reply reply = {
        .status = t->reply_status,
        .reason = t->reply_reason,
        .decided_by = t->reply_by,
    };

    return review_decide(&answer, st, t->id, &reply, err);
}

static void
done_reply(void *arg, enum sy_code rc, const struct sy_error *err)
{
    struct review_ticket *t = arg;

    if (rc != SY_E_OK) {
        review_settle_failed(t, err);
    } else if (!t->is_left) {
        refresh(t);
    }
    review_ticket_unref(t);
}

static void
store_reply(struct review_ticket *t, const struct review_reply *reply)
{
    struct sy_error nomem;

    if (t->state != TICKET_OPEN) {
        return;
    }
    t->reply_status = reply->status;
    t->reply_by = mem_strdup(reply->decided_by);
    t->reply_reason = reply->reason != NULL ? mem_strdup(reply->reason) : NULL;
    if (t->reply_by == NULL || (reply->reason != NULL && t->reply_reason == NULL)) {
        (void)sy_err_nomem(&nomem);
        review_settle_failed(t, &nomem);
        return;
    }
    t->state = TICKET_BUSY;
    review_ticket_submit(t, run_reply, done_reply);
}

static void
store_give_up(struct review_ticket *t)
{
    t->hold_ms = 0; /* also for a request that is on its way to the store */
    if (t->state == TICKET_OPEN) {
        review_ticket_settle(t, REVIEW_PENDING);
    }
}

static void
store_leave(struct review_ticket *t)
{
    bool is_open = t->state == TICKET_OPEN || (t->state == TICKET_BUSY && t->id[0] != '\0');

    t->is_left = true;
    if (is_open) {
        review_ticket_cancel(t);
    }
    review_ticket_unref(t);
}

static void
done_end(void *arg, enum sy_code rc, const struct sy_error *err)
{
    if (rc != SY_E_OK) {
        LOG(LOG_DEBUG, "approval", "requests of a subagent stay until their time is over",
            kv_str("error", err->msg));
    }
    mem_free(arg);
}

static void
store_end(struct review *r, const char *session)
{
    struct store_job job = {.run = end_session, .done = done_end};
    struct sy_error err = {0};

    if (r->writer == NULL) {
        return; /* nothing was asked */
    }
    job.arg = mem_strdup(session);
    if (job.arg == NULL || store_writer_submit(r->writer, &job, &err) != SY_E_OK) {
        mem_free(job.arg);
        LOG(LOG_DEBUG, "approval", "requests of a subagent stay until their time is over",
            kv_str("error", err.msg));
    }
}

const struct review_ops review_store_ops = {
    .ask = review_ask_store,
    .answer = store_answer,
    .id = store_id,
    .text = store_text,
    .reply = store_reply,
    .give_up = store_give_up,
    .leave = store_leave,
    .end = store_end,
};

uint64_t
review_deadline_ns(const struct review *r)
{
    uint64_t at = UINT64_MAX;

    for (const struct review_ticket *t = r->tickets; t != NULL; t = t->next) {
        if (t->state == TICKET_OPEN && !t->is_left) {
            uint64_t mine = t->hold_ns < t->expires_ns ? t->hold_ns : t->expires_ns;

            at = mine < at ? mine : at;
        }
    }
    return at;
}

static void
look(struct review_ticket *t, uint64_t now_ns, bool has_changed)
{
    if (t->state != TICKET_OPEN || t->is_left) {
        return;
    }
    if (has_changed || now_ns >= t->expires_ns) {
        refresh(t);
    }
    if (t->state == TICKET_OPEN && now_ns >= t->hold_ns) {
        review_ticket_settle(t, REVIEW_PENDING);
    }
}

void
review_step(struct review *r, uint64_t now_ns)
{
    struct sy_error err = {0};
    bool has_changed = true;

    if (r->writer == NULL) {
        return;
    }
    store_writer_dispatch(r->writer);
    if (store_watch_drain(r->watch, &err) != SY_E_OK || store_is_lost(r->reader)) {
        review_lose_store(r);
        has_changed = false;
    }
    /* A wake may leave tickets, but not the one that is looked at: the list's next one is
     * read after it, and what is left stays until its job has ended. */
    for (struct review_ticket *t = r->tickets; t != NULL;) {
        struct review_ticket *next = NULL;

        t->refs++;
        look(t, now_ns, has_changed);
        next = t->next;
        review_ticket_unref(t);
        t = next;
    }
}
