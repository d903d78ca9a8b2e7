#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fault.h"
#include "output/output_internal.h"

#define ROCKET "\xF0\x9F\x9A\x80"

/* What the callbacks saw. */
struct seen {
    struct buf text[STREAM_COUNT];
    struct buf raw;
    size_t deltas;
    size_t longest;
    uint64_t last_seq;
    bool is_bad; /* a delta that broke the contract */
    enum sy_code raw_result;
};

static void
seen_init(struct seen *seen)
{
    *seen = (struct seen){.raw_result = SY_E_OK};
    for (int s = 0; s < STREAM_COUNT; s++) {
        seen->text[s].max = (size_t)64 * 1024 * 1024;
    }
    seen->raw.max = (size_t)64 * 1024 * 1024;
}

static void
seen_fini(struct seen *seen)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        buf_fini(&seen->text[s]);
    }
    buf_fini(&seen->raw);
}

static void
see_delta(void *arg, enum output_stream s, uint64_t seq, const char *text, size_t n)
{
    struct seen *seen = arg;

    seen->is_bad = seen->is_bad || n == 0 || n > LIMIT_DELTA_BYTES || !utf8_is_valid(text, n) ||
                   (seen->deltas > 0 && seq <= seen->last_seq) ||
                   buf_add(&seen->text[s], text, n) != SY_E_OK;
    seen->last_seq = seq;
    seen->longest = n > seen->longest ? n : seen->longest;
    seen->deltas++;
}

static enum sy_code
see_raw(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct seen *seen = arg;

    (void)s;
    if (seen->raw_result != SY_E_OK) {
        return seen->raw_result;
    }
    return buf_add(&seen->raw, bytes, n);
}

static struct output_chain *
new_chain(struct seen *seen, size_t keep, size_t max_deltas)
{
    struct output_options opt = {.keep_bytes = keep,
                                 .on_delta = see_delta,
                                 .on_raw = see_raw,
                                 .arg = seen,
                                 .max_deltas = max_deltas};
    struct output_chain *c = NULL;

    seen_init(seen);
    c = output_new(&opt);
    assert_non_null(c);
    return c;
}

static void
push(struct output_chain *c, enum output_stream s, const char *text)
{
    assert_int_equal(output_push(c, s, text, strlen(text)), SY_E_OK);
}

static void
finish(struct output_chain *c)
{
    assert_int_equal(output_finish(c), SY_E_OK);
}

static void
assert_text(const struct output_chain *c, int stream, const char *want)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100000};

    if (stream < 0) {
        assert_int_equal(output_text_all(c, &b), SY_E_OK);
    } else {
        assert_int_equal(output_text_stream(c, (enum output_stream)stream, &b), SY_E_OK);
    }
    assert_string_equal(buf_view(&b), want);
}

static void
both_streams_and_their_order_are_kept(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    push(c, STREAM_STDOUT, "one\n");
    push(c, STREAM_STDERR, "two\n");
    push(c, STREAM_STDOUT, "three\n");
    finish(c);
    assert_text(c, STREAM_STDOUT, "one\nthree\n");
    assert_text(c, STREAM_STDERR, "two\n");
    assert_text(c, -1, "one\ntwo\nthree\n");
    assert_string_equal(buf_view(&seen.raw), "one\ntwo\nthree\n");
    assert_int_equal(seen.deltas, 3);
    assert_int_equal(seen.last_seq, 8);
    assert_false(seen.is_bad);
    assert_string_equal(output_stream_name(STREAM_STDOUT), "stdout");
    assert_string_equal(output_stream_name(STREAM_STDERR), "stderr");
    output_free(c);
    seen_fini(&seen);
}

/* A10 */
static void
a_character_split_over_two_reads_comes_out_whole(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    struct output_stats stats;

    (void)state;
    push(c, STREAM_STDOUT, "\xF0");
    assert_int_equal(seen.deltas, 0);
    push(c, STREAM_STDOUT, "\x9F\x9A\x80 ok\n");
    finish(c);
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), ROCKET " ok\n");
    assert_int_equal(seen.deltas, 1);
    assert_text(c, STREAM_STDOUT, ROCKET " ok\n");
    assert_text(c, -1, ROCKET " ok\n");
    output_stats_all(c, &stats);
    assert_false(stats.has_invalid_utf8);
    assert_false(stats.is_binary);
    output_free(c);
    seen_fini(&seen);
}

