/* Paths of a patch become directories that are held open, and names in them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "patch/patch_internal.h"
#include "sandbox/linux/walk.h"

/* Without roots: the whole file tree. */
static const char *const whole_tree[] = {"/", NULL};

static char *const *
roots_of(const struct patch_world *world)
{
    return world->roots != NULL ? world->roots : (char *const *)mem_unconst(whole_tree);
}

enum sy_code
sites_open(struct sites *ret, const struct patch_world *world, struct sy_error *err)
{
    char *const *roots = roots_of(world);
    size_t n = 0;

    while (roots[n] != NULL) {
        n++;
    }
    *ret = (struct sites){.world = world, .root_fds = mem_alloc_zero(n, sizeof(int))};
    if (ret->root_fds == NULL) {
        return sy_err_nomem(err);
    }
    for (; ret->n_roots < n; ret->n_roots++) {
        /* One that is not there has nothing below it: told where somebody wants it. */
        ret->root_fds[ret->n_roots] = walk_open(roots[ret->n_roots]);
    }
    return SY_E_OK;
}

void
sites_close(struct sites *s)
{
    for (size_t i = 0; i < s->n_roots; i++) {
        fd_close(&s->root_fds[i]);
    }
    mem_free(s->root_fds);
    *s = (struct sites){0};
}

void
site_fini(struct site *s)
{
    mem_free(s->path);
    mem_free(s->rest);
    fd_close(&s->dir_fd);
    *s = SITE_NONE;
}

bool
site_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A path being resolved. */
struct search {
    const struct sites *sites;
    const char *shown; /* as the patch has it */
    const char *what;
    struct walk walk;
    size_t existing_len; /* of the path without links */
    struct sy_error *err;
};

static enum sy_code
failed(const struct search *s, int errnum)
{
    struct place_shown_path shown;

    return sy_err_sys(s->err, errnum, "%s %s", s->what, place_visible_path(&shown, s->shown));
}

static enum sy_code
walk(struct search *s, const char *path)
{
    enum sy_code rc = walk_run(&s->walk, path, s->err);

    if (rc != SY_E_OK) {
        struct place_shown_path shown;

        sy_err_wrap(s->err, "%s %s", s->what, place_visible_path(&shown, s->shown));
        return rc;
    }
    s->existing_len = s->walk.missing_errno == 0 ? s->walk.path.len : s->walk.existing_len;
    return s->walk.missing_errno == 0 || s->walk.missing_errno == ENOENT
               ? SY_E_OK
               : failed(s, s->walk.missing_errno);
}

/* The walk leads to the directory; the name is added as it is. */
static enum sy_code
walk_unfollowed(struct search *s, struct buf *path)
{
    const char *name = path_base(buf_view(path));
    SY_AUTO(mem_free_charp) char *kept = mem_strdup(name);

    if (kept == NULL) {
        return sy_err_nomem(s->err);
    }
    path->len -= strlen(name);
    path->data[path->len] = '\0';

    enum sy_code rc = walk(s, buf_view(path));

    if (rc == SY_E_OK && s->walk.path.len > 1) {
        rc = buf_add_char(&s->walk.path, '/');
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(&s->walk.path, kept);
    }
    if (rc == SY_E_LIMIT) {
        return failed(s, ENAMETOOLONG);
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(s->err) : rc;
}

static enum sy_code
resolve(struct search *s, bool follows)
{
    SY_AUTO(buf_fini) struct buf path = {.max = 2 * (size_t)LIMIT_PATH};
    const char *base = path_base(s->shown);

    if (str_ends(s->shown, "/") || str_eq(base, ".") || str_eq(base, "..")) {
        return failed(s, EISDIR);
    }
    if (path_join(&path, s->sites->world->cwd, s->shown) != SY_E_OK) {
        return sy_err_nomem(s->err);
    }
    return follows ? walk(s, buf_view(&path)) : walk_unfollowed(s, &path);
}

/* The root that holds it: an index, or SIZE_MAX. */
static size_t
find_root(const struct sites *s, const char *path)
{
    char *const *roots = roots_of(s->world);
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < s->n_roots; i++) {
        if (path_is_below(path, roots[i]) && !str_eq(path, roots[i]) && s->root_fds[i] >= 0 &&
            (best == SIZE_MAX || strlen(roots[i]) > strlen(roots[best]))) {
            best = i;
        }
    }
    return best;
}

