#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "guard/guard_internal.h"
#include "guard/journal.h"

#define NS_PER_MS 1000000ULL

static uint32_t
or_default(uint32_t value, uint32_t standard)
{
    return value > 0 && value < standard ? value : standard;
}

static enum sy_code
copy_list(struct strv *to, char *const *from)
{
    to->max = (size_t)LIMIT_ROOTS * 2;
    return from != NULL ? strv_add_all(to, from) : SY_E_OK;
}

static enum sy_code
lift(struct guard *g, char *const *names, struct sy_error *err)
{
    enum sy_code rc = guard_names_check(names, err);

    for (size_t i = 0; rc == SY_E_OK && names != NULL && names[i] != NULL; i++) {
        enum guard_name n = GUARD_NAME_COUNT;

        if (guard_name_parse(&n, names[i])) {
            g->is_lifted[n] = true;
        }
    }
    return rc;
}

/* A root that appears later is looked at with the next refresh. */
static enum sy_code
open_roots(struct guard *g)
{
    for (size_t i = 0; i < g->roots.n; i++) {
        if (g->root_nodes[i] != NULL) {
            continue;
        }
        fd_close(&g->root_fds[i]);
        g->root_fds[i] = open(g->roots.v[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (g->root_fds[i] < 0) {
            continue;
        }
        g->root_nodes[i] = node_new(g, NULL, g->roots.v[i], NODE_DIR);
        if (g->root_nodes[i] == NULL) {
            return SY_E_NOMEM;
        }
        g->root_nodes[i]->entry_ino = i;
        g->has_pending = true;
        node_queue(g, g->root_nodes[i]);
    }
    return SY_E_OK;
}

/* Is the root still the directory of its name? If not, it is begun anew. */
static void
check_roots(struct guard *g)
{
    for (size_t i = 0; i < g->roots.n; i++) {
        struct stat st;
        struct guard_node *n = g->root_nodes[i];

        if (n != NULL && n->ino != 0 &&
            (stat(g->roots.v[i], &st) != 0 || st.st_ino != n->ino || st.st_dev != n->dev)) {
            node_free(g, n);
        }
    }
}

enum sy_code
guard_open_journal(struct guard *g, struct sy_error *err)
{
    if (g->journal != NULL) {
        return SY_E_OK;
    }
    return g->state_dir != NULL ? journal_open(&g->journal, g->state_dir, err)
                                : sy_err_set(err, SY_E_NOTFOUND, "there is no state directory");
}

static enum sy_code
fill(struct guard *g, const struct guard_options *o, struct sy_error *err)
{
    enum sy_code rc = copy_list(&g->roots, o->roots);

    if (rc == SY_E_OK) {
        rc = copy_list(&g->homes, o->homes);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, rc, "more than %u writable roots", LIMIT_ROOTS);
    }
    g->root_nodes = mem_alloc_zero(g->roots.n + 1, sizeof(struct guard_node *));
    g->root_fds = mem_alloc_zero(g->roots.n + 1, sizeof(int));
    for (size_t i = 0; g->root_fds != NULL && i < g->roots.n; i++) {
        g->root_fds[i] = -1; /* first of all: guard_free would close 0 */
    }
    if (g->root_nodes == NULL || g->root_fds == NULL) {
        return sy_err_nomem(err);
    }
    rc = lift(g, o->unprotected, err);
    if (rc != SY_E_OK || o->state_dir == NULL) {
        return rc;
    }
    g->state_dir = mem_strdup(o->state_dir);
    if (g->state_dir == NULL) {
        return sy_err_nomem(err);
    }
    if (journal_exists(g->state_dir)) {
        rc = guard_recover(g->state_dir, NULL, err);
    }
    return rc == SY_E_OK && g->has_mounts ? guard_open_journal(g, err) : rc;
}

static enum sy_code
walk(struct guard *g, struct sy_error *err)
{
    g->walk_end_ns = clock_mono_ns() + (uint64_t)g->walk_ms * NS_PER_MS;

    enum sy_code rc = open_roots(g);

    if (rc == SY_E_OK) {
        rc = scan_queued(g);
    }
    return rc == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

enum sy_code
guard_new(struct guard **ret, const struct guard_options *options, struct sy_error *err)
{
    struct guard *g = mem_alloc_zero(1, sizeof(*g));

    if (g == NULL) {
        return sy_err_nomem(err);
    }
    g->inotify_fd = -1;
    g->last_dirty = &g->first_dirty;
    g->has_mounts = options->has_mounts;
    g->is_short = options->is_short;
    g->dirs_max = or_default(options->dirs_max, LIMIT_GUARD_DIRS);
    g->depth_max = or_default(options->depth_max, LIMIT_GUARD_DEPTH);
    g->walk_ms = or_default(options->walk_ms, LIMIT_GUARD_WALK_MS);

    enum sy_code rc = fill(g, options, err);

    if (rc == SY_E_OK) {
        watch_start(g);
        g->walks = 1;
        g->has_just_walked = true;
        rc = walk(g, err);
    }
    if (rc == SY_E_OK && baseline_take(g) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc != SY_E_OK) {
        guard_free(g);
        return rc;
    }
    *ret = g;
    return SY_E_OK;
}

void
guard_free(struct guard *g)
{
    if (g == NULL) {
        return;
    }
    if (g->journal != NULL) {
        placeholders_remove(g);
    }
    fd_close(&g->inotify_fd); /* all watches at once, not one by one */
    for (size_t i = 0; g->root_nodes != NULL && i < g->roots.n; i++) {
        if (g->root_nodes[i] != NULL) {
            node_free(g, g->root_nodes[i]);
        }
    }
    for (size_t i = 0; g->root_fds != NULL && i < g->roots.n; i++) {
        fd_close(&g->root_fds[i]);
    }
    while (g->n_extras > 0) {
        extra_drop(g, g->extras[0].owner);
    }
    marks_forget(g);
    journal_close(g->journal);
    mem_free(g->state_dir);
    mem_free(g->by_wd);
    mem_free(g->extras);
    mem_free(g->lost);
    mem_free(g->holders);
    mem_free(g->root_nodes);
    mem_free(g->root_fds);
    strv_fini(&g->roots);
    strv_fini(&g->homes);
    mem_free(g);
}

int
guard_fd(const struct guard *g)
{
    return g->is_blind ? -1 : g->inotify_fd;
}

void
guard_status(const struct guard *g, struct guard_status *ret)
{
    *ret = (struct guard_status){
        .is_complete = g->incomplete_in == NULL && g->first_dirty == NULL,
        .incomplete_in = g->incomplete_in,
        .why = g->why,
        .is_watching = !g->is_blind,
        .has_state = g->has_mounts ? g->journal != NULL : g->state_dir != NULL,
        .dirs = g->n_dirs,
        .files = g->n_files,
        .walks = g->walks,
        .active = g->active,
    };
    if (g->incomplete_in == NULL && g->first_dirty != NULL) {
        const struct guard_node *n = g->first_dirty;

        while (n->parent != NULL) {
            n = n->parent;
        }
        ret->incomplete_in = n->name;
        ret->why = "the walk took too long";
    }
}

enum sy_code
guard_look_again(struct guard *g, struct sy_error *err)
{
    if (g->is_blind) {
        g->incomplete_in = NULL;
        g->walks++;
        check_roots(g);
        node_queue_all(g);
    } else {
        watch_read(g);
    }
    return g->first_dirty != NULL || g->is_blind ? walk(g, err) : SY_E_OK;
}

enum sy_code
guard_marks_now(struct guard *g, struct guard_marks *ret)
{
    struct guard_marks changes = {0};
    enum sy_code rc = marks_changes(g, &changes);

    guard_marks_fini(&changes);
    return rc == SY_E_OK ? marks_collect(g, ret) : rc;
}

static enum sy_code
tell(struct guard *g, struct guard_marks *changes, struct sy_error *err)
{
    if (changes == NULL || marks_changes(g, changes) == SY_E_OK) {
        return SY_E_OK;
    }
    return sy_err_nomem(err);
}

enum sy_code
guard_refresh(struct guard *g, struct guard_marks *changes, struct sy_error *err)
{
    if (changes != NULL) {
        *changes = (struct guard_marks){0};
    }

    enum sy_code rc = guard_look_again(g, err);

    g->has_just_walked = false;
    if (rc == SY_E_OK && g->active == 0 && g->has_pending && baseline_take(g) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    return rc == SY_E_OK ? tell(g, changes, err) : rc;
}

enum sy_code
guard_begin(struct guard *g, struct guard_marks *changes, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (changes != NULL) {
        *changes = (struct guard_marks){0};
    }
    if (!g->is_blind && g->active == 0) {
        check_roots(g);
    }
    if (!g->has_just_walked || !g->is_blind) {
        rc = guard_look_again(g, err);
    }
    if (rc == SY_E_OK && !g->has_just_walked && baseline_compare(g) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    g->has_just_walked = false;
    if (rc == SY_E_OK && g->active == 0) {
        rc = open_roots(g) == SY_E_OK ? walk(g, err) : sy_err_nomem(err);
    }
    /* Twice: a directory first, then what belongs into it. */
    for (int i = 0; i < 2 && rc == SY_E_OK && g->needs_places; i++) {
        rc = placeholders_make(g, err);
        if (rc == SY_E_OK && g->first_dirty != NULL) {
            rc = walk(g, err);
        }
    }
    if (rc == SY_E_OK && g->active == 0 && baseline_take(g) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = tell(g, changes, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (g->active++ == 0) {
        g->run_wall_ns = clock_file_ns();
        g->run = clock_mono_ns();
    }
    return SY_E_OK;
}

void
guard_rest(struct guard *g)
{
    if (g->active == 0 && g->journal != NULL) {
        placeholders_remove(g);
    }
}

enum sy_code
guard_state_dir(struct buf *ret, char *const *environ_list)
{
    const char *home = NULL;
    const char *state = NULL;
    struct stat st;

    for (size_t i = 0; environ_list != NULL && environ_list[i] != NULL; i++) {
        if (str_starts(environ_list[i], "HOME=/")) {
            home = environ_list[i] + strlen("HOME=");
        } else if (str_starts(environ_list[i], "XDG_STATE_HOME=/")) {
            state = environ_list[i] + strlen("XDG_STATE_HOME=");
        }
    }
    buf_reset(ret);
    if (state != NULL) {
        return buf_addf(ret, "%s/shellyard", state);
    }
    /* A home that is not there (nobody's, a service's) is not ours to make. */
    return home != NULL && stat(home, &st) == 0 && S_ISDIR(st.st_mode)
               ? buf_addf(ret, "%s/.local/state/shellyard", home)
               : SY_E_NOTFOUND;
}
