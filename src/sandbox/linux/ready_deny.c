#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/deny_internal.h"
#include "sandbox/linux/own.h"
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
        .closes_devices = plan->closes_devices,
        .roots = roots,
        .is_for_landlock = !plan->denies_by_mount,
    };
}

/* What has names that are not hidden with it. */
static enum sy_code
list_unheld(struct sandbox_ready *ready)
{
    const struct deny_view *v = &ready->denied;
    enum sy_code rc = SY_E_OK;

    ready->unheld.max = v->n_objects;
    for (size_t i = 0; i < v->n_objects && rc == SY_E_OK; i++) {
        if (v->objects[i].has_more_names) {
            rc = strv_add(&ready->unheld, v->objects[i].path);
        }
    }
    return rc;
}

static enum sy_code
refuse(const struct sandbox_plan *plan, const char *what, const char *way_out, struct sy_error *err)
{
    if (plan->weaker[0] == '\0') {
        return sy_err_set(err, SY_E_SANDBOX,
                          "'%.70s' lies below a writable root, where only the full tier can hold "
                          "it: work in another directory%s",
                          what, way_out);
    }
    /* Whatever is too long is the reason's end. */
    return sy_err_set(err, SY_E_SANDBOX,
                      "'%.60s' lies below a writable root, where only the full tier can hold it: "
                      "work in another directory%s; the full tier is not here: %s",
                      what, way_out, plan->weaker);
}

enum sy_code
ready_check_roots(const struct sandbox_plan *plan, const struct deny_view *v,
                  const struct strv *roots, struct sy_error *err)
{
    SY_AUTO(strv_fini) struct strv own = {.max = 1};
    const char *held = NULL; /* of Shellyard's own: told last, since no key lets it out */
    enum sy_code rc = SY_E_OK;

    if (plan->denies_by_mount) {
        return SY_E_OK;
    }
    for (size_t i = 0; i < v->n_objects; i++) {
        const bool is_own = deny_plan_is_own(plan, v->objects[i].rule);

        if (v->objects[i].is_in_root && is_own) {
            held = v->objects[i].path;
        } else if (v->objects[i].is_in_root) {
            return refuse(plan, v->objects[i].path,
                          v->objects[i].rule >= DENY_SYSTEM
                              ? ", or name it in sandbox.allow_read"
                              : ", or take it out of sandbox.deny_read",
                          err);
        }
    }
    if (v->unsearched.n > 0) {
        return refuse(plan, v->unsearched.v[0], ", or take it out of sandbox.deny_read", err);
    }
    rc = own_find(&own, &plan->own_dirs, roots, err);
    held = own.n > 0 ? own.v[0] : held;
    return rc == SY_E_OK && held != NULL
               ? refuse(plan, held, ", or set XDG_STATE_HOME, XDG_CONFIG_HOME", err)
               : rc;
}

enum sy_code
ready_deny_find(struct sandbox_ready *ready, const struct sandbox_plan *plan,
                const struct walk *walks, struct sy_error *err)
{
    struct strv roots = {.max = plan->n_rules};
    const struct deny_request request = deny_request_of(plan, &roots);
    enum sy_code rc = SY_E_OK;

    if (!deny_plan_has_any(plan) && plan->own_dirs.n == 0) {
        return SY_E_OK;
    }
    ready->hides_by_mount = plan->denies_by_mount;
    rc = ready_deny_roots(&roots, plan, walks);
    if (rc != SY_E_OK) {
        rc = sy_err_nomem(err);
    } else {
        rc = deny_expand(&ready->denied, &request, err);
    }
    if (rc == SY_E_OK) {
        rc = ready_check_roots(plan, &ready->denied, &roots, err);
    }
    strv_fini(&roots);
    if (rc == SY_E_OK && list_unheld(ready) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

bool
ready_deny_renew(struct sandbox_ready *ready, const struct sandbox_plan *plan)
{
    SY_AUTO(strv_fini) struct strv roots = {.max = plan->n_rules};
    const struct deny_request request = deny_request_of(plan, &roots);
    struct deny_view now = {0};
    struct sy_error ignored = {0};
    enum sy_code rc = SY_E_OK;

    /* Landlock grants name by name: a new one beside what is hidden needs a rule of its own. */
    if (!ready->hides_by_mount) {
        return false;
    }
    for (size_t i = 0; i < ready->n_roots && rc == SY_E_OK; i++) {
        const struct ready_root *root = &ready->roots[i];

        if (!root->is_device && root->real != NULL) {
            rc = strv_add(&roots, root->real);
        }
    }
    if (rc != SY_E_OK || deny_expand(&now, &request, &ignored) != SY_E_OK) {
        return false; /* whoever makes it anew says why */
    }
    if (!deny_view_is_same(&ready->denied, &now)) {
        deny_view_fini(&now);
        return false;
    }
    deny_view_fini(&ready->denied);
    ready->denied = now;
    return true;
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
sandbox_ready_hidden_is_in_root(const struct sandbox_ready *ready, size_t i)
{
    return ready->denied.objects[i].is_in_root;
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
