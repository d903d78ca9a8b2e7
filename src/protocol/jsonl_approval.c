#include "protocol/jsonl_internal.h"

#include <stdio.h>
#include <string.h>

#include "approval/question.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

/* A call that needs a person's approval: the request goes out as an event, the answer comes in. */

static struct jsonl_call *
find(const struct jsonl *j, const char *id)
{
    for (struct jsonl_group *g = j->groups; g != NULL; g = g->next) {
        for (size_t i = g->n_sent; i < g->n; i++) {
            if (id[0] != '\0' && str_eq(g->calls[i].request, id)) {
                return &g->calls[i];
            }
        }
    }
    return NULL;
}

static bool
read_decision(enum store_status *ret, const char *word)
{
    static const enum store_status known[] = {STORE_APPROVED, STORE_APPROVED_FOR_SESSION,
                                              STORE_APPROVED_WITH_RULE, STORE_DENIED,
                                              STORE_ABORTED};

    for (size_t i = 0; word != NULL && i < sizeof(known) / sizeof(known[0]); i++) {
        if (str_eq(store_status_name(known[i]), word)) {
            *ret = known[i];
            return true;
        }
    }
    return false;
}

void
jsonl_keep_request(struct jsonl_call *c, const struct event_approval_request *e)
{
    SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_ARGV};
    struct sy_error err = {0};
    bool leaves = false;

    (void)snprintf(c->request, sizeof(c->request), "%s", e->id);
    c->may_remember = false;
    /* What can't be read offers nothing. */
    c->may_rule = question_prefix(&prefix, &c->may_remember, &leaves, e->text, &err) == SY_E_OK &&
                  prefix.n > 0;
}

/* Why the request can't be answered so; NULL: it can. */
static const char *
not_offered(const struct jsonl_call *c, enum store_status decision)
{
    if (decision == STORE_APPROVED_FOR_SESSION && !c->may_remember) {
        return "this can't be approved_for_session (may_remember is false): the request stays open";
    }
    if (decision == STORE_APPROVED_WITH_RULE && !c->may_rule) {
        return "this can't be approved_with_rule (prefix is empty): the request stays open";
    }
    return NULL;
}

void
jsonl_approval(struct jsonl *j, const struct jsonl_line *line)
{
    const char *id = js_str(js_get(line->message, "id"));
    const struct js *reason = js_get(line->message, "reason");
    struct review_reply reply = {.decided_by = "the program that speaks proto"};
    struct jsonl_call *c = id != NULL ? find(j, id) : NULL;
    const struct jsonl_session *s = c != NULL ? c->group->session : NULL;

    if (id == NULL) {
        jsonl_send_error(j, NULL, "exec_approval needs id, that of an exec_approval_request");
        return;
    }
    if (!read_decision(&reply.status, js_str(js_get(line->message, "decision")))) {
        jsonl_send_session_error(j, s, c != NULL ? c->call_id : NULL,
                                 "decision of exec_approval must be approved, "
                                 "approved_for_session, approved_with_rule, denied or abort");
        return;
    }
    if (js_type(reason) != JS_NULL && js_str(reason) == NULL) {
        jsonl_send_session_error(j, s, c != NULL ? c->call_id : NULL,
                                 "reason of exec_approval must be a string");
        return;
    }
    if (c == NULL || c->tool == NULL) {
        jsonl_send_error(j, NULL, "no call waits for the approval of that id: it changes nothing");
        return;
    }

    const char *why_not = not_offered(c, reply.status);

    if (why_not != NULL) {
        jsonl_send_session_error(j, s, c->call_id, why_not);
        return;
    }
    reply.reason = js_str(reason);
    c->request[0] = '\0';
    tool_reply(c->tool, &reply);
}

void
jsonl_end_approvals(struct jsonl *j)
{
    j->asker.hold_ms = 0;
    for (struct jsonl_group *g = j->groups; g != NULL; g = g->next) {
        for (size_t i = g->n_sent; i < g->n; i++) {
            if (g->calls[i].tool != NULL) {
                tool_give_up(g->calls[i].tool);
            }
        }
    }
}
