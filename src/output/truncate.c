#include "output/output_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* A cut moves to a line border if one is this near. */
#define LINE_REACH 200U

/* Two newlines beside the marker, where the text has none. */
#define MARKER_MAX 192

static uint64_t
count_lines(const char *s, size_t n)
{
    bool has_nul = false;

    return scan_bytes(s, n, &has_nul);
}

/* How many bytes of s stay in the head, at most max. */
static size_t
head_cut(struct span s, size_t max)
{
    size_t cut = utf8_cut(s.p, s.n, max);
    size_t reach = max / 2 < LINE_REACH ? max / 2 : LINE_REACH;

    if (cut == s.n) {
        return cut;
    }
    for (size_t i = cut; i > 0 && cut - i < reach; i--) {
        if (s.p[i - 1] == '\n') {
            return i;
        }
    }
    return cut;
}

/* How many bytes at the end of s stay in the tail, at most max. */
static size_t
tail_cut(struct span s, size_t max)
{
    size_t reach = max / 2 < LINE_REACH ? max / 2 : LINE_REACH;

    if (max >= s.n) {
        return s.n;
    }

    size_t start = s.n - max;

    if (start > 0 && s.p[start - 1] == '\n') {
        return s.n - start;
    }
    for (size_t i = start; i + 1 < s.n && i - start < reach; i++) {
        if (s.p[i] == '\n') {
            return s.n - (i + 1);
        }
    }
    for (int i = 0; i < 3 && start < s.n && ((unsigned char)s.p[start] & 0xC0U) == 0x80U; i++) {
        start++;
    }
    return s.n - start;
}

static int
marker_format(char marker[MARKER_MAX], const struct middle *m, uint64_t bytes, uint64_t lines)
{
    return snprintf(marker, MARKER_MAX,
                    "[... %llu bytes (%llu lines) omitted of %llu bytes, %llu lines ...]\n",
                    (unsigned long long)bytes, (unsigned long long)lines,
                    (unsigned long long)m->total_bytes, (unsigned long long)m->total_lines);
}

/* How much of `sum` is not shown. Where bytes became longer text (no UTF-8, controls), as much of
 * the bytes as of the text. */
static uint64_t
omitted_bytes(const struct middle *m, uint64_t sum, uint64_t shown)
{
    return sum <= m->total_bytes
               ? sum - shown
               : m->total_bytes - (uint64_t)((double)m->total_bytes * (double)shown / (double)sum);
}

enum sy_code
middle_cut(struct buf *out, const struct middle *m, size_t *ret_head)
{
    char marker[MARKER_MAX];
    uint64_t sum = m->gap_bytes + m->head.n + (m->has_gap ? m->tail.n : 0);
    /* Room for the longest marker that these numbers can give, and for the
     * newline in front of it. */
    size_t marker_n = (size_t)marker_format(marker, m, sum, m->total_lines) + 1;

    if (m->max_bytes < marker_n) {
        *ret_head = utf8_cut(m->head.p, m->head.n, m->max_bytes);
        return buf_add(out, m->head.p, *ret_head); /* no room for a marker */
    }

    size_t budget = m->max_bytes - marker_n;
    size_t for_head = budget / 2;
    size_t for_tail = budget - for_head;

    /* What one side does not need, the other gets. */
    if (m->has_gap && m->tail.n < for_tail) {
        for_tail = m->tail.n;
        for_head = budget - for_tail;
    } else if (m->has_gap && m->head.n < for_head) {
        for_head = m->head.n;
        for_tail = budget - for_head;
    }

    struct span head = {m->head.p, head_cut(m->head, for_head)};
    size_t tail_n = tail_cut(m->tail, for_tail);
    struct span tail = {tail_n > 0 ? m->tail.p + (m->tail.n - tail_n) : m->tail.p, tail_n};
    uint64_t shown = count_lines(head.p, head.n) + count_lines(tail.p, tail.n) +
                     (tail.n > 0 && tail.p[tail.n - 1] != '\n' ? 1U : 0U);
    uint64_t lines = m->total_lines > shown ? m->total_lines - shown : 0;
    int len = marker_format(marker, m, omitted_bytes(m, sum, head.n + tail.n), lines);
    enum sy_code rc = buf_add(out, head.p, head.n);

    *ret_head = head.n;
    if (rc == SY_E_OK && head.n > 0 && head.p[head.n - 1] != '\n') {
        rc = buf_add_char(out, '\n');
    }
    if (rc == SY_E_OK) {
        rc = buf_add(out, marker, (size_t)len);
    }
    return rc != SY_E_OK ? rc : buf_add(out, tail.p, tail.n);
}

enum sy_code
output_truncate_middle(struct buf *out, const char *text, size_t n, size_t max_bytes,
                       struct output_totals total, bool *ret_truncated)
{
    size_t head = 0;

    return truncate_middle(out, (struct span){text, n}, max_bytes, total, ret_truncated, &head);
}

enum sy_code
truncate_middle(struct buf *out, struct span text, size_t max_bytes, struct output_totals total,
                bool *ret_truncated, size_t *ret_head)
{
    const size_t n = text.n;
    uint64_t kept = total.kept > 0 ? total.kept : n;
    uint64_t gap = total.bytes > kept ? total.bytes - kept : 0;
    const struct middle m = {
        .head = text,
        .tail = text,
        .gap_bytes = gap,
        .total_bytes = total.bytes,
        .total_lines = total.lines,
        .max_bytes = max_bytes,
    };

    *ret_head = n;

    enum sy_code rc = n <= max_bytes ? buf_add(out, text.p, n) : middle_cut(out, &m, ret_head);

    if (rc == SY_E_OK && ret_truncated != NULL) {
        *ret_truncated = gap > 0 || n > max_bytes;
    }
    return rc;
}
