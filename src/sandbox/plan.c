/*
 * The planner for Linux: policy and capabilities in, rules out. Pure: it asks
 * neither the kernel nor the file system, so every kernel can be planned for
 * on every machine.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/deny_internal.h"
#include "sandbox/sandbox_internal.h"

/* What commands may write to wherever they run: data sinks and sources,
 * their own terminal, and terminals that they make. */
static const char *const devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
};

/*
 * Where /dev is everybody's, so are the terminals there: the command's own is added when there is
 * one (sandbox_ready_for_terminal), and those that it makes the engine opens. Where it is the
 * sandbox's, all of them are its own.
 */
static const char terminals[] = "/dev/pts";

#define DEVICES (sizeof(devices) / sizeof(devices[0]))

/* cwd, $TMPDIR, /tmp, /dev/shm */
#define OTHER_ROOTS 4

void
sandbox_plan_free(struct sandbox_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->n_rules; i++) {
        mem_free(plan->rules[i].path);
    }
    mem_free(plan->rules);
    strv_fini(&plan->network_allow);
    strv_fini(&plan->deny_read);
    strv_fini(&plan->deny_homes);
    strv_fini(&plan->own_dirs);
    strv_fini(&plan->allow_read);
    strv_fini(&plan->unheld);
    mem_free(plan->cwd);
    mem_free(plan);
}

enum feature_state
sandbox_plan_feature(const struct sandbox_plan *plan, enum sandbox_feature f)
{
    SY_ASSERT((size_t)f < FEATURE_COUNT);
    return plan->features[f];
}

enum sandbox_tier
sandbox_plan_tier(const struct sandbox_plan *plan)
{
    return plan->tier;
}

const char *
sandbox_plan_tier_reason(const struct sandbox_plan *plan)
{
    return plan->weaker;
}

enum sandbox_mode
sandbox_plan_mode(const struct sandbox_plan *plan)
{
    return plan->mode;
}

bool
sandbox_plan_has_network(const struct sandbox_plan *plan)
{
    return plan->has_network;
}

enum sandbox_network
sandbox_plan_network(const struct sandbox_plan *plan)
{
    if (plan->has_network) {
        return NETWORK_ON;
    }
    return plan->network_allow.n > 0 ? NETWORK_ALLOW_LIST : NETWORK_OFF;
}

bool
sandbox_plan_has_own_network(const struct sandbox_plan *plan)
{
    return plan->has_own_network;
}

bool
sandbox_plan_is_logged(const struct sandbox_plan *plan)
{
    return plan->is_logged;
}

const char *
sandbox_plan_cwd(const struct sandbox_plan *plan)
{
    return plan->cwd;
}

/* Named by somebody, and not everybody's to write in. */
static bool
is_root(enum plan_origin origin)
{
    return origin == ORIGIN_CWD || origin == ORIGIN_ROOT || origin == ORIGIN_LINKED ||
           origin == ORIGIN_GRANT;
}

const char *
sandbox_plan_root(const struct sandbox_plan *plan, size_t i)
{
    for (size_t k = 0; k < plan->n_rules; k++) {
        if (is_root(plan->rules[k].origin) && i-- == 0) {
            return plan->rules[k].path;
        }
    }
    return NULL;
}

static const char *
path_of(const struct sandbox_plan *plan, enum plan_origin origin)
{
    for (size_t i = 0; i < plan->n_rules; i++) {
        if (plan->rules[i].origin == origin) {
            return plan->rules[i].path;
        }
    }
    return NULL;
}

const char *
sandbox_plan_tmpdir(const struct sandbox_plan *plan)
{
    return path_of(plan, ORIGIN_TMPDIR);
}

bool
sandbox_plan_writes_tmp(const struct sandbox_plan *plan)
{
    return path_of(plan, ORIGIN_SLASH_TMP) != NULL;
}

int
sandbox_plan_abi(const struct sandbox_plan *plan)
{
    return plan->abi;
}

static enum feature_state
state_if(bool is_enforced)
{
    return is_enforced ? FEATURE_ENFORCED : FEATURE_ABSENT;
}

/* With nothing writable nothing can be made of them; else mounts hold them, or somebody looks
 * after each command. */
static enum feature_state
protection(const struct sandbox_plan *plan)
{
    if (!plan->is_enforced || (plan->mode == SANDBOX_WORKSPACE_WRITE && !plan->protects)) {
        return FEATURE_ABSENT;
    }
    return plan->mode == SANDBOX_READ_ONLY || plan->tier == TIER_FULL ? FEATURE_ENFORCED
                                                                      : FEATURE_EMULATED;
}

