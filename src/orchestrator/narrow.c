/* What a turn may want of what it is allowed: less. */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/orchestrator.h"
#include "sandbox/linux/walk.h"

/*
 * A turn may only narrow what it is allowed. Greater is wider: a mode of a
 * lower or equal rank may be asked for.
 */
static const unsigned mode_width[] = {
    [SANDBOX_READ_ONLY] = 0,
    [SANDBOX_WORKSPACE_WRITE] = 1,
    [SANDBOX_EXTERNAL] = 2,
    [SANDBOX_DANGER_FULL_ACCESS] = 3,
};

/*
 * Greater asks a person more often: a policy of a higher or equal rank may be
 * asked for. `never` runs without a question what the others may ask about.
 */
static const unsigned policy_asks[] = {
    [APPROVAL_NEVER] = 0,
    [APPROVAL_ON_FAILURE] = 1,
    [APPROVAL_ON_REQUEST] = 2,
    [APPROVAL_UNLESS_TRUSTED] = 3,
    /* By parts, which no word compares with. */
    [APPROVAL_GRANULAR] = 4,
};

/* What is wanted, of what, and in whose words. */
struct narrowing {
    struct turn_context *t;
    const struct turn_context *allowed;
    const struct turn_wish *w;
    const char *whose;
};

void
turn_wish_fini(struct turn_wish *w)
{
    mem_free(w->cwd);
    strv_fini(&w->roots);
    *w = (struct turn_wish){0};
}

static enum sy_code
narrow_mode(const struct narrowing *n, struct sy_error *err)
{
    enum sandbox_mode allowed = n->allowed->sandbox.mode;

    if (!n->w->has_mode) {
        return SY_E_OK;
    }
    if (mode_width[n->w->mode] > mode_width[allowed]) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox mode %s is wider than %s, which %s allows: "
                          "a turn can only narrow it",
                          sandbox_mode_name(n->w->mode), sandbox_mode_name(allowed), n->whose);
    }
    n->t->sandbox.narrows_mode =
        n->t->sandbox.narrows_mode || mode_width[n->w->mode] < mode_width[allowed];
    n->t->sandbox.mode = n->w->mode;
    return SY_E_OK;
}

/* Where nothing was enforced all was a root. */
static bool
leaves_some_out(const struct narrowing *n)
{
    const struct sandbox_policy *allowed = &n->allowed->sandbox;
    bool ret = !sandbox_mode_is_enforced(allowed->mode);

    for (size_t i = 0; i < allowed->writable_roots.n && !ret; i++) {
        ret = !strv_has(&n->w->roots, allowed->writable_roots.v[i]);
    }
    return ret;
}

/*
 * The roots must be among the allowed ones, as they are written there: a path
 * below one may be a link that the sandboxed command itself has made.
 */
static enum sy_code
narrow_roots(const struct narrowing *n, struct sy_error *err)
{
    const struct sandbox_policy *allowed = &n->allowed->sandbox;
    struct strv roots = {.max = LIMIT_ROOTS};
    enum sy_code rc = SY_E_OK;

    if (!n->w->has_roots) {
        return rc;
    }
    for (size_t i = 0; i < n->w->roots.n && sandbox_mode_is_enforced(allowed->mode); i++) {
        const char *root = n->w->roots.v[i];

        if (!strv_has(&allowed->writable_roots, root)) {
            return sy_err_set(err, SY_E_ARG,
                              "writable_roots[%zu] '%.90s' is none of those that %s has: "
                              "a turn can only leave some out",
                              i, root, n->whose);
        }
    }
    rc = strv_add_all(&roots, strv_view(&n->w->roots));
    if (rc != SY_E_OK) {
        strv_fini(&roots);
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, rc, "writable_roots: %s", sy_code_text(rc));
    }
    strv_fini(&n->t->sandbox.writable_roots);
    n->t->sandbox.writable_roots = roots;
    n->t->sandbox.drops_roots = n->t->sandbox.drops_roots || leaves_some_out(n);
    return rc;
}

