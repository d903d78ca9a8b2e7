/*
 * What the kernel would do under a plan. Landlock asks for each right along
 * the way from the file up to the root of the file tree, by inode: so does
 * this, and a bind mount or a second name of a root is judged as it is there.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/yaml_text.h"
#include "sandbox/explain_internal.h"

enum sy_code
explain_fix_list(struct sandbox_explanation *ret, const char *key, const char *value,
                 const char *comment, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf fix = {.max = sizeof(ret->fix) - 1};
    enum sy_code rc = SY_E_OK;

    ret->fix[0] = '\0';
    if (!utf8_is_valid(value, strlen(value))) {
        return SY_E_OK;
    }
    rc = buf_addf(&fix, "%s: [", key);
    if (rc == SY_E_OK) {
        rc = yaml_text_quote(&fix, value);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(&fix, "]%s", comment);
    }
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        memcpy(ret->fix, buf_view(&fix), fix.len + 1);
    }
    return SY_E_OK; /* beyond the most: escapes, as no path of anybody has them */
}

/* A mount holds for its name: what is a root by another one is read-only there. */
static bool
is_named_so(const struct sandbox_plan *plan, const struct plan_rule *rule, const char *path)
{
    SY_AUTO(walk_fini) struct walk walk = {0};

    return plan->tier != TIER_FULL ||
           (walk_run(&walk, rule->path, NULL) == SY_E_OK && str_eq(buf_view(&walk.path), path));
}

const struct plan_rule *
explain_rule_of(const struct sandbox_plan *plan, const char *path, uint64_t right)
{
    struct file_id id;
    struct file_id rule_id;

    if (file_id_of_path(&id, path) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < plan->n_rules; i++) {
        const struct plan_rule *rule = &plan->rules[i];

        if ((rule->access & right) != 0 && file_id_of_path(&rule_id, rule->path) == 0 &&
            rule_id.dev == id.dev && rule_id.ino == id.ino && is_named_so(plan, rule, path)) {
            return rule;
        }
    }
    return NULL;
}

/* The nearest rule at or above `path` (resolved; changed by the search). */
static const struct plan_rule *
find_rule(const struct sandbox_plan *plan, char *path, uint64_t right)
{
    SY_ASSERT(path != NULL && path[0] == '/');
    for (;;) {
        const struct plan_rule *rule = explain_rule_of(plan, path, right);
        char *slash = strrchr(path, '/');

        if (rule != NULL || slash == NULL || path[1] == '\0') {
            return rule;
        }
        slash[slash == path ? 1 : 0] = '\0';
    }
}

enum sy_code
explain_resolve(struct walk *ret, const struct sandbox_plan *plan, const char *object,
                struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 2 * (size_t)LIMIT_PATH};

    if (object[0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "the path is empty");
    }
    if (path_join(&path, plan->cwd, object) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return walk_run(ret, buf_view(&path), err);
}

/* A directory that holds far more than one object: / and the user's home, and
 * what is above it. Nobody should open it for the sake of one file. */
static bool
is_broad(const char *dir)
{
    const char *home = getenv("HOME");
    char resolved[PATH_MAX];

    if (dir[1] == '\0') {
        return true;
    }
    return home != NULL && home[0] == '/' && realpath(home, resolved) != NULL &&
           path_is_below(resolved, dir);
}

bool
explain_is_terminal(const char *path)
{
    return str_starts(path, "/dev/pts/");
}

/* In a git directory nothing narrower than all of it lets git do anything: a commit in a linked
 * worktree writes objects, refs and logs of the repository. Its protected names stay protected.
 * Cuts the path there, if it lies in one. */
static void
widen_to_repository(char *dir)
{
    static const char name[] = "/.git";
    char head[PATH_MAX];
    struct stat st;

    for (char *at = strstr(dir, name); at != NULL; at = strstr(at + 1, name)) {
        char *end = at + sizeof(name) - 1;

        if (*end != '\0' && *end != '/') {
            continue;
        }
        (void)snprintf(head, sizeof(head), "%.*s/HEAD", (int)(end - dir), dir);
        if (lstat(head, &st) == 0) {
            *end = '\0';
            return;
        }
    }
}

