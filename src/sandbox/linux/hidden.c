/* Which paths are worth a question about reading. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/explain_internal.h"
#include "sandbox/linux/deny_expand.h"
#include "sandbox/linux/landlock.h"

struct sandbox_hidden {
    struct deny_view view;
};

enum sy_code
sandbox_hidden_new(struct sandbox_hidden **ret, const struct sandbox_plan *plan,
                   struct sy_error *err)
{
    *ret = NULL;
    if (!plan->is_enforced || plan->denies_by_mount) {
        return SY_E_OK;
    }

    struct sandbox_hidden *h = mem_alloc_zero(1, sizeof(*h));

    if (h == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = explain_find_denied(&h->view, plan, err);

    if (rc != SY_E_OK || h->view.n_objects == 0) {
        sandbox_hidden_free(h);
        return rc;
    }
    *ret = h;
    return SY_E_OK;
}

void
sandbox_hidden_free(struct sandbox_hidden *h)
{
    if (h != NULL) {
        deny_view_fini(&h->view);
        mem_free(h);
    }
}

bool
sandbox_hidden_may_hold(const struct sandbox_hidden *h, const struct sandbox_plan *plan,
                        const char *path)
{
    SY_FD fd = h != NULL ? open(path, O_PATH | O_CLOEXEC) : -1;
    char real[LIMIT_PATH];
    char link[64];
    struct stat st;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);

    ssize_t n = fd >= 0 ? readlink(link, real, sizeof(real) - 1) : -1;

    /* A directory can be listed, whatever is in it. */
    if (n <= 0 || fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
        return false;
    }
    real[n] = '\0';
    if (explain_rule_of(plan, real, LL_FS_READ_FILE) != NULL) {
        return false;
    }
    for (size_t i = 0; i < h->view.n_objects; i++) {
        const struct deny_object *o = &h->view.objects[i];

        if (path_is_below(real, o->path) || (o->id.dev == st.st_dev && o->id.ino == st.st_ino)) {
            return true;
        }
    }
    return false;
}
