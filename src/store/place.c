#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"
#include "store/store_internal.h"

/* What headers of Linux before 5.18 lack. */
#ifndef CEPH_SUPER_MAGIC
#    define CEPH_SUPER_MAGIC 0x00c36400
#endif
#ifndef CIFS_SUPER_MAGIC
#    define CIFS_SUPER_MAGIC 0xFF534D42
#    define SMB2_SUPER_MAGIC 0xFE534D42
#endif

/* A file in the database's directory and how it has to be. */
struct wanted {
    const char *path;
    mode_t type;
    mode_t chmod; /* what to say */
};

static enum sy_code
failed_at(struct sy_error *err, int errnum, const char *doing, const char *path)
{
    struct place_shown_path shown;

    return sy_err_sys(err, errnum, "%s '%s'", doing, place_visible_path(&shown, path));
}

static enum sy_code
check_is_ours(const struct stat *s, const struct wanted *want, struct sy_error *err)
{
    struct place_shown_path shown;
    const char *path = place_visible_path(&shown, want->path);
    const char *noun = want->type == S_IFDIR ? "directory" : "file of its own";

    if ((s->st_mode & S_IFMT) != want->type || (want->type == S_IFREG && s->st_nlink != 1)) {
        return sy_err_set(err, SY_E_DENIED, "'%s' is no %s (a link?); move it away", path, noun);
    }
    if (s->st_uid != geteuid()) {
        return sy_err_set(err, SY_E_DENIED,
                          "'%s' belongs to user %u, who could answer for you; use a directory of "
                          "your own (XDG_STATE_HOME)",
                          path, (unsigned)s->st_uid);
    }
    if ((s->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return sy_err_set(err, SY_E_DENIED, "others may reach '%s' (mode %04o); fix: chmod %04o it",
                          path, (unsigned)(s->st_mode & 07777U), (unsigned)want->chmod);
    }
    return SY_E_OK;
}

/* As the base directory specification asks for: parents that are missing are 0700. */
static enum sy_code
make_dirs(const char *dir, struct sy_error *err)
{
    char path[LIMIT_PATH];
    size_t len = strlen(dir);

    if (dir[0] != '/' || len + sizeof("/" STORE_FILE "-wal") > sizeof(path)) {
        return sy_err_set(err, SY_E_ARG,
                          "the state directory must be an absolute path of less than "
                          "%zu bytes",
                          sizeof(path) - sizeof("/" STORE_FILE "-wal"));
    }
    memcpy(path, dir, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }

        char kept = path[i];

        path[i] = '\0';

        int rc = mkdir(path, 0700);
        int errnum = errno;
        struct stat s;

        /* Where mkdir may not, a directory may still be there (EROFS, EACCES). */
        if (rc != 0 && lstat(path, &s) != 0) {
            return failed_at(err, errnum, "making the state directory", path);
        }
        path[i] = kept;
    }
    return SY_E_OK;
}

const char *
store_place_fault(uint64_t fs_type)
{
    static const struct {
        uint64_t type;
        const char *name;
    } remote[] = {
        {NFS_SUPER_MAGIC,  "NFS"   },
        {SMB_SUPER_MAGIC,  "SMB"   },
        {CIFS_SUPER_MAGIC, "CIFS"  },
        {SMB2_SUPER_MAGIC, "SMB"   },
        {CODA_SUPER_MAGIC, "Coda"  },
        {AFS_SUPER_MAGIC,  "AFS"   },
        {AFS_FS_MAGIC,     "AFS"   },
        {NCP_SUPER_MAGIC,  "NCP"   },
        {CEPH_SUPER_MAGIC, "Ceph"  },
        {V9FS_MAGIC,       "9P"    },
        {0x0BD00BD0U,      "Lustre"},
    };

    for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
        if (remote[i].type == fs_type) {
            return remote[i].name;
        }
    }
    return NULL;
}

static enum sy_code
check_dir(int fd, const char *dir, struct sy_error *err)
{
    struct stat s;
    struct statfs fs;

    if (fstat(fd, &s) != 0 || fstatfs(fd, &fs) != 0) {
        return failed_at(err, errno, "looking at the state directory", dir);
    }

    const struct wanted want = {.path = dir, .type = S_IFDIR, .chmod = 0700};
    enum sy_code rc = check_is_ours(&s, &want, err);
    const char *fault = store_place_fault((uint64_t)(uint32_t)fs.f_type);

    if (rc == SY_E_OK && fault != NULL) {
        struct place_shown_path shown;

        return sy_err_set(err, SY_E_CONFIG,
                          "'%s' is on a network file system (%s), where processes cannot share a "
                          "database safely; set XDG_STATE_HOME to a local directory",
                          place_visible_path(&shown, dir), fault);
    }
    return rc;
}

/*
 * mknod makes it without opening it, and O_PATH looks at it without opening it: to
 * close any other descriptor of a database drops the locks (fcntl(2)) that SQLite holds
 * in this process, which would let two writers in.
 */
