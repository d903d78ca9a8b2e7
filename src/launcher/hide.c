/*
 * What lies over hidden things. Each has a file or directory of its own, which is empty and
 * can be opened: inotify(7) then tells who is ours to ask that something hidden was opened,
 * without any cost where nothing is. Nothing tells of a name that is looked up and is not there; so
 * a directory whose names may be known has an empty file or directory of each of them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "launcher/launcher_internal.h"
#include "sandbox/linux/walk.h"

/* What lies over links: nothing can be bound from one. */
#define NOTHING "nothing"

bool
tree_open_covers(struct tree *t, const char *place, struct failure *f)
{
    if (mount("shellyard", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0755,size=1m,nr_inodes=0") != 0) {
        return failed(f, STAGE_MOUNTS, errno, "a tmpfs for what lies over hidden things");
    }

    int fd = walk_open(place);

    if (fd < 0) {
        return failed(f, STAGE_MOUNTS, -fd, place);
    }
    t->covers_fd = fd;

    SY_FD nothing = openat(fd, NOTHING, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

    return nothing >= 0 ? true : failed(f, STAGE_MOUNTS, errno, NOTHING);
}

static void
copy_name(int cover, int from, const struct dirent *e)
{
    struct stat st;
    mode_t type = (mode_t)DTTOIF(e->d_type);

    if (e->d_type == DT_UNKNOWN) {
        type = fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
    }
    if (S_ISDIR(type)) {
        (void)mkdirat(cover, e->d_name, 0555);
    } else if (S_ISREG(type) || S_ISLNK(type)) {
        (void)mknodat(cover, e->d_name, S_IFREG | 0444, 0);
    }
}

/* As far as it can be had: a name that is missing here is hidden all the same. */
static void
copy_names(int cover, int hidden)
{
    int from = openat(hidden, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = from >= 0 ? fdopendir(from) : NULL;
    const struct dirent *e = NULL;

    if (dir == NULL) {
        fd_close(&from);
        return;
    }
    for (unsigned n = 0; n < LIMIT_HIDDEN_NAMES && (e = readdir(dir)) != NULL;) {
        if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..")) {
            copy_name(cover, from, e);
            n++;
        }
    }
    (void)closedir(dir);
}

/* One that nothing else has. Negative errno values. */
static int
make_cover(const struct tree *t, int target, bool is_dir, bool has_names)
{
    char name[32];
    int fd = -1;

    (void)snprintf(name, sizeof(name), "%u", t->n_hidden);
    if (is_dir) {
        if (mkdirat(t->covers_fd, name, 0755) != 0) {
            return -errno;
        }
        fd = openat(t->covers_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && has_names) {
            copy_names(fd, target);
        }
    } else {
        fd = openat(t->covers_fd, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
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

static int
put_cover(int cover, int target)
{
    SY_FD over = mount_clone_fd(cover, false);
    int sys = over < 0 ? over : mount_restrict(over, MOUNT_READ_ONLY, false);

    return sys < 0 ? sys : mount_put_fd(over, target);
}

int
tree_hide(struct tree *t, int target, bool has_names)
{
    struct stat st;
    bool is_dir = target >= 0 && fstat(target, &st) == 0 && S_ISDIR(st.st_mode);
    /* Whoever commands run as has to be able to open them. */
    mode_t mask = umask(0);

    t->n_hidden++;

    SY_FD cover = make_cover(t, target, is_dir, has_names);

    (void)umask(mask);
    watch(t, cover);
    if (cover < 0 || target < 0) {
        return cover < 0 ? cover : target;
    }
    return put_cover(cover, target);
}

int
tree_hide_link(const struct tree *t, int target)
{
    SY_FD cover = openat(t->covers_fd, NOTHING, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return cover < 0 ? -errno : put_cover(cover, target);
}
