/*
 * Where lines stand in a file. Each line becomes a number, each run of lines the difference of
 * two sums over such numbers: one comparison a place, however long the lines and the run are.
 */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "patch/patch_internal.h"

/* Odd, so that no factor is lost modulo 2^64. */
#define SUM_BASE  UINT64_C(0x9e3779b97f4a7c15)
#define HASH_SEED UINT64_C(0xcbf29ce484222325)
#define HASH_STEP UINT64_C(0x100000001b3)

/* A line's number is looked up in a bitmap of what the file has: few that are not there are
 * taken for there. */
#define BITS_PER_LINE ((size_t)16)

/* What is no character stands for itself, beyond all characters. */
#define NO_CHARACTER 0x110000U

static bool
is_between(uint32_t c, uint32_t from, uint32_t to)
{
    return c >= from && c <= to;
}

/* The character as ASCII has it: dashes, quotes, spaces. */
static uint32_t
plain(uint32_t c)
{
    if (is_between(c, 0x2010, 0x2015) || c == 0x2212) {
        return '-';
    }
    if (is_between(c, 0x2018, 0x201B)) {
        return '\'';
    }
    if (is_between(c, 0x201C, 0x201F)) {
        return '"';
    }
    if (c == 0x00A0 || is_between(c, 0x2002, 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000) {
        return ' ';
    }
    return c;
}

/* The places that are looked at, and what the sum of the lines there must be. */
struct window {
    size_t from;
    size_t last;
    uint64_t power;
    uint64_t sum;
    uint64_t looked; /* places */
};

/* A stretch of a line, read character by character. */
struct reading {
    const char *s;
    const char *end;
};

static uint32_t
next_plain(struct reading *r)
{
    unsigned char byte = (unsigned char)*r->s;
    uint32_t c = 0;

    if (byte < 0x80) {
        r->s++;
        return byte;
    }

    size_t n = utf8_decode(&c, r->s, (size_t)(r->end - r->s));

    r->s += n > 0 ? n : 1;
    return n > 0 ? plain(c) : NO_CHARACTER + byte;
}

static bool
is_plain_blank(uint32_t c)
{
    return c < 0x80 && patch_is_blank((char)c);
}

static struct reading
trim_plain(struct reading r)
{
    struct reading rest = r;
    const char *first = NULL;
    const char *last = r.s;

    while (rest.s < rest.end) {
        const char *at = rest.s;

        if (!is_plain_blank(next_plain(&rest))) {
            first = first != NULL ? first : at;
            last = rest.s;
        }
    }
    return (struct reading){first != NULL ? first : last, last};
}

/* What of a line counts at this level. */
static struct reading
relevant(enum match_level level, const char *text, size_t len)
{
    struct reading r = {text, text + len};

    if (level == MATCH_PUNCTUATION) {
        return trim_plain(r);
    }
    while (level != MATCH_EXACT && r.end > r.s && patch_is_blank(r.end[-1])) {
        r.end--;
    }
    while (level == MATCH_TRIMMED && r.s < r.end && patch_is_blank(*r.s)) {
        r.s++;
    }
    return r;
}

static uint64_t
line_hash(enum match_level level, const char *text, size_t len)
{
    struct reading r = relevant(level, text, len);
    uint64_t h = HASH_SEED;

    while (r.s < r.end) {
        uint64_t c = level == MATCH_PUNCTUATION ? next_plain(&r) : (unsigned char)*r.s++;

        h = (h ^ c) * HASH_STEP;
    }
    return h ^ (h >> 32);
}

static bool
line_equal(enum match_level level, const struct patch_line *a, const char *text, size_t len)
{
    struct reading x = relevant(level, a->text, a->len);
    struct reading y = relevant(level, text, len);

    if (level != MATCH_PUNCTUATION) {
        return x.end - x.s == y.end - y.s && memcmp(x.s, y.s, (size_t)(x.end - x.s)) == 0;
    }
    while (x.s < x.end && y.s < y.end) {
        if (next_plain(&x) != next_plain(&y)) {
            return false;
        }
    }
    return x.s == x.end && y.s == y.end;
}

static enum sy_code
make_sums(struct text *t, enum match_level level)
{
    uint64_t *sums = mem_alloc_zero(t->n + 1, sizeof(*sums));
    size_t bits = 64;

    while (bits / BITS_PER_LINE < t->n) {
        bits *= 2;
    }

    uint64_t *seen = mem_alloc_zero(bits / 64, sizeof(*seen));

    if (sums == NULL || seen == NULL) {
        mem_free(sums);
        mem_free(seen);
        return SY_E_NOMEM;
    }
    t->seen_mask = bits - 1;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t h = line_hash(level, t->bytes + t->v[i].start, t->v[i].len);

        sums[i + 1] = sums[i] * SUM_BASE + h;
        seen[(h & t->seen_mask) / 64] |= UINT64_C(1) << (h % 64);
    }
    t->sums[level] = sums;
    t->seen[level] = seen;
    return SY_E_OK;
}

