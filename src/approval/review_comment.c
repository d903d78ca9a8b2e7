/* A model's comment on a request, on its way into the store and to whoever waits for it. */
#include <string.h>

#include "approval/review_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

/* Of a job that writes one. */
struct comment {
    char id[STORE_ID_SIZE];
    struct risk risk;
    char *model;
};

void
review_use_commenter(struct review *r, review_commenter_fn *fn, void *arg)
{
    r->commenter = fn;
    r->commenter_arg = arg;
}

void
review_ticket_begin_comment(struct review_ticket *t)
{
    const struct review *r = t->review;

    t->is_commenting = t->commented == NULL && r->commenter != NULL &&
                       r->commenter(r->commenter_arg, t->id, t->text);
}

enum sy_code
review_ticket_take_comment(struct review_ticket *t, struct sy_error *err)
{
    struct store_request q = {0};
    bool is_added = false;
    enum sy_code rc = SY_E_OK;

    if (t->review->commenter == NULL) {
        return rc;
    }
    rc = store_request_get(&q, t->review->reader, t->id, err);
    if (rc == SY_E_OK) {
        rc = risk_is_added(&is_added, q.text, err);
    }
    if (is_added) {
        t->commented = q.text;
        q.text = NULL;
    }
    store_request_fini(&q);
    return rc;
}

static void
comment_free(struct comment *c)
{
    mem_free(c->model);
    mem_free(c);
}

static enum sy_code
run_comment(struct store *st, void *arg, struct sy_error *err)
{
    const struct comment *c = arg;
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_STORE_TEXT};
    struct store_request q = {0};
    enum sy_code rc = store_request_get(&q, st, c->id, err);

    if (rc == SY_E_OK) {
        rc = risk_add(&text, q.text, &c->risk, c->model, err);
    }
    if (rc == SY_E_OK) {
        rc = store_request_amend(st, c->id, buf_view(&text), err);
    }
    store_request_fini(&q);
    return rc;
}

static void
done_comment(void *arg, enum sy_code rc, const struct sy_error *err)
{
    if (rc != SY_E_OK) {
        LOG(LOG_DEBUG, "approval", "a comment on a request was not kept",
            kv_str("error", err->msg));
    }
    comment_free(arg);
}

static enum sy_code
keep(struct review *r, const char *id, const struct risk *risk, const char *model)
{
    struct comment *c = mem_alloc_zero(1, sizeof(*c));
    struct sy_error err = {0};

    if (c == NULL) {
        return SY_E_NOMEM;
    }
    memcpy(c->id, id, strlen(id) + 1);
    c->risk = *risk;
    c->model = mem_strdup(model);

    const struct store_job job = {.run = run_comment, .done = done_comment, .arg = c};
    enum sy_code rc = c->model == NULL ? SY_E_NOMEM : store_writer_submit(r->writer, &job, &err);

    if (rc != SY_E_OK) {
        comment_free(c);
    }
    return rc;
}

/* A call that waits has a copy of its own. */
static void
add_to_ticket(struct review_ticket *t, const struct risk *risk, const char *model)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_STORE_TEXT};
    struct sy_error err = {0};

    if (t->commented == NULL && risk_add(&text, t->text, risk, model, &err) == SY_E_OK) {
        t->commented = buf_take(&text);
    }
}

static void
commented(struct review_ticket *t, const struct risk *risk, const char *model)
{
    bool is_open = t->state == TICKET_OPEN && !t->is_left;

    t->is_commenting = false;
    if (risk != NULL) {
        add_to_ticket(t, risk, model);
    }
    if (is_open && t->asks_once) {
        review_ticket_hold(t);
    } else if (is_open) {
        review_ticket_wake(t);
    }
}

void
review_comment(struct review *r, const char *id, const struct risk *risk, const char *model)
{
    SY_ASSERT(strlen(id) < STORE_ID_SIZE);
    if (risk != NULL && r->writer != NULL && keep(r, id, risk, model) != SY_E_OK) {
        LOG(LOG_DEBUG, "approval", "a comment on a request was not kept", kv_str("request", id));
    }
    /* A wake may leave tickets, but not the one that is looked at. */
    for (struct review_ticket *t = r->tickets; t != NULL;) {
        struct review_ticket *next = NULL;

        t->refs++;
        if (str_eq(t->id, id) && t->is_commenting) {
            commented(t, risk, model);
        }
        next = t->next;
        review_ticket_unref(t);
        t = next;
    }
}
