/* What `sandbox explain` says about protected names, where mounts hold them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs.h"
#include "guard/guard.h"
#include "sandbox/linux/walk.h"

static void
refuse(struct sandbox_explanation *e, const char *name)
{
    e->is_allowed = false;
    (void)snprintf(e->rule, sizeof(e->rule), "protected name %.80s: it stays as it is", name);
    (void)snprintf(e->fix, sizeof(e->fix), "sandbox.unprotected_names: [%.80s]", name);
}

static bool
is_lifted(const struct cli_engine *engine, const char *name)
{
    const struct strv *lifted = &engine->config.sandbox.unprotected_names;

    for (size_t i = 0; i < lifted->n; i++) {
        if (str_eq(lifted->v[i], name)) {
            return true;
        }
    }
    return false;
}

/* Or an empty directory stands there, as a placeholder does that has not gone yet. */
static bool
is_missing(const char *path)
{
    DIR *dir = opendir(path);
    bool is_empty = true;

    if (dir == NULL) {
        return errno == ENOENT;
    }
    for (const struct dirent *e = readdir(dir); e != NULL && is_empty; e = readdir(dir)) {
        is_empty = str_eq(e->d_name, ".") || str_eq(e->d_name, "..");
    }
    (void)closedir(dir);
    return is_empty;
}

/* What is not there yet at the top of a root is held by a placeholder. */
static const char *
find_missing(const struct cli_engine *engine, const struct strv *roots, const char *path)
{
    static const struct {
        const char *name;
        char kind;
    } names[] = {
#define NAME_ROW(id, name, kind, what) {name, kind},
        GUARD_NAMES(NAME_ROW)
#undef NAME_ROW
    };
    char at[LIMIT_PATH + 64];

    for (size_t r = 0; r < roots->n; r++) {
        const char *root = roots->v[r];

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (names[i].kind != 'A' && !str_eq(names[i].name, ".git")) {
                continue;
            }
            (void)snprintf(at, sizeof(at), "%s%s%s", root, root[1] == '\0' ? "" : "/",
                           names[i].name);
            if (path_is_below(path, at) && is_missing(at) && !is_lifted(engine, names[i].name)) {
                return names[i].name;
            }
        }
    }
    return NULL;
}

static bool
is_there(const char *dir, size_t n, const char *name)
{
    char at[LIMIT_PATH + 64];

    (void)snprintf(at, sizeof(at), "%.*s/%s", (int)n, dir, name);
    return access(at, F_OK) == 0;
}

/* What is not there yet in a git directory is held as well. */
static const char *
find_missing_part(const struct cli_engine *engine, const char *path)
{
    static const struct {
        const char *part;
        const char *name;
    } parts[] = {
        {"hooks",           ".git/hooks"          },
        {"config",          ".git/config"         },
        {"config.worktree", ".git/config.worktree"},
        {"info/attributes", ".git/info/attributes"},
    };
    char at[LIMIT_PATH + 64];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - path);
        bool is_git = is_there(path, n, "HEAD") && is_there(path, n, "objects");
        bool is_worktree = is_there(path, n, "HEAD") && is_there(path, n, "commondir");

        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            (void)snprintf(at, sizeof(at), "%.*s/%s", (int)n, path, parts[i].part);
            if ((is_git || (is_worktree && i == 2)) && path_is_below(path, at) && is_missing(at) &&
                !is_lifted(engine, parts[i].name)) {
                return parts[i].name;
            }
        }
    }
    return NULL;
}

enum sy_code
cli_explain_protected(struct sandbox_explanation *e, const struct cli_engine *engine,
                      const struct sandbox_plan *plan, enum sandbox_operation op,
                      struct sy_error *err)
{
    SY_AUTO(strv_fini) struct strv roots = {.max = LIMIT_ROOTS + 1};
    const char *home = getenv("HOME");
    char *homes[] = {mem_unconst(home != NULL && home[0] == '/' ? home : "/"), NULL};
    struct guard_options o = {
        .homes = homes,
        .unprotected = strv_view(&engine->config.sandbox.unprotected_names),
        .has_mounts = true,
        .is_short = true,
    };
    struct guard *g = NULL;
    struct guard_marks marks = {0};
    const char *name = NULL;
    enum sy_code rc = SY_E_OK;

    if (!e->is_allowed || op == OPERATION_READ || op == OPERATION_CONNECT ||
        sandbox_plan_mode(plan) != SANDBOX_WORKSPACE_WRITE ||
        sandbox_plan_feature(plan, FEATURE_PROTECTED_NAMES) != FEATURE_ENFORCED) {
        return SY_E_OK;
    }
    rc = walk_add_roots(&roots, &engine->turn.sandbox, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    o.roots = strv_view(&roots);
    rc = guard_new(&g, &o, err);
    if (rc == SY_E_OK && guard_marks_now(g, &marks) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    /* The words of an answer's denial: they name all that has to be lifted. What is there already
     * can't be made as it can't be written. */
    if (rc == SY_E_OK &&
        guard_holds(g, e, op == OPERATION_CREATE ? OPERATION_WRITE : op, e->resolved)) {
        e->is_allowed = false;
    }
    if (rc == SY_E_OK && e->is_allowed) {
        name = find_missing(engine, &roots, e->resolved);
        name = name != NULL ? name : find_missing_part(engine, e->resolved);
    }
    if (name != NULL) {
        refuse(e, name);
    }
    guard_marks_fini(&marks);
    guard_free(g);
    return rc;
}
