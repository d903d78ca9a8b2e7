#include "test.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "fake_tools.h"
#include "peer.h"

static struct peer peer;

static const char *
initialize(const char *version)
{
    char line[256];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\"}}",
                   version);
    return peer_ask(&peer, line);
}

static int
open_with_progress(uint64_t progress_ms)
{
    if (peer_open(&peer, protocol_mcp_new, progress_ms) != SY_E_OK) {
        return -1;
    }
    initialize("2025-11-25");
    peer_forget(&peer);
    return 0;
}

static int
open_peer(void **state)
{
    (void)state;
    return open_with_progress(0);
}

static int
open_quick(void **state)
{
    (void)state;
    return open_with_progress(1);
}

static int
close_peer(void **state)
{
    (void)state;
    peer_close(&peer);
    return 0;
}

/* `id` and `extra` as JSON. */
static void
call(const char *id, const char *extra)
{
    char line[1024];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":{"
                   "\"name\":\"shell\"%s}}",
                   id, extra);
    peer_line(&peer, line);
}

static void
hands_a_call_to_its_tool(void **state)
{
    (void)state;
    call("1", ",\"arguments\":{\"command\":[\"ls\"]}");
    assert_int_equal(fake_calls(), 1);
    assert_string_equal(fake_call(0)->name, "shell");
    assert_string_equal(fake_call(0)->arguments, "{\"command\":[\"ls\"]}");
    assert_string_equal(fake_call(0)->cwd, "/");
    assert_int_equal(fake_call(0)->payload, PAYLOAD_MCP);
    assert_int_equal(peer.n, 0);
}

static void
a_result_has_each_form_once(void **state)
{
    (void)state;
    call("\"a\"", "");
    fake_finish(0, "hi\n");
    assert_string_equal(peer_said(&peer, 0),
                        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"content\":[{"
                        "\"type\":\"text\",\"text\":\"exit_code: 0\\nhi\\n\"}],"
                        "\"structuredContent\":{\"exit_code\":0},\"isError\":false}}");
    assert_int_equal(peer.n, 1);
}

static void
old_versions_get_no_structured_content(void **state)
{
    static const char *const old[] = {"2024-11-05", "2025-03-26"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        initialize(old[i]);
        peer_forget(&peer);
        call("1", "");
        fake_finish(i, "hi\n");
        assert_has(peer_said(&peer, 0), "hi\\n");
        assert_lacks(peer_said(&peer, 0), "structuredContent");
    }
}

static void
missing_arguments_are_an_empty_object(void **state)
{
    (void)state;
    call("1", "");
    call("2", ",\"arguments\":null");
    assert_string_equal(fake_call(0)->arguments, "{}");
    assert_string_equal(fake_call(1)->arguments, "{}");
}

static void
malformed_calls_are_errors_that_say_why(void **state)
{
    static const struct {
        const char *params;
        const char *want;
    } rows[] = {
        {"{}",                                                     "params.name"        },
        {"{\"name\":5}",                                           "params.name"        },
        {"{\"name\":\"nope\"}",                                    "unknown tool 'nope'"},
        {"{\"name\":\"shell\",\"arguments\":\"ls\"}",              "params.arguments"   },
        {"{\"name\":\"shell\",\"_meta\":{\"progressToken\":[]}}",  "_meta.progressToken"},
        {"{\"name\":\"shell\",\"_meta\":{\"progressToken\":1.5}}", "_meta.progressToken"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[256];
        const char *said = NULL;

        (void)snprintf(line, sizeof(line),
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}",
                       rows[i].params);
        said = peer_ask(&peer, line);
        assert_has(said, "-32602");
        assert_has(said, rows[i].want);
    }
    assert_int_equal(fake_calls(), 0);
}

static void
a_tool_that_does_not_start_is_an_error(void **state)
{
    (void)state;
    fake_fail_next(SY_E_NOMEM);
    call("1", "");
    assert_has(peer_said(&peer, 0), "\"id\":1,\"error\":{\"code\":-32603,\"message\":\"planted");
    fake_fail_next(SY_E_LIMIT);
    call("2", "");
    assert_has(peer_said(&peer, 1), "-32602");
    call("1", "");
    assert_int_equal(fake_open(), 1);
}

static void
ping_and_list_work_during_a_call(void **state)
{
    (void)state;
    call("1", "");
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"), "\"id\":2");
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}"),
               "\"id\":3");
    assert_int_equal(fake_open(), 1);
}

static void
an_id_in_use_is_refused(void **state)
{
    (void)state;
    call("1", "");
    call("\"1\"", ""); /* another id */
    assert_int_equal(peer.n, 0);
    call("1", "");
    assert_has(peer_said(&peer, 0), "\"id\":1,\"error\":{\"code\":-32600");
    assert_int_equal(fake_calls(), 2);
    fake_finish(0, "");
    call("1", "");
    assert_int_equal(fake_calls(), 3);
}

