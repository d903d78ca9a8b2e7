/*
 * The output chain. The first four bytes of an input choose the size that is
 * kept, the budget of the model text, how the rest is split into pushes, and
 * the number of deltas; the rest is the command's output.
 */
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "events/events.h"
#include "fuzz_check.h"
#include "output/output.h"

/* Large enough for each text that an input of this size can give. */
#define INPUT_MAX ((size_t)256 * 1024)
#define TEXT_MAX  ((size_t)16 * 1024 * 1024)

struct plan {
    size_t keep;
    size_t budget;
    uint32_t seed;
    size_t max_deltas;
    const char *bytes;
    size_t n;
};

/* What one chain gave. */
struct result {
    struct buf deltas[STREAM_COUNT];
    struct buf raw[STREAM_COUNT];
    struct buf text[STREAM_COUNT];
    struct buf all;
    struct buf model;
    struct output_stats stats[STREAM_COUNT];
    struct output_stats stats_all;
    uint64_t next_seq;
    size_t delta_count;
    uint64_t dropped;
    bool is_truncated;
};

static void
must(enum sy_code rc)
{
    CHECK(rc == SY_E_OK);
}

static void
on_delta(void *arg, enum output_stream s, uint64_t seq, const char *text, size_t n)
{
    struct result *r = arg;

    CHECK(n > 0 && n <= LIMIT_DELTA_BYTES);
    CHECK(utf8_is_valid(text, n));
    CHECK(r->delta_count == 0 ? seq == 0 : seq > r->next_seq);
    r->next_seq = seq;
    r->delta_count++;
    must(buf_add(&r->deltas[s], text, n));
}

static enum sy_code
on_raw(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct result *r = arg;

    return buf_add(&r->raw[s], bytes, n);
}

static void
result_init(struct result *r)
{
    memset(r, 0, sizeof(*r));
    for (int s = 0; s < STREAM_COUNT; s++) {
        r->deltas[s].max = TEXT_MAX;
        r->raw[s].max = TEXT_MAX;
        r->text[s].max = TEXT_MAX;
    }
    r->all.max = TEXT_MAX;
    r->model.max = TEXT_MAX;
}

static void
result_fini(struct result *r)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        buf_fini(&r->deltas[s]);
        buf_fini(&r->raw[s]);
        buf_fini(&r->text[s]);
    }
    buf_fini(&r->all);
    buf_fini(&r->model);
}

static struct output_chain *
chain_new(const struct plan *p, struct result *r)
{
    struct output_options opt = {.keep_bytes = p->keep,
                                 .on_delta = on_delta,
                                 .on_raw = on_raw,
                                 .arg = r,
                                 .max_deltas = p->max_deltas};
    struct output_chain *c = output_new(&opt);

    CHECK(c != NULL);
    result_init(r);
    return c;
}

/* Reads all texts of the finished chain and frees it. */
static void
chain_end(struct output_chain *c, const struct plan *p, struct result *r)
{
    must(output_finish(c));
    must(output_finish(c));
    for (int s = 0; s < STREAM_COUNT; s++) {
        must(output_text_stream(c, (enum output_stream)s, &r->text[s]));
        output_stats_stream(c, (enum output_stream)s, &r->stats[s]);
    }
    must(output_text_all(c, &r->all));
    must(output_text_model(c, p->budget, &r->model, &r->is_truncated));
    output_stats_all(c, &r->stats_all);
    r->dropped = output_deltas_dropped(c);
    output_free(c);
}

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* The plan's pushes, or the same bytes in the same order one by one. */
static void
run_split(const struct plan *p, bool is_bytewise, struct result *r)
{
    struct output_chain *c = chain_new(p, r);
    uint32_t state = p->seed;

    for (size_t i = 0; i < p->n;) {
        uint32_t random = next_random(&state);
        enum output_stream s = (random & 1U) != 0 ? STREAM_STDERR : STREAM_STDOUT;
        size_t want = (random & 2U) != 0 ? random % 5 : random % 20000;
        size_t n = p->n - i < want ? p->n - i : want;

        if (is_bytewise) {
            for (size_t k = 0; k < n; k++) {
                must(output_push(c, s, p->bytes + i + k, 1));
            }
        } else {
            must(output_push(c, s, p->bytes + i, n));
        }
        i += n;
    }
    chain_end(c, p, r);
}

/* Each stream in one push. */
static void
run_whole(const struct plan *p, const struct result *split, struct result *r)
{
    struct output_chain *c = chain_new(p, r);

    for (int s = 0; s < STREAM_COUNT; s++) {
        must(output_push(c, (enum output_stream)s, buf_view(&split->raw[s]), split->raw[s].len));
    }
    chain_end(c, p, r);
}

static bool
same_text(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && memcmp(buf_view(a), buf_view(b), a->len) == 0;
}

static bool
same_stats(const struct output_stats *a, const struct output_stats *b)
{
    return a->total_bytes == b->total_bytes && a->total_lines == b->total_lines &&
           a->omitted_bytes == b->omitted_bytes && a->has_invalid_utf8 == b->has_invalid_utf8 &&
           a->is_binary == b->is_binary;
}

static uint64_t
lines_of(const struct buf *b)
{
    uint64_t lines = b->len > 0 && b->data[b->len - 1] != '\n' ? 1 : 0;

    for (size_t i = 0; i < b->len; i++) {
        lines += b->data[i] == '\n' ? 1U : 0U;
    }
    return lines;
}

static bool
is_valid(const struct buf *b)
{
    return utf8_is_valid(buf_view(b), b->len);
}

