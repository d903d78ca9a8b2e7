/*
 * What lies over hidden things. Each has a file or directory of its own, which is empty and
 * can be opened: inotify(7) then tells who is ours to ask that something hidden was opened,
 * without any cost where nothing is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <errno.h>

#include "base/fd.h"
#include "launcher/launcher_internal.h"

/* One that no other template of the yard has. Negative errno values. */
static int
make_cover(const struct tree *t, bool is_dir)
{
    char name[64];
    int fd = -1;

    (void)snprintf(name, sizeof(name), "hidden-%d-%u", (int)getpid(), t->n_hidden);
    if (is_dir) {
        /* A process number comes again: what is there then is as empty. */
        if (mkdirat(t->yard_fd, name, 0555) != 0 && errno != EEXIST) {
            return -errno;
        }
        fd = openat(t->yard_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    } else {
        fd = openat(t->yard_fd, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
    }
    return fd >= 0 ? fd : -errno;
}

/* The n-th hidden thing is the n-th watch, or there is none from then on. */
static void
watch(struct tree *t, int cover)
{
    char path[64];

    if (t->n_hidden == 1) {
        t->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", cover);
    if (t->watch_fd >= 0 &&
        (cover < 0 || inotify_add_watch(t->watch_fd, path, IN_OPEN) != (int)t->n_hidden)) {
        fd_close(&t->watch_fd);
    }
}

int
tree_hide(struct tree *t, int target)
{
    struct stat st;
    bool is_dir = target >= 0 && fstat(target, &st) == 0 && S_ISDIR(st.st_mode);

    t->n_hidden++;

    SY_FD cover = make_cover(t, is_dir);

    watch(t, cover);
    if (cover < 0 || target < 0) {
        return cover < 0 ? cover : target;
    }

    SY_FD over = mount_clone_fd(cover, false);
    int sys = over < 0 ? over : mount_restrict(over, MOUNT_READ_ONLY, false);

    return sys < 0 ? sys : mount_put_fd(over, target);
}
