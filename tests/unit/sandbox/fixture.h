#ifndef SY_TESTS_UNIT_SANDBOX_FIXTURE_H
#define SY_TESTS_UNIT_SANDBOX_FIXTURE_H

#include <stdbool.h>

#include "sandbox/sandbox.h"

/*
 * A place with a workspace "W" and an outside "O" in a fresh directory. /tmp
 * and $TMPDIR are excluded from the policy, so that O is outside wherever the
 * directory is.
 */
struct place {
    char base[256];
    struct sandbox_policy policy; /* workspace-write, cwd = W */
    struct sandbox_caps caps;     /* of this kernel; change them before place_ready */
    struct sandbox_plan *plan;
    struct sandbox_ready *ready;
};

/* For cmocka: *state becomes the place. */
int place_setup(void **state);
int place_teardown(void **state);

/* base + "/" + name, in a buffer that lasts until the 32nd later call. */
const char *place_path(const struct place *p, const char *name);
void place_mkdir(const struct place *p, const char *name);
void place_file(const struct place *p, const char *name, const char *text);
void place_link(const struct place *p, const char *target, const char *name);
void place_add_root(struct place *p, const char *path);
/* Makes plan and ready, or gives the error. */
enum sy_code place_try(struct place *p, struct sy_error *err);
void place_ready(struct place *p);
/* What explain says, or a failed test. */
struct sandbox_explanation place_ask(const struct place *p, enum sandbox_operation op,
                                     const char *object);

/*
 * Runs `act` in a child of ours, inside the sandbox or (as the positive
 * control) outside; gives back what it returned: 0 or an errno value.
 * 1000 + signal if it was ended by one.
 */
typedef int place_act(const void *arg);
int place_run(const struct place *p, bool is_inside, place_act *act, const void *arg);

#endif
