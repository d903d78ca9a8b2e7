/*
 * Patterns of a policy into a plan: what can't be enforced exactly is an error
 * here and not a pattern that silently hides nothing. Pure.
 */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/deny_internal.h"

/* As many as an answer names. */
#define UNHELD_SHOWN 8

/* In the workspace or a root, whether or not this mode lets commands write there. */
static bool
is_below_root(const struct sandbox_policy *policy, const char *pattern)
{
    if (path_pattern_is_below(pattern, policy->cwd)) {
        return true;
    }
    for (size_t i = 0; i < policy->writable_roots.n; i++) {
        if (path_pattern_is_below(pattern, policy->writable_roots.v[i])) {
            return true;
        }
    }
    return false;
}

static enum sy_code
fault(const char *pattern, const char *what, struct sy_error *err)
{
    return sy_err_set(err, SY_E_CONFIG, "sandbox.deny_read: '%.80s' %s", pattern, what);
}

static enum sy_code
add_pattern(struct sandbox_plan *plan, const struct sandbox_policy *policy, const char *pattern,
            struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_PATH};
    const char *wrong = path_pattern_fault(pattern);

    if (wrong != NULL) {
        return fault(pattern, wrong, err);
    }

    enum sy_code rc = path_normalize(&text, pattern);

    /* All that is in a directory is the directory. */
    while (rc == SY_E_OK && str_ends(buf_view(&text), "/**")) {
        text.len -= 3;
        text.data[text.len] = '\0';
    }
    if (rc == SY_E_LIMIT) {
        return fault(pattern, "is longer than a path can be", err);
    }
    if (rc == SY_E_OK && path_pattern_is_deep(buf_view(&text)) && !is_below_root(policy, pattern)) {
        return fault(pattern,
                     "searches whole trees outside of the writable roots: '**' stands at the end "
                     "there (for the directory), or name the directories",
                     err);
    }
    if (rc == SY_E_OK) {
        rc = strv_add(&plan->deny_read, buf_view(&text));
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

/* In front of all others, so that the number of a rule says whose it is. */
static enum sy_code
add_own(struct sandbox_plan *plan, const struct sandbox_policy *policy, struct sy_error *err)
{
    for (size_t i = 0; i < policy->own_dirs.n; i++) {
        SY_AUTO(buf_fini) struct buf pattern = {.max = (size_t)LIMIT_PATH * 4};

        if (path_pattern_quote(&pattern, policy->own_dirs.v[i]) != SY_E_OK ||
            strv_add(&plan->deny_read, buf_view(&pattern)) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    plan->n_own_deny_read = policy->own_dirs.n;
    return SY_E_OK;
}

enum sy_code
deny_plan_fill(struct sandbox_plan *plan, const struct sandbox_policy *policy, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;
    size_t n_defaults = policy->n_default_deny_read;

    if (policy->deny_read.n > LIMIT_DENY_PATTERNS) {
        return sy_err_set(err, SY_E_CONFIG,
                          "sandbox.deny_read: %zu patterns, at most %u are possible",
                          policy->deny_read.n, LIMIT_DENY_PATTERNS);
    }
    SY_ASSERT(n_defaults <= policy->deny_read.n);
    plan->deny_read.max = policy->own_dirs.n + policy->deny_read.n;
    rc = add_own(plan, policy, err);
    plan->n_default_deny_read = n_defaults;
    for (size_t i = 0; i < policy->deny_read.n && rc == SY_E_OK; i++) {
        if (i >= n_defaults) {
            rc = add_pattern(plan, policy, policy->deny_read.v[i], err);
        } else if (strv_add(&plan->deny_read, policy->deny_read.v[i]) != SY_E_OK) {
            rc = sy_err_nomem(err); /* ours need no check */
        }
    }
    plan->denies_system = policy->denies_system;
    /* The full tier has a /dev of its own. */
    plan->closes_devices = policy->closes_devices && !plan->denies_by_mount;
    plan->deny_homes.max = policy->deny_homes.n;
    plan->allow_read.max = policy->allow_read.n;
    plan->own_dirs.max = policy->own_dirs.n;
    if (rc == SY_E_OK &&
        (strv_add_all(&plan->deny_homes, strv_view(&policy->deny_homes)) != SY_E_OK ||
         strv_add_all(&plan->own_dirs, strv_view(&policy->own_dirs)) != SY_E_OK ||
         strv_add_all(&plan->allow_read, strv_view(&policy->allow_read)) != SY_E_OK)) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

/* --- below roots --- */

/* Something that is denied in that home. */
static bool
home_is_below(const char *home, const char *root)
{
    size_t n = strlen(home);

    if (path_is_below(home, root)) {
        return true;
    }
    if (!path_is_below(root, home)) {
        return false;
    }
    for (size_t i = 0; i < deny_home_defaults(); i++) {
        SY_AUTO(buf_fini) struct buf whole = {.max = (size_t)LIMIT_PATH * 2};

        if (buf_addf(&whole, "%.*s/%s", (int)n, home, deny_home_default(i)->below) != SY_E_OK ||
            path_pattern_may_be_below(buf_view(&whole), root)) {
            return true;
        }
    }
    return false;
}

static bool
root_needs_mounts(const struct sandbox_policy *p, const char *root)
{
    for (size_t i = 0; i < p->own_dirs.n; i++) {
        if (path_is_below(p->own_dirs.v[i], root)) {
            return true;
        }
    }
    for (size_t i = 0; i < p->deny_homes.n; i++) {
        if (home_is_below(p->deny_homes.v[i], root)) {
            return true;
        }
    }
    for (size_t i = 0; i < p->deny_read.n; i++) {
        if (path_pattern_may_be_below(p->deny_read.v[i], root)) {
            return true;
        }
    }
    return false;
}

bool
sandbox_policy_needs_mounts(const struct sandbox_policy *p)
{
    if (p->mode != SANDBOX_WORKSPACE_WRITE) {
        return false;
    }
    if (root_needs_mounts(p, p->cwd) || (!p->excludes_slash_tmp && root_needs_mounts(p, "/tmp")) ||
        (!p->excludes_tmpdir && p->tmpdir != NULL && root_needs_mounts(p, p->tmpdir))) {
        return true;
    }
    for (size_t i = 0; i < p->writable_roots.n; i++) {
        if (root_needs_mounts(p, p->writable_roots.v[i])) {
            return true;
        }
    }
    return false;
}

bool
deny_plan_has_any(const struct sandbox_plan *plan)
{
    return plan->n_own_deny_read > 0 || deny_plan_has_secrets(plan);
}

bool
deny_plan_has_secrets(const struct sandbox_plan *plan)
{
    return plan->deny_read.n > plan->n_own_deny_read || plan->deny_homes.n > 0 ||
           plan->denies_system || plan->closes_devices;
}

/* Where a pattern comes from, as the dump says it. */
static const char *
origin(const struct sandbox_plan *plan, size_t i)
{
    if (deny_plan_is_own(plan, i)) {
        return "own";
    }
    return i < plan->n_own_deny_read + plan->n_default_deny_read ? "default" : "deny_read";
}

bool
deny_plan_is_own(const struct sandbox_plan *plan, size_t rule)
{
    return rule < plan->n_own_deny_read;
}

enum sy_code
deny_plan_rule(struct buf *ret, bool *ret_is_default, const struct sandbox_plan *plan, size_t rule)
{
    *ret_is_default = rule >= DENY_SYSTEM || str_eq(origin(plan, rule), "default");
    if (rule < DENY_SYSTEM) {
        return buf_add_str(ret, plan->deny_read.v[rule]);
    }
    if (rule < DENY_HOME) {
        return buf_addf(ret, "/%s", deny_system_default(rule - DENY_SYSTEM)->below);
    }

    const char *home = plan->deny_homes.v[(rule - DENY_HOME) / DENY_ROWS_MAX];

    return buf_addf(ret, "%s/%s", home[1] == '\0' ? "" : home,
                    deny_home_default((rule - DENY_HOME) % DENY_ROWS_MAX)->below);
}

void
deny_plan_write(struct jw *w, const struct sandbox_plan *plan)
{
    size_t n = plan->unheld.n < UNHELD_SHOWN ? plan->unheld.n : UNHELD_SHOWN;

    if (n == 0) {
        return;
    }
    jw_key(w, "deny_read_unheld");
    jw_array(w);
    for (size_t i = 0; i < n; i++) {
        jw_str(w, plan->unheld.v[i]);
    }
    jw_end_array(w);
    if (n < plan->unheld.n) {
        jw_key_int(w, "deny_read_unheld_more", (int64_t)(plan->unheld.n - n));
    }
}

void
deny_plan_dump(struct jw *w, const struct sandbox_plan *plan)
{
    if (!deny_plan_has_any(plan)) {
        return;
    }
    jw_key(w, "deny_read");
    jw_array(w);
    for (size_t i = 0; i < plan->deny_read.n; i++) {
        jw_object(w);
        jw_key_str(w, "pattern", plan->deny_read.v[i]);
        jw_key_str(w, "origin", origin(plan, i));
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_key(w, "deny_read_defaults_in");
    jw_array(w);
    for (size_t i = 0; i < plan->deny_homes.n; i++) {
        jw_str(w, plan->deny_homes.v[i]);
    }
    if (plan->denies_system) {
        jw_str(w, "/");
    }
    jw_end_array(w);
    jw_key_bool(w, "closes_devices", plan->closes_devices);
    jw_key(w, "allow_read");
    jw_array(w);
    for (size_t i = 0; i < plan->allow_read.n; i++) {
        jw_str(w, plan->allow_read.v[i]);
    }
    jw_end_array(w);
}
