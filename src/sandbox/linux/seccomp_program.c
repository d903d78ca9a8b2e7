#include "sandbox/linux/seccomp_program.h"

#include <stddef.h>

#include <linux/audit.h>

uint32_t
sandbox_seccomp_arch(void)
{
#if defined(__x86_64__)
    return AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    return AUDIT_ARCH_AARCH64;
#else
#    error "no filter for this architecture: add it to seccomp_gen.c"
#endif
}

const struct seccomp_program *
sandbox_seccomp_find(uint32_t arch, bool has_network, bool has_broker, bool has_observer)
{
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        const struct seccomp_program *p = &sandbox_seccomp_programs[i];

        if (p->arch == arch && !p->has_allow_list && !p->has_own_network &&
            p->has_network == has_network && p->has_broker == has_broker &&
            p->has_observer == has_observer) {
            return p;
        }
    }
    return NULL;
}

const struct seccomp_program *
sandbox_seccomp_find_allow_list(uint32_t arch, bool has_observer)
{
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        const struct seccomp_program *p = &sandbox_seccomp_programs[i];

        if (p->arch == arch && p->has_allow_list && p->has_observer == has_observer) {
            return p;
        }
    }
    return NULL;
}

const struct seccomp_program *
sandbox_seccomp_find_own(uint32_t arch, bool has_broker, bool has_observer)
{
    for (size_t i = 0; i < SECCOMP_PROGRAMS; i++) {
        const struct seccomp_program *p = &sandbox_seccomp_programs[i];

        if (p->arch == arch && p->has_own_network && p->has_broker == has_broker &&
            p->has_observer == has_observer) {
            return p;
        }
    }
    return NULL;
}

const char *
sandbox_seccomp_name(int nr)
{
    for (const struct seccomp_call *c = sandbox_seccomp_calls; c->name != NULL; c++) {
        if (c->arch == sandbox_seccomp_arch() && c->nr == nr) {
            return c->name;
        }
    }
    return NULL;
}
