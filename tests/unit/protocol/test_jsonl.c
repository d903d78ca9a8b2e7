#include "test.h"

#include <stdio.h>

#include "base/limits.h"
#include "fake_tools.h"
#include "peer.h"

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
gives_the_bytes_of_the_worked_example(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"call_abc123\","
                     "\"arguments\":\"{\\\"command\\\": \\\"grep -r 'TODO' src/\\\", "
                     "\\\"timeout_ms\\\": 5000}\"}");
    assert_int_equal(peer.n, 0);
    assert_string_equal(fake_call(0)->arguments,
                        "{\"command\":\"grep -r 'TODO' src/\",\"timeout_ms\":5000}");
    assert_int_equal(fake_call(0)->payload, PAYLOAD_FUNCTION);
    assert_string_equal(fake_call(0)->call_id, "call_abc123");
    fake_finish(0, "src/main.rs:42:    // TODO: refactor this\n");
    assert_int_equal(peer.n, 1);
    assert_string_equal(peer_said(&peer, 0),
                        "{\"type\":\"function_call_output\",\"call_id\":\"call_abc123\","
                        "\"output\":\"src/main.rs:42:    // TODO: refactor this\\n\"}");
}

static void
arguments_may_be_an_object_or_missing(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\","
                     "\"arguments\":{\"x\":1}}");
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"b\"}");
    peer_line(
        &peer,
        "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"c\",\"arguments\":\"\"}");
    assert_string_equal(fake_call(0)->arguments, "{\"x\":1}");
    assert_string_equal(fake_call(1)->arguments, "{}");
    assert_string_equal(fake_call(2)->arguments, "{}");
}

static void
a_custom_call_hands_its_input_over(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"custom_tool_call\",\"name\":\"patch\",\"call_id\":\"p\","
                     "\"input\":\"*** Begin\\n\"}");
    assert_string_equal(fake_call(0)->input, "*** Begin\n");
    assert_int_equal(fake_call(0)->payload, PAYLOAD_CUSTOM);
    fake_finish(0, "ok");
    assert_string_equal(
        peer_said(&peer, 0),
        "{\"type\":\"custom_tool_call_output\",\"call_id\":\"p\",\"output\":\"ok\"}");
}

static void
a_local_shell_call_becomes_arguments(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"local_shell_call\",\"id\":\"l\",\"status\":\"completed\","
                     "\"action\":{\"type\":\"exec\",\"command\":[\"ls\",\"-l\"],\"env\":{},"
                     "\"working_directory\":\"/tmp\",\"timeout_ms\":7,\"user\":null}}");
    assert_string_equal(fake_call(0)->name, "local_shell");
    assert_int_equal(fake_call(0)->payload, PAYLOAD_LOCAL_SHELL);
    assert_string_equal(fake_call(0)->arguments,
                        "{\"command\":[\"ls\",\"-l\"],\"workdir\":\"/tmp\",\"timeout_ms\":7}");
    fake_finish(0, "");
    assert_string_equal(peer_said(&peer, 0),
                        "{\"type\":\"local_shell_call_output\",\"call_id\":\"l\",\"output\":\"\"}");

    peer_line(&peer, "{\"type\":\"local_shell_call\",\"call_id\":\"m\",\"action\":{\"type\":"
                     "\"exec\",\"command\":[\"ls\"],\"env\":{\"A\":\"1\"}}}");
    assert_string_equal(fake_call(1)->arguments, "{\"command\":[\"ls\"],\"env\":{\"A\":\"1\"}}");
}

static void
what_the_model_got_wrong_is_told_in_the_answer(void **state)
{
    static const struct {
        const char *line;
        const char *want;
    } rows[] = {
        {"{\"type\":\"function_call\",\"name\":\"nope\",\"call_id\":\"a\"}",
         "unknown tool 'nope'; the tools are: shell, reader, patch"                                                           },
        {"{\"type\":\"function_call\",\"call_id\":\"a\"}",                       "name must be"                               },
        {"{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\","
         "\"arguments\":\"{\"}",                                        "arguments: bad JSON"                        },
        {"{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\","
         "\"arguments\":\"[]\"}",                                       "must hold an object, not array"             },
        {"{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\","
         "\"arguments\":5}",                                            "arguments must be"                          },
        {"{\"type\":\"function_call\",\"name\":\"patch\",\"call_id\":\"a\"}",
         "patch can't be called by a function_call"                                                                           },
        {"{\"type\":\"custom_tool_call\",\"name\":\"shell\",\"call_id\":\"a\","
         "\"input\":\"x\"}",                                            "shell can't be called by a custom_tool_call"},
        {"{\"type\":\"custom_tool_call\",\"name\":\"patch\",\"call_id\":\"a\"}",
         "input must be a string, not absent"                                                                                 },
        {"{\"type\":\"local_shell_call\",\"call_id\":\"a\"}",                    "action must"                                },
        {"{\"type\":\"local_shell_call\",\"call_id\":\"a\",\"action\":{"
         "\"type\":\"exec\",\"command\":[\"ls\"],\"user\":\"root\"}}",  "action.user"                                },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *said = peer_ask(&peer, rows[i].line);

        assert_has(said, "_output\",\"call_id\":\"a\",\"output\":\"");
        assert_has(said, rows[i].want);
        assert_int_equal(peer.n, 1);
    }
    assert_int_equal(fake_calls(), 0);
}

