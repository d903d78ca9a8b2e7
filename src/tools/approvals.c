#include <stdio.h>
#include <unistd.h>

#include <uv.h>

#include "approval/assess.h"
#include "approval/review.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "guard/guard.h"
#include "sandbox/access.h"
#include "store/access.h"
#include "tools/approvals.h"
#include "tools/comment.h"

struct approvals {
    struct session *session;
    uv_loop_t *loop;
    struct assessor *assessor;
    struct review *review;       /* NULL: there is no state directory */
    struct commenter *commenter; /* NULL: no model is asked */
    uint64_t access_version;
    /* Of their own memory: they outlive us until libuv lets go. */
    uv_poll_t *poll;
    uv_prepare_t *prepare; /* sets the timer after whatever else the loop did */
    uv_timer_t *timer;
};

static void
step(struct approvals *a)
{
    review_step(a->review, clock_mono_ns());
}

static void
on_ready(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    step(handle->data);
}

static void
on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

static void
on_prepare(uv_prepare_t *handle)
{
    struct approvals *a = handle->data;
    uint64_t at = review_deadline_ns(a->review);
    uint64_t now = 0;

    if (at == UINT64_MAX) {
        uv_timer_stop(a->timer);
        return;
    }
    now = clock_mono_ns();
    uv_update_time(a->loop);
    uv_timer_start(a->timer, on_timer, at > now ? (at - now) / 1000000 + 1 : 0, 0);
}

static void
on_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

static void
end_handle(void *handle)
{
    if (handle != NULL) {
        uv_close(handle, on_closed);
    }
}

void
approvals_free(struct approvals *a)
{
    static const struct assess_by nobody = {0};
    static const struct review_by no_one = {0};

    if (a == NULL) {
        return;
    }
    session_use_approval(a->session, &nobody, &no_one);
    end_handle(a->poll);
    end_handle(a->prepare);
    end_handle(a->timer);
    assessor_free(a->assessor);
    commenter_free(a->commenter);
    review_free(a->review);
    mem_free(a);
}

/* A handle that keeps no loop going: calls do. */
static enum sy_code
watch(struct approvals *a, struct sy_error *err)
{
    uv_poll_t *poll = mem_alloc_zero(1, sizeof(*poll));
    uv_prepare_t *prepare = mem_alloc_zero(1, sizeof(*prepare));
    uv_timer_t *timer = mem_alloc_zero(1, sizeof(*timer));

    if (poll == NULL || prepare == NULL || timer == NULL ||
        uv_poll_init(a->loop, poll, review_fd(a->review)) != 0) {
        mem_free(poll);
        mem_free(prepare);
        mem_free(timer);
        return sy_err_nomem(err);
    }
    a->poll = poll;
    a->prepare = prepare;
    a->timer = timer;
    poll->data = a;
    SY_ASSERT(uv_prepare_init(a->loop, prepare) == 0);
    prepare->data = a;
    SY_ASSERT(uv_timer_init(a->loop, timer) == 0);
    timer->data = a;
    uv_unref((uv_handle_t *)poll);
    uv_unref((uv_handle_t *)prepare);
    if (uv_poll_start(poll, UV_READABLE, on_ready) != 0 ||
        uv_prepare_start(prepare, on_prepare) != 0) {
        return sy_err_set(err, SY_E_INTERNAL, "event loop: approvals can't be watched");
    }
    return SY_E_OK;
}

/* An object of words: those that mean nothing here are left out. */
static bool
read_access(struct access *ret, struct access_rule *rule, const struct store_access *from)
{
    *ret = (struct access){.object = from->object};
    rule->access = ret;
    rule->workspace = from->workspace;
    return access_kind_parse(&ret->kind, from->kind) && sandbox_mode_parse(&rule->mode, from->mode);
}

static enum sy_code
give_access(struct approvals *a, const struct store_accesses *list)
{
    struct access *accesses = mem_alloc_zero(list->n + 1, sizeof(*accesses));
    struct access_rule *rules = mem_alloc_zero(list->n + 1, sizeof(*rules));
    enum sy_code rc = accesses != NULL && rules != NULL ? SY_E_OK : SY_E_NOMEM;
    size_t n = 0;

    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        n += read_access(&accesses[n], &rules[n], &list->v[i]) ? 1 : 0;
    }
    if (rc == SY_E_OK) {
        rc = session_set_access_rules(a->session, rules, n);
    }
    mem_free(accesses);
    mem_free(rules);
    return rc;
}

/* What can't be read is not in force. */
static void
lose_access(struct approvals *a, const struct sy_error *err)
{
    a->access_version = UINT64_MAX;
    if (session_set_access_rules(a->session, NULL, 0) == SY_E_OK) {
        LOG(LOG_DEBUG, "approval", "what answers granted for good can't be read",
            kv_str("error", err->msg));
    }
}

void
approvals_refresh(struct approvals *a)
{
    struct store_accesses list = {0};
    struct sy_error err = {0};
    bool is_new = false;
    enum sy_code rc = SY_E_OK;

    if (a == NULL || a->review == NULL) {
        return;
    }
    rc = review_access_read(a->review, &list, &is_new, &a->access_version, &err);
    if (rc == SY_E_OK && is_new) {
        rc = give_access(a, &list);
    }
    store_accesses_fini(&list);
    if (rc != SY_E_OK) {
        lose_access(a, &err);
    }
}

static enum sy_code
make_review(struct approvals *a, const struct approvals_place *place, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    char principal[32];
    enum sy_code rc = guard_state_dir(&dir, session_environ(place->session));

    if (rc == SY_E_NOTFOUND) {
        return SY_E_OK;
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    (void)snprintf(principal, sizeof(principal), "uid %u", (unsigned)geteuid());

    const struct review_options options = {
        .state_dir = buf_view(&dir),
        .session = session_id(place->session),
        .principal = principal,
        .ttl_ms = (uint64_t)place->config->approval.expires_ms,
    };

    rc = review_new(&a->review, &options, err);
    return rc == SY_E_OK ? watch(a, err) : rc;
}

enum sy_code
approvals_new(struct approvals **ret, const struct approvals_place *place, struct sy_error *err)
{
    struct approvals *a = mem_alloc_zero(1, sizeof(*a));

    if (a == NULL) {
        return sy_err_nomem(err);
    }
    a->session = place->session;
    a->access_version = UINT64_MAX;
    a->loop = place->loop;

    enum sy_code rc = make_review(a, place, err);
    const struct assessor_options options = {
        .home = place->home,
        .user_path = place->rules_path,
        .more = {.version = a->review != NULL ? review_rules_version : NULL,
                 .read = a->review != NULL ? review_rules_read : NULL,
                 .arg = a->review},
    };

    if (rc == SY_E_OK) {
        rc = assessor_new(&a->assessor, &options, err);
    }
    if (rc == SY_E_OK && a->review != NULL) {
        const struct commenter_options commenter = {
            .config = place->config,
            .review = a->review,
            .loop = place->loop,
            .http_path = place->http_path,
            .environ_list = session_environ(place->session),
        };

        rc = commenter_new(&a->commenter, &commenter, err);
    }
    if (rc != SY_E_OK) {
        approvals_free(a);
        return rc;
    }

    const struct assess_by judge = {
        .fn = assessor_assess, .host = assessor_judge_host, .arg = a->assessor};
    const struct review_by review = {
        .ops = a->review != NULL ? &review_store_ops : NULL,
        .review = a->review,
    };

    session_use_approval(a->session, &judge, &review);
    *ret = a;
    return SY_E_OK;
}
