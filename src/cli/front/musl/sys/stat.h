/* For musl alone, which does not have statx(2) before 1.2.5: its <sys/stat.h>
 * and the call as glibc declares it. Found before the C library's own. */
#ifndef SY_CLI_FRONT_MUSL_SYS_STAT_H
#define SY_CLI_FRONT_MUSL_SYS_STAT_H

#include_next <sys/stat.h>

#ifndef STATX_BASIC_STATS

#    include <linux/stat.h>
#    include <sys/syscall.h>
#    include <unistd.h>

static inline int
statx(int dir_fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, dir_fd, path, flags, mask, ret);
}

#endif

#endif
