#ifndef SY_SANDBOX_LINUX_SECCOMP_TABLE_H
#define SY_SANDBOX_LINUX_SECCOMP_TABLE_H

/*
 * The one list of system calls that a sandbox refuses or looks into; whatever
 * is not in it is allowed. The filter programs are made from it (seccomp_gen),
 * the table in docs/sandbox.md is checked against it, and the unit test walks
 * it. Each line: name, number for a libseccomp that does not know the name yet
 * (calls from 403 on have the same number everywhere; 0: always known), what
 * to do, and why, as a person who meets the refusal would ask.
 */

enum seccomp_verdict {
    SECCOMP_EPERM,     /* refused */
    SECCOMP_ENOSYS,    /* as if the kernel did not have it: callers fall back */
    SECCOMP_NAMESPACE, /* refused with any flag that makes a namespace */
    SECCOMP_IOCTL,     /* a few commands refused */
    SECCOMP_PERSONA,   /* only the usual values allowed */
    SECCOMP_SOCKET,    /* by family, type and protocol */
    SECCOMP_PAIR,      /* the same for a pair of them */
    SECCOMP_PRLIMIT,   /* only of the caller itself, or to read */
    SECCOMP_LISTEN,    /* allow list: the broker decides; else allowed */
    SECCOMP_SENDTO,    /* allow list: refused with MSG_FASTOPEN (fourth argument); else allowed */
    SECCOMP_SENDMSG,   /* the same, third argument */
    SECCOMP_OBSERVE,   /* allowed; under `report: full` told first */
    SECCOMP_OPEN_1,    /* the same if the flags in that argument mean to write */
    SECCOMP_OPEN_2,
    SECCOMP_TERMINAL_1, /* allowed; the broker looks first where that argument has O_NOCTTY, no
                           O_CREAT */
    SECCOMP_TERMINAL_2,
    SECCOMP_CONNECT /* but for network on: the broker decides; where there is none it is refused,
                       or (own network) allowed and no Unix sockets can be made */
};

/* The highest call that was looked at for this list. Anything beyond answers
 * ENOSYS, so that a newer kernel adds nothing behind our back. */
#define SECCOMP_LAST_KNOWN 471 /* rseq_slice_yield, Linux 7.0 */

