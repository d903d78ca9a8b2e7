#include "test.h"

#include <stdio.h>

#include "base/limits.h"
#include "fake_tools.h"
#include "peer.h"

/* Sessions below the main one, as a program that speaks JSON Lines sees them. */

#define IN(session, id)                                                                            \
    "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"" id "\",\"session\":\"" session \
    "\"}"
#define CALL(id) "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"" id "\"}"
#define OPEN(id) "{\"type\":\"session\",\"action\":\"open\",\"id\":\"" id "\"}"
#define BELOW(id, parent)                                                                          \
    "{\"type\":\"session\",\"action\":\"open\",\"id\":\"" id "\",\"parent\":\"" parent "\"}"
#define CLOSE(id)              "{\"type\":\"session\",\"action\":\"close\",\"id\":\"" id "\"}"
#define TURN(session, members) "{\"type\":\"turn\",\"session\":\"" session "\"" members "}"

/* Configuration: workspace-write, on-failure, network off, cwd "/". */
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
one_is_opened_used_and_closed(void **state)
{
    (void)state;
    assert_string_equal(
        peer_ask(&peer, "{\"type\":\"session\",\"action\":\"open\",\"id\":\"c\",\"name\":\"x y\","
                        "\"sandbox_mode\":\"read-only\",\"cwd\":\"/tmp\"}"),
        "{\"type\":\"session_opened\",\"id\":\"c\",\"name\":\"x y\",\"cwd\":\"/tmp\","
        "\"sandbox_mode\":\"read-only\",\"network_access\":false,"
        "\"approval_policy\":\"on-failure\"}");
    assert_string_equal(
        peer_ask(&peer, BELOW("g", "c")),
        "{\"type\":\"session_opened\",\"id\":\"g\",\"parent\":\"c\",\"cwd\":\"/tmp\","
        "\"sandbox_mode\":\"read-only\",\"network_access\":false,"
        "\"approval_policy\":\"on-failure\"}");
    peer_line(&peer, IN("c", "a"));
    assert_string_equal(fake_call(0)->session, "c");
    assert_string_equal(fake_call(0)->cwd, "/tmp");
    assert_int_equal(fake_call(0)->mode, SANDBOX_READ_ONLY);
    peer_forget(&peer);
    fake_finish(0, "x");
    assert_string_equal(peer_said(&peer, 0), "{\"type\":\"function_call_output\",\"call_id\":\"a\","
                                             "\"session\":\"c\",\"output\":\"x\"}");
    assert_string_equal(peer_ask(&peer, CLOSE("g")), "{\"type\":\"session_closed\",\"id\":\"g\"}");
    peer_line(&peer, CALL("a"));
    assert_string_equal(fake_call(1)->session, "main");
    assert_int_equal(fake_call(1)->mode, SANDBOX_WORKSPACE_WRITE);
    assert_int_equal(fake_sessions(), 1); /* it ends with the talk */
}