static void
check_stream(const struct result *r, int s)
{
    const struct output_stats *st = &r->stats[s];
    bool is_whole = st->omitted_bytes == 0;

    CHECK(st->total_bytes == r->raw[s].len);
    CHECK(st->total_lines == lines_of(&r->raw[s]));
    CHECK(st->omitted_bytes <= st->total_bytes);
    CHECK(is_valid(&r->text[s]));
    CHECK(!is_whole || st->has_invalid_utf8 == !is_valid(&r->raw[s]));
    CHECK(!is_whole || r->dropped > 0 || same_text(&r->deltas[s], &r->text[s]));
}

/* Nothing but text, newlines and tabs. */
static bool
is_plain(const struct buf *b)
{
    for (size_t i = 0; i < b->len; i++) {
        unsigned char c = (unsigned char)b->data[i];

        if (c < 0x20U && c != '\n' && c != '\t') {
            return false;
        }
    }
    return true;
}

static void
check_result(const struct plan *p, const struct result *r)
{
    check_stream(r, STREAM_STDOUT);
    check_stream(r, STREAM_STDERR);
    CHECK(r->raw[STREAM_STDOUT].len + r->raw[STREAM_STDERR].len == p->n);
    CHECK(r->stats_all.total_bytes == p->n);
    CHECK(r->delta_count <= p->max_deltas);
    CHECK(is_valid(&r->all));
    CHECK(r->model.len <= p->budget);
    CHECK(is_valid(&r->model));
    CHECK(is_plain(&r->model));
    CHECK(r->is_truncated || r->stats_all.omitted_bytes == 0 || r->stats_all.is_binary);
}

/* The pieces, on the bytes as they are. */
static void
check_pieces(const struct plan *p)
{
    struct buf clean = {.max = TEXT_MAX};
    struct buf folded = {.max = TEXT_MAX};
    struct buf cut = {.max = TEXT_MAX};
    struct buf preview = {.max = TEXT_MAX};
    bool is_replaced = false;
    bool is_cut = false;

    must(output_clean_utf8(&clean, p->bytes, p->n, &is_replaced));
    CHECK(is_valid(&clean));
    CHECK(is_replaced == !utf8_is_valid(p->bytes, p->n));
    must(output_fold_cr(&folded, buf_view(&clean), clean.len, (unsigned)(p->n % 100)));
    CHECK(folded.len <= clean.len && is_valid(&folded));
    CHECK(folded.len == 0 || (memchr(folded.data, '\r', folded.len) == NULL &&
                              memchr(folded.data, '\b', folded.len) == NULL));
    must(output_truncate_middle(
        &cut, buf_view(&folded), folded.len, p->budget,
        (struct output_totals){.bytes = folded.len, .lines = lines_of(&folded)}, &is_cut));
    CHECK(cut.len <= p->budget && is_valid(&cut));
    CHECK(is_cut == (folded.len > p->budget));
    must(events_preview(&preview, buf_view(&clean), clean.len));
    CHECK(is_valid(&preview));
    CHECK(preview.len <= LIMIT_PREVIEW_BYTES + 1 + strlen(EVENTS_PREVIEW_NOTICE));
    buf_fini(&clean);
    buf_fini(&folded);
    buf_fini(&cut);
    buf_fini(&preview);
}

/* Draining keeps the sum of what was kept and what was not. */
static void
check_drain(const struct plan *p)
{
    struct headtail *from = headtail_new(p->keep);
    struct headtail *into = headtail_new(p->budget);
    struct buf text = {.max = TEXT_MAX};

    CHECK(from != NULL && into != NULL);
    for (int i = 0; i < 3; i++) {
        must(headtail_push(from, p->bytes, p->n));
        must(headtail_drain(from, into));
        CHECK(headtail_total(from) == 0);
    }
    CHECK(headtail_total(into) == 3 * (uint64_t)p->n);
    must(headtail_render(into, &text));
    CHECK(text.len <= p->budget + 64);
    buf_fini(&text);
    headtail_free(from);
    headtail_free(into);
}

/* How the bytes were cut into pushes must not show. */
static void
check_same_streams(const struct result *a, const struct result *b)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        CHECK(same_text(&a->text[s], &b->text[s]));
        CHECK(same_stats(&a->stats[s], &b->stats[s]));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t keeps[] = {1, 2, 3, 7, 64, 501, 4096, 8191, 65536, 1048576};
    struct result split;
    struct result bytewise;
    struct result whole;

    if (size < 4 || size > INPUT_MAX) {
        return 0;
    }

    const struct plan p = {
        .keep = keeps[data[0] % (sizeof(keeps) / sizeof(keeps[0]))],
        .budget = (size_t)data[1] * (size_t)data[1] / 4,
        .seed = data[2],
        .max_deltas = (data[3] & 1U) != 0 ? LIMIT_DELTAS_PER_CALL : 1U + data[3],
        .bytes = (const char *)data + 4,
        .n = size - 4,
    };

    run_split(&p, false, &split);
    run_split(&p, true, &bytewise);
    run_whole(&p, &split, &whole);
    check_result(&p, &split);
    check_result(&p, &bytewise);
    check_result(&p, &whole);
    check_same_streams(&split, &bytewise);
    check_same_streams(&split, &whole);
    CHECK(same_text(&split.all, &bytewise.all));
    CHECK(same_text(&split.model, &bytewise.model));
    CHECK(same_stats(&split.stats_all, &bytewise.stats_all));
    CHECK(split.is_truncated == bytewise.is_truncated);
    check_pieces(&p);
    check_drain(&p);
    result_fini(&split);
    result_fini(&bytewise);
    result_fini(&whole);
    return 0;
}
