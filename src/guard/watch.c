#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"

/* Names only: content is compared by ident, since a write through a mapping or
 * another name of the file tells nobody. */
#define WATCH_MASK                                                                                 \
    (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR | IN_EXCL_UNLINK)

/* Events come whole; the longest has a name of 255 bytes. */
#define EVENT_BYTES 16384

void
watch_start(struct guard *g)
{
    g->is_blind = true;
    if (g->is_short) {
        return;
    }
    g->by_wd = mem_alloc_zero(GUARD_WD_BUCKETS, sizeof(struct guard_node *));
    g->inotify_fd = g->by_wd != NULL ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
    g->is_blind = g->inotify_fd < 0;
}

void
watch_remove(struct guard *g, struct guard_node *node)
{
    if (node->wd >= 0) {
        if (g->inotify_fd >= 0) {
            (void)inotify_rm_watch(g->inotify_fd, node->wd);
        }
        node_set_wd(g, node, -1);
    }
}

void
watch_add(struct guard *g, struct guard_node *node, int fd)
{
    char path[40];

    if (g->is_blind) {
        return;
    }
    /* By descriptor, so that it is the directory that was looked at. */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    int wd = inotify_add_watch(g->inotify_fd, path, WATCH_MASK);

    if (wd < 0) {
        /* Watches ran out, or no /proc: from now on each refresh walks. */
        g->is_blind = true;
        return;
    }
    if (wd == node->wd) {
        return;
    }

    struct guard_node *other = node_by_wd(g, wd);

    if (other != NULL) {
        /* The directory was moved, and where it was is not known yet (or it is
         * reachable by two names: what is in it is the same by either). */
        node_set_wd(g, other, -1);
        if (other->parent != NULL) {
            node_queue(g, other->parent);
        }
    }
    watch_remove(g, node);
    node_set_wd(g, node, wd);
}

/* Could this entry be of interest? Most are files that a build makes. */
static bool
is_interesting(const struct guard *g, const struct guard_node *node, const struct inotify_event *e)
{
    enum guard_name rule;

    if ((e->mask & IN_ISDIR) != 0 || node->kind != NODE_DIR || e->len == 0) {
        return true;
    }
    return guard_name_is_part(e->name) || guard_name_find(&rule, e->name, node->is_home) ||
           node_file(node, e->name) != NULL || extra_find(&rule, g, node, e->name);
}

static void
on_event(struct guard *g, const struct inotify_event *e)
{
    struct guard_node *node = node_by_wd(g, e->wd);

    if ((e->mask & IN_Q_OVERFLOW) != 0) {
        g->walks++;
        node_queue_all(g);
        return;
    }
    if (node == NULL) {
        return;
    }
    if ((e->mask & (IN_IGNORED | IN_UNMOUNT)) != 0) {
        /* Its name may be another directory's by now, with the same inode number. */
        node_set_wd(g, node, -1);
        node_queue(g, node);
        if (node->parent != NULL) {
            node_queue(g, node->parent);
        }
        return;
    }
    if (is_interesting(g, node, e)) {
        node_queue(g, node);
    }
}

void
watch_read(struct guard *g)
{
    _Alignas(struct inotify_event) char bytes[EVENT_BYTES];

    for (;;) {
        ssize_t n = read(g->inotify_fd, bytes, sizeof(bytes));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return;
        }
        for (const char *at = bytes; at < bytes + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(const void *)at;

            on_event(g, e);
            at += sizeof(*e) + e->len;
        }
        /* Less than a full buffer: it is empty, or will wake us again. */
        if ((size_t)n < sizeof(bytes) - sizeof(struct inotify_event) - 256) {
            return;
        }
    }
}
