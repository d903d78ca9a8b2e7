#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"
#include "guard/meaning.h"
#include "guard/place.h"

/* Protected directories that are known however few may be searched. */
#define ROOM_MORE 256U

/* Names of one getdents64(2): most directories at once, on a stack that is used anyway. */
#define LIST_BYTES 8192

/* The kernel's record of getdents64(2). */
struct record {
    uint64_t ino;
    int64_t off;
    uint16_t len;
    uint8_t type;
    char name[];
};

struct entry {
    size_t name; /* offset in names */
    uint64_t ino;
    enum entry_type type;
};

/* What is of interest in one directory. */
struct listing {
    struct buf names;
    struct entry *v;
    size_t n;
    size_t cap;
    bool has_head;
    bool has_objects;
    bool has_refs;
    bool has_commondir;
};

static void
listing_fini(struct listing *l)
{
    buf_fini(&l->names);
    mem_free(l->v);
}

static enum entry_type
type_of(int dir_fd, const struct record *r)
{
    struct stat st;

    switch (r->type) {
    case DT_DIR:
        return ENTRY_DIR;
    case DT_LNK:
        return ENTRY_LINK;
    case DT_UNKNOWN:
        if (fstatat(dir_fd, r->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            return S_ISDIR(st.st_mode) ? ENTRY_DIR : S_ISLNK(st.st_mode) ? ENTRY_LINK : ENTRY_OTHER;
        }
        return ENTRY_OTHER;
    default:
        return ENTRY_OTHER;
    }
}

static bool
is_wanted(const struct guard *g, const struct guard_node *node, const char *name,
          enum entry_type type)
{
    enum guard_name rule;

    return type == ENTRY_DIR || node->kind != NODE_DIR || guard_name_is_part(name) ||
           guard_name_find(&rule, name, node->is_home) || extra_find(&rule, g, node, name);
}

static enum sy_code
add_entry(struct listing *l, const struct record *r, enum entry_type type)
{
    if (l->n == l->cap) {
        size_t cap = l->cap > 0 ? l->cap * 2 : 32;
        struct entry *more = mem_realloc(l->v, cap * sizeof(*more));

        if (more == NULL) {
            return SY_E_NOMEM;
        }
        l->v = more;
        l->cap = cap;
    }
    l->v[l->n++] = (struct entry){.name = l->names.len, .ino = r->ino, .type = type};
    l->has_head |= str_eq(r->name, "HEAD");
    l->has_objects |= str_eq(r->name, "objects");
    l->has_refs |= str_eq(r->name, "refs");
    l->has_commondir |= str_eq(r->name, "commondir");
    return buf_add(&l->names, r->name, strlen(r->name) + 1);
}

static enum sy_code
list_one(const struct guard *g, const struct guard_node *node, int fd, const struct record *r,
         struct listing *l)
{
    if (str_eq(r->name, ".") || str_eq(r->name, "..")) {
        return SY_E_OK;
    }

    enum entry_type type = type_of(fd, r);

    return is_wanted(g, node, r->name, type) ? add_entry(l, r, type) : SY_E_OK;
}

static enum sy_code
list(const struct guard *g, const struct guard_node *node, int fd, struct listing *l)
{
    _Alignas(struct record) char bytes[LIST_BYTES];

    for (;;) {
        long n = syscall(SYS_getdents64, fd, bytes, sizeof(bytes));

        if (n <= 0) {
            return SY_E_OK;
        }
        for (const char *at = bytes; at < bytes + n;) {
            const struct record *r = (const struct record *)(const void *)at;

            enum sy_code rc = list_one(g, node, fd, r, l);

            if (rc != SY_E_OK) {
                return rc;
            }
            at += r->len;
        }
    }
}

void
scan_tell_incomplete(struct guard *g, const struct guard_node *node, const char *why)
{
    while (node->parent != NULL) {
        node = node->parent;
    }
    g->incomplete_in = node->name;
    g->why = why;
}

static bool
has_room(struct guard *g, const struct guard_node *parent, const char *name,
         const struct meaning *m)
{
    /* Searching stops first; what is protected itself has as much again, and more. */
    uint64_t max = m->kind == NODE_DIR ? g->dirs_max : (uint64_t)g->dirs_max * 2 + ROOM_MORE;

    if (g->n_dirs >= max && m->kind == NODE_DIR && extra_leads(g, parent, name)) {
        max = (uint64_t)g->dirs_max * 2 + ROOM_MORE; /* on the way to what is protected */
    }
    if (g->n_dirs >= max) {
        scan_tell_incomplete(g, parent, "too many directories");
        return false;
    }
    if (parent->depth >= g->depth_max) {
        scan_tell_incomplete(g, parent, "directories are too deep");
        return false;
    }
    return true;
}

/* Is what it holds not looked at, since it is bound read-only as a whole? */
static bool
is_sealed(const struct guard *g, const struct guard_node *node)
{
    return g->has_mounts && !node->is_new && (node->kind == NODE_OWN || node->kind == NODE_HOOKS);
}

static enum sy_code
merge_child(struct guard *g, struct guard_node *node, const char *name, const struct entry *e,
            const struct meaning *m, struct guard_node **cursor)
{
    struct guard_node *c = *cursor;
    bool was_other = false;

    /* Directories list in the order of last time: the next one, mostly. */
    if (c == NULL || !str_eq(c->name, name)) {
        c = node->first;
        while (c != NULL && !str_eq(c->name, name)) {
            c = c->next;
        }
    }
    if (c != NULL && c->origin != m->kind) {
        *cursor = *cursor == c ? c->next : *cursor;
        was_other = c->entry_ino == e->ino && !c->is_new;
        node_free(g, c);
        c = NULL;
    }
    if (c == NULL) {
        if (!has_room(g, node, name, m)) {
            return SY_E_OK;
        }
        c = node_new(g, node, name, m->kind);
        if (c == NULL) {
            return SY_E_NOMEM;
        }
        c->is_adopted = was_other || node->is_adopted;
        c->is_new =
            g->active > 0 && !c->is_adopted && !placeholder_is_ours(g, node->dev, (ino_t)e->ino);
        c->rule = m->rule;
        c->is_top = m->is_top;
        c->entry_ino = e->ino;
        g->has_pending = true;
        node_queue(g, c);
    } else {
        *cursor = c->next;
        if (c->entry_ino != e->ino || c->is_gone) {
            c->entry_ino = e->ino;
            c->is_gone = false;
            tree_touch(g);
            node_queue(g, c);
        } else if (is_sealed(g, c)) {
            node_queue(g, c); /* not watched itself, and inode numbers come again */
        }
    }
    c->is_seen = true;
    return SY_E_OK;
}

/* What a link or a file .git leads to is protected with it, but not for one that the command of a
 * run has made: it would choose what of the work tree is quarantined. */
static enum sy_code
follow_file(struct guard *g, const struct guard_node *node, int fd, const struct guard_file *f,
            const struct guard_ident *id)
{
    const struct guard_file like = {.rule = f->rule, .id = *id};

    if ((!S_ISLNK(id->mode) && (f->rule != GUARD_GIT_FILE || !S_ISREG(id->mode))) ||
        (g->active > 0 && !ident_equal(&f->was, id))) {
        return SY_E_OK;
    }
    return extra_link(g, node, fd, f->name, &like);
}

static enum sy_code
merge_file(struct guard *g, struct guard_node *node, int fd, const char *name, enum guard_name rule)
{
    struct guard_file *f = node_file(node, name);
    struct guard_ident id;

    if (ident_read(&id, fd, name) != 0 || S_ISDIR(id.mode)) {
        return SY_E_OK;
    }
    if (f == NULL) {
        if (g->n_files >= LIMIT_GUARD_FILES) {
            scan_tell_incomplete(g, node, "too many protected files");
            return SY_E_OK;
        }

        enum sy_code rc = node_add_file(g, node, name, rule, &f);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    f->is_seen = true;

    enum sy_code linked = follow_file(g, node, fd, f, &id);

    if (linked != SY_E_OK || (!f->is_gone && ident_equal(&f->id, &id))) {
        return linked;
    }
    if (f->id.ino != id.ino || f->id.dev != id.dev || f->is_gone) {
        tree_touch(g);
    }
    if (f->was.ino == 0 && ((node->is_adopted && id.ctime_ns < g->run_wall_ns) ||
                            (id.size == 0 && placeholder_is_ours(g, id.dev, id.ino)))) {
        f->was = id;
    }
    f->id = id;
    f->is_gone = false;
    f->is_pending = !ident_equal(&f->id, &f->was);
    g->has_pending = true;
    return extra_changed(g, node, rule);
}

/* A protected directory that went during a run is kept, so that it can come back. */
static void
keep_gone(struct guard *g, struct guard_node *top)
{
    const struct guard_node *end = top;

    for (struct guard_node *n = top; n != NULL;) {
        n->is_gone = true;
        watch_remove(g, n);
        for (uint32_t i = 0; i < n->n_files; i++) {
            n->files[i].is_gone = true;
            n->files[i].is_pending = true;
        }
        if (n->first != NULL) {
            n = n->first;
            continue;
        }
        while (n != end && n->next == NULL) {
            n = n->parent;
        }
        n = n == end ? NULL : n->next;
    }
    g->has_pending = true;
    tree_touch(g);
}

static void
sweep(struct guard *g, struct guard_node *node)
{
    for (struct guard_node *c = node->first; c != NULL;) {
        struct guard_node *next = c->next;

        if (!c->is_seen && g->active > 0 && !g->has_mounts && !c->is_new &&
            (c->kind == NODE_OWN || c->kind == NODE_HOOKS)) {
            keep_gone(g, c);
        } else if (!c->is_seen) {
            node_free(g, c);
        }
        c = next;
    }
    for (uint32_t i = 0; i < node->n_files;) {
        struct guard_file *f = &node->files[i];

        if (f->is_seen || (f->is_gone && f->was.ino != 0)) {
            i++;
            continue;
        }
        tree_touch(g);
        if (g->active > 0 && f->was.ino != 0) {
            f->is_gone = true;
            f->is_pending = true;
            g->has_pending = true;
            i++;
            continue;
        }
        guard_file_fini(g, f);
        g->n_files--;
        node->files[i] = node->files[--node->n_files];
    }
}

static enum sy_code
merge(struct guard *g, struct guard_node *node, int fd, const struct listing *l)
{
    struct guard_node *cursor = node->first;
    enum sy_code rc = SY_E_OK;

    for (struct guard_node *c = node->first; c != NULL; c = c->next) {
        c->is_seen = false;
    }
    for (uint32_t i = 0; i < node->n_files; i++) {
        node->files[i].is_seen = false;
    }
    extra_links_begin(g, node);
    for (size_t i = 0; i < l->n && rc == SY_E_OK; i++) {
        const char *name = l->names.data + l->v[i].name;
        struct meaning m = meaning_of(g, node, name, l->v[i].type);

        if (m.is_child) {
            rc = merge_child(g, node, name, &l->v[i], &m, &cursor);
        } else if (m.is_file) {
            rc = merge_file(g, node, fd, name, m.rule);
        }
    }
    if (rc == SY_E_OK) {
        rc = extra_links_end(g, node);
        sweep(g, node);
    }
    return rc;
}

/* Is it a git directory by what it holds (as git tells one)? */
static void
judge_kind(struct guard *g, struct guard_node *node, const struct listing *l)
{
    bool looks = l->has_head && ((l->has_objects && l->has_refs) || l->has_commondir);
    enum node_kind kind = node->origin;

    if (node->origin != NODE_DIR && node->origin != NODE_MODULES) {
        return;
    }
    if (looks) {
        kind = NODE_GIT;
    }
    if (kind == node->kind) {
        return;
    }
    if (node->kind == NODE_GIT) {
        extra_drop(g, node);
    }
    node->kind = kind;
    node->is_bare = kind == NODE_GIT && node->origin == NODE_DIR;
    node->became_git = kind == NODE_GIT && g->active > 0;
    g->has_pending = true;
    tree_touch(g);
}

static bool
is_home(const struct guard *g, const struct guard_node *node)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};

    if (g->homes.n == 0 || node_path(&path, node) != SY_E_OK) {
        return false;
    }
    for (size_t i = 0; i < g->homes.n; i++) {
        if (str_eq(g->homes.v[i], buf_view(&path))) {
            return true;
        }
    }
    return false;
}

