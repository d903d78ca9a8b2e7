#include "protocol/jsonl_internal.h"

#include <stdio.h>

#include "base/str.h"

/* The names of all tools, for an error. */
static enum sy_code
unknown_tool(struct sy_error *err, const char *name)
{
    char names[120] = "";
    size_t len = 0;

    for (const struct tool_handler *const *t = tool_handlers(); *t != NULL; t++) {
        int n = snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "", (*t)->name);

        if (n < 0 || (size_t)n >= sizeof(names) - len) {
            names[len] = '\0';
            break;
        }
        len += (size_t)n;
    }
    return sy_err_set(err, SY_E_NOTFOUND, "unknown tool '%.64s'; the tools are: %s", name, names);
}

static enum sy_code
read_name(struct invocation *ret, const struct js *item, struct sy_error *err)
{
    ret->tool_name = js_str(js_get(item, "name"));
    if (ret->tool_name == NULL) {
        return sy_err_set(err, SY_E_ARG, "name must be a string: the name of a tool");
    }
    return tool_find(ret->tool_name) != NULL ? SY_E_OK : unknown_tool(err, ret->tool_name);
}

static enum sy_code
prepare_function(struct invocation *ret, const struct js *item, struct json_doc *args,
                 struct sy_error *err)
{
    const struct js *v = js_get(item, "arguments");
    enum sy_code rc = read_name(ret, item, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_type(v) == JS_OBJECT) {
        ret->arguments = v;
        return SY_E_OK;
    }
    if (js_type(v) != JS_STRING && js_type(v) != JS_NULL) {
        return sy_err_set(err, SY_E_ARG, "arguments must be a string of JSON or an object, not %s",
                          js_type_name(js_type(v)));
    }

    /* A model without anything to say sends "" or nothing. */
    bool is_empty = js_str_len(v) == 0;

    rc = json_parse(args, is_empty ? "{}" : js_str_raw(v), is_empty ? 2 : js_str_len(v), err);
    if (rc != SY_E_OK) {
        if (rc == SY_E_PARSE) {
            sy_err_wrap(err, "arguments");
        }
        return rc;
    }
    if (js_type(args->root) != JS_OBJECT) {
        return sy_err_set(err, SY_E_ARG, "arguments must hold an object, not %s",
                          js_type_name(js_type(args->root)));
    }
    ret->arguments = args->root;
    return SY_E_OK;
}

static enum sy_code
prepare_custom(struct invocation *ret, const struct js *item, struct json_doc *args,
               struct sy_error *err)
{
    const struct js *v = js_get(item, "input");
    enum sy_code rc = read_name(ret, item, err);

    (void)args;
    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_type(v) != JS_STRING) {
        return sy_err_set(err, SY_E_ARG, "input must be a string, not %s",
                          v == NULL ? "absent" : js_type_name(js_type(v)));
    }
    ret->input = js_str_raw(v);
    ret->input_len = js_str_len(v);
    return SY_E_OK;
}

static void
copy_member(struct jw *w, const char *key, const struct js *v)
{
    /* Models send null and {} for "not given". */
    if (js_type(v) != JS_NULL && !(js_type(v) == JS_OBJECT && js_count(v) == 0)) {
        jw_key(w, key);
        jw_value(w, v);
    }
}

/* The action of a local_shell_call becomes the arguments of the shell tool. */
static enum sy_code
prepare_local_shell(struct invocation *ret, const struct js *item, struct json_doc *args,
                    struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_RPC_FRAME};
    const struct js *action = js_get(item, "action");
    const char *type = js_str(js_get(action, "type"));
    struct jw w = {.out = &text};

    if (type == NULL || !str_eq(type, "exec")) {
        return sy_err_set(err, SY_E_ARG, "action must be an object with \"type\":\"exec\"");
    }
    if (js_type(js_get(action, "user")) != JS_NULL) {
        return sy_err_set(err, SY_E_ARG,
                          "action.user is not supported: commands run as the user of this program");
    }
    jw_object(&w);
    copy_member(&w, "command", js_get(action, "command"));
    copy_member(&w, "workdir", js_get(action, "working_directory"));
    copy_member(&w, "timeout_ms", js_get(action, "timeout_ms"));
    copy_member(&w, "env", js_get(action, "env"));
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    if (rc == SY_E_OK) {
        rc = json_parse(args, text.data, text.len, err);
    } else {
        sy_err_set(err, rc, "reading action: %s", sy_code_text(rc));
    }
    if (rc == SY_E_OK) {
        ret->tool_name = "local_shell";
        ret->arguments = args->root;
        if (tool_find(ret->tool_name) == NULL) {
            rc = unknown_tool(err, ret->tool_name);
        }
    }
    return rc;
}

static const struct jsonl_item_type types[] = {
    {"function_call",    "function_call_output",    PAYLOAD_FUNCTION,    prepare_function   },
    {"custom_tool_call", "custom_tool_call_output", PAYLOAD_CUSTOM,      prepare_custom     },
    {"local_shell_call", "local_shell_call_output", PAYLOAD_LOCAL_SHELL, prepare_local_shell},
};

const struct jsonl_item_type *
jsonl_item_type_find(const char *type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (str_eq(types[i].type, type)) {
            return &types[i];
        }
    }
    return NULL;
}
