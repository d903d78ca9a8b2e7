#include "test.h"

#include <stdio.h>

#include "base/mem.h"
#include "fake_tools.h"
#include "peer.h"

static struct peer peer;

static int
open_peer(void **state)
{
    (void)state;
    return peer_open(&peer, protocol_mcp_new, 0) == SY_E_OK ? 0 : -1;
}

static int
close_peer(void **state)
{
    (void)state;
    peer_close(&peer);
    return 0;
}

static const char *
initialize(const char *version)
{
    char line[256];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{}}}",
                   version);
    return peer_ask(&peer, line);
}

static void
echoes_each_version_that_it_speaks(void **state)
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char want[64];

        (void)snprintf(want, sizeof(want), "\"protocolVersion\":\"%s\"", versions[i]);
        assert_has(initialize(versions[i]), want);
    }
}

static void
offers_its_newest_version_for_an_unknown_one(void **state)
{
    (void)state;
    assert_has(initialize("1999-01-01"), "\"protocolVersion\":\"2025-11-25\"");
    assert_has(initialize("2026-07-28"), "\"protocolVersion\":\"2025-11-25\"");
}

static void
declares_only_what_works(void **state)
{
    const char *said = initialize("2025-11-25");

    (void)state;
    assert_has(said, "\"id\":0,\"result\":{");
    assert_has(said, "\"capabilities\":{\"tools\":{\"listChanged\":false},"
                     "\"resources\":{\"subscribe\":true,\"listChanged\":true}}");
    assert_has(said,
               "\"serverInfo\":{\"name\":\"shellyard\",\"title\":\"Shellyard\",\"version\":\"");
    assert_lacks(initialize("2025-03-26"), "\"title\"");
}

static void
instructions_are_short_and_name_only_listed_tools(void **state)
{
    struct json_doc doc = {0};
    const char *said = initialize("2025-11-25");

    (void)state;
    assert_int_equal(json_parse(&doc, said, strlen(said), NULL), SY_E_OK);

    const struct js *text = js_get(js_get(doc.root, "result"), "instructions");

    assert_in_range(js_str_len(text), 100, 600);
    assert_has(js_str(text), "shell: one program");
    assert_lacks(js_str(text), "shell_command");
    json_doc_fini(&doc);

    assert_has(initialize("2025-11-25"), "Commands run in a sandbox: what");
    fake_config()->tools.timeout_ms = 30000;
    assert_has(initialize("2025-11-25"), "timeout_ms (default 30000)");
    fake_config()->sandbox.mode = "danger-full-access";
    said = initialize("2025-11-25");
    assert_has(said, "Commands run without a sandbox. isError");
    assert_lacks(said, "what it denies");

    fake_config()->tools.shell_type = "disabled";
    said = initialize("2025-11-25");
    assert_has(said, "\"instructions\":\"There are no tools here: ");
    assert_lacks(said, "call");
}

static void
initialize_without_a_version_is_an_error(void **state)
{
    (void)state;
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}"),
               "-32602");
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"),
               "-32600");
}

static void
answers_ping_with_the_type_of_its_id(void **state)
{
    (void)state;
    assert_string_equal(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}"),
                        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
    assert_string_equal(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"ping\"}"),
                        "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}");
}

static void
refuses_requests_before_initialize(void **state)
{
    (void)state;
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"),
               "\"id\":1,\"error\":{\"code\":-32600,\"message\":\"not initialized");
    assert_has(peer_ask(&peer,
                        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
                        "\"name\":\"shell\"}}"),
               "-32600");
    assert_int_equal(fake_calls(), 0);
}

#define STATELESS "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"%s\"}"

/* A request that names a version by itself; what is said. */
static const char *
ask_stateless(const char *method, const char *version)
{
    char line[300];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{" STATELESS
                   ",\"name\":\"shell\",\"arguments\":{\"command\":[\"true\"]}}}",
                   method, version);
    return peer_ask(&peer, line);
}

