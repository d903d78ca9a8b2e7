#include "protocol/jsonl_internal.h"

#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

/*
 * A turn may only narrow what configuration allows. Greater is wider: a mode
 * of a lower or equal rank may be asked for.
 */
static const unsigned mode_width[] = {
    [SANDBOX_READ_ONLY] = 0,
    [SANDBOX_WORKSPACE_WRITE] = 1,
    [SANDBOX_EXTERNAL] = 2,
    [SANDBOX_DANGER_FULL_ACCESS] = 3,
};

/*
 * Greater asks a person more often: a policy of a higher or equal rank may be
 * asked for. `never` runs without a question what the others may ask about.
 */
static const unsigned policy_asks[] = {
    [APPROVAL_NEVER] = 0,
    [APPROVAL_ON_FAILURE] = 1,
    [APPROVAL_ON_REQUEST] = 2,
    [APPROVAL_UNLESS_TRUSTED] = 3,
    /* By parts, which no word compares with. */
    [APPROVAL_GRANULAR] = 4,
};

static enum sy_code
wrong_type(struct sy_error *err, const char *key, const char *want, const struct js *v)
{
    return sy_err_set(err, SY_E_ARG, "%s must be %s, not %s", key, want, js_type_name(js_type(v)));
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
read_cwd(struct buf *ret, const struct js *v, const char *fallback, struct sy_error *err)
{
    const char *cwd = js_type(v) == JS_NULL ? fallback : js_str(v);
    struct stat st;

    if (cwd == NULL) {
        return wrong_type(err, "cwd", "a string without NUL", v);
    }
    if (cwd[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "cwd must be an absolute path, not '%.100s'", cwd);
    }

    enum sy_code rc = path_normalize(ret, cwd);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_ARG, "cwd is longer than %u bytes", LIMIT_PATH);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (stat(ret->data, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return sy_err_set(err, SY_E_ARG, "cwd must be an existing directory, which '%.100s' is not",
                          cwd);
    }
    return SY_E_OK;
}

static enum sy_code
narrow_mode(struct sandbox_policy *p, const struct sandbox_policy *configured, const struct js *v,
            struct sy_error *err)
{
    const char *name = js_str(v);

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (name == NULL || !sandbox_mode_parse(&p->mode, name)) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox mode must be read-only, workspace-write, danger-full-access or "
                          "external-sandbox, not %.64s",
                          name != NULL ? name : js_type_name(js_type(v)));
    }
    if (mode_width[p->mode] > mode_width[configured->mode]) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox mode %s is wider than %s, which configuration allows: "
                          "a turn can only narrow it",
                          name, sandbox_mode_name(configured->mode));
    }
    return SY_E_OK;
}

static enum sy_code
narrow_network(struct sandbox_policy *p, const struct sandbox_policy *configured,
               const struct js *v, struct sy_error *err)
{
    bool wanted = false;

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (!js_bool(&wanted, v)) {
        return wrong_type(err, "network_access", "true or false", v);
    }
    if (wanted && !sandbox_policy_has_network(configured)) {
        return sy_err_set(err, SY_E_ARG,
                          "network_access is off in configuration: a turn can't switch it on");
    }
    if (!wanted && !sandbox_mode_is_enforced(p->mode)) {
        return sy_err_set(err, SY_E_ARG, "network_access false can't be held under %s",
                          sandbox_mode_name(p->mode));
    }
    p->has_network = wanted;
    return SY_E_OK;
}

/* One of the exclude_ switches, which narrow by being true. */
static enum sy_code
narrow_switch(bool *value, const struct js *object, const char *key, bool may_lift,
              struct sy_error *err)
{
    const struct js *v = js_get(object, key);
    bool wanted = false;

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (!js_bool(&wanted, v)) {
        return wrong_type(err, key, "true or false", v);
    }
    if (*value && !wanted && !may_lift) {
        return sy_err_set(err, SY_E_ARG, "%s is on in configuration: a turn can't switch it off",
                          key);
    }
    *value = wanted;
    return SY_E_OK;
}

/*
 * The roots must be among those of configuration, as they are written there:
 * a path below one may be a link that the sandboxed command itself has made.
 */
static enum sy_code
narrow_roots(struct sandbox_policy *p, const struct sandbox_policy *configured,
             const struct js *roots, struct sy_error *err)
{
    bool is_free = !sandbox_mode_is_enforced(configured->mode);
    struct strv wanted = {.max = LIMIT_ROOTS};
    enum sy_code rc = SY_E_OK;

    if (js_type(roots) == JS_NULL) {
        return SY_E_OK;
    }
    if (js_type(roots) != JS_ARRAY) {
        return wrong_type(err, "writable_roots", "an array of paths", roots);
    }
    for (size_t i = 0; i < js_count(roots) && rc == SY_E_OK; i++) {
        const char *root = js_str(js_at(roots, i));

        if (root == NULL || root[0] != '/') {
            rc = sy_err_set(err, SY_E_ARG, "writable_roots[%zu] must be an absolute path", i);
        } else if (!is_free && !strv_has(&configured->writable_roots, root)) {
            rc = sy_err_set(err, SY_E_ARG,
                            "writable_roots[%zu] '%.100s' is none of configuration's: "
                            "a turn can only leave some out",
                            i, root);
        } else {
            rc = strv_add(&wanted, root);
            if (rc != SY_E_OK) {
                sy_err_set(err, rc, "writable_roots: %s", sy_code_text(rc));
            }
        }
    }
    if (rc != SY_E_OK) {
        strv_fini(&wanted);
        return rc;
    }
    strv_fini(&p->writable_roots);
    p->writable_roots = wanted;
    return SY_E_OK;
}

