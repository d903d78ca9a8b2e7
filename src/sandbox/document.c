#include "sandbox/document.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/elsewhere.h"

static enum sy_code
bad(const char *key, const char *wanted, struct sy_error *err)
{
    return sy_err_set(err, SY_E_CONFIG, "policy: \"%.60s\" must be %s", key, wanted);
}

static enum sy_code
read_path(char **ret, const char *key, const struct js *v, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    enum sy_code rc = js_exact(&path, v);

    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK || buf_view(&path)[0] != '/') {
        return bad(key, "an absolute path", err);
    }
    *ret = buf_take(&path);
    return *ret != NULL ? SY_E_OK : sy_err_nomem(err);
}

static enum sy_code
read_flag(bool *ret, const char *key, const struct js *v, struct sy_error *err)
{
    return js_type(v) == JS_BOOL && js_bool(ret, v) ? SY_E_OK : bad(key, "true or false", err);
}

static enum sy_code
read_roots(struct sandbox_policy *p, const char *key, const struct js *v, struct sy_error *err)
{
    if (js_type(v) != JS_ARRAY || js_count(v) > LIMIT_ROOTS - p->writable_roots.n) {
        return bad(key, "a list of absolute paths", err);
    }
    for (size_t i = 0; i < js_count(v); i++) {
        char *path = NULL;
        enum sy_code rc = read_path(&path, key, js_at(v, i), err);

        if (rc == SY_E_OK && strv_add_take(&p->writable_roots, path) != SY_E_OK) {
            rc = sy_err_nomem(err);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

/* A list that has room for what it may hold at most. */
static enum sy_code
read_list(struct strv *ret, const char *key, const struct js *v, const char *wanted,
          struct sy_error *err)
{
    if (js_type(v) != JS_ARRAY || js_count(v) > ret->max) {
        return bad(key, wanted, err);
    }
    for (size_t i = 0; i < js_count(v); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
        enum sy_code rc = js_exact(&text, js_at(v, i));

        if (rc == SY_E_PARSE || rc == SY_E_LIMIT) {
            return bad(key, wanted, err);
        }
        if (rc != SY_E_OK || strv_add(ret, buf_view(&text)) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    return SY_E_OK;
}

static enum sy_code
read_names(struct sandbox_policy *p, const char *key, const struct js *v, struct sy_error *err)
{
    enum sy_code rc = read_list(&p->protected_names, key, v, "a list of names", err);

    if (rc == SY_E_OK && p->protected_names.n > 0) {
        const struct elsewhere_request r = {.protected_names = strv_view(&p->protected_names)};

        rc = elsewhere_check_names(&r, err);
    }
    p->protects = p->protected_names.n > 0;
    return rc;
}

/* Behind all others, wherever the document has them; *ret: how many these are. */
static enum sy_code
read_last(size_t *ret, struct sandbox_policy *p, const char *key, const struct js *root,
          struct sy_error *err)
{
    size_t before = p->writable_roots.n;
    const struct js *v = js_get(root, key);
    enum sy_code rc = v != NULL ? read_roots(p, key, v, err) : SY_E_OK;

    *ret = p->writable_roots.n - before;
    return rc;
}

static enum sy_code
read_words(struct sandbox_policy *p, const char *key, const struct js *v, struct sy_error *err)
{
    const char *word = js_str(v);
    int64_t n = 0;

    if (str_eq(key, "version")) {
        return js_type(v) == JS_INT && js_int(&n, v) && n == 1 ? SY_E_OK : bad(key, "1", err);
    }
    if (str_eq(key, "mode")) {
        return word != NULL && sandbox_mode_parse(&p->mode, word)
                   ? SY_E_OK
                   : bad(key, "read-only, workspace-write, danger-full-access or external-sandbox",
                         err);
    }
    if (str_eq(key, "run_as")) {
        p->runs_as_self = word != NULL && str_eq(word, "self");
        return p->runs_as_self || (word != NULL && str_eq(word, "owner"))
                   ? SY_E_OK
                   : bad(key, "owner or self", err);
    }
    if (str_eq(key, "report")) {
        p->reports_all = word != NULL && str_eq(word, "full");
        return p->reports_all || (word != NULL && str_eq(word, "default"))
                   ? SY_E_OK
                   : bad(key, "default or full", err);
    }
    if (str_eq(key, "temp_bytes")) {
        if (js_type(v) != JS_INT || !js_int(&n, v) || n < 0) {
            return bad(key, "a number of bytes", err);
        }
        p->temp_bytes = (uint64_t)n;
        return SY_E_OK;
    }
    if (str_eq(key, "proxy_port")) {
        return sy_err_set(
            err, SY_E_CONFIG,
            "policy: \"proxy_port\" can't be had here: a sandbox whose network is off "
            "has one of its own, in which that port is nobody's");
    }
    return sy_err_set(err, SY_E_CONFIG, "policy: unknown member \"%.60s\"", key);
}

static enum sy_code
read_member(struct sandbox_policy *p, const char *key, const struct js *v, struct sy_error *err)
{
    if (str_eq(key, "cwd")) {
        return read_path(&p->cwd, key, v, err);
    }
    if (str_eq(key, "tmpdir")) {
        return read_path(&p->tmpdir, key, v, err);
    }
    if (str_eq(key, "writable_roots")) {
        return read_roots(p, key, v, err);
    }
    if (str_eq(key, "linked_roots") || str_eq(key, "granted_roots")) {
        return SY_E_OK; /* read_last */
    }
    if (str_eq(key, "cwd_without_links")) {
        return read_flag(&p->cwd_has_no_links, key, v, err);
    }
    if (str_eq(key, "network_access")) {
        return read_flag(&p->has_network, key, v, err);
    }
    if (str_eq(key, "network_allow")) {
        return read_list(&p->network_allow, key, v, "a list of hosts", err);
    }
    if (str_eq(key, "deny_read")) {
        return read_list(&p->deny_read, key, v, "a list of absolute paths and patterns", err);
    }
    if (str_eq(key, "protected_names")) {
        return read_names(p, key, v, err);
    }
    if (str_eq(key, "exclude_tmpdir_env_var")) {
        return read_flag(&p->excludes_tmpdir, key, v, err);
    }
    if (str_eq(key, "exclude_slash_tmp")) {
        return read_flag(&p->excludes_slash_tmp, key, v, err);
    }
    return read_words(p, key, v, err);
}

static enum sy_code
read_object(struct sandbox_policy *p, const struct js *root, struct sy_error *err)
{
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;

    if (js_type(root) != JS_OBJECT) {
        return sy_err_set(err, SY_E_CONFIG, "policy: not a JSON object");
    }
    while (js_next(root, &it, &key, &value)) {
        enum sy_code rc = read_member(p, key, value, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }

    enum sy_code rc = read_last(&p->n_linked_roots, p, "linked_roots", root, err);

    if (rc == SY_E_OK) {
        rc = read_last(&p->n_granted_roots, p, "granted_roots", root, err);
    }

    if (rc != SY_E_OK) {
        return rc;
    }
    if (js_get(root, "version") == NULL || js_get(root, "mode") == NULL || p->cwd == NULL) {
        return sy_err_set(err, SY_E_CONFIG, "policy: \"version\", \"mode\" and \"cwd\" are needed");
    }
    return SY_E_OK;
}

enum sy_code
sandbox_policy_read(struct sandbox_policy *ret, const char *text, size_t n, struct sy_error *err)
{
    struct sandbox_policy p = {.writable_roots = {.max = LIMIT_ROOTS},
                               .network_allow = {.max = LIMIT_PROXY_ALLOW},
                               .deny_read = {.max = LIMIT_DENY_PATTERNS},
                               .protected_names = {.max = LIMIT_PROTECTED},
                               .max_tier = TIER_FULL};
    struct json_doc doc = {NULL};
    enum sy_code rc = json_parse(&doc, text, n, err);

    if (rc == SY_E_OK) {
        rc = read_object(&p, doc.root, err);
        json_doc_fini(&doc);
    }
    if (rc != SY_E_OK) {
        sandbox_policy_fini(&p);
        return rc;
    }
    *ret = p;
    return SY_E_OK;
}
