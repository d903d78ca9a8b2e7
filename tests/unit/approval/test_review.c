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
#include "yard.h"

/* A question's way: into the store, answered by whoever is first, taken once. */

#define SOON_NS 20000000000ULL

static const char *const argv[] = {"rm", "-rf", "x", NULL};
static char workspace[] = "/ws";
static struct sandbox_policy policy = {.mode = SANDBOX_WORKSPACE_WRITE, .cwd = workspace};
static unsigned woken;

static struct review *
make(const struct yard *y, uint64_t ttl_ms)
{
    const struct review_options options = {
        .state_dir = y->dir, .session = "s", .principal = "p", .ttl_ms = ttl_ms};
    struct review *r = NULL;
    struct sy_error err = {0};

    if (review_new(&r, &options, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return r;
}

static void
on_wake(void *arg)
{
    (void)arg;
    woken++;
}

static struct question
dangerous(bool may_remember)
{
    return (struct question){
        .tool = "shell",
        .argv = mem_unconst(argv),
        .cwd = "/ws",
        .why = "why",
        .finding = "",
        .class = APPROVAL_CLASS_DANGEROUS,
        .sandbox = &policy,
        .may_remember = may_remember,
    };
}

static enum sy_code
ask_as(struct review_ticket **ret, struct review *r, uint64_t hold_ms, bool may_remember,
       struct sy_error *err)
{
    const struct question question = dangerous(may_remember);
    const struct review_question q = {.question = &question, .hold_ms = hold_ms, .wake = on_wake};

    return review_store_ops.ask(r, ret, &q, err);
}

static struct review_ticket *
ask(struct review *r, uint64_t hold_ms)
{
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    if (ask_as(&t, r, hold_ms, true, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return t;
}

/* One turn of a loop: waits for what there is to wait for. */
static void
turn(struct review *r)
{
    struct pollfd fd = {.fd = review_fd(r), .events = POLLIN};
    uint64_t now = clock_mono_ns();
    uint64_t at = review_deadline_ns(r);
    uint64_t ms = at <= now ? 0 : (at - now) / 1000000 + 1;

    (void)poll(&fd, 1, ms < 1000 ? (int)ms : 1000);
    review_step(r, clock_mono_ns());
}

static const char *
until_open(struct review *r, const struct review_ticket *t)
{
    uint64_t end = clock_mono_ns() + SOON_NS;

    while (review_store_ops.id(t)[0] == '\0' && clock_mono_ns() < end) {
        turn(r);
    }
    assert_true(review_store_ops.id(t)[0] != '\0');
    return review_store_ops.id(t);
}

static const struct review_answer *
until_answered(struct review *r, const struct review_ticket *t)
{
    uint64_t end = clock_mono_ns() + SOON_NS;

    while (review_store_ops.answer(t) == NULL && clock_mono_ns() < end) {
        turn(r);
    }
    assert_non_null(review_store_ops.answer(t));
    return review_store_ops.answer(t);
}

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
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask(r, UINT64_MAX);

    woken = 0;
    (void)until_open(r, t);
    assert_int_equal(woken, 1);
    assert_null(review_store_ops.answer(t));
    reply(t, STORE_APPROVED);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_APPROVED);
    assert_string_equal(until_answered(r, t)->decided_by, "front");
    assert_true(woken >= 2);
    review_store_ops.leave(t);
    review_free(r);
}

static void
an_answer_of_another_process_is_seen(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask(r, UINT64_MAX);

    assert_int_equal(decide(*state, until_open(r, t), STORE_DENIED, "not that"), STORE_TAKEN);

    const struct review_answer *a = until_answered(r, t);

    assert_int_equal(a->outcome, REVIEW_DENIED);
    assert_string_equal(a->reason, "not that");
    /* A dead form. */
    reply(t, STORE_APPROVED);
    assert_int_equal(review_store_ops.answer(t)->outcome, REVIEW_DENIED);
    review_store_ops.leave(t);

    t = ask(r, UINT64_MAX);
    a = until_answered(r, t);
    assert_int_equal(a->outcome, REVIEW_DENIED);
    assert_true(a->is_remembered);
    review_store_ops.leave(t);
    review_free(r);
}

static void
once_is_once_also_for_two_of_the_same(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *a = ask(r, UINT64_MAX);
    char id[STORE_ID_SIZE];

    memcpy(id, until_open(r, a), sizeof(id));

    struct review_ticket *b = ask(r, UINT64_MAX);

    assert_string_not_equal(until_open(r, b), id);
    assert_int_equal(decide(*state, id, STORE_APPROVED, NULL), STORE_TAKEN);
    assert_int_equal(until_answered(r, a)->outcome, REVIEW_APPROVED);
    assert_null(review_store_ops.answer(b));
    review_store_ops.leave(a);
    review_store_ops.leave(b);
    review_free(r);
}

static void
without_anybody_it_is_pending_and_found_again(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask(r, 0);
    char id[STORE_ID_SIZE];

    assert_int_equal(until_answered(r, t)->outcome, REVIEW_PENDING);
    memcpy(id, review_store_ops.answer(t)->id, sizeof(id));
    review_store_ops.leave(t);
    t = ask(r, 0);
    assert_string_equal(until_answered(r, t)->id, id);
    review_store_ops.leave(t);
    assert_int_equal(decide(*state, id, STORE_APPROVED, NULL), STORE_TAKEN);
    t = ask(r, 0);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_APPROVED);
    review_store_ops.leave(t);
    t = ask(r, 0);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_PENDING);
    assert_string_not_equal(until_answered(r, t)->id, id);
    review_store_ops.leave(t);
    review_free(r);
}