static void
what_can_not_be_opened_says_why(void **state)
{
    static const struct {
        const char *members;
        const char *want;
    } rows[] = {
        {"\"action\":\"open\"",                                      "session needs id"                                 },
        {"\"action\":\"open\",\"id\":5",                             "session needs id"                                 },
        {"\"action\":\"open\",\"id\":\"x\",\"name\":5",              "session needs id"                                 },
        {"\"action\":\"open\",\"id\":\"c\"",                         "session 'c' is open already"                      },
        {"\"action\":\"open\",\"id\":\"x\",\"parent\":\"y\"",        "parent 'y' is not open"                           },
        {"\"action\":\"open\",\"id\":\"x\",\"parent\":5",            "parent must be a string"                          },
        {"\"action\":\"open\",\"id\":\"x\",\"paren\":\"c\"",         "did you mean 'parent'?"                           },
        {"\"action\":\"open\",\"id\":\"x\",\"turn_id\":\"c\"",       "no member 'turn_id'"                              },
        {"\"action\":\"open\",\"id\":\"x\",\"session\":\"c\"",       "no member 'session'"                              },
        {"\"action\":\"open\",\"id\":\"x\",\"network_access\":true",
         "off in its parent, the main session"                                                                          },
        {"\"action\":\"open\",\"id\":\"x\",\"parent\":\"c\","
         "\"sandbox_mode\":\"workspace-write\"",            "wider than read-only, which its parent 'c' allows"},
        {"\"action\":\"shut\",\"id\":\"x\"",                         "action of session must be"                        },
        {"\"id\":\"x\"",                                             "action of session must be"                        },
        {"\"action\":\"close\"",                                     "it is not open"                                   },
        {"\"action\":\"close\",\"id\":\"x\"",                        "'x' can't be closed: it is"                       },
        {"\"action\":\"close\",\"id\":\"c\",\"name\":\"x\"",         "that takes id alone"                              },
    };

    (void)state;
    peer_line(&peer, "{\"type\":\"session\",\"action\":\"open\",\"id\":\"c\","
                     "\"sandbox_mode\":\"read-only\"}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[256];

        (void)snprintf(line, sizeof(line), "{\"type\":\"session\",%s}", rows[i].members);
        assert_has(peer_ask(&peer, line), "{\"type\":\"error\"");
        assert_has(peer_said(&peer, 0), rows[i].want);
    }
    assert_int_equal(fake_sessions(), 1);
}

static void
begin(const char *session)
{
    const struct event e = {
        .kind = EVENT_EXEC_BEGIN,
        .session_id = session,
        .call_id = "a",
        .u.begin = {.cwd = "/", .tool = "shell", .source = "agent"},
    };

    fake_emit(&e);
}

static void
each_session_has_call_ids_of_its_own(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    peer_line(&peer, CALL("a"));
    peer_line(&peer, IN("c", "a"));
    assert_int_equal(fake_open(), 2);
    assert_has(peer_ask(&peer, IN("c", "a")), "in use by an unanswered call");
    assert_has(peer_said(&peer, 0), "\"session\":\"c\"");
    begin(NULL);
    begin("c");
    begin("z");
    assert_int_equal(peer.n, 3);
    assert_lacks(peer_said(&peer, 1), "session");
    assert_has(peer_said(&peer, 2), "\"call_id\":\"a\",\"session\":\"c\"");
    peer_forget(&peer);
    peer_line(&peer, "{\"type\":\"interrupt\",\"call_id\":\"a\"}");
    assert_true(fake_call(0)->is_cancelled);
    assert_false(fake_call(1)->is_cancelled);
    peer_line(&peer, "{\"type\":\"interrupt\",\"call_id\":\"a\",\"session\":\"c\"}");
    assert_true(fake_call(1)->is_cancelled);
}

static void
a_call_of_no_session_is_told_and_does_not_run(void **state)
{
    (void)state;
    assert_has(peer_ask(&peer, IN("c", "a")), "\"call_id\":\"a\",\"message\":\"session 'c' is not");
    assert_has(peer_ask(&peer, "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\","
                               "\"session\":5}"),
               "session must be a string");
    assert_has(peer_ask(&peer, TURN("c", "")), "turn refused: session 'c' is not open");
    assert_has(peer_ask(&peer, "{\"type\":\"interrupt\",\"session\":\"c\"}"), "is not open");
    assert_int_equal(fake_calls(), 0);
    peer_line(&peer, CALL("a"));
    assert_int_equal(fake_calls(), 1);
}

static void
a_batch_belongs_to_one_session(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    peer_line(&peer,
              "{\"type\":\"batch\",\"session\":\"c\",\"calls\":[" CALL("a") "," IN("c", "b") "]}");
    fake_finish(0, "");
    assert_string_equal(fake_call(0)->session, "c");
    assert_string_equal(fake_call(1)->session, "c");
    assert_has(peer_ask(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("x") "," IN("c", "y") "]}"),
               "calls[1]: session must be that of the batch");
    assert_int_equal(fake_calls(), 2);
}

