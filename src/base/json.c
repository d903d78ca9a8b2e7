#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/json_internal.h"
#include "base/limits.h"
#include "base/mem.h"

static pthread_once_t alloc_once = PTHREAD_ONCE_INIT;

/* jansson reports a failed allocation as a syntax error, or not at all: it
 * then leaves out a byte of a long string, and a command is another one. */
static _Thread_local bool heap_has_failed;

/*
 * Worse, when the byte left out is the closing quote of a string, jansson 2.14
 * reads and writes on behind its buffers. That buffer grows by doubling; a
 * request that may be its growth must never be answered by NULL. json_parse
 * makes sure beforehand that the memory is there, so that the second try
 * works; when it does not, stopping is what is left.
 */
static void *
heap_alloc(size_t size)
{
    void *p = mem_alloc(size);

    if (p != NULL) {
        return p;
    }
    heap_has_failed = true;

    bool may_be_growth = size >= 32 && (size & (size - 1)) == 0;

    if (!may_be_growth) {
        return NULL;
    }
    p = mem_alloc(size);
    SY_ASSERT(p != NULL);
    return p;
}

/* Is there memory for the longest string that `len` bytes of JSON can hold?
 * The old and the new buffer of jansson, up to the next power of two each. */
static bool
heap_has_room(size_t len)
{
    size_t size = 0;

    if (!size_mul(&size, len, 3) || !size_add(&size, size, 64)) {
        return false;
    }

    void *p = mem_alloc(size);

    mem_free(p);
    return p != NULL;
}

static void
use_our_heap(void)
{
    json_set_alloc_funcs(heap_alloc, mem_free);
}

static const json_t *
to_jansson(const struct js *v)
{
    return (const json_t *)(const void *)v;
}

/* For those functions of jansson that take a mutable value and do not change
 * it, or that end its life. */
static json_t *
to_mutable(const struct js *v)
{
    const union {
        const struct js *in;
        json_t *out;
    } pun = {.in = v}; /* a cast would drop the const under protest */

    return pun.out;
}

static const struct js *
from_jansson(const json_t *v)
{
    return (const struct js *)(const void *)v;
}

/* Deepest nesting of brackets outside strings, before jansson recurses. */
static bool
nests_too_deep(const char *text, size_t len)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > LIMIT_JSON_DEPTH) {
                return true;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return false;
}

enum sy_code
json_parse(struct json_doc *ret, const char *text, size_t len, struct sy_error *err)
{
    json_error_t jerr = {0};

    pthread_once(&alloc_once, use_our_heap);
    if (nests_too_deep(text, len)) {
        return sy_err_set(err, SY_E_PARSE, "JSON nests deeper than %d levels", LIMIT_JSON_DEPTH);
    }

    /* jansson passes over a NUL that follows a number. */
    const char *nul = len > 0 ? memchr(text, '\0', len) : NULL;

    if (nul != NULL) {
        return sy_err_set(err, SY_E_PARSE, "bad JSON: a NUL byte at offset %zu",
                          (size_t)(nul - text));
    }
    if (!heap_has_room(len)) {
        return sy_err_nomem(err);
    }
    heap_has_failed = false;

    json_t *root =
        json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &jerr);

    if (heap_has_failed) {
        json_decref(root);
        return sy_err_nomem(err);
    }
    if (root == NULL) {
        return sy_err_set(err, SY_E_PARSE, "bad JSON at line %d, column %d: %s", jerr.line,
                          jerr.column, jerr.text);
    }
    ret->root = from_jansson(root);
    return SY_E_OK;
}

void
json_doc_fini(struct json_doc *doc)
{
    if (doc->root != NULL) {
        json_decref(to_mutable(doc->root));
        doc->root = NULL;
    }
}

enum js_type
js_type(const struct js *v)
{
    if (v == NULL) {
        return JS_NULL;
    }
    switch (json_typeof(to_jansson(v))) {
    case JSON_OBJECT:
        return JS_OBJECT;
    case JSON_ARRAY:
        return JS_ARRAY;
    case JSON_STRING:
        return JS_STRING;
    case JSON_INTEGER:
        return JS_INT;
    case JSON_REAL:
        return JS_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return JS_BOOL;
    case JSON_NULL:
        break;
    }
    return JS_NULL;
}

const char *
js_type_name(enum js_type type)
{
    static const char *const names[] = {
        [JS_NULL] = "null",     [JS_BOOL] = "boolean", [JS_INT] = "integer",   [JS_REAL] = "number",
        [JS_STRING] = "string", [JS_ARRAY] = "array",  [JS_OBJECT] = "object",
    };

    return names[type];
}

const struct js *
js_get(const struct js *v, const char *key)
{
    return v != NULL ? from_jansson(json_object_get(to_jansson(v), key)) : NULL;
}

