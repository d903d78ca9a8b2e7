#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/linux/deny_expand.h"

void
deny_dir_fini(struct deny_dir *d)
{
    mem_free(d->path);
    buf_fini(&d->names);
    fd_close(&d->fd);
}

void
deny_view_fini(struct deny_view *v)
{
    for (size_t i = 0; i < v->n_objects; i++) {
        mem_free(v->objects[i].path);
    }
    for (size_t i = 0; i < v->n_dirs; i++) {
        deny_dir_fini(&v->dirs[i]);
    }
    mem_free(v->objects);
    mem_free(v->dirs);
    strv_fini(&v->unsearched);
    *v = (struct deny_view){0};
}

bool
deny_view_is_fresh(const struct deny_view *v)
{
    for (size_t i = 0; i < v->n_dirs; i++) {
        const struct deny_dir *d = &v->dirs[i];
        struct statx st;

        if (!d->is_settled || statx(AT_FDCWD, d->path, AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW,
                                    STATX_INO | STATX_MNT_ID | STATX_CTIME, &st) != 0) {
            return false;
        }

        struct file_id now = file_id_of_statx(&st);

        if (now.dev != d->id.dev || now.ino != d->id.ino || now.mount != d->id.mount ||
            st.stx_ctime.tv_sec != d->changed_s || st.stx_ctime.tv_nsec != d->changed_ns) {
            return false;
        }
    }
    return true;
}

static bool
is_same_file(const struct file_id *a, const struct file_id *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->mount == b->mount;
}

/* What was mounted over a file goes with that name of it: who makes another name and removes that
 * one changes the file's ctime. A directory has one name, and takes along what lies over it. */
static bool
is_same_object(const struct deny_object *a, const struct deny_object *b)
{
    return a->born_ns != BORN_UNTOLD && a->born_ns == b->born_ns && is_same_file(&a->id, &b->id) &&
           a->rule == b->rule && a->is_dir == b->is_dir && a->is_link == b->is_link &&
           a->is_in_root == b->is_in_root && a->has_more_names == b->has_more_names &&
           (a->is_dir || (a->changed_ns != 0 && a->changed_ns == b->changed_ns)) &&
           str_eq(a->path, b->path);
}

/* Whoever renames a directory takes away what is hidden in it: those are held where they are. */
static bool
is_above_any(const struct deny_view *v, const struct deny_dir *d)
{
    for (size_t i = 0; i < v->n_objects; i++) {
        if (path_is_below(v->objects[i].path, d->path)) {
            return true;
        }
    }
    return false;
}

bool
deny_view_is_same(const struct deny_view *then, const struct deny_view *now)
{
    size_t k = 0;

    if (then->n_objects != now->n_objects || !strv_eq(&then->unsearched, &now->unsearched)) {
        return false;
    }
    for (size_t i = 0; i < now->n_objects; i++) {
        if (!is_same_object(&then->objects[i], &now->objects[i])) {
            return false;
        }
    }
    /* Others may have come and gone: nothing was in them, and nothing is. */
    for (size_t i = 0; i < then->n_dirs; i++) {
        const struct deny_dir *d = &then->dirs[i];

        if (!is_above_any(then, d)) {
            continue;
        }
        /* Both in the order of the same walk. */
        while (k < now->n_dirs && !str_eq(now->dirs[k].path, d->path)) {
            k++;
        }
        if (k == now->n_dirs || d->born_ns == BORN_UNTOLD || d->born_ns != now->dirs[k].born_ns ||
            !is_same_file(&d->id, &now->dirs[k].id)) {
            return false;
        }
    }
    return true;
}
