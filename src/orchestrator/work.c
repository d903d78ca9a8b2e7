/* What calls without a command may touch. */
#include <stdio.h>

#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
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

static bool
has_policy(const struct orch_call *c)
{
    return c->entry->plan != NULL && sandbox_mode_is_enforced(c->entry->policy.mode);
}

/* `rule` and `fix` may be "": not known, none. */
static enum sy_code
add_denial(struct orch_call *c, enum sandbox_operation op, const char *path, const char *rule,
           const char *fix)
{
    const struct denial d = {
        .layer = DENIAL_POLICY,
        .confidence = DENIAL_EXACT,
        .operation = sandbox_operation_name(op),
        .object = mem_unconst(path),
        .rule = rule[0] != '\0' ? mem_unconst(rule) : NULL,
        .fix = fix[0] != '\0' ? mem_unconst(fix) : NULL,
    };

    return denial_add(&c->output.denials, &d);
}

/* What the policy says, where it can be found out; else that it allows it, by no rule. */
static enum sy_code
explain(struct sandbox_explanation *ret, const struct orch_call *c, enum sandbox_operation op,
        const char *path)
{
    enum sy_code rc = sandbox_explain(ret, c->entry->plan, op, path, NULL);

    if (rc != SY_E_OK) {
        ret->is_allowed = true;
        ret->rule[0] = '\0';
        ret->fix[0] = '\0';
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

/*
 * The configuration that would let the work make this name. A file by itself as a root would not
 * do: another takes its place, so its directory is what has to be writable.
 */
static enum sy_code
explain_directory(struct sandbox_explanation *ret, const struct orch_call *c, const char *path)
{
    size_t len = (size_t)(path_base(path) - path);
    SY_AUTO(mem_free_charp) char *dir = mem_strndup(path, len > 1 ? len - 1 : len);

    return dir != NULL ? explain(ret, c, OPERATION_WRITE, dir) : SY_E_NOMEM;
}

enum sy_code
orch_refuse_file(struct orch_call *c, enum sandbox_operation op, const char *path,
                 struct sy_error *err)
{
    struct sandbox_explanation e;
    struct sandbox_explanation dir;
    char rule[sizeof(e.rule) + 32];
    enum sy_code rc = SY_E_OK;

    if (!has_policy(c)) {
        return SY_E_OK;
    }
    rc = explain(&e, c, op, path);
    if (rc == SY_E_OK) {
        rc = explain_directory(&dir, c, path);
    }
    if (rc == SY_E_OK) {
        /* What commands may write and a patch may not is what does not last. */
        (void)snprintf(rule, sizeof(rule), "%s%s",
                       e.is_allowed && e.rule[0] != '\0' ? "no place for patches: " : "", e.rule);
        rc = add_denial(c, op, path, rule, dir.is_allowed ? "" : dir.fix);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

bool
orch_may_read(const struct orch_call *c, const char *path)
{
    struct sandbox_explanation e;

    return !has_policy(c) ||
           (sandbox_explain(&e, c->entry->plan, OPERATION_READ, path, NULL) == SY_E_OK &&
            e.is_allowed);
}

static enum sy_code
judge_by_policy(struct orch_call *c, enum sandbox_operation op, const char *path,
                struct sy_error *err)
{
    struct sandbox_explanation e;
    struct place_shown_path shown;
    enum sy_code rc = SY_E_OK;

    if (!has_policy(c)) {
        return SY_E_OK;
    }
    rc = sandbox_explain(&e, c->entry->plan, op, path, err);
    if (rc != SY_E_OK || e.is_allowed) {
        return rc;
    }
    if (add_denial(c, op, path, e.rule, e.fix) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_DENIED, "%s of %s is refused: %.80s", sandbox_operation_name(op),
                      place_visible_path(&shown, path), e.rule);
}

enum sy_code
orch_judge_file(struct orch_call *c, enum sandbox_operation op, const char *path, char *const *all,
                struct sy_error *err)
{
    bool is_forbidden = false;
    struct guard_finding found = {
        .verdict = GUARD_LEFT,
        .name = GUARD_GIT,
        .operation = sandbox_operation_name(op),
        .path = mem_unconst(path),
    };
    struct place_shown_path shown;
    enum sy_code rc = judge_by_policy(c, op, path, err);

    if (rc != SY_E_OK || op == OPERATION_READ || c->entry->guard == NULL) {
        return rc;
    }
    rc = guard_forbids(&is_forbidden, &found.name, c->entry->guard, path, all);
    if (rc == SY_E_OK && is_forbidden) {
        rc = guard_finding_denial(&c->output.denials, &found);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return is_forbidden ? sy_err_set(err, SY_E_DENIED,
                                     "%s is protected (%s); a person lifts that by "
                                     "sandbox.unprotected_names: [%s]",
                                     place_visible_path(&shown, path), guard_name_what(found.name),
                                     guard_name_text(found.name))
                        : SY_E_OK;
}
