#include "sandbox/windows/token.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

/* cwd, $TMPDIR */
#define OTHER_ROOTS 2

/* NT AUTHORITY\RESTRICTED: what device objects such as NUL grant to restricted
 * tokens. Not Everyone, to whom much of a disk is writable. */
#define SID_RESTRICTED "S-1-5-12"

/* Administrators, and local accounts that are administrators. */
static const char *const disabled_sids[] = {"S-1-5-32-544", "S-1-5-114"};

/* DISABLE_MAX_PRIVILEGE deletes all but SeChangeNotifyPrivilege; these would
 * each be a way out, so whoever makes the token looks for them once more. */
static const char *const gone_privileges[] = {
    "SeAssignPrimaryTokenPrivilege",
    "SeBackupPrivilege",
    "SeCreateSymbolicLinkPrivilege",
    "SeCreateTokenPrivilege",
    "SeDebugPrivilege",
    "SeImpersonatePrivilege",
    "SeLoadDriverPrivilege",
    "SeManageVolumePrivilege",
    "SeRelabelPrivilege",
    "SeRestorePrivilege",
    "SeSecurityPrivilege",
    "SeTakeOwnershipPrivilege",
    "SeTcbPrivilege",
};

/* Nobody listens on the discard port: programs that honour these fail at once
 * and name the proxy, where the filter would let them wait. */
static const char *const dead_proxy = "http://127.0.0.1:9";

static const char *const proxy_names[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"};

/* Before it is known whether another grants it. */
struct root {
    char *path;
    bool must_exist; /* named in the configuration */
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void
token_plan_fini(struct token_plan *p)
{
    for (size_t i = 0; i < p->n_aces; i++) {
        mem_free(p->aces[i].path);
        mem_free(p->aces[i].sid);
    }
    mem_free(p->aces);
    p->aces = NULL;
    p->n_aces = 0;
    strv_fini(&p->restricting);
    strv_fini(&p->disabled);
    strv_fini(&p->gone_privileges);
    strv_fini(&p->environment);
}

const char *
token_plan_tier(const struct token_plan *p)
{
    return p->is_enforced ? "restricted-token" : "none";
}

static enum sy_code
add_ace(struct token_plan *plan, const struct token_ace *from)
{
    struct token_ace ace = *from;

    ace.path = mem_strdup(from->path);
    ace.sid = mem_strdup(from->sid);
    if (ace.path == NULL || ace.sid == NULL) {
        mem_free(ace.path);
        mem_free(ace.sid);
        return SY_E_NOMEM;
    }
    plan->aces[plan->n_aces] = ace;
    plan->n_aces++;
    return SY_E_OK;
}

/* "C:\W" + ".git/hooks" -> "C:\W\.git\hooks" */
static enum sy_code
join(struct buf *ret, const char *root, const char *name)
{
    enum sy_code rc = SY_E_OK;

    buf_reset(ret);
    rc = buf_add_str(ret, root);
    if (rc == SY_E_OK && !str_ends(root, "\\")) {
        rc = buf_add_char(ret, '\\');
    }
    for (; rc == SY_E_OK && *name != '\0'; name++) {
        rc = buf_add_char(ret, (char)(*name == '/' ? '\\' : *name));
    }
    return rc;
}

static enum sy_code
protect(struct token_plan *plan, const char *root, char *sid, char *const *names)
{
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)2 * LIMIT_PATH};
    enum sy_code rc = SY_E_OK;

    for (; rc == SY_E_OK && *names != NULL; names++) {
        rc = join(&path, root, *names);
        if (rc == SY_E_OK) {
            rc = add_ace(plan, &(struct token_ace){.kind = ACE_DENY,
                                                   .path = path.data,
                                                   .sid = sid,
                                                   .access = TOKEN_ACE_WRITES,
                                                   .inherit = TOKEN_ACE_INHERIT,
                                                   .is_pattern = !elsewhere_name_is_plain(*names)});
        }
    }
    return rc;
}

static char
folded(char c)
{
    return (char)(c == '\\' ? '/' : c >= 'A' && c <= 'Z' ? c + 0x20 : c);
}

