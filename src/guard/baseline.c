#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"

static enum sy_code
keep_copy(struct guard *g, struct guard_file *f, char *bytes, size_t len)
{
    g->copied += len;
    g->copied -= f->copy_len;
    mem_free(f->copy);
    f->copy = bytes;
    f->copy_len = len;
    f->has_copy = true;
    return SY_E_OK;
}

/* What it holds now, to put it back. Without mounts alone: with them it can't change. */
static enum sy_code
take_copy(struct guard *g, int dir_fd, struct guard_file *f)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_GUARD_COPY};
    struct guard_ident id;

    f->has_copy = false;
    if (f->id.size > LIMIT_GUARD_COPY || g->copied + (size_t)f->id.size > LIMIT_GUARD_COPIES) {
        return SY_E_OK;
    }
    if (S_ISLNK(f->id.mode)) {
        char target[LIMIT_PATH];
        ssize_t n = readlinkat(dir_fd, f->name, target, sizeof(target));
        char *bytes = n >= 0 ? mem_strndup(target, (size_t)n) : NULL;

        return bytes != NULL ? keep_copy(g, f, bytes, (size_t)n) : n >= 0 ? SY_E_NOMEM : SY_E_OK;
    }

    SY_FD fd = openat(dir_fd, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (!S_ISREG(f->id.mode) || fd < 0 || ident_read(&id, fd, "") != 0) {
        return SY_E_OK;
    }
    if (!ident_equal(&id, &f->id)) {
        return SY_E_OK; /* just changed: the next look sees it */
    }

    enum sy_code rc = fd_read_all(fd, &text, NULL);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_OK;
    }

    size_t len = text.len;
    char *bytes = len > 0 ? buf_take(&text) : mem_strndup("", 0);

    return bytes != NULL ? keep_copy(g, f, bytes, len) : SY_E_NOMEM;
}

static enum sy_code
take_files(struct guard *g, struct guard_node *n)
{
    SY_FD dir_fd = -1;
    enum sy_code rc = SY_E_OK;

    for (uint32_t i = 0; i < n->n_files && rc == SY_E_OK;) {
        struct guard_file *f = &n->files[i];

        if (f->is_gone) {
            guard_file_fini(g, f);
            g->n_files--;
            *f = n->files[--n->n_files];
            tree_touch(g);
            continue;
        }
        if (f->is_pending || !ident_equal(&f->id, &f->was)) {
            if (!g->has_mounts && dir_fd < 0) {
                dir_fd = node_open(g, n, O_PATH | O_DIRECTORY);
            }
            if (!g->has_mounts && dir_fd >= 0) {
                rc = take_copy(g, dir_fd, f);
            }
            if (f->was.ino == 0) {
                tree_touch(g);
            }
            f->was = f->id;
            f->is_pending = false;
            if (g->active > 0 && (S_ISLNK(f->id.mode) || f->rule == GUARD_GIT_FILE)) {
                node_queue(g, n); /* now it is followed (scan.c) */
            }
        }
        i++;
    }
    return rc;
}

enum sy_code
baseline_take(struct guard *g)
{
    enum sy_code rc = SY_E_OK;

    if (!g->has_pending) {
        return SY_E_OK;
    }
    for (struct guard_node *n = node_walk(g, NULL); n != NULL && rc == SY_E_OK;) {
        if (n->is_gone && n->parent != NULL) {
            struct guard_node *up = n->parent;

            /* From its parent on, whose other children are taken once more: cheap and rare. */
            node_free(g, n);
            n = up;
            continue;
        }
        if (n->is_new) {
            tree_touch(g);
        }
        n->is_new = false;
        n->became_git = false;
        n->is_adopted = false;
        rc = take_files(g, n);
        n = node_walk(g, n);
    }
    if (rc == SY_E_OK) {
        g->has_pending = false;
        mem_free(g->lost);
        g->lost = NULL;
        g->n_lost = 0;
    }
    return rc;
}

static enum sy_code
compare_file(struct guard *g, const struct guard_node *n, int dir_fd, struct guard_file *f)
{
    struct guard_ident id;

    if (f->is_gone) {
        return SY_E_OK;
    }

    int sys = ident_read(&id, dir_fd, f->name);

    if (sys != 0) {
        f->is_gone = sys == ENOENT;
        f->is_pending = true;
        g->has_pending = true;
        tree_touch(g);
        return SY_E_OK;
    }
    if (ident_equal(&id, &f->id)) {
        return SY_E_OK;
    }
    if (id.ino != f->id.ino || id.dev != f->id.dev) {
        tree_touch(g);
    }
    f->id = id;
    f->is_pending = true;
    g->has_pending = true;
    return extra_changed(g, n, f->rule);
}

static enum sy_code
list_holders(struct guard *g)
{
    size_t n = 0;

    if (!g->holders_stale) {
        return SY_E_OK;
    }
    for (struct guard_node *d = node_walk(g, NULL); d != NULL; d = node_walk(g, d)) {
        n += d->n_files > 0;
    }
    mem_free(g->holders);
    g->n_holders = 0;
    g->holders = mem_alloc_zero(n + 1, sizeof(struct guard_node *));
    if (g->holders == NULL) {
        return SY_E_NOMEM;
    }
    for (struct guard_node *d = node_walk(g, NULL); d != NULL; d = node_walk(g, d)) {
        if (d->n_files > 0) {
            g->holders[g->n_holders++] = d;
        }
    }
    g->holders_stale = false;
    return SY_E_OK;
}

enum sy_code
baseline_compare(struct guard *g)
{
    enum sy_code rc = list_holders(g);

    for (size_t k = 0; k < g->n_holders && rc == SY_E_OK; k++) {
        struct guard_node *n = g->holders[k];
        SY_FD fd = n->is_gone ? -1 : node_open(g, n, O_PATH | O_DIRECTORY);

        if (fd == -ENOMEM) {
            return SY_E_NOMEM;
        }
        for (uint32_t i = 0; fd >= 0 && i < n->n_files; i++) {
            rc = compare_file(g, n, fd, &n->files[i]);
        }
    }
    return rc;
}
