#include "base/limits.h"
#include "base/str.h"
#include "tools/live_call.h"
#include "tools/patch_call.h"

/*
 * One tool for programs that run to their end and for sessions: `action` says which. But for `run`
 * each is what one of the tools for sessions does, with its arguments.
 */
struct action {
    const char *name;
    const char *const *arguments;
    bool is_mutating; /* may change files, by what it gives to a session */
    bool is_listed;   /* those that no schema has are accepted: models mix them up */
    enum sy_code (*run)(const struct invocation *inv, struct tool_call *call, struct sy_error *err);
};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_LOCAL_SHELL || payload == PAYLOAD_MCP;
}

static enum sy_code
fill_argv(struct strv *argv, const struct invocation *inv, struct sy_error *err)
{
    static const char *const names[] = {"command", "cmd", NULL};
    const struct js *v = NULL;
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_type(v) != JS_ARRAY || js_count(v) == 0) {
        return sy_err_set(err, SY_E_ARG,
                          "'command' must be an array of strings with at least the program, e.g. "
                          "[\"ls\", \"-la\"], not %s; for a script use shell_command",
                          v == NULL                ? "absent"
                          : js_type(v) == JS_ARRAY ? "an empty one"
                                                   : js_type_name(js_type(v)));
    }
    return request_fill_argv(argv, v, "command", err);
}

static enum sy_code
run(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "shell"};
    size_t max_bytes = 0;
    bool is_patch = false;
    enum sy_code rc = fill_argv(&request.params.argv, inv, err);

    if (rc == SY_E_OK) {
        rc = request_fill_common(&request, &max_bytes, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = patch_call_intercept(&is_patch, call, &request, max_bytes, err);
    }
    return rc != SY_E_OK || is_patch ? rc : tool_submit(call, &request, max_bytes, err);
}

/* Who spawns goes on: it is only told what comes at once. */
static enum sy_code
spawn(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    static const struct live_yield yield = {LIMIT_YIELD_MIN_MS, LIMIT_YIELD_MIN_MS,
                                            LIMIT_YIELD_MAX_MS};

    return tool_live_start(inv, call, &yield, err);
}

/* What there is, at once. */
static enum sy_code
poll(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    static const struct live_yield yield = {0, 0, LIMIT_YIELD_POLL_MAX_MS};

    return tool_live_write(inv, call, &yield, err);
}

static enum sy_code
give(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    static const struct live_yield yield = {LIMIT_YIELD_POLL_MS, LIMIT_YIELD_MIN_MS,
                                            LIMIT_YIELD_POLL_MAX_MS};

    return tool_live_write(inv, call, &yield, err);
}

static enum sy_code
resize(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    if (js_type(js_get(inv->arguments, "rows")) == JS_NULL &&
        js_type(js_get(inv->arguments, "cols")) == JS_NULL) {
        return sy_err_set(err, SY_E_ARG,
                          "action \"resize\" needs 'rows' or 'cols', e.g. 24 and 80");
    }
    return give(inv, call, err);
}

static const char *const run_names[] = {"action", "command", "cmd", REQUEST_COMMON_NAMES, NULL};
static const char *const spawn_names[] = {"action", LIVE_START_NAMES, NULL};
static const char *const wait_names[] = {"action", LIVE_ID_NAMES, LIVE_WAIT_NAMES, NULL};
static const char *const send_names[] = {
    "action", LIVE_ID_NAMES, LIVE_WAIT_NAMES, LIVE_INPUT_NAMES, NULL,
};
static const char *const resize_names[] = {
    "action", LIVE_ID_NAMES, LIVE_WAIT_NAMES, "rows", "cols", NULL,
};
static const char *const kill_names[] = {
    "action", LIVE_ID_NAMES, LIVE_WAIT_NAMES, "signal", NULL,
};
static const char *const list_names[] = {"action", NULL};
static const char *const all_names[] = {
    "action", LIVE_START_NAMES, LIVE_INPUT_NAMES, REQUEST_COMMON_NAMES, NULL,
};

static const struct action actions[] = {
    {"run",       run_names,    true,  true,  run           },
    {"spawn",     spawn_names,  true,  true,  spawn         },
    {"start",     spawn_names,  true,  false, spawn         },
    {"poll",      wait_names,   false, true,  poll          },
    {"read",      wait_names,   false, false, poll          },
    {"wait",      wait_names,   false, true,  give          },
    {"send_text", send_names,   true,  true,  give          },
    {"send_keys", send_names,   true,  true,  give          },
    {"send",      send_names,   true,  false, give          },
    {"resize",    resize_names, true,  true,  resize        },
    {"kill",      kill_names,   true,  true,  tool_live_end },
    {"list",      list_names,   false, true,  tool_live_list},
};
#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

