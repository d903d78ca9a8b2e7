#include "test.h"

#include <stdio.h>

#include "fake_tools.h"
#include "peer.h"

#define CALL(id) "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"" id "\"}"

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
a_turn_holds_for_later_calls(void **state)
{
    const char *said =
        peer_ask(&peer, "{\"type\":\"turn\",\"turn_id\":\"t1\",\"cwd\":\"/usr/../tmp\","
                        "\"sandbox_mode\":\"read-only\",\"approval_policy\":\"unless-trusted\"}");

    (void)state;
    assert_string_equal(said, "{\"type\":\"turn_started\",\"turn_id\":\"t1\",\"cwd\":\"/tmp\","
                              "\"sandbox_mode\":\"read-only\",\"network_access\":false,"
                              "\"approval_policy\":\"unless-trusted\"}");
    peer_line(&peer, CALL("a"));
    assert_string_equal(fake_call(0)->cwd, "/tmp");
    assert_string_equal(fake_call(0)->turn_id, "t1");
    assert_int_equal(fake_call(0)->mode, SANDBOX_READ_ONLY);
    assert_int_equal(fake_call(0)->approval, APPROVAL_UNLESS_TRUSTED);
}

static void
what_a_turn_leaves_out_comes_from_configuration(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"turn\",\"turn_id\":\"t1\",\"sandbox_mode\":\"read-only\","
                     "\"cwd\":\"/tmp\"}");
    peer_line(&peer, "{\"type\":\"turn\"}");
    peer_line(&peer, CALL("a"));
    assert_string_equal(fake_call(0)->cwd, "/");
    assert_string_equal(fake_call(0)->turn_id, "");
    assert_int_equal(fake_call(0)->mode, SANDBOX_WORKSPACE_WRITE);
}

static void
a_batch_keeps_the_turn_that_it_came_under(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"turn\",\"turn_id\":\"old\",\"cwd\":\"/tmp\"}");
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("a") "," CALL("b") "]}");
    peer_line(&peer, "{\"type\":\"turn\",\"turn_id\":\"new\"}");
    peer_line(&peer, CALL("c"));
    fake_finish(0, "");
    assert_string_equal(fake_call(2)->call_id, "b");
    assert_string_equal(fake_call(2)->turn_id, "old");
    assert_string_equal(fake_call(2)->cwd, "/tmp");
    assert_string_equal(fake_call(1)->turn_id, "new");
}

static void
a_turn_can_not_widen(void **state)
{
    static const struct {
        const char *members;
        const char *want;
    } rows[] = {
        {"\"sandbox_mode\":\"danger-full-access\"",                             "wider than workspace-write"          },
        {"\"sandbox_mode\":\"external-sandbox\"",                               "wider than"                          },
        {"\"sandbox_policy\":\"danger-full-access\"",                           "wider than"                          },
        {"\"sandbox_policy\":{\"mode\":\"danger-full-access\"}",                "wider than"                          },
        {"\"sandbox_policy\":{\"type\":\"danger-full-access\"}",                "wider than"                          },
        {"\"sandbox_policy\":{\"mode\":\"read-only\",\"network_access\":true}",
         "can't switch it on"                                                                                         },
        {"\"network_access\":true",                                             "can't switch it on"                  },
        {"\"approval_policy\":\"never\"",                                       "asks less than on-failure"           },
        {"\"sandbox_policy\":{\"mode\":\"workspace-write\","
         "\"writable_roots\":[\"/etc\"]}",                             "none of those that configuration has"},
        {"\"sandbox_policy\":{\"mode\":\"workspace-write\","
         "\"writable_roots\":[\"/srv/data/below\"]}",                  "none of those that"                  },
        {"\"sandbox_policy\":{\"mode\":\"workspace-write\","
         "\"exclude_slash_tmp\":false}",                               "can't switch it off"                 },
    };

    (void)state;
    fake_config()->sandbox.exclude_slash_tmp = true;
    assert_int_equal(strv_add(&fake_config()->sandbox.writable_roots, "/srv/data"), SY_E_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[256];
        const char *said = NULL;

        (void)snprintf(line, sizeof(line), "{\"type\":\"turn\",%s}", rows[i].members);
        said = peer_ask(&peer, line);
        assert_has(said, "{\"type\":\"error\",\"message\":\"turn refused: ");
        assert_has(said, rows[i].want);
    }
}

