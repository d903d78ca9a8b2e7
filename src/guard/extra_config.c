/* What the configuration of a git directory names, with all that it includes. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/extra.h"
#include "guard/git_config.h"

/* Owners whose configuration is read anew when a file that they share has changed. */
#define OWNERS_MAX 16U
struct reading {
    struct guard *g;
    const struct guard_node *git;
    struct buf git_dir;
    struct buf worktree; /* where relative hook paths begin */
    const char *dir;     /* where relative includes of the file begin that is read */
};

static enum sy_code
on_path(struct reading *r, const char *base, const char *value, enum guard_name rule)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    const struct guard_extra like = {.rule = rule, .owner = r->git};
    enum sy_code rc;

    if (value == NULL || value[0] == '\0') {
        return SY_E_OK;
    }
    if (str_starts(value, "~/") && r->g->homes.n > 0) {
        rc = path_join(&joined, r->g->homes.v[0], value + 2);
    } else {
        rc = path_join(&joined, base, value);
    }
    if (rc == SY_E_OK) {
        rc = path_normalize(&plain, buf_view(&joined));
    }
    if (rc == SY_E_OK && !path_is_below(buf_view(&r->worktree), buf_view(&plain))) {
        rc = extra_add(r->g, &like, buf_view(&plain));
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

/* Is it this git directory, or one of its worktrees, to which that link or pointer leads? */
static bool
leads_here(const struct reading *r, const struct guard_extra *x)
{
    const char *dir = buf_view(&r->git_dir);
    size_t n = r->git_dir.len;

    return x->is_link && x->rule == GUARD_GIT_FILE && path_is_below(x->path, dir) &&
           (x->path[n] == '\0' || str_starts(x->path + n, "/worktrees/"));
}

/* Relative hook paths begin at the top of each work tree that the directory has. */
static enum sy_code
on_hooks(struct reading *r, const char *value)
{
    enum sy_code rc = on_path(r, buf_view(&r->worktree), value, GUARD_GIT_HOOKS_PATH);
    size_t n = r->g->n_extras;

    for (size_t i = 0; i < n && rc == SY_E_OK && value != NULL && value[0] != '/'; i++) {
        SY_AUTO(buf_fini) struct buf top = {.max = LIMIT_PATH};

        if (leads_here(r, &r->g->extras[i])) {
            rc = node_path(&top, r->g->extras[i].owner);
            rc = rc == SY_E_OK ? on_path(r, buf_view(&top), value, GUARD_GIT_HOOKS_PATH) : rc;
        }
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static enum sy_code
on_worktree(void *arg, const struct git_config_entry *e)
{
    struct reading *r = arg;
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};

    if (!str_eq(e->section, "core") || !str_eq(e->key, "worktree") || e->value == NULL ||
        path_join(&joined, buf_view(&r->git_dir), e->value) != SY_E_OK) {
        return SY_E_OK;
    }
    return path_normalize(&r->worktree, buf_view(&joined)) == SY_E_NOMEM ? SY_E_NOMEM : SY_E_OK;
}

static enum sy_code
on_entry(void *arg, const struct git_config_entry *e)
{
    struct reading *r = arg;

    if (str_eq(e->section, "core") && str_eq(e->key, "hookspath")) {
        return on_hooks(r, e->value);
    }
    if (str_eq(e->section, "core") && str_eq(e->key, "fsmonitor") && e->value != NULL &&
        strchr(e->value, '/') != NULL && strpbrk(e->value, " \t;|&$`") == NULL) {
        return on_hooks(r, e->value);
    }
    if ((str_eq(e->section, "include") || str_eq(e->section, "includeif")) &&
        str_eq(e->key, "path")) {
        return on_path(r, r->dir, e->value, GUARD_GIT_INCLUDE);
    }
    return SY_E_OK;
}

/* Below a root, from link to link as git would get there. Negative: an errno value. */
static int
open_linked(const struct guard *g, const char *path)
{
    SY_AUTO(buf_fini) struct buf at = {.max = LIMIT_PATH};

    if (buf_add_str(&at, path) != SY_E_OK) {
        return -ENOMEM;
    }
    for (int hops = 0; hops < EXTRA_LINKS_MAX; hops++) {
        size_t i = 0;
        char target[LIMIT_PATH];
        SY_AUTO(buf_fini) struct buf next = {.max = LIMIT_PATH};

        while (i < g->roots.n && (!path_is_below(buf_view(&at), g->roots.v[i]) ||
                                  str_eq(buf_view(&at), g->roots.v[i]))) {
            i++;
        }
        if (i == g->roots.n) {
            return -ENOENT;
        }

        const char *below = buf_view(&at) + strlen(g->roots.v[i]);
        int fd = open_below(g->root_fds[i], below + strspn(below, "/"), O_RDONLY | O_NONBLOCK);

        if (fd != -ELOOP) {
            return fd;
        }

        SY_FD link = open_below(g->root_fds[i], below + strspn(below, "/"), O_PATH);
        ssize_t n = link >= 0 ? readlinkat(link, "", target, sizeof(target) - 1) : -1;

        if (n <= 0) {
            return -ELOOP;
        }
        target[n] = '\0';
        if (extra_beside(&next, buf_view(&at), target) != SY_E_OK) {
            return -ENAMETOOLONG;
        }
        buf_fini(&at);
        at = next;
        next = (struct buf){.max = LIMIT_PATH};
    }
    return -ELOOP;
}

static enum sy_code
read_one(struct reading *r, const char *path)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GIT_CONFIG};
    SY_FD fd = open_linked(r->g, path);

    if (fd < 0 || fd_read_all(fd, &text, NULL) != SY_E_OK) {
        return SY_E_OK;
    }

    enum sy_code rc = git_config_read(buf_view(&text), text.len, on_worktree, r, NULL);

    if (rc == SY_E_OK) {
        rc = git_config_read(buf_view(&text), text.len, on_entry, r, NULL);
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static enum sy_code
read_own(struct reading *r, const char *name)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    enum sy_code rc = buf_addf(&path, "%s/%s", buf_view(&r->git_dir), name);

    r->dir = buf_view(&r->git_dir);
    return rc == SY_E_OK ? read_one(r, buf_view(&path)) : rc;
}

/* What is included includes more: each that is met is added behind, and read in its turn. */
static enum sy_code
read_included(struct reading *r)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < r->g->n_extras && rc == SY_E_OK; i++) {
        const struct guard_extra *x = &r->g->extras[i];
        const char *path = x->path;

        if (x->owner != r->git || x->is_link || x->rule != GUARD_GIT_INCLUDE) {
            continue;
        }

        SY_AUTO(mem_free_charp) char *dir = mem_strndup(path, (size_t)(path_base(path) - path));

        if (dir == NULL) {
            return SY_E_NOMEM;
        }
        r->dir = dir;
        rc = read_one(r, path);
        r->dir = NULL;
    }
    return rc;
}

