#ifndef SY_TESTS_UNIT_SANDBOX_SECCOMP_MACHINE_H
#define SY_TESTS_UNIT_SANDBOX_SECCOMP_MACHINE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "sandbox/linux/seccomp_program.h"

/* An interpreter of classic BPF, which runs the filters of both architectures. */

#define X86 AUDIT_ARCH_X86_64
#define ARM AUDIT_ARCH_AARCH64

#define ALLOW SECCOMP_RET_ALLOW
#define PERM  (SECCOMP_RET_ERRNO | EPERM)
#define NOSYS (SECCOMP_RET_ERRNO | ENOSYS)
#define KILL  SECCOMP_RET_KILL_PROCESS

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* After a run: how long it was, and whether it looked at arguments. */
struct machine {
    uint32_t acc;
    size_t pc;
    size_t steps;
    bool has_read_args;
};

/* What the program answers; a program that is not well-formed fails the test. */
uint32_t run(const struct seccomp_program *p, const struct seccomp_data *data, struct machine *m);
/* The same of the program without a broker and an observer. */
uint32_t answer(uint32_t arch, bool has_network, uint32_t nr, const uint64_t args[3]);

#endif
