#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "sessions/transcript.h"

static void
push(struct transcript *t, const char *text)
{
    assert_int_equal(transcript_push(t, text, strlen(text)), SY_E_OK);
}

static void
assert_reads(const struct transcript *t, uint64_t from, uint64_t to, const char *want,
             uint64_t omitted)
{
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)1 << 20};
    uint64_t got = 0;

    assert_int_equal(transcript_read(t, from, to, &out, &got), SY_E_OK);
    assert_string_equal(buf_view(&out), want);
    assert_int_equal(got, omitted);
}

static void
gives_each_part_by_its_number(void **state)
{
    struct transcript *t = transcript_new(4096);

    (void)state;
    assert_non_null(t);
    push(t, "one ");
    push(t, "two ");
    push(t, "three");
    assert_int_equal(transcript_end(t), 13);
    assert_reads(t, 0, 13, "one two three", 0);
    assert_reads(t, 4, 8, "two ", 0);
    assert_reads(t, 8, UINT64_MAX, "three", 0);
    assert_reads(t, 13, 13, "", 0);
    assert_reads(t, 20, 30, "", 0);
    transcript_free(t);
}

/* Lines of eight bytes: their number says where they stood. */
static void
push_lines(struct transcript *t, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        char line[9];

        assert_int_equal(snprintf(line, sizeof(line), "%07u\n", i), 8);
        push(t, line);
    }
}

static void
keeps_the_beginning_and_the_end_of_what_is_unread(void **state)
{
    struct transcript *t = transcript_new((size_t)256 * 1024);
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)1 << 20};
    uint64_t omitted = 0;

    (void)state;
    push_lines(t, 0, 100000);
    assert_true(transcript_kept(t) <= (size_t)256 * 1024);
    assert_int_equal(transcript_end(t), 800000);
    assert_int_equal(transcript_read(t, 0, 800000, &out, &omitted), SY_E_OK);
    assert_int_equal(omitted, 800000 - transcript_kept(t));
    assert_memory_equal(out.data, "0000000\n0000001\n", 16);
    assert_string_equal(out.data + out.len - 16, "0099998\n0099999\n");
    assert_non_null(strstr(buf_view(&out), " bytes omitted ...\n"));
    transcript_free(t);
}

/* From the least maximum on that the configuration takes. */
static void
keeps_both_ends_within_each_maximum(void **state)
{
    static const size_t maxima[] = {4096, 8192, 12288, 16384, 32768, 65536, 131072};

    (void)state;
    for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
        const size_t max = maxima[i];
        struct transcript *t = transcript_new(max);
        SY_AUTO(buf_fini) struct buf out = {.max = (size_t)1 << 20};
        uint64_t omitted = 0;

        assert_non_null(t);
        for (unsigned line = 0; line < 40000; line++) {
            push_lines(t, line, 1);
            assert_true(transcript_kept(t) <= max);
        }
        assert_true(transcript_kept(t) >= max / 2);
        assert_int_equal(transcript_read(t, 0, max / 4, &out, &omitted), SY_E_OK);
        assert_int_equal(omitted, 0);
        buf_reset(&out);
        assert_int_equal(transcript_read(t, 320000 - max / 4, 320000, &out, &omitted), SY_E_OK);
        assert_int_equal(omitted, 0);
        transcript_free(t);
    }
}

/* A reader who was shown a part of the text finds the number that goes on, over gaps. */
static void
numbers_each_byte_of_what_it_reads(void **state)
{
    struct transcript *t = transcript_new(8192);
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};
    uint64_t omitted = 0;

    (void)state;
    push_lines(t, 0, 10000);
    assert_int_equal(transcript_read(t, 8, 80000, &out, &omitted), SY_E_OK);

    size_t gap = (size_t)(strstr(buf_view(&out), "\n... ") - buf_view(&out));
    size_t behind = (size_t)(strstr(buf_view(&out), " omitted ...\n") - buf_view(&out)) + 13;

    assert_int_equal(transcript_seq_at(t, 8, 80000, 0), 8);
    assert_int_equal(transcript_seq_at(t, 8, 80000, gap - 1), 8 + gap - 1);
    for (size_t i = gap; i <= behind; i++) {
        assert_int_equal(transcript_seq_at(t, 8, 80000, i), 8 + gap + omitted);
    }
    assert_int_equal(transcript_seq_at(t, 8, 80000, out.len - 8), 79992);
    assert_int_equal(transcript_seq_at(t, 8, 80000, out.len), 80000);
    assert_int_equal(transcript_seq_at(t, 8, 80000, out.len + 1), 80000);
    /* From within the gap. */
    assert_int_equal(transcript_seq_at(t, 8 + gap + 5, 80000, 1), 8 + gap + omitted);
    assert_int_equal(transcript_seq_at(t, 80000, 80000, 0), 80000);
    transcript_free(t);
}

