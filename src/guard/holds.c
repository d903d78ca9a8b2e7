/* What the marks refuse to commands, where mounts hold them. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "guard/guard_internal.h"

/* The path as marks have it: below a root's own name, which may lead through links. */
static bool
named_as_marks(struct buf *ret, const struct guard *g, const char *path)
{
    char resolved[PATH_MAX];

    for (size_t i = 0; i < g->roots.n; i++) {
        if (path_is_below(path, g->roots.v[i])) {
            return buf_add_str(ret, path) == SY_E_OK;
        }
    }
    for (size_t i = 0; i < g->roots.n; i++) {
        if (realpath(g->roots.v[i], resolved) != NULL && path_is_below(path, resolved)) {
            return buf_addf(ret, "%s%s", g->roots.v[i], path + strlen(resolved)) == SY_E_OK;
        }
    }
    return false;
}

/* The mark that refuses it; NULL: none. */
static const struct guard_told *
find(const struct guard *g, enum sandbox_operation op, const char *path)
{
    for (size_t i = 0; i < g->n_told; i++) {
        const struct guard_told *t = &g->told[i];
        bool is_same = str_eq(t->path, path);

        if (t->action == GUARD_READ_ONLY && !is_same && path_is_below(path, t->path)) {
            return t;
        }
        if (!is_same) {
            continue;
        }
        switch (op) {
        case OPERATION_WRITE:
        case OPERATION_TRUNCATE:
        case OPERATION_CHMOD:
            return t->action == GUARD_READ_ONLY ? t : NULL;
        case OPERATION_DELETE:
        case OPERATION_RENAME:
            return t;
        case OPERATION_CREATE:
            return t->is_placeholder ? t : NULL;
        case OPERATION_READ:
        case OPERATION_CONNECT:
        case OPERATION_COUNT:
            return NULL;
        }
    }
    return NULL;
}

/* Each name once; a name may be the beginning of another. */
static enum sy_code
add_rule(struct buf *out, const char *rule)
{
    const char *at = out->len > 0 ? buf_view(out) : "";

    for (size_t n = strlen(rule); *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (str_starts(at, rule) && (at[n] == ',' || at[n] == '\0')) {
            return SY_E_OK;
        }
    }
    return buf_addf(out, "%s%s", out->len > 0 ? ", " : "", rule);
}

/* Names of the rules for which a mark is there, each once: its own, or, of a directory that is
 * only kept in its place, those of what is protected in it. */
static bool
add_rules(struct buf *out, const struct guard *g, const struct guard_told *of)
{
    static const enum guard_name of_git[] = {GUARD_GIT, GUARD_GIT_CONFIG, GUARD_GIT_WORKTREE,
                                             GUARD_GIT_HOOKS, GUARD_GIT_ATTRIBUTES};
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < g->n_told && rc == SY_E_OK; i++) {
        const struct guard_told *t = &g->told[i];
        bool is_of_it = of->action != GUARD_READ_ONLY && path_is_below(t->path, of->path);
        bool is_git = t->action == GUARD_PIN && str_eq(path_base(t->path), ".git");

        /* It stays in its place until all of it is lifted. */
        for (size_t k = 0; is_of_it && is_git && k < 5 && rc == SY_E_OK; k++) {
            rc = add_rule(out, guard_name_text(of_git[k]));
        }
        if (rc == SY_E_OK && t->action == GUARD_READ_ONLY && (t == of || is_of_it)) {
            rc = add_rule(out, t->rule);
        }
    }
    return rc == SY_E_OK && (out->len > 0 || buf_add_str(out, of->rule) == SY_E_OK);
}

bool
guard_holds(const struct guard *g, struct sandbox_explanation *ret, enum sandbox_operation op,
            const char *path)
{
    SY_AUTO(buf_fini) struct buf name = {.max = 2 * (size_t)LIMIT_PATH};
    SY_AUTO(buf_fini) struct buf rules = {.max = LIMIT_PATH};
    const struct guard_told *t = NULL;

    if (!g->has_mounts || !named_as_marks(&name, g, path)) {
        return false;
    }
    t = find(g, op, buf_view(&name));
    if (t == NULL || !add_rules(&rules, g, t)) {
        return false;
    }

    int n =
        snprintf(ret->fix, sizeof(ret->fix), "sandbox.unprotected_names: [%s]", buf_view(&rules));

    if (n < 0 || (size_t)n >= sizeof(ret->fix)) {
        ret->fix[0] = '\0';
    }
    if (t->action == GUARD_READ_ONLY) {
        (void)snprintf(ret->rule, sizeof(ret->rule), "protected name %s", t->rule);
    } else {
        (void)snprintf(ret->rule, sizeof(ret->rule), "protected names are in it: %.120s",
                       buf_view(&rules));
    }
    return true;
}
