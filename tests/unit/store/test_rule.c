#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "fault.h"
#include "store/rule.h"
#include "yard.h"

static enum sy_code
put(char id[STORE_ID_SIZE], struct store *st, const char *first, const char *second, bool lifts)
{
    SY_AUTO(strv_fini) struct strv prefix = {.max = LIMIT_ARGV};
    struct sy_error err = {0};
    enum sy_code rc = strv_add(&prefix, first);

    if (rc == SY_E_OK && second != NULL) {
        rc = strv_add(&prefix, second);
    }
    return rc == SY_E_OK ? store_rule_put(id, st, &prefix, lifts, "terminal", &err) : rc;
}

static void
rules_are_kept_in_order_and_taken_back(void **state)
{
    struct store *st = yard_open(*state);
    struct store_rules list = {0};
    struct sy_error err = {0};
    char a[STORE_ID_SIZE];
    char b[STORE_ID_SIZE];

    assert_int_equal(put(a, st, "git", "sta\"tus\n\xc3\xa9", false), SY_E_OK);
    assert_int_equal(put(b, st, "/bin/ls", NULL, true), SY_E_OK);
    store_close(st);
    st = yard_open(*state);
    assert_int_equal(store_rules_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[0].id, a);
    assert_int_equal(list.v[0].prefix.n, 2);
    assert_string_equal(list.v[0].prefix.v[1], "sta\"tus\n\xc3\xa9");
    assert_false(list.v[0].lifts_sandbox);
    assert_string_equal(list.v[0].decided_by, "terminal");
    assert_true(list.v[1].lifts_sandbox);
    store_rules_fini(&list);

    assert_int_equal(store_rule_remove(st, a, &err), SY_E_OK);
    assert_int_equal(store_rule_remove(st, a, &err), SY_E_NOTFOUND);
    assert_int_equal(store_rules_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].id, b);
    store_rules_fini(&list);
    store_close(st);
}

static void
the_same_prefix_again_replaces_the_first(void **state)
{
    struct store *st = yard_open(*state);
    struct store_rules list = {0};
    struct sy_error err = {0};

    assert_int_equal(put(NULL, st, "ls", NULL, true), SY_E_OK);
    assert_int_equal(put(NULL, st, "ls", NULL, false), SY_E_OK);
    assert_int_equal(store_rules_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_false(list.v[0].lifts_sandbox);
    store_rules_fini(&list);
    store_close(st);
}

static void
a_rule_needs_a_program(void **state)
{
    struct store *st = yard_open(*state);
    struct strv none = {.max = 1};
    struct sy_error err = {0};

    assert_int_equal(store_rule_put(NULL, st, &none, false, "terminal", &err), SY_E_ARG);
    store_close(st);
}

static void
a_row_that_is_no_list_of_words_is_damage(void **state)
{
    struct store *st = yard_open(*state);
    struct store_rules list = {0};
    struct sy_error err = {0};

    assert_int_equal(put(NULL, st, "ls", NULL, false), SY_E_OK);
    yard_sql(*state, "UPDATE allow_rule SET prefix = '[1]'");
    assert_int_equal(store_rules_get(&list, st, &err), SY_E_SYS);
    assert_non_null(strstr(err.msg, "damaged"));
    store_close(st);
}

static void
an_answer_makes_its_rule_or_counts_for_nothing(void **state)
{
    struct store *st = yard_open(*state);
    char id[STORE_ID_SIZE];
    SY_AUTO(strv_fini) struct strv prefix = {.max = 4};
    struct strv none = {.max = 1};
    struct store_answer answer = {0};
    struct store_request r = {0};
    struct store_rules list = {0};
    struct sy_error err = {0};
    struct store_decision d = {
        .id = id, .status = STORE_APPROVED_WITH_RULE, .decided_by = "t", .rule = &none};

    yard_request(id, st, "{}");
    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_ARG);
    assert_int_equal(store_request_get(&r, st, id, &err), SY_E_OK);
    assert_int_equal(r.status, STORE_PENDING);
    store_request_fini(&r);

    assert_int_equal(strv_add(&prefix, "ls"), SY_E_OK);
    d.rule = &prefix;
    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_OK);
    assert_int_equal(answer.verdict, STORE_TAKEN);
    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_OK);
    assert_int_equal(answer.verdict, STORE_ALREADY_DECIDED);
    assert_int_equal(store_rules_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 1);
    store_rules_fini(&list);
    store_close(st);
}

static void
the_latest_of_the_same_is_found_until_it_is_used_or_over(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    static const unsigned char other[STORE_DIGEST_SIZE] = {9};
    char a[STORE_ID_SIZE];
    char b[STORE_ID_SIZE];
    struct store_request r = {0};
    struct store_answer answer = {0};
    struct sy_error err = {0};
    bool may = false;

    yard_request(a, st, "1");
    yard_request(b, st, "2");
    assert_int_equal(store_request_get(&r, st, b, &err), SY_E_OK);

    char session[64];

    assert_true(strlen(r.session) < sizeof(session));
    memcpy(session, r.session, strlen(r.session) + 1);
    store_request_fini(&r);
    assert_int_equal(store_request_find(&r, st, session, yard_digest, &err), SY_E_OK);
    assert_string_equal(r.id, b);
    store_request_fini(&r);
    assert_int_equal(store_request_find(&r, st, session, other, &err), SY_E_NOTFOUND);
    assert_int_equal(store_request_find(&r, st, "another", yard_digest, &err), SY_E_NOTFOUND);

    const struct store_decision d = {.id = b, .status = STORE_APPROVED, .decided_by = "t"};

    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_OK);
    assert_int_equal(store_request_use(&may, st, b, session, yard_digest, &err), SY_E_OK);
    assert_true(may);
    assert_int_equal(store_request_find(&r, st, session, yard_digest, &err), SY_E_OK);
    assert_string_equal(r.id, a);
    store_request_fini(&r);
    assert_int_equal(store_request_cancel(&answer, st, a, &err), SY_E_OK);
    assert_int_equal(store_request_find(&r, st, session, yard_digest, &err), SY_E_NOTFOUND);
    store_close(st);
}

static enum sy_code
put_and_get(void *arg)
{
    struct store *st = arg;
    struct store_rules list = {0};
    struct sy_error err = {0};
    enum sy_code rc = put(NULL, st, "git", "log", false);

    if (rc == SY_E_OK) {
        rc = store_rules_get(&list, st, &err);
    }
    store_rules_fini(&list);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    struct store *st = yard_open(*state);

    fault_run_lenient(put_and_get, st);
    store_close(st);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rules_are_kept_in_order_and_taken_back, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(the_same_prefix_again_replaces_the_first, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_rule_needs_a_program, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_row_that_is_no_list_of_words_is_damage, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(an_answer_makes_its_rule_or_counts_for_nothing, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(the_latest_of_the_same_is_found_until_it_is_used_or_over,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(each_allocation_may_fail, yard_setup, yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
