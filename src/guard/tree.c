#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"

struct guard_node *
node_new(struct guard *g, struct guard_node *parent, const char *name, enum node_kind kind)
{
    size_t len = strlen(name) + 1;
    struct guard_node *n = mem_alloc_zero(1, sizeof(*n) + len);

    if (n == NULL) {
        return NULL;
    }
    memcpy(n->name, name, len);
    n->wd = -1;
    n->kind = kind;
    n->origin = kind;
    n->parent = parent;
    if (parent != NULL) {
        n->depth = parent->depth + 1;
        n->rule = parent->rule;
        if (parent->last != NULL) {
            parent->last->next = n;
        } else {
            parent->first = n;
        }
        parent->last = n;
    }
    g->n_dirs++;
    tree_touch(g);
    return n;
}

static struct guard_node **
bucket(struct guard *g, int wd)
{
    return &g->by_wd[(uint32_t)wd % GUARD_WD_BUCKETS];
}

void
node_set_wd(struct guard *g, struct guard_node *node, int wd)
{
    if (node->wd >= 0) {
        struct guard_node **at = bucket(g, node->wd);

        while (*at != NULL && *at != node) {
            at = &(*at)->next_by_wd;
        }
        if (*at == node) {
            *at = node->next_by_wd;
        }
    }
    node->wd = wd;
    node->next_by_wd = NULL;
    if (wd >= 0) {
        struct guard_node **at = bucket(g, wd);

        node->next_by_wd = *at;
        *at = node;
    }
}

struct guard_node *
node_by_wd(const struct guard *g, int wd)
{
    struct guard_node *n = wd >= 0 ? g->by_wd[(uint32_t)wd % GUARD_WD_BUCKETS] : NULL;

    while (n != NULL && n->wd != wd) {
        n = n->next_by_wd;
    }
    return n;
}

/* Kept so that a tree that was moved is not taken for a new one. Out of memory: it
 * will be taken for one, which is safe. */
static void
remember_lost(struct guard *g, const struct guard_file *f)
{
    if (g->active == 0 || f->was.ino == 0 || g->n_lost >= LIMIT_GUARD_FILES) {
        return;
    }

    struct guard_lost *more = mem_realloc(g->lost, (g->n_lost + 1) * sizeof(*more));

    if (more != NULL) {
        more[g->n_lost++] = (struct guard_lost){.id = f->was, .rule = f->rule};
        g->lost = more;
    }
}

bool
guard_was_lost(const struct guard *g, const struct guard_file *f)
{
    for (size_t i = 0; i < g->n_lost; i++) {
        const struct guard_ident *id = &g->lost[i].id;

        if (g->lost[i].rule == f->rule && id->dev == f->id.dev && id->ino == f->id.ino &&
            id->size == f->id.size && id->mtime_ns == f->id.mtime_ns && id->mode == f->id.mode) {
            return true;
        }
    }
    return false;
}

void
guard_file_fini(struct guard *g, struct guard_file *f)
{
    g->copied -= f->copy_len;
    mem_free(f->copy);
    mem_free(f->name);
    *f = (struct guard_file){0};
}

static void
unqueue(struct guard *g, const struct guard_node *node)
{
    struct guard_node **at = &g->first_dirty;

    while (*at != NULL && *at != node) {
        at = &(*at)->next_dirty;
    }
    if (*at == node) {
        *at = node->next_dirty;
        if (g->last_dirty == &node->next_dirty) {
            g->last_dirty = at;
        }
    }
}

static void
free_one(struct guard *g, struct guard_node *node)
{
    if (node->is_queued) {
        unqueue(g, node);
    }
    watch_remove(g, node);
    extra_drop(g, node);
    for (uint32_t i = 0; i < node->n_files; i++) {
        remember_lost(g, &node->files[i]);
        guard_file_fini(g, &node->files[i]);
        g->n_files--;
    }
    mem_free(node->files);
    mem_free(node);
    g->n_dirs--;
    tree_touch(g);
}

static void
unlink_from_parent(struct guard *g, struct guard_node *node)
{
    if (node->parent == NULL) {
        for (size_t i = 0; i < g->roots.n; i++) {
            if (g->root_nodes[i] == node) {
                g->root_nodes[i] = NULL;
            }
        }
        return;
    }

    struct guard_node **at = &node->parent->first;
    struct guard_node *before = NULL;

    while (*at != node) {
        before = *at;
        at = &(*at)->next;
    }
    *at = node->next;
    if (node->parent->last == node) {
        node->parent->last = before;
    }
}

