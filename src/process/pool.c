#include "process/pool.h"

#include <fcntl.h>

#include "base/fd.h"
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

/* In the way that is given, but for the template. */
static enum sy_code
make(struct process_pool *pool, struct process **ret, const struct sandbox_base *base,
     struct process_way way, struct sy_error *err)
{
    enum sy_code rc = SY_E_NOTFOUND;

    if (base != NULL && base->template != NULL) {
        return process_prepare_in(ret, base, way.stdio, way.has_terminal, err);
    }
    bool may_share =
        pool->uses_templates && base != NULL && base->program != NULL && !base->is_observed;

    /* Without a filter there is nothing to share, and a keeper must not be observed: nobody would
     * answer it once the engine is gone. A template that is gone is replaced once. */
    for (int i = 0; i < 2 && may_share; i++) {
        size_t place = 0;

        rc = find_template(pool, &place, base, err);
        if (rc == SY_E_OK) {
            way.template = pool->templates[place];
            rc = process_prepare_by(ret, base, &way, err);
        }
        if (rc != SY_E_NOTFOUND) {
            break;
        }
        template_unref(pool->templates[place]);
        pool->templates[place] = NULL;
    }
    way.template = NULL;
    return rc == SY_E_NOTFOUND ? process_prepare_by(ret, base, &way, err) : rc;
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
    if (make(pool, &pool->spare, base, (struct process_way){0}, NULL) != SY_E_OK) {
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

static void
join(struct process_pool *pool, struct process *p)
{
    p->pool = pool;
    p->next = pool->first;
    pool->first = p;
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
        enum sy_code rc = make(pool, &p, base, (struct process_way){0}, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    join(pool, p);
    *ret = p;
    return SY_E_OK;
}

enum sy_code
process_pool_make_terminal(struct process_pool *pool, struct process **ret,
                           const struct sandbox_base *base, const int stdio[3],
                           struct sy_error *err)
{
    const struct process_way way = {.stdio = stdio, .has_terminal = true};
    enum sy_code rc = make(pool, ret, base, way, err);

    if (rc == SY_E_OK) {
        join(pool, *ret);
    }
    return rc;
}

static bool
shares_with(const struct process *p, const struct process *other)
{
    return other != p && other->has_terminal && other->has_template_listener &&
           other->template_number == p->template_number;
}

bool
process_pool_listens(const struct process *p)
{
    for (const struct process *o = p->pool != NULL ? p->pool->first : NULL; o != NULL;
         o = o->next) {
        if (shares_with(p, o) && o->listener_fd >= 0) {
            return true;
        }
    }
    return false;
}

/* Who gets p's descriptor: one who can be told, else the next best, who looks once something else
 * wakes it. NULL: nobody else needs it. */
static struct process *
heir_of(const struct process *p)
{
    struct process *deaf = NULL;

    for (struct process *o = p->pool->first; o != NULL; o = o->next) {
        if (!shares_with(p, o) || o->has_ended || o->listener_fd >= 0) {
            continue;
        }
        if (process_rouse(o)) {
            return o;
        }
        deaf = o;
    }
    return deaf;
}

void
process_pool_hand_on(struct process *p)
{
    const bool has_it = p->pool != NULL && p->has_terminal && p->has_template_listener &&
                        p->listener_fd >= 0 && !process_pool_listens(p);
    struct process *heir = has_it ? heir_of(p) : NULL;

    if (heir != NULL) {
        /* A number of its own, since p's is watched until its owner looks; but that is better
         * than none. */
        heir->listener_fd = fcntl(p->listener_fd, F_DUPFD_CLOEXEC, 0);
        if (heir->listener_fd < 0) {
            heir->listener_fd = fd_take(&p->listener_fd);
        }
        process_leave_listener(p);
    }
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