static void
a_stateless_client_is_refused_and_told_the_versions(void **state)
{
    static const char *const methods[] = {"tools/list", "tools/call", "resources/read",
                                          "subscriptions/listen"};

    (void)state;
    for (int has_begun = 0; has_begun < 2; has_begun++) {
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
            const char *said = ask_stateless(methods[i], "2026-07-28");

            assert_has(said, "\"id\":1,\"error\":{\"code\":-32022,");
            assert_has(said, "begin with initialize");
            assert_has(said, "\"data\":{\"supported\":[\"2024-11-05\",\"2025-03-26\","
                             "\"2025-06-18\",\"2025-11-25\"],\"requested\":\"2026-07-28\"}");
        }
        initialize("2025-11-25");
    }
    assert_int_equal(fake_calls(), 0);
}

static void
the_probe_of_both_eras_says_that_this_one_initializes(void **state)
{
    const char *said = ask_stateless("server/discover", "2026-07-28");

    (void)state;
    /* -32022 would make the client stay in its era. */
    assert_has(said, "\"code\":-32601,");
    assert_has(said, "begin with initialize (versions 2024-11-05 to 2025-11-25)");
    assert_has(said, "\"supported\":[\"2024-11-05\"");
    said = peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}");
    assert_has(said, "\"code\":-32601,");
    assert_lacks(said, "requested");
}

static void
a_version_that_is_served_still_needs_initialize(void **state)
{
    (void)state;
    assert_has(ask_stateless("tools/list", "2025-11-25"), "-32600");
    initialize("2025-11-25");
    assert_has(ask_stateless("tools/list", "2025-11-25"), "\"result\":{\"tools\"");
    assert_has(ask_stateless("ping", "2026-07-28"), "\"result\":{}");
}

static void
a_long_version_is_cut_where_it_is_told_again(void **state)
{
    char line[600];
    char name[301];

    (void)state;
    memset(name, '9', 300);
    name[300] = '\0';
    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" STATELESS
                   "}}",
                   name);

    const char *said = peer_ask(&peer, line);

    assert_has(said, "\"code\":-32022,");
    assert_has(said, "\"requested\":\"99999999999999999999999999999999\"");
}

static void
unknown_methods_are_named(void **state)
{
    static const char *const names[] = {"completion/complete", "prompts/list", "logging/setLevel",
                                        "x"};

    (void)state;
    initialize("2025-11-25");
    for (size_t i = 0; i < 4; i++) {
        char line[128];
        const char *said = NULL;

        (void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}",
                       names[i]);
        said = peer_ask(&peer, line);
        assert_has(said, "-32601");
        assert_has(said, names[i]);
    }
}

static void
broken_messages_get_the_right_error(void **state)
{
    static const struct {
        const char *line;
        const char *want;
    } rows[] = {
        {"{",                                                     "\"id\":null,\"error\":{\"code\":-32700"},
        {"nonsense",                                              "\"id\":null,\"error\":{\"code\":-32700"},
        {"{\"a\":1,\"a\":2}",                                     "-32700"                                },
        {"12",                                                    "\"id\":null,\"error\":{\"code\":-32600"},
        {"{}",                                                    "\"id\":null,\"error\":{\"code\":-32600"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
         "\"id\":1,\"error\":{\"code\":-32600"                                                            },
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
         "\"id\":null,\"error\":{\"code\":-32600"                                                         },
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
         "\"id\":null,\"error\":{\"code\":-32600"                                                         },
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
         "\"id\":null,\"error\":{\"code\":-32600"                                                         },
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",           "\"id\":1,\"error\":{\"code\":-32600"   },
        {"{\"jsonrpc\":\"2.0\",\"id\":1}",                        "\"id\":1,\"error\":{\"code\":-32600"   },
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
         "\"params\":[1]}",                              "-32602"                                },
        {"{\"jsonrpc\":\"2.0\",\"id\":1,"
         "\"method\":\"notifications/cancelled\"}",      "-32600"                                },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_has(peer_ask(&peer, rows[i].line), rows[i].want);
        assert_int_equal(peer.n, 1);
    }
}

static void
notifications_and_answers_get_no_answer(void **state)
{
    static const char *const lines[] = {
        "",
        "   ",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":9}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"shell\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":1,\"message\":\"x\"}}",
    };

    (void)state;
    initialize("2025-11-25");
    peer_forget(&peer);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        peer_line(&peer, lines[i]);
        assert_int_equal(peer.n, 0);
    }
    assert_int_equal(fake_calls(), 0);
}

