#include "command/script_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <tree_sitter/api.h>

#include "base/err.h"
#include "base/mem.h"

/* Before each block, its class: blocks of one class have one size. */
#define HEADER     ((size_t)16)
#define STEP       ((size_t)16)
#define STEP_MAX   ((size_t)1024)
#define STEP_COUNT (STEP_MAX / STEP + 1)

_Static_assert(HEADER >= _Alignof(max_align_t), "blocks are aligned for anything");

/* tree-sitter's allocator has no argument for whose memory it is. */
static _Thread_local struct script_memory *now;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Steps of 16 bytes up to 1 KiB, then powers of two. */
static size_t
class_of(size_t size, size_t *ret_room)
{
    if (size <= STEP_MAX) {
        size_t class = size == 0 ? 1 : (size + STEP - 1) / STEP;

        *ret_room = class * STEP;
        return class;
    }

    size_t class = STEP_COUNT;
    size_t room = STEP_MAX * 2;

    while (room < size) {
        room *= 2;
        class ++;
    }
    *ret_room = room;
    return class;
}

static size_t *
header_of(void *p)
{
    return (size_t *)(void *)((char *)p - HEADER);
}

static void *
give(size_t size)
{
    struct script_memory *m = now;
    size_t room = 0;
    size_t class = class_of(size, &room);

    SY_ASSERT(m != NULL && class < sizeof(m->freed) / sizeof(m->freed[0]));
    if (m->freed[class] != NULL) {
        void *p = m->freed[class];

        memcpy(&m->freed[class], p, sizeof(void *));
        return p;
    }
    if (room > m->size - HEADER || m->used > m->size - room - HEADER) {
        SY_ASSERT(m->end != NULL);
        longjmp(*m->end, 1); /* lint: allow longjmp: tree-sitter takes no refusal */
    }

    char *p = m->bytes + m->used + HEADER;

    m->used += HEADER + room;
    *header_of(p) = class;
    return p;
}

static void
take_back(void *p)
{
    if (p == NULL) {
        return;
    }
    SY_ASSERT(now != NULL);

    size_t class = *header_of(p);

    memcpy(p, &now->freed[class], sizeof(void *));
    now->freed[class] = p;
}

static void *
give_zero(size_t count, size_t size)
{
    size_t all = 0;
    bool fits = size_mul(&all, count, size);

    SY_ASSERT(fits);

    void *p = give(all);

    memset(p, 0, all);
    return p;
}

static void *
give_again(void *old, size_t size)
{
    size_t room = 0;

    if (old == NULL) {
        return give(size);
    }

    size_t had = *header_of(old);

    if (class_of(size, &room) == had) {
        return old;
    }

    void *p = give(size);
    size_t old_room = had < STEP_COUNT ? had * STEP : (STEP_MAX * 2) << (had - STEP_COUNT);

    memcpy(p, old, old_room < size ? old_room : size);
    take_back(old);
    return p;
}

static void
use_ours(void)
{
    ts_set_allocator(give, give_zero, give_again, take_back);
}

struct script_memory *
script_memory_new(size_t size)
{
    struct script_memory *m = mem_alloc_zero(1, sizeof(*m));

    pthread_once(&once, use_ours);
    if (m == NULL) {
        return NULL;
    }
    m->bytes = mem_alloc(size);
    m->size = size;
    if (m->bytes == NULL) {
        mem_free(m);
        return NULL;
    }
    return m;
}

void
script_memory_free(struct script_memory *m)
{
    if (m != NULL) {
        mem_free(m->bytes);
        mem_free(m);
    }
}

void
script_memory_reset(struct script_memory *m)
{
    m->used = 0;
    memset(m->freed, 0, sizeof(m->freed));
}

bool
script_memory_is_low(const struct script_memory *m)
{
    return m->used > m->size / 2;
}

bool
script_memory_run(struct script_memory *m, void (*body)(void *arg), void *arg)
{
    jmp_buf end;

    m->end = &end;
    script_memory_use(m);
    if (setjmp(end) != 0) { /* lint: allow setjmp */
        now->end = NULL;
        script_memory_use(NULL);
        return false;
    }
    body(arg);
    m->end = NULL;
    script_memory_use(NULL);
    return true;
}

void
script_memory_use(struct script_memory *m)
{
    now = m;
}
