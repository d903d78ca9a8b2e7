#include "sandbox/linux/ready.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

void
sandbox_ready_free(struct sandbox_ready *ready)
{
    if (ready == NULL) {
        return;
    }
    for (size_t i = 0; i < ready->n_roots; i++) {
        mem_free(ready->roots[i].path);
        mem_free(ready->roots[i].real);
    }
    mem_free(ready->roots);
    deny_view_fini(&ready->denied);
    strv_fini(&ready->unheld);
    fd_close(&ready->ruleset_fd);
    grant_stock_free(ready->stock);
    mem_free(ready);
}

struct sandbox_base
sandbox_plan_base(const struct sandbox_plan *plan)
{
    struct sandbox_base base = {0};

    if (!plan->is_enforced) {
        return base;
    }

    uint32_t arch = sandbox_seccomp_arch();

    if (plan->has_own_network) {
        base.program = sandbox_seccomp_find_own(arch, false, false);
        base.is_observed = plan->has_observer;
        base.broker_program =
            plan->has_broker ? sandbox_seccomp_find_own(arch, true, plan->has_observer) : NULL;
        return base;
    }
    base.is_logged = plan->is_logged;
    base.program = sandbox_seccomp_find(arch, plan->has_network, false, false);
    base.is_observed = plan->has_observer;
    if (plan->has_broker || plan->has_observer || plan->makes_terminals) {
        base.broker_program =
            plan->network_allow.n > 0
                ? sandbox_seccomp_find_allow_list(arch, plan->has_observer)
                : sandbox_seccomp_find(arch, plan->has_network, true, plan->has_observer);
    }
    SY_ASSERT(base.program != NULL);
    return base;
}

struct sandbox_base
sandbox_ready_base(const struct sandbox_ready *ready)
{
    return ready != NULL ? ready->base : (struct sandbox_base){0};
}

int
sandbox_ready_fd(const struct sandbox_ready *ready)
{
    return ready->ruleset_fd;
}

const char *
sandbox_ready_skipped(const struct sandbox_ready *ready, size_t i)
{
    for (size_t k = 0; k < ready->n_roots; k++) {
        if (ready->roots[k].is_skipped && i-- == 0) {
            return ready->roots[k].path;
        }
    }
    return NULL;
}

/* Is each root the file that it was? */
static bool
has_its_roots(const struct sandbox_ready *ready)
{
    for (size_t i = 0; i < ready->n_roots; i++) {
        const struct ready_root *root = &ready->roots[i];
        struct file_id now;

        if (root->is_device) {
            continue; /* a stale one is refused, which is safe */
        }

        bool is_missing = file_id_of_path(&now, root->path) != 0;

        if (is_missing != root->is_skipped) {
            return false;
        }
        if (!is_missing &&
            (now.dev != root->id.dev || now.ino != root->id.ino || now.mount != root->id.mount)) {
            return false;
        }
    }
    return true;
}

bool
sandbox_ready_is_fresh(const struct sandbox_ready *ready)
{
    return has_its_roots(ready) && deny_view_is_fresh(&ready->denied);
}

bool
sandbox_ready_renew(struct sandbox_ready *ready, const struct sandbox_plan *plan)
{
    return has_its_roots(ready) &&
           (deny_view_is_fresh(&ready->denied) || ready_deny_renew(ready, plan));
}

/*
 * A link inside a writable root may be one that a command put there to turn a
 * root of ours into any directory it likes: not followed out of that root,
 * said instead.
 */
static enum sy_code
check_links(const struct sandbox_plan *plan, const struct walk *walks, size_t i,
            struct sy_error *err)
{
    const char *end = buf_view(&walks[i].path);