static void
malformed_lines_are_errors_with_their_number(void **state)
{
    static const struct {
        const char *line;
        const char *want;
    } rows[] = {
        {"{",                                                    "bad JSON"               },
        {"5",                                                    "must be an object"      },
        {"[]",                                                   "must be an object"      },
        {"{\"type\":5}",                                         "must be an object"      },
        {"{\"type\":\"shutdwn\"}",                               "did you mean 'shutdown'"},
        {"{\"type\":\"function_call\",\"name\":\"shell\"}",      "call_id must be"        },
        {"{\"type\":\"function_call\",\"name\":\"shell\","
         "\"call_id\":\"\"}",                           "call_id must be"        },
        {"{\"type\":\"interrupt\",\"callid\":\"x\"}",            "no member 'callid'"     },
        {"{\"type\":\"interrupt\",\"call_id\":5}",               "call_id of interrupt"   },
        {"{\"type\":\"shutdown\",\"now\":true}",                 "no member 'now'"        },
        {"{\"type\":\"batch\"}",                                 "calls must be an array" },
        {"{\"type\":\"batch\",\"calls\":[]}",                    "calls must be an array" },
        {"{\"type\":\"batch\",\"calls\":[{\"type\":\"turn\"}]}", "calls[0]: type must be" },
    };

    (void)state;
    peer_line(&peer, ""); /* counts too */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *said = peer_ask(&peer, rows[i].line);
        char line[32];

        (void)snprintf(line, sizeof(line), "\"line\":%zu}", i + 2);
        assert_has(said, "{\"type\":\"error\",\"message\":\"");
        assert_has(said, rows[i].want);
        assert_has(said, line);
        assert_int_equal(peer.n, 1);
    }
    protocol_on_dropped(peer.protocol, SY_E_LIMIT);
    assert_has(peer_said(&peer, 1), "a line longer than");
}

static void
a_call_id_in_use_is_refused(void **state)
{
    static const char line[] = "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\"}";

    (void)state;
    peer_line(&peer, line);
    assert_has(peer_ask(&peer, line), "'a' is in use");
    fake_finish(0, "");
    assert_has(peer_said(&peer, 1), "output");
    peer_line(&peer, line);
    assert_int_equal(fake_calls(), 2);
}

static void
events_come_in_order_before_the_answer(void **state)
{
    char a[] = "ls";
    char *argv[] = {a, NULL};
    struct event e = {
        .kind = EVENT_EXEC_BEGIN,
        .session_id = "main",
        .call_id = "a",
        .u.begin = {.argv = argv, .cwd = "/w", .tool = "shell", .source = "agent"}
    };

    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\"}");
    fake_emit(&e);
    e.kind = EVENT_EXEC_OUTPUT_DELTA;
    e.u.delta = (struct event_delta){.stream = "stdout", .seq = 3, .text = "hi\n", .len = 3};
    fake_emit(&e);
    e.kind = EVENT_EXEC_END;
    e.u.end = (struct event_end){.status = "exited",
                                 .exit_code = 1,
                                 .duration_ns = 5999999,
                                 .preview = "h\0i\n",
                                 .preview_len = 4};
    fake_emit(&e);
    e.call_id = "somebody else's";
    fake_emit(&e);
    fake_finish(0, "hi\n");

    assert_int_equal(peer.n, 4);
    assert_string_equal(peer_said(&peer, 0),
                        "{\"type\":\"exec_command_begin\",\"call_id\":\"a\",\"command\":[\"ls\"],"
                        "\"cwd\":\"/w\",\"tool\":\"shell\",\"source\":\"agent\"}");
    assert_string_equal(peer_said(&peer, 1),
                        "{\"type\":\"exec_command_output_delta\",\"call_id\":\"a\","
                        "\"stream\":\"stdout\",\"seq\":3,\"chunk\":\"hi\\n\"}");
    assert_string_equal(peer_said(&peer, 2),
                        "{\"type\":\"exec_command_end\",\"call_id\":\"a\",\"status\":\"exited\","
                        "\"exit_code\":1,\"timed_out\":false,\"duration_ms\":5,"
                        "\"preview\":\"h\\u0000i\\n\"}");
    assert_has(peer_said(&peer, 3), "function_call_output");
}

