/* The repository of a workspace that is a linked worktree. */
#include "sandbox/linux/linked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/git_pointer.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/access.h"
#include "sandbox/linux/raw_syscall.h"
#include "sandbox/linux/walk.h"
#include "sandbox/sandbox_internal.h"

#define POINTER ".git"

/* "gitdir: ", a path, a line end. */
#define LINE_MAX ((size_t)LIMIT_PATH + 32)

/* What is found on the way. Paths are absolute and normalized. */
struct linked {
    struct walk root;      /* the worktree */
    uid_t owner;           /* of it, and so of all of the rest */
    struct buf git_dir;    /* REPOSITORY/worktrees/NAME */
    struct buf repository; /* the git directory that is shared */
};

static void
linked_fini(struct linked *l)
{
    walk_fini(&l->root);
    buf_fini(&l->git_dir);
    buf_fini(&l->repository);
}

/* Below `dir_fd` and past no link. */
static int
open_below(int dir_fd, const char *name, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int)sy_raw4(SYS_openat2, dir_fd, sy_raw_ptr(name), sy_raw_ptr(&how), sizeof(how));
}

/* Of the one owner, and not everybody's to write. */
static bool
is_owned(int fd, mode_t type, uid_t owner)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == owner &&
           (st.st_mode & S_IWOTH) == 0;
}

/* The one line that a file of git's has. SY_E_NOTFOUND: it is not such a file. */
static enum sy_code
read_line(struct buf *ret, int dir_fd, const char *name, uid_t owner)
{
    SY_FD fd = open_below(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || !is_owned(fd, S_IFREG, owner)) {
        return SY_E_NOTFOUND;
    }
    ret->max = LINE_MAX;

    enum sy_code rc = fd_read_all(fd, ret, NULL);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_NOTFOUND;
    }
    ret->len = git_pointer_cut(ret->data, ret->len);
    /* Neither a second line nor a NUL is in what git writes here. */
    return ret->len > 0 && strlen(ret->data) == ret->len && strchr(ret->data, '\n') == NULL
               ? SY_E_OK
               : SY_E_NOTFOUND;
}

/* A path of git's, which may be relative to the directory that it is read in. */
static enum sy_code
resolve(struct buf *ret, const char *dir, const char *path)
{
    SY_AUTO(buf_fini) struct buf joined = {.max = 2 * (size_t)LIMIT_PATH};
    enum sy_code rc = path_join(&joined, dir, path);

    ret->max = LIMIT_PATH;
    if (rc == SY_E_OK) {
        rc = path_normalize(ret, buf_view(&joined));
    }
    return rc == SY_E_LIMIT ? SY_E_NOTFOUND : rc;
}

/* Does that file name `wanted`? */
static enum sy_code
check_names(int dir_fd, const char *name, const struct linked *l, const char *wanted)
{
    SY_AUTO(buf_fini) struct buf line = {0};
    SY_AUTO(buf_fini) struct buf path = {0};
    enum sy_code rc = read_line(&line, dir_fd, name, l->owner);

    if (rc == SY_E_OK) {
        rc = resolve(&path, buf_view(&l->git_dir), buf_view(&line));
    }
    return rc == SY_E_OK && !str_eq(buf_view(&path), wanted) ? SY_E_NOTFOUND : rc;
}

/* REPOSITORY/worktrees/NAME by the pointer file. */
static enum sy_code
find_git_dir(struct linked *l, int root_fd)
{
    SY_AUTO(buf_fini) struct buf line = {0};
    enum sy_code rc = read_line(&line, root_fd, POINTER, l->owner);

    if (rc != SY_E_OK) {
        return rc;
    }

    const char *path = git_pointer_path(line.data, line.len);

    return path != NULL ? resolve(&l->git_dir, buf_view(&l->root.path), path) : SY_E_NOTFOUND;
}

/* By text: what the path says that it is, before anything of it is opened. */
static enum sy_code
find_repository(struct linked *l)
{
    const char *git_dir = buf_view(&l->git_dir);
    size_t n = git_pointer_repository(git_dir);

    if (n == 0) {
        return SY_E_NOTFOUND;
    }
    l->repository.max = LIMIT_PATH;
    return buf_add(&l->repository, git_dir, n);
}

static bool
has_entry(int dir_fd, const char *name, mode_t type)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