    if (plan->cwd_has_no_links && plan->rules[i].origin == ORIGIN_CWD && walks[i].links.n > 0) {
        return walk_refuse_cwd(&walks[i], plan->rules[i].path, err);
    }
    /* Whoever could make one after the look at the root would choose what is granted. */
    if ((plan->rules[i].origin == ORIGIN_GRANT || plan->rules[i].origin == ORIGIN_LINKED) &&
        walks[i].links.n > 0) {
        return sy_err_set(
            err, SY_E_SANDBOX,
            "'%.90s' (%s) is reached by the symbolic link '%.90s' now: call once more",
            plan->rules[i].path, plan_origin_text(plan->rules[i].origin), walks[i].links.v[0]);
    }
    for (size_t l = 0; l < walks[i].links.n; l++) {
        const char *link = walks[i].links.v[l];

        for (size_t k = 0; k < plan->n_rules; k++) {
            const char *root = buf_view(&walks[k].path);

            if (plan->rules[k].origin != ORIGIN_DEVICE && path_is_below(link, root) &&
                !path_is_below(end, root)) {
                return sy_err_set(err, SY_E_SANDBOX,
                                  "writable root '%.80s' (%s) passes the symbolic link '%.80s', "
                                  "which sandboxed commands can change: name the real one instead",
                                  plan->rules[i].path, plan_origin_text(plan->rules[i].origin),
                                  link);
            }
        }
    }
    return SY_E_OK;
}

/* The descriptor of a root: the walk's, if that has one. */
static enum sy_code
open_root(int *ret, struct walk *walk, const struct plan_rule *rule, struct sy_error *err)
{
    if (rule->at_parent) {
        /* Its last component is a name, not a link: the walk has resolved it. */
        char *slash = strrchr(walk->path.data, '/');

        slash[slash == walk->path.data ? 1 : 0] = '\0';
    } else if (walk->is_open) {
        walk->is_open = false;
        *ret = fd_take(&walk->fd);
        return SY_E_OK;
    }

    int fd = walk_open(buf_view(&walk->path));

    if (fd < 0) {
        return sy_err_sys(err, -fd, "writable root '%.160s' (%s)", rule->path,
                          plan_origin_text(rule->origin));
    }
    *ret = fd;
    return SY_E_OK;
}

/*
 * What to do about a root that must be there. The policy's cwd can't be taken
 * out of anything: it is where the work is.
 */
static const char *
root_advice(enum plan_origin origin, int failed)
{
    bool is_cwd = origin == ORIGIN_CWD;

    if (origin == ORIGIN_GRANT) {
        return "call once more: the grant does not hold while that is so";
    }
    if (origin == ORIGIN_LINKED) {
        return "call once more: it is no root while that is so";
    }
    switch (failed) {
    case ENOENT:
        return is_cwd ? "make it, or work in another directory"
                      : "make it, or take it out of sandbox.writable_roots";
    case EACCES:
        return is_cwd
                   ? "get x on it and the directories above it, or work in another directory"
                   : "get x on the directories above it, or take it out of sandbox.writable_roots";
    case ENOTDIR:
        return is_cwd ? "work in another directory" : "correct it in sandbox.writable_roots";
    default:
        return is_cwd ? "repair that, or work in another directory"
                      : "repair that, or take it out of sandbox.writable_roots";
    }
}

static enum sy_code
unusable(const struct plan_rule *rule, int failed, struct sy_error *err)
{
    return sy_err_set(err, SY_E_SANDBOX, "writable root '%.90s' (%s) can't be used: %s; %s",
                      rule->path, plan_origin_text(rule->origin), sy_errno_text(failed),
                      root_advice(rule->origin, failed));
}

enum sy_code
ready_allow_root(int ruleset_fd, int fd, uint64_t access, bool is_dir, const char *name,
                 struct sy_error *err)
{
    uint64_t possible = is_dir ? access : access & landlock_file_rights();
    long added = possible != 0 ? landlock_allow_beneath(ruleset_fd, fd, possible) : 0;

    return added < 0 ? sy_err_sys(err, (int)-added, "Landlock rule for '%.160s'", name) : SY_E_OK;
}

static enum sy_code
add_rule(struct sandbox_ready *ready, const struct plan_rule *rule, struct walk *walk,
         struct sy_error *err)
{
    struct ready_root *root = &ready->roots[ready->n_roots];
    SY_FD fd = -1;
    bool is_dir = false;

    root->path = mem_strdup(rule->path);
    if (root->path == NULL) {
        return sy_err_nomem(err);
    }
    root->is_device = rule->origin == ORIGIN_DEVICE;
    ready->n_roots++;
    if (walk->missing_errno != 0 && !rule->must_exist) {
        root->is_skipped = true;
        return SY_E_OK;
    }
    if (walk->missing_errno != 0) {
        return unusable(rule, walk->missing_errno, err);
    }