static void
turns_are_each_session_s_own(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    assert_string_equal(
        peer_ask(&peer, TURN("c", ",\"turn_id\":\"t\",\"sandbox_mode\":\"read-only\"")),
        "{\"type\":\"turn_started\",\"session\":\"c\",\"turn_id\":\"t\",\"cwd\":\"/\","
        "\"sandbox_mode\":\"read-only\",\"network_access\":false,"
        "\"approval_policy\":\"on-failure\"}");
    peer_line(&peer, CALL("a"));
    peer_line(&peer, IN("c", "b"));
    assert_int_equal(fake_call(0)->mode, SANDBOX_WORKSPACE_WRITE);
    assert_string_equal(fake_call(0)->turn_id, "");
    assert_int_equal(fake_call(1)->mode, SANDBOX_READ_ONLY);
    assert_string_equal(fake_call(1)->turn_id, "t");
    /* Nothing of c runs after a refused one, the others go on. */
    assert_has(peer_ask(&peer, TURN("c", ",\"approval_policy\":\"never\"")),
               "\"session\":\"c\",\"message\":\"turn refused: ");
    assert_has(peer_ask(&peer, IN("c", "d")), "not run: the turn message");
    peer_line(&peer, CALL("e"));
    assert_int_equal(fake_calls(), 3);
}

static void
a_narrower_turn_of_the_parent_holds_below(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    peer_line(&peer, BELOW("g", "c"));
    peer_line(&peer, TURN("g", ",\"approval_policy\":\"on-request\""));
    peer_forget(&peer);
    peer_line(&peer, "{\"type\":\"turn\",\"sandbox_mode\":\"read-only\"}");
    assert_int_equal(peer.n, 1); /* what fits is narrowed without a word */
    peer_line(&peer, IN("g", "a"));
    assert_int_equal(fake_call(0)->mode, SANDBOX_READ_ONLY);
    assert_int_equal(fake_call(0)->approval, APPROVAL_ON_REQUEST);
    /* And a wider one again. */
    peer_line(&peer, "{\"type\":\"turn\"}");
    peer_line(&peer, IN("g", "b"));
    assert_int_equal(fake_call(1)->mode, SANDBOX_WORKSPACE_WRITE);
}

static void
what_does_not_fit_the_parent_s_new_turn_does_not_run(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    peer_line(&peer, BELOW("g", "c"));
    peer_line(&peer, TURN("c", ",\"sandbox_mode\":\"workspace-write\""));
    peer_forget(&peer);
    peer_line(&peer, "{\"type\":\"turn\",\"sandbox_mode\":\"read-only\"}");
    assert_int_equal(peer.n, 2);
    assert_has(peer_said(&peer, 1), "\"session\":\"c\",\"message\":\"its turn holds no more: ");
    assert_has(peer_ask(&peer, IN("c", "a")), "not run");
    assert_has(peer_ask(&peer, IN("g", "a")), "not run"); /* it lies below */
    assert_has(peer_ask(&peer, BELOW("h", "c")), "the turn of its parent was refused");
    assert_has(peer_ask(&peer, TURN("g", "")), "a session above it was refused");
    assert_has(peer_ask(&peer, TURN("c", "")), "\"sandbox_mode\":\"read-only\"");
    assert_has(peer_ask(&peer, TURN("g", "")), "\"sandbox_mode\":\"read-only\"");
    peer_line(&peer, IN("g", "a"));
    assert_int_equal(fake_calls(), 1);
}

