#include <signal.h>

#include "base/limits.h"
#include "base/str.h"
#include "tools/live_call.h"

/* How long the answer waits for the end: a tree that is killed needs some milliseconds. */
#define END_MS 5000

static const char *const argument_names[] = {LIVE_ID_NAMES, LIVE_WAIT_NAMES, "signal", NULL};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

enum sy_code
tool_live_end(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    static const struct live_yield yield = {END_MS, LIMIT_YIELD_MIN_MS, LIMIT_YIELD_MAX_MS};
    const struct js *v = js_get(inv->arguments, "signal");
    struct live_order order = {.kills = true};
    char room[LIVE_ID_ROOM];
    enum sy_code rc = live_args_need_id(&order.id, room, inv, err);

    if (rc == SY_E_OK && v != NULL && js_type(v) != JS_NULL) {
        rc = live_args_signal(&order.signal, v, err);
        order.kills = order.signal == SIGKILL;
    }
    if (rc == SY_E_OK) {
        rc = live_args_wait(&order, inv, &yield, err);
    }
    return rc == SY_E_OK ? live_call_drive(call, &order, err) : rc;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    return rc == SY_E_OK ? tool_live_end(inv, call, err) : rc;
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"session_id\"],"
    "\"properties\":{"
    "\"session_id\":{\"type\":\"string\"},"
    "\"signal\":{\"type\":\"string\",\"description\":"
    "\"Default KILL, to all of it; others go to the foreground.\"},"
    "\"yield_time_ms\":{\"type\":\"integer\"}}}";

const struct tool_handler tool_kill_session = {
    .name = "kill_session",
    .aliases = aliases,
    .title = "End a session",
    .description = "End a session and all that it started, and return its last output.",
    .input_schema = input_schema,
    .output_schema = result_session_schema,
    .is_read_only = false,
    .is_destructive = true,
    .is_idempotent = true,
    .is_open_world = false,
    .shell_types = "unified_exec|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = request_is_mutating,
    .handle = handle,
};