/* What is directly in it is looked at for links alone, for where they lead. */
static enum sy_code
follow_sealed(struct guard *g, struct guard_node *node)
{
    SY_AUTO(listing_fini) struct listing l = {.names = {.max = LIMIT_GUARD_NAMES}};
    const struct guard_file like = {.rule = node->rule, .id = {.mode = S_IFLNK}};
    SY_FD fd = node_open(g, node, O_RDONLY | O_NONBLOCK | O_DIRECTORY);

    if (fd < 0) {
        return fd == -ENOMEM ? SY_E_NOMEM : SY_E_OK;
    }
    watch_add(g, node, fd);

    enum sy_code rc = list(g, node, fd, &l);

    extra_links_begin(g, node);
    for (size_t i = 0; i < l.n && rc == SY_E_OK; i++) {
        if (l.v[i].type == ENTRY_LINK) {
            rc = extra_link(g, node, fd, l.names.data + l.v[i].name, &like);
        }
    }
    if (rc == SY_E_OK) {
        rc = extra_links_end(g, node);
    }
    return rc == SY_E_LIMIT ? SY_E_NOMEM : rc;
}

static enum sy_code
scan_one(struct guard *g, struct guard_node *node)
{
    SY_AUTO(listing_fini) struct listing l = {.names = {.max = LIMIT_GUARD_NAMES}};
    struct guard_ident id;
    bool sealed = is_sealed(g, node);
    SY_FD fd = node_open(g, node, (sealed ? O_PATH : O_RDONLY | O_NONBLOCK) | O_DIRECTORY);

    if (fd < 0) {
        if (fd == -EACCES || fd == -EPERM || fd == -EMFILE || fd == -ENFILE) {
            scan_tell_incomplete(g, node, "a directory can't be read");
        } else if (fd == -ENAMETOOLONG) {
            scan_tell_incomplete(g, node, "a path is too long");
        } else if (fd == -ENOMEM) {
            return SY_E_NOMEM;
        } else if (node->parent != NULL && !node->is_gone && !g->is_blind) {
            node_queue(g, node->parent);
        }
        return SY_E_OK;
    }
    if (ident_read(&id, fd, "") != 0) {
        return SY_E_OK;
    }
    if (node->ino != id.ino || node->dev != id.dev || node->btime_ns != id.btime_ns) {
        node->is_home = node->kind == NODE_DIR && is_home(g, node);
        node->ino = id.ino;
        node->dev = id.dev;
        node->btime_ns = id.btime_ns;
        node->is_placeholder = placeholder_is_ours(g, node->dev, node->ino);
        tree_touch(g);
    }
    node->is_held = place_has_time(id.mode, id.size, id.mtime_ns);
    if (sealed) {
        return node->is_placeholder ? SY_E_OK : follow_sealed(g, node);
    }
    watch_add(g, node, fd);

    enum sy_code rc = list(g, node, fd, &l);

    if (rc == SY_E_OK) {
        node->is_placeholder = node->is_placeholder && l.n == 0;
        judge_kind(g, node, &l);
        rc = merge(g, node, fd, &l);
    }
    return rc == SY_E_LIMIT ? SY_E_NOMEM : rc;
}

enum sy_code
scan_queued(struct guard *g)
{
    uint32_t count = 0;

    while (g->first_dirty != NULL) {
        struct guard_node *node = g->first_dirty;

        if ((++count & 63U) == 0 && clock_mono_ns() > g->walk_end_ns) {
            /* It goes on here the next time. */
            return SY_E_OK;
        }
        g->first_dirty = node->next_dirty;
        if (g->first_dirty == NULL) {
            g->last_dirty = &g->first_dirty;
        }
        node->is_queued = false;

        enum sy_code rc = scan_one(g, node);

        if (rc != SY_E_OK) {
            node_queue(g, node);
            return rc;
        }
    }
    return SY_E_OK;
}
