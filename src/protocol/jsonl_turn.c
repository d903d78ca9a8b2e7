#include "protocol/jsonl_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

static enum sy_code
wrong_type(struct sy_error *err, const char *key, const char *want, const struct js *v)
{
    struct js_shown is;

    /* Of strings, only one with a NUL is wrong by itself. */
    return sy_err_set(err, SY_E_ARG, "%s must be %s, not %s", key, want,
                      js_str(v) == NULL ? js_not_text(&is, v) : js_type_name(JS_STRING));
}

/* A word that is ignored would be a limit that does not hold. */
static enum sy_code
check_keys(const struct js *object, const char *const *keys, size_t n, const char *what,
           struct sy_error *err)
{
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;

    while (js_next(object, &it, &key, &value)) {
        bool is_known = false;

        for (size_t i = 0; i < n && !is_known; i++) {
            is_known = str_eq(key, keys[i]);
        }
        if (!is_known) {
            const char *nearest = str_nearest(key, keys, n);

            return sy_err_set(err, SY_E_ARG, "%s has no member '%.64s'%s%s%s", what, key,
                              nearest != NULL ? "; did you mean '" : "",
                              nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
        }
    }
    return SY_E_OK;
}

static enum sy_code
read_cwd(struct turn_wish *w, const struct js *v, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    const char *cwd = js_str(v);
    struct stat st;

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (cwd == NULL) {
        return wrong_type(err, "cwd", "a string", v);
    }
    if (cwd[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "cwd must be an absolute path, not '%.100s'", cwd);
    }

    enum sy_code rc = path_normalize(&normal, cwd);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_ARG, "cwd is longer than %u bytes", LIMIT_PATH);
    }
    w->cwd = rc == SY_E_OK ? buf_take(&normal) : NULL;
    if (w->cwd == NULL) {
        return sy_err_nomem(err);
    }
    if (stat(w->cwd, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return sy_err_set(err, SY_E_ARG, "cwd must be an existing directory, which '%.100s' is not",
                          cwd);
    }
    return SY_E_OK;
}

static enum sy_code
read_mode(struct turn_wish *w, const struct js *v, struct sy_error *err)
{
    const char *name = js_str(v);
    struct js_shown is;

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (name == NULL || !sandbox_mode_parse(&w->mode, name)) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox mode must be read-only, workspace-write, danger-full-access or "
                          "external-sandbox, not %.64s",
                          name != NULL ? name : js_not_text(&is, v));
    }
    w->has_mode = true;
    return SY_E_OK;
}

static enum sy_code
read_switch(enum wish *ret, const struct js *object, const char *key, struct sy_error *err)
{
    const struct js *v = js_get(object, key);
    bool wanted = false;

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (!js_bool(&wanted, v)) {
        return wrong_type(err, key, "true or false", v);
    }
    *ret = wanted ? WISH_YES : WISH_NO;
    return SY_E_OK;
}

static enum sy_code
read_roots(struct turn_wish *w, const struct js *roots, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (js_type(roots) == JS_NULL) {
        return SY_E_OK;
    }
    if (js_type(roots) != JS_ARRAY) {
        return wrong_type(err, "writable_roots", "an array of paths", roots);
    }
    w->has_roots = true;
    for (size_t i = 0; i < js_count(roots) && rc == SY_E_OK; i++) {
        const char *root = js_str(js_at(roots, i));

        if (root == NULL || root[0] != '/') {
            return sy_err_set(err, SY_E_ARG, "writable_roots[%zu] must be an absolute path", i);
        }
        rc = strv_add(&w->roots, root);
        if (rc != SY_E_OK) {
            sy_err_set(err, rc, "writable_roots: %s", sy_code_text(rc));
        }
    }
    return rc;
}

/* sandbox_policy: a mode, or an object as seed documents of agents have it. */
static enum sy_code
read_policy(struct turn_wish *w, const struct js *v, struct sy_error *err)
{
    static const char *const keys[] = {"type",
                                       "mode",
                                       "writable_roots",
                                       "network_access",
                                       "exclude_tmpdir_env_var",
                                       "exclude_slash_tmp"};

    if (js_type(v) != JS_OBJECT) {
        return read_mode(w, v, err);
    }

    const struct js *mode = js_get(v, "mode") != NULL ? js_get(v, "mode") : js_get(v, "type");
    enum sy_code rc = check_keys(v, keys, sizeof(keys) / sizeof(keys[0]), "sandbox_policy", err);

    if (rc == SY_E_OK && mode == NULL) {
        rc = sy_err_set(err, SY_E_ARG, "sandbox_policy needs \"mode\"");
    }
    if (rc == SY_E_OK) {
        rc = read_mode(w, mode, err);
    }
    if (rc == SY_E_OK) {
        rc = read_roots(w, js_get(v, "writable_roots"), err);
    }
    if (rc == SY_E_OK) {
        rc = read_switch(&w->network, v, "network_access", err);
    }
    if (rc == SY_E_OK) {
        rc = read_switch(&w->excludes_tmpdir, v, "exclude_tmpdir_env_var", err);
    }
    if (rc == SY_E_OK) {
        rc = read_switch(&w->excludes_slash_tmp, v, "exclude_slash_tmp", err);
    }
    return rc;
}

static enum sy_code
read_approval(struct turn_wish *w, const struct js *v, struct sy_error *err)
{
    const char *name = js_str(v);
    struct js_shown is;

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (name == NULL || !approval_policy_parse(&w->approval, name)) {
        return sy_err_set(err, SY_E_ARG,
                          "approval_policy must be never, unless-trusted, on-failure or "
                          "on-request, not %.64s",
                          name != NULL ? name : js_not_text(&is, v));
    }
    w->has_approval = true;
    return SY_E_OK;
}

