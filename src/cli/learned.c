#include "cli/learned.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/yaml_text.h"
#include "guard/guard.h"

/* Other lines of the section sandbox than lists. */
#define LINES_MAX 8

void
learned_fini(struct learned *l)
{
    strv_fini(&l->lines);
    strv_fini(&l->roots);
    strv_fini(&l->reads);
    strv_fini(&l->names);
    strv_fini(&l->hosts);
    strv_fini(&l->late);
    strv_fini(&l->never);
}

/* A path makes those below it unnecessary. */
static enum sy_code
add_path(struct strv *roots, const char *root)
{
    struct strv kept = {.max = roots->max};
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < roots->n; i++) {
        if (path_is_below(root, roots->v[i])) {
            strv_fini(&kept);
            return SY_E_OK;
        }
    }
    for (size_t i = 0; i < roots->n && rc == SY_E_OK; i++) {
        if (!path_is_below(roots->v[i], root)) {
            rc = strv_add(&kept, roots->v[i]);
        }
    }
    if (rc == SY_E_OK) {
        rc = strv_add(&kept, root);
    }
    if (rc != SY_E_OK) {
        strv_fini(&kept);
        return rc;
    }
    strv_fini(roots);
    *roots = kept;
    return SY_E_OK;
}

static enum sy_code
add_never(struct learned *l, const struct denial *d)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 4 * (size_t)LIMIT_PATH};
    enum sy_code rc = buf_addf(&text, "%s %s", d->operation, d->object);

    return rc == SY_E_OK ? strv_add_once(&l->never, buf_view(&text)) : rc;
}

static enum sy_code
add_each(struct strv *to, const struct strv *from, enum sy_code (*add)(struct strv *, const char *))
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < from->n && rc == SY_E_OK; i++) {
        rc = add(to, from->v[i]);
    }
    return rc;
}

/* A key that is no list; `line` is "KEY: VALUE", maybe with a comment. */
static enum sy_code
add_line(struct learned *l, const char *line)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_PATH};
    const char *comment = strstr(line, "  #");
    enum sy_code rc =
        buf_add(&text, line, comment != NULL ? (size_t)(comment - line) : strlen(line));

    return rc == SY_E_OK ? strv_add_once(&l->lines, buf_view(&text)) : rc;
}

/* The line of one denial, which `c` has taken. */
static enum sy_code
add_taken(struct learned *l, const struct denial *d, const struct config *c)
{
    if (str_starts(d->fix, "sandbox.writable_roots:")) {
        return add_each(&l->roots, &c->sandbox.writable_roots, add_path);
    }
    if (str_starts(d->fix, "sandbox.allow_read:")) {
        return add_each(&l->reads, &c->sandbox.allow_read, add_path);
    }
    if (str_starts(d->fix, "sandbox.unprotected_names:")) {
        return add_each(&l->names, &c->sandbox.unprotected_names, strv_add_once);
    }
    if (str_starts(d->fix, "network.allow:")) {
        return add_each(&l->hosts, &c->network.allow, strv_add_once);
    }
    if (str_starts(d->fix, "sandbox.mode:") || str_starts(d->fix, "sandbox.network_access:")) {
        return add_line(l, d->fix + strlen("sandbox."));
    }
    return add_never(l, d);
}

static enum sy_code
add_fix(struct learned *l, const struct cli_engine *engine, const struct denial *d)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 4 * (size_t)LIMIT_PATH};
    SY_AUTO(config_fini) struct config taken = {0};
    const char *colon = d->fix != NULL ? strstr(d->fix, ": ") : NULL;
    enum sy_code rc = SY_E_OK;

    if (colon == NULL) {
        return add_never(l, d);
    }
    rc = buf_addf(&text, "%.*s=%s", (int)(colon - d->fix), d->fix, colon + 2);
    if (rc == SY_E_OK) {
        rc = cli_engine_try(&taken, engine, buf_view(&text), NULL);
        rc = rc == SY_E_OK ? add_taken(l, d, &taken) : rc == SY_E_CONFIG ? add_never(l, d) : rc;
    }
    return rc;
}

/* What workspace-write has as roots without being told. */
static bool
is_root_anyway(const struct sandbox_policy *p, const char *root)
{
    return path_is_below(root, p->cwd) || path_is_below(root, "/dev/shm") ||
           (!p->excludes_slash_tmp && path_is_below(root, "/tmp")) ||
           (!p->excludes_tmpdir && p->tmpdir != NULL && p->tmpdir[0] == '/' &&
            path_is_below(root, p->tmpdir));
}

/* Roots count in one mode alone, which has some by itself. */
static enum sy_code
leave_read_only(struct learned *l, const struct sandbox_policy *p)
{
    struct strv kept = {.max = l->roots.max};
    enum sy_code rc = l->roots.n > 0 ? strv_add_once(&l->lines, "mode: workspace-write") : SY_E_OK;

    for (size_t i = 0; i < l->roots.n && rc == SY_E_OK; i++) {
        rc = is_root_anyway(p, l->roots.v[i]) ? SY_E_OK : strv_add(&kept, l->roots.v[i]);
    }
    if (rc != SY_E_OK) {
        strv_fini(&kept);
        return rc;
    }
    strv_fini(&l->roots);
    l->roots = kept;
    return SY_E_OK;
}