static void
the_other_stream_between_its_halves_does_not_tear_a_character(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    push(c, STREAM_STDOUT, "a\xF0\x9F");
    push(c, STREAM_STDERR, "warn\xE2\x82");
    push(c, STREAM_STDOUT, "\x9A");
    push(c, STREAM_STDERR, "\xAC\n");
    push(c, STREAM_STDOUT, "\x80z");
    finish(c);
    assert_text(c, -1, "awarn\xE2\x82\xAC\n" ROCKET "z");
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), "a" ROCKET "z");
    assert_string_equal(buf_view(&seen.text[STREAM_STDERR]), "warn\xE2\x82\xAC\n");
    assert_false(seen.is_bad);
    output_free(c);
    seen_fini(&seen);
}

static void
an_unfinished_character_waits_for_the_end_and_is_then_replaced(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    struct output_stats stats;

    (void)state;
    push(c, STREAM_STDOUT, "ab\xE2\x82");
    assert_text(c, STREAM_STDOUT, "ab");
    assert_text(c, -1, "ab");
    finish(c);
    finish(c);
    assert_text(c, STREAM_STDOUT, "ab" REPLACEMENT);
    assert_text(c, -1, "ab" REPLACEMENT);
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), "ab" REPLACEMENT);
    output_stats_stream(c, STREAM_STDOUT, &stats);
    assert_true(stats.has_invalid_utf8);
    assert_int_equal(stats.total_bytes, 4);
    output_free(c);
    seen_fini(&seen);
}

/* A11 (a) */
static void
invalid_bytes_are_replaced_and_flagged(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    struct output_stats stats;

    (void)state;
    push(c, STREAM_STDOUT, "a\377\376b\n");
    finish(c);
    assert_text(c, STREAM_STDOUT, "a" REPLACEMENT REPLACEMENT "b\n");
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), "a" REPLACEMENT REPLACEMENT "b\n");
    output_stats_all(c, &stats);
    assert_int_equal(stats.total_bytes, 5);
    assert_true(stats.has_invalid_utf8);
    assert_false(stats.is_binary);
    output_free(c);
    seen_fini(&seen);
}

/* A11 (b) */
static void
a_nul_byte_is_counted_and_drops_nothing(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    struct output_stats stats;
    SY_AUTO(buf_fini) struct buf b = {.max = 100};

    (void)state;
    assert_int_equal(output_push(c, STREAM_STDOUT, "\0hello\n", 7), SY_E_OK);
    finish(c);
    assert_int_equal(output_text_stream(c, STREAM_STDOUT, &b), SY_E_OK);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data, "\0hello\n", 7);
    output_stats_all(c, &stats);
    assert_int_equal(stats.total_bytes, 7);
    assert_true(stats.is_binary);
    assert_false(stats.has_invalid_utf8);
    output_free(c);
    seen_fini(&seen);
}

static void
carriage_returns_stay_in_the_exact_text(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    struct output_stats stats;

    (void)state;
    push(c, STREAM_STDOUT, "start\rone\rtwo\n");
    finish(c);
    assert_text(c, STREAM_STDOUT, "start\rone\rtwo\n");
    output_stats_all(c, &stats);
    assert_int_equal(stats.total_bytes, 14);
    assert_int_equal(stats.total_lines, 1);
    output_free(c);
    seen_fini(&seen);
}

static void
lines_count_newlines_and_an_unfinished_last_line(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    struct output_stats stats;

    (void)state;
    output_stats_all(c, &stats);
    assert_int_equal(stats.total_lines, 0);
    push(c, STREAM_STDOUT, "a\nb");
    output_stats_stream(c, STREAM_STDOUT, &stats);
    assert_int_equal(stats.total_lines, 2);
    push(c, STREAM_STDERR, "x\n");
    output_stats_all(c, &stats);
    assert_int_equal(stats.total_lines, 2); /* "a\nbx\n" */
    push(c, STREAM_STDOUT, "\n\n");
    output_stats_stream(c, STREAM_STDOUT, &stats);
    assert_int_equal(stats.total_lines, 3);
    output_free(c);
    seen_fini(&seen);
}

static void
a_gap_never_tears_a_character_and_says_how_much_is_missing(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 10, 0);
    struct output_stats stats;

    (void)state;
    /* Twelve characters of two bytes; head and tail hold five bytes each. */
    push(c, STREAM_STDOUT, "éééééééééééé");
    finish(c);
    assert_text(c, STREAM_STDOUT, "éé\n... 16 bytes omitted ...\néé");
    assert_text(c, -1, "éé\n... 16 bytes omitted ...\néé");
    output_stats_stream(c, STREAM_STDOUT, &stats);
    assert_int_equal(stats.total_bytes, 24);
    assert_int_equal(stats.omitted_bytes, 16);
    assert_false(stats.has_invalid_utf8);
    output_free(c);
    seen_fini(&seen);
}