/* Splits the path: `dir_len` bytes are a directory that exists, *rest is below it. */
static size_t
split(const struct search *s, const char **rest)
{
    const char *path = buf_view(&s->walk.path);
    const char *name = path_base(path);
    size_t parent = (size_t)(name - path);
    size_t len = s->existing_len < parent ? s->existing_len : parent;

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    *rest = path + len;
    while (**rest == '/') {
        (*rest)++;
    }
    return len;
}

static enum sy_code
open_dir(struct site *ret, const struct search *s, size_t root, size_t dir_len)
{
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    const char *path = buf_view(&s->walk.path);
    size_t root_len = strlen(roots_of(s->sites->world)[root]);
    size_t skip = root_len + (path[root_len] == '/' ? 1 : 0);
    SY_AUTO(mem_free_charp)
    char *below = dir_len > skip ? mem_strndup(path + skip, dir_len - skip) : mem_strdup(".");

    if (below == NULL) {
        return sy_err_nomem(s->err);
    }

    if (dir_len < root_len) {
        return failed(s, ENOENT); /* the root is not there any more */
    }

    long fd = syscall(SYS_openat2, s->sites->root_fds[root], below, &how, sizeof(how));

    if (fd < 0) {
        return failed(s, errno);
    }
    ret->dir_fd = (int)fd;
    return SY_E_OK;
}

static enum sy_code
look(struct site *ret, const struct search *s, bool follows)
{
    if (strchr(ret->rest, '/') != NULL) {
        return SY_E_OK;
    }
    if (fstatat(ret->dir_fd, ret->rest, &ret->st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? SY_E_OK : failed(s, errno);
    }
    ret->exists = true;
    if (S_ISREG(ret->st.st_mode) || (S_ISLNK(ret->st.st_mode) && !follows)) {
        return SY_E_OK;
    }
    if (S_ISDIR(ret->st.st_mode)) {
        return failed(s, EISDIR);
    }
    if (S_ISLNK(ret->st.st_mode)) {
        return failed(s, ELOOP); /* came after the walk */
    }

    struct place_shown_path shown;

    return sy_err_set(s->err, SY_E_DENIED, "%s %s: it is no regular file", s->what,
                      place_visible_path(&shown, s->shown));
}

static enum sy_code
find(struct site *ret, struct search *s, bool follows)
{
    enum sy_code rc = resolve(s, follows);
    const char *rest = NULL;

    if (rc != SY_E_OK) {
        return rc;
    }

    const char *path = buf_view(&s->walk.path);
    size_t root = find_root(s->sites, path);

    if (root == SIZE_MAX) {
        struct place_shown_path shown;

        ret->path = mem_strdup(path);
        if (ret->path == NULL) {
            return sy_err_nomem(s->err);
        }
        ret->is_outside = true;
        return sy_err_set(s->err, SY_E_DENIED, "%s: %s", place_visible_path(&shown, s->shown),
                          s->sites->world->outside);
    }

    size_t dir_len = split(s, &rest);

    ret->path = mem_strdup(path);
    ret->rest = mem_strdup(rest);
    if (ret->path == NULL || ret->rest == NULL) {
        return sy_err_nomem(s->err);
    }
    rc = open_dir(ret, s, root, dir_len);
    return rc == SY_E_OK ? look(ret, s, follows) : rc;
}

enum sy_code
site_find(struct site *ret, const struct sites *sites, const char *path, bool follows,
          const char *what, struct sy_error *err)
{
    struct search s = {.sites = sites, .shown = path, .what = what, .err = err};
    enum sy_code rc = SY_E_OK;

    *ret = SITE_NONE;
    rc = find(ret, &s, follows);
    walk_fini(&s.walk);
    if (rc != SY_E_OK && !ret->is_outside) {
        site_fini(ret);
    }
    return rc;
}

enum sy_code
site_resolve(struct buf *ret, const char *cwd, const char *path, bool follows)
{
    const struct patch_world world = {.cwd = cwd};
    const struct sites sites = {.world = &world};
    struct sy_error err;
    struct search s = {.sites = &sites, .shown = path, .what = "", .err = &err};
    enum sy_code rc = resolve(&s, follows);

    if (rc == SY_E_OK) {
        rc = buf_add(ret, buf_view(&s.walk.path), s.walk.path.len);
    } else if (rc != SY_E_NOMEM) {
        SY_AUTO(buf_fini) struct buf joined = {.max = 2 * (size_t)LIMIT_PATH};

        rc = path_join(&joined, cwd, path);
        rc = rc == SY_E_OK ? path_normalize(ret, joined.data) : rc;
    }
    walk_fini(&s.walk);
    return rc;
}
