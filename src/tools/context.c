#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/access_call.h"
#include "tools/approvals.h"
#include "tools/live_call.h"
#include "tools/patch_call.h"
#include "tools/retry.h"
#include "tools/tools_internal.h"

struct tool_context {
    const struct config *config;
    uv_loop_t *loop;
    struct session *session;
    struct turn_context turn;
    /* Of their own memory: they outlive us until libuv lets go. */
    uv_timer_t *deferred_timer;
    uv_timer_t *rest_timer;
    struct tool_call *refused; /* to be answered from the loop */
    size_t calls;
    struct approvals *approvals; /* NULL: nobody judges or is asked */
    struct live_store *sessions;
};

static void answer_refused(struct tool_context *c);
static void on_rest(uv_timer_t *timer);

static void
on_deferred(uv_timer_t *timer)
{
    answer_refused(timer->data);
}

/* Lets go of what stands in workspaces, now or when it is time. */
static void
rest(struct tool_context *c)
{
    uint64_t now = clock_mono_ns();
    uint64_t next = session_rest(c->session, now);

    if (next != UINT64_MAX) {
        uv_update_time(c->loop);
        uv_timer_start(c->rest_timer, on_rest, next > now ? (next - now) / 1000000 + 1 : 0, 0);
    }
}

static void
on_rest(uv_timer_t *timer)
{
    rest(timer->data);
}

static uv_timer_t *
timer_new(struct tool_context *c)
{
    uv_timer_t *timer = mem_alloc_zero(1, sizeof(*timer));

    if (timer != NULL && uv_timer_init(c->loop, timer) != 0) {
        mem_free(timer);
        timer = NULL;
    }
    if (timer != NULL) {
        timer->data = c;
    }
    return timer;
}

static void
on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle);
}

static void
timer_end(uv_timer_t *timer)
{
    if (timer != NULL) {
        uv_timer_stop(timer);
        uv_close((uv_handle_t *)timer, on_timer_closed);
    }
}

enum sy_code
tool_context_new(struct tool_context **ret, const struct config *config, const char *cwd,
                 char *const *environ_list, struct uv_loop_s *loop, struct sy_error *err)
{
    struct session_options options;
    struct tool_context *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL) {
        return sy_err_nomem(err);
    }
    c->config = config;
    c->loop = loop;
    c->deferred_timer = timer_new(c);
    c->rest_timer = timer_new(c);
    if (c->deferred_timer == NULL || c->rest_timer == NULL) {
        tool_context_free(c);
        return sy_err_nomem(err);
    }
    uv_unref((uv_handle_t *)c->rest_timer); /* it keeps nobody from ending */
    session_options_from_config(&options, config, environ_list);
    options.spare = SPARE_ALWAYS;
    options.rests = true;
    options.reads_audit = config->sandbox.read_audit;

    enum sy_code rc = turn_from_config(&c->turn, config, cwd, environ_list, err);

    if (rc == SY_E_OK) {
        rc = session_new(&c->session, &options, err);
    }
    if (rc == SY_E_OK) {
        rc = live_store_new(&c->sessions,
                            &(const struct live_store_options){
                                .loop = loop,
                                .max = (size_t)config->sessions.max,
                                .keep_bytes = (size_t)config->sessions.keep_bytes,
                            },
                            err);
    }
    if (rc != SY_E_OK) {
        tool_context_free(c);
        return rc;
    }
    *ret = c;
    return SY_E_OK;
}

struct live_store *
tool_context_sessions(struct tool_context *c)
{
    return c->sessions;
}

void
tool_context_end_sessions(struct tool_context *c)
{
    live_store_end(c->sessions);
}

void
tool_context_end_within(struct tool_context *c, const struct session *s)
{
    live_end_within(c->sessions, s);
}

bool
tool_context_has_settled(const struct tool_context *c, const struct session *s)
{
    return live_has_settled_within(c->sessions, s);
}

bool
tool_context_is_over(const struct tool_context *c)
{
    return live_store_is_over(c->sessions);
}

enum sy_code
tool_context_use_launcher(struct tool_context *c, const char *path, struct sy_error *err)
{
    return session_use_launcher(c->session, path, err);
}

