#include "process/resource.h"

static const struct {
    const char *name;
    const char *key;
    const char *unit;
} resources[] = {
#define RESOURCE_ROW(id, name, key, unit) [id] = {name, key, unit},
    RESOURCES(RESOURCE_ROW)
#undef RESOURCE_ROW
};

static const char *const means_names[] = {
    [MEANS_ABSENT] = "absent", [MEANS_CGROUP_V2] = "cgroup v2", [MEANS_CGROUP_V1] = "cgroup v1",
    [MEANS_RLIMIT] = "rlimit", [MEANS_SAMPLING] = "sampling",   [MEANS_ENGINE] = "engine",
    [MEANS_TMPFS] = "tmpfs",
};

const char *
resource_name(enum resource r)
{
    return resources[r].name;
}

const char *
resource_key(enum resource r)
{
    return resources[r].key;
}

const char *
resource_unit(enum resource r)
{
    return resources[r].unit;
}

const char *
resource_means_name(enum resource_means m)
{
    return means_names[m];
}
