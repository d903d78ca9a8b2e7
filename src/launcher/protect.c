/*
 * What a policy of a program without an engine hides and protects. It names patterns; what of
 * that exists is looked for here, once: there is nobody who would look again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "launcher/launcher_internal.h"
#include "sandbox/elsewhere.h"
#include "sandbox/linux/own.h"
#include "sandbox/linux/walk.h"

/* A directory on the way down. */
struct level {
    DIR *dir;
    size_t path_len; /* of its path */
    bool is_pinned;
    bool is_protected; /* and yet not read-only as a whole: a root is in it */
};

struct search {
    const struct sandbox_plan *plan;
    char *const *names;
    struct level levels[LIMIT_PROTECT_DEPTH];
    size_t n_levels;
    size_t root_len;
    uint32_t n_dirs;
    struct buf path; /* of what is looked at */
    struct buf *marks;
};

static bool
add_mark(struct search *s, char kind, struct failure *f)
{
    if (buf_add_char(s->marks, kind) != SY_E_OK ||
        buf_add(s->marks, s->path.data, s->path.len) != SY_E_OK ||
        buf_add_char(s->marks, '\0') != SY_E_OK) {
        return failed(f, STAGE_MOUNTS, ENOMEM, "too many names to protect");
    }
    return true;
}

static void
cut(struct buf *b, size_t len)
{
    b->len = len;
    b->data[len] = '\0';
}

/* Everything above it, up to the root: who renames a directory takes its name away from what
 * is protected in it. */
static bool
pin_above(struct search *s, struct failure *f)
{
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_PATH};
    bool is_ok = buf_add(&whole, s->path.data, s->path.len) == SY_E_OK;

    for (size_t i = 1; is_ok && i < s->n_levels; i++) {
        if (!s->levels[i].is_pinned) {
            cut(&s->path, s->levels[i].path_len);
            is_ok = add_mark(s, LAUNCH_MARK_PIN, f);
            s->levels[i].is_pinned = true;
            buf_reset(&s->path);
            is_ok = is_ok && buf_add(&s->path, whole.data, whole.len) == SY_E_OK;
        }
    }
    return is_ok ? true : failed(f, STAGE_MOUNTS, ENOMEM, "pinning");
}

/* The policy makes it, or something in it, writable by name. */
static bool
holds_root(const struct search *s)
{
    const char *root = NULL;

    for (size_t i = 0; (root = sandbox_plan_root(s->plan, i)) != NULL; i++) {
        if (path_is_below(root, buf_view(&s->path))) {
            return true;
        }
    }
    return false;
}

static bool
is_root(const struct search *s)
{
    const char *root = NULL;

    for (size_t i = 0; (root = sandbox_plan_root(s->plan, i)) != NULL; i++) {
        if (str_eq(root, buf_view(&s->path))) {
            return true;
        }
    }
    return false;
}

/* Of what is not on a disk, and of what is the session's own. */
static bool
is_elsewhere(const char *path)
{
    static const char *const places[] = {"/proc", "/sys", "/dev", "/run", "/tmp"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (str_eq(path, places[i])) {
            return true;
        }
    }
    return false;
}

/* -1: not ours to look into, and so not the command's to write into. */
static int
open_dir(int parent_fd, const char *name, struct failure *f)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int sys = errno;
    struct stat st;

    if (fd >= 0 || sys == ENOENT || sys == ELOOP || sys == ENOTDIR) {
        return fd;
    }
    /* Its owner could open it, and who may enter it could write to a name that he knows. */
    if (sys != EACCES || fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        st.st_uid == geteuid() || faccessat(parent_fd, name, X_OK, AT_EACCESS) == 0) {
        (void)failed(f, STAGE_MOUNTS, sys, name);
    }
    return -1;
}

/* Takes the descriptor. */
static bool
go_down(struct search *s, int fd, struct failure *f)
{
    if (s->n_levels == LIMIT_PROTECT_DEPTH || s->n_dirs == LIMIT_GUARD_DIRS) {
        fd_close(&fd);
        return failed(f, STAGE_MOUNTS, ELOOP, "too many directories to look for protected names");
    }

    DIR *dir = fdopendir(fd);

    if (dir == NULL) {
        (void)failed(f, STAGE_MOUNTS, errno, buf_view(&s->path));
        fd_close(&fd);
        return false;
    }
    s->levels[s->n_levels++] = (struct level){.dir = dir, .path_len = s->path.len};
    s->n_dirs++;
    return true;
}

static bool
look_at(struct search *s, const struct dirent *e, struct failure *f)
{
    const struct level *in = &s->levels[s->n_levels - 1];
    bool is_match = false;

    cut(&s->path, in->path_len);
    if (buf_addf(&s->path, "%s%s", s->path.data[s->path.len - 1] == '/' ? "" : "/", e->d_name) !=
        SY_E_OK) {
        return true; /* too long for a command, too */
    }
    is_match = (in->is_protected || elsewhere_may_end(s->names, e->d_name)) &&
               elsewhere_is_protected(s->names, s->path.data + s->root_len);
    if (is_match) {
        bool is_writable = holds_root(s);

        if (!pin_above(s, f) ||
            !add_mark(s, is_writable ? LAUNCH_MARK_PIN : LAUNCH_MARK_READ_ONLY, f)) {
            return false;
        }
        if (!is_writable) {
            return true;
        }
    }
    if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || is_elsewhere(buf_view(&s->path))) {
        return true;
    }

    int fd = open_dir(dirfd(in->dir), e->d_name, f);

    if (fd < 0) {
        return f->stage == STAGE_NONE;
    }
    if (!go_down(s, fd, f)) {
        return false;
    }
    s->levels[s->n_levels - 1].is_pinned = is_match;
    s->levels[s->n_levels - 1].is_protected = is_match && !is_root(s);
    return true;
}

