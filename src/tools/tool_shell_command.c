#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/patch_call.h"

static const char *const argument_names[] = {
    "command", "cmd", "login", REQUEST_COMMON_NAMES, NULL,
};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

static enum sy_code
fill_script(struct exec_request *request, const struct invocation *inv, struct sy_error *err)
{
    static const char *const names[] = {"command", "cmd", NULL};
    const struct js *v = NULL;
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    const char *text = js_str(v);

    if (text == NULL) {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG,
                          "'command' must be a string with the script, e.g. \"ls -la | head\", "
                          "not %s%s",
                          js_not_text(&is, v),
                          js_type(v) == JS_ARRAY ? "; for an argument list use shell" : "");
    }
    if (text[0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "'command' is empty");
    }
    request->script = mem_strdup(text);
    if (request->script == NULL) {
        return sy_err_nomem(err);
    }
    request->login = tool_context_config(inv->context)->shell.login;
    return request_bool(&request->login, js_get(inv->arguments, "login"), "login", err);
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "shell_command"};
    size_t max_bytes = 0;
    bool is_patch = false;
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    if (rc == SY_E_OK) {
        rc = fill_script(&request, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = request_fill_common(&request, &max_bytes, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = patch_call_intercept(&is_patch, call, &request, max_bytes, err);
    }
    return rc != SY_E_OK || is_patch ? rc : tool_submit(call, &request, max_bytes, err);
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"command\"],"
    "\"properties\":{"
    "\"command\":{\"type\":\"string\",\"description\":\"Script for the user's shell.\"},"
    "\"workdir\":{\"type\":\"string\",\"description\":"
    "\"Relative to the workspace, the default, or absolute. Set it instead of using cd.\"},"
    "\"login\":{\"type\":\"boolean\",\"description\":"
    "\"The login environment of the user's shell. Default $(login).\"}," REQUEST_COMMON_SCHEMA "}}";

const struct tool_handler tool_shell_command = {
    .name = "shell_command",
    .aliases = aliases,
    .title = "Run a shell command",
    .description =
        "Run one shell command to completion$(sandbox?, in the sandbox,|) and return its "
        "output, exit code and how it ended. Use it for builds, tests, git and files; not for "
        "servers or anything that asks for input. A pipeline's exit code is that of "
        "its last command. Background processes end with the command.",
    .input_schema = input_schema,
    .output_schema = result_schema,
    .is_read_only = false,
    .is_destructive = true,
    .is_idempotent = false,
    .is_open_world = true,
    .shell_types = "shell_command|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = request_is_mutating,
    .handle = handle,
};
