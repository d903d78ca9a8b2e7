/*
 * Paths that are protected for what leads to them: those that the configuration of a git
 * directory names, and what protected names that are links, and files .git, point to.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/git_config.h"
#include "guard/guard_internal.h"

/* Owners whose configuration is read anew when a file that they share has changed. */
#define OWNERS_MAX 16U
/* Links that are followed from one file to the next, as the kernel does. */
#define LINKS_MAX 8

struct reading {
    struct guard *g;
    const struct guard_node *git;
    struct buf git_dir;
    struct buf worktree; /* where relative hook paths begin */
    const char *dir;     /* where relative includes of the file begin that is read */
};

/* What a link at `path` means by its target. */
static enum sy_code
path_beside(struct buf *ret, const char *path, const char *target)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};
    SY_AUTO(mem_free_charp) char *dir = mem_strndup(path, (size_t)(path_base(path) - path));
    enum sy_code rc = dir != NULL ? path_join(&joined, dir, target) : SY_E_NOMEM;

    return rc == SY_E_OK ? path_normalize(ret, buf_view(&joined)) : rc;
}

static bool
is_inside(const struct guard *g, const char *path)
{
    bool is_below = false;

    for (size_t i = 0; i < g->roots.n; i++) {
        if (path_is_below(g->roots.v[i], path)) {
            return false; /* a whole root can't be protected from its own commands */
        }
        is_below |= path_is_below(path, g->roots.v[i]);
    }
    return is_below;
}

/* What is known on the way there is looked at again: it may have been before this was. */
static enum sy_code
queue_way(struct guard *g, const char *path)
{
    SY_AUTO(mem_free_charp) char *dir = mem_strdup(path);

    if (dir == NULL) {
        return SY_E_NOMEM;
    }
    for (char *slash = strrchr(dir, '/'); slash != NULL && slash != dir;
         slash = strrchr(dir, '/')) {
        *slash = '\0';

        struct guard_node *parent = node_at(g, dir);

        if (parent != NULL) {
            node_queue(g, parent);
            return SY_E_OK;
        }
    }
    return SY_E_OK;
}

static enum sy_code
add_extra(struct guard *g, const struct guard_extra *like, const char *path)
{
    if (!is_inside(g, path)) {
        return SY_E_OK;
    }
    for (size_t i = 0; i < g->n_extras; i++) {
        struct guard_extra *x = &g->extras[i];

        if (x->owner == like->owner && x->rule == like->rule && x->is_link == like->is_link &&
            str_eq(x->path, path)) {
            x->is_seen = true;
            return SY_E_OK;
        }
    }
    if (g->n_extras >= LIMIT_GUARD_EXTRAS) {
        scan_tell_incomplete(g, like->owner, "too many paths that links and configurations name");
        return SY_E_OK;
    }

    struct guard_extra *more = mem_realloc(g->extras, (g->n_extras + 1) * sizeof(*more));
    char *copy = more != NULL ? mem_strdup(path) : NULL;

    if (more != NULL) {
        g->extras = more;
    }
    if (copy == NULL) {
        return SY_E_NOMEM;
    }
    more[g->n_extras] = *like;
    more[g->n_extras].path = copy;
    more[g->n_extras++].is_seen = true;
    tree_touch(g);
    return queue_way(g, path);
}

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
        rc = add_extra(r->g, &like, buf_view(&plain));
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
    for (int hops = 0; hops < LINKS_MAX; hops++) {
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
        if (path_beside(&next, buf_view(&at), target) != SY_E_OK) {
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

static void
drop(struct guard *g, const struct guard_node *owner, bool with_links)
{
    for (size_t i = 0; i < g->n_extras;) {
        if (g->extras[i].owner == owner && (with_links || !g->extras[i].is_link)) {
            mem_free(g->extras[i].path);
            g->extras[i] = g->extras[--g->n_extras];
        } else {
            i++;
        }
    }
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
        drop(g, git, false);
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

void
extra_drop(struct guard *g, const struct guard_node *owner)
{
    drop(g, owner, true);
}

void
extra_links_begin(struct guard *g, const struct guard_node *node)
{
    for (size_t i = 0; i < g->n_extras; i++) {
        if (g->extras[i].owner == node && g->extras[i].is_link) {
            g->extras[i].is_seen = false;
        }
    }
}

enum sy_code
extra_links_end(struct guard *g, const struct guard_node *node)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < g->n_extras && rc == SY_E_OK;) {
        struct guard_extra *x = &g->extras[i];

        if (x->owner == node && x->is_link && !x->is_seen) {
            rc = queue_way(g, x->path); /* it is something else now */
            mem_free(x->path);
            *x = g->extras[--g->n_extras];
            tree_touch(g);
        } else {
            i++;
        }
    }
    return rc;
}

/* "gitdir: PATH" and the end of the line. */
static ssize_t
read_pointer(int dir_fd, const char *name, char *ret, size_t size)
{
    static const char start[] = "gitdir: ";
    SY_FD fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, size) : -1;
    size_t skip = sizeof(start) - 1;

    if (n <= (ssize_t)skip || memcmp(ret, start, skip) != 0) {
        return -1;
    }
    n -= (ssize_t)skip;
    memmove(ret, ret + skip, (size_t)n);
    while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\r')) {
        n--;
    }
    return n;
}