void
tool_context_free(struct tool_context *c)
{
    if (c == NULL) {
        return;
    }
    SY_ASSERT(c->calls == 0);
    live_store_free(c->sessions);
    approvals_free(c->approvals);
    timer_end(c->deferred_timer);
    timer_end(c->rest_timer);
    turn_context_fini(&c->turn);
    session_free(c->session);
    mem_free(c);
}

enum sy_code
tool_context_use_approval(struct tool_context *c, const struct tool_approval *options,
                          struct sy_error *err)
{
    const struct approvals_place place = {
        .session = c->session,
        .config = c->config,
        .loop = c->loop,
        .home = options->home,
        .rules_path = options->rules_path,
        .http_path = options->http_path,
    };
    const struct hooks hooks = {
        .programs = {[HOOK_PRE_EXEC] = &c->config->hooks.pre_exec,
                     [HOOK_PERMISSION_REQUEST] = &c->config->hooks.permission_request},
        .timeout_ms = (uint64_t)c->config->hooks.timeout_ms,
    };

    session_use_hooks(c->session, &hooks);

    return approvals_new(&c->approvals, &place, err);
}

const struct config *
tool_context_config(const struct tool_context *c)
{
    return c->config;
}

struct session *
tool_context_session(struct tool_context *c)
{
    return c->session;
}

const struct turn_context *
tool_context_turn(const struct tool_context *c)
{
    return &c->turn;
}

static void
append(struct tool_call **list, struct tool_call *call)
{
    while (*list != NULL) {
        list = &(*list)->next;
    }
    call->next = NULL;
    *list = call;
}

static void
call_free(struct tool_call *call)
{
    if (call->live == NULL) {
        orch_call_free(call->orch); /* else the session's */
    }
    orch_call_free(call->first);
    live_call_free(call->live);
    tool_output_fini(&call->answer);
    buf_fini(&call->last_line);
    mem_free(call->call_id);
    mem_free(call);
}

/* For whoever counts (events.h). */
static void
tell_done(const struct tool_call *call)
{
    struct event_bus *bus = session_bus(call->context->session);
    struct event_denial denials[DENIALS_MAX];
    struct exec_output o = {0};
    struct event e = {
        .kind = EVENT_TOOL_DONE, .session_id = session_id(call->session), .call_id = call->call_id};
    struct event_tool_done *d = &e.u.done;

    if (!event_bus_wants(bus, EVENT_TOOL_DONE)) {
        return;
    }
    *d = (struct event_tool_done){.tool = call->handler->name,
                                  .status = "rejected",
                                  .duration_ns = clock_mono_ns() - call->started_ns,
                                  .denials = denials};
    if (call->has_answer) {
        d->status = exec_status_name(EXEC_EXITED);
    } else if (!call->has_refusal) {
        live_call_output(&o, call);
        d->status = exec_status_name(o.status);
        d->has_run = o.output != NULL;
        d->has_failed = exec_has_failed(&o);
        d->run_duration_ns = o.duration_ns;
        d->limit = o.hit.resource != RESOURCE_NONE ? resource_name(o.hit.resource) : NULL;
        for (size_t i = 0; i < o.denials.n && i < DENIALS_MAX; i++) {
            denials[d->n_denials++] = (struct event_denial){
                .layer = denial_layer_name(o.denials.v[i].layer),
                .operation = o.denials.v[i].operation,
                .count = o.denials.v[i].count,
            };
        }
    }
    event_emit(bus, &e);
}

/* Answers and frees. An answer that memory does not suffice for is told as
 * an error with empty texts: the front end still gets its `done`. */
