/*
 * mask WHAT CMD...: runs a command where the kernel seems to lack something.
 *
 *     landlock    landlock_create_ruleset(2) and its kin: ENOSYS
 *     userns      new user namespaces: EPERM, as where the system forbids them
 *     namespaces  new namespaces of any kind: EPERM, as in most containers
 *     notify      seccomp_unotify(2): no listener
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#ifdef __x86_64__
#    define OWN_ARCH AUDIT_ARCH_X86_64
#else
#    define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#define NR        ((uint32_t)offsetof(struct seccomp_data, nr))
#define ARCH      ((uint32_t)offsetof(struct seccomp_data, arch))
#define ARG(n)    ((uint32_t)(offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t)))
#define LOAD(at)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define GIVE(ret) BPF_STMT(BPF_RET | BPF_K, (ret))
#define FAIL(e)   GIVE(SECCOMP_RET_ERRNO | (e))

#define ALL_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)

static int
load(const struct sock_filter *filter, size_t n)
{
    union {
        const struct sock_filter *from;
        struct sock_filter *to;
    } unconst = {.from = filter}; /* the kernel only reads it */
    struct sock_fprog program = {.len = (unsigned short)n, .filter = unconst.to};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0
               ? 0
               : errno;
}

static int
mask_landlock(void)
{
    const struct sock_filter filter[] = {
        LOAD(ARCH),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, 4),
        LOAD(NR),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2), /* landlock_create_ruleset */
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0), /* landlock_restrict_self */
        FAIL(ENOSYS),
        GIVE(SECCOMP_RET_ALLOW),
    };

    return load(filter, sizeof(filter) / sizeof(filter[0]));
}

/* clone3's flags are out of sight: without it libraries take clone. */
static int
mask_namespaces(uint32_t flags)
{
    const struct sock_filter filter[] = {
        LOAD(ARCH),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, 8),
        LOAD(NR),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 7, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        LOAD(ARG(0)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 2),
        FAIL(EPERM),
        GIVE(SECCOMP_RET_ALLOW),
        GIVE(SECCOMP_RET_ALLOW),
        FAIL(ENOSYS),
    };

    return load(filter, sizeof(filter) / sizeof(filter[0]));
}

static int
mask_notify(void)
{
    const struct sock_filter filter[] = {
        LOAD(ARCH),   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, 5),
        LOAD(NR),     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3),
        LOAD(ARG(1)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0, 1),
        FAIL(EINVAL), GIVE(SECCOMP_RET_ALLOW),
    };

    return load(filter, sizeof(filter) / sizeof(filter[0]));
}

static int
mask(const char *what)
{
    if (strcmp(what, "landlock") == 0) {
        return mask_landlock();
    }
    if (strcmp(what, "userns") == 0) {
        return mask_namespaces(CLONE_NEWUSER);
    }
    if (strcmp(what, "namespaces") == 0) {
        return mask_namespaces(ALL_NAMESPACES);
    }
    return strcmp(what, "notify") == 0 ? mask_notify() : EINVAL;
}

int
main(int argc, char **argv)
{
    int sys = argc > 2 ? mask(argv[1]) : EINVAL;

    if (sys != 0) {
        (void)fprintf(stderr, "mask: %s: %s\n", argc > 1 ? argv[1] : "usage", strerrorname_np(sys));
        return 125;
    }
    (void)execvp(argv[2], argv + 2);
    (void)fprintf(stderr, "mask: %s: %s\n", argv[2], strerrorname_np(errno));
    return 126;
}
