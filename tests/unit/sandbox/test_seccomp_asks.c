/*
 * The filters that ask: with a broker, of an allow list, in a network namespace of their own, and
 * with an observer. The numbers are written out here, as in test_seccomp_table.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <seccomp.h>

#include "sandbox/linux/seccomp_table.h"
#include "seccomp_machine.h"

/* The program with a broker differs from the one without in connect, and in how terminals are
 * opened: none of these arguments has O_NOCTTY. */
static void
the_broker_is_asked_for_connect_and_nothing_else(void **state)
{
    static const uint32_t arches[] = {X86, ARM};
    static const int connects[] = {42, 203};

    (void)state;
    for (size_t a = 0; a < 2; a++) {
        const struct seccomp_program *with = sandbox_seccomp_find(arches[a], false, true, false);

        for (int nr = 0; nr <= SECCOMP_LAST_KNOWN + 1; nr++) {
            static const uint64_t args[3] = {3, 0x7f0000000000, 16};
            struct seccomp_data data = {
                .nr = nr, .arch = arches[a], .args = {args[0], args[1], args[2]}
            };
            struct machine m;
            uint32_t got = run(with, &data, &m);

            if (nr == connects[a]) {
                assert_int_equal(got, SECCOMP_RET_USER_NOTIF);
                assert_int_equal(answer(arches[a], false, (uint32_t)nr, args),
                                 SECCOMP_RET_ERRNO | EPERM);
                assert_int_equal(answer(arches[a], true, (uint32_t)nr, args), ALLOW);
            } else {
                assert_int_equal(got, answer(arches[a], false, (uint32_t)nr, args));
            }
        }
    }
}

/* With the network on connect(2) is nobody's matter, terminals are all the same. */
static void
the_broker_opens_terminals_where_they_are_everybodys(void **state)
{
    enum { PEER = 0x5441, NOCTTY = 0400, CREAT = 0100 };
    static const struct {
        int nr_x86; /* -1: not there */
        int nr_arm;
        uint64_t args[3];
        bool asks;
    } rows[] = {
        {16,  29,  {3, PEER, 2},                  true },
        {16,  29,  {3, 0x700000000ULL | PEER, 2}, true },
        {16,  29,  {3, 0x5401, 2},                false}, /* TCGETS */
        {257, 56,  {0, 0, NOCTTY},                true },
        {257, 56,  {0, 0, NOCTTY | 2 | 02000000}, true },
        {257, 56,  {0, 0, 02000000 | 0200000},    false},
        {257, 56,  {0, 0, NOCTTY | CREAT | 1},    false}, /* touch */
        {257, 56,  {0, NOCTTY, 2},                false},
        {2,   -1,  {0, NOCTTY | 2, 0},            true },
        {2,   -1,  {0, 2, NOCTTY},                false},
        {42,  -1,  {3, 0x7f0000000000, 16},       false},
        {-1,  203, {3, 0x7f0000000000, 16},       false},
    };

    (void)state;
    for (size_t i = 0; i < 8 * COUNT(rows); i++) {
        size_t k = i / 8;
        uint32_t arch = i % 2 == 0 ? X86 : ARM;
        bool has_broker = i % 4 >= 2;
        bool has_network = i % 8 >= 4;
        int nr = arch == X86 ? rows[k].nr_x86 : rows[k].nr_arm;
        const struct seccomp_program *p =
            sandbox_seccomp_find(arch, has_network, has_broker, false);
        struct seccomp_data data = {
            .nr = nr, .arch = arch, .args = {rows[k].args[0], rows[k].args[1], rows[k].args[2]}
        };
        struct machine m;

        assert_non_null(p);
        if (nr < 0 || ((nr == 42 || nr == 203) && !has_network)) {
            continue;
        }
        assert_int_equal(run(p, &data, &m),
                         rows[k].asks && has_broker ? SECCOMP_RET_USER_NOTIF : ALLOW);
    }
    /* In a network of its own the tree has a /dev of its own. */
    for (size_t i = 0; i < 2; i++) {
        struct seccomp_data data = {
            .nr = i == 0 ? 16 : 29, .arch = i == 0 ? X86 : ARM, .args = {3, PEER, 2}
        };
        struct machine m;

        assert_int_equal(run(sandbox_seccomp_find_own(data.arch, true, false), &data, &m), ALLOW);
    }
}

