#ifndef SY_SANDBOX_LINUX_SECCOMP_PROGRAM_H
#define SY_SANDBOX_LINUX_SECCOMP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/filter.h>

/*
 * The filter programs, written at build time by seccomp_gen from the one list
 * in seccomp_table.h: for each architecture one for "network off", the same
 * with a broker for connect(2), one for "allow list", which has a broker too, one for "network on",
 * the same with a broker, and of those with a broker one with an observer too. In them the broker
 * also opens the terminals that commands make (process/broker.h). Three more are for a network
 * namespace of its own, with the network off and with an allow list alike: without a broker, with
 * one, and with an observer too. All of them are in the binary, so that a unit test judges each; a
 * process loads the one of its own architecture.
 */
struct seccomp_program {
    uint32_t arch; /* AUDIT_ARCH_* */
    bool has_network;
    bool has_allow_list; /* TCP sockets, which the broker alone connects */
    bool
        has_own_network; /* TCP and UDP in a namespace; without a broker no Unix socket but pairs */
    bool has_broker; /* new terminals, and connect(2) but for network on, ask the listener; without
                        one connect(2) is refused while the network is off */
    bool has_observer; /* what is refused, and SECCOMP_OBSERVED, asks the listener */
    uint16_t n;
    const struct sock_filter *insns;
};

#define SECCOMP_PROGRAMS 22
struct seccomp_call {
    uint32_t arch;
    int nr;
    const char *name; /* NULL ends the list */
};
extern const struct seccomp_call sandbox_seccomp_calls[];
extern const struct seccomp_program sandbox_seccomp_programs[SECCOMP_PROGRAMS];

/* The program for an architecture; NULL if there is none. */
const struct seccomp_program *sandbox_seccomp_find(uint32_t arch, bool has_network, bool has_broker,
                                                   bool has_observer);
/* The one for an allow list. Without its listener it must not be used: TCP sockets would be there
 * and nobody to judge them. */
const struct seccomp_program *sandbox_seccomp_find_allow_list(uint32_t arch, bool has_observer);
/* The one for a network namespace of its own. In any other network it must not be used. An observer
 * comes with a broker. */
const struct seccomp_program *sandbox_seccomp_find_own(uint32_t arch, bool has_broker,
                                                       bool has_observer);
/* The name of a call that the filters know, of this build's architecture; NULL for others. */
const char *sandbox_seccomp_name(int nr);
/* AUDIT_ARCH_* of this build. */
uint32_t sandbox_seccomp_arch(void);

#endif
