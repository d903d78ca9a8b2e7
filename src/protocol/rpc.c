#include "protocol/rpc.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

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

/* Behind the string that begins at `at`; `len` if it does not end. */
static size_t
skip_string(const char *text, size_t at, size_t len)
{
    for (at++; at < len && text[at] != '"'; at++) {
        at += text[at] == '\\' ? 1 : 0;
    }
    return at < len ? at + 1 : len;
}

static bool
is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static size_t
skip_blanks(const char *text, size_t at, size_t len)
{
    while (at < len && is_one_of(text[at], " \t\r\n")) {
        at++;
    }
    return at;
}

static bool
is_word(const char *text, size_t at, size_t end, const char *word)
{
    return str_is(word, text + at, end - at);
}

/* What stands at the top of something like an object. */
struct outline {
    size_t id; /* where its value begins */
    size_t n_ids;
    bool has_method;
};

static void
outline_key(struct outline *o, const char *text, size_t at, size_t end, size_t len)
{
    size_t colon = skip_blanks(text, end, len);

    if (colon == len || text[colon] != ':') {
        return;
    }
    if (is_word(text, at, end, "\"id\"")) {
        o->id = skip_blanks(text, colon + 1, len);
        o->n_ids++;
    }
    o->has_method = o->has_method || is_word(text, at, end, "\"method\"");
}

static struct outline
outline_of(const char *text, size_t len)
{
    struct outline o = {0};
    size_t depth = 0;

    for (size_t i = 0; i < len;) {
        if (text[i] == '"') {
            size_t end = skip_string(text, i, len);

            if (depth == 1) {
                outline_key(&o, text, i, end, len);
            }
            i = end;
            continue;
        }
        if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
            depth--;
        }
        i++;
    }
    return o;
}

/* Where the text of the id of what seems to be one request begins and ends. false: it is none. */
static bool
find_id(const char *text, size_t len, size_t *ret_at, size_t *ret_end)
{
    size_t first = skip_blanks(text, 0, len);
    struct outline o = outline_of(text, len);
    size_t end = o.id;

    if (first == len || text[first] != '{' || o.n_ids != 1 || !o.has_method || o.id == len) {
        return false;
    }
    if (text[end] == '"') {
        end = skip_string(text, end, len);
    } else {
        while (end < len && !is_one_of(text[end], ",}] \t\r\n")) {
            end++;
        }
    }
    *ret_at = o.id;
    *ret_end = end;
    return true;
}

bool
rpc_id_recover(struct rpc_id *ret, struct json_doc *doc, const char *text, size_t len)
{
    size_t at = 0;
    size_t end = 0;

    return find_id(text, len, &at, &end) && json_parse(doc, text + at, end - at, NULL) == SY_E_OK &&
           rpc_id_read(ret, doc->root);
}

bool
rpc_id_is_too_big(const char *text, size_t len)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    size_t at = 0;
    size_t end = 0;

    if (!find_id(text, len, &at, &end) || json_parse(&doc, text + at, end - at, NULL) == SY_E_OK) {
        return false;
    }

    size_t digits = at + (text[at] == '-' ? 1 : 0);

    if (digits == end || (text[digits] == '0' && digits + 1 < end)) {
        return false; /* no number of JSON */
    }
    while (digits < end && text[digits] >= '0' && text[digits] <= '9') {
        digits++;
    }
    return digits == end;
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

static void
error_open(struct jw *w, const struct rpc_id *id, int code, const char *message)
{
    rpc_reply_open(w, id);
    jw_key(w, "error");
    jw_object(w);
    jw_key_int(w, "code", code);
    jw_key_str(w, "message", message);
}

static void
error_close(struct jw *w)
{
    jw_end_object(w);
    jw_end_object(w);
}

void
rpc_error(struct jw *w, const struct rpc_id *id, int code, const char *message)
{
    error_open(w, id, code, message);
    error_close(w);
}

void
rpc_error_data_open(struct jw *w, const struct rpc_id *id, int code, const char *message)
{
    error_open(w, id, code, message);
    jw_key(w, "data");
    jw_object(w);
}

void
rpc_error_data_close(struct jw *w)
{
    jw_end_object(w);
    error_close(w);
}