static void
an_id_in_use_is_refused_to_all_methods(void **state)
{
    static const char *const methods[] = {"ping", "tools/list", "resources/list", "no/such"};

    (void)state;
    call("7", "");
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        char line[128];
        const char *said = NULL;

        (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\"}",
                       methods[i]);
        said = peer_ask(&peer, line);
        assert_has(said, "\"code\":-32600");
        assert_has(said, "still running");
    }
    fake_finish(0, "");
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}"), "result");
}

static void
an_id_of_more_than_64_bits_is_said_to_be_that(void **state)
{
    static const char *const ids[] = {"9223372036854775808", "-9223372036854775809",
                                      "123456789012345678901234567890"};
    static const char *const others[] = {"09223372036854775808", "9223372036854775808x", "-"};

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        char line[128];
        const char *said = NULL;

        (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}",
                       ids[i]);
        said = peer_ask(&peer, line);
        assert_has(said, "\"id\":null");
        assert_has(said, "\"code\":-32600");
        assert_has(said, "at most 64 bits");
        (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}",
                       others[i]);
        assert_has(peer_ask(&peer, line), "\"code\":-32700");
    }
    assert_has(
        peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"method\":\"ping\"}"),
        "\"id\":9223372036854775807");
}

static void
too_many_calls_are_refused_until_one_ends(void **state)
{
    char id[16];

    (void)state;
    for (unsigned i = 0; i < LIMIT_CALLS; i++) {
        (void)snprintf(id, sizeof(id), "%u", i);
        call(id, "");
    }
    assert_int_equal(peer.n, 0);
    call("9999", "");
    assert_has(peer_said(&peer, 0), "256 calls are running");
    fake_finish(0, "");
    call("9999", "");
    assert_int_equal(fake_open(), LIMIT_CALLS);
}

static void
a_cancelled_call_is_not_answered(void **state)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":1,\"reason\":\"x\"}}";

    (void)state;
    call("\"1\"", "");
    call("1", "");
    peer_line(&peer, cancel);
    assert_false(fake_call(0)->is_cancelled);
    assert_true(fake_call(1)->is_cancelled);
    peer_line(&peer, cancel);
    fake_finish(1, "gone");
    assert_int_equal(peer.n, 0);
    peer_line(&peer, cancel); /* of a finished one */
    fake_finish(0, "hi");
    assert_int_equal(peer.n, 1);
    peer_line(&peer, cancel);
    assert_int_equal(peer.n, 1);
}

static void
cancelling_may_end_the_call_from_inside(void **state)
{
    (void)state;
    fake_cancel_is_synchronous(true);
    call("1", "");
    call("2", "");
    peer_line(&peer, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                     "\"params\":{\"requestId\":1}}");
    assert_int_equal(fake_open(), 1);
    protocol_on_gone(peer.protocol);
    assert_int_equal(fake_open(), 0);
    assert_int_equal(peer.n, 0);
}

static void
after_eof_calls_may_still_be_answered(void **state)
{
    (void)state;
    call("1", ",\"_meta\":{\"progressToken\":1}");
    call("2", "");
    protocol_on_eof(peer.protocol);
    assert_false(fake_call(0)->is_cancelled);
    fake_finish(0, "");
    peer_turn(&peer, 2);
    assert_false(peer.has_finished);
    fake_finish(1, "");
    peer_turn(&peer, 2);
    assert_true(peer.has_finished);
    assert_int_equal(peer.n, 2);
}

static void
after_eof_calls_that_take_long_are_cancelled(void **state)
{
    uint64_t before = clock_mono_ns();

    (void)state;
    call("1", "");
    call("2", "");
    protocol_on_eof(peer.protocol);
    while (!fake_call(0)->is_cancelled) {
        peer_turn(&peer, 1);
    }
    assert_true(fake_call(1)->is_cancelled);
    assert_in_range((clock_mono_ns() - before) / 1000000, LIMIT_EOF_GRACE_MS - 50,
                    LIMIT_EOF_GRACE_MS + 8000);
    fake_finish(0, "");
    fake_finish(1, "");
    peer_turn(&peer, 2);
    assert_true(peer.has_finished);
    assert_int_equal(peer.n, 0);
}

static void
a_lost_peer_cancels_at_once(void **state)
{
    (void)state;
    call("1", "");
    protocol_on_eof(peer.protocol);
    protocol_on_gone(peer.protocol);
    assert_true(fake_call(0)->is_cancelled);
    fake_finish(0, "");
    peer_turn(&peer, 2);
    assert_true(peer.has_finished);
    assert_int_equal(peer.n, 0);
}

static void
progress_grows_and_shows_the_last_line(void **state)
{
    (void)state;
    call("1", ",\"_meta\":{\"progressToken\":\"t\"}");
    (void)snprintf(fake_call(0)->last_line, sizeof(fake_call(0)->last_line), "a\x1b[31mb");
    peer_wait(&peer, 1);
    assert_string_equal(
        peer_said(&peer, 0),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
        "\"progressToken\":\"t\",\"progress\":0.001,\"message\":\"a\\\\x1b[31mb\"}}");
    fake_call(0)->elapsed_ms = 41999;
    peer_forget(&peer);
    peer_wait(&peer, 2);
    assert_has(peer_said(&peer, 0), "\"progress\":41.999,");
    assert_has(peer_said(&peer, 1), "\"progress\":42.000,");
}

