#include "guard/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#define NS_PER_S    1000000000ULL
#define NO_REPLACE  1U /* RENAME_NOREPLACE */
#define TEMP_LENGTH 28

static int
open_parent(const struct journal_entry *e)
{
    char dir[LIMIT_PATH]; /* no heap: out of memory must not read as "not there" */
    size_t len = (size_t)(path_base(e->path) - e->path);

    if (len >= sizeof(dir)) {
        errno = ENOENT; /* then it was never made */
        return -1;
    }
    memcpy(dir, e->path, len);
    dir[len] = '\0';
    return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* What stands at a name, as the journal has it. */
static bool
look(int dir_fd, const char *name, struct journal_entry *ret, struct statx *st)
{
    if (syscall(SYS_statx, dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                st) != 0) {
        return false;
    }
    ret->dev = makedev(st->stx_dev_major, st->stx_dev_minor);
    ret->ino = st->stx_ino;
    ret->btime_ns = (st->stx_mask & STATX_BTIME) != 0
                        ? (uint64_t)st->stx_btime.tv_sec * NS_PER_S + st->stx_btime.tv_nsec
                        : 0;
    return true;
}

static bool
is_same(int dir_fd, const char *name, const struct journal_entry *e)
{
    struct journal_entry there = {0};
    struct statx st;

    return e->ino != 0 && look(dir_fd, name, &there, &st) && there.dev == e->dev &&
           there.ino == e->ino && there.btime_ns == e->btime_ns &&
           (e->is_dir ? S_ISDIR(st.stx_mode) : S_ISREG(st.stx_mode) && st.stx_size == 0);
}

enum sy_code
place_temp(struct journal_entry *e, struct sy_error *err)
{
    uint64_t random;
    char name[TEMP_LENGTH];

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return sy_err_sys(err, errno, "random bytes");
    }
    (void)snprintf(name, sizeof(name), ".shellyard-%016llx", (unsigned long long)random);
    e->temp = mem_strdup(name);
    return e->temp != NULL ? SY_E_OK : sy_err_nomem(err);
}

bool
place_make(struct journal_entry *e)
{
    struct statx st;
    struct stat parent;
    SY_FD dir = open_parent(e);
    bool is_made = false;

    if (dir < 0 || fstat(dir, &parent) != 0) {
        return false;
    }
    if (e->is_dir) {
        is_made = mkdirat(dir, e->temp, 0755) == 0;
    } else {
        SY_FD fd = openat(dir, e->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

        is_made = fd >= 0;
    }
    if (!is_made) {
        return false;
    }
    /* Who owns the workspace can then write into it. */
    bool is_owned = geteuid() != 0 || parent.st_uid == 0 ||
                    fchownat(dir, e->temp, parent.st_uid, parent.st_gid, AT_SYMLINK_NOFOLLOW) == 0;

    const struct timespec times[2] = {
        {.tv_sec = PLACE_TIME_S, .tv_nsec = PLACE_TIME_NS},
        {.tv_sec = PLACE_TIME_S, .tv_nsec = PLACE_TIME_NS},
    };

    /* Without it, it is one for our journal alone. */
    (void)utimensat(dir, e->temp, times, AT_SYMLINK_NOFOLLOW);
    if (!is_owned || !look(dir, e->temp, e, &st)) {
        (void)unlinkat(dir, e->temp, e->is_dir ? AT_REMOVEDIR : 0);
        return false;
    }
    return true;
}

bool
place_move(const struct journal_entry *e)
{
    SY_FD dir = open_parent(e);

    if (dir < 0) {
        return false;
    }
    if (syscall(SYS_renameat2, dir, e->temp, dir, path_base(e->path), NO_REPLACE) == 0) {
        return true;
    }
    (void)unlinkat(dir, e->temp, e->is_dir ? AT_REMOVEDIR : 0);
    return false;
}

bool
place_has_time(mode_t mode, int64_t size, int64_t mtime_ns)
{
    return (S_ISDIR(mode) || (S_ISREG(mode) && size == 0)) &&
           mtime_ns == PLACE_TIME_S * (int64_t)NS_PER_S + PLACE_TIME_NS;
}

/* No entries but its own two. */
static bool
is_empty(int dir_fd, const char *name)
{
    SY_FD fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    unsigned n = 0;

    if (d == NULL) {
        return false;
    }
    (void)fd_take(&fd);
    errno = 0;
    while (n < 3 && readdir(d) != NULL) {
        n++;
    }

    bool ret = n == 2 && errno == 0;

    (void)closedir(d);
    return ret;
}

bool
place_looks_like_one(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           place_has_time(st.st_mode, (int64_t)st.st_size,
                          (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec) &&
           (!S_ISDIR(st.st_mode) || is_empty(dir_fd, name));
}

bool
place_is_there(const struct journal_entry *e)
{
    SY_FD dir = open_parent(e);

    return dir >= 0 && is_same(dir, path_base(e->path), e);
}

static bool
is_over(int sys)
{
    return sys == ENOENT || sys == ENOTEMPTY || sys == EEXIST || sys == ENOTDIR || sys == EISDIR;
}

/* A file may be written to at any moment: it is looked at again where nobody finds it. */
static bool
remove_file(int dir, const struct journal_entry *e)
{
    const char *name = path_base(e->path);

    if (syscall(SYS_renameat2, dir, name, dir, e->temp, NO_REPLACE) != 0) {
        return is_over(errno);
    }
    if (is_same(dir, e->temp, e)) {
        return unlinkat(dir, e->temp, 0) == 0;
    }
    (void)syscall(SYS_renameat2, dir, e->temp, dir, name, NO_REPLACE);
    return true;
}

bool
place_remove(const struct journal_entry *e)
{
    SY_FD dir = open_parent(e);
    struct stat st;

    if (dir < 0) {
        return errno == ENOENT || errno == ENOTDIR;
    }
    /* Its temporary name is random: whatever has it is ours, if it is empty. */
    if (fstatat(dir, e->temp, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size == 0)) &&
        unlinkat(dir, e->temp, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) != 0 && !is_over(errno)) {
        return false;
    }
    if (!is_same(dir, path_base(e->path), e)) {
        return true;
    }
    if (!e->is_dir) {
        return remove_file(dir, e);
    }
    return unlinkat(dir, path_base(e->path), AT_REMOVEDIR) == 0 || is_over(errno);
}
