/*
 * `sandbox plan`: what a platform would be told, whether it is this one or not.
 * The plan is made as JSON once; text is that JSON in words for people.
 */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs.h"
#include "sandbox/macos/seatbelt.h"
#include "sandbox/sandbox.h"
#include "sandbox/transform.h"
#include "sandbox/windows/token.h"

/* A plan being told. */
struct telling {
    const struct cli_args *args;
    enum sandbox_platform platform;
    struct cli_engine engine;
    struct elsewhere_request request;
    struct buf json;
    bool is_refused;
};

static void
telling_fini(struct telling *t)
{
    cli_engine_fini(&t->engine);
    buf_fini(&t->json);
}

/* Paths of this machine are shown as if drive C: held them. */
static enum sy_code
onto_drive(struct buf *ret, const char *path, void *arg)
{
    bool is_posix = path[0] == '/' && path[1] != '/';

    (void)arg;
    buf_reset(ret);
    return buf_addf(ret, "%s%s", is_posix ? "C:" : "", path);
}

/* Another platform's directory can't be entered: it is taken by name. */
static enum sy_code
use_cwd(struct telling *t, struct sy_error *err)
{
    const char *cwd = cli_get(t->args, "cwd");

    if (t->platform == PLATFORM_LINUX || cwd == NULL) {
        return SY_E_OK;
    }

    char *copy = mem_strdup(cwd);

    if (copy == NULL) {
        return sy_err_nomem(err);
    }
    mem_free(t->engine.turn.sandbox.cwd);
    t->engine.turn.sandbox.cwd = copy;
    return SY_E_OK;
}

static enum sy_code
prepare(struct telling *t, struct sy_error *err)
{
    const char *platform = cli_get(t->args, "platform");
    enum sy_code rc = SY_E_OK;

    if (platform != NULL && !sandbox_platform_parse(&t->platform, platform)) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox plan: unknown platform '%s'; right are linux, macos, windows",
                          platform);
    }
    if (t->platform == PLATFORM_LINUX && t->args->n_operands > 0) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox plan: on linux no command is wrapped, Shellyard confines it "
                          "itself; a command may be named for macos and windows");
    }
    rc = cli_engine_load(&t->engine, t->args,
                         t->platform == PLATFORM_LINUX ? cli_get(t->args, "cwd") : NULL,
                         cli_get(t->args, "sandbox"), err);
    if (rc == SY_E_OK) {
        rc = cli_engine_turn_found(&t->engine, err);
    }
    if (rc == SY_E_OK) {
        rc = use_cwd(t, err);
    }
    t->request.policy = &t->engine.turn.sandbox;
    t->request.resolve = t->platform == PLATFORM_WINDOWS ? onto_drive : NULL;
    return rc;
}

/* The members of the plan's own dump. */
static enum sy_code
write_linux(struct telling *t, struct jw *w, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dump = {.max = LIMIT_CLI_TEXT};
    struct sandbox_caps caps;
    struct sandbox_plan *plan = NULL;
    struct json_doc doc = {0};
    const char *key = NULL;
    const struct js *value = NULL;
    void *it = NULL;
    enum sy_code rc = SY_E_OK;

    sandbox_probe(&caps);
    rc = sandbox_plan_new(&plan, t->request.policy, &caps, err);
    t->is_refused = rc == SY_E_SANDBOX;
    if (rc != SY_E_OK && !t->is_refused) {
        return rc;
    }
    rc = sandbox_plan_dump(plan, &dump);
    sandbox_plan_free(plan);
    if (rc != SY_E_OK) {
        return sy_err_set(err, rc, "writing the plan: %s", sy_code_text(rc));
    }
    rc = json_parse(&doc, buf_view(&dump), dump.len, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (t->is_refused) {
        jw_key_str(w, "refused", err->msg);
    }
    while (js_next(doc.root, &it, &key, &value)) {
        jw_key(w, key);
        jw_value(w, value);
    }
    json_doc_fini(&doc);
    return SY_E_OK;
}

static enum sy_code
write_macos(struct telling *t, struct jw *w, struct sy_error *err)
{
    struct seatbelt_plan plan;
    enum sy_code rc = seatbelt_plan_init(&plan, &t->request, err);

    if (rc == SY_E_OK) {
        seatbelt_plan_write(w, &plan);
        seatbelt_plan_fini(&plan);
    }
    return rc;
}

static enum sy_code
write_windows(struct telling *t, struct jw *w, struct sy_error *err)
{
    const struct token_caps caps = {.has_network_filter = false};
    struct token_plan plan;
    enum sy_code rc = token_plan_init(&plan, &t->request, &caps, err);

    t->is_refused = rc == SY_E_SANDBOX;
    if (rc == SY_E_OK || t->is_refused) {
        token_plan_write(w, &plan);
        token_plan_fini(&plan);
        rc = SY_E_OK;
    }
    return rc;
}

static void
write_words(struct jw *w, const char *key, const struct strv *list)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        jw_str(w, list->v[i]);
    }
    jw_end_array(w);
}

