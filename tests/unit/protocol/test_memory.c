#include "test.h"

#include "base/mem.h"
#include "fake_tools.h"
#include "fault.h"
#include "peer.h"

/* A talk with a front in which each allocation fails once: nothing leaks, what
 * is said stays valid JSON, and each request is still answered. */
struct talk {
    protocol_new_fn *front;
    const char *const *lines;
    size_t n_answers; /* when all goes well */
};

static bool
wants_answer(const char *line)
{
    return strstr(line, "\"id\"") != NULL || strstr(line, "call_id") != NULL;
}

static void
say_all(struct peer *p, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        size_t before = p->n + fake_open();

        peer_line(p, *lines);
        /* Either a call is under way or something was said. */
        SY_ASSERT(!wants_answer(*lines) || p->n + fake_open() > before);
    }
}

static enum sy_code
run(void *arg)
{
    static struct peer peer;
    const struct talk *t = arg;
    enum sy_code rc = peer_open(&peer, t->front, 0);

    if (rc != SY_E_OK) {
        return rc;
    }
    say_all(&peer, t->lines);
    fake_finish_all();

    size_t n = peer.n;

    peer_close(&peer);
    if (mem_fault_fired()) {
        return SY_E_NOMEM;
    }
    return n == t->n_answers ? SY_E_OK : SY_E_INTERNAL;
}

static void
mcp_survives_each_failed_allocation(void **state)
{
    static const char *const lines[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-03-26\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"shell\",\"arguments\":{\"a\":[1,2]},\"_meta\":{\"progressToken\":\"t\"}}}",
        "[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":4,"
        "\"method\":\"tools/call\",\"params\":{\"name\":\"shell\"}}]",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"nope\"}",
        NULL,
    };
    struct talk t = {protocol_mcp_new, lines, 5};

    (void)state;
    fault_run(run, &t);
}

static void
jsonl_survives_each_failed_allocation(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"tools\"}",
        "{\"type\":\"turn\",\"cwd\":\"/tmp\",\"sandbox_policy\":{\"mode\":\"read-only\","
        "\"writable_roots\":[]}}",
        "{\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"a\",\"arguments\":\"{}\"}",
        "{\"type\":\"local_shell_call\",\"call_id\":\"b\",\"action\":{\"type\":\"exec\","
        "\"command\":[\"ls\"],\"env\":{\"A\":\"1\"}}}",
        "{\"type\":\"batch\",\"calls\":[{\"type\":\"function_call\",\"name\":\"shell\","
        "\"call_id\":\"c\"},{\"type\":\"custom_tool_call\",\"name\":\"patch\",\"call_id\":\"d\","
        "\"input\":\"x\"}]}",
        "{\"type\":\"session\",\"action\":\"open\",\"id\":\"s\",\"name\":\"n\","
        "\"sandbox_policy\":{\"mode\":\"read-only\",\"writable_roots\":[]}}",
        "{\"type\":\"turn\",\"session\":\"s\",\"cwd\":\"/tmp/.\",\"turn_id\":\"t\"}",
        "{\"type\":\"turn\",\"cwd\":\"/tmp\"}",
        "{\"type\":\"session\",\"action\":\"close\",\"id\":\"s\"}",
        NULL,
    };
    struct talk t = {protocol_jsonl_new, lines, 10};

    (void)state;
    fault_run(run, &t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mcp_survives_each_failed_allocation),
        cmocka_unit_test(jsonl_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
