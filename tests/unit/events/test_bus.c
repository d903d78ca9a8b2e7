#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "events/events.h"
#include "fault.h"

/* Which subscriber saw which event: "a0b0a1" and so on. */
struct record {
    struct event_bus *bus;
    char text[128];
    size_t len;
    uint64_t other; /* id for the callbacks that change the list */
};

struct listener {
    struct record *record;
    char name;
};

static const struct event begin = {.kind = EVENT_EXEC_BEGIN, .call_id = "call_1"};
static const struct event end = {.kind = EVENT_EXEC_END, .call_id = "call_1"};

static void
note(void *arg, const struct event *e)
{
    struct listener *l = arg;
    struct record *r = l->record;

    assert_true(r->len + 2 < sizeof(r->text));
    r->text[r->len++] = l->name;
    r->text[r->len++] = (char)('0' + (int)e->kind);
    r->text[r->len] = '\0';
}

static void
note_and_remove_other(void *arg, const struct event *e)
{
    struct listener *l = arg;

    note(arg, e);
    event_unsubscribe(l->record->bus, l->record->other);
}

static void
note_and_add(void *arg, const struct event *e)
{
    static struct listener added;
    struct listener *l = arg;

    note(arg, e);
    if (l->record->other == 0) {
        added = (struct listener){l->record, 'n'};
        /* Enough to move the list while it is walked. */
        for (int i = 0; i < 10; i++) {
            l->record->other = event_subscribe(l->record->bus, note, &added);
            assert_true(l->record->other > 0);
        }
    }
}

static void
note_and_emit_end(void *arg, const struct event *e)
{
    struct listener *l = arg;

    note(arg, e);
    if (e->kind == EVENT_EXEC_BEGIN) {
        event_emit(l->record->bus, &end);
    }
}

static struct record
new_record(void)
{
    struct record r = {.bus = event_bus_new()};

    assert_non_null(r.bus);
    return r;
}

static void
subscribers_hear_in_the_order_of_subscription(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};
    struct listener b = {&r, 'b'};

    (void)state;
    assert_true(event_subscribe(r.bus, note, &a) > 0);
    assert_true(event_subscribe(r.bus, note, &b) > 0);
    event_emit(r.bus, &begin);
    event_emit(r.bus, &end);
    assert_string_equal(r.text, "a0b0a3b3");
    event_bus_free(r.bus);
}

static void
same_event(void *arg, const struct event *e)
{
    const struct event **seen = arg;

    *seen = e;
}

static void
the_event_arrives_as_it_was_sent(void **state)
{
    struct record r = new_record();
    const struct event *seen = NULL;

    (void)state;
    /* Without a subscriber nothing happens. */
    event_emit(r.bus, &begin);
    event_unsubscribe(r.bus, 12345);
    assert_true(event_subscribe(r.bus, same_event, &seen) > 0);
    event_emit(r.bus, &begin);
    assert_ptr_equal(seen, &begin);
    event_bus_free(r.bus);
    event_bus_free(NULL);
}

static void
the_unsubscribed_hear_no_more(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};
    struct listener b = {&r, 'b'};
    uint64_t id = event_subscribe(r.bus, note, &a);
    uint64_t id_b = event_subscribe(r.bus, note, &b);

    (void)state;
    assert_true(id > 0 && id_b > 0 && id != id_b);
    event_unsubscribe(r.bus, id);
    event_unsubscribe(r.bus, id);
    event_emit(r.bus, &begin);
    assert_string_equal(r.text, "b0");
    event_bus_free(r.bus);
}

static void
a_callback_may_unsubscribe_one_that_comes_later(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};
    struct listener b = {&r, 'b'};
    struct listener c = {&r, 'c'};

    (void)state;
    assert_true(event_subscribe(r.bus, note_and_remove_other, &a) > 0);
    r.other = event_subscribe(r.bus, note, &b);
    assert_true(event_subscribe(r.bus, note, &c) > 0);
    event_emit(r.bus, &begin);
    event_emit(r.bus, &end);
    assert_string_equal(r.text, "a0c0a3c3");
    event_bus_free(r.bus);
}