static void
lists_tools_as_the_version_has_them(void **state)
{
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";

    (void)state;
    initialize("2025-11-25");
    assert_string_equal(peer_ask(&peer, list),
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"shell\","
                        "\"title\":\"Run a program\",\"description\":\"Run a program.\","
                        "\"inputSchema\":{\"type\":\"object\"},"
                        "\"outputSchema\":{\"type\":\"object\",\"properties\":{}},"
                        "\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":true,"
                        "\"idempotentHint\":false,\"openWorldHint\":true}}]}}");

    initialize("2025-03-26");
    assert_lacks(peer_ask(&peer, list), "outputSchema");
    assert_lacks(peer_said(&peer, 0), "title");
    assert_has(peer_said(&peer, 0), "annotations");

    initialize("2024-11-05");
    assert_lacks(peer_ask(&peer, list), "annotations");

    fake_config()->tools.shell_type = "all";
    assert_has(peer_ask(&peer, list), "\"name\":\"reader\"");
}

static void
a_cursor_that_nobody_gave_is_refused(void **state)
{
    (void)state;
    initialize("2025-11-25");
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
                               "\"params\":{\"cursor\":\"abc\"}}"),
               "-32602");
    assert_has(peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
                               "\"params\":{\"cursor\":null}}"),
               "\"tools\":[");
}

static void
params_that_are_null_are_absent(void **state)
{
    (void)state;
    initialize("2025-11-25");
    assert_has(
        peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":null}"),
        "\"tools\":[");
    assert_has(
        peer_ask(&peer, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":null}"),
        "params.name");
}

static void
arrays_belong_to_one_version_alone(void **state)
{
    static const char pings[] = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
                                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},5,"
                                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\"}]";

    (void)state;
    assert_has(peer_ask(&peer, pings), "not initialized");
    initialize("2025-06-18");
    assert_has(peer_ask(&peer, pings), "-32600");
    initialize("2025-03-26");
    peer_ask(&peer, pings);
    assert_int_equal(peer.n, 1);
    assert_has(peer_said(&peer, 0), "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"
                                    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600");
    assert_has(peer_said(&peer, 0), "initialize must not be part of an array\"}}]");
    assert_has(peer_ask(&peer, "[]"), "-32600");
    peer_ask(&peer, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]");
    assert_int_equal(peer.n, 0);
}

static void
an_overlong_line_is_answered_once(void **state)
{
    (void)state;
    protocol_on_dropped(peer.protocol, SY_E_LIMIT);
    assert_int_equal(peer.n, 1);
    assert_has(peer_said(&peer, 0), "\"id\":null,\"error\":{\"code\":-32600");
    protocol_on_dropped(peer.protocol, SY_E_NOMEM);
    assert_has(peer_said(&peer, 1), "-32603");
}

static void
eof_without_calls_ends_at_once(void **state)
{
    (void)state;
    protocol_on_eof(peer.protocol);
    assert_false(peer.has_finished);
    peer_line(&peer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_int_equal(peer.n, 0);
    uv_run(&peer.loop, UV_RUN_DEFAULT);
    assert_true(peer.has_finished);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(echoes_each_version_that_it_speaks),
        TEST(offers_its_newest_version_for_an_unknown_one),
        TEST(declares_only_what_works),
        TEST(instructions_are_short_and_name_only_listed_tools),
        TEST(initialize_without_a_version_is_an_error),
        TEST(answers_ping_with_the_type_of_its_id),
        TEST(refuses_requests_before_initialize),
        TEST(a_stateless_client_is_refused_and_told_the_versions),
        TEST(the_probe_of_both_eras_says_that_this_one_initializes),
        TEST(a_version_that_is_served_still_needs_initialize),
        TEST(a_long_version_is_cut_where_it_is_told_again),
        TEST(unknown_methods_are_named),
        TEST(broken_messages_get_the_right_error),
        TEST(notifications_and_answers_get_no_answer),
        TEST(lists_tools_as_the_version_has_them),
        TEST(a_cursor_that_nobody_gave_is_refused),
        TEST(params_that_are_null_are_absent),
        TEST(arrays_belong_to_one_version_alone),
        TEST(an_overlong_line_is_answered_once),
        TEST(eof_without_calls_ends_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
