#include "base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"

static enum sy_code
check(int fd, const char *key, const char *shown, struct sy_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return sy_err_sys(err, errno, "%s: looking at '%s'", key, shown);
    }
    if (!S_ISREG(st.st_mode)) {
        return sy_err_set(err, SY_E_CONFIG, "%s: '%s' is no file", key, shown);
    }
    if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 077U) != 0) {
        return sy_err_set(err, SY_E_CONFIG, "%s: others may read '%s'; fix: chmod 600, and own it",
                          key, shown);
    }
    return SY_E_OK;
}

enum sy_code
secret_file_read(struct buf *b, const char *key, const char *path, struct sy_error *err)
{
    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct place_shown_path shown;

    (void)place_visible_path(&shown, path);
    if (fd < 0) {
        return sy_err_sys(err, errno, "%s: opening '%s'", key, shown.text);
    }

    enum sy_code rc = check(fd, key, shown.text, err);

    if (rc == SY_E_OK && buf_reserve(b, b->max) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc == SY_E_OK ? fd_read_all(fd, b, err) : rc;
}