/* The repository has to know of the worktree: that is what no pointer file can forge. */
static enum sy_code
check_repository(const struct linked *l)
{
    SY_AUTO(buf_fini) struct buf pointer = {0};
    SY_FD fd = walk_open(buf_view(&l->repository));
    SY_FD git_fd =
        fd >= 0 ? open_below(fd, buf_view(&l->git_dir) + l->repository.len + 1, O_PATH) : -1;

    if (git_fd < 0 || !is_owned(fd, S_IFDIR, l->owner) || !is_owned(git_fd, S_IFDIR, l->owner) ||
        !(has_entry(fd, "HEAD", S_IFREG) || has_entry(fd, "HEAD", S_IFLNK)) ||
        !has_entry(fd, "objects", S_IFDIR) || !has_entry(fd, "refs", S_IFDIR)) {
        return SY_E_NOTFOUND;
    }

    enum sy_code rc = resolve(&pointer, buf_view(&l->root.path), POINTER);

    if (rc == SY_E_OK) {
        rc = check_names(git_fd, "gitdir", l, buf_view(&pointer));
    }
    return rc == SY_E_OK ? check_names(git_fd, "commondir", l, buf_view(&l->repository)) : rc;
}

static enum sy_code
find(struct linked *l, const char *root)
{
    char pointer[LIMIT_PATH + sizeof("/" POINTER)];
    struct stat st;

    (void)snprintf(pointer, sizeof(pointer), "%s/%s", root, POINTER);
    if (lstat(pointer, &st) != 0 || !S_ISREG(st.st_mode)) {
        return SY_E_NOTFOUND; /* nearly always */
    }

    struct sy_error why = {0};
    enum sy_code rc = walk_run(&l->root, root, &why);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? rc : SY_E_NOTFOUND;
    }

    SY_FD fd = walk_open(buf_view(&l->root.path));

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return SY_E_NOTFOUND;
    }
    l->owner = st.st_uid;
    rc = find_git_dir(l, fd);
    if (rc == SY_E_OK) {
        rc = find_repository(l);
    }
    return rc == SY_E_OK ? check_repository(l) : rc;
}

/* It is neither a root's already nor wider than a root, and nobody need think about it. */
static bool
is_plain(const struct sandbox_policy *p, char *repository, const char *worktree)
{
    const struct access what = {.kind = ACCESS_WRITE, .object = repository};
    const struct access_world world = {.homes = strv_view(&p->deny_homes),
                                       .own = strv_view(&p->own_dirs)};
    struct access_verdict verdict;

    if (path_is_below(worktree, repository) || path_is_below(repository, p->cwd) ||
        path_is_below(p->cwd, repository)) {
        return false;
    }
    for (size_t i = 0; i < p->writable_roots.n; i++) {
        if (path_is_below(repository, p->writable_roots.v[i]) ||
            path_is_below(p->writable_roots.v[i], repository)) {
            return false;
        }
    }
    access_judge(&verdict, &what, &world);
    return verdict.weight == ACCESS_PLAIN;
}

static void
drop_last(struct sandbox_policy *p)
{
    strv_remove(&p->writable_roots, p->writable_roots.n - 1);
    p->n_linked_roots--;
}

static enum sy_code
add_of(struct sandbox_policy *p, const char *root)
{
    SY_AUTO(linked_fini) struct linked l = {0};
    enum sy_code rc = find(&l, root);

    if (rc == SY_E_OK && is_plain(p, l.repository.data, buf_view(&l.root.path))) {
        bool needs_mounts = sandbox_policy_needs_mounts(p);

        rc = strv_add(&p->writable_roots, buf_view(&l.repository));
        p->n_linked_roots += rc == SY_E_OK ? 1 : 0;
        if (rc == SY_E_OK && !needs_mounts && sandbox_policy_needs_mounts(p)) {
            drop_last(p); /* where there are none, nothing would run any more */
        }
    }
    /* Where there is no room for one more it stays as narrow as it is. */
    return rc == SY_E_NOMEM ? rc : SY_E_OK;
}

enum sy_code
sandbox_policy_find_linked(struct sandbox_policy *p)
{
    enum sy_code rc = SY_E_OK;

    SY_ASSERT(p->n_granted_roots == 0);
    while (p->n_linked_roots > 0) {
        drop_last(p);
    }

    size_t n = p->writable_roots.n;

    if (!p->finds_linked || p->mode != SANDBOX_WORKSPACE_WRITE) {
        return rc;
    }
    /* Whoever led a turn into a part of their directory may have made that part. */
    if (!p->cwd_is_inner && p->cwd != NULL && p->cwd[0] == '/') {
        rc = add_of(p, p->cwd);
    }
    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        if (p->writable_roots.v[i][0] == '/') {
            rc = add_of(p, p->writable_roots.v[i]);
        }
    }
    return rc;
}
