#include "terminal/strip.h"

#include <string.h>

#include "base/limits.h"
#include "base/place.h"
#include "base/utf8.h"

static void
add(struct strip *s, const char *bytes, size_t n)
{
    enum sy_code rc = n > 0 ? buf_add(s->out, bytes, n) : SY_E_OK;

    if (rc != SY_E_OK && s->rc == SY_E_OK) {
        s->rc = rc;
    }
}

static void
add_shown(struct strip *s, uint32_t c)
{
    enum sy_code rc = buf_addf(s->out, "\\u{%X}", (unsigned)c);

    if (rc != SY_E_OK && s->rc == SY_E_OK) {
        s->rc = rc;
    }
}

/* Whole characters and bytes that are none. */
static void
add_text(struct strip *s, const char *bytes, size_t n)
{
    size_t start = 0;
    size_t i = 0;

    while (i < n) {
        uint32_t c = 0;
        size_t len = 1;

        if ((unsigned char)bytes[i] >= 0x80U) {
            len = utf8_decode(&c, bytes + i, n - i);
            if (len > 0 && place_is_deceptive(c)) {
                add(s, bytes + start, i - start);
                add_shown(s, c);
                start = i + len;
            }
            len = len > 0 ? len : 1;
        }
        i += len;
    }
    add(s, bytes + start, n - start);
}

/* One byte behind those that are held; false: it is no part of their character. */
static bool
join(struct strip *s, char byte)
{
    uint32_t c = 0;

    s->held[s->held_n] = byte;
    if (utf8_decode(&c, s->held, s->held_n + 1) == s->held_n + 1) {
        size_t n = s->held_n + 1;

        s->held_n = 0;
        add_text(s, s->held, n);
        return true;
    }
    if (utf8_incomplete_tail(s->held, s->held_n + 1) == s->held_n + 1) {
        s->held_n++;
        return true;
    }
    add(s, s->held, s->held_n);
    s->held_n = 0;
    return false;
}

static void
on_text(void *arg, const char *bytes, size_t n)
{
    struct strip *s = arg;
    size_t tail = 0;

    while (n > 0 && s->held_n > 0) {
        if (join(s, bytes[0])) {
            bytes++;
            n--;
        }
    }
    tail = utf8_incomplete_tail(bytes, n);
    add_text(s, bytes, n - tail);
    if (tail > 0) {
        memcpy(s->held, bytes + n - tail, tail);
        s->held_n = tail;
    }
}

static void
flush(struct strip *s)
{
    add(s, s->held, s->held_n);
    s->held_n = 0;
}

static void
on_control(void *arg, unsigned char c)
{
    struct strip *s = arg;
    char byte = (char)c;

    if (c != 0x07U && c != 0x0EU && c != 0x0FU) {
        flush(s);
        add(s, &byte, 1);
    }
}

static void
on_sequence(void *arg, const char *seq, size_t n)
{
    (void)arg;
    (void)seq;
    (void)n;
}

static void
on_string(void *arg, char kind, const char *body, size_t n)
{
    (void)arg;
    (void)kind;
    (void)body;
    (void)n;
}

static void
on_broken(void *arg, const char *seq, size_t n)
{
    struct strip *s = arg;

    flush(s);
    add(s, "\\x1b", 4);
    on_text(s, seq, n);
}

static void
on_lost(void *arg, size_t n)
{
    struct strip *s = arg;

    flush(s);
    enum sy_code rc = buf_addf(s->out, "[%zu bytes of an escape sequence without an end]", n);

    if (rc != SY_E_OK && s->rc == SY_E_OK) {
        s->rc = rc;
    }
}

static const struct parser_sink sink = {
    .text = on_text,
    .control = on_control,
    .escape = on_sequence,
    .csi = on_sequence,
    .string = on_string,
    .broken = on_broken,
    .lost = on_lost,
};

void
strip_fini(struct strip *s)
{
    parser_fini(&s->parser);
    s->held_n = 0;
}

enum sy_code
strip_feed(struct strip *s, const char *bytes, size_t n, struct buf *out)
{
    enum sy_code rc = SY_E_OK;

    s->parser.sink = &sink;
    s->parser.arg = s;
    s->parser.skip_max = LIMIT_TERMINAL_SKIP;
    s->out = out;
    s->rc = SY_E_OK;
    rc = parser_feed(&s->parser, bytes, n);
    return s->rc != SY_E_OK ? s->rc : rc;
}

