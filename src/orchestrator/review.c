#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "approval/question.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "orchestrator/call_internal.h"

/* ORCH_APPROVAL and ORCH_REVIEW: what a call needs, and a person who gives it. */

bool
call_escalates(const struct orch_call *c)
{
    return c->request.params.permissions == PERMISSIONS_REQUIRE_ESCALATED;
}

/* From now on it runs without the sandbox: nothing of the other policy is kept. */
static void
lift_sandbox(struct orch_call *c)
{
    if (!sandbox_mode_is_enforced(c->turn.sandbox.mode)) {
        return;
    }
    session_release_sandbox(c->session, c->entry);
    c->entry = NULL;
    c->turn.sandbox.mode = SANDBOX_DANGER_FULL_ACCESS;
}

static enum sy_code
add_roots(struct strv *ret, const struct sandbox_policy *p)
{
    enum sy_code rc = strv_add(ret, p->cwd);

    return rc == SY_E_OK ? strv_add_all(ret, strv_view(&p->writable_roots)) : rc;
}

/* What the judge says; without one, what the parameters say. */
static enum sy_code
assess(struct orch_call *c, struct assessment *ret, struct sy_error *err)
{
    const struct assess_by *judge = session_judge(c->session);
    SY_AUTO(strv_fini) struct strv roots = {.max = LIMIT_ROOTS + 1};
    enum sy_code rc = SY_E_OK;

    *ret = (struct assessment){0};
    if (judge->fn == NULL) {
        requirement_compute(&ret->need, &c->request.params, c->turn.approval, &c->turn.sandbox);
        return rc;
    }
    rc = call_make_environment(c, err);
    if (rc == SY_E_OK) {
        rc = call_make_argv(c, err);
    }
    if (rc == SY_E_OK && add_roots(&roots, &c->turn.sandbox) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const struct assess_input in = {
        .argv = strv_view(&c->argv),
        .cwd = c->request.params.cwd,
        .path_list = strv_env_get(&c->env, "PATH"),
        .env = strv_view(&c->request.params.env),
        .roots = strv_view(&roots),
        .policy = c->turn.approval,
        .asks_for_all = c->turn.asks_for_all,
        .granular = c->turn.granular,
        .mode = c->turn.sandbox.mode,
        .escalates = call_escalates(c),
        .wanted_prefix = c->request.prefix.n > 0 ? &c->request.prefix : NULL,
    };

    return judge->fn(judge->arg, ret, &in, err);
}

static void
on_review_wake(void *arg)
{
    call_wake(arg);
}

static enum sy_code
ask(struct orch_call *c, const struct assessment *a, struct sy_error *err)
{
    static const char *const inputs[] = {
        [INPUT_NONE] = NULL, [INPUT_PIPE] = "pipe", [INPUT_TERMINAL] = "terminal"};
    const struct review_by *by = session_review(c->session);
    const char *sessions[LIMIT_SESSION_DEPTH + 2];
    const char *of[LIMIT_SESSION_DEPTH + 2];
    struct subagent subagent;
    bool is_below = session_subagent(&subagent, of, c->session);
    const struct question question = {
        .tool = c->request.tool,
        .client = c->client,
        .subagent = is_below ? &subagent : NULL,
        .argv = strv_view(&c->argv),
        .script = c->request.script,
        .failed = c->request.failed,
        .patch = c->request.work.run != NULL && c->look.access == NULL && c->argv.n > 1
                     ? c->argv.v[1]
                     : NULL,
        .keys = &c->request.keys,
        .access = c->look.access,
        .cwd = c->request.params.cwd,
        .env = strv_view(&c->request.params.env),
        .why = a->need.reason,
        .finding = a->finding,
        .justification = c->request.params.justification,
        .class = a->class,
        .sandbox = c->look.access != NULL ? &c->base : &c->turn.sandbox,
        .leaves_sandbox = (call_escalates(c) || c->request.failed != NULL) &&
                          sandbox_mode_is_enforced(c->turn.sandbox.mode),
        .input = inputs[c->request.input.kind],
        .is_root = geteuid() == 0,
        .asks_for_rights = a->asks_for_rights,
        .prefix = &a->prefix,
        .may_remember =
            c->look.access != NULL ? c->look.may_remember : a->class != APPROVAL_CLASS_CATASTROPHIC,
    };
    const struct review_question q = {
        .question = &question,
        .sessions = is_below ? sessions : NULL,
        .hold_ms = c->request.hold_ms,
        .asks_once = c->request.asks_once,
        .wake = on_review_wake,
        .arg = c,
    };

    session_chain(sessions, c->session);
    c->lifts_sandbox = question.leaves_sandbox;
    return by->ops->ask(by->review, &c->ticket, &q, err);
}

static void
deny(struct orch_call *c, const char *reason)
{
    struct sy_error why = {0};

    (void)sy_err_set(&why, SY_E_DENIED, "%s", reason);
    call_fail(c, EXEC_DENIED, &why);
}

/* Nobody is asked about what could not run: the sandbox is there before. false: the call has
 * failed. */
static bool
has_sandbox(struct orch_call *c)
{
    return session_review(c->session)->ops == NULL ||
           !sandbox_mode_is_enforced(c->turn.sandbox.mode) || call_has_entry(c);
}

static void
review_begin(struct orch_call *c, struct assessment *a)
{
    struct sy_error why = {0};
    struct sy_error err = {0};

    if (session_review(c->session)->ops == NULL) {
        requirement_refuse_unasked(&a->need);
        deny(c, a->need.reason);
        return;
    }
    if (ask(c, a, &why) != SY_E_OK) {
        (void)sy_err_set(&err, SY_E_DENIED, "a person has to approve it and can't be asked: %.170s",
                         why.msg);
        call_fail(c, EXEC_DENIED, &err);
        return;
    }
    /* Others must not wait for a person. */
    lock_leave(session_lock(c->session), c);
    c->state = ORCH_REVIEW;
}

/* Rules in a row; circles are found when they are read. */
#define STEERS_MAX 8

/* A rule knows a better command and says to run it: from now on the call is about that one. */
static enum sy_code
steer(struct orch_call *c, struct assessment *a, struct sy_error *err)
{
    char note[SY_ERR_MSG_MAX];
    SY_AUTO(buf_fini) struct buf words = {.max = 80};

    if (++c->n_steered > STEERS_MAX) {
        return sy_err_set(err, SY_E_CONFIG, "more than %u rules in a row steer to another command",
                          STEERS_MAX);
    }
    for (size_t i = 0; i < a->better.n; i++) {
        if (buf_addf(&words, "%s%s", i > 0 ? " " : "", a->better.v[i]) != SY_E_OK) {
            break; /* it is long: the begin of it names it */
        }
    }
    (void)snprintf(note, sizeof(note), "%.140s; run instead: %.80s", a->need.reason,
                   buf_view(&words));
    call_add_note(c, note);
    call_hooks_renew(c);
    return call_replace_command(c, &a->better) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

/* What is asked whatever the judge says. */
static void
tighten(struct orch_call *c, struct assessment *a)
{
    if (c->request.failed != NULL && a->need.kind != REQUIREMENT_FORBIDDEN) {
        a->need = (struct requirement){
            .kind = REQUIREMENT_NEEDS_APPROVAL,
            .cause = REQUIREMENT_BY_ESCALATION,
            .reason = "the sandbox refused what it needs; it would run again, outside the sandbox",
        };
    }
    call_hooks_judge(c, a);
}

static bool
can_ask(const struct orch_call *c)
{
    return session_review(c->session)->ops != NULL;
}

/* Are there hooks to be asked first? The call is judged anew after them: it may be another. */
static bool
begin_hooks(struct orch_call *c, const struct assessment *a)
{
    if (a->need.kind == REQUIREMENT_FORBIDDEN) {
        return false;
    }
    return call_hooks_begin(c, HOOK_PRE_EXEC, a) ||
           (a->need.kind == REQUIREMENT_NEEDS_APPROVAL && can_ask(c) &&
            call_hooks_begin(c, HOOK_PERMISSION_REQUEST, a));
}

/* True: it is another command by now, to be judged as if that had been sent. */
static bool
act_on(struct orch_call *c, struct assessment *a)
{
    struct sy_error err = {0};

    switch (a->need.kind) {
    case REQUIREMENT_SKIP:
        if (a->need.bypass_sandbox) {
            lift_sandbox(c);
        }
        c->state = ORCH_LOCK;
        return false;
    case REQUIREMENT_NEEDS_APPROVAL:
        if (can_ask(c) && call_hooks_allow(c, a)) {
            c->state = ORCH_LOCK;
        } else {
            review_begin(c, a);
        }
        return false;
    case REQUIREMENT_FORBIDDEN:
        break;
    }
    if (a->better.n == 0 || a->need.cause != REQUIREMENT_BY_RULE || c->request.work.run != NULL) {
        deny(c, a->need.reason);
        return false;
    }
    if (steer(c, a, &err) != SY_E_OK) {
        call_fail(c, EXEC_DENIED, &err);
        return false;
    }
    return true;
}

/* What a call asks for, once: hooks may lie between that and the question. True: it is known. */
static bool
look(struct orch_call *c)
{
    struct sy_error err = {0};
    enum sy_code rc = SY_E_OK;

    if (!call_has_entry(c)) {
        return false;
    }
    if (c->look.access != NULL) {
        return true;
    }
    rc = c->request.work.look(c->request.work.arg, c, &c->look, &err);
    if (rc == SY_E_OK && c->look.is_done) {
        call_fail(c, EXEC_EXITED, &err);
        return false;
    }
    if (rc == SY_E_OK) {
        rc = call_make_argv(c, &err);
    }
    if (rc != SY_E_OK) {
        call_fail(c, rc == SY_E_DENIED ? EXEC_DENIED : EXEC_FAILED, &err);
    }
    return rc == SY_E_OK;
}

/* A call that asks for something has said itself what. No hook answers for the person: it would
 * lift what the sandbox holds. */
static void
approve_look(struct orch_call *c)
{
    SY_AUTO(assessment_fini) struct assessment a = {.prefix = {.max = LIMIT_ARGV}};

    if (!look(c)) {
        return;
    }
    if (c->look.may_be_rule && strv_add_all(&a.prefix, strv_view(&c->argv)) != SY_E_OK) {
        struct sy_error err = {0};

        (void)sy_err_nomem(&err);
        call_fail(c, EXEC_FAILED, &err);
        return;
    }
    a.class = c->look.class;
    a.need = (struct requirement){.kind = REQUIREMENT_NEEDS_APPROVAL,
                                  .cause = REQUIREMENT_BY_ESCALATION};
    (void)snprintf(a.need.reason, sizeof(a.need.reason), "%s", c->look.why);
    call_hooks_judge(c, &a);
    if (a.need.kind == REQUIREMENT_FORBIDDEN) {
        deny(c, a.need.reason);
    } else if (!can_ask(c) || !call_hooks_begin(c, HOOK_PERMISSION_REQUEST, &a)) {
        review_begin(c, &a);
    }
}

/* True: once more. */
static bool
judge(struct orch_call *c)
{
    SY_AUTO(assessment_fini) struct assessment a = {0};
    struct sy_error err = {0};

    if (assess(c, &a, &err) != SY_E_OK) {
        call_fail(c, err.code == SY_E_CONFIG ? EXEC_DENIED : EXEC_FAILED, &err);
        return false;
    }
    tighten(c, &a);
    if (begin_hooks(c, &a)) {
        return false;
    }
    if (a.note[0] != '\0') {
        call_add_note(c, a.note);
    }
    if (c->request.work.run != NULL) {
        strv_fini(&a.prefix); /* a rule about commands would say nothing about files */
    }
    if (a.is_safe) {
        c->overlay = a.env;
        c->is_mutating = false;
    }
    return act_on(c, &a);
}

void
call_approve(struct orch_call *c)
{
    if (c->request.work.look != NULL) {
        approve_look(c);
        return;
    }
    if (c->request.work.run != NULL && !c->request.is_mutating) {
        c->state = ORCH_LOCK; /* it only looks, and tells what it would do */
        return;
    }
    if (!has_sandbox(c)) {
        return;
    }
    while (judge(c)) {
    }
}

/* A person's words, beside ours. */
#define REASON_BYTES 120U

/* What the agent is told instead of a result. */
static void
refuse(struct orch_call *c, const struct review_answer *a)
{
    struct sy_error err = {0};
    bool has_reason = a->reason[0] != '\0';
    int room = utf8_room(a->reason, REASON_BYTES);

    switch (a->outcome) {
    case REVIEW_DENIED:
        (void)sy_err_set(&err, SY_E_DENIED,
                         "a person denied it%s%.*s: don't try the same again or another way to "
                         "the same end, ask what to do instead",
                         has_reason ? ", saying: " : "", room, a->reason);
        break;
    case REVIEW_ABORTED:
        (void)sy_err_set(&err, SY_E_DENIED,
                         "a person denied it and ended the turn%s%.*s: stop, and wait for what "
                         "they say",
                         has_reason ? ", saying: " : "", room, a->reason);
        break;
    case REVIEW_TIMED_OUT:
        (void)sy_err_set(&err, SY_E_DENIED,
                         "nobody answered in time, which counts as no: go on without it, or ask "
                         "the person to watch for the question");
        break;
    case REVIEW_FAILED:
        (void)sy_err_set(&err, SY_E_DENIED, "its approval could not be had: %.190s", a->err.msg);
        break;
    case REVIEW_PENDING:
        (void)sy_err_set(&err, SY_E_DENIED,
                         "a person has to approve it first: tell them to run `shellyard approvals "
                         "approve %s`, then make the same call again",
                         a->id);
        call_fail(c, EXEC_PENDING, &err);
        return;
    case REVIEW_APPROVED:
        return;
    }
    call_fail(c, EXEC_DENIED, &err);
}

static void
tell_asked(struct orch_call *c, const char *id, const char *text)
{
    if (text == c->told || id[0] == '\0') {
        return;
    }
    bool is_first = c->told == NULL;

    c->told = text;
    if (is_first) {
        (void)snprintf(c->asked_id, sizeof(c->asked_id), "%s", id);
        call_emit_asked(c, id, text);
    } else {
        call_emit_commented(c, id, text);
    }
    if (c->request.on_asked != NULL) {
        c->request.on_asked(c->request.on_asked_arg, c, id, text);
    }
}

static void
tell_decided(struct orch_call *c, const struct review_answer *a)
{
    if (a->id[0] == '\0') {
        return; /* it was approved for the session, or could not be asked: no request */
    }
    if (c->told == NULL && !a->is_remembered) {
        /* Answered, or told as pending, before the call looked. */
        c->told = session_review(c->session)->ops->text(c->ticket);
        call_emit_asked(c, a->id, c->told);
    }
    if (a->outcome != REVIEW_PENDING) {
        call_emit_decided(c, a);
    }
}

/* The call ends before anybody has answered. */
static void
tell_cancelled(struct orch_call *c)
{
    struct review_answer a = {.word = "cancelled"};

    memcpy(a.id, c->asked_id, sizeof(a.id));
    call_emit_decided(c, &a);
}

void
call_review(struct orch_call *c)
{
    const struct review_ops *ops = session_review(c->session)->ops;
    const struct review_answer *a = ops->answer(c->ticket);

    if (a == NULL) {
        tell_asked(c, ops->id(c->ticket), ops->text(c->ticket));
        return;
    }
    c->output.review = a;
    tell_decided(c, a);
    if (a->outcome != REVIEW_APPROVED) {
        refuse(c, a);
        return;
    }
    if (c->lifts_sandbox) {
        lift_sandbox(c);
    }
    c->state = ORCH_LOCK;
}

void
call_leave_review(struct orch_call *c)
{
    if (c->ticket != NULL) {
        if (c->told != NULL && c->output.review == NULL) {
            tell_cancelled(c);
        }
        session_review(c->session)->ops->leave(c->ticket);
        c->ticket = NULL;
        c->output.review = NULL;
    }
}

void
orch_reply(struct orch_call *c, const struct review_reply *reply)
{
    if (c->state == ORCH_REVIEW) {
        session_review(c->session)->ops->reply(c->ticket, reply);
    }
}

void
orch_give_up(struct orch_call *c)
{
    c->request.hold_ms = 0;
    if (c->state == ORCH_REVIEW) {
        session_review(c->session)->ops->give_up(c->ticket);
    }
}
