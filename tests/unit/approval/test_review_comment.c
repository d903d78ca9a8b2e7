#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fault.h"
#include "review_yard.h"

/* A comment on a question, by whoever can say what may come of the command. */

/* A commenter that says it will, or will not. */
struct commenter {
    bool will;
    unsigned asked;
    char id[STORE_ID_SIZE];
};

static bool
on_request(void *arg, const char *id, const char *text)
{
    struct commenter *c = arg;

    assert_non_null(strstr(text, "\"command\""));
    c->asked++;
    memcpy(c->id, id, STORE_ID_SIZE);
    return c->will;
}

static const struct risk high = {.level = RISK_HIGH, .sentence = "It removes x."};

static bool
has_comment(const char *text)
{
    return strstr(text, "\"assessment\":{\"level\":\"high\",\"sentence\":\"It removes x.\","
                        "\"by\":\"m\"}") != NULL;
}

static struct review_ticket *
ask_once(struct review *r, uint64_t hold_ms, bool asks_once)
{
    const struct question question = yard_question(false);
    const struct review_question q = {
        .question = &question, .hold_ms = hold_ms, .asks_once = asks_once, .wake = yard_wake};
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    assert_int_equal(review_store_ops.ask(r, &t, &q, &err), SY_E_OK);
    return t;
}

/* Until the store has been written. */
static void
until_asked(struct review *r, const struct commenter *c)
{
    uint64_t end = clock_mono_ns() + YARD_SOON_NS;

    while (c->asked == 0 && clock_mono_ns() < end) {
        yard_turn(r);
    }
    assert_int_equal(c->asked, 1);
}

static void
who_asks_once_is_told_with_the_comment_or_without(void **state)
{
    const struct yard *y = *state;

    for (int with = 0; with < 2; with++) {
        struct review *r = yard_review(y, 60000);
        struct commenter c = {.will = true};

        review_use_commenter(r, on_request, &c);

        struct review_ticket *t = ask_once(r, 1, true);

        until_asked(r, &c);
        assert_string_equal(review_store_ops.id(t), "");
        assert_true(review_deadline_ns(r) > clock_mono_ns() + 10000000000ULL); /* no hold yet */
        yard_woken = 0;
        review_comment(r, "00000000000000000000000000000000", &high, "m"); /* another one's */
        assert_int_equal(yard_woken, 0);
        review_comment(r, c.id, with != 0 ? &high : NULL, "m");
        assert_int_equal(yard_woken, 1);
        assert_string_equal(review_store_ops.id(t), c.id);
        assert_int_equal(has_comment(review_store_ops.text(t)), with != 0);
        assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_PENDING);
        review_store_ops.leave(t);
        review_free(r);
    }
}

static void
others_are_told_at_once_and_again(void **state)
{
    const struct yard *y = *state;
    struct review *r = yard_review(y, 60000);
    struct commenter c = {.will = true};

    review_use_commenter(r, on_request, &c);

    struct review_ticket *t = ask_once(r, UINT64_MAX, false);

    (void)yard_until_open(r, t);

    const char *first = review_store_ops.text(t);

    assert_false(has_comment(first));
    yard_woken = 0;
    review_comment(r, c.id, &high, "m");
    assert_int_equal(yard_woken, 1);
    assert_ptr_not_equal(review_store_ops.text(t), first);
    assert_true(has_comment(review_store_ops.text(t)));
    assert_false(has_comment(first)); /* it lives as long as the ticket */
    review_comment(r, c.id, &high, "m");
    assert_int_equal(yard_woken, 1); /* there is one comment */
    review_store_ops.leave(t);
    review_free(r);
}

static void
the_comment_on_what_is_pending_is_kept_and_found_again(void **state)
{
    const struct yard *y = *state;
    struct review *r = yard_review(y, 60000);
    struct store *st = yard_open(y);
    struct commenter c = {.will = true};
    struct store_request q = {0};
    uint64_t end = clock_mono_ns() + YARD_SOON_NS;

    review_use_commenter(r, on_request, &c);

    struct review_ticket *t = ask_once(r, 0, false);

    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_PENDING);
    review_store_ops.leave(t);
    review_comment(r, c.id, &high, "m");
    do {
        store_request_fini(&q);
        yard_turn(r);
        assert_int_equal(store_request_get(&q, st, c.id, NULL), SY_E_OK);
    } while (!has_comment(q.text) && clock_mono_ns() < end);
    assert_true(has_comment(q.text));
    store_request_fini(&q);
    t = ask_once(r, UINT64_MAX, true);
    assert_string_equal(yard_until_open(r, t), c.id);
    assert_true(has_comment(review_store_ops.text(t)));
    assert_int_equal(c.asked, 1); /* nobody is asked for a second one */
    review_store_ops.leave(t);
    store_close(st);
    review_free(r);
}

static void
without_a_comment_to_come_nobody_waits(void **state)
{
    const struct yard *y = *state;
    struct review *r = yard_review(y, 60000);
    struct commenter c = {.will = false};

    review_use_commenter(r, on_request, &c);

    struct review_ticket *t = ask_once(r, UINT64_MAX, true);

    assert_string_equal(yard_until_open(r, t), c.id);
    assert_int_equal(c.asked, 1);
    review_store_ops.leave(t);
    review_free(r);
}

static enum sy_code
comment_on(void *arg)
{
    const struct yard *y = arg;
    const struct review_options options = {
        .state_dir = y->dir, .session = "s", .principal = "p", .ttl_ms = 60000};
    struct commenter c = {.will = true};
    struct review *r = NULL;
    struct review_ticket *t = NULL;
    struct sy_error err = {0};
    enum sy_code rc = review_new(&r, &options, &err);

    if (rc == SY_E_OK) {
        review_use_commenter(r, on_request, &c);
        rc = yard_ask_as(&t, r, UINT64_MAX, true, &err);
    }
    while (rc == SY_E_OK && review_store_ops.answer(t) == NULL &&
           review_store_ops.id(t)[0] == '\0') {
        yard_turn(r);
    }
    if (rc == SY_E_OK && review_store_ops.answer(t) != NULL) {
        rc = review_store_ops.answer(t)->err.code;
    } else if (rc == SY_E_OK) {
        review_comment(r, c.id, &high, "m");
    }
    if (t != NULL) {
        review_store_ops.leave(t);
    }
    review_free(r);
    return rc;
}

static void
each_allocation_of_a_comment_may_fail(void **state)
{
    fault_run_lenient(comment_on, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_asks_once_is_told_with_the_comment_or_without),
        TEST(others_are_told_at_once_and_again),
        TEST(the_comment_on_what_is_pending_is_kept_and_found_again),
        TEST(without_a_comment_to_come_nobody_waits),
        TEST(each_allocation_of_a_comment_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
