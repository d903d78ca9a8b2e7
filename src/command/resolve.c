#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/str.h"
#include "command/command.h"

/* What errors show of a name or path. */
#define NAME_SHOWN 160

/* Where execvp(3) looks when there is no PATH at all. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* May we run what a descriptor is of? 0 or an errno value. */
static int
may_run(int fd)
{
    char own[32];

    if (syscall(SYS_faccessat2, fd, "", X_OK, AT_EMPTY_PATH) == 0) {
        return 0;
    }
    if (errno != ENOSYS && errno != EPERM) {
        return errno;
    }
    /* An older kernel, or an outer filter that knows no such call. */
    (void)snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
    return access(own, X_OK) == 0 ? 0 : errno;
}

/* Why the file can't be run, NULL when it can. *ret_sys: why it can't even be
 * looked at (ENOENT: it is not there), else 0. */
static const char *
reason_against(const char *path, int top_fd, int *ret_sys)
{
    struct stat st;
    SY_FD fd = -1;

    *ret_sys = 0;
    /* A /proc is each process's own: that of ours stands for it. */
    if (top_fd >= 0 && !path_is_below(path, "/proc")) {
        const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

        fd = (int)syscall(SYS_openat2, top_fd, path, &how, sizeof(how));
        if (fd < 0) {
            *ret_sys = errno;
            return sy_errno_text(errno);
        }
    }
    if ((fd >= 0 ? fstat(fd, &st) : stat(path, &st)) != 0) {
        *ret_sys = errno;
        return sy_errno_text(errno);
    }
    if (S_ISDIR(st.st_mode)) {
        return "is a directory";
    }
    if (!S_ISREG(st.st_mode)) {
        return "not a regular file";
    }
    if (fd >= 0 ? may_run(fd) == 0 : access(path, X_OK) == 0) {
        return NULL;
    }
    /* With the bit set, it is the owner, an access list or the mount. */
    return (st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0
               ? "no execute permission"
               : "no execute permission for this user, or a noexec mount";
}

static enum sy_code
fail_notfound(const char *name, const char *reason, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf shown = {.max = NAME_SHOWN + 16};

    if (str_add_visible(&shown, name, strlen(name), NAME_SHOWN) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_NOTFOUND, "command not found: %s%s", buf_view(&shown), reason);
}

static enum sy_code
fail_noexec(const char *path, const char *reason, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf shown = {.max = NAME_SHOWN + 16};

    if (str_add_visible(&shown, path, strlen(path), NAME_SHOWN) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_NOEXEC, "not executable: %s (%s)", buf_view(&shown), reason);
}

/* dir (n bytes, taken from cwd if relative) + "/" + name into b. */
static enum sy_code
candidate(struct buf *b, const char *cwd, const char *dir, size_t n, const char *name)
{
    enum sy_code rc = SY_E_OK;

    buf_reset(b);
    if (n == 0 || dir[0] != '/') {
        rc = buf_add_str(b, cwd);
        if (rc == SY_E_OK && n > 0 && !str_ends(buf_view(b), "/")) {
            rc = buf_add_char(b, '/');
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_add(b, dir, n);
    }
    if (rc == SY_E_OK && !str_ends(buf_view(b), "/")) {
        rc = buf_add_char(b, '/');
    }
    return rc != SY_E_OK ? rc : buf_add_str(b, name);
}

static enum sy_code
resolve_path(struct buf *ret_path, const char *name, const char *cwd, int top_fd,
             struct sy_error *err)
{
    enum sy_code rc = path_join(ret_path, cwd, name);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, SY_E_NOTFOUND, "command not found: its path has over %zu bytes",
                          ret_path->max);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }

    int sys = 0;
    const char *reason = reason_against(buf_view(ret_path), top_fd, &sys);

    if (reason == NULL) {
        return SY_E_OK;
    }
    if (sys == ENOENT || sys == ENOTDIR || sys == ENAMETOOLONG) {
        return fail_notfound(buf_view(ret_path), " (no such file)", err);
    }
    return fail_noexec(buf_view(ret_path), reason, err);
}

static enum sy_code
search_path(struct buf *ret_path, const char *name, const char *cwd, const char *path_list,
            int top_fd, struct sy_error *err)
{
    /* The first file that was there but could not be run: better news than
     * "not found", if nothing else turns up. */
    SY_AUTO(buf_fini) struct buf refused = {.max = ret_path->max};
    const char *refused_reason = NULL;

    for (const char *dir = path_list;; dir++) {
        size_t n = strcspn(dir, ":");
        enum sy_code rc = candidate(ret_path, cwd, dir, n, name);

        if (rc == SY_E_OK) {
            int sys = 0;
            const char *reason = reason_against(buf_view(ret_path), top_fd, &sys);

            if (reason == NULL) {
                return SY_E_OK;
            }
            if (sys == 0 && refused_reason == NULL) {
                refused_reason = reason;
                rc = buf_add(&refused, ret_path->data, ret_path->len);
            }
        }
        if (rc == SY_E_NOMEM) {
            return sy_err_nomem(err);
        }
        dir += n;
        if (*dir == '\0') {
            break;
        }
    }
    if (refused_reason != NULL) {
        return fail_noexec(buf_view(&refused), refused_reason, err);
    }
    return fail_notfound(name, "", err);
}

enum sy_code
command_resolve_in(struct buf *ret_path, const char *name, const char *cwd, const char *path_list,
                   int top_fd, struct sy_error *err)
{
    if (name[0] == '\0') {
        return sy_err_set(err, SY_E_NOTFOUND, "command not found: its name is empty");
    }
    if (strchr(name, '/') != NULL) {
        return resolve_path(ret_path, name, cwd, top_fd, err);
    }
    return search_path(ret_path, name, cwd, path_list != NULL ? path_list : DEFAULT_PATH, top_fd,
                       err);
}

enum sy_code
command_resolve(struct buf *ret_path, const char *name, const char *cwd, const char *path_list,
                struct sy_error *err)
{
    return command_resolve_in(ret_path, name, cwd, path_list, -1, err);
}
