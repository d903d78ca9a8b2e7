#include "base/mem.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Relaxed counters: the store's writer thread allocates too. */
static atomic_size_t live_blocks;
static atomic_size_t fault_countdown;
static atomic_bool fault_has_fired;

static bool
fault_now(void)
{
    size_t left = atomic_load_explicit(&fault_countdown, memory_order_relaxed);

    if (left == 0) {
        return false;
    }
    atomic_store_explicit(&fault_countdown, left - 1, memory_order_relaxed);
    if (left == 1) {
        atomic_store_explicit(&fault_has_fired, true, memory_order_relaxed);
        return true;
    }
    return false;
}

/* The arena: before each block its size, in as much room as keeps it aligned. */
#define ARENA_ALIGN     _Alignof(max_align_t)
#define ARENA_BLOCK_MAX 4096U

static char *arena_at;
static char *arena_start;
static char *arena_end;

void
mem_set_arena(void *start, size_t size)
{
    arena_start = start;
    arena_at = start;
    arena_end = (char *)start + size;
}

static bool
is_in_arena(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)arena_start && (uintptr_t)p < (uintptr_t)arena_end;
}

static size_t
arena_size_of(const void *p)
{
    size_t size = 0;

    memcpy(&size, (const char *)p - ARENA_ALIGN, sizeof(size));
    return size;
}

/* NULL: the heap's. `size` is above 0. */
static void *
arena_alloc(size_t size)
{
    size_t room = ARENA_ALIGN + (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;

    if (size > ARENA_BLOCK_MAX || room > (size_t)(arena_end - arena_at)) {
        return NULL;
    }

    char *block = arena_at + ARENA_ALIGN;

    memcpy(arena_at, &size, sizeof(size));
    arena_at += room;
    return block;
}

static void *
block_alloc(size_t size)
{
    void *block = arena_alloc(size > 0 ? size : 1);

    return block != NULL ? block : malloc(size > 0 ? size : 1);
}

static void *
block_realloc(void *p, size_t size)
{
    if (!is_in_arena(p)) {
        return realloc(p, size > 0 ? size : 1);
    }

    size_t before = arena_size_of(p);

    if (size <= before) {
        return p;
    }

    void *block = block_alloc(size);

    if (block != NULL) {
        memcpy(block, p, before);
    }
    return block;
}

static void *
counted(void *p)
{
    if (p != NULL) {
        atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    }
    return p;
}

void *
mem_alloc(size_t size)
{
    if (fault_now()) {
        return NULL;
    }
    return counted(block_alloc(size));
}

void *
mem_alloc_zero(size_t count, size_t size)
{
    size_t total = 0;

    /* Checked here: sanitizers take an overflow inside calloc for a bug. */
    if (fault_now() || !size_mul(&total, count, size)) {
        return NULL;
    }

    void *block = arena_alloc(total > 0 ? total : 1);

    if (block != NULL) {
        return counted(memset(block, 0, total));
    }
    return counted(calloc(total > 0 ? total : 1, 1));
}

void *
mem_realloc(void *p, size_t size)
{
    if (p == NULL) {
        return mem_alloc(size);
    }
    if (fault_now()) {
        return NULL;
    }
    return block_realloc(p, size);
}

static char *
copy_bytes(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1);

    if (copy != NULL) {
        memcpy(copy, s, len);
        copy[len] = '\0';
    }
    return copy;
}

char *
mem_strndup(const char *s, size_t n)
{
    return copy_bytes(s, strnlen(s, n));
}

char *
mem_strdup(const char *s)
{
    return copy_bytes(s, strlen(s));
}

void
mem_free(void *p)
{
    if (p != NULL) {
        atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
        if (!is_in_arena(p)) {
            free(p);
        }
    }
}

void
mem_free_secret(void *p, size_t size)
{
    if (p != NULL) {
        explicit_bzero(p, size);
        mem_free(p);
    }
}

void
mem_free_charp(char **p)
{
    mem_free(*p);
    *p = NULL;
}

bool
size_add(size_t *ret, size_t a, size_t b)
{
    if (a > SIZE_MAX - b) {
        return false;
    }
    *ret = a + b;
    return true;
}

bool
size_mul(size_t *ret, size_t a, size_t b)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return false;
    }
    *ret = a * b;
    return true;
}

void
mem_fault_set(size_t nth)
{
    atomic_store(&fault_countdown, nth);
    atomic_store(&fault_has_fired, false);
}

bool
mem_fault_fired(void)
{
    return atomic_load(&fault_has_fired);
}

size_t
mem_live(void)
{
    return atomic_load(&live_blocks);
}