/* Would it be below a root that workspace-write has by itself? */
static bool
workspace_write_has(const struct sandbox_plan *plan, const char *path)
{
    return path_is_below(path, plan->cwd) || (!plan->leaves_tmp_out && path_is_below(path, "/tmp"));
}

/* What has to be besides a new root, as a comment. */
static const char *
root_besides(const struct sandbox_plan *plan)
{
    if (plan->mode == SANDBOX_READ_ONLY) {
        return plan->narrows_mode ? "  # with sandbox_mode of the turn: workspace-write"
                                  : "  # with sandbox.mode: workspace-write";
    }
    return plan->drops_roots ? "  # and in writable_roots of the turn" : "";
}

/* The narrowest root that would do: the object itself, or, since a root has to
 * exist, the nearest directory above it. */
static enum sy_code
fix_write(struct sandbox_explanation *ret, const struct sandbox_plan *plan, const char *path,
          struct sy_error *err)
{
    char dir[sizeof(ret->resolved)];
    struct stat st;

    (void)snprintf(dir, sizeof(dir), "%s", path);
    if (plan->mode == SANDBOX_READ_ONLY && workspace_write_has(plan, path)) {
        (void)snprintf(ret->fix, sizeof(ret->fix), "%s: %s",
                       plan->narrows_mode ? "sandbox_mode of the turn" : "sandbox.mode",
                       sandbox_mode_name(SANDBOX_WORKSPACE_WRITE));
        return SY_E_OK;
    }
    while (dir[1] != '\0' && stat(dir, &st) != 0) {
        char *slash = strrchr(dir, '/');

        slash[slash == dir ? 1 : 0] = '\0';
    }
    widen_to_repository(dir);
    if (plan_place_refuses(dir)) {
        return SY_E_OK;
    }
    /* Without mounts nothing runs where a root holds what is Shellyard's. */
    if (!is_broad(dir) && (plan->denies_by_mount || !explain_holds_own(plan, dir))) {
        /* One line is not enough where no root counts. */
        return explain_fix_list(ret, "sandbox.writable_roots", dir, root_besides(plan), err);
    }
    if (!str_eq(dir, path)) {
        return explain_fix_list(ret, "sandbox.writable_roots", path,
                                "  # make it first: its directory would open too much", err);
    }
    (void)snprintf(ret->fix, sizeof(ret->fix), "sandbox.writable_roots: [a directory in it]");
    return SY_E_OK;
}

/* What the rules say about `right` on `path`, or above it. */
static void
judge_path(struct sandbox_explanation *ret, const struct sandbox_plan *plan, char *path,
           uint64_t right)
{
    const struct plan_rule *rule = find_rule(plan, path, right);
    const char *own = plan_place_own(plan, ret->resolved);

    if (own != NULL && rule != NULL && !path_is_below(rule->path, own)) {
        RULE(ret, "the sandbox has its own %s, where nothing is written", own);
        return;
    }
    ret->is_allowed = rule != NULL;
    if (rule != NULL && rule->origin == ORIGIN_DEVICE) {
        RULE(ret, "device %s, which every sandbox may use", rule->path);
    } else if (rule != NULL) {
        RULE(ret, "writable root %.100s (%s)", rule->path, plan_origin_text(rule->origin));
    } else if (explain_is_terminal(ret->resolved)) {
        RULE(ret, "%s", EXPLAIN_TERMINALS);
    } else {
        RULE(ret, plan->mode == SANDBOX_READ_ONLY
                      ? "read-only: nothing but the usual devices may be written"
                      : "workspace-write: it is below no writable root");
    }
}

static enum sy_code
explain_write(struct sandbox_explanation *ret, const struct sandbox_plan *plan, const char *object,
              struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    struct stat st;
    enum sy_code rc = explain_resolve(&walk, plan, object, err);
    uint64_t right = LL_FS_WRITE_FILE;

    if (rc != SY_E_OK) {
        return rc;
    }

    const char *path = buf_view(&walk.path);

    (void)snprintf(ret->resolved, sizeof(ret->resolved), "%s", path);
    if (walk.missing_errno != 0 || (stat(path, &st) == 0 && S_ISDIR(st.st_mode))) {
        right = LL_FS_MAKE_REG; /* a new file there, or in that directory */
    }
    judge_path(ret, plan, walk.path.data, right);
    return ret->is_allowed ? SY_E_OK : fix_write(ret, plan, ret->resolved, err);
}