static void
a_slow_reader_loses_deltas_and_is_told(void **state)
{
    uint64_t dropped = 0;
    struct event e = {
        .kind = EVENT_EXEC_OUTPUT_DELTA,
        .call_id = "a",
        .u.delta = {.stream = "stdout", .text = "x", .len = 1, .ret_dropped = &dropped}
    };

    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\"}");
    peer.backlog = LIMIT_DELTA_BACKLOG + 1;
    fake_emit(&e);
    fake_emit(&e);
    assert_int_equal(peer.n, 0);
    assert_int_equal(dropped, 2);
    peer.backlog = LIMIT_DELTA_BACKLOG;
    e.u.delta.dropped = dropped;
    e.u.delta.is_last = true;
    fake_emit(&e);
    assert_int_equal(peer.n, 1);
    assert_has(peer_said(&peer, 0), "\"chunk\":\"x\",\"deltas_dropped\":2,\"last\":true}");
    e.kind = EVENT_EXEC_END;
    e.u.end = (struct event_end){.status = "signaled",
                                 .exit_code = 137,
                                 .signal = 9,
                                 .deltas_dropped = 2,
                                 .error = "because"};
    fake_emit(&e);
    assert_has(peer_said(&peer, 1), "\"deltas_dropped\":2,");
    assert_has(peer_said(&peer, 1), "\"signal\":9,");
    assert_has(peer_said(&peer, 1), "\"error\":\"because\"}");
}

static void
interrupt_cancels_one_or_all_and_all_are_answered(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\"}");
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"b\"}");
    peer_line(&peer, "{\"type\":\"interrupt\",\"call_id\":\"unknown\"}");
    peer_line(&peer, "{\"type\":\"interrupt\",\"call_id\":\"b\"}");
    assert_false(fake_call(0)->is_cancelled);
    assert_true(fake_call(1)->is_cancelled);
    fake_finish(1, "cancelled");
    assert_has(peer_said(&peer, 0), "\"call_id\":\"b\"");
    peer_line(&peer, "{\"type\":\"interrupt\"}");
    assert_true(fake_call(0)->is_cancelled);
    fake_finish(0, "cancelled");
    assert_int_equal(peer.n, 2);
}

static void
too_many_calls_are_answered_with_the_reason(void **state)
{
    char line[128];

    (void)state;
    for (unsigned i = 0; i < LIMIT_CALLS; i++) {
        (void)snprintf(line, sizeof(line),
                       "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"%u\"}", i);
        peer_line(&peer, line);
    }
    assert_int_equal(peer.n, 0);
    assert_has(peer_ask(&peer, "{\"type\":\"function_call\",\"name\":\"shell\","
                               "\"call_id\":\"more\"}"),
               "{\"type\":\"function_call_output\",\"call_id\":\"more\",\"output\":\"not run: 256");
}

static void
tools_are_listed_for_a_model(void **state)
{
    (void)state;
    assert_string_equal(
        peer_ask(&peer, "{\"type\":\"tools\"}"),
        "{\"type\":\"tools\",\"tools\":[{\"type\":\"function\",\"name\":\"shell\","
        "\"description\":\"Run a program.\",\"parameters\":{\"type\":\"object\"}}]}");
    fake_config()->tools.shell_type = "all";
    assert_has(peer_ask(&peer, "{\"type\":\"tools\"}"),
               "{\"type\":\"custom\",\"name\":\"patch\",\"description\":\"Patch files.\"}");
}

static void
shutdown_cancels_answers_and_ends(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\"}");
    peer_line(&peer, "{\"type\":\"shutdown\"}");
    assert_true(fake_call(0)->is_cancelled);
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"b\"}");
    assert_int_equal(fake_calls(), 1);
    fake_finish(0, "cancelled");
    assert_has(peer_said(&peer, 0), "\"call_id\":\"a\"");
    uv_run(&peer.loop, UV_RUN_DEFAULT);
    assert_true(peer.has_finished);
}

static void
eof_lets_calls_end_and_a_lost_peer_cancels_them(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\"}");
    protocol_on_eof(peer.protocol);
    assert_false(fake_call(0)->is_cancelled);
    protocol_on_gone(peer.protocol);
    assert_true(fake_call(0)->is_cancelled);
    fake_finish(0, "");
    assert_int_equal(peer.n, 1);
    uv_run(&peer.loop, UV_RUN_DEFAULT);
    assert_true(peer.has_finished);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gives_the_bytes_of_the_worked_example),
        TEST(arguments_may_be_an_object_or_missing),
        TEST(a_custom_call_hands_its_input_over),
        TEST(a_local_shell_call_becomes_arguments),
        TEST(what_the_model_got_wrong_is_told_in_the_answer),
        TEST(malformed_lines_are_errors_with_their_number),
        TEST(a_call_id_in_use_is_refused),
        TEST(events_come_in_order_before_the_answer),
        TEST(a_slow_reader_loses_deltas_and_is_told),
        TEST(interrupt_cancels_one_or_all_and_all_are_answered),
        TEST(too_many_calls_are_answered_with_the_reason),
        TEST(tools_are_listed_for_a_model),
        TEST(shutdown_cancels_answers_and_ends),
        TEST(eof_lets_calls_end_and_a_lost_peer_cancels_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
