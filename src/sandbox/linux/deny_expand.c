#include "sandbox/linux/deny_expand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/linux/deny_names.h"
#include "sandbox/linux/deny_source.h"
#include "sandbox/linux/raw_syscall.h"

/* Names of one directory, as bytes. */
#define NAMES_BYTES_MAX ((size_t)LIMIT_DENY_NAMES * 64)

/* The clock that stamps a directory may stand still for so long. */
#define TICK_NS  20000000
#define NS_PER_S 1000000000

static char *
path_of(const struct deny_frame *in, const char *name)
{
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_PATH * 2};
    const char *dir = in->dir.path;
    size_t n = dir[1] == '\0' ? 0 : strlen(dir);

    if (buf_reserve(&path, n + strlen(name) + 1) != SY_E_OK || buf_add(&path, dir, n) != SY_E_OK ||
        buf_add_char(&path, '/') != SY_E_OK || buf_add_str(&path, name) != SY_E_OK) {
        return NULL;
    }
    return buf_take(&path);
}

static bool
is_root(const struct deny_expander *x, const char *path)
{
    for (size_t i = 0; i < x->request->roots->n; i++) {
        if (str_eq(x->request->roots->v[i], path)) {
            return true;
        }
    }
    return false;
}

/* --- what is found --- */

static int64_t
born_ns(const struct statx *st)
{
    return (st->stx_mask & STATX_BTIME) != 0
               ? st->stx_btime.tv_sec * NS_PER_S + st->stx_btime.tv_nsec
               : BORN_UNTOLD;
}

/* Has a later change another time? */
static bool
is_settled(const struct statx_timestamp *changed, int64_t now_ns)
{
    int64_t s = now_ns / NS_PER_S - changed->tv_sec;

    return s > 1 || s < -1 ||
           s * NS_PER_S + now_ns % NS_PER_S - (int64_t)changed->tv_nsec > TICK_NS;
}

static void
keep_back(struct deny_frame *in)
{
    if (in->is_listable) {
        deny_name_set_type(&in->dir.names, in->current, DENY_KEPT_BACK);
    }
    in->dir.is_split = true;
}

static enum sy_code
add_object(struct deny_expander *x, struct deny_frame *in, const char *name, bool is_link)
{
    struct deny_object o = {.is_link = is_link, .rule = x->hit.rule};
    struct statx st;

    if (x->view.n_objects == LIMIT_DENY_OBJECTS) {
        return deny_too_much(x, "objects", LIMIT_DENY_OBJECTS);
    }
    if (statx(in->dir.fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_TYPE | STATX_INO | STATX_NLINK | STATX_MNT_ID | STATX_BTIME | STATX_CTIME,
              &st) != 0) {
        if (errno == ENOENT) {
            return SY_E_OK;
        }
        /* It is there, and more is not known: nobody reads it. */
        memset(&st, 0, sizeof(st));
    }
    o.id = file_id_of_statx(&st);
    o.is_dir = S_ISDIR(st.stx_mode);
    o.has_more_names = !o.is_dir && !is_link && st.stx_nlink > 1;
    o.born_ns = born_ns(&st);
    if (!o.is_dir && is_settled(&st.stx_ctime, x->begun_ns)) {
        o.changed_ns = st.stx_ctime.tv_sec * NS_PER_S + st.stx_ctime.tv_nsec;
    }
    o.path = path_of(in, name);
    if (o.path == NULL ||
        deny_grow(&x->view.objects, x->view.n_objects, sizeof(x->view.objects[0])) != SY_E_OK) {
        mem_free(o.path);
        return sy_err_nomem(x->err);
    }
    o.is_in_root = in->is_in_root || is_root(x, o.path);
    x->view.objects[x->view.n_objects++] = o;
    if (!o.is_in_root) {
        keep_back(in);
        x->view.n_held++;
        x->view.has_more_names = x->view.has_more_names || o.has_more_names;
    }
    return SY_E_OK;
}

