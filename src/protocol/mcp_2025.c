#include "protocol/mcp_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

/* Which tool for what: told in the instructions if the tool is listed. A client gives these to its
 * model with each prompt: they have at most 600 bytes in every configuration. */
static const struct {
    const char *tool;
    const char *text;
} uses[] = {
    {"shell_command", "shell_command: one command line. "                     },
    {"shell",         "shell: one program with its arguments. "               },
    {"exec_command",  "exec_command: also what runs on or asks (REPLs; tty). "},
    {"apply_patch",   "apply_patch: edit files. "                             },
};

/* When an answer comes, from what runs commands to their end and from sessions, and how these are
 * waited for. */
static const char answers_at_end[] =
    "Calls end with the command or after timeout_ms (default $(timeout_ms)): give builds more. ";
static const char answers_early[] =
    "exec_command answers when it has ended or yield_time_ms is over; then write_stdin types and "
    "waits (until: prompt, input, stable; pattern). ";
static const char goes_on_by_shell[] =
    "What runs on or asks: action spawn, then wait or send_text (until: prompt, input; pattern). ";

static const char instructions[] =
    "A non-zero exit_code is no error. $(sandbox?Commands run in a sandbox: what it denies fails "
    "inside them, e.g. \"Permission denied\"|Commands run without a sandbox). isError: it did not "
    "run, or not to its end; change the call as the text says, don't repeat it.";
static const char no_tools[] = "There are no tools here: tools.shell_type is \"disabled\".";

#define INSTRUCTIONS_MAX 1024U

void
mcp_batch_release(struct mcp *m, struct mcp_batch *batch)
{
    if (batch == NULL || --batch->holds > 0) {
        return;
    }
    if (batch->out.len > 0) {
        /* mcp_deliver() keeps room for the bracket. */
        SY_ASSERT(buf_add_char(&batch->out, ']') == SY_E_OK);
        (void)m->base.options.send(m->base.options.arg, batch->out.data, batch->out.len);
    }
    buf_fini(&batch->out);
    mem_free(batch);
}

void
mcp_deliver(struct mcp *m, struct mcp_batch *batch)
{
    const struct buf *out = &m->base.out;

    if (batch != NULL && buf_reserve(&batch->out, out->len + 2) == SY_E_OK) {
        enum sy_code rc = buf_add_char(&batch->out, batch->out.len == 0 ? '[' : ',');

        if (rc == SY_E_OK) {
            rc = buf_add(&batch->out, out->data, out->len);
        }
        SY_ASSERT(rc == SY_E_OK);
        return;
    }
    /* No memory to wait for the others: alone is better than never. */
    out_send(&m->base);
}

void
mcp_reply_open(struct mcp *m, struct jw *w, const struct rpc_id *id)
{
    out_begin(&m->base, w);
    rpc_reply_open(w, id);
    jw_key(w, "result");
    jw_object(w);
}

void
mcp_reply_close(struct mcp *m, struct jw *w, const struct rpc_id *id, struct mcp_batch *batch)
{
    jw_end_object(w);
    jw_end_object(w);

    enum sy_code rc = jw_done(w);

    if (rc != SY_E_OK) {
        mcp_error(m, id, batch, RPC_INTERNAL, "building the answer: %s", sy_code_text(rc));
        return;
    }
    mcp_deliver(m, batch);
}

void
mcp_error(struct mcp *m, const struct rpc_id *id, struct mcp_batch *batch, int code,
          const char *fmt, ...)
{
    char text[SY_ERR_MSG_MAX];
    struct jw w;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    out_begin(&m->base, &w);
    rpc_error(&w, id, code, text);
    /* OUT_RESERVE holds the longest of these. */
    SY_ASSERT(jw_done(&w) == SY_E_OK);
    mcp_deliver(m, batch);
}

static struct told_for
who_is_told(const struct mcp *m)
{
    return (struct told_for){tool_context_config(m->base.options.context), FRONT_MCP};
}

static bool
tool_is_offered(const struct mcp *m, const struct tool_handler *t)
{
    return tool_is_listed(t, tool_context_config(m->base.options.context));
}

static bool
is_offered(const struct mcp *m, const char *name)
{
    const struct tool_handler *t = tool_find(name);

    return t != NULL && tool_is_offered(m, t);
}

static enum sy_code
add_instructions(struct buf *out, const struct mcp *m)
{
    const struct told_for who = who_is_told(m);
    const bool has_shell = is_offered(m, "shell");
    const bool has_sessions = is_offered(m, "exec_command");
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]) && rc == SY_E_OK; i++) {
        rc = is_offered(m, uses[i].tool) ? buf_add_str(out, uses[i].text) : rc;
    }
    if (out->len == 0) {
        return buf_add_str(out, no_tools);
    }
    if (rc == SY_E_OK && (has_shell || is_offered(m, "shell_command"))) {
        rc = tool_add_text(out, answers_at_end, &who);
    }
    if (rc == SY_E_OK && (has_sessions || has_shell)) {
        rc = buf_add_str(out, has_sessions ? answers_early : goes_on_by_shell);
    }
    return rc == SY_E_OK ? tool_add_text(out, instructions, &who) : rc;
}

