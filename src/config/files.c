#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config_internal.h"

const char *
config_home(const struct config_sources *sources)
{
    const char *home = config_getenv(sources->environ_list, "HOME");

    return (home == NULL || home[0] != '/') && sources->home != NULL ? sources->home : home;
}

enum sy_code
config_user_path(char **ret, const struct config_sources *sources, struct sy_error *err)
{
    static const char name[] = "shellyard/config.yaml";
    SY_AUTO(buf_fini) struct buf b = {.max = LIMIT_PATH};
    const char *xdg = config_getenv(sources->environ_list, "XDG_CONFIG_HOME");
    const char *home = config_home(sources);
    enum sy_code rc = SY_E_OK;

    /* The XDG base directory specification has relative paths ignored. */
    if (xdg != NULL && xdg[0] == '/') {
        rc = buf_addf(&b, "%s/%s", xdg, name);
    } else if (home != NULL && home[0] == '/') {
        rc = buf_addf(&b, "%s/.config/%s", home, name);
    } else {
        return SY_E_OK;
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_CONFIG, "%s is longer than %u bytes",
                          xdg != NULL && xdg[0] == '/' ? "XDG_CONFIG_HOME" : "HOME", LIMIT_PATH);
    }

    char *path = rc == SY_E_OK ? buf_take(&b) : NULL;

    if (path == NULL) {
        return sy_err_nomem(err);
    }
    *ret = path;
    return SY_E_OK;
}

/* The link itself, since one to nothing is an error of the reader. */
static bool
may_exist(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || errno != ENOENT;
}

bool
config_has_files(char *const *environ_list)
{
    const struct config_sources sources = {.environ_list = environ_list};
    SY_AUTO(mem_free_charp) char *user = NULL;

    if (may_exist(CONFIG_SYSTEM_PATH)) {
        return true;
    }
    /* Without a home, passwd(5) has to be asked, which is not done here. */
    return config_user_path(&user, &sources, NULL) != SY_E_OK || user == NULL || may_exist(user);
}

static enum sy_code
check_workspace(const struct config_file *file, const struct config_place *at,
                const struct stat *opened, struct sy_error *err)
{
    char real[PATH_MAX];
    char workspace[PATH_MAX];
    struct config_shown_path shown;
    struct stat found;

    if (file->workspace == NULL) {
        return SY_E_OK;
    }
    if (realpath(file->path, real) == NULL || stat(real, &found) != 0) {
        return config_error(err, at, "cannot be resolved: %s", sy_errno_text(errno));
    }
    /* The path is judged, the descriptor is read: they must be one file. */
    if (found.st_dev != opened->st_dev || found.st_ino != opened->st_ino) {
        return config_error(err, at, "was replaced while it was read; try again");
    }
    if (realpath(file->workspace, workspace) == NULL) {
        return config_error(err, at, "workspace '%s' cannot be resolved: %s",
                            config_visible_path(&shown, file->workspace), sy_errno_text(errno));
    }
    if (!path_is_below(real, workspace)) {
        return SY_E_OK;
    }
    return config_error(err, at,
                        "lies in the workspace, where commands could rewrite it; work in another "
                        "directory%s",
                        file->source == CONFIG_FROM_USER ? " or move the file (XDG_CONFIG_HOME)"
                                                         : "");
}

static enum sy_code
check_owner(const struct config_file *file, const struct config_place *at, const struct stat *st,
            struct sy_error *err)
{
    bool is_ours = st->st_uid == 0 || (!file->must_be_root && st->st_uid == geteuid());

    if (!is_ours) {
        return config_error(err, at, "belongs to user %u, who could change it; fix: chown %s",
                            (unsigned)st->st_uid,
                            file->must_be_root ? "root it" : "it to you, or to root");
    }
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return config_error(err, at, "others may write it (mode %04o); fix: chmod go-w",
                            (unsigned)(st->st_mode & 07777U));
    }
    return SY_E_OK;
}

static enum sy_code
read_all(struct buf *b, int fd, const struct config_file *file, struct sy_error *err)
{
    struct config_place at = {.source = file->source, .name = file->path};
    enum sy_code rc = fd_read_all(fd, b, err);

    if (rc == SY_E_LIMIT) {
        struct config_input in = {
            .source = file->source, .name = file->path, .text = buf_view(b), .len = b->len};

        at = config_place_of_byte(&in, b->len);
        return config_error(err, &at, "the file is larger than %u bytes", LIMIT_CONFIG_FILE);
    }
    if (rc == SY_E_SYS) {
        return config_error(err, &at, "cannot be read: %s",
                            sy_errno_text(err != NULL ? err->sys : 0));
    }
    return rc;
}

enum sy_code
config_read_file(struct buf *b, bool *ret_exists, const struct config_file *file,
                 struct sy_error *err)
{
    struct config_place at = {.source = file->source, .name = file->path};
    /* Not blocking, since a FIFO would hold us until somebody writes. */
    SY_FD fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    *ret_exists = fd >= 0;
    if (fd < 0 && errno == ENOENT && lstat(file->path, &st) == 0) {
        /* Not the same as no file: what it was meant to forbid would be allowed. */
        return config_error(err, &at, "is a symbolic link to a file that is not there");
    }
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return SY_E_OK;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        return config_error(err, &at, "cannot be opened: %s", sy_errno_text(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return config_error(err, &at, "is %s, expected a file",
                            S_ISDIR(st.st_mode) ? "a directory" : "a device or a pipe");
    }

    enum sy_code rc = check_workspace(file, &at, &st, err);

    if (rc == SY_E_OK) {
        rc = check_owner(file, &at, &st, err);
    }
    return rc == SY_E_OK ? read_all(b, fd, file, err) : rc;
}