/* What an allow list lets through, beside what it does not. */
static void
an_allow_list_has_tcp_and_asks_before_it_connects_or_listens(void **state)
{
    enum { STREAM = 1, DGRAM = 2, RAW = 3, FLAGS = 0x80800, ASK = 0, FASTOPEN = 0x20000000 };
    static const struct {
        int nr_x86;
        int nr_arm;
        uint64_t args[4];
        uint32_t expected; /* ASK: the listener */
    } rows[] = {
        {41,  198, {2, STREAM, 0},                       ALLOW},
        {41,  198, {10, STREAM | FLAGS, 6},              ALLOW},
        {41,  198, {0x10000000aULL, STREAM, 6},          ALLOW},
        {41,  198, {2, STREAM, 262},                     PERM }, /* MPTCP */
        {41,  198, {2, STREAM, 132},                     PERM }, /* SCTP */
        {41,  198, {2, STREAM, 256},                     PERM }, /* SMC */
        {41,  198, {2, STREAM, 17},                      PERM },
        {41,  198, {2, DGRAM, 0},                        PERM },
        {41,  198, {2, DGRAM, 17},                       PERM },
        {41,  198, {10, DGRAM, 58},                      PERM }, /* ping */
        {41,  198, {2, RAW, 6},                          PERM },
        {41,  198, {2, 5, 0},                            PERM },
        {41,  198, {1, STREAM, 0},                       ALLOW},
        {41,  198, {1, DGRAM, 0},                        PERM },
        {41,  198, {16, RAW, 0},                         ALLOW},
        {41,  198, {16, RAW, 12},                        PERM },
        {41,  198, {17, RAW, 0x300},                     PERM },
        {41,  198, {43, STREAM, 0},                      PERM }, /* AF_SMC */
        {42,  203, {3, 0x7f0000000000, 16},              ASK  },
        {50,  201, {3, 5},                               ASK  },
        {49,  200, {3, 0x7f0000000000, 16},              ALLOW}, /* bind */
        {44,  206, {3, 0, 0, 0},                         ALLOW},
        {44,  206, {3, 0, 0, 0x4000},                    ALLOW}, /* MSG_NOSIGNAL */
        {44,  206, {3, 0, 0, FASTOPEN},                  PERM },
        {44,  206, {3, 0, 0, FASTOPEN | 0x4000},         PERM },
        {44,  206, {3, 0, 0, FASTOPEN | 0x700000000ULL}, PERM },
        {44,  206, {3, 0, FASTOPEN, 0},                  ALLOW}, /* a length */
        {46,  211, {3, 0, 0x4000},                       ALLOW},
        {46,  211, {3, 0, FASTOPEN},                     PERM },
        {46,  211, {3, 0, FASTOPEN | 0xf00000000ULL},    PERM },
        {307, 269, {3, 0, 1, 0},                         ALLOW}, /* sendmmsg */
        {307, 269, {3, 0, 1, FASTOPEN},                  PERM },
    };

    (void)state;
    for (size_t i = 0; i < 4 * COUNT(rows); i++) {
        uint32_t arch = i % 2 == 0 ? X86 : ARM;
        bool is_told = i % 4 >= 2;
        size_t k = i / 4;
        const struct seccomp_program *p = sandbox_seccomp_find_allow_list(arch, is_told);
        struct seccomp_data data = {
            .nr = arch == X86 ? rows[k].nr_x86 : rows[k].nr_arm,
            .arch = arch,
            .args = {rows[k].args[0], rows[k].args[1], rows[k].args[2], rows[k].args[3]}
        };
        /* What is refused is asked about too where somebody observes. */
        bool asks = rows[k].expected == ASK || (is_told && rows[k].expected == PERM);
        uint32_t expected = asks ? SECCOMP_RET_USER_NOTIF : rows[k].expected;
        struct machine m;

        assert_non_null(p);
        assert_true(p->has_broker);

        uint32_t got = run(p, &data, &m);

        if (got != expected) {
            fail_msg("row %zu (%s): 0x%x instead of 0x%x", k, arch == X86 ? "x86_64" : "aarch64",
                     got, expected);
        }
    }
}

