#ifndef SY_SANDBOX_LINUX_READY_H
#define SY_SANDBOX_LINUX_READY_H

#include "sandbox/linux/deny_expand.h"
#include "sandbox/linux/grant_stock.h"
#include "sandbox/linux/seccomp_program.h"
#include "sandbox/linux/walk.h"
#include "sandbox/sandbox_internal.h"

/* A rule's path as it was when the ruleset was made. */
struct ready_root {
    char *path; /* as the plan names it */
    char *real; /* without links; NULL: skipped */
    struct file_id id;
    bool is_device;
    bool is_skipped; /* did not exist, and did not have to */
};

struct sandbox_ready {
    int ruleset_fd; /* -1: nothing to enforce */
    struct sandbox_base base;
    struct ready_root *roots;
    size_t n_roots;
    uint64_t handled_fs; /* of the plan's rights, those that the ruleset handles */
    struct deny_view denied;
    bool hides_by_mount;       /* `denied` is for mounts */
    struct strv unheld;        /* what of it is not held, as sandbox_ready_unheld tells it */
    struct grant_stock *stock; /* for rulesets with a terminal (ready_terminal.c); NULL: none */
};

/* Rights on a root by a ruleset; of those, what a file can have. */
enum sy_code ready_allow_root(int ruleset_fd, int fd, uint64_t access, bool is_dir,
                              const char *name, struct sy_error *err) SY_NODISCARD;
/* ready_deny.c: finds what is denied, by the walked rules of the plan. */
enum sy_code ready_deny_find(struct sandbox_ready *ready, const struct sandbox_plan *plan,
                             const struct walk *walks, struct sy_error *err) SY_NODISCARD;
/* SY_E_SANDBOX where Landlock is to hold a plan and something lies below a root that it can't hold
 * there: a root is granted with all that is in it. */
enum sy_code ready_check_roots(const struct sandbox_plan *plan, const struct deny_view *v,
                               const struct strv *roots, struct sy_error *err) SY_NODISCARD;
/* Looks for that anew. True: it is what it was, and mounts hide it still. */
bool ready_deny_renew(struct sandbox_ready *ready, const struct sandbox_plan *plan);
/* What is denied and exists: what mounts have to hide, where they do it. */
const struct deny_view *ready_denied(const struct sandbox_ready *ready);
/* What a plan denies. Borrows both. */
struct deny_request deny_request_of(const struct sandbox_plan *plan, const struct strv *roots);
/* Roots of a plan as deny_expand wants them. */
enum sy_code ready_deny_roots(struct strv *ret, const struct sandbox_plan *plan,
                              const struct walk *walks) SY_NODISCARD;

#endif