static enum sy_code
find_late(struct learned *l)
{
    struct stat st;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < l->roots.n && rc == SY_E_OK; i++) {
        rc = stat(l->roots.v[i], &st) != 0 && errno == ENOENT ? strv_add(&l->late, l->roots.v[i])
                                                              : SY_E_OK;
    }
    return rc;
}

static bool
needs_all_of_the_network(const struct learned *l)
{
    return strv_has(&l->lines, "network_access: true");
}

enum sy_code
learned_decide(struct learned *ret, const struct cli_engine *engine, const struct denial_list *list,
               struct sy_error *err)
{
    const struct sandbox_policy *p = &engine->turn.sandbox;
    enum sy_code rc = SY_E_OK;

    ret->lines.max = LINES_MAX;
    ret->roots.max = LIMIT_ROOTS;
    ret->reads.max = DENIALS_MAX;
    ret->names.max = GUARD_NAME_COUNT;
    ret->hosts.max = DENIALS_MAX;
    ret->late.max = LIMIT_ROOTS;
    ret->never.max = DENIALS_MAX;
    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        rc = add_fix(ret, engine, &list->v[i]);
    }
    if (rc == SY_E_OK && p->mode == SANDBOX_READ_ONLY) {
        rc = leave_read_only(ret, p);
    }
    if (rc == SY_E_OK && needs_all_of_the_network(ret)) {
        strv_fini(&ret->hosts); /* no list counts beside it */
    }
    if (rc == SY_E_OK) {
        rc = find_late(ret);
    }
    return rc == SY_E_OK ? rc
                         : sy_err_set(err, rc, "telling what was learned: %s", sy_code_text(rc));
}

bool
learned_has_any(const struct learned *l)
{
    return l->lines.n > 0 || l->roots.n > 0 || l->reads.n > 0 || l->names.n > 0 || l->hosts.n > 0;
}

/* "  KEY: [have, need]". */
static enum sy_code
put_list(struct buf *out, const char *key, const struct strv *have, const struct strv *need)
{
    size_t n = have->n + (need != NULL ? need->n : 0);
    enum sy_code rc = buf_addf(out, "  %s: [", key);

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        rc = i > 0 ? buf_add_char(out, ',') : SY_E_OK;
        if (rc == SY_E_OK) {
            rc = yaml_text_quote(out, i < have->n ? have->v[i] : need->v[i - have->n]);
        }
    }
    return rc == SY_E_OK ? buf_add_str(out, "]\n") : rc;
}

static enum sy_code
put_if_any(struct buf *out, const char *key, const struct strv *have)
{
    return have->n > 0 ? put_list(out, key, have, NULL) : SY_E_OK;
}

static enum sy_code
put_if_longer(struct buf *out, const char *key, const struct strv *have, const struct strv *need)
{
    return need->n > 0 ? put_list(out, key, have, need) : SY_E_OK;
}

enum sy_code
learned_put_today(struct buf *out, const struct cli_engine *engine)
{
    const struct config *c = &engine->config;
    enum sy_code rc =
        buf_addf(out, "sandbox:\n  mode: %s\n", sandbox_mode_name(engine->turn.sandbox.mode));

    if (rc == SY_E_OK) {
        rc = put_list(out, "writable_roots", &c->sandbox.writable_roots, NULL);
    }
    if (rc == SY_E_OK) {
        rc = put_if_any(out, "allow_read", &c->sandbox.allow_read);
    }
    if (rc == SY_E_OK) {
        rc = put_if_any(out, "unprotected_names", &c->sandbox.unprotected_names);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "  network_access: %s\n", c->sandbox.network_access ? "true" : "false");
    }
    if (rc == SY_E_OK && c->network.allow.n > 0) {
        rc = buf_add_str(out, "network:\n");
        rc = rc == SY_E_OK ? put_list(out, "allow", &c->network.allow, NULL) : rc;
    }
    return rc;
}

enum sy_code
learned_put_needed(struct buf *out, const struct learned *l, const struct cli_engine *engine)
{
    const struct config *c = &engine->config;
    bool is_of_sandbox = l->lines.n + l->roots.n + l->reads.n + l->names.n > 0;
    enum sy_code rc = is_of_sandbox ? buf_add_str(out, "sandbox:\n") : SY_E_OK;

    for (size_t i = 0; i < l->lines.n && rc == SY_E_OK; i++) {
        rc = buf_addf(out, "  %s\n", l->lines.v[i]);
    }
    if (rc == SY_E_OK) {
        rc = put_if_longer(out, "writable_roots", &c->sandbox.writable_roots, &l->roots);
    }
    if (rc == SY_E_OK) {
        rc = put_if_longer(out, "allow_read", &c->sandbox.allow_read, &l->reads);
    }
    if (rc == SY_E_OK) {
        rc = put_if_longer(out, "unprotected_names", &c->sandbox.unprotected_names, &l->names);
    }
    if (rc == SY_E_OK && l->hosts.n > 0) {
        rc = buf_add_str(out, "network:\n");
        rc = rc == SY_E_OK ? put_list(out, "allow", &c->network.allow, &l->hosts) : rc;
    }
    return rc;
}
