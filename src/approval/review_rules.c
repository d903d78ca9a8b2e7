#include <string.h>

#include "approval/question.h"
#include "approval/question_access.h"
#include "approval/review_internal.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/access.h"

/* What an answer decides, and the rules that answers made. */

enum sy_code
review_decide(struct store_answer *ret, struct store *st, const char *id,
              const struct review_reply *reply, struct sy_error *err)
{
    struct store_request q = {0};
    SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_ARGV};
    SY_AUTO(question_access_fini) struct question_access access = {0};
    bool may_remember = false;
    bool leaves = false;
    enum sy_code rc = store_request_get(&q, st, id, err);

    if (rc == SY_E_OK) {
        rc = question_prefix(&prefix, &may_remember, &leaves, q.text, err);
    }
    if (rc == SY_E_OK) {
        rc = question_access_read(&access, q.text, err);
    }
    store_request_fini(&q);
    if (rc == SY_E_OK && reply->status == STORE_APPROVED_FOR_SESSION && !may_remember) {
        rc = sy_err_set(err, SY_E_ARG, "this can't be approved for the session, only once");
    }
    if (rc == SY_E_OK && reply->status == STORE_APPROVED_WITH_RULE && prefix.n == 0) {
        rc = sy_err_set(err, SY_E_ARG, "no rule can be made of this command: approve it without");
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    bool makes_rule = reply->status == STORE_APPROVED_WITH_RULE;
    const struct store_access_new made = {
        .kind = access.kind,
        .object = access.object,
        .workspace = access.workspace,
        .mode = access.mode,
    };
    const struct store_decision d = {
        .id = id,
        .status = reply->status,
        .reason = reply->reason,
        .decided_by = reply->decided_by,
        .rule = makes_rule && access.kind == NULL ? &prefix : NULL,
        .rule_lifts_sandbox = leaves,
        .access = makes_rule && access.kind != NULL ? &made : NULL,
    };

    return store_request_decide(ret, st, &d, err);
}

static enum sy_code
add_rule(struct rules *into, const struct store_rule *from)
{
    struct rule rule = {
        .decision = RULE_ALLOW,
        .lifts_sandbox = from->lifts_sandbox,
        .at = {.name = "an answer"},
        .programs = {.max = 1},
        .cwds = {.max = 1},
        .env = {.max = 1},
        .steer = {.max = 1},
    };
    enum sy_code rc = strv_add(&rule.programs, from->prefix.v[0]);

    rule.args = mem_alloc_zero(from->prefix.n, sizeof(*rule.args));
    if (rule.args == NULL) {
        rc = SY_E_NOMEM;
    }
    for (size_t i = 1; i < from->prefix.n && rc == SY_E_OK; i++) {
        rule.args[i - 1].max = 1;
        rule.args_n = i;
        rc = strv_add(&rule.args[i - 1], from->prefix.v[i]);
    }
    if (rc == SY_E_OK) {
        rc = rules_add(into, &rule);
    }
    rule_fini(&rule);
    return rc;
}

bool
review_has_reader(struct review *r, struct sy_error *err)
{
    return (r->reader != NULL || store_exists(r->state_dir)) &&
           review_open_reader(r, err) == SY_E_OK;
}

enum sy_code
review_rules_version(void *arg, uint64_t *ret, struct sy_error *err)
{
    struct review *r = arg;
    struct sy_error why = {0};

    *ret = 0;
    if (!review_has_reader(r, &why)) {
        return why.code == SY_E_OK ? SY_E_OK : sy_err_set(err, why.code, "%s", why.msg);
    }
    return store_version(ret, r->reader, err);
}

enum sy_code
review_rules_read(void *arg, struct rules *into, struct sy_error *err)
{
    struct review *r = arg;
    struct store_rules list = {0};
    struct sy_error why = {0};
    enum sy_code rc = SY_E_OK;

    if (!review_has_reader(r, &why)) {
        return why.code == SY_E_OK ? SY_E_OK : sy_err_set(err, why.code, "%s", why.msg);
    }
    rc = store_rules_get(&list, r->reader, err);
    for (size_t i = 0; i < list.n && rc == SY_E_OK; i++) {
        rc = add_rule(into, &list.v[i]);
        if (rc != SY_E_OK) {
            (void)sy_err_set(err, rc, "the rules made by answers: %s", sy_code_text(rc));
        }
    }
    store_rules_fini(&list);
    return rc;
}
