#include "protocol/mcp_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

/* A progress notification shows one line; clients cut longer ones. */
#define PROGRESS_MESSAGE 200U
#define PROGRESS_BUFFER  1024U

/* How often new output is looked for while a call is waited for: what people follow, and models
 * do not pay for. */
#define PROGRESS_LOOK_MS 250U

static uint64_t
progress_ms(const struct mcp *m)
{
    return m->base.options.progress_ms > 0 ? m->base.options.progress_ms : 5000;
}

static uint64_t
look_ms(const struct mcp *m)
{
    return progress_ms(m) < PROGRESS_LOOK_MS ? progress_ms(m) : PROGRESS_LOOK_MS;
}

static bool
wants_progress(const struct mcp_call *c)
{
    return c->token.kind != RPC_ID_NONE && !c->is_cancelled;
}

bool
mcp_is_slow(const struct mcp *m)
{
    const struct protocol_options *o = &m->base.options;

    return o->backlog != NULL && o->backlog(o->arg) > LIMIT_NOTICE_BACKLOG;
}

static void on_timer(uv_timer_t *timer);

void
mcp_arm(struct mcp *m)
{
    uint64_t first = mcp_notices_when(m);

    if (m->base.is_ending) {
        return; /* the timer counts the grace of the end */
    }
    for (const struct mcp_call *c = m->calls; c != NULL; c = c->next) {
        if (wants_progress(c) && c->due_ms < first) {
            first = c->due_ms;
        }
    }
    if (first == UINT64_MAX) {
        if (m->base.has_timer) {
            uv_timer_stop(&m->base.timer);
        }
        return;
    }

    uint64_t now = uv_now(m->base.options.loop);

    SY_ASSERT(
        uv_timer_start(protocol_timer(&m->base), on_timer, first > now ? first - now : 0, 0) == 0);
}

static void
send_progress(struct mcp *m, struct mcp_call *c)
{
    SY_AUTO(buf_fini) struct buf line = {.max = PROGRESS_BUFFER};
    const char *last = tool_last_line(c->tool);
    int64_t elapsed_ms = (int64_t)tool_elapsed_ms(c->tool);
    struct jw w;

    /* Must grow, also when the loop was late. */
    c->progress_ms = elapsed_ms > c->progress_ms ? elapsed_ms : c->progress_ms + 1;
    out_begin(&m->base, &w);
    rpc_notification_open(&w, "notifications/progress");
    jw_key(&w, "progressToken");
    rpc_id_write(&w, &c->token);
    jw_key(&w, "progress");
    jw_real(&w, (double)c->progress_ms / 1000, 3);
    if (m->version->has_annotations && last[0] != '\0' &&
        str_add_visible(&line, last, strlen(last), PROGRESS_MESSAGE) == SY_E_OK) {
        jw_key_strn(&w, "message", line.data, line.len);
    }
    jw_end_object(&w);
    jw_end_object(&w);
    if (jw_done(&w) == SY_E_OK) {
        out_send(&m->base);
    }
}

/* Something new to tell, or long silence. */
static void
look_for_progress(struct mcp *m, struct mcp_call *c, uint64_t now)
{
    uint64_t bytes = tool_output_bytes(c->tool);

    c->due_ms = now + look_ms(m);
    if ((bytes != c->told_bytes || c->beat_ms <= now) && !mcp_is_slow(m)) {
        send_progress(m, c);
        c->told_bytes = bytes;
        c->beat_ms = now + progress_ms(m);
    }
}

static void
on_timer(uv_timer_t *timer)
{
    struct mcp *m = timer->data;
    uint64_t now = uv_now(m->base.options.loop);

    for (struct mcp_call *c = m->calls; c != NULL; c = c->next) {
        if (wants_progress(c) && c->due_ms <= now) {
            look_for_progress(m, c, now);
        }
    }
    mcp_send_notices(m, now);
    mcp_arm(m);
}

static void
call_free(struct mcp_call *c)
{
    struct mcp *m = c->mcp;

    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        m->calls = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    m->n_calls--;
    mem_free(c);
}

static void
write_result(const struct mcp *m, struct jw *w, const struct tool_output *output)
{
    jw_key(w, "content");
    jw_array(w);
    jw_object(w);
    jw_key_str(w, "type", "text");
    jw_key_strn(w, "text", buf_view(&output->text), output->text.len);
    jw_end_object(w);
    jw_end_array(w);
    if (m->version->has_structured && output->structured.len > 0) {
        jw_key(w, "structuredContent");
        jw_raw(w, output->structured.data, output->structured.len);
    }
    jw_key_bool(w, "isError", output->is_error);
}

static void
on_done(void *arg, struct tool_call *call, struct tool_output *output)
{
    struct mcp_call *c = arg;
    struct mcp *m = c->mcp;
    struct mcp_batch *batch = c->batch;
    bool had_progress = c->token.kind != RPC_ID_NONE;

    (void)call;
    mcp_elicit_end(c);
    if (!c->is_cancelled) {
        struct jw w;

        mcp_reply_open(m, &w, &c->id);
        write_result(m, &w, output);
        mcp_reply_close(m, &w, &c->id, batch);
    }
    call_free(c);
    mcp_batch_release(m, batch);
    if (had_progress) {
        mcp_arm(m);
    }
    if (m->base.is_ending && m->n_calls == 0) {
        protocol_finish(&m->base);
    }
}

