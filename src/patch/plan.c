/* What a patch will do to the files that are there. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "patch/patch_internal.h"

struct planning {
    struct patch_plan *plan;
    struct sites sites;
    struct sy_error *err;
};

static const char *
verb_of(enum patch_kind kind)
{
    switch (kind) {
    case PATCH_ADD:
        return "Failed to write file";
    case PATCH_DELETE:
        return "Failed to delete file";
    case PATCH_UPDATE:
        return "Failed to read file to update";
    }
    return "Failed to read file";
}

static enum sy_code
failed(const struct planning *p, int errnum, const char *what, const char *path)
{
    struct place_shown_path shown;

    return sy_err_sys(p->err, errnum, "%s %s", what, place_visible_path(&shown, path));
}

/* A file is meant once, by whatever names; and none is to be a directory of another. */
static enum sy_code
add_path(struct planning *p, const char *path)
{
    struct strv *paths = &p->plan->paths;
    struct place_shown_path shown;

    for (size_t i = 0; i < paths->n; i++) {
        if (str_eq(paths->v[i], path)) {
            return sy_err_set(p->err, SY_E_ARG,
                              "two sections of the patch are about the file '%s': put all of its "
                              "changes into one",
                              place_visible_path(&shown, path));
        }
        if (path_is_below(paths->v[i], path) || path_is_below(path, paths->v[i])) {
            return sy_err_set(p->err, SY_E_ARG,
                              "'%s' is a file in one section of the patch and a directory in "
                              "another",
                              place_visible_path(&shown, path));
        }
    }
    return strv_add(paths, path) == SY_E_OK ? SY_E_OK : sy_err_nomem(p->err);
}

/* With the rights that count for this thread (faccessat(3) of older libraries asks for others). */
static bool
may_write(int dir_fd, const char *name, int *ret_errno)
{
    long rc = syscall(SYS_faccessat2, dir_fd, name, W_OK,
                      AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);

    if (rc == 0 || errno == ENOSYS || errno == EPERM) {
        return true; /* where it can't be asked, the attempt will tell */
    }
    *ret_errno = errno;
    return false;
}

/* Where it is, if that is below a root. */
static enum sy_code
place(struct planning *p, struct site *site, const char *path, enum patch_kind kind,
      const char *what)
{
    const struct patch_world *w = p->plan->world;
    bool goes = kind == PATCH_DELETE;
    enum sy_code rc = site_find(site, &p->sites, path, !goes, what, p->err);

    if (rc == SY_E_DENIED && site->is_outside && w->refused != NULL) {
        struct sy_error own = {0};
        enum sy_code told =
            w->refused(w->arg, goes ? OPERATION_DELETE : OPERATION_WRITE, site->path, &own);

        if (told != SY_E_OK) {
            *p->err = own;
            return told;
        }
    }
    return rc;
}

static enum sy_code
find_site(struct planning *p, struct site *site, const char *path, enum patch_kind kind,
          const char *what)
{
    bool follows = kind != PATCH_DELETE;
    enum sy_code rc = place(p, site, path, kind, what);
    int errnum = 0;

    if (rc == SY_E_OK && kind != PATCH_ADD && !site->exists) {
        return failed(p, ENOENT, what, path);
    }
    if (rc == SY_E_OK &&
        (!may_write(site->dir_fd, "", &errnum) ||
         (site->exists && follows && !may_write(site->dir_fd, site->rest, &errnum)))) {
        return failed(p, errnum, what, path);
    }
    return rc == SY_E_OK ? add_path(p, site->path) : rc;
}

static enum sy_code
find_sites(struct planning *p, struct planned *v)
{
    const struct patch_section *s = v->section;
    enum sy_code rc = find_site(p, &v->source, s->path, s->kind, verb_of(s->kind));

    if (rc != SY_E_OK || s->move_to == NULL) {
        return rc;
    }
    rc = place(p, &v->target, s->move_to, PATCH_ADD, verb_of(PATCH_ADD));
    if (rc != SY_E_OK) {
        return rc;
    }

    bool moves = !str_eq(v->target.path, v->source.path); /* or to where it is */

    site_fini(&v->target);
    return moves ? find_site(p, &v->target, s->move_to, PATCH_ADD, verb_of(PATCH_ADD)) : SY_E_OK;
}

static enum sy_code
ask(struct planning *p, enum sandbox_operation op, const struct site *site)
{
    const struct patch_world *w = p->plan->world;

    return w->judge != NULL ? w->judge(w->arg, op, site->path, strv_view(&p->plan->paths), p->err)
                            : SY_E_OK;
}

