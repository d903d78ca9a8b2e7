#ifndef SY_SANDBOX_LINUX_LANDLOCK_H
#define SY_SANDBOX_LINUX_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Landlock as the newest kernel that we know has it. The distribution's header
 * may be years older than the kernel it runs on, so the constants are ours and
 * the kernel is asked which of them it knows (its ABI number).
 *
 * Rights on files: id, bit, first ABI, name. What is handled and not granted is
 * refused. Listing a directory (bit 3) is never handled: it can't be granted for
 * one without all that is below it.
 */
#define LANDLOCK_FS_RIGHTS(X)                                                                      \
    X(LL_FS_EXECUTE, 0, 1, "execute")                                                              \
    X(LL_FS_WRITE_FILE, 1, 1, "write_file")                                                        \
    X(LL_FS_READ_FILE, 2, 1, "read_file")                                                          \
    X(LL_FS_REMOVE_DIR, 4, 1, "remove_dir")                                                        \
    X(LL_FS_REMOVE_FILE, 5, 1, "remove_file")                                                      \
    X(LL_FS_MAKE_CHAR, 6, 1, "make_char")                                                          \
    X(LL_FS_MAKE_DIR, 7, 1, "make_dir")                                                            \
    X(LL_FS_MAKE_REG, 8, 1, "make_reg")                                                            \
    X(LL_FS_MAKE_SOCK, 9, 1, "make_sock")                                                          \
    X(LL_FS_MAKE_FIFO, 10, 1, "make_fifo")                                                         \
    X(LL_FS_MAKE_BLOCK, 11, 1, "make_block")                                                       \
    X(LL_FS_MAKE_SYM, 12, 1, "make_sym")                                                           \
    X(LL_FS_REFER, 13, 2, "refer")                                                                 \
    X(LL_FS_TRUNCATE, 14, 3, "truncate")                                                           \
    X(LL_FS_IOCTL_DEV, 15, 5, "ioctl_dev")                                                         \
    X(LL_FS_RESOLVE_UNIX, 16, 9, "resolve_unix")

#define LANDLOCK_NET_RIGHTS(X)                                                                     \
    X(LL_NET_BIND_TCP, 0, 4, "bind_tcp")                                                           \
    X(LL_NET_CONNECT_TCP, 1, 4, "connect_tcp")                                                     \
    X(LL_NET_BIND_UDP, 2, 10, "bind_udp")                                                          \
    X(LL_NET_CONNECT_SEND_UDP, 3, 10, "connect_send_udp")

#define LANDLOCK_SCOPES(X)                                                                         \
    X(LL_SCOPE_ABSTRACT_UNIX, 0, 6, "abstract_unix_socket")                                        \
    X(LL_SCOPE_SIGNAL, 1, 6, "signal")

#define LANDLOCK_BIT(id, bit, abi, name) static const uint64_t id = 1ULL << (bit);
LANDLOCK_FS_RIGHTS(LANDLOCK_BIT)
LANDLOCK_NET_RIGHTS(LANDLOCK_BIT)
LANDLOCK_SCOPES(LANDLOCK_BIT)
#undef LANDLOCK_BIT

struct landlock_right {
    uint64_t bit;
    int abi; /* the first that has it */
    const char *name;
};

enum landlock_set { LANDLOCK_SET_FS, LANDLOCK_SET_NET, LANDLOCK_SET_SCOPE };

/* All rights of a set, in bit order. */
const struct landlock_right *landlock_rights(enum landlock_set set, size_t *ret_n);
/* Reading a file in whatever way: handled only where something is denied. */
#define LL_FS_READS (LL_FS_EXECUTE | LL_FS_READ_FILE)
/* Every bit of a set that an ABI has. */
uint64_t landlock_known(enum landlock_set set, int abi);
/* Of filesystem rights, those that a rule on a file (no directory) may have. */
uint64_t landlock_file_rights(void);

/* What a ruleset handles, as the kernel takes it. */
struct landlock_ruleset {
    uint64_t handled_fs;
    uint64_t handled_net; /* ABI 4 */
    uint64_t scoped;      /* ABI 6 */
};

/* Raw calls: the result, or a negative errno value. */
long landlock_abi(void);
long landlock_errata(void);
long landlock_create(const struct landlock_ruleset *attr); /* a close-on-exec descriptor */
long landlock_allow_beneath(int ruleset_fd, int path_fd, uint64_t access);
long landlock_restrict(int ruleset_fd);
#define LANDLOCK_AUDIT_ABI 7
/* The same, and what it refuses to programs that are executed later is written to the audit log
 * (ABI 7), where auditing is on. What domains refuse that they make for themselves is not: it is
 * nothing of ours, and nobody could tell it from ours. */
long landlock_restrict_logged(int ruleset_fd);

#endif