static enum sy_code
read_wish(struct turn_wish *w, const struct js *message, struct sy_error *err)
{
    const struct js *mode = js_get(message, "sandbox_mode");
    const struct js *policy = js_get(message, "sandbox_policy");
    enum sy_code rc = SY_E_OK;

    if (js_type(mode) != JS_NULL && js_type(policy) != JS_NULL) {
        return sy_err_set(err, SY_E_ARG, "give sandbox_mode or sandbox_policy, not both");
    }
    rc = read_cwd(w, js_get(message, "cwd"), err);
    if (rc == SY_E_OK) {
        rc = read_mode(w, mode, err);
    }
    if (rc == SY_E_OK) {
        rc = read_policy(w, policy, err);
    }
    if (rc == SY_E_OK) {
        rc = read_switch(&w->network, message, "network_access", err);
    }
    if (rc == SY_E_OK) {
        rc = read_approval(w, js_get(message, "approval_policy"), err);
    }
    return rc;
}

static enum sy_code
read_turn_id(struct jsonl_wish *w, const struct js *v, struct sy_error *err)
{
    const char *id = js_str(v);

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (id == NULL || strlen(id) > LIMIT_MESSAGE_ID) {
        return sy_err_set(err, SY_E_ARG, "turn_id must be a string of at most %u bytes",
                          LIMIT_MESSAGE_ID);
    }
    memcpy(w->turn_id, id, strlen(id) + 1);
    return SY_E_OK;
}

enum sy_code
jsonl_wish_read(struct jsonl_wish *ret, const struct js *message, bool opens, struct sy_error *err)
{
    /* The last two are a turn's alone, the first four an opening's. */
    static const char *const keys[] = {
        "action",  "id",           "parent",         "name",           "type",
        "cwd",     "sandbox_mode", "sandbox_policy", "network_access", "approval_policy",
        "session", "turn_id"};
    const size_t n = sizeof(keys) / sizeof(keys[0]);
    enum sy_code rc = opens ? check_keys(message, keys, n - 2, "session", err)
                            : check_keys(message, keys + 4, n - 4, "turn", err);

    *ret = (struct jsonl_wish){.wish = {.roots = {.max = LIMIT_ROOTS}}};
    if (rc == SY_E_OK) {
        rc = read_wish(&ret->wish, message, err);
    }
    if (rc == SY_E_OK && !opens) {
        rc = read_turn_id(ret, js_get(message, "turn_id"), err);
    }
    if (rc != SY_E_OK) {
        turn_wish_fini(&ret->wish);
    }
    return rc;
}

/* Out of configuration. */
static enum sy_code
make_first(struct turn_context *ret, struct tool_context *context, const struct turn_wish *w,
           struct sy_error *err)
{
    const struct turn_context *configured = tool_context_turn(context);
    enum sy_code rc = turn_from_config(ret, tool_context_config(context),
                                       w->cwd != NULL ? w->cwd : configured->cwd,
                                       session_environ(tool_context_session(context)), err);

    return rc == SY_E_OK ? turn_narrow(ret, configured, w, "configuration", err) : rc;
}

static enum sy_code
narrow_copy(struct turn_context *ret, const struct turn_context *allowed, const struct turn_wish *w,
            const char *whose, struct sy_error *err)
{
    return turn_context_copy(ret, allowed) == SY_E_OK
               ? turn_narrow_inside(ret, allowed, w, whose, err)
               : sy_err_nomem(err);
}

/* Out of the turn of the session above, by what was wanted when it was opened, and then now. */
static enum sy_code
make_below(struct turn_context *ret, const struct jsonl_session *s, struct tool_context *context,
           const struct turn_wish *w, struct sy_error *err)
{
    const struct jsonl_session *above = s->parent;
    struct turn_context opened = {0};
    char whose[LIMIT_SESSION_NAME + 40];
    enum sy_code rc = SY_E_OK;

    (void)snprintf(whose, sizeof(whose), "its parent%s%s%s", above->id[0] != '\0' ? " '" : "",
                   above->id, above->id[0] != '\0' ? "'" : ", the main session");
    rc = narrow_copy(&opened,
                     above->turn != NULL ? &above->turn->context : tool_context_turn(context),
                     &s->opened, whose, err);
    if (rc == SY_E_OK) {
        (void)snprintf(whose, sizeof(whose), "session '%s' as opened", s->id);
        rc = narrow_copy(ret, &opened, w, whose, err);
    }
    turn_context_fini(&opened);
    return rc;
}

enum sy_code
jsonl_turn_new(struct jsonl_turn **ret, const struct jsonl_session *s, struct tool_context *context,
               const struct jsonl_wish *wish, struct sy_error *err)
{
    struct jsonl_turn *t = mem_alloc_zero(1, sizeof(*t));
    enum sy_code rc = SY_E_OK;

    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->refs = 1;
    memcpy(t->id, wish->turn_id, sizeof(t->id));
    rc = s->parent == NULL ? make_first(&t->context, context, &wish->wish, err)
                           : make_below(&t->context, s, context, &wish->wish, err);
    if (rc != SY_E_OK) {
        jsonl_turn_unref(t);
        return rc;
    }
    *ret = t;
    return SY_E_OK;
}

void
jsonl_turn_ref(struct jsonl_turn *t)
{
    if (t != NULL) {
        t->refs++;
    }
}

void
jsonl_turn_unref(struct jsonl_turn *t)
{
    if (t != NULL && --t->refs == 0) {
        turn_context_fini(&t->context);
        mem_free(t);
    }
}
