/* What is typed to a running command. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "orchestrator/call_internal.h"

static bool
is_refused(const struct requirement *need)
{
    switch (need->kind) {
    case REQUIREMENT_SKIP:
        return false;
    case REQUIREMENT_FORBIDDEN:
        return true;
    case REQUIREMENT_NEEDS_APPROVAL:
        break;
    }
    return need->cause == REQUIREMENT_BY_RULE || need->cause == REQUIREMENT_BY_CLASS;
}

static enum sy_code
judge(struct orch_call *c, struct assessment *ret, const char *line, struct sy_error *err)
{
    const struct assess_by *judge = session_judge(c->session);
    char *argv[] = {mem_unconst("bash"), mem_unconst("-c"), mem_unconst(line), NULL};
    SY_AUTO(strv_fini) struct strv roots = {.max = LIMIT_ROOTS + 1};

    if (strv_add(&roots, c->turn.sandbox.cwd) != SY_E_OK ||
        strv_add_all(&roots, strv_view(&c->turn.sandbox.writable_roots)) != SY_E_OK) {
        return sy_err_nomem(err);
    }

    const struct assess_input in = {
        .argv = argv,
        .typed_to = c->reader,
        .lacks_comments = c->lacks_comments,
        .cwd = c->request.params.cwd, /* where it is by now nobody knows */
        .path_list = strv_env_get(&c->env, "PATH"),
        .roots = strv_view(&roots),
        .policy = c->turn.approval,
        .granular = c->turn.granular,
        .mode = c->lifts_sandbox ? SANDBOX_DANGER_FULL_ACCESS : c->turn.sandbox.mode,
    };

    return judge->fn(judge->arg, ret, &in, err);
}

enum sy_code
orch_judge_typed(struct orch_call *c, const char *line, bool *ret_is_open, struct sy_error *err)
{
    struct assessment a = {0};
    enum sy_code rc = SY_E_OK;

    *ret_is_open = false;
    if (session_judge(c->session)->fn == NULL) {
        return SY_E_OK;
    }
    c->lacks_comments = c->lacks_comments || strstr(line, "interactive_comments") != NULL;
    rc = judge(c, &a, line, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    *ret_is_open = a.is_unreadable;
    if (is_refused(&a.need)) {
        /* What was found names the words; the reason of a class does not. */
        const bool is_found = a.need.cause == REQUIREMENT_BY_CLASS && a.finding[0] != '\0';

        rc = sy_err_set(err, SY_E_DENIED, "not typed: %.160s%s",
                        is_found ? a.finding : a.need.reason,
                        a.need.kind == REQUIREMENT_NEEDS_APPROVAL
                            ? "; run it by a call of its own, so that a person can be asked"
                            : "");
    }
    assessment_fini(&a);
    return rc;
}

enum sy_code
orch_judge_pieces(struct orch_call *c, const char *text, size_t n, enum dialect_cut cut,
                  bool *ret_is_open, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf pieces = {.max = (size_t)LIMIT_TYPED_LINE * 2 + 2};

    *ret_is_open = false;
    if (dialect_pieces(&pieces, text, n, cut) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return pieces.len > 0 ? orch_judge_typed(c, buf_view(&pieces), ret_is_open, err) : SY_E_OK;
}

void
orch_set_reader(struct orch_call *c, const char *shell)
{
    const size_t n = strlen(shell) < sizeof(c->reader) ? strlen(shell) : 0;

    memcpy(c->reader, shell, n);
    c->reader[n] = '\0';
}
