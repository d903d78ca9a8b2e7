#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
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
