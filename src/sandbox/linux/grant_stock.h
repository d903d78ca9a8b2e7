#ifndef SY_SANDBOX_LINUX_GRANT_STOCK_H
#define SY_SANDBOX_LINUX_GRANT_STOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a ruleset was made of, kept open: a ruleset can't be copied, but the next one of the same
 * plan needs no name to be looked up again. Descriptors are dear to whoever has only some, so it is
 * kept for a moment alone (sandbox_ready_rest), and not where it would be many of those that we may
 * have.
 */
struct grant {
    int fd;
    uint64_t access;
};

struct grant_stock {
    struct grant *v;
    size_t n;
    size_t max;       /* that v has room for */
    bool is_short;    /* something had no room: it is of no use */
    bool is_kept;     /* all that there is to grant */
    uint64_t used_ns; /* when a ruleset was last made; 0: never */
};

/* Takes a descriptor over. False: there is no room, and it stays the caller's. */
bool grant_stock_take(struct grant_stock *s, int fd, uint64_t access);
/* Grants all of it by a ruleset. 0, or a negative errno value. */
long grant_stock_grant(const struct grant_stock *s, int ruleset_fd);
/* Closes all of it. */
void grant_stock_close(struct grant_stock *s);
void grant_stock_free(struct grant_stock *s);

#endif
