#include <string.h>

#include "base/str.h"
#include "tools/access_call.h"

static const char *const argument_names[] = {"access", "object", "scope", "justification", NULL};

static bool
matches_kind(enum payload_kind payload)
{
    return payload == PAYLOAD_FUNCTION || payload == PAYLOAD_MCP;
}

/* It changes no file, and others go on while a person thinks. */
static bool
is_mutating(const struct invocation *inv)
{
    (void)inv;
    return false;
}

static enum sy_code
read_text(const char **ret, const struct invocation *inv, const char *name, struct sy_error *err)
{
    const struct js *v = js_get(inv->arguments, name);

    *ret = js_str(v);
    if (*ret == NULL || (*ret)[0] == '\0') {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG, "'%s' must be a string with text, not %s", name,
                          *ret == NULL ? js_not_text(&is, v) : "empty");
    }
    return SY_E_OK;
}

static enum sy_code
read_scope(enum grant_scope *ret, const struct invocation *inv, struct sy_error *err)
{
    const struct js *v = js_get(inv->arguments, "scope");
    const char *text = js_str(v);

    *ret = GRANT_ONCE;
    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    for (int i = GRANT_ONCE; text != NULL && i <= GRANT_RULE; i++) {
        if (str_eq(text, access_call_scope_name((enum grant_scope)i))) {
            *ret = (enum grant_scope)i;
            return SY_E_OK;
        }
    }
    return sy_err_set(err, SY_E_ARG, "'scope' must be \"once\", \"session\" or \"rule\"");
}

static enum sy_code
handle(const struct invocation *inv, struct tool_call *call, struct sy_error *err)
{
    struct access_order order = {0};
    const char *kind = NULL;
    enum sy_code rc = request_check_names(inv->arguments, argument_names, err);

    if (rc == SY_E_OK) {
        rc = read_text(&kind, inv, "access", err);
    }
    if (rc == SY_E_OK && !access_kind_parse(&order.kind, kind)) {
        rc = sy_err_set(err, SY_E_ARG,
                        "'access' must be \"read\", \"write\", \"connect\" or \"run\"");
    }
    if (rc == SY_E_OK) {
        rc = read_text(&order.object, inv, "object", err);
    }
    if (rc == SY_E_OK) {
        rc = read_text(&order.justification, inv, "justification", err);
    }
    if (rc == SY_E_OK) {
        rc = read_scope(&order.wish, inv, err);
    }
    return rc == SY_E_OK ? access_call_submit(call, inv, &order, err) : rc;
}

static const char *const aliases[] = {NULL};

static const char input_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"access\",\"object\",\"justification\"],\"properties\":{"
    "\"access\":{\"type\":\"string\",\"enum\":[\"read\",\"write\",\"connect\",\"run\"]},"
    "\"object\":{\"type\":\"string\",\"description\":"
    "\"An absolute path; for connect host or host:port; for run a program.\"},"
    "\"scope\":{\"type\":\"string\",\"enum\":[\"once\",\"session\",\"rule\"],\"description\":"
    "\"For the next command, all of this session, or for good. Default once.\"},"
    "\"justification\":{\"type\":\"string\",\"description\":\"Why; shown to the person.\"}}}";

const struct tool_handler tool_request_access = {
    .name = "request_access",
    .aliases = aliases,
    .title = "Ask for access",
    .description =
        "Ask a person to let sandboxed commands read or write one path, reach one host or "
        "run one program. Better than running a command outside of the sandbox. It "
        "holds once the answer says applied.",
    .input_schema = input_schema,
    .output_schema = access_call_schema,
    .is_read_only = false,
    .is_destructive = false,
    .is_idempotent = true,
    .is_open_world = false,
    .needs_person = true,
    .shell_types = "default|shell_command|unified_exec|all",
    .kind = TOOL_FUNCTION,
    .matches_kind = matches_kind,
    .is_mutating = is_mutating,
    .handle = handle,
};
