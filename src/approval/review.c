#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "approval/question.h"
#include "approval/review_internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
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

static void
settle(struct review_ticket *t, enum review_outcome outcome)
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
    settle(t, REVIEW_FAILED);
}

/* Runs one for the ticket, on the writer's thread; `done` drops the ticket's reference. */
static void
submit(struct review_ticket *t, store_job_fn *run, store_done_fn *done)
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
        settle(t, REVIEW_APPROVED);
    } else {
        (void)sy_err_set(&gone, SY_E_DENIED, "the approval was used already, or its time is over");
        review_settle_failed(t, &gone);
    }
    review_ticket_unref(t);
}

/* By what stands in the store. */
static void
apply(struct review_ticket *t, const struct store_request *q, bool is_remembered)
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
        submit(t, run_take, done_take);
        return;
    case STORE_DENIED:
        settle(t, REVIEW_DENIED);
        return;
    case STORE_ABORTED:
        settle(t, REVIEW_ABORTED);
        return;
    case STORE_TIMED_OUT:
    case STORE_CANCELLED:
        settle(t, REVIEW_TIMED_OUT);
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
    apply(t, &q, false);
    store_request_fini(&q);
}

static enum sy_code
run_create(struct store *st, void *arg, struct sy_error *err)
{
    struct review_ticket *t = arg;
    const struct store_request_new q = {
        .digest = t->digest,
        .text = t->text,
        .session = t->session,
        .principal = t->review->principal,
        .ttl_ms = t->review->ttl_ms,
    };

    return store_request_create(t->made_id, st, &q, err);
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

/* How long, from the moment at which a person can look at it. */
void
review_ticket_hold(struct review_ticket *t)
{
    t->hold_ns =
        t->hold_ms >= t->review->ttl_ms ? UINT64_MAX : clock_mono_ns() + t->hold_ms * NS_PER_MS;
    review_ticket_wake(t);
}

static void
open_ticket(struct review_ticket *t)
{
    t->state = TICKET_OPEN;
    t->expires_ns = clock_mono_ns() + t->review->ttl_ms * NS_PER_MS;
    review_ticket_begin_comment(t);
    if (t->hold_ms == 0) {
        settle(t, REVIEW_PENDING);
    } else if (!t->is_commenting || !t->asks_once) {
        review_ticket_hold(t);
    }
}

static void
done_create(void *arg, enum sy_code rc, const struct sy_error *err)
{
    struct review_ticket *t = arg;

    if (rc != SY_E_OK) {
        review_settle_failed(t, err);
        review_ticket_unref(t);
        return;
    }
    memcpy(t->id, t->made_id, sizeof(t->id));
    if (t->is_left && t->review->is_ending) {
        review_ticket_unref(t); /* all of the session are taken back */
        return;
    }
    if (t->is_left) {
        submit(t, run_cancel, done_cancel);
    } else {
        open_ticket(t);
    }
    review_ticket_unref(t);
}

static bool
is_held(const struct review *r, const struct review_ticket *self, const char *id)
{
    for (const struct review_ticket *t = r->tickets; t != NULL; t = t->next) {
        if (t != self && !t->is_left && str_eq(t->id, id)) {
            return true;
        }
    }
    return false;
}

/* Has a person approved it for one of these sessions? */
static enum sy_code
find_grant(bool *ret, struct review_ticket *t, const char *const *sessions, struct sy_error *err)
{
    struct store_grant grant = {.keys = t->keys, .n = t->n_keys};
    enum sy_code rc = SY_E_OK;

    *ret = false;
    for (; *sessions != NULL && rc == SY_E_OK && !*ret; sessions++) {
        grant.session = *sessions;
        rc = store_grant_has(ret, t->review->reader, &grant, err);
    }
    if (rc == SY_E_OK && *ret) {
        t->answer.is_remembered = true;
        t->answer.status = STORE_APPROVED_FOR_SESSION;
        settle(t, REVIEW_APPROVED);
    }
    return rc;
}

/* A request of the first of the sessions, or what was denied to one above it: what was approved
 * once is for who asked. SY_E_NOTFOUND for none. */
static enum sy_code
find_request(struct store_request *ret, struct review_ticket *t, const char *const *sessions,
             struct sy_error *err)
{
    struct store *st = t->review->reader;
    enum sy_code rc = store_request_find(ret, st, sessions[0], t->digest, err);

    for (size_t i = 1; sessions[i] != NULL && rc == SY_E_NOTFOUND; i++) {
        rc = store_request_find(ret, st, sessions[i], t->digest, err);
        if (rc == SY_E_OK && ret->status != STORE_DENIED && ret->status != STORE_ABORTED) {
            store_request_fini(ret);
            *ret = (struct store_request){0};
            rc = SY_E_NOTFOUND;
        }
    }
    return rc;
}

/* Was the same asked before? True: the ticket goes on with that. */
static enum sy_code
find_before(bool *ret, struct review_ticket *t, const char *const *sessions, struct sy_error *err)
{
    struct review *r = t->review;
    struct store_request q = {0};
    struct sy_error why = {0};
    enum sy_code rc = find_grant(ret, t, sessions, err);

    if (rc != SY_E_OK || *ret) {
        return rc;
    }
    rc = find_request(&q, t, sessions, &why);
    if (rc == SY_E_NOTFOUND) {
        return SY_E_OK;
    }
    if (rc != SY_E_OK) {
        return sy_err_set(err, rc, "%s", why.msg);
    }
    *ret = !is_held(r, t, q.id);
    if (*ret) {
        memcpy(t->id, q.id, sizeof(t->id));
        rc = review_ticket_take_comment(t, err);
    }
    if (*ret && rc == SY_E_OK) {
        apply(t, &q, true);
        if (t->state == TICKET_OPEN) {
            open_ticket(t);
        }
    }
    store_request_fini(&q);
    return rc;
}

static enum sy_code
ticket_new(struct review_ticket **ret, struct review *r, const struct review_question *q,
           const char *session, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_STORE_TEXT};
    struct review_ticket *t = mem_alloc_zero(1, sizeof(*t));

    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->review = r;
    t->refs = 1;
    t->next = r->tickets;
    r->tickets = t;
    t->hold_ms = q->hold_ms;
    t->asks_once = q->asks_once;
    t->hold_ns = UINT64_MAX;
    t->expires_ns = UINT64_MAX;

    enum sy_code rc = question_write(&text, q->question);

    t->session = mem_strdup(session);
    if (t->session == NULL) {
        review_ticket_unref(t);
        return sy_err_nomem(err);
    }
    t->text = rc == SY_E_OK ? buf_take(&text) : NULL;
    if (t->text == NULL) {
        review_ticket_unref(t);
        return rc == SY_E_LIMIT ? sy_err_set(err, rc, "it is too long to be shown to a person")
                                : sy_err_nomem(err);
    }
    t->n_keys = q->question->may_remember ? binding_keys(q->question) : 0;
    t->keys = mem_alloc_zero(t->n_keys + 1, BINDING_SIZE);
    if (t->keys == NULL) {
        review_ticket_unref(t);
        return sy_err_nomem(err);
    }
    for (size_t i = 0; i < t->n_keys; i++) {
        binding_key(t->keys + i * BINDING_SIZE, q->question, i);
    }
    binding_digest(t->digest, q->question);
    *ret = t;
    return SY_E_OK;
}