/* Whatever else it refuses is what "network off" refuses. */
static void
// NOLINTNEXTLINE(readability-function-size): all architectures and calls
an_allow_list_differs_from_off_in_nothing_else(void **state)
{
    static const uint64_t hostile[4] = {0x7e020080, 0x5412, 0, 1};
    static const uint32_t arches[] = {X86, ARM};
    static const int changed[2][4] = {
        {50,  44,  46,  307},
        {201, 206, 211, 269}
    };

    (void)state;
    for (size_t a = 0; a < 2; a++) {
        const struct seccomp_program *off = sandbox_seccomp_find(arches[a], false, true, false);
        const struct seccomp_program *list = sandbox_seccomp_find_allow_list(arches[a], false);
        const struct seccomp_program *off_told = sandbox_seccomp_find(arches[a], false, true, true);
        const struct seccomp_program *list_told = sandbox_seccomp_find_allow_list(arches[a], true);

        for (int nr = 0; nr <= SECCOMP_LAST_KNOWN + 1; nr++) {
            struct seccomp_data data = {
                .nr = nr,
                .arch = arches[a],
                .args = {hostile[0], hostile[1], hostile[2], hostile[3]}
            };
            struct machine m;
            bool is_changed = false;

            for (size_t i = 0; i < 4; i++) {
                is_changed = is_changed || changed[a][i] == nr;
            }
            if (!is_changed && (run(off, &data, &m) != run(list, &data, &m) ||
                                run(off_told, &data, &m) != run(list_told, &data, &m))) {
                fail_msg("call %d is judged in another way", nr);
            }
        }
    }
}

enum { OWN_ALONE, OWN_BROKER, OWN_OBSERVED, OWN_PROGRAMS };