/* Content counts as read wherever it is shown or used. */
static enum sy_code
judge(struct planning *p, struct planned *v)
{
    enum patch_kind kind = v->section->kind;
    enum sy_code rc = SY_E_OK;

    if (v->source.dir_fd < 0 || v->target.is_outside) {
        return SY_E_OK; /* refused already */
    }

    if (v->source.exists) {
        rc = ask(p, OPERATION_READ, &v->source);
    }
    if (rc == SY_E_OK) {
        bool goes = kind == PATCH_DELETE || planned_moves(v);

        rc = ask(p, goes ? OPERATION_DELETE : OPERATION_WRITE, &v->source);
    }
    if (rc == SY_E_OK && planned_moves(v)) {
        rc = ask(p, OPERATION_WRITE, &v->target);
    }
    return rc;
}

static enum sy_code
open_file(const struct planning *p, const struct planned *v, const char *what, int *ret)
{
    const struct site *site = &v->source;
    struct stat st;
    SY_FD fd =
        openat(site->dir_fd, site->rest, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) != 0) {
        return failed(p, errno, what, v->section->path);
    }
    if (!site_is_same(&st, &site->st)) {
        struct place_shown_path shown;

        return sy_err_set(p->err, SY_E_DENIED, "%s %s: somebody else is changing it", what,
                          place_visible_path(&shown, v->section->path));
    }
    *ret = fd_take(&fd);
    return SY_E_OK;
}

static enum sy_code
load(struct planning *p, struct planned *v)
{
    const char *what = verb_of(v->section->kind);
    size_t left = LIMIT_PATCH_TOTAL - p->plan->total;
    SY_FD fd = -1;
    enum sy_code rc = open_file(p, v, what, &fd);
    struct place_shown_path shown;

    if (rc != SY_E_OK) {
        return rc;
    }
    v->old.max = left < LIMIT_PATCH_FILE ? left : LIMIT_PATCH_FILE;
    rc = fd_read_all(fd, &v->old, p->err);
    if (rc == SY_E_OK) {
        p->plan->total += v->old.len;
        rc = text_split(&v->text, buf_view(&v->old), v->old.len);
        if (rc == SY_E_NOMEM) {
            return sy_err_nomem(p->err);
        }
    }
    if (rc == SY_E_LIMIT) {
        return sy_err_set(
            p->err, rc,
            "%s %s: it is too large: a patch changes files of at most %u bytes and %u "
            "lines, %u bytes together",
            what, place_visible_path(&shown, v->section->path), LIMIT_PATCH_FILE,
            LIMIT_PATCH_FILE_LINES, LIMIT_PATCH_TOTAL);
    }
    if (rc != SY_E_OK) {
        sy_err_wrap(p->err, "%s %s", what, place_visible_path(&shown, v->section->path));
    }
    return rc;
}

