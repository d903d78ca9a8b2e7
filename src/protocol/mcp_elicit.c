#include "protocol/mcp_internal.h"

#include <stdio.h>
#include <string.h>

#include "approval/question.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"

/*
 * A person at the client answers by a form (elicitation/create): one field, whose first
 * and default choice is no. What a client answers by itself is no answer.
 *
 * Codex has a prompt of its own for approvals, which shows more and takes fewer keys. It is
 * the answer to a form without fields, with _meta that says what is asked. Yes is its first
 * choice, and where its user has given up approvals, Codex takes it by itself, at once. So
 * it counts only some time after Codex has answered a ping that was sent behind it: by
 * then an answer of its own would be here, however busy the machine is. And what may only be
 * allowed once, since it destroys too much, is always asked by the form that stands on no.
 */

#define ID_PREFIX   "shellyard-"
#define PING_PREFIX "shellyard-read-"
/* Sooner nobody has read it. Codex accepts and declines by itself within 1 to 11 ms. */
#define HUMAN_NS 200000000U
/* The same where yes is the first choice, and a key meant for something else would be yes. */
#define PROMPT_HUMAN_NS 500000000U
/* How Codex calls itself in initialize. It declares the prompt by nothing else. */
#define CODEX "codex-mcp-client"
/* Of the line in its prompt; the message has all of it. */
#define TITLE_BYTES 200U
/* Of the message: what is longer is shown by `shellyard approvals`. */
#define MESSAGE_BYTES 6000U

void
mcp_elicit_setup(struct mcp *m, const struct js *params)
{
    const struct js *capability = js_get(js_get(params, "capabilities"), "elicitation");
    const char *client = js_str(js_get(js_get(params, "clientInfo"), "name"));
    /* An empty object means forms; one that names its modes has to name this one. */
    bool has_forms = js_type(capability) == JS_OBJECT &&
                     (js_count(capability) == 0 || js_get(capability, "form") != NULL);
    const struct config *config = tool_context_config(m->base.options.context);

    m->client[0] = '\0';
    if (client != NULL) {
        (void)snprintf(m->client, sizeof(m->client), "%.*s",
                       utf8_room(client, sizeof(m->client) - 1), client);
    }
    has_forms = has_forms && m->version->has_structured;
    m->has_prompt = has_forms && client != NULL && str_eq(client, CODEX);
    m->asker = (struct tool_asker){
        .hold_ms = has_forms ? (uint64_t)config->approval.hold_ms : 0,
        .asks_once = true,
        .client = m->client[0] != '\0' ? m->client : NULL,
        .asked = mcp_elicit,
    };
}

static void
write_choices(struct jw *w, const struct mcp_call *c)
{
    jw_key(w, "enum");
    jw_array(w);
    jw_str(w, "deny");
    jw_str(w, "once");
    if (c->may_remember) {
        jw_str(w, "session");
    }
    if (c->may_rule) {
        jw_str(w, "rule");
    }
    jw_end_array(w);
}