#define SECCOMP_CALLS(X)                                                                           \
    X(clone3, 435, SECCOMP_ENOSYS, "its flags are out of a filter's sight; libc uses clone")       \
    X(clone, 0, SECCOMP_NAMESPACE, "new namespaces open kernel code that needs privilege")         \
    X(unshare, 0, SECCOMP_NAMESPACE, "new namespaces open kernel code that needs privilege")       \
    X(setns, 0, SECCOMP_EPERM, "enters another namespace")                                         \
    X(io_uring_setup, 425, SECCOMP_ENOSYS, "does system calls that no filter sees")                \
    X(io_uring_enter, 426, SECCOMP_ENOSYS, "does system calls that no filter sees")                \
    X(io_uring_register, 427, SECCOMP_ENOSYS, "does system calls that no filter sees")             \
    X(ptrace, 0, SECCOMP_EPERM, "controls another process")                                        \
    X(process_vm_readv, 0, SECCOMP_EPERM, "reads another process's memory")                        \
    X(process_vm_writev, 0, SECCOMP_EPERM, "writes another process's memory")                      \
    X(kcmp, 0, SECCOMP_EPERM, "inspects another process")                                          \
    X(pidfd_getfd, 438, SECCOMP_EPERM, "takes a descriptor from another process")                  \
    X(prlimit64, 0, SECCOMP_PRLIMIT, "a limit set on another process can end it")                  \
    X(mount, 0, SECCOMP_EPERM, "changes the file tree")                                            \
    X(umount2, 0, SECCOMP_EPERM, "changes the file tree")                                          \
    X(pivot_root, 0, SECCOMP_EPERM, "changes the file tree")                                       \
    X(open_tree, 428, SECCOMP_EPERM, "changes the file tree")                                      \
    X(move_mount, 429, SECCOMP_EPERM, "changes the file tree")                                     \
    X(fsopen, 430, SECCOMP_EPERM, "changes the file tree")                                         \
    X(fsconfig, 431, SECCOMP_EPERM, "changes the file tree")                                       \
    X(fsmount, 432, SECCOMP_EPERM, "changes the file tree")                                        \
    X(fspick, 433, SECCOMP_EPERM, "changes the file tree")                                         \
    X(mount_setattr, 442, SECCOMP_EPERM, "changes the file tree")                                  \
    X(open_tree_attr, 467, SECCOMP_EPERM, "changes the file tree")                                 \
    X(bpf, 0, SECCOMP_EPERM, "loads programs into the kernel")                                     \
    X(perf_event_open, 0, SECCOMP_EPERM, "observes other processes and the kernel")                \
    X(userfaultfd, 0, SECCOMP_EPERM, "helps to exploit races in the kernel")                       \
    X(memfd_secret, 447, SECCOMP_EPERM, "memory that nobody can inspect")                          \
    X(keyctl, 0, SECCOMP_EPERM, "keyrings are shared with your session")                           \
    X(add_key, 0, SECCOMP_EPERM, "keyrings are shared with your session")                          \
    X(request_key, 0, SECCOMP_EPERM, "keyrings are shared with your session")                      \
    X(kexec_load, 0, SECCOMP_EPERM, "replaces the kernel")                                         \
    X(kexec_file_load, 0, SECCOMP_EPERM, "replaces the kernel")                                    \
    X(create_module, 0, SECCOMP_EPERM, "changes the kernel")                                       \
    X(init_module, 0, SECCOMP_EPERM, "changes the kernel")                                         \
    X(finit_module, 0, SECCOMP_EPERM, "changes the kernel")                                        \
    X(delete_module, 0, SECCOMP_EPERM, "changes the kernel")                                       \
    X(reboot, 0, SECCOMP_EPERM, "administers the machine")                                         \
    X(swapon, 0, SECCOMP_EPERM, "administers the machine")                                         \
    X(swapoff, 0, SECCOMP_EPERM, "administers the machine")                                        \
    X(acct, 0, SECCOMP_EPERM, "administers the machine")                                           \
    X(quotactl, 0, SECCOMP_EPERM, "administers the machine")                                       \
    X(quotactl_fd, 443, SECCOMP_EPERM, "administers the machine")                                  \
    X(iopl, 0, SECCOMP_EPERM, "reaches the hardware")                                              \
    X(ioperm, 0, SECCOMP_EPERM, "reaches the hardware")                                            \
    X(settimeofday, 0, SECCOMP_EPERM, "sets the clock")                                            \
    X(clock_settime, 0, SECCOMP_EPERM, "sets the clock")                                           \
    X(adjtimex, 0, SECCOMP_EPERM, "sets the clock")                                                \
    X(clock_adjtime, 0, SECCOMP_EPERM, "sets the clock")                                           \
    X(name_to_handle_at, 0, SECCOMP_EPERM, "file handles go around path rules")                    \
    X(open_by_handle_at, 0, SECCOMP_EPERM, "file handles go around path rules")                    \
    X(fanotify_init, 0, SECCOMP_EPERM, "watches what others do with files")                        \
    X(lookup_dcookie, 0, SECCOMP_EPERM, "finds the paths of other processes")                      \
    X(personality, 0, SECCOMP_PERSONA, "0, ADDR_NO_RANDOMIZE and the query are allowed")           \
    X(ioctl, 0, SECCOMP_IOCTL, "TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD would type for you")        \
    X(socket, 0, SECCOMP_SOCKET, "see the table of sockets")                                       \
    X(socketpair, 0, SECCOMP_PAIR, "see the table of sockets")                                     \
    X(connect, 0, SECCOMP_CONNECT, "network off: only to sockets of the same run")                 \
    X(listen, 0, SECCOMP_LISTEN, "allow list: a server would be reached from outside")             \
    X(sendto, 0, SECCOMP_SENDTO, "allow list: MSG_FASTOPEN connects without connect(2)")           \
    X(sendmsg, 0, SECCOMP_SENDMSG, "allow list: MSG_FASTOPEN connects without connect(2)")         \
    X(sendmmsg, 0, SECCOMP_SENDTO, "allow list: MSG_FASTOPEN connects without connect(2)")

