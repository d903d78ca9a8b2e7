#include "tools/access_call.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "approval/binding.h"
#include "approval/question_access.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "guard/guard.h"
#include "orchestrator/network.h"
#include "proxy/allow.h"
#include "sandbox/delta.h"
#include "tools/access_world.h"

enum access_state {
    ACCESS_ASKED,   /* not in force: refused, or waiting */
    ACCESS_ALREADY, /* nothing had to be asked */
    ACCESS_APPLIED
};

/* A request on its way: owned by the request, looked at by the answer. */
struct access_call {
    enum access_kind kind;
    char *object;
    enum grant_scope wish;
    enum grant_scope granted;
    const struct config *config; /* outlives the call */
    char *const *environ_list;   /* the session's */
    struct access_found found;
    struct buf json; /* for the person */
    enum access_state state;
    char rule[160]; /* of the sandbox, that allows it */
};

static const char *const scope_names[] = {
    [GRANT_ONCE] = "once",
    [GRANT_SESSION] = "session",
    [GRANT_RULE] = "rule",
};

const char access_call_schema[] =
    "{\"type\":\"object\",\"required\":[\"status\",\"output\"],"
    "\"properties\":{"
    "\"status\":{\"type\":\"string\"},"
    "\"output\":{\"type\":\"string\"},"
    "\"applied\":{\"type\":\"boolean\",\"description\":\"it is in force now\"},"
    "\"scope\":{\"type\":\"string\"},"
    "\"approval\":{\"type\":\"object\"}}}";

const char *
access_call_scope_name(enum grant_scope scope)
{
    return scope_names[scope];
}

static void
access_call_free(void *arg)
{
    struct access_call *a = arg;

    if (a == NULL) {
        return;
    }
    mem_free(a->object);
    access_found_fini(&a->found);
    buf_fini(&a->json);
    mem_free(a);
}

/* By the list itself: in a network of its own a command reaches its own loopback, and that is not
 * what was asked for. */
static enum sy_code
judge_host(bool *ret, char rule[160], const struct sandbox_policy *p, const char *entry,
           struct sy_error *err)
{
    static const uint16_t web[] = {80, 443};
    struct allow_list *list = NULL;
    size_t n = 0;
    bool is_local = allow_entry_is_local(entry, &n);
    struct judgement j = {0};
    struct host h;
    uint16_t port = 0;
    bool has_port = false;
    enum sy_code rc = SY_E_OK;

    *ret = sandbox_policy_has_network(p);
    (void)snprintf(rule, 160, "network access is on");
    if (*ret || p->network_allow.n == 0) {
        return SY_E_OK;
    }
    rc = host_parse_authority(&h, &port, &has_port, entry, n, err);
    if (rc == SY_E_OK) {
        rc = allow_new(&list, (const char *const *)strv_view(&p->network_allow), p->network_allow.n,
                       err);
    }
    *ret = rc == SY_E_OK;
    for (size_t i = 0; i < (has_port ? 1U : 2U) && *ret; i++) {
        allow_judge_host(list, &h, has_port ? port : web[i], &j);
        if (j.is_allowed && h.kind == HOST_ADDRESS) {
            (void)allow_judge_address(list, &h, has_port ? port : web[i], &h.address, &j);
        }
        /* A name that may resolve to this machine is more than one that may not. */
        *ret = j.is_allowed && (h.kind == HOST_ADDRESS || j.is_local || !is_local);
    }
    if (*ret) {
        (void)snprintf(rule, 160, "network.allow: %.120s", j.rule != NULL ? j.rule : h.text);
    }
    allow_free(list);
    return rc;
}

/* Would a command be let do it? */
static enum sy_code
is_allowed(bool *ret, struct access_call *a, const struct sandbox_policy *policy,
           const struct sandbox_plan *plan, struct sy_error *err)
{
    bool is_path = a->kind != ACCESS_CONNECT;
    struct sandbox_explanation e = {0};
    enum sandbox_operation op = a->kind == ACCESS_WRITE ? OPERATION_WRITE : OPERATION_READ;
    enum sy_code rc = SY_E_OK;

    if (!is_path) {
        rc = judge_host(ret, a->rule, policy, a->found.access.object, err);
        *ret = *ret && sandbox_plan_network(plan) != NETWORK_OFF;
        return rc;
    }
    rc = sandbox_explain(&e, plan, op, a->found.access.object, err);
    *ret = rc == SY_E_OK && e.is_allowed;
    (void)snprintf(a->rule, sizeof(a->rule), "%s", e.rule);
    return rc;
}

