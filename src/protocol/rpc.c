#include "protocol/rpc.h"

#include <string.h>

#include "base/limits.h"

bool
rpc_id_read(struct rpc_id *ret, const struct js *v)
{
    /* 5.0 is no integer here: echoing it as 5 would change what came. */
    if (js_type(v) == JS_INT) {
        *ret = (struct rpc_id){.kind = RPC_ID_INTEGER};
        return js_int(&ret->number, v);
    }
    if (js_type(v) == JS_STRING && js_str_len(v) <= LIMIT_MESSAGE_ID) {
        *ret = (struct rpc_id){.kind = RPC_ID_STRING, .text = js_str_raw(v), .len = js_str_len(v)};
        return true;
    }
    return false;
}

bool
rpc_id_eq(const struct rpc_id *a, const struct rpc_id *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case RPC_ID_INTEGER:
        return a->number == b->number;
    case RPC_ID_STRING:
        return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
    case RPC_ID_NONE:
        break;
    }
    return false;
}

void
rpc_id_write(struct jw *w, const struct rpc_id *id)
{
    switch (id != NULL ? id->kind : RPC_ID_NONE) {
    case RPC_ID_INTEGER:
        jw_int(w, id->number);
        break;
    case RPC_ID_STRING:
        jw_strn(w, id->text, id->len);
        break;
    case RPC_ID_NONE:
        jw_null(w);
        break;
    }
}

void
rpc_reply_open(struct jw *w, const struct rpc_id *id)
{
    jw_object(w);
    jw_key_str(w, "jsonrpc", "2.0");
    jw_key(w, "id");
    rpc_id_write(w, id);
}

void
rpc_notification_open(struct jw *w, const char *method)
{
    jw_object(w);
    jw_key_str(w, "jsonrpc", "2.0");
    jw_key_str(w, "method", method);
    jw_key(w, "params");
    jw_object(w);
}

void
rpc_error(struct jw *w, const struct rpc_id *id, int code, const char *message)
{
    rpc_reply_open(w, id);
    jw_key(w, "error");
    jw_object(w);
    jw_key_int(w, "code", code);
    jw_key_str(w, "message", message);
    jw_end_object(w);
    jw_end_object(w);
}
