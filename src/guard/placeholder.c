#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"
#include "guard/journal.h"
#include "guard/place.h"

/* Names that should be there and are not: each with a journal entry to be. */
struct wanted {
    struct guard *g;
    struct journal_entries list;
};

static bool
has_entry(const struct guard_node *node, const char *name)
{
    const struct guard_file *f = node_file(node, name);

    for (const struct guard_node *c = node->first; c != NULL; c = c->next) {
        if (!c->is_gone && str_eq(c->name, name)) {
            return true;
        }
    }
    return f != NULL && !f->is_gone;
}

static enum sy_code
want(struct wanted *w, const struct guard_node *node, const char *name, bool is_dir)
{
    struct journal_entry e = {.is_dir = is_dir, .owners = {.max = LIMIT_GUARD_OWNERS}};
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

    if (has_entry(node, name) || w->list.n >= LIMIT_GUARD_PLACEHOLDERS) {
        return SY_E_OK;
    }

    enum sy_code rc = node_path(&path, node);

    if (rc == SY_E_OK) {
        rc = buf_addf(&path, "%s%s", str_eq(buf_view(&path), "/") ? "" : "/", name);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_OK;
    }
    e.path = buf_take(&path);
    if (e.path == NULL) {
        return SY_E_NOMEM;
    }
    return journal_entries_add(&w->list, &e);
}

static enum sy_code
want_of_top(struct wanted *w, const struct guard_node *node, bool is_root)
{
    enum sy_code rc = SY_E_OK;
    enum guard_name rule;

    if (is_root && !w->g->is_lifted[GUARD_GIT]) {
        rc = want(w, node, ".git", true);
    }
    for (int i = 0; i < GUARD_NAME_COUNT && rc == SY_E_OK; i++) {
        const char *name = guard_name_text((enum guard_name)i);

        if (!w->g->is_lifted[i] && guard_name_find(&rule, name, node->is_home) &&
            (is_root || !guard_name_find(&rule, name, false))) {
            rc = want(w, node, name, true);
        }
    }
    return rc;
}

static enum sy_code
want_of_git(struct wanted *w, const struct guard_node *node)
{
    const bool *lifted = w->g->is_lifted;
    enum sy_code rc = SY_E_OK;

    if (!lifted[GUARD_GIT_HOOKS]) {
        rc = want(w, node, "hooks", true);
    }
    if (rc == SY_E_OK && !lifted[GUARD_GIT_CONFIG]) {
        rc = want(w, node, "config", false);
    }
    if (rc == SY_E_OK && !lifted[GUARD_GIT_WORKTREE]) {
        rc = want(w, node, "config.worktree", false);
    }
    if (rc == SY_E_OK && !lifted[GUARD_GIT_ATTRIBUTES]) {
        rc = want(w, node, "info", true);
    }
    return rc;
}

static enum sy_code
want_of_extras(struct wanted *w)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < w->g->n_extras && rc == SY_E_OK; i++) {
        const struct guard_extra *x = &w->g->extras[i];
        const char *base = path_base(x->path);
        SY_AUTO(mem_free_charp) char *dir = mem_strndup(x->path, (size_t)(base - x->path));

        if (dir == NULL) {
            return SY_E_NOMEM;
        }

        const struct guard_node *parent = node_at(w->g, dir);

        if (w->g->is_lifted[x->rule] || x->is_link || parent == NULL || parent->is_new) {
            continue;
        }
        /* Files show in git, but not in its own directory. */
        if (x->rule == GUARD_GIT_HOOKS_PATH &&
            (parent->kind == NODE_DIR || parent->kind == NODE_GIT)) {
            rc = want(w, parent, base, true);
        } else if (x->rule == GUARD_GIT_INCLUDE && parent->kind == NODE_GIT) {
            rc = want(w, parent, base, false);
        }
    }
    return rc;
}

/* A root that is the git directory of a repository (that of a linked worktree): nobody opens an
 * editor or starts a shell in there, and git has all its names. */
static bool
is_gits_own(const struct guard_node *n)
{
    return n->kind == NODE_GIT && str_eq(path_base(n->name), ".git");
}

