#ifndef SY_CLI_FRONT_MUSL_H
#define SY_CLI_FRONT_MUSL_H

/* What musl before 1.2.5 lacks. The build puts it in front of every source of
 * the small program: statx(2), as glibc declares it. */
#include <sys/stat.h>

#ifndef STATX_BASIC_STATS

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