static void
a_session_remembers_and_ends(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask(r, UINT64_MAX);

    (void)until_open(r, t);
    reply(t, STORE_APPROVED_FOR_SESSION);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_APPROVED);
    review_store_ops.leave(t);
    t = ask(r, 0);
    assert_non_null(review_store_ops.answer(t));
    assert_int_equal(review_store_ops.answer(t)->outcome, REVIEW_APPROVED);
    assert_true(review_store_ops.answer(t)->is_remembered);
    review_store_ops.leave(t);
    review_free(r);

    r = make(*state, 60000);
    t = ask(r, 0);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_PENDING);
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
    const struct question question = dangerous(true);
    const struct review_question q = {
        .question = &question, .sessions = sessions, .hold_ms = hold_ms, .wake = on_wake};
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
    const struct review_answer *a = until_answered(r, t);
    bool ret = a->is_remembered && a->outcome == as;

    assert_true(ret || a->outcome == REVIEW_PENDING);
    review_store_ops.leave(t);
    return ret;
}

static void
answer_in(struct review *r, const char *const *sessions, enum store_status status)
{
    struct review_ticket *t = ask_in(r, sessions, UINT64_MAX);

    (void)until_open(r, t);
    reply(t, status);
    (void)until_answered(r, t);
    review_store_ops.leave(t);
}

static void
what_is_allowed_for_a_session_goes_down_and_not_up(void **state)
{
    struct review *r = make(*state, 60000);

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
    struct review *r = make(*state, 60000);

    answer_in(r, child, STORE_DENIED);
    assert_true(is_known(r, child, REVIEW_DENIED));
    assert_true(is_known(r, grandchild, REVIEW_DENIED));
    assert_false(is_known(r, other, REVIEW_DENIED));
    review_free(r);
}

static void
what_was_approved_once_is_for_who_asked(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask_in(r, main_one, 0);

    assert_int_equal(decide(*state, until_answered(r, t)->id, STORE_APPROVED, NULL), STORE_TAKEN);
    review_store_ops.leave(t);
    assert_false(is_known(r, child, REVIEW_APPROVED));
    assert_true(is_known(r, main_one, REVIEW_APPROVED));
    review_free(r);
}

