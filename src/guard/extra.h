#ifndef SY_GUARD_EXTRA_H
#define SY_GUARD_EXTRA_H

#include "guard/guard_internal.h"

/* Links that are followed from one to the next. */
#define EXTRA_LINKS_MAX 8

/* What a link at `path` means by its target. */
enum sy_code extra_beside(struct buf *ret, const char *path, const char *target) SY_NODISCARD;
/* Protects the path (absolute) as `like` says, and links on the way to it. Nothing to do for one
 * outside of the roots, or that holds a root. */
enum sy_code extra_add(struct guard *g, const struct guard_extra *like,
                       const char *path) SY_NODISCARD;
/* All of the owner's but those of links. */
void extra_drop_named(struct guard *g, const struct guard_node *owner);

#endif