/* What `path` is below `dir`, "" for itself; NULL if it is not. */
static const char *
below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    for (size_t i = 0; i < n; i++) {
        if (folded(path[i]) != folded(dir[i])) {
            return NULL;
        }
    }
    if (path[n] == '\0' || dir[n - 1] == '\\') {
        return path + n;
    }
    return path[n] == '\\' ? path + n + 1 : NULL;
}

/*
 * A root below another adds nothing, and with a SID of its own it would lose
 * the names that begin above it. Only inside a protected name it is what a
 * person gave back.
 */
static enum sy_code
is_granted(bool *ret, const struct token_plan *plan, const char *root, char *const *names)
{
    SY_AUTO(buf_fini) struct buf rest = {.max = LIMIT_PATH};
    enum sy_code rc = SY_E_OK;

    *ret = false;
    for (size_t i = 0; rc == SY_E_OK && i < plan->n_aces && !*ret; i++) {
        const char *s = plan->aces[i].kind == ACE_ALLOW ? below(root, plan->aces[i].path) : NULL;

        buf_reset(&rest);
        for (const char *c = s; rc == SY_E_OK && c != NULL && *c != '\0'; c++) {
            rc = buf_add_char(&rest, folded(*c));
        }
        *ret = s != NULL && !elsewhere_is_protected(names, buf_view(&rest));
    }
    return rc;
}

/* The path that the policy names, as the system has it. */
static enum sy_code
resolve(struct buf *ret, const struct elsewhere_request *r, const char *what, const char *path,
        struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf real = {.max = LIMIT_PATH};

    if (r->resolve != NULL) {
        enum sy_code rc = r->resolve(&real, path, r->resolve_arg);

        if (rc == SY_E_NOMEM) {
            return sy_err_nomem(err);
        }
        if (rc != SY_E_OK) {
            return sy_err_set(err, SY_E_CONFIG, "%s '%.120s' could not be resolved", what, path);
        }
        path = buf_view(&real);
    }
    return token_path(ret, what, path, err);
}

static enum sy_code
add_root(struct token_plan *plan, const struct root *from, char *const *names)
{
    SY_AUTO(buf_fini) struct buf sid = {.max = LIMIT_PATH};
    bool has_it = false;
    enum sy_code rc = is_granted(&has_it, plan, from->path, names);

    if (rc != SY_E_OK || has_it) {
        return rc;
    }
    rc = token_root_sid(&sid, from->path);
    if (rc == SY_E_OK) {
        rc = strv_add(&plan->restricting, buf_view(&sid));
    }
    if (rc == SY_E_OK) {
        rc = add_ace(plan, &(struct token_ace){.kind = ACE_ALLOW,
                                               .path = from->path,
                                               .sid = sid.data,
                                               .access = TOKEN_ACE_MODIFY,
                                               .inherit = TOKEN_ACE_INHERIT,
                                               .must_exist = from->must_exist});
    }
    return rc == SY_E_OK ? protect(plan, from->path, sid.data, names) : rc;
}

/* From the shortest to the longest, equal ones as they come. */
static enum sy_code
collect(struct root *roots, size_t *n, const struct elsewhere_request *r, const char *what,
        const char *path, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf real = {.max = LIMIT_PATH};
    struct root root = {.must_exist = !str_eq(what, "%TEMP%")};
    enum sy_code rc = resolve(&real, r, what, path, err);
    size_t i = *n;

    if (rc != SY_E_OK) {
        return rc;
    }
    root.path = buf_take(&real);
    if (root.path == NULL) {
        return sy_err_nomem(err);
    }
    for (; i > 0 && strlen(roots[i - 1].path) > strlen(root.path); i--) {
        roots[i] = roots[i - 1];
    }
    roots[i] = root;
    *n += 1;
    return SY_E_OK;
}

static enum sy_code
collect_all(struct root *roots, size_t *n, const struct elsewhere_request *r, struct sy_error *err)
{
    const struct sandbox_policy *p = r->policy;
    enum sy_code rc = collect(roots, n, r, "policy cwd", p->cwd, err);

    for (size_t i = 0; rc == SY_E_OK && i < p->writable_roots.n; i++) {
        rc = collect(roots, n, r, "writable_roots", p->writable_roots.v[i], err);
    }
    /* There is no /tmp, so exclude_slash_tmp has nothing to exclude. */
    if (rc == SY_E_OK && p->tmpdir != NULL && !p->excludes_tmpdir) {
        rc = collect(roots, n, r, "%TEMP%", p->tmpdir, err);
    }
    return rc;
}

