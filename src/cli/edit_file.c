#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/edit.h"

/* Nobody keeps so many backups; a bound for the search of a free name. */
#define BACKUPS_MAX 10000

void
edit_file_fini(struct edit_file *f)
{
    buf_fini(&f->text);
    buf_fini(&f->path);
}

enum sy_code
edit_file_read(struct edit_file *ret, const char *path, struct sy_error *err)
{
    char resolved[PATH_MAX];
    struct stat st;

    memset(ret, 0, sizeof(*ret));
    ret->text.max = LIMIT_CLIENT_FILE;
    ret->path.max = LIMIT_PATH;
    ret->mode = S_IRUSR | S_IWUSR;
    ret->exists = realpath(path, resolved) != NULL;
    if (!ret->exists && errno != ENOENT && errno != ENOTDIR) {
        return sy_err_sys(err, errno, "'%s'", path);
    }
    if (!ret->exists && lstat(path, &st) == 0) {
        /* The file would take the place of the link. */
        return sy_err_set(err, SY_E_ARG,
                          "'%s' is a symbolic link to a file that is not there: make the file, or "
                          "remove the link",
                          path);
    }
    if (buf_add_str(&ret->path, ret->exists ? resolved : path) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (!ret->exists) {
        return SY_E_OK;
    }
    if (stat(resolved, &st) != 0) {
        return sy_err_sys(err, errno, "'%s'", resolved);
    }
    if (!S_ISREG(st.st_mode)) {
        return sy_err_set(err, SY_E_ARG, "'%s' is not a regular file", resolved);
    }
    ret->mode = st.st_mode & 07777;
    ret->uid = st.st_uid;
    ret->gid = st.st_gid;
    return fd_read_file(resolved, &ret->text, err);
}

/* mkdir -p of all that stands before the last slash. */
static enum sy_code
make_parents(const char *path, struct sy_error *err)
{
    char dir[LIMIT_PATH];
    size_t len = strlen(path);

    if (len >= sizeof(dir)) {
        return sy_err_set(err, SY_E_LIMIT, "path longer than %u bytes", LIMIT_PATH);
    }
    memcpy(dir, path, len + 1);
    for (char *slash = strchr(dir + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
            return sy_err_sys(err, errno, "making the directory '%s'", dir);
        }
        *slash = '/';
    }
    return SY_E_OK;
}

/* Writes a file that must not exist yet, with the mode and owner of `f`. */
static enum sy_code
write_new(const struct edit_file *f, const char *path, const struct buf *text, struct sy_error *err)
{
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);

    if (fd < 0) {
        return sy_err_sys(err, errno, "creating '%s'", path);
    }
    /* Another owner's file stays his, if we may give it away. */
    if (f->exists && fchown(fd, f->uid, f->gid) != 0 && errno != EPERM) {
        return sy_err_sys(err, errno, "owner of '%s'", path);
    }
    if (fchmod(fd, f->mode) != 0) {
        return sy_err_sys(err, errno, "mode of '%s'", path);
    }

    enum sy_code rc = fd_write_all(fd, buf_view(text), text->len, err);

    if (rc != SY_E_OK) {
        sy_err_wrap(err, "'%s'", path);
        return rc;
    }
    return fsync(fd) == 0 ? SY_E_OK : sy_err_sys(err, errno, "writing '%s'", path);
}

static enum sy_code
write_backup(const struct edit_file *f, struct buf *ret_name, struct sy_error *err)
{
    for (int n = 1; n <= BACKUPS_MAX; n++) {
        buf_reset(ret_name);
        if (buf_addf(ret_name, "%s.bak-%d", buf_view(&f->path), n) != SY_E_OK) {
            return sy_err_nomem(err);
        }

        enum sy_code rc = write_new(f, buf_view(ret_name), &f->text, err);

        if (rc != SY_E_SYS || err->sys != EEXIST) {
            return rc;
        }
        sy_err_clear(err);
    }
    return sy_err_set(err, SY_E_LIMIT, "more than %d backups of '%s'", BACKUPS_MAX,
                      buf_view(&f->path));
}

/* Does the path still hold what edit_file_read found there? */
static enum sy_code
check_unchanged(const struct edit_file *f, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf now = {.max = LIMIT_CLIENT_FILE};
    const char *path = buf_view(&f->path);
    enum sy_code rc = fd_read_file(path, &now, err);
    bool is_same = f->exists ? rc == SY_E_OK && now.len == f->text.len &&
                                   memcmp(buf_view(&now), buf_view(&f->text), now.len) == 0
                             : rc == SY_E_NOTFOUND;

    if (is_same) {
        sy_err_clear(err);
        return SY_E_OK;
    }
    if (rc != SY_E_OK && rc != SY_E_NOTFOUND && rc != SY_E_LIMIT) {
        return rc;
    }
    return sy_err_set(err, SY_E_ARG,
                      "'%s' was changed by another program meanwhile and was left as it is: close "
                      "the client that writes it, then try again",
                      path);
}

/* Gives the new file its name: a file that came meanwhile is not replaced by
 * one that was to be new. */
static enum sy_code
take_name(const struct edit_file *f, const char *temp, struct sy_error *err)
{
    const char *path = buf_view(&f->path);
    enum sy_code rc = check_unchanged(f, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    int failed = f->exists ? rename(temp, path)
                           : renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE);

    if (failed != 0 && !f->exists && errno == EINVAL) {
        failed = rename(temp, path); /* a file system that can't do that */
    }
    return failed == 0 ? SY_E_OK : sy_err_sys(err, errno, "replacing '%s'", path);
}

enum sy_code
edit_file_write(const struct edit_file *f, const struct buf *text, struct buf *ret_backup,
                struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf temp = {.max = LIMIT_PATH};
    struct sy_error unwanted;

    err = err != NULL ? err : &unwanted; /* a backup's errno is looked at */

    /* Now, so that a refusal leaves no backup, and once more at the last moment. */
    enum sy_code rc = check_unchanged(f, err);

    if (rc == SY_E_OK) {
        rc = f->exists ? write_backup(f, ret_backup, err) : make_parents(buf_view(&f->path), err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (buf_addf(&temp, "%s.new-%d", buf_view(&f->path), (int)getpid()) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    rc = write_new(f, buf_view(&temp), text, err);
    if (rc == SY_E_OK) {
        rc = take_name(f, buf_view(&temp), err);
    }
    if (rc != SY_E_OK) {
        (void)unlink(buf_view(&temp));
    }
    return rc;
}
