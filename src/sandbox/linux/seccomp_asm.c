/* Part of the build-time program seccomp_gen. */
#include "sandbox/linux/seccomp_asm.h"

#include <stdlib.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

_Noreturn void
die(const char *what, const char *name)
{
    (void)fprintf(stderr, "seccomp_gen: %s: %s\n", what, name);
    exit(1);
}

void
emit(struct program *p, uint16_t code, uint32_t k, int on_true, int on_false)
{
    if (p->n == MAX_INSNS) {
        die("too many instructions", "raise MAX_INSNS");
    }
    p->insns[p->n] = (struct insn){code, k, on_true, on_false};
    p->n++;
}

void
emit_load(struct program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, NEXT, NEXT);
}

void
emit_load_arg(struct program *p, unsigned arg)
{
    emit_load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * arg);
}

void
emit_load_arg_high(struct program *p, unsigned arg)
{
    emit_load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * arg + sizeof(uint32_t));
}

void
emit_jump(struct program *p, uint16_t how, uint32_t k, int on_true, int on_false)
{
    emit(p, (uint16_t)(BPF_JMP | BPF_K | how), k, on_true, on_false);
}

void
emit_and(struct program *p, uint32_t mask)
{
    emit(p, BPF_ALU | BPF_AND | BPF_K, mask, NEXT, NEXT);
}

void
emit_return(struct program *p, int label, uint32_t action)
{
    p->labels[label] = p->n;
    emit(p, BPF_RET | BPF_K, action, NEXT, NEXT);
}

static unsigned
distance(const struct program *p, int from, int label)
{
    int to = label == NEXT ? from + 1 : p->labels[label];
    int skip = to - from - 1;

    if (skip < 0 || skip > UINT8_MAX) {
        die("jump out of reach", "split the program");
    }
    return (unsigned)skip;
}

void
program_print(FILE *out, const struct program *p, const char *name)
{
    (void)fprintf(out, "static const struct sock_filter %s[] = {\n", name);
    for (int i = 0; i < p->n; i++) {
        const struct insn *in = &p->insns[i];

        (void)fprintf(out, "    {0x%02x, %u, %u, 0x%08xU},\n", (unsigned)in->code,
                      distance(p, i, in->on_true), distance(p, i, in->on_false), in->k);
    }
    (void)fprintf(out, "};\n\n");
}
