#ifndef SY_PROTOCOL_RPC_H
#define SY_PROTOCOL_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* JSON-RPC 2.0: what every version of MCP shares. */
enum rpc_code {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_VERSION = -32022 /* of MCP: the version that a request names is not served */
};

/* A request id or a progress token; echoed with the type that it came with.
 * The text is borrowed. */
enum rpc_id_kind { RPC_ID_NONE, RPC_ID_INTEGER, RPC_ID_STRING };

struct rpc_id {
    enum rpc_id_kind kind;
    int64_t number;
    const char *text; /* may hold NUL */
    size_t len;
};

/* false unless v is an integer or a string of at most LIMIT_MESSAGE_ID bytes. */
bool rpc_id_read(struct rpc_id *ret, const struct js *v) SY_NODISCARD;
bool rpc_id_eq(const struct rpc_id *a, const struct rpc_id *b);
/*
 * The id of a request that is no JSON (text that is no UTF-8 in one of its strings, say), if it can
 * be told: its sender waits for an answer with that id, and for no other. false: none, or several,
 * or it may be no request. `doc` then holds its text.
 */
bool rpc_id_recover(struct rpc_id *ret, struct json_doc *doc, const char *text,
                    size_t len) SY_NODISCARD;
/* Is the text no JSON to us for an id that is an integer of more than 64 bits? It is JSON to
 * others. */
bool rpc_id_is_too_big(const char *text, size_t len);
/* NULL and RPC_ID_NONE give null. */
void rpc_id_write(struct jw *w, const struct rpc_id *id);

/* {"jsonrpc":"2.0","id":ID,  ...the caller adds result or error and ends it. */
void rpc_reply_open(struct jw *w, const struct rpc_id *id);
/* {"jsonrpc":"2.0","method":METHOD,"params":{  ...the caller ends both. */
void rpc_notification_open(struct jw *w, const char *method);
/* A whole error reply. */
void rpc_error(struct jw *w, const struct rpc_id *id, int code, const char *message);
/* One with data: an object, whose members the caller writes between the two. */
void rpc_error_data_open(struct jw *w, const struct rpc_id *id, int code, const char *message);
void rpc_error_data_close(struct jw *w);

#endif
