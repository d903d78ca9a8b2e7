#include "test.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "fake_tools.h"
#include "fault.h"
#include "peer.h"
#include "protocol/notice.h"
#include "protocol/resource_uri.h"

static struct peer peer;

static const char initialize[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-11-25\"}}";
static const char initialized[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";

static int
open_peer(void **state)
{
    (void)state;
    if (peer_open(&peer, protocol_mcp_new, 0) != SY_E_OK) {
        return -1;
    }
    peer_line(&peer, initialize);
    peer_line(&peer, initialized);
    peer_forget(&peer);
    return 0;
}

static int
close_peer(void **state)
{
    (void)state;
    peer_close(&peer);
    return 0;
}

/* `params` as JSON. */
static const char *
ask(const char *method, const char *params)
{
    char line[4096];

    (void)snprintf(line, sizeof(line),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method,
                   params);
    return peer_ask(&peer, line);
}

static void
reads_each_address_of_a_session(void **state)
{
    struct resource_uri uri;
    char text[RESOURCE_URI_ROOM];

    (void)state;
    for (int part = TOOL_SESSION_SCREEN; part <= TOOL_SESSION_LOG; part++) {
        resource_uri_text(text, "a.B_-9", (enum tool_session_part)part);
        assert_true(resource_uri_parse(&uri, text, strlen(text)));
        assert_string_equal(uri.id, "a.B_-9");
        assert_int_equal(uri.part, part);
    }
    assert_string_equal(text, "shellyard://session/a.B_-9/log");
}

static void
takes_nothing_for_an_address_that_is_none(void **state)
{
    static const char *const wrong[] = {
        "",
        "shellyard:",
        "shellyard://session/",
        "shellyard://session//log",
        "shellyard://session/a",
        "shellyard://session/a/",
        "shellyard://session/a/lo",
        "shellyard://session/a/logs",
        "shellyard://session/a/log/",
        "shellyard://session/a/b/log",
        "shellyard://session/../log/log",
        "shellyard://session/a%2f/log",
        "shellyard://session/a b/log",
        "Shellyard://session/a/log",
        "file:///session/a/log",
    };
    static const char too_long[] =
        "shellyard://session/"
        "12345678901234567890123456789012345678901234567890123456789012345/log";
    struct resource_uri uri;

    (void)state;
    assert_false(resource_uri_parse(&uri, too_long, strlen(too_long)));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(resource_uri_parse(&uri, wrong[i], strlen(wrong[i])));
    }
    assert_false(resource_uri_parse(&uri, "shellyard://session/a\0b/log", 27));
}

static void
a_notice_comes_at_once_then_seldom_and_the_last_one_always(void **state)
{
    struct notice n = {0};
    unsigned told = 0;

    (void)state;
    assert_true(notice_when(&n) == UINT64_MAX);
    assert_true(notice_changed(&n));
    assert_true(notice_when(&n) <= 1000);
    assert_true(notice_take(&n, 1000));
    assert_false(notice_take(&n, 1000));
    for (uint64_t now = 1001; now < 2000; now++) {
        (void)notice_changed(&n);
        told += notice_take(&n, now) ? 1 : 0;
    }
    assert_int_equal(told, 9);
    assert_int_equal(notice_when(&n), 2000);
    assert_true(notice_take(&n, 5000));
    assert_true(notice_when(&n) == UINT64_MAX);
    (void)notice_changed(&n);
    notice_put_off(&n, 6000);
    assert_false(notice_take(&n, 6099));
    assert_true(notice_take(&n, 6100));
}

static void
lists_what_sessions_there_are(void **state)
{
    (void)state;
    assert_has(ask("resources/list", "{}"), "\"result\":{\"resources\":[]}");
    fake_session("one", true);
    fake_session("two", false);

    const char *said = ask("resources/list", "{}");

    assert_has(said, "{\"uri\":\"shellyard://session/one/screen\",\"name\":\"session one: screen\","
                     "\"title\":\"session one: screen\",\"description\":\"cat (runs)\","
                     "\"mimeType\":\"text/plain\"}");
    assert_has(said, "shellyard://session/one/log");
    assert_has(said, "shellyard://session/two/log");
    assert_lacks(said, "shellyard://session/two/screen");
    assert_lacks(said, "nextCursor");
    assert_has(ask("resources/templates/list", "{}"),
               "\"uriTemplate\":\"shellyard://session/{session_id}/log\"");
}

static void
a_long_list_comes_in_pages(void **state)
{
    char id[16];

    (void)state;
    for (unsigned i = 0; i < LIMIT_RESOURCE_PAGE + 1; i++) {
        (void)snprintf(id, sizeof(id), "s%u", i);
        fake_session(id, false);
    }

    const char *said = ask("resources/list", "{}");

    assert_has(said, "\"nextCursor\":\"s99\"");
    assert_lacks(said, "/s100/");
    said = ask("resources/list", "{\"cursor\":\"s99\"}");
    assert_has(said, "/s100/");
    assert_lacks(said, "/s99/");
    assert_lacks(said, "nextCursor");
    assert_has(ask("resources/list", "{\"cursor\":\"gone\"}"), "-32602");
    assert_has(ask("resources/list", "{\"cursor\":7}"), "-32602");
}

static void
reads_one_and_says_which_there_is_not(void **state)
{
    (void)state;
    fake_session("one", true);
    assert_has(ask("resources/read", "{\"uri\":\"shellyard://session/one/log\"}"),
               "\"contents\":[{\"uri\":\"shellyard://session/one/log\",\"mimeType\":\"text/plain\","
               "\"text\":\"log of one\\n\"}]");
    assert_has(ask("resources/read", "{\"uri\":\"shellyard://session/one/screen\"}"),
               "screen of one");
    assert_has(ask("resources/read", "{\"uri\":\"shellyard://session/two/log\"}"),
               "\"error\":{\"code\":-32002,\"message\":\"there is no session two\",\"data\":{"
               "\"uri\":\"shellyard://session/two/log\"}}");
    assert_has(ask("resources/read", "{\"uri\":\"file:///etc/passwd\"}"), "-32002");
    assert_has(ask("resources/read", "{\"uri\":5}"), "-32602");
    assert_has(ask("resources/read", "{}"), "-32602");
}

static void
tells_changes_of_what_is_subscribed_to(void **state)
{
    uint64_t began = 0;

    (void)state;
    fake_session("one", true);
    peer_wait(&peer, 1);
    assert_string_equal(peer_said(&peer, 0),
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\","
                        "\"params\":{}}");
    assert_has(ask("resources/subscribe", "{\"uri\":\"shellyard://session/one/log\"}"),
               "\"result\":{}");
    assert_has(ask("resources/subscribe", "{\"uri\":\"shellyard://session/one/log\"}"),
               "\"result\":{}");
    peer_forget(&peer);
    began = clock_mono_ns();
    for (unsigned i = 0; i < 1000; i++) {
        fake_session_change("one", TOOL_SESSION_CHANGED);
        fake_session_change("other", TOOL_SESSION_CHANGED);
    }
    peer_wait(&peer, 1);
    assert_string_equal(peer_said(&peer, 0),
                        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
                        "\"params\":{\"uri\":\"shellyard://session/one/log\"}}");
    fake_session_change("one", TOOL_SESSION_CHANGED);
    peer_wait(&peer, 2);
    assert_int_equal(peer.n, 2);
    assert_true((clock_mono_ns() - began) / 1000000 + 1 >= NOTICE_MS);

    assert_has(ask("resources/unsubscribe", "{\"uri\":\"shellyard://session/one/log\"}"),
               "\"result\":{}");
    fake_session_change("one", TOOL_SESSION_CHANGED);
    fake_session_change("one", TOOL_SESSION_ENDED);
    peer_wait(&peer, 2);
    assert_has(peer_said(&peer, 1), "list_changed");
}

static void
a_session_that_goes_is_told_a_last_time(void **state)
{
    (void)state;
    fake_session("one", true);
    peer_wait(&peer, 1);
    ask("resources/subscribe", "{\"uri\":\"shellyard://session/one/screen\"}");
    peer_forget(&peer);
    fake_session_change("one", TOOL_SESSION_GONE);
    peer_wait(&peer, 2);
    fake_session("one", true);
    peer_wait(&peer, 3);
    fake_session_change("one", TOOL_SESSION_CHANGED);
    peer_turn(&peer, 3);
    assert_int_equal(peer.n, 3);
    assert_has(ask("resources/subscribe", "{\"uri\":\"shellyard://session/two/log\"}"), "-32002");
    fake_session("two", false);
    assert_has(ask("resources/subscribe", "{\"uri\":\"shellyard://session/two/screen\"}"),
               "no terminal");
}

static void
a_slow_reader_is_told_later(void **state)
{
    (void)state;
    fake_session("one", true);
    peer_wait(&peer, 1);
    ask("resources/subscribe", "{\"uri\":\"shellyard://session/one/log\"}");
    peer_forget(&peer);
    peer.backlog = LIMIT_NOTICE_BACKLOG + 1;
    for (uint64_t end = clock_mono_ns() + 3ULL * NOTICE_MS * 1000000; clock_mono_ns() < end;) {
        fake_session_change("one", TOOL_SESSION_CHANGED);
        peer_turn(&peer, 1);
    }
    assert_int_equal(peer.n, 0);
    peer.backlog = 0;
    peer_wait(&peer, 1);
    assert_has(peer_said(&peer, 0), "updated");
}

static void
nothing_is_told_before_the_client_is_ready(void **state)
{
    (void)state;
    assert_int_equal(peer_open(&peer, protocol_mcp_new, 0), SY_E_OK);
    fake_session("one", true);
    peer_turn(&peer, 2);
    peer_line(&peer, initialize);
    peer_turn(&peer, 2);
    assert_int_equal(peer.n, 1);
    peer_line(&peer, initialized);
    peer_wait(&peer, 2);
    assert_has(peer_said(&peer, 1), "list_changed");
    peer_close(&peer);
}

static void
subscriptions_have_an_end(void **state)
{
    char text[160];

    (void)state;
    for (unsigned i = 0; i <= LIMIT_SUBSCRIPTIONS; i++) {
        (void)snprintf(text, sizeof(text), "s%u", i);
        fake_session(text, false);
        (void)snprintf(text, sizeof(text), "{\"uri\":\"shellyard://session/s%u/log\"}", i);
        assert_has(ask("resources/subscribe", text),
                   i < LIMIT_SUBSCRIPTIONS ? "\"result\":{}" : "which is the maximum");
    }
}

/* Each request is answered, whichever allocation fails. */
static enum sy_code
talk(void *arg)
{
    static const char *const requests[][2] = {
        {"resources/list",           "{}"                                          },
        {"resources/templates/list", "{}"                                          },
        {"resources/read",           "{\"uri\":\"shellyard://session/one/log\"}"   },
        {"resources/read",           "{\"uri\":\"shellyard://session/none/log\"}"  },
        {"resources/subscribe",      "{\"uri\":\"shellyard://session/one/screen\"}"},
        {"resources/unsubscribe",    "{\"uri\":\"shellyard://session/one/screen\"}"},
        {"resources/subscribe",      "{\"uri\":\"shellyard://session/one/log\"}"   },
    };
    enum sy_code rc = peer_open(&peer, protocol_mcp_new, 0);

    (void)arg;
    if (rc != SY_E_OK) {
        return rc;
    }
    peer_line(&peer, initialize);
    peer_line(&peer, initialized);
    fake_session("one", true);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        SY_ASSERT(ask(requests[i][0], requests[i][1])[0] != '\0');
    }
    fake_session_change("one", TOOL_SESSION_CHANGED);
    peer_turn(&peer, 2);
    peer_close(&peer);
    return mem_fault_fired() ? SY_E_NOMEM : SY_E_OK;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(talk, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_peer, close_peer)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_address_of_a_session),
        cmocka_unit_test(takes_nothing_for_an_address_that_is_none),
        cmocka_unit_test(a_notice_comes_at_once_then_seldom_and_the_last_one_always),
        TEST(lists_what_sessions_there_are),
        TEST(a_long_list_comes_in_pages),
        TEST(reads_one_and_says_which_there_is_not),
        TEST(tells_changes_of_what_is_subscribed_to),
        TEST(a_session_that_goes_is_told_a_last_time),
        TEST(a_slow_reader_is_told_later),
        cmocka_unit_test(nothing_is_told_before_the_client_is_ready),
        TEST(subscriptions_have_an_end),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
