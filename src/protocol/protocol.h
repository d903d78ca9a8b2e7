#ifndef SY_PROTOCOL_PROTOCOL_H
#define SY_PROTOCOL_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tools/tools.h"

/*
 * What an agent speaks, over one internal call type (struct invocation): a
 * front takes the peer's lines and starts tools; answers and notifications go
 * out through `send`. No descriptors here: transport/ carries the bytes. One
 * thread, the loop's.
 *
 *     protocol_mcp_new    MCP 2024-11-05 to 2025-11-25   docs/protocol/mcp.md
 *     protocol_jsonl_new  JSON Lines                     docs/protocol/proto.md
 */
struct protocol;

/*
 * One message: valid JSON without a newline, borrowed for the time of the
 * call. An error means that the peer can't be reached any more; the sender
 * then also calls protocol_on_gone, later.
 */
typedef enum sy_code protocol_send_fn(void *arg, const char *json, size_t len);

struct protocol_options {
    struct tool_context *context;
    struct uv_loop_s *loop;
    protocol_send_fn *send;
    /* Bytes that were sent but not yet taken by the peer; NULL: always 0. */
    size_t (*backlog)(void *arg);
    /* No call is open: what is to end with the front is ended now (tool_context_end_sessions), and
     * its end is still told, if it comes within LIMIT_DRAIN_MS. Of JSON Lines; NULL: nothing is. */
    void (*leaving)(void *arg);
    /* All is over: no message follows. Comes once, from the loop, after
     * protocol_on_eof, protocol_on_gone or a message that asks for the end.
     * protocol_free is legal from inside it. */
    void (*finished)(void *arg);
    void *arg;
    uint64_t progress_ms; /* between progress notifications; 0: 5000 */
};

/* `options` is copied. */
typedef enum sy_code protocol_new_fn(struct protocol **ret, const struct protocol_options *options,
                                     struct sy_error *err);
protocol_new_fn protocol_mcp_new SY_NODISCARD;
protocol_new_fn protocol_jsonl_new SY_NODISCARD;

/* One line as it came, without its newline; an empty one is skipped. */
void protocol_on_line(struct protocol *p, const char *text, size_t len);
/* A line that could not be taken: SY_E_LIMIT too long, SY_E_NOMEM. */
void protocol_on_dropped(struct protocol *p, enum sy_code why);
/*
 * No more lines. MCP: running calls have LIMIT_EOF_GRACE_MS to be answered,
 * then they are cancelled. JSON Lines: what was asked for is still done and
 * answered, so that `shellyard proto < calls.jsonl` works.
 */
void protocol_on_eof(struct protocol *p);
/* Nobody reads any more, or the program is asked to stop: all calls are
 * cancelled. */
void protocol_on_gone(struct protocol *p);
/* Before any line, or once finished. Accepts NULL. */
void protocol_free(struct protocol *p);

#endif
