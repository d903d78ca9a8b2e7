#include "sandbox/delta.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "proxy/allow.h"
#include "sandbox/deny.h"

/* cwd, $TMPDIR, /tmp, /dev/shm */
#define OTHER_ROOTS 4U

void
sandbox_delta_fini(struct sandbox_delta *d)
{
    for (size_t i = 0; d->v != NULL && i < d->n; i++) {
        mem_free(d->v[i].object);
    }
    mem_free(d->v);
    strv_fini(&d->kept);
    strv_fini(&d->hidden);
    *d = (struct sandbox_delta){0};
}

bool
sandbox_delta_is_empty(const struct sandbox_delta *d)
{
    return d->n == 0;
}

/* Where a policy lets commands write; "/" where nothing is enforced. */
static enum sy_code
add_roots(struct strv *ret, const struct sandbox_policy *p)
{
    enum sy_code rc = SY_E_OK;

    ret->max = p->writable_roots.n + OTHER_ROOTS;
    switch (p->mode) {
    case SANDBOX_READ_ONLY:
        return SY_E_OK;
    case SANDBOX_DANGER_FULL_ACCESS:
    case SANDBOX_EXTERNAL:
        return strv_add(ret, "/");
    case SANDBOX_WORKSPACE_WRITE:
        break;
    }
    rc = strv_add(ret, p->cwd);
    if (rc == SY_E_OK) {
        rc = strv_add_all(ret, strv_view(&p->writable_roots));
    }
    if (rc == SY_E_OK && p->tmpdir != NULL && p->tmpdir[0] == '/' && !p->excludes_tmpdir) {
        rc = strv_add(ret, p->tmpdir);
    }
    if (rc == SY_E_OK && !p->excludes_slash_tmp) {
        rc = strv_add(ret, "/tmp");
    }
    return rc == SY_E_OK ? strv_add(ret, "/dev/shm") : rc;
}

static bool
is_in(const char *path, const struct strv *roots)
{
    for (size_t i = 0; i < roots->n; i++) {
        if (path_is_below(path, roots->v[i])) {
            return true;
        }
    }
    return false;
}

/* "HOME/BELOW", quoted as a pattern but for what the table means as one. */
static enum sy_code
add_row(struct strv *ret, const char *home, const char *below)
{
    return strv_addf(ret, "%s/%s", home[1] == '\0' ? "" : home, below);
}

/* All that a policy hides, as patterns: what is denied by name and the rows of the defaults. */
static enum sy_code
add_hidden(struct strv *ret, const struct sandbox_policy *p)
{
    char *const *allow = strv_view(&p->allow_read);
    const struct deny_default *d = NULL;
    enum sy_code rc = SY_E_OK;

    ret->max = p->own_dirs.n + p->deny_read.n + (p->deny_homes.n + 1) * DENY_ROWS_MAX;
    if (!sandbox_mode_is_enforced(p->mode)) {
        return SY_E_OK;
    }
    for (size_t i = 0; i < p->own_dirs.n && rc == SY_E_OK; i++) {
        SY_AUTO(buf_fini) struct buf pattern = {.max = (size_t)LIMIT_PATH * 4};

        rc = path_pattern_quote(&pattern, p->own_dirs.v[i]);
        rc = rc == SY_E_OK ? strv_add(ret, buf_view(&pattern)) : rc;
    }
    rc = rc == SY_E_OK ? strv_add_all(ret, strv_view(&p->deny_read)) : rc;
    for (size_t h = 0; h < p->deny_homes.n; h++) {
        const char *home = p->deny_homes.v[h];

        for (size_t i = 0; rc == SY_E_OK && (d = deny_home_default(i)) != NULL; i++) {
            rc = deny_is_left_out(allow, home, d->below) ? SY_E_OK : add_row(ret, home, d->below);
        }
    }
    for (size_t i = 0; rc == SY_E_OK && (d = deny_system_default(i)) != NULL; i++) {
        if (i == DENY_DEVICES_ROW ? !p->closes_devices : !p->denies_system) {
            continue;
        }
        rc = deny_is_left_out(allow, "/", d->below) ? SY_E_OK : add_row(ret, "/", d->below);
    }
    return rc;
}

static enum sy_code
add_gain(struct sandbox_delta *d, enum access_kind kind, const char *object, bool is_secret)
{
    struct delta_gain *v = NULL;
    size_t size = 0;
    char *copy = mem_strdup(object);

    if (copy != NULL && size_mul(&size, d->n + 1, sizeof(*v))) {
        v = mem_realloc(d->v, size);
    }
    if (v == NULL) {
        mem_free(copy);
        return SY_E_NOMEM;
    }
    d->v = v;
    d->v[d->n++] = (struct delta_gain){.kind = kind, .object = copy, .is_secret = is_secret};
    return SY_E_OK;
}

