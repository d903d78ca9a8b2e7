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
 */

#define ID_PREFIX "shellyard-"
/* Sooner nobody has read it. Codex accepts and declines by itself within 1 to 11 ms. */
#define HUMAN_NS 200000000U
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
                       (int)utf8_cut(client, strlen(client), sizeof(m->client) - 1), client);
    }
    m->asker = (struct tool_asker){
        .hold_ms = has_forms && m->version->has_structured ? (uint64_t)config->approval.hold_ms : 0,
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

/* SY_E_LIMIT: it can't be shown whole here. */
static enum sy_code
make_message(struct buf *ret, const char *question)
{
    struct sy_error err = {0};
    enum sy_code rc = buf_add_str(ret, "Shellyard: may this run?\n");

    return rc == SY_E_OK ? question_text(ret, question, &err) : rc;
}

void
mcp_elicit(void *arg, struct tool_call *tool, const char *id, const char *question)
{
    struct mcp_call *c = arg;
    struct mcp *m = c->mcp;
    SY_AUTO(buf_fini) struct buf message = {.max = MESSAGE_BYTES};
    SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_ARGV};
    struct sy_error err = {0};
    bool leaves = false;
    char text[40];
    struct jw w;

    (void)id;
    if (question_prefix(&prefix, &c->may_remember, &leaves, question, &err) != SY_E_OK ||
        make_message(&message, question) != SY_E_OK) {
        tool_give_up(tool);
        return;
    }
    c->may_rule = prefix.n > 0;
    c->elicit = ++m->n_elicited;
    c->elicited_ns = clock_mono_ns();
    (void)snprintf(text, sizeof(text), ID_PREFIX "%llu", (unsigned long long)c->elicit);
    out_begin(&m->base, &w);
    jw_object(&w);
    jw_key_str(&w, "jsonrpc", "2.0");
    jw_key_str(&w, "id", text);
    jw_key_str(&w, "method", "elicitation/create");
    jw_key(&w, "params");
    jw_object(&w);
    jw_key_strn(&w, "message", buf_view(&message), message.len);
    write_schema(&w, c);
    jw_end_object(&w);
    jw_end_object(&w);
    if (jw_done(&w) != SY_E_OK) {
        c->elicit = 0;
        tool_give_up(tool);
        return;
    }
    out_send(&m->base);
}

static struct mcp_call *
find(const struct mcp *m, const struct js *id)
{
    const char *text = js_str(id);
    uint64_t number = 0;

    if (text == NULL || !str_starts(text, ID_PREFIX) ||
        !str_to_u64(&number, text + strlen(ID_PREFIX), 1, UINT64_MAX)) {
        return NULL;
    }
    for (struct mcp_call *c = m->calls; c != NULL; c = c->next) {
        if (c->elicit == number) {
            return c;
        }
    }
    return NULL;
}

/* false: no answer that counts. */
static bool
read_reply(enum store_status *ret, const struct mcp_call *c, const struct js *result)
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

void
mcp_elicited(struct mcp *m, const struct js *message)
{
    struct mcp_call *c = find(m, js_get(message, "id"));
    struct review_reply reply = {.decided_by = "the client's form"};
    char by[sizeof(m->client) + 32];

    if (c == NULL) {
        return; /* answered, cancelled, or never asked */
    }
    c->elicit = 0;
    if (clock_mono_ns() - c->elicited_ns < HUMAN_NS ||
        !read_reply(&reply.status, c, js_get(message, "result"))) {
        tool_give_up(c->tool);
        return;
    }
    if (m->client[0] != '\0') {
        (void)snprintf(by, sizeof(by), "the form of %s", m->client);
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
    (void)snprintf(text, sizeof(text), ID_PREFIX "%llu", (unsigned long long)c->elicit);
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