/* What it has in its own namespace; `alone`: where nobody judges connect(2). */
static void
an_own_network_has_tcp_and_udp_and_the_kinds_of_off(void **state)
{
    enum { STREAM = 1, DGRAM = 2, RAW = 3, SEQPACKET = 5, FLAGS = 0x80800, ASK = 0 };
    static const struct {
        int nr_x86;
        int nr_arm;
        uint64_t args[4];
        uint32_t alone;
        uint32_t with; /* a broker; ASK: the listener */
    } rows[] = {
        {41, 198, {2, STREAM, 0},              ALLOW, ALLOW},
        {41, 198, {10, STREAM | FLAGS, 6},     ALLOW, ALLOW},
        {41, 198, {0x10000000aULL, DGRAM, 17}, ALLOW, ALLOW},
        {41, 198, {2, DGRAM | FLAGS, 0},       ALLOW, ALLOW},
        {41, 198, {2, DGRAM, 1},               PERM,  PERM }, /* ping */
        {41, 198, {10, DGRAM, 58},             PERM,  PERM },
        {41, 198, {2, DGRAM, 136},             PERM,  PERM }, /* UDP-Lite */
        {41, 198, {2, STREAM, 262},            PERM,  PERM }, /* MPTCP */
        {41, 198, {2, STREAM, 132},            PERM,  PERM }, /* SCTP */
        {41, 198, {2, STREAM, 256},            PERM,  PERM }, /* SMC */
        {41, 198, {2, SEQPACKET, 0},           PERM,  PERM },
        {41, 198, {2, 6, 33},                  PERM,  PERM }, /* DCCP */
        {41, 198, {2, RAW, 6},                 PERM,  PERM },
        {41, 198, {2, 10, 0x300},              PERM,  PERM }, /* becomes AF_PACKET */
        {41, 198, {17, RAW, 0x300},            PERM,  PERM },
        {41, 198, {40, STREAM, 0},             PERM,  PERM }, /* AF_VSOCK */
        {41, 198, {38, SEQPACKET, 0},          PERM,  PERM }, /* AF_ALG */
        {41, 198, {43, STREAM, 0},             PERM,  PERM }, /* AF_SMC */
        {41, 198, {44, RAW, 0},                PERM,  PERM }, /* AF_XDP */
        {41, 198, {16, RAW, 0},                ALLOW, ALLOW}, /* NETLINK_ROUTE */
        {41, 198, {16, DGRAM, 4},              PERM,  PERM }, /* NETLINK_SOCK_DIAG */
        {41, 198, {16, RAW, 12},               PERM,  PERM }, /* NETLINK_NETFILTER */
        {41, 198, {1, STREAM, 0},              PERM,  ALLOW}, /* AF_UNIX */
        {41, 198, {1, SEQPACKET | FLAGS, 0},   PERM,  ALLOW},
        {41, 198, {1, DGRAM, 0},               PERM,  PERM },
        {53, 199, {1, STREAM | FLAGS, 0},      ALLOW, ALLOW},
        {53, 199, {1, SEQPACKET, 0},           ALLOW, ALLOW},
        {53, 199, {1, DGRAM, 0},               PERM,  PERM },
        {42, 203, {3, 0x7f0000000000, 16},     ALLOW, ASK  },
        {50, 201, {3, 5},                      ALLOW, ALLOW}, /* listen */
        {49, 200, {3, 0x7f0000000000, 16},     ALLOW, ALLOW}, /* bind */
        {44, 206, {3, 0, 0, 0x20000000},       ALLOW, ALLOW}, /* MSG_FASTOPEN */
    };

    (void)state;
    for (size_t i = 0; i < (size_t)2 * OWN_PROGRAMS * COUNT(rows); i++) {
        uint32_t arch = i % 2 == 0 ? X86 : ARM;
        size_t kind = i / 2 % OWN_PROGRAMS;
        size_t k = i / (2 * (size_t)OWN_PROGRAMS);
        const struct seccomp_program *p =
            sandbox_seccomp_find_own(arch, kind != OWN_ALONE, kind == OWN_OBSERVED);
        struct seccomp_data data = {
            .nr = arch == X86 ? rows[k].nr_x86 : rows[k].nr_arm,
            .arch = arch,
            .args = {rows[k].args[0], rows[k].args[1], rows[k].args[2], rows[k].args[3]}
        };
        uint32_t expected = kind == OWN_ALONE ? rows[k].alone : rows[k].with;
        bool asks = expected == ASK || (kind == OWN_OBSERVED && expected == PERM);
        struct machine m;

        assert_non_null(p);

        uint32_t got = run(p, &data, &m);

        if (got != (asks ? SECCOMP_RET_USER_NOTIF : expected)) {
            fail_msg("row %zu, program %zu (%s): 0x%x", k, kind, arch == X86 ? "x86_64" : "aarch64",
                     got);
        }
    }
}

/* But for sockets and connect(2) it refuses what "network off" refuses. */
static void
an_own_network_differs_from_off_in_nothing_else(void **state)
{
    static const uint64_t hostile[4] = {0x7e020080, 0x5412, 0, 1};
    static const uint32_t arches[] = {X86, ARM};
    static const int changed[2][3] = {
        {41,  53,  42 },
        {198, 199, 203}
    };

    (void)state;
    for (size_t i = 0; i < 2 * (size_t)(SECCOMP_LAST_KNOWN + 2); i++) {
        size_t a = i % 2;
        int nr = (int)(i / 2);
        struct seccomp_data data = {
            .nr = nr, .arch = arches[a], .args = {hostile[0], hostile[1], hostile[2], hostile[3]}
        };
        struct machine m;

        if (nr == changed[a][0] || nr == changed[a][1] || nr == changed[a][2]) {
            continue;
        }
        for (int kind = 0; kind < OWN_PROGRAMS; kind++) {
            bool has_broker = kind != OWN_ALONE;
            bool is_told = kind == OWN_OBSERVED;

            if (is_told && nr == (arches[a] == X86 ? 257 : 56)) {
                continue; /* openat(2) to read */
            }
            assert_int_equal(
                run(sandbox_seccomp_find_own(arches[a], has_broker, is_told), &data, &m),
                run(sandbox_seccomp_find(arches[a], false, has_broker, is_told), &data, &m));
        }
    }
}