/* A new root, and what is to be hidden in it: Landlock can't take that back, mounts can. */
static enum sy_code
add_root(struct sandbox_delta *d, const struct delta_input *in, const char *root,
         const struct strv *hidden)
{
    SY_AUTO(buf_fini) struct buf unix_name = {.max = (size_t)LIMIT_PATH + 8};
    enum sy_code rc = add_gain(d, ACCESS_WRITE, root, false);

    for (size_t i = 0; i < hidden->n && rc == SY_E_OK; i++) {
        if (!path_pattern_is_below(hidden->v[i], root)) {
            continue;
        }
        rc = in->has_mounts ? strv_add(&d->hidden, hidden->v[i])
                            : add_gain(d, ACCESS_READ, hidden->v[i], true);
    }
    if (rc == SY_E_OK && in->scopes_unix && sandbox_policy_has_network(in->after)) {
        rc = buf_addf(&unix_name, "unix:%s", root);
        rc = rc == SY_E_OK ? add_gain(d, ACCESS_CONNECT, buf_view(&unix_name), false) : rc;
    }
    return rc;
}

static enum sy_code
compare_files(struct sandbox_delta *d, const struct delta_input *in)
{
    SY_AUTO(strv_fini) struct strv old_roots = {0};
    SY_AUTO(strv_fini) struct strv new_roots = {0};
    SY_AUTO(strv_fini) struct strv old_hidden = {0};
    SY_AUTO(strv_fini) struct strv new_hidden = {0};
    enum sy_code rc = add_roots(&old_roots, in->before);

    if (rc == SY_E_OK) {
        rc = add_roots(&new_roots, in->after);
    }
    if (rc == SY_E_OK) {
        rc = add_hidden(&old_hidden, in->before);
    }
    if (rc == SY_E_OK) {
        rc = add_hidden(&new_hidden, in->after);
    }
    d->hidden.max = new_hidden.n * (new_roots.n + 1);
    for (size_t i = 0; i < new_roots.n && rc == SY_E_OK; i++) {
        rc = is_in(new_roots.v[i], &old_roots) ? SY_E_OK
                                               : add_root(d, in, new_roots.v[i], &new_hidden);
    }
    for (size_t i = 0; i < old_hidden.n && rc == SY_E_OK; i++) {
        rc = strv_has(&new_hidden, old_hidden.v[i])
                 ? SY_E_OK
                 : add_gain(d, ACCESS_READ, old_hidden.v[i], true);
    }
    return rc;
}

static enum sy_code
compare_network(struct sandbox_delta *d, const struct delta_input *in)
{
    const struct strv *list = &in->after->network_allow;
    enum sy_code rc = SY_E_OK;

    if (sandbox_policy_has_network(in->before)) {
        return SY_E_OK;
    }
    if (sandbox_policy_has_network(in->after)) {
        return add_gain(d, ACCESS_CONNECT, "*", false);
    }
    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        rc = strv_has(&in->before->network_allow, list->v[i])
                 ? SY_E_OK
                 : add_gain(d, ACCESS_CONNECT, list->v[i], false);
    }
    return rc;
}

static bool
has_gain(const struct sandbox_delta *d, enum access_kind kind)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->v[i].kind == kind) {
            return true;
        }
    }
    return false;
}

enum sy_code
sandbox_delta_new(struct sandbox_delta *ret, const struct delta_input *in)
{
    struct sandbox_delta d = {.kept = {.max = LIMIT_PROTECTED}};
    enum sy_code rc = compare_files(&d, in);

    if (rc == SY_E_OK) {
        rc = compare_network(&d, in);
    }
    if (rc == SY_E_OK && in->protected != NULL && has_gain(&d, ACCESS_WRITE)) {
        rc = strv_add_all(&d.kept, in->protected);
    }
    if (rc != SY_E_OK) {
        sandbox_delta_fini(&d);
        return rc;
    }
    *ret = d;
    return SY_E_OK;
}

