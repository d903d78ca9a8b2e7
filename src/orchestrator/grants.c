/* What a person lets the commands of a session do beyond their policy. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/orchestrator_internal.h"
#include "sandbox/access.h"
#include "sandbox/linux/walk.h"

struct grant {
    struct access what;
    enum grant_scope scope;
    struct sandbox_policy under;   /* GRANT_ONCE, GRANT_SESSION: for calls of this one */
    char *workspace;               /* GRANT_RULE */
    enum sandbox_mode mode;        /* GRANT_RULE: and of no narrower one */
    const struct orch_call *taker; /* GRANT_ONCE: whose it is; NULL: free */
};

struct grants {
    struct grant *v;
    size_t n;
};

struct grants *
grants_new(void)
{
    return mem_alloc_zero(1, sizeof(struct grants));
}

static void
grant_fini(struct grant *g)
{
    access_fini(&g->what);
    sandbox_policy_fini(&g->under);
    mem_free(g->workspace);
    *g = (struct grant){0};
}

void
grants_free(struct grants *g)
{
    if (g == NULL) {
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        grant_fini(&g->v[i]);
    }
    mem_free(g->v);
    mem_free(g);
}

/* Takes it. */
static enum sy_code
append(struct grants *g, struct grant *one)
{
    size_t size = 0;
    struct grant *v = g->n < LIMIT_STORE_RULES && size_mul(&size, g->n + 1, sizeof(*v))
                          ? mem_realloc(g->v, size)
                          : NULL;

    if (v == NULL) {
        grant_fini(one);
        return SY_E_NOMEM;
    }
    g->v = v;
    g->v[g->n++] = *one;
    *one = (struct grant){0};
    return SY_E_OK;
}

enum sy_code
grants_add(struct grants *g, const struct access *what, enum grant_scope scope,
           const struct sandbox_policy *under)
{
    struct grant one = {.scope = scope};
    enum sy_code rc = access_copy(&one.what, what);

    if (rc == SY_E_OK) {
        rc = sandbox_policy_copy(&one.under, under);
    }
    if (rc != SY_E_OK) {
        grant_fini(&one);
        return rc;
    }
    return append(g, &one);
}

static void
drop(struct grants *g, size_t i)
{
    grant_fini(&g->v[i]);
    g->n--;
    memmove(&g->v[i], &g->v[i + 1], (g->n - i) * sizeof(g->v[0]));
}

enum sy_code
grants_set_rules(struct grants *g, const struct access_rule *rules, size_t n)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = g->n; i > 0; i--) {
        if (g->v[i - 1].scope == GRANT_RULE) {
            drop(g, i - 1);
        }
    }
    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        struct grant one = {.scope = GRANT_RULE, .mode = rules[i].mode};

        rc = access_copy(&one.what, rules[i].access);
        one.workspace = mem_strdup(rules[i].workspace);
        if (rc != SY_E_OK || one.workspace == NULL) {
            grant_fini(&one);
            return SY_E_NOMEM;
        }
        rc = append(g, &one);
    }
    return rc;
}

bool
grants_rule_holds(const struct sandbox_policy *base, const struct access *what)
{
    /* A turn that was led into a part of its parent's directory has not that part's rules, which
     * its parent has not. */
    if (base->cwd_is_inner || access_kept_by(base, what->kind) != NULL) {
        return false;
    }
    switch (what->kind) {
    case ACCESS_WRITE:
        return !base->drops_roots;
    case ACCESS_CONNECT:
        return !base->drops_network;
    case ACCESS_READ:
    case ACCESS_RUN:
        break;
    }
    return true;
}

/* By its place alone: what it names is looked at by is_usable. */
static bool
holds_for(const struct grant *g, const struct sandbox_policy *base)
{
    if (!sandbox_mode_is_enforced(base->mode) || access_kept_by(base, g->what.kind) != NULL) {
        return false;
    }
    if (g->scope != GRANT_RULE) {
        return sandbox_policy_equal(&g->under, base);
    }
    return grants_rule_holds(base, &g->what) && str_eq(g->workspace, base->cwd) &&
           g->mode <= base->mode;
}

/* A root that is gone would keep every command from running, and a link in its place would be
 * another one than the person saw. */
static bool
is_usable(const struct access *a)
{
    SY_AUTO(walk_fini) struct walk walk = {0};

    if (a->kind != ACCESS_WRITE) {
        return true;
    }
    return walk_run(&walk, a->object, NULL) == SY_E_OK && walk.missing_errno == 0 &&
           str_eq(buf_view(&walk.path), a->object);
}

/* *ret: it is wider by that grant. SY_E_NOMEM may leave it half widened. */
static enum sy_code
widen(bool *ret, struct sandbox_policy *wide, const struct grant *one,
      const struct sandbox_policy *base)
{
    enum sy_code rc = SY_E_OK;

    *ret = false;
    if (!holds_for(one, base) || !is_usable(&one->what)) {
        return rc;
    }
    rc = access_widen(wide, &one->what);
    *ret = rc == SY_E_OK;
    return rc == SY_E_LIMIT ? SY_E_OK : rc; /* no room: it stays as narrow as it is */
}

enum sy_code
grants_take(struct grants *g, struct sandbox_policy *policy, const struct orch_call *taker)
{
    struct sandbox_policy wide = {0};
    enum sy_code rc = sandbox_policy_copy(&wide, policy);

    for (size_t i = 0; i < g->n && rc == SY_E_OK; i++) {
        struct grant *one = &g->v[i];
        bool is_wider = false;

        if (one->taker != NULL) {
            continue;
        }
        rc = widen(&is_wider, &wide, one, policy);
        if (is_wider && one->scope == GRANT_ONCE) {
            one->taker = taker;
        }
    }
    if (rc != SY_E_OK) {
        sandbox_policy_fini(&wide);
        grants_settle(g, taker, false);
        return rc;
    }
    sandbox_policy_fini(policy);
    *policy = wide;
    return SY_E_OK;
}

enum sy_code
grants_inherit(const struct grants *g, struct sandbox_policy *policy,
               const struct sandbox_policy *base)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < g->n && rc == SY_E_OK; i++) {
        bool is_wider = false;

        /* `once` is for the session that asked. */
        if (g->v[i].scope != GRANT_ONCE) {
            rc = widen(&is_wider, policy, &g->v[i], base);
        }
    }
    return rc;
}

void
grants_settle(struct grants *g, const struct orch_call *taker, bool has_begun)
{
    for (size_t i = g->n; taker != NULL && i > 0; i--) {
        if (g->v[i - 1].taker != taker) {
            continue;
        }
        if (has_begun) {
            drop(g, i - 1);
        } else {
            g->v[i - 1].taker = NULL;
        }
    }
}

enum sy_code
session_widen(struct session *s, struct sandbox_policy *policy, const struct orch_call *taker)
{
    struct sandbox_policy base = {0};
    bool is_first = session_parent(s) == NULL;
    enum sy_code rc = is_first ? SY_E_OK : sandbox_policy_copy(&base, policy);

    if (rc == SY_E_OK && session_grants(s)->n > 0) {
        rc = grants_take(session_grants(s), policy, taker);
    }
    for (const struct session *up = session_parent(s); up != NULL && rc == SY_E_OK;
         up = session_parent(up)) {
        rc = grants_inherit(session_grants(up), policy, &base);
    }
    if (rc != SY_E_OK) {
        grants_settle(session_grants(s), taker, false);
    }
    sandbox_policy_fini(&base);
    return rc;
}
