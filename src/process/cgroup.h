#ifndef SY_PROCESS_CGROUP_H
#define SY_PROCESS_CGROUP_H

#include <stddef.h>

#include "base/err.h"
#include "process/resource.h"

/*
 * Control groups, one for a command whose limits of memory or processes they can
 * hold. Chosen by a try, once per engine: an ordinary user has them only
 * where somebody delegated a part of the tree.
 */
struct cgroup_home;

/*
 * Finds where groups can be made: by making one, limiting it, moving a task
 * into it and removing it. Also removes what engines that are gone left
 * behind. `mountinfo` and `own`: /proc/self/mountinfo and /proc/self/cgroup, or NULL
 * for those. SY_E_NOTFOUND, and a sentence why, where there is no such place.
 */
enum sy_code cgroup_home_new(struct cgroup_home **ret, const char *mountinfo, const char *own,
                             struct sy_error *err) SY_NODISCARD;
/* Its groups must be freed before. NULL is nothing. */
void cgroup_home_free(struct cgroup_home *home);
/* How RESOURCE_MEMORY or RESOURCE_PROCESSES is held there. NULL: absent. */
enum resource_means cgroup_home_means(const struct cgroup_home *home, enum resource r);

struct cgroup;

/* A group with those of the limits that its home can hold. */
enum sy_code cgroup_new(struct cgroup **ret, struct cgroup_home *home,
                        const struct resource_limits *limits, struct sy_error *err) SY_NODISCARD;
/* Removes it: nobody may be left inside. NULL is nothing. */
void cgroup_free(struct cgroup *g);

/* Descriptors by which a process enters: it writes "0" to each. Returns how many. */
#define CGROUP_PLACES 2
size_t cgroup_entrances(const struct cgroup *g, int ret[CGROUP_PLACES]);
/* Their directories, absolute, in the order of the descriptors; borrowed. */
void cgroup_paths(const struct cgroup *g, const char *ret[CGROUP_PLACES]);
/* Who holds that limit of this group. */
enum resource_means cgroup_means(const struct cgroup *g, enum resource r);
/* Has the kernel killed or refused somebody for it? */
bool cgroup_was_hit(const struct cgroup *g, enum resource r);
/* SIGKILL to all inside at once, where the kernel can (v2, 5.14). */
void cgroup_kill(const struct cgroup *g);

#endif
