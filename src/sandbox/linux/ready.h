#ifndef SY_SANDBOX_LINUX_READY_H
#define SY_SANDBOX_LINUX_READY_H

#include "sandbox/linux/seccomp_program.h"
#include "sandbox/linux/walk.h"
#include "sandbox/sandbox_internal.h"

/* A rule's path as it was when the ruleset was made. */
struct ready_root {
    char *path; /* as the plan names it */
    struct file_id id;
    bool is_device;
    bool is_skipped; /* did not exist, and did not have to */
};

struct sandbox_ready {
    int ruleset_fd; /* -1: nothing to enforce */
    struct sandbox_base base;
    struct ready_root *roots;
    size_t n_roots;
};

#endif
