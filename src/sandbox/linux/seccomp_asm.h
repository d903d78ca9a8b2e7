#ifndef SY_SANDBOX_LINUX_SECCOMP_ASM_H
#define SY_SANDBOX_LINUX_SECCOMP_ASM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Classic BPF with labels, for seccomp_gen. Jumps lead forward; a label is a number of the
 * program's own. */
enum { NEXT }; /* the following instruction */

#define MAX_INSNS  320
#define MAX_LABELS 128

struct insn {
    uint16_t code;
    uint32_t k;
    int on_true;
    int on_false;
};

struct program {
    struct insn insns[MAX_INSNS];
    int n;
    int labels[MAX_LABELS];
    int n_labels;
};

/* Ends the build with a sentence. */
_Noreturn void die(const char *what, const char *name);
void emit(struct program *p, uint16_t code, uint32_t k, int on_true, int on_false);
void emit_load(struct program *p, size_t offset);
/*
 * The half of an argument that the kernel looks at where it takes an int:
 * comparing all 64 bits let TIOCSTI through elsewhere (0x100005412).
 */
void emit_load_arg(struct program *p, unsigned arg);
void emit_load_arg_high(struct program *p, unsigned arg);
void emit_jump(struct program *p, uint16_t how, uint32_t k, int on_true, int on_false);
void emit_and(struct program *p, uint32_t mask);
/* The label's place is here. */
void emit_return(struct program *p, int label, uint32_t action);
/* As C, an array of that name. */
void program_print(FILE *out, const struct program *p, const char *name);

#endif