const char *
js_str_raw(const struct js *v)
{
    return v != NULL ? json_string_value(to_jansson(v)) : NULL;
}

size_t
js_str_len(const struct js *v)
{
    return v != NULL ? json_string_length(to_jansson(v)) : 0;
}

const char *
js_str(const struct js *v)
{
    const char *s = js_str_raw(v);

    return s != NULL && strlen(s) == js_str_len(v) ? s : NULL;
}

const char *
js_not_text(struct js_shown *ret, const struct js *v)
{
    if (js_type(v) != JS_STRING) {
        return v != NULL ? js_type_name(js_type(v)) : "absent";
    }
    (void)snprintf(ret->text, sizeof(ret->text), "one with a NUL at byte %zu",
                   strlen(js_str_raw(v)));
    return ret->text;
}

bool
js_int(int64_t *ret, const struct js *v)
{
    if (v == NULL) {
        return false;
    }
    if (json_is_integer(to_jansson(v))) {
        *ret = json_integer_value(to_jansson(v));
        return true;
    }
    if (json_is_real(to_jansson(v))) {
        double d = json_real_value(to_jansson(v));

        if (d >= -9007199254740992.0 && d <= 9007199254740992.0 && floor(d) == d) {
            *ret = (int64_t)d;
            return true;
        }
    }
    return false;
}

bool
js_bool(bool *ret, const struct js *v)
{
    if (v == NULL || !json_is_boolean(to_jansson(v))) {
        return false;
    }
    *ret = json_is_true(to_jansson(v));
    return true;
}

size_t
js_count(const struct js *v)
{
    switch (js_type(v)) {
    case JS_ARRAY:
        return json_array_size(to_jansson(v));
    case JS_OBJECT:
        return json_object_size(to_jansson(v));
    case JS_NULL:
    case JS_BOOL:
    case JS_INT:
    case JS_REAL:
    case JS_STRING:
        break;
    }
    return 0;
}

const struct js *
js_at(const struct js *v, size_t i)
{
    return v != NULL ? from_jansson(json_array_get(to_jansson(v), i)) : NULL;
}

bool
js_next(const struct js *object, void **it, const char **ret_key, const struct js **ret_value)
{
    if (js_type(object) != JS_OBJECT) {
        return false;
    }

    json_t *o = to_mutable(object);

    *it = *it == NULL ? json_object_iter(o) : json_object_iter_next(o, *it);
    if (*it == NULL) {
        return false;
    }
    *ret_key = json_object_iter_key(*it);
    *ret_value = from_jansson(json_object_iter_value(*it));
    return true;
}

static int
digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* As jw_exact writes them, and no other spelling of the same. */
static enum sy_code
add_hex(struct buf *ret, const char *digits, size_t n)
{
    size_t before = ret->len;
    enum sy_code rc = n > 0 && n % 2 == 0 ? SY_E_OK : SY_E_PARSE;

    for (size_t i = 0; i < n && rc == SY_E_OK; i += 2) {
        int high = digit_of(digits[i]);
        int low = digit_of(digits[i + 1]);
        int byte = high * 16 + low;

        rc = high >= 0 && low >= 0 && byte != 0 ? buf_add_char(ret, (char)byte) : SY_E_PARSE;
    }
    if (rc != SY_E_OK && ret->data != NULL) {
        ret->len = before;
        ret->data[before] = '\0';
    }
    return rc;
}

enum sy_code
js_exact(struct buf *ret, const struct js *v)
{
    const char *text = js_str(v);
    const char *digits = js_count(v) == 1 ? js_str(js_get(v, JSON_HEX)) : NULL;

    if (text != NULL) {
        return buf_add_str(ret, text);
    }
    return digits != NULL ? add_hex(ret, digits, strlen(digits)) : SY_E_PARSE;
}

static int
dump_piece(const char *bytes, size_t n, void *arg)
{
    struct jw *w = arg;

    /* Not every caller in jansson looks at the result: the error must stick. */
    if (w->rc == SY_E_OK) {
        w->rc = buf_add(w->out, bytes, n);
    }
    return w->rc == SY_E_OK ? 0 : -1;
}

enum sy_code
js_dump(struct buf *b, const struct js *v)
{
    struct jw w = {.out = b};

    if (v == NULL) {
        return buf_add_str(b, "null");
    }
    heap_has_failed = false;

    int failed = json_dump_callback(to_jansson(v), dump_piece, &w, JSON_COMPACT | JSON_ENCODE_ANY);

    if (w.rc != SY_E_OK) {
        return w.rc;
    }
    return failed != 0 || heap_has_failed ? SY_E_NOMEM : SY_E_OK;
}

void
jw_value(struct jw *w, const struct js *v)
{
    jw_raw(w, "", 0); /* the comma */
    if (w->rc == SY_E_OK) {
        w->rc = js_dump(w->out, v);
    }
}