void
tool_call_complete(struct tool_call *call)
{
    struct tool_context *c = call->context;
    struct tool_output output = {.is_error = true};
    struct sy_error nomem;
    enum sy_code rc = SY_E_OK;

    if (call->has_answer) {
        output = call->answer;
        call->answer = (struct tool_output){0};
    } else if (call->has_refusal) {
        rc = result_build_error(&output, &call->refusal);
    } else if (call->patch != NULL) {
        rc = patch_call_result(&output, call, orch_output(call->orch));
    } else if (call->access != NULL) {
        rc = access_call_result(&output, call, orch_output(call->orch));
    } else if (call->live != NULL) {
        rc = live_call_result(&output, call);
    } else {
        struct exec_output answer;

        retry_output(&answer, call);
        rc = result_build(&output, call, &answer);
    }
    if (rc != SY_E_OK) {
        sy_err_set(&nomem, SY_E_NOMEM, "out of memory for the answer");
        if (result_build_error(&output, &nomem) != SY_E_OK) {
            output = (struct tool_output){.is_error = true};
        }
    }
    tell_done(call);
    c->calls--;
    call->done(call->arg, call, &output);
    tool_output_fini(&output);
    call_free(call);
}

void
tool_call_refuse(struct tool_call *call, const struct sy_error *why)
{
    call->has_refusal = true;
    call->refusal = *why;
    append(&call->context->refused, call);
    uv_timer_start(call->context->deferred_timer, on_deferred, 0, 0);
}

void
tool_call_answer(struct tool_call *call, struct tool_output *answer)
{
    call->has_answer = true;
    call->answer = *answer;
    *answer = (struct tool_output){0};
    append(&call->context->refused, call);
    uv_timer_start(call->context->deferred_timer, on_deferred, 0, 0);
}

static void
answer_refused(struct tool_context *c)
{
    while (c->refused != NULL) {
        struct tool_call *call = c->refused;

        c->refused = call->next;
        tool_call_complete(call);
    }
}

static void
on_asked(void *arg, struct orch_call *orch, const char *id, const char *question)
{
    struct tool_call *call = arg;

    (void)orch;
    if (call->asker->asked != NULL) {
        call->asker->asked(call->arg, call, id, question);
    }
}

static void on_orch_done(void *arg, struct orch_call *orch);

/* What goes on behind a command is a session, where there are tools for them. */
static const char *
keep_by(const struct config *config)
{
    if (tool_is_listed(tool_find("exec_command"), config)) {
        return "start it by exec_command, without '&'";
    }
    return tool_is_listed(tool_find("shell"), config)
               ? "start it by shell with the action spawn, without '&'"
               : NULL;
}

void
tool_call_fill_request(struct tool_call *call, struct exec_request *request)
{
    request->is_mutating = call->is_mutating;
    request->keep_by = keep_by(call->context->config);
    if (call->asker != NULL) {
        request->hold_ms = call->asker->hold_ms;
        request->asks_once = call->asker->asks_once;
        request->client = call->asker->client;
        request->on_asked = on_asked;
        request->on_asked_arg = call;
    }
    approvals_refresh(call->context->approvals);
}

static enum sy_code
submit(struct tool_call *call, const struct turn_context *turn, struct exec_request *request,
       struct sy_error *err)
{
    struct tool_context *c = call->context;

    tool_call_fill_request(call, request);

    enum sy_code rc = orch_submit(&call->orch, call->session, turn, request, err);

    return rc == SY_E_OK ? orch_attach(&call->driver, call->orch, c->loop, on_orch_done, call, err)
                         : rc;
}

/* A second attempt; false: there is none, the first one is answered. */
static bool
try_again(struct tool_call *call)
{
    struct exec_request request = {0};
    struct sy_error err = {0};
    struct orch_call *first = call->orch;

    if (!retry_make(&request, call)) {
        return false;
    }
    call->first = first;
    call->orch = NULL;
    if (submit(call, orch_turn(first), &request, &err) == SY_E_OK) {
        return true;
    }
    orch_call_free(call->orch);
    call->orch = first;
    call->first = NULL;
    return false;
}

static void
on_orch_done(void *arg, struct orch_call *orch)
{
    struct tool_call *call = arg;

    (void)orch; /* call->orch, freed with the call */
    call->driver = NULL;
    if (try_again(call)) {
        return;
    }
    uv_timer_start(call->context->rest_timer, on_rest, LIMIT_PLACEHOLDER_LINGER_MS, 0);
    tool_call_complete(call);
}

