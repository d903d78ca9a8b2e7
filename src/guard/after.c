#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/judge.h"
#include "guard/place.h"
#include "guard/quarantine.h"

struct looking {
    struct guard *g;
    struct guard_findings *findings;
    struct buf dir; /* path of the directory that is looked at */
    struct buf why;
    struct buf lies; /* where the last one was moved to */
};

static char *
copy_or_null(const struct buf *b)
{
    return b->len > 0 ? mem_strdup(buf_view(b)) : NULL;
}

/* What was dealt with is told if memory lasts, and counted in any case. */
static void
tell(struct looking *l, enum guard_verdict verdict, enum guard_name name, const char *operation,
     const char *file)
{
    struct guard_findings *all = l->findings;
    struct guard_finding *more =
        all->n < LIMIT_GUARD_FINDINGS ? mem_realloc(all->v, (all->n + 1) * sizeof(*more)) : NULL;
    SY_AUTO(buf_fini) struct buf path = {.max = (size_t)LIMIT_PATH * 2};

    if (more != NULL) {
        all->v = more;
    }
    if (more == NULL ||
        buf_addf(&path, "%s%s%s", buf_view(&l->dir), file[0] != '\0' ? "/" : "", file) != SY_E_OK) {
        all->more++;
        return;
    }

    struct guard_finding f = {
        .verdict = verdict,
        .name = name,
        .operation = operation,
        .path = buf_take(&path),
        .quarantine = copy_or_null(&l->lies),
        .why = copy_or_null(&l->why),
    };

    if (f.path == NULL) {
        mem_free(f.quarantine);
        mem_free(f.why);
        all->more++;
        return;
    }
    all->v[all->n++] = f;
}

static void
say_why(struct looking *l, const char *why)
{
    buf_reset(&l->why);
    if (buf_add_str(&l->why, why) != SY_E_OK) {
        buf_reset(&l->why);
    }
}

/* Away with `name` of the directory l->dir. */
static bool
take_away(struct looking *l, int dir_fd, const char *name, enum guard_name rule,
          const char *operation)
{
    const char *why = NULL;

    if (quarantine_move(l->g, dir_fd, buf_view(&l->dir), name, &l->lies, &why)) {
        return true;
    }
    say_why(l, why);
    buf_reset(&l->lies);
    tell(l, GUARD_LEFT, rule, operation, name);
    return false;
}

static bool
is_removal_harmful(enum guard_name rule)
{
    /* git takes these away by itself (worktree remove, submodule deinit). */
    return rule != GUARD_GIT_FILE && rule != GUARD_GIT_COMMONDIR && rule != GUARD_GIT_WORKTREE &&
           rule != GUARD_GIT_INCLUDE;
}

static void
on_gone(struct looking *l, int dir_fd, const struct guard_file *f)
{
    if (l->g->has_mounts || f->was.ino == 0 || !is_removal_harmful(f->rule) ||
        place_has_time(f->was.mode, f->was.size, f->was.mtime_ns)) {
        return;
    }
    buf_reset(&l->lies);
    say_why(l, "it was removed");
    if (f->has_copy && quarantine_restore(dir_fd, f)) {
        tell(l, GUARD_RESTORED, f->rule, "remove", f->name);
        return;
    }
    say_why(l, f->has_copy ? "something else is there now" : "too large for a copy to be kept");
    tell(l, GUARD_LEFT, f->rule, "remove", f->name);
}

static enum sy_code
on_changed(struct looking *l, const struct guard_node *n, int dir_fd, const struct guard_file *f)
{
    bool is_same = false;
    bool is_harmful = false;
    enum sy_code rc = judge_is_same(f, dir_fd, &is_same);

    if (rc != SY_E_OK || is_same) {
        return rc;
    }
    rc = judge_file(l->g, n, f, dir_fd, &is_harmful, &l->why);
    if (rc != SY_E_OK) {
        return rc;
    }
    buf_reset(&l->lies);
    if (!is_harmful) {
        tell(l, GUARD_HARMLESS, f->rule, "write", f->name);
        return SY_E_OK;
    }
    if (!take_away(l, dir_fd, f->name, f->rule, "write")) {
        return SY_E_OK;
    }
    tell(l, f->has_copy && quarantine_restore(dir_fd, f) ? GUARD_RESTORED : GUARD_QUARANTINED,
         f->rule, "write", f->name);
    return SY_E_OK;
}

/* Of whatever engine. */
static bool
is_placeholder(const struct looking *l, int dir_fd, const char *name, ino_t ino)
{
    return place_looks_like_one(dir_fd, name) ||
           placeholder_is_listed(l->g, buf_view(&l->dir), name, ino);
}

