#include "base/mem.h"
#include "base/str.h"
#include "sandbox/sandbox.h"

static const char *const mode_names[] = {
    [SANDBOX_READ_ONLY] = "read-only",
    [SANDBOX_WORKSPACE_WRITE] = "workspace-write",
    [SANDBOX_DANGER_FULL_ACCESS] = "danger-full-access",
    [SANDBOX_EXTERNAL] = "external-sandbox",
};

#define MODE_COUNT (sizeof(mode_names) / sizeof(mode_names[0]))

const char *
sandbox_mode_name(enum sandbox_mode mode)
{
    SY_ASSERT((size_t)mode < MODE_COUNT);
    return mode_names[mode];
}

bool
sandbox_mode_parse(enum sandbox_mode *ret, const char *name)
{
    for (size_t i = 0; i < MODE_COUNT; i++) {
        if (str_eq(name, mode_names[i])) {
            *ret = (enum sandbox_mode)i;
            return true;
        }
    }
    return false;
}

static const char *const operation_names[] = {
#define OPERATION_ROW(id, name) [id] = (name),
    SANDBOX_OPERATIONS(OPERATION_ROW)
#undef OPERATION_ROW
};

const char *
sandbox_operation_name(enum sandbox_operation op)
{
    SY_ASSERT((size_t)op < OPERATION_COUNT);
    return operation_names[op];
}

bool
sandbox_operation_parse(enum sandbox_operation *ret, const char *name)
{
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        if (str_eq(operation_names[i], name)) {
            *ret = (enum sandbox_operation)i;
            return true;
        }
    }
    return false;
}

static const char *const tier_names[] = {
    [TIER_NONE] = "none",
    [TIER_NO_NAMESPACE] = "no-namespace",
    [TIER_FULL] = "full",
};

#define TIER_COUNT (sizeof(tier_names) / sizeof(tier_names[0]))

const char *
sandbox_tier_name(enum sandbox_tier tier)
{
    SY_ASSERT((size_t)tier < TIER_COUNT);
    return tier_names[tier];
}

bool
sandbox_tier_parse(enum sandbox_tier *ret, const char *name)
{
    for (size_t i = 0; i < TIER_COUNT; i++) {
        if (str_eq(name, tier_names[i])) {
            *ret = (enum sandbox_tier)i;
            return true;
        }
    }
    return false;
}

bool
sandbox_mode_is_enforced(enum sandbox_mode mode)
{
    return mode == SANDBOX_READ_ONLY || mode == SANDBOX_WORKSPACE_WRITE;
}

bool
sandbox_policy_has_network(const struct sandbox_policy *p)
{
    return !sandbox_mode_is_enforced(p->mode) || p->has_network;
}

const char *
sandbox_network_name(enum sandbox_network n)
{
    switch (n) {
    case NETWORK_OFF:
        return "off";
    case NETWORK_ALLOW_LIST:
        return "allow-list";
    case NETWORK_ON:
        break;
    }
    return "on";
}

enum sandbox_network
sandbox_policy_network(const struct sandbox_policy *p)
{
    if (sandbox_policy_has_network(p)) {
        return NETWORK_ON;
    }
    return p->network_allow.n > 0 ? NETWORK_ALLOW_LIST : NETWORK_OFF;
}

void
sandbox_policy_fini(struct sandbox_policy *p)
{
    mem_free(p->cwd);
    mem_free(p->tmpdir);
    strv_fini(&p->writable_roots);
    strv_fini(&p->network_allow);
    strv_fini(&p->deny_read);
    strv_fini(&p->deny_homes);
    strv_fini(&p->allow_read);
    strv_fini(&p->own_dirs);
    strv_fini(&p->protected_names);
    *p = (struct sandbox_policy){0};
}

bool
sandbox_policy_is_granted(const struct sandbox_policy *p, size_t i)
{
    SY_ASSERT(p->n_granted_roots <= p->writable_roots.n);
    return i >= p->writable_roots.n - p->n_granted_roots;
}

bool
sandbox_policy_is_linked(const struct sandbox_policy *p, size_t i)
{
    SY_ASSERT(p->n_granted_roots + p->n_linked_roots <= p->writable_roots.n);
    return i >= p->writable_roots.n - p->n_granted_roots - p->n_linked_roots &&
           !sandbox_policy_is_granted(p, i);
}

