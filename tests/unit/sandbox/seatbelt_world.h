#ifndef SY_TESTS_UNIT_SANDBOX_SEATBELT_WORLD_H
#define SY_TESTS_UNIT_SANDBOX_SEATBELT_WORLD_H

#include <stdbool.h>

#include "sandbox/macos/seatbelt.h"
#include "sbpl.h"

/* A policy, its plan, and the profile read back. */
struct world {
    struct sandbox_policy policy;
    struct elsewhere_request request;
    struct seatbelt_plan plan;
    struct sbpl *sbpl;
};

/* The workspace /Users/u/work with the root /Users/u/cache, $TMPDIR and /tmp. */
struct sandbox_policy world_policy(void);
extern char world_cwd[];
/* /Users/u/.ssh and /Users/u/work/keys/private/id. */
extern char *world_secrets[];

/* Plans and reads; the test fails if either does. */
void world_make(struct world *w);
void world_fini(struct world *w);
/* The test fails if it is otherwise. */
void world_allows(const struct world *w, const char *operation, const char *path);
void world_denies(const struct world *w, const char *operation, const char *path);
bool world_connects(const struct world *w, const char *operation, const char *address);
bool world_uses_socket(const struct world *w, const char *operation, const char *path);

#endif
