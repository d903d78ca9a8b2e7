/*
 * Reading by Landlock: what is not granted is hidden, so all the rest is granted,
 * name by name. It runs each time that a sandbox is made, hence as few calls as
 * will do: three a name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/linux/deny_expand.h"
#include "sandbox/linux/deny_names.h"
#include "sandbox/linux/grant_stock.h"
#include "sandbox/linux/landlock.h"
#include "sandbox/linux/raw_syscall.h"

/*
 * Descriptors to be closed, many by one call. Those that follow each other are
 * closed as a range: while all of it is ours, nobody else has one between.
 */
struct batch {
    int fds[48]; /* with more, the table of descriptors would have to grow */
    size_t n;
};

static void
close_batch(struct batch *b)
{
    for (size_t i = 0; i < b->n;) {
        size_t end = i + 1;

        while (end < b->n && b->fds[end] == b->fds[end - 1] + 1) {
            end++;
        }
        if (end == i + 1 || sy_raw3(SYS_close_range, b->fds[i], b->fds[end - 1], 0) != 0) {
            for (size_t k = i; k < end; k++) {
                fd_close(&b->fds[k]);
            }
        }
        i = end;
    }
    b->n = 0;
}

static void
close_later(struct batch *b, int fd)
{
    if (b->n == sizeof(b->fds) / sizeof(b->fds[0])) {
        close_batch(b);
    }
    b->fds[b->n++] = fd;
}

/* A grant in the making. */
struct granting {
    const struct deny_view *v;
    int ruleset_fd;
    struct grant_stock *keep; /* NULL: nothing is kept */
    struct batch later;
};

/* A second name, beside it, of a file that is to hide. */
static bool
is_hidden(const struct deny_view *v, int fd)
{
    struct file_id id;
    bool is_dir = false;

    if (!v->has_more_names) {
        return false;
    }
    if (file_id_of_fd(&id, fd, &is_dir) != 0) {
        return true;
    }
    for (size_t i = 0; i < v->n_objects; i++) {
        const struct deny_object *o = &v->objects[i];

        if (o->has_more_names && o->id.dev == id.dev && o->id.ino == id.ino) {
            return true;
        }
    }
    return false;
}

static enum sy_code
grant_name(struct granting *g, const struct deny_dir *d, const char *name)
{
    long fd = sy_raw4(SYS_openat, d->fd, sy_raw_ptr(name), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0) {
        /* Gone since, or shut to us: not granted. */
        return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? SY_E_SYS : SY_E_OK;
    }

    long added = is_hidden(g->v, (int)fd)
                     ? -EBADFD
                     : landlock_allow_beneath(g->ruleset_fd, (int)fd, LL_FS_READS);

    if (added < 0 || g->keep == NULL || !grant_stock_take(g->keep, (int)fd, LL_FS_READS)) {
        close_later(&g->later, (int)fd);
    }
    /* EBADFD: a file of the kernel's own, which Landlock does not judge. */
    return added < 0 && added != -EBADFD ? SY_E_SYS : SY_E_OK;
}

static enum sy_code
grant_dir(struct granting *g, const struct deny_dir *d, struct sy_error *err)
{
    const char *name = NULL;
    unsigned char type = DT_UNKNOWN;
    size_t at = 0;

    while (deny_name_next(&d->names, &at, &name, &type)) {
        /* A link grants nothing: where it leads is judged. */
        if (type == DENY_KEPT_BACK || type == DT_LNK) {
            continue;
        }
        if (grant_name(g, d, name) != SY_E_OK) {
            return sy_err_set(err, SY_E_SANDBOX,
                              "Landlock rules for reading what is in '%.120s' can't be made: out "
                              "of descriptors or memory",
                              d->path);
        }
    }
    return SY_E_OK;
}

enum sy_code
deny_view_grant(const struct deny_view *v, int ruleset_fd, struct grant_stock *keep,
                struct sy_error *err)
{
    struct granting g = {.v = v, .ruleset_fd = ruleset_fd, .keep = keep};
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < v->n_dirs && rc == SY_E_OK; i++) {
        if (v->dirs[i].is_split && v->dirs[i].fd >= 0) {
            rc = grant_dir(&g, &v->dirs[i], err);
        }
    }
    close_batch(&g.later);
    return rc;
}
