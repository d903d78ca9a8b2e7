#include "sandbox/linux/deny_source.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"

enum sy_code
deny_grow(void *array, size_t n, size_t size)
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

enum sy_code
deny_too_much(struct deny_expander *x, const char *what, unsigned most)
{
    return sy_err_set(x->err, SY_E_SANDBOX,
                      "sandbox.deny_read: more than %u %s to look at (the last in '%.80s'): name "
                      "fewer or narrower ones",
                      most, what, x->depth > 0 ? x->frames[x->depth - 1].dir.path : "/");
}

/* One more pattern: what lies where a link leads. */
static enum sy_code
add_source(struct deny_expander *x, const char *real, const char *rest, size_t rule)
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
        return deny_too_much(x, "places behind links", LIMIT_DENY_OBJECTS);
    }
    if (rc == SY_E_OK) {
        rc = deny_grow(&x->sources, x->n_sources, sizeof(x->sources[0]));
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(x->err);
    }
    x->sources[x->n_sources++] =
        (struct deny_source){x->behind_links.v[x->behind_links.n - 1] + 1, rule};
    x->has_new_source = true;
    return SY_E_OK;
}

enum sy_code
deny_follow(struct deny_expander *x, const char *path)
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

enum sy_code
deny_add_rows(struct deny_expander *x, size_t home)
{
    const struct deny_default *d = NULL;
    enum sy_code rc = deny_wants_reserve(&x->hit.below, deny_home_defaults());

    for (size_t i = 0; (d = deny_home_default(i)) != NULL && rc == SY_E_OK; i++) {
        if (!deny_is_left_out(strv_view(x->request->allow_read), x->request->homes->v[home],
                              d->below)) {
            rc = deny_wants_add(&x->hit.below, d->below, DENY_HOME + home * DENY_ROWS_MAX + i);
        }
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(x->err);
}

enum sy_code
deny_add_system_rows(struct deny_expander *x)
{
    const struct deny_default *d = NULL;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; (d = deny_system_default(i)) != NULL && rc == SY_E_OK; i++) {
        bool is_wanted =
            i == DENY_DEVICES_ROW ? x->request->closes_devices : x->request->denies_system;

        if (is_wanted && !deny_is_left_out(strv_view(x->request->allow_read), "/", d->below)) {
            rc = deny_wants_add(&x->hit.below, d->below, DENY_SYSTEM + i);
        }
    }
    return rc == SY_E_OK ? rc : sy_err_nomem(x->err);
}

enum sy_code
deny_add_homes(struct deny_expander *x)
{
    const struct strv *homes = x->request->homes;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < homes->n && rc == SY_E_OK; i++) {
        if (!path_pattern_is_plain(homes->v[i], strlen(homes->v[i]))) {
            rc = add_source(x, homes->v[i], NULL, DENY_HOME_ITSELF + i);
            continue;
        }
        rc = deny_grow(&x->sources, x->n_sources, sizeof(x->sources[0]));
        if (rc == SY_E_OK) {
            x->sources[x->n_sources++] =
                (struct deny_source){homes->v[i] + 1, DENY_HOME_ITSELF + i};
        }
    }
    return rc == SY_E_NOMEM ? sy_err_nomem(x->err) : rc;
}
