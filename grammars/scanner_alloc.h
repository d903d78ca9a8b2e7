/*
 * In front of a grammar's scanner: what it takes from the C library comes from the parser's
 * allocator too, so that a parse that is left in the middle leaves nothing behind
 * (src/command/script_memory.h).
 */
#include <stdlib.h>

extern void *(*ts_current_calloc)(size_t count, size_t size);
extern void (*ts_current_free)(void *ptr);

#define calloc ts_current_calloc
#define free   ts_current_free