static enum sy_code
write_command(struct telling *t, struct jw *w, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf cwd = {.max = LIMIT_PATH};
    struct sandbox_exec_env env;
    enum sy_code rc = t->request.resolve != NULL
                          ? t->request.resolve(&cwd, t->request.policy->cwd, NULL)
                          : buf_add_str(&cwd, t->request.policy->cwd);
    const struct sandbox_transform transform = {
        .platform = t->platform,
        .request = &t->request,
        .argv = t->args->operands,
        .cwd = buf_view(&cwd),
    };

    if (rc != SY_E_OK) {
        return sy_err_set(err, rc, "the working directory: %s", sy_code_text(rc));
    }
    rc = sandbox_transform(&env, &transform, err);
    if (rc == SY_E_OK) {
        write_words(w, "command", &env.command);
        write_words(w, "command_env", &env.env);
        sandbox_exec_env_fini(&env);
    }
    return rc;
}

static enum sy_code
write_plan(struct telling *t, struct jw *w, struct sy_error *err)
{
    switch (t->platform) {
    case PLATFORM_MACOS:
        return write_macos(t, w, err);
    case PLATFORM_WINDOWS:
        return write_windows(t, w, err);
    case PLATFORM_LINUX:
    case PLATFORM_COUNT:
        break;
    }
    return write_linux(t, w, err);
}

static enum sy_code
make(struct telling *t, struct sy_error *err)
{
    struct jw w = {.out = &t->json};
    enum sy_code rc = prepare(t, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    jw_object(&w);
    jw_key_str(&w, "platform", sandbox_platform_name(t->platform));
    rc = write_plan(t, &w, err);
    if (rc == SY_E_OK && t->args->n_operands > 0 && !t->is_refused) {
        rc = write_command(t, &w, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    jw_end_object(&w);
    rc = jw_done(&w);
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "writing the plan: %s", sy_code_text(rc));
}

/* A string as people may see it, anything else as compact JSON. */
static enum sy_code
add_value(struct buf *out, const struct js *value)
{
    return js_type(value) == JS_STRING
               ? str_add_visible(out, js_str_raw(value), js_str_len(value), LIMIT_CLI_TEXT)
               : js_dump(out, value);
}

static enum sy_code
add_line(struct buf *out, const char *label, const struct js *value)
{
    enum sy_code rc = buf_add_str(out, label);

    if (rc == SY_E_OK) {
        rc = add_value(out, value);
    }
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static const char *
feature_text(const char *name)
{
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (str_eq(name, sandbox_feature_name((enum sandbox_feature)i))) {
            return sandbox_feature_text((enum sandbox_feature)i);
        }
    }
    return "";
}

static enum sy_code
add_object(struct buf *out, const struct js *object)
{
    const char *key = NULL;
    const struct js *value = NULL;
    void *it = NULL;
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && js_next(object, &it, &key, &value)) {
        const char *text = feature_text(key);

        if (text[0] != '\0' && js_str(value) != NULL) {
            rc = buf_addf(out, "  %-15s %-9s %s\n", key, js_str(value), text);
        } else {
            rc = buf_addf(out, "  %s: ", key);
            rc = rc == SY_E_OK ? add_line(out, "", value) : rc;
        }
    }
    return rc;
}

static enum sy_code
add_member(struct buf *out, const char *key, const struct js *value)
{
    bool is_block = js_str(value) != NULL && strchr(js_str(value), '\n') != NULL;
    bool is_nested = js_type(value) == JS_OBJECT || js_type(value) == JS_ARRAY;
    enum sy_code rc = buf_addf(out, "%s:%s", key, is_block || is_nested ? "\n" : " ");

    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_type(value) == JS_OBJECT) {
        return add_object(out, value);
    }
    if (is_block) {
        return buf_add(out, js_str_raw(value), js_str_len(value));
    }
    for (size_t i = 0; rc == SY_E_OK && is_nested && i < js_count(value); i++) {
        rc = add_line(out, "  ", js_at(value, i));
    }
    return rc == SY_E_OK && !is_nested ? add_line(out, "", value) : rc;
}