static enum sy_code
want_of_node(struct wanted *w, const struct guard_node *n)
{
    enum sy_code rc = SY_E_OK;

    if (n->is_new || n->is_gone || n->ino == 0 || (n->is_placeholder && n->kind != NODE_INFO)) {
        return SY_E_OK;
    }
    if ((n->parent == NULL || n->is_home) && !is_gits_own(n)) {
        rc = want_of_top(w, n, n->parent == NULL);
    }
    if (rc == SY_E_OK && n->kind == NODE_GIT) {
        rc = want_of_git(w, n);
    }
    if (rc == SY_E_OK && n->kind == NODE_INFO && !w->g->is_lifted[GUARD_GIT_ATTRIBUTES]) {
        rc = want(w, n, "attributes", false);
    }
    if (rc == SY_E_OK && n->kind == NODE_WORKTREE && !w->g->is_lifted[GUARD_GIT_WORKTREE]) {
        rc = want(w, n, "config.worktree", false);
    }
    return rc;
}

static enum sy_code
collect(struct wanted *w)
{
    enum sy_code rc = SY_E_OK;

    for (struct guard_node *n = node_walk(w->g, NULL); n != NULL && rc == SY_E_OK;
         n = node_walk(w->g, n)) {
        rc = want_of_node(w, n);
    }
    if (rc == SY_E_OK) {
        rc = want_of_extras(w);
    }
    return rc;
}

bool
placeholder_is_ours(const struct guard *g, dev_t dev, ino_t ino)
{
    for (size_t i = 0; i < g->n_placeholders; i++) {
        if (g->placeholders[i].ino == ino && g->placeholders[i].dev == dev) {
            return true;
        }
    }
    return false;
}

static enum sy_code
remember(struct guard *g, const struct journal_entry *e)
{
    struct guard_placeholder *more =
        mem_realloc(g->placeholders, (g->n_placeholders + 1) * sizeof(*more));
    char *path = more != NULL ? mem_strdup(e->path) : NULL;

    if (more != NULL) {
        g->placeholders = more;
    }
    if (path == NULL) {
        return SY_E_NOMEM;
    }
    more[g->n_placeholders++] =
        (struct guard_placeholder){.path = path, .dev = (dev_t)e->dev, .ino = (ino_t)e->ino};
    return SY_E_OK;
}

static void
queue_parent(struct guard *g, const char *path)
{
    char *dir = mem_strndup(path, (size_t)(path_base(path) - path));
    struct guard_node *parent = dir != NULL ? node_at(g, dir) : NULL;

    mem_free(dir);
    if (parent != NULL) {
        node_queue(g, parent);
    }
}

/* What stands at a path, if it is known, and the directory that holds it. */
static void
queue_place(struct guard *g, const char *path)
{
    struct guard_node *node = node_at(g, path);

    if (node != NULL) {
        node->ino = 0; /* what it is to us has changed */
        node_queue(g, node);
    }
    queue_parent(g, path);
}

/* Removes what nobody uses any more; what could not be tried stays in the list. */
static uint32_t
clear_unused(struct journal_entries *e)
{
    uint32_t cleared = 0;

    for (size_t i = e->n; i > 0; i--) {
        if (e->v[i - 1].owners.n == 0 && place_remove(&e->v[i - 1])) {
            journal_entries_remove(e, i - 1);
            cleared++;
        }
    }
    return cleared;
}

static struct journal_entry *
find(struct journal_entries *e, const char *path)
{
    for (size_t i = 0; i < e->n; i++) {
        if (str_eq(e->v[i].path, path)) {
            return &e->v[i];
        }
    }
    return NULL;
}

static bool
owns(const struct journal_entry *e, const char *id)
{
    for (size_t i = 0; i < e->owners.n; i++) {
        if (str_eq(e->owners.v[i], id)) {
            return true;
        }
    }
    return false;
}

