#include "sandbox/macos/seatbelt.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/macos/seatbelt_internal.h"

/* cwd, $TMPDIR, /tmp */
#define OTHER_ROOTS 3

/* While a plan is made. */
struct maker {
    struct seatbelt_plan *plan;
    const struct elsewhere_request *r;
    struct seatbelt_shape shape;
    struct strv secrets; /* canonical */
    struct buf pattern;
};

static void
maker_fini(struct maker *m)
{
    for (size_t i = 0; i < m->shape.n_roots; i++) {
        mem_free(m->shape.roots[i].path);
    }
    mem_free(m->shape.roots);
    mem_free(m->shape.n_parents);
    strv_fini(&m->secrets);
    buf_fini(&m->pattern);
}

/* On every Mac these are links into /private, and rules see where they lead. */
static enum sy_code
add_private(struct buf *ret, const char *path)
{
    static const char *const links[] = {"/tmp", "/var", "/etc"};

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        if (path_is_below(path, links[i])) {
            return buf_addf(ret, "/private%s", path);
        }
    }
    return buf_add_str(ret, path);
}

/* *ret becomes the canonical path, to be freed by the caller. */
static enum sy_code
canonical(char **ret, const struct elsewhere_request *r, const char *what, const char *path,
          struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf resolved = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf normal = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf private = {.max = LIMIT_PATH};
    enum sy_code rc = SY_E_OK;

    if (path[0] != '/') {
        return sy_err_set(err, SY_E_CONFIG,
                          "%s '%.120s' is not absolute: on macOS a path begins "
                          "with '/'",
                          what, path);
    }
    rc = r->resolve != NULL ? r->resolve(&resolved, path, r->resolve_arg)
                            : buf_add_str(&resolved, path);
    if (rc == SY_E_OK && buf_view(&resolved)[0] != '/') {
        return sy_err_set(err, SY_E_CONFIG, "%s '%.120s' could not be resolved to an absolute path",
                          what, path);
    }
    if (rc == SY_E_OK) {
        rc = path_normalize(&normal, buf_view(&resolved));
    }
    if (rc == SY_E_OK) {
        rc = add_private(&private, buf_view(&normal));
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s: longer than %u bytes: '%.80s...'", what,
                          LIMIT_PATH, path);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, rc, "resolving %s '%.120s'", what, path);
    }
    *ret = buf_take(&private);
    return *ret != NULL ? SY_E_OK : sy_err_nomem(err);
}

static bool
root_is_known(const struct seatbelt_shape *s, const char *path)
{
    for (size_t i = 0; i < s->n_roots; i++) {
        if (str_eq(s->roots[i].path, path)) {
            return true;
        }
    }
    return false;
}

/* Keeps the roots in the order of their lengths, equal ones as they come. */
static void
insert_root(struct seatbelt_shape *s, const struct seatbelt_root *root)
{
    size_t i = s->n_roots;

    for (; i > 0 && strlen(s->roots[i - 1].path) > strlen(root->path); i--) {
        s->roots[i] = s->roots[i - 1];
    }
    s->roots[i] = *root;
    s->n_roots++;
}

static enum sy_code
add_root(struct maker *m, const char *what, const char *path, bool has_sockets,
         struct sy_error *err)
{
    struct seatbelt_root root = {.has_sockets = has_sockets};
    enum sy_code rc = canonical(&root.path, m->r, what, path, err);

    if (rc != SY_E_OK || root.path == NULL) {
        return rc;
    }
    if (root_is_known(&m->shape, root.path)) {
        mem_free(root.path);
        return SY_E_OK;
    }
    insert_root(&m->shape, &root);
    return SY_E_OK;
}

/*
 * A root below another adds nothing: granted again, behind the outer one's
 * rules, it would lose the names that begin above it (.git as a root, and
 * .git/hooks). Only inside a protected name it is what a person gave back.
 */
static void
mark_granted(struct seatbelt_shape *s, char *const *names)
{
    for (size_t i = 1; i < s->n_roots; i++) {
        for (size_t k = 0; k < i && !s->roots[i].is_granted; k++) {
            const char *outer = s->roots[k].path;
            size_t n = str_eq(outer, "/") ? 0 : strlen(outer);

            s->roots[i].is_granted = path_is_below(s->roots[i].path, outer) &&
                                     !elsewhere_is_protected(names, s->roots[i].path + n + 1);
        }
    }
}