static void
set_features(struct sandbox_plan *plan, const struct sandbox_caps *caps)
{
    enum feature_state *f = plan->features;
    bool is_on = plan->is_enforced;
    bool is_full = plan->tier == TIER_FULL;
    int abi = plan->abi;

    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        f[i] = FEATURE_ABSENT;
    }
    f[FEATURE_FS_WRITE] = state_if(is_on);
    f[FEATURE_FS_REFER] = state_if(is_full || (is_on && abi >= 2));
    f[FEATURE_FS_TRUNCATE] = state_if(is_full || (is_on && abi >= 3));
    f[FEATURE_DEVICE_IOCTL] = state_if(is_on && abi >= 5);
    f[FEATURE_NETWORK] = state_if(is_on && !plan->has_network);
    f[FEATURE_FS_METADATA] = state_if(is_full);
    f[FEATURE_PID_NAMESPACE] = state_if(is_full);
    f[FEATURE_PRIVATE_TMP] = state_if(is_full);
    f[FEATURE_UNIX_ABSTRACT] =
        state_if(is_on && (abi >= 6 || plan->has_broker || (is_full && !plan->has_network)));
    f[FEATURE_UNIX_PATH] =
        state_if(is_on && (abi >= 9 || plan->has_broker || plan->has_own_network));
    f[FEATURE_SIGNAL_SCOPE] = state_if(is_full || (is_on && abi >= 6));
    f[FEATURE_SECCOMP] = state_if(is_on);
    f[FEATURE_NO_NEW_PRIVS] = state_if(is_on);
    f[FEATURE_CAPABILITIES] = state_if(is_on);
    /* Where nobody set one it is that of every tmpfs, half of the memory. */
    f[FEATURE_TEMP_LIMIT] = state_if(is_full);
    /* What exists and can't be held is known once it is ready: deny_plan.c. */
    f[FEATURE_DENY_READ] = state_if(is_on && deny_plan_has_secrets(plan));
    f[FEATURE_PROTECTED_NAMES] = protection(plan);
    f[FEATURE_AUDIT_RECORDS] = state_if(plan->is_logged);
    if (plan->is_refused) {
        return;
    }
    /* These hold for every command that we start, sandboxed or not. */
    f[FEATURE_RLIMITS] = FEATURE_ENFORCED;
    f[FEATURE_FD_CLOSE] = caps->has_close_range ? FEATURE_ENFORCED : FEATURE_EMULATED;
    /* A command that may signal the keeper can end it before its tree. */
    f[FEATURE_TREE_KILL] =
        f[FEATURE_SIGNAL_SCOPE] == FEATURE_ENFORCED ? FEATURE_ENFORCED : FEATURE_EMULATED;
}

void
sandbox_plan_tell_unprotected(struct sandbox_plan *plan, const char *why)
{
    enum feature_state state = protection(plan);

    (void)snprintf(plan->unprotected, sizeof(plan->unprotected), "%s", why);
    plan->features[FEATURE_PROTECTED_NAMES] =
        why[0] != '\0' && state == FEATURE_ENFORCED ? FEATURE_EMULATED : state;
}

static enum sy_code
add_rule(struct sandbox_plan *plan, const char *path, enum plan_origin origin, uint64_t access)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_PATH};
    enum sy_code rc = path_normalize(&text, path);
    char *copy = rc == SY_E_OK ? mem_strdup(buf_view(&text)) : NULL;

    if (copy == NULL) {
        return rc != SY_E_OK ? rc : SY_E_NOMEM;
    }
    plan->rules[plan->n_rules] = (struct plan_rule){
        .path = copy,
        .access = access,
        .origin = origin,
        .must_exist = is_root(origin),
    };
    plan->n_rules++;
    return SY_E_OK;
}

static enum sy_code
add_root(struct sandbox_plan *plan, const char *path, enum plan_origin origin, struct sy_error *err)
{
    /* Device nodes are nobody's work: not even root makes them here. Sockets
     * are reached where the work is, not in /tmp, which is everybody's. */
    uint64_t access = plan->ruleset.handled_fs & ~(LL_FS_MAKE_CHAR | LL_FS_MAKE_BLOCK);
    enum sy_code rc = SY_E_OK;

    if (path[0] != '/') {
        return sy_err_set(err, SY_E_CONFIG,
                          "%s '%s' is not absolute: a writable root begins with '/'",
                          plan_origin_text(origin), path);
    }
    if (!is_root(origin)) {
        access &= ~LL_FS_RESOLVE_UNIX;
    }
    rc = add_rule(plan, path, origin, access);
    if (rc == SY_E_OK && origin != ORIGIN_SHM &&
        plan_place_refuses(plan->rules[plan->n_rules - 1].path)) {
        return plan_place_error(plan->rules[plan->n_rules - 1].path, origin, err);
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s: longer than %u bytes: '%.80s...'",
                          plan_origin_text(origin), LIMIT_PATH, path);
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}

