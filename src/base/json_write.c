#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_internal.h"
#include "base/utf8.h"

static void
put(struct jw *w, const char *bytes, size_t n)
{
    if (w->rc == SY_E_OK) {
        w->rc = buf_add(w->out, bytes, n);
    }
}

/* Before each value or key: the comma that separates it from its sibling. */
static void
separate(struct jw *w)
{
    if (w->needs_comma) {
        put(w, ",", 1);
    }
    w->needs_comma = true;
}

static void
open_bracket(struct jw *w, const char *bracket)
{
    separate(w);
    put(w, bracket, 1);
    w->needs_comma = false;
    w->depth++;
}

static void
close_bracket(struct jw *w, const char *bracket)
{
    if (w->depth == 0) {
        w->rc = SY_E_INTERNAL;
        return;
    }
    put(w, bracket, 1);
    w->needs_comma = true;
    w->depth--;
}

void
jw_object(struct jw *w)
{
    open_bracket(w, "{");
}

void
jw_end_object(struct jw *w)
{
    close_bracket(w, "}");
}

void
jw_array(struct jw *w)
{
    open_bracket(w, "[");
}

void
jw_end_array(struct jw *w)
{
    close_bracket(w, "]");
}

/* 0: as it is; otherwise the letter of a short escape, or 'u'. */
static const char escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
    ['\t'] = 't', [0x00] = 'u',  [0x01] = 'u', [0x02] = 'u', [0x03] = 'u', [0x04] = 'u',
    [0x05] = 'u', [0x06] = 'u',  [0x07] = 'u', [0x0B] = 'u', [0x0E] = 'u', [0x0F] = 'u',
    [0x10] = 'u', [0x11] = 'u',  [0x12] = 'u', [0x13] = 'u', [0x14] = 'u', [0x15] = 'u',
    [0x16] = 'u', [0x17] = 'u',  [0x18] = 'u', [0x19] = 'u', [0x1A] = 'u', [0x1B] = 'u',
    [0x1C] = 'u', [0x1D] = 'u',  [0x1E] = 'u', [0x1F] = 'u', [0x7F] = 'u',
};

#define EACH_BYTE(c) (0x0101010101010101ULL * (c))

/* Some byte of the word is below 0x20, '"', '\\' or 0x7F. The tests are those of
 * "is there a byte less than" by subtraction: a borrow can raise a false alarm
 * only above a true one. */
static bool
word_needs_escape(const char *s)
{
    uint64_t v = 0;

    memcpy(&v, s, sizeof(v));

    uint64_t quote = v ^ EACH_BYTE('"');
    uint64_t backslash = v ^ EACH_BYTE('\\');
    uint64_t del = v ^ EACH_BYTE(0x7FU);
    uint64_t found = ((v - EACH_BYTE(0x20U)) & ~v) | ((quote - EACH_BYTE(1U)) & ~quote) |
                     ((backslash - EACH_BYTE(1U)) & ~backslash) | ((del - EACH_BYTE(1U)) & ~del);

    return (found & EACH_BYTE(0x80U)) != 0;
}

/* A piece is escaped straight into the buffer, at worst six-fold. */
#define ESCAPE_PIECE 4096U
#define ESCAPE_WORST 6U

static const char hex[] = "0123456789abcdef";

static char *
escape_byte(char *p, char c)
{
    unsigned char u = (unsigned char)c;
    char e = escapes[u];

    if (e == 0) {
        *p++ = c;
        return p;
    }
    *p++ = '\\';
    *p++ = e;
    if (e == 'u') {
        *p++ = '0';
        *p++ = '0';
        *p++ = hex[u >> 4];
        *p++ = hex[u & 0xFU];
    }
    return p;
}

/* p has room for ESCAPE_WORST * n bytes; returns the end of what was written. */
static char *
escape_into(char *p, const char *s, size_t n)
{
    size_t i = 0;

    while (n - i >= 8) {
        if (word_needs_escape(s + i)) {
            for (size_t end = i + 8; i < end; i++) {
                p = escape_byte(p, s[i]);
            }
        } else {
            memcpy(p, s + i, 8);
            p += 8;
            i += 8;
        }
    }
    for (; i < n; i++) {
        p = escape_byte(p, s[i]);
    }
    return p;
}

