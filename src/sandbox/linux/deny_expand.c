#include "sandbox/linux/deny_expand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"
#include "sandbox/deny_match.h"
#include "sandbox/linux/deny_names.h"
#include "sandbox/linux/raw_syscall.h"

/* No pattern leads deeper, but for "**", where nothing sensible does. */
#define DEPTH_MAX 64

/* Names of one directory, as bytes. */
#define NAMES_BYTES_MAX ((size_t)LIMIT_DENY_NAMES * 64)

/* The clock that stamps a directory may stand still for so long. */
#define TICK_NS 20000000

/* A directory that is being looked at. */
struct frame {
    struct deny_dir dir;
    struct deny_names names;
    bool is_listable;
    bool is_in_root;
    size_t next;    /* byte of the next name; or the group, where none can be listed */
    size_t current; /* byte of the name that is being looked at */
};

/* A pattern with where it comes from; links make more of them. */
struct source {
    const char *text; /* without its first '/' */
    size_t rule;
};

struct expander {
    const struct deny_request *request;
    struct deny_view view;
    struct frame *frames; /* room for DEPTH_MAX */
    size_t depth;
    struct source *sources;
    size_t n_sources;
    struct strv behind_links; /* owns the texts of those that links made */
    bool has_new_source;
    size_t n_names;
    struct deny_hit hit;
    struct sy_error *err;
};

/* Room for one more; the array grows by powers of two. */
static enum sy_code
grow(void *array, size_t n, size_t size)
{
    void *old = NULL;
    void *grown = NULL;
    size_t bytes = 0;

    if (n != 0 && (n < 8 || (n & (n - 1)) != 0)) {
        return SY_E_OK;
    }
    memcpy(&old, array, sizeof(old));
    if (size_mul(&bytes, n == 0 ? 8 : n * 2, size)) {
        grown = mem_realloc(old, bytes);
    }
    if (grown == NULL) {
        return SY_E_NOMEM;
    }
    memcpy(array, &grown, sizeof(grown));
    return SY_E_OK;
}

static enum sy_code
too_much(struct expander *x, const char *what, unsigned most)
{
    return sy_err_set(x->err, SY_E_SANDBOX,
                      "sandbox.deny_read: more than %u %s to look at (the last in '%.80s'): name "
                      "fewer or narrower ones",
                      most, what, x->depth > 0 ? x->frames[x->depth - 1].dir.path : "/");
}

static char *
path_of(const struct frame *in, const char *name)
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
is_root(const struct expander *x, const char *path)
{
    for (size_t i = 0; i < x->request->roots->n; i++) {
        if (str_eq(x->request->roots->v[i], path)) {
            return true;
        }
    }
    return false;
}

/* --- links --- */

/* One more pattern: what lies where a link leads. */
static enum sy_code
add_source(struct expander *x, const char *real, const char *rest, size_t rule)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_PATH * 4};
    enum sy_code rc = path_pattern_quote(&text, real);

    if (rc == SY_E_OK && rest != NULL) {
        rc = buf_addf(&text, "/%s", rest);
    }
    if (rc == SY_E_LIMIT) {
        return SY_E_OK; /* no path is that long */
    }
    for (size_t i = 0; i < x->n_sources && rc == SY_E_OK; i++) {
        if (str_eq(x->sources[i].text, buf_view(&text) + 1) &&
            (x->sources[i].rule >= DENY_HOME_ITSELF) == (rule >= DENY_HOME_ITSELF)) {
            return SY_E_OK;
        }
    }
    if (rc == SY_E_OK) {
        rc = strv_add(&x->behind_links, buf_view(&text));
    }
    if (rc == SY_E_LIMIT) {
        return too_much(x, "places behind links", LIMIT_DENY_OBJECTS);
    }
    if (rc == SY_E_OK) {
        rc = grow(&x->sources, x->n_sources, sizeof(x->sources[0]));
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(x->err);
    }
    x->sources[x->n_sources++] =
        (struct source){x->behind_links.v[x->behind_links.n - 1] + 1, rule};
    x->has_new_source = true;
    return SY_E_OK;
}

static enum sy_code
follow(struct expander *x, const char *path)
{
    SY_AUTO(walk_fini) struct walk walk = {0};
    struct sy_error ignored = {0};
    enum sy_code rc = walk_run(&walk, path, &ignored);

    if (rc == SY_E_SYS) {
        return SY_E_OK; /* a loop, or too long: nobody gets through it */
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(x->err);
    }
    if (buf_view(&walk.path)[1] == '\0') {
        return SY_E_OK; /* what is named there lies in "/": that is no secret */
    }
    if (x->hit.is_wanted) {
        return add_source(x, buf_view(&walk.path), NULL, x->hit.rule);
    }
    if (x->hit.is_home) {
        rc = add_source(x, buf_view(&walk.path), NULL, DENY_HOME_ITSELF + x->hit.home);
    }
    for (size_t i = 0; i < x->hit.below.n && rc == SY_E_OK; i++) {
        const struct deny_want *w = &x->hit.below.v[i];

        if (!str_starts(w->rest, "**/")) {
            rc = add_source(x, buf_view(&walk.path), w->rest, w->rule);
        }
    }
    return rc;
}