/*
 * How the other end of a new pseudo terminal is opened by its name. Without namespaces its name
 * lies among those of your terminals, which are shut: the broker opens it, or lets the call go on,
 * to be refused. (By TIOCGPTPEER it is an ioctl.) Each line: name, number, when.
 */
#define SECCOMP_OF_TERMINALS(X)                                                                    \
    X(open, 0, SECCOMP_TERMINAL_1)                                                                 \
    X(openat, 0, SECCOMP_TERMINAL_2)

/*
 * What else `sandbox.report: full` has told before it goes on: calls that change a
 * name or a file, or open one to read where no mount hides it, and that some other wall may refuse.
 * Nothing is decided by it. Each line: name, number (as above), when; the operation, its
 * directory's and its path's argument (-1: none, the working directory); the same for a second
 * path.
 */
#define SECCOMP_OBSERVED(X)                                                                        \
    X(open, 0, SECCOMP_OPEN_1, OPERATION_WRITE, -1, 0, OPERATION_COUNT, -1, -1)                    \
    X(openat, 0, SECCOMP_OPEN_2, OPERATION_WRITE, 0, 1, OPERATION_COUNT, -1, -1)                   \
    X(openat2, 437, SECCOMP_OBSERVE, OPERATION_WRITE, 0, 1, OPERATION_COUNT, -1, -1)               \
    X(creat, 0, SECCOMP_OBSERVE, OPERATION_WRITE, -1, 0, OPERATION_COUNT, -1, -1)                  \
    X(truncate, 0, SECCOMP_OBSERVE, OPERATION_TRUNCATE, -1, 0, OPERATION_COUNT, -1, -1)            \
    X(mkdir, 0, SECCOMP_OBSERVE, OPERATION_CREATE, -1, 0, OPERATION_COUNT, -1, -1)                 \
    X(mkdirat, 0, SECCOMP_OBSERVE, OPERATION_CREATE, 0, 1, OPERATION_COUNT, -1, -1)                \
    X(mknod, 0, SECCOMP_OBSERVE, OPERATION_CREATE, -1, 0, OPERATION_COUNT, -1, -1)                 \
    X(mknodat, 0, SECCOMP_OBSERVE, OPERATION_CREATE, 0, 1, OPERATION_COUNT, -1, -1)                \
    X(symlink, 0, SECCOMP_OBSERVE, OPERATION_CREATE, -1, 1, OPERATION_COUNT, -1, -1)               \
    X(symlinkat, 0, SECCOMP_OBSERVE, OPERATION_CREATE, 1, 2, OPERATION_COUNT, -1, -1)              \
    X(unlink, 0, SECCOMP_OBSERVE, OPERATION_DELETE, -1, 0, OPERATION_COUNT, -1, -1)                \
    X(unlinkat, 0, SECCOMP_OBSERVE, OPERATION_DELETE, 0, 1, OPERATION_COUNT, -1, -1)               \
    X(rmdir, 0, SECCOMP_OBSERVE, OPERATION_DELETE, -1, 0, OPERATION_COUNT, -1, -1)                 \
    X(rename, 0, SECCOMP_OBSERVE, OPERATION_RENAME, -1, 0, OPERATION_CREATE, -1, 1)                \
    X(renameat, 0, SECCOMP_OBSERVE, OPERATION_RENAME, 0, 1, OPERATION_CREATE, 2, 3)                \
    X(renameat2, 0, SECCOMP_OBSERVE, OPERATION_RENAME, 0, 1, OPERATION_CREATE, 2, 3)               \
    X(link, 0, SECCOMP_OBSERVE, OPERATION_WRITE, -1, 0, OPERATION_CREATE, -1, 1)                   \
    X(linkat, 0, SECCOMP_OBSERVE, OPERATION_WRITE, 0, 1, OPERATION_CREATE, 2, 3)

#endif
