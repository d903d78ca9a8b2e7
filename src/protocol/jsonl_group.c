#include "protocol/jsonl_internal.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct jsonl_call *
jsonl_call_find(const struct jsonl *j, const struct jsonl_session *s, const char *call_id)
{
    for (struct jsonl_group *g = j->groups; g != NULL; g = g->next) {
        for (size_t i = g->n_sent; i < g->n && g->session == s; i++) {
            if (str_eq(g->calls[i].call_id, call_id)) {
                return &g->calls[i];
            }
        }
    }
    return NULL;
}

static void
call_release(struct jsonl_call *c)
{
    json_doc_fini(&c->args);
    buf_fini(&c->content);
}

static void
group_free(struct jsonl_group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        call_release(&g->calls[i]);
    }
    json_doc_fini(&g->doc);
    jsonl_turn_unref(g->turn);
    mem_free(g);
}

static void
group_link(struct jsonl_group *g)
{
    struct jsonl *j = g->front;

    g->prev = j->last;
    if (j->last != NULL) {
        j->last->next = g;
    } else {
        j->groups = g;
    }
    j->last = g;
    j->n_calls += g->n;
    g->session->n_groups++;
}

static void
group_unlink(struct jsonl_group *g)
{
    struct jsonl *j = g->front;

    if (g->prev != NULL) {
        g->prev->next = g->next;
    } else {
        j->groups = g->next;
    }
    if (g->next != NULL) {
        g->next->prev = g->prev;
    } else {
        j->last = g->prev;
    }
    j->n_calls -= g->n;
    g->session->n_groups--;
}

static void
finish(struct jsonl *j)
{
    if (j->subscription != 0) {
        struct session *s = tool_context_session(j->base.options.context);

        event_unsubscribe(session_bus(s), j->subscription);
        j->subscription = 0;
    }
    protocol_finish(&j->base);
}

static bool
has_settled(const struct jsonl *j)
{
    return tool_context_has_settled(j->base.options.context, j->main.orch);
}

/* What was to end has ended, or takes too long. */
static void
on_timer(uv_timer_t *timer)
{
    struct jsonl *j = timer->data;

    jsonl_sessions_reap(j);
    if (j->is_leaving) {
        finish(j);
    }
}

/* The timer keeps the loop: nothing else may. */
static void
look_in(struct jsonl *j, uint64_t ms)
{
    uv_timer_t *timer = protocol_timer(&j->base);

    uv_ref((uv_handle_t *)timer);
    SY_ASSERT(uv_timer_start(timer, on_timer, ms, 0) == 0);
}

void
jsonl_on_session(void *arg, const char *id, enum tool_session_change change)
{
    struct jsonl *j = arg;

    (void)id;
    if (j->base.is_closing) {
        return;
    }
    /* Only takes note: it comes from whatever has ended. */
    if (change == TOOL_SESSION_SETTLED && (!j->is_leaving || has_settled(j))) {
        look_in(j, 0);
    }
}

void
jsonl_finish_if_over(struct jsonl *j)
{
    if (!j->base.is_ending || j->groups != NULL || j->is_leaving) {
        return;
    }
    j->is_leaving = true;
    jsonl_sessions_leave(j);
    if (j->base.options.leaving != NULL) {
        j->base.options.leaving(j->base.options.arg);
    }
    if (has_settled(j)) {
        finish(j);
    } else {
        look_in(j, LIMIT_DRAIN_MS);
    }
}

static void group_advance(struct jsonl_group *g);

static void
on_done(void *arg, struct tool_call *call, struct tool_output *output)
{
    struct jsonl_call *c = arg;

    (void)call;
    /* Moved, not copied: an earlier call of the batch may have to go first. */
    c->content = output->content;
    output->content = (struct buf){0};
    c->tool = NULL;
    c->is_done = true;
    c->group->n_running--;
    c->request[0] = '\0';
    if (output->is_aborted) {
        jsonl_interrupt_turn(c->group->front, c->group->session, c->group->turn);
        return;
    }
    group_advance(c->group);
}