/* What hides it, one default after the other; what a person has hidden is not ours to show. */
static enum sy_code
find_lifts(struct access_call *a, struct orch_call *call, struct sy_error *err)
{
    const struct sandbox_plan *plan = orch_plan(call);
    bool is_free = false;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < LIMIT_DENY_ROUNDS && !is_free && rc == SY_E_OK; i++) {
        SY_AUTO(sandbox_policy_fini) struct sandbox_policy wide = {0};
        SY_AUTO(buf_fini) struct buf rule = {.max = (size_t)LIMIT_PATH * 2};
        bool is_default = false;

        rc = sandbox_explain_hider(&rule, &is_default, plan, a->found.access.object, err);
        if (rc == SY_E_NOTFOUND) {
            return sy_err_set(err, SY_E_DENIED, "nothing that can be taken back hides it");
        }
        if (rc == SY_E_OK && !is_default) {
            return sy_err_set(err, SY_E_DENIED,
                              "sandbox.deny_read names it (%.100s): only a person changes that, in "
                              "the configuration",
                              buf_view(&rule));
        }
        if (rc == SY_E_OK && strv_add(&a->found.access.lifts, buf_view(&rule)) != SY_E_OK) {
            rc = sy_err_nomem(err);
        }
        if (rc == SY_E_OK) {
            rc = orch_next_policy(call, &wide, &a->found.access, err);
        }
        if (rc == SY_E_OK) {
            rc = orch_try_policy(call, &wide, &plan, err);
        }
        if (rc == SY_E_OK) {
            rc = is_allowed(&is_free, a, &wide, plan, err);
        }
    }
    return rc == SY_E_OK && !is_free
               ? sy_err_set(err, SY_E_DENIED, "it is hidden in more ways than can be taken back")
               : rc;
}

/* Does the policy let anybody be asked? Leaving the sandbox a little is asked about as leaving it.
 */
static enum sy_code
check_policy(const struct orch_call *call, struct sy_error *err)
{
    const struct turn_context *turn = orch_turn(call);

    if (approval_may_ask(turn->approval, &turn->granular, REQUIREMENT_BY_ESCALATION)) {
        return SY_E_OK;
    }
    return sy_err_set(err, SY_E_DENIED, "%s",
                      turn->approval == APPROVAL_NEVER
                          ? "approval.policy is never: nobody can be asked for access; go on "
                            "without it"
                          : "approval.policy is granular, and nobody may be asked about the "
                            "sandbox; go on without it");
}

static enum sy_code
check_mode(const struct access_call *a, const struct sandbox_policy *base, struct sy_error *err)
{
    return a->kind == ACCESS_WRITE && base->mode == SANDBOX_READ_ONLY
               ? sy_err_set(err, SY_E_DENIED,
                            "the sandbox is read-only: writing is for a person to allow, by "
                            "sandbox.mode: workspace-write")
               : SY_E_OK;
}

/* What an administrator requires binds whoever would answer too. */
static enum sy_code
check_kept(const struct access_call *a, const struct sandbox_policy *base, struct sy_error *err)
{
    const char *key = access_kept_by(base, a->kind);

    return key == NULL
               ? SY_E_OK
               : sy_err_set(err, SY_E_DENIED,
                            "an administrator requires %s: nobody can be asked to widen it", key);
}

/* Would it be of use? What hides or protects the object may be left in a wider sandbox too. */
static enum sy_code
check_use(struct access_call *a, const struct sandbox_policy *wide, const struct sandbox_plan *plan,
          struct sy_error *err)
{
    struct place_shown_path shown;
    bool is_free = false;
    enum sy_code rc = is_allowed(&is_free, a, wide, plan, err);

    if (rc != SY_E_OK || is_free) {
        return rc;
    }
    return sy_err_set(err, SY_E_DENIED,
                      "nobody is asked to %s %.80s: the sandbox would refuse it all the same "
                      "(%.110s)",
                      access_kind_name(a->kind), place_visible_path(&shown, a->found.access.object),
                      a->rule);
}

