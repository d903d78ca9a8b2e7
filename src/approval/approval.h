#ifndef SY_APPROVAL_APPROVAL_H
#define SY_APPROVAL_APPROVAL_H

#include <stdbool.h>

#include "base/err.h"
#include "command/exec_params.h"
#include "sandbox/sandbox.h"

/* Specification, AskForApproval. */
enum approval_policy {
    APPROVAL_NEVER,
    APPROVAL_UNLESS_TRUSTED,
    APPROVAL_ON_FAILURE,
    APPROVAL_ON_REQUEST
};

/* "never", "unless-trusted", "on-failure", "on-request". */
const char *approval_policy_name(enum approval_policy p);
bool approval_policy_parse(enum approval_policy *ret, const char *name) SY_NODISCARD;

/* Specification, ApprovalRequirement. */
enum requirement_kind { REQUIREMENT_SKIP, REQUIREMENT_NEEDS_APPROVAL, REQUIREMENT_FORBIDDEN };

struct requirement {
    enum requirement_kind kind;
    bool bypass_sandbox;         /* SKIP only: run without the sandbox */
    char reason[SY_ERR_MSG_MAX]; /* NEEDS_APPROVAL, FORBIDDEN: told to the model */
};

/*
 * What a call needs before it may run. Pure. Rules, safe and dangerous
 * commands and ways to ask a person come later; until then a call that
 * would need a person is answered by a refusal that says so.
 */
void requirement_compute(struct requirement *ret, const struct exec_params *params,
                         enum approval_policy policy, const struct sandbox_policy *sandbox);

/* Where nobody can be asked, NEEDS_APPROVAL becomes FORBIDDEN and says so. */
void requirement_refuse_unasked(struct requirement *ret);

#endif
