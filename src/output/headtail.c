#include "output/output_internal.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* The first block: most commands write less. */
#define FIRST_CAP 512U

void
headtail_init(struct headtail *h, size_t max)
{
    *h = (struct headtail){.head_max = max / 2, .tail_max = max - max / 2};
}

void
headtail_fini(struct headtail *h)
{
    mem_free(h->head);
    mem_free(h->tail);
    *h = (struct headtail){0};
}

struct headtail *
headtail_new(size_t max)
{
    struct headtail *h = mem_alloc(sizeof(*h));

    if (h != NULL) {
        headtail_init(h, max);
    }
    return h;
}

void
headtail_free(struct headtail *h)
{
    if (h != NULL) {
        headtail_fini(h);
        mem_free(h);
    }
}

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Doubles *cap up to max until it holds `need` (at most max) bytes. */
static enum sy_code
grow(char **block, size_t *cap, size_t need, size_t max)
{
    if (need <= *cap) {
        return SY_E_OK;
    }

    size_t want = *cap > max / 2 ? max : *cap * 2;

    want = want < FIRST_CAP ? FIRST_CAP : want;
    want = min_size(want < need ? need : want, max);

    char *grown = mem_realloc(*block, want);

    if (grown == NULL) {
        return SY_E_NOMEM;
    }
    *block = grown;
    *cap = want;
    return SY_E_OK;
}

static size_t
head_room(const struct headtail *h)
{
    return h->is_sealed ? 0 : h->head_max - h->head_len;
}

/* Room for n bytes in the tail alone; no sum can overflow. */
static enum sy_code
reserve_tail(struct headtail *h, size_t n)
{
    size_t room = h->tail_max - h->tail_len;

    return grow(&h->tail, &h->tail_cap, h->tail_len + min_size(n, room), h->tail_max);
}

enum sy_code
headtail_reserve(struct headtail *h, size_t n)
{
    size_t to_head = min_size(n, head_room(h));
    enum sy_code rc = grow(&h->head, &h->head_cap, h->head_len + to_head, h->head_max);

    return rc != SY_E_OK ? rc : reserve_tail(h, n - to_head);
}

static void
put_tail(struct headtail *h, const char *bytes, size_t n)
{
    if (n >= h->tail_max) {
        /* The chunk alone fills the tail: only its end stays. */
        h->omitted += (uint64_t)h->tail_len + (uint64_t)(n - h->tail_max);
        h->tail_start = 0;
        h->tail_len = h->tail_max;
        if (h->tail_max > 0) {
            memcpy(h->tail, bytes + (n - h->tail_max), h->tail_max);
        }
        return;
    }

    size_t room = h->tail_max - h->tail_len;
    size_t drop = n > room ? n - room : 0;

    h->omitted += drop;
    if (drop > 0) {
        h->tail_start = (h->tail_start + drop) % h->tail_max;
        h->tail_len -= drop;
    }

    size_t at = h->tail_start + h->tail_len;

    at = at >= h->tail_max ? at - h->tail_max : at;

    size_t first = min_size(n, h->tail_max - at);

    memcpy(h->tail + at, bytes, first);
    memcpy(h->tail, bytes + first, n - first);
    h->tail_len += n;
}

void
headtail_put(struct headtail *h, const char *bytes, size_t n)
{
    size_t to_head = min_size(n, head_room(h));

    if (n == 0) {
        return;
    }
    SY_ASSERT(bytes != NULL);
    if (to_head > 0) {
        memcpy(h->head + h->head_len, bytes, to_head);
        h->head_len += to_head;
    }
    if (n > to_head) {
        put_tail(h, bytes + to_head, n - to_head);
    }
}

enum sy_code
headtail_push(struct headtail *h, const char *bytes, size_t n)
{
    enum sy_code rc = headtail_reserve(h, n);

    if (rc == SY_E_OK) {
        headtail_put(h, bytes, n);
    }
    return rc;
}

uint64_t
headtail_total(const struct headtail *h)
{
    return h->omitted + h->head_len + h->tail_len;
}

uint64_t
headtail_omitted(const struct headtail *h)
{
    return h->omitted;
}

static struct span
tail_span(const struct headtail *h, bool is_wrapped)
{
    size_t first = min_size(h->tail_len, h->tail_max - h->tail_start);

    if (is_wrapped) {
        return (struct span){h->tail, h->tail_len - first};
    }
    return (struct span){h->tail != NULL ? h->tail + h->tail_start : NULL, first};
}

enum sy_code
headtail_render(const struct headtail *h, struct buf *out)
{
    struct span first = tail_span(h, false);
    struct span second = tail_span(h, true);
    enum sy_code rc = buf_add(out, h->head, h->head_len);

    if (rc == SY_E_OK && h->omitted > 0) {
        rc = buf_addf(out, "\n... %llu bytes omitted ...\n", (unsigned long long)h->omitted);
    }
    if (rc == SY_E_OK) {
        rc = buf_add(out, first.p, first.n);
    }
    return rc != SY_E_OK ? rc : buf_add(out, second.p, second.n);
}

/* All memory first, so that a failure moves nothing. */
static enum sy_code
move_into(struct headtail *from, struct headtail *into)
{
    enum sy_code rc = headtail_reserve(into, from->head_len + from->tail_len);

    if (rc == SY_E_OK && from->omitted > 0) {
        rc = reserve_tail(into, from->head_len + from->tail_len);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    struct span first = tail_span(from, false);
    struct span second = tail_span(from, true);

    headtail_put(into, from->head, from->head_len);
    if (from->omitted > 0) {
        /* The marker is rendered after the head: let nothing from behind the
         * gap come before it. */
        into->is_sealed = true;
        into->omitted += from->omitted;
    }
    headtail_put(into, first.p, first.n);
    headtail_put(into, second.p, second.n);
    return SY_E_OK;
}

enum sy_code
headtail_drain(struct headtail *h, struct headtail *into)
{
    enum sy_code rc = into != NULL ? move_into(h, into) : SY_E_OK;

    if (rc == SY_E_OK) {
        h->head_len = 0;
        h->tail_start = 0;
        h->tail_len = 0;
        h->omitted = 0;
        h->is_sealed = false;
    }
    return rc;
}

/* Skips up to three continuation bytes at the start of the tail: the rest of a
 * character whose beginning is gone. */
static void
trim_tail(struct kept *k)
{
    for (size_t skipped = 0; skipped < 3; skipped++) {
        struct span *s = k->spans[1].n > 0 ? &k->spans[1] : &k->spans[2];

        if (s->n == 0 || s->p == NULL || ((unsigned char)s->p[0] & 0xC0U) != 0x80U) {
            return;
        }
        s->p++;
        s->n--;
        k->omitted++;
    }
}

struct kept
kept_view(const struct headtail *h)
{
    struct kept k = {
        .spans = {{h->head, h->head_len}, tail_span(h, false), tail_span(h, true)},
        .omitted = h->omitted,
        .has_gap = h->omitted > 0,
    };

    if (k.has_gap) {
        size_t torn = utf8_incomplete_tail(h->head, h->head_len);

        k.spans[0].n -= torn;
        k.omitted += torn;
        trim_tail(&k);
    }
    return k;
}