static enum sy_code
store_ask(struct review *r, struct review_ticket **ret, const struct review_question *q,
          struct sy_error *err)
{
    struct review_ticket *t = NULL;
    const char *const own[] = {r->session, NULL};
    const char *const *sessions = q->sessions != NULL ? q->sessions : own;
    bool is_known = false;
    enum sy_code rc = review_open_store(r, err);

    if (rc == SY_E_OK) {
        rc = ticket_new(&t, r, q, sessions[0], err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    SY_ASSERT(t != NULL);
    rc = find_before(&is_known, t, sessions, err);
    if (rc != SY_E_OK) {
        review_ticket_unref(t);
        return rc;
    }
    if (!is_known) {
        t->state = TICKET_BUSY;
        submit(t, run_create, done_create);
    }
    /* From now on: whoever asks looks at the answer first. */
    t->wake = q->wake;
    t->arg = q->arg;
    *ret = t;
    return SY_E_OK;
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
    submit(t, run_reply, done_reply);
}

static void
store_give_up(struct review_ticket *t)
{
    t->hold_ms = 0; /* also for a request that is on its way to the store */
    if (t->state == TICKET_OPEN) {
        settle(t, REVIEW_PENDING);
    }
}

static void
store_leave(struct review_ticket *t)
{
    bool is_open = t->state == TICKET_OPEN || (t->state == TICKET_BUSY && t->id[0] != '\0');

    t->is_left = true;
    if (is_open) {
        submit(t, run_cancel, done_cancel);
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
    .ask = store_ask,
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
        settle(t, REVIEW_PENDING);
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
