#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "output/output_internal.h"

static void
push(struct headtail *h, const char *text)
{
    assert_int_equal(headtail_push(h, text, strlen(text)), SY_E_OK);
}

static void
assert_renders(const struct headtail *h, const char *want)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 4096};

    assert_int_equal(headtail_render(h, &b), SY_E_OK);
    assert_string_equal(buf_view(&b), want);
}

static struct headtail *
new_headtail(size_t max)
{
    struct headtail *h = headtail_new(max);

    assert_non_null(h);
    return h;
}

static void
keeps_everything_up_to_its_size_without_a_marker(void **state)
{
    struct headtail *h = new_headtail(10);

    (void)state;
    push(h, "01234");
    push(h, "56789");
    assert_renders(h, "0123456789");
    assert_int_equal(headtail_total(h), 10);
    assert_int_equal(headtail_omitted(h), 0);
    headtail_free(h);
}

static void
keeps_both_ends_and_counts_the_middle(void **state)
{
    struct headtail *h = new_headtail(10);

    (void)state;
    push(h, "0123456789");
    push(h, "ab");
    assert_renders(h, "01234\n... 2 bytes omitted ...\n789ab");
    assert_int_equal(headtail_total(h), 12);
    assert_int_equal(headtail_omitted(h), 2);
    headtail_free(h);
}

static void
an_odd_size_gives_the_tail_the_larger_half(void **state)
{
    struct headtail *h = new_headtail(5);

    (void)state;
    push(h, "abcdefgh");
    assert_renders(h, "ab\n... 3 bytes omitted ...\nfgh");
    headtail_free(h);
}

static void
a_size_of_zero_drops_and_counts_everything(void **state)
{
    struct headtail *h = new_headtail(0);

    (void)state;
    push(h, "abc");
    push(h, "");
    push(h, "de");
    assert_renders(h, "\n... 5 bytes omitted ...\n");
    assert_int_equal(headtail_total(h), 5);
    headtail_free(h);
}

static void
a_size_of_one_has_no_head_and_keeps_the_last_byte(void **state)
{
    struct headtail *h = new_headtail(1);

    (void)state;
    push(h, "a");
    assert_renders(h, "a");
    push(h, "bc");
    assert_renders(h, "\n... 2 bytes omitted ...\nc");
    assert_int_equal(headtail_total(h), 3);
    headtail_free(h);
}

static void
a_giant_chunk_keeps_its_own_end(void **state)
{
    static const char end[] = {'-', 'E', 'N', 'D', '-'};
    static char giant[100000];
    struct headtail *h = new_headtail(10);

    (void)state;
    memset(giant, 'x', sizeof(giant));
    memcpy(giant + sizeof(giant) - sizeof(end), end, sizeof(end));
    push(h, "abcdefgh");
    assert_int_equal(headtail_push(h, giant, sizeof(giant)), SY_E_OK);
    assert_renders(h, "abcde\n... 99998 bytes omitted ...\n-END-");
    assert_int_equal(headtail_total(h), 100008);
    headtail_free(h);
}

static void
one_chunk_fills_the_head_and_goes_on_in_the_tail(void **state)
{
    struct headtail *h = new_headtail(10);

    (void)state;
    push(h, "abc");
    push(h, "defgh");
    assert_renders(h, "abcdefgh");
    push(h, "ijkl");
    assert_renders(h, "abcde\n... 2 bytes omitted ...\nhijkl");
    headtail_free(h);
}

static void
many_tiny_and_empty_chunks_stay_within_the_size(void **state)
{
    struct headtail *h = new_headtail(1000);
    size_t live = mem_live();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        char digit = (char)('0' + i % 10);

        assert_int_equal(headtail_push(h, &digit, 1), SY_E_OK);
        assert_int_equal(headtail_push(h, NULL, 0), SY_E_OK);
    }
    assert_int_equal(headtail_total(h), 100000);
    assert_int_equal(headtail_omitted(h), 99000);
    assert_true(h->head_cap + h->tail_cap <= 1000);
    /* Two blocks, not a list of chunks. */
    assert_int_equal(mem_live() - live, 2);
    headtail_free(h);
}

static void
memory_grows_with_what_is_kept(void **state)
{
    struct headtail *h = new_headtail((size_t)1024 * 1024);

    (void)state;
    push(h, "hi\n");
    assert_true(h->head_cap + h->tail_cap <= 1024);
    headtail_free(h);
}