static enum sy_code
write_content(struct planning *p, struct planned *v)
{
    static const struct text nothing = {.bytes = ""};
    size_t left = LIMIT_PATCH_TOTAL - p->plan->total;
    bool is_new = v->section->kind == PATCH_ADD;
    struct place_shown_path shown;

    enum sy_code rc = SY_E_OK;

    v->content.max = left < LIMIT_PATCH_FILE ? left : LIMIT_PATCH_FILE;
    if (is_new) {
        struct change all = {.first = v->section->first, .n = v->section->n};
        const struct fit f = {.v = &all, .n = 1, .is_whole = true};

        rc = fit_write(&v->content, &f, &nothing, p->plan->patch);
    } else {
        rc = fit_write(&v->content, &v->fit, &v->text, p->plan->patch);
    }
    p->plan->total += v->content.len;
    if (rc == SY_E_LIMIT) {
        return sy_err_set(p->err, rc,
                          "%s becomes too large: a patch makes files of at most %u bytes, %u "
                          "together",
                          place_visible_path(&shown, v->section->path), LIMIT_PATCH_FILE,
                          LIMIT_PATCH_TOTAL);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(p->err);
}

static enum sy_code
note_what_goes(struct planning *p, const struct planned *v)
{
    const struct site *at = planned_site(v);
    const char *path = planned_moves(v) ? v->section->move_to : v->section->path;
    enum sy_code rc = SY_E_OK;

    if (at->exists && (v->section->kind == PATCH_ADD || planned_moves(v))) {
        rc = notes_add(&p->plan->report.notes, "%s was there and is overwritten", path);
    }
    if (rc == SY_E_OK && at->exists && v->section->kind != PATCH_DELETE && at->st.st_nlink > 1) {
        rc = notes_add(&p->plan->report.notes,
                       "%s has other names (hard links), under which the old content stays", path);
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(p->err);
}

static enum sy_code
prepare(struct planning *p, struct planned *v)
{
    const struct patch_section *s = v->section;
    bool shows = p->plan->world->wants_diff && v->source.exists && S_ISREG(v->source.st.st_mode);
    enum sy_code rc = SY_E_OK;

    if (s->kind == PATCH_UPDATE || shows) {
        rc = load(p, v);
    }
    if (rc == SY_E_OK && s->kind == PATCH_UPDATE) {
        rc = fit_update(&v->fit, &v->text, p->plan->patch, s, &p->plan->report, p->err);
    } else if (rc == SY_E_OK && fit_whole(&v->fit, &v->text, s) != SY_E_OK) {
        rc = sy_err_nomem(p->err);
    }
    if (rc == SY_E_OK && s->kind != PATCH_DELETE) {
        rc = write_content(p, v);
    }
    if (rc == SY_E_OK) {
        rc = note_what_goes(p, v);
    }
    if (!p->plan->world->wants_diff) {
        fit_fini(&v->fit);
        text_fini(&v->text);
        buf_fini(&v->old);
    }
    return rc;
}

/*
 * Takes a step with each section. A refusal stops none of the others, so that one answer tells
 * of all; `rc` is what came before, and the first error stays the one that is told.
 */
typedef enum sy_code step_fn(struct planning *p, struct planned *v);

static enum sy_code
each(struct planning *p, enum sy_code rc, step_fn *step)
{
    struct sy_error *err = p->err;
    struct sy_error later = {0};
    enum sy_code last = SY_E_OK;

    if (rc != SY_E_OK && rc != SY_E_DENIED) {
        return rc;
    }
    for (size_t i = 0; i < p->plan->n && (last == SY_E_OK || last == SY_E_DENIED); i++) {
        p->err = rc == SY_E_OK ? err : &later;
        last = step(p, &p->plan->v[i]);
        rc = rc == SY_E_OK ? last : rc;
    }
    p->err = err;
    return rc;
}

static enum sy_code
make(struct planning *p)
{
    struct patch_plan *plan = p->plan;
    enum sy_code rc = sites_open(&p->sites, plan->world, p->err);

    if (rc == SY_E_OK) {
        rc = each(p, rc, find_sites);
        rc = each(p, rc, judge);
    }
    for (size_t i = 0; i < plan->n && rc == SY_E_OK; i++) {
        rc = prepare(p, &plan->v[i]);
    }
    sites_close(&p->sites);
    return rc;
}

static struct patch_plan *
plan_alloc(const struct patch *p, const struct patch_world *world)
{
    struct patch_plan *plan = mem_alloc_zero(1, sizeof(*plan));

    if (plan == NULL) {
        return NULL;
    }
    plan->patch = p;
    plan->world = world;
    plan->paths.max = 2 * (size_t)LIMIT_PATCH_FILES;
    plan->v = mem_alloc_zero(p->n_sections, sizeof(*plan->v));
    if (plan->v == NULL) {
        mem_free(plan);
        return NULL;
    }
    plan->n = p->n_sections;
    for (size_t i = 0; i < plan->n; i++) {
        plan->v[i].section = &p->sections[i];
        plan->v[i].source = SITE_NONE;
        plan->v[i].target = SITE_NONE;
    }
    return plan;
}

enum sy_code
patch_plan_new(struct patch_plan **ret, const struct patch *p, const struct patch_world *world,
               struct buf *fault, struct sy_error *err)
{
    struct sy_error own = {0};
    struct identity was;
    struct planning g = {.err = err != NULL ? err : &own};
    enum sy_code rc = SY_E_OK;

    g.plan = plan_alloc(p, world);
    if (g.plan == NULL) {
        return sy_err_nomem(err);
    }
    g.plan->report.fault = fault;
    rc = identity_enter(&was, world, g.err);
    if (rc == SY_E_OK) {
        rc = make(&g);
        identity_leave(&was);
    }
    if (rc != SY_E_OK) {
        if (fault->len == 0 && buf_add_str(fault, g.err->msg) == SY_E_NOMEM) {
            rc = sy_err_nomem(g.err);
        }
        patch_plan_free(g.plan);
        return rc;
    }
    g.plan->report.fault = NULL; /* the caller's */
    *ret = g.plan;
    return SY_E_OK;
}

void
patch_plan_free(struct patch_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->n; i++) {
        struct planned *v = &plan->v[i];

        site_fini(&v->source);
        site_fini(&v->target);
        fit_fini(&v->fit);
        text_fini(&v->text);
        buf_fini(&v->old);
        buf_fini(&v->content);
    }
    strv_fini(&plan->paths);
    strv_fini(&plan->report.notes.list);
    mem_free(plan->v);
    mem_free(plan);
}
