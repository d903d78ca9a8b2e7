#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "approval/review.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "review_yard.h"

/* A question's way: into the store, answered by whoever is first, taken once. */

/* Somebody else, by a connection of their own. */
static enum store_verdict
decide(const struct yard *y, const char *id, enum store_status status, const char *reason)
{
    struct store *st = yard_open(y);
    const struct review_reply reply = {.status = status, .reason = reason, .decided_by = "other"};
    struct store_answer answer = {0};
    struct sy_error err = {0};

    if (review_decide(&answer, st, id, &reply, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    store_close(st);
    return answer.verdict;
}

static void
reply(struct review_ticket *t, enum store_status status)
{
    const struct review_reply r = {.status = status, .reason = "so", .decided_by = "front"};

    review_store_ops.reply(t, &r);
}

static void
a_front_s_answer_counts_and_wakes(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = yard_ask(r, UINT64_MAX);

    yard_woken = 0;
    (void)yard_until_open(r, t);
    assert_int_equal(yard_woken, 1);
    assert_null(review_store_ops.answer(t));
    reply(t, STORE_APPROVED);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_APPROVED);
    assert_string_equal(yard_until_answered(r, t)->decided_by, "front");
    assert_true(yard_woken >= 2);
    review_store_ops.leave(t);
    review_free(r);
}

static void
an_answer_of_another_process_is_seen(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = yard_ask(r, UINT64_MAX);

    assert_int_equal(decide(*state, yard_until_open(r, t), STORE_DENIED, "not that"), STORE_TAKEN);

    const struct review_answer *a = yard_until_answered(r, t);

    assert_int_equal(a->outcome, REVIEW_DENIED);
    assert_string_equal(a->reason, "not that");
    /* A dead form. */
    reply(t, STORE_APPROVED);
    assert_int_equal(review_store_ops.answer(t)->outcome, REVIEW_DENIED);
    review_store_ops.leave(t);

    t = yard_ask(r, UINT64_MAX);
    a = yard_until_answered(r, t);
    assert_int_equal(a->outcome, REVIEW_DENIED);
    assert_true(a->is_remembered);
    review_store_ops.leave(t);
    review_free(r);
}

static void
once_is_once_also_for_two_of_the_same(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *a = yard_ask(r, UINT64_MAX);
    char id[STORE_ID_SIZE];

    memcpy(id, yard_until_open(r, a), sizeof(id));

    struct review_ticket *b = yard_ask(r, UINT64_MAX);

    assert_string_not_equal(yard_until_open(r, b), id);
    assert_int_equal(decide(*state, id, STORE_APPROVED, NULL), STORE_TAKEN);
    assert_int_equal(yard_until_answered(r, a)->outcome, REVIEW_APPROVED);
    assert_null(review_store_ops.answer(b));
    review_store_ops.leave(a);
    review_store_ops.leave(b);
    review_free(r);
}

static void
without_anybody_it_is_pending_and_found_again(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = yard_ask(r, 0);
    char id[STORE_ID_SIZE];

    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_PENDING);
    memcpy(id, review_store_ops.answer(t)->id, sizeof(id));
    review_store_ops.leave(t);
    t = yard_ask(r, 0);
    assert_string_equal(yard_until_answered(r, t)->id, id);
    review_store_ops.leave(t);
    assert_int_equal(decide(*state, id, STORE_APPROVED, NULL), STORE_TAKEN);
    t = yard_ask(r, 0);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_APPROVED);
    review_store_ops.leave(t);
    t = yard_ask(r, 0);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_PENDING);
    assert_string_not_equal(yard_until_answered(r, t)->id, id);
    review_store_ops.leave(t);
    review_free(r);
}

static void
a_session_remembers_and_ends(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = yard_ask(r, UINT64_MAX);

    (void)yard_until_open(r, t);
    reply(t, STORE_APPROVED_FOR_SESSION);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_APPROVED);
    review_store_ops.leave(t);
    t = yard_ask(r, 0);
    assert_non_null(review_store_ops.answer(t));
    assert_int_equal(review_store_ops.answer(t)->outcome, REVIEW_APPROVED);
    assert_true(review_store_ops.answer(t)->is_remembered);
    review_store_ops.leave(t);
    review_free(r);

    r = yard_review(*state, 60000);
    t = yard_ask(r, 0);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_PENDING);
    review_store_ops.leave(t);
    review_free(r);
}