static void
write_instructions(const struct mcp *m, struct jw *w)
{
    SY_AUTO(buf_fini) struct buf text = {.max = INSTRUCTIONS_MAX};
    enum sy_code rc = add_instructions(&text, m);

    jw_key_strn(w, "instructions", buf_view(&text), text.len);
    w->rc = rc != SY_E_OK ? rc : w->rc;
}

static void
initialize(struct mcp *m, const struct mcp_request *r)
{
    const char *asked = js_str(js_get(r->params, "protocolVersion"));
    struct jw w;

    if (asked == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "initialize needs params.protocolVersion, a string like \"%s\"",
                  mcp_version_newest()->name);
        return;
    }

    /* Again is legal: a client that gave up waiting for the first answer. */
    m->version = mcp_version_offer(asked);
    mcp_elicit_setup(m, r->params);

    mcp_reply_open(m, &w, &r->id);
    jw_key_str(&w, "protocolVersion", m->version->name);
    jw_key(&w, "capabilities");
    jw_object(&w);
    jw_key(&w, "tools");
    jw_object(&w);
    jw_key_bool(&w, "listChanged", false);
    jw_end_object(&w);
    jw_key(&w, "resources");
    jw_object(&w);
    jw_key_bool(&w, "subscribe", true);
    jw_key_bool(&w, "listChanged", true);
    jw_end_object(&w);
    jw_end_object(&w);
    jw_key(&w, "serverInfo");
    jw_object(&w);
    jw_key_str(&w, "name", "shellyard");
    if (m->version->has_structured) {
        jw_key_str(&w, "title", "Shellyard");
    }
    jw_key_str(&w, "version", SY_VERSION);
    jw_end_object(&w);
    write_instructions(m, &w);
    mcp_reply_close(m, &w, &r->id, r->batch);
}

static void
initialized(struct mcp *m, const struct mcp_request *r)
{
    (void)r;
    m->is_ready = m->version != NULL;
    mcp_arm(m);
}

void
mcp_reply_empty(struct mcp *m, const struct mcp_request *r)
{
    struct jw w;

    mcp_reply_open(m, &w, &r->id);
    mcp_reply_close(m, &w, &r->id, r->batch);
}

static void
write_tool(const struct mcp *m, struct jw *w, const struct tool_handler *t)
{
    const struct told_for who = who_is_told(m);

    jw_object(w);
    jw_key_str(w, "name", t->name);
    if (m->version->has_structured) {
        jw_key_str(w, "title", t->title);
    }
    jw_key(w, "description");
    tool_write_description(w, t, &who);
    jw_key(w, "inputSchema");
    tool_write_input_schema(w, t, &who);
    if (m->version->has_structured && t->output_schema != NULL) {
        jw_key(w, "outputSchema");
        jw_raw(w, t->output_schema, strlen(t->output_schema));
    }
    if (m->version->has_annotations) {
        /* All four: what is missing counts as the worst. */
        jw_key(w, "annotations");
        jw_object(w);
        jw_key_bool(w, "readOnlyHint", t->is_read_only);
        jw_key_bool(w, "destructiveHint", t->is_destructive);
        jw_key_bool(w, "idempotentHint", t->is_idempotent);
        jw_key_bool(w, "openWorldHint", t->is_open_world);
        jw_end_object(w);
    }
    jw_end_object(w);
}

bool
mcp_is_first_page(struct mcp *m, const struct mcp_request *r)
{
    bool is_first = js_type(js_get(r->params, "cursor")) == JS_NULL;

    if (!is_first) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS,
                  "unknown cursor: the list is one page, leave params.cursor out");
    }
    return is_first;
}

static void
tools_list(struct mcp *m, const struct mcp_request *r)
{
    struct jw w;

    if (!mcp_is_first_page(m, r)) {
        return;
    }
    mcp_reply_open(m, &w, &r->id);
    jw_key(&w, "tools");
    jw_array(&w);
    for (const struct tool_handler *const *t = tool_handlers(); *t != NULL; t++) {
        if (tool_is_offered(m, *t)) {
            write_tool(m, &w, *t);
        }
    }
    jw_end_array(&w);
    mcp_reply_close(m, &w, &r->id, r->batch);
}

enum method_flag {
    METHOD_EARLY = 1,        /* legal before initialize */
    METHOD_ALONE = 2,        /* not inside an array */
    METHOD_NOTIFICATION = 4, /* has no id and no answer */
};

