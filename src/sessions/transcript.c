#include "sessions/transcript.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* The first block, in which a shell's prompt has room; each next one doubles, up to the last, or to
 * that part of the maximum: a beginning, an end and the block that is filled have room in it. */
#define FIRST_BLOCK ((size_t)256)
#define LAST_BLOCK  ((size_t)16 * 1024)
#define BLOCK_PART  8U

/* An escape sequence that has not ended within that is none. */
#define ESCAPE_MAX 256U

#define MARKER_MAX 64U

struct block {
    uint64_t seq;
    uint64_t lost_lines; /* that ended in what was dropped before it */
    size_t len;
    size_t cap;
    char *bytes;
};

struct transcript {
    struct block *blocks; /* by seq; what is missing between two was dropped */
    size_t n;
    size_t cap;
    size_t max;
    size_t kept;
    uint64_t end;
    uint64_t unread;
};

struct transcript *
transcript_new(size_t max)
{
    struct transcript *t = mem_alloc_zero(1, sizeof(*t));

    if (t != NULL) {
        t->max = max;
    }
    return t;
}

void
transcript_free(struct transcript *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        mem_free(t->blocks[i].bytes);
    }
    mem_free(t->blocks);
    mem_free(t);
}

uint64_t
transcript_end(const struct transcript *t)
{
    return t->end;
}

size_t
transcript_kept(const struct transcript *t)
{
    return t->kept;
}

uint64_t
transcript_unread(const struct transcript *t)
{
    return t->unread;
}

void
transcript_mark_read(struct transcript *t, uint64_t seq)
{
    if (seq > t->unread) {
        t->unread = seq < t->end ? seq : t->end;
    }
}

static uint64_t
block_end(const struct block *b)
{
    return b->seq + b->len;
}

static uint64_t
count_lines(const char *bytes, size_t n)
{
    uint64_t ret = 0;

    for (size_t i = 0; i < n; i++) {
        ret += bytes[i] == '\n' ? 1 : 0;
    }
    return ret;
}

/* Never the last one. */
static void
drop(struct transcript *t, size_t i)
{
    t->blocks[i + 1].lost_lines +=
        t->blocks[i].lost_lines + count_lines(t->blocks[i].bytes, t->blocks[i].len);
    t->kept -= t->blocks[i].len;
    mem_free(t->blocks[i].bytes);
    memmove(&t->blocks[i], &t->blocks[i + 1], sizeof(*t->blocks) * (t->n - i - 1));
    t->n--;
}

static struct block *
last_block(const struct transcript *t)
{
    return t->blocks != NULL && t->n > 0 ? &t->blocks[t->n - 1] : NULL;
}

/*
 * Makes room for n bytes. The first block goes while it was read; then the first one behind the
 * first half of what was not. A block at the border stays whole.
 */
static void
make_room(struct transcript *t, size_t n)
{
    while (t->blocks != NULL && t->n > 1 && t->kept + n > t->max) {
        size_t i = 0;

        if (block_end(&t->blocks[0]) > t->unread) {
            while (i + 2 < t->n && block_end(&t->blocks[i]) <= t->unread + t->max / 2) {
                i++;
            }
        }
        drop(t, i);
    }
}

static size_t
next_size(const struct transcript *t)
{
    const struct block *last = last_block(t);
    size_t size = last != NULL ? last->cap * 2 : FIRST_BLOCK;
    size_t part = t->max / BLOCK_PART > FIRST_BLOCK ? t->max / BLOCK_PART : FIRST_BLOCK;
    size_t most = part < LAST_BLOCK ? part : LAST_BLOCK;

    return size < most ? size : most;
}

static enum sy_code
add_block(struct transcript *t, size_t size)
{
    if (t->n == t->cap) {
        size_t cap = t->cap > 0 ? t->cap * 2 : 4;
        struct block *more = mem_realloc(t->blocks, cap * sizeof(*more));

        if (more == NULL) {
            return SY_E_NOMEM;
        }
        t->blocks = more;
        t->cap = cap;
    }

    char *bytes = mem_alloc(size);

    if (bytes == NULL) {
        return SY_E_NOMEM;
    }
    t->blocks[t->n++] = (struct block){.seq = t->end, .cap = size, .bytes = bytes};
    return SY_E_OK;
}

/* A block that is not full; NULL: no memory. */
static struct block *
open_block(struct transcript *t)
{
    struct block *last = last_block(t);

    if (last != NULL && last->len < last->cap) {
        return last;
    }

    size_t size = next_size(t);

    make_room(t, size);
    return add_block(t, size) == SY_E_OK ? last_block(t) : NULL;
}

enum sy_code
transcript_push(struct transcript *t, const char *bytes, size_t n)
{
    while (n > 0) {
        struct block *last = open_block(t);

        if (last == NULL) {
            return SY_E_NOMEM;
        }

        size_t now = last->cap - last->len < n ? last->cap - last->len : n;

        memcpy(last->bytes + last->len, bytes, now);
        last->len += now;
        t->kept += now;
        t->end += now;
        bytes += now;
        n -= now;
    }
    return SY_E_OK;
}

/* Its length. */
static size_t
format_marker(char ret[MARKER_MAX], uint64_t missing)
{
    return (size_t)snprintf(ret, MARKER_MAX, "\n... %llu bytes omitted ...\n",
                            (unsigned long long)missing);
}

