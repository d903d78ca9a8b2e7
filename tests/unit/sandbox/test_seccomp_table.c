/*
 * The filters of both architectures, run by an interpreter of classic BPF
 * against what each call must answer. The numbers are written out here: they
 * do not come from where the generator has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seccomp.h>

#include "base/buf.h"
#include "base/fd.h"
#include "sandbox/linux/seccomp_table.h"
#include "seccomp_machine.h"

static const char *doc_path;

/* One call on both architectures, with the network off and on. */
struct expectation {
    int nr_x86; /* -1: does not exist there */
    int nr_arm;
    uint64_t args[3];
    uint32_t off;
    uint32_t on;
};

static void
check_one(const struct expectation *e, uint32_t arch, bool has_network)
{
    int nr = arch == X86 ? e->nr_x86 : e->nr_arm;
    uint32_t expected = has_network ? e->on : e->off;

    if (nr < 0) {
        return;
    }

    uint32_t got = answer(arch, has_network, (uint32_t)nr, e->args);

    if (got != expected) {
        fail_msg("call %d (%s, network %s, arguments 0x%llx 0x%llx): 0x%x instead of 0x%x", nr,
                 arch == X86 ? "x86_64" : "aarch64", has_network ? "on" : "off",
                 (unsigned long long)e->args[0], (unsigned long long)e->args[1], got, expected);
    }
}

static void
check(const struct expectation *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_one(&e[i], X86, false);
        check_one(&e[i], X86, true);
        check_one(&e[i], ARM, false);
        check_one(&e[i], ARM, true);
    }
}

static void
check_ordinary(int nr, uint32_t arch)
{
    for (int has_network = 0; nr >= 0 && has_network < 2; has_network++) {
        const struct seccomp_program *p =
            sandbox_seccomp_find(arch, has_network == 1, false, false);
        struct seccomp_data data = {
            .nr = nr, .arch = arch, .args = {~0ULL, ~0ULL, ~0ULL}
        };
        struct machine m;

        if (run(p, &data, &m) != ALLOW) {
            fail_msg("call %d (%s) is refused", nr, arch == X86 ? "x86_64" : "aarch64");
        }
        assert_false(m.has_read_args); /* else the kernel can't cache the verdict */
        assert_true(m.steps <= 16);
    }
}

static void
ordinary_calls_are_allowed_without_a_look_at_arguments(void **state)
{
    /* read write openat close mmap execve clone's kin, futex, kill, ... */
    static const struct {
        int x86;
        int arm;
    } calls[] = {
        {0,   63 },
        {1,   64 },
        {257, 56 },
        {3,   57 },
        {9,   222},
        {59,  221},
        {322, 281},
        {202, 98 },
        {62,  129},
        {61,  260},
        {49,  200},
        {50,  201},
        {51,  204},
        {54,  208},
        {44,  206},
        {46,  211},
        {72,  25 },
        {137, 43 },
        {157, 167},
        {160, 164},
        {141, 140},
        {317, 277},
        {444, 444},
        {445, 445},
        {446, 446},
        {434, 434},
        {424, 424},
        {436, 436},
        {319, 279},
        {318, 278},
        {332, 291},
        {334, 293},
        {439, 439},
        {452, 452},
        {471, 471},
        {58,  -1 },
        {57,  -1 },
        {2,   -1 },
        {4,   -1 },
        {158, -1 },
        {126, 91 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(calls); i++) {
        check_ordinary(calls[i].x86, X86);
        check_ordinary(calls[i].arm, ARM);
    }
}

static void
a_foreign_architecture_ends_the_process(void **state)
{
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0};

    (void)state;
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        const struct seccomp_program *p = &sandbox_seccomp_programs[i];

        for (size_t k = 0; k < COUNT(foreign); k++) {
            for (int nr = 0; nr < 500; nr++) {
                struct seccomp_data data = {.nr = nr, .arch = foreign[k]};
                struct machine m;

                assert_int_equal(run(p, &data, &m), KILL);
            }
        }
    }
}

static void
x32_and_unknown_calls_do_not_exist(void **state)
{
    static const uint32_t unknown[] = {472, 512, 547, 999, 9999, 0x7fffffff, 0xffffffff};
    static const uint64_t none[3] = {0};

    (void)state;
    for (uint32_t nr = 0; nr < 600; nr++) {
        assert_int_equal(answer(X86, false, nr | 0x40000000U, none), NOSYS);
        assert_int_equal(answer(X86, true, nr | 0x40000000U, none), NOSYS);
    }
    for (size_t i = 0; i < COUNT(unknown); i++) {
        assert_int_equal(answer(X86, false, unknown[i], none), NOSYS);
        assert_int_equal(answer(ARM, true, unknown[i], none), NOSYS);
    }
}

