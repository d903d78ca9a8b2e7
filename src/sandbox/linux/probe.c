#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/seccomp.h>

#include "sandbox/linux/raw_syscall.h"
#include "sandbox/sandbox_internal.h"

static bool
has_action(uint32_t action)
{
    return sy_raw3(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, sy_raw_ptr(&action)) == 0;
}

void
sandbox_probe(struct sandbox_caps *ret)
{
    struct utsname name;
    long abi = landlock_abi();
    long errata = abi > 0 ? landlock_errata() : 0;

    *ret = (struct sandbox_caps){
        .landlock_abi = abi > 0 ? (int)abi : 0,
        .landlock_errno = abi < 0 ? (int)-abi : 0,
        .landlock_errata = errata > 0 ? (uint32_t)errata : 0,
        .has_seccomp_filter = has_action(SECCOMP_RET_ERRNO) && has_action(SECCOMP_RET_KILL_PROCESS),
        .has_seccomp_notify = has_action(SECCOMP_RET_USER_NOTIF),
        /* A descriptor number that nobody has: closes nothing. */
        .has_close_range = sy_raw3(SYS_close_range, 0xffffffffL, 0xffffffffL, 0) == 0,
    };
    if (uname(&name) == 0) {
        (void)snprintf(ret->release, sizeof(ret->release), "%.64s", name.release);
    }
}

/* Writes one of the maps of a fresh user namespace, in its only process. */
static bool
write_map(const char *path, const char *text, size_t n)
{
    long fd = sy_raw4(SYS_openat, AT_FDCWD, sy_raw_ptr(path), O_WRONLY | O_CLOEXEC, 0);

    return fd >= 0 && sy_raw3(SYS_write, fd, sy_raw_ptr(text), (long)n) == (long)n;
}

/*
 * Not by a sysctl, and not by clone alone: some distributions let the
 * namespace come into being and refuse what makes it useful.
 */
static bool
has_user_namespaces(void)
{
    char uid_map[32];
    int n = snprintf(uid_map, sizeof(uid_map), "0 %u 1\n", (unsigned)geteuid());
    /* No exit signal: the caller's SIGCHLD handler is not told of our child. */
    long pid = sy_raw5(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS, 0, 0, 0, 0);
    int status = 0;
    long r = 0;

    if (pid == 0) {
        bool is_usable =
            write_map("/proc/self/setgroups", "deny", 4) &&
            write_map("/proc/self/uid_map", uid_map, (size_t)n) &&
            sy_raw5(SYS_mount, 0, sy_raw_ptr("/"), 0, 0x44000 /* private, rec */, 0) == 0;

        (void)sy_raw1(SYS_exit_group, is_usable ? 0 : 1);
    }
    if (pid < 0) {
        return false;
    }
    do {
        r = sy_raw4(SYS_wait4, pid, sy_raw_ptr(&status), __WALL, 0);
    } while (r == -EINTR);
    return r == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void
sandbox_probe_deep(struct sandbox_caps *ret)
{
    sandbox_probe(ret);
    ret->has_user_namespaces = has_user_namespaces();
}
