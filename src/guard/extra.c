#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/git_config.h"
#include "guard/guard_internal.h"

struct reading {
    struct guard *g;
    const struct guard_node *git;
    const char *git_dir;
    struct buf worktree; /* where relative hook paths begin */
};

static enum sy_code
add_extra(struct reading *r, const char *path, enum guard_name rule)
{
    struct guard *g = r->g;
    bool is_inside = false;

    for (size_t i = 0; i < g->roots.n; i++) {
        if (path_is_below(g->roots.v[i], path)) {
            return SY_E_OK; /* a whole root can't be protected from its own commands */
        }
        is_inside |= path_is_below(path, g->roots.v[i]);
    }
    if (!is_inside || path_is_below(buf_view(&r->worktree), path) ||
        g->n_extras >= LIMIT_GUARD_EXTRAS) {
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
    more[g->n_extras++] = (struct guard_extra){.path = copy, .rule = rule, .owner = r->git};

    /* The directory that holds it may have been looked at already. */
    SY_AUTO(mem_free_charp) char *dir = mem_strndup(path, (size_t)(path_base(path) - path));

    if (dir == NULL) {
        return SY_E_NOMEM;
    }

    struct guard_node *parent = node_at(g, dir);

    if (parent != NULL) {
        node_queue(g, parent);
    }
    return SY_E_OK;
}

static enum sy_code
on_path(struct reading *r, const char *base, const char *value, enum guard_name rule)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
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
    if (rc == SY_E_OK) {
        rc = add_extra(r, buf_view(&plain), rule);
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static enum sy_code
on_worktree(void *arg, const struct git_config_entry *e)
{
    struct reading *r = arg;
    SY_AUTO(buf_fini) struct buf joined = {.max = LIMIT_PATH};

    if (!str_eq(e->section, "core") || !str_eq(e->key, "worktree") || e->value == NULL ||
        path_join(&joined, r->git_dir, e->value) != SY_E_OK) {
        return SY_E_OK;
    }
    return path_normalize(&r->worktree, buf_view(&joined)) == SY_E_NOMEM ? SY_E_NOMEM : SY_E_OK;
}

static enum sy_code
on_entry(void *arg, const struct git_config_entry *e)
{
    struct reading *r = arg;

    if (str_eq(e->section, "core") && str_eq(e->key, "hookspath")) {
        return on_path(r, buf_view(&r->worktree), e->value, GUARD_GIT_HOOKS_PATH);
    }
    if (str_eq(e->section, "core") && str_eq(e->key, "fsmonitor") && e->value != NULL &&
        strchr(e->value, '/') != NULL && strpbrk(e->value, " \t;|&$`") == NULL) {
        return on_path(r, buf_view(&r->worktree), e->value, GUARD_GIT_HOOKS_PATH);
    }
    if ((str_eq(e->section, "include") || str_eq(e->section, "includeif")) &&
        str_eq(e->key, "path")) {
        return on_path(r, r->git_dir, e->value, GUARD_GIT_INCLUDE);
    }
    return SY_E_OK;
}

static enum sy_code
read_one(struct reading *r, int dir_fd, const char *name)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GIT_CONFIG};
    SY_FD fd = open_below(dir_fd, name, O_RDONLY | O_NONBLOCK);

    if (fd < 0 || fd_read_all(fd, &text, NULL) != SY_E_OK) {
        return SY_E_OK;
    }

    enum sy_code rc = git_config_read(buf_view(&text), text.len, on_worktree, r, NULL);

    if (rc == SY_E_OK) {
        rc = git_config_read(buf_view(&text), text.len, on_entry, r, NULL);
    }
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

enum sy_code
extra_read(struct guard *g, const struct guard_node *git)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    struct reading r = {.g = g, .git = git, .worktree = {.max = LIMIT_PATH}};
    SY_FD fd = node_open(g, git, O_RDONLY | O_DIRECTORY);
    enum sy_code rc = node_path(&path, git);

    if (fd < 0 || rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_OK;
    }
    extra_drop(g, git);
    r.git_dir = buf_view(&path);
    rc = git->is_bare || git->parent == NULL ? node_path(&r.worktree, git)
                                             : node_path(&r.worktree, git->parent);
    if (rc == SY_E_OK) {
        rc = read_one(&r, fd, "config");
    }
    if (rc == SY_E_OK) {
        rc = read_one(&r, fd, "config.worktree");
    }
    buf_fini(&r.worktree);
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

void
extra_drop(struct guard *g, const struct guard_node *owner)
{
    for (size_t i = 0; i < g->n_extras;) {
        if (g->extras[i].owner == owner) {
            mem_free(g->extras[i].path);
            g->extras[i] = g->extras[--g->n_extras];
        } else {
            i++;
        }
    }
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
