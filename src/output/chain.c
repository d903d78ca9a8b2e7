#include "output/output_internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"

const char *
output_stream_name(enum output_stream s)
{
    return s == STREAM_STDERR ? "stderr" : "stdout";
}

struct output_chain *
output_new(const struct output_options *options)
{
    struct output_chain *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL) {
        if (options->stage != NULL) {
            options->stage->free(options->stage);
        }
        return NULL;
    }
    c->opt = *options;
    c->opt.keep_bytes = options->keep_bytes > 0 ? options->keep_bytes : LIMIT_STREAM_KEEP;
    c->opt.max_deltas = options->max_deltas > 0 ? options->max_deltas : LIMIT_DELTAS_PER_CALL;
    for (int s = 0; s < STREAM_COUNT; s++) {
        headtail_init(&c->streams[s].kept, c->opt.keep_bytes);
    }
    headtail_init(&c->all, c->opt.keep_bytes);
    return c;
}

void
output_free(struct output_chain *c)
{
    if (c == NULL) {
        return;
    }
    for (int s = 0; s < STREAM_COUNT; s++) {
        headtail_fini(&c->streams[s].kept);
    }
    headtail_fini(&c->all);
    if (c->opt.stage != NULL) {
        c->opt.stage->free(c->opt.stage);
    }
    mem_free(c);
}

static void
delta_send(struct output_chain *c, enum output_stream s, uint64_t seq, struct span text)
{
    c->deltas++;
    c->opt.on_delta(c->opt.arg, s, seq, text.p, text.n);
}

/* One delta from body: straight out of the caller's bytes where they are
 * valid, through a copy where something must be replaced. Returns the bytes
 * that it covers. */
static size_t
delta_from_body(struct output_chain *c, enum output_stream s, uint64_t seq, struct span body)
{
    size_t n = utf8_cut(body.p, body.n, LIMIT_DELTA_BYTES);
    char text[LIMIT_DELTA_BYTES];
    size_t used = 0;

    if (utf8_is_valid(body.p, n)) {
        delta_send(c, s, seq, (struct span){body.p, n});
        return n;
    }

    size_t len = output_clean_some(text, sizeof(text), body.p, body.n, &used);

    delta_send(c, s, seq, (struct span){text, len});
    return used;
}

/* The delta that begins with what was held back, filled up from the body. */
static size_t
delta_from_held(struct output_chain *c, enum output_stream s, uint64_t seq, const struct joined *j)
{
    char text[LIMIT_DELTA_BYTES];
    size_t used = 0;
    size_t len = output_clean_some(text, sizeof(text), j->prefix, j->prefix_n, &used);

    if (j->body_n > 0) {
        len += output_clean_some(text + len, sizeof(text) - len, j->body, j->body_n, &used);
    } else {
        used = 0;
    }
    delta_send(c, s, seq, (struct span){text, len});
    return used;
}

static void
deltas_emit(struct output_chain *c, enum output_stream s, const struct joined *j)
{
    struct span body = {j->body, j->body_n};
    uint64_t seq = c->seq;

    if (c->opt.on_delta == NULL) {
        return;
    }
    if (j->prefix_n > 0 && c->deltas < c->opt.max_deltas) {
        size_t used = delta_from_held(c, s, seq, j);

        seq += j->prefix_n + used;
        body = (struct span){used > 0 ? body.p + used : body.p, body.n - used};
    } else if (j->prefix_n > 0) {
        c->deltas_dropped++;
    }
    while (body.n > 0 && c->deltas < c->opt.max_deltas) {
        size_t used = delta_from_body(c, s, seq, body);

        seq += used;
        body.p += used;
        body.n -= used;
    }
    c->deltas_dropped += (body.n + LIMIT_DELTA_BYTES - 1) / LIMIT_DELTA_BYTES;
}

/* What counts in the order of arrival: whole characters only, so that none is
 * torn where the other stream's bytes come between its halves. */
static void
add_joined(struct output_chain *c, enum output_stream s, const struct joined *j)
{
    deltas_emit(c, s, j);
    headtail_put(&c->all, j->prefix, j->prefix_n);
    headtail_put(&c->all, j->body, j->body_n);
    c->seq += j->prefix_n + j->body_n;
    if (j->body_n > 0) {
        c->all_ends_line = j->body[j->body_n - 1] == '\n';
    } else if (j->prefix_n > 0) {
        c->all_ends_line = j->prefix[j->prefix_n - 1] == '\n';
    }
}

static void
sample(struct stream_state *st, const char *bytes, size_t n)
{
    size_t room = SAMPLE_BYTES - st->sample_seen;

    if (st->is_sampled || n == 0) {
        return;
    }
    if (n >= room) {
        n = utf8_cut(bytes, n, room);
        st->is_sampled = true;
    }
    st->sample_bad += scan_not_text(bytes, n);
    st->sample_seen += n;
}

bool
output_stream_is_mostly_binary(const struct stream_state *st)
{
    return st->sample_seen >= SAMPLE_MIN && st->sample_bad * 10 > st->sample_seen * 3;
}

