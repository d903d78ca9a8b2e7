/*
 * Build-time program: writes the seccomp filters of seccomp_table.h as C.
 * libseccomp gives the call numbers of each architecture; the programs are
 * our own, because loading one costs by its length at every spawn: a binary
 * search over the few numbers that matter, and no test that Landlock or the
 * missing capabilities already make.
 *
 * Always-allowed calls see nothing but loads of arch and nr, so the kernel
 * (5.11 and later) takes them into its bitmap and runs no filter for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/in.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "sandbox/linux/seccomp_asm.h"
#include "sandbox/linux/seccomp_table.h"

#define MAX_ITEMS 128

/* Jump targets; from LABEL_FREE on, labels of the search tree. */
enum label {
    ALLOW = NEXT + 1,
    PERM,
    NOSYS,
    KILL,
    NOTIFY,
    CONNECT,
    AT_NAMESPACE,
    AT_IOCTL,
    AT_PERSONA,
    AT_SOCKET,
    AT_PAIR,
    AT_UNIX,
    AT_NETLINK,
    AT_INET,
    AT_PROTOCOL,
    AT_PRLIMIT,
    AT_SENDTO,
    AT_SENDMSG,
    AT_OPEN_1,
    AT_OPEN_2,
    AT_TERMINAL_1,
    AT_TERMINAL_2,
    LABEL_FREE
};

/* A run of neighbouring call numbers with one target. */
struct item {
    uint32_t first;
    uint32_t last;
    int target;
};

struct call {
    const char *name;
    int number;
    enum seccomp_verdict verdict;
};

static const struct call calls[] = {
#define CALL_ROW(name, number, verdict, why) {#name, number, verdict},
    SECCOMP_CALLS(CALL_ROW)
#undef CALL_ROW
};

