#include "terminal/parser.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"

#define ESC 0x1BU
#define BEL 0x07U

static bool
is_text(unsigned char c)
{
    return (c >= 0x20U && c != 0x7FU) || (c >= '\b' && c <= '\r');
}

#define BLOCK      64U
#define SHORT_TEXT 16U

size_t
parser_text_len(const char *bytes, size_t n)
{
    const unsigned char *u = (const unsigned char *)bytes;
    size_t i = 0;

    /* Between colours are a few characters. */
    for (; i < n && i < SHORT_TEXT; i++) {
        if (!is_text(u[i])) {
            return i;
        }
    }
    /* Without a way out of the inner loop, so that the compiler can use vectors. */
    for (; n - i >= BLOCK; i += BLOCK) {
        unsigned char special = 0;

        for (size_t j = 0; j < BLOCK; j++) {
            unsigned char c = u[i + j];

            special |=
                (unsigned char)(((c < 0x20U) & ((unsigned char)(c - 8U) > 5U)) | (c == 0x7FU));
        }
        if (special != 0) {
            break;
        }
    }
    while (i < n && is_text(u[i])) {
        i++;
    }
    return i;
}

void
parser_fini(struct parser *p)
{
    buf_fini(&p->string);
    p->state = PARSER_GROUND;
}

static void
to_ground(struct parser *p)
{
    p->state = PARSER_GROUND;
    p->n = 0;
    p->skipped = 0;
    /* Long ones are rare: their memory is not kept. */
    if (p->string.cap > PARSER_SEQUENCE_MAX) {
        buf_fini(&p->string);
    }
    buf_reset(&p->string);
}

static void
tell_broken(struct parser *p)
{
    bool is_string = p->state == PARSER_STRING || p->state == PARSER_STRING_ESCAPE;

    if (p->sink->lost != NULL && p->skipped > 0) {
        p->sink->lost(p->arg, p->skipped + (is_string ? p->string.len : p->n));
    } else if (p->sink->broken != NULL && p->skipped == 0) {
        if (is_string) {
            /* Its kind was put in front. */
            p->sink->broken(p->arg, buf_view(&p->string), p->string.len);
        } else {
            p->sink->broken(p->arg, p->seq, p->n);
        }
    }
    to_ground(p);
}

/* One more byte is too many: false when this is no sequence any more. */
static bool
skip_one(struct parser *p)
{
    if (p->skipped >= p->skip_max) {
        tell_broken(p);
        return false;
    }
    p->skipped++;
    return true;
}

static bool
collect(struct parser *p, char c)
{
    if (p->n == sizeof(p->seq)) {
        return skip_one(p);
    }
    p->seq[p->n++] = c;
    return true;
}

static void
tell_text(struct parser *p, char c)
{
    p->sink->text(p->arg, &c, 1);
}

/* A control inside of a sequence that is none of a string. True: it belonged there. */
static bool
take_control(struct parser *p, unsigned char c)
{
    if (c == 0x18U || c == 0x1AU) { /* CAN, SUB */
        tell_broken(p);
        return true;
    }
    if (c == ESC) {
        tell_broken(p);
        p->state = PARSER_ESCAPE;
        return true;
    }
    if (c < 0x20U || c == 0x7FU) {
        if (is_text(c)) {
            tell_text(p, (char)c);
        } else {
            p->sink->control(p->arg, c);
        }
        return true;
    }
    return false;
}

static enum sy_code
open_string(struct parser *p, char kind)
{
    enum sy_code rc = SY_E_OK;

    p->string.max = LIMIT_TERMINAL_STRING;
    p->kind = kind;
    rc = buf_add_char(&p->string, kind);
    if (rc != SY_E_OK) {
        to_ground(p);
        return rc;
    }
    p->state = PARSER_STRING;
    return SY_E_OK;
}

/* Returns whether the byte was used up. */
static bool
in_escape(struct parser *p, unsigned char c, enum sy_code *rc)
{
    if (take_control(p, c)) {
        return true;
    }
    if (c >= 0x80U) {
        tell_broken(p);
        return false;
    }
    if (p->n == 0 && c == '[') {
        p->state = PARSER_CSI;
        p->seq[p->n++] = '['; /* for tell_broken */
        return true;
    }
    if (p->n == 0 && strchr("]PX^_", c) != NULL) {
        *rc = open_string(p, (char)c);
        return true;
    }
    if (!collect(p, (char)c)) {
        return false;
    }
    if (c >= 0x30U) {
        if (p->skipped == 0) {
            p->sink->escape(p->arg, p->seq, p->n);
        }
        to_ground(p);
    }
    return true;
}