static void
a_turn_can_narrow(void **state)
{
    (void)state;
    fake_config()->sandbox.network_access = true;
    assert_has(peer_ask(&peer,
                        "{\"type\":\"turn\",\"sandbox_policy\":{\"mode\":\"workspace-write\","
                        "\"writable_roots\":[],\"network_access\":false,"
                        "\"exclude_slash_tmp\":true,\"exclude_tmpdir_env_var\":true}}"),
               "\"network_access\":false");
    assert_has(peer_ask(&peer, "{\"type\":\"turn\",\"network_access\":false}"), "turn_started");
    peer_line(&peer, CALL("a"));
    assert_false(fake_call(0)->has_network);
}

static void
malformed_turns_are_refused(void **state)
{
    static const struct {
        const char *members;
        const char *want;
    } rows[] = {
        {"\"sandbox_mod\":\"read-only\"",                       "did you mean 'sandbox_mode'?"},
        {"\"sandbox_policy\":{\"mode\":\"read-only\",\"x\":1}", "sandbox_policy has no member"},
        {"\"sandbox_policy\":{}",                               "needs \\\"mode\\\""          },
        {"\"sandbox_policy\":[]",                               "sandbox mode must be"        },
        {"\"sandbox_mode\":\"yolo\"",                           "not yolo"                    },
        {"\"sandbox_mode\":\"read-only\","
         "\"sandbox_policy\":\"read-only\"",           "not both"                    },
        {"\"approval_policy\":\"always\"",                      "approval_policy must be"     },
        {"\"approval_policy\":5",                               "approval_policy must be"     },
        {"\"cwd\":\"tmp\"",                                     "absolute path"               },
        {"\"cwd\":5",                                           "cwd must be a string"        },
        {"\"cwd\":\"/nonexistent/place\"",                      "existing directory"          },
        {"\"cwd\":\"/etc/passwd\"",                             "existing directory"          },
        {"\"turn_id\":5",                                       "turn_id must be"             },
        {"\"network_access\":\"no\"",                           "true or false"               },
        {"\"sandbox_policy\":{\"mode\":\"read-only\","
         "\"writable_roots\":\"/\"}",                  "an array of paths"           },
        {"\"sandbox_policy\":{\"mode\":\"read-only\","
         "\"writable_roots\":[\"x\"]}",                "writable_roots[0]"           },
        {"\"sandbox_policy\":{\"mode\":\"read-only\","
         "\"exclude_slash_tmp\":1}",                   "exclude_slash_tmp must be"   },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[256];

        (void)snprintf(line, sizeof(line), "{\"type\":\"turn\",%s}", rows[i].members);
        assert_has(peer_ask(&peer, line), rows[i].want);
    }
}

static void
nothing_runs_after_a_refused_turn_until_a_valid_one(void **state)
{
    (void)state;
    peer_line(&peer, "{\"type\":\"turn\",\"sandbox_mode\":\"read_only\"}");
    assert_has(peer_ask(&peer, CALL("a")), "\"output\":\"not run: the turn message");
    peer_line(&peer, "{\"type\":\"batch\",\"calls\":[" CALL("b") "," CALL("c") "]}");
    assert_int_equal(peer.n, 3);
    assert_int_equal(fake_calls(), 0);
    peer_line(&peer, "{\"type\":\"turn\",\"sandbox_mode\":\"read-only\"}");
    peer_line(&peer, CALL("d"));
    assert_int_equal(fake_calls(), 1);
}

static void
under_full_access_the_network_can_not_be_held(void **state)
{
    (void)state;
    peer_close(&peer);
    assert_int_equal(peer_open(&peer, protocol_jsonl_new, 0), SY_E_OK);
    fake_turn()->sandbox.mode = SANDBOX_DANGER_FULL_ACCESS;
    fake_config()->sandbox.mode = "danger-full-access";
    assert_has(peer_ask(&peer, "{\"type\":\"turn\",\"network_access\":false}"), "can't be held");
    assert_has(peer_ask(&peer,
                        "{\"type\":\"turn\",\"sandbox_policy\":{\"mode\":\"workspace-write\","
                        "\"writable_roots\":[\"/opt\"],\"network_access\":true}}"),
               "\"sandbox_mode\":\"workspace-write\",\"network_access\":true");
    peer_line(&peer, CALL("a"));
    assert_int_equal(fake_call(0)->n_roots, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_turn_holds_for_later_calls),
        TEST(what_a_turn_leaves_out_comes_from_configuration),
        TEST(a_batch_keeps_the_turn_that_it_came_under),
        TEST(a_turn_can_not_widen),
        TEST(a_turn_can_narrow),
        TEST(malformed_turns_are_refused),
        TEST(nothing_runs_after_a_refused_turn_until_a_valid_one),
        TEST(under_full_access_the_network_can_not_be_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