static enum sy_code
add_marker(struct buf *out, uint64_t missing, uint64_t *omitted)
{
    char marker[MARKER_MAX];

    *omitted += missing;
    return buf_add(out, marker, format_marker(marker, missing));
}

/* What comes next of a range: so many bytes that are missing, or else n that are there. */
struct part {
    uint64_t missing;
    const char *bytes;
    size_t n;
};

/* The part that begins at *from, which is then where it ends; block *i is the first that may have
 * it. False: the range is over. */
static bool
next_part(struct part *ret, const struct transcript *t, size_t *i, uint64_t *from, uint64_t to)
{
    const struct block *b = NULL;

    to = to < t->end ? to : t->end;
    if (*from >= to) {
        return false;
    }
    while (*i < t->n && block_end(&t->blocks[*i]) <= *from) {
        (*i)++;
    }
    b = *i < t->n ? &t->blocks[*i] : NULL;

    bool is_there = b != NULL && b->seq <= *from;
    uint64_t end = b == NULL ? to : is_there ? block_end(b) : b->seq;

    end = end < to ? end : to;
    *ret = is_there
               ? (struct part){.bytes = b->bytes + (*from - b->seq), .n = (size_t)(end - *from)}
               : (struct part){.missing = end - *from};
    *from = end;
    return true;
}

enum sy_code
transcript_read(const struct transcript *t, uint64_t from, uint64_t to, struct buf *out,
                uint64_t *ret_omitted)
{
    struct part part;
    size_t i = 0;
    enum sy_code rc = SY_E_OK;

    *ret_omitted = 0;
    while (rc == SY_E_OK && next_part(&part, t, &i, &from, to)) {
        rc = part.missing > 0 ? add_marker(out, part.missing, ret_omitted)
                              : buf_add(out, part.bytes, part.n);
    }
    return rc;
}

uint64_t
transcript_seq_at(const struct transcript *t, uint64_t from, uint64_t to, size_t at)
{
    char marker[MARKER_MAX];
    struct part part;
    size_t i = 0;

    while (next_part(&part, t, &i, &from, to)) {
        size_t n = part.missing > 0 ? format_marker(marker, part.missing) : part.n;

        if (at < n) {
            return part.missing > 0 ? from : from - (n - at);
        }
        at -= n;
    }
    return from;
}

/* Of what is missing before block i. */
static uint64_t
lost_lines(const struct transcript *t, size_t i, uint64_t from, uint64_t to)
{
    const struct block *b = &t->blocks[i];
    uint64_t begin = i > 0 ? block_end(&t->blocks[i - 1]) : 0;
    uint64_t first = from > begin ? from : begin;
    uint64_t last = to < b->seq ? to : b->seq;

    if (first >= last) {
        return 0;
    }
    return last - first == b->seq - begin
               ? b->lost_lines
               : (uint64_t)((double)b->lost_lines * (double)(last - first) /
                            (double)(b->seq - begin));
}

uint64_t
transcript_lines(const struct transcript *t, uint64_t from, uint64_t to)
{
    uint64_t ret = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct block *b = &t->blocks[i];
        uint64_t first = from > b->seq ? from : b->seq;
        uint64_t last = to < block_end(b) ? to : block_end(b);

        ret += lost_lines(t, i, from, to);
        if (first < last) {
            ret += count_lines(b->bytes + (first - b->seq), (size_t)(last - first));
        }
    }
    return ret;
}

/* Where an escape sequence begins in the last bytes that has not ended yet; n: none does. */
static size_t
open_escape(const char *bytes, size_t n)
{
    size_t at = n;

    while (at > 0 && bytes[at - 1] != '\033') {
        at--;
    }
    if (at == 0) {
        return n;
    }

    size_t begin = at - 1;

    if (at == n) {
        return begin;
    }

    /* String sequences end with BEL or ESC \, CSI with a byte from '@' on; others have one or two.
     */
    if (strchr("]PX^_", bytes[at]) != NULL && bytes[at] != '\0') {
        return memchr(bytes + at, '\a', n - at) != NULL ? n : begin;
    }
    if (bytes[at] == '[') {
        for (size_t i = at + 1; i < n; i++) {
            if ((unsigned char)bytes[i] >= '@') {
                return n;
            }
        }
        return begin;
    }
    return strchr("()*+-./# ", bytes[at]) != NULL && at + 1 == n ? begin : n;
}

size_t
transcript_whole_part(const char *bytes, size_t n)
{
    size_t skipped = n > ESCAPE_MAX ? n - ESCAPE_MAX : 0;
    size_t whole = skipped + open_escape(bytes + skipped, n - skipped);

    return whole == n ? n - utf8_incomplete_tail(bytes + skipped, n - skipped) : whole;
}

uint64_t
transcript_whole_end(const struct transcript *t)
{
    char last[ESCAPE_MAX];
    struct buf text = {.max = sizeof(last) * 4};
    uint64_t omitted = 0;
    uint64_t from = t->end > ESCAPE_MAX ? t->end - ESCAPE_MAX : 0;
    uint64_t ret = t->end;

    /* Memory out, or a gap right there: what there is, is read. */
    if (transcript_read(t, from, t->end, &text, &omitted) == SY_E_OK && omitted == 0) {
        ret = from + transcript_whole_part(buf_view(&text), text.len);
    }
    buf_fini(&text);
    return ret;
}