/* The sum says that they agree: do they? */
static bool
stands_at(const struct text *t, enum match_level level, const struct patch_line *pattern, size_t n,
          size_t at)
{
    for (size_t i = 0; i < n; i++) {
        const struct text_line *line = &t->v[at + i];

        if (!line_equal(level, &pattern[i], t->bytes + line->start, line->len)) {
            return false;
        }
    }
    return true;
}

static void
add_place(struct match *ret, size_t at)
{
    if (ret->n == 0) {
        ret->at = at;
    } else if (ret->n <= MATCH_OTHERS) {
        ret->others[ret->n - 1] = at;
    }
    ret->n++;
}

static void
scan(struct match *ret, const struct text *t, const struct patch_line *pattern, size_t n,
     const struct window *w)
{
    const uint64_t *sums = t->sums[ret->level];

    for (size_t at = w->from; at <= w->last; at++) {
        /* Of several places only the first is used: the sum does for the others. */
        if (sums[at + n] - sums[at] * w->power == w->sum &&
            (ret->n > 0 || stands_at(t, ret->level, pattern, n, at))) {
            add_place(ret, at);
        }
    }
}

static enum sy_code
find_at_level(struct match *ret, struct text *t, const struct patch_line *pattern, size_t n,
              struct window *w)
{
    bool may_stand = true;

    if (t->sums[ret->level] == NULL && make_sums(t, ret->level) != SY_E_OK) {
        return SY_E_NOMEM;
    }
    w->power = 1;
    w->sum = 0;
    for (size_t i = 0; i < n && may_stand; i++) {
        uint64_t h = line_hash(ret->level, pattern[i].text, pattern[i].len);

        may_stand = (t->seen[ret->level][(h & t->seen_mask) / 64] >> (h % 64) & 1U) != 0;
        w->sum = w->sum * SUM_BASE + h;
        w->power *= SUM_BASE;
    }
    if (!may_stand) {
        return SY_E_NOTFOUND;
    }
    w->looked = w->last - w->from + 1;
    scan(ret, t, pattern, n, w);
    return ret->n > 0 ? SY_E_OK : SY_E_NOTFOUND;
}

enum sy_code
match_find(struct match *ret, struct text *t, const struct patch_line *pattern, size_t n,
           const struct match_range *range)
{
    struct window w = {.from = range->from, .last = range->last};

    *ret = (struct match){.at = 0};
    if (n > t->n || w.from > t->n - n) {
        return SY_E_NOTFOUND;
    }
    w.last = w.last < t->n - n ? w.last : t->n - n;
    for (; ret->level < MATCH_LEVELS && w.from <= w.last; ret->level++) {
        enum sy_code rc = find_at_level(ret, t, pattern, n, &w);

        *range->work += w.looked;
        w.looked = 0;
        if (*range->work > LIMIT_PATCH_WORK) {
            return SY_E_LIMIT;
        }
        if (rc != SY_E_NOTFOUND) {
            return rc;
        }
    }
    return SY_E_NOTFOUND;
}
