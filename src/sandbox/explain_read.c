/*
 * Reading: what Landlock grants is found as it was granted (deny_grant.c), name by
 * name of the directories that hold something to hide, and asked along the way up,
 * by inode.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/deny_internal.h"
#include "sandbox/explain_internal.h"
#include "sandbox/linux/deny_expand.h"
#include "sandbox/linux/own.h"
#include "sandbox/linux/ready.h"

static bool
is_same(const struct file_id *a, const struct file_id *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

static const struct deny_object *
find_object(const struct deny_view *v, const struct file_id *id)
{
    for (size_t i = 0; i < v->n_objects; i++) {
        if (is_same(&v->objects[i].id, id)) {
            return &v->objects[i];
        }
    }
    return NULL;
}

#define OWN_RULE "%.80s: commands can't change what Shellyard believes"
#define OWN_READ "%.80s is Shellyard's own, which no sandbox shows"

/* A mount holds for a name, not for others of the same file. */
static const struct deny_object *
find_mount(const struct deny_view *v, const char *path)
{
    for (size_t i = 0; i < v->n_objects; i++) {
        if (str_eq(v->objects[i].path, path)) {
            return &v->objects[i];
        }
    }
    return NULL;
}

static const struct deny_dir *
find_split(const struct deny_view *v, const struct file_id *id)
{
    for (size_t i = 0; i < v->n_dirs; i++) {
        if (v->dirs[i].is_split && is_same(&v->dirs[i].id, id)) {
            return &v->dirs[i];
        }
    }
    return NULL;
}

/* Where the search for a grant ends. */
struct verdict {
    const struct plan_rule *root;     /* granted by */
    bool is_granted;                  /* by a rule of a root, or by its name */
    const struct deny_object *hidden; /* the nearest that is denied; may be NULL */
    const struct deny_dir *is_beside; /* nothing on the way has a grant: the directory */
};

/* One level, nothing above it looked at. True when the search is over. */
static bool
judge(struct verdict *v, const struct deny_view *view, const struct sandbox_plan *plan,
      const char *path, const struct deny_dir *above)
{
    struct file_id id;
    bool is_there = file_id_of_path(&id, path) == 0;
    const struct deny_object *object = NULL;

    if (plan->denies_by_mount) {
        v->hidden = find_mount(view, path);
        return v->hidden != NULL;
    }
    object = is_there ? find_object(view, &id) : NULL;
    v->root = explain_rule_of(plan, path, LL_FS_READ_FILE);
    if (v->root != NULL) {
        v->is_granted = true;
        return true;
    }
    if (object != NULL) {
        v->hidden = v->hidden != NULL ? v->hidden : object;
        return false;
    }
    if (is_there && find_split(view, &id) != NULL) {
        return false;
    }
    if (is_there && above != NULL && above->fd >= 0) {
        v->is_granted = true;
        return true;
    }
    if (above != NULL) {
        v->is_beside = v->is_beside != NULL ? v->is_beside : above;
    }
    return false;
}

/* `path` is changed by the search. */
static struct verdict
search(const struct deny_view *view, const struct sandbox_plan *plan, char *path)
{
    struct verdict v = {0};

    for (;;) {
        char here[LIMIT_PATH]; /* as long as walk_run makes a path */
        struct file_id id;
        const struct deny_dir *above = NULL;
        char *slash = strrchr(path, '/');
        bool is_top = path[1] == '\0';

        if (slash == NULL || strlen(path) >= sizeof(here)) {
            return v; /* denied: what can't be judged is not let through */
        }
        memcpy(here, path, strlen(path) + 1);
        slash[slash == path ? 1 : 0] = '\0';
        if (!is_top && file_id_of_path(&id, path) == 0) {
            above = find_split(view, &id);
        }
        if (judge(&v, view, plan, here, above) || is_top) {
            return v;
        }
    }
}

static enum sy_code
tell_hidden(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
            const struct deny_object *o)
{
    SY_AUTO(buf_fini) struct buf rule = {.max = (size_t)LIMIT_PATH * 2};
    bool is_default = false;

    if (explain_is_terminal(ret->resolved)) {
        RULE(ret, "%s", EXPLAIN_TERMINALS);
        return SY_E_OK;
    }

    if (deny_plan_is_own(plan, o->rule)) {
        RULE(ret, OWN_READ, o->path);
        return SY_E_OK;
    }

    enum sy_code rc = deny_plan_rule(&rule, &is_default, plan, o->rule);

    if (rc != SY_E_OK) {
        return rc;
    }
    RULE(ret, "%s: %.120s", is_default ? "a default of sandbox.deny_read" : "sandbox.deny_read",
         buf_view(&rule));
    if (is_default) {
        /* Of the devices the one: all of them would be cameras and terminals too. */
        bool is_device = o->rule == DENY_SYSTEM + DENY_DEVICES_ROW;

        return explain_fix_list(ret, is_device ? "sandbox.writable_roots" : "sandbox.allow_read",
                                is_device ? ret->resolved : buf_view(&rule), "", NULL);
    }
    return SY_E_OK;
}