static size_t
pending(const struct yard *y)
{
    struct store *st = yard_open(y);
    struct store_requests list = {0};
    struct sy_error err = {0};

    assert_int_equal(store_requests_pending(&list, st, &err), SY_E_OK);

    size_t n = list.n;

    store_requests_fini(&list);
    store_close(st);
    return n;
}

/* As a session of a tree: its own id first. */
static struct review_ticket *
ask_in(struct review *r, const char *const *sessions, uint64_t hold_ms)
{
    const struct question question = yard_question(true);
    const struct review_question q = {
        .question = &question, .sessions = sessions, .hold_ms = hold_ms, .wake = yard_wake};
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    if (review_store_ops.ask(r, &t, &q, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return t;
}

static const char *const main_one[] = {"s", NULL};
static const char *const child[] = {"c", "s", NULL};
static const char *const grandchild[] = {"g", "c", "s", NULL};
static const char *const other[] = {"o", "s", NULL};

/* Is it answered without anybody? */
static bool
is_known(struct review *r, const char *const *sessions, enum review_outcome as)
{
    struct review_ticket *t = ask_in(r, sessions, 0);
    const struct review_answer *a = yard_until_answered(r, t);
    bool ret = a->is_remembered && a->outcome == as;

    assert_true(ret || a->outcome == REVIEW_PENDING);
    review_store_ops.leave(t);
    return ret;
}

static void
answer_in(struct review *r, const char *const *sessions, enum store_status status)
{
    struct review_ticket *t = ask_in(r, sessions, UINT64_MAX);

    (void)yard_until_open(r, t);
    reply(t, status);
    (void)yard_until_answered(r, t);
    review_store_ops.leave(t);
}

static void
what_is_allowed_for_a_session_goes_down_and_not_up(void **state)
{
    struct review *r = yard_review(*state, 60000);

    answer_in(r, child, STORE_APPROVED_FOR_SESSION);
    assert_true(is_known(r, child, REVIEW_APPROVED));
    assert_true(is_known(r, grandchild, REVIEW_APPROVED));
    assert_false(is_known(r, main_one, REVIEW_APPROVED));
    assert_false(is_known(r, other, REVIEW_APPROVED));
    review_free(r);
}

static void
what_was_denied_above_is_denied_below(void **state)
{
    struct review *r = yard_review(*state, 60000);

    answer_in(r, child, STORE_DENIED);
    assert_true(is_known(r, child, REVIEW_DENIED));
    assert_true(is_known(r, grandchild, REVIEW_DENIED));
    assert_false(is_known(r, other, REVIEW_DENIED));
    review_free(r);
}

static void
what_was_approved_once_is_for_who_asked(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = ask_in(r, main_one, 0);

    assert_int_equal(decide(*state, yard_until_answered(r, t)->id, STORE_APPROVED, NULL),
                     STORE_TAKEN);
    review_store_ops.leave(t);
    assert_false(is_known(r, child, REVIEW_APPROVED));
    assert_true(is_known(r, main_one, REVIEW_APPROVED));
    review_free(r);
}

static void
the_end_of_a_session_takes_back_what_was_its_own(void **state)
{
    struct review *r = yard_review(*state, 60000);

    answer_in(r, child, STORE_APPROVED_FOR_SESSION);
    answer_in(r, main_one, STORE_DENIED);
    review_store_ops.leave(ask_in(r, other, UINT64_MAX));
    assert_false(is_known(r, (const char *const[]){"p", NULL}, REVIEW_APPROVED)); /* is pending */
    while (pending(*state) > 1) {
        yard_turn(r);
    }
    review_store_ops.end(r, "p");
    review_store_ops.end(r, "c");
    while (pending(*state) > 0) {
        yard_turn(r);
    }
    assert_true(is_known(r, main_one, REVIEW_DENIED)); /* another one's stays */
    while (is_known(r, (const char *const[]){"c", NULL}, REVIEW_APPROVED)) {
        yard_turn(r);
    }
    review_free(r);
}

static void
what_was_not_offered_is_refused(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    assert_int_equal(yard_ask_as(&t, r, UINT64_MAX, false, &err), SY_E_OK);
    (void)yard_until_open(r, t);
    reply(t, STORE_APPROVED_FOR_SESSION);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_FAILED);
    assert_non_null(strstr(yard_until_answered(r, t)->err.msg, "only once"));
    review_store_ops.leave(t);
    assert_int_equal(yard_ask_as(&t, r, UINT64_MAX, true, &err), SY_E_OK);
    (void)yard_until_open(r, t);
    reply(t, STORE_APPROVED_WITH_RULE);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_FAILED);
    review_store_ops.leave(t);
    review_free(r);
}

