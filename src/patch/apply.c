/*
 * All or nothing: new contents beside their places, then names exchanged one by one, each exchange
 * with its way back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "patch/patch_internal.h"

#define NEW_FILE_MODE 0666
#define NEW_DIR_MODE  0777
/* No set-user-id and the like: writing into such a file takes that away, too. */
#define KEPT_MODE  01777U
#define TEMP_TRIES 16

/* One name that becomes another file, or none. */
struct swap {
    const struct site *site;
    const struct buf *content; /* NULL: the name goes */
    const struct stat *like;   /* whose mode and owner it gets; NULL: a new file's */
    const char *shown;
    int own_fd; /* -1: the site's directory is where it goes */
    const char *name;
    char temp[40]; /* beside it: the new content, and after the exchange the old one */
    bool has_temp;
    bool is_done;
    struct stat mine; /* the new file */
};

/* A directory that was made. */
struct made_dir {
    int parent_fd;
    char *name;
};

struct applying {
    struct patch_plan *plan;
    struct swap *v;
    size_t n;
    struct made_dir *dirs;
    size_t n_dirs;
    size_t cap_dirs;
    patch_before_fn *before;
    void *before_arg;
    const char *what; /* of the step at hand */
    struct sy_error *err;
};

/* Before each step that changes something: true, or errno says why not. */
static bool
may_go_on(const struct applying *a)
{
    int errnum = a->before != NULL ? a->before(a->before_arg) : 0;

    errno = errnum;
    return errnum == 0;
}

static enum sy_code
failed(const struct applying *a, int errnum, const char *what, const char *path)
{
    struct place_shown_path shown;

    return errnum == ENOMEM
               ? sy_err_nomem(a->err)
               : sy_err_sys(a->err, errnum, "%s %s", what, place_visible_path(&shown, path));
}

static enum sy_code
remember_dir(struct applying *a, int parent_fd, const char *name)
{
    if (a->n_dirs == a->cap_dirs) {
        size_t cap = a->cap_dirs > 0 ? a->cap_dirs * 2 : 8;
        struct made_dir *more = mem_realloc(a->dirs, cap * sizeof(*more));

        if (more == NULL) {
            return SY_E_NOMEM;
        }
        a->dirs = more;
        a->cap_dirs = cap;
    }

    struct made_dir *d = &a->dirs[a->n_dirs];

    d->name = mem_strdup(name);
    d->parent_fd = d->name != NULL ? fcntl(parent_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (d->parent_fd < 0) {
        mem_free(d->name);
        return d->name == NULL ? SY_E_NOMEM : SY_E_SYS;
    }
    a->n_dirs++;
    return SY_E_OK;
}

static void
forget_dir(struct applying *a)
{
    struct made_dir *d = &a->dirs[--a->n_dirs];

    mem_free(d->name);
    fd_close(&d->parent_fd);
}

/* Opens a directory in another, and makes it if it is not there. */
static enum sy_code
enter_dir(struct applying *a, int *fd, const char *name, const char *shown)
{
    static const char what[] = "Failed to create parent directories for";
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    SY_FD next = openat(*fd, name, flags | O_CLOEXEC);

    if (next < 0 && errno == ENOENT) {
        /* Remembered first: there may be no memory for it afterwards. */
        enum sy_code rc = remember_dir(a, *fd, name);

        if (rc != SY_E_OK) {
            return failed(a, rc == SY_E_NOMEM ? ENOMEM : errno, what, shown);
        }
        if (!may_go_on(a) || mkdirat(*fd, name, NEW_DIR_MODE) != 0) {
            int errnum = errno;

            forget_dir(a);
            if (errnum != EEXIST) { /* else somebody else was first */
                return failed(a, errnum, what, shown);
            }
        }
        next = openat(*fd, name, flags | O_CLOEXEC);
    }
    if (next < 0) {
        return failed(a, errno, what, shown);
    }
    fd_close(fd);
    *fd = fd_take(&next);
    return SY_E_OK;
}

static int
dir_of(const struct swap *s)
{
    return s->own_fd >= 0 ? s->own_fd : s->site->dir_fd;
}

/* Makes the directories that a file needs; dir_of(s) and s->name are where it goes. */
static enum sy_code
enter_dirs(struct applying *a, struct swap *s)
{
    const char *rest = s->site->rest;
    char name[LIMIT_PATH];
    enum sy_code rc = SY_E_OK;

    if (strchr(rest, '/') != NULL) {
        s->own_fd = fcntl(s->site->dir_fd, F_DUPFD_CLOEXEC, 0);
        if (s->own_fd < 0) {
            return failed(a, errno, "Failed to open the directory of", s->shown);
        }
    }
    while (rc == SY_E_OK && strchr(rest, '/') != NULL) {
        size_t n = strcspn(rest, "/");

        memcpy(name, rest, n);
        name[n] = '\0';
        rest += n + strspn(rest + n, "/");
        rc = enter_dir(a, &s->own_fd, name, s->shown);
    }
    s->name = rest;
    return rc;
}

static enum sy_code
name_temp(struct applying *a, struct swap *s)
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        return failed(a, EIO, "Failed to find a temporary name beside", s->shown);
    }
    (void)snprintf(s->temp, sizeof(s->temp), ".sy-patch-%016llx", (unsigned long long)number);
    return SY_E_OK;
}

