#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/place.h"
#include "base/private_group.h"
#include "base/str.h"
#include "base/trusted_file.h"

static enum sy_code
check_workspace(const struct trusted_file *file, const struct place *at, const struct stat *opened,
                struct sy_error *err)
{
    char real[LIMIT_PATH];
    char workspace[LIMIT_PATH];
    struct place_shown_path shown;
    struct stat found;

    if (file->workspace == NULL) {
        return SY_E_OK;
    }
    if (realpath(file->path, real) == NULL || stat(real, &found) != 0) {
        return place_error(err, at, "cannot be resolved: %s", sy_errno_text(errno));
    }
    /* The path is judged, the descriptor is read: they must be one file. */
    if (found.st_dev != opened->st_dev || found.st_ino != opened->st_ino) {
        return place_error(err, at, "was replaced while it was read; try again");
    }
    if (realpath(file->workspace, workspace) == NULL) {
        return place_error(err, at, "workspace '%s' cannot be resolved: %s",
                           place_visible_path(&shown, file->workspace), sy_errno_text(errno));
    }
    if (!path_is_below(real, workspace)) {
        return SY_E_OK;
    }
    return place_error(err, at,
                       "lies in the workspace, where commands could rewrite it; work in another "
                       "directory%s%s",
                       file->way_out != NULL ? " " : "",
                       file->way_out != NULL ? file->way_out : "");
}

/* By another name it may lie in the workspace. What we can't write, as in a store that links equal
 * files, no command of ours can either. */
static enum sy_code
check_names(const struct trusted_file *file, const struct place *at, const struct stat *st,
            struct sy_error *err)
{
    if (file->workspace == NULL || st->st_nlink < 2 ||
        faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0) {
        return SY_E_OK;
    }
    return place_error(err, at,
                       "has %ju names (hard links), and a file within a workspace may be one of "
                       "them; make it a copy of its own",
                       (uintmax_t)st->st_nlink);
}

static enum sy_code
check_owner(const struct trusted_file *file, const struct place *at, const struct stat *st, int fd,
            struct sy_error *err)
{
    bool is_ours = st->st_uid == 0 || (!file->must_be_root && st->st_uid == geteuid());

    if (!is_ours) {
        return place_error(err, at, "belongs to user %u, who could change it; fix: chown %s",
                           (unsigned)st->st_uid,
                           file->must_be_root ? "root it" : "it to you, or to root");
    }
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0 && !private_group_fd(fd, st)) {
        return place_error(err, at, "others may write it (mode %04o); fix: chmod go-w",
                           (unsigned)(st->st_mode & 07777U));
    }
    return SY_E_OK;
}

static enum sy_code
read_all(struct buf *b, int fd, const struct trusted_file *file, struct sy_error *err)
{
    struct place at = {.name = file->path};
    enum sy_code rc = fd_read_all(fd, b, err);

    if (rc == SY_E_LIMIT) {
        struct place_text in = {.name = file->path, .text = buf_view(b), .len = b->len};

        at = place_of_byte(&in, b->len);
        return place_error(err, &at, "the file is larger than %zu bytes", b->max);
    }
    if (rc == SY_E_SYS) {
        return place_error(err, &at, "cannot be read: %s",
                           sy_errno_text(err != NULL ? err->sys : 0));
    }
    return rc;
}

enum sy_code
trusted_file_read(struct buf *b, bool *ret_exists, const struct trusted_file *file,
                  struct sy_error *err)
{
    struct place at = {.name = file->path};
    /* Not blocking, since a FIFO would hold us until somebody writes. */
    SY_FD fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    *ret_exists = fd >= 0;
    if (fd < 0 && errno == ENOENT && lstat(file->path, &st) == 0) {
        /* Not the same as no file: what it was meant to forbid would be allowed. */
        return place_error(err, &at, "is a symbolic link to a file that is not there");
    }
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return SY_E_OK;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        return place_error(err, &at, "cannot be opened: %s", sy_errno_text(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return place_error(err, &at, "is %s, expected a file",
                           S_ISDIR(st.st_mode) ? "a directory" : "a device or a pipe");
    }

    enum sy_code rc = check_workspace(file, &at, &st, err);

    if (rc == SY_E_OK) {
        rc = check_names(file, &at, &st, err);
    }
    if (rc == SY_E_OK) {
        rc = check_owner(file, &at, &st, fd, err);
    }
    return rc == SY_E_OK ? read_all(b, fd, file, err) : rc;
}