static size_t
count(char *const *list)
{
    size_t n = 0;

    while (list[n] != NULL) {
        n++;
    }
    return n;
}

static enum sy_code
add_roots(struct token_plan *plan, const struct elsewhere_request *r, struct sy_error *err)
{
    size_t n_max = r->policy->writable_roots.n + OTHER_ROOTS;
    char *const *names = elsewhere_names(r);
    struct root *roots = NULL;
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    if (r->policy->writable_roots.n > LIMIT_ROOTS) {
        return sy_err_set(err, SY_E_CONFIG, "%zu writable roots, at most %u are possible",
                          r->policy->writable_roots.n, LIMIT_ROOTS);
    }
    roots = mem_alloc_zero(n_max, sizeof(roots[0]));
    plan->aces = mem_alloc_zero(n_max * (count(names) + 1), sizeof(plan->aces[0]));
    if (roots == NULL || plan->aces == NULL) {
        mem_free(roots);
        return sy_err_nomem(err);
    }
    rc = collect_all(roots, &n, r, err);
    for (size_t i = 0; rc == SY_E_OK && i < n; i++) {
        if (add_root(plan, &roots[i], names) != SY_E_OK) {
            rc = sy_err_nomem(err);
        }
    }
    for (size_t i = 0; i < n; i++) {
        mem_free(roots[i].path);
    }
    mem_free(roots);
    return rc;
}

static enum sy_code
add_environment(struct token_plan *plan)
{
    enum sy_code rc = SY_E_OK;

    if (plan->has_network) {
        return SY_E_OK;
    }
    for (size_t i = 0; rc == SY_E_OK && i < COUNT(proxy_names); i++) {
        rc = plan->proxy_port == 0
                 ? strv_addf(&plan->environment, "%s=%s", proxy_names[i], dead_proxy)
                 : strv_addf(&plan->environment, "%s=http://127.0.0.1:%u", proxy_names[i],
                             (unsigned)plan->proxy_port);
    }
    return rc == SY_E_OK ? strv_add(&plan->environment, "NO_PROXY=") : rc;
}

static enum sy_code
add_all(struct strv *list, const char *const *from, size_t n)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < n; i++) {
        rc = strv_add(list, from[i]);
    }
    return rc;
}

static enum sy_code
add_token(struct token_plan *plan)
{
    enum sy_code rc = strv_add(&plan->restricting, TOKEN_LOGON_SID);

    plan->flags = TOKEN_DISABLE_MAX_PRIVILEGE | TOKEN_LUA | TOKEN_WRITE_RESTRICTED;
    /* A low token writes nothing that is not labelled low. To label a workspace
     * so would open it to every browser's sandbox on the machine. */
    plan->integrity = plan->mode == SANDBOX_READ_ONLY ? INTEGRITY_LOW : INTEGRITY_MEDIUM;
    plan->job_limits = JOB_KILL_ON_JOB_CLOSE | JOB_DIE_ON_UNHANDLED_EXCEPTION;
    plan->ui_limits = TOKEN_UI_LIMITS;
    plan->has_private_desktop = true;
    plan->inherits_listed_handles = true;
    if (rc == SY_E_OK) {
        rc = strv_add(&plan->restricting, SID_RESTRICTED);
    }
    if (rc == SY_E_OK) {
        rc = add_all(&plan->disabled, disabled_sids, COUNT(disabled_sids));
    }
    if (rc == SY_E_OK) {
        rc = add_all(&plan->gone_privileges, gone_privileges, COUNT(gone_privileges));
    }
    return rc == SY_E_OK ? add_environment(plan) : rc;
}

