#include "sandbox/linux/grant_stock.h"

#include <sys/resource.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "sandbox/linux/landlock.h"

/* Of the descriptors that we may have, one of as many. */
#define SHARE 8

static size_t
room(void)
{
    struct rlimit limit = {0};

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    return limit.rlim_cur / SHARE < LIMIT_GRANT_STOCK ? (size_t)limit.rlim_cur / SHARE
                                                      : LIMIT_GRANT_STOCK;
}

static bool
grow(struct grant_stock *s)
{
    const size_t most = room();
    size_t wanted = s->max == 0 ? 64 : s->max * 2;

    wanted = wanted < most ? wanted : most;

    struct grant *v = wanted > s->n ? mem_realloc(s->v, wanted * sizeof(s->v[0])) : NULL;

    if (v == NULL) {
        return false;
    }
    s->v = v;
    s->max = wanted;
    return true;
}

bool
grant_stock_take(struct grant_stock *s, int fd, uint64_t access)
{
    if (s->is_short || (s->n == s->max && !grow(s))) {
        s->is_short = true;
        return false;
    }
    s->v[s->n++] = (struct grant){.fd = fd, .access = access};
    return true;
}

long
grant_stock_grant(const struct grant_stock *s, int ruleset_fd)
{
    for (size_t i = 0; i < s->n; i++) {
        long added = landlock_allow_beneath(ruleset_fd, s->v[i].fd, s->v[i].access);

        if (added < 0) {
            return added;
        }
    }
    return 0;
}

void
grant_stock_close(struct grant_stock *s)
{
    for (size_t i = 0; i < s->n; i++) {
        fd_close(&s->v[i].fd);
    }
    mem_free(s->v);
    s->v = NULL;
    s->n = 0;
    s->max = 0;
    s->is_kept = false;
}

void
grant_stock_free(struct grant_stock *s)
{
    if (s != NULL) {
        grant_stock_close(s);
        mem_free(s);
    }
}
