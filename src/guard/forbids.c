/*
 * Changes of files that we make ourselves for an agent. A command may make what is harmful, since
 * mounts or the look after the run hold it; here the names decide before anything happens.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/str.h"
#include "guard/guard_internal.h"

/* A path being walked down from its root. */
struct descent {
    const struct guard *g;
    char *const *all;
    struct buf dir; /* so far */
    enum node_kind kind;
    bool is_bare;
    enum guard_name rule;
};

/* Is there such an entry, or will there be one? */
static bool
has_entry(const struct descent *d, const char *name)
{
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_PATH * 2};
    struct stat st;

    if (path_join(&path, buf_view(&d->dir), name) != SY_E_OK) {
        return true; /* what can't be looked at may be there */
    }
    for (char *const *one = d->all; *one != NULL; one++) {
        if (path_is_below(*one, path.data)) {
            return true;
        }
    }
    return lstat(path.data, &st) == 0;
}

static bool
is_git_dir(const struct descent *d)
{
    return has_entry(d, "HEAD") &&
           (has_entry(d, "commondir") || (has_entry(d, "objects") && has_entry(d, "refs")));
}

static bool
is_home(const struct descent *d)
{
    for (size_t i = 0; i < d->g->homes.n; i++) {
        struct stat a;
        struct stat b;

        if (str_eq(d->g->homes.v[i], buf_view(&d->dir)) ||
            (stat(d->g->homes.v[i], &a) == 0 && stat(buf_view(&d->dir), &b) == 0 &&
             a.st_dev == b.st_dev && a.st_ino == b.st_ino)) {
            return true;
        }
    }
    return false;
}

/* A rule that is lifted forbids nothing. */
static bool
forbid(struct descent *d, enum guard_name rule)
{
    d->rule = rule;
    return !d->g->is_lifted[rule];
}

static bool
enter_plain(struct descent *d, const char *name, bool is_last)
{
    enum guard_name rule;

    if (guard_name_find(&rule, name, is_home(d)) && !d->g->is_lifted[rule]) {
        return forbid(d, rule);
    }
    if (!str_eq(name, ".git")) {
        return false;
    }
    if (is_last) {
        return forbid(d, GUARD_GIT_FILE);
    }
    d->kind = NODE_GIT;
    d->is_bare = false;
    return !has_entry(d, ".git/HEAD") && forbid(d, GUARD_GIT);
}

static bool
enter_git(struct descent *d, const char *name)
{
    static const struct {
        const char *name;
        enum guard_name rule;
    } parts[] = {
        {"hooks",           GUARD_GIT_HOOKS    },
        {"config",          GUARD_GIT_CONFIG   },
        {"config.worktree", GUARD_GIT_WORKTREE },
        {"commondir",       GUARD_GIT_COMMONDIR},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (str_eq(parts[i].name, name)) {
            return forbid(d, parts[i].rule);
        }
    }
    d->kind = str_eq(name, "info")        ? NODE_INFO
              : str_eq(name, "modules")   ? NODE_MODULES
              : str_eq(name, "worktrees") ? NODE_WORKTREES
              : d->is_bare                ? NODE_DIR
                                          : NODE_HOOKS; /* objects, refs: nothing is held there */
    return false;
}

static bool
enter_worktree(struct descent *d, const char *name)
{
    return (str_eq(name, "config.worktree") && forbid(d, GUARD_GIT_WORKTREE)) ||
           (str_eq(name, "commondir") && forbid(d, GUARD_GIT_COMMONDIR));
}

/* One component; true: it is protected. */
static bool
enter(struct descent *d, const char *name, bool is_last)
{
    switch (d->kind) {
    case NODE_DIR:
        return enter_plain(d, name, is_last);
    case NODE_GIT:
        return (d->is_bare && enter_plain(d, name, is_last)) ||
               (d->kind == NODE_GIT && enter_git(d, name));
    case NODE_MODULES: {
        bool is_held = enter_git(d, name);

        d->kind = d->kind == NODE_HOOKS || d->kind == NODE_DIR ? NODE_MODULES : d->kind;
        return is_held;
    }
    case NODE_INFO:
        return str_eq(name, "attributes") && forbid(d, GUARD_GIT_ATTRIBUTES);
    case NODE_WORKTREES:
        d->kind = NODE_WORKTREE;
        return false;
    case NODE_WORKTREE:
        return enter_worktree(d, name);
    case NODE_HOOKS:
    case NODE_OWN:
        break;
    }
    return false;
}

static bool
descend(struct descent *d, const char *rest)
{
    char name[LIMIT_PATH];

    while (*rest != '\0') {
        size_t n = strcspn(rest, "/");

        if (n == 0 || n >= sizeof(name)) {
            return forbid(d, GUARD_GIT);
        }
        memcpy(name, rest, n);
        name[n] = '\0';
        rest += n + (rest[n] == '/' ? 1 : 0);
        if (d->kind == NODE_DIR && is_git_dir(d)) {
            d->kind = NODE_GIT;
            d->is_bare = true;
        }
        if (enter(d, name, *rest == '\0')) {
            return true;
        }
        if (buf_addf(&d->dir, "/%s", name) != SY_E_OK) {
            return forbid(d, GUARD_GIT);
        }
    }
    return false;
}

/* Paths that configurations name, and what else the walk has found. */
static enum sy_code
find_mark(bool *ret, enum guard_name *ret_rule, const struct guard *g, const char *path)
{
    struct guard_marks marks = {0};
    enum sy_code rc = marks_collect(g, &marks);

    for (size_t i = 0; rc == SY_E_OK && !*ret && i < marks.n; i++) {
        const struct guard_mark *m = &marks.v[i];

        *ret = m->action == GUARD_READ_ONLY && path_is_below(path, m->path) &&
               guard_name_parse(ret_rule, m->rule);
    }
    guard_marks_fini(&marks);
    return rc;
}

enum sy_code
guard_forbids(bool *ret, enum guard_name *ret_rule, const struct guard *g, const char *path,
              char *const *all)
{
    struct descent d = {.g = g, .all = all, .dir = {.max = (size_t)LIMIT_PATH * 2}};
    const char *root = NULL;
    enum sy_code rc = SY_E_OK;

    *ret = false;
    for (size_t i = 0; i < g->roots.n; i++) {
        const char *one = g->roots.v[i];

        if (path_is_below(path, one) && (root == NULL || strlen(one) > strlen(root))) {
            root = one;
        }
    }
    if (root == NULL || str_eq(path, root)) {
        return SY_E_OK; /* not ours to hold */
    }
    rc = buf_add_str(&d.dir, str_eq(root, "/") ? "" : root);
    if (rc == SY_E_OK) {
        *ret = descend(&d, path + d.dir.len + 1);
        *ret_rule = d.rule;
    }
    buf_fini(&d.dir);
    return rc == SY_E_OK && !*ret ? find_mark(ret, ret_rule, g, path) : rc;
}
