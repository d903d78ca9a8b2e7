#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/tools_internal.h"

static size_t
count_names(const char *const *names)
{
    size_t n = 0;

    while (names[n] != NULL) {
        n++;
    }
    return n;
}

bool
request_is_mutating(const struct invocation *inv)
{
    (void)inv; /* Nothing is known to be harmless yet. */
    return true;
}

enum sy_code
request_check_names(const struct js *args, const char *const *names, struct sy_error *err)
{
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;
    size_t n = count_names(names);

    while (js_next(args, &it, &key, &value)) {
        bool is_known = false;

        for (size_t i = 0; i < n && !is_known; i++) {
            is_known = str_eq(names[i], key);
        }
        if (is_known) {
            continue;
        }

        const char *near = str_nearest(key, names, n);
        SY_AUTO(buf_fini) struct buf shown = {.max = 128};

        if (str_add_visible(&shown, key, strlen(key), 64) != SY_E_OK) {
            return sy_err_nomem(err);
        }
        if (near != NULL) {
            return sy_err_set(err, SY_E_ARG, "unknown argument '%s': did you mean '%s'?",
                              buf_view(&shown), near);
        }
        return sy_err_set(err, SY_E_ARG, "unknown argument '%s'", buf_view(&shown));
    }
    return SY_E_OK;
}

enum sy_code
request_pick(const struct js **ret, const struct js *args, const char *const *names,
             struct sy_error *err)
{
    const char *first = NULL;

    *ret = NULL;
    for (; *names != NULL; names++) {
        const struct js *v = js_get(args, *names);

        /* null means "not given": some clients send every property. */
        if (v == NULL || js_type(v) == JS_NULL) {
            continue;
        }
        if (first != NULL) {
            return sy_err_set(err, SY_E_ARG, "'%s' and '%s' mean the same: give one", first,
                              *names);
        }
        first = *names;
        *ret = v;
    }
    return SY_E_OK;
}

enum sy_code
request_bool(bool *ret, const struct js *v, const char *name, struct sy_error *err)
{
    if (v == NULL || js_type(v) == JS_NULL || js_bool(ret, v)) {
        return SY_E_OK;
    }
    return sy_err_set(err, SY_E_ARG, "'%s' must be true or false, not %s", name,
                      js_type_name(js_type(v)));
}