static bool
copy_str(char **ret, const char *from)
{
    *ret = from != NULL ? mem_strdup(from) : NULL;
    return from == NULL || *ret != NULL;
}

enum sy_code
sandbox_policy_copy(struct sandbox_policy *ret, const struct sandbox_policy *from)
{
    struct sandbox_policy copy = {
        .mode = from->mode,
        .writable_roots = {.max = from->writable_roots.max},
        .n_granted_roots = from->n_granted_roots,
        .finds_linked = from->finds_linked,
        .n_linked_roots = from->n_linked_roots,
        .has_network = from->has_network,
        .network_allow = {.max = from->network_allow.max},
        .excludes_tmpdir = from->excludes_tmpdir,
        .excludes_slash_tmp = from->excludes_slash_tmp,
        .deny_read = {.max = from->deny_read.max},
        .n_default_deny_read = from->n_default_deny_read,
        .deny_homes = {.max = from->deny_homes.max},
        .allow_read = {.max = from->allow_read.max},
        .own_dirs = {.max = from->own_dirs.max},
        .protected_names = {.max = from->protected_names.max},
        .denies_system = from->denies_system,
        .closes_devices = from->closes_devices,
        .reports_all = from->reports_all,
        .cwd_has_no_links = from->cwd_has_no_links,
        .cwd_is_inner = from->cwd_is_inner,
        .keeps_roots = from->keeps_roots,
        .keeps_network = from->keeps_network,
        .keeps_reads = from->keeps_reads,
        .narrows_mode = from->narrows_mode,
        .drops_roots = from->drops_roots,
        .drops_network = from->drops_network,
        .max_tier = from->max_tier,
        .min_tier = from->min_tier,
        .runs_as_self = from->runs_as_self,
        .protects = from->protects,
        .temp_bytes = from->temp_bytes,
    };
    enum sy_code rc = SY_E_NOMEM;

    if (copy_str(&copy.cwd, from->cwd) && copy_str(&copy.tmpdir, from->tmpdir)) {
        rc = strv_add_all(&copy.writable_roots, strv_view(&from->writable_roots));
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&copy.network_allow, strv_view(&from->network_allow));
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&copy.deny_read, strv_view(&from->deny_read));
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&copy.deny_homes, strv_view(&from->deny_homes));
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&copy.allow_read, strv_view(&from->allow_read));
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&copy.protected_names, strv_view(&from->protected_names));
    }
    if (rc == SY_E_OK) {
        rc = strv_add_all(&copy.own_dirs, strv_view(&from->own_dirs));
    }
    if (rc != SY_E_OK) {
        sandbox_policy_fini(&copy);
        return rc;
    }
    *ret = copy;
    return SY_E_OK;
}

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && str_eq(a, b));
}

bool
sandbox_policy_equal(const struct sandbox_policy *a, const struct sandbox_policy *b)
{
    if (a->mode != b->mode || a->has_network != b->has_network ||
        a->excludes_tmpdir != b->excludes_tmpdir ||
        a->excludes_slash_tmp != b->excludes_slash_tmp || a->max_tier != b->max_tier ||
        a->min_tier != b->min_tier || a->runs_as_self != b->runs_as_self ||
        a->protects != b->protects || a->temp_bytes != b->temp_bytes ||
        a->narrows_mode != b->narrows_mode || a->drops_roots != b->drops_roots ||
        a->drops_network != b->drops_network || a->reports_all != b->reports_all ||
        a->cwd_is_inner != b->cwd_is_inner || a->cwd_has_no_links != b->cwd_has_no_links ||
        a->n_granted_roots != b->n_granted_roots || a->n_linked_roots != b->n_linked_roots ||
        !same_text(a->cwd, b->cwd) || !same_text(a->tmpdir, b->tmpdir)) {
        return false;
    }
    return strv_eq(&a->writable_roots, &b->writable_roots) &&
           strv_eq(&a->network_allow, &b->network_allow) && strv_eq(&a->deny_read, &b->deny_read) &&
           strv_eq(&a->deny_homes, &b->deny_homes) && strv_eq(&a->allow_read, &b->allow_read) &&
           strv_eq(&a->own_dirs, &b->own_dirs) && a->denies_system == b->denies_system &&
           a->closes_devices == b->closes_devices;
}
