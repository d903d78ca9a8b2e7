#ifndef SY_BASE_MEM_H
#define SY_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * All heap goes through here: one seam for fault injection, accounting and
 * the wiping of secrets. Functions return NULL when memory is out; a size of
 * 0 gives a valid pointer.
 */
void *mem_alloc(size_t size);
void *mem_alloc_zero(size_t count, size_t size);
/* Like realloc(3): on failure the old block stays valid. */
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
/* Accepts NULL. */
void mem_free(void *p);
/*
 * Blocks of up to a page are taken from this memory, one after the other, as long
 * as there is room; it is not given out twice. For a program of one thread that
 * lives briefly: a heap has to ask for its first pages one by one. `start` is aligned
 * for any type and stays for good.
 */
void mem_set_arena(void *start, size_t size);
/* Wipes `size` bytes first, so that the compiler can't leave it out. */
void mem_free_secret(void *p, size_t size);

/* For interfaces of C and POSIX that take what they only read without const
 * (execve(2), jansson): the same pointer. */
static inline void *
mem_unconst(const void *p)
{
    union {
        const void *read_only;
        void *plain;
    } u = {.read_only = p};

    return u.plain;
}

/* For `SY_AUTO(mem_free_charp) char *s`: frees *p. */
void mem_free_charp(char **p);

/* *ret = a + b, or a * b; false (and *ret untouched) when it overflows. */
bool size_add(size_t *ret, size_t a, size_t b) __attribute__((warn_unused_result));
bool size_mul(size_t *ret, size_t a, size_t b) __attribute__((warn_unused_result));

/*
 * Fault injection for tests: the nth allocation from now (1 = the next)
 * fails, once; 0 switches it off. mem_fault_fired tells whether it did.
 * mem_live counts blocks that are allocated and not yet freed.
 */
void mem_fault_set(size_t nth);
bool mem_fault_fired(void);
size_t mem_live(void);

#endif