static void
large_pushes_become_deltas_that_end_on_characters(void **state)
{
    static const char euro[] = {'\xE2', '\x82', '\xAC'};
    static char text[100000];
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    /* Three bytes each, so that no multiple of 8192 is a border. */
    for (size_t i = 0; i + 3 <= sizeof(text) - 1; i += 3) {
        memcpy(text + i, euro, sizeof(euro));
    }
    push(c, STREAM_STDOUT, text);
    finish(c);
    assert_false(seen.is_bad);
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), text);
    assert_int_equal(seen.longest, 8190);
    assert_int_equal(seen.deltas, 13);
    output_free(c);
    seen_fini(&seen);
}

static void
deltas_of_invalid_bytes_stay_small_and_whole(void **state)
{
    static char text[50000];
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);
    SY_AUTO(buf_fini) struct buf want = {.max = 200000};

    (void)state;
    memset(text, '\xFF', sizeof(text) - 1);
    text[10000] = 'x';
    push(c, STREAM_STDOUT, text);
    finish(c);
    assert_int_equal(output_text_stream(c, STREAM_STDOUT, &want), SY_E_OK);
    assert_false(seen.is_bad);
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), buf_view(&want));
    output_free(c);
    seen_fini(&seen);
}

static void
deltas_stop_at_their_number_and_are_counted(void **state)
{
    static char chunk[20001];
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 4);

    (void)state;
    memset(chunk, 'x', sizeof(chunk) - 1);
    push(c, STREAM_STDOUT, chunk); /* 3 deltas */
    push(c, STREAM_STDERR, chunk); /* 1 delta, 2 dropped */
    push(c, STREAM_STDOUT, "y");   /* 1 dropped */
    finish(c);
    assert_int_equal(seen.deltas, 4);
    assert_int_equal(output_deltas_dropped(c), 3);
    output_free(c);
    seen_fini(&seen);
}

static void
by_default_a_call_gives_ten_thousand_deltas(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    for (unsigned i = 0; i < LIMIT_DELTAS_PER_CALL + 5; i++) {
        push(c, STREAM_STDOUT, "x");
    }
    assert_int_equal(seen.deltas, LIMIT_DELTAS_PER_CALL);
    assert_int_equal(output_deltas_dropped(c), 5);
    assert_int_equal(output_deltas_left(c), 0);

    /* And as many to the next one that has to do with it. */
    output_deltas_renew(c);
    assert_int_equal(output_deltas_left(c), LIMIT_DELTAS_PER_CALL);
    push(c, STREAM_STDOUT, "x");
    assert_int_equal(seen.deltas, LIMIT_DELTAS_PER_CALL + 1);
    assert_int_equal(output_deltas_dropped(c), 5);
    output_free(c);
    seen_fini(&seen);
}

static void
a_failing_front_end_is_reported_and_loses_nothing(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    seen.raw_result = SY_E_CANCELLED;
    assert_int_equal(output_push(c, STREAM_STDOUT, "abc", 3), SY_E_CANCELLED);
    assert_int_equal(output_finish(c), SY_E_OK);
    assert_text(c, STREAM_STDOUT, "abc");
    output_free(c);
    seen_fini(&seen);
}

static void
a_push_after_the_end_is_refused(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    finish(c);
    assert_int_equal(output_push(c, STREAM_STDOUT, "abc", 3), SY_E_INTERNAL);
    output_free(c);
    seen_fini(&seen);
}

/* A stage that masks digits and holds the last byte of each stream back. */
struct mask_stage {
    struct output_stage stage;
    char held[STREAM_COUNT];
    bool has_held[STREAM_COUNT];
};

static enum sy_code
mask_push(struct output_stage *self, enum output_stream s, const char *bytes, size_t n,
          output_next_fn *next, void *next_arg)
{
    struct mask_stage *m = (struct mask_stage *)self;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        if (m->has_held[s]) {
            rc = next(next_arg, s, &m->held[s], 1);
        }
        m->held[s] = bytes[i];
        if (bytes[i] >= '0' && bytes[i] <= '9') {
            m->held[s] = '*';
        }
        m->has_held[s] = true;
    }
    return rc;
}

static enum sy_code
mask_flush(struct output_stage *self, enum output_stream s, output_next_fn *next, void *next_arg)
{
    struct mask_stage *m = (struct mask_stage *)self;

    if (!m->has_held[s]) {
        return SY_E_OK;
    }
    m->has_held[s] = false;
    return next(next_arg, s, &m->held[s], 1);
}