struct mcp_method {
    const char *name;
    unsigned flags;
    void (*run)(struct mcp *m, const struct mcp_request *r);
};

static const struct mcp_method methods[] = {
    {"initialize",                METHOD_EARLY | METHOD_ALONE,        initialize            },
    {"ping",                      METHOD_EARLY,                       mcp_reply_empty       },
    {"tools/list",                0,                                  tools_list            },
    {"tools/call",                0,                                  mcp_tools_call        },
    {"resources/list",            0,                                  mcp_resources_list    },
    {"resources/templates/list",  0,                                  mcp_resource_templates},
    {"resources/read",            0,                                  mcp_resources_read    },
    {"resources/subscribe",       0,                                  mcp_subscribe         },
    {"resources/unsubscribe",     0,                                  mcp_unsubscribe       },
    {"notifications/initialized", METHOD_EARLY | METHOD_NOTIFICATION, initialized           },
    {"notifications/cancelled",   METHOD_EARLY | METHOD_NOTIFICATION, mcp_cancelled         },
};

static const struct mcp_method *
method_find(const char *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (str_eq(methods[i].name, name)) {
            return &methods[i];
        }
    }
    return NULL;
}

/* May this request run now? Answers it if not. */
static bool
is_allowed(struct mcp *m, const struct mcp_request *r, const struct mcp_method *method)
{
    if (r->params != NULL && js_type(r->params) != JS_OBJECT) {
        mcp_error(m, &r->id, r->batch, RPC_PARAMS, "params of %s must be an object, not %s",
                  method->name, js_type_name(js_type(r->params)));
        return false;
    }
    if ((method->flags & METHOD_NOTIFICATION) != 0) {
        mcp_error(m, &r->id, r->batch, RPC_REQUEST, "%s is a notification: send it without an id",
                  method->name);
        return false;
    }
    if ((method->flags & METHOD_ALONE) != 0 && r->batch != NULL) {
        mcp_error(m, &r->id, r->batch, RPC_REQUEST, "%s must not be part of an array",
                  method->name);
        return false;
    }
    if (m->version == NULL && (method->flags & METHOD_EARLY) == 0) {
        mcp_error(m, &r->id, r->batch, RPC_REQUEST, "not initialized: send initialize before %s",
                  method->name);
        return false;
    }
    return true;
}

static void
dispatch(struct mcp *m, const struct mcp_request *r)
{
    const struct mcp_method *method = method_find(r->method);

    if (r->id.kind == RPC_ID_NONE) {
        /* Notifications are never answered, whatever they are. */
        if (method != NULL && (method->flags & METHOD_NOTIFICATION) != 0) {
            method->run(m, r);
        }
        return;
    }
    /* Two answers with one id can't be told from each other. */
    if (mcp_id_is_used(m, &r->id)) {
        mcp_error(m, &r->id, r->batch, RPC_REQUEST,
                  "a call with this id is still running: use a new id");
        return;
    }
    /* initialize and ping are of this era, whatever they carry. */
    if ((method == NULL || (method->flags & METHOD_EARLY) == 0) && mcp_refuse_modern(m, r)) {
        return;
    }
    if (method == NULL) {
        mcp_error(m, &r->id, r->batch, RPC_METHOD, "unknown method '%.100s'", r->method);
        return;
    }
    if (is_allowed(m, r, method)) {
        method->run(m, r);
    }
}

static void
on_message(struct mcp *m, const struct js *v, struct mcp_batch *batch)
{
    struct mcp_request r = {.batch = batch};
    const struct js *id = js_get(v, "id");
    const struct js *method = js_get(v, "method");

    if (js_type(v) != JS_OBJECT) {
        mcp_error(m, NULL, batch, RPC_REQUEST, "a message must be an object, not %s",
                  js_type_name(js_type(v)));
        return;
    }
    if (method == NULL && (js_get(v, "result") != NULL || js_get(v, "error") != NULL)) {
        mcp_elicited(m, v);
        return;
    }
    if (id != NULL && !rpc_id_read(&r.id, id)) {
        mcp_error(m, NULL, batch, RPC_REQUEST,
                  "id must be an integer or a string of at most %u bytes, not %s", LIMIT_MESSAGE_ID,
                  js_type(id) == JS_STRING ? "longer" : js_type_name(js_type(id)));
        return;
    }

    const char *version = js_str(js_get(v, "jsonrpc"));

    if (version == NULL || !str_eq(version, "2.0")) {
        mcp_error(m, &r.id, batch, RPC_REQUEST, "jsonrpc must be \"2.0\"");
        return;
    }
    r.method = js_str(method);
    if (r.method == NULL) {
        mcp_error(m, &r.id, batch, RPC_REQUEST, "method must be a string");
        return;
    }
    r.params = js_get(v, "params");
    if (js_type(r.params) == JS_NULL) {
        r.params = NULL; /* as some libraries write what is absent */
    }
    dispatch(m, &r);
}