/* NULL: it is none. */
static const struct action *
find_action(const struct js *args)
{
    const struct js *v = js_get(args, "action");
    const char *name = js_type(v) == JS_NULL ? actions[0].name : js_str(v);

    for (size_t i = 0; name != NULL && i < N_ACTIONS; i++) {
        if (str_eq(actions[i].name, name)) {
            return &actions[i];
        }
    }
    return NULL;
}

static bool
takes(const struct action *a, const char *name)
{
    for (const char *const *n = a->arguments; *n != NULL; n++) {
        if (str_eq(*n, name)) {
            return true;
        }
    }
    return false;
}

/* 'x' belongs to action "a", "b" or "c", ... */
static enum sy_code
refuse_argument(const struct action *a, const char *name, bool is_implied, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf who = {.max = SY_ERR_MSG_MAX};
    size_t left = 0;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < N_ACTIONS; i++) {
        left += actions[i].is_listed && takes(&actions[i], name) ? 1 : 0;
    }
    for (size_t i = 0; i < N_ACTIONS && rc == SY_E_OK; i++) {
        if (actions[i].is_listed && takes(&actions[i], name)) {
            left--;
            rc = buf_addf(&who, "\"%s\"%s", actions[i].name,
                          left > 1    ? ", "
                          : left == 1 ? " or "
                                      : "");
        }
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_ARG, "'%s' belongs to action %s, not to \"%s\"%s", name,
                      buf_view(&who), a->name,
                      is_implied ? ", which is meant if none is named" : "");
}

/* An argument that says nothing to the action was meant for another one. */
static enum sy_code
check_arguments(const struct action *a, const struct js *args, struct sy_error *err)
{
    void *it = NULL;
    const char *name = NULL;
    const struct js *value = NULL;
    enum sy_code rc = request_check_names(args, all_names, err);

    while (rc == SY_E_OK && js_next(args, &it, &name, &value)) {
        if (js_type(value) != JS_NULL && !takes(a, name)) {
            rc = refuse_argument(a, name, js_type(js_get(args, "action")) == JS_NULL, err);
        }
    }
    return rc;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    const struct action *a = find_action(inv->arguments);
    enum sy_code rc = SY_E_OK;

    if (a == NULL) {
        return sy_err_set(err, SY_E_ARG,
                          "'action' must be one of run, spawn, poll, wait, send_text, send_keys, "
                          "resize, kill, list");
    }
    rc = check_arguments(a, inv->arguments, err);
    return rc == SY_E_OK ? a->run(inv, call, err) : rc;
}

static bool
is_mutating(const struct invocation *inv)
{
    const struct action *a = find_action(inv->arguments);

    return a == NULL || a->is_mutating;
}

static const char *const aliases[] = {"container.exec", "local_shell", NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,"
    "\"properties\":{"
    "\"action\":{\"type\":\"string\",\"enum\":[\"run\",\"spawn\",\"poll\",\"wait\","
    "\"send_text\",\"send_keys\",\"resize\",\"kill\",\"list\"],\"description\":"
    "\"Default run: to completion. spawn: begin a session. list: all of them. The others: of "
    "session_id; poll answers at once, wait up to yield_time_ms.\"},"
    "\"command\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"Program and arguments; no shell reads them. For pipes and redirects use "
    "[\\\"bash\\\",\\\"-c\\\",...].\"},"
    "\"session_id\":{\"type\":\"string\"},"
    "\"tty\":{\"type\":\"boolean\",\"description\":\"spawn: give it a terminal.\"},"
    "\"rows\":{\"type\":\"integer\"},\"cols\":{\"type\":\"integer\"},"
    "\"term\":{\"type\":\"string\"},"
    "\"text\":{\"type\":\"string\"},\"paste\":{\"type\":\"boolean\"},"
    "\"keys\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"As tmux names them: Enter, Up, C-c, F1.\"},"
    "\"enter\":{\"type\":\"boolean\",\"description\":\"Press Enter after text and keys.\"},"
    "\"eof\":{\"type\":\"boolean\"},\"signal\":{\"type\":\"string\"},"
    "\"yield_time_ms\":{\"type\":\"integer\"}," LIVE_WAIT_SCHEMA
    "\"since_seq\":{\"type\":\"integer\"},"
    "\"workdir\":{\"type\":\"string\",\"description\":"
    "\"Default: the workspace.\"}," REQUEST_COMMON_SCHEMA "}}";

const struct tool_handler tool_shell = {
    .name = "shell",
    .aliases = aliases,
    .title = "Run a program",
    .description =
        "Run one program with arguments$(sandbox?, in the sandbox,|) and return its output, exit "
        "code and how it ended: no terminal, standard input is empty. Or, by action, "
        "drive a session: it goes on, interactive or in the background.",
    .input_schema = input_schema,
    .output_schema = result_any_schema,
    .is_read_only = false,
    .is_destructive = true,
    .is_idempotent = false,
    .is_open_world = true,
    .shell_types = "default|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = is_mutating,
    .handle = handle,
};
