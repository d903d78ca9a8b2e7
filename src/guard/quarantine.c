#include "guard/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/journal.h"

#define NO_REPLACE 1U /* RENAME_NOREPLACE */
#define TEMP_NAME  28
#define NAME_KEPT  100
#define NS_PER_S   1000000000LL

/* A copy across file systems: no deeper, no more bytes. */
#define COPY_DEPTH 32
#define COPY_BYTES 67108864 /* 64 MiB */

static bool
temp_name(char ret[TEMP_NAME])
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return false;
    }
    (void)snprintf(ret, TEMP_NAME, ".shellyard-%016llx", (unsigned long long)random);
    return true;
}

static int
move(int from_fd, const char *from, int to_fd, const char *to)
{
    if (syscall(SYS_renameat2, from_fd, from, to_fd, to, NO_REPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
    /* A file system without the flag: `to` is a name of ours that is free. */
    return renameat(from_fd, from, to_fd, to) == 0 ? 0 : errno;
}

/* The directory of this run, made at its first use. */
static int
open_run(const struct guard *g, struct buf *path)
{
    const struct journal *j = g->journal;
    char run[64];
    int state = journal_state_fd(j);

    (void)snprintf(run, sizeof(run), "%lld-%s", (long long)(g->run_wall_ns / NS_PER_S),
                   journal_id(j));
    if (mkdirat(state, "quarantine", 0700) != 0 && errno != EEXIST) {
        return -1;
    }

    SY_FD top = openat(state, "quarantine", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (top < 0 || (mkdirat(top, run, 0700) != 0 && errno != EEXIST) ||
        buf_addf(path, "%s/quarantine/%s", journal_state_path(j), run) != SY_E_OK) {
        return -1;
    }
    return openat(top, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool
copy_bytes(int from, int to, int64_t *left)
{
    char bytes[65536];

    for (;;) {
        ssize_t n = read(from, bytes, sizeof(bytes));

        if (n == 0) {
            return true;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        *left -= n;
        if (n < 0 || *left < 0 || fd_write_all(to, bytes, (size_t)n, NULL) != SY_E_OK) {
            return false;
        }
    }
}

/* Recursion is bounded by COPY_DEPTH. NOLINTBEGIN(misc-no-recursion) */
static bool copy_tree(int from_fd, const char *from, int to_fd, const char *to, int64_t *left,
                      int depth);

static bool
copy_dir(int from_fd, const char *from, int to_fd, const char *to, int64_t *left, int depth)
{
    SY_FD in = openat(from_fd, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (in < 0 || depth == 0 || mkdirat(to_fd, to, 0700) != 0) {
        return false;
    }

    SY_FD out = openat(to_fd, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = out >= 0 ? fdopendir(in) : NULL;
    bool ok = d != NULL;

    if (d == NULL) {
        return false;
    }

    int at = fd_take(&in);

    for (const struct dirent *e = readdir(d); e != NULL && ok; e = readdir(d)) {
        if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..")) {
            ok = copy_tree(at, e->d_name, out, e->d_name, left, depth - 1);
        }
    }
    (void)closedir(d);
    return ok;
}

static bool
copy_tree(int from_fd, const char *from, int to_fd, const char *to, int64_t *left, int depth)
{
    struct stat st;

    if (fstatat(from_fd, from, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    if (S_ISDIR(st.st_mode)) {
        return copy_dir(from_fd, from, to_fd, to, left, depth);
    }
    if (S_ISLNK(st.st_mode)) {
        char target[LIMIT_PATH];
        ssize_t n = readlinkat(from_fd, from, target, sizeof(target) - 1);

        if (n < 0) {
            return false;
        }
        target[n] = '\0';
        return symlinkat(target, to_fd, to) == 0;
    }
    if (!S_ISREG(st.st_mode)) {
        return true; /* a pipe or socket holds nothing to keep */
    }

    SY_FD in = openat(from_fd, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    SY_FD out = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return in >= 0 && out >= 0 && copy_bytes(in, out, left);
}

static void
remove_tree(int dir_fd, const char *name, int depth)
{
    if (unlinkat(dir_fd, name, 0) == 0 || (errno != EISDIR && errno != EPERM) || depth == 0) {
        return;
    }

    SY_FD fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d != NULL) {
        int at = fd_take(&fd);

        for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
            if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..")) {
                remove_tree(at, e->d_name, depth - 1);
            }
        }
        (void)closedir(d);
    }
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

/* NOLINTEND(misc-no-recursion) */

struct source {
    int dir_fd;
    const char *dir_path;
    const char *name;
};

/* From another file system. */
static bool
move_far(const struct source *from, int run_fd, const char *to, struct buf *path,
         const char **ret_why)
{
    int dir_fd = from->dir_fd;
    char temp[TEMP_NAME];
    int64_t left = COPY_BYTES;

    if (!temp_name(temp) || move(dir_fd, from->name, dir_fd, temp) != 0) {
        *ret_why = "it could not be renamed";
        return false;
    }
    if (copy_tree(dir_fd, temp, run_fd, to, &left, COPY_DEPTH)) {
        remove_tree(dir_fd, temp, COPY_DEPTH);
        return true;
    }
    remove_tree(run_fd, to, COPY_DEPTH);
    buf_reset(path);
    return buf_addf(path, "%s/%s", from->dir_path, temp) == SY_E_OK;
}

bool
quarantine_move(struct guard *g, int dir_fd, const char *dir_path, const char *name,
                struct buf *ret_path, const char **ret_why)
{
    const struct source from = {.dir_fd = dir_fd, .dir_path = dir_path, .name = name};
    char to[NAME_KEPT + 32];

    buf_reset(ret_path);
    if (guard_open_journal(g, NULL) != SY_E_OK) {
        *ret_why = "there is no state directory for a quarantine";
        return false;
    }

    SY_FD run_fd = open_run(g, ret_path);

    if (run_fd < 0) {
        *ret_why = "the quarantine could not be made";
        return false;
    }
    (void)snprintf(to, sizeof(to), "%llu-%.*s", (unsigned long long)++g->quarantined, NAME_KEPT,
                   name);

    int sys = move(dir_fd, name, run_fd, to);

    if (sys == EXDEV) {
        size_t len = ret_path->len;

        if (!move_far(&from, run_fd, to, ret_path, ret_why)) {
            return false;
        }
        if (ret_path->len != len) {
            return true; /* it lies elsewhere */
        }
    } else if (sys != 0) {
        *ret_why = sy_errno_text(sys);
        return false;
    }
    /* It lies there, whether there is memory to say so or not. */
    if (buf_addf(ret_path, "/%s", to) != SY_E_OK) {
        buf_reset(ret_path);
    }
    return true;
}

static bool
make_again(int dir_fd, const char *temp, const struct guard_file *f)
{
    if (S_ISLNK(f->was.mode)) {
        return symlinkat(f->copy, dir_fd, temp) == 0;
    }

    const struct timespec times[2] = {
        {.tv_nsec = UTIME_NOW                  },
        { .tv_sec = f->was.mtime_ns / NS_PER_S, .tv_nsec = f->was.mtime_ns % NS_PER_S},
    };
    SY_FD fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd >= 0 && fd_write_all(fd, f->copy, f->copy_len, NULL) == SY_E_OK &&
           (f->was.uid == geteuid() || fchown(fd, f->was.uid, f->was.gid) == 0) &&
           fchmod(fd, f->was.mode & 07777U) == 0 && futimens(fd, times) == 0;
}

bool
quarantine_restore(int dir_fd, const struct guard_file *f)
{
    char temp[TEMP_NAME];

    if (!temp_name(temp)) {
        return false;
    }
    if (make_again(dir_fd, temp, f) && move(dir_fd, temp, dir_fd, f->name) == 0) {
        return true;
    }
    (void)unlinkat(dir_fd, temp, 0);
    return false;
}
