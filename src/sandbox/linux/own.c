#include "sandbox/linux/own.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "sandbox/linux/walk.h"

/* The root that a path is in; NULL: none. */
static const char *
root_of(const struct strv *roots, const char *path)
{
    for (size_t i = 0; i < roots->n; i++) {
        if (path_is_below(path, roots->v[i])) {
            return roots->v[i];
        }
    }
    return NULL;
}

static enum sy_code
check_links(const struct walk *w, const struct strv *roots, const char *own, struct sy_error *err)
{
    for (size_t i = 0; i < w->links.n; i++) {
        const char *root = root_of(roots, w->links.v[i]);

        if (root != NULL) {
            return sy_err_set(err, SY_E_SANDBOX,
                              "'%.70s', where Shellyard keeps what it believes, is reached through "
                              "'%.60s', a symbolic link that commands could change: work in "
                              "another directory than '%.50s'",
                              own, w->links.v[i], root);
        }
    }
    return SY_E_OK;
}

static enum sy_code
look_at(struct strv *ret, const char *own, const struct strv *roots, struct sy_error *err)
{
    SY_AUTO(walk_fini) struct walk w = {0};
    enum sy_code rc = walk_run(&w, own, err);

    if (rc == SY_E_OK) {
        rc = check_links(&w, roots, own, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const char *path = buf_view(&w.path);

    for (size_t i = 0; i < roots->n; i++) {
        if (path_is_below(roots->v[i], path)) {
            return sy_err_set(err, SY_E_SANDBOX,
                              "writable root '%.80s' lies in '%.80s', where Shellyard keeps what "
                              "it believes: work in another directory",
                              roots->v[i], path);
        }
    }
    if (root_of(roots, path) == NULL || strv_has(ret, path)) {
        return SY_E_OK;
    }
    return strv_add(ret, path) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

enum sy_code
own_find(struct strv *ret, const struct strv *own_dirs, const struct strv *roots,
         struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    ret->max = own_dirs->n;
    for (size_t i = 0; i < own_dirs->n && rc == SY_E_OK; i++) {
        rc = look_at(ret, own_dirs->v[i], roots, err);
    }
    return rc;
}

enum sy_code
own_add_above(struct strv *ret, const struct strv *roots, const char *path)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < roots->n; i++) {
        const char *at = path + strlen(roots->v[i]);

        if (!path_is_below(path, roots->v[i]) || *at == '\0') {
            continue;
        }
        for (at = strchr(at + 1, '/'); at != NULL && rc == SY_E_OK; at = strchr(at + 1, '/')) {
            SY_AUTO(buf_fini) struct buf above = {.max = LIMIT_PATH};

            rc = buf_add(&above, path, (size_t)(at - path));
            if (rc == SY_E_OK) {
                rc = strv_add_once(ret, buf_view(&above));
            }
        }
    }
    return rc;
}