/* Each chunk size must leave the same bytes as one push of all. */
static void
chunking_changes_nothing(void **state)
{
    char text[300];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)('!' + i % 90);
    }
    for (size_t max = 0; max < 320; max += 7) {
        for (size_t step = 1; step < sizeof(text); step += 13) {
            SY_AUTO(buf_fini) struct buf want = {.max = 4096};
            SY_AUTO(buf_fini) struct buf got = {.max = 4096};
            struct headtail *whole = new_headtail(max);
            struct headtail *pieces = new_headtail(max);

            assert_int_equal(headtail_push(whole, text, sizeof(text)), SY_E_OK);
            for (size_t i = 0; i < sizeof(text); i += step) {
                size_t n = sizeof(text) - i < step ? sizeof(text) - i : step;

                assert_int_equal(headtail_push(pieces, text + i, n), SY_E_OK);
            }
            assert_int_equal(headtail_render(whole, &want), SY_E_OK);
            assert_int_equal(headtail_render(pieces, &got), SY_E_OK);
            assert_string_equal(buf_view(&got), buf_view(&want));
            headtail_free(whole);
            headtail_free(pieces);
        }
    }
}

static void
draining_empties_and_hands_over_bytes_and_omissions(void **state)
{
    struct headtail *from = new_headtail(4);
    struct headtail *into = new_headtail(100);

    (void)state;
    push(into, "first ");
    push(from, "abcdefgh");
    assert_int_equal(headtail_drain(from, into), SY_E_OK);
    assert_int_equal(headtail_total(from), 0);
    assert_renders(from, "");
    assert_renders(into, "first ab\n... 4 bytes omitted ...\ngh");
    assert_int_equal(headtail_total(into), 14);
    headtail_free(from);
    headtail_free(into);
}

static void
repeated_drains_stay_bounded_and_add_the_counts(void **state)
{
    struct headtail *from = new_headtail(4);
    struct headtail *into = new_headtail(6);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        push(from, "abcdefgh");
        assert_int_equal(headtail_drain(from, into), SY_E_OK);
    }
    assert_int_equal(headtail_total(into), 8000);
    assert_true(into->head_cap + into->tail_cap <= 6);
    headtail_free(from);
    headtail_free(into);
}

static void
after_a_drain_the_head_is_fresh(void **state)
{
    struct headtail *h = new_headtail(4);

    (void)state;
    push(h, "abcdefgh");
    assert_int_equal(headtail_drain(h, NULL), SY_E_OK);
    push(h, "1234");
    assert_renders(h, "1234");
    headtail_free(h);
}

static void
freeing_nothing_is_fine(void **state)
{
    (void)state;
    headtail_free(NULL);
}

static enum sy_code
push_and_drain(void *arg)
{
    struct headtail *from = headtail_new(2000);
    struct headtail *into = headtail_new(3000);
    enum sy_code rc = from != NULL && into != NULL ? SY_E_OK : SY_E_NOMEM;

    for (int i = 0; i < 30 && rc == SY_E_OK; i++) {
        uint64_t before = headtail_total(from);

        rc = headtail_push(from, arg, 100);
        if (rc != SY_E_OK && headtail_total(from) != before) {
            rc = SY_E_INTERNAL; /* a failed push must add nothing */
        }
    }
    if (rc == SY_E_OK) {
        rc = headtail_drain(from, into);
        if (rc != SY_E_OK && (headtail_total(from) != 3000 || headtail_total(into) != 0)) {
            rc = SY_E_INTERNAL; /* a failed drain must move nothing */
        }
    }
    headtail_free(from);
    headtail_free(into);
    return rc;
}

static void
out_of_memory_loses_nothing_that_was_kept(void **state)
{
    static char hundred[100];

    (void)state;
    fault_run(push_and_drain, hundred);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_everything_up_to_its_size_without_a_marker),
        cmocka_unit_test(keeps_both_ends_and_counts_the_middle),
        cmocka_unit_test(an_odd_size_gives_the_tail_the_larger_half),
        cmocka_unit_test(a_size_of_zero_drops_and_counts_everything),
        cmocka_unit_test(a_size_of_one_has_no_head_and_keeps_the_last_byte),
        cmocka_unit_test(a_giant_chunk_keeps_its_own_end),
        cmocka_unit_test(one_chunk_fills_the_head_and_goes_on_in_the_tail),
        cmocka_unit_test(many_tiny_and_empty_chunks_stay_within_the_size),
        cmocka_unit_test(memory_grows_with_what_is_kept),
        cmocka_unit_test(chunking_changes_nothing),
        cmocka_unit_test(draining_empties_and_hands_over_bytes_and_omissions),
        cmocka_unit_test(repeated_drains_stay_bounded_and_add_the_counts),
        cmocka_unit_test(after_a_drain_the_head_is_fresh),
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test(out_of_memory_loses_nothing_that_was_kept),
    };

    return cmocka_run_group_tests_name("output_headtail", tests, NULL, NULL);
}
