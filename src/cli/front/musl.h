#ifndef SY_CLI_FRONT_MUSL_H
#define SY_CLI_FRONT_MUSL_H

/*
 * What musl lacks. The build puts it in front of every source of the small program: statx(2), as
 * glibc declares it. musl has none before 1.2.5, and then one that knows no mount (stx_mnt_id,
 * Linux 5.8): the kernel's own header has all of it.
 */
#include <features.h>

#ifndef __GLIBC__

#    define statx           sy_musl_statx
#    define statx_timestamp sy_musl_statx_timestamp
#    include <sys/stat.h>
#    undef statx
#    undef statx_timestamp

#    include <sys/syscall.h>
#    include <unistd.h>

#    include <linux/stat.h>

static inline int
statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, dir_fd, path, flags, mask, ret);
}

#endif

#endif