static bool
in_csi(struct parser *p, unsigned char c)
{
    bool is_final = c >= 0x40U && c <= 0x7EU;

    if (take_control(p, c)) {
        return true;
    }
    /* A parameter behind an intermediate byte, or what is no ASCII. */
    if (c >= 0x80U || (c >= 0x30U && c <= 0x3FU && p->n > 1 && p->seq[p->n - 1] < 0x30)) {
        tell_broken(p);
        return false;
    }
    if (!collect(p, (char)c)) {
        return false;
    }
    if (is_final) {
        if (p->skipped == 0) {
            p->sink->csi(p->arg, p->seq + 1, p->n - 1);
        }
        to_ground(p);
    }
    return true;
}

static void
end_string(struct parser *p, bool is_bell)
{
    p->is_bell = is_bell;
    if (p->skipped == 0) {
        p->sink->string(p->arg, p->kind, buf_view(&p->string) + 1, p->string.len - 1);
    }
    to_ground(p);
}

/* Takes bytes of a control string; returns how many. */
static size_t
in_string(struct parser *p, const char *bytes, size_t n, enum sy_code *rc)
{
    const unsigned char *u = (const unsigned char *)bytes;
    size_t i = 0;

    while (i < n && u[i] >= 0x20U && u[i] != 0x7FU) {
        i++;
    }
    if (i > 0 && p->skipped == 0) {
        size_t room = LIMIT_TERMINAL_STRING - p->string.len;

        *rc = buf_add(&p->string, bytes, i < room ? i : room);
        if (*rc != SY_E_OK) {
            to_ground(p);
            return i;
        }
        if (i > room) {
            return skip_one(p) ? room + 1 : room;
        }
    } else if (i > 0) {
        size_t room = p->skip_max - p->skipped;

        if (i > room) {
            tell_broken(p);
            return room;
        }
        p->skipped += i;
        return i;
    }
    if (i > 0 || n == 0) {
        return i;
    }
    if (u[0] == BEL) {
        end_string(p, true);
        return 1;
    }
    if (u[0] == ESC) {
        p->state = PARSER_STRING_ESCAPE;
        return 1;
    }
    /* Another control: no string, and the control is one by itself. */
    tell_broken(p);
    return u[0] == 0x18U || u[0] == 0x1AU ? 1 : 0;
}

static bool
in_string_escape(struct parser *p, unsigned char c)
{
    if (c == '\\') {
        end_string(p, false);
        return true;
    }
    tell_broken(p);
    p->state = PARSER_ESCAPE;
    return false;
}

/* Length of a whole CSI sequence without intermediate bytes at s, else 0: most sequences are
 * such, and need not be collected byte by byte. */
static size_t
whole_csi_len(const char *s, size_t n)
{
    size_t i = 2;

    if (n < 3 || s[1] != '[') {
        return 0;
    }
    n = n < PARSER_SEQUENCE_MAX ? n : PARSER_SEQUENCE_MAX;
    while (i < n && s[i] >= 0x30 && s[i] <= 0x3F) {
        i++;
    }
    return i < n && s[i] >= 0x40 && s[i] <= 0x7E ? i + 1 : 0;
}

static size_t
in_ground(struct parser *p, const char *bytes, size_t n)
{
    size_t len = parser_text_len(bytes, n);

    if (len > 0) {
        p->sink->text(p->arg, bytes, len);
        return len;
    }
    if ((unsigned char)bytes[0] == ESC) {
        len = whole_csi_len(bytes, n);
        if (len > 0) {
            p->sink->csi(p->arg, bytes + 2, len - 2);
            return len;
        }
        p->state = PARSER_ESCAPE;
    } else {
        p->sink->control(p->arg, (unsigned char)bytes[0]);
    }
    return 1;
}

enum sy_code
parser_feed(struct parser *p, const char *bytes, size_t n)
{
    enum sy_code rc = SY_E_OK;
    size_t i = 0;

    while (i < n) {
        unsigned char c = (unsigned char)bytes[i];
        enum sy_code now = SY_E_OK;

        switch (p->state) {
        case PARSER_GROUND:
            i += in_ground(p, bytes + i, n - i);
            break;
        case PARSER_ESCAPE:
            i += in_escape(p, c, &now) ? 1U : 0U;
            break;
        case PARSER_CSI:
            i += in_csi(p, c) ? 1U : 0U;
            break;
        case PARSER_STRING:
            i += in_string(p, bytes + i, n - i, &now);
            break;
        case PARSER_STRING_ESCAPE:
            i += in_string_escape(p, c) ? 1U : 0U;
            break;
        }
        rc = now != SY_E_OK ? now : rc;
    }
    return rc;
}

void
parser_finish(struct parser *p)
{
    if (p->state != PARSER_GROUND) {
        tell_broken(p);
    }
}