static enum sy_code
narrow_network(const struct narrowing *n, struct sy_error *err)
{
    struct sandbox_policy *p = &n->t->sandbox;

    if (n->w->network == WISH_NONE) {
        return SY_E_OK;
    }
    if (n->w->network == WISH_YES && !sandbox_policy_has_network(&n->allowed->sandbox)) {
        return sy_err_set(err, SY_E_ARG, "network_access is off in %s: a turn can't switch it on",
                          n->whose);
    }
    if (n->w->network == WISH_NO && !sandbox_mode_is_enforced(p->mode)) {
        return sy_err_set(err, SY_E_ARG, "network_access false can't be held under %s",
                          sandbox_mode_name(p->mode));
    }
    p->drops_network = p->drops_network || (n->w->network == WISH_NO &&
                                            sandbox_policy_has_network(&n->allowed->sandbox));
    p->has_network = n->w->network == WISH_YES;
    return SY_E_OK;
}

/* One of the exclude_ switches, which narrow by being true. */
static enum sy_code
narrow_switch(const struct narrowing *n, bool *value, enum wish wish, const char *key,
              struct sy_error *err)
{
    if (wish == WISH_NONE) {
        return SY_E_OK;
    }
    if (*value && wish == WISH_NO && sandbox_mode_is_enforced(n->allowed->sandbox.mode)) {
        return sy_err_set(err, SY_E_ARG, "%s is on in %s: a turn can't switch it off", key,
                          n->whose);
    }
    *value = wish == WISH_YES;
    return SY_E_OK;
}

static enum sy_code
narrow_approval(const struct narrowing *n, struct sy_error *err)
{
    enum approval_policy allowed = n->allowed->approval;
    enum approval_policy wanted = n->w->approval;

    if (!n->w->has_approval) {
        return SY_E_OK;
    }
    /* It says by parts, and the parts are configuration's. */
    if (wanted == APPROVAL_GRANULAR && allowed != APPROVAL_GRANULAR) {
        return sy_err_set(err, SY_E_ARG,
                          "approval_policy must be never, unless-trusted, on-failure or "
                          "on-request, not granular");
    }
    if (policy_asks[wanted] < policy_asks[allowed]) {
        return sy_err_set(err, SY_E_ARG,
                          "approval_policy %s asks less than %s of %s: a turn can only ask more",
                          approval_policy_name(wanted), approval_policy_name(allowed), n->whose);
    }
    n->t->approval = wanted;
    return SY_E_OK;
}

