#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/openat2.h>
#include <linux/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "guard/guard_internal.h"

#define NS_PER_S 1000000000LL

/* Without openat2(2): component by component. */
static int
open_stepwise(int root_fd, const char *relative, int flags)
{
    char name[LIMIT_PATH];
    SY_FD at = -1;
    const char *rest = relative;

    for (;;) {
        size_t len = strcspn(rest, "/");
        bool is_last = rest[len] == '\0';

        if (len == 0 || len >= sizeof(name)) {
            return -EINVAL;
        }
        memcpy(name, rest, len);
        name[len] = '\0';
        if (strcmp(name, "..") == 0) {
            return -EXDEV;
        }

        int next =
            openat(at >= 0 ? at : root_fd, name,
                   is_last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (next < 0) {
            return -errno;
        }
        if (is_last) {
            return next;
        }
        fd_close(&at);
        at = next;
        rest += len + 1;
    }
}

int
open_below(int root_fd, const char *relative, int flags)
{
    static bool has_no_openat2;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    if (!has_no_openat2) {
        long fd = syscall(SYS_openat2, root_fd, relative, &how, sizeof(how));

        if (fd >= 0) {
            return (int)fd;
        }
        if (errno != ENOSYS && errno != EPERM) {
            return -errno;
        }
        /* An outer filter may say EPERM for the call; a file would say EACCES. */
        has_no_openat2 = errno == ENOSYS;
    }
    return open_stepwise(root_fd, relative, flags | O_CLOEXEC);
}

int
node_open(const struct guard *g, const struct guard_node *node, int flags)
{
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    size_t root = 0;
    enum sy_code rc = node_relative(&path, node, &root);

    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? -ENOMEM : -ENAMETOOLONG;
    }
    return open_below(g->root_fds[root], buf_view(&path), flags);
}

static int64_t
ns_of(const struct statx_timestamp *t)
{
    return t->tv_sec * NS_PER_S + t->tv_nsec;
}

int
ident_read(struct guard_ident *ret, int dir_fd, const char *name)
{
    struct statx st;

    if (syscall(SYS_statx, dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH,
                STATX_BASIC_STATS | STATX_BTIME, &st) != 0) {
        return errno;
    }
    *ret = (struct guard_ident){
        .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
        .ino = st.stx_ino,
        .btime_ns = (st.stx_mask & STATX_BTIME) != 0 ? ns_of(&st.stx_btime) : 0,
        .mode = st.stx_mode,
        .uid = st.stx_uid,
        .gid = st.stx_gid,
        .size = (int64_t)st.stx_size,
        .mtime_ns = ns_of(&st.stx_mtime),
        .ctime_ns = ns_of(&st.stx_ctime),
    };
    return 0;
}

bool
ident_equal(const struct guard_ident *a, const struct guard_ident *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->btime_ns == b->btime_ns &&
           a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}