/* In a root nothing is held by Landlock: "**" is not even searched for there. */
static enum sy_code
drop_deep(struct deny_expander *x)
{
    size_t kept = 0;

    for (size_t i = 0; i < x->hit.below.n; i++) {
        const struct deny_want w = x->hit.below.v[i];

        if (!str_starts(w.rest, "**/")) {
            x->hit.below.v[kept++] = w;
            continue;
        }

        const char *text = x->request->patterns->v[w.rule];
        bool is_known = false;

        for (size_t k = 0; k < x->view.unsearched.n; k++) {
            is_known = is_known || str_eq(x->view.unsearched.v[k], text);
        }
        if (!is_known && strv_add(&x->view.unsearched, text) != SY_E_OK) {
            return sy_err_nomem(x->err);
        }
    }
    x->hit.below.n = kept;
    return SY_E_OK;
}

/* --- directories --- */

/* 0 or an errno value; then the frame is to be given up all the same. */
static int
inspect(struct deny_frame *f, int64_t begun_ns)
{
    struct statx st;

    if (statx(f->dir.fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
              STATX_INO | STATX_MNT_ID | STATX_BTIME | STATX_CTIME, &st) != 0) {
        return errno;
    }
    f->dir.id = file_id_of_statx(&st);
    f->dir.changed_s = st.stx_ctime.tv_sec;
    f->dir.changed_ns = st.stx_ctime.tv_nsec;
    f->dir.born_ns = born_ns(&st);
    f->dir.is_settled = is_settled(&st.stx_ctime, begun_ns);
    return 0;
}

static enum sy_code
read_names(struct deny_expander *x, struct deny_frame *f)
{
    int failed = 0;
    enum sy_code rc = SY_E_OK;

    if (!f->is_listable) {
        return SY_E_OK;
    }
    f->dir.names.max = NAMES_BYTES_MAX;
    rc = deny_names_read(&f->dir.names, f->dir.fd, &failed);
    if (rc == SY_E_LIMIT) {
        return deny_too_much(x, "names", LIMIT_DENY_NAMES);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(x->err);
    }
    /* It was removed since it was opened: there is nothing in it. */
    return failed == 0 || failed == ENOENT
               ? SY_E_OK
               : sy_err_sys(x->err, failed, "sandbox.deny_read: listing '%.160s'", f->dir.path);
}

/* A directory that is shut to us, and that its owner, who runs the command too,
 * could open: nothing of it is granted. */
static bool
is_ours(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
}