static void
a_refused_turn_is_not_revived_by_one_above(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    peer_line(&peer, TURN("c", ",\"sandbox_mode\":\"read_only\""));
    peer_line(&peer, "{\"type\":\"turn\"}");
    assert_has(peer_ask(&peer, IN("c", "a")), "not run");
    peer_line(&peer, "{\"type\":\"turn\",\"sandbox_mode\":\"read_only\"}");
    peer_line(&peer, TURN("c", ""));
    assert_has(peer_ask(&peer, IN("c", "a")), "not run"); /* nor does it run below a refused one */
    peer_line(&peer, "{\"type\":\"turn\"}");
    assert_has(peer_ask(&peer, IN("c", "a")), "not run");
    peer_line(&peer, TURN("c", ""));
    peer_line(&peer, IN("c", "a"));
    assert_int_equal(fake_calls(), 1);
}

/* main: a; c: b; g of c: d; e of main: f. */
static void
four_calls(void)
{
    peer_line(&peer, OPEN("c"));
    peer_line(&peer, BELOW("g", "c"));
    peer_line(&peer, OPEN("e"));
    peer_line(&peer, CALL("a"));
    peer_line(&peer, IN("c", "b"));
    peer_line(&peer, IN("g", "d"));
    peer_line(&peer, IN("e", "f"));
    peer_forget(&peer);
}

static void
are_cancelled(bool a, bool b, bool d, bool f)
{
    assert_int_equal(fake_call(0)->is_cancelled, a);
    assert_int_equal(fake_call(1)->is_cancelled, b);
    assert_int_equal(fake_call(2)->is_cancelled, d);
    assert_int_equal(fake_call(3)->is_cancelled, f);
}

static void
an_interrupt_goes_down(void **state)
{
    (void)state;
    four_calls();
    peer_line(&peer, "{\"type\":\"interrupt\",\"session\":\"g\"}");
    are_cancelled(false, false, true, false);
    peer_line(&peer, "{\"type\":\"interrupt\",\"session\":\"c\"}");
    are_cancelled(false, true, true, false);
    peer_line(&peer, "{\"type\":\"interrupt\"}");
    are_cancelled(true, true, true, true);
    assert_has(peer_ask(&peer, "{\"type\":\"interrupt\",\"sesion\":\"c\"}"), "no member 'sesion'");
}

static void
who_ends_the_turn_ends_what_lies_below(void **state)
{
    struct tool_output output = {.is_error = true, .is_aborted = true};

    (void)state;
    four_calls();
    peer_line(&peer, TURN("c", ""));
    peer_line(&peer, IN("c", "h")); /* of another turn */
    fake_finish_output(1, &output);
    assert_false(fake_call(0)->is_cancelled);
    assert_true(fake_call(2)->is_cancelled);
    assert_false(fake_call(3)->is_cancelled);
    assert_false(fake_call(4)->is_cancelled);
}

static void
closing_waits_for_the_answers(void **state)
{
    (void)state;
    four_calls();
    peer_line(&peer, CLOSE("c"));
    assert_int_equal(peer.n, 0);
    are_cancelled(false, true, true, false);
    assert_has(peer_ask(&peer, IN("g", "x")), "not run: session 'g' is being closed");
    assert_has(peer_ask(&peer, BELOW("h", "g")), "parent 'g' is being closed");
    peer_line(&peer, CLOSE("c")); /* once more is nothing more */
    peer_forget(&peer);
    fake_finish(1, "b");
    assert_int_equal(peer.n, 1);
    fake_finish(2, "d");
    assert_int_equal(peer.n, 4);
    assert_has(peer_said(&peer, 1), "\"call_id\":\"d\",\"session\":\"g\"");
    assert_string_equal(peer_said(&peer, 2), "{\"type\":\"session_closed\",\"id\":\"g\"}");
    assert_string_equal(peer_said(&peer, 3), "{\"type\":\"session_closed\",\"id\":\"c\"}");
    assert_int_equal(fake_sessions(), 1);
    assert_has(peer_ask(&peer, OPEN("c")), "session_opened");
}