static void
write_schema(struct jw *w, const struct mcp_call *c)
{
    jw_key(w, "requestedSchema");
    jw_object(w);
    jw_key_str(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    jw_key(w, "decision");
    jw_object(w);
    jw_key_str(w, "type", "string");
    jw_key_str(w, "title", "Decision");
    jw_key_str(w, "description",
               c->may_rule ? "deny, allow it once, for this session, or from now on by the rule"
                           : "deny, or allow it");
    write_choices(w, c);
    jw_key_str(w, "default", "deny");
    jw_end_object(w);
    jw_end_object(w);
    jw_key(w, "required");
    jw_array(w);
    jw_str(w, "decision");
    jw_end_array(w);
    jw_end_object(w);
}

/* What Codex's prompt is made of: its choices, and a line for what would run. */
static void
write_prompt(struct jw *w, const struct mcp_call *c, const struct buf *title)
{
    jw_key(w, "_meta");
    jw_object(w);
    jw_key_str(w, "codex_approval_kind", "mcp_tool_call");
    jw_key(w, "persist");
    jw_array(w);
    jw_str(w, "session");
    if (c->may_rule) {
        jw_str(w, "always");
    }
    jw_end_array(w);
    jw_key(w, "tool_params_display");
    jw_array(w);
    jw_object(w);
    jw_key_str(w, "name", "command");
    jw_key_str(w, "display_name", "Command");
    jw_key_strn(w, "value", buf_view(title), title->len);
    jw_end_object(w);
    jw_end_array(w);
    jw_end_object(w);
    jw_key(w, "requestedSchema");
    jw_object(w);
    jw_key_str(w, "type", "object");
    jw_key(w, "properties");
    jw_object(w);
    jw_end_object(w);
    jw_end_object(w);
}

/* A request of ours, up to the members of its parameters. */
static void
open_request(struct jw *w, struct mcp *m, const char *id, const char *method)
{
    out_begin(&m->base, w);
    jw_object(w);
    jw_key_str(w, "jsonrpc", "2.0");
    jw_key_str(w, "id", id);
    jw_key_str(w, "method", method);
    jw_key(w, "params");
    jw_object(w);
}

/* false: no memory, nothing was sent. */
static bool
close_request(struct jw *w, struct mcp *m)
{
    jw_end_object(w);
    jw_end_object(w);
    if (jw_done(w) != SY_E_OK) {
        return false;
    }
    out_send(&m->base);
    return true;
}

/* Which of our requests this is; `prefix` and a number that no other has. */
static void
request_id(char *ret, size_t size, const char *prefix, uint64_t number)
{
    (void)snprintf(ret, size, "%s%llu", prefix, (unsigned long long)number);
}

/* SY_E_LIMIT: it can't be shown whole here. */
static enum sy_code
make_message(struct buf *ret, const char *question)
{
    struct sy_error err = {0};
    enum sy_code rc = buf_add_str(ret, "Shellyard: may this run?\n");

    return rc == SY_E_OK ? question_text(ret, question, &err) : rc;
}

/* false: it could not be sent. */
static bool
send_question(struct mcp_call *c, const struct buf *message, const struct buf *title)
{
    struct mcp *m = c->mcp;
    char id[40];
    struct jw w;

    request_id(id, sizeof(id), ID_PREFIX, c->elicit);
    open_request(&w, m, id, "elicitation/create");
    jw_key_strn(&w, "message", buf_view(message), message->len);
    if (c->is_prompt) {
        write_prompt(&w, c, title);
    } else {
        write_schema(&w, c);
    }
    if (!close_request(&w, m)) {
        return false;
    }
    if (c->is_prompt) {
        request_id(id, sizeof(id), PING_PREFIX, c->elicit);
        open_request(&w, m, id, "ping");
        return close_request(&w, m);
    }
    return true;
}

void
mcp_elicit(void *arg, struct tool_call *tool, const char *id, const char *question)
{
    struct mcp_call *c = arg;
    struct mcp *m = c->mcp;
    SY_AUTO(buf_fini) struct buf message = {.max = MESSAGE_BYTES};
    SY_AUTO(buf_fini) struct buf title = {.max = (size_t)TITLE_BYTES * 2};
    SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_ARGV};
    struct sy_error err = {0};
    bool leaves = false;

    (void)id;
    if (question_prefix(&prefix, &c->may_remember, &leaves, question, &err) != SY_E_OK ||
        question_title(&title, question, TITLE_BYTES, &err) != SY_E_OK ||
        make_message(&message, question) != SY_E_OK) {
        tool_give_up(tool);
        return;
    }
    c->may_rule = prefix.n > 0;
    c->is_prompt = m->has_prompt && c->may_remember;
    c->read_ns = 0;
    c->elicit = ++m->n_elicited;
    c->elicited_ns = clock_mono_ns();
    if (!send_question(c, &message, &title)) {
        c->elicit = 0;
        tool_give_up(tool);
    }
}

/* Of the number behind `prefix` in that id. */
static struct mcp_call *
find(const struct mcp *m, const struct js *id, const char *prefix)
{
    const char *text = js_str(id);
    uint64_t number = 0;

    if (text == NULL || !str_starts(text, prefix) ||
        !str_to_u64(&number, text + strlen(prefix), 1, UINT64_MAX)) {
        return NULL;
    }
    for (struct mcp_call *c = m->calls; c != NULL; c = c->next) {
        if (c->elicit == number) {
            return c;
        }
    }
    return NULL;
}