/* A pattern hides what it names as soon as that exists: until then "not denied" would tell the
 * wrong thing to whoever asks about a secret that they have still to make. */
static void
tell_allowed(struct sandbox_explanation *ret, const struct sandbox_plan *plan)
{
    struct stat st;
    const char *mode = sandbox_mode_name(plan->mode);

    if (lstat(ret->resolved, &st) == 0) {
        RULE(ret, "%s: it is not denied", mode);
    } else {
        RULE(ret, "%s: nothing is there; what is denied is looked for at each call", mode);
    }
}

enum sy_code
explain_find_denied(struct deny_view *ret, const struct sandbox_plan *plan, struct sy_error *err)
{
    struct walk *walks = mem_alloc_zero(plan->n_rules, sizeof(walks[0]));
    struct strv roots = {.max = plan->n_rules};
    const struct deny_request request = deny_request_of(plan, &roots);
    enum sy_code rc = walks != NULL ? SY_E_OK : sy_err_nomem(err);

    for (size_t i = 0; i < plan->n_rules && rc == SY_E_OK; i++) {
        rc = walk_run(&walks[i], plan->rules[i].path, err);
    }
    if (rc == SY_E_OK && ready_deny_roots(&roots, plan, walks) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = deny_expand(ret, &request, err);
    }
    if (rc == SY_E_OK) {
        rc = ready_check_roots(plan, ret, &roots, err); /* nothing runs then */
    }
    for (size_t i = 0; walks != NULL && i < plan->n_rules; i++) {
        walk_fini(&walks[i]);
    }
    mem_free(walks);
    strv_fini(&roots);
    return rc;
}

/* A directory that holds something to hide can be listed, and no more is asked of it. */
static bool
is_listed_only(const struct deny_view *view, const char *path)
{
    struct file_id id;

    return file_id_of_path(&id, path) == 0 && find_split(view, &id) != NULL;
}

