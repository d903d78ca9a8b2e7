#include <stdio.h>
#include <string.h>

#include "approval/assess.h"
#include "approval/rules.h"
#include "base/str.h"
#include "base/utf8.h"

static const char *const policy_names[] = {
    [APPROVAL_NEVER] = "never",           [APPROVAL_UNLESS_TRUSTED] = "unless-trusted",
    [APPROVAL_ON_FAILURE] = "on-failure", [APPROVAL_ON_REQUEST] = "on-request",
    [APPROVAL_GRANULAR] = "granular",
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

const char *
approval_class_name(enum approval_class c)
{
    static const char *const names[] = {
        [APPROVAL_CLASS_SAFE] = "safe",
        [APPROVAL_CLASS_OTHER] = "other",
        [APPROVAL_CLASS_DANGEROUS] = "dangerous",
        [APPROVAL_CLASS_CATASTROPHIC] = "catastrophic",
    };

    return names[c];
}

static void
decide(struct requirement *ret, enum requirement_kind kind, enum requirement_cause cause,
       const char *reason)
{
    ret->kind = kind;
    ret->cause = cause;
    (void)snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
}

bool
approval_may_ask(enum approval_policy p, const struct approval_granular *granular,
                 enum requirement_cause cause)
{
    switch (p) {
    case APPROVAL_NEVER:
        return false;
    case APPROVAL_GRANULAR:
        return cause == REQUIREMENT_BY_RULE ? granular->rules : granular->sandbox_approval;
    case APPROVAL_UNLESS_TRUSTED:
    case APPROVAL_ON_FAILURE:
    case APPROVAL_ON_REQUEST:
        break;
    }
    return true;
}

/* Why nobody may be asked about that under the policy; NULL: somebody may. */
static const char *
why_unasked(const struct requirement_input *in, enum requirement_cause cause)
{
    if (approval_may_ask(in->policy, &in->granular, cause)) {
        return NULL;
    }
    if (in->policy == APPROVAL_NEVER) {
        return "nobody is asked under approval.policy never";
    }
    return cause == REQUIREMENT_BY_RULE
               ? "the granular approval.policy lets nobody be asked about rules"
               : "the granular approval.policy lets nobody be asked about it";
}

static void
ask(struct requirement *ret, const struct requirement_input *in, enum requirement_cause cause,
    const char *reason)
{
    const char *why = why_unasked(in, cause);

    if (why == NULL) {
        decide(ret, REQUIREMENT_NEEDS_APPROVAL, cause, reason);
        return;
    }

    struct sy_error sentence = {0};
    int len = utf8_room(reason, 150);

    (void)sy_err_set(&sentence, SY_E_DENIED, "%.*s, and %s: not run", len, reason, why);
    decide(ret, REQUIREMENT_FORBIDDEN, cause, sentence.msg);
}

static bool
rule_asks(const struct requirement_input *in)
{
    return in->rule != NULL && in->rule->decision == RULE_ASK;
}

/* Rule and class ask both: none of them lifts what the other refuses. */
static void
ask_by_both(struct requirement *ret, const struct requirement_input *in, const char *reason)
{
    struct sy_error both = {0};
    bool is_rule_refused = rule_asks(in) && why_unasked(in, REQUIREMENT_BY_RULE) != NULL;
    bool is_class_refused = why_unasked(in, REQUIREMENT_BY_CLASS) != NULL;

    if (is_rule_refused && !is_class_refused) {
        ask(ret, in, REQUIREMENT_BY_RULE, in->rule->reason);
        return;
    }
    (void)sy_err_set(&both, SY_E_DENIED, "%s%s%s", reason, rule_asks(in) ? "; " : "",
                     rule_asks(in) ? in->rule->reason : "");
    ask(ret, in, REQUIREMENT_BY_CLASS, both.msg);
}

/* A rule's word, as far as it goes; true when that decides. */
static bool
decide_by_rule(struct requirement *ret, const struct requirement_input *in, bool leaves)
{
    const struct rule_verdict *rule = in->rule;

    switch (rule != NULL ? rule->decision : RULE_NONE) {
    case RULE_ASK:
        if (in->class == APPROVAL_CLASS_DANGEROUS) {
            ask_by_both(ret, in, "the command is dangerous");
        } else {
            ask(ret, in, REQUIREMENT_BY_RULE, rule->reason);
        }
        return true;
    case RULE_ALLOW:
        if (leaves && !rule->lifts_sandbox) {
            ask(ret, in, REQUIREMENT_BY_ESCALATION,
                "a rule allows the command inside the sandbox alone, and running it outside needs "
                "a person's approval");
            return true;
        }
        decide(ret, REQUIREMENT_SKIP, REQUIREMENT_BY_RULE, rule->reason);
        ret->bypass_sandbox = rule->lifts_sandbox && sandbox_mode_is_enforced(in->mode);
        return true;
    case RULE_NONE:
    case RULE_FORBID:
        break;
    }
    return false;
}

/* What neither a rule nor danger has decided, and stays where it is. */
static void
decide_by_policy(struct requirement *ret, const struct requirement_input *in)
{
    bool asks_for_all = in->policy == APPROVAL_ON_REQUEST && in->asks_for_all &&
                        in->mode != SANDBOX_DANGER_FULL_ACCESS;

    if (asks_for_all) {
        ask(ret, in, REQUIREMENT_BY_POLICY,
            "approval.on_request all asks a person about every command");
    } else if (in->class == APPROVAL_CLASS_SAFE) {
        decide(ret, REQUIREMENT_SKIP, REQUIREMENT_BY_CLASS, "the command is known to be safe");
    } else if (in->policy == APPROVAL_UNLESS_TRUSTED) {
        ask(ret, in, REQUIREMENT_BY_POLICY,
            "approval.policy unless-trusted asks a person for every command that is not known to "
            "be safe");
    } else {
        decide(ret, REQUIREMENT_SKIP, REQUIREMENT_BY_POLICY,
               sandbox_mode_is_enforced(in->mode) ? "the command runs in the sandbox"
                                                  : "the configuration has no sandbox to leave");
    }
}

/* Before rules that ask or allow: what they can't lift. */
static bool
decide_first(struct requirement *ret, const struct requirement_input *in)
{
    char reason[SY_ERR_MSG_MAX];

    if (in->rule != NULL && in->rule->decision == RULE_FORBID) {
        decide(ret, REQUIREMENT_FORBIDDEN, REQUIREMENT_BY_RULE, in->rule->reason);
        return true;
    }
    if (in->escalates && in->policy != APPROVAL_ON_REQUEST) {
        /* The specification of the shell tool, section 3.2. */
        (void)snprintf(reason, sizeof(reason),
                       "sandbox_permissions \"require_escalated\" is only possible when "
                       "approval.policy is on-request (it is %s); go on without it",
                       approval_policy_name(in->policy));
        decide(ret, REQUIREMENT_FORBIDDEN, REQUIREMENT_BY_ESCALATION, reason);
        return true;
    }
    if (in->class == APPROVAL_CLASS_CATASTROPHIC) {
        ask_by_both(ret, in,
                    "the command may destroy the system, the home directory or the workspace");
        return true;
    }
    return false;
}

void
requirement_decide(struct requirement *ret, const struct requirement_input *in)
{
    bool leaves = in->escalates && sandbox_mode_is_enforced(in->mode);

    *ret = (struct requirement){.kind = REQUIREMENT_FORBIDDEN};
    if (decide_first(ret, in) || decide_by_rule(ret, in, leaves)) {
        return;
    }
    if (in->class == APPROVAL_CLASS_DANGEROUS) {
        ask(ret, in, REQUIREMENT_BY_CLASS,
            leaves ? "the command is dangerous, and it asks to run outside the sandbox"
                   : "the command is dangerous");
    } else if (leaves) {
        ask(ret, in, REQUIREMENT_BY_ESCALATION,
            "running outside the sandbox needs a person's approval");
    } else {
        decide_by_policy(ret, in);
    }
}

void
requirement_compute(struct requirement *ret, const struct exec_params *params,
                    enum approval_policy policy, const struct sandbox_policy *sandbox)
{
    const struct requirement_input in = {
        .policy = policy,
        .mode = sandbox->mode,
        .class = APPROVAL_CLASS_OTHER,
        .escalates = params->permissions == PERMISSIONS_REQUIRE_ESCALATED,
    };

    requirement_decide(ret, &in);
}

void
requirement_refuse_unasked(struct requirement *ret)
{
    char why[SY_ERR_MSG_MAX];
    int len = utf8_room(ret->reason, 170);

    if (ret->kind != REQUIREMENT_NEEDS_APPROVAL) {
        return;
    }
    memcpy(why, ret->reason, sizeof(why));
    ret->kind = REQUIREMENT_FORBIDDEN;
    snprintf(ret->reason, sizeof(ret->reason), "%.*s, and nobody can be asked here: not run", len,
             why);
}

void
assessment_fini(struct assessment *a)
{
    strv_fini(&a->better);
    strv_fini(&a->prefix);
}