static const struct call observed[] = {
#define OBSERVED_ROW(name, number, verdict, op, dir, path, op2, dir2, path2)                       \
    {#name, number, verdict},
    SECCOMP_OBSERVED(OBSERVED_ROW)
#undef OBSERVED_ROW
};

static const struct call of_terminals[] = {
#define TERMINAL_ROW(name, number, verdict) {#name, number, verdict},
    SECCOMP_OF_TERMINALS(TERMINAL_ROW)
#undef TERMINAL_ROW
};

/* OWN: a namespace with nothing but a loopback of its own, and perhaps the proxy. */
enum network { OFF, ALLOW_LIST, ON, OWN };

/* What a program is made for. */
struct variant {
    const char *name;
    uint32_t audit;
    uint32_t libseccomp;
    enum network network;
    bool has_broker;
    bool has_observer;
};

/* Where nobody judges connect(2), Unix sockets come in pairs alone. */
static bool
has_pairs_only(const struct variant *v)
{
    return v->network == OWN && !v->has_broker;
}

/* The engine opens the terminals that a command makes. A tree with a network of its own has a /dev
 * of its own too. */
static bool
has_terminals(const struct variant *v)
{
    return v->has_broker && v->network != OWN;
}

static int
label_of(enum seccomp_verdict verdict, const struct variant *v)
{
    switch (verdict) {
    case SECCOMP_EPERM:
        return PERM;
    case SECCOMP_ENOSYS:
        return NOSYS;
    case SECCOMP_NAMESPACE:
        return AT_NAMESPACE;
    case SECCOMP_IOCTL:
        return AT_IOCTL;
    case SECCOMP_PERSONA:
        return AT_PERSONA;
    case SECCOMP_SOCKET:
        return AT_SOCKET;
    case SECCOMP_PAIR:
        return has_pairs_only(v) ? AT_PAIR : AT_SOCKET;
    case SECCOMP_PRLIMIT:
        return AT_PRLIMIT;
    case SECCOMP_CONNECT:
        return CONNECT;
    case SECCOMP_LISTEN:
    case SECCOMP_OBSERVE:
        return NOTIFY;
    case SECCOMP_SENDTO:
        return AT_SENDTO;
    case SECCOMP_SENDMSG:
        return AT_SENDMSG;
    case SECCOMP_OPEN_1:
        return AT_OPEN_1;
    case SECCOMP_OPEN_2:
        return AT_OPEN_2;
    case SECCOMP_TERMINAL_1:
        return AT_TERMINAL_1;
    case SECCOMP_TERMINAL_2:
        return AT_TERMINAL_2;
    }
    die("unknown verdict", "seccomp_table.h");
}

static int
item_order(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* The number of a call; negative: not on this architecture. */
static int
number_of(const struct call *c, uint32_t libseccomp_arch)
{
    int nr = seccomp_syscall_resolve_name_arch(libseccomp_arch, c->name);

    if (nr < 0 && c->number == 0 && nr == __NR_SCMP_ERROR) {
        die("libseccomp does not know this call", c->name);
    }
    return nr < 0 && c->number != 0 ? c->number : nr;
}

/* Without an allow list the kernel's bitmap answers for the calls that send. */
static bool
is_for_allow_list(enum seccomp_verdict verdict)
{
    return verdict == SECCOMP_LISTEN || verdict == SECCOMP_SENDTO || verdict == SECCOMP_SENDMSG;
}

static size_t
add_calls(struct item *items, size_t n, const struct variant *v, const struct call *list,
          size_t n_list)
{
    for (size_t i = 0; i < n_list; i++) {
        int nr = number_of(&list[i], v->libseccomp);

        if (nr < 0 || (v->network != ALLOW_LIST && is_for_allow_list(list[i].verdict))) {
            continue;
        }
        if (nr > SECCOMP_LAST_KNOWN || n == MAX_ITEMS) {
            die("call beyond SECCOMP_LAST_KNOWN, or too many", list[i].name);
        }
        items[n] = (struct item){(uint32_t)nr, (uint32_t)nr, label_of(list[i].verdict, v)};
        n++;
    }
    return n;
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The calls of an architecture, sorted, neighbours of one target joined. */
static size_t
collect(struct item *items, const struct variant *v)
{
    size_t n = add_calls(items, 0, v, calls, COUNT(calls));
    size_t joined = 0;

    if (v->has_observer) {
        n = add_calls(items, n, v, observed, COUNT(observed));
    } else if (has_terminals(v)) {
        n = add_calls(items, n, v, of_terminals, COUNT(of_terminals));
    }
    qsort(items, n, sizeof(items[0]), item_order);
    for (size_t i = 1; i < n; i++) {
        if (items[i].first == items[joined].last + 1 && items[i].target == items[joined].target) {
            items[joined].last = items[i].last;
        } else {
            joined++;
            items[joined] = items[i];
        }
    }
    return joined + 1;
}

/* Tests one after the other; what none of them takes is allowed. */
static void
emit_leaf(struct program *p, const struct item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int otherwise = i + 1 < n ? NEXT : ALLOW;

        if (items[i].first == items[i].last) {
            emit_jump(p, BPF_JEQ, items[i].first, items[i].target, otherwise);
        } else {
            emit_jump(p, BPF_JGE, items[i].first, NEXT, ALLOW);
            emit_jump(p, BPF_JGT, items[i].last, otherwise, items[i].target);
        }
    }
}

#define LEAF_ITEMS 4

static void
emit_tree(struct program *p, const struct item *items, size_t n) // NOLINT(misc-no-recursion)
{
    if (n <= LEAF_ITEMS) {
        emit_leaf(p, items, n);
        return;
    }

    int right = p->n_labels;

    if (right == MAX_LABELS) {
        die("too many labels", "raise MAX_LABELS");
    }
    p->n_labels++;
    emit_jump(p, BPF_JGE, items[n / 2].first, right, NEXT);
    emit_tree(p, items, n / 2);
    p->labels[right] = p->n;
    emit_tree(p, items + n / 2, n - n / 2);
}

static void
emit_netlink_check(struct program *p)
{
    /* getifaddrs(3) asks the routing protocol. */
    p->labels[AT_NETLINK] = p->n;
    emit_load_arg(p, 2);
    emit_jump(p, BPF_JEQ, NETLINK_ROUTE, ALLOW, PERM);
}

/* A datagram socket, paired or not, can send to any other by name. */
static void
emit_unix_check(struct program *p)
{
    p->labels[AT_UNIX] = p->n;
    emit_load_arg(p, 1);
    emit_and(p, 0xf);
    emit_jump(p, BPF_JEQ, SOCK_STREAM, ALLOW, NEXT);
    emit_jump(p, BPF_JEQ, SOCK_SEQPACKET, ALLOW, PERM);
}

/* TCP and nothing else: what sends without connect(2), or connects to more than one address
 * (MPTCP, SCTP), would go past the broker. */
static void
emit_tcp_check(struct program *p)
{
    p->labels[AT_INET] = p->n;
    emit_load_arg(p, 1);
    emit_and(p, 0xf);
    emit_jump(p, BPF_JEQ, SOCK_STREAM, NEXT, PERM);
    emit_load_arg(p, 2);
    emit_jump(p, BPF_JEQ, 0, ALLOW, NEXT);
    emit_jump(p, BPF_JEQ, IPPROTO_TCP, ALLOW, PERM);
}

static void
emit_socket_check(struct program *p, enum network network)
{
    p->labels[AT_SOCKET] = p->n;
    emit_load_arg(p, 0);
    if (network == ON) {
        emit_jump(p, BPF_JEQ, AF_UNIX, ALLOW, NEXT);
        emit_jump(p, BPF_JEQ, AF_INET, AT_INET, NEXT);
        emit_jump(p, BPF_JEQ, AF_INET6, AT_INET, NEXT);
        emit_jump(p, BPF_JEQ, AF_NETLINK, AT_NETLINK, PERM);
        /* Streams and datagrams of the common protocols: SCTP, DCCP, SMC and
         * SOCK_PACKET are kernel code that nothing here needs. */
        p->labels[AT_INET] = p->n;
        emit_load_arg(p, 1);
        emit_and(p, 0xf);
        emit_jump(p, BPF_JEQ, SOCK_STREAM, AT_PROTOCOL, NEXT);
        emit_jump(p, BPF_JEQ, SOCK_DGRAM, AT_PROTOCOL, PERM);
        p->labels[AT_PROTOCOL] = p->n;
        emit_load_arg(p, 2);
        emit_jump(p, BPF_JEQ, 0, ALLOW, NEXT);
        emit_jump(p, BPF_JEQ, IPPROTO_TCP, ALLOW, NEXT);
        emit_jump(p, BPF_JEQ, IPPROTO_UDP, ALLOW, NEXT);
        emit_jump(p, BPF_JEQ, IPPROTO_ICMP, ALLOW, NEXT);
        emit_jump(p, BPF_JEQ, 58 /* ICMPv6 */, ALLOW, NEXT);
        emit_jump(p, BPF_JEQ, 262 /* MPTCP */, ALLOW, PERM);
    } else {
        emit_jump(p, BPF_JEQ, AF_UNIX, AT_UNIX, NEXT);
        if (network == ALLOW_LIST) {
            emit_jump(p, BPF_JEQ, AF_INET, AT_INET, NEXT);
            emit_jump(p, BPF_JEQ, AF_INET6, AT_INET, NEXT);
        }
        emit_jump(p, BPF_JEQ, AF_NETLINK, AT_NETLINK, PERM);
        if (network == ALLOW_LIST) {
            emit_tcp_check(p);
        }
        emit_unix_check(p);
    }
    emit_netlink_check(p);
}

/* What servers and clients of one command need; all else is kernel code that nothing here needs. */
static void
emit_own_socket_check(struct program *p, const struct variant *v)
{
    if (has_pairs_only(v)) {
        p->labels[AT_PAIR] = p->n;
        emit_load_arg(p, 0);
        emit_jump(p, BPF_JEQ, AF_UNIX, AT_UNIX, PERM);
    }
    p->labels[AT_SOCKET] = p->n;
    emit_load_arg(p, 0);
    emit_jump(p, BPF_JEQ, AF_UNIX, has_pairs_only(v) ? PERM : AT_UNIX, NEXT);
    emit_jump(p, BPF_JEQ, AF_INET, AT_INET, NEXT);
    emit_jump(p, BPF_JEQ, AF_INET6, AT_INET, NEXT);
    emit_jump(p, BPF_JEQ, AF_NETLINK, AT_NETLINK, PERM);
    p->labels[AT_INET] = p->n;
    emit_load_arg(p, 1);
    emit_and(p, 0xf);
    emit_jump(p, BPF_JEQ, SOCK_STREAM, AT_PROTOCOL, NEXT);
    emit_jump(p, BPF_JEQ, SOCK_DGRAM, AT_PROTOCOL, PERM);
    p->labels[AT_PROTOCOL] = p->n;
    emit_load_arg(p, 2);
    emit_jump(p, BPF_JEQ, 0, ALLOW, NEXT);
    emit_jump(p, BPF_JEQ, IPPROTO_TCP, ALLOW, NEXT);
    emit_jump(p, BPF_JEQ, IPPROTO_UDP, ALLOW, PERM);
    emit_unix_check(p);
    emit_netlink_check(p);
}

static void
emit_checks(struct program *p, const struct variant *v)
{
    /* CLONE_NEWTIME lies among the bits of clone's exit signal, where no
     * valid signal is: one mask serves both calls. */
    p->labels[AT_NAMESPACE] = p->n;
    emit_load_arg(p, 0);
    emit_jump(p, BPF_JSET,
              CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                  CLONE_NEWPID | CLONE_NEWNET | 0x80U /* CLONE_NEWTIME */,
              PERM, ALLOW);

    p->labels[AT_IOCTL] = p->n;
    emit_load_arg(p, 1);
    if (has_terminals(v)) {
        emit_jump(p, BPF_JEQ, TIOCGPTPEER, NOTIFY, NEXT);
    }
    emit_jump(p, BPF_JEQ, TIOCSTI, PERM, NEXT);
    emit_jump(p, BPF_JEQ, TIOCLINUX, PERM, NEXT);
    emit_jump(p, BPF_JEQ, TIOCCONS, PERM, NEXT);
    emit_jump(p, BPF_JEQ, TIOCSETD, PERM, ALLOW);

    p->labels[AT_PERSONA] = p->n;
    emit_load_arg(p, 0);
    emit_jump(p, BPF_JEQ, PER_LINUX, ALLOW, NEXT);
    emit_jump(p, BPF_JEQ, ADDR_NO_RANDOMIZE, ALLOW, NEXT);
    emit_jump(p, BPF_JEQ, 0xffffffffU, ALLOW, PERM);

    p->labels[AT_PRLIMIT] = p->n;
    emit_load_arg(p, 0);
    emit_jump(p, BPF_JEQ, 0, ALLOW, NEXT);
    emit_load_arg(p, 2);
    emit_jump(p, BPF_JEQ, 0, NEXT, PERM);
    emit_load_arg_high(p, 2);
    emit_jump(p, BPF_JEQ, 0, ALLOW, PERM);
}

/* The kernel takes the flags as an int. */
static void
emit_send_checks(struct program *p)
{
    p->labels[AT_SENDTO] = p->n;
    emit_load_arg(p, 3);
    emit_jump(p, BPF_JSET, MSG_FASTOPEN, PERM, ALLOW);
    p->labels[AT_SENDMSG] = p->n;
    emit_load_arg(p, 2);
    emit_jump(p, BPF_JSET, MSG_FASTOPEN, PERM, ALLOW);
}

/* Flags that may change something; O_TMPFILE comes with a mode to write. Where Landlock refuses
 * reading, which nobody else tells, all that open more than a place; mounts tell it themselves. */
static void
emit_open_checks(struct program *p, const struct variant *v)
{
    for (unsigned arg = 1; arg <= 2; arg++) {
        p->labels[arg == 1 ? AT_OPEN_1 : AT_OPEN_2] = p->n;
        emit_load_arg(p, arg);
        if (v->network == OWN) {
            emit_jump(p, BPF_JSET, O_ACCMODE | O_CREAT | O_TRUNC, NOTIFY, ALLOW);
        } else {
            emit_jump(p, BPF_JSET, O_PATH, ALLOW, NOTIFY);
        }
    }
}

/* By name, terminals are opened with a flag that hardly anything else has, but touch(1), which
 * makes files. */
static void
emit_terminal_checks(struct program *p)
{
    for (unsigned arg = 1; arg <= 2; arg++) {
        p->labels[arg == 1 ? AT_TERMINAL_1 : AT_TERMINAL_2] = p->n;
        emit_load_arg(p, arg);
        emit_jump(p, BPF_JSET, O_NOCTTY, NEXT, ALLOW);
        emit_jump(p, BPF_JSET, O_CREAT, ALLOW, NOTIFY);
    }
}

static void
build(struct program *p, const struct variant *v)
{
    struct item items[MAX_ITEMS];
    size_t n = collect(items, v);

    *p = (struct program){.n_labels = LABEL_FREE};
    emit_load(p, offsetof(struct seccomp_data, arch));
    emit_jump(p, BPF_JEQ, v->audit, NEXT, KILL);
    emit_load(p, offsetof(struct seccomp_data, nr));
    /* Also the x32 calls, which have bit 30 set. */
    emit_jump(p, BPF_JGT, SECCOMP_LAST_KNOWN, NOSYS, NEXT);
    emit_tree(p, items, n);
    emit_checks(p, v);
    if (v->network == ALLOW_LIST) {
        emit_send_checks(p);
    }
    if (v->network == OWN) {
        emit_own_socket_check(p, v);
    } else {
        emit_socket_check(p, v->network);
    }
    if (v->has_observer) {
        emit_open_checks(p, v);
    } else if (has_terminals(v)) {
        emit_terminal_checks(p);
    }
    emit_return(p, ALLOW, SECCOMP_RET_ALLOW);
    if (!v->has_observer) {
        emit_return(p, PERM, SECCOMP_RET_ERRNO | EPERM);
    }
    emit_return(p, NOSYS, SECCOMP_RET_ERRNO | ENOSYS);
    emit_return(p, KILL, SECCOMP_RET_KILL_PROCESS);
    if (v->has_broker || v->has_observer) {
        emit_return(p, NOTIFY, SECCOMP_RET_USER_NOTIF);
    }
    /* An observer tells what is refused, and gives EPERM. */
    if (v->has_observer) {
        p->labels[PERM] = p->labels[NOTIFY];
    }
    p->labels[CONNECT] = p->labels[v->network == ON    ? ALLOW
                                   : v->has_broker     ? NOTIFY
                                   : v->network == OWN ? ALLOW
                                                       : PERM];
}

static const struct variant variants[] = {
    {"x86_64_off",             AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  OFF,        false, false},
    {"x86_64_broker",          AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  OFF,        true,  false},
    {"x86_64_allow",           AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  ALLOW_LIST, true,  false},
    {"x86_64_on",              AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  ON,         false, false},
    {"x86_64_observed",        AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  OFF,        true,  true },
    {"x86_64_allow_observed",  AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  ALLOW_LIST, true,  true },
    {"x86_64_on_broker",       AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  ON,         true,  false},
    {"x86_64_on_observed",     AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  ON,         true,  true },
    {"aarch64_off",            AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, OFF,        false, false},
    {"aarch64_broker",         AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, OFF,        true,  false},
    {"aarch64_allow",          AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, ALLOW_LIST, true,  false},
    {"aarch64_on",             AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, ON,         false, false},
    {"aarch64_observed",       AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, OFF,        true,  true },
    {"aarch64_allow_observed", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, ALLOW_LIST, true,  true },
    {"aarch64_on_broker",      AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, ON,         true,  false},
    {"aarch64_on_observed",    AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, ON,         true,  true },
    {"x86_64_own",             AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  OWN,        false, false},
    {"x86_64_own_broker",      AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  OWN,        true,  false},
    {"x86_64_own_observed",    AUDIT_ARCH_X86_64,  SCMP_ARCH_X86_64,  OWN,        true,  true },
    {"aarch64_own",            AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, OWN,        false, false},
    {"aarch64_own_broker",     AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, OWN,        true,  false},
    {"aarch64_own_observed",   AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, OWN,        true,  true },
};

/* What an observer calls them. */
static void
print_names(FILE *out, uint32_t audit, uint32_t libseccomp_arch)
{
    for (size_t i = 0; i < COUNT(calls) + COUNT(observed); i++) {
        const struct call *c = i < COUNT(calls) ? &calls[i] : &observed[i - COUNT(calls)];
        int nr = number_of(c, libseccomp_arch);

        if (nr >= 0) {
            (void)fprintf(out, "    {0x%08xU, %d, \"%s\"},\n", audit, nr, c->name);
        }
    }
}

int
main(int argc, char **argv)
{
    static struct program programs[COUNT(variants)];
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;

    if (out == NULL) {
        die("usage: seccomp_gen OUTPUT.c", argc == 2 ? "cannot write it" : "one argument");
    }
    (void)fprintf(out, "/* Made by seccomp_gen from seccomp_table.h. */\n"
                       "#include <stddef.h>\n\n#include \"sandbox/linux/seccomp_program.h\"\n\n");
    for (size_t i = 0; i < COUNT(variants); i++) {
        build(&programs[i], &variants[i]);
        program_print(out, &programs[i], variants[i].name);
    }
    (void)fprintf(out, "const struct seccomp_program sandbox_seccomp_programs[] = {\n");
    for (size_t i = 0; i < COUNT(variants); i++) {
        (void)fprintf(out, "    {0x%08xU, %s, %s, %s, %s, %s, %d, %s},\n", variants[i].audit,
                      variants[i].network == ON ? "true" : "false",
                      variants[i].network == ALLOW_LIST ? "true" : "false",
                      variants[i].network == OWN ? "true" : "false",
                      variants[i].has_broker ? "true" : "false",
                      variants[i].has_observer ? "true" : "false", programs[i].n, variants[i].name);
    }
    (void)fprintf(out, "};\n\nconst struct seccomp_call sandbox_seccomp_calls[] = {\n");
    print_names(out, AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64);
    print_names(out, AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64);
    (void)fprintf(out, "    {0, 0, NULL},\n};\n");
    if (fclose(out) != 0) {
        die("writing failed", argv[1]);
    }
    return 0;
}