static void
put_escaped_valid(struct jw *w, const char *s, size_t n)
{
    while (n > 0 && w->rc == SY_E_OK) {
        size_t m = n < ESCAPE_PIECE ? n : ESCAPE_PIECE;
        struct buf *b = w->out;
        enum sy_code rc = buf_reserve(b, m * ESCAPE_WORST);

        if (rc == SY_E_OK) {
            b->len = (size_t)(escape_into(b->data + b->len, s, m) - b->data);
            b->data[b->len] = '\0';
        } else if (rc == SY_E_LIMIT) {
            /* The worst case does not fit, the real one may. */
            for (size_t i = 0; i < m; i++) {
                char one[ESCAPE_WORST];

                put(w, one, (size_t)(escape_byte(one, s[i]) - one));
            }
        } else {
            w->rc = rc;
        }
        s += m;
        n -= m;
    }
}

void
jw_strn(struct jw *w, const char *s, size_t n)
{
    separate(w);
    put(w, "\"", 1);
    if (w->rc == SY_E_OK) {
        /* It takes at least as many: grow once, refuse early. */
        w->rc = buf_reserve(w->out, n);
    }
    while (n > 0 && w->rc == SY_E_OK) {
        size_t good = utf8_valid_prefix(s, n);

        put_escaped_valid(w, s, good);
        s += good;
        n -= good;
        if (n > 0) {
            put(w, "\xEF\xBF\xBD", 3);
            s++;
            n--;
        }
    }
    put(w, "\"", 1);
}

void
jw_str(struct jw *w, const char *s)
{
    jw_strn(w, s, strlen(s));
}

void
jw_exact(struct jw *w, const char *s)
{
    size_t n = strlen(s);

    if (utf8_is_valid(s, n)) {
        jw_strn(w, s, n);
        return;
    }
    jw_object(w);
    jw_key(w, JSON_HEX);
    separate(w);
    put(w, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        const char pair[] = {hex[(unsigned char)s[i] >> 4], hex[(unsigned char)s[i] & 0xFU]};

        put(w, pair, sizeof(pair));
    }
    put(w, "\"", 1);
    jw_end_object(w);
}

void
jw_key(struct jw *w, const char *key)
{
    jw_str(w, key);
    put(w, ":", 1);
    w->needs_comma = false;
}

void
jw_int(struct jw *w, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld", (long long)v);

    separate(w);
    put(w, text, (size_t)n);
}

void
jw_bool(struct jw *w, bool v)
{
    separate(w);
    put(w, v ? "true" : "false", v ? 4 : 5);
}

void
jw_null(struct jw *w)
{
    separate(w);
    put(w, "null", 4);
}

void
jw_real(struct jw *w, double v, int decimals)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%.*f", decimals, isfinite(v) ? v : 0.0);

    separate(w);
    if (n > 0 && (size_t)n < sizeof(text)) {
        put(w, text, (size_t)n);
    } else {
        put(w, "0", 1);
    }
}

void
jw_raw(struct jw *w, const char *json, size_t n)
{
    separate(w);
    put(w, json, n);
}

void
jw_key_str(struct jw *w, const char *key, const char *s)
{
    jw_key(w, key);
    jw_str(w, s);
}

void
jw_key_strn(struct jw *w, const char *key, const char *s, size_t n)
{
    jw_key(w, key);
    jw_strn(w, s, n);
}

void
jw_key_int(struct jw *w, const char *key, int64_t v)
{
    jw_key(w, key);
    jw_int(w, v);
}

void
jw_key_bool(struct jw *w, const char *key, bool v)
{
    jw_key(w, key);
    jw_bool(w, v);
}

void
jw_key_list(struct jw *w, const char *key, char *const *list)
{
    jw_key(w, key);
    jw_array(w);
    for (; list != NULL && *list != NULL; list++) {
        jw_str(w, *list);
    }
    jw_end_array(w);
}

void
jw_key_exact(struct jw *w, const char *key, const char *s)
{
    jw_key(w, key);
    jw_exact(w, s);
}

void
jw_key_exact_list(struct jw *w, const char *key, char *const *list)
{
    jw_key(w, key);
    jw_array(w);
    for (; list != NULL && *list != NULL; list++) {
        jw_exact(w, *list);
    }
    jw_end_array(w);
}

enum sy_code
jw_done(struct jw *w)
{
    if (w->rc == SY_E_OK && w->depth != 0) {
        w->rc = SY_E_INTERNAL;
    }
    return w->rc;
}
