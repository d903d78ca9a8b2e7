#ifndef SY_BASE_JSON_H
#define SY_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Reading. A document is parsed whole (jansson behind it): strict UTF-8,
 * duplicate keys refused, LIMIT_JSON_DEPTH levels. "\u0000" is accepted, so a
 * string has a length and may hold NUL; js_str refuses those.
 */
struct js; /* a borrowed JSON value inside a struct json_doc */

struct json_doc {
    const struct js *root;
};

/* Parses `len` bytes; the error tells line and column. Any root type. */
enum sy_code json_parse(struct json_doc *ret, const char *text, size_t len,
                        struct sy_error *err) SY_NODISCARD;
void json_doc_fini(struct json_doc *doc);

enum js_type { JS_NULL, JS_BOOL, JS_INT, JS_REAL, JS_STRING, JS_ARRAY, JS_OBJECT };

enum js_type js_type(const struct js *v);
/* "null", "boolean", "integer", "number", "string", "array", "object". */
const char *js_type_name(enum js_type type);
/* Member of an object; NULL when it is absent (or v is NULL or no object). */
const struct js *js_get(const struct js *v, const char *key);
/* NULL unless v is a string without NUL bytes. */
const char *js_str(const struct js *v);
/* What is in the place of such a string, for a sentence: "absent", "integer", "one with a NUL at
 * byte 3". */
struct js_shown {
    char text[48];
};
const char *js_not_text(struct js_shown *ret, const struct js *v);
/* Length in bytes of a string value, NUL bytes included; 0 for other types. */
size_t js_str_len(const struct js *v);
/* The bytes of a string value (may hold NUL), NULL for other types. */
const char *js_str_raw(const struct js *v);
/* false, *ret untouched, unless v is an integer (or true/false). A real that
 * is a whole number, as some clients send (5000.0), counts as an integer. */
bool js_int(int64_t *ret, const struct js *v) SY_NODISCARD;
bool js_bool(bool *ret, const struct js *v) SY_NODISCARD;
/* Elements of an array or members of an object; 0 for other types. */
size_t js_count(const struct js *v);
const struct js *js_at(const struct js *v, size_t i);
/*
 * Walks an object: start with *it = NULL; gives key and value until false.
 */
bool js_next(const struct js *object, void **it, const char **ret_key, const struct js **ret_value);
/* Appends the bytes that jw_exact has written; a plain string is one too. SY_E_PARSE, and *ret as
 * it was: v is no such value, or holds NUL. */
enum sy_code js_exact(struct buf *ret, const struct js *v) SY_NODISCARD;
/* Appends the value as compact JSON. */
enum sy_code js_dump(struct buf *b, const struct js *v) SY_NODISCARD;

/*
 * Writing, straight into a buffer with our own escaper (a large text field is
 * copied once). Errors stick: check jw_done alone. Commas are put by the
 * writer. The caller keeps the nesting right; jw_done gives SY_E_INTERNAL if
 * something is still open.
 *
 *     struct jw w = {.out = &b};
 *     jw_object(&w);
 *     jw_key_str(&w, "status", "exited");
 *     jw_end_object(&w);
 *     rc = jw_done(&w);
 */
struct jw {
    struct buf *out;
    enum sy_code rc;
    uint32_t depth;
    bool needs_comma;
};

void jw_object(struct jw *w);
void jw_end_object(struct jw *w);
void jw_array(struct jw *w);
void jw_end_array(struct jw *w);
void jw_key(struct jw *w, const char *key);
void jw_str(struct jw *w, const char *s);
/* Any bytes; invalid UTF-8 becomes U+FFFD so that the document stays valid. */
void jw_strn(struct jw *w, const char *s, size_t n);
/*
 * What another program has to read as the same bytes, as the name of a file: a string where it is
 * UTF-8, else {"hex": "2f6c6174e9"}.
 */
void jw_exact(struct jw *w, const char *s);
void jw_int(struct jw *w, int64_t v);
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
/* A finite number with `decimals` places. */
void jw_real(struct jw *w, double v, int decimals);
/* Trusted, already valid JSON text. */
void jw_raw(struct jw *w, const char *json, size_t n);
void jw_value(struct jw *w, const struct js *v);
void jw_key_str(struct jw *w, const char *key, const char *s);
void jw_key_strn(struct jw *w, const char *key, const char *s, size_t n);
void jw_key_int(struct jw *w, const char *key, int64_t v);
void jw_key_bool(struct jw *w, const char *key, bool v);
/* An array of strings; NULL-terminated, NULL is an empty one. */
void jw_key_list(struct jw *w, const char *key, char *const *list);
/* The same two with jw_exact. */
void jw_key_exact(struct jw *w, const char *key, const char *s);
void jw_key_exact_list(struct jw *w, const char *key, char *const *list);
enum sy_code jw_done(struct jw *w) SY_NODISCARD;

#endif
