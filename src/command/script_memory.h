#ifndef SY_COMMAND_SCRIPT_MEMORY_H
#define SY_COMMAND_SCRIPT_MEMORY_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The heap of one parser. tree-sitter takes it for granted that memory never runs out: it
 * asks for some and writes. So it gets a piece of fixed size that was allocated before,
 * and is stopped from outside, between two steps, once half of that is used. One step may
 * take more than the other half, too, where an array doubles: then it is left in the middle
 * of it (script_memory_run). All that it has is in this memory, and lost with it.
 * Pages that are never touched cost nothing.
 */
struct script_memory {
    char *bytes;
    size_t size;
    size_t used; /* never shrinks; freed blocks are used again by size */
    void *freed[80];
    jmp_buf *end; /* of the run; NULL: none */
};

/* NULL when memory is out. */
struct script_memory *script_memory_new(size_t size);
/* Accepts NULL. */
void script_memory_free(struct script_memory *m);

/* All of it is free again, whatever was in it. */
void script_memory_reset(struct script_memory *m);

/* The parser's code must be told to stop. */
bool script_memory_is_low(const struct script_memory *m);

/* Runs `body`, whose calls of tree-sitter use this memory. False: it ran out, and `body` was left
 * in the middle: it must hold nothing else, and the memory has to be reset. */
bool script_memory_run(struct script_memory *m, void (*body)(void *arg), void *arg);

/* Whose memory this thread's calls of tree-sitter use, until it is given another: NULL, for
 * none. Every call that may allocate or free stands between two of these. */
void script_memory_use(struct script_memory *m);

#endif
