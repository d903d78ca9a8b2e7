#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fault.h"

static void
an_empty_buffer_views_as_empty_text(void **state)
{
    struct buf b = {.max = 10};

    (void)state;
    assert_string_equal(buf_view(&b), "");
    buf_fini(&b);
    assert_string_equal(buf_view(&b), "");
}

static void
adding_keeps_a_nul_after_the_bytes(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};

    (void)state;
    assert_int_equal(buf_add(&b, "a\0b", 3), SY_E_OK);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b\0", 4);
    assert_int_equal(buf_add(&b, NULL, 0), SY_E_OK);
    assert_int_equal(buf_addf(&b, "%d-%s", 42, "x"), SY_E_OK);
    assert_int_equal(buf_add_char(&b, '!'), SY_E_OK);
    assert_memory_equal(b.data, "a\0b42-x!\0", 9);
}

static void
a_buffer_takes_its_maximum_and_not_a_byte_more(void **state)
{
    (void)state;
    for (size_t max = 0; max < 200; max++) {
        SY_AUTO(buf_fini) struct buf b = {.max = max};

        for (size_t i = 0; i < max; i++) {
            assert_int_equal(buf_add_char(&b, 'x'), SY_E_OK);
        }
        assert_int_equal(buf_add_char(&b, 'y'), SY_E_LIMIT);
        assert_int_equal(buf_addf(&b, "%s", "y"), SY_E_LIMIT);
        assert_int_equal(b.len, max);
        assert_int_equal(strlen(buf_view(&b)), max);
        assert_true(b.cap <= max + 1);
    }
}

static void
a_refused_piece_leaves_nothing_of_itself(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 5};

    (void)state;
    assert_int_equal(buf_add_str(&b, "abc"), SY_E_OK);
    assert_int_equal(buf_add_str(&b, "def"), SY_E_LIMIT);
    assert_string_equal(buf_view(&b), "abc");
    assert_int_equal(buf_add(&b, "x", SIZE_MAX), SY_E_LIMIT);
    assert_string_equal(buf_view(&b), "abc");
    assert_int_equal(buf_add_str(&b, "de"), SY_E_OK);
    assert_string_equal(buf_view(&b), "abcde");
}

static void
dropping_removes_from_the_front(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100};

    (void)state;
    assert_int_equal(buf_add_str(&b, "abcdef"), SY_E_OK);
    buf_drop(&b, 0);
    assert_string_equal(buf_view(&b), "abcdef");
    buf_drop(&b, 4);
    assert_string_equal(buf_view(&b), "ef");
    buf_drop(&b, 2);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_view(&b), "");

    struct buf none = {.max = 1};

    buf_drop(&none, 0);
    assert_null(none.data);
}

static void
taking_moves_the_text_out(void **state)
{
    struct buf b = {.max = 100};

    (void)state;
    char *empty = buf_take(&b);

    assert_string_equal(empty, "");
    mem_free(empty);
    assert_int_equal(buf_add_str(&b, "abc"), SY_E_OK);

    char *text = buf_take(&b);

    assert_null(b.data);
    assert_int_equal(b.len, 0);
    assert_string_equal(text, "abc");
    mem_free(text);
    assert_int_equal(buf_add_str(&b, "again"), SY_E_OK);
    assert_string_equal(buf_view(&b), "again");
    buf_fini(&b);
}

static void
reset_empties_and_keeps_the_memory(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100};

    (void)state;
    buf_reset(&b);
    assert_int_equal(buf_add_str(&b, "abc"), SY_E_OK);

    const char *before = b.data;

    buf_reset(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_view(&b), "");
    assert_int_equal(buf_add_str(&b, "d"), SY_E_OK);
    assert_ptr_equal(b.data, before);
}

static enum sy_code
grow_a_buffer(void *arg)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 100000};
    enum sy_code rc = SY_E_OK;

    (void)arg;
    for (int i = 0; i < 200 && rc == SY_E_OK; i++) {
        size_t before = b.len;

        rc = buf_addf(&b, "line %d\n", i);
        if (rc != SY_E_OK && (b.len != before || strlen(buf_view(&b)) != before)) {
            return SY_E_INTERNAL;
        }
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    SY_AUTO(mem_free_charp) char *taken = buf_take(&b);

    return taken != NULL ? SY_E_OK : SY_E_NOMEM;
}

static enum sy_code
take_an_empty_buffer(void *arg)
{
    struct buf b = {.max = 0};
    SY_AUTO(mem_free_charp) char *taken = buf_take(&b);

    (void)arg;
    return taken != NULL ? SY_E_OK : SY_E_NOMEM;
}