/* --- what is found --- */

static void
keep_back(struct frame *in)
{
    if (in->is_listable) {
        deny_name_set_type(&in->dir.names, in->current, DENY_KEPT_BACK);
    }
    in->dir.is_split = true;
}

static enum sy_code
add_object(struct expander *x, struct frame *in, const char *name, bool is_link)
{
    struct deny_object o = {.is_link = is_link, .rule = x->hit.rule};
    struct statx st;

    if (x->view.n_objects == LIMIT_DENY_OBJECTS) {
        return too_much(x, "objects", LIMIT_DENY_OBJECTS);
    }
    if (statx(in->dir.fd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_TYPE | STATX_INO | STATX_NLINK | STATX_MNT_ID, &st) != 0) {
        if (errno == ENOENT) {
            return SY_E_OK;
        }
        /* It is there, and more is not known: nobody reads it. */
        memset(&st, 0, sizeof(st));
    }
    o.id = file_id_of_statx(&st);
    o.is_dir = S_ISDIR(st.stx_mode);
    o.has_more_names = !o.is_dir && !is_link && st.stx_nlink > 1;
    o.path = path_of(in, name);
    if (o.path == NULL ||
        grow(&x->view.objects, x->view.n_objects, sizeof(x->view.objects[0])) != SY_E_OK) {
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
drop_deep(struct expander *x)
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

static bool
is_settled(const struct deny_dir *d)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return false;
    }

    int64_t s = (int64_t)now.tv_sec - d->changed_s;

    return s > 1 || s < -1 || s * 1000000000 + now.tv_nsec - (int64_t)d->changed_ns > TICK_NS;
}

/* 0 or an errno value; then the frame is to be given up all the same. */
static int
inspect(struct frame *f)
{
    struct statx st;

    if (statx(f->dir.fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
              STATX_INO | STATX_MNT_ID | STATX_CTIME, &st) != 0) {
        return errno;
    }
    f->dir.id = file_id_of_statx(&st);
    f->dir.changed_s = st.stx_ctime.tv_sec;
    f->dir.changed_ns = st.stx_ctime.tv_nsec;
    f->dir.is_settled = is_settled(&f->dir);
    return 0;
}