/* Moves what is wanted into the journal's list, but for what is there already. */
static enum sy_code
enter(struct wanted *w, struct journal_entries *all, size_t *ret_first, struct sy_error *err)
{
    const char *id = journal_id(w->g->journal);
    enum sy_code rc = SY_E_OK;

    *ret_first = all->n;
    while (w->list.n > 0 && rc == SY_E_OK) {
        struct journal_entry e = w->list.v[--w->list.n];
        struct journal_entry *other = find(all, e.path);

        if (other != NULL && !place_is_there(other)) {
            /* Somebody removed it. */
            journal_entries_remove(all, (size_t)(other - all->v));
            (*ret_first)--;
            other = NULL;
        }
        if (other != NULL) {
            mem_free(e.path);
            continue;
        }
        rc = place_temp(&e, err);
        if (rc == SY_E_OK) {
            rc = strv_add(&e.owners, id);
        }
        if (rc == SY_E_OK) {
            rc = journal_entries_add(all, &e);
        } else {
            mem_free(e.path);
            mem_free(e.temp);
            strv_fini(&e.owners);
        }
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc == SY_E_LIMIT ? SY_E_OK : rc;
}

/* What was entered from `first` on: made, journalled, moved into place. */
static enum sy_code
make(struct guard *g, struct journal_entries *all, size_t first, struct sy_error *err)
{
    size_t before = all->n;

    for (size_t i = all->n; i > first; i--) {
        if (!place_make(&all->v[i - 1])) {
            journal_entries_remove(all, i - 1);
        }
    }

    enum sy_code rc = journal_write(g->journal, all, err);

    for (size_t i = all->n; i > first && rc == SY_E_OK; i--) {
        if (!place_move(&all->v[i - 1])) {
            journal_entries_remove(all, i - 1);
            continue;
        }
        queue_parent(g, all->v[i - 1].path);
        rc = remember(g, &all->v[i - 1]);
    }
    if (rc == SY_E_OK && all->n != before) {
        rc = journal_write(g->journal, all, err);
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}

/* Those of our list that stand there no more are forgotten (journal included). */
static void
drop_lost(struct guard *g, struct journal_entries *all)
{
    for (size_t i = g->n_placeholders; i > 0; i--) {
        struct guard_placeholder *p = &g->placeholders[i - 1];
        struct journal_entry *e = find(all, p->path);

        if (e != NULL && place_is_there(e)) {
            continue;
        }
        if (e != NULL) {
            journal_entries_remove(all, (size_t)(e - all->v));
        }
        mem_free(p->path);
        *p = g->placeholders[--g->n_placeholders];
    }
}

/* Placeholders of other engines below our roots become ours too, so that
 * they outlive those. */
static enum sy_code
join_others(struct guard *g, struct journal_entries *all)
{
    const char *id = journal_id(g->journal);
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < all->n && rc == SY_E_OK; i++) {
        struct journal_entry *e = &all->v[i];
        bool is_below = false;

        for (size_t k = 0; k < g->roots.n; k++) {
            is_below |= path_is_below(e->path, g->roots.v[k]);
        }
        if (is_below && !owns(e, id) && place_is_there(e)) {
            rc = strv_add(&e->owners, id);
            if (rc == SY_E_OK) {
                rc = remember(g, e);
            }
            queue_place(g, e->path);
        }
    }
    return rc;
}

enum sy_code
placeholders_make(struct guard *g, struct sy_error *err)
{
    struct wanted w = {.g = g};
    struct journal_entries all = {0};
    size_t first = 0;

    if (!g->has_mounts || g->journal == NULL || !g->needs_places) {
        return SY_E_OK;
    }

    enum sy_code rc = collect(&w);

    if (rc == SY_E_OK && (w.list.n > 0 || !g->has_joined)) {
        rc = journal_begin(g->journal, &all, err);
        if (rc == SY_E_OK) {
            (void)clear_unused(&all);
            drop_lost(g, &all);
            rc = join_others(g, &all);
        }
        if (rc == SY_E_OK) {
            rc = enter(&w, &all, &first, err);
        }
        if (rc == SY_E_OK) {
            rc = journal_write(g->journal, &all, err);
        }
        if (rc == SY_E_OK) {
            rc = make(g, &all, first, err);
        }
        journal_end(g->journal);
    }
    journal_entries_fini(&all);
    journal_entries_fini(&w.list);
    if (rc == SY_E_OK) {
        g->needs_places = false;
        g->has_joined = true;
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}

static void
forget_all(struct guard *g)
{
    for (size_t i = 0; i < g->n_placeholders; i++) {
        mem_free(g->placeholders[i].path);
    }
    mem_free(g->placeholders);
    g->placeholders = NULL;
    g->n_placeholders = 0;
    g->needs_places = true;
    g->has_joined = false;
}

/* Takes our id out of all entries. */
static void
leave_all(struct guard *g, struct journal_entries *all)
{
    const char *id = journal_id(g->journal);

    for (size_t i = 0; i < all->n; i++) {
        struct strv *owners = &all->v[i].owners;

        for (size_t k = owners->n; k > 0; k--) {
            if (str_eq(owners->v[k - 1], id)) {
                strv_remove(owners, k - 1);
                queue_parent(g, all->v[i].path);
            }
        }
    }
}

/* Where a root is by now, if it was renamed: its descriptor knows. false: it was not. */
static bool
root_has_moved(const struct guard *g, size_t i, char now[LIMIT_PATH])
{
    char link[32];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", g->root_fds[i]);

    ssize_t n = g->root_fds[i] >= 0 ? readlink(link, now, LIMIT_PATH - 1) : -1;

    if (n <= 0 || now[0] != '/') {
        return false;
    }
    now[n] = '\0';
    return !str_eq(now, g->roots.v[i]);
}

/* What went away with its root is looked for where that is: it is removed if it is the very same.
 */
static void
follow_roots(struct guard *g, struct journal_entries *all)
{
    const char *id = journal_id(g->journal);
    char now[LIMIT_PATH];

    for (size_t i = 0; i < g->roots.n; i++) {
        const size_t len = strlen(g->roots.v[i]);

        if (!root_has_moved(g, i, now)) {
            continue;
        }
        for (size_t k = 0; k < all->n; k++) {
            struct journal_entry *e = &all->v[k];
            SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
            char *was = e->path;

            if (!owns(e, id) || !path_is_below(was, g->roots.v[i]) || place_is_there(e) ||
                buf_addf(&path, "%s%s", now, was + len) != SY_E_OK) {
                continue;
            }
            e->path = mem_unconst(buf_view(&path));
            if (place_is_there(e)) {
                e->path = buf_take(&path);
                mem_free(was);
            } else {
                e->path = was;
            }
        }
    }
}

void
placeholders_remove(struct guard *g)
{
    struct journal_entries all = {0};

    if (g->n_placeholders > 0 && journal_begin(g->journal, &all, NULL) == SY_E_OK) {
        follow_roots(g, &all);
        leave_all(g, &all);
        (void)clear_unused(&all);
        /* What can't be written now, the next engine clears: we are dead to it then. */
        enum sy_code rc = journal_write(g->journal, &all, NULL);

        (void)rc;
        journal_end(g->journal);
        journal_entries_fini(&all);
    }
    forget_all(g);
}

bool
placeholder_is_listed(struct guard *g, const char *dir, const char *name, ino_t ino)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    struct journal_entries all = {0};
    bool is_listed = false;

    if (g->state_dir == NULL || (g->journal == NULL && !journal_exists(g->state_dir)) ||
        guard_open_journal(g, NULL) != SY_E_OK || buf_addf(&path, "%s/%s", dir, name) != SY_E_OK ||
        journal_begin(g->journal, &all, NULL) != SY_E_OK) {
        return false;
    }

    const struct journal_entry *e = find(&all, buf_view(&path));

    is_listed = e != NULL && (ino_t)e->ino == ino && place_is_there(e);
    journal_end(g->journal);
    journal_entries_fini(&all);
    return is_listed;
}

enum sy_code
guard_recover(const char *state_dir, uint32_t *ret_removed, struct sy_error *err)
{
    struct journal *j = NULL;
    struct journal_entries all = {0};
    uint32_t removed = 0;
    enum sy_code rc = journal_open(&j, state_dir, err);

    if (rc == SY_E_OK) {
        rc = journal_begin(j, &all, err);
    }
    if (rc == SY_E_OK && all.n > 0) {
        removed = clear_unused(&all);
        rc = removed > 0 ? journal_write(j, &all, err) : SY_E_OK;
    }
    journal_entries_fini(&all);
    journal_close(j);
    if (rc == SY_E_OK && ret_removed != NULL) {
        *ret_removed = removed;
    }
    return rc;
}