void
node_free(struct guard *g, struct guard_node *node)
{
    unlink_from_parent(g, node);

    /* Leaves first, without recursion: trees may be deep. */
    struct guard_node *n = node;

    for (;;) {
        while (n->first != NULL) {
            n = n->first;
        }

        struct guard_node *up = n->parent;

        if (n == node) {
            free_one(g, n);
            return;
        }
        up->first = n->next;
        free_one(g, n);
        n = up;
    }
}

enum sy_code
node_relative(struct buf *out, const struct guard_node *node, size_t *ret_root)
{
    const struct guard_node *chain[LIMIT_GUARD_DEPTH + 2];
    size_t n = 0;

    buf_reset(out);
    while (node->parent != NULL) {
        if (n == sizeof(chain) / sizeof(chain[0])) {
            return SY_E_LIMIT;
        }
        chain[n++] = node;
        node = node->parent;
    }
    *ret_root = node->entry_ino;
    if (n == 0) {
        return buf_add_char(out, '.');
    }

    enum sy_code rc = SY_E_OK;

    while (n > 0 && rc == SY_E_OK) {
        rc = buf_add_str(out, chain[--n]->name);
        if (rc == SY_E_OK && n > 0) {
            rc = buf_add_char(out, '/');
        }
    }
    return rc;
}

enum sy_code
node_path(struct buf *out, const struct guard_node *node)
{
    SY_AUTO(buf_fini) struct buf relative = {.max = LIMIT_PATH};
    const struct guard_node *root = node;
    size_t index = 0;
    enum sy_code rc = node_relative(&relative, node, &index);

    while (root->parent != NULL) {
        root = root->parent;
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, root->name);
    }
    if (rc == SY_E_OK && root != node && !str_eq(root->name, "/")) {
        rc = buf_add_char(out, '/');
    }
    if (rc == SY_E_OK && root != node) {
        rc = buf_add_str(out, buf_view(&relative));
    }
    return rc;
}

void
node_queue(struct guard *g, struct guard_node *node)
{
    if (!node->is_queued) {
        node->is_queued = true;
        node->next_dirty = NULL;
        *g->last_dirty = node;
        g->last_dirty = &node->next_dirty;
    }
}

void
node_queue_all(struct guard *g)
{
    for (struct guard_node *n = node_walk(g, NULL); n != NULL; n = node_walk(g, n)) {
        node_queue(g, n);
    }
}

static struct guard_node *
next_root(const struct guard *g, size_t from)
{
    for (size_t i = from; i < g->roots.n; i++) {
        if (g->root_nodes[i] != NULL) {
            return g->root_nodes[i];
        }
    }
    return NULL;
}

struct guard_node *
node_walk(const struct guard *g, const struct guard_node *after)
{
    if (after == NULL) {
        return next_root(g, 0);
    }
    return after->first != NULL ? after->first : node_beside(g, after);
}

struct guard_node *
node_beside(const struct guard *g, const struct guard_node *after)
{
    while (after->parent != NULL) {
        if (after->next != NULL) {
            return after->next;
        }
        after = after->parent;
    }
    return next_root(g, (size_t)after->entry_ino + 1);
}

struct guard_node *
node_at(const struct guard *g, const char *path)
{
    for (size_t i = 0; i < g->roots.n; i++) {
        struct guard_node *n = g->root_nodes[i];

        if (n == NULL || !path_is_below(path, n->name)) {
            continue;
        }

        const char *rest = path + strlen(n->name);

        while (n != NULL && *(rest += strspn(rest, "/")) != '\0') {
            size_t len = strcspn(rest, "/");

            n = n->first;
            while (n != NULL && (strncmp(n->name, rest, len) != 0 || n->name[len] != '\0')) {
                n = n->next;
            }
            rest += len;
        }
        if (n != NULL) {
            return n;
        }
    }
    return NULL;
}

struct guard_file *
node_file(const struct guard_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->n_files; i++) {
        if (str_eq(node->files[i].name, name)) {
            return &node->files[i];
        }
    }
    return NULL;
}

enum sy_code
node_add_file(struct guard *g, struct guard_node *node, const char *name, enum guard_name rule,
              struct guard_file **ret)
{
    struct guard_file *more = mem_realloc(node->files, ((size_t)node->n_files + 1) * sizeof(*more));
    char *copy = more != NULL ? mem_strdup(name) : NULL;

    if (more != NULL) {
        node->files = more;
    }
    if (copy == NULL) {
        return SY_E_NOMEM;
    }
    more[node->n_files] = (struct guard_file){.name = copy, .rule = rule};
    *ret = &more[node->n_files++];
    g->n_files++;
    tree_touch(g);
    return SY_E_OK;
}
