#include "base/clock.h"
#include "base/limits.h"
#include "tools/live_call.h"

static const char *const argument_names[] = {NULL};

/* Of one session in the answer: its command, escaped, and numbers. */
#define ONE_BYTES ((size_t)LIMIT_SESSION_COMMAND * 6 + (size_t)LIMIT_PATH * 6 + 512)

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

static bool
is_mutating(const struct invocation *inv)
{
    (void)inv;
    return false;
}

static void
write_one(struct jw *w, const struct live *l, const struct live_state *s, uint64_t now_ns)
{
    jw_object(w);
    jw_key_str(w, "session_id", live_id(l));
    jw_key_str(w, "status", s->is_running ? "running" : exec_status_name(s->status));
    if (!s->is_running) {
        jw_key_int(w, "exit_code", s->exit_code);
    }
    if (!s->is_running && s->status == EXEC_FAILED && s->error->code != SY_E_OK) {
        jw_key_str(w, "error", s->error->msg);
    }
    jw_key_str(w, "command", s->command);
    jw_key_str(w, "workdir", s->cwd);
    jw_key_bool(w, "tty", s->has_terminal);
    jw_key_int(w, "age_ms", (int64_t)((now_ns - s->began_ns) / 1000000));
    jw_key_int(w, "unused_ms", (int64_t)((now_ns - s->used_ns) / 1000000));
    jw_key_int(w, "unread_bytes", (int64_t)s->unread);
    jw_end_object(w);
}

static enum sy_code
build(struct tool_output *ret, struct live_store *store, const struct session *who)
{
    struct jw w = {.out = &ret->structured};
    uint64_t now = clock_mono_ns();
    size_t max = 4096;
    enum sy_code rc = SY_E_OK;

    for (struct live *l = live_next(store, who, NULL); l != NULL; l = live_next(store, who, l)) {
        max += ONE_BYTES;
    }
    *ret = (struct tool_output){.is_success = true,
                                .text = {.max = max},
                                .content = {.max = max},
                                .structured = {.max = max}};
    jw_object(&w);
    jw_key(&w, "sessions");
    jw_array(&w);
    for (struct live *l = live_next(store, who, NULL); l != NULL && rc == SY_E_OK;
         l = live_next(store, who, l)) {
        struct live_state s;
        char state[LIVE_STATE_TEXT];

        live_get_state(l, &s);
        live_state_text(state, l);
        write_one(&w, l, &s, now);
        rc = buf_addf(&ret->text, "%s  %s  %llu s%s  %s\n", live_id(l), state,
                      (unsigned long long)((now - s.began_ns) / 1000000000U),
                      s.has_terminal ? "  tty" : "", s.command);
    }
    jw_end_array(&w);
    jw_key_int(&w, "running", (int64_t)live_store_running(store));
    jw_key_int(&w, "max", (int64_t)live_store_max(store));
    jw_end_object(&w);
    if (rc == SY_E_OK && ret->text.len == 0) {
        rc = buf_add_str(&ret->text, "no sessions\n");
    }
    if (rc == SY_E_OK) {
        rc = jw_done(&w);
    }
    return result_end(ret, rc);
}

enum sy_code
tool_live_list(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    struct tool_output output;
    enum sy_code rc = build(&output, tool_context_sessions(inv->context), call->session);

    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    tool_call_answer(call, &output);
    return SY_E_OK;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    return rc == SY_E_OK ? tool_live_list(inv, call, err) : rc;
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{}}";

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"sessions\"],\"properties\":{"
    "\"sessions\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
    "\"running\":{\"type\":\"integer\"},\"max\":{\"type\":\"integer\"}}}";

const struct tool_handler tool_list_sessions = {
    .name = "list_sessions",
    .aliases = aliases,
    .title = "List sessions",
    .description = "List the sessions of exec_command: what runs, since when, how it ended.",
    .input_schema = input_schema,
    .output_schema = output_schema,
    .is_read_only = true,
    .is_destructive = false,
    .is_idempotent = true,
    .is_open_world = false,
    .shell_types = "unified_exec|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = is_mutating,
    .handle = handle,
};