static enum sy_code
on_new(struct looking *l, const struct guard_node *n, int dir_fd, const struct guard_file *f)
{
    bool is_harmful = false;

    if (guard_was_lost(l->g, f) ||
        (f->id.size == 0 && is_placeholder(l, dir_fd, f->name, f->id.ino))) {
        return SY_E_OK;
    }

    enum sy_code rc = judge_file(l->g, n, f, dir_fd, &is_harmful, &l->why);

    if (rc != SY_E_OK || !is_harmful) {
        return rc;
    }
    buf_reset(&l->lies);

    /* A directory that became a repository around a file that was there: what made it one goes. */
    const char *name = n->became_git && f->id.ctime_ns < l->g->run_wall_ns ? "HEAD" : f->name;

    if (take_away(l, dir_fd, name, f->rule, "create")) {
        tell(l, GUARD_QUARANTINED, f->rule, "create", name);
    }
    return SY_E_OK;
}

static enum sy_code
look_at_files(struct looking *l, const struct guard_node *n)
{
    enum sy_code rc = SY_E_OK;
    SY_FD fd = -1;

    for (uint32_t i = 0; i < n->n_files && rc == SY_E_OK; i++) {
        const struct guard_file *f = &n->files[i];

        if (!f->is_pending) {
            continue;
        }
        if (fd < 0) {
            fd = node_open(l->g, n, O_RDONLY | O_DIRECTORY);
        }
        if (fd < 0) {
            return fd == -ENOMEM ? SY_E_NOMEM : SY_E_OK;
        }
        if (f->is_gone) {
            on_gone(l, fd, f);
        } else if (f->was.ino == 0) {
            rc = on_new(l, n, fd, f);
        } else if (!l->g->has_mounts) {
            rc = on_changed(l, n, fd, f);
        }
    }
    return rc;
}

/* Made during the run, not moved here from where it was known. */
static bool
is_made_now(const struct guard *g, const struct guard_node *n)
{
    return n->btime_ns == 0 || n->btime_ns >= g->run_wall_ns;
}

/* Is the whole directory something that may not be made? */
static bool
is_whole_refused(const struct guard *g, const struct guard_node *n)
{
    if (!n->is_new || n->parent == NULL || !is_made_now(g, n)) {
        return false;
    }
    if (n->is_top && n->kind == NODE_OWN) {
        return true;
    }
    return n->kind == NODE_GIT && n->origin == NODE_GIT && n->parent->parent == NULL &&
           !g->is_lifted[GUARD_GIT] && str_eq(n->name, ".git");
}

/* True: dealt with as a whole, what it holds is not looked at. */
static bool
look_at_whole(struct looking *l, const struct guard_node *n)
{
    if (!is_whole_refused(l->g, n)) {
        return false;
    }

    SY_FD fd = node_open(l->g, n->parent, O_RDONLY | O_DIRECTORY);

    buf_reset(&l->dir);
    if (fd < 0 || node_path(&l->dir, n->parent) != SY_E_OK ||
        is_placeholder(l, fd, n->name, n->ino)) {
        return false;
    }
    buf_reset(&l->lies);
    say_why(l, guard_name_what(n->rule));
    if (take_away(l, fd, n->name, n->rule, "create")) {
        tell(l, GUARD_QUARANTINED, n->rule, "create", n->name);
    }
    return true;
}

/* A protected directory that was removed is made again, for the files in it. */
static void
make_gone(const struct guard *g, const struct guard_node *n)
{
    SY_FD fd = n->is_gone && !n->is_held ? node_open(g, n->parent, O_RDONLY | O_DIRECTORY) : -1;

    if (fd >= 0 && mkdirat(fd, n->name, 0755) != 0) {
        return; /* something is there: its files say what becomes of it */
    }
}

static enum sy_code
look_at_all(struct looking *l)
{
    struct guard *g = l->g;
    enum sy_code rc = SY_E_OK;

    for (struct guard_node *n = node_walk(g, NULL); n != NULL && rc == SY_E_OK;) {
        if (look_at_whole(l, n)) {
            n = node_beside(g, n);
            continue;
        }
        make_gone(g, n);
        if (n->n_files > 0) {
            buf_reset(&l->dir);
            rc = node_path(&l->dir, n);
            rc = rc == SY_E_OK ? look_at_files(l, n) : rc == SY_E_NOMEM ? rc : SY_E_OK;
        }
        n = node_walk(g, n);
    }
    return rc;
}

enum sy_code
guard_after(struct guard *g, struct guard_findings *findings, struct sy_error *err)
{
    struct looking l = {
        .g = g,
        .findings = findings,
        .dir = {.max = LIMIT_PATH},
        .why = {.max = LIMIT_PATH},
        .lies = {.max = (size_t)LIMIT_PATH * 2},
    };
    enum sy_code rc = guard_look_again(g, err);

    *findings = (struct guard_findings){0};
    SY_ASSERT(g->active > 0);
    if (rc == SY_E_OK && !g->has_mounts) {
        rc = baseline_compare(g);
    }
    if (rc == SY_E_OK && g->has_pending) {
        rc = look_at_all(&l);
        /* What was moved and put back becomes what is known. */
        if (rc == SY_E_OK && (findings->n > 0 || findings->more > 0)) {
            rc = guard_look_again(g, err);
        }
        if (rc == SY_E_OK) {
            rc = baseline_take(g);
        }
    }
    g->active--;
    buf_fini(&l.dir);
    buf_fini(&l.why);
    buf_fini(&l.lies);
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
}
