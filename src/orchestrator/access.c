/* For calls that ask for a wider sandbox. */
#include "sandbox/access.h"

#include "base/mem.h"
#include "guard/guard.h"
#include "orchestrator/call_internal.h"

const struct sandbox_policy *
orch_base_policy(const struct orch_call *c)
{
    return &c->base;
}

const struct sandbox_plan *
orch_plan(const struct orch_call *c)
{
    return c->entry != NULL ? c->entry->plan : NULL;
}

enum sy_code
orch_next_policy(struct orch_call *c, struct sandbox_policy *ret, const struct access *more,
                 struct sy_error *err)
{
    struct sandbox_policy made = {0};
    enum sy_code rc = sandbox_policy_copy(&made, &c->base);

    if (rc == SY_E_OK) {
        rc = session_widen(c->session, &made, NULL);
    }
    if (rc == SY_E_OK && more != NULL) {
        rc = access_widen(&made, more);
    }
    if (rc != SY_E_OK) {
        sandbox_policy_fini(&made);
        return rc == SY_E_LIMIT
                   ? sy_err_set(err, SY_E_DENIED, "the policy has no room for more of this kind")
                   : sy_err_nomem(err);
    }
    *ret = made;
    return SY_E_OK;
}

enum sy_code
orch_try_policy(struct orch_call *c, const struct sandbox_policy *policy,
                const struct sandbox_plan **ret, struct sy_error *err)
{
    char note[SY_ERR_MSG_MAX];

    session_release_sandbox(c->session, c->trial);
    c->trial = NULL;

    struct sy_error why = {0};
    enum sy_code rc = session_acquire_sandbox(c->session, policy, c->turn.sandbox_required,
                                              &c->trial, note, &why);

    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK || c->trial->plan == NULL) {
        return sy_err_set(err, SY_E_DENIED, "no sandbox can be made for it: %.180s",
                          rc != SY_E_OK ? why.msg : note);
    }
    *ret = c->trial->plan;
    return SY_E_OK;
}

enum sy_code
orch_is_protected(bool *ret, struct orch_call *c, const char *path, struct sy_error *err)
{
    char *const all[] = {mem_unconst(path), NULL};
    enum guard_name rule = GUARD_GIT;
    enum sy_code rc = call_protect_look(c, err);

    *ret = false;
    if (rc == SY_E_OK && c->entry->guard != NULL &&
        guard_forbids(ret, &rule, c->entry->guard, path, all) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

bool
orch_may_be_rule(const struct orch_call *c, const struct access *what)
{
    return grants_rule_holds(&c->base, what);
}

enum sy_code
orch_grant(struct orch_call *c, const struct access *what, enum grant_scope scope,
           struct sy_error *err)
{
    if (scope == GRANT_RULE) {
        return SY_E_OK; /* it is read with the others, from where the answer has put it */
    }
    return grants_add(session_grants(c->session), what, scope, &c->base) == SY_E_OK
               ? SY_E_OK
               : sy_err_nomem(err);
}

enum sy_code
session_set_access_rules(struct session *s, const struct access_rule *rules, size_t n)
{
    return grants_set_rules(session_grants(s), rules, n);
}
