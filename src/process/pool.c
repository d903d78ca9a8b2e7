#include "process/pool.h"

#include "base/mem.h"
#include "process/ancestry.h"
#include "process/process_internal.h"

/* Network off with and without a broker, by an allow list, on. */
#define POOL_TEMPLATES 4

struct process_pool {
    bool uses_templates;
    struct template *templates[POOL_TEMPLATES]; /* one per base, in no order */
    size_t next_place;
    struct process *spare;
    struct process *first; /* all that are in use */
};

enum sy_code
process_pool_new(struct process_pool **ret, bool uses_templates, struct sy_error *err)
{
    struct process_pool *pool = mem_alloc_zero(1, sizeof(*pool));

    if (pool == NULL) {
        return sy_err_nomem(err);
    }
    pool->uses_templates = uses_templates;
    *ret = pool;
    return SY_E_OK;
}

void
process_pool_free(struct process_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    SY_ASSERT(pool->first == NULL);
    process_free(pool->spare);
    for (size_t i = 0; i < POOL_TEMPLATES; i++) {
        template_unref(pool->templates[i]);
    }
    mem_free(pool);
}

/* The place of the template for a base, filled if need be. */
static enum sy_code
find_template(struct process_pool *pool, size_t *ret, const struct sandbox_base *base,
              struct sy_error *err)
{
    size_t place = pool->next_place;

    for (size_t i = 0; i < POOL_TEMPLATES; i++) {
        struct template *t = pool->templates[i];

        if (t != NULL && sandbox_base_equal(template_base(t), base)) {
            *ret = i;
            return SY_E_OK;
        }
        if (t == NULL && pool->templates[place] != NULL) {
            place = i;
        }
    }

    struct template *made = NULL;
    enum sy_code rc = template_start(&made, base, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    template_unref(pool->templates[place]);
    pool->templates[place] = made;
    pool->next_place = (place + 1) % POOL_TEMPLATES;
    *ret = place;
    return SY_E_OK;
}

static enum sy_code
make(struct process_pool *pool, struct process **ret, const struct sandbox_base *base,
     struct sy_error *err)
{
    enum sy_code rc = SY_E_NOTFOUND;

    if (base != NULL && base->template != NULL) {
        const struct process_way way = {.template = base->template};

        rc = process_prepare_by(ret, base, &way, err);
        return rc == SY_E_NOTFOUND
                   ? sy_err_set(err, SY_E_SANDBOX,
                                "the sandbox's process was killed just now: call once more")
                   : rc;
    }
    bool may_share =
        pool->uses_templates && base != NULL && base->program != NULL && !base->is_observed;

    /* Without a filter there is nothing to share, and a keeper must not be observed: nobody would
     * answer it once the engine is gone. A template that is gone is replaced once. */
    for (int i = 0; i < 2 && may_share; i++) {
        size_t place = 0;

        rc = find_template(pool, &place, base, err);
        if (rc == SY_E_OK) {
            const struct process_way way = {.template = pool->templates[place]};

            rc = process_prepare_by(ret, base, &way, err);
        }
        if (rc != SY_E_NOTFOUND) {
            break;
        }
        template_unref(pool->templates[place]);
        pool->templates[place] = NULL;
    }
    return rc == SY_E_NOTFOUND ? process_prepare(ret, base, err) : rc;
}

void
process_pool_make_spare(struct process_pool *pool, const struct sandbox_base *base)
{
    if (pool->spare != NULL && process_is_prepared(pool->spare, base)) {
        if (base != NULL) {
            process_set_base(pool->spare, base);
        }
        return;
    }
    process_free(pool->spare);
    pool->spare = NULL;
    if (make(pool, &pool->spare, base, NULL) != SY_E_OK) {
        pool->spare = NULL;
    }
}

void
process_pool_give_way(struct process_pool *pool)
{
    if (pool->spare != NULL) {
        process_give_way(pool->spare);
    }
}

enum sy_code
process_pool_take(struct process_pool *pool, struct process **ret, const struct sandbox_base *base,
                  struct sy_error *err)
{
    struct process *p = pool->spare;

    pool->spare = NULL;
    if (p != NULL && !process_is_prepared(p, base)) {
        process_free(p);
        p = NULL;
    }
    if (p == NULL) {
        enum sy_code rc = make(pool, &p, base, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    p->pool = pool;
    p->next = pool->first;
    pool->first = p;
    *ret = p;
    return SY_E_OK;
}

void
process_pool_forget(struct process *p)
{
    if (p->pool == NULL) {
        return;
    }
    for (struct process **at = &p->pool->first; *at != NULL; at = &(*at)->next) {
        if (*at == p) {
            *at = p->next;
            break;
        }
    }
    p->pool = NULL;
}

static bool
is_keeper_of_pool(const void *arg, pid_t pid)
{
    const struct process_pool *pool = arg;

    for (const struct process *p = pool->first; p != NULL; p = p->next) {
        if (process_keeper(p) == pid) {
            return true;
        }
    }
    return false;
}

struct process *
process_pool_find(struct process_pool *pool, pid_t keeper)
{
    for (struct process *p = pool->first; p != NULL; p = p->next) {
        if (process_keeper(p) == keeper) {
            return p;
        }
    }
    return NULL;
}

pid_t
process_pool_owner(const struct process_pool *pool, pid_t caller)
{
    return ancestry_find(caller, is_keeper_of_pool, pool);
}