static enum sy_code
read_names(struct expander *x, struct frame *f)
{
    int failed = 0;
    enum sy_code rc = SY_E_OK;

    if (!f->is_listable) {
        return SY_E_OK;
    }
    f->dir.names.max = NAMES_BYTES_MAX;
    rc = deny_names_read(&f->dir.names, f->dir.fd, &failed);
    if (rc == SY_E_LIMIT) {
        return too_much(x, "names", LIMIT_DENY_NAMES);
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(x->err);
    }
    return failed == 0
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
open_dir(struct frame *f, int at, const char *name)
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
wild_but_unlistable(struct expander *x, const struct frame *f)
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

/* What the defaults want of a home, in x->hit. */
static enum sy_code
add_rows(struct expander *x, size_t home)
{
    const struct deny_default *d = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; (d = deny_home_default(i)) != NULL && rc == SY_E_OK; i++) {
        if (!deny_is_left_out(strv_view(x->request->allow_read), x->request->homes->v[home],
                              d->below)) {
            rc = deny_wants_add(&x->hit.below, d->below, DENY_HOME + home * DENY_ROWS_MAX + i);
        }
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(x->err);
}

static enum sy_code
add_system_rows(struct expander *x)
{
    const struct deny_default *d = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; (d = deny_system_default(i)) != NULL && rc == SY_E_OK; i++) {
        if (!deny_is_left_out(strv_view(x->request->allow_read), "/", d->below)) {
            rc = deny_wants_add(&x->hit.below, d->below, DENY_SYSTEM + i);
        }
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(x->err);
}

/* Takes `path` and what is wanted below (x->hit). */
static enum sy_code
enter(struct expander *x, struct frame *in, const char *name, char *path)
{
    struct frame f = {
        .dir = {.path = path, .fd = -1},
          .is_in_root = in != NULL && in->is_in_root
    };
    enum sy_code rc = SY_E_OK;

    f.is_in_root = f.is_in_root || is_root(x, path);
    if (x->hit.is_home) {
        rc = add_rows(x, x->hit.home);
    }
    if (rc == SY_E_OK && f.is_in_root && x->request->is_for_landlock) {
        rc = drop_deep(x);
    }

    int failed = rc == SY_E_OK && x->hit.below.n > 0
                     ? open_dir(&f, in != NULL ? in->dir.fd : AT_FDCWD, name)
                     : ENOENT;

    if (failed == 0) {
        failed = inspect(&f);
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
    rc = x->depth == DEPTH_MAX ? too_much(x, "levels of directories", DEPTH_MAX)
                               : deny_names_init(&f.names, &x->hit.below);
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
leave(struct expander *x)
{
    struct frame f = x->frames[--x->depth];

    deny_names_fini(&f.names);
    if (x->view.n_dirs == LIMIT_DENY_DIRS ||
        grow(&x->view.dirs, x->view.n_dirs, sizeof(x->view.dirs[0])) != SY_E_OK) {
        deny_dir_fini(&f.dir);
        return x->view.n_dirs == LIMIT_DENY_DIRS ? too_much(x, "directories", LIMIT_DENY_DIRS)
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
look_at(struct expander *x, struct frame *in, const char *name, unsigned char type)
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

    enum sy_code rc = follow(x, path);

    mem_free(path);
    return rc;
}

/* A directory that can't be listed: each name is tried. */
static enum sy_code
try_group(struct expander *x, struct frame *in)
{
    const struct deny_group *g = &in->names.groups[in->next++];
    SY_AUTO(mem_free_charp) char *name = mem_strndup(g->name, g->len);

    return name != NULL ? look_at(x, in, name, DT_UNKNOWN) : sy_err_nomem(x->err);
}

static enum sy_code
step(struct expander *x)
{
    struct frame *f = &x->frames[x->depth - 1];
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
        return too_much(x, "names", LIMIT_DENY_NAMES);
    }
    return look_at(x, f, name, type);
}

static enum sy_code
run_once(struct expander *x)
{
    char *slash = mem_strdup("/");
    enum sy_code rc = slash != NULL ? SY_E_OK : sy_err_nomem(x->err);

    x->has_new_source = false;
    x->n_names = 0;
    x->hit.below.n = 0;
    x->hit.is_home = false;
    for (size_t i = 0; i < x->n_sources && rc == SY_E_OK; i++) {
        const struct source *from = &x->sources[i];

        if (from->text[0] == '\0') {
            rc = add_rows(x, from->rule - DENY_HOME_ITSELF); /* whose home is "/" */
        } else if (deny_wants_add(&x->hit.below, from->text, from->rule) != SY_E_OK) {
            rc = sy_err_nomem(x->err);
        }
    }
    if (rc == SY_E_OK && x->request->denies_system) {
        rc = add_system_rows(x);
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
add_home_sources(struct expander *x)
{
    const struct strv *homes = x->request->homes;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < homes->n && rc == SY_E_OK; i++) {
        if (!path_pattern_is_plain(homes->v[i], strlen(homes->v[i]))) {
            rc = add_source(x, homes->v[i], NULL, DENY_HOME_ITSELF + i);
            continue;
        }
        rc = grow(&x->sources, x->n_sources, sizeof(x->sources[0]));
        if (rc == SY_E_OK) {
            x->sources[x->n_sources++] = (struct source){homes->v[i] + 1, DENY_HOME_ITSELF + i};
        }
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(x->err) : rc;
}

static enum sy_code
run(struct expander *x)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < x->request->patterns->n && rc == SY_E_OK; i++) {
        rc = grow(&x->sources, x->n_sources, sizeof(x->sources[0]));
        if (rc == SY_E_OK) {
            x->sources[x->n_sources++] = (struct source){x->request->patterns->v[i] + 1, i};
        }
    }
    rc = rc == SY_E_OK ? add_home_sources(x) : sy_err_nomem(x->err);
    for (unsigned round = 0; rc == SY_E_OK; round++) {
        if (round == LIMIT_DENY_ROUNDS) {
            return too_much(x, "links one behind the other", LIMIT_DENY_ROUNDS);
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
    if (request->patterns->n == 0 && request->homes->n == 0 && !request->denies_system) {
        *ret = (struct deny_view){0};
        return SY_E_OK;
    }

    struct expander x = {
        .request = request,
        .frames = mem_alloc(DEPTH_MAX * sizeof(struct frame)),
        .behind_links = {.max = LIMIT_DENY_OBJECTS},
        .err = err,
    };
    enum sy_code rc = x.frames != NULL ? run(&x) : sy_err_nomem(err);

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