static void
closing_waits_for_commands_that_go_on(void **state)
{
    (void)state;
    peer_line(&peer, OPEN("c"));
    fake_unsettle(true);
    peer_forget(&peer);
    peer_line(&peer, CLOSE("c"));
    assert_int_equal(peer.n, 0);
    fake_session_change("", TOOL_SESSION_SETTLED);
    uv_run(&peer.loop, UV_RUN_NOWAIT);
    assert_int_equal(peer.n, 0); /* another one */
    fake_unsettle(false);
    fake_session_change("", TOOL_SESSION_SETTLED);
    assert_int_equal(peer.n, 0); /* not from inside of it */
    uv_run(&peer.loop, UV_RUN_DEFAULT);
    assert_string_equal(peer_said(&peer, 0), "{\"type\":\"session_closed\",\"id\":\"c\"}");
}

static void
the_end_waits_for_commands_and_tells_of_theirs(void **state)
{
    const struct event e = {
        .kind = EVENT_EXEC_END,
        .session_id = "main",
        .call_id = "a",
        .outlives_call = true,
        .u.end = {.status = "signaled", .exit_code = 137, .signal = 9}
    };

    (void)state;
    fake_unsettle(true);
    peer_forget(&peer);
    protocol_on_eof(peer.protocol);
    uv_run(&peer.loop, UV_RUN_NOWAIT);
    assert_false(peer.has_finished);
    fake_emit(&e);
    fake_unsettle(false);
    fake_session_change("", TOOL_SESSION_SETTLED);
    uv_run(&peer.loop, UV_RUN_DEFAULT);
    assert_true(peer.has_finished);
    assert_has(peer_said(&peer, 0), "\"type\":\"exec_command_end\",\"call_id\":\"a\"");
}

static void
closing_may_end_calls_from_inside(void **state)
{
    (void)state;
    four_calls();
    fake_cancel_is_synchronous(true);
    peer_line(&peer, CLOSE("c"));
    assert_int_equal(peer.n, 4);
    assert_string_equal(peer_said(&peer, 3), "{\"type\":\"session_closed\",\"id\":\"c\"}");
    assert_int_equal(fake_sessions(), 1);
}

static void
an_answer_to_a_request_of_a_child_reaches_it(void **state)
{
    (void)state;
    four_calls();
    fake_emit(&(struct event){
        .kind = EVENT_APPROVAL_REQUESTED,
        .session_id = "g",
        .call_id = "d",
        .u.request = {.id = "r1", .tool = "shell", .text = "{\"tool\":\"shell\"}"}
    });
    assert_has(peer_said(&peer, 0), "\"call_id\":\"d\",\"session\":\"g\",\"id\":\"r1\"");
    peer_line(&peer, "{\"type\":\"exec_approval\",\"id\":\"r1\",\"decision\":\"maybe\"}");
    assert_has(peer_said(&peer, 1), "\"call_id\":\"d\",\"session\":\"g\",\"message\":");
    peer_line(&peer, "{\"type\":\"exec_approval\",\"id\":\"r1\",\"decision\":\"approved\"}");
    assert_int_equal(fake_call(2)->n_replies, 1);
    assert_int_equal(fake_call(1)->n_replies, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_is_opened_used_and_closed),
        TEST(what_can_not_be_opened_says_why),
        TEST(each_session_has_call_ids_of_its_own),
        TEST(a_call_of_no_session_is_told_and_does_not_run),
        TEST(a_batch_belongs_to_one_session),
        TEST(turns_are_each_session_s_own),
        TEST(a_narrower_turn_of_the_parent_holds_below),
        TEST(what_does_not_fit_the_parent_s_new_turn_does_not_run),
        TEST(a_refused_turn_is_not_revived_by_one_above),
        TEST(an_interrupt_goes_down),
        TEST(who_ends_the_turn_ends_what_lies_below),
        TEST(closing_waits_for_the_answers),
        TEST(closing_waits_for_commands_that_go_on),
        TEST(the_end_waits_for_commands_and_tells_of_theirs),
        TEST(closing_may_end_calls_from_inside),
        TEST(an_answer_to_a_request_of_a_child_reaches_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