static void
set_features(struct token_plan *plan)
{
    enum feature_state *f = plan->features;

    if (!plan->is_enforced) {
        return;
    }
    f[FEATURE_FS_WRITE] = FEATURE_ENFORCED;
    f[FEATURE_FS_REFER] = FEATURE_ENFORCED;
    f[FEATURE_FS_TRUNCATE] = FEATURE_ENFORCED;
    if (plan->network == TOKEN_NETWORK_FILTER) {
        f[FEATURE_NETWORK] = FEATURE_ENFORCED;
    } else if (plan->network == TOKEN_NETWORK_PROXY) {
        f[FEATURE_NETWORK] = FEATURE_EMULATED; /* the proxy holds it */
    }
    f[FEATURE_UNIX_ABSTRACT] = FEATURE_ENFORCED; /* there are none */
    f[FEATURE_NO_NEW_PRIVS] = FEATURE_EMULATED;  /* no setuid; services may still act for it */
    f[FEATURE_CAPABILITIES] = FEATURE_ENFORCED;  /* privileges */
    f[FEATURE_RLIMITS] = FEATURE_ENFORCED;       /* the job: no error reports */
    f[FEATURE_FD_CLOSE] = FEATURE_ENFORCED;      /* the list of handles */
    f[FEATURE_TREE_KILL] = FEATURE_ENFORCED;     /* the job */
    /* An entry needs a file: a name that does not exist yet, or lies deeper
     * than whoever applies the plan looks, is not held. */
    f[FEATURE_PROTECTED_NAMES] =
        plan->mode == SANDBOX_WORKSPACE_WRITE ? FEATURE_EMULATED : FEATURE_ABSENT;
}

static enum token_network
decide_network(const struct token_plan *plan, const struct token_caps *caps)
{
    if (plan->has_network) {
        return TOKEN_NETWORK_OPEN;
    }
    if (!caps->has_network_filter) {
        return TOKEN_NETWORK_UNHELD;
    }
    return plan->proxy_port == 0 ? TOKEN_NETWORK_FILTER : TOKEN_NETWORK_PROXY;
}

/* "" if the policy can be held. */
static const char *
refusal(const struct token_plan *plan, const struct elsewhere_request *r)
{
    if (plan->network == TOKEN_NETWORK_UNHELD) {
        return "a restricted token can't switch the network off: it needs a filter of the Windows "
               "Filtering Platform that an administrator installs; or set network_access: true";
    }
    if (r->deny_read != NULL && r->deny_read[0] != NULL) {
        return "a write-restricted token reads what its user reads: deny_read can't be held; take "
               "it out, or run under an account that can't read those paths";
    }
    return "";
}

static enum sy_code
make(struct token_plan *plan, const struct elsewhere_request *r, const struct token_caps *caps,
     struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf cwd = {.max = LIMIT_PATH};
    enum sy_code rc = elsewhere_check_names(r, err);
    const char *why = "";

    if (rc == SY_E_OK) {
        rc = resolve(&cwd, r, "policy cwd", r->policy->cwd, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    plan->network = decide_network(plan, caps);
    why = refusal(plan, r);
    if (why[0] != '\0') {
        plan->is_refused = true;
        plan->is_enforced = false;
        sy_err_set(err, SY_E_SANDBOX, "%s", why);
        memcpy(plan->reason, why, strlen(why) + 1);
        return SY_E_SANDBOX;
    }
    if (plan->mode == SANDBOX_WORKSPACE_WRITE) {
        rc = add_roots(plan, r, err);
    }
    if (rc == SY_E_OK && add_token(plan) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    set_features(plan);
    return rc;
}

enum sy_code
token_plan_init(struct token_plan *ret, const struct elsewhere_request *r,
                const struct token_caps *caps, struct sy_error *err)
{
    const struct sandbox_policy *policy = r->policy;
    struct token_plan plan = {
        .mode = policy->mode,
        .is_enforced = sandbox_mode_is_enforced(policy->mode),
        .has_network = sandbox_policy_has_network(policy),
        .network = TOKEN_NETWORK_OPEN,
        .integrity = INTEGRITY_MEDIUM,
        .restricting = {.max = LIMIT_ARGV},
        .disabled = {.max = LIMIT_ARGV},
        .gone_privileges = {.max = LIMIT_ARGV},
        .environment = {.max = LIMIT_ENV},
    };

    elsewhere_features_none(plan.features);
    if (policy->cwd == NULL || policy->cwd[0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "the policy has no working directory");
    }
    if (!plan.is_enforced) {
        *ret = plan;
        return SY_E_OK;
    }
    plan.proxy_port = plan.has_network ? 0 : r->proxy_port;

    enum sy_code rc = make(&plan, r, caps, err);

    if (rc != SY_E_OK && rc != SY_E_SANDBOX) {
        token_plan_fini(&plan);
        return rc;
    }
    *ret = plan;
    return rc;
}
