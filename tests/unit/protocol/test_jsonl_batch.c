#include "test.h"

#include "fake_tools.h"
#include "peer.h"

#define CALL(tool, id) "{\"type\":\"function_call\",\"name\":\"" tool "\",\"call_id\":\"" id "\"}"

static struct peer peer;

static int
open_peer(void **state)
{
    (void)state;
    return peer_open(&peer, protocol_jsonl_new, 0) == SY_E_OK ? 0 : -1;
}

static int
close_peer(void **state)
{
    (void)state;
    peer_close(&peer);
    return 0;
}

static void
readers_run_side_by_side_and_answer_in_order(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("reader", "a") "," CALL(
                         "reader", "b") "," CALL("reader", "c") "]}");
    assert_int_equal(fake_open(), 3);
    fake_finish(2, "three");
    fake_finish(1, "two");
    assert_int_equal(peer.n, 0);
    fake_finish(0, "one");
    assert_int_equal(peer.n, 3);
    assert_has(peer_said(&peer, 0), "\"output\":\"one\"");
    assert_has(peer_said(&peer, 1), "\"output\":\"two\"");
    assert_has(peer_said(&peer, 2), "\"output\":\"three\"");
}

static void
one_that_changes_things_makes_the_batch_serial(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("reader", "a") "," CALL(
                         "shell", "b") "," CALL("reader", "c") "]}");
    assert_int_equal(fake_calls(), 1);
    assert_string_equal(fake_call(0)->call_id, "a");
    fake_finish(0, "one");
    assert_int_equal(peer.n, 1);
    assert_int_equal(fake_calls(), 2);
    assert_string_equal(fake_call(1)->call_id, "b");
    fake_finish(1, "two");
    assert_int_equal(fake_calls(), 3);
    fake_finish(2, "three");
    assert_int_equal(peer.n, 3);
}

static void
a_call_that_can_not_run_keeps_its_place(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("shell", "a") "," CALL(
                         "nope", "b") "," CALL("shell", "c") "]}");
    assert_int_equal(peer.n, 0);
    fake_finish(0, "one");
    assert_int_equal(peer.n, 2);
    assert_has(peer_said(&peer, 1), "\"call_id\":\"b\",\"output\":\"unknown tool");
    fake_finish(1, "three");
    assert_has(peer_said(&peer, 2), "\"call_id\":\"c\"");
}

static void
an_unknown_tool_does_not_make_a_batch_serial(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("reader", "a") "," CALL(
                         "nope", "b") "," CALL("reader", "c") "]}");
    assert_int_equal(fake_open(), 2);
}

static void
a_malformed_batch_runs_nothing(void **state)
{
    (void)state;
    assert_has(peer_ask(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("shell", "a") ",5]}"),
               "calls[1]: type must be");
    assert_has(peer_ask(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("shell", "a") "," CALL(
                                   "shell", "a") "]}"),
               "calls[1]: call_id 'a' is in use");
    assert_int_equal(fake_calls(), 0);
}

static void
batches_do_not_wait_for_each_other(void **state)
{
    (void)state;
    peer_line(&peer,
              "{\"type\":\"batch\",\"calls\":[" CALL("shell", "a") "," CALL("shell", "b") "]}");
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("shell", "c") "]}");
    assert_int_equal(fake_open(), 2);
    fake_finish(1, "");
    assert_has(peer_said(&peer, 0), "\"call_id\":\"c\"");
}

static void
interrupt_answers_what_never_started(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("shell", "a") "," CALL(
                         "shell", "b") "," CALL("shell", "c") "]}");
    peer_line(&peer, "{\"type\":\"interrupt\",\"call_id\":\"b\"}");
    fake_finish(0, "one");
    assert_has(peer_said(&peer, 1), "\"call_id\":\"b\",\"output\":\"cancelled before it started\"");
    assert_int_equal(fake_calls(), 2);
    assert_string_equal(fake_call(1)->call_id, "c");
    peer_line(&peer, "{\"type\":\"interrupt\"}");
    assert_true(fake_call(1)->is_cancelled);
}

static void
cancelling_from_inside_frees_nothing_too_early(void **state)
{
    (void)state;
    fake_cancel_is_synchronous(true);
    peer_line(&peer,
              "{\"type\":\"batch\",\"calls\":[" CALL("reader", "a") "," CALL("reader", "b") "]}");
    peer_line(&peer, CALL("shell", "c"));
    peer_line(&peer,
              "{\"type\":\"batch\",\"calls\":[" CALL("shell", "d") "," CALL("shell", "e") "]}");
    peer_line(&peer, "{\"type\":\"interrupt\"}");
    assert_int_equal(fake_open(), 0);
    assert_int_equal(fake_calls(), 4);
    assert_int_equal(peer.n, 5);
}

static void
a_failure_to_start_is_an_answer(void **state)
{
    (void)state;
    fake_fail_next(SY_E_LIMIT);
    peer_line(&peer,
              "{\"type\":\"batch\",\"calls\":[" CALL("shell", "a") "," CALL("shell", "b") "]}");
    assert_has(peer_said(&peer, 0), "\"call_id\":\"a\",\"output\":\"planted failure\"");
    assert_int_equal(fake_open(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(readers_run_side_by_side_and_answer_in_order),
        TEST(one_that_changes_things_makes_the_batch_serial),
        TEST(a_call_that_can_not_run_keeps_its_place),
        TEST(an_unknown_tool_does_not_make_a_batch_serial),
        TEST(a_malformed_batch_runs_nothing),
        TEST(batches_do_not_wait_for_each_other),
        TEST(interrupt_answers_what_never_started),
        TEST(cancelling_from_inside_frees_nothing_too_early),
        TEST(a_failure_to_start_is_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
