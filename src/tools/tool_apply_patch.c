#include "base/limits.h"
#include "base/str.h"
#include "tools/patch_call.h"

static const char *const argument_names[] = {
    "input", "patch", "workdir", "cwd", "working_directory", "dry_run", "justification", NULL,
};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_CUSTOM || payload == PAYLOAD_MCP;
}

static bool
is_mutating(const struct invocation *inv)
{
    bool is_dry = false;

    if (inv->payload == PAYLOAD_CUSTOM) {
        return true;
    }
    return !js_bool(&is_dry, js_get(inv->arguments, "dry_run")) || !is_dry;
}

static enum sy_code
read_input(struct patch_order *order, const struct invocation *inv, struct sy_error *err)
{
    static const char *const names[] = {"input", "patch", NULL};
    const struct js *v = NULL;
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_type(v) != JS_STRING) {
        return sy_err_set(err, SY_E_ARG,
                          "'input' must be a string with the patch, from '*** Begin Patch' to '*** "
                          "End Patch', not %s",
                          v == NULL ? "absent" : js_type_name(js_type(v)));
    }
    order->text = js_str_raw(v);
    order->len = js_str_len(v);
    return SY_E_OK;
}

static enum sy_code
read_arguments(struct patch_order *order, struct exec_request *request,
               const struct invocation *inv, struct sy_error *err)
{
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    if (rc == SY_E_OK) {
        rc = read_input(order, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = request_bool(&order->is_dry, js_get(inv->arguments, "dry_run"), "dry_run", err);
    }
    if (rc == SY_E_OK) {
        rc = request_fill_common(request, &order->max_bytes, inv, err);
    }
    order->cwd = request->params.cwd;
    order->justification = request->params.justification;
    return rc;
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "apply_patch"};
    struct patch_order order = {.tool = "apply_patch"};
    enum sy_code rc = SY_E_OK;

    if (inv->payload == PAYLOAD_CUSTOM) {
        order.text = inv->input;
        order.len = inv->input_len;
        order.cwd = inv->turn->cwd;
        order.max_bytes = request_budget(inv);
    } else {
        rc = read_arguments(&order, &request, inv, err);
    }
    return rc == SY_E_OK ? patch_call_submit(call, &order, err) : rc;
}

static const char *const aliases[] = {"applypatch", NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"input\"],"
    "\"properties\":{"
    "\"input\":{\"type\":\"string\"},"
    "\"workdir\":{\"type\":\"string\",\"description\":"
    "\"What paths are relative to. Default: the workspace.\"},"
    "\"dry_run\":{\"type\":\"boolean\",\"description\":"
    "\"Only show the difference.\"},"
    "\"justification\":{\"type\":\"string\",\"description\":"
    "\"Shown to a person who is asked.\"}}}";

const struct tool_handler tool_apply_patch = {
    .name = "apply_patch",
    .aliases = aliases,
    .title = "Apply a patch to files",
    .description =
        "Add, change, move and delete files by one patch, whole or not at all. Its first line is "
        "'*** Begin Patch', its last '*** End Patch'. Between them a section a file: '*** Add File: "
        "PATH', then its lines, each after '+'; '*** Delete File: PATH'; '*** Update File: PATH', if "
        "it moves '*** Move to: PATH', then chunks: '@@', or '@@ LINE' to begin behind that line of "
        "the file, then lines after ' ' (kept), '-' (removed) or '+' (added), with about three kept "
        "lines around a change, in the order of the file.",
    .input_schema = input_schema,
    .output_schema = patch_call_schema,
    .is_read_only = false,
    .is_destructive = true,
    .is_idempotent = false,
    .is_open_world = false,
    .shell_types = "default|shell_command|unified_exec|all",
    .kind = TOOL_CUSTOM,
    .matches_kind = matches_kind,
    .is_mutating = is_mutating,
    .handle = handle,
};
