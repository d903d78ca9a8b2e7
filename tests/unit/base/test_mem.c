#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void
blocks_are_counted(void **state)
{
    size_t before = mem_live();
    char *a = mem_alloc(0);
    char *b = mem_alloc_zero(0, 0);
    char *c = mem_realloc(NULL, 10);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_int_equal(mem_live(), before + 3);
    memcpy(c, "123456789", 10);
    c = mem_realloc(c, 10000);
    assert_string_equal(c, "123456789");
    assert_int_equal(mem_live(), before + 3);
    mem_free(a);
    mem_free_charp(&b);
    assert_null(b);
    mem_free_charp(&b);
    mem_free_secret(c, 10000);
    mem_free(NULL);
    mem_free_secret(NULL, 5);
    assert_int_equal(mem_live(), before);
}

static void
zeroed_memory_is_zero_and_cannot_overflow(void **state)
{
    unsigned char *p = mem_alloc_zero(100, 10);

    (void)state;
    assert_non_null(p);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(p[i], 0);
    }
    mem_free(p);

    /* Seen by the compiler, such a size would not even build. */
    volatile size_t huge = SIZE_MAX / 2;

    assert_null(mem_alloc_zero(huge, 3));
}

static void
copies_end_where_told(void **state)
{
    char *whole = mem_strdup("hello");
    char *part = mem_strndup("hello", 2);
    char *longer = mem_strndup("hello", 100);
    char *none = mem_strndup("hello", 0);
    static const char unterminated[3] = {'a', 'b', 'c'};
    char *three = mem_strndup(unterminated, 3);

    (void)state;
    assert_string_equal(whole, "hello");
    assert_string_equal(part, "he");
    assert_string_equal(longer, "hello");
    assert_string_equal(none, "");
    assert_string_equal(three, "abc");
    mem_free(whole);
    mem_free(part);
    mem_free(longer);
    mem_free(none);
    mem_free(three);
}

static void
sizes_report_overflow_and_stay_untouched(void **state)
{
    size_t r = 7;

    (void)state;
    assert_true(size_add(&r, SIZE_MAX - 1, 1));
    assert_true(r == SIZE_MAX);
    assert_false(size_add(&r, SIZE_MAX, 1));
    assert_true(r == SIZE_MAX);
    assert_true(size_mul(&r, SIZE_MAX / 2, 2));
    assert_true(r == SIZE_MAX - 1);
    assert_true(size_mul(&r, 5, 0));
    assert_true(r == 0);
    assert_true(size_mul(&r, 0, 5));
    r = 7;
    assert_false(size_mul(&r, SIZE_MAX / 2, 3));
    assert_true(r == 7);
}

static void
the_chosen_allocation_fails_once(void **state)
{
    size_t before = mem_live();

    (void)state;
    mem_fault_set(2);

    void *first = mem_alloc(1);

    assert_non_null(first);
    assert_false(mem_fault_fired());

    void *second = mem_realloc(first, 100);

    assert_null(second);
    assert_true(mem_fault_fired());
    first = mem_realloc(first, 100);
    assert_non_null(first);
    mem_fault_set(1);
    assert_false(mem_fault_fired());
    assert_null(mem_strdup("x"));
    mem_fault_set(1);
    assert_null(mem_alloc_zero(1, 1));
    mem_fault_set(0);
    assert_false(mem_fault_fired());
    mem_free(first);
    assert_int_equal(mem_live(), before);
}

static void
the_stock_serves_first_and_the_heap_the_rest(void **state)
{
    static _Alignas(max_align_t) char bytes[1024];
    size_t before = mem_live();

    (void)state;
    mem_use_stock(bytes, sizeof(bytes));

    char *a = mem_alloc(100);
    char *b = mem_alloc(5);
    char *large = mem_alloc(sizeof(bytes));

    assert_true(a > bytes && a + 100 <= b);
    assert_true(b + 5 <= bytes + sizeof(bytes));
    assert_true(large < bytes || large >= bytes + sizeof(bytes));
    memset(a, 'a', 100);
    memset(b, 'b', 5);
    memset(large, 'c', sizeof(bytes));

    /* The last one grows where it is, another moves, both with what they hold. */
    assert_ptr_equal(mem_realloc(b, 50), b);
    assert_memory_equal(b, "bbbbb", 5);

    char *moved = mem_realloc(a, 200);

    assert_true(moved > b && moved + 200 <= bytes + sizeof(bytes));
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(moved[i], 'a');
    }

    /* Out of the stock when it is too small, and it can be had again. */
    char *out = mem_realloc(moved, 5000);

    assert_true(out < bytes || out >= bytes + sizeof(bytes));
    assert_int_equal(out[99], 'a');

    unsigned char *zero = mem_alloc_zero(10, 20);

    assert_ptr_equal(zero, moved);
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(zero[i], 0);
    }
    assert_int_equal(mem_live(), before + 4);
    mem_free(zero);
    mem_free(out);
    mem_free(large);
    mem_free(b);
    assert_int_equal(mem_live(), before);
    mem_use_stock(NULL, 0);
}

static void
a_full_stock_leaves_a_block_that_cannot_grow_as_it_was(void **state)
{
    static _Alignas(max_align_t) char bytes[256];

    (void)state;
    mem_use_stock(bytes, sizeof(bytes));

    char *p = mem_alloc(64);

    memcpy(p, "kept", 5);
    mem_fault_set(1);
    assert_null(mem_realloc(p, 1000));
    mem_fault_set(0);
    assert_string_equal(p, "kept");

    /* Each block is apart from the others, to the last that fits. */
    char *blocks[16];
    size_t n = 0;

    for (; n < 16; n++) {
        blocks[n] = mem_alloc(16);
        memset(blocks[n], (int)n, 16);
        if (blocks[n] < bytes || blocks[n] >= bytes + sizeof(bytes)) {
            n++;
            break;
        }
    }
    assert_in_range(n, 2, 15);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 16; k++) {
            assert_int_equal(blocks[i][k], i);
        }
        mem_free(blocks[i]);
    }
    assert_string_equal(p, "kept");
    mem_free(p);
    mem_use_stock(NULL, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_counted),
        cmocka_unit_test(zeroed_memory_is_zero_and_cannot_overflow),
        cmocka_unit_test(copies_end_where_told),
        cmocka_unit_test(sizes_report_overflow_and_stay_untouched),
        cmocka_unit_test(the_chosen_allocation_fails_once),
        cmocka_unit_test(the_stock_serves_first_and_the_heap_the_rest),
        cmocka_unit_test(a_full_stock_leaves_a_block_that_cannot_grow_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
