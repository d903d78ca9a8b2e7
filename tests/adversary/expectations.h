#ifndef SY_TESTS_ADVERSARY_EXPECTATIONS_H
#define SY_TESTS_ADVERSARY_EXPECTATIONS_H

#include <errno.h>

/* What each act of the probe must come to, inside a sandbox (workspace-write,
 * network off) and outside. */
enum { ANY = -1 }; /* any failure */

enum control {
    WORKS,      /* outside: 0 */
    DIFFERS,    /* outside: another outcome than inside */
    PRIVILEGED, /* as DIFFERS, for root; others are refused by the kernel anyway */
    NAMESPACES, /* as WORKS, where user namespaces are to be had */
    NONE        /* this kernel may not have it at all */
};

struct expectation {
    const char *name;
    int inside; /* 0: must work */
    enum control control;
    int since_abi; /* before this ABI nothing is promised */
};

static const struct expectation expectations[] = {
    {"unshare-user",          EPERM,  NAMESPACES, 0},
    {"unshare-mount",         EPERM,  PRIVILEGED, 0},
    {"clone-user",            EPERM,  NAMESPACES, 0},
    {"clone-plain",           0,      WORKS,      0},
    {"clone3",                ENOSYS, DIFFERS,    0},
    {"setns",                 EPERM,  DIFFERS,    0},
    {"io-uring",              ENOSYS, DIFFERS,    0},
    {"bpf",                   EPERM,  PRIVILEGED, 0},
    {"perf",                  EPERM,  DIFFERS,    0},
    {"userfaultfd",           EPERM,  DIFFERS,    0},
    {"keyctl",                EPERM,  DIFFERS,    0},
    {"add-key",               EPERM,  DIFFERS,    0},
    {"request-key",           EPERM,  DIFFERS,    0},
    {"ptrace",                EPERM,  WORKS,      0},
    {"ptrace-me",             EPERM,  WORKS,      0},
    {"read-memory",           EPERM,  WORKS,      0},
    {"kcmp",                  EPERM,  DIFFERS,    0},
    {"take-descriptor",       EPERM,  WORKS,      0},
    {"kill",                  EPERM,  WORKS,      6},
    {"tgkill",                EPERM,  WORKS,      6},
    {"pidfd-signal",          EPERM,  WORKS,      6},
    {"kill-child",            0,      WORKS,      0},
    {"limit-other",           EPERM,  WORKS,      0},
    {"limit-self",            0,      WORKS,      0},
    {"tiocsti",               EPERM,  DIFFERS,    0},
    {"tiocsti-high",          EPERM,  DIFFERS,    0},
    {"tioclinux",             EPERM,  DIFFERS,    0},
    {"tiocsetd",              EPERM,  WORKS,      0},
    {"window-size",           0,      WORKS,      0},
    {"mount",                 EPERM,  DIFFERS,    0},
    {"umount",                EPERM,  DIFFERS,    0},
    {"pivot-root",            EPERM,  PRIVILEGED, 0},
    {"open-tree",             EPERM,  DIFFERS,    0},
    {"move-mount",            EPERM,  PRIVILEGED, 0},
    {"fsopen",                EPERM,  PRIVILEGED, 0},
    {"fsconfig",              EPERM,  DIFFERS,    0},
    {"mount-setattr",         EPERM,  DIFFERS,    0},
    {"chroot",                EPERM,  PRIVILEGED, 0},
    {"handle",                EPERM,  DIFFERS,    0},
    {"open-by-handle",        EPERM,  PRIVILEGED, 0},
    {"fanotify",              EPERM,  DIFFERS,    0},
    {"memfd-secret",          EPERM,  DIFFERS,    0},
    {"personality",           EPERM,  WORKS,      0},
    {"personality-query",     0,      WORKS,      0},
    {"reboot",                EPERM,  PRIVILEGED, 0},
    {"init-module",           EPERM,  PRIVILEGED, 0},
    {"swapon",                EPERM,  PRIVILEGED, 0},
    {"acct",                  EPERM,  PRIVILEGED, 0},
    {"quotactl",              EPERM,  DIFFERS,    0},
    {"clock-settime",         EPERM,  DIFFERS,    0},
    {"adjtimex",              EPERM,  WORKS,      0},
    {"unknown-call",          ENOSYS, NONE,       0},
    {"nested-seccomp",        0,      WORKS,      0},
    {"nested-landlock",       0,      WORKS,      0},
    {"x32",                   ENOSYS, NONE,       0},
    {"int80",                 ANY,    NONE,       0},
    {"setuid-program",        EPERM,  PRIVILEGED, 0},
    {"write-inside",          0,      WORKS,      0},
    {"create-outside",        EACCES, WORKS,      0},
    {"overwrite-outside",     EACCES, WORKS,      0},
    {"open-truncate-outside", EACCES, WORKS,      3},
    {"truncate-outside",      EACCES, WORKS,      3},
    {"unlink-outside",        EACCES, WORKS,      0},
    {"mkdir-outside",         EACCES, WORKS,      0},
    {"rmdir-outside",         EACCES, WORKS,      0},
    {"symlink-outside",       EACCES, WORKS,      0},
    {"fifo-outside",          EACCES, WORKS,      0},
    {"device-inside",         ANY,    PRIVILEGED, 0},
    {"rename-outwards",       ANY,    WORKS,      0},
    {"rename-inwards",        ANY,    WORKS,      0},
    {"link-inwards",          ANY,    WORKS,      0},
    {"through-link",          EACCES, WORKS,      0},
    {"through-proc",          EACCES, WORKS,      0},
    {"rename-inside",         0,      WORKS,      2},
    {"link-inside",           0,      WORKS,      2},
    {"read-outside",          0,      WORKS,      0},
    {"memory-of-victim",      EACCES, WORKS,      0},
    {"environment-of-victim", EACCES, WORKS,      0},
    {"root-of-victim",        EACCES, WORKS,      0},
    {"write-null",            0,      WORKS,      0},
    {"shared-memory",         0,      WORKS,      0},
    {"tcp",                   EPERM,  WORKS,      0},
    {"tcp6",                  EPERM,  DIFFERS,    0},
    {"mptcp",                 EPERM,  DIFFERS,    0},
    {"fast-open",             EPERM,  DIFFERS,    0},
    {"udp",                   EPERM,  WORKS,      0},
    {"listen",                EPERM,  WORKS,      0},
    {"own-server",            EPERM,  WORKS,      0},
    {"own-server-udp",        EPERM,  WORKS,      0},
    {"metadata",              EPERM,  NONE,       0},
    {"dns",                   EPERM,  NONE,       0},
    {"dns-connected",         EPERM,  NONE,       0},
    {"abstract-datagram",     EPERM,  DIFFERS,    0},
    {"raw",                   EPERM,  PRIVILEGED, 0},
    {"packet",                EPERM,  PRIVILEGED, 0},
    {"vsock",                 EPERM,  DIFFERS,    0},
    {"alg",                   EPERM,  DIFFERS,    0},
    {"netlink-generic",       EPERM,  WORKS,      0},
    {"netlink-route",         0,      WORKS,      0},
    {"unix-datagram",         EPERM,  WORKS,      0},
    {"abstract",              EPERM,  WORKS,      6},
    {"unix-outside",          EACCES, WORKS,      0},
    {"unix-inside",           0,      WORKS,      0},
    {"socket-pair",           0,      WORKS,      0},
};

