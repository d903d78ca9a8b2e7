/* What Landlock says itself, beside what is known of a call already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "orchestrator/audited.h"

static char cwd[] = "/home/u/work";
static char outside[] = "/srv/data/f";
static char second[] = "/srv/data/g";
static char existing[] = "/etc/hosts";
static char rule[] = "workspace-write: it is below no writable root";

static struct sandbox_plan *
plan(void)
{
    const struct sandbox_policy policy = {.mode = SANDBOX_WORKSPACE_WRITE, .cwd = cwd};
    const struct sandbox_caps caps = {
        .landlock_abi = 7, .has_seccomp_filter = true, .reads_audit = true};
    struct sandbox_plan *ret = NULL;

    return sandbox_plan_new(&ret, &policy, &caps, NULL) == SY_E_OK ? ret : NULL;
}

static struct denial
write_of(char *object, enum denial_confidence confidence)
{
    return (struct denial){.layer = DENIAL_LANDLOCK,
                           .confidence = confidence,
                           .operation = "write",
                           .object = object,
                           .rule = rule};
}

static struct audit_record
record(enum sandbox_operation operation, bool is_in_directory, const char *object)
{
    struct audit_record r = {
        .kind = AUDIT_REFUSED, .operation = operation, .is_in_directory = is_in_directory};

    (void)snprintf(r.object, sizeof(r.object), "%s", object);
    return r;
}

static void
add(struct denial_list *list, const struct audit_record *records, size_t n)
{
    struct sandbox_plan *p = plan();
    struct audited a;

    assert_non_null(p);
    audited_begin(&a, list, p);
    for (size_t i = 0; i < n; i++) {
        audited_add(&a, &records[i]);
    }
    sandbox_plan_free(p);
    assert_int_equal(a.rc, SY_E_OK);
}

static void
must_be(const struct denial_list *list, size_t i, const char *operation, const char *object,
        uint32_t count)
{
    assert_true(i < list->n);
    assert_string_equal(list->v[i].operation, operation);
    assert_string_equal(list->v[i].object, object);
    assert_int_equal(list->v[i].confidence, DENIAL_EXACT);
    assert_int_equal(list->v[i].count, count);
}

static void
what_was_inferred_becomes_exact_and_is_told_once(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    const struct denial known[] = {write_of(outside, DENIAL_INFERRED),
                                   write_of(existing, DENIAL_INFERRED)};
    const struct audit_record records[] = {record(OPERATION_CREATE, true, "/srv/data"),
                                           record(OPERATION_WRITE, false, "/etc/hosts")};

    (void)state;
    assert_int_equal(denial_add(&list, &known[0]), SY_E_OK);
    assert_int_equal(denial_add(&list, &known[1]), SY_E_OK);
    add(&list, records, 2);
    assert_int_equal(list.n, 2);
    must_be(&list, 0, "write", "/srv/data/f", 1);
    must_be(&list, 1, "write", "/etc/hosts", 1);
    assert_string_equal(list.v[0].rule, rule);
}

static void
each_record_is_one_of_the_known_as_often_as_that_is_counted(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    const struct denial known[] = {write_of(outside, DENIAL_INFERRED),
                                   write_of(second, DENIAL_INFERRED)};
    const struct audit_record one = record(OPERATION_CREATE, true, "/srv/data");
    const struct audit_record records[] = {one, one, one, one};

    (void)state;
    assert_int_equal(denial_add(&list, &known[0]), SY_E_OK);
    assert_int_equal(denial_add(&list, &known[1]), SY_E_OK);
    add(&list, records, 4);
    assert_int_equal(list.n, 3);
    must_be(&list, 0, "write", "/srv/data/f", 1);
    must_be(&list, 1, "write", "/srv/data/g", 1);
    must_be(&list, 2, "create", "/srv/data", 2);
}

static void
what_an_observer_saw_is_not_told_again(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    const struct denial known = write_of(outside, DENIAL_EXACT);
    const struct audit_record records[] = {record(OPERATION_CREATE, true, "/srv/data")};

    (void)state;
    assert_int_equal(denial_add(&list, &known), SY_E_OK);
    add(&list, records, 1);
    assert_int_equal(list.n, 1);
    must_be(&list, 0, "write", "/srv/data/f", 1);
}

static void
others_stay_inferred(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    struct denial known = write_of(outside, DENIAL_INFERRED);
    const struct audit_record records[] = {
        record(OPERATION_CREATE, true, "/srv"), record(OPERATION_CREATE, true, "/srv/data/f"),
        record(OPERATION_CREATE, true, "/srv/dat"), record(OPERATION_DELETE, true, "/srv/data")};

    (void)state;
    assert_int_equal(denial_add(&list, &known), SY_E_OK);
    /* Another wall's is none of Landlock's. */
    known = write_of(second, DENIAL_INFERRED);
    known.layer = DENIAL_GUARD;
    assert_int_equal(denial_add(&list, &known), SY_E_OK);
    add(&list, records, 4);
    assert_int_equal(list.v[0].confidence, DENIAL_INFERRED);
    assert_int_equal(list.v[1].confidence, DENIAL_INFERRED);
    assert_int_equal(list.n, 6);
    must_be(&list, 5, "delete", "/srv/data", 1);
}

static void
what_is_told_by_itself_has_the_rule_and_the_line_that_allows_it(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    const struct audit_record records[] = {record(OPERATION_CREATE, true, "/usr"),
                                           record(OPERATION_CREATE, true, "/tmp")};

    (void)state;
    add(&list, records, 2);
    assert_int_equal(list.n, 2);
    must_be(&list, 0, "create", "/usr", 1);
    assert_string_equal(list.v[0].rule, rule);
    assert_string_equal(list.v[0].fix, "sandbox.writable_roots: [\"/usr\"]");
    /* The plan would allow it, by that name: nothing is made up. */
    must_be(&list, 1, "create", "/tmp", 1);
    assert_null(list.v[1].rule);
    assert_null(list.v[1].fix);
}

static enum sy_code
add_with_little_memory(void *arg)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    const struct denial known = write_of(outside, DENIAL_INFERRED);
    const struct audit_record records[] = {record(OPERATION_CREATE, true, "/srv/data"),
                                           record(OPERATION_WRITE, false, "/etc/hosts")};
    struct sandbox_plan *p = plan();
    struct audited a;

    (void)arg;
    if (p == NULL || denial_add(&list, &known) != SY_E_OK) {
        sandbox_plan_free(p);
        return SY_E_NOMEM;
    }
    audited_begin(&a, &list, p);
    audited_add(&a, &records[0]);
    audited_add(&a, &records[1]);
    sandbox_plan_free(p);
    /* That the rule could not be found costs the rule, not the denial. */
    return a.rc == SY_E_OK && (list.n != 2 || list.v[0].confidence != DENIAL_EXACT) ? SY_E_INTERNAL
                                                                                    : a.rc;
}

static void
memory_may_run_out_anywhere(void **state)
{
    (void)state;
    fault_run_lenient(add_with_little_memory, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_inferred_becomes_exact_and_is_told_once),
        cmocka_unit_test(each_record_is_one_of_the_known_as_often_as_that_is_counted),
        cmocka_unit_test(what_an_observer_saw_is_not_told_again),
        cmocka_unit_test(others_stay_inferred),
        cmocka_unit_test(what_is_told_by_itself_has_the_rule_and_the_line_that_allows_it),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