/* Of the form: an accept without its field is none. */
static bool
read_form(enum store_status *ret, const struct mcp_call *c, const struct js *result)
{
    const char *action = js_str(js_get(result, "action"));
    const char *decision = js_str(js_get(js_get(result, "content"), "decision"));

    if (action != NULL && str_eq(action, "decline")) {
        *ret = STORE_DENIED;
        return true;
    }
    if (action == NULL || !str_eq(action, "accept") || decision == NULL) {
        return false;
    }
    if (str_eq(decision, "deny")) {
        *ret = STORE_DENIED;
    } else if (str_eq(decision, "once")) {
        *ret = STORE_APPROVED;
    } else if (str_eq(decision, "session") && c->may_remember) {
        *ret = STORE_APPROVED_FOR_SESSION;
    } else if (str_eq(decision, "rule") && c->may_rule) {
        *ret = STORE_APPROVED_WITH_RULE;
    } else {
        return false;
    }
    return true;
}

/* Of Codex's prompt, in which "Cancel" is the one way to say no. */
static bool
read_prompt(enum store_status *ret, const struct mcp_call *c, const struct js *result)
{
    const char *action = js_str(js_get(result, "action"));
    const struct js *persist = js_get(js_get(result, "_meta"), "persist");
    const char *scope = js_str(persist);

    if (action == NULL) {
        return false;
    }
    if (str_eq(action, "decline") || str_eq(action, "cancel")) {
        *ret = STORE_DENIED;
        return true;
    }
    if (!str_eq(action, "accept") || js_count(js_get(result, "content")) > 0) {
        return false;
    }
    if (persist == NULL || js_type(persist) == JS_NULL) {
        *ret = STORE_APPROVED;
    } else if (scope != NULL && str_eq(scope, "session")) {
        *ret = STORE_APPROVED_FOR_SESSION;
    } else if (scope != NULL && str_eq(scope, "always") && c->may_rule) {
        *ret = STORE_APPROVED_WITH_RULE;
    } else {
        return false;
    }
    return true;
}

/* Can it be a person's, who has had the time to read? */
static bool
is_by_person(const struct mcp_call *c, const struct js *result)
{
    uint64_t now = clock_mono_ns();

    /* Codex names a model that has answered in a person's place. */
    if (js_get(js_get(result, "_meta"), "approvals_reviewer") != NULL) {
        return false;
    }
    if (c->is_prompt) {
        return c->read_ns != 0 && now - c->read_ns >= PROMPT_HUMAN_NS;
    }
    return now - c->elicited_ns >= HUMAN_NS;
}

void
mcp_elicited(struct mcp *m, const struct js *message)
{
    const struct js *id = js_get(message, "id");
    const struct js *result = js_get(message, "result");
    struct mcp_call *c = find(m, id, PING_PREFIX);
    struct review_reply reply = {.decided_by = "the client's form"};
    char by[sizeof(m->client) + 32];

    if (c != NULL) {
        /* Only the first: later ones would make a wait longer that has begun. */
        c->read_ns = c->read_ns == 0 && result != NULL ? clock_mono_ns() : c->read_ns;
        return;
    }
    c = find(m, id, ID_PREFIX);
    if (c == NULL) {
        return; /* answered, cancelled, or never asked */
    }
    c->elicit = 0;
    if (!is_by_person(c, result) || !(c->is_prompt ? read_prompt(&reply.status, c, result)
                                                   : read_form(&reply.status, c, result))) {
        tool_give_up(c->tool);
        return;
    }
    if (m->client[0] != '\0') {
        (void)snprintf(by, sizeof(by), "the %s of %s", c->is_prompt ? "prompt" : "form", m->client);
        reply.decided_by = by;
    }
    tool_reply(c->tool, &reply);
}

void
mcp_elicit_end(struct mcp_call *c)
{
    char text[40];
    struct jw w;

    if (c->elicit == 0) {
        return;
    }
    request_id(text, sizeof(text), ID_PREFIX, c->elicit);
    c->elicit = 0;
    out_begin(&c->mcp->base, &w);
    rpc_notification_open(&w, "notifications/cancelled");
    jw_key_str(&w, "requestId", text);
    jw_key_str(&w, "reason", "it is not waited for any more");
    jw_end_object(&w);
    jw_end_object(&w);
    if (jw_done(&w) == SY_E_OK) {
        out_send(&c->mcp->base);
    }
}
