#include <string.h>

#include "base/mem.h"
#include "orchestrator/orchestrator.h"

void
turn_context_fini(struct turn_context *t)
{
    mem_free(t->cwd);
    t->cwd = NULL;
    sandbox_policy_fini(&t->sandbox);
    env_policy_fini(&t->env);
}

static enum sy_code
copy_list(struct strv *ret, const struct strv *from)
{
    *ret = (struct strv){.max = from->max};
    return strv_add_all(ret, strv_view(from));
}

enum sy_code
turn_context_copy(struct turn_context *ret, const struct turn_context *from)
{
    *ret = (struct turn_context){
        .cwd = mem_strdup(from->cwd),
        .approval = from->approval,
        .asks_for_all = from->asks_for_all,
        .granular = from->granular,
        .env = {.inherit = from->env.inherit, .default_excludes = from->env.default_excludes},
        .limits = from->limits,
        .sandbox_required = from->sandbox_required,
    };

    enum sy_code rc = ret->cwd == NULL ? SY_E_NOMEM : SY_E_OK;

    if (rc == SY_E_OK) {
        rc = sandbox_policy_copy(&ret->sandbox, &from->sandbox);
    }
    if (rc == SY_E_OK) {
        rc = copy_list(&ret->env.exclude, &from->env.exclude);
    }
    if (rc == SY_E_OK) {
        rc = copy_list(&ret->env.set, &from->env.set);
    }
    if (rc == SY_E_OK) {
        rc = copy_list(&ret->env.include_only, &from->env.include_only);
    }
    if (rc != SY_E_OK) {
        turn_context_fini(ret);
    }
    return rc;
}

void
exec_request_fini(struct exec_request *r)
{
    exec_params_fini(&r->params);
    if (r->work.free != NULL) {
        r->work.free(r->work.arg);
    }
    r->work = (struct exec_work){0};
    strv_fini(&r->keys);
    strv_fini(&r->prefix);
    mem_free(r->script);
    mem_free(r->failed);
    r->failed = NULL;
    mem_free(r->call_id);
    mem_free(r->turn_id);
    r->script = NULL;
    r->call_id = NULL;
    r->turn_id = NULL;
}