static void
new_output_is_told_before_its_time(void **state)
{
    (void)state;
    call("1", ",\"_meta\":{\"progressToken\":\"t\"}");
    for (unsigned i = 1; i <= 3; i++) {
        fake_call(0)->bytes += 5;
        (void)snprintf(fake_call(0)->last_line, sizeof(fake_call(0)->last_line), "line %u", i);
        peer_wait(&peer, i);
        assert_has(peer_said(&peer, i - 1), fake_call(0)->last_line);
    }
    peer.backlog = LIMIT_NOTICE_BACKLOG + 1;
    fake_call(0)->bytes += 5;
    for (uint64_t end = clock_mono_ns() + 600 * 1000000ULL; clock_mono_ns() < end;) {
        peer_turn(&peer, 1);
    }
    assert_int_equal(peer.n, 3);
    peer.backlog = 0;
    peer_wait(&peer, 4);
}

static void
progress_stops_with_the_answer(void **state)
{
    (void)state;
    call("1", ",\"_meta\":{\"progressToken\":5}");
    call("2", ",\"_meta\":{\"progressToken\":6}");
    peer_wait(&peer, 2);
    assert_has(peer_said(&peer, 0), "\"progressToken\":");
    fake_finish(0, "");
    peer_forget(&peer);
    peer_wait(&peer, 3);
    for (size_t i = 0; i < peer.n; i++) {
        assert_has(peer_said(&peer, i), "\"progressToken\":6,");
    }
    fake_finish(1, "");
    peer_forget(&peer);
    peer_turn(&peer, 1000);
    assert_int_equal(peer.n, 0);
}

static void
a_long_last_line_is_cut(void **state)
{
    (void)state;
    call("1", ",\"_meta\":{\"progressToken\":1}");
    memset(fake_call(0)->last_line, 'x', sizeof(fake_call(0)->last_line) - 1);
    peer_wait(&peer, 1);
    assert_in_range(strlen(peer_said(&peer, 0)), 200, 340);
    assert_has(peer_said(&peer, 0), "...\"");
}

static void
the_first_version_has_no_progress_message(void **state)
{
    (void)state;
    initialize("2024-11-05");
    peer_forget(&peer);
    call("1", ",\"_meta\":{\"progressToken\":1}");
    (void)snprintf(fake_call(0)->last_line, sizeof(fake_call(0)->last_line), "x");
    peer_wait(&peer, 1);
    assert_lacks(peer_said(&peer, 0), "message\"");
}

static void
calls_of_an_array_are_answered_together(void **state)
{
    (void)state;
    initialize("2025-03-26");
    peer_forget(&peer);
    peer_line(&peer,
              "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
              "\"name\":\"shell\"}},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
              "\"params\":{\"name\":\"shell\"}},{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/"
              "call\",\"params\":{\"name\":\"shell\"}},{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":"
              "\"ping\"}]");
    assert_int_equal(fake_open(), 3);
    fake_finish(1, "two");
    peer_line(&peer, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                     "\"params\":{\"requestId\":3}}");
    fake_finish(2, "three");
    assert_int_equal(peer.n, 0);
    fake_finish(0, "one");
    assert_int_equal(peer.n, 1);
    assert_has(peer_said(&peer, 0), "[{\"jsonrpc\":\"2.0\",\"id\":4,");
    assert_has(peer_said(&peer, 0), "\"id\":1");
    assert_has(peer_said(&peer, 0), "\"id\":2");
    assert_lacks(peer_said(&peer, 0), "\"id\":3");
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, open_peer, close_peer)
#define TEST_QUICK(name) cmocka_unit_test_setup_teardown(name, open_quick, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hands_a_call_to_its_tool),
        TEST(a_result_has_each_form_once),
        TEST(old_versions_get_no_structured_content),
        TEST(missing_arguments_are_an_empty_object),
        TEST(malformed_calls_are_errors_that_say_why),
        TEST(a_tool_that_does_not_start_is_an_error),
        TEST(ping_and_list_work_during_a_call),
        TEST(an_id_in_use_is_refused),
        TEST(an_id_in_use_is_refused_to_all_methods),
        TEST(an_id_of_more_than_64_bits_is_said_to_be_that),
        TEST(too_many_calls_are_refused_until_one_ends),
        TEST(a_cancelled_call_is_not_answered),
        TEST(cancelling_may_end_the_call_from_inside),
        TEST(after_eof_calls_may_still_be_answered),
        TEST(after_eof_calls_that_take_long_are_cancelled),
        TEST(a_lost_peer_cancels_at_once),
        TEST_QUICK(progress_grows_and_shows_the_last_line),
        TEST(new_output_is_told_before_its_time),
        TEST_QUICK(progress_stops_with_the_answer),
        TEST_QUICK(a_long_last_line_is_cut),
        TEST_QUICK(the_first_version_has_no_progress_message),
        TEST(calls_of_an_array_are_answered_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