static void
namespaces_can_not_be_made_by_clone_or_unshare(void **state)
{
    static const uint32_t flags[] = {0x20000,    0x2000000,  0x4000000, 0x8000000,
                                     0x10000000, 0x20000000, 0x40000000};

    (void)state;
    for (size_t i = 0; i < COUNT(flags); i++) {
        const struct expectation rows[] = {
            {56,  220, {flags[i] | 17},                  PERM, PERM},
            {56,  220, {flags[i] | 0x100000000ULL},      PERM, PERM},
            {272, 97,  {flags[i]},                       PERM, PERM},
            {272, 97,  {flags[i] | 0x10000000000000ULL}, PERM, PERM},
        };

        check(rows, COUNT(rows));
    }

    static const struct expectation others[] = {
        {56,  220, {17},               ALLOW, ALLOW}, /* fork */
        {56,  220, {0x4111},           ALLOW, ALLOW}, /* vfork */
        {56,  220, {0x3d0f00},         ALLOW, ALLOW}, /* a thread */
        {56,  220, {0x20000000000ULL}, ALLOW, ALLOW}, /* beyond what the kernel reads */
        {272, 97,  {0x80},             PERM,  PERM }, /* time namespace */
        {272, 97,  {0x200},            ALLOW, ALLOW}, /* CLONE_FS */
        {272, 97,  {0x400},            ALLOW, ALLOW}, /* CLONE_FILES */
        {435, 435, {0},                NOSYS, NOSYS},
        {308, 268, {3, 0},             PERM,  PERM },
    };

    check(others, COUNT(others));
}