static void
the_end_of_a_session_takes_back_what_was_its_own(void **state)
{
    struct review *r = make(*state, 60000);

    answer_in(r, child, STORE_APPROVED_FOR_SESSION);
    answer_in(r, main_one, STORE_DENIED);
    review_store_ops.leave(ask_in(r, other, UINT64_MAX));
    assert_false(is_known(r, (const char *const[]){"p", NULL}, REVIEW_APPROVED)); /* is pending */
    while (pending(*state) > 1) {
        turn(r);
    }
    review_store_ops.end(r, "p");
    review_store_ops.end(r, "c");
    while (pending(*state) > 0) {
        turn(r);
    }
    assert_true(is_known(r, main_one, REVIEW_DENIED)); /* another one's stays */
    while (is_known(r, (const char *const[]){"c", NULL}, REVIEW_APPROVED)) {
        turn(r);
    }
    review_free(r);
}

static void
what_was_not_offered_is_refused(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    assert_int_equal(ask_as(&t, r, UINT64_MAX, false, &err), SY_E_OK);
    (void)until_open(r, t);
    reply(t, STORE_APPROVED_FOR_SESSION);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_FAILED);
    assert_non_null(strstr(until_answered(r, t)->err.msg, "only once"));
    review_store_ops.leave(t);
    assert_int_equal(ask_as(&t, r, UINT64_MAX, true, &err), SY_E_OK);
    (void)until_open(r, t);
    reply(t, STORE_APPROVED_WITH_RULE);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_FAILED);
    review_store_ops.leave(t);
    review_free(r);
}

static void
who_leaves_takes_the_question_back(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask(r, UINT64_MAX);

    (void)until_open(r, t);
    assert_int_equal(pending(*state), 1);
    review_store_ops.leave(t);
    /* And one that leaves before its question stands there. */
    t = ask(r, UINT64_MAX);
    review_store_ops.leave(t);
    while (pending(*state) > 0) {
        turn(r);
    }
    review_free(r);
}

static void
time_runs_out_by_the_hold_and_by_the_request(void **state)
{
    struct review *r = make(*state, 60000);
    struct review_ticket *t = ask(r, 20);

    (void)until_open(r, t);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_PENDING);
    review_store_ops.leave(t);
    review_free(r);
    r = make(*state, 50);
    t = ask(r, UINT64_MAX);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_TIMED_OUT);
    review_store_ops.leave(t);
    review_free(r);
}