static bool
step(struct search *s, struct failure *f)
{
    struct level *in = &s->levels[s->n_levels - 1];

    errno = 0;

    const struct dirent *e = readdir(in->dir);

    if (e == NULL) {
        int sys = errno;

        (void)closedir(in->dir);
        s->n_levels--;
        cut(&s->path, in->path_len);
        return sys == 0 ? true : failed(f, STAGE_MOUNTS, sys, buf_view(&s->path));
    }
    return str_eq(e->d_name, ".") || str_eq(e->d_name, "..") || look_at(s, e, f);
}

static bool
search_root(struct search *s, const char *root, struct failure *f)
{
    struct walk walk;
    struct sy_error err = {0};
    bool is_ok = true;

    /* As it was mounted: marks are opened through no link. */
    if (walk_run(&walk, root, &err) != SY_E_OK) {
        return failed(f, STAGE_MOUNTS, err.sys != 0 ? err.sys : ENOMEM, root);
    }
    buf_reset(&s->path);
    is_ok = buf_add(&s->path, walk.path.data, walk.path.len) == SY_E_OK;
    walk_fini(&walk);
    if (!is_ok) {
        return failed(f, STAGE_MOUNTS, ENOMEM, root);
    }
    s->root_len = s->path.len + (s->path.len == 1 ? 0 : 1);

    int fd = open_dir(AT_FDCWD, buf_view(&s->path), f);

    if (fd < 0) {
        return f->stage == STAGE_NONE; /* a file */
    }
    is_ok = go_down(s, fd, f);
    while (is_ok && s->n_levels > 0) {
        is_ok = step(s, f);
    }
    while (s->n_levels > 0) {
        (void)closedir(s->levels[--s->n_levels].dir);
    }
    return is_ok;
}

bool
protect_find_names(struct buf *ret_marks, const struct sandbox_plan *plan, char *const *names,
                   struct failure *f)
{
    struct search *s = NULL;
    const char *root = NULL;
    bool is_ok = true;

    if (names[0] == NULL) {
        return true;
    }
    s = mem_alloc_zero(1, sizeof(*s));
    if (s == NULL) {
        return failed(f, STAGE_MOUNTS, ENOMEM, NULL);
    }
    s->plan = plan;
    s->names = names;
    s->path.max = LIMIT_PATH;
    s->marks = ret_marks;
    for (size_t i = 0; is_ok && (root = sandbox_plan_root(plan, i)) != NULL; i++) {
        is_ok = search_root(s, root, f);
    }
    buf_fini(&s->path);
    mem_free(s);
    return is_ok;
}

bool
protect_names(struct tree *t, const struct sandbox_plan *plan, char *const *names,
              struct failure *f)
{
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};

    return protect_find_names(&marks, plan, names, f) &&
           tree_mark(t, buf_view(&marks), marks.len, f);
}

/* Roots as they were mounted. */
static enum sy_code
walked_roots(struct strv *ret, const struct sandbox_plan *plan)
{
    const char *root = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; rc == SY_E_OK && (root = sandbox_plan_root(plan, i)) != NULL; i++) {
        SY_AUTO(walk_fini) struct walk walk = {0};
        struct sy_error err = {0};

        rc = walk_run(&walk, root, &err);
        if (rc == SY_E_OK) {
            rc = strv_add(ret, buf_view(&walk.path));
        }
    }
    return rc;
}

static enum sy_code
add_secrets(struct buf *marks, struct strv *above, const struct sandbox_plan *plan,
            const struct sandbox_ready *ready)
{
    SY_AUTO(strv_fini) struct strv roots = {.max = LIMIT_ROOTS + 1};
    const char *path = NULL;
    enum sy_code rc = walked_roots(&roots, plan);

    for (size_t i = 0; rc == SY_E_OK && (path = sandbox_ready_hidden(ready, i)) != NULL; i++) {
        if (sandbox_ready_hidden_is_in_root(ready, i)) {
            rc = own_add_above(above, &roots, path);
        }
    }
    for (size_t i = 0; rc == SY_E_OK && i < above->n; i++) {
        rc = buf_addf(marks, "%c%s", LAUNCH_MARK_PIN, above->v[i]);
        rc = rc == SY_E_OK ? buf_add_char(marks, '\0') : rc;
    }
    for (size_t i = 0; rc == SY_E_OK && (path = sandbox_ready_hidden(ready, i)) != NULL; i++) {
        rc = buf_addf(marks, "%c%s", LAUNCH_MARK_HIDE, path);
        rc = rc == SY_E_OK ? buf_add_char(marks, '\0') : rc;
    }
    return rc;
}

bool
protect_find_secrets(struct buf *ret_marks, const struct sandbox_plan *plan,
                     const struct sandbox_ready *ready, struct failure *f)
{
    SY_AUTO(strv_fini) struct strv above = {.max = LIMIT_MARKS};

    return add_secrets(ret_marks, &above, plan, ready) == SY_E_OK
               ? true
               : failed(f, STAGE_MOUNTS, ENOMEM, "too much is denied to read");
}

bool
protect_secrets(struct tree *t, const struct sandbox_plan *plan, const struct sandbox_ready *ready,
                struct failure *f)
{
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};

    return protect_find_secrets(&marks, plan, ready, f) &&
           tree_mark(t, buf_view(&marks), marks.len, f);
}