/* sandbox_policy: a mode, or an object as seed documents of agents have it. */
static enum sy_code
narrow_policy(struct sandbox_policy *p, const struct sandbox_policy *configured, const struct js *v,
              struct sy_error *err)
{
    static const char *const keys[] = {"type",
                                       "mode",
                                       "writable_roots",
                                       "network_access",
                                       "exclude_tmpdir_env_var",
                                       "exclude_slash_tmp"};
    bool is_free = !sandbox_mode_is_enforced(configured->mode);

    if (js_type(v) != JS_OBJECT) {
        return narrow_mode(p, configured, v, err);
    }

    const struct js *mode = js_get(v, "mode") != NULL ? js_get(v, "mode") : js_get(v, "type");
    enum sy_code rc = check_keys(v, keys, sizeof(keys) / sizeof(keys[0]), "sandbox_policy", err);

    if (rc == SY_E_OK && mode == NULL) {
        rc = sy_err_set(err, SY_E_ARG, "sandbox_policy needs \"mode\"");
    }
    if (rc == SY_E_OK) {
        rc = narrow_mode(p, configured, mode, err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_roots(p, configured, js_get(v, "writable_roots"), err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_network(p, configured, js_get(v, "network_access"), err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_switch(&p->excludes_tmpdir, v, "exclude_tmpdir_env_var", is_free, err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_switch(&p->excludes_slash_tmp, v, "exclude_slash_tmp", is_free, err);
    }
    return rc;
}

static enum sy_code
narrow_approval(enum approval_policy *policy, enum approval_policy configured, const struct js *v,
                struct sy_error *err)
{
    const char *name = js_str(v);

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    /* It says by parts, and the parts are configuration's. */
    if (name == NULL || !approval_policy_parse(policy, name) ||
        (*policy == APPROVAL_GRANULAR && configured != APPROVAL_GRANULAR)) {
        return sy_err_set(err, SY_E_ARG,
                          "approval_policy must be never, unless-trusted, on-failure or "
                          "on-request, not %.64s",
                          name != NULL ? name : js_type_name(js_type(v)));
    }
    if (policy_asks[*policy] < policy_asks[configured]) {
        return sy_err_set(err, SY_E_ARG,
                          "approval_policy %s asks less than %s of configuration: "
                          "a turn can only ask more",
                          name, approval_policy_name(configured));
    }
    return SY_E_OK;
}

static enum sy_code
read_turn_id(struct jsonl_turn *t, const struct js *v, struct sy_error *err)
{
    const char *id = js_str(v);

    if (js_type(v) == JS_NULL) {
        return SY_E_OK;
    }
    if (id == NULL || strlen(id) > LIMIT_MESSAGE_ID) {
        return sy_err_set(err, SY_E_ARG, "turn_id must be a string of at most %u bytes",
                          LIMIT_MESSAGE_ID);
    }
    memcpy(t->id, id, strlen(id) + 1);
    return SY_E_OK;
}

static enum sy_code
narrow(struct jsonl_turn *t, const struct turn_context *configured, const struct js *message,
       struct sy_error *err)
{
    const struct js *mode = js_get(message, "sandbox_mode");
    const struct js *policy = js_get(message, "sandbox_policy");
    struct sandbox_policy *sandbox = &t->context.sandbox;

    if (js_type(mode) != JS_NULL && js_type(policy) != JS_NULL) {
        return sy_err_set(err, SY_E_ARG, "give sandbox_mode or sandbox_policy, not both");
    }

    enum sy_code rc = narrow_mode(sandbox, &configured->sandbox, mode, err);

    if (rc == SY_E_OK) {
        rc = narrow_policy(sandbox, &configured->sandbox, policy, err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_network(sandbox, &configured->sandbox, js_get(message, "network_access"), err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_approval(&t->context.approval, configured->approval,
                             js_get(message, "approval_policy"), err);
    }
    return rc;
}

enum sy_code
jsonl_turn_new(struct jsonl_turn **ret, struct tool_context *context, const struct js *message,
               struct sy_error *err)
{
    static const char *const keys[] = {"type",           "turn_id",        "cwd",
                                       "sandbox_mode",   "sandbox_policy", "network_access",
                                       "approval_policy"};
    const struct turn_context *configured = tool_context_turn(context);
    SY_AUTO(buf_fini) struct buf cwd = {.max = LIMIT_PATH};
    enum sy_code rc = check_keys(message, keys, sizeof(keys) / sizeof(keys[0]), "turn", err);

    if (rc == SY_E_OK) {
        rc = read_cwd(&cwd, js_get(message, "cwd"), configured->cwd, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    struct jsonl_turn *t = mem_alloc_zero(1, sizeof(*t));

    if (t == NULL) {
        return sy_err_nomem(err);
    }
    t->refs = 1;
    rc = turn_from_config(&t->context, tool_context_config(context), cwd.data,
                          session_environ(tool_context_session(context)), err);
    if (rc == SY_E_OK) {
        rc = read_turn_id(t, js_get(message, "turn_id"), err);
    }
    if (rc == SY_E_OK) {
        rc = narrow(t, configured, message, err);
    }
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
