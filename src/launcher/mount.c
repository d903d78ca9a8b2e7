/* Mount calls by descriptor (5.2, 5.12); no C library wraps them for all our systems. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/launcher_internal.h"
#include "sandbox/linux/walk.h"

#ifndef OPEN_TREE_CLONE
#    define OPEN_TREE_CLONE 1U
#endif
#ifndef OPEN_TREE_CLOEXEC
#    define OPEN_TREE_CLOEXEC ((unsigned)O_CLOEXEC)
#endif
#ifndef AT_RECURSIVE
#    define AT_RECURSIVE 0x8000
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#    define MOVE_MOUNT_F_EMPTY_PATH 0x00000004U
#endif
#ifndef MOVE_MOUNT_T_EMPTY_PATH
#    define MOVE_MOUNT_T_EMPTY_PATH 0x00000040U
#endif

/* linux/mount.h clashes with sys/mount.h. */
struct attributes {
    uint64_t set;
    uint64_t clear;
    uint64_t propagation;
    uint64_t userns_fd;
};

int
mount_clone_fd(int fd, bool with_below)
{
    long got = syscall(SYS_open_tree, fd, "",
                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
                           (with_below ? AT_RECURSIVE : 0U));

    return got < 0 ? -errno : (int)got;
}

int
mount_clone(const char *path, bool with_below)
{
    SY_FD fd = walk_open(path);

    return fd < 0 ? fd : mount_clone_fd(fd, with_below);
}

int
mount_restrict(int mount_fd, uint64_t attributes, bool with_below)
{
    const struct attributes a = {.set = attributes};

    return syscall(SYS_mount_setattr, mount_fd, "",
                   AT_EMPTY_PATH | (with_below ? AT_RECURSIVE : 0U), &a, sizeof(a)) == 0
               ? 0
               : -errno;
}

int
mount_put_fd(int mount_fd, int target_fd)
{
    return syscall(SYS_move_mount, mount_fd, "", target_fd, "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0
               ? 0
               : -errno;
}

int
mount_put(int mount_fd, const char *path)
{
    SY_FD fd = walk_open(path);

    return fd < 0 ? fd : mount_put_fd(mount_fd, fd);
}
