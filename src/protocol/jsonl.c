#include "protocol/jsonl_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static void
on_call(struct jsonl *j, const struct jsonl_line *line)
{
    jsonl_submit(j, line, NULL);
}

static void
on_batch(struct jsonl *j, const struct jsonl_line *line)
{
    const struct js *calls = js_get(line->message, "calls");

    if (js_type(calls) != JS_ARRAY || js_count(calls) == 0 || js_count(calls) > LIMIT_CALLS) {
        char text[80];

        (void)snprintf(text, sizeof(text), "calls must be an array of 1 to %u calls", LIMIT_CALLS);
        jsonl_send_error(j, NULL, text);
        return;
    }
    jsonl_submit(j, line, calls);
}

static void
on_interrupt(struct jsonl *j, const struct jsonl_line *line)
{
    const struct js *v = js_get(line->message, "call_id");
    bool names_session = js_type(js_get(line->message, "session")) != JS_NULL;
    struct jsonl_session *s = NULL;
    struct sy_error err = {0};

    if (js_type(v) != JS_NULL && js_str(v) == NULL) {
        jsonl_send_error(j, NULL, "call_id of interrupt must be a string");
    } else if (jsonl_session_of(&s, j, line->message, &err) != SY_E_OK) {
        jsonl_send_error(j, NULL, err.msg);
    } else if (js_str(v) != NULL) {
        jsonl_interrupt_call(j, s, js_str(v));
    } else if (names_session) {
        jsonl_interrupt_session(j, s);
    } else {
        jsonl_interrupt(j);
    }
}

static void
on_shutdown(struct jsonl *j, const struct jsonl_line *line)
{
    (void)line;
    j->base.is_ending = true;
    jsonl_interrupt(j);
    jsonl_finish_if_over(j);
}

static void
on_approval(struct jsonl *j, const struct jsonl_line *line)
{
    jsonl_approval(j, line);
}

static void
on_tools(struct jsonl *j, const struct jsonl_line *line)
{
    (void)line;
    jsonl_send_tools(j);
}

/* Types with `is_strict` know all their members: a misspelt call_id must not
 * interrupt everything. (Turns and sessions say so themselves; calls come from models.) */
struct message_type {
    const char *type;
    bool is_strict;
    const char *members[3]; /* besides type */
    void (*run)(struct jsonl *j, const struct jsonl_line *line);
};

static const struct message_type message_types[] = {
    {"function_call",    false, {NULL},                       on_call      },
    {"custom_tool_call", false, {NULL},                       on_call      },
    {"local_shell_call", false, {NULL},                       on_call      },
    {"batch",            true,  {"calls", "session"},         on_batch     },
    {"session",          false, {NULL},                       jsonl_session},
    {"turn",             false, {NULL},                       jsonl_turn   },
    {"interrupt",        true,  {"call_id", "session"},       on_interrupt },
    {"exec_approval",    true,  {"id", "decision", "reason"}, on_approval  },
    {"shutdown",         true,  {NULL},                       on_shutdown  },
    {"tools",            true,  {NULL},                       on_tools     },
};
#define N_MESSAGE_TYPES (sizeof(message_types) / sizeof(message_types[0]))

static bool
has_only_known(const struct message_type *t, const struct js *message, const char **ret_key)
{
    void *it = NULL;
    const struct js *value = NULL;

    while (t->is_strict && js_next(message, &it, ret_key, &value)) {
        bool is_known = str_eq(*ret_key, "type");

        for (size_t i = 0; i < sizeof(t->members) / sizeof(t->members[0]); i++) {
            is_known = is_known || (t->members[i] != NULL && str_eq(*ret_key, t->members[i]));
        }
        if (!is_known) {
            return false;
        }
    }
    return true;
}

