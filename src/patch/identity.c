/*
 * Files as another user has them, for one thread: system calls and not the functions of the C
 * library, which would change all threads.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "patch/patch_internal.h"

/* Says nothing about success: what is set is read back by a call that sets nothing. */
static uint32_t
set_fs(long call, uint32_t id)
{
    (void)syscall(call, id);
    return (uint32_t)syscall(call, UINT32_MAX);
}

void
identity_leave(struct identity *was)
{
    if (was->has_changed) {
        /* The user first: it gives back the rights for the rest. */
        bool is_back = set_fs(SYS_setfsuid, was->uid) == was->uid &&
                       set_fs(SYS_setfsgid, was->gid) == was->gid &&
                       syscall(SYS_setgroups, was->n_groups, was->groups) == 0;

        SY_ASSERT(is_back);
    }
    mem_free(was->groups);
    *was = (struct identity){0};
}

enum sy_code
identity_enter(struct identity *was, const struct patch_world *world, struct sy_error *err)
{
    long n = 0;

    *was = (struct identity){0};
    if (!world->changes_identity) {
        return SY_E_OK;
    }
    n = syscall(SYS_getgroups, 0, NULL);
    was->groups = mem_alloc_zero(n > 0 ? (size_t)n : 1, sizeof(*was->groups));
    if (was->groups == NULL) {
        return sy_err_nomem(err);
    }
    n = syscall(SYS_getgroups, n, was->groups);
    was->n_groups = n > 0 ? (size_t)n : 0;
    was->uid = (uint32_t)syscall(SYS_setfsuid, UINT32_MAX);
    was->gid = (uint32_t)syscall(SYS_setfsgid, UINT32_MAX);
    was->has_changed = true;
    if (syscall(SYS_setgroups, 0, NULL) != 0 || set_fs(SYS_setfsgid, world->gid) != world->gid ||
        set_fs(SYS_setfsuid, world->uid) != world->uid) {
        identity_leave(was);
        return sy_err_set(err, SY_E_DENIED,
                          "the patch can't be applied as the owner of the workspace (user %u)",
                          world->uid);
    }
    return SY_E_OK;
}
