#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "seccomp_machine.h"

static uint32_t
load(struct machine *m, const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;

    assert_true(offset % 4 == 0 && offset + 4 <= sizeof(*data));
    m->has_read_args = m->has_read_args || offset >= offsetof(struct seccomp_data, args);
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

static bool
is_taken(const struct machine *m, const struct sock_filter *in)
{
    switch (in->code) {
    case BPF_JMP | BPF_K | BPF_JEQ:
        return m->acc == in->k;
    case BPF_JMP | BPF_K | BPF_JGE:
        return m->acc >= in->k;
    case BPF_JMP | BPF_K | BPF_JGT:
        return m->acc > in->k;
    case BPF_JMP | BPF_K | BPF_JSET:
        return (m->acc & in->k) != 0;
    default:
        fail_msg("instruction 0x%x is not one that the filter may use", in->code);
        return false;
    }
}

uint32_t
run(const struct seccomp_program *p, const struct seccomp_data *data, struct machine *m)
{
    *m = (struct machine){0};
    while (m->pc < p->n) {
        const struct sock_filter *in = &p->insns[m->pc];

        m->pc++;
        m->steps++;
        switch (in->code) {
        case BPF_RET | BPF_K:
            return in->k;
        case BPF_LD | BPF_W | BPF_ABS:
            m->acc = load(m, data, in->k);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            m->acc &= in->k;
            break;
        default:
            m->pc += is_taken(m, in) ? in->jt : in->jf;
            break;
        }
    }
    fail_msg("the program runs off its end");
    return 0;
}

uint32_t
answer(uint32_t arch, bool has_network, uint32_t nr, const uint64_t args[3])
{
    const struct seccomp_program *p = sandbox_seccomp_find(arch, has_network, false, false);
    struct seccomp_data data = {
        .nr = (int)nr, .arch = arch, .args = {args[0], args[1], args[2]}
    };
    struct machine m;

    assert_non_null(p);
    return run(p, &data, &m);
}