static void
on_array(struct mcp *m, const struct js *v)
{
    size_t n = js_count(v);

    if (m->version == NULL || !m->version->has_batches) {
        mcp_error(m, NULL, NULL, RPC_REQUEST,
                  "arrays of messages belong to protocol version 2025-03-26, this is %s",
                  m->version != NULL ? m->version->name : "not initialized");
        return;
    }
    if (n == 0 || n > LIMIT_CALLS) {
        mcp_error(m, NULL, NULL, RPC_REQUEST, "an array must hold 1 to %u messages", LIMIT_CALLS);
        return;
    }

    struct mcp_batch *batch = mem_alloc_zero(1, sizeof(*batch));

    if (batch == NULL) {
        mcp_error(m, NULL, NULL, RPC_INTERNAL, "out of memory");
        return;
    }
    batch->out.max = LIMIT_SEND_QUEUE;
    batch->holds = 1;
    for (size_t i = 0; i < n; i++) {
        on_message(m, js_at(v, i), batch);
    }
    mcp_batch_release(m, batch);
}

static void
mcp_on_line(struct protocol *p, const char *text, size_t len)
{
    struct mcp *m = (struct mcp *)p;
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct sy_error err = {0};

    if (protocol_line_is_blank(text, len)) {
        return;
    }
    if (json_parse(&doc, text, len, &err) != SY_E_OK) {
        SY_AUTO(json_doc_fini) struct json_doc id_doc = {0};
        struct rpc_id id = {0};
        bool has_id = rpc_id_recover(&id, &id_doc, text, len);

        if (!has_id && rpc_id_is_too_big(text, len)) {
            mcp_error(m, NULL, NULL, RPC_REQUEST,
                      "id must be an integer of at most 64 bits (-2^63 to 2^63-1), or a string");
            return;
        }
        mcp_error(m, has_id ? &id : NULL, NULL, sy_code_rpc(err.code), "%s", err.msg);
        return;
    }
    if (js_type(doc.root) == JS_ARRAY) {
        on_array(m, doc.root);
    } else {
        on_message(m, doc.root, NULL);
    }
}

static void
mcp_on_dropped(struct protocol *p, enum sy_code why)
{
    struct mcp *m = (struct mcp *)p;

    if (why == SY_E_LIMIT) {
        mcp_error(m, NULL, NULL, RPC_REQUEST, "a message longer than %u bytes was skipped",
                  LIMIT_RPC_FRAME);
    } else {
        mcp_error(m, NULL, NULL, RPC_INTERNAL, "a message was skipped: %s", sy_code_text(why));
    }
}

static void
mcp_on_gone(struct protocol *p)
{
    struct mcp *m = (struct mcp *)p;

    if (m->n_calls == 0) {
        protocol_finish(p);
    } else {
        mcp_cancel_all(m);
    }
}

static void
on_grace_over(uv_timer_t *timer)
{
    mcp_cancel_all(timer->data);
}

/* A client that ends the input waits for our end; what is nearly done is still
 * answered, so that requests from a file get their answers. */
static void
mcp_on_eof(struct protocol *p)
{
    struct mcp *m = (struct mcp *)p;

    if (m->n_calls == 0) {
        protocol_finish(p);
    } else {
        SY_ASSERT(uv_timer_start(protocol_timer(p), on_grace_over, LIMIT_EOF_GRACE_MS, 0) == 0);
    }
}

static void
mcp_free(struct protocol *p)
{
    struct mcp *m = (struct mcp *)p;

    SY_ASSERT(m->calls == NULL);
    mcp_unwatch_sessions(m);
    json_doc_fini(&m->no_arguments);
    protocol_fini(p);
    mem_free(m);
}

static const struct front mcp_front = {
    .on_line = mcp_on_line,
    .on_dropped = mcp_on_dropped,
    .on_eof = mcp_on_eof,
    .on_gone = mcp_on_gone,
    .free = mcp_free,
};

enum sy_code
protocol_mcp_new(struct protocol **ret, const struct protocol_options *options,
                 struct sy_error *err)
{
    struct mcp *m = mem_alloc_zero(1, sizeof(*m));

    if (m == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = protocol_init(&m->base, &mcp_front, options, err);

    if (rc == SY_E_OK) {
        rc = json_parse(&m->no_arguments, "{}", 2, err);
    }
    if (rc == SY_E_OK) {
        rc = mcp_watch_sessions(m, err);
    }
    if (rc != SY_E_OK) {
        mcp_free(&m->base);
        return rc;
    }
    *ret = &m->base;
    return SY_E_OK;
}
