#include "protocol/jsonl_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void
open_message(struct jsonl *j, struct jw *w, const char *type)
{
    out_begin(&j->base, w);
    jw_object(w);
    jw_key_str(w, "type", type);
}

/* false when memory was short; nothing was sent then. */
static bool
close_message(struct jsonl *j, struct jw *w)
{
    jw_end_object(w);
    if (jw_done(w) != SY_E_OK) {
        return false;
    }
    out_send(&j->base);
    return true;
}

static void
write_session(struct jw *w, const char *key, const struct jsonl_session *s)
{
    if (s != NULL && s->id[0] != '\0') {
        jw_key_str(w, key, s->id);
    }
}

static bool
send_output_text(struct jsonl *j, const struct jsonl_call *c, const char *text, size_t len)
{
    struct jw w;

    open_message(j, &w, c->type->output_type);
    jw_key_str(&w, "call_id", c->call_id);
    write_session(&w, "session", c->group->session);
    jw_key_strn(&w, "output", text, len);
    return close_message(j, &w);
}

void
jsonl_send_output(struct jsonl *j, const struct jsonl_call *c)
{
    bool is_reason = c->reason[0] != '\0';
    const char *text = is_reason ? c->reason : buf_view(&c->content);

    if (!send_output_text(j, c, text, is_reason ? strlen(text) : c->content.len)) {
        /* OUT_RESERVE holds this. Each call is answered. */
        static const char nomem[] = "out of memory while the answer was built";

        SY_ASSERT(send_output_text(j, c, nomem, sizeof(nomem) - 1));
    }
}

void
jsonl_send_error(struct jsonl *j, const char *call_id, const char *text)
{
    jsonl_send_session_error(j, NULL, call_id, text);
}

void
jsonl_send_session_error(struct jsonl *j, const struct jsonl_session *s, const char *call_id,
                         const char *text)
{
    struct jw w;

    open_message(j, &w, "error");
    if (call_id != NULL) {
        jw_key_str(&w, "call_id", call_id);
    }
    write_session(&w, "session", s);
    jw_key_str(&w, "message", text);
    jw_key_int(&w, "line", (int64_t)j->line);
    SY_ASSERT(close_message(j, &w));
}

static void
write_turn(struct jw *w, const struct jsonl_turn *t)
{
    jw_key_str(w, "cwd", t->context.cwd);
    jw_key_str(w, "sandbox_mode", sandbox_mode_name(t->context.sandbox.mode));
    jw_key_bool(w, "network_access", sandbox_policy_has_network(&t->context.sandbox));
    jw_key_str(w, "approval_policy", approval_policy_name(t->context.approval));
}

void
jsonl_send_turn(struct jsonl *j, const struct jsonl_session *s)
{
    struct jw w;

    open_message(j, &w, "turn_started");
    write_session(&w, "session", s);
    if (s->turn->id[0] != '\0') {
        jw_key_str(&w, "turn_id", s->turn->id);
    }
    write_turn(&w, s->turn);
    if (!close_message(j, &w)) {
        jsonl_send_session_error(j, s, NULL,
                                 "out of memory: the turn holds, its description is left out");
    }
}

void
jsonl_send_opened(struct jsonl *j, const struct jsonl_session *s)
{
    struct jw w;

    open_message(j, &w, "session_opened");
    write_session(&w, "id", s);
    write_session(&w, "parent", s->parent);
    if (session_title(s->orch) != NULL) {
        jw_key_str(&w, "name", session_title(s->orch));
    }
    write_turn(&w, s->turn);
    if (!close_message(j, &w)) {
        jsonl_send_session_error(j, s, NULL,
                                 "out of memory: the session is open, its description is left out");
    }
}

void
jsonl_send_closed(struct jsonl *j, const struct jsonl_session *s)
{
    struct jw w;

    open_message(j, &w, "session_closed");
    write_session(&w, "id", s);
    if (!close_message(j, &w)) {
        jsonl_send_session_error(j, s, NULL, "out of memory: the session is closed");
    }
}

