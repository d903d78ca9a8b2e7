#include "output/output_internal.h"

#include <string.h>

#include "base/utf8.h"

/* What is shown of a binary stream: enough for its magic number and its end. */
#define BINARY_SHOWN 1024U

/* Working space for one text: what is kept, each control byte written as
 * "\xNN" or each invalid byte as U+FFFD. */
#define SCRATCH_FACTOR 8U

static bool
needs_rendering(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if ((c < 0x20U && c != '\n' && c != '\t') || c == 0x7FU || c == 0xC2U) {
            return true;
        }
    }
    return false;
}

/* The clean text as the model shall see it, in place of it. */
static enum sy_code
render(struct buf *text, bool is_folded, unsigned columns)
{
    SY_AUTO(buf_fini) struct buf folded = {.max = text->max};
    SY_AUTO(buf_fini) struct buf shown = {.max = text->max};
    enum sy_code rc = SY_E_OK;

    if (!needs_rendering(buf_view(text), text->len)) {
        return SY_E_OK;
    }
    if (is_folded) {
        rc = output_fold_cr(&folded, text->data, text->len, columns);
        buf_fini(text);
        *text = folded;
        folded = (struct buf){.max = text->max};
    }
    if (rc == SY_E_OK) {
        rc = fold_visible_add(&shown, buf_view(text), text->len);
    }
    buf_fini(text);
    *text = shown;
    shown = (struct buf){.max = text->max};
    return rc;
}

struct part {
    const struct headtail *kept;
    struct output_stats stats; /* its true totals */
    size_t max_bytes;
    bool is_final;
    bool is_folded;
};

/* Appends what was kept of a part within its max_bytes. */
static enum sy_code
add_part(struct buf *out, const struct part *p, bool *ret_truncated)
{
    size_t scratch = (p->kept->head_len + p->kept->tail_len + 64) * SCRATCH_FACTOR;
    SY_AUTO(buf_fini) struct buf head = {.max = scratch};
    SY_AUTO(buf_fini) struct buf tail = {.max = scratch};
    struct kept k = kept_view(p->kept);
    enum sy_code rc = kept_add_text(k.spans, k.has_gap ? 1 : 3, p->is_final || k.has_gap, &head);

    if (rc == SY_E_OK && k.has_gap) {
        rc = kept_add_text(k.spans + 1, 2, p->is_final, &tail);
    }
    if (rc == SY_E_OK) {
        rc = render(&head, p->is_folded, 0);
    }
    if (rc == SY_E_OK) {
        rc = render(&tail, p->is_folded, 0);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    size_t ignored = 0;
    bool is_cut = k.has_gap || head.len > p->max_bytes;
    const struct buf *end = k.has_gap ? &tail : &head;
    const struct middle m = {
        .head = {buf_view(&head), head.len},
        .tail = {buf_view(end),   end->len},
        .has_gap = k.has_gap,
        .gap_bytes = k.omitted,
        .total_bytes = p->stats.total_bytes,
        .total_lines = p->stats.total_lines,
        .max_bytes = p->max_bytes,
    };

    *ret_truncated = *ret_truncated || is_cut;
    return is_cut ? middle_cut(out, &m, &ignored) : buf_add(out, head.data, head.len);
}

static enum sy_code
end_line(struct buf *out, size_t start)
{
    return out->len > start && out->data[out->len - 1] != '\n' ? buf_add_char(out, '\n') : SY_E_OK;
}

/* A binary stream: a note with its true size, then a little of both ends. */
static enum sy_code
add_binary(struct buf *out, const struct part *p, bool *ret_truncated)
{
    size_t start = out->len;
    enum sy_code rc =
        buf_addf(out, "[binary output, %llu bytes]\n", (unsigned long long)p->stats.total_bytes);
    size_t used = out->len - start;

    if (rc != SY_E_OK || used >= p->max_bytes) {
        *ret_truncated = true;
        return rc;
    }

    struct part shown = *p;

    /* The newline of end_line needs one byte. */
    shown.max_bytes = p->max_bytes - used - 1;
    shown.max_bytes = shown.max_bytes < BINARY_SHOWN ? shown.max_bytes : BINARY_SHOWN;
    rc = add_part(out, &shown, ret_truncated);
    return rc != SY_E_OK ? rc : end_line(out, start);
}

/*
 * At least one stream is binary: each by itself, so that the text of the other
 * (an error message, a log) is not lost among the bytes.
 */
static enum sy_code
add_streams(struct buf *out, const struct output_chain *c, size_t max_bytes, bool *ret_truncated)
{
    size_t start = out->len;

    /* The binary ones first: they are short, the text gets the rest. */
    for (int pass = 0; pass < 2; pass++) {
        for (int s = 0; s < STREAM_COUNT; s++) {
            const struct stream_state *st = &c->streams[s];
            struct part p = {.kept = &st->kept, .is_final = c->is_finished};
            size_t used = out->len - start;
            bool is_binary = output_stream_is_mostly_binary(st);
            enum sy_code rc = SY_E_OK;

            if (st->total == 0 || is_binary != (pass == 0)) {
                continue;
            }
            output_stats_stream(c, (enum output_stream)s, &p.stats);
            p.max_bytes = max_bytes > used ? max_bytes - used : 0;
            p.is_folded = !is_binary;
            if (is_binary) {
                p.max_bytes = pass == 0 && s == 0 ? p.max_bytes / 2 : p.max_bytes;
            }
            rc = is_binary ? add_binary(out, &p, ret_truncated) : add_part(out, &p, ret_truncated);
            if (rc != SY_E_OK) {
                return rc;
            }
        }
    }
    return SY_E_OK;
}

enum sy_code
output_text_model(const struct output_chain *c, size_t max_bytes, struct buf *out,
                  bool *ret_truncated)
{
    size_t start = out->len;
    bool is_binary = false;
    bool is_truncated = false;
    enum sy_code rc = SY_E_OK;

    for (int s = 0; s < STREAM_COUNT; s++) {
        is_binary = is_binary || output_stream_is_mostly_binary(&c->streams[s]);
    }
    if (is_binary) {
        rc = add_streams(out, c, max_bytes, &is_truncated);
    } else {
        struct part p = {
            .kept = &c->all, .max_bytes = max_bytes, .is_final = c->is_finished, .is_folded = true};

        output_stats_all(c, &p.stats);
        rc = add_part(out, &p, &is_truncated);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (out->len - start > max_bytes) {
        /* A budget below the size of a note. */
        out->len = start + utf8_cut(out->data + start, out->len - start, max_bytes);
        out->data[out->len] = '\0';
        is_truncated = true;
    }
    if (ret_truncated != NULL) {
        *ret_truncated = is_truncated;
    }
    return SY_E_OK;
}

enum sy_code
output_text_bytes(struct buf *out, const char *bytes, size_t n, size_t max_bytes,
                  struct output_totals total, struct output_marks *ret)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (n + 64) * SCRATCH_FACTOR};
    enum sy_code rc = output_clean_utf8(&text, bytes, n, &ret->has_invalid_utf8);

    if (rc == SY_E_OK) {
        rc = render(&text, true, total.columns);
    }
    total.kept = n;
    return rc == SY_E_OK ? truncate_middle(out, (struct span){buf_view(&text), text.len}, max_bytes,
                                           total, &ret->is_truncated, &ret->head)
                         : rc;
}