/* The next reading has a beginning of its own. */
static void
drops_what_was_read_first(void **state)
{
    struct transcript *t = transcript_new((size_t)256 * 1024);
    SY_AUTO(buf_fini) struct buf out = {.max = (size_t)1 << 20};
    uint64_t omitted = 0;
    uint64_t read = 0;

    (void)state;
    push_lines(t, 0, 20000);
    read = transcript_end(t);
    transcript_mark_read(t, read);
    assert_int_equal(transcript_unread(t), read);
    push_lines(t, 20000, 20000);
    assert_int_equal(transcript_read(t, read, UINT64_MAX, &out, &omitted), SY_E_OK);
    assert_int_equal(omitted, 0);
    assert_memory_equal(out.data, "0020000\n", 8);
    assert_int_equal(out.len, 160000);
    transcript_mark_read(t, 5);
    assert_int_equal(transcript_unread(t), read);
    transcript_free(t);
}

static void
assert_whole(const char *text, size_t want)
{
    struct transcript *t = transcript_new(4096);

    push(t, text);
    assert_int_equal(transcript_whole_end(t), want);
    assert_int_equal(transcript_whole_part(text, strlen(text)), want);
    transcript_free(t);
}

static void
ends_on_whole_characters_and_sequences(void **state)
{
    (void)state;
    assert_whole("", 0);
    assert_whole("abc", 3);
    assert_whole("ab\xF0\x9F", 2);
    assert_whole("ab\xF0\x9F\x9A\x80", 6);
    assert_whole("ab\033", 2);
    assert_whole("ab\033[1", 2);
    assert_whole("ab\033[1;31", 2);
    assert_whole("ab\033[1m", 6);
    assert_whole("ab\033]0;title", 2);
    assert_whole("ab\033]0;title\a", 12);
    assert_whole("ab\033(", 2);
    assert_whole("ab\033(B", 5);
}

/* What was dropped counts; of a part of it as many as its share. */
static void
counts_lines_that_are_missing_too(void **state)
{
    struct transcript *t = transcript_new(65536);
    const uint64_t lines = 200000;

    (void)state;
    assert_non_null(t);
    assert_int_equal(transcript_lines(t, 0, 0), 0);
    for (uint64_t i = 0; i < lines; i++) {
        push(t, "abc\n");
    }
    assert_true(transcript_kept(t) < lines * 4);
    assert_int_equal(transcript_lines(t, 0, lines * 4), lines);
    assert_int_equal(transcript_lines(t, 0, lines * 4 - 1), lines - 1);
    assert_int_equal(transcript_lines(t, 4, lines * 4), lines - 1);
    assert_int_equal(transcript_lines(t, lines * 4, lines * 4), 0);
    assert_in_range(transcript_lines(t, lines * 2, lines * 4), lines / 2 - 1, lines / 2 + 1);
    transcript_mark_read(t, lines * 4);
    for (uint64_t i = 0; i < lines; i++) {
        push(t, "abc\n");
    }
    assert_int_equal(transcript_lines(t, 0, lines * 8), lines * 2);
    transcript_free(t);
}

static enum sy_code
fill(void *arg)
{
    struct transcript *t = transcript_new(65536);
    enum sy_code rc = t != NULL ? SY_E_OK : SY_E_NOMEM;

    for (int i = 0; i < 200 && rc == SY_E_OK; i++) {
        rc = transcript_push(t, arg, 1000);
    }
    transcript_free(t);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    static char bytes[1000];

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    fault_run(fill, bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_each_part_by_its_number),
        cmocka_unit_test(keeps_the_beginning_and_the_end_of_what_is_unread),
        cmocka_unit_test(keeps_both_ends_within_each_maximum),
        cmocka_unit_test(numbers_each_byte_of_what_it_reads),
        cmocka_unit_test(drops_what_was_read_first),
        cmocka_unit_test(ends_on_whole_characters_and_sequences),
        cmocka_unit_test(counts_lines_that_are_missing_too),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