enum sy_code
extra_link(struct guard *g, const struct guard_node *node, int dir_fd, const char *name,
           const struct guard_file *like)
{
    char target[LIMIT_PATH];
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    const struct guard_extra extra = {.rule = like->rule, .owner = node, .is_link = true};
    size_t before = g->n_extras;
    ssize_t n = S_ISLNK(like->id.mode) ? readlinkat(dir_fd, name, target, sizeof(target) - 1)
                                       : read_pointer(dir_fd, name, target, sizeof(target) - 1);
    enum sy_code rc = SY_E_OK;

    if (n <= 0 || n >= (ssize_t)sizeof(target) - 1) {
        return SY_E_OK;
    }
    target[n] = '\0';
    rc = node_path(&dir, node);
    if (rc == SY_E_OK) {
        rc = buf_addf(&dir, "/%s", name);
    }
    if (rc == SY_E_OK) {
        rc = path_beside(&plain, buf_view(&dir), target);
    }
    /* Not what the link itself lies in; submodules' git directories are known by where they are,
     * and say themselves where their work tree is. */
    if (rc == SY_E_OK && !path_is_below(buf_view(&dir), buf_view(&plain)) &&
        strstr(buf_view(&plain), "/.git/modules/") == NULL) {
        rc = add_extra(g, &extra, buf_view(&plain));
    }
    if (rc == SY_E_OK && g->n_extras > before && like->rule == GUARD_GIT_FILE) {
        /* Now it is known where its work tree is. */
        struct guard_node *git = node_at(g, buf_view(&plain));

        rc = git != NULL && git->kind == NODE_GIT ? extra_read(g, git) : SY_E_OK;
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

bool
extra_leads(const struct guard *g, const struct guard_node *dir, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < g->n_extras; i++) {
        const char *path = g->extras[i].path;

        /* Most by their text alone. */
        for (const char *at = strstr(path, name); at != NULL; at = strstr(at + 1, name)) {
            SY_AUTO(buf_fini) struct buf above = {.max = LIMIT_PATH};

            if (at == path || at[-1] != '/' || (at[len] != '/' && at[len] != '\0')) {
                continue;
            }
            if (node_path(&above, dir) == SY_E_OK && above.len + 1 == (size_t)(at - path) &&
                strncmp(buf_view(&above), path, above.len) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool
extra_find(enum guard_name *ret, const struct guard *g, const struct guard_node *dir,
           const char *name)
{
    for (size_t i = 0; i < g->n_extras; i++) {
        const char *path = g->extras[i].path;
        const char *base = path_base(path);

        if (!str_eq(base, name)) {
            continue;
        }

        SY_AUTO(buf_fini) struct buf at = {.max = LIMIT_PATH};

        if (node_path(&at, dir) == SY_E_OK && at.len + 1 == (size_t)(base - path) &&
            strncmp(buf_view(&at), path, at.len) == 0) {
            *ret = g->extras[i].rule;
            return true;
        }
    }
    return false;
}
