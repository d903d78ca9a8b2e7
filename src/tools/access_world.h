#ifndef SY_TOOLS_ACCESS_WORLD_H
#define SY_TOOLS_ACCESS_WORLD_H

#include "config/config.h"
#include "sandbox/access.h"

/* What access_judge looks after, on this machine. */
struct access_surroundings {
    struct strv homes;
    struct strv own;
    struct strv programs;
    struct strv protected;
    struct access_world world; /* of these lists */
};

void access_surroundings_fini(struct access_surroundings *s);
enum sy_code access_surroundings_find(struct access_surroundings *ret, const struct config *config,
                                      const struct sandbox_policy *policy,
                                      char *const *environ_list, struct sy_error *err) SY_NODISCARD;

#endif