static enum sy_code
make_file(int dir_fd, const char *name, const char *path, struct sy_error *err)
{
    struct stat s;
    SY_FD fd = -1;

    if (mknodat(dir_fd, name, S_IFREG | 0600, 0) != 0 && errno != EEXIST) {
        int errnum = errno;

        fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
            return failed_at(err, errnum, "making", path);
        }
    }
    if (fd < 0) {
        fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0 || fstat(fd, &s) != 0) {
        return failed_at(err, errno, "looking at", path);
    }

    const struct wanted want = {.path = path, .type = S_IFREG, .chmod = 0600};

    return check_is_ours(&s, &want, err);
}

static enum sy_code
make_files(char ret_path[LIMIT_PATH], int *ret_fd, int dir_fd, const char *dir,
           struct sy_error *err)
{
    char real[LIMIT_PATH];
    char changes[LIMIT_PATH];
    struct stat a;
    struct stat b;

    if (realpath(dir, real) == NULL || stat(real, &a) != 0 || fstat(dir_fd, &b) != 0) {
        return failed_at(err, errno, "resolving", dir);
    }
    if (a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
        return failed_at(err, ESTALE, "state directory replaced while it was opened:", dir);
    }

    int n = snprintf(ret_path, LIMIT_PATH, "%s/%s", real, STORE_FILE);
    int m = snprintf(changes, sizeof(changes), "%s/%s", real, STORE_CHANGES);

    if (n < 0 || m < 0 || (size_t)n + sizeof("-wal") > LIMIT_PATH || (size_t)m >= LIMIT_PATH) {
        return failed_at(err, ENAMETOOLONG, "state directory", dir);
    }

    enum sy_code rc = make_file(dir_fd, STORE_FILE, ret_path, err);

    if (rc == SY_E_OK) {
        rc = make_file(dir_fd, STORE_CHANGES, changes, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    int fd = openat(dir_fd, STORE_CHANGES, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0) {
        return failed_at(err, errno, "opening", changes);
    }
    *ret_fd = fd;
    return SY_E_OK;
}

enum sy_code
store_dir_open(int *ret_fd, const char *dir, struct sy_error *err)
{
    enum sy_code rc = make_dirs(dir, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    SY_FD dir_fd = openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir_fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        struct place_shown_path shown;

        return sy_err_set(err, SY_E_DENIED, "'%s' is no directory (a link?); move it away",
                          place_visible_path(&shown, dir));
    }
    if (dir_fd < 0) {
        return failed_at(err, errno, "opening the state directory", dir);
    }
    rc = check_dir(dir_fd, dir, err);
    if (rc == SY_E_OK) {
        *ret_fd = fd_take(&dir_fd);
    }
    return rc;
}

/* The deepest of the directories above that is there is where the others would be made. */
static enum sy_code
probe_parent(const char *dir, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf parent = {.max = LIMIT_PATH};
    struct stat s;

    if (buf_add_str(&parent, dir) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    do {
        const char *slash = strrchr(buf_view(&parent), '/');
        size_t len = slash != NULL ? (size_t)(slash - buf_view(&parent)) : 0;

        if (len == 0) {
            len = 1; /* the root */
        }
        parent.len = len;
        parent.data[len] = '\0';
    } while (parent.len > 1 && lstat(buf_view(&parent), &s) != 0 && errno == ENOENT);
    if (stat(buf_view(&parent), &s) != 0) {
        return failed_at(err, errno, "making the state directory", dir);
    }
    if (!S_ISDIR(s.st_mode)) {
        return failed_at(err, ENOTDIR, "making the state directory", dir);
    }
    return access(buf_view(&parent), W_OK | X_OK) == 0
               ? SY_E_OK
               : failed_at(err, errno, "making the state directory", dir);
}

enum sy_code
store_dir_probe(const char *dir, struct sy_error *err)
{
    struct stat s;
    SY_FD dir_fd = -1;

    if (dir[0] != '/' || strlen(dir) >= LIMIT_PATH || (lstat(dir, &s) != 0 && errno != ENOENT)) {
        return failed_at(err, dir[0] != '/' ? EINVAL : errno, "looking at the state directory",
                         dir);
    }
    if (lstat(dir, &s) != 0) {
        return probe_parent(dir, err);
    }

    enum sy_code rc = store_dir_open(&dir_fd, dir, err);

    if (rc == SY_E_OK && access(dir, W_OK | X_OK) != 0) {
        rc = failed_at(err, errno, "writing in the state directory", dir);
    }
    return rc;
}

enum sy_code
store_place_prepare(char ret_path[LIMIT_PATH], int *ret_changes_fd, const char *dir,
                    struct sy_error *err)
{
    SY_FD dir_fd = -1;
    enum sy_code rc = store_dir_open(&dir_fd, dir, err);

    return rc == SY_E_OK ? make_files(ret_path, ret_changes_fd, dir_fd, dir, err) : rc;
}
