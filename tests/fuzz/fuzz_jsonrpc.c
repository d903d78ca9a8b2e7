#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "fake_tools.h"
#include "fuzz_check.h"
#include "peer.h"

/*
 * Both fronts under any lines, over a stand-in for the tools. Two header
 * bytes: which front and, for MCP, which version was negotiated ('0'-'3',
 * '4' none, '5' JSON Lines); which allocation fails ('0': none). Then lines; one that
 * begins with '!' is an order to the harness. Held: each message that goes
 * out is one line of JSON (peer.c checks), nothing leaks, nothing crashes, the
 * front ends when it should.
 */
static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

static void
emit(char kind)
{
    char word[] = "ls";
    char *argv[] = {word, NULL};
    struct event e = {.kind = EVENT_EXEC_BEGIN, .session_id = "s"};

    for (size_t i = 0; i < fake_calls(); i++) {
        if (fake_call(i)->handle == NULL) {
            continue;
        }
        e.call_id = fake_call(i)->call_id;
        e.turn_id = fake_call(i)->turn_id;
        if (kind == 'd') {
            e.kind = EVENT_EXEC_OUTPUT_DELTA;
            e.u.delta = (struct event_delta){.stream = "stdout", .text = "x\xff\n", .len = 3};
        } else if (kind == 'e') {
            e.kind = EVENT_EXEC_END;
            e.u.end = (struct event_end){.status = "exited", .preview = "x"};
        } else {
            e.u.begin = (struct event_begin){argv, "/", "shell", "agent"};
        }
        fake_emit(&e);
    }
}

static void
finish_nth_open(size_t nth)
{
    for (size_t i = 0; i < fake_calls(); i++) {
        if (fake_call(i)->handle != NULL && nth-- == 0) {
            fake_finish(i, "out\n");
            return;
        }
    }
}

static void
obey(struct peer *p, const char *order, size_t n)
{
    switch (n > 0 ? order[0] : '\0') {
    case 'f':
        fake_finish_all();
        break;
    case '0':
    case '1':
    case '2':
    case '3':
        finish_nth_open((size_t)(order[0] - '0'));
        break;
    case 'b':
    case 'd':
    case 'e':
        emit(order[0]);
        break;
    case 'l':
        p->backlog = p->backlog == 0 ? SIZE_MAX : 0;
        break;
    case 's':
        fake_cancel_is_synchronous(true);
        break;
    case 'w':
        fake_session_change("one", TOOL_SESSION_CHANGED);
        break;
    case 'y':
        fake_session_change("one", TOOL_SESSION_GONE);
        break;
    case 'o':
        fake_session("one", true);
        break;
    case 'n':
        fake_fail_next(SY_E_LIMIT);
        break;
    case 'a':
        fake_config()->tools.shell_type = "all";
        break;
    case 't':
        peer_turn(p, 1);
        break;
    case 'x':
        protocol_on_dropped(p->protocol, SY_E_LIMIT);
        break;
    case 'z':
        protocol_on_eof(p->protocol);
        break;
    case 'g':
        protocol_on_gone(p->protocol);
        break;
    default:
        break;
    }
}

static void
talk(struct peer *p, const char *text, size_t n)
{
    while (n > 0 && p->protocol != NULL) {
        const char *newline = memchr(text, '\n', n);
        size_t len = newline != NULL ? (size_t)(newline - text) : n;

        if (len > 0 && text[0] == '!') {
            obey(p, text + 1, len - 1);
        } else {
            protocol_on_line(p->protocol, text, len);
        }
        text += len;
        n -= len;
        if (n > 0) {
            text++;
            n--;
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct peer peer;
    size_t live = mem_live();

    if (size < 2) {
        return 0;
    }

    unsigned which = (unsigned)data[0] - '0';
    unsigned fault = data[1] > '0' ? (unsigned)data[1] - '0' : 0;

    mem_fault_set(fault);
    if (peer_open(&peer, which == 5 ? protocol_jsonl_new : protocol_mcp_new, 0) == SY_E_OK) {
        if (which < 4) {
            char line[160];

            (void)snprintf(line, sizeof(line),
                           "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                           "\"protocolVersion\":\"%s\"}}",
                           versions[which]);
            peer_line(&peer, line);
        }
        talk(&peer, (const char *)data + 2, size - 2);
        peer_close(&peer);
    }
    mem_fault_set(0);
    SY_ASSERT(mem_live() == live);
    return 0;
}