static void
dispatch(struct jsonl *j, const struct jsonl_line *line)
{
    const char *type = js_str(js_get(line->message, "type"));
    char text[SY_ERR_MSG_MAX];

    for (size_t i = 0; type != NULL && i < N_MESSAGE_TYPES; i++) {
        const char *key = NULL;

        if (!str_eq(message_types[i].type, type)) {
            continue;
        }
        if (!has_only_known(&message_types[i], line->message, &key)) {
            (void)snprintf(text, sizeof(text), "%s has no member '%.64s'", type, key);
            jsonl_send_error(j, NULL, text);
            return;
        }
        message_types[i].run(j, line);
        return;
    }

    const char *names[N_MESSAGE_TYPES];

    for (size_t i = 0; i < N_MESSAGE_TYPES; i++) {
        names[i] = message_types[i].type;
    }

    const char *nearest = type != NULL ? str_nearest(type, names, N_MESSAGE_TYPES) : NULL;

    (void)snprintf(text, sizeof(text), "unknown type '%.64s'%s%s%s", type != NULL ? type : "",
                   nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "'?" : "");
    jsonl_send_error(j, NULL, type != NULL ? text : "a message must be an object with a \"type\"");
}

static void
jsonl_on_line(struct protocol *p, const char *text, size_t len)
{
    struct jsonl *j = (struct jsonl *)p;
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    struct sy_error err = {0};

    j->line++;
    if (protocol_line_is_blank(text, len)) {
        return;
    }
    if (json_parse(&doc, text, len, &err) != SY_E_OK) {
        jsonl_send_error(j, NULL, err.msg);
        return;
    }

    const struct jsonl_line line = {.message = doc.root, .doc = &doc};

    dispatch(j, &line);
}

static void
jsonl_on_dropped(struct protocol *p, enum sy_code why)
{
    struct jsonl *j = (struct jsonl *)p;
    char text[80];

    j->line++;
    if (why == SY_E_LIMIT) {
        (void)snprintf(text, sizeof(text), "a line longer than %u bytes was skipped",
                       LIMIT_RPC_FRAME);
    } else {
        (void)snprintf(text, sizeof(text), "a line was skipped: %s", sy_code_text(why));
    }
    jsonl_send_error(j, NULL, text);
}

static void
jsonl_on_eof(struct protocol *p)
{
    jsonl_end_approvals((struct jsonl *)p);
    jsonl_finish_if_over((struct jsonl *)p);
}

static void
jsonl_on_gone(struct protocol *p)
{
    struct jsonl *j = (struct jsonl *)p;

    jsonl_interrupt(j);
    jsonl_finish_if_over(j);
}

static void
jsonl_free(struct protocol *p)
{
    struct jsonl *j = (struct jsonl *)p;

    SY_ASSERT(j->groups == NULL);
    if (j->subscription != 0) {
        struct session *s = tool_context_session(p->options.context);

        event_unsubscribe(session_bus(s), j->subscription);
    }
    tool_watch_free(j->watch);
    jsonl_sessions_free(j);
    protocol_fini(p);
    mem_free(j);
}

static const struct front jsonl_front = {
    .on_line = jsonl_on_line,
    .on_dropped = jsonl_on_dropped,
    .on_eof = jsonl_on_eof,
    .on_gone = jsonl_on_gone,
    .free = jsonl_free,
};

enum sy_code
protocol_jsonl_new(struct protocol **ret, const struct protocol_options *options,
                   struct sy_error *err)
{
    struct jsonl *j = mem_alloc_zero(1, sizeof(*j));

    if (j == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = protocol_init(&j->base, &jsonl_front, options, err);

    j->asker = (struct tool_asker){.hold_ms = UINT64_MAX};
    if (rc == SY_E_OK) {
        struct session *s = tool_context_session(options->context);

        j->main.orch = s;
        j->subscription = event_subscribe_to(
            session_bus(s), EVENT_ALL & ~EVENT_BIT(EVENT_TOOL_DONE), jsonl_on_event, j);
        rc = j->subscription != 0 ? SY_E_OK : sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = tool_watch_new(&j->watch, options->context, jsonl_on_session, j, err);
    }
    if (rc != SY_E_OK) {
        jsonl_free(&j->base);
        return rc;
    }
    *ret = &j->base;
    return SY_E_OK;
}
