#include "sandbox/deny_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path_pattern.h"
#include "base/str.h"
#include "sandbox/deny.h"

enum sy_code
deny_wants_reserve(struct deny_wants *w, size_t more)
{
    size_t least = w->n + more;
    size_t cap = least < w->cap * 2 ? w->cap * 2 : least;
    size_t size = 0;

    if (least <= w->cap) {
        return SY_E_OK;
    }

    struct deny_want *v = size_mul(&size, cap, sizeof(w->v[0])) ? mem_realloc(w->v, size) : NULL;

    if (v == NULL) {
        return SY_E_NOMEM;
    }
    w->v = v;
    w->cap = cap;
    return SY_E_OK;
}

enum sy_code
deny_wants_add(struct deny_wants *w, const char *rest, size_t rule)
{
    enum sy_code rc = deny_wants_reserve(w, w->n == w->cap ? 8 : 1);

    if (rc == SY_E_OK) {
        w->v[w->n++] = (struct deny_want){rest, rule};
    }
    return rc;
}

void
deny_wants_fini(struct deny_wants *w)
{
    mem_free(w->v);
    *w = (struct deny_wants){0};
}

int
deny_order(const char *a, const char *b)
{
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }

    int x = *a == '\0' ? -2 : *a == '/' ? -1 : (unsigned char)*a;
    int y = *b == '\0' ? -2 : *b == '/' ? -1 : (unsigned char)*b;

    return x - y;
}

static int
compare_wants(const void *a, const void *b)
{
    const struct deny_want *x = a;
    const struct deny_want *y = b;

    return deny_order(x->rest, y->rest);
}

static void
sort(struct deny_wants *w)
{
    for (size_t i = 1; i < w->n; i++) {
        if (deny_order(w->v[i - 1].rest, w->v[i].rest) > 0) {
            qsort(w->v, w->n, sizeof(w->v[0]), compare_wants);
            return;
        }
    }
}

static bool
is_deep(const char *rest)
{
    return rest[0] == '*' && str_starts(rest, "**/");
}

/* "**" may also stand for no directory: what follows it is wanted right here. */
static enum sy_code
add_behind_deep(struct deny_wants *w)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < w->n && rc == SY_E_OK; i++) {
        if (is_deep(w->v[i].rest)) {
            rc = deny_wants_add(w, w->v[i].rest + strlen("**/"), w->v[i].rule);
        }
    }
    return rc;
}

/* By hand, here and in group(): this is done with all defaults for each one-shot command. */
static bool
has_component(const char *rest, const char *name, size_t len)
{
    size_t i = 0;

    while (i < len && rest[i] == name[i]) {
        i++;
    }
    return i == len && (rest[i] == '/' || rest[i] == '\0');
}

static struct deny_group
begin_group(const char *name, size_t first)
{
    size_t len = 0;

    while (name[len] != '\0' && name[len] != '/') {
        len++;
    }
    return (struct deny_group){.name = name,
                               .len = (uint16_t)len,
                               .is_plain = path_pattern_is_plain(name, len),
                               .is_deep = is_deep(name),
                               .first = (uint32_t)first};
}

static enum sy_code
group(struct deny_names *n)
{
    size_t size = 0;

    /* At most as many as there are wants. */
    if (!size_mul(&size, n->wants.n, sizeof(n->groups[0]))) {
        return SY_E_NOMEM;
    }
    n->groups = mem_alloc(size);
    if (n->groups == NULL) {
        return SY_E_NOMEM;
    }
    n->is_plain = true;
    for (size_t i = 0; i < n->wants.n; i++) {
        const char *rest = n->wants.v[i].rest;
        struct deny_group *g = n->n_groups > 0 ? &n->groups[n->n_groups - 1] : NULL;

        if (g == NULL || !has_component(rest, g->name, g->len)) {
            g = &n->groups[n->n_groups++];
            *g = begin_group(rest, i);
            n->is_plain = n->is_plain && g->is_plain;
        }
        g->n++;
    }
    return SY_E_OK;
}

enum sy_code
deny_names_init(struct deny_names *ret, struct deny_wants *wants)
{
    struct deny_names n = {.wants = *wants};
    enum sy_code rc = SY_E_OK;

    *wants = (struct deny_wants){0};
    rc = add_behind_deep(&n.wants);
    if (rc == SY_E_OK) {
        sort(&n.wants);
        rc = group(&n);
    }
    if (rc != SY_E_OK) {
        deny_names_fini(&n);
        return rc;
    }
    *ret = n;
    return SY_E_OK;
}

void
deny_names_fini(struct deny_names *n)
{
    deny_wants_fini(&n->wants);
    mem_free(n->groups);
    *n = (struct deny_names){0};
}

static enum sy_code
take(const struct deny_names *n, const struct deny_group *g, struct deny_hit *hit)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = g->first; i < g->first + g->n && rc == SY_E_OK; i++) {
        const struct deny_want *w = &n->wants.v[i];

        if (g->is_deep) {
            rc = deny_wants_add(&hit->below, w->rest, w->rule);
        } else if (w->rest[g->len] == '/') {
            rc = deny_wants_add(&hit->below, w->rest + g->len + 1, w->rule);
        } else if (w->rule >= DENY_HOME_ITSELF) {
            hit->is_home = true;
            hit->home = w->rule - DENY_HOME_ITSELF;
        } else if (!hit->is_wanted) {
            hit->is_wanted = true;
            hit->rule = w->rule;
        }
    }
    return rc;
}

/* The group of that very name, or NULL. */
static const struct deny_group *
find(const struct deny_names *n, const char *name)
{
    size_t from = 0;
    size_t to = n->n_groups;
    size_t len = strlen(name);

    while (from < to) {
        const struct deny_group *g = &n->groups[from + (to - from) / 2];
        size_t common = g->len < len ? g->len : len;
        int diff = memcmp(g->name, name, common);

        if (diff == 0 && g->len == len) {
            return g->is_plain ? g : NULL;
        }
        if (diff < 0 || (diff == 0 && g->len < len)) {
            from = (size_t)(g - n->groups) + 1;
        } else {
            to = (size_t)(g - n->groups);
        }
    }
    return NULL;
}

enum sy_code
deny_names_match(const struct deny_names *n, const char *name, struct deny_hit *ret)
{
    const struct deny_group *plain = find(n, name);
    size_t len = strlen(name);
    enum sy_code rc = SY_E_OK;

    ret->is_wanted = false;
    ret->is_home = false;
    ret->below.n = 0;
    if (plain != NULL) {
        rc = take(n, plain, ret);
    }
    for (size_t i = 0; i < n->n_groups && !n->is_plain && rc == SY_E_OK; i++) {
        const struct deny_group *g = &n->groups[i];

        if (g->is_deep || (!g->is_plain && path_pattern_fits(g->name, g->len, name, len))) {
            rc = take(n, g, ret);
        }
    }
    return rc;
}