static struct mcp_call *
call_find(const struct mcp *m, const struct rpc_id *id)
{
    for (struct mcp_call *c = m->calls; c != NULL; c = c->next) {
        if (!c->is_cancelled && rpc_id_eq(&c->id, id)) {
            return c;
        }
    }
    return NULL;
}

/* Copies the string of an id to `to`; returns the bytes used. */
static size_t
keep_id(struct rpc_id *ret, const struct rpc_id *from, char *to)
{
    *ret = *from;
    if (from->len > 0) {
        memcpy(to, from->text, from->len);
        ret->text = to;
    }
    return from->len;
}

static struct mcp_call *
call_new(struct mcp *m, const struct mcp_request *r, const struct rpc_id *token)
{
    struct mcp_call *c = mem_alloc_zero(1, sizeof(*c) + r->id.len + token->len);

    if (c == NULL) {
        return NULL;
    }

    size_t used = keep_id(&c->id, &r->id, c->text);

    keep_id(&c->token, token, c->text + used);
    c->mcp = m;
    c->batch = r->batch;
    c->due_ms = uv_now(m->base.options.loop) + look_ms(m);
    c->beat_ms = uv_now(m->base.options.loop) + progress_ms(m);
    c->next = m->calls;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    m->calls = c;
    m->n_calls++;
    return c;
}

static enum sy_code
call_start(struct mcp *m, struct mcp_call *c, const char *name, const struct js *arguments,
           struct sy_error *err)
{
    char call_id[32];

    (void)snprintf(call_id, sizeof(call_id), "mcp-%llu", (unsigned long long)++m->n_started);

    const struct invocation inv = {
        .context = m->base.options.context,
        .turn = tool_context_turn(m->base.options.context),
        .call_id = call_id,
        .tool_name = name,
        .payload = PAYLOAD_MCP,
        .arguments = arguments,
        .front = FRONT_MCP,
        .asker = &m->asker,
    };

    return tool_start(&c->tool, &inv, on_done, c, err);
}

/* Arguments of tools/call besides the tool's own; answers what is wrong. */
static bool
read_call(struct mcp *m, const struct mcp_request *r, struct rpc_id *ret_token,
          const struct js **ret_arguments)
{
    const struct js *token = js_get(js_get(r->params, "_meta"), "progressToken");
    const struct js *arguments = js_get(r->params, "arguments");

    if (js_type(arguments) == JS_NULL) {
        arguments = m->no_arguments.root;
    }
    if (js_type(arguments) != JS_OBJECT) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "params.arguments of tools/call must be an object, not %s",
                  js_type_name(js_type(arguments)));
        return false;
    }
    if (js_type(token) != JS_NULL && !rpc_id_read(ret_token, token)) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "_meta.progressToken must be an integer or a string of at most %u bytes",
                  LIMIT_MESSAGE_ID);
        return false;
    }
    if (m->n_calls >= LIMIT_CALLS) {
        mcp_error(m, &r->id, r->batch, sy_code_rpc(SY_E_LIMIT),
                  "%u calls are running, which is the maximum: wait for one to end or cancel one",
                  LIMIT_CALLS);
        return false;
    }
    *ret_arguments = arguments;
    return true;
}

bool
mcp_id_is_used(const struct mcp *m, const struct rpc_id *id)
{
    return call_find(m, id) != NULL;
}

void
mcp_tools_call(struct mcp *m, const struct mcp_request *r)
{
    const char *name = js_str(js_get(r->params, "name"));
    const struct js *arguments = NULL;
    struct rpc_id token = {0};
    struct sy_error err = {0};

    if (name == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "tools/call needs params.name, a string: the name of a tool");
        return;
    }
    if (tool_find(name) == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "unknown tool '%.64s': tools/list names the tools", name);
        return;
    }
    if (!read_call(m, r, &token, &arguments)) {
        return;
    }

    struct mcp_call *c = call_new(m, r, &token);

    if (c == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_INTERNAL, "out of memory");
        return;
    }
    if (call_start(m, c, name, arguments, &err) != SY_E_OK) {
        call_free(c);
        mcp_error(m, &r->id, r->batch, sy_code_rpc(err.code), "%s", err.msg);
        return;
    }
    if (r->batch != NULL) {
        r->batch->holds++;
    }
    if (token.kind != RPC_ID_NONE) {
        mcp_arm(m);
    }
}

void
mcp_cancelled(struct mcp *m, const struct mcp_request *r)
{
    struct rpc_id id = {0};

    if (!rpc_id_read(&id, js_get(r->params, "requestId"))) {
        return;
    }

    struct mcp_call *c = call_find(m, &id);

    if (c != NULL) {
        c->is_cancelled = true;
        tool_cancel(c->tool); /* c may be gone after this */
    }
}

void
mcp_cancel_all(struct mcp *m)
{
    struct mcp_call *next = NULL;

    for (struct mcp_call *c = m->calls; c != NULL; c = next) {
        next = c->next;
        c->is_cancelled = true;
        tool_cancel(c->tool);
    }
}