/* In the full tier others can't even be seen, what is outside is read-only, and the network is a
 * loopback on which nobody else is: what is sent there by UDP is lost. */
static const struct {
    const char *name;
    int inside;
} full_expectations[] = {
    {"take-descriptor",       ESRCH       },
    {"kill",                  ESRCH       },
    {"tgkill",                ESRCH       },
    {"pidfd-signal",          EBADF       },
    {"create-outside",        EROFS       },
    {"overwrite-outside",     EROFS       },
    {"open-truncate-outside", EROFS       },
    {"truncate-outside",      EROFS       },
    {"unlink-outside",        EROFS       },
    {"mkdir-outside",         EROFS       },
    {"rmdir-outside",         EROFS       },
    {"symlink-outside",       EROFS       },
    {"fifo-outside",          EROFS       },
    {"through-link",          EROFS       },
    {"through-proc",          EROFS       },
    {"memory-of-victim",      ENOENT      },
    {"environment-of-victim", ENOENT      },
    {"root-of-victim",        ENOENT      },
    {"tcp",                   ECONNREFUSED},
    {"tcp6",                  ECONNREFUSED},
    {"fast-open",             ECONNREFUSED},
    {"udp",                   0           },
    {"listen",                0           },
    {"own-server",            0           },
    {"own-server-udp",        0           },
    {"metadata",              ENETUNREACH },
    {"dns",                   ENETUNREACH },
    {"dns-connected",         ENETUNREACH },
};

#endif
