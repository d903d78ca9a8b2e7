/*
 * What a sandbox with mounts holds below its writable roots beside protected names (protect.c):
 * directories of Shellyard's own are there and read-only, and whatever is above them, or above
 * something hidden, can't be renamed. A command could else move ~/.config away and make another.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "orchestrator/orchestrator_internal.h"
#include "process/launch_wire.h"
#include "process/launcher.h"
#include "sandbox/linux/own.h"
#include "sandbox/linux/walk.h"

#define OWN_MODE 0700

struct held {
    struct strv roots; /* without links */
    struct strv own;
    struct strv pinned;
    struct buf marks;
};

static void
held_fini(struct held *h)
{
    strv_fini(&h->roots);
    strv_fini(&h->own);
    strv_fini(&h->pinned);
    buf_fini(&h->marks);
}

static enum sy_code
held_init(struct held *h, const struct sandbox_policy *p, struct sy_error *err)
{
    *h = (struct held){
        .roots = {.max = LIMIT_ROOTS + 1},
        .pinned = {.max = LIMIT_MARKS},
        .marks = {.max = LIMIT_MARKS},
    };

    enum sy_code rc =
        p->mode == SANDBOX_WORKSPACE_WRITE ? walk_add_roots(&h->roots, p, err) : SY_E_OK;

    return rc == SY_E_OK ? own_find(&h->own, &p->own_dirs, &h->roots, err) : rc;
}

/* One directory, of whoever has the one that it is in. */
static int
make_dir(const char *path, const char *above)
{
    struct stat st;

    if (mkdir(path, OWN_MODE) != 0) {
        return errno == EEXIST ? 0 : errno;
    }
    if (geteuid() == 0 && stat(above, &st) == 0 && st.st_uid != 0) {
        return lchown(path, st.st_uid, st.st_gid) == 0 ? 0 : errno;
    }
    return 0;
}

static enum sy_code
make_path(const char *own, struct sy_error *err)
{
    char path[LIMIT_PATH];
    char above[LIMIT_PATH];
    size_t n = strlen(own);
    int failed = n < sizeof(path) ? 0 : ENAMETOOLONG;

    for (size_t i = 1; failed == 0 && i <= n; i++) {
        if (own[i] != '/' && own[i] != '\0') {
            continue;
        }
        memcpy(above, own, i);
        above[i] = '\0';
        *strrchr(above, '/') = '\0';
        memcpy(path, own, i);
        path[i] = '\0';
        failed = make_dir(path, above[0] != '\0' ? above : "/");
    }
    /* Where we can't, commands can't either. */
    if (failed == 0 || failed == EROFS) {
        return SY_E_OK;
    }
    return sy_err_set(err, SY_E_SANDBOX,
                      "'%.90s', which commands must not make, can't be made: %s; work in another "
                      "directory",
                      own, sy_errno_text(failed));
}

enum sy_code
held_make(const struct sandbox_policy *policy, struct sy_error *err)
{
    SY_AUTO(held_fini) struct held h;
    enum sy_code rc = held_init(&h, policy, err);

    for (size_t i = 0; i < h.own.n && rc == SY_E_OK; i++) {
        rc = make_path(h.own.v[i], err);
    }
    return rc;
}

/* What is above comes first, as it does in the tree. */
static enum sy_code
add_marks(struct held *h)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < h->pinned.n && rc == SY_E_OK; i++) {
        rc = launcher_mark_add(&h->marks, LAUNCH_MARK_PIN, h->pinned.v[i]);
    }
    for (size_t i = 0; i < h->own.n && rc == SY_E_OK; i++) {
        rc = launcher_mark_add(&h->marks, LAUNCH_MARK_READ_ONLY, h->own.v[i]);
    }
    return rc;
}

enum sy_code
held_put_over(const struct sandbox_entry *e, struct sy_error *err)
{
    SY_AUTO(held_fini) struct held h;
    enum sy_code rc = held_init(&h, &e->policy, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    for (size_t i = 0; i < h.own.n && rc == SY_E_OK; i++) {
        rc = own_add_above(&h.pinned, &h.roots, h.own.v[i]);
    }
    for (size_t i = 0; rc == SY_E_OK && sandbox_ready_hidden(e->ready, i) != NULL; i++) {
        if (sandbox_ready_hidden_is_in_root(e->ready, i)) {
            rc = own_add_above(&h.pinned, &h.roots, sandbox_ready_hidden(e->ready, i));
        }
    }
    if (rc == SY_E_OK) {
        rc = add_marks(&h);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM
                   ? sy_err_nomem(err)
                   : sy_err_set(err, SY_E_SANDBOX, "too much is hidden below writable roots");
    }
    return h.marks.len > 0 ? launcher_add_marks(e->template, h.marks.data, h.marks.len, err)
                           : SY_E_OK;
}
