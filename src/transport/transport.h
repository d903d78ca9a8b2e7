#ifndef SY_TRANSPORT_TRANSPORT_H
#define SY_TRANSPORT_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/protocol.h"

/*
 * Bytes to messages and back. The stdio transport carries newline-delimited
 * messages over two descriptors: pipes, sockets, terminals, files, /dev/null.
 * Everything happens on the loop's thread and never blocks it on a peer.
 */

/*
 * Takes descriptors 0 and 1 away for the protocol: moves them to close-on-exec
 * ones above 2, puts /dev/null on 0 and standard error on 1, so that nothing
 * that this process or a child prints can reach the peer. Call it first.
 */
enum sy_code transport_claim_stdio(int *ret_in, int *ret_out, struct sy_error *err) SY_NODISCARD;

/* One front served over two descriptors. */
struct stdio_server;

struct stdio_server_options {
    struct uv_loop_s *loop;
    struct tool_context *context;
    protocol_new_fn *front; /* protocol_mcp_new, protocol_jsonl_new */
    int in_fd;              /* taken, as is out_fd, also when the server can't be made */
    int out_fd;
    /* As protocol_options.leaving. */
    void (*leaving)(void *arg);
    /*
     * Comes once, from the loop: all calls are over, what could be sent is
     * sent, the handles are closed. stdio_server_free is legal from inside.
     * `why` is SY_E_OK for an orderly end, else what was wrong with the peer.
     */
    void (*ended)(void *arg, const struct sy_error *why);
    void *arg;
};

/* SIGPIPE must be ignored. */
enum sy_code stdio_server_new(struct stdio_server **ret, const struct stdio_server_options *options,
                              struct sy_error *err) SY_NODISCARD;
/* Ends it from outside (SIGTERM): calls are cancelled, `ended` follows. */
void stdio_server_stop(struct stdio_server *s);
/* After `ended`. Accepts NULL. */
void stdio_server_free(struct stdio_server *s);

#endif
