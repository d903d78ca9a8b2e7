#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "sandbox/denial.h"

static char etc_hosts[] = "/etc/hosts";
static char a_rule[] = "no writable root holds it";
static char a_fix[] = "sandbox.writable_roots: [/etc]";

static struct denial
refused_write(enum denial_confidence confidence)
{
    return (struct denial){
        .layer = DENIAL_LANDLOCK,
        .confidence = confidence,
        .operation = "write",
        .object = etc_hosts,
        .rule = a_rule,
        .fix = a_fix,
    };
}

static enum sy_code
write_list(struct buf *out, const struct denial_list *list)
{
    struct jw w = {.out = out};

    jw_object(&w);
    denial_list_write(&w, list);
    jw_end_object(&w);
    return jw_done(&w);
}

static void
equal_denials_are_counted_and_an_exact_one_stays(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct denial inferred = refused_write(DENIAL_INFERRED);
    struct denial exact = refused_write(DENIAL_EXACT);

    (void)state;
    exact.fix = NULL;
    assert_int_equal(denial_add(&list, &inferred), SY_E_OK);
    assert_int_equal(denial_add(&list, &exact), SY_E_OK);
    assert_int_equal(denial_add(&list, &inferred), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.v[0].count, 3);
    assert_int_equal(write_list(&out, &list), SY_E_OK);
    assert_string_equal(buf_view(&out),
                        "{\"denials\":[{\"operation\":\"write\",\"object\":\"/etc/hosts\","
                        "\"layer\":\"landlock\",\"confidence\":\"exact\","
                        "\"rule\":\"no writable root holds it\",\"count\":3}]}");
}

static void
an_empty_list_says_nothing(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    const struct denial_list list = {0};

    (void)state;
    assert_int_equal(write_list(&out, &list), SY_E_OK);
    assert_string_equal(buf_view(&out), "{}");
}

static void
more_than_the_maximum_is_counted(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};

    (void)state;
    for (int i = 0; i < DENIALS_MAX + 2; i++) {
        char object[] = {'/', (char)('A' + i / 26), (char)('a' + i % 26), '\0'};
        struct denial d = refused_write(DENIAL_EXACT);

        d.object = object;
        assert_int_equal(denial_add(&list, &d), SY_E_OK);
    }
    assert_int_equal(list.n, DENIALS_MAX);
    assert_int_equal(list.more, 2);
    assert_int_equal(write_list(&out, &list), SY_E_OK);
    assert_non_null(strstr(buf_view(&out), "\"denials_more\":2"));
}

static void
a_sentence_names_act_object_layer_and_way_out(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct denial d = refused_write(DENIAL_INFERRED);

    (void)state;
    assert_int_equal(denial_add(&list, &d), SY_E_OK);
    assert_int_equal(denial_add(&list, &d), SY_E_OK);
    assert_int_equal(denial_sentence(&out, &list.v[0]), SY_E_OK);
    assert_string_equal(buf_view(&out),
                        "write /etc/hosts was refused by landlock (inferred), 2 times; "
                        "to allow it: sandbox.writable_roots: [/etc]");
}

static enum sy_code
add_two(void *arg)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct denial inferred = refused_write(DENIAL_INFERRED);
    struct denial exact = refused_write(DENIAL_EXACT);
    enum sy_code rc = denial_add(&list, &inferred);

    if (rc == SY_E_OK) {
        rc = denial_add(&list, &exact);
        /* What was there before stays. */
        assert_int_equal(list.n, 1);
    }
    *(bool *)arg = rc == SY_E_OK && list.v[0].confidence == DENIAL_EXACT;
    return rc;
}

static void
a_failed_allocation_leaves_the_list_as_it_was(void **state)
{
    bool is_exact = false;

    (void)state;
    fault_run(add_two, &is_exact);
    assert_true(is_exact);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_denials_are_counted_and_an_exact_one_stays),
        cmocka_unit_test(an_empty_list_says_nothing),
        cmocka_unit_test(more_than_the_maximum_is_counted),
        cmocka_unit_test(a_sentence_names_act_object_layer_and_way_out),
        cmocka_unit_test(a_failed_allocation_leaves_the_list_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