/* Where its work tree is, unless its configuration says so: where a pointer or link to it lies, or
 * around it. */
static enum sy_code
find_worktree(struct reading *r)
{
    for (size_t i = 0; i < r->g->n_extras; i++) {
        const struct guard_extra *x = &r->g->extras[i];

        if (x->is_link && x->rule == GUARD_GIT_FILE && str_eq(x->path, buf_view(&r->git_dir))) {
            return node_path(&r->worktree, x->owner);
        }
    }
    return node_path(&r->worktree,
                     r->git->is_bare || r->git->parent == NULL ? r->git : r->git->parent);
}

enum sy_code
extra_read(struct guard *g, const struct guard_node *git)
{
    struct reading r = {
        .g = g, .git = git, .git_dir = {.max = LIMIT_PATH}, .worktree = {.max = LIMIT_PATH}};
    enum sy_code rc = node_path(&r.git_dir, git);

    if (rc == SY_E_OK) {
        extra_drop_named(g, git);
        rc = find_worktree(&r);
    }
    if (rc == SY_E_OK) {
        rc = read_own(&r, "config");
    }
    if (rc == SY_E_OK) {
        rc = read_own(&r, "config.worktree");
    }
    if (rc == SY_E_OK) {
        rc = read_included(&r);
    }
    buf_fini(&r.git_dir);
    buf_fini(&r.worktree);
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

/* All whose configuration lies in further files. */
static enum sy_code
read_again(struct guard *g)
{
    const struct guard_node *done[OWNERS_MAX];
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < g->n_extras && n < OWNERS_MAX && rc == SY_E_OK; i++) {
        const struct guard_node *owner = g->extras[i].owner;
        bool is_done = owner->kind != NODE_GIT;

        for (size_t k = 0; k < n; k++) {
            is_done |= done[k] == owner;
        }
        if (!is_done) {
            done[n++] = owner;
            rc = extra_read(g, owner);
            i = SIZE_MAX; /* they are in another order now: from the first on */
        }
    }
    return rc;
}

enum sy_code
extra_changed(struct guard *g, const struct guard_node *node, enum guard_name rule)
{
    bool is_own = node->kind == NODE_GIT || node->kind == NODE_WORKTREE;

    if (rule != GUARD_GIT_CONFIG && rule != GUARD_GIT_WORKTREE && rule != GUARD_GIT_INCLUDE) {
        return SY_E_OK;
    }
    return is_own && rule != GUARD_GIT_INCLUDE ? extra_read(g, node) : read_again(g);
}