static void
mask_free(struct output_stage *self)
{
    mem_free(self);
}

static struct output_stage *
mask_new(void)
{
    struct mask_stage *m = mem_alloc_zero(1, sizeof(*m));

    if (m == NULL) {
        return NULL;
    }
    m->stage = (struct output_stage){mask_push, mask_flush, mask_free};
    return &m->stage;
}

static void
everything_sees_only_what_the_stage_lets_through(void **state)
{
    struct seen seen;
    struct output_options opt = {
        .on_delta = see_delta, .on_raw = see_raw, .arg = &seen, .stage = mask_new()};
    struct output_chain *c = NULL;

    (void)state;
    seen_init(&seen);
    c = output_new(&opt);
    assert_non_null(c);
    push(c, STREAM_STDOUT, "key=123");
    push(c, STREAM_STDERR, "e4");
    assert_string_equal(buf_view(&seen.raw), "key=**e");
    finish(c);
    assert_text(c, STREAM_STDOUT, "key=***");
    assert_text(c, STREAM_STDERR, "e*");
    assert_string_equal(buf_view(&seen.text[STREAM_STDOUT]), "key=***");
    assert_string_equal(buf_view(&seen.raw), "key=**e**");
    output_free(c);
    seen_fini(&seen);
}

static void
a_short_command_costs_little_memory(void **state)
{
    struct seen seen;
    struct output_chain *c = new_chain(&seen, 0, 0);

    (void)state;
    push(c, STREAM_STDOUT, "hi\n");
    finish(c);
    assert_true(sizeof(*c) + c->streams[STREAM_STDOUT].kept.head_cap + c->all.head_cap < 4096);
    output_free(c);
    seen_fini(&seen);
}

static enum sy_code
whole_call(void *arg)
{
    static char chunk[3000];
    struct output_options opt = {.keep_bytes = 4000, .stage = mask_new()};
    struct output_chain *c = NULL;
    struct buf b = {.max = 100000};
    bool is_truncated = false;
    enum sy_code rc = SY_E_OK;

    (void)arg;
    if (opt.stage == NULL) {
        return SY_E_NOMEM;
    }
    memset(chunk, '\r', sizeof(chunk));
    memset(chunk, 'x', 2000);
    c = output_new(&opt); /* takes the stage in any case */
    if (c == NULL) {
        return SY_E_NOMEM;
    }
    for (int i = 0; i < 4 && rc == SY_E_OK; i++) {
        rc = output_push(c, i % 2 == 0 ? STREAM_STDOUT : STREAM_STDERR, chunk, sizeof(chunk));
    }
    if (rc == SY_E_OK) {
        rc = output_finish(c);
    }
    if (rc == SY_E_OK) {
        rc = output_text_all(c, &b);
    }
    if (rc == SY_E_OK) {
        rc = output_text_model(c, 1000, &b, &is_truncated);
    }
    buf_fini(&b);
    output_free(c);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    fault_run(whole_call, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_streams_and_their_order_are_kept),
        cmocka_unit_test(a_character_split_over_two_reads_comes_out_whole),
        cmocka_unit_test(the_other_stream_between_its_halves_does_not_tear_a_character),
        cmocka_unit_test(an_unfinished_character_waits_for_the_end_and_is_then_replaced),
        cmocka_unit_test(invalid_bytes_are_replaced_and_flagged),
        cmocka_unit_test(a_nul_byte_is_counted_and_drops_nothing),
        cmocka_unit_test(carriage_returns_stay_in_the_exact_text),
        cmocka_unit_test(lines_count_newlines_and_an_unfinished_last_line),
        cmocka_unit_test(a_gap_never_tears_a_character_and_says_how_much_is_missing),
        cmocka_unit_test(large_pushes_become_deltas_that_end_on_characters),
        cmocka_unit_test(deltas_of_invalid_bytes_stay_small_and_whole),
        cmocka_unit_test(deltas_stop_at_their_number_and_are_counted),
        cmocka_unit_test(by_default_a_call_gives_ten_thousand_deltas),
        cmocka_unit_test(a_failing_front_end_is_reported_and_loses_nothing),
        cmocka_unit_test(a_push_after_the_end_is_refused),
        cmocka_unit_test(everything_sees_only_what_the_stage_lets_through),
        cmocka_unit_test(a_short_command_costs_little_memory),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("output_chain", tests, NULL, NULL);
}