static void
typing_into_a_terminal_is_refused_whatever_the_high_bits_say(void **state)
{
    static const struct expectation rows[] = {
        {16, 29, {0, 0x5412},                PERM,  PERM },
        {16, 29, {0, 0x100005412ULL},        PERM,  PERM },
        {16, 29, {0, 0xffffffff00005412ULL}, PERM,  PERM },
        {16, 29, {0, 0x541c},                PERM,  PERM },
        {16, 29, {0, 0x541d},                PERM,  PERM },
        {16, 29, {0, 0x5423},                PERM,  PERM },
        {16, 29, {0, 0x5401},                ALLOW, ALLOW}, /* TCGETS */
        {16, 29, {0, 0x5410},                ALLOW, ALLOW}, /* TIOCSPGRP */
        {16, 29, {0, 0x540e},                ALLOW, ALLOW}, /* TIOCSCTTY */
        {16, 29, {0, 0x5413},                ALLOW, ALLOW}, /* TIOCGWINSZ */
        {16, 29, {0, 0x541b},                ALLOW, ALLOW}, /* FIONREAD */
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void
personality_takes_the_usual_values(void **state)
{
    static const struct expectation rows[] = {
        {135, 92, {0},                     ALLOW, ALLOW},
        {135, 92, {0x40000},               ALLOW, ALLOW},
        {135, 92, {0xffffffff},            ALLOW, ALLOW},
        {135, 92, {0xffffffffffffffffULL}, ALLOW, ALLOW},
        {135, 92, {8},                     PERM,  PERM }, /* PER_LINUX32 */
        {135, 92, {0x20000},               PERM,  PERM }, /* UNAME26 */
        {135, 92, {0x400000},              PERM,  PERM }, /* READ_IMPLIES_EXEC */
        {135, 92, {0x440000},              PERM,  PERM },
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void
limits_are_set_on_the_caller_alone(void **state)
{
    static const struct expectation rows[] = {
        {302, 261, {0, 7, 0x7ffd00000000ULL},  ALLOW, ALLOW},
        {302, 261, {42, 7, 0},                 ALLOW, ALLOW},
        {302, 261, {42, 7, 0x7ffd00000000ULL}, PERM,  PERM },
        {302, 261, {42, 7, 0x1000},            PERM,  PERM },
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void
calls_that_reach_other_processes_or_the_kernel_are_refused(void **state)
{
    static const struct expectation rows[] = {
        {101, 117, {0},  PERM,  PERM }, /* ptrace(PTRACE_TRACEME) */
        {101, 117, {16}, PERM,  PERM }, /* PTRACE_ATTACH */
        {310, 270, {0},  PERM,  PERM }, /* process_vm_readv */
        {311, 271, {0},  PERM,  PERM }, /* process_vm_writev */
        {312, 272, {0},  PERM,  PERM }, /* kcmp */
        {438, 438, {0},  PERM,  PERM }, /* pidfd_getfd */
        {425, 425, {0},  NOSYS, NOSYS}, /* io_uring_setup */
        {426, 426, {0},  NOSYS, NOSYS},
        {427, 427, {0},  NOSYS, NOSYS},
        {165, 40,  {0},  PERM,  PERM }, /* mount */
        {166, 39,  {0},  PERM,  PERM }, /* umount2 */
        {155, 41,  {0},  PERM,  PERM }, /* pivot_root */
        {428, 428, {0},  PERM,  PERM }, /* open_tree ... fspick */
        {429, 429, {0},  PERM,  PERM },
        {430, 430, {0},  PERM,  PERM },
        {431, 431, {0},  PERM,  PERM },
        {432, 432, {0},  PERM,  PERM },
        {433, 433, {0},  PERM,  PERM },
        {442, 442, {0},  PERM,  PERM }, /* mount_setattr */
        {467, 467, {0},  PERM,  PERM }, /* open_tree_attr */
        {321, 280, {0},  PERM,  PERM }, /* bpf */
        {298, 241, {0},  PERM,  PERM }, /* perf_event_open */
        {323, 282, {0},  PERM,  PERM }, /* userfaultfd */
        {447, 447, {0},  PERM,  PERM }, /* memfd_secret */
        {250, 219, {0},  PERM,  PERM }, /* keyctl */
        {248, 217, {0},  PERM,  PERM }, /* add_key */
        {249, 218, {0},  PERM,  PERM }, /* request_key */
        {246, 104, {0},  PERM,  PERM }, /* kexec_load */
        {320, 294, {0},  PERM,  PERM }, /* kexec_file_load */
        {175, 105, {0},  PERM,  PERM }, /* init_module */
        {313, 273, {0},  PERM,  PERM }, /* finit_module */
        {176, 106, {0},  PERM,  PERM }, /* delete_module */
        {174, -1,  {0},  PERM,  PERM }, /* create_module */
        {169, 142, {0},  PERM,  PERM }, /* reboot */
        {167, 224, {0},  PERM,  PERM }, /* swapon */
        {168, 225, {0},  PERM,  PERM }, /* swapoff */
        {163, 89,  {0},  PERM,  PERM }, /* acct */
        {179, 60,  {0},  PERM,  PERM }, /* quotactl */
        {443, 443, {0},  PERM,  PERM }, /* quotactl_fd */
        {172, -1,  {0},  PERM,  PERM }, /* iopl */
        {173, -1,  {0},  PERM,  PERM }, /* ioperm */
        {164, 170, {0},  PERM,  PERM }, /* settimeofday */
        {227, 112, {0},  PERM,  PERM }, /* clock_settime */
        {159, 171, {0},  PERM,  PERM }, /* adjtimex */
        {305, 266, {0},  PERM,  PERM }, /* clock_adjtime */
        {303, 264, {0},  PERM,  PERM }, /* name_to_handle_at */
        {304, 265, {0},  PERM,  PERM }, /* open_by_handle_at */
        {300, 262, {0},  PERM,  PERM }, /* fanotify_init */
        {212, 18,  {0},  PERM,  PERM }, /* lookup_dcookie */
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void
sockets_are_judged_by_family_type_and_protocol(void **state)
{
    enum { STREAM = 1, DGRAM = 2, RAW = 3, SEQPACKET = 5, OLD_PACKET = 10, FLAGS = 0x80800 };
    static const struct {
        uint64_t args[3];
        uint32_t off;
        uint32_t on;
    } rows[] = {
        {{1, STREAM, 0},              ALLOW, ALLOW}, /* AF_UNIX */
        {{1, STREAM | FLAGS, 0},      ALLOW, ALLOW},
        {{1, SEQPACKET | FLAGS, 0},   ALLOW, ALLOW},
        {{1, DGRAM, 0},               PERM,  ALLOW},
        {{1, DGRAM | FLAGS, 0},       PERM,  ALLOW},
        {{1, RAW, 0},                 PERM,  ALLOW}, /* the kernel makes it a DGRAM */
        {{2, STREAM, 0},              PERM,  ALLOW}, /* AF_INET */
        {{0x100000002ULL, STREAM, 0}, PERM,  ALLOW},
        {{2, STREAM | FLAGS, 6},      PERM,  ALLOW},
        {{2, DGRAM, 17},              PERM,  ALLOW},
        {{2, DGRAM, 1},               PERM,  ALLOW}, /* ping */
        {{2, STREAM, 262},            PERM,  ALLOW}, /* MPTCP */
        {{2, STREAM, 132},            PERM,  PERM }, /* SCTP */
        {{2, SEQPACKET, 0},           PERM,  PERM }, /* SCTP by default */
        {{2, 6, 33},                  PERM,  PERM }, /* DCCP */
        {{2, STREAM, 256},            PERM,  PERM }, /* SMC */
        {{2, RAW, 1},                 PERM,  PERM },
        {{2, OLD_PACKET, 0x300},      PERM,  PERM }, /* becomes AF_PACKET */
        {{10, STREAM, 0},             PERM,  ALLOW}, /* AF_INET6 */
        {{10, DGRAM, 58},             PERM,  ALLOW},
        {{16, RAW, 0},                ALLOW, ALLOW}, /* NETLINK_ROUTE */
        {{16, DGRAM | FLAGS, 0},      ALLOW, ALLOW},
        {{16, RAW, 9},                PERM,  PERM }, /* NETLINK_AUDIT */
        {{16, RAW, 15},               PERM,  PERM }, /* KOBJECT_UEVENT */
        {{16, RAW, 12},               PERM,  PERM }, /* NETFILTER */
        {{17, RAW, 0x300},            PERM,  PERM }, /* AF_PACKET */
        {{21, SEQPACKET, 0},          PERM,  PERM }, /* AF_RDS */
        {{30, SEQPACKET, 0},          PERM,  PERM }, /* AF_TIPC */
        {{31, RAW, 1},                PERM,  PERM }, /* AF_BLUETOOTH */
        {{38, SEQPACKET, 0},          PERM,  PERM }, /* AF_ALG */
        {{40, STREAM, 0},             PERM,  PERM }, /* AF_VSOCK */
        {{41, SEQPACKET, 0},          PERM,  PERM }, /* AF_KCM */
        {{43, STREAM, 0},             PERM,  PERM }, /* AF_SMC */
        {{44, RAW, 0},                PERM,  PERM }, /* AF_XDP */
        {{0, STREAM, 0},              PERM,  PERM },
        {{0xffffffff, STREAM, 0},     PERM,  PERM },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct expectation both[] = {
            {41, 198, {rows[i].args[0], rows[i].args[1], rows[i].args[2]}, rows[i].off, rows[i].on},
            {53, 199, {rows[i].args[0], rows[i].args[1], rows[i].args[2]}, rows[i].off, rows[i].on},
        };

        check(both, COUNT(both));
    }
}

struct listed {
    const char *name;
    int number;
    enum seccomp_verdict verdict;
    const char *why;
};

static const struct listed table[] = {
#define LISTED(name, number, verdict, why) {#name, number, verdict, why},
    SECCOMP_CALLS(LISTED)
#undef LISTED
};

/* Of the allow list alone; the other programs do not look at these. */
static bool
is_of_allow_list(enum seccomp_verdict v)
{
    return v == SECCOMP_LISTEN || v == SECCOMP_SENDTO || v == SECCOMP_SENDMSG;
}

static bool
is_listed(uint32_t libseccomp_arch, int nr)
{
    for (size_t i = 0; i < COUNT(table); i++) {
        int listed = seccomp_syscall_resolve_name_arch(libseccomp_arch, table[i].name);

        if (!is_of_allow_list(table[i].verdict) && (listed >= 0 ? listed : table[i].number) == nr &&
            nr != 0) {
            return true;
        }
    }
    return false;
}

static void
only_what_the_list_names_is_ever_refused(void **state)
{
    static const uint64_t hostile[3] = {0x7e020080, 0x5412, 1};

    (void)state;
    for (int nr = 0; nr <= SECCOMP_LAST_KNOWN; nr++) {
        bool x86 = answer(X86, false, (uint32_t)nr, hostile) != ALLOW;
        bool arm = answer(ARM, false, (uint32_t)nr, hostile) != ALLOW;

        if (x86 != is_listed(SCMP_ARCH_X86_64, nr) || arm != is_listed(SCMP_ARCH_AARCH64, nr)) {
            fail_msg("call %d: the list and the program disagree", nr);
        }
    }
}

static void
the_programs_stay_short_and_well_formed(void **state)
{
    (void)state;
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        const struct seccomp_program *p = &sandbox_seccomp_programs[i];

        /* Loading costs by length at every spawn. */
        assert_true(p->n <= (p->has_observer ? 150 : 120));
        for (size_t k = 0; k < p->n; k++) {
            const struct sock_filter *in = &p->insns[k];

            if (BPF_CLASS(in->code) == BPF_JMP) {
                assert_true(k + 1 + in->jt < p->n && k + 1 + in->jf < p->n);
            }
        }
        assert_int_equal(BPF_CLASS(p->insns[p->n - 1].code), BPF_RET);
    }
    assert_non_null(sandbox_seccomp_find(sandbox_seccomp_arch(), false, false, false));
    assert_non_null(sandbox_seccomp_find(sandbox_seccomp_arch(), false, true, false));
    assert_non_null(sandbox_seccomp_find(sandbox_seccomp_arch(), true, false, false));
    assert_non_null(sandbox_seccomp_find(sandbox_seccomp_arch(), false, true, true));
    assert_non_null(sandbox_seccomp_find(sandbox_seccomp_arch(), true, true, true));
    assert_null(sandbox_seccomp_find(AUDIT_ARCH_I386, true, false, false));
}

static const char *
verdict_text(enum seccomp_verdict v)
{
    switch (v) {
    case SECCOMP_EPERM:
        return "EPERM";
    case SECCOMP_ENOSYS:
        return "ENOSYS";
    case SECCOMP_NAMESPACE:
        return "EPERM with a `CLONE_NEW*` flag";
    case SECCOMP_IOCTL:
        return "EPERM for four commands";
    case SECCOMP_PERSONA:
        return "EPERM for other values";
    case SECCOMP_SOCKET:
    case SECCOMP_PAIR:
        return "EPERM for most kinds";
    case SECCOMP_PRLIMIT:
        return "EPERM to set another process's";
    case SECCOMP_LISTEN:
        return "EACCES on internet sockets";
    case SECCOMP_SENDTO:
    case SECCOMP_SENDMSG:
        return "EPERM with MSG_FASTOPEN";
    case SECCOMP_OBSERVE:
    case SECCOMP_OPEN_1:
    case SECCOMP_OPEN_2:
    case SECCOMP_TERMINAL_1:
    case SECCOMP_TERMINAL_2:
        fail_msg("a call that is only observed stands in the list of what is refused");
        break;
    case SECCOMP_CONNECT:
        break;
    }
    return "EACCES to others' sockets";
}

static void
the_manual_lists_each_call_and_no_other(void **state)
{
    SY_AUTO(buf_fini) struct buf doc = {.max = 1U << 20};
    SY_AUTO(buf_fini) struct buf rows = {.max = 1U << 20};
    struct sy_error err;

    (void)state;
    assert_non_null(doc_path);
    assert_int_equal(fd_read_file(doc_path, &doc, &err), SY_E_OK);
    assert_int_equal(buf_add_str(&rows, "| call | answer | why |\n|---|---|---|\n"), SY_E_OK);
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(buf_addf(&rows, "| `%s` | %s | %s |\n", table[i].name,
                                  verdict_text(table[i].verdict), table[i].why),
                         SY_E_OK);
    }
    assert_int_equal(buf_add_char(&rows, '\n'), SY_E_OK);
    if (strstr(buf_view(&doc), buf_view(&rows)) == NULL) {
        fail_msg("%s: the table of calls should be:\n%s", doc_path, buf_view(&rows));
    }
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_calls_are_allowed_without_a_look_at_arguments),
        cmocka_unit_test(a_foreign_architecture_ends_the_process),
        cmocka_unit_test(x32_and_unknown_calls_do_not_exist),
        cmocka_unit_test(namespaces_can_not_be_made_by_clone_or_unshare),
        cmocka_unit_test(typing_into_a_terminal_is_refused_whatever_the_high_bits_say),
        cmocka_unit_test(personality_takes_the_usual_values),
        cmocka_unit_test(limits_are_set_on_the_caller_alone),
        cmocka_unit_test(calls_that_reach_other_processes_or_the_kernel_are_refused),
        cmocka_unit_test(sockets_are_judged_by_family_type_and_protocol),
        cmocka_unit_test(only_what_the_list_names_is_ever_refused),
        cmocka_unit_test(the_programs_stay_short_and_well_formed),
        cmocka_unit_test(the_manual_lists_each_call_and_no_other),
    };

    doc_path = argc == 2 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
