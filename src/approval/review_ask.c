#include <string.h>

#include "approval/question.h"
#include "approval/review_internal.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/grant.h"

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
        review_ticket_settle(t, REVIEW_APPROVED);
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
        review_ticket_apply(t, &q, true);
        if (t->state == TICKET_OPEN) {
            review_ticket_open(t);
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
        review_ticket_cancel(t);
    } else {
        review_ticket_open(t);
    }
    review_ticket_unref(t);
}

enum sy_code
review_ask_store(struct review *r, struct review_ticket **ret, const struct review_question *q,
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
        review_ticket_submit(t, run_create, done_create);
    }
    /* From now on: whoever asks looks at the answer first. */
    t->wake = q->wake;
    t->arg = q->arg;
    *ret = t;
    return SY_E_OK;
}