enum sy_code
strip_finish(struct strip *s, struct buf *out)
{
    s->out = out;
    s->rc = SY_E_OK;
    if (s->parser.sink != NULL) {
        parser_finish(&s->parser);
    }
    flush(s);
    return s->rc;
}

/* ESC [ ? N h, or l, of one of the modes of the alternate screen: how long it is, else 0. */
static size_t
switch_len(const char *s, size_t n, bool *ret_is_on)
{
    static const char *const modes[] = {"47", "1047", "1049"};

    if (n < 4 || memcmp(s, "\033[?", 3) != 0) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        size_t len = strlen(modes[i]);

        if (n > 3 + len && memcmp(s + 3, modes[i], len) == 0 &&
            (s[3 + len] == 'h' || s[3 + len] == 'l')) {
            *ret_is_on = s[3 + len] == 'h';
            return len + 4;
        }
    }
    return 0;
}

void
strip_alternate(struct buf *text, bool is_alternate)
{
    size_t kept = 0; /* up to there it is what stays */
    size_t from = 0; /* what comes next begins there */

    for (size_t at = 0; at < text->len;) {
        const char *escape = memchr(text->data + at, '\033', text->len - at);
        size_t i = escape != NULL ? (size_t)(escape - text->data) : text->len;
        bool is_on = false;
        size_t len = switch_len(text->data + i, text->len - i, &is_on);

        at = i + (len > 0 ? len : 1);
        if (len == 0 || is_on == is_alternate) {
            continue;
        }
        if (is_on) {
            memmove(text->data + kept, text->data + from, i - from);
            kept += i - from;
        }
        is_alternate = is_on;
        from = at;
    }
    if (from > 0) {
        memmove(text->data + kept, text->data + from, text->len - from);
        text->len = kept + text->len - from;
        text->data[text->len] = '\0';
    }
}

enum drawing { DRAWING_NONE, DRAWING_PLACE, DRAWING_SAVE, DRAWING_RESTORE };

/* Of a sequence without its ESC. Parameters of private ones and intermediates make it another. */
static enum drawing
drawing_of(const char *s, size_t n)
{
    size_t i = 1;

    if (n == 0 || s[0] != '[') {
        return n > 0 && s[0] == '7'   ? DRAWING_SAVE
               : n > 0 && s[0] == '8' ? DRAWING_RESTORE
                                      : DRAWING_NONE;
    }
    while (i < n && ((s[i] >= '0' && s[i] <= '9') || s[i] == ';')) {
        i++;
    }
    if (i == n) {
        return DRAWING_NONE;
    }
    switch (s[i]) {
    case 'H':
    case 'd':
    case 'f':
        return DRAWING_PLACE;
    case 'J':
        return i == 2 && (s[1] == '2' || s[1] == '3') ? DRAWING_PLACE : DRAWING_NONE;
    case 's':
        return i == 1 ? DRAWING_SAVE : DRAWING_NONE;
    case 'u':
        return i == 1 ? DRAWING_RESTORE : DRAWING_NONE;
    default:
        return DRAWING_NONE;
    }
}

static bool
fits(const char *text, size_t n, unsigned rows)
{
    for (const char *end = text + n; rows > 0; rows--) {
        text = memchr(text, '\n', (size_t)(end - text));
        if (text == NULL) {
            return true;
        }
        text++;
    }
    return false;
}

bool
strip_draws(const char *text, size_t n, unsigned rows)
{
    const char *end = text + n;
    const char *last = NULL;
    bool is_saved = false;

    for (const char *at = memchr(text, '\033', n); at != NULL;
         at = memchr(at + 1, '\033', (size_t)(end - at) - 1)) {
        enum drawing kind = drawing_of(at + 1, (size_t)(end - at) - 1);

        is_saved = kind == DRAWING_SAVE || (is_saved && kind != DRAWING_RESTORE);
        if (kind != DRAWING_PLACE || is_saved) {
            continue;
        }
        if (last == NULL && !fits(text, (size_t)(at - text), rows)) {
            return false;
        }
        last = at;
    }
    return last != NULL && fits(last, (size_t)(end - last), rows);
}
