#include <signal.h>

#include "base/limits.h"
#include "base/str.h"
#include "terminal/key.h"
#include "tools/live_call.h"

static const char *const argument_names[] = {
    LIVE_ID_NAMES, LIVE_WAIT_NAMES, LIVE_INPUT_NAMES, "rows", "cols", NULL,
};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

/* A name that is none is no text: it is told before anything is typed. */
static enum sy_code
check_keys(const struct js *v, struct sy_error *err)
{
    const struct key_modes modes = {.app_cursor = false};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_INPUT_PENDING};

    if (v != NULL && js_type(v) != JS_NULL && js_type(v) != JS_ARRAY) {
        return sy_err_set(err, SY_E_ARG,
                          "'keys' must be a list of names, e.g. [\"C-c\", \"Enter\"], "
                          "not %s",
                          js_type_name(js_type(v)));
    }
    for (size_t i = 0; v != NULL && i < js_count(v); i++) {
        const char *name = js_str(js_at(v, i));
        struct js_shown is;
        enum sy_code rc = name != NULL
                              ? key_encode(&out, name, &modes, err)
                              : sy_err_set(err, SY_E_ARG, "'keys[%zu]' must be a string, not %s", i,
                                           js_not_text(&is, js_at(v, i)));

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
fill_input(struct live_order *order, const struct js *args, struct sy_error *err)
{
    static const char *const names[] = {"chars", "input", "text", NULL};
    const struct js *v = NULL;
    const struct js *signal_name = js_get(args, "signal");
    enum sy_code rc = request_pick(&v, args, names, err);

    if (rc == SY_E_OK && v != NULL && js_type(v) != JS_STRING) {
        return sy_err_set(err, SY_E_ARG, "'chars' must be a string, not %s",
                          js_type_name(js_type(v)));
    }
    if (rc == SY_E_OK && v != NULL) {
        order->input = js_str_raw(v); /* NUL is Ctrl-@ */
        order->input_len = js_str_len(v);
    }
    if (rc == SY_E_OK) {
        rc = check_keys(js_get(args, "keys"), err);
        order->keys = js_get(args, "keys");
    }
    if (rc == SY_E_OK && signal_name != NULL && js_type(signal_name) != JS_NULL) {
        rc = live_args_signal(&order->signal, signal_name, err);
    }
    if (rc == SY_E_OK) {
        rc = request_bool(&order->presses_enter, js_get(args, "enter"), "enter", err);
    }
    if (rc == SY_E_OK) {
        rc = request_bool(&order->pastes, js_get(args, "paste"), "paste", err);
    }
    if (rc == SY_E_OK) {
        rc = request_bool(&order->ends_input, js_get(args, "eof"), "eof", err);
    }
    if (rc == SY_E_OK) {
        rc = live_args_size(&order->rows, &order->columns, args, err);
    }
    return rc;
}

/* Nothing is given to it: then the wait may be long. */
static bool
only_waits(const struct live_order *o)
{
    return o->input_len == 0 && (o->keys == NULL || js_count(o->keys) == 0) && o->signal == 0 &&
           !o->ends_input && !o->presses_enter && o->rows == 0 && o->columns == 0;
}

enum sy_code
tool_live_write(const struct invocation *inv, struct tool_call *call,
                const struct live_yield *poll_yield, struct sy_error *err)
{
    static const struct live_yield write_yield = {LIMIT_YIELD_WRITE_MS, LIMIT_YIELD_MIN_MS,
                                                  LIMIT_YIELD_MAX_MS};
    struct live_order order = {0};
    char room[LIVE_ID_ROOM];
    enum sy_code rc = live_args_need_id(&order.id, room, inv, err);

    if (rc == SY_E_OK) {
        rc = fill_input(&order, inv->arguments, err);
    }
    if (rc == SY_E_OK) {
        rc = live_args_wait(&order, inv, only_waits(&order) ? poll_yield : &write_yield, err);
    }
    return rc == SY_E_OK ? live_call_drive(call, &order, err) : rc;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    static const struct live_yield poll_yield = {LIMIT_YIELD_POLL_MS, LIMIT_YIELD_MIN_MS,
                                                 LIMIT_YIELD_POLL_MAX_MS};
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    return rc == SY_E_OK ? tool_live_write(inv, call, &poll_yield, err) : rc;
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"session_id\"],"
    "\"properties\":{"
    "\"session_id\":{\"type\":\"string\",\"description\":\"From exec_command.\"},"
    "\"chars\":{\"type\":\"string\",\"description\":"
    "\"What to type, with \\\\n for Enter and \\\\u0003 for Ctrl-C. Default \\\"\\\": only wait.\"},"
    "\"paste\":{\"type\":\"boolean\",\"description\":\"chars as one paste.\"},"
    "\"yield_time_ms\":{\"type\":\"integer\",\"description\":"
    "\"Default 250 (up to 30000), only waiting 5000 (up to 300000), with until 10000.\"}," LIVE_WAIT_SCHEMA
    "\"keys\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"Keys to press after chars, as tmux names them: Enter, Up, C-c, F1.\"},"
    "\"signal\":{\"type\":\"string\",\"description\":\"INT, TERM, HUP, QUIT, KILL, STOP, CONT or "
    "WINCH, to the foreground.\"},"
    "\"eof\":{\"type\":\"boolean\",\"description\":\"End its input (stdin pipe).\"},"
    "\"rows\":{\"type\":\"integer\"},\"cols\":{\"type\":\"integer\"},"
    "\"since_seq\":{\"type\":\"integer\",\"description\":"
    "\"Read again from there (next_seq of an earlier answer).\"},"
    "\"max_output_tokens\":{\"type\":\"integer\"}}}";

const struct tool_handler tool_write_stdin = {
    .name = "write_stdin",
    .aliases = aliases,
    .title = "Type to a session",
    .description = "Type to a running session, or only wait for it, and return what it wrote since "
                   "the last answer; exit_code once it has ended.",
    .input_schema = input_schema,
    .output_schema = result_session_schema,
    .is_read_only = false,
    .is_destructive = true,
    .is_idempotent = false,
    .is_open_world = true,
    .shell_types = "unified_exec|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = request_is_mutating,
    .handle = handle,
};
