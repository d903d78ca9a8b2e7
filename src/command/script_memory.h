#ifndef SY_COMMAND_SCRIPT_MEMORY_H
#define SY_COMMAND_SCRIPT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The heap of one parser. tree-sitter takes it for granted that memory never runs out: it
 * asks for some and writes. So it gets a piece of fixed size that was allocated before,
 * and is stopped from outside, between two steps, once half of that is used. One step
 * takes less than the other half by far: the largest array doubles.
 * Pages that are never touched cost nothing.
 */
struct script_memory {
    char *bytes;
    size_t size;
    size_t used; /* never shrinks; freed blocks are used again by size */
    void *freed[80];
};

/* NULL when memory is out. */
struct script_memory *script_memory_new(size_t size);
/* Accepts NULL. */
void script_memory_free(struct script_memory *m);

/* All of it is free again, whatever was in it. */
void script_memory_reset(struct script_memory *m);

/* The parser's code must be told to stop. */
bool script_memory_is_low(const struct script_memory *m);

/* Whose memory this thread's calls of tree-sitter use, until it is given another: NULL, for
 * none. Every call that may allocate or free stands between two of these. */
void script_memory_use(struct script_memory *m);

#endif