/* What came through the filter; the end of the chain. */
static enum sy_code
accept(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct output_chain *c = arg;
    struct stream_state *st = &c->streams[s];
    bool has_nul = false;

    if (n == 0) {
        return SY_E_OK;
    }

    /* All memory first: a failure leaves everything as it was. The combined
     * buffer may also get the up to three bytes that are held. */
    enum sy_code rc = headtail_reserve(&st->kept, n);

    if (rc == SY_E_OK) {
        rc = headtail_reserve(&c->all, n + st->joiner.len);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    headtail_put(&st->kept, bytes, n);
    st->total += n;
    st->newlines += scan_bytes(bytes, n, &has_nul);
    st->has_nul = st->has_nul || has_nul;
    st->ends_line = bytes[n - 1] == '\n';

    struct joined j = joiner_push(&st->joiner, bytes, n);

    sample(st, j.prefix, j.prefix_n);
    sample(st, j.body, j.body_n);
    add_joined(c, s, &j);
    return c->opt.on_raw != NULL ? c->opt.on_raw(c->opt.arg, s, bytes, n) : SY_E_OK;
}

enum sy_code
output_push(struct output_chain *c, enum output_stream s, const char *bytes, size_t n)
{
    if (c->is_finished) {
        return SY_E_INTERNAL;
    }
    if (c->opt.stage != NULL) {
        return c->opt.stage->push(c->opt.stage, s, bytes, n, accept, c);
    }
    return accept(c, s, bytes, n);
}

static enum sy_code
flush_stream(struct output_chain *c, enum output_stream s)
{
    struct stream_state *st = &c->streams[s];
    enum sy_code rc = SY_E_OK;

    if (st->is_flushed) {
        return SY_E_OK;
    }
    if (c->opt.stage != NULL) {
        rc = c->opt.stage->flush(c->opt.stage, s, accept, c);
    }
    if (rc == SY_E_OK) {
        rc = headtail_reserve(&c->all, st->joiner.len);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    struct joined j = joiner_flush(&st->joiner);

    sample(st, j.prefix, j.prefix_n);
    add_joined(c, s, &j);
    st->is_flushed = true;
    return SY_E_OK;
}

enum sy_code
output_finish(struct output_chain *c)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        enum sy_code rc = flush_stream(c, (enum output_stream)s);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    c->is_finished = true;
    return SY_E_OK;
}

void
output_stats_stream(const struct output_chain *c, enum output_stream s, struct output_stats *ret)
{
    const struct stream_state *st = &c->streams[s];
    struct kept k = kept_view(&st->kept);

    *ret = (struct output_stats){
        .total_bytes = st->total,
        .total_lines = st->newlines + (st->total > 0 && !st->ends_line ? 1U : 0U),
        .omitted_bytes = k.omitted,
        .has_invalid_utf8 = kept_has_invalid(&k, c->is_finished),
        .is_binary = st->has_nul || output_stream_is_mostly_binary(st),
    };
}

void
output_stats_all(const struct output_chain *c, struct output_stats *ret)
{
    struct kept k = kept_view(&c->all);
    bool is_open_line = c->seq > 0 && !c->all_ends_line;

    *ret = (struct output_stats){.omitted_bytes = k.omitted,
                                 .has_invalid_utf8 = kept_has_invalid(&k, c->is_finished)};
    for (int s = 0; s < STREAM_COUNT; s++) {
        const struct stream_state *st = &c->streams[s];

        ret->total_bytes += st->total;
        ret->total_lines += st->newlines;
        ret->is_binary = ret->is_binary || st->has_nul || output_stream_is_mostly_binary(st);
        is_open_line = is_open_line || st->joiner.len > 0;
    }
    ret->total_lines += is_open_line ? 1U : 0U;
}

uint64_t
output_total(const struct output_chain *c)
{
    return c->seq;
}

uint64_t
output_deltas_dropped(const struct output_chain *c)
{
    return c->deltas_dropped;
}

size_t
output_deltas_left(const struct output_chain *c)
{
    return c->opt.max_deltas - c->deltas;
}

void
output_deltas_renew(struct output_chain *c)
{
    c->deltas = 0;
}

static enum sy_code
text_of(const struct headtail *h, bool is_final, struct buf *out)
{
    struct kept k = kept_view(h);

    if (!k.has_gap) {
        return kept_add_text(k.spans, 3, is_final, out);
    }

    enum sy_code rc = kept_add_text(k.spans, 1, true, out);

    if (rc == SY_E_OK) {
        rc = buf_addf(out, "\n... %llu bytes omitted ...\n", (unsigned long long)k.omitted);
    }
    return rc != SY_E_OK ? rc : kept_add_text(k.spans + 1, 2, is_final, out);
}

enum sy_code
output_text_stream(const struct output_chain *c, enum output_stream s, struct buf *out)
{
    return text_of(&c->streams[s].kept, c->is_finished, out);
}

enum sy_code
output_text_all(const struct output_chain *c, struct buf *out)
{
    return text_of(&c->all, c->is_finished, out);
}
