#ifndef SY_APPROVAL_APPROVAL_H
#define SY_APPROVAL_APPROVAL_H

#include <stdbool.h>

#include "base/err.h"
#include "command/exec_params.h"
#include "sandbox/sandbox.h"

struct rule_verdict; /* approval/rules.h */

/* Specification, AskForApproval; the last one says by parts what may be asked. */
enum approval_policy {
    APPROVAL_NEVER,
    APPROVAL_UNLESS_TRUSTED,
    APPROVAL_ON_FAILURE,
    APPROVAL_ON_REQUEST,
    APPROVAL_GRANULAR
};

/* "never", "unless-trusted", "on-failure", "on-request", "granular". */
const char *approval_policy_name(enum approval_policy p);
bool approval_policy_parse(enum approval_policy *ret, const char *name) SY_NODISCARD;

/* Of APPROVAL_GRANULAR: what a person may be asked; the rest is refused. Zeroed:
 * nothing. */
struct approval_granular {
    bool sandbox_approval; /* commands that are dangerous or leave the sandbox */
    bool rules;            /* what a rule asks about */
};

/* The worst command of those that run and no rule allows. */
enum approval_class {
    APPROVAL_CLASS_SAFE,        /* known to change nothing */
    APPROVAL_CLASS_OTHER,       /* nothing is known */
    APPROVAL_CLASS_DANGEROUS,   /* destroys, or runs what nobody has seen */
    APPROVAL_CLASS_CATASTROPHIC /* destroys the system, the home or the workspace, or may */
};

/* "safe", "other", "dangerous", "catastrophic". */
const char *approval_class_name(enum approval_class c);

/* Specification, ApprovalRequirement. */
enum requirement_kind { REQUIREMENT_SKIP, REQUIREMENT_NEEDS_APPROVAL, REQUIREMENT_FORBIDDEN };

/* What decided. */
enum requirement_cause {
    REQUIREMENT_BY_POLICY,
    REQUIREMENT_BY_RULE,
    REQUIREMENT_BY_CLASS, /* safe, dangerous or catastrophic */
    REQUIREMENT_BY_ESCALATION
};

/* Lets the policy a person be asked about what that cause makes a question? */
bool approval_may_ask(enum approval_policy p, const struct approval_granular *granular,
                      enum requirement_cause cause);

struct requirement {
    enum requirement_kind kind;
    enum requirement_cause cause;
    bool bypass_sandbox;         /* SKIP only: run without the sandbox */
    char reason[SY_ERR_MSG_MAX]; /* a sentence; but for SKIP it is told to the model */
};

struct requirement_input {
    enum approval_policy policy;
    struct approval_granular granular; /* for APPROVAL_GRANULAR */
    bool asks_for_all;                 /* APPROVAL_ON_REQUEST: safe commands are asked about too */
    enum sandbox_mode mode;
    enum approval_class class;
    bool escalates;                  /* the call asks to leave the sandbox */
    const struct rule_verdict *rule; /* NULL: no rules */
};

/*
 * What a call needs before it may run. Pure. What comes first decides: a rule
 * forbids; leaving the sandbox is asked for where nobody may ask; the command is
 * catastrophic; a rule asks; a rule allows; the command is dangerous; it leaves
 * the sandbox; it is safe; the policy. What two of them would ask about is asked
 * only if both may be.
 */
void requirement_decide(struct requirement *ret, const struct requirement_input *in);

/*
 * The same for a call of which nothing is known but its parameters: no rules, a
 * class of APPROVAL_CLASS_OTHER.
 */
void requirement_compute(struct requirement *ret, const struct exec_params *params,
                         enum approval_policy policy, const struct sandbox_policy *sandbox);

/* Where nobody can be asked, NEEDS_APPROVAL becomes FORBIDDEN and says so. */
void requirement_refuse_unasked(struct requirement *ret);

#endif
