#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "store/access.h"
#include "yard.h"

static const struct store_access_new srv = {
    .kind = "write", .object = "/srv/x", .workspace = "/ws", .mode = "workspace-write"};

static void
accesses_are_kept_in_order_and_taken_back(void **state)
{
    struct store *st = yard_open(*state);
    struct store_accesses list = {0};
    struct store_access_new other = srv;
    struct sy_error err = {0};
    char a[STORE_ID_SIZE];
    char b[STORE_ID_SIZE];

    other.object = "/srv/\xc3\xa9\n";
    assert_int_equal(store_access_put(a, st, &srv, "terminal", &err), SY_E_OK);
    assert_int_equal(store_access_put(b, st, &other, "form", &err), SY_E_OK);
    store_close(st);
    st = yard_open(*state);
    assert_int_equal(store_accesses_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[0].id, a);
    assert_string_equal(list.v[0].kind, "write");
    assert_string_equal(list.v[0].workspace, "/ws");
    assert_string_equal(list.v[0].mode, "workspace-write");
    assert_string_equal(list.v[1].object, other.object);
    assert_string_equal(list.v[1].decided_by, "form");
    store_accesses_fini(&list);

    assert_int_equal(store_access_remove(st, a, &err), SY_E_OK);
    assert_int_equal(store_access_remove(st, a, &err), SY_E_NOTFOUND);
    assert_int_equal(store_accesses_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].id, b);
    store_accesses_fini(&list);
    store_close(st);
}

static void
the_same_again_replaces_the_first_and_another_workspace_does_not(void **state)
{
    struct store *st = yard_open(*state);
    struct store_accesses list = {0};
    struct store_access_new other = srv;
    struct sy_error err = {0};

    other.workspace = "/other";
    assert_int_equal(store_access_put(NULL, st, &srv, "a", &err), SY_E_OK);
    assert_int_equal(store_access_put(NULL, st, &other, "b", &err), SY_E_OK);
    assert_int_equal(store_access_put(NULL, st, &srv, "c", &err), SY_E_OK);
    assert_int_equal(store_accesses_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[0].decided_by, "b");
    assert_string_equal(list.v[1].decided_by, "c");
    store_accesses_fini(&list);
    store_close(st);
}

static void
an_answer_makes_its_access_or_counts_for_nothing(void **state)
{
    struct store *st = yard_open(*state);
    char id[STORE_ID_SIZE];
    struct store_access_new bad = srv;
    struct store_answer answer = {0};
    struct store_request r = {0};
    struct store_accesses list = {0};
    struct sy_error err = {0};
    struct store_decision d = {
        .id = id, .status = STORE_APPROVED_WITH_RULE, .decided_by = "t", .access = &bad};

    bad.object = "/srv/\xff";
    yard_request(id, st, "{}");
    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_ARG);
    assert_int_equal(store_request_get(&r, st, id, &err), SY_E_OK);
    assert_int_equal(r.status, STORE_PENDING);
    store_request_fini(&r);

    d.access = &srv;
    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_OK);
    assert_int_equal(answer.verdict, STORE_TAKEN);
    d.access = &bad;
    assert_int_equal(store_request_decide(&answer, st, &d, &err), SY_E_OK);
    assert_int_equal(answer.verdict, STORE_ALREADY_DECIDED);
    assert_int_equal(store_accesses_get(&list, st, &err), SY_E_OK);
    assert_int_equal(list.n, 1);
    store_accesses_fini(&list);
    store_close(st);
}

static enum sy_code
put_and_get(void *arg)
{
    struct store *st = arg;
    struct store_accesses list = {0};
    struct sy_error err = {0};
    enum sy_code rc = store_access_put(NULL, st, &srv, "t", &err);

    if (rc == SY_E_OK) {
        rc = store_accesses_get(&list, st, &err);
    }
    store_accesses_fini(&list);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    struct store *st = yard_open(*state);

    fault_run(put_and_get, st);
    store_close(st);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accesses_are_kept_in_order_and_taken_back, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(
            the_same_again_replaces_the_first_and_another_workspace_does_not, yard_setup,
            yard_teardown),
        cmocka_unit_test_setup_teardown(an_answer_makes_its_access_or_counts_for_nothing,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(each_allocation_may_fail, yard_setup, yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
