#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/deny_internal.h"
#include "sandbox/linux/ready.h"

enum sy_code
ready_deny_roots(struct strv *ret, const struct sandbox_plan *plan, const struct walk *walks)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < plan->n_rules && rc == SY_E_OK; i++) {
        if (plan->rules[i].origin != ORIGIN_DEVICE && walks[i].missing_errno == 0) {
            rc = strv_add(ret, buf_view(&walks[i].path));
        }
    }
    return rc;
}

struct deny_request
deny_request_of(const struct sandbox_plan *plan, const struct strv *roots)
{
    return (struct deny_request){
        .patterns = &plan->deny_read,
        .homes = &plan->deny_homes,
        .allow_read = &plan->allow_read,
        .denies_system = plan->denies_system,
        .roots = roots,
        .is_for_landlock = !plan->denies_by_mount,
    };
}

/* Each object that is not held, whatever the reason. */
static enum sy_code
list_unheld(struct sandbox_ready *ready, bool is_by_mount)
{
    const struct deny_view *v = &ready->denied;
    enum sy_code rc = SY_E_OK;

    ready->unheld.max = v->n_objects + v->unsearched.n;
    for (size_t i = 0; i < v->n_objects && rc == SY_E_OK; i++) {
        bool is_out_of_reach = v->objects[i].is_in_root && !is_by_mount;

        if (is_out_of_reach || v->objects[i].has_more_names) {
            rc = strv_add(&ready->unheld, v->objects[i].path);
        }
    }
    return rc == SY_E_OK ? strv_add_all(&ready->unheld, strv_view(&v->unsearched)) : rc;
}

enum sy_code
ready_deny_find(struct sandbox_ready *ready, const struct sandbox_plan *plan,
                const struct walk *walks, struct sy_error *err)
{
    struct strv roots = {.max = plan->n_rules};
    const struct deny_request request = deny_request_of(plan, &roots);
    enum sy_code rc = SY_E_OK;

    if (!deny_plan_has_any(plan)) {
        return SY_E_OK;
    }
    ready->hides_by_mount = plan->denies_by_mount;
    rc = ready_deny_roots(&roots, plan, walks);
    if (rc != SY_E_OK) {
        rc = sy_err_nomem(err);
    } else {
        rc = deny_expand(&ready->denied, &request, err);
    }
    strv_fini(&roots);
    if (rc == SY_E_OK && list_unheld(ready, plan->denies_by_mount) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

const struct deny_view *
ready_denied(const struct sandbox_ready *ready)
{
    return &ready->denied;
}

const char *
sandbox_ready_hidden(const struct sandbox_ready *ready, size_t i)
{
    return ready->hides_by_mount && i < ready->denied.n_objects ? ready->denied.objects[i].path
                                                                : NULL;
}

bool
sandbox_ready_hidden_has_names(const struct sandbox_ready *ready, size_t i)
{
    const struct deny_object *o = &ready->denied.objects[i];

    return o->is_dir && o->rule >= DENY_HOME &&
           deny_has_plain_names(deny_home_default((o->rule - DENY_HOME) % DENY_ROWS_MAX));
}

const char *
sandbox_ready_unheld(const struct sandbox_ready *ready, size_t i)
{
    return i < ready->unheld.n ? ready->unheld.v[i] : NULL;
}

enum sy_code
sandbox_plan_adopt(struct sandbox_plan *plan, const struct sandbox_ready *ready,
                   struct sy_error *err)
{
    struct strv unheld = {.max = ready->unheld.n};

    if (strv_add_all(&unheld, strv_view(&ready->unheld)) != SY_E_OK) {
        strv_fini(&unheld);
        return sy_err_nomem(err);
    }
    strv_fini(&plan->unheld);
    plan->unheld = unheld;
    if (plan->unheld.n > 0) {
        bool is_some_held = ready->denied.n_held > 0 || plan->denies_by_mount;

        plan->features[FEATURE_DENY_READ] = is_some_held ? FEATURE_EMULATED : FEATURE_ABSENT;
    }
    return SY_E_OK;
}
