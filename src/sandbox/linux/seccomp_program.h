#ifndef SY_SANDBOX_LINUX_SECCOMP_PROGRAM_H
#define SY_SANDBOX_LINUX_SECCOMP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/filter.h>

/*
 * The filter programs, written at build time by seccomp_gen from the one list
 * in seccomp_table.h: for each architecture one for "network off", the same
 * with a broker for connect(2), one for "allow list", which has a broker too, and one for "network
 * on". All of them are in the binary, so that a unit test judges each; a process loads the one of
 * its own architecture.
 */
struct seccomp_program {
    uint32_t arch; /* AUDIT_ARCH_* */
    bool has_network;
    bool has_allow_list; /* TCP sockets, which the broker alone connects */
    bool has_broker;     /* connect(2) asks the listener; else refused while the network is off */
    uint16_t n;
    const struct sock_filter *insns;
};

#define SECCOMP_PROGRAMS 8
extern const struct seccomp_program sandbox_seccomp_programs[SECCOMP_PROGRAMS];

/* The program for an architecture; NULL if there is none. */
const struct seccomp_program *sandbox_seccomp_find(uint32_t arch, bool has_network,
                                                   bool has_broker);
/* The one for an allow list. Without its listener it must not be used: TCP sockets would be there
 * and nobody to judge them. */
const struct seccomp_program *sandbox_seccomp_find_allow_list(uint32_t arch);
/* AUDIT_ARCH_* of this build. */
uint32_t sandbox_seccomp_arch(void);

#endif
