#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"

void
guard_marks_fini(struct guard_marks *m)
{
    for (size_t i = 0; i < m->n; i++) {
        mem_free(m->v[i].path);
    }
    mem_free(m->v);
    *m = (struct guard_marks){0};
}

struct collector {
    const struct guard *g;
    struct guard_marks *marks;
    size_t cap;
    struct buf path;
};

/* Takes the path. */
static enum sy_code
add(struct collector *c, char *path, const struct guard_mark *like)
{
    if (path == NULL) {
        return SY_E_NOMEM;
    }
    if (c->marks->n == c->cap) {
        size_t cap = c->cap > 0 ? c->cap * 2 : 32;
        struct guard_mark *more = mem_realloc(c->marks->v, cap * sizeof(*more));

        if (more == NULL) {
            mem_free(path);
            return SY_E_NOMEM;
        }
        c->marks->v = more;
        c->cap = cap;
    }
    c->marks->v[c->marks->n] = *like;
    c->marks->v[c->marks->n++].path = path;
    return SY_E_OK;
}

/* The person made this path, or one below it, writable by name. */
static bool
holds_root(const struct guard *g, const char *path)
{
    for (size_t i = 0; i < g->roots.n; i++) {
        if (path_is_below(g->roots.v[i], path)) {
            return true;
        }
    }
    return false;
}

static enum sy_code
add_node(struct collector *c, const struct guard_node *n, enum guard_action action,
         enum guard_name rule)
{
    struct guard_mark mark = {
        .action = action,
        .is_dir = true,
        .is_placeholder = n->is_placeholder,
        .dev = n->dev,
        .ino = n->ino,
        .btime_ns = n->btime_ns,
        .rule = guard_name_text(rule),
    };

    buf_reset(&c->path);

    enum sy_code rc = node_path(&c->path, n);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_OK; /* too long for the kernel, too */
    }
    if (action == GUARD_READ_ONLY && holds_root(c->g, buf_view(&c->path))) {
        mark.action = GUARD_PIN;
    }
    return add(c, mem_strdup(buf_view(&c->path)), &mark);
}

static enum sy_code
add_file(struct collector *c, const struct guard_node *n, const struct guard_file *f)
{
    struct guard_mark mark = {
        .action = GUARD_READ_ONLY,
        .is_symlink = S_ISLNK(f->id.mode),
        .is_placeholder = placeholder_is_ours(c->g, f->id.dev, f->id.ino),
        .dev = f->id.dev,
        .ino = f->id.ino,
        .btime_ns = f->id.btime_ns,
        .rule = guard_name_text(f->rule),
    };

    buf_reset(&c->path);

    enum sy_code rc = node_path(&c->path, n);

    if (rc == SY_E_OK) {
        rc = buf_addf(&c->path, "%s%s", str_eq(buf_view(&c->path), "/") ? "" : "/", f->name);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_OK;
    }
    return add(c, mem_strdup(buf_view(&c->path)), &mark);
}

static bool
is_told(const struct guard_file *f)
{
    return !f->is_gone && f->was.ino != 0;
}

/* All between a marked path and its root that is not pinned yet. Parents are met
 * first, so their flag (is_seen, free outside of a scan) says what is there. */
static enum sy_code
pin_up(struct collector *c, struct guard_node *n)
{
    for (; n->parent != NULL && !n->is_seen; n = n->parent) {
        enum sy_code rc = add_node(c, n, GUARD_PIN, n->rule);

        if (rc != SY_E_OK) {
            return rc;
        }
        n->is_seen = true;
    }
    return SY_E_OK;
}

/* Read-only with all that it holds. git writes into info, which is there for what is in it. */
static bool
is_whole(const struct guard_node *n)
{
    return n->is_top || (n->is_placeholder && n->kind != NODE_INFO);
}

static bool
is_below_whole(const struct guard_node *n)
{
    for (n = n->parent; n != NULL; n = n->parent) {
        if (is_whole(n) || n->is_new || n->is_gone) {
            return true;
        }
    }
    return false;
}

/* Nothing in a git directory is protected: a person has lifted all of it. */
static bool
is_git_lifted(const struct guard *g)
{
    const bool *lifted = g->is_lifted;

    return lifted[GUARD_GIT] && lifted[GUARD_GIT_HOOKS] && lifted[GUARD_GIT_CONFIG] &&
           lifted[GUARD_GIT_WORKTREE] && lifted[GUARD_GIT_ATTRIBUTES];
}