static void
invocation_init(struct invocation *ret, const struct jsonl_call *c)
{
    struct tool_context *context = c->group->front->base.options.context;
    const struct jsonl_turn *turn = c->group->turn;

    *ret = (struct invocation){
        .context = context,
        .session = c->group->session->orch,
        .turn = turn != NULL ? &turn->context : tool_context_turn(context),
        .turn_id = turn != NULL && turn->id[0] != '\0' ? turn->id : NULL,
        .call_id = c->call_id,
        .payload = c->type->payload,
        .front = FRONT_PROTO,
        .asker = &c->group->front->asker,
    };
}

static enum sy_code
prepare(struct invocation *ret, struct jsonl_call *c, struct sy_error *err)
{
    invocation_init(ret, c);

    enum sy_code rc = c->type->prepare(ret, c->item, &c->args, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    const struct tool_handler *t = tool_find(ret->tool_name);

    SY_ASSERT(t != NULL); /* prepare looked it up */
    if (!t->matches_kind(ret->payload)) {
        return sy_err_set(err, SY_E_ARG, "%s can't be called by a %s", t->name, c->type->type);
    }
    return SY_E_OK;
}

static void
call_fail(struct jsonl_call *c, const struct sy_error *err)
{
    memcpy(c->reason, err->msg, sizeof(c->reason));
    c->is_done = true;
}

static void
call_start(struct jsonl_call *c)
{
    struct jsonl_group *g = c->group;
    struct invocation inv;
    struct sy_error err = {0};
    enum sy_code rc = SY_E_OK;

    if (c->is_done) {
        return; /* interrupted before its turn came */
    }
    if (g->is_refused) {
        rc = sy_err_set(&err, SY_E_DENIED,
                        "not run: the turn message before this call was refused; "
                        "send a valid turn first");
    } else {
        json_doc_fini(&c->args);
        rc = prepare(&inv, c, &err);
    }
    if (rc == SY_E_OK) {
        rc = tool_start(&c->tool, &inv, on_done, c, &err);
    }
    json_doc_fini(&c->args);
    c->item = NULL;
    if (rc != SY_E_OK) {
        call_fail(c, &err);
        return;
    }
    g->n_running++;
}

/* Sends what is done and first in line, starts what may start. */
static void
group_advance(struct jsonl_group *g)
{
    struct jsonl *j = g->front;

    if (j->busy > 0) {
        return; /* the walk does it at its end */
    }
    for (;;) {
        while (g->n_sent < g->n && g->calls[g->n_sent].is_done) {
            struct jsonl_call *c = &g->calls[g->n_sent];

            jsonl_send_output(j, c);
            call_release(c);
            g->n_sent++;
        }
        if (g->n_started == g->n || (!g->is_parallel && g->n_running > 0)) {
            break;
        }
        call_start(&g->calls[g->n_started++]);
        if (g->n_started == g->n) {
            json_doc_fini(&g->doc);
        }
    }
    if (g->n_sent == g->n) {
        group_unlink(g);
        group_free(g);
        jsonl_sessions_reap(j);
        jsonl_finish_if_over(j);
    }
}

/* Specification: a batch runs in parallel only if no call of it changes anything;
 * whoever is unsure says it does. */
static bool
group_may_be_parallel(struct jsonl_group *g)
{
    bool is_parallel = g->n > 1 && !g->is_refused;

    for (size_t i = 0; i < g->n && is_parallel; i++) {
        struct jsonl_call *c = &g->calls[i];
        struct invocation inv;

        enum sy_code rc = prepare(&inv, c, NULL);

        if (rc == SY_E_OK) {
            is_parallel = !tool_find(inv.tool_name)->is_mutating(&inv);
        } else {
            /* What can't be prepared runs nothing; memory may come back. */
            is_parallel = rc != SY_E_NOMEM;
        }
        json_doc_fini(&c->args);
    }
    return is_parallel;
}

/* A batch is one session's. */
static enum sy_code
check_session(const struct jsonl_call *c, const struct js *item, struct sy_error *err)
{
    const struct js *v = js_get(item, "session");
    const char *id = js_str(v);

    return js_type(v) == JS_NULL || (id != NULL && str_eq(id, c->group->session->id))
               ? SY_E_OK
               : sy_err_set(err, SY_E_ARG,
                            "session must be that of the batch: a batch belongs to one session");
}

static enum sy_code
read_head(struct jsonl_call *c, const struct js *item, struct sy_error *err)
{
    const char *type = js_str(js_get(item, "type"));
    const char *call_id = js_str(js_get(item, "call_id"));

    if (check_session(c, item, err) != SY_E_OK) {
        return SY_E_ARG;
    }
    c->item = item;
    c->type = type != NULL ? jsonl_item_type_find(type) : NULL;
    if (c->type == NULL) {
        return sy_err_set(err, SY_E_ARG,
                          "type must be function_call, custom_tool_call or local_shell_call");
    }
    if (call_id == NULL && c->type->payload == PAYLOAD_LOCAL_SHELL) {
        call_id = js_str(js_get(item, "id"));
    }
    if (call_id == NULL || call_id[0] == '\0' || strlen(call_id) > LIMIT_MESSAGE_ID) {
        return sy_err_set(err, SY_E_ARG, "call_id must be a string of 1 to %u bytes",
                          LIMIT_MESSAGE_ID);
    }
    memcpy(c->call_id, call_id, strlen(call_id) + 1);
    return SY_E_OK;
}

static enum sy_code
check_call_id(const struct jsonl *j, const struct jsonl_group *g, size_t n, struct sy_error *err)
{
    const char *call_id = g->calls[n].call_id;
    bool is_taken = jsonl_call_find(j, g->session, call_id) != NULL;

    for (size_t i = 0; i < n && !is_taken; i++) {
        is_taken = str_eq(g->calls[i].call_id, call_id);
    }
    return is_taken ? sy_err_set(err, SY_E_ARG, "call_id '%.64s' is in use by an unanswered call",
                                 call_id)
                    : SY_E_OK;
}

/* Answers each call of a group that can't be taken. */
static void
group_refuse(struct jsonl_group *g, const struct sy_error *err)
{
    for (size_t i = 0; i < g->n; i++) {
        call_fail(&g->calls[i], err);
        jsonl_send_output(g->front, &g->calls[i]);
    }
    group_free(g);
}

/* For an error about a call that is none yet. */
static const char *
call_id_of(const struct js *message)
{
    const char *id = js_str(js_get(message, "call_id"));

    return id != NULL && strlen(id) <= LIMIT_MESSAGE_ID ? id : NULL;
}

/* Why it can't be taken now, whatever its calls are. */
static enum sy_code
check_room(const struct jsonl *j, const struct jsonl_group *g, struct sy_error *err)
{
    if (j->n_calls + g->n > LIMIT_CALLS) {
        return sy_err_set(err, SY_E_LIMIT,
                          "not run: %zu calls are unanswered and %u are the maximum; wait for "
                          "answers",
                          j->n_calls, LIMIT_CALLS);
    }
    if (g->session->is_closing) {
        return sy_err_set(err, SY_E_CANCELLED, "not run: session '%s' is being closed",
                          g->session->id);
    }
    return SY_E_OK;
}

void
jsonl_submit(struct jsonl *j, const struct jsonl_line *line, const struct js *items)
{
    size_t n = items != NULL ? js_count(items) : 1;
    struct jsonl_group *g = mem_alloc_zero(1, sizeof(*g) + n * sizeof(g->calls[0]));
    struct sy_error err = {0};
    enum sy_code rc = SY_E_OK;

    if (g == NULL) {
        jsonl_send_error(j, call_id_of(line->message), "out of memory: not run");
        return;
    }
    g->front = j;
    rc = jsonl_session_of(&g->session, j, line->message, &err);
    if (rc != SY_E_OK) {
        jsonl_send_error(j, call_id_of(line->message), err.msg);
        group_free(g);
        return;
    }
    for (; g->n < n && rc == SY_E_OK; g->n++) {
        struct jsonl_call *c = &g->calls[g->n];

        c->group = g;
        rc = read_head(c, items != NULL ? js_at(items, g->n) : line->message, &err);
        if (rc == SY_E_OK) {
            rc = check_call_id(j, g, g->n, &err);
        }
        if (rc != SY_E_OK && items != NULL) {
            sy_err_wrap(&err, "calls[%zu]", g->n);
        }
    }
    if (rc != SY_E_OK) {
        /* All or nothing: a half-run batch is hard to go on from. */
        jsonl_send_session_error(j, g->session, NULL, err.msg);
        group_free(g);
        return;
    }
    if (check_room(j, g, &err) != SY_E_OK) {
        group_refuse(g, &err);
        return;
    }
    g->turn = g->session->turn;
    jsonl_turn_ref(g->turn);
    g->is_refused = jsonl_session_is_refused(g->session);
    g->is_parallel = group_may_be_parallel(g);
    g->doc = *line->doc;
    *line->doc = (struct json_doc){0};
    group_link(g);
    group_advance(g);
}

/* Which calls: all, those of a session, those of sessions below one; of one turn, of one id. */
struct selection {
    const struct jsonl_session *within; /* it and those below; NULL: all */
    const struct jsonl_session *of;     /* that one alone; NULL: not so */
    const char *call_id;
    bool has_turn; /* of `within`; those below are meant whatever their turn is */
    const struct jsonl_turn *turn;
};

static bool
selects(const struct selection *which, const struct jsonl_group *g, const struct jsonl_call *c)
{
    if (which->of != NULL && g->session != which->of) {
        return false;
    }
    if (which->within != NULL && !session_is_within(g->session->orch, which->within->orch)) {
        return false;
    }
    if (which->has_turn && g->session == which->within && g->turn != which->turn) {
        return false;
    }
    return which->call_id == NULL || str_eq(c->call_id, which->call_id);
}

static void
interrupt(struct jsonl *j, const struct selection *which)
{
    struct jsonl_group *next = NULL;

    j->busy++;
    for (struct jsonl_group *g = j->groups; g != NULL; g = g->next) {
        for (size_t i = g->n_sent; i < g->n; i++) {
            struct jsonl_call *c = &g->calls[i];

            if (c->is_done || !selects(which, g, c)) {
                continue;
            }
            if (c->tool != NULL) {
                tool_cancel(c->tool);
            } else {
                static const struct sy_error cancelled = {.msg = "cancelled before it started"};

                call_fail(c, &cancelled);
            }
        }
    }
    j->busy--;
    for (struct jsonl_group *g = j->groups; g != NULL; g = next) {
        next = g->next;
        group_advance(g);
    }
}

void
jsonl_interrupt(struct jsonl *j)
{
    const struct selection all = {0};

    interrupt(j, &all);
}

void
jsonl_interrupt_call(struct jsonl *j, const struct jsonl_session *s, const char *call_id)
{
    const struct selection one = {.of = s, .call_id = call_id};

    interrupt(j, &one);
}

void
jsonl_interrupt_session(struct jsonl *j, const struct jsonl_session *s)
{
    const struct selection those = {.within = s};

    interrupt(j, &those);
}

void
jsonl_interrupt_turn(struct jsonl *j, const struct jsonl_session *s, const struct jsonl_turn *turn)
{
    const struct selection those = {.within = s, .has_turn = true, .turn = turn};

    interrupt(j, &those);
}