static enum sy_code
explain_truncate(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                 const char *object, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    enum sy_code rc = explain_resolve(&walk, plan, object, err);
    bool is_handled = (plan->ruleset.handled_fs & LL_FS_TRUNCATE) != 0;

    if (rc != SY_E_OK) {
        return rc;
    }
    (void)snprintf(ret->resolved, sizeof(ret->resolved), "%s", buf_view(&walk.path));
    if (!is_handled && plan->tier != TIER_FULL) {
        ret->is_allowed = true;
        RULE(ret, "truncate(2) is not restricted on this kernel (Landlock ABI %d, 3 needed)",
             plan->abi);
        return SY_E_OK;
    }
    /* Read-only mounts hold it too, on a kernel that has no such right. */
    judge_path(ret, plan, walk.path.data, is_handled ? LL_FS_TRUNCATE : LL_FS_WRITE_FILE);
    return ret->is_allowed ? SY_E_OK : fix_write(ret, plan, ret->resolved, err);
}

/* The directory that holds the last name of a path, resolved, and in ret->resolved the path
 * with that name itself as it is. */
static enum sy_code
resolve_name(struct walk *dir, struct sandbox_explanation *ret, const struct sandbox_plan *plan,
             const char *object, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 2 * (size_t)LIMIT_PATH};

    if (object[0] == '\0') {
        return sy_err_set(err, SY_E_ARG, "the path is empty");
    }
    if (path_join(&path, plan->cwd, object) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    while (path.len > 1 && path.data[path.len - 1] == '/') {
        path.data[--path.len] = '\0';
    }

    const char *base = path_base(path.data);
    bool is_name = !str_eq(base, ".") && !str_eq(base, "..") && !str_eq(base, "/");
    char *name = path.data + (base - path.data); /* stays behind the cut */
    size_t n_name = strlen(base);

    if (is_name) {
        path.len -= n_name;
    }

    SY_AUTO(buf_fini) struct buf holder = {.max = path.max};

    if (buf_add(&holder, path.data, path.len) != SY_E_OK) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = walk_run(dir, buf_view(&holder), err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (dir->path.len + n_name + 2 > sizeof(ret->resolved)) {
        return sy_err_sys(err, ENAMETOOLONG, "path '%.160s'", object);
    }
    rc = buf_add_str(&dir->path, is_name && dir->path.len > 1 ? "/" : "");
    if (rc == SY_E_OK && is_name) {
        rc = buf_add_str(&dir->path, name);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_sys(err, ENAMETOOLONG, "path '%.160s'", object);
    }
    memcpy(ret->resolved, dir->path.data, dir->path.len + 1);
    if (dir->path.len > 1) { /* what holds it is above */
        char *slash = strrchr(dir->path.data, '/');

        slash[slash == dir->path.data ? 1 : 0] = '\0';
    }
    return SY_E_OK;
}

/* In the full tier each root is a mount, which can't be removed or renamed. */
static bool
is_mounted(const struct sandbox_plan *plan, const char *path)
{
    for (size_t i = 0; plan->tier == TIER_FULL && i < plan->n_rules; i++) {
        SY_AUTO(walk_fini) struct walk walk = {0};
        const struct plan_rule *rule = &plan->rules[i];

        if (rule->origin != ORIGIN_DEVICE && walk_run(&walk, rule->path, NULL) == SY_E_OK &&
            walk.missing_errno == 0 && str_eq(buf_view(&walk.path), path)) {
            return true;
        }
    }
    return false;
}

/* A name goes from the directory that holds it: no other root helps, and one that would open far
 * more is no advice. */
static enum sy_code
fix_remove(struct sandbox_explanation *ret, const struct sandbox_plan *plan, struct sy_error *err)
{
    char holder[sizeof(ret->resolved)];
    char *slash = NULL;

    (void)snprintf(holder, sizeof(holder), "%s", ret->resolved);
    slash = strrchr(holder, '/');
    slash[slash == holder ? 1 : 0] = '\0';
    return is_broad(holder) ? SY_E_OK : fix_write(ret, plan, holder, err);
}

/* Rights on names are asked of the directory that holds them. */
static enum sy_code
explain_name(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
             enum sandbox_operation op, const char *object, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk dir = {0};
    struct stat st;
    enum sy_code rc = resolve_name(&dir, ret, plan, object, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    bool is_dir = lstat(ret->resolved, &st) == 0 && S_ISDIR(st.st_mode);
    uint64_t right = op == OPERATION_CREATE ? LL_FS_MAKE_REG
                     : is_dir               ? LL_FS_REMOVE_DIR
                                            : LL_FS_REMOVE_FILE;

    if (op != OPERATION_CREATE && is_mounted(plan, ret->resolved)) {
        RULE(ret, "the sandbox has it mounted: it is a writable root itself");
        return SY_E_OK;
    }
    judge_path(ret, plan, dir.path.data, right);
    if (ret->is_allowed) {
        return SY_E_OK;
    }
    return op == OPERATION_CREATE ? fix_write(ret, plan, ret->resolved, err)
                                  : fix_remove(ret, plan, err);
}

static enum sy_code
explain_chmod(struct sandbox_explanation *ret, const struct sandbox_plan *plan, const char *object,
              struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    enum sy_code rc = explain_resolve(&walk, plan, object, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    (void)snprintf(ret->resolved, sizeof(ret->resolved), "%s", buf_view(&walk.path));
    if (plan->tier == TIER_FULL) { /* read-only mounts, devices among them */
        judge_path(ret, plan, walk.path.data, LL_FS_MAKE_REG);
        return ret->is_allowed ? SY_E_OK : fix_write(ret, plan, ret->resolved, err);
    }
    ret->is_allowed = true;
    RULE(ret, "%s: modes, owners and times are not restricted in this tier",
         sandbox_mode_name(plan->mode));
    return SY_E_OK;
}

static enum sy_code
explain_unix_path(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                  const char *object, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    enum sy_code rc = explain_resolve(&walk, plan, object, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    (void)snprintf(ret->resolved, sizeof(ret->resolved), "unix:%.4000s", buf_view(&walk.path));
    if ((plan->ruleset.handled_fs & LL_FS_RESOLVE_UNIX) == 0) {
        ret->is_allowed = true;
        RULE(ret,
             "named Unix sockets are not restricted on this kernel (Landlock ABI %d, 9 needed)",
             plan->abi);
        return SY_E_OK;
    }

    const struct plan_rule *rule = find_rule(plan, walk.path.data, LL_FS_RESOLVE_UNIX);

    ret->is_allowed = rule != NULL;
    if (rule != NULL) {
        RULE(ret, "below writable root %.100s (%s)", rule->path, plan_origin_text(rule->origin));
    } else {
        RULE(ret, "named Unix sockets outside the workspace are unreachable, but for those that "
                  "the command itself made");
        return fix_write(ret, plan, ret->resolved + strlen("unix:"), err);
    }
    return SY_E_OK;
}

/* host:port, or [v6]:port: without its brackets nobody can tell where an address ends. */
static bool
is_authority(const char *object)
{
    const char *colon = strrchr(object, ':');
    uint64_t port;

    if (colon == NULL || colon == object || !str_to_u64(&port, colon + 1, 1, 65535)) {
        return false;
    }
    return object[0] == '[' ? colon > object + 2 && colon[-1] == ']' : strchr(object, ':') == colon;
}

static enum sy_code
explain_connect(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                const char *object, struct sy_error *err)
{
    (void)snprintf(ret->resolved, sizeof(ret->resolved), "%.4000s", object);
    if (plan->has_broker && str_starts(object, "unix:")) {
        RULE(ret, "network access is off: only Unix sockets on which a process of the same command "
                  "listens are in reach");
        explain_fix_network(ret, plan);
        return SY_E_OK;
    }
    if (plan->has_own_network && str_starts(object, "unix:")) {
        RULE(ret,
             "network access is off: where nobody can be asked about connections, as in another "
             "sandbox, no Unix socket can be made");
        explain_fix_network(ret, plan);
        return SY_E_OK;
    }
    if (str_starts(object, "unix:@")) {
        ret->is_allowed = (plan->ruleset.scoped & LL_SCOPE_ABSTRACT_UNIX) == 0;
        RULE(ret,
             ret->is_allowed
                 ? "abstract Unix sockets are not restricted on this kernel (Landlock ABI %d, 6 "
                   "needed)"
                 : "abstract Unix sockets are unreachable, but for those that the command "
                   "itself made (Landlock ABI %d)",
             plan->abi);
        return SY_E_OK;
    }
    if (str_starts(object, "unix:")) {
        return explain_unix_path(ret, plan, object + strlen("unix:"), err);
    }

    if (!is_authority(object)) {
        return sy_err_set(err, SY_E_ARG,
                          "'%.80s' is none of host:port, [v6]:port, unix:PATH, unix:@NAME", object);
    }
    ret->is_allowed = plan->has_network;
    if (plan->has_own_network) {
        return sandbox_explain_own(ret, plan, object, err);
    }
    if (plan->network_allow.n > 0) {
        return sandbox_explain_host(ret, plan, object, err);
    }
    if (plan->has_network) {
        RULE(ret, "network access is on");
    } else {
        RULE(ret, "network access is off: no internet socket can be made, loopback included");
        explain_fix_network(ret, plan);
    }
    return SY_E_OK;
}

enum sy_code
sandbox_explain(struct sandbox_explanation *ret, const struct sandbox_plan *plan,
                enum sandbox_operation op, const char *object, struct sy_error *err)
{
    struct sandbox_explanation made = {0};
    enum sy_code rc = SY_E_OK;

    if (plan->is_refused) {
        return sy_err_set(err, SY_E_SANDBOX, "this kernel can't hold the policy %s: nothing runs",
                          sandbox_mode_name(plan->mode));
    }
    if (!plan->is_enforced) {
        made.is_allowed = true;
        (void)snprintf(made.resolved, sizeof(made.resolved), "%.4000s", object);
        RULE(&made, "%s: nothing is enforced here", sandbox_mode_name(plan->mode));
        *ret = made;
        return SY_E_OK;
    }
    switch (op) {
    case OPERATION_READ:
        rc = explain_read(&made, plan, object, err);
        break;
    case OPERATION_WRITE:
        rc = explain_write(&made, plan, object, err);
        break;
    case OPERATION_CREATE:
    case OPERATION_DELETE:
    case OPERATION_RENAME:
        rc = explain_name(&made, plan, op, object, err);
        break;
    case OPERATION_TRUNCATE:
        rc = explain_truncate(&made, plan, object, err);
        break;
    case OPERATION_CHMOD:
        rc = explain_chmod(&made, plan, object, err);
        break;
    case OPERATION_CONNECT:
        rc = explain_connect(&made, plan, object, err);
        break;
    case OPERATION_COUNT:
        rc = sy_err_set(err, SY_E_ARG, "no operation");
        break;
    }
    if (rc == SY_E_OK && plan->denies_by_mount && made.is_allowed && op != OPERATION_READ &&
        op != OPERATION_CONNECT) {
        rc = explain_covered(&made, plan, op == OPERATION_DELETE || op == OPERATION_RENAME, err);
    }
    if (rc == SY_E_OK && op == OPERATION_CONNECT && str_starts(object, "unix:") &&
        !str_starts(object, "unix:@")) {
        rc = explain_socket(&made, plan, object + strlen("unix:"), err);
    }
    if (rc == SY_E_OK && !made.is_allowed && op != OPERATION_READ && op != OPERATION_CONNECT) {
        rc = explain_own(&made, plan, err);
    }
    if (rc == SY_E_OK) {
        *ret = made;
    }
    return rc;
}