enum sy_code
turn_narrow(struct turn_context *t, const struct turn_context *allowed, const struct turn_wish *w,
            const char *whose, struct sy_error *err)
{
    const struct narrowing n = {.t = t, .allowed = allowed, .w = w, .whose = whose};
    enum sy_code rc = narrow_mode(&n, err);

    if (rc == SY_E_OK) {
        rc = narrow_roots(&n, err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_network(&n, err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_switch(&n, &t->sandbox.excludes_tmpdir, w->excludes_tmpdir,
                           "exclude_tmpdir_env_var", err);
    }
    if (rc == SY_E_OK) {
        rc = narrow_switch(&n, &t->sandbox.excludes_slash_tmp, w->excludes_slash_tmp,
                           "exclude_slash_tmp", err);
    }
    return rc == SY_E_OK ? narrow_approval(&n, err) : rc;
}

/* Where the directories of a policy are: its own, then its writable roots. */
struct places {
    struct walk *v;
    size_t n;
};

static void
places_fini(struct places *p)
{
    for (size_t i = 0; i < p->n; i++) {
        walk_fini(&p->v[i]);
    }
    mem_free(p->v);
}

static enum sy_code
places_find(struct places *ret, const struct sandbox_policy *p, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    ret->v = mem_alloc_zero(p->writable_roots.n + 1, sizeof(*ret->v));
    if (ret->v == NULL) {
        return sy_err_nomem(err);
    }
    ret->n = p->writable_roots.n + 1;
    rc = walk_run(&ret->v[0], p->cwd, err);
    for (size_t i = 0; i < p->writable_roots.n && rc == SY_E_OK; i++) {
        rc = walk_run(&ret->v[i + 1], p->writable_roots.v[i], err);
    }
    return rc;
}

/* Does a link lead to it that lies in one of them, where commands could have made it? */
static bool
is_led_astray(const struct places *p, size_t i)
{
    const struct walk *w = &p->v[i];
    bool ret = false;

    for (size_t l = 0; l < w->links.n && !ret; l++) {
        for (size_t k = 0; k < p->n && !ret; k++) {
            const char *place = buf_view(&p->v[k].path);

            ret = path_is_below(w->links.v[l], place) && !path_is_below(buf_view(&w->path), place);
        }
    }
    return ret;
}

/* Is what has no links in its name in one of them? */
static bool
is_in_one(const struct places *p, bool has_no_links, const char *path)
{
    bool ret = false;

    for (size_t i = 0; i < p->n && !ret; i++) {
        bool is_real = !is_led_astray(p, i) && (i > 0 || !has_no_links || p->v[0].links.n == 0);

        ret = is_real && path_is_below(path, buf_view(&p->v[i].path));
    }
    return ret;
}

static enum sy_code
set_cwd(struct turn_context *t, const char *cwd, bool is_inner, struct sy_error *err)
{
    char *turn_cwd = mem_strdup(cwd);
    char *policy_cwd = mem_strdup(cwd);

    if (turn_cwd == NULL || policy_cwd == NULL) {
        mem_free(turn_cwd);
        mem_free(policy_cwd);
        return sy_err_nomem(err);
    }
    mem_free(t->cwd);
    mem_free(t->sandbox.cwd);
    t->cwd = turn_cwd;
    t->sandbox.cwd = policy_cwd;
    t->sandbox.cwd_is_inner = is_inner;
    t->sandbox.cwd_has_no_links = true;
    return SY_E_OK;
}

/*
 * Where it really is counts, and it is named so from now on: the commands of the turn outside can
 * make links, and whoever opens it later follows none (cwd_has_no_links).
 */
static enum sy_code
narrow_cwd(const struct narrowing *n, struct sy_error *err)
{
    const struct sandbox_policy *allowed = &n->allowed->sandbox;
    SY_AUTO(walk_fini) struct walk walk = {0};
    SY_AUTO(places_fini) struct places places = {0};
    enum sy_code rc = SY_E_OK;

    if (n->w->cwd == NULL || str_eq(n->w->cwd, n->allowed->cwd)) {
        return rc;
    }
    rc = walk_run(&walk, n->w->cwd, err);
    if (rc == SY_E_OK && str_eq(buf_view(&walk.path), allowed->cwd)) {
        return rc; /* by another name */
    }
    if (rc == SY_E_OK && !sandbox_mode_is_enforced(allowed->mode)) {
        return set_cwd(n->t, buf_view(&walk.path), false, err);
    }
    if (rc == SY_E_OK) {
        rc = places_find(&places, allowed, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (walk.missing_errno != 0 ||
        !is_in_one(&places, allowed->cwd_has_no_links, buf_view(&walk.path))) {
        return sy_err_set(err, SY_E_ARG,
                          "cwd '%.80s' is not in '%.80s', the directory of %s, nor in a writable "
                          "root of it: a turn can only narrow it",
                          n->w->cwd, n->allowed->cwd, n->whose);
    }
    return set_cwd(n->t, buf_view(&walk.path), true, err);
}

enum sy_code
turn_narrow_inside(struct turn_context *t, const struct turn_context *allowed,
                   const struct turn_wish *w, const char *whose, struct sy_error *err)
{
    const struct narrowing n = {.t = t, .allowed = allowed, .w = w, .whose = whose};
    enum sy_code rc = narrow_cwd(&n, err);

    return rc == SY_E_OK ? turn_narrow(t, allowed, w, whose, err) : rc;
}
