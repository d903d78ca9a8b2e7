/*
 * The full tier for the policies of an engine: the whole of it is made, and where that fails the
 * reason goes with each answer. Why it failed matters: a machine that can't hold it can't tomorrow,
 * but a directory that a command has swapped, or a launcher that was killed, is of the moment.
 */
#include "base/mem.h"
#include "orchestrator/orchestrator_internal.h"
#include "process/launcher.h"

void
full_tier_fini(struct full_tier *f)
{
    launcher_free(f->launcher);
    mem_free(f->launcher_path);
    *f = (struct full_tier){0};
}

/* Of the launcher there is one; a template that was killed with it needs another. */
static enum sy_code
make_template(struct full_tier *f, struct template **ret, const struct sandbox_policy *policy,
              struct sy_error *err)
{
    enum sy_code rc = SY_E_NOTFOUND;

    for (int i = 0; i < 2 && rc == SY_E_NOTFOUND; i++) {
        if (f->launcher == NULL) {
            rc = launcher_start(&f->launcher, f->launcher_path, err);
            if (rc != SY_E_OK) {
                return rc;
            }
        }
        rc = launcher_make_template(f->launcher, ret, policy, err);
        if (rc == SY_E_NOTFOUND) {
            launcher_free(f->launcher);
            f->launcher = NULL;
        }
    }
    return rc;
}

/* Can this machine hold the tier at all? Asked once, by a policy that names no file that a command
 * might have changed. */
static enum sy_code
find_out(struct full_tier *f, const struct sandbox_policy *policy, struct sy_error *err)
{
    struct sandbox_policy plain = {
        .mode = SANDBOX_READ_ONLY,
        .cwd = mem_strdup("/"),
        .max_tier = TIER_FULL,
        .runs_as_self = policy->runs_as_self,
    };
    SY_AUTO(template_unrefp) struct template *t = NULL;

    if (plain.cwd == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = make_template(f, &t, &plain, err);

    sandbox_policy_fini(&plain);
    if (rc == SY_E_NOMEM) {
        return rc;
    }
    f->is_known = true;
    f->is_there = rc == SY_E_OK;
    return SY_E_OK;
}

enum sy_code
full_tier_try(struct full_tier *f, struct sandbox_entry *e, struct sandbox_caps *caps)
{
    struct sy_error why = {0};

    if (e->policy.max_tier != TIER_FULL || !sandbox_mode_is_enforced(e->policy.mode)) {
        return SY_E_OK;
    }

    enum sy_code rc = make_template(f, &e->template, &e->policy, &why);

    if (rc != SY_E_OK && rc != SY_E_NOMEM && !f->is_known) {
        struct sy_error ignored = {0};

        if (find_out(f, &e->policy, &ignored) != SY_E_OK) {
            rc = SY_E_NOMEM;
        }
    }
    if (rc != SY_E_OK && rc != SY_E_NOMEM && f->is_there) {
        rc = make_template(f, &e->template, &e->policy, &why);
        e->is_stopgap = rc != SY_E_OK;
    }
    if (rc == SY_E_NOMEM) {
        return rc;
    }
    if (rc == SY_E_OK) {
        f->is_known = true;
        f->is_there = true;
    }
    launcher_tell(caps, rc, &why);
    return SY_E_OK;
}
