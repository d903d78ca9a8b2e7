/* What calls without a command may touch. */
#include "base/place.h"
#include "guard/guard.h"
#include "orchestrator/call_internal.h"

void
orch_take_request(struct orch_call *c, struct exec_request *ret)
{
    SY_ASSERT(c->state == ORCH_DONE);
    *ret = c->request;
    c->request = (struct exec_request){0};
}

const struct turn_context *
orch_turn(const struct orch_call *c)
{
    return &c->turn;
}

static enum sy_code
judge_by_policy(const struct orch_call *c, enum sandbox_operation op, const char *path,
                struct sy_error *err)
{
    struct sandbox_explanation e;
    struct place_shown_path shown;
    enum sy_code rc = SY_E_OK;

    if (c->entry->plan == NULL || !sandbox_mode_is_enforced(c->entry->policy.mode)) {
        return SY_E_OK;
    }
    rc = sandbox_explain(&e, c->entry->plan, op, path, err);
    if (rc != SY_E_OK || e.is_allowed) {
        return rc;
    }
    return sy_err_set(err, SY_E_DENIED, "%s of %s is refused: %.80s", sandbox_operation_name(op),
                      place_visible_path(&shown, path), e.rule);
}

enum sy_code
orch_judge_file(const struct orch_call *c, enum sandbox_operation op, const char *path,
                char *const *all, struct sy_error *err)
{
    bool is_forbidden = false;
    enum guard_name rule = GUARD_GIT;
    struct place_shown_path shown;
    enum sy_code rc = judge_by_policy(c, op, path, err);

    if (rc != SY_E_OK || op == OPERATION_READ || c->entry->guard == NULL) {
        return rc;
    }
    rc = guard_forbids(&is_forbidden, &rule, c->entry->guard, path, all);
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return is_forbidden ? sy_err_set(err, SY_E_DENIED,
                                     "%s is protected (%s); a person lifts that by "
                                     "sandbox.unprotected_names: [%s]",
                                     place_visible_path(&shown, path), guard_name_what(rule),
                                     guard_name_text(rule))
                        : SY_E_OK;
}