void
jsonl_send_tools(struct jsonl *j)
{
    const struct told_for who = {tool_context_config(j->base.options.context), FRONT_PROTO};
    struct jw w;

    open_message(j, &w, "tools");
    jw_key(&w, "tools");
    jw_array(&w);
    for (const struct tool_handler *const *t = tool_handlers(); *t != NULL; t++) {
        if (!tool_is_listed(*t, who.config)) {
            continue;
        }
        jw_object(&w);
        jw_key_str(&w, "type", (*t)->kind == TOOL_CUSTOM ? "custom" : "function");
        jw_key_str(&w, "name", (*t)->name);
        jw_key(&w, "description");
        tool_write_description(&w, *t, &who);
        if ((*t)->kind != TOOL_CUSTOM) {
            jw_key(&w, "parameters");
            tool_write_input_schema(&w, *t, &who);
        }
        jw_end_object(&w);
    }
    jw_end_array(&w);
    if (!close_message(j, &w)) {
        jsonl_send_error(j, NULL, "out of memory while listing the tools");
    }
}

static void
write_begin(struct jw *w, const struct event_begin *e)
{
    jw_key(w, "command");
    jw_array(w);
    for (size_t i = 0; e->argv != NULL && e->argv[i] != NULL; i++) {
        jw_str(w, e->argv[i]);
    }
    jw_end_array(w);
    jw_key_str(w, "cwd", e->cwd);
    jw_key_str(w, "tool", e->tool);
    jw_key_str(w, "source", e->source);
}

static void
write_delta(struct jw *w, const struct event_delta *e)
{
    jw_key_str(w, "stream", e->stream);
    jw_key_int(w, "seq", (int64_t)e->seq);
    jw_key_strn(w, "chunk", e->text, e->len);
    if (e->dropped > 0) {
        jw_key_int(w, "deltas_dropped", (int64_t)e->dropped);
    }
    if (e->is_last) {
        jw_key_bool(w, "last", true);
    }
}

static void
write_limit(struct jw *w, const struct event_limit *l)
{
    jw_key(w, "limit");
    jw_object(w);
    jw_key_str(w, "name", l->name);
    jw_key_bool(w, "ended", l->has_ended);
    jw_key_int(w, "most", (int64_t)l->most);
    jw_key_str(w, "unit", l->unit);
    jw_key_str(w, "key", l->key);
    jw_key_str(w, "by", l->by);
    jw_key_str(w, "confidence", l->is_exact ? "exact" : "inferred");
    jw_end_object(w);
}

static void
write_end(struct jw *w, const struct event_end *e)
{
    jw_key_str(w, "status", e->status);
    jw_key_int(w, "exit_code", e->exit_code);
    if (e->signal != 0) {
        jw_key_int(w, "signal", e->signal);
    }
    jw_key_bool(w, "timed_out", e->is_timed_out);
    jw_key_int(w, "duration_ms", (int64_t)(e->duration_ns / 1000000U));
    if (e->deltas_dropped > 0) {
        jw_key_int(w, "deltas_dropped", (int64_t)e->deltas_dropped);
    }
    jw_key_strn(w, "preview", e->preview != NULL ? e->preview : "", e->preview_len);
    if (e->limit != NULL) {
        write_limit(w, e->limit);
    }
    if (e->denials != NULL) {
        jw_raw(w, e->denials + 1, strlen(e->denials) - 2); /* its members, without the braces */
    }
    if (e->error != NULL) {
        jw_key_str(w, "error", e->error);
    }
}

static void
write_request(struct jw *w, const struct event_approval_request *e)
{
    jw_key_str(w, "id", e->id);
    jw_raw(w, e->text + 1, strlen(e->text) - 2); /* its members, without the braces */
}

/* The comment in the question, which came after the request. */
static void
write_assessment(struct jw *w, const struct event_approval_request *e)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};

    jw_key_str(w, "id", e->id);
    if (json_parse(&doc, e->text, strlen(e->text), NULL) == SY_E_OK) {
        jw_key(w, "assessment");
        jw_value(w, js_get(doc.root, "assessment"));
    } else {
        w->rc = SY_E_NOMEM;
    }
}

static void
write_decision(struct jw *w, const struct event_approval_decision *e)
{
    jw_key_str(w, "id", e->id);
    jw_key_str(w, "tool", e->tool);
    jw_key_str(w, "decision", e->decision);
    if (e->decided_by[0] != '\0') {
        jw_key_str(w, "decided_by", e->decided_by);
    }
    if (e->reason[0] != '\0') {
        jw_key_str(w, "reason", e->reason);
    }
    jw_key_int(w, "waited_ms", (int64_t)(e->waited_ns / 1000000U));
}