static void
a_callback_may_unsubscribe_itself(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};
    struct listener b = {&r, 'b'};

    (void)state;
    r.other = event_subscribe(r.bus, note_and_remove_other, &a);
    assert_true(event_subscribe(r.bus, note, &b) > 0);
    event_emit(r.bus, &begin);
    event_emit(r.bus, &end);
    assert_string_equal(r.text, "a0b0b3");
    event_bus_free(r.bus);
}

static void
one_that_subscribes_during_an_event_hears_the_next(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};

    (void)state;
    assert_true(event_subscribe(r.bus, note_and_add, &a) > 0);
    event_emit(r.bus, &begin);
    assert_string_equal(r.text, "a0");
    event_emit(r.bus, &end);
    assert_string_equal(r.text, "a0a3n3n3n3n3n3n3n3n3n3n3");
    event_bus_free(r.bus);
}

static void
a_callback_may_emit(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};
    struct listener b = {&r, 'b'};

    (void)state;
    assert_true(event_subscribe(r.bus, note_and_emit_end, &a) > 0);
    assert_true(event_subscribe(r.bus, note, &b) > 0);
    event_emit(r.bus, &begin);
    assert_string_equal(r.text, "a0a3b3b0");
    event_bus_free(r.bus);
}

static void
the_number_of_subscribers_is_limited(void **state)
{
    struct record r = new_record();
    struct listener a = {&r, 'a'};
    uint64_t first = event_subscribe(r.bus, note, &a);

    (void)state;
    for (unsigned i = 1; i < LIMIT_SUBSCRIBERS; i++) {
        assert_true(event_subscribe(r.bus, note, &a) > 0);
    }
    assert_int_equal(event_subscribe(r.bus, note, &a), 0);
    event_unsubscribe(r.bus, first);
    assert_true(event_subscribe(r.bus, note, &a) > 0);
    event_bus_free(r.bus);
}

static void
a_subscriber_hears_the_kinds_that_it_wants(void **state)
{
    struct record r = {.bus = event_bus_new()};
    struct listener a = {&r, 'a'};
    struct listener b = {&r, 'b'};

    (void)state;
    assert_non_null(r.bus);
    assert_false(event_bus_wants(r.bus, EVENT_EXEC_END));
    assert_true(event_subscribe_to(r.bus, EVENT_BIT(EVENT_EXEC_END), note, &a) > 0);
    assert_true(event_bus_wants(r.bus, EVENT_EXEC_END));
    assert_false(event_bus_wants(r.bus, EVENT_EXEC_BEGIN));
    event_emit(r.bus, &begin);
    event_emit(r.bus, &end);
    assert_string_equal(r.text, "a3");
    assert_true(event_subscribe(r.bus, note, &b) > 0);
    assert_true(event_bus_wants(r.bus, EVENT_TOOL_DONE));
    event_emit(r.bus, &begin);
    assert_string_equal(r.text, "a3b0");
    event_bus_free(r.bus);
}

static enum sy_code
subscribe_many(void *arg)
{
    struct event_bus *bus = event_bus_new();
    enum sy_code rc = bus != NULL ? SY_E_OK : SY_E_NOMEM;

    for (int i = 0; i < 20 && rc == SY_E_OK; i++) {
        rc = event_subscribe(bus, note, arg) > 0 ? SY_E_OK : SY_E_NOMEM;
    }
    event_bus_free(bus);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    struct listener a = {NULL, 'a'};

    (void)state;
    fault_run(subscribe_many, &a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscribers_hear_in_the_order_of_subscription),
        cmocka_unit_test(the_event_arrives_as_it_was_sent),
        cmocka_unit_test(the_unsubscribed_hear_no_more),
        cmocka_unit_test(a_callback_may_unsubscribe_one_that_comes_later),
        cmocka_unit_test(a_callback_may_unsubscribe_itself),
        cmocka_unit_test(one_that_subscribes_during_an_event_hears_the_next),
        cmocka_unit_test(a_callback_may_emit),
        cmocka_unit_test(the_number_of_subscribers_is_limited),
        cmocka_unit_test(a_subscriber_hears_the_kinds_that_it_wants),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("events_bus", tests, NULL, NULL);
}