static enum sy_code
add_workspace(struct sandbox_plan *plan, const struct sandbox_policy *policy, struct sy_error *err)
{
    enum sy_code rc = add_root(plan, policy->cwd, ORIGIN_CWD, err);

    for (size_t i = 0; rc == SY_E_OK && i < policy->writable_roots.n; i++) {
        rc = add_root(plan, policy->writable_roots.v[i],
                      sandbox_policy_is_granted(policy, i)  ? ORIGIN_GRANT
                      : sandbox_policy_is_linked(policy, i) ? ORIGIN_LINKED
                                                            : ORIGIN_ROOT,
                      err);
    }
    if (rc == SY_E_OK && policy->tmpdir != NULL && policy->tmpdir[0] == '/' &&
        !policy->excludes_tmpdir) {
        rc = add_root(plan, policy->tmpdir, ORIGIN_TMPDIR, err);
    }
    if (rc == SY_E_OK && !policy->excludes_slash_tmp) {
        rc = add_root(plan, "/tmp", ORIGIN_SLASH_TMP, err);
    }
    /* POSIX semaphores and shared memory live there: without it Python's
     * multiprocessing dies. */
    return rc == SY_E_OK ? add_root(plan, "/dev/shm", ORIGIN_SHM, err) : rc;
}

static enum sy_code
add_rules(struct sandbox_plan *plan, const struct sandbox_policy *policy, struct sy_error *err)
{
    uint64_t access = PLAN_DEVICE_RIGHTS & plan->ruleset.handled_fs;

    if (policy->writable_roots.n > LIMIT_ROOTS) {
        return sy_err_set(err, SY_E_CONFIG, "%zu writable roots, at most %u are possible",
                          policy->writable_roots.n, LIMIT_ROOTS);
    }
    plan->rules = mem_alloc_zero(policy->writable_roots.n + OTHER_ROOTS + DEVICES + 1,
                                 sizeof(plan->rules[0]));
    if (plan->rules == NULL) {
        return sy_err_nomem(err);
    }
    if (plan->mode == SANDBOX_WORKSPACE_WRITE) {
        enum sy_code rc = add_workspace(plan, policy, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    for (size_t i = 0; i < DEVICES; i++) {
        if (add_rule(plan, devices[i], ORIGIN_DEVICE, access) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    }
    if (plan->tier == TIER_FULL) {
        if (add_rule(plan, terminals, ORIGIN_DEVICE, access) != SY_E_OK) {
            return sy_err_nomem(err);
        }
        plan->rules[plan->n_rules - 1].at_parent = true;
    }
    return SY_E_OK;
}

static enum sy_code
refuse_kernel(const struct sandbox_caps *caps, struct sy_error *err)
{
    static const char way_out[] = "or set sandbox.required: false, or run with danger-full-access";

    if (caps->landlock_abi < 1) {
        return sy_err_set(
            err, SY_E_SANDBOX,
            "Landlock is not available (kernel %.20s, landlock_create_ruleset: %s); it needs Linux "
            "5.13 or later with CONFIG_SECURITY_LANDLOCK and 'landlock' in lsm=; %s",
            caps->release, sy_errno_name(caps->landlock_errno), way_out);
    }
    return sy_err_set(
        err, SY_E_SANDBOX,
        "seccomp filters are not available (kernel %.20s); they need CONFIG_SECCOMP_FILTER "
        "and no outer sandbox that forbids seccomp(2); %s",
        caps->release, way_out);
}

/* The list is kept only where it holds: without a broker, or a network of its own, the network is
 * off. */
static enum sy_code
add_allow_list(struct sandbox_plan *plan, const struct sandbox_policy *policy)
{
    plan->network_allow.max = policy->network_allow.max;
    return plan->is_enforced && (plan->has_broker || plan->has_own_network)
               ? strv_add_all(&plan->network_allow, strv_view(&policy->network_allow))
               : SY_E_OK;
}

static enum sy_code
refuse_tier(const struct sandbox_policy *policy, const struct sandbox_caps *caps,
            struct sy_error *err)
{
    if (policy->max_tier < policy->min_tier) {
        return sy_err_set(
            err, SY_E_SANDBOX,
            "sandbox.min_tier asks for '%s', but the sandbox may be at most '%s' here "
            "(sandbox.tier): change one of them",
            sandbox_tier_name(policy->min_tier), sandbox_tier_name(policy->max_tier));
    }
    return sy_err_set(err, SY_E_SANDBOX,
                      "a sandbox of tier '%s' can't be made here: %s; repair that, or set "
                      "sandbox.tier: auto and sandbox.min_tier: no-namespace",
                      sandbox_tier_name(policy->min_tier),
                      caps->full_reason[0] != '\0' ? caps->full_reason : "it was not tried");
}

/* False: what can be had is less than the policy asks for. */
static bool
choose_tier(struct sandbox_plan *plan, const struct sandbox_policy *policy,
            const struct sandbox_caps *caps)
{
    bool is_wanted = sandbox_mode_is_enforced(policy->mode);

    plan->is_enforced = is_wanted && caps->landlock_abi >= 1 && caps->has_seccomp_filter;
    plan->is_refused = is_wanted && !plan->is_enforced;
    plan->tier = !plan->is_enforced                                     ? TIER_NONE
                 : caps->has_full_tier && policy->max_tier == TIER_FULL ? TIER_FULL
                                                                        : TIER_NO_NAMESPACE;
    if (plan->tier == TIER_NO_NAMESPACE && policy->max_tier == TIER_FULL) {
        memcpy(plan->weaker, caps->full_reason, sizeof(plan->weaker));
    }
    if (!plan->is_enforced || plan->tier >= policy->min_tier) {
        return true;
    }
    plan->is_enforced = false;
    plan->is_refused = true;
    plan->tier = TIER_NONE;
    return false;
}

static enum sy_code
fill(struct sandbox_plan *plan, const struct sandbox_policy *policy,
     const struct sandbox_caps *caps, struct sy_error *err)
{
    bool is_wanted = sandbox_mode_is_enforced(policy->mode);
    bool is_too_weak = false;

    plan->mode = policy->mode;
    plan->leaves_tmp_out = policy->excludes_slash_tmp;
    plan->narrows_mode = policy->narrows_mode;
    plan->drops_roots = policy->drops_roots;
    plan->drops_network = policy->drops_network;
    plan->protects = policy->protects;
    plan->cwd_has_no_links = policy->cwd_has_no_links;
    plan->has_network = sandbox_policy_has_network(policy);
    plan->has_broker = is_wanted && !plan->has_network && caps->has_seccomp_notify;
    plan->has_observer = is_wanted && policy->reports_all && caps->has_seccomp_notify;
    if (policy->cwd == NULL || policy->cwd[0] != '/') {
        return sy_err_set(err, SY_E_ARG, "the policy's working directory '%s' is not absolute",
                          policy->cwd != NULL ? policy->cwd : "");
    }
    plan->cwd = mem_strdup(policy->cwd);
    if (plan->cwd == NULL) {
        return sy_err_nomem(err);
    }
    is_too_weak = !choose_tier(plan, policy, caps);
    plan->makes_terminals = plan->tier == TIER_NO_NAMESPACE && caps->has_seccomp_notify;
    plan->has_own_network = plan->tier == TIER_FULL && !plan->has_network;
    plan->is_logged = plan->tier == TIER_NO_NAMESPACE && caps->reads_audit &&
                      caps->landlock_abi >= LANDLOCK_AUDIT_ABI;
    if (add_allow_list(plan, policy) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    /* In the full tier mounts lie over what is denied. */
    plan->denies_by_mount = plan->tier == TIER_FULL;
    if (plan->is_enforced) {
        enum sy_code rc = deny_plan_fill(plan, policy, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    plan->abi = plan->is_enforced ? caps->landlock_abi : 0;
    plan->errata = plan->is_enforced ? caps->landlock_errata : 0;
    set_features(plan, caps);
    if (is_too_weak) {
        return refuse_tier(policy, caps, err);
    }
    if (plan->is_refused) {
        return refuse_kernel(caps, err);
    }
    if (!plan->is_enforced) {
        return SY_E_OK;
    }
    plan->ruleset.handled_fs = landlock_known(LANDLOCK_SET_FS, plan->abi);
    if (!deny_plan_has_any(plan)) {
        plan->ruleset.handled_fs &= ~LL_FS_READS;
    }
    plan->ruleset.scoped = landlock_known(LANDLOCK_SET_SCOPE, plan->abi);
    if (!plan->has_network && !plan->has_own_network) {
        /* A second wall: seccomp already refuses the sockets. */
        plan->ruleset.handled_net = landlock_known(LANDLOCK_SET_NET, plan->abi);
    }
    return add_rules(plan, policy, err);
}

enum sy_code
sandbox_plan_new(struct sandbox_plan **ret, const struct sandbox_policy *policy,
                 const struct sandbox_caps *caps, struct sy_error *err)
{
    struct sandbox_plan *plan = mem_alloc_zero(1, sizeof(*plan));

    if (plan == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = fill(plan, policy, caps, err);

    if (rc != SY_E_OK && rc != SY_E_SANDBOX) {
        sandbox_plan_free(plan);
        return rc;
    }
    *ret = plan;
    return rc;
}