static void
buffers_survive_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(grow_a_buffer, NULL);
    fault_run(take_an_empty_buffer, NULL);
}

static void
a_list_is_null_terminated_at_each_size(void **state)
{
    SY_AUTO(strv_fini) struct strv s = {.max = 100};

    (void)state;
    assert_non_null(strv_view(&s));
    assert_null(strv_view(&s)[0]);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(strv_addf(&s, "item %zu", i), SY_E_OK);
        assert_int_equal(s.n, i + 1);
        assert_null(strv_view(&s)[i + 1]);
    }
    assert_int_equal(strv_add(&s, "one too many"), SY_E_LIMIT);
    assert_int_equal(strv_add_take(&s, mem_strdup("freed by it")), SY_E_LIMIT);
    assert_int_equal(s.n, 100);
    assert_string_equal(s.v[99], "item 99");
    strv_remove(&s, 99);
    strv_remove(&s, 0);
    strv_remove(&s, 50);
    assert_int_equal(s.n, 97);
    assert_string_equal(s.v[0], "item 1");
    assert_string_equal(s.v[50], "item 52");
    assert_string_equal(s.v[96], "item 98");
    assert_null(s.v[97]);
}

static void
a_list_takes_parts_and_whole_lists(void **state)
{
    SY_AUTO(strv_fini) struct strv s = {.max = 10};
    char one[] = "one";
    char two[] = "two";
    char *const list[] = {one, two, NULL};

    (void)state;
    assert_int_equal(strv_addn(&s, "abcdef", 3), SY_E_OK);
    assert_int_equal(strv_add_all(&s, list), SY_E_OK);
    assert_int_equal(strv_add_all(&s, NULL), SY_E_OK);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.v[0], "abc");
    assert_string_equal(s.v[2], "two");
    assert_int_equal(strv_add_take(&s, NULL), SY_E_NOMEM);
}

static void
an_environment_list_compares_whole_names(void **state)
{
    SY_AUTO(strv_fini) struct strv s = {.max = 10};

    (void)state;
    assert_null(strv_env_get(&s, "PATH"));
    strv_env_unset(&s, "PATH");
    assert_int_equal(strv_env_set(&s, "PATHOLOGY", "x"), SY_E_OK);
    assert_null(strv_env_get(&s, "PATH"));
    assert_int_equal(strv_env_set(&s, "PATH", "/bin"), SY_E_OK);
    assert_int_equal(strv_env_set(&s, "EMPTY", ""), SY_E_OK);
    assert_string_equal(strv_env_get(&s, "PATH"), "/bin");
    assert_string_equal(strv_env_get(&s, "EMPTY"), "");
    assert_null(strv_env_get(&s, "path"));
    assert_int_equal(strv_env_set(&s, "PATH", "/usr/bin=odd"), SY_E_OK);
    assert_int_equal(s.n, 3);
    assert_string_equal(strv_env_get(&s, "PATH"), "/usr/bin=odd");
    strv_env_unset(&s, "PATH");
    assert_null(strv_env_get(&s, "PATH"));
    assert_string_equal(strv_env_get(&s, "PATHOLOGY"), "x");
}

static enum sy_code
fill_a_list(void *arg)
{
    SY_AUTO(strv_fini) struct strv s = {.max = 100};
    enum sy_code rc = SY_E_OK;

    (void)arg;
    for (int i = 0; i < 20 && rc == SY_E_OK; i++) {
        rc = strv_addf(&s, "N%d=%d", i, i);
    }
    if (rc == SY_E_OK) {
        rc = strv_env_set(&s, "N3", "three");
    }
    if (rc == SY_E_OK) {
        rc = strv_env_set(&s, "NEW", "new");
    }
    if (rc == SY_E_OK) {
        rc = strv_add(&s, "plain");
    }
    return rc;
}

static void
lists_survive_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(fill_a_list, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_views_as_empty_text),
        cmocka_unit_test(adding_keeps_a_nul_after_the_bytes),
        cmocka_unit_test(a_buffer_takes_its_maximum_and_not_a_byte_more),
        cmocka_unit_test(a_refused_piece_leaves_nothing_of_itself),
        cmocka_unit_test(dropping_removes_from_the_front),
        cmocka_unit_test(taking_moves_the_text_out),
        cmocka_unit_test(reset_empties_and_keeps_the_memory),
        cmocka_unit_test(buffers_survive_each_failed_allocation),
        cmocka_unit_test(a_list_is_null_terminated_at_each_size),
        cmocka_unit_test(a_list_takes_parts_and_whole_lists),
        cmocka_unit_test(an_environment_list_compares_whole_names),
        cmocka_unit_test(lists_survive_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