enum sy_code
tool_submit(struct tool_call *call, struct exec_request *request, size_t max_bytes,
            struct sy_error *err)
{
    request->call_id = mem_strdup(call->call_id);
    if (request->call_id == NULL) {
        return sy_err_nomem(err);
    }
    call->timeout_ms = request->params.expiration.timeout_ms;
    call->max_bytes = max_bytes;
    return submit(call, call->turn, request, err);
}

static struct tool_call *
call_new(const struct invocation *inv, const struct tool_handler *handler, tool_done_fn *done,
         void *arg)
{
    struct tool_call *call = mem_alloc_zero(1, sizeof(*call));

    if (call == NULL) {
        return NULL;
    }
    call->context = inv->context;
    call->session = inv->session != NULL ? inv->session : inv->context->session;
    call->handler = handler;
    call->turn = inv->turn;
    call->front = inv->front;
    call->asker = inv->asker;
    call->done = done;
    call->arg = arg;
    call->started_ns = clock_mono_ns();
    call->last_line.max = LIMIT_LAST_LINE;
    call->call_id = mem_strdup(inv->call_id);
    if (call->call_id == NULL) {
        mem_free(call);
        return NULL;
    }
    return call;
}

/* The handler's verdict on the arguments. */
static enum sy_code
handle(struct tool_call *call, const struct invocation *inv, struct sy_error *err)
{
    const struct tool_handler *handler = call->handler;

    if (!handler->matches_kind(inv->payload)) {
        return sy_err_set(err, SY_E_ARG, "tool '%s' does not take this kind of call",
                          handler->name);
    }
    if (inv->payload != PAYLOAD_CUSTOM && js_type(inv->arguments) != JS_OBJECT) {
        return sy_err_set(err, SY_E_ARG, "the arguments of '%s' must be a JSON object, not %s",
                          handler->name, js_type_name(js_type(inv->arguments)));
    }
    call->is_mutating = handler->is_mutating(inv);
    return handler->handle(inv, call, err);
}

enum sy_code
tool_start(struct tool_call **ret, const struct invocation *inv, tool_done_fn *done, void *arg,
           struct sy_error *err)
{
    struct tool_context *c = inv->context;
    /* The specification (shell tool, section 1): "disabled" registers no shell tool at all. */
    bool is_disabled = str_eq(c->config->tools.shell_type, "disabled");
    const struct tool_handler *handler = is_disabled ? NULL : tool_find(inv->tool_name);

    if (handler == NULL) {
        return sy_err_set(err, SY_E_NOTFOUND, "unknown tool '%.80s'%s", inv->tool_name,
                          is_disabled ? " (tools.shell_type is disabled)" : "");
    }
    if (c->calls >= LIMIT_CALLS) {
        return sy_err_set(err, SY_E_LIMIT, "%u calls are under way: wait for one to end",
                          LIMIT_CALLS);
    }

    struct tool_call *call = call_new(inv, handler, done, arg);

    if (call == NULL) {
        return sy_err_nomem(err);
    }
    c->calls++;

    struct sy_error why = {0};

    if (handle(call, inv, &why) != SY_E_OK) {
        tool_call_refuse(call, &why);
    }
    call->turn = NULL;
    *ret = call;
    return SY_E_OK;
}

void
tool_cancel(struct tool_call *call)
{
    if (call->is_cancelled || call->has_refusal || call->has_answer) {
        return;
    }
    call->is_cancelled = true;
    if (call->driver != NULL) {
        orch_cancel(call->orch);
        orch_wake(call->driver);
    }
    if (call->live != NULL) {
        live_call_cancel(call->live);
    }
}

/* Its command is on its way to run, or runs. */
static bool
is_under_way(const struct tool_call *call)
{
    return call->driver != NULL || (call->live != NULL && live_call_may_ask(call->live));
}

void
tool_reply(struct tool_call *call, const struct review_reply *reply)
{
    if (is_under_way(call)) {
        orch_reply(call->orch, reply);
    }
}

void
tool_give_up(struct tool_call *call)
{
    if (is_under_way(call)) {
        orch_give_up(call->orch);
    }
}

uint64_t
tool_elapsed_ms(const struct tool_call *call)
{
    return (clock_mono_ns() - call->started_ns) / 1000000;
}

const char *
tool_call_id(const struct tool_call *call)
{
    return call->call_id;
}