static enum sy_code
add_roots(struct maker *m, struct sy_error *err)
{
    const struct sandbox_policy *p = m->r->policy;

    if (p->writable_roots.n > LIMIT_ROOTS) {
        return sy_err_set(err, SY_E_CONFIG, "%zu writable roots, at most %u are possible",
                          p->writable_roots.n, LIMIT_ROOTS);
    }
    m->shape.roots = mem_alloc_zero(p->writable_roots.n + OTHER_ROOTS, sizeof(m->shape.roots[0]));
    if (m->shape.roots == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = add_root(m, "policy cwd", p->cwd, true, err);

    for (size_t i = 0; rc == SY_E_OK && i < p->writable_roots.n; i++) {
        rc = add_root(m, "writable_roots", p->writable_roots.v[i], true, err);
    }
    if (rc == SY_E_OK && p->tmpdir != NULL && p->tmpdir[0] == '/' && !p->excludes_tmpdir) {
        rc = add_root(m, "$TMPDIR", p->tmpdir, false, err);
    }
    if (rc == SY_E_OK && !p->excludes_slash_tmp) {
        rc = add_root(m, "/tmp", "/tmp", false, err);
    }
    mark_granted(&m->shape, elsewhere_names(m->r));
    return rc;
}

static enum sy_code
add_secrets(struct maker *m, struct sy_error *err)
{
    size_t n = 0;

    while (m->r->deny_read != NULL && m->r->deny_read[n] != NULL) {
        n++;
    }
    if (n > LIMIT_ROOTS) {
        return sy_err_set(err, SY_E_CONFIG, "%zu paths in deny_read, at most %u are possible", n,
                          LIMIT_ROOTS);
    }
    m->shape.n_parents = mem_alloc_zero(n + 1, sizeof(m->shape.n_parents[0]));
    if (m->shape.n_parents == NULL) {
        return sy_err_nomem(err);
    }
    for (size_t i = 0; i < n; i++) {
        char *path = NULL;
        enum sy_code rc = canonical(&path, m->r, "deny_read", m->r->deny_read[i], err);

        if (rc == SY_E_OK && strv_add_take(&m->secrets, path) != SY_E_OK) {
            rc = sy_err_nomem(err);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    m->shape.n_secrets = n;
    return SY_E_OK;
}

static enum sy_code
param_root(struct maker *m, size_t i)
{
    struct seatbelt_root *root = &m->shape.roots[i];
    /* "/" is below itself without a further slash. */
    const char *prefix = str_eq(root->path, "/") ? "" : root->path;
    char *const *names = elsewhere_names(m->r);
    enum sy_code rc = strv_addf(&m->plan->params, "WRITABLE_ROOT_%zu=%s", i, root->path);

    if (rc != SY_E_OK || !m->shape.has_names || root->is_granted) {
        return rc;
    }
    buf_reset(&m->pattern);
    rc = buf_add_char(&m->pattern, '^');
    if (rc == SY_E_OK) {
        rc = seatbelt_regex_quote(&m->pattern, prefix);
    }
    if (rc == SY_E_OK) {
        rc = strv_addf(&m->plan->params, "WRITABLE_ROOT_%zu_REGEX=%s", i, buf_view(&m->pattern));
    }
    for (size_t k = 0; rc == SY_E_OK && root->has_sockets && names[k] != NULL; k++) {
        if (elsewhere_name_is_plain(names[k])) {
            rc = strv_addf(&m->plan->params, "WRITABLE_ROOT_%zu_EXCLUDED_%zu=%s/%s", i,
                           root->n_excluded, prefix, names[k]);
            root->n_excluded++;
        }
    }
    return rc;
}

/* Below a root each directory on the way to a secret could be renamed, and
 * the secret would be read under its new name. */
static enum sy_code
param_secret(struct maker *m, size_t i)
{
    const char *secret = m->secrets.v[i];
    enum sy_code rc = strv_addf(&m->plan->params, "DENY_READ_%zu=%s", i, secret);

    for (const char *p = strchr(secret + 1, '/'); rc == SY_E_OK && p != NULL;
         p = strchr(p + 1, '/')) {
        bool is_inside = false;

        buf_reset(&m->pattern);
        rc = buf_add(&m->pattern, secret, (size_t)(p - secret));
        for (size_t k = 0; rc == SY_E_OK && k < m->shape.n_roots; k++) {
            is_inside = is_inside || path_is_below(buf_view(&m->pattern), m->shape.roots[k].path);
        }
        if (rc == SY_E_OK && is_inside) {
            rc = strv_addf(&m->plan->params, "DENY_READ_%zu_PARENT_%zu=%s", i,
                           m->shape.n_parents[i], buf_view(&m->pattern));
            m->shape.n_parents[i]++;
        }
    }
    return rc;
}

static enum sy_code
param_names(struct maker *m, const char *key, bool is_pin, bool *ret_has)
{
    buf_reset(&m->pattern);

    enum sy_code rc = seatbelt_regex_names(&m->pattern, elsewhere_names(m->r), is_pin);

    *ret_has = m->pattern.len > 0;
    if (rc == SY_E_OK && *ret_has) {
        rc = strv_addf(&m->plan->params, "%s=%s", key, buf_view(&m->pattern));
    }
    return rc;
}

static enum sy_code
add_params(struct maker *m, const char *cwd)
{
    enum sy_code rc = strv_addf(&m->plan->params, "CWD=%s", cwd);

    if (rc == SY_E_OK && m->shape.n_roots > 0) {
        rc = param_names(m, "PROTECTED_REGEX", false, &m->shape.has_names);
    }
    if (rc == SY_E_OK && m->shape.has_names) {
        rc = param_names(m, "PINNED_REGEX", true, &m->shape.has_pins);
    }
    for (size_t i = 0; rc == SY_E_OK && i < m->shape.n_roots; i++) {
        rc = param_root(m, i);
    }
    for (size_t i = 0; rc == SY_E_OK && i < m->shape.n_secrets; i++) {
        rc = param_secret(m, i);
    }
    return rc;
}

static enum sy_code
check_size(const struct seatbelt_plan *plan, struct sy_error *err)
{
    size_t total = plan->profile.len;

    for (size_t i = 0; i < plan->params.n; i++) {
        total += strlen(plan->params.v[i]) + sizeof("-D");
    }
    if (total > LIMIT_SEATBELT_ARGS) {
        return sy_err_set(
            err, SY_E_CONFIG,
            "the profile and its parameters take %zu bytes, of which an exec on macOS "
            "takes %u: name fewer writable roots or denied paths",
            total, LIMIT_SEATBELT_ARGS);
    }
    return SY_E_OK;
}

static void
set_features(struct seatbelt_plan *plan, const struct seatbelt_shape *s)
{
    enum feature_state *f = plan->features;

    f[FEATURE_FS_WRITE] = FEATURE_ENFORCED;
    f[FEATURE_FS_REFER] = FEATURE_ENFORCED;
    f[FEATURE_FS_TRUNCATE] = FEATURE_ENFORCED;
    f[FEATURE_FS_METADATA] = FEATURE_ENFORCED; /* file-write* holds mode, owner, times, xattr */
    f[FEATURE_DEVICE_IOCTL] = FEATURE_ENFORCED;
    if (!plan->has_network) {
        /* With a proxy it is the proxy that holds it. */
        f[FEATURE_NETWORK] = s->proxy_port == 0 ? FEATURE_ENFORCED : FEATURE_EMULATED;
    }
    f[FEATURE_UNIX_ABSTRACT] = FEATURE_ENFORCED; /* there are none */
    f[FEATURE_UNIX_PATH] = FEATURE_ENFORCED;
    f[FEATURE_SIGNAL_SCOPE] = FEATURE_ENFORCED;
    f[FEATURE_SECCOMP] = FEATURE_EMULATED;       /* by operation, not by call */
    f[FEATURE_NO_NEW_PRIVS] = FEATURE_ENFORCED;  /* setuid programs do not start at all */
    f[FEATURE_PID_NAMESPACE] = FEATURE_EMULATED; /* not listed, yet there */
    f[FEATURE_DENY_READ] = s->n_secrets > 0 ? FEATURE_ENFORCED : FEATURE_ABSENT;
    f[FEATURE_PROTECTED_NAMES] = s->has_names ? FEATURE_ENFORCED : FEATURE_ABSENT;
}

static enum sy_code
make(struct maker *m, struct sy_error *err)
{
    const struct sandbox_policy *policy = m->r->policy;
    char *cwd = NULL;
    enum sy_code rc = elsewhere_check_names(m->r, err);

    if (rc == SY_E_OK) {
        rc = canonical(&cwd, m->r, "policy cwd", policy->cwd, err);
    }
    if (rc == SY_E_OK && policy->mode == SANDBOX_WORKSPACE_WRITE) {
        m->shape.may_write = true;
        rc = add_roots(m, err);
    }
    if (rc == SY_E_OK) {
        rc = add_secrets(m, err);
    }
    if (rc == SY_E_OK) {
        rc = add_params(m, cwd);
        if (rc == SY_E_OK) {
            rc = seatbelt_profile_write(&m->plan->profile, &m->shape);
        }
        if (rc == SY_E_OK) {
            rc = check_size(m->plan, err);
        } else {
            rc = rc == SY_E_NOMEM ? sy_err_nomem(err)
                                  : sy_err_set(err, SY_E_CONFIG,
                                               "the Seatbelt profile and its parameters are too "
                                               "large: name fewer writable roots or denied paths");
        }
    }
    mem_free(cwd);
    return rc;
}

enum sy_code
seatbelt_plan_init(struct seatbelt_plan *ret, const struct elsewhere_request *r,
                   struct sy_error *err)
{
    const struct sandbox_policy *policy = r->policy;
    struct seatbelt_plan plan = {
        .mode = policy->mode,
        .is_enforced = sandbox_mode_is_enforced(policy->mode),
        .has_network = sandbox_policy_has_network(policy),
        .profile = {.max = LIMIT_SEATBELT_ARGS},
        .params = {.max = LIMIT_ARGV},
    };

    elsewhere_features_none(plan.features);
    if (policy->cwd == NULL || policy->cwd[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "the policy's working directory '%.120s' is not absolute",
                          policy->cwd != NULL ? policy->cwd : "");
    }
    if (!plan.is_enforced) {
        *ret = plan;
        return SY_E_OK;
    }
    plan.proxy_port = plan.has_network ? 0 : r->proxy_port;

    struct maker m = {
        .plan = &plan,
        .r = r,
        .shape = {.has_network = plan.has_network, .proxy_port = plan.proxy_port},
        .secrets = {.max = LIMIT_ROOTS                              },
 /* A path, each byte with a backslash. */
        .pattern = {.max = (size_t)4 * LIMIT_PATH},
    };
    enum sy_code rc = make(&m, err);

    if (rc == SY_E_OK) {
        set_features(&plan, &m.shape);
    }
    maker_fini(&m);
    if (rc != SY_E_OK) {
        seatbelt_plan_fini(&plan);
        return rc;
    }
    *ret = plan;
    return SY_E_OK;
}

void
seatbelt_plan_fini(struct seatbelt_plan *p)
{
    buf_fini(&p->profile);
    strv_fini(&p->params);
}

const char *
seatbelt_plan_tier(const struct seatbelt_plan *p)
{
    return p->is_enforced ? "seatbelt" : "none";
}

void
seatbelt_plan_write(struct jw *w, const struct seatbelt_plan *p)
{
    jw_key_str(w, "mode", sandbox_mode_name(p->mode));
    jw_key_str(w, "tier", seatbelt_plan_tier(p));
    jw_key_bool(w, "network", p->has_network);
    if (p->proxy_port != 0) {
        jw_key_int(w, "proxy_port", p->proxy_port);
    }
    elsewhere_write_features(w, p->features);
    if (!p->is_enforced) {
        return;
    }
    jw_key(w, "parameters");
    jw_array(w);
    for (size_t i = 0; i < p->params.n; i++) {
        jw_str(w, p->params.v[i]);
    }
    jw_end_array(w);
    jw_key_str(w, "profile", buf_view(&p->profile));
}
