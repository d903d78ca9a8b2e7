#include <stdio.h>
#include <string.h>

#include "approval/approval.h"
#include "base/str.h"

static const char *const policy_names[] = {
    [APPROVAL_NEVER] = "never",
    [APPROVAL_UNLESS_TRUSTED] = "unless-trusted",
    [APPROVAL_ON_FAILURE] = "on-failure",
    [APPROVAL_ON_REQUEST] = "on-request",
};

const char *
approval_policy_name(enum approval_policy p)
{
    return policy_names[p];
}

bool
approval_policy_parse(enum approval_policy *ret, const char *name)
{
    for (size_t i = 0; i < sizeof(policy_names) / sizeof(policy_names[0]); i++) {
        if (str_eq(policy_names[i], name)) {
            *ret = (enum approval_policy)i;
            return true;
        }
    }
    return false;
}

static void
ask(struct requirement *ret, const char *reason)
{
    ret->kind = REQUIREMENT_NEEDS_APPROVAL;
    snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
}

void
requirement_compute(struct requirement *ret, const struct exec_params *params,
                    enum approval_policy policy, const struct sandbox_policy *sandbox)
{
    bool escalates = params->permissions == PERMISSIONS_REQUIRE_ESCALATED;

    *ret = (struct requirement){.kind = REQUIREMENT_SKIP};
    if (escalates && policy != APPROVAL_ON_REQUEST) {
        /* The specification of the shell tool, section 3.2. */
        snprintf(ret->reason, sizeof(ret->reason),
                 "sandbox_permissions \"require_escalated\" is only possible when approval.policy "
                 "is on-request (it is %s); go on without it",
                 approval_policy_name(policy));
        ret->kind = REQUIREMENT_FORBIDDEN;
        return;
    }
    if (escalates && sandbox_mode_is_enforced(sandbox->mode)) {
        ask(ret, "running outside the sandbox needs a person's approval");
        return;
    }
    switch (policy) {
    case APPROVAL_NEVER:
    case APPROVAL_ON_FAILURE:
    case APPROVAL_ON_REQUEST:
        break;
    case APPROVAL_UNLESS_TRUSTED:
        ask(ret, "approval.policy unless-trusted asks a person for every command that is not "
                 "known to be safe");
        break;
    }
}

void
requirement_refuse_unasked(struct requirement *ret)
{
    char why[SY_ERR_MSG_MAX];

    if (ret->kind != REQUIREMENT_NEEDS_APPROVAL) {
        return;
    }
    memcpy(why, ret->reason, sizeof(why));
    ret->kind = REQUIREMENT_FORBIDDEN;
    snprintf(ret->reason, sizeof(ret->reason), "%.170s, and nobody can be asked here: not run",
             why);
}
