#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/place.h"
#include "store/store_internal.h"
#include "store/watch.h"

struct store_watch {
    int fd;
    char path[LIMIT_PATH];
};

enum sy_code
store_watch_open(struct store_watch **ret, const struct store *st, struct sy_error *err)
{
    struct place_shown_path shown;
    struct store_watch *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return sy_err_nomem(err);
    }

    const char *end = strrchr(st->path, '/');

    SY_ASSERT(end != NULL);

    int n = snprintf(w->path, sizeof(w->path), "%.*s/%s", (int)(end - st->path), st->path,
                     STORE_CHANGES);

    SY_ASSERT(n > 0 && (size_t)n < sizeof(w->path)); /* store_open has made it */
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0 || inotify_add_watch(w->fd, w->path,
                                       IN_ATTRIB | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE_SELF |
                                           IN_MOVE_SELF | IN_DONT_FOLLOW) < 0) {
        enum sy_code rc = sy_err_sys(
            err, errno, "watching '%s' (limits: fs.inotify.max_user_instances, _watches)",
            place_visible_path(&shown, w->path));

        store_watch_close(w);
        return rc;
    }
    *ret = w;
    return SY_E_OK;
}

void
store_watch_close(struct store_watch *w)
{
    if (w != NULL) {
        fd_close(&w->fd);
        mem_free(w);
    }
}

int
store_watch_fd(const struct store_watch *w)
{
    return w->fd;
}

static bool
is_gone(const char *events, size_t len)
{
    for (size_t at = 0; at + sizeof(struct inotify_event) <= len;) {
        struct inotify_event e;

        memcpy(&e, events + at, sizeof(e));
        if ((e.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
            return true;
        }
        at += sizeof(e) + e.len;
    }
    return false;
}

/* Unlinking a file that is held open tells of its links (IN_ATTRIB), not of its end. */
static bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

enum sy_code
store_watch_drain(struct store_watch *w, struct sy_error *err)
{
    char events[4096];
    bool has_gone = false;
    ssize_t n = 0;

    do {
        n = read(w->fd, events, sizeof(events));
        has_gone = has_gone || (n > 0 && is_gone(events, (size_t)n));
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (has_gone || !is_there(w->path)) {
        struct place_shown_path shown;

        return sy_err_sys(err, ENOENT, "'%s' was moved or removed; open the store again",
                          place_visible_path(&shown, w->path));
    }
    return SY_E_OK;
}
