/* Paths that are protected for what leads to them: kept, found, and those of links. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/git_pointer.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/extra.h"
#include "guard/meaning.h"

enum sy_code
extra_beside(struct buf *ret, const char *path, const char *target)
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
add_plain(struct guard *g, const struct guard_extra *like, const char *path)
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

/* A link on the way to a path below a root: *ret is where the path leads by it, *ret_link how much
 * of it is the link. False: there is none. */
static bool
find_way(const struct guard *g, const char *path, size_t *ret_link, struct buf *ret)
{
    size_t i = 0;
    char target[LIMIT_PATH];
    char part[LIMIT_PATH];

    while (i < g->roots.n && !path_is_below(path, g->roots.v[i])) {
        i++;
    }
    if (i == g->roots.n || strlen(path) >= sizeof(part)) {
        return false;
    }

    size_t start = strlen(g->roots.v[i]);

    start += strspn(path + start, "/");
    for (const char *end = strchr(path + start, '/'); end != NULL; end = strchr(end + 1, '/')) {
        size_t n = (size_t)(end - path);

        memcpy(part, path, n);
        part[n] = '\0';

        SY_FD fd = open_below(g->root_fds[i], part + start, O_PATH);
        ssize_t len = fd >= 0 ? readlinkat(fd, "", target, sizeof(target) - 1) : -1;

        if (fd < 0) {
            return false;
        }
        if (len > 0) {
            SY_AUTO(buf_fini) struct buf there = {.max = LIMIT_PATH};

            target[len] = '\0';
            *ret_link = n;
            return extra_beside(&there, part, target) == SY_E_OK &&
                   path_join(ret, buf_view(&there), end + 1) == SY_E_OK;
        }
    }
    return false;
}

enum sy_code
extra_add(struct guard *g, const struct guard_extra *like, const char *path)
{
    SY_AUTO(mem_free_charp) char *at = mem_strdup(path);
    struct guard_extra way = *like;
    enum sy_code rc = at != NULL ? SY_E_OK : SY_E_NOMEM;

    way.is_way = true;
    for (int hops = 0; rc == SY_E_OK && hops < EXTRA_LINKS_MAX; hops++) {
        SY_AUTO(buf_fini) struct buf next = {.max = LIMIT_PATH};
        size_t link = 0;

        if (!find_way(g, at, &link, &next)) {
            break;
        }
        at[link] = '\0';
        rc = add_plain(g, &way, at);
        mem_free(at);
        at = buf_take(&next);
        rc = at != NULL ? rc : SY_E_NOMEM;
    }
    return rc == SY_E_OK ? add_plain(g, like, at) : rc;
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

void
extra_drop_named(struct guard *g, const struct guard_node *owner)
{
    drop(g, owner, false);
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

/* Where a link or a file `.git` leads, as it says it, in `text`. NULL: nowhere. */
static const char *
read_target(char text[LIMIT_PATH], int dir_fd, const char *name, bool is_link)
{
    SY_FD fd = is_link ? -1 : openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = is_link   ? readlinkat(dir_fd, name, text, LIMIT_PATH - 1)
                : fd >= 0 ? read(fd, text, LIMIT_PATH - 1)
                          : -1;

    if (n <= 0 || n >= LIMIT_PATH - 1) {
        return NULL;
    }
    text[n] = '\0';
    return is_link ? text : git_pointer_path(text, (size_t)n);
}

/* A link that is only passed: where it leads is protected no further than what was named. One that
 * is protected for its own name is not: it is passed besides. */
static bool
is_way_only(const struct guard *g, const struct guard_node *dir, const char *name, const char *path)
{
    bool is_way = false;

    if (!meaning_of(g, dir, name, ENTRY_LINK).is_extra) {
        return false;
    }
    for (size_t i = 0; i < g->n_extras; i++) {
        if (str_eq(g->extras[i].path, path)) {
            if (!g->extras[i].is_way) {
                return false;
            }
            is_way = true;
        }
    }
    return is_way;
}

/* The configuration of the git directory to which a link or pointer leads, or in which it leads to
 * a linked work tree: whichever of them is met last, relative hook paths count in both. */
static enum sy_code
read_git_dir(struct guard *g, struct buf *path)
{
    struct guard_node *git = node_at(g, buf_view(path));
    size_t repository = git_pointer_repository(buf_view(path));

    if ((git == NULL || git->kind != NODE_GIT) && repository > 0) {
        path->data[repository] = '\0';
        git = node_at(g, path->data);
    }
    return git != NULL && git->kind == NODE_GIT ? extra_read(g, git) : SY_E_OK;
}

enum sy_code
extra_link(struct guard *g, const struct guard_node *node, int dir_fd, const char *name,
           const struct guard_file *like)
{
    char text[LIMIT_PATH];
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf plain = {.max = LIMIT_PATH};
    const struct guard_extra extra = {.rule = like->rule, .owner = node, .is_link = true};
    size_t before = g->n_extras;
    const char *target = read_target(text, dir_fd, name, S_ISLNK(like->id.mode));
    enum sy_code rc = SY_E_OK;

    if (target == NULL) {
        return SY_E_OK;
    }
    rc = node_path(&dir, node);
    if (rc == SY_E_OK) {
        rc = buf_addf(&dir, "/%s", name);
    }
    if (rc == SY_E_OK && is_way_only(g, node, name, buf_view(&dir))) {
        return SY_E_OK;
    }
    if (rc == SY_E_OK) {
        rc = extra_beside(&plain, buf_view(&dir), target);
    }
    /* Not what the link itself lies in; submodules' git directories are known by where they are,
     * and say themselves where their work tree is. */
    if (rc == SY_E_OK && !path_is_below(buf_view(&dir), buf_view(&plain)) &&
        strstr(buf_view(&plain), "/.git/modules/") == NULL) {
        rc = extra_add(g, &extra, buf_view(&plain));
    }
    if (rc == SY_E_OK && g->n_extras > before && like->rule == GUARD_GIT_FILE) {
        /* Now it is known where its work tree is. */
        rc = read_git_dir(g, &plain);
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
