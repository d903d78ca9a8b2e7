#ifndef SY_PROCESS_CGROUP_INTERNAL_H
#define SY_PROCESS_CGROUP_INTERNAL_H

#include "process/cgroup.h"

/* A directory of one hierarchy, in which groups can be made. */
struct cgroup_place {
    char *path;
    int dir_fd;
    enum resource_means means;
    bool holds[RESOURCE_COUNT];
};

struct cgroup_home {
    struct cgroup_place places[CGROUP_PLACES];
    size_t n;
};

/* Makes a group, limits it, moves a task into it, removes it. */
enum sy_code cgroup_place_try(const struct cgroup_place *place, struct sy_error *err) SY_NODISCARD;
/* Removes what engines that are gone left behind. */
void cgroup_place_clear(const struct cgroup_place *place);

#endif
