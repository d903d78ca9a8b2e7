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

/* mem_use_stock: blocks lie one behind the other, each behind its size. */
static struct {
    char *bytes;
    size_t size;
    size_t used;
} stock;

/* A size with its header; what follows it is aligned for anything. */
#define STOCK_HEADER ((size_t)16)
_Static_assert(STOCK_HEADER >= _Alignof(max_align_t), "blocks of the stock are aligned");

void
mem_use_stock(void *bytes, size_t size)
{
    stock.bytes = bytes;
    stock.size = bytes != NULL ? size : 0;
    stock.used = 0;
}

static bool
is_in_stock(const void *p)
{
    return (uintptr_t)p - (uintptr_t)stock.bytes < stock.size;
}

/* The room that a block of `size` takes; 0 when the stock can't have it. */
static size_t
stock_room(size_t size)
{
    if (size >= stock.size) {
        return 0;
    }
    return STOCK_HEADER + ((size + STOCK_HEADER - 1) & ~(STOCK_HEADER - 1));
}

static size_t
stock_size(const void *p)
{
    size_t size = 0;

    memcpy(&size, (const char *)p - STOCK_HEADER, sizeof(size));
    return size;
}

static void *
stock_take(size_t size)
{
    size_t room = stock_room(size);

    if (room == 0 || room > stock.size - stock.used) {
        return NULL;
    }

    char *header = stock.bytes + stock.used;

    memcpy(header, &size, sizeof(size));
    stock.used += room;
    return header + STOCK_HEADER;
}

static bool
is_last_in_stock(const char *p)
{
    return p - STOCK_HEADER + stock_room(stock_size(p)) == stock.bytes + stock.used;
}

static void
stock_give(char *p)
{
    if (is_last_in_stock(p)) {
        stock.used = (size_t)(p - STOCK_HEADER - stock.bytes);
    }
}

/* As realloc(3), for a block of the stock: in place, further on, or out. */
static void *
stock_resize(char *p, size_t size)
{
    size_t old = stock_size(p);
    bool was_last = is_last_in_stock(p);

    if (size <= old) {
        return p;
    }
    if (was_last) {
        size_t used = stock.used;

        stock_give(p);
        if (stock_take(size) != NULL) {
            return p;
        }
        stock.used = used;
    }

    void *moved = stock_take(size);

    if (moved == NULL) {
        moved = malloc(size);
    }
    if (moved != NULL) {
        memcpy(moved, p, old);
        stock_give(p);
    }
    return moved;
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
    size += size == 0 ? 1 : 0;

    void *p = stock_take(size);

    return counted(p != NULL ? p : malloc(size));
}

void *
mem_alloc_zero(size_t count, size_t size)
{
    size_t total = 0;

    /* Checked here: sanitizers take an overflow inside calloc for a bug. */
    if (fault_now() || !size_mul(&total, count, size)) {
        return NULL;
    }
    total += total == 0 ? 1 : 0;

    void *p = stock_take(total);

    return counted(p != NULL ? memset(p, 0, total) : calloc(total, 1));
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
    size += size == 0 ? 1 : 0;
    return is_in_stock(p) ? stock_resize(p, size) : realloc(p, size);
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
        if (is_in_stock(p)) {
            stock_give(p);
        } else {
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
