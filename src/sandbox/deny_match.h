#ifndef SY_SANDBOX_DENY_MATCH_H
#define SY_SANDBOX_DENY_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Which names of one directory are wanted by a set of patterns, and what is
 * wanted below them. Pure; a directory is compared once with all patterns.
 */

/* What of a pattern is still to come, below some directory. Borrows its text. */
struct deny_want {
    const char *rest; /* one or more components, no '/' in front */
    size_t rule;      /* number (deny.h) */
};

struct deny_wants {
    struct deny_want *v;
    size_t n;
    size_t cap;
};

/* Makes room for `more`, so that it does not grow step by step. */
enum sy_code deny_wants_reserve(struct deny_wants *w, size_t more) SY_NODISCARD;
enum sy_code deny_wants_add(struct deny_wants *w, const char *rest, size_t rule) SY_NODISCARD;
void deny_wants_fini(struct deny_wants *w);

/* The wants with the same first component. */
struct deny_group {
    const char *name;
    uint32_t first;
    uint32_t n;
    uint16_t len;
    bool is_plain;
    bool is_deep; /* "**": wants its directories, and what stands behind in each */
};

struct deny_names {
    struct deny_wants wants; /* in the order of their components */
    struct deny_group *groups;
    size_t n_groups;
    bool is_plain; /* no group has a wildcard */
};

/* A component sorts by its bytes, and before what goes on behind it. */
int deny_order(const char *a, const char *b);

/* Takes the wants (leaves none), also when it fails. */
enum sy_code deny_names_init(struct deny_names *ret, struct deny_wants *wants) SY_NODISCARD;
void deny_names_fini(struct deny_names *n);

struct deny_hit {
    bool is_wanted; /* the object itself, by */
    size_t rule;    /* this one */
    bool is_home;   /* the defaults of this home are wanted below it (not in `below` yet) */
    size_t home;
    struct deny_wants below; /* and what is wanted below it; emptied first */
};

enum sy_code deny_names_match(const struct deny_names *n, const char *name,
                              struct deny_hit *ret) SY_NODISCARD;

#endif