static enum sy_code
add_text(struct buf *out, const struct buf *json, struct sy_error *err)
{
    struct json_doc doc = {0};
    const char *key = NULL;
    const struct js *value = NULL;
    void *it = NULL;
    enum sy_code rc = json_parse(&doc, buf_view(json), json->len, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    while (rc == SY_E_OK && js_next(doc.root, &it, &key, &value)) {
        rc = add_member(out, key, value);
    }
    json_doc_fini(&doc);
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "writing the plan: %s", sy_code_text(rc));
}

static int
plan_main(const struct cli_args *args)
{
    SY_AUTO(telling_fini)
    struct telling telling = {
        .args = args, .platform = PLATFORM_LINUX, .json = {.max = LIMIT_CLI_TEXT}};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = make(&telling, &err);

    if (rc == SY_E_OK && cli_get(args, "json") == NULL) {
        rc = add_text(&text, &telling.json, &err);
    } else if (rc == SY_E_OK) {
        rc = buf_addf(&text, "%s\n", buf_view(&telling.json));
        rc = rc == SY_E_OK ? rc : sy_err_set(&err, rc, "writing the plan: %s", sy_code_text(rc));
    }
    return rc == SY_E_OK ? cli_out(&text, telling.is_refused ? 1 : 0) : cli_fail(&err);
}

static const struct cli_option plan_options[] = {
    {0,   "platform", "PLATFORM", "linux|macos|windows",
     "plan for this platform; linux if not given"                                                                             },
    CLI_OPTION_JSON,
    {'s', "sandbox",  "MODE",     "read-only|workspace-write|danger-full-access|external-sandbox",
     "sandbox mode, instead of the configured one"                                                                            },
    {'C', "cwd",      "DIR",      "DIR",                                                           "as if commands ran in DIR"},
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_sandbox_plan = {
    .name = "plan",
    .summary = "Print what the policy becomes on a platform: rules, profile or token",
    .operands = "[[--] COMMAND [ARGUMENT...]]",
    .text = "With COMMAND also the words that would be executed (macos, windows). The\n"
            "plans for macos and windows are made here, not carried out. Ends with 1 if\n"
            "the platform could not hold the policy.\n",
    .examples = "  shellyard sandbox plan\n"
                "  shellyard sandbox plan --platform macos -C /Users/me/work -- make test\n"
                "  shellyard sandbox plan --platform windows -C 'C:\\work' --json\n",
    .page = "shellyard-sandbox.1",
    .options = plan_options,
    .max_operands = LIMIT_ARGV,
    .ends_options = true,
    .run = plan_main,
};
