#include <string.h>

#include "base/json.h"
#include "hook/hook.h"

#define FORMAT_VERSION 1

const char *
hook_event_name(enum hook_event e)
{
    return e == HOOK_PRE_EXEC ? "pre_exec" : "permission_request";
}

static const char *
requirement_name(enum requirement_kind kind)
{
    switch (kind) {
    case REQUIREMENT_SKIP:
        return "skip";
    case REQUIREMENT_NEEDS_APPROVAL:
        return "ask";
    case REQUIREMENT_FORBIDDEN:
        break;
    }
    return "forbidden";
}

static void
write_assessment(struct jw *w, const struct assessment *a)
{
    jw_key(w, "requirement");
    jw_object(w);
    jw_key_str(w, "kind", requirement_name(a->need.kind));
    jw_key_str(w, "reason", a->need.reason);
    jw_end_object(w);
    jw_key(w, "danger");
    jw_object(w);
    jw_key_str(w, "class", approval_class_name(a->class));
    jw_key_str(w, "finding", a->finding);
    jw_end_object(w);
}

enum sy_code
hook_call_write(struct buf *ret, const struct hook_call *call)
{
    struct jw w = {.out = ret};

    jw_object(&w);
    jw_key_str(&w, "event", hook_event_name(call->event));
    jw_key_int(&w, "version", FORMAT_VERSION);
    jw_key_str(&w, "session", call->session);
    subagent_write(&w, call->subagent);
    jw_key_str(&w, "call_id", call->call_id);
    jw_key_str(&w, "tool", call->tool);
    jw_key_list(&w, "argv", call->argv);
    if (call->script != NULL) {
        jw_key_str(&w, "script", call->script);
    }
    if (call->patch != NULL) {
        jw_key_str(&w, "patch", call->patch);
    }
    if (call->access != NULL) {
        jw_key(&w, "access");
        jw_raw(&w, call->access, strlen(call->access));
    }
    jw_key_str(&w, "cwd", call->cwd);
    jw_key_str(&w, "workspace", call->sandbox->cwd);
    jw_key_str(&w, "sandbox", sandbox_mode_name(call->sandbox->mode));
    jw_key_str(&w, "approval", approval_policy_name(call->policy));
    jw_key_bool(&w, "escalated", call->escalates);
    if (call->justification != NULL) {
        jw_key_str(&w, "justification", call->justification);
    }
    write_assessment(&w, call->assessment);
    jw_end_object(&w);
    return jw_done(&w);
}
