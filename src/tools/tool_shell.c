#include "base/limits.h"
#include "base/str.h"
#include "tools/patch_call.h"

static const char *const argument_names[] = {
    "command",
    "cmd",
    REQUEST_COMMON_NAMES,
    NULL,
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
    argv->max = LIMIT_ARGV;
    for (size_t i = 0; i < js_count(v); i++) {
        const char *word = js_str(js_at(v, i));

        if (word == NULL) {
            enum js_type type = js_type(js_at(v, i));

            return sy_err_set(err, SY_E_ARG,
                              "'command[%zu]' must be a string without NUL characters, not %s", i,
                              type == JS_STRING ? "one with a NUL" : js_type_name(type));
        }
        rc = strv_add(argv, word);
        if (rc == SY_E_LIMIT) {
            return sy_err_set(err, SY_E_ARG, "'command' has more than %u words", LIMIT_ARGV);
        }
        if (rc != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return SY_E_OK;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "shell"};
    size_t max_bytes = 0;
    bool is_patch = false;
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    if (rc == SY_E_OK) {
        rc = fill_argv(&request.params.argv, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = request_fill_common(&request, &max_bytes, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = patch_call_intercept(&is_patch, call, &request, max_bytes, err);
    }
    return rc != SY_E_OK || is_patch ? rc : tool_submit(call, &request, max_bytes, err);
}

static const char *const aliases[] = {"container.exec", "local_shell", NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"command\"],"
    "\"properties\":{"
    "\"command\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":"
    "\"Program and arguments; no shell reads them. For pipes and redirects use "
    "[\\\"bash\\\",\\\"-c\\\",...] or shell_command.\"},"
    "\"workdir\":{\"type\":\"string\",\"description\":"
    "\"Working directory, relative to the workspace or absolute. Default: the workspace.\"}," REQUEST_COMMON_SCHEMA
    "}}";

const struct tool_handler tool_shell = {
    .name = "shell",
    .aliases = aliases,
    .title = "Run a program",
    .description = "Run one program with arguments to completion, in the sandbox, and return its "
                   "output, exit code and how it ended. No terminal, standard input is empty. "
                   "Output beyond the limit keeps head and tail.",
    .input_schema = input_schema,
    .output_schema = result_schema,
    .is_read_only = false,
    .is_destructive = true,
    .is_idempotent = false,
    .is_open_world = true,
    .shell_types = "default|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = request_is_mutating,
    .handle = handle,
};