enum sy_code
explain_read(struct sandbox_explanation *ret, const struct sandbox_plan *plan, const char *object,
             struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    SY_AUTO(deny_view_fini) struct deny_view view = {0};
    enum sy_code rc = explain_resolve(&walk, plan, object, err);

    if (rc == SY_E_OK) {
        rc = explain_find_denied(&view, plan, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    (void)snprintf(ret->resolved, sizeof(ret->resolved), "%s", buf_view(&walk.path));
    ret->is_allowed = true;
    if (view.n_held == 0 && !(plan->denies_by_mount && view.n_objects > 0)) {
        RULE(ret, "%s: nothing that exists is denied", sandbox_mode_name(plan->mode));
        return SY_E_OK;
    }
    if (!plan->denies_by_mount && is_listed_only(&view, ret->resolved)) {
        RULE(ret, "its names can be listed; something below it is denied");
        return SY_E_OK;
    }

    struct verdict v = search(&view, plan, walk.path.data);

    ret->is_allowed = plan->denies_by_mount ? v.hidden == NULL : v.is_granted;
    if (v.root != NULL && v.root->origin == ORIGIN_DEVICE) {
        RULE(ret, "device %s, which every sandbox may use", v.root->path);
    } else if (v.root != NULL) {
        RULE(ret, "writable root %.100s (%s)", v.root->path, plan_origin_text(v.root->origin));
    } else if (ret->is_allowed) {
        tell_allowed(ret, plan);
    } else if (v.hidden != NULL) {
        if (tell_hidden(ret, plan, v.hidden) != SY_E_OK) {
            return sy_err_nomem(err);
        }
    } else {
        RULE(ret, "new beside something denied: readable from the next call on");
    }
    return SY_E_OK;
}

/* Strictly between a root and what is held in it: bound on itself. */
static bool
is_above(const struct strv *roots, const char *dir, const char *held)
{
    bool is_in_root = false;

    for (size_t i = 0; i < roots->n; i++) {
        is_in_root = is_in_root || (path_is_below(dir, roots->v[i]) && !str_eq(dir, roots->v[i]));
    }
    return is_in_root && path_is_below(held, dir) && !str_eq(held, dir);
}

enum sy_code
explain_own(struct sandbox_explanation *ret, const struct sandbox_plan *plan, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < plan->own_dirs.n && rc == SY_E_OK; i++) {
        SY_AUTO(walk_fini) struct walk own = {0};

        rc = walk_run(&own, plan->own_dirs.v[i], err);
        if (rc == SY_E_OK && path_is_below(ret->resolved, buf_view(&own.path))) {
            ret->fix[0] = '\0';
            RULE(ret, OWN_RULE, buf_view(&own.path));
            return SY_E_OK;
        }
    }
    return rc;
}

enum sy_code
explain_socket(struct sandbox_explanation *ret, const struct sandbox_plan *plan, const char *object,
               struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    SY_AUTO(deny_view_fini) struct deny_view view = {0};
    enum sy_code rc = explain_resolve(&walk, plan, object, err);

    if (rc == SY_E_OK && deny_plan_has_any(plan)) {
        rc = explain_find_denied(&view, plan, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const struct deny_object *hidden = search(&view, plan, walk.path.data).hidden;

    if (hidden == NULL || (ret->is_allowed && !plan->denies_by_mount)) {
        return SY_E_OK; /* what Landlock hides can't be read, and can be connected to */
    }
    if (ret->is_allowed || deny_plan_is_own(plan, hidden->rule)) {
        ret->is_allowed = false;
        ret->fix[0] = '\0';
        rc = tell_hidden(ret, plan, hidden);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}

bool
explain_holds_own(const struct sandbox_plan *plan, const char *dir)
{
    bool ret = false;

    for (size_t i = 0; i < plan->own_dirs.n && !ret; i++) {
        SY_AUTO(walk_fini) struct walk own = {0};

        ret = walk_run(&own, plan->own_dirs.v[i], NULL) == SY_E_OK &&
              path_is_below(buf_view(&own.path), dir);
    }
    return ret;
}

/* Where mounts make it writable, without links. */
static enum sy_code
mounted_roots(struct strv *ret, const struct sandbox_plan *plan, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && sandbox_plan_root(plan, i) != NULL; i++) {
        SY_AUTO(walk_fini) struct walk w = {0};

        rc = walk_run(&w, sandbox_plan_root(plan, i), err);
        if (rc == SY_E_OK && strv_add(ret, buf_view(&w.path)) != SY_E_OK) {
            rc = sy_err_nomem(err);
        }
    }
    return rc;
}

/* Directories of Shellyard's own are read-only; what is above them, and above what is hidden,
 * stays where it is. */
static enum sy_code
explain_kept(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
             const struct deny_view *view, bool takes_name, struct sy_error *err)
{
    SY_AUTO(strv_fini) struct strv roots = {.max = plan->n_rules};
    SY_AUTO(strv_fini) struct strv own = {.max = plan->own_dirs.n};
    const char *held = NULL;
    enum sy_code rc = mounted_roots(&roots, plan, err);

    if (rc == SY_E_OK) {
        rc = own_find(&own, &plan->own_dirs, &roots, err);
    }
    for (size_t i = 0; i < own.n && rc == SY_E_OK; i++) {
        if (path_is_below(ret->resolved, own.v[i])) {
            ret->is_allowed = false;
            ret->fix[0] = '\0';
            RULE(ret, OWN_RULE, own.v[i]);
            return SY_E_OK;
        }
        held = takes_name && is_above(&roots, ret->resolved, own.v[i]) ? own.v[i] : held;
    }
    for (size_t i = 0; i < view->n_objects && takes_name; i++) {
        held =
            is_above(&roots, ret->resolved, view->objects[i].path) ? view->objects[i].path : held;
    }
    if (held != NULL) {
        ret->is_allowed = false;
        ret->fix[0] = '\0';
        RULE(ret, "it holds %.120s and stays where it is", held);
    }
    return rc;
}

enum sy_code
explain_covered(struct sandbox_explanation *ret, const struct sandbox_plan *plan, bool takes_name,
                struct sy_error *err)
{
    SY_AUTO(deny_view_fini) struct deny_view view = {0};
    SY_AUTO(buf_fini) struct buf path = {.max = sizeof(ret->resolved)};
    enum sy_code rc = SY_E_OK;

    if (!deny_plan_has_any(plan) && plan->own_dirs.n == 0) {
        return SY_E_OK;
    }
    rc = explain_find_denied(&view, plan, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (buf_add_str(&path, ret->resolved) != SY_E_OK) {
        return sy_err_nomem(err);
    }

    const struct verdict v = search(&view, plan, path.data);

    if (v.hidden == NULL) {
        return explain_kept(ret, plan, &view, takes_name, err);
    }
    ret->is_allowed = false;
    ret->fix[0] = '\0';
    return tell_hidden(ret, plan, v.hidden) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

enum sy_code
sandbox_explain_hider(struct buf *ret, bool *ret_is_default, const struct sandbox_plan *plan,
                      const char *path, struct sy_error *err)
{
    SY_AUTO(deny_view_fini) struct deny_view view = {0};
    SY_AUTO(buf_fini) struct buf copy = {.max = 2 * (size_t)LIMIT_PATH};
    struct verdict v = {0};
    enum sy_code rc = explain_find_denied(&view, plan, err);

    if (rc == SY_E_OK && buf_add_str(&copy, path) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    v = search(&view, plan, copy.data);
    if (v.hidden == NULL) {
        return sy_err_set(err, SY_E_NOTFOUND, "nothing that is named hides it");
    }
    if (deny_plan_is_own(plan, v.hidden->rule)) {
        return sy_err_set(err, SY_E_DENIED, OWN_READ, v.hidden->path);
    }
    rc = deny_plan_rule(ret, ret_is_default, plan, v.hidden->rule);
    return rc == SY_E_OK ? rc : sy_err_nomem(err);
}