static const char *const observed[] = {
#define OBSERVED_NAME(name, number, verdict, op, dir, path, op2, dir2, path2) #name,
    SECCOMP_OBSERVED(OBSERVED_NAME)
#undef OBSERVED_NAME
};

/* Is this one of the calls that an observer is told of, though they go on? */
static bool
is_observed(uint32_t libseccomp_arch, int nr)
{
    for (size_t i = 0; i < COUNT(observed); i++) {
        if (seccomp_syscall_resolve_name_arch(libseccomp_arch, observed[i]) == nr) {
            return true;
        }
    }
    return false;
}

/* Whatever is refused without an observer, it is asked about; nothing that is refused is among
 * what it lets go on. */
static void
the_observer_is_asked_for_what_is_refused_and_for_what_writes(void **state)
{
    static const uint64_t hostile[3] = {0x7e020080, 0x5412, 1};
    static const uint32_t arches[] = {X86, ARM};
    static const uint32_t scmp[] = {SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64};

    (void)state;
    for (int round = 0; round < 4 * (SECCOMP_LAST_KNOWN + 1); round++) {
        int nr = round / 4;
        size_t a = (size_t)round % 2;
        bool on = round % 4 >= 2;
        const struct seccomp_program *p = sandbox_seccomp_find(arches[a], on, true, true);
        struct seccomp_data data = {
            .nr = nr, .arch = arches[a], .args = {hostile[0], hostile[1], hostile[2]}
        };
        struct machine m;
        uint32_t before = answer(arches[a], on, (uint32_t)nr, hostile);
        uint32_t got = run(p, &data, &m);

        if (is_observed(scmp[a], nr)) {
            assert_int_equal(before, ALLOW);
            assert_int_equal(got, SECCOMP_RET_USER_NOTIF);
        } else {
            assert_int_equal(got, before == PERM ? SECCOMP_RET_USER_NOTIF : before);
        }
    }
}

/* Where mounts hide what can't be read they tell of it, and reading asks nobody. Elsewhere all that
 * opens more than a place is asked about. */
static void
reading_is_observed_where_landlock_alone_refuses_it(void **state)
{
    static const uint64_t flags[] = {0, 02000000 /* O_CLOEXEC */, 0200000 /* O_DIRECTORY */};
    const struct seccomp_program *const own = sandbox_seccomp_find_own(X86, true, true);
    const struct seccomp_program *const others[] = {sandbox_seccomp_find(X86, false, true, true),
                                                    sandbox_seccomp_find(X86, true, true, true),
                                                    sandbox_seccomp_find_allow_list(X86, true)};

    (void)state;
    for (size_t i = 0; i < COUNT(flags); i++) {
        struct seccomp_data data = {
            .nr = 257, .arch = X86, .args = {0, 0, flags[i]}
        };
        struct machine m;

        assert_int_equal(run(own, &data, &m), ALLOW);
        for (size_t k = 0; k < COUNT(others); k++) {
            assert_int_equal(run(others[k], &data, &m), SECCOMP_RET_USER_NOTIF);
            data.args[2] = flags[i] | 010000000; /* O_PATH */
            assert_int_equal(run(others[k], &data, &m), ALLOW);
            data.args[2] = flags[i];
        }
        data.args[2] |= 01000; /* O_TRUNC */
        assert_int_equal(run(own, &data, &m), SECCOMP_RET_USER_NOTIF);
        data.args[2] = flags[i] | 1;
        assert_int_equal(run(own, &data, &m), SECCOMP_RET_USER_NOTIF);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_broker_is_asked_for_connect_and_nothing_else),
        cmocka_unit_test(the_broker_opens_terminals_where_they_are_everybodys),
        cmocka_unit_test(an_allow_list_has_tcp_and_asks_before_it_connects_or_listens),
        cmocka_unit_test(an_allow_list_differs_from_off_in_nothing_else),
        cmocka_unit_test(an_own_network_has_tcp_and_udp_and_the_kinds_of_off),
        cmocka_unit_test(an_own_network_differs_from_off_in_nothing_else),
        cmocka_unit_test(the_observer_is_asked_for_what_is_refused_and_for_what_writes),
        cmocka_unit_test(reading_is_observed_where_landlock_alone_refuses_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