static enum sy_code
collect_node(struct collector *c, struct guard_node *n)
{
    enum sy_code rc = SY_E_OK;

    if (n->is_new || n->is_gone || n->ino == 0 || is_below_whole(n)) {
        return SY_E_OK;
    }
    if (is_whole(n)) {
        rc = add_node(c, n, GUARD_READ_ONLY, n->rule);
        n->is_seen = true;
        return rc == SY_E_OK && n->parent != NULL ? pin_up(c, n->parent) : rc;
    }
    /* A git directory is pinned even if nothing in it is there yet. */
    if (n->kind == NODE_GIT && !n->is_bare && !is_git_lifted(c->g)) {
        rc = pin_up(c, n);
    }
    for (uint32_t i = 0; i < n->n_files && rc == SY_E_OK; i++) {
        if (is_told(&n->files[i])) {
            rc = add_file(c, n, &n->files[i]);
            if (rc == SY_E_OK) {
                rc = pin_up(c, n);
            }
        }
    }
    return rc;
}

static int
by_path(const void *a, const void *b)
{
    return strcmp(((const struct guard_mark *)a)->path, ((const struct guard_mark *)b)->path);
}

/* Roots may lie in one another: the stricter of two marks of one path stays. */
static void
drop_doubles(struct guard_marks *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->n; i++) {
        if (kept > 0 && str_eq(m->v[kept - 1].path, m->v[i].path)) {
            if (m->v[i].action == GUARD_READ_ONLY) {
                m->v[kept - 1].action = GUARD_READ_ONLY;
            }
            mem_free(m->v[i].path);
        } else {
            m->v[kept++] = m->v[i];
        }
    }
    m->n = kept;
}

enum sy_code
marks_collect(const struct guard *g, struct guard_marks *ret)
{
    struct collector c = {.g = g, .marks = ret, .path = {.max = LIMIT_PATH}};
    enum sy_code rc = SY_E_OK;

    *ret = (struct guard_marks){0};
    for (struct guard_node *n = node_walk(g, NULL); n != NULL; n = node_walk(g, n)) {
        n->is_seen = false;
    }
    for (struct guard_node *n = node_walk(g, NULL); n != NULL && rc == SY_E_OK;
         n = node_walk(g, n)) {
        rc = collect_node(&c, n);
    }
    buf_fini(&c.path);
    if (rc != SY_E_OK) {
        guard_marks_fini(ret);
        return rc;
    }
    if (ret->n > 0) {
        qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
    }
    drop_doubles(ret);
    return SY_E_OK;
}

void
marks_forget(struct guard *g)
{
    for (size_t i = 0; i < g->n_told; i++) {
        mem_free(g->told[i].path);
    }
    mem_free(g->told);
    g->told = NULL;
    g->n_told = 0;
}

static bool
was_told(const struct guard *g, const struct guard_mark *m)
{
    size_t low = 0;
    size_t high = g->n_told;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(g->told[mid].path, m->path);

        if (order == 0) {
            const struct guard_told *t = &g->told[mid];

            return t->dev == m->dev && t->ino == m->ino && t->btime_ns == m->btime_ns &&
                   t->action == m->action;
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return false;
}

static enum sy_code
remember(struct guard *g, const struct guard_marks *all)
{
    struct guard_told *told = mem_alloc_zero(all->n + 1, sizeof(*told));

    for (size_t i = 0; told != NULL && i < all->n; i++) {
        const struct guard_mark *m = &all->v[i];

        told[i] = (struct guard_told){
            .path = mem_strdup(m->path),
            .dev = m->dev,
            .ino = m->ino,
            .btime_ns = m->btime_ns,
            .action = m->action,
            .is_placeholder = m->is_placeholder,
            .rule = m->rule,
        };
        if (told[i].path == NULL) {
            while (i > 0) {
                mem_free(told[--i].path);
            }
            mem_free(told);
            told = NULL;
        }
    }
    if (told == NULL) {
        return SY_E_NOMEM;
    }
    marks_forget(g);
    g->told = told;
    g->n_told = all->n;
    return SY_E_OK;
}

enum sy_code
marks_changes(struct guard *g, struct guard_marks *changes)
{
    struct guard_marks all;
    size_t kept = 0;

    *changes = (struct guard_marks){0};
    if (!g->tree_changed) {
        return SY_E_OK;
    }

    enum sy_code rc = marks_collect(g, &all);

    if (rc != SY_E_OK) {
        return rc;
    }
    *changes = (struct guard_marks){.v = mem_alloc_zero(all.n + 1, sizeof(*changes->v))};
    rc = changes->v != NULL ? SY_E_OK : SY_E_NOMEM;
    for (size_t i = 0; i < all.n && rc == SY_E_OK; i++) {
        if (was_told(g, &all.v[i])) {
            continue;
        }
        changes->v[kept] = all.v[i];
        changes->v[kept].path = mem_strdup(all.v[i].path);
        if (changes->v[kept].path == NULL) {
            rc = SY_E_NOMEM;
        } else {
            changes->n = ++kept;
        }
    }
    if (rc == SY_E_OK) {
        rc = remember(g, &all);
    }
    guard_marks_fini(&all);
    if (rc != SY_E_OK) {
        guard_marks_fini(changes);
        return rc;
    }
    g->tree_changed = false;
    return SY_E_OK;
}