static void
a_store_that_goes_away_ends_the_wait(void **state)
{
    const struct yard *y = *state;
    struct review *r = make(y, 60000);
    struct review_ticket *t = ask(r, UINT64_MAX);
    char path[160];

    (void)until_open(r, t);
    (void)snprintf(path, sizeof(path), "%s/shellyard.changes", y->dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(until_answered(r, t)->outcome, REVIEW_FAILED);
    review_store_ops.leave(t);
    review_free(r);
}

static void
rules_of_answers_are_read_with_their_version(void **state)
{
    const struct yard *y = *state;
    struct review *r = make(y, 60000);
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
    const struct question question = dangerous(false);
    const struct review_question q = {
        .question = &question, .hold_ms = hold_ms, .asks_once = asks_once, .wake = on_wake};
    struct review_ticket *t = NULL;
    struct sy_error err = {0};

    assert_int_equal(review_store_ops.ask(r, &t, &q, &err), SY_E_OK);
    return t;
}

/* Until the store has been written. */
static void
until_asked(struct review *r, const struct commenter *c)
{
    uint64_t end = clock_mono_ns() + SOON_NS;

    while (c->asked == 0 && clock_mono_ns() < end) {
        turn(r);
    }
    assert_int_equal(c->asked, 1);
}

static void
who_asks_once_is_told_with_the_comment_or_without(void **state)
{
    const struct yard *y = *state;

    for (int with = 0; with < 2; with++) {
        struct review *r = make(y, 60000);
        struct commenter c = {.will = true};

        review_use_commenter(r, on_request, &c);

        struct review_ticket *t = ask_once(r, 1, true);

        until_asked(r, &c);
        assert_string_equal(review_store_ops.id(t), "");
        assert_true(review_deadline_ns(r) > clock_mono_ns() + 10000000000ULL); /* no hold yet */
        woken = 0;
        review_comment(r, "00000000000000000000000000000000", &high, "m"); /* another one's */
        assert_int_equal(woken, 0);
        review_comment(r, c.id, with != 0 ? &high : NULL, "m");
        assert_int_equal(woken, 1);
        assert_string_equal(review_store_ops.id(t), c.id);
        assert_int_equal(has_comment(review_store_ops.text(t)), with != 0);
        assert_int_equal(until_answered(r, t)->outcome, REVIEW_PENDING);
        review_store_ops.leave(t);
        review_free(r);
    }
}

static void
others_are_told_at_once_and_again(void **state)
{
    const struct yard *y = *state;
    struct review *r = make(y, 60000);
    struct commenter c = {.will = true};

    review_use_commenter(r, on_request, &c);

    struct review_ticket *t = ask_once(r, UINT64_MAX, false);

    (void)until_open(r, t);

    const char *first = review_store_ops.text(t);

    assert_false(has_comment(first));
    woken = 0;
    review_comment(r, c.id, &high, "m");
    assert_int_equal(woken, 1);
    assert_ptr_not_equal(review_store_ops.text(t), first);
    assert_true(has_comment(review_store_ops.text(t)));
    assert_false(has_comment(first)); /* it lives as long as the ticket */
    review_comment(r, c.id, &high, "m");
    assert_int_equal(woken, 1); /* there is one comment */
    review_store_ops.leave(t);
    review_free(r);
}

static void
the_comment_on_what_is_pending_is_kept_and_found_again(void **state)
{
    const struct yard *y = *state;
    struct review *r = make(y, 60000);
    struct store *st = yard_open(y);
    struct commenter c = {.will = true};
    struct store_request q = {0};
    uint64_t end = clock_mono_ns() + SOON_NS;

    review_use_commenter(r, on_request, &c);

    struct review_ticket *t = ask_once(r, 0, false);

    assert_int_equal(until_answered(r, t)->outcome, REVIEW_PENDING);
    review_store_ops.leave(t);
    review_comment(r, c.id, &high, "m");
    do {
        store_request_fini(&q);
        turn(r);
        assert_int_equal(store_request_get(&q, st, c.id, NULL), SY_E_OK);
    } while (!has_comment(q.text) && clock_mono_ns() < end);
    assert_true(has_comment(q.text));
    store_request_fini(&q);
    t = ask_once(r, UINT64_MAX, true);
    assert_string_equal(until_open(r, t), c.id);
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
    struct review *r = make(y, 60000);
    struct commenter c = {.will = false};

    review_use_commenter(r, on_request, &c);

    struct review_ticket *t = ask_once(r, UINT64_MAX, true);

    assert_string_equal(until_open(r, t), c.id);
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
        rc = ask_as(&t, r, UINT64_MAX, true, &err);
    }
    while (rc == SY_E_OK && review_store_ops.answer(t) == NULL &&
           review_store_ops.id(t)[0] == '\0') {
        turn(r);
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
        rc = ask_as(&t, r, 0, true, &err);
    }
    while (rc == SY_E_OK && review_store_ops.answer(t) == NULL) {
        turn(r);
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
        TEST(who_asks_once_is_told_with_the_comment_or_without),
        TEST(others_are_told_at_once_and_again),
        TEST(the_comment_on_what_is_pending_is_kept_and_found_again),
        TEST(without_a_comment_to_come_nobody_waits),
        TEST(each_allocation_of_a_comment_may_fail),
        TEST(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