/* The policy as it would be, and what is new in it. */
static enum sy_code
write_question(struct access_call *a, struct orch_call *call, const struct access_world *world,
               const char *warning, struct sy_error *err)
{
    SY_AUTO(sandbox_policy_fini) struct sandbox_policy now = {0};
    SY_AUTO(sandbox_policy_fini) struct sandbox_policy wide = {0};
    SY_AUTO(sandbox_delta_fini) struct sandbox_delta delta = {0};
    const struct sandbox_policy *base = orch_base_policy(call);
    const struct sandbox_plan *plan = NULL;
    enum sy_code rc = orch_next_policy(call, &now, NULL, err);

    if (rc == SY_E_OK) {
        rc = orch_next_policy(call, &wide, &a->found.access, err);
    }
    /* What can't be made is not asked about. */
    if (rc == SY_E_OK) {
        rc = orch_try_policy(call, &wide, &plan, err);
    }
    if (rc == SY_E_OK && a->kind == ACCESS_CONNECT &&
        (sandbox_plan_network(plan) != NETWORK_ALLOW_LIST || !network_is_built())) {
        rc = sy_err_set(err, SY_E_DENIED,
                        "no single host can be opened here: the network proxy can't be had");
    }
    if (rc == SY_E_OK) {
        rc = check_use(a, &wide, plan, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const struct delta_input in = {
        .before = &now,
        .after = &wide,
        .has_mounts = sandbox_plan_tier(plan) == TIER_FULL,
        .scopes_unix = sandbox_plan_feature(plan, FEATURE_UNIX_PATH) == FEATURE_ENFORCED,
        .protected = world->protected,
    };
    const struct access_question q = {
        .access = &a->found.access,
        .asked = buf_view(&a->found.asked),
        .scope = access_call_scope_name(a->wish),
        .workspace = base->cwd,
        .mode = sandbox_mode_name(base->mode),
        .warning = warning,
        .delta = &delta,
    };

    rc = sandbox_delta_new(&delta, &in);
    if (rc == SY_E_OK) {
        rc = question_access_write(&a->json, &q);
    }
    return rc == SY_E_LIMIT ? sy_err_set(err, SY_E_DENIED, "it is too long to be shown to a person")
           : rc != SY_E_OK  ? sy_err_nomem(err)
                            : rc;
}

/* The person's question, by what is new. */
static enum sy_code
ask(struct access_call *a, struct orch_call *call, struct exec_look *ret, struct sy_error *err)
{
    SY_AUTO(access_surroundings_fini) struct access_surroundings around = {0};
    struct access_verdict verdict;
    enum sy_code rc = check_mode(a, orch_base_policy(call), err);

    if (rc == SY_E_OK) {
        rc = check_kept(a, orch_base_policy(call), err);
    }
    if (rc == SY_E_OK) {
        rc = access_surroundings_find(&around, a->config, orch_base_policy(call), a->environ_list,
                                      err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    access_judge(&verdict, &a->found.access, &around.world);
    if (verdict.weight == ACCESS_REFUSED) {
        struct place_shown_path shown;

        return sy_err_set(err, SY_E_DENIED, "%s of %s is granted to nobody: %.130s",
                          access_kind_name(a->kind),
                          place_visible_path(&shown, a->found.access.object), verdict.why);
    }
    rc = check_policy(call, err);
    if (rc == SY_E_OK) {
        rc = write_question(a, call, &around.world, verdict.why, err);
    }
    if (rc == SY_E_OK) {
        *ret = (struct exec_look){
            .access = buf_view(&a->json),
            .why = "the agent asks for a wider sandbox",
            .may_remember = true,
            .may_be_rule =
                verdict.weight == ACCESS_PLAIN && orch_may_be_rule(call, &a->found.access),
            .class =
                verdict.weight == ACCESS_PLAIN ? APPROVAL_CLASS_OTHER : APPROVAL_CLASS_DANGEROUS,
        };
    }
    return rc;
}

/* Nobody is asked for what is allowed. */
static enum sy_code
look_at_now(bool *ret, struct access_call *a, struct orch_call *call, struct sy_error *err)
{
    bool is_held = false;
    struct place_shown_path shown;
    enum sy_code rc = is_allowed(ret, a, &orch_turn(call)->sandbox, orch_plan(call), err);

    if (rc == SY_E_OK && *ret && a->kind == ACCESS_WRITE) {
        rc = orch_is_protected(&is_held, call, a->found.access.object, err);
    }
    if (rc == SY_E_OK && is_held) {
        return sy_err_set(err, SY_E_DENIED,
                          "%s is protected, which no answer lifts: only sandbox.unprotected_names "
                          "does",
                          place_visible_path(&shown, a->found.access.object));
    }
    return rc;
}

static enum sy_code
look(void *arg, struct orch_call *call, struct exec_look *ret, struct sy_error *err)
{
    struct access_call *a = arg;
    const char *path_list = NULL;
    bool is_free = false;
    enum sy_code rc = SY_E_OK;

    for (char *const *v = a->environ_list; *v != NULL; v++) {
        path_list = str_starts(*v, "PATH=") ? *v + strlen("PATH=") : path_list;
    }
    rc = access_find(&a->found, a->kind, a->object, path_list, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (orch_plan(call) == NULL || !sandbox_mode_is_enforced(orch_turn(call)->sandbox.mode)) {
        is_free = true;
        (void)snprintf(a->rule, sizeof(a->rule), "%s: nothing is enforced here",
                       sandbox_mode_name(orch_turn(call)->sandbox.mode));
    } else {
        rc = look_at_now(&is_free, a, call, err);
    }
    if (rc == SY_E_OK && is_free) {
        a->state = ACCESS_ALREADY;
        *ret = (struct exec_look){.is_done = true};
        return SY_E_OK;
    }
    if (rc == SY_E_OK && (a->kind == ACCESS_READ || a->kind == ACCESS_RUN)) {
        rc = find_lifts(a, call, err);
    }
    return rc == SY_E_OK ? ask(a, call, ret, err) : rc;
}

static enum grant_scope
scope_of(const struct review_answer *answer)
{
    switch (answer->status) {
    case STORE_APPROVED_FOR_SESSION:
        return GRANT_SESSION;
    case STORE_APPROVED_WITH_RULE:
        return GRANT_RULE;
    case STORE_PENDING:
    case STORE_APPROVED:
    case STORE_DENIED:
    case STORE_ABORTED:
    case STORE_TIMED_OUT:
    case STORE_CANCELLED:
        break;
    }
    return GRANT_ONCE;
}

/* A person said yes: it is applied once a sandbox that allows it is there. */
static enum sy_code
run(void *arg, struct orch_call *call, struct sy_error *err)
{
    struct access_call *a = arg;
    const struct review_answer *answer = orch_output(call)->review;
    SY_AUTO(sandbox_policy_fini) struct sandbox_policy wide = {0};
    const struct sandbox_plan *plan = NULL;
    bool is_free = false;
    enum sy_code rc = SY_E_OK;

    if (answer == NULL) {
        return sy_err_set(err, SY_E_DENIED, "nobody has approved it");
    }
    if (!access_find_is_same(&a->found)) {
        return sy_err_set(err, SY_E_DENIED,
                          "it was approved and is not applied: what stands there now is another "
                          "one than the person saw; ask again");
    }
    rc = orch_next_policy(call, &wide, &a->found.access, err);
    if (rc == SY_E_OK) {
        rc = orch_try_policy(call, &wide, &plan, err);
    }
    if (rc == SY_E_OK) {
        rc = is_allowed(&is_free, a, &wide, plan, err);
    }
    if (rc == SY_E_OK && !is_free) {
        rc = sy_err_set(err, SY_E_DENIED,
                        "it was approved and is not applied: the sandbox would refuse it all the "
                        "same (%.120s)",
                        a->rule);
    }
    if (rc == SY_E_OK) {
        a->granted = scope_of(answer);
        rc = orch_grant(call, &a->found.access, a->granted, err);
    }
    a->state = rc == SY_E_OK ? ACCESS_APPLIED : ACCESS_ASKED;
    return rc;
}

/* What it is bound to, besides the request's own words. */
static enum sy_code
fill_request(struct exec_request *request, const struct access_call *a,
             const struct access_order *order, const struct sandbox_policy *policy)
{
    struct strv *argv = &request->params.argv;
    char bound[BINDING_HEX];
    enum sy_code rc = SY_E_OK;

    argv->max = 4;
    request->keys.max = 1;
    binding_policy(bound, policy);
    request->params.cwd = mem_strdup(policy->cwd);
    request->params.justification = mem_strdup(order->justification);
    if (request->params.cwd == NULL || request->params.justification == NULL) {
        return SY_E_NOMEM;
    }
    rc = strv_add(argv, "request_access");
    if (rc == SY_E_OK) {
        rc = strv_add(argv, access_kind_name(a->kind));
    }
    if (rc == SY_E_OK) {
        rc = strv_add(argv, a->object);
    }
    if (rc == SY_E_OK) {
        rc = strv_add(argv, access_call_scope_name(a->wish));
    }
    return rc == SY_E_OK ? strv_addf(&request->keys, "%s\n%s\n%s", access_kind_name(a->kind),
                                     a->object, bound)
                         : rc;
}

enum sy_code
access_call_submit(struct tool_call *call, const struct invocation *inv,
                   const struct access_order *order, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {.tool = "request_access"};
    struct access_call *a = mem_alloc_zero(1, sizeof(*a));

    if (a == NULL) {
        return sy_err_nomem(err);
    }
    request.work = (struct exec_work){.look = look, .run = run, .free = access_call_free, .arg = a};
    a->kind = order->kind;
    a->wish = order->wish;
    a->config = tool_context_config(inv->context);
    a->environ_list = session_environ(tool_context_session(inv->context));
    a->json.max = LIMIT_STORE_TEXT / 2;
    a->object = mem_strdup(order->object);
    if (a->object == NULL || fill_request(&request, a, order, &inv->turn->sandbox) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    call->access = a;
    return tool_submit(call, &request, request_budget(inv), err);
}

static enum sy_code
write_text(struct buf *out, const struct access_call *a, const struct exec_output *output)
{
    static const char *const holds[] = {
        [GRANT_ONCE] = "for the next command that begins, and that one alone",
        [GRANT_SESSION] = "for all commands of this session under this policy",
        [GRANT_RULE] = "for this workspace, from now on",
    };
    const char *object = a->found.access.object != NULL ? a->found.access.object : a->object;

    if (a->state == ACCESS_ALREADY) {
        return buf_addf(out, "Already allowed: %s %s (%s). Nobody was asked.\n",
                        access_kind_name(a->kind), object, a->rule);
    }
    if (a->state == ACCESS_APPLIED) {
        return buf_addf(out, "Applied: %s %s, %s.\n", access_kind_name(a->kind), object,
                        holds[a->granted]);
    }
    return buf_addf(out, "Not applied: %s %s: %s\n", access_kind_name(a->kind), object,
                    output->err.msg);
}

static enum sy_code
write_structured(struct tool_output *ret, const struct access_call *a,
                 const struct exec_output *output)
{
    struct jw w = {.out = &ret->structured};

    result_write_first(&w, ret, output);
    jw_key_bool(&w, "applied", a->state == ACCESS_APPLIED);
    if (a->state == ACCESS_ALREADY) {
        jw_key_bool(&w, "already_allowed", true);
    }
    if (a->state == ACCESS_APPLIED) {
        jw_key_str(&w, "scope", access_call_scope_name(a->granted));
    }
    if (a->json.len > 0) {
        jw_key(&w, "access");
        jw_raw(&w, buf_view(&a->json), a->json.len);
    }
    result_write_review(&w, output->review);
    result_write_last(&w, output);
    return jw_done(&w);
}

enum sy_code
access_call_result(struct tool_output *ret, const struct tool_call *call,
                   const struct exec_output *output)
{
    const struct access_call *a = call->access;
    size_t max = (a->json.len + (size_t)LIMIT_PATH * 4 + 65536) * 8;

    result_begin(ret, output, max);

    enum sy_code rc = write_text(&ret->text, a, output);

    if (rc == SY_E_OK) {
        rc = write_structured(ret, a, output);
    }
    return result_end(ret, rc);
}