static enum sy_code
make_temp(struct applying *a, struct swap *s, int *ret)
{
    mode_t mode = s->like != NULL ? 0600 : NEW_FILE_MODE;

    for (int i = 0; i < TEMP_TRIES; i++) {
        enum sy_code rc = name_temp(a, s);

        if (rc != SY_E_OK) {
            return rc;
        }
        if (!may_go_on(a)) {
            break;
        }
        *ret =
            openat(dir_of(s), s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (*ret >= 0) {
            s->has_temp = true;
            return SY_E_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return failed(a, errno, "Failed to write file", s->shown);
}

/* Mode and owner of the file that it takes the place of. */
static bool
make_alike(const struct applying *a, int fd, const struct stat *like)
{
    struct stat st;

    if (!may_go_on(a) || fstat(fd, &st) != 0) {
        return false;
    }
    if (st.st_uid != like->st_uid || st.st_gid != like->st_gid) {
        /* Who is not root keeps the group if it is one of theirs. */
        if (fchown(fd, like->st_uid, like->st_gid) != 0 &&
            fchown(fd, (uid_t)-1, like->st_gid) != 0 && errno != EPERM) {
            return false;
        }
    }
    return fchmod(fd, like->st_mode & KEPT_MODE) == 0;
}

static enum sy_code
write_temp(struct applying *a, struct swap *s)
{
    SY_FD fd = -1;
    enum sy_code rc = s->content != NULL ? make_temp(a, s, &fd) : name_temp(a, s);

    if (rc != SY_E_OK || s->content == NULL) {
        return rc;
    }
    if (!may_go_on(a)) {
        return failed(a, errno, "Failed to write file", s->shown);
    }
    rc = fd_write_all(fd, buf_view(s->content), s->content->len, a->err);
    if (rc != SY_E_OK) {
        struct place_shown_path shown;

        sy_err_wrap(a->err, "Failed to write file %s", place_visible_path(&shown, s->shown));
        return rc;
    }
    if ((s->like != NULL && !make_alike(a, fd, s->like)) || fstat(fd, &s->mine) != 0) {
        return failed(a, errno, "Failed to write file", s->shown);
    }
    return SY_E_OK;
}

/* Does the disk lack what exchanges names, or refuses to overwrite one? */
static bool
lacks_flags(int errnum)
{
    return errnum == EINVAL || errnum == ENOSYS;
}

/* A new name, which may not be there. */
static int
put_new(const struct swap *s, const char *from, const char *to)
{
    if (renameat2(dir_of(s), from, dir_of(s), to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (!lacks_flags(errno) || linkat(dir_of(s), from, dir_of(s), to, 0) != 0) {
        return -1;
    }
    if (unlinkat(dir_of(s), from, 0) != 0) {
        int errnum = errno;

        (void)unlinkat(dir_of(s), to, 0);
        errno = errnum;
        return -1;
    }
    return 0;
}

/* Both names are there, and become each other's. */
static int
exchange(const struct swap *s)
{
    char other[sizeof(s->temp) + 2];

    if (renameat2(dir_of(s), s->temp, dir_of(s), s->name, RENAME_EXCHANGE) == 0) {
        return 0;
    }
    if (!lacks_flags(errno)) {
        return -1;
    }
    /* The file keeps a second name while its first one becomes the new file's. */
    (void)snprintf(other, sizeof(other), "%s~", s->temp);
    if (linkat(dir_of(s), s->name, dir_of(s), other, 0) != 0) {
        return -1;
    }
    if (renameat(dir_of(s), s->temp, dir_of(s), s->name) != 0) {
        int errnum = errno;

        (void)unlinkat(dir_of(s), other, 0);
        errno = errnum;
        return -1;
    }
    if (renameat(dir_of(s), other, dir_of(s), s->temp) != 0) {
        int errnum = errno;

        (void)renameat(dir_of(s), other, dir_of(s), s->name);
        errno = errnum;
        return -1;
    }
    return 0;
}

static int
swap_names(const struct swap *s)
{
    if (s->content == NULL) {
        return put_new(s, s->name, s->temp);
    }
    return s->site->exists ? exchange(s) : put_new(s, s->temp, s->name);
}

/* What stands under the temporary name now is what the plan has seen. */
static bool
took_the_right_one(const struct swap *s)
{
    struct stat st;

    return !s->site->exists || (fstatat(dir_of(s), s->temp, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                                site_is_same(&st, &s->site->st));
}

static enum sy_code
do_swap(struct applying *a, struct swap *s)
{
    struct place_shown_path shown;

    if (!may_go_on(a) || swap_names(s) != 0) {
        return failed(a, errno,
                      s->content == NULL ? "Failed to remove original" : "Failed to write file",
                      s->shown);
    }
    s->is_done = true;
    s->has_temp = s->site->exists;
    if (!took_the_right_one(s)) {
        return sy_err_set(a->err, SY_E_DENIED,
                          "%s was changed by somebody else while the patch was applied: read it "
                          "again",
                          place_visible_path(&shown, s->shown));
    }
    return SY_E_OK;
}

/* Of a new file: takes it away again, unless it is somebody else's by now. */
static bool
undo_new(const struct swap *s)
{
    struct stat st;

    return fstatat(dir_of(s), s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           site_is_same(&st, &s->mine) && unlinkat(dir_of(s), s->name, 0) == 0;
}

static bool
undo_swap(const struct swap *s)
{
    if (s->content == NULL) {
        return put_new(s, s->temp, s->name) == 0;
    }
    return s->site->exists ? exchange(s) == 0 : undo_new(s);
}

static void
undo(struct applying *a)
{
    struct place_shown_path shown;

    for (size_t i = a->n; i-- > 0;) {
        struct swap *s = &a->v[i];

        if (s->is_done && !undo_swap(s)) {
            /* The old content is kept under the other name, and said where. */
            struct sy_error cause = *a->err;

            sy_err_set(a->err, cause.code, "%s could not be put back (%s%s%s); first: %s",
                       place_visible_path(&shown, s->shown), sy_errno_text(errno),
                       s->has_temp ? ", its old content is beside it in " : "",
                       s->has_temp ? s->temp : "", cause.msg);
            s->has_temp = false;
            continue;
        }
        if (s->content != NULL && s->has_temp) {
            (void)unlinkat(dir_of(s), s->temp, 0);
        }
    }
    for (size_t i = a->n_dirs; i-- > 0;) {
        /* One in which somebody has put something stays. */
        (void)unlinkat(a->dirs[i].parent_fd, a->dirs[i].name, AT_REMOVEDIR);
    }
}

/* What was there before goes for good. */
static void
clear_away(struct applying *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct swap *s = &a->v[i];

        if (s->has_temp && unlinkat(dir_of(s), s->temp, 0) != 0 &&
            notes_add(&a->plan->report.notes,
                      "the old content of %s is still there, beside it in %s (%s)", s->shown,
                      s->temp, sy_errno_text(errno)) != SY_E_OK) {
            a->plan->report.notes.more++;
        }
    }
}

static enum sy_code
carry_out(struct applying *a)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < a->n && rc == SY_E_OK; i++) {
        rc = enter_dirs(a, &a->v[i]);
    }
    for (size_t i = 0; i < a->n && rc == SY_E_OK; i++) {
        rc = write_temp(a, &a->v[i]);
    }
    for (size_t i = 0; i < a->n && rc == SY_E_OK; i++) {
        rc = do_swap(a, &a->v[i]);
    }
    if (rc == SY_E_OK) {
        clear_away(a);
    } else {
        undo(a);
    }
    return rc;
}

static void
add_swap(struct applying *a, const struct planned *p, bool is_source)
{
    bool removes = p->section->kind == PATCH_DELETE || (is_source && planned_moves(p));
    const struct site *site = is_source ? &p->source : &p->target;

    a->v[a->n++] = (struct swap){
        .site = site,
        .content = removes ? NULL : &p->content,
        .like = p->source.exists ? &p->source.st : NULL,
        .shown = is_source ? p->section->path : p->section->move_to,
        .own_fd = -1,
    };
}

static void
applying_fini(struct applying *a)
{
    for (size_t i = 0; i < a->n; i++) {
        fd_close(&a->v[i].own_fd);
    }
    for (size_t i = 0; i < a->n_dirs; i++) {
        fd_close(&a->dirs[i].parent_fd);
        mem_free(a->dirs[i].name);
    }
    mem_free(a->dirs);
    mem_free(a->v);
}

enum sy_code
patch_apply(struct patch_plan *plan, patch_before_fn *before, void *arg, struct sy_error *err)
{
    struct sy_error own = {0};
    struct identity was;
    struct applying a = {
        .plan = plan, .before = before, .before_arg = arg, .err = err != NULL ? err : &own};
    enum sy_code rc = SY_E_OK;

    a.v = mem_alloc_zero(2 * plan->n, sizeof(*a.v));
    if (a.v == NULL) {
        return sy_err_nomem(err);
    }
    for (size_t i = 0; i < plan->n; i++) {
        const struct planned *p = &plan->v[i];

        if (planned_moves(p)) {
            add_swap(&a, p, false);
        }
        add_swap(&a, p, true);
    }
    rc = identity_enter(&was, plan->world, a.err);
    if (rc == SY_E_OK) {
        rc = carry_out(&a);
        identity_leave(&was);
    }
    applying_fini(&a);
    return rc;
}
