#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fault.h"
#include "store/grant.h"
#include "store/store_internal.h"
#include "store/watch.h"
#include "yard.h"

static struct store_answer
decide(struct store *st, const char *id, enum store_status status)
{
    const struct store_decision d = {
        .id = id, .status = status, .reason = "why", .decided_by = "terminal"};
    struct store_answer answer = {0};
    struct sy_error err = {0};

    if (store_request_decide(&answer, st, &d, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return answer;
}

static void
must_be(struct store *st, const char *id, enum store_status status)
{
    struct store_request r = {0};

    assert_int_equal(store_request_get(&r, st, id, NULL), SY_E_OK);
    if (r.status != status) {
        fail_msg("%s, expected %s", store_status_name(r.status), store_status_name(status));
    }
    store_request_fini(&r);
}

static bool
use(struct store *st, const char *id, const char *session, const unsigned char *digest)
{
    bool may = false;

    assert_int_equal(store_request_use(&may, st, id, session, digest, NULL), SY_E_OK);
    return may;
}

static void
the_first_decision_counts_and_the_second_is_told(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    struct store *other = yard_open(y);
    struct store_request r = {0};
    char id[STORE_ID_SIZE];

    yard_request(id, st, "rm -r build");
    assert_int_equal(decide(other, id, STORE_DENIED).verdict, STORE_TAKEN);

    struct store_answer second = decide(st, id, STORE_APPROVED);

    assert_int_equal(second.verdict, STORE_ALREADY_DECIDED);
    assert_int_equal(second.status, STORE_DENIED);
    assert_int_equal(store_request_get(&r, st, id, NULL), SY_E_OK);
    assert_int_equal(r.status, STORE_DENIED);
    assert_string_equal(r.text, "rm -r build");
    assert_string_equal(r.session, "session");
    assert_string_equal(r.principal, "agent");
    assert_string_equal(r.reason, "why");
    assert_string_equal(r.decided_by, "terminal");
    assert_memory_equal(r.digest, yard_digest, STORE_DIGEST_SIZE);
    assert_true(r.decided_ms >= r.created_ms);
    store_request_fini(&r);
    assert_false(use(st, id, "session", yard_digest));
    assert_int_equal(decide(st, "nonsense", STORE_APPROVED).verdict, STORE_UNKNOWN);
    assert_int_equal(store_request_get(&r, st, "nonsense", NULL), SY_E_NOTFOUND);
    store_close(other);
    store_close(st);
}

struct race {
    const char *id;
    int go; /* closes when both may begin */
    enum store_status status;
};

static int
decide_in_race(const struct yard *y, void *arg)
{
    const struct race *race = arg;
    struct store *st = yard_open(y);
    char byte = 0;

    (void)!read(race->go, &byte, 1);
    return (int)decide(st, race->id, race->status).verdict;
}

static void
of_two_processes_exactly_one_decides(void **state)
{
    const struct yard *y = *state;

    for (int round = 0; round < 12; round++) {
        char id[STORE_ID_SIZE];
        int in = -1;
        int out = -1;
        struct store *st = yard_open(y);

        yard_request(id, st, "ls");
        store_close(st); /* SQLite does not outlive a fork */
        assert_int_equal(fd_pipe(&in, &out, NULL), SY_E_OK);

        struct race race = {.id = id, .go = in, .status = STORE_APPROVED};
        pid_t yes = yard_fork(y, decide_in_race, &race);

        race.status = STORE_DENIED;

        pid_t no = yard_fork(y, decide_in_race, &race);

        assert_int_equal(write(out, "xx", 2), 2);

        int said_yes = yard_wait(yes);
        int said_no = yard_wait(no);

        fd_close(&in);
        fd_close(&out);
        assert_int_equal(said_yes + said_no, STORE_TAKEN + STORE_ALREADY_DECIDED);
        st = yard_open(y);
        must_be(st, id, said_yes == STORE_TAKEN ? STORE_APPROVED : STORE_DENIED);
        store_close(st);
    }
}

static void
what_was_approved_runs_once_and_only_that(void **state)
{
    static const unsigned char other[STORE_DIGEST_SIZE] = {9};
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    char id[STORE_ID_SIZE];

    yard_request(id, st, "ls");
    assert_false(use(st, id, "session", yard_digest));
    assert_int_equal(decide(st, id, STORE_APPROVED).verdict, STORE_TAKEN);
    assert_false(use(st, id, "session", other));
    assert_false(use(st, id, "another", yard_digest));
    assert_true(use(st, id, "session", yard_digest));
    assert_false(use(st, id, "session", yard_digest));
    store_close(st);
}

static void
a_late_answer_does_nothing(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    struct store_answer answer = {0};
    struct store_answer late;
    char over[STORE_ID_SIZE];
    char dead[STORE_ID_SIZE];
    char used_late[STORE_ID_SIZE];
    size_t n = 9;

    yard_request(over, st, "ls");
    yard_request(dead, st, "ls");
    yard_request(used_late, st, "ls");
    assert_int_equal(decide(st, used_late, STORE_APPROVED).verdict, STORE_TAKEN);
    assert_int_equal(store_requests_expire(&n, st, NULL), SY_E_OK);
    assert_int_equal(n, 0);
    assert_int_equal(store_request_cancel(&answer, st, dead, NULL), SY_E_OK);
    assert_int_equal(answer.verdict, STORE_TAKEN);
    yard_sql(y, "UPDATE request SET deadline_ns = 1");
    must_be(st, over, STORE_TIMED_OUT);
    late = decide(st, over, STORE_APPROVED);
    assert_int_equal(late.verdict, STORE_ENDED);
    assert_int_equal(late.status, STORE_TIMED_OUT);
    late = decide(st, dead, STORE_APPROVED);
    assert_int_equal(late.verdict, STORE_ENDED);
    assert_int_equal(late.status, STORE_CANCELLED);
    assert_false(use(st, over, "session", yard_digest));
    assert_false(use(st, dead, "session", yard_digest));
    assert_false(use(st, used_late, "session", yard_digest));
    store_close(st);
}

static void
the_wall_clock_counts_only_after_a_new_start(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    char id[STORE_ID_SIZE];
    size_t n = 0;

    yard_request(id, st, "ls");
    yard_sql(y, "UPDATE request SET expires_ms = 1");
    must_be(st, id, STORE_PENDING);
    yard_sql(y, "UPDATE request SET boot_id = 'another'");
    must_be(st, id, STORE_TIMED_OUT);
    assert_int_equal(store_requests_expire(&n, st, NULL), SY_E_OK);
    assert_int_equal(n, 1);
    store_close(st);
}

static void
those_that_wait_are_listed_the_oldest_first(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    struct store_requests list = {0};
    char ids[3][STORE_ID_SIZE];
    size_t n = 0;

    for (size_t i = 0; i < 3; i++) {
        yard_request(ids[i], st, "ls");
    }
    assert_int_equal(decide(st, ids[1], STORE_ABORTED).verdict, STORE_TAKEN);
    assert_int_equal(store_requests_pending(&list, st, NULL), SY_E_OK);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[0].id, ids[0]);
    assert_string_equal(list.v[1].id, ids[2]);
    assert_true(list.v[0].left_ms > 0 && list.v[0].left_ms <= 600000);
    store_requests_fini(&list);
    assert_int_equal(store_requests_cancel(&n, st, "another", NULL), SY_E_OK);
    assert_int_equal(n, 0);
    assert_int_equal(store_requests_cancel(&n, st, "session", NULL), SY_E_OK);
    assert_int_equal(n, 2);
    must_be(st, ids[1], STORE_ABORTED);
    must_be(st, ids[2], STORE_CANCELLED);
    store_close(st);
}

static int
decide_elsewhere(const struct yard *y, void *arg)
{
    struct store *st = yard_open(y);
    enum store_verdict verdict = decide(st, arg, STORE_APPROVED).verdict;

    return verdict == STORE_TAKEN ? 0 : 1;
}

static void
an_answer_in_another_process_wakes_who_watches(void **state)
{
    const struct yard *y = *state;
    char id[STORE_ID_SIZE];
    struct store_watch *w = NULL;
    struct sy_error err = {0};
    struct store *st = yard_open(y);

    yard_request(id, st, "ls");
    assert_int_equal(store_watch_open(&w, st, NULL), SY_E_OK);

    struct pollfd p = {.fd = store_watch_fd(w), .events = POLLIN};

    assert_int_equal(poll(&p, 1, 0), 0);

    pid_t pid = yard_fork(y, decide_elsewhere, id);

    assert_int_equal(poll(&p, 1, 30000), 1);
    assert_int_equal(yard_wait(pid), 0);
    assert_int_equal(store_watch_drain(w, NULL), SY_E_OK);
    assert_int_equal(poll(&p, 1, 0), 0);
    must_be(st, id, STORE_APPROVED);

    char changes[112];

    (void)snprintf(changes, sizeof(changes), "%s/shellyard.changes", y->dir);
    assert_int_equal(unlink(changes), 0);
    assert_int_equal(poll(&p, 1, 30000), 1);
    assert_int_equal(store_watch_drain(w, &err), SY_E_SYS);
    assert_int_equal(err.sys, ENOENT);
    store_watch_close(w);
    store_close(st);
}

static void
a_commit_of_a_connection_that_stays_open_wakes_who_watches(void **state)
{
    const struct yard *y = *state;
    char id[STORE_ID_SIZE];
    struct store_watch *w = NULL;
    struct store *st = yard_open(y);
    struct store *other = yard_open(y);

    yard_request(id, st, "ls");
    assert_int_equal(store_watch_open(&w, st, NULL), SY_E_OK);

    struct pollfd p = {.fd = store_watch_fd(w), .events = POLLIN};

    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(decide(other, id, STORE_APPROVED).verdict, STORE_TAKEN);
    assert_int_equal(poll(&p, 1, 30000), 1);
    store_watch_close(w);
    store_close(other);
    store_close(st);
}

static void
grants_hold_for_their_session_and_time(void **state)
{
    unsigned char keys[2 * STORE_DIGEST_SIZE] = {1};
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    const struct store_grant one = {.session = "a", .keys = keys, .n = 1};
    const struct store_grant two = {.session = "a", .keys = keys, .n = 2};
    const struct store_grant none = {.session = "a", .keys = keys, .n = 0};
    const struct store_grant other = {.session = "b", .keys = keys, .n = 1};
    bool has = true;

    assert_int_equal(store_grant_put(st, &one, STORE_APPROVED, 60000, NULL), SY_E_ARG);
    assert_int_equal(store_grant_has(&has, st, &one, NULL), SY_E_OK);
    assert_false(has);
    assert_int_equal(store_grant_put(st, &one, STORE_APPROVED_FOR_SESSION, 60000, NULL), SY_E_OK);
    assert_int_equal(store_grant_has(&has, st, &one, NULL), SY_E_OK);
    assert_true(has);
    assert_int_equal(store_grant_has(&has, st, &two, NULL), SY_E_OK);
    assert_false(has);
    assert_int_equal(store_grant_has(&has, st, &other, NULL), SY_E_OK);
    assert_false(has);
    assert_int_equal(store_grant_has(&has, st, &none, NULL), SY_E_OK);
    assert_false(has);
    assert_int_equal(store_grant_put(st, &two, STORE_APPROVED_WITH_RULE, 60000, NULL), SY_E_OK);
    assert_int_equal(store_grant_has(&has, st, &two, NULL), SY_E_OK);
    assert_true(has);
    yard_sql(y, "UPDATE session_grant SET deadline_ns = 1");
    assert_int_equal(store_grant_has(&has, st, &two, NULL), SY_E_OK);
    assert_false(has);
    assert_int_equal(store_grant_put(st, &one, STORE_APPROVED_FOR_SESSION, 60000, NULL), SY_E_OK);
    assert_int_equal(store_grants_end(st, "a", NULL), SY_E_OK);
    assert_int_equal(store_grant_has(&has, st, &one, NULL), SY_E_OK);
    assert_false(has);
    store_close(st);
}

static void
bad_input_is_refused(void **state)
{
    static char long_text[LIMIT_STORE_TEXT + 2];
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    const struct store_decision back = {.id = "x", .status = STORE_PENDING, .decided_by = "me"};
    struct store_answer answer;
    char id[STORE_ID_SIZE];

    (void)memset(long_text, 'x', sizeof(long_text) - 1);
    assert_int_equal(yard_create(id, st, long_text, NULL), SY_E_ARG);
    assert_int_equal(yard_create(id, st, "\xff", NULL), SY_E_ARG);
    assert_int_equal(store_request_decide(&answer, st, &back, NULL), SY_E_ARG);
    long_text[LIMIT_STORE_TEXT] = '\0';
    assert_int_equal(yard_create(id, st, long_text, NULL), SY_E_OK);
    store_close(st);
}

static void
the_text_changes_while_it_waits_and_no_longer(void **state)
{
    const struct yard *y = *state;
    struct store *st = yard_open(y);
    struct store_request r = {0};
    char id[STORE_ID_SIZE];

    yard_request(id, st, "before");
    assert_int_equal(store_request_amend(st, id, "after", NULL), SY_E_OK);
    assert_int_equal(store_request_amend(st, id, "\xff", NULL), SY_E_ARG);
    assert_int_equal(store_request_get(&r, st, id, NULL), SY_E_OK);
    assert_string_equal(r.text, "after");
    assert_memory_equal(r.digest, yard_digest, STORE_DIGEST_SIZE);
    store_request_fini(&r);
    (void)decide(st, id, STORE_APPROVED);
    assert_int_equal(store_request_amend(st, id, "late", NULL), SY_E_OK);
    assert_int_equal(store_request_get(&r, st, id, NULL), SY_E_OK);
    assert_string_equal(r.text, "after");
    store_request_fini(&r);
    store_close(st);
}

static enum sy_code
whole_life(void *arg)
{
    const struct yard *y = arg;
    const struct store_options options = {.dir = y->dir};
    struct store *st = NULL;
    struct store_watch *w = NULL;
    struct store_requests list = {0};
    struct store_request r = {0};
    struct store_answer answer = {0};
    char id[STORE_ID_SIZE] = "";
    enum sy_code rc = store_open(&st, &options, NULL);

    if (rc == SY_E_OK) {
        rc = store_watch_open(&w, st, NULL);
    }
    if (rc == SY_E_OK) {
        rc = yard_create(id, st, "ls", NULL);
    }
    if (rc == SY_E_OK) {
        rc = store_request_amend(st, id, "ls -l", NULL);
    }
    if (rc == SY_E_OK) {
        rc = store_requests_pending(&list, st, NULL);
    }
    if (rc == SY_E_OK) {
        rc = store_request_get(&r, st, id, NULL);
    }
    if (st != NULL && id[0] != '\0' && store_request_cancel(&answer, st, id, NULL) != SY_E_OK) {
        rc = SY_E_INTERNAL;
    }
    store_request_fini(&r);
    store_requests_fini(&list);
    store_watch_close(w);
    store_close(st);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    fault_run(whole_life, *state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_decision_counts_and_the_second_is_told,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(of_two_processes_exactly_one_decides, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(what_was_approved_runs_once_and_only_that, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_late_answer_does_nothing, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(the_wall_clock_counts_only_after_a_new_start, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(those_that_wait_are_listed_the_oldest_first, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(an_answer_in_another_process_wakes_who_watches, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_commit_of_a_connection_that_stays_open_wakes_who_watches,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(grants_hold_for_their_session_and_time, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(the_text_changes_while_it_waits_and_no_longer, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(bad_input_is_refused, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(each_allocation_may_fail, yard_setup, yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