/* The path fits the pattern, or lies below something that does. */
static bool
fits(const char *pattern, const char *path)
{
    for (;;) {
        size_t n = 0;
        size_t m = 0;

        pattern += *pattern == '/' ? 1 : 0;
        path += *path == '/' ? 1 : 0;
        n = strcspn(pattern, "/");
        m = strcspn(path, "/");
        if (n == 0) {
            return true;
        }
        if (m == 0) {
            return false;
        }
        if (n == 2 && memcmp(pattern, "**", 2) == 0) {
            return true; /* more than it says: what a person is told must not be less */
        }
        if (!path_pattern_fits(pattern, n, path, m)) {
            return false;
        }
        pattern += n;
        path += m;
    }
}

static bool
is_hidden(const struct sandbox_delta *d, const char *path)
{
    for (size_t i = 0; i < d->hidden.n; i++) {
        if (fits(d->hidden.v[i], path)) {
            return true;
        }
    }
    return false;
}

static bool
covers_path(const struct sandbox_delta *d, enum access_kind kind, const char *path)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct delta_gain *g = &d->v[i];

        if (g->kind == kind &&
            (kind == ACCESS_READ ? fits(g->object, path) : path_is_below(path, g->object))) {
            return !is_hidden(d, path);
        }
    }
    return false;
}

static enum sy_code
covers_host(bool *ret, const struct sandbox_delta *d, const char *object, struct sy_error *err)
{
    SY_AUTO(strv_fini) struct strv entries = {.max = d->n};
    struct allow_list *list = NULL;
    struct host h;
    uint16_t port = 0;
    struct judgement j = {0};
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < d->n && rc == SY_E_OK; i++) {
        const struct delta_gain *g = &d->v[i];

        if (g->kind != ACCESS_CONNECT) {
            continue;
        }
        if (str_eq(g->object, "*")) {
            *ret = true;
            return SY_E_OK;
        }
        if (str_starts(g->object, "unix:")) {
            *ret = *ret || (str_starts(object, "unix:/") &&
                            path_is_below(object + strlen("unix:"), g->object + strlen("unix:")));
        } else {
            rc = strv_add(&entries, g->object);
        }
    }
    if (rc != SY_E_OK) {
        return sy_err_nomem(err);
    }
    if (*ret || host_parse_authority(&h, &port, NULL, object, strlen(object), NULL) != SY_E_OK) {
        return SY_E_OK;
    }
    rc = allow_new(&list, (const char *const *)strv_view(&entries), entries.n, err);
    if (rc == SY_E_OK) {
        allow_judge_host(list, &h, port, &j);
        if (j.is_allowed && h.kind == HOST_ADDRESS) {
            (void)allow_judge_address(list, &h, port, &h.address, &j);
        }
        *ret = j.is_allowed;
    }
    allow_free(list);
    return rc;
}

enum sy_code
sandbox_delta_covers(bool *ret, const struct sandbox_delta *d, enum sandbox_operation op,
                     const char *object, struct sy_error *err)
{
    char holder[LIMIT_PATH];
    const char *slash = strrchr(object, '/');
    size_t n = slash == NULL || slash == object ? 1 : (size_t)(slash - object);

    *ret = false;
    switch (op) {
    case OPERATION_CONNECT:
        return covers_host(ret, d, object, err);
    case OPERATION_READ:
        *ret = covers_path(d, ACCESS_READ, object);
        return SY_E_OK;
    case OPERATION_WRITE:
    case OPERATION_TRUNCATE:
    case OPERATION_CHMOD:
        *ret = covers_path(d, ACCESS_WRITE, object);
        return SY_E_OK;
    case OPERATION_CREATE:
    case OPERATION_DELETE:
    case OPERATION_RENAME:
        if (object[0] == '/' && n < sizeof(holder)) {
            memcpy(holder, object, n);
            holder[n] = '\0';
            *ret = covers_path(d, ACCESS_WRITE, holder) && !is_hidden(d, object);
        }
        return SY_E_OK;
    case OPERATION_COUNT:
        break;
    }
    return sy_err_set(err, SY_E_ARG, "no operation");
}

void
sandbox_delta_write(struct jw *w, const struct sandbox_delta *d)
{
    jw_key(w, "gains");
    jw_array(w);
    for (size_t i = 0; i < d->n; i++) {
        jw_object(w);
        jw_key_str(w, "right", access_kind_name(d->v[i].kind));
        jw_key_str(w, "object", d->v[i].object);
        if (d->v[i].is_secret) {
            jw_key_bool(w, "secret", true);
        }
        jw_end_object(w);
    }
    jw_end_array(w);
    if (d->kept.n > 0) {
        jw_key_list(w, "kept", strv_view(&d->kept));
    }
    if (d->hidden.n > 0) {
        jw_key_list(w, "hidden", strv_view(&d->hidden));
    }
}
