#include <sys/stat.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/live_call.h"
#include "tools/patch_call.h"

static const char *const argument_names[] = {LIVE_START_NAMES, NULL};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

/* As the caller calls it: exec_command's is `cmd`, the specification's and the shell tool's
 * `command`. */
static const char *
command_name(const struct js *args)
{
    bool is_command = js_get(args, "command") != NULL || js_get(args, "action") != NULL;

    return is_command && js_get(args, "cmd") == NULL ? "command" : "cmd";
}

/* A script for the user's shell (Codex), or an argument list (the specification). */
static enum sy_code
fill_command(struct exec_request *request, const struct invocation *inv, struct sy_error *err)
{
    static const char *const names[] = {"cmd", "command", NULL};
    const char *name = command_name(inv->arguments);
    const struct js *v = NULL;
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    if (rc == SY_E_OK && js_type(v) == JS_ARRAY && js_count(v) > 0) {
        return request_fill_argv(&request->params.argv, v, name, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const char *text = js_type(v) == JS_STRING ? js_str(v) : NULL;

    if (text == NULL || text[0] == '\0') {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG,
                          "'%s' must be a script for the shell, e.g. \"python3 -i\", or a list of "
                          "program and arguments, not %s",
                          name,
                          text != NULL             ? "empty"
                          : js_type(v) == JS_ARRAY ? "an empty one"
                                                   : js_not_text(&is, v));
    }
    request->script = mem_strdup(text);
    if (request->script == NULL) {
        return sy_err_nomem(err);
    }
    request->login = tool_context_config(inv->context)->shell.login;
    return request_bool(&request->login, js_get(inv->arguments, "login"), "login", err);
}

/* Its login environment is there already: it need not read its profiles for it. */
static bool
is_own_shell(const struct invocation *inv, const struct shell *shell)
{
    const struct shell *own = NULL;
    struct stat a;
    struct stat b;

    return session_shell(tool_context_session(inv->context), &own, NULL) == SY_E_OK &&
           own->kind == shell->kind && stat(own->path, &a) == 0 && stat(shell->path, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Another shell than the user's: its argument list is made here. */
static enum sy_code
use_shell(struct exec_request *request, const struct invocation *inv, struct sy_error *err)
{
    const struct js *v = js_get(inv->arguments, "shell");
    SY_AUTO(shell_fini) struct shell shell = {0};

    if (v == NULL || js_type(v) == JS_NULL || request->script == NULL) {
        return SY_E_OK;
    }
    if (js_str(v) == NULL) {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG, "'shell' must be the name or path of a shell, not %s",
                          js_not_text(&is, v));
    }

    enum sy_code rc = shell_find(&shell, js_str(v), err);

    if (rc != SY_E_OK || is_own_shell(inv, &shell)) {
        return rc;
    }
    request->params.argv.max = LIMIT_ARGV;
    rc = shell_derive(&request->params.argv, &shell, request->script, request->login);
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    request->is_derived = true;
    mem_free(request->script);
    request->script = NULL;
    return SY_E_OK;
}

static enum sy_code
fill_input(struct exec_request *request, const struct js *args, struct sy_error *err)
{
    const struct js *v = js_get(args, "stdin");
    static const char *const names[] = {"tty", "pty", NULL};
    const struct js *tty = NULL;
    bool is_terminal = false;
    enum sy_code rc = request_pick(&tty, args, names, err);

    if (rc == SY_E_OK) {
        rc = request_bool(&is_terminal, tty, "tty", err);
    }
    if (rc == SY_E_OK && v != NULL && js_type(v) != JS_NULL) {
        const char *word = js_str(v);

        if (word == NULL || (!str_eq(word, "closed") && !str_eq(word, "pipe"))) {
            return sy_err_set(err, SY_E_ARG, "'stdin' must be \"closed\" or \"pipe\"");
        }
        request->input.kind = str_eq(word, "pipe") ? INPUT_PIPE : INPUT_NONE;
    }
    if (rc == SY_E_OK) {
        rc = live_args_size(&request->input.rows, &request->input.columns, args, err);
    }
    if (rc == SY_E_OK && !is_terminal && (request->input.rows > 0 || request->input.columns > 0)) {
        return sy_err_set(
            err, SY_E_ARG,
            "'rows' and 'cols' are the size of a terminal, which the command would not "
            "have: give tty true as well, or leave them out");
    }
    if (rc == SY_E_OK && is_terminal && request->input.kind == INPUT_PIPE) {
        return sy_err_set(err, SY_E_ARG,
                          "standard input is a terminal (tty) or a pipe (stdin), not both: leave "
                          "'stdin' out for the terminal");
    }
    if (is_terminal) {
        request->input.kind = INPUT_TERMINAL;
    }
    return rc;
}

/* Without it programs find a terminal that can do nothing (TERM=dumb), which models read best. */
static enum sy_code
fill_term(struct exec_request *request, const struct js *args, struct sy_error *err)
{
    const struct js *v = js_get(args, "term");
    const char *term = v != NULL ? js_str(v) : NULL;
    enum sy_code rc = SY_E_OK;

    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (term == NULL || term[0] == '\0') {
        return sy_err_set(err, SY_E_ARG,
                          "'term' must be a terminal's name, e.g. \"xterm-256color\"");
    }
    rc = strv_addf(&request->params.env, "TERM=%s", term);
    if (rc == SY_E_OK) {
        rc = strv_add(&request->params.env, "NO_COLOR="); /* empty is as if not set */
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

/* A session has no time limit unless the call sets one. */
static void
keep_running(struct exec_request *request, const struct js *args)
{
    if (js_get(args, "timeout_ms") == NULL && js_get(args, "timeout") == NULL) {
        request->params.expiration = (struct exec_expiration){.kind = EXPIRE_CANCELLATION};
    }
}

static enum sy_code
fill(struct exec_request *request, struct live_order *order, const struct invocation *inv,
     const struct live_yield *yield, struct sy_error *err)
{
    enum sy_code rc = fill_command(request, inv, err);

    if (rc == SY_E_OK) {
        rc = request_fill_common(request, &order->max_bytes, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_input(request, inv->arguments, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_term(request, inv->arguments, err);
    }
    if (rc == SY_E_OK) {
        rc = live_args_wait(order, inv, yield, err);
    }
    keep_running(request, inv->arguments);
    return rc;
}

enum sy_code
tool_live_start(const struct invocation *inv, struct tool_call *call,
                const struct live_yield *yield, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = call->handler->name};
    struct live_order order = {0};
    char room[LIVE_ID_ROOM];
    bool is_patch = false;
    enum sy_code rc = fill(&request, &order, inv, yield, err);

    if (rc == SY_E_OK) {
        rc = live_args_id(&order.id, room, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = patch_call_intercept(&is_patch, call, &request, order.max_bytes, err);
    }
    if (rc == SY_E_OK && !is_patch) {
        rc = use_shell(&request, inv, err);
    }
    return rc != SY_E_OK || is_patch ? rc : live_call_start(call, &request, &order, err);
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    static const struct live_yield yield = {LIMIT_YIELD_DEFAULT_MS, LIMIT_YIELD_MIN_MS,
                                            LIMIT_YIELD_MAX_MS};
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    return rc == SY_E_OK ? tool_live_start(inv, call, &yield, err) : rc;
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"cmd\"],"
    "\"properties\":{"
    "\"cmd\":{\"type\":\"string\",\"description\":\"Script for the user's shell.\"},"
    "\"tty\":{\"type\":\"boolean\",\"description\":"
    "\"Give it a terminal, so that it can be typed to. Default false: standard input is empty.\"},"
    "\"yield_time_ms\":{\"type\":\"integer\",\"description\":"
    "\"Answer then even if it still runs. Default 10000, 250 to 30000.\"}," LIVE_WAIT_SCHEMA_SHORT
    "\"workdir\":{\"type\":\"string\",\"description\":\"Default: the workspace.\"},"
    "\"term\":{\"type\":\"string\",\"description\":"
    "\"TERM for programs that draw, e.g. xterm-256color. Default dumb.\"},"
    "\"rows\":{\"type\":\"integer\"},\"cols\":{\"type\":\"integer\"},"
    "\"shell\":{\"type\":\"string\"},\"login\":{\"type\":\"boolean\"},"
    "\"timeout_ms\":{\"type\":\"integer\"},"
    "\"stdin\":{\"type\":\"string\",\"enum\":[\"closed\",\"pipe\"]},"
    "\"session_id\":{\"type\":\"string\",\"description\":\"Its name. Default: a new number.\"}," REQUEST_MORE_SCHEMA
    "}}";

const struct tool_handler tool_exec_command = {
    .name = "exec_command",
    .aliases = aliases,
    .title = "Run a command that may go on",
    .description =
        "Run a command$(sandbox? in the sandbox|); if it still runs after yield_time_ms, the answer "
        "has a session_id for write_stdin. For servers, REPLs, watchers and anything "
        "that asks (tty true).",
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
