#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "orchestrator/call_internal.h"

/* The readers/writer lock of a session: order, and who may run beside whom. */

struct yard {
    struct session_lock lock;
    struct orch_call calls[5];
    unsigned woken[5];
};

static void
on_wake(void *arg)
{
    unsigned *n = arg;

    (*n)++;
}

/* One call a letter: w writes, r reads. */
static void
make(struct yard *y, const char *kinds)
{
    *y = (struct yard){0};
    for (size_t i = 0; kinds[i] != '\0'; i++) {
        y->calls[i].is_mutating = kinds[i] == 'w';
        y->calls[i].wake = on_wake;
        y->calls[i].wake_arg = &y->woken[i];
    }
}

static bool
enter(struct yard *y, size_t i)
{
    return lock_enter(&y->lock, &y->calls[i]);
}

static void
leave(struct yard *y, size_t i)
{
    lock_leave(&y->lock, &y->calls[i]);
}

static void
readers_run_side_by_side_and_writers_alone(void **state)
{
    struct yard y;

    (void)state;
    make(&y, "rrwr");
    assert_true(enter(&y, 0));
    assert_true(enter(&y, 1));
    assert_false(enter(&y, 2));
    leave(&y, 0);
    assert_int_equal(y.woken[2], 0);
    leave(&y, 1);
    assert_int_equal(y.woken[2], 1);
    assert_true(enter(&y, 2)); /* woken, it asks again: it is inside */
    assert_false(enter(&y, 3));
    leave(&y, 2);
    assert_int_equal(y.woken[3], 1);
    leave(&y, 3);
    assert_null(y.lock.first);
    assert_int_equal(y.lock.readers, 0);
    assert_false(y.lock.has_writer);
}

static void
nobody_overtakes_a_writer_that_waits(void **state)
{
    struct yard y;

    (void)state;
    make(&y, "rwr");
    assert_true(enter(&y, 0));
    assert_false(enter(&y, 1));
    assert_false(enter(&y, 2));
    leave(&y, 1); /* cancelled while it waited */
    assert_int_equal(y.woken[2], 1);
    leave(&y, 0);
    leave(&y, 2);
    assert_int_equal(y.lock.readers, 0);
}

static void
a_place_is_kept_from_the_beginning(void **state)
{
    struct yard y;

    (void)state;
    make(&y, "www");
    lock_queue(&y.lock, &y.calls[0]);
    lock_queue(&y.lock, &y.calls[1]);
    assert_false(enter(&y, 1)); /* ready first, but second in line */
    assert_true(enter(&y, 0));
    leave(&y, 0);
    assert_int_equal(y.woken[1], 1);
    leave(&y, 1);
    assert_null(y.lock.first);
}

static void
who_waits_for_a_person_holds_up_nobody(void **state)
{
    struct yard y;

    (void)state;
    make(&y, "ww");
    lock_queue(&y.lock, &y.calls[0]);
    lock_queue(&y.lock, &y.calls[1]);
    assert_false(enter(&y, 1));
    leave(&y, 0); /* a person is asked */
    assert_int_equal(y.woken[1], 1);
    assert_false(enter(&y, 0)); /* they said yes: at the end of the line */
    leave(&y, 1);
    assert_int_equal(y.woken[0], 1);
    leave(&y, 0);
}

static void
what_was_found_to_change_nothing_enters_as_a_reader(void **state)
{
    struct yard y;

    (void)state;
    make(&y, "wr");
    lock_queue(&y.lock, &y.calls[0]);
    assert_false(enter(&y, 1));
    y.calls[0].is_mutating = false;
    assert_true(enter(&y, 0));
    assert_int_equal(y.woken[1], 1);
    assert_int_equal(y.lock.readers, 2);
    leave(&y, 0);
    leave(&y, 1);
    leave(&y, 1); /* of no effect outside */
    assert_int_equal(y.lock.readers, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_run_side_by_side_and_writers_alone),
        cmocka_unit_test(nobody_overtakes_a_writer_that_waits),
        cmocka_unit_test(a_place_is_kept_from_the_beginning),
        cmocka_unit_test(who_waits_for_a_person_holds_up_nobody),
        cmocka_unit_test(what_was_found_to_change_nothing_enters_as_a_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