/* A reader that does not keep up loses deltas, not the command its time. */
static bool
is_backed_up(const struct jsonl *j)
{
    const struct protocol_options *o = &j->base.options;

    return o->backlog != NULL && o->backlog(o->arg) > LIMIT_DELTA_BACKLOG;
}

/* Is the event worth a line, as things stand? Keeps what the answer to a request needs. `c` NULL:
 * the call was answered. */
static bool
takes(struct jsonl *j, struct jsonl_call *c, const struct event *e)
{
    if (e->kind == EVENT_EXEC_OUTPUT_DELTA && is_backed_up(j)) {
        ++*e->u.delta.ret_dropped;
        return false;
    }
    if (c == NULL) {
        return e->outlives_call;
    }
    if (e->kind == EVENT_APPROVAL_COMMENTED) {
        return str_eq(c->request, e->u.request.id); /* not while it is answered */
    }
    if (e->kind == EVENT_APPROVAL_REQUESTED) {
        if (j->asker.hold_ms == 0) {
            return false; /* nobody sends answers any more */
        }
        jsonl_keep_request(c, &e->u.request);
    }
    return true;
}

static void
write_input(struct jw *w, const struct event_input *input)
{
    jw_key_strn(w, "stdin", input->text, input->len);
    if (input->is_hidden) {
        jw_key_bool(w, "hidden", true);
    }
    jw_key_str(w, "by", input->by);
    if (input->refusal != NULL) {
        jw_key_str(w, "refused", input->refusal);
    }
}

void
jsonl_on_event(void *arg, const struct event *e)
{
    static const char *const types[] = {
        [EVENT_EXEC_BEGIN] = "exec_command_begin",
        [EVENT_EXEC_OUTPUT_DELTA] = "exec_command_output_delta",
        [EVENT_EXEC_INPUT] = "terminal_interaction",
        [EVENT_EXEC_END] = "exec_command_end",
        [EVENT_APPROVAL_REQUESTED] = "exec_approval_request",
        [EVENT_APPROVAL_COMMENTED] = "exec_approval_assessment",
        [EVENT_APPROVAL_DECIDED] = "exec_approval_decided",
    };
    struct jsonl *j = arg;
    const struct jsonl_session *s = jsonl_session_by_orch(j, e->session_id);
    struct jsonl_call *c = s != NULL ? jsonl_call_find(j, s, e->call_id) : NULL;
    struct jw w;

    if (s == NULL || !takes(j, c, e)) {
        return; /* not of this front, or not now */
    }
    open_message(j, &w, types[e->kind]);
    jw_key_str(&w, "call_id", e->call_id);
    write_session(&w, "session", s);
    if (e->turn_id != NULL && e->kind != EVENT_EXEC_OUTPUT_DELTA) {
        jw_key_str(&w, "turn_id", e->turn_id);
    }
    switch (e->kind) {
    case EVENT_EXEC_BEGIN:
        write_begin(&w, &e->u.begin);
        break;
    case EVENT_EXEC_OUTPUT_DELTA:
        write_delta(&w, &e->u.delta);
        break;
    case EVENT_EXEC_INPUT:
        write_input(&w, &e->u.input);
        break;
    case EVENT_EXEC_END:
        write_end(&w, &e->u.end);
        break;
    case EVENT_APPROVAL_REQUESTED:
        write_request(&w, &e->u.request);
        break;
    case EVENT_APPROVAL_COMMENTED:
        write_assessment(&w, &e->u.request);
        break;
    case EVENT_APPROVAL_DECIDED:
        write_decision(&w, &e->u.decision);
        break;
    case EVENT_TOOL_DONE:
        break; /* not subscribed to: the answer tells it */
    }
    if (close_message(j, &w)) {
        return;
    }
    if (e->kind == EVENT_EXEC_OUTPUT_DELTA) {
        ++*e->u.delta.ret_dropped;
    } else {
        jsonl_send_session_error(j, s, e->call_id,
                                 "out of memory: an event of this call is missing");
    }
}
