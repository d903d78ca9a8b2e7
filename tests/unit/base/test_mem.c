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
an_arena_is_used_up_first_and_its_blocks_can_grow(void **state)
{
    static _Alignas(max_align_t) char arena[1024];
    size_t before = mem_live();

    (void)state;
    memset(arena, 0x5a, sizeof(arena));
    mem_set_arena(arena, sizeof(arena));

    char *a = mem_alloc(10);
    char *zero = mem_alloc_zero(3, 10);
    char *large = mem_alloc(5000);

    assert_true(a > arena && a < arena + sizeof(arena));
    assert_true(zero > a && zero < arena + sizeof(arena));
    assert_false(large >= arena && large < arena + sizeof(arena));
    assert_true((uintptr_t)a % _Alignof(max_align_t) == 0);
    assert_true((uintptr_t)zero % _Alignof(max_align_t) == 0);
    for (size_t i = 0; i < 30; i++) {
        assert_int_equal(zero[i], 0);
    }
    memcpy(a, "0123456789", 10);
    a = mem_realloc(a, 700);
    assert_memory_equal(a, "0123456789", 10);
    memset(a, 'x', 700);

    char *beyond = mem_realloc(a, 3000); // there is no room left: the heap's

    assert_non_null(beyond);
    assert_false(beyond >= arena && beyond < arena + sizeof(arena));
    for (size_t i = 0; i < 700; i++) {
        assert_int_equal(beyond[i], 'x');
    }
    beyond = mem_realloc(beyond, 6000);
    assert_int_equal(beyond[699], 'x');
    assert_int_equal(mem_live(), before + 3);
    mem_free(beyond);
    mem_free(large);
    mem_free(zero);
    assert_int_equal(mem_live(), before);
    mem_set_arena(NULL, 0);
    mem_free(mem_alloc(1));
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
        cmocka_unit_test(an_arena_is_used_up_first_and_its_blocks_can_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
