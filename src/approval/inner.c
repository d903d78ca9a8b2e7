#include "approval/inner.h"

#include "base/limits.h"
#include "base/mem.h"
#include "command/danger.h"

struct search {
    struct inner *found;
    unsigned depth; /* from which on */
    enum sy_code rc;
};

enum sy_code
inner_add_words(struct strv *ret, const struct script_word *words, size_t n)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        bool is_made = (words[i].flags & WORD_DYNAMIC) != 0;

        rc = strv_addf(ret, "%s%s", is_made ? INNER_MADE_BY_SHELL : "", words[i].text);
    }
    return rc;
}

static enum sy_code
add(struct inner *h, const struct script_word *words, size_t n)
{
    struct strv one = {.max = LIMIT_ARGV};
    struct strv *v = NULL;
    size_t size = 0;
    enum sy_code rc = inner_add_words(&one, words, n);

    if (rc == SY_E_OK) {
        v = size_mul(&size, h->n + 1, sizeof(*v)) ? mem_realloc(h->v, size) : NULL;
        rc = v != NULL ? SY_E_OK : SY_E_NOMEM;
    }
    if (rc != SY_E_OK) {
        strv_fini(&one);
        return rc;
    }
    h->v = v;
    h->v[h->n++] = one;
    return rc;
}

static void
on_seen(void *arg, unsigned depth, const struct script_word *words, size_t n)
{
    struct search *s = arg;

    if (s->rc == SY_E_OK && depth >= s->depth) {
        s->rc = add(s->found, words, n);
    }
}

enum sy_code
inner_find(struct inner *ret, const struct judge_world *world, char *const *argv, bool is_script,
           struct sy_error *err)
{
    struct search s = {.found = ret, .depth = is_script ? 2 : 1};
    enum sy_code rc = danger_walk(world, argv, on_seen, &s, err);

    if (rc == SY_E_OK && s.rc != SY_E_OK) {
        rc = s.rc == SY_E_LIMIT
                 ? sy_err_set(err, s.rc, "a command has more than %u words", LIMIT_ARGV)
                 : sy_err_nomem(err);
    }
    return rc;
}

void
inner_fini(struct inner *h)
{
    for (size_t i = 0; h->v != NULL && i < h->n; i++) {
        strv_fini(&h->v[i]);
    }
    mem_free(h->v);
    *h = (struct inner){0};
}