    root->real = mem_strdup(buf_view(&walk->path));
    if (rule->origin < ORIGIN_SHM && plan_place_refuses(buf_view(&walk->path))) {
        return plan_place_error(buf_view(&walk->path), rule->origin, err);
    }

    enum sy_code rc = root->real != NULL ? open_root(&fd, walk, rule, err) : sy_err_nomem(err);

    if (rc != SY_E_OK) {
        return rc;
    }

    int failed = file_id_of_fd(&root->id, fd, &is_dir);

    if (failed != 0) {
        return sy_err_sys(err, failed, "inspecting writable root '%.160s'", rule->path);
    }

    return ready_allow_root(ready->ruleset_fd, fd, rule->access & ready->handled_fs, is_dir,
                            rule->path, err);
}

static enum sy_code
walk_rules(struct walk *walks, const struct sandbox_plan *plan, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && i < plan->n_rules; i++) {
        rc = walk_run(&walks[i], plan->rules[i].path, err);
    }
    for (size_t i = 0; rc == SY_E_OK && i < plan->n_rules; i++) {
        rc = check_links(plan, walks, i, err);
    }
    return rc;
}

static enum sy_code
make_ruleset(struct sandbox_ready *ready, const struct sandbox_plan *plan, struct walk *walks,
             struct sy_error *err)
{
    enum sy_code rc = walk_rules(walks, plan, err);

    if (rc == SY_E_OK) {
        rc = ready_deny_find(ready, plan, walks, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    struct landlock_ruleset ruleset = plan->ruleset;

    /* With nothing to hide, reading stays free: no rule, and no question at each
     * open. */
    if (ready->denied.n_held == 0 || plan->denies_by_mount) {
        ruleset.handled_fs &= ~LL_FS_READS;
    }
    ready->handled_fs = ruleset.handled_fs;

    long fd = landlock_create(&ruleset);

    if (fd < 0) {
        return sy_err_sys(err, (int)-fd, "making a Landlock ruleset (ABI %d)", plan->abi);
    }
    ready->ruleset_fd = (int)fd; /* the kernel makes it close-on-exec */
    for (size_t i = 0; rc == SY_E_OK && i < plan->n_rules; i++) {
        rc = add_rule(ready, &plan->rules[i], &walks[i], err);
    }
    if (rc == SY_E_OK && (ruleset.handled_fs & LL_FS_READS) != 0) {
        rc = deny_view_grant(&ready->denied, ready->ruleset_fd, NULL, err);
    }
    return rc;
}

static enum sy_code
prepare(struct sandbox_ready *ready, const struct sandbox_plan *plan, struct sy_error *err)
{
    if (plan->is_refused) {
        return sy_err_set(err, SY_E_SANDBOX, "this kernel can't hold the policy %s",
                          sandbox_mode_name(plan->mode));
    }
    if (!plan->is_enforced) {
        return SY_E_OK;
    }
    ready->base = sandbox_plan_base(plan);
    ready->roots = mem_alloc_zero(plan->n_rules, sizeof(ready->roots[0]));
    ready->stock = mem_alloc_zero(1, sizeof(*ready->stock));

    struct walk *walks = mem_alloc_zero(plan->n_rules, sizeof(walks[0]));
    enum sy_code rc = ready->roots != NULL && ready->stock != NULL && walks != NULL
                          ? make_ruleset(ready, plan, walks, err)
                          : sy_err_nomem(err);

    for (size_t i = 0; walks != NULL && i < plan->n_rules; i++) {
        walk_fini(&walks[i]);
    }
    mem_free(walks);
    return rc;
}

enum sy_code
sandbox_ready_new(struct sandbox_ready **ret, const struct sandbox_plan *plan, struct sy_error *err)
{
    struct sandbox_ready *ready = mem_alloc_zero(1, sizeof(*ready));

    if (ready == NULL) {
        return sy_err_nomem(err);
    }
    ready->ruleset_fd = -1;

    enum sy_code rc = prepare(ready, plan, err);

    if (rc != SY_E_OK) {
        sandbox_ready_free(ready);
        return rc;
    }
    *ret = ready;
    return SY_E_OK;
}