enum sy_code
request_fill_argv(struct strv *argv, const struct js *v, const char *name, struct sy_error *err)
{
    argv->max = LIMIT_ARGV;
    for (size_t i = 0; i < js_count(v); i++) {
        const char *word = js_str(js_at(v, i));

        if (word == NULL) {
            struct js_shown is;

            return sy_err_set(err, SY_E_ARG,
                              "'%s[%zu]' must be a string without NUL characters, not %s", name, i,
                              js_not_text(&is, js_at(v, i)));
        }

        enum sy_code rc = strv_add(argv, word);

        if (rc == SY_E_LIMIT) {
            return sy_err_set(err, SY_E_ARG, "'%s' has more than %u words", name, LIMIT_ARGV);
        }
        if (rc != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return SY_E_OK;
}

/* A string argument; *ret stays NULL when it is absent. */
static enum sy_code
text_argument(const char **ret, const struct js *v, const char *name, struct sy_error *err)
{
    struct js_shown is;

    *ret = v != NULL ? js_str(v) : NULL;
    return v == NULL || *ret != NULL ? SY_E_OK
                                     : sy_err_set(err, SY_E_ARG, "'%s' must be a string, not %s",
                                                  name, js_not_text(&is, v));
}

static enum sy_code
fill_cwd(struct exec_request *ret, const struct invocation *inv, struct sy_error *err)
{
    static const char *const names[] = {"workdir", "cwd", "working_directory", NULL};
    const struct js *v = NULL;
    const char *text = NULL;
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    if (rc == SY_E_OK) {
        rc = text_argument(&text, v, "workdir", err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = path_join(&path, inv->turn->cwd, text != NULL && text[0] != '\0' ? text : inv->turn->cwd);
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_ARG, "'workdir' is longer than %u bytes", LIMIT_PATH);
    }
    ret->params.cwd = rc == SY_E_OK ? buf_take(&path) : NULL;
    return ret->params.cwd == NULL ? sy_err_nomem(err) : SY_E_OK;
}

enum sy_code
request_no_number(const struct js *v, const char *name, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64};

    /* "300.5" tells more than that it is a number. */
    return js_type(v) == JS_REAL && js_dump(&text, v) == SY_E_OK
               ? sy_err_set(err, SY_E_ARG, "'%s' must be a whole number, not %.10g", name,
                            strtod(buf_view(&text), NULL))
               : sy_err_set(err, SY_E_ARG, "'%s' must be a whole number, not %s", name,
                            js_type_name(js_type(v)));
}

static enum sy_code
fill_timeout(struct exec_request *ret, const struct invocation *inv, struct sy_error *err)
{
    static const char *const names[] = {"timeout_ms", "timeout", NULL};
    const struct js *v = NULL;
    int64_t ms = tool_context_config(inv->context)->tools.timeout_ms;
    enum sy_code rc = request_pick(&v, inv->arguments, names, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (v != NULL && !js_int(&ms, v)) {
        return request_no_number(v, "timeout_ms", err);
    }
    if (ms <= 0 || ms > LIMIT_TIMEOUT_MAX_MS) {
        return sy_err_set(err, SY_E_ARG, "'timeout_ms' is %lld: it must be from 1 to %d (24 hours)",
                          (long long)ms, LIMIT_TIMEOUT_MAX_MS);
    }
    ret->params.expiration =
        (struct exec_expiration){.kind = EXPIRE_TIMEOUT, .timeout_ms = (uint64_t)ms};
    return SY_E_OK;
}

static enum sy_code
fill_permissions(struct exec_request *ret, const struct invocation *inv, struct sy_error *err)
{
    const char *text = NULL;
    const struct js *v = js_get(inv->arguments, "sandbox_permissions");
    enum sy_code rc = SY_E_OK;

    if (v != NULL && js_type(v) != JS_NULL) {
        rc = text_argument(&text, v, "sandbox_permissions", err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (text != NULL && str_eq(text, "require_escalated")) {
        ret->params.permissions = PERMISSIONS_REQUIRE_ESCALATED;
    } else if (text != NULL && !str_eq(text, "use_default")) {
        return sy_err_set(err, SY_E_ARG,
                          "'sandbox_permissions' must be \"use_default\" or "
                          "\"require_escalated\", not \"%.40s\"",
                          text);
    }

    v = js_get(inv->arguments, "justification");
    text = NULL;
    if (v != NULL && js_type(v) != JS_NULL) {
        rc = text_argument(&text, v, "justification", err);
    }
    if (rc == SY_E_OK && text != NULL) {
        ret->params.justification = mem_strdup(text);
        rc = ret->params.justification == NULL ? sy_err_nomem(err) : SY_E_OK;
    }
    return rc;
}

/* Codex: the words that a rule might begin with. */
static enum sy_code
fill_prefix(struct exec_request *ret, const struct invocation *inv, struct sy_error *err)
{
    const struct js *v = js_get(inv->arguments, "prefix_rule");

    ret->prefix.max = LIMIT_ARGV;
    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (js_type(v) != JS_ARRAY) {
        return sy_err_set(err, SY_E_ARG, "'prefix_rule' must be an array of strings, not %s",
                          js_type_name(js_type(v)));
    }
    return request_fill_argv(&ret->prefix, v, "prefix_rule", err);
}

static enum sy_code
add_variable(struct strv *env, const char *name, const struct js *value, struct sy_error *err)
{
    const char *text = js_str(value);

    if (text == NULL) {
        struct js_shown is;

        return sy_err_set(err, SY_E_ARG, "'env' member '%.60s' must be a string, not %s", name,
                          js_not_text(&is, value));
    }

    enum sy_code rc = strv_addf(env, "%s=%s", name, text);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_ARG, "'env' has more than %u variables", LIMIT_ENV);
    }
    if (rc == SY_E_OK && (name[0] == '\0' || str_env_name(env->v[env->n - 1]) != strlen(name))) {
        SY_AUTO(buf_fini) struct buf shown = {.max = 128};

        if (str_add_visible(&shown, name, strlen(name), 60) != SY_E_OK) {
            return sy_err_nomem(err);
        }
        return sy_err_set(err, SY_E_ARG,
                          "'env' has a bad variable name '%s': one to %d visible characters of "
                          "ASCII without '='",
                          buf_view(&shown), ENV_NAME_MAX);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

static enum sy_code
fill_env(struct exec_request *ret, const struct invocation *inv, struct sy_error *err)
{
    const struct js *v = js_get(inv->arguments, "env");
    void *it = NULL;
    const char *name = NULL;
    const struct js *value = NULL;

    ret->params.env.max = LIMIT_ENV;
    if (v == NULL || js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (js_type(v) != JS_OBJECT) {
        return sy_err_set(err, SY_E_ARG,
                          "'env' must be an object of strings, e.g. {\"CI\": \"1\"}, not %s",
                          js_type_name(js_type(v)));
    }
    while (js_next(v, &it, &name, &value)) {
        enum sy_code rc = add_variable(&ret->params.env, name, value, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

size_t
request_budget(const struct invocation *inv)
{
    const struct config *config = tool_context_config(inv->context);

    return inv->front == FRONT_MCP ? (size_t)config->output.max_bytes
                                   : (size_t)config->output.max_tokens * LIMIT_BYTES_PER_TOKEN;
}

enum sy_code
request_fill_budget(size_t *ret, const struct invocation *inv, struct sy_error *err)
{
    const struct config *config = tool_context_config(inv->context);
    const struct js *v = js_get(inv->arguments, "max_output_tokens");
    int64_t most = config->output.max_tokens;
    int64_t tokens = 0;

    if (v == NULL || js_type(v) == JS_NULL) {
        *ret = request_budget(inv);
        return SY_E_OK;
    }
    if (!js_int(&tokens, v) || tokens < 1) {
        return sy_err_set(err, SY_E_ARG,
                          "'max_output_tokens' must be a whole number, at least 1; more than "
                          "%lld counts as %lld",
                          (long long)most, (long long)most);
    }
    *ret = (size_t)(tokens < most ? tokens : most) * LIMIT_BYTES_PER_TOKEN;
    *ret = *ret > LIMIT_MODEL_BYTES_LEAST ? *ret : LIMIT_MODEL_BYTES_LEAST;
    return SY_E_OK;
}

enum sy_code
request_fill_common(struct exec_request *ret, size_t *ret_max_bytes, const struct invocation *inv,
                    struct sy_error *err)
{
    enum sy_code rc = fill_cwd(ret, inv, err);

    if (rc == SY_E_OK) {
        rc = fill_timeout(ret, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_permissions(ret, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_prefix(ret, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = fill_env(ret, inv, err);
    }
    if (rc == SY_E_OK) {
        rc = request_fill_budget(ret_max_bytes, inv, err);
    }
    ret->keep_bytes = (size_t)tool_context_config(inv->context)->output.keep_bytes;
    return rc;
}