static int
open_dir(struct deny_frame *f, int at, const char *name)
{
    f->dir.fd = openat(at, name, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    f->is_listable = f->dir.fd >= 0;
    if (f->dir.fd < 0 && errno == EACCES) {
        f->dir.fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        /* Whoever has no x there finds nothing by name either. */
        if (f->dir.fd >= 0 && faccessat(f->dir.fd, ".", X_OK, AT_EACCESS) != 0) {
            int saved = errno;

            fd_close(&f->dir.fd);
            return saved;
        }
    }
    return f->dir.fd >= 0 ? 0 : errno;
}

static enum sy_code
wild_but_unlistable(struct deny_expander *x, const struct deny_frame *f)
{
    for (size_t i = 0; i < f->names.n_groups; i++) {
        const struct deny_group *g = &f->names.groups[i];

        /* A wildcard of the defaults finds nothing where nothing can be listed. */
        if (!g->is_plain && f->names.wants.v[g->first].rule < DENY_SYSTEM) {
            return sy_err_set(x->err, SY_E_CONFIG,
                              "sandbox.deny_read: '%.80s' stands for names in '%.80s', which can't "
                              "be listed: name the files themselves",
                              x->request->patterns->v[f->names.wants.v[g->first].rule],
                              f->dir.path);
        }
    }
    return SY_E_OK;
}

/* Takes `path` and what is wanted below (x->hit). */
static enum sy_code
enter(struct deny_expander *x, struct deny_frame *in, const char *name, char *path)
{
    struct deny_frame f = {
        .dir = {.path = path, .fd = -1},
          .is_in_root = in != NULL && in->is_in_root
    };
    enum sy_code rc = SY_E_OK;

    f.is_in_root = f.is_in_root || is_root(x, path);
    if (x->hit.is_home) {
        rc = deny_add_rows(x, x->hit.home);
    }
    if (rc == SY_E_OK && f.is_in_root && x->request->is_for_landlock) {
        rc = drop_deep(x);
    }

    int failed = rc == SY_E_OK && x->hit.below.n > 0
                     ? open_dir(&f, in != NULL ? in->dir.fd : AT_FDCWD, name)
                     : ENOENT;

    if (failed == 0) {
        failed = inspect(&f, x->begun_ns);
    }
    if (rc != SY_E_OK || failed != 0) {
        if (failed == EACCES && in != NULL && !f.is_in_root && is_ours(in->dir.fd, name)) {
            keep_back(in);
            x->view.n_held++;
        }
        deny_dir_fini(&f.dir);
        return failed == EMFILE || failed == ENFILE || failed == ENOMEM
                   ? sy_err_sys(x->err, failed, "sandbox.deny_read: opening a directory")
                   : rc;
    }
    rc = x->depth == DENY_DEPTH_MAX ? deny_too_much(x, "levels of directories", DENY_DEPTH_MAX)
                                    : deny_grow(&x->frames, x->depth, sizeof(f));
    if (rc == SY_E_OK) {
        rc = deny_names_init(&f.names, &x->hit.below);
    }
    if (rc == SY_E_NOMEM) {
        rc = sy_err_nomem(x->err);
    }
    if (rc == SY_E_OK && !f.is_listable) {
        rc = wild_but_unlistable(x, &f);
    }
    if (rc == SY_E_OK) {
        rc = read_names(x, &f);
    }
    if (rc != SY_E_OK) {
        deny_dir_fini(&f.dir);
        deny_names_fini(&f.names);
        return rc;
    }
    x->frames[x->depth++] = f;
    return SY_E_OK;
}

/* The last frame is done: what it tells goes up, and it is watched. */
static enum sy_code
leave(struct deny_expander *x)
{
    struct deny_frame f = x->frames[--x->depth];

    deny_names_fini(&f.names);
    if (x->view.n_dirs == LIMIT_DENY_DIRS ||
        deny_grow(&x->view.dirs, x->view.n_dirs, sizeof(x->view.dirs[0])) != SY_E_OK) {
        deny_dir_fini(&f.dir);
        return x->view.n_dirs == LIMIT_DENY_DIRS ? deny_too_much(x, "directories", LIMIT_DENY_DIRS)
                                                 : sy_err_nomem(x->err);
    }
    if (!f.dir.is_split || !f.is_listable || !x->request->is_for_landlock) {
        fd_close(&f.dir.fd);
        buf_fini(&f.dir.names);
    }
    x->view.dirs[x->view.n_dirs++] = f.dir;
    if (f.dir.is_split && x->depth > 0) {
        keep_back(&x->frames[x->depth - 1]);
    }
    return SY_E_OK;
}

/* --- the walk --- */

static enum sy_code
look_at(struct deny_expander *x, struct deny_frame *in, const char *name, unsigned char type)
{
    struct stat st;

    if (deny_names_match(&in->names, name, &x->hit) != SY_E_OK) {
        return sy_err_nomem(x->err);
    }
    if (!x->hit.is_wanted && !x->hit.is_home && x->hit.below.n == 0) {
        return SY_E_OK;
    }
    if (type == DT_UNKNOWN) {
        if (fstatat(in->dir.fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
            return SY_E_OK;
        }
        type = S_ISLNK(st.st_mode) ? DT_LNK : S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
    }
    if (type == DT_LNK && in->is_in_root) {
        return x->hit.is_wanted ? add_object(x, in, name, true) : SY_E_OK;
    }
    if (x->hit.is_wanted && type != DT_LNK) {
        return add_object(x, in, name, false);
    }
    if (type != DT_LNK && type != DT_DIR) {
        return SY_E_OK;
    }

    char *path = path_of(in, name);

    if (path == NULL) {
        return sy_err_nomem(x->err);
    }
    if (type == DT_DIR) {
        return enter(x, in, name, path);
    }

    enum sy_code rc = deny_follow(x, path);

    mem_free(path);
    return rc;
}

/* A directory that can't be listed: each name is tried. */
static enum sy_code
try_group(struct deny_expander *x, struct deny_frame *in)
{
    const struct deny_group *g = &in->names.groups[in->next++];
    SY_AUTO(mem_free_charp) char *name = mem_strndup(g->name, g->len);

    return name != NULL ? look_at(x, in, name, DT_UNKNOWN) : sy_err_nomem(x->err);
}

static enum sy_code
step(struct deny_expander *x)
{
    struct deny_frame *f = &x->frames[x->depth - 1];
    const char *name = NULL;
    unsigned char type = DT_UNKNOWN;

    if (!f->is_listable) {
        return f->next < f->names.n_groups ? try_group(x, f) : leave(x);
    }
    f->current = f->next;
    if (!deny_name_next(&f->dir.names, &f->next, &name, &type)) {
        return leave(x);
    }
    if (++x->n_names > LIMIT_DENY_NAMES) {
        return deny_too_much(x, "names", LIMIT_DENY_NAMES);
    }
    return look_at(x, f, name, type);
}

static enum sy_code
run_once(struct deny_expander *x)
{
    char *slash = mem_strdup("/");
    enum sy_code rc = slash != NULL ? SY_E_OK : sy_err_nomem(x->err);

    x->has_new_source = false;
    x->n_names = 0;
    x->hit.below.n = 0;
    x->hit.is_home = false;
    for (size_t i = 0; i < x->n_sources && rc == SY_E_OK; i++) {
        const struct deny_source *from = &x->sources[i];

        if (from->text[0] == '\0') {
            rc = deny_add_rows(x, from->rule - DENY_HOME_ITSELF); /* whose home is "/" */
        } else if (deny_wants_add(&x->hit.below, from->text, from->rule) != SY_E_OK) {
            rc = sy_err_nomem(x->err);
        }
    }
    if (rc == SY_E_OK) {
        rc = deny_add_system_rows(x);
    }
    if (rc != SY_E_OK) {
        mem_free(slash);
        return rc;
    }
    rc = enter(x, NULL, "/", slash);
    while (rc == SY_E_OK && x->depth > 0) {
        rc = step(x);
    }
    return rc;
}

static enum sy_code
run(struct deny_expander *x)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < x->request->patterns->n && rc == SY_E_OK; i++) {
        rc = deny_grow(&x->sources, x->n_sources, sizeof(x->sources[0]));
        if (rc == SY_E_OK) {
            x->sources[x->n_sources++] = (struct deny_source){x->request->patterns->v[i] + 1, i};
        }
    }
    rc = rc == SY_E_OK ? deny_add_homes(x) : sy_err_nomem(x->err);
    for (unsigned round = 0; rc == SY_E_OK; round++) {
        if (round == LIMIT_DENY_ROUNDS) {
            return deny_too_much(x, "links one behind the other", LIMIT_DENY_ROUNDS);
        }
        deny_view_fini(&x->view);
        x->view.unsearched.max = x->request->patterns->n;
        rc = run_once(x);
        if (!x->has_new_source) {
            break;
        }
    }
    return rc;
}

enum sy_code
deny_expand(struct deny_view *ret, const struct deny_request *request, struct sy_error *err)
{
    if (request->patterns->n == 0 && request->homes->n == 0 && !request->denies_system &&
        !request->closes_devices) {
        *ret = (struct deny_view){0};
        return SY_E_OK;
    }

    struct deny_expander x = {
        .request = request,
        .behind_links = {.max = LIMIT_DENY_OBJECTS},
        .begun_ns = clock_wall_ns(),
        .err = err,
    };
    enum sy_code rc = run(&x);

    while (x.depth > 0) {
        deny_dir_fini(&x.frames[--x.depth].dir);
        deny_names_fini(&x.frames[x.depth].names);
    }
    mem_free(x.frames);
    deny_wants_fini(&x.hit.below);
    strv_fini(&x.behind_links);
    mem_free(x.sources);
    if (rc == SY_E_OK) {
        *ret = x.view;
    } else {
        deny_view_fini(&x.view);
    }
    return rc;
}