static void
who_leaves_takes_the_question_back(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = yard_ask(r, UINT64_MAX);

    (void)yard_until_open(r, t);
    assert_int_equal(pending(*state), 1);
    review_store_ops.leave(t);
    /* And one that leaves before its question stands there. */
    t = yard_ask(r, UINT64_MAX);
    review_store_ops.leave(t);
    while (pending(*state) > 0) {
        yard_turn(r);
    }
    review_free(r);
}

static void
time_runs_out_by_the_hold_and_by_the_request(void **state)
{
    struct review *r = yard_review(*state, 60000);
    struct review_ticket *t = yard_ask(r, 20);

    (void)yard_until_open(r, t);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_PENDING);
    review_store_ops.leave(t);
    review_free(r);
    r = yard_review(*state, 50);
    t = yard_ask(r, UINT64_MAX);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_TIMED_OUT);
    review_store_ops.leave(t);
    review_free(r);
}

static void
a_store_that_goes_away_ends_the_wait(void **state)
{
    const struct yard *y = *state;
    struct review *r = yard_review(y, 60000);
    struct review_ticket *t = yard_ask(r, UINT64_MAX);
    char path[160];

    (void)yard_until_open(r, t);
    (void)snprintf(path, sizeof(path), "%s/shellyard.changes", y->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(yard_until_answered(r, t)->outcome, REVIEW_FAILED);
    review_store_ops.leave(t);
    review_free(r);
}

static void
rules_of_answers_are_read_with_their_version(void **state)
{
    const struct yard *y = *state;
    struct review *r = yard_review(y, 60000);
    struct rules rules = {0};
    struct sy_error err = {0};
    uint64_t before = 1;
    uint64_t after = 1;

    assert_int_equal(review_rules_version(r, &before, &err), SY_E_OK);
    assert_int_equal(before, 0);
    assert_int_equal(review_rules_read(r, &rules, &err), SY_E_OK);
    assert_int_equal(rules.n, 0);
    assert_int_not_equal(access(y->db, F_OK), 0);
    store_close(yard_open(y));
    assert_int_equal(review_rules_version(r, &before, &err), SY_E_OK);
    yard_sql(y, "INSERT INTO allow_rule (id, prefix, lifts_sandbox, created_ms, decided_by) VALUES"
                " ('00000000000000000000000000000000', '[\"git\",\"log\"]', 1, 0, 't')");
    assert_int_equal(review_rules_version(r, &after, &err), SY_E_OK);
    assert_true(before != after);
    assert_int_equal(review_rules_read(r, &rules, &err), SY_E_OK);
    assert_int_equal(rules.n, 1);
    assert_true(rules.rules[0].lifts_sandbox);
    assert_int_equal(rules.rules[0].args_n, 1);
    rules_fini(&rules);
    review_free(r);
}

static enum sy_code
ask_and_answer(void *arg)
{
    const struct yard *y = arg;
    const struct review_options options = {
        .state_dir = y->dir, .session = "s", .principal = "p", .ttl_ms = 60000};
    struct review *r = NULL;
    struct review_ticket *t = NULL;
    struct sy_error err = {0};
    enum sy_code rc = review_new(&r, &options, &err);

    if (rc == SY_E_OK) {
        rc = yard_ask_as(&t, r, 0, true, &err);
    }
    while (rc == SY_E_OK && review_store_ops.answer(t) == NULL) {
        yard_turn(r);
    }
    if (rc == SY_E_OK && review_store_ops.answer(t)->outcome == REVIEW_FAILED) {
        rc = review_store_ops.answer(t)->err.code;
    }
    if (t != NULL) {
        review_store_ops.leave(t);
    }
    review_free(r);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    fault_run_lenient(ask_and_answer, *state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_front_s_answer_counts_and_wakes),
        TEST(an_answer_of_another_process_is_seen),
        TEST(once_is_once_also_for_two_of_the_same),
        TEST(without_anybody_it_is_pending_and_found_again),
        TEST(a_session_remembers_and_ends),
        TEST(what_is_allowed_for_a_session_goes_down_and_not_up),
        TEST(what_was_denied_above_is_denied_below),
        TEST(what_was_approved_once_is_for_who_asked),
        TEST(the_end_of_a_session_takes_back_what_was_its_own),
        TEST(what_was_not_offered_is_refused),
        TEST(who_leaves_takes_the_question_back),
        TEST(time_runs_out_by_the_hold_and_by_the_request),
        TEST(a_store_that_goes_away_ends_the_wait),
        TEST(rules_of_answers_are_read_with_their_version),
        TEST(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
