#include "sandbox/linux/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/linux/raw_syscall.h"

/* As many as the kernel follows (MAXSYMLINKS). */
#define MAX_LINKS 40

void
walk_fini(struct walk *w)
{
    buf_fini(&w->path);
    strv_fini(&w->links);
    if (w->is_open) {
        fd_close(&w->fd);
    }
    *w = (struct walk){0};
}

static void
cut_last(struct buf *path)
{
    while (path->len > 0 && path->data[path->len - 1] != '/') {
        path->len--;
    }
    if (path->len > 0) {
        path->len--;
    }
    if (path->data != NULL) {
        path->data[path->len] = '\0';
    }
}

/* Puts the target of the link `path` in front of what is left. */
static enum sy_code
follow(struct walk *w, struct buf *rest, const char *target)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = rest->max};
    enum sy_code rc = strv_add(&w->links, buf_view(&w->path));

    if (rc == SY_E_OK) {
        rc = buf_addf(&joined, "%s/%s", target, buf_view(rest));
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (target[0] == '/') {
        buf_reset(&w->path);
    } else {
        cut_last(&w->path);
    }

    struct buf old = *rest;

    *rest = joined;
    joined = old;
    return SY_E_OK;
}

/* One component, already without its slashes. */
static enum sy_code
step(struct walk *w, struct buf *rest, const char *name, size_t n)
{
    char target[LIMIT_PATH];

    if (n == 1 && name[0] == '.') {
        return SY_E_OK;
    }
    if (n == 2 && name[0] == '.' && name[1] == '.') {
        cut_last(&w->path);
        if (w->path.len < w->existing_len) {
            w->existing_len = w->path.len;
        }
        return SY_E_OK;
    }

    enum sy_code rc = buf_add_char(&w->path, '/');

    if (rc == SY_E_OK) {
        rc = buf_add(&w->path, name, n);
    }
    if (rc != SY_E_OK || w->missing_errno != 0) {
        return rc;
    }

    ssize_t got = readlink(buf_view(&w->path), target, sizeof(target) - 1);

    if (got >= 0) {
        target[got] = '\0';
        rc = follow(w, rest, target);
        w->existing_len = w->path.len;
    } else if (errno == EINVAL) {
        w->existing_len = w->path.len;
    } else {
        w->missing_errno = errno;
    }
    return rc;
}

static enum sy_code
add(struct strv *ret, const char *path, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    enum sy_code rc = walk_run(&walk, path, err);

    if (rc == SY_E_OK) {
        rc = strv_add(ret, buf_view(&walk.path));
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    return rc;
}

enum sy_code
walk_refuse_cwd(const struct walk *w, const char *cwd, struct sy_error *err)
{
    return sy_err_set(err, SY_E_SANDBOX,
                      "'%.80s' is reached by the symbolic link '%.80s' now, which commands could "
                      "have made: start anew in the one you mean (proto: send a turn)",
                      cwd, w->links.v[0]);
}

enum sy_code
walk_check_cwd(const struct sandbox_policy *policy, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    enum sy_code rc = policy->cwd_has_no_links ? walk_run(&walk, policy->cwd, err) : SY_E_OK;

    return rc == SY_E_OK && walk.links.n > 0 ? walk_refuse_cwd(&walk, policy->cwd, err) : rc;
}

static enum sy_code
add_cwd(struct strv *ret, const struct sandbox_policy *policy, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    enum sy_code rc = walk_run(&walk, policy->cwd, err);

    if (rc == SY_E_OK && policy->cwd_has_no_links && walk.links.n > 0) {
        return walk_refuse_cwd(&walk, policy->cwd, err);
    }
    if (rc == SY_E_OK && strv_add(ret, buf_view(&walk.path)) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc;
}

enum sy_code
walk_add_roots(struct strv *ret, const struct sandbox_policy *policy, struct sy_error *err)
{
    enum sy_code rc = add_cwd(ret, policy, err);

    for (size_t i = 0; rc == SY_E_OK && i < policy->writable_roots.n; i++) {
        const char *root = policy->writable_roots.v[i];

        if (!sandbox_policy_is_granted(policy, i) && !sandbox_policy_is_linked(policy, i)) {
            rc = add(ret, root, err);
        } else if (strv_add(ret, root) != SY_E_OK) {
            rc = sy_err_nomem(err);
        }
    }
    return rc;
}

int
walk_open(const char *path)
{
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int)sy_raw4(SYS_openat2, AT_FDCWD, sy_raw_ptr(path), sy_raw_ptr(&how), sizeof(how));
}

/* The usual case: nothing to resolve. False when there may be. */
static enum sy_code
run_plain(struct walk *w, const char *path, bool *ret_is_done)
{
    enum sy_code rc = path_normalize(&w->path, path);

    if (rc == SY_E_OK && str_eq(buf_view(&w->path), path)) {
        int fd = walk_open(path);

        if (fd >= 0) {
            w->fd = fd;
            w->is_open = true;
            w->existing_len = w->path.len;
            *ret_is_done = true;
            return SY_E_OK;
        }
    }
    buf_reset(&w->path);
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

static enum sy_code
run(struct walk *w, const char *path)
{
    SY_AUTO(buf_fini) struct buf rest = {.max = 4 * (size_t)LIMIT_PATH};
    enum sy_code rc = buf_add_str(&rest, path);

    while (rc == SY_E_OK && rest.len > 0) {
        char name[LIMIT_PATH];
        size_t skip = strspn(buf_view(&rest), "/");
        size_t n = strcspn(buf_view(&rest) + skip, "/");

        if (n >= sizeof(name)) {
            return SY_E_LIMIT;
        }
        memcpy(name, buf_view(&rest) + skip, n);
        buf_drop(&rest, skip + n);
        if (n > 0) {
            rc = step(w, &rest, name, n);
        }
    }
    if (rc == SY_E_OK && w->path.len == 0) {
        rc = buf_add_char(&w->path, '/');
        w->existing_len = 1;
    }
    return rc;
}

enum sy_code
walk_run(struct walk *ret, const char *path, struct sy_error *err)
{
    SY_AUTO(walk_fini)
    struct walk w = {.path = {.max = LIMIT_PATH - 1}, .links = {.max = MAX_LINKS}};

    SY_ASSERT(path[0] == '/');

    bool is_done = false;
    enum sy_code rc = run_plain(&w, path, &is_done);

    if (rc == SY_E_OK && !is_done) {
        rc = run(&w, path);
    }

    if (rc == SY_E_LIMIT) {
        return sy_err_sys(err, w.links.n == MAX_LINKS ? ELOOP : ENAMETOOLONG, "path '%.160s'",
                          path);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    *ret = w;
    w = (struct walk){0};
    return SY_E_OK;
}

struct file_id
file_id_of_statx(const struct statx *st)
{
    return (struct file_id){
        .dev = ((uint64_t)st->stx_dev_major << 32) | st->stx_dev_minor,
        .ino = st->stx_ino,
        .mount = st->stx_mnt_id,
    };
}

int
file_id_of_path(struct file_id *ret, const char *path)
{
    struct statx st;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &st) != 0) {
        return errno;
    }
    *ret = file_id_of_statx(&st);
    return 0;
}

int
file_id_of_fd(struct file_id *ret, int fd, bool *ret_is_dir)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_MNT_ID,
              &st) != 0) {
        return errno;
    }
    *ret = file_id_of_statx(&st);
    *ret_is_dir = S_ISDIR(st.stx_mode);
    return 0;
}
