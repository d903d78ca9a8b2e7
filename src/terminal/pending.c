#include "terminal/terminal_internal.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"

/*
 * What waits to be drawn. Plain are text, SGR and what changes only the row of the cursor. A
 * stretch of plain bytes that begins in column 0 and has twice as many newlines
 * as the screen has rows makes the same screen whatever was before: after the first half the
 * cursor is in the last row for sure, after the second all rows have come from below. What
 * precedes it need not be drawn, except for what stays: the pen (SGR), and sticky states.
 * The proof is longer in docs/internals/terminal.md.
 */

size_t
pending_max(const struct terminal *t)
{
    size_t max = (size_t)t->opt.rows * t->opt.cols * 4;

    max = max > LIMIT_TERMINAL_LOG ? max : LIMIT_TERMINAL_LOG;
    return max < LIMIT_TERMINAL_LOG_MOST ? max : LIMIT_TERMINAL_LOG_MOST;
}

static void
drop(struct terminal *t, size_t n)
{
    buf_drop(&t->log, n);
    t->fed = t->fed > n ? t->fed - n : 0;
    t->plain_from = t->plain_from > n ? t->plain_from - n : 0;
}

void
pending_reset(struct terminal *t)
{
    vt_free(t->vt);
    t->vt = NULL;
    t->is_pristine = true;
    t->uses_alt = false;
    t->sticky = 0;
    t->fed = 0;
    t->plain_from = 0;
    buf_reset(&t->log);
}

void
pending_lose(struct terminal *t)
{
    vt_free(t->vt);
    t->vt = NULL;
    t->fed = 0;
    if (!t->is_pristine) {
        t->state.lost++;
        pending_reset(t);
        t->state.alt_screen = false;
    }
}

void
pending_resized(struct terminal *t)
{
    if (t->is_pristine) {
        vt_free(t->vt);
        t->vt = NULL;
        t->fed = 0;
    }
    t->sticky &= ~(STICKY_REGION | STICKY_MARGINS | STICKY_ORIGIN);
    t->modes &= ~(1U << MODE_MARGINS | 1U << MODE_ORIGIN);
    t->plain_from = t->log.len;
}

static enum sy_code
draw_bytes(struct terminal *t, const char *bytes, size_t n)
{
    enum sy_code rc = t->uses_alt ? vt_use_alt(t->vt) : SY_E_OK;

    if (rc == SY_E_OK) {
        rc = vt_write(t->vt, bytes, n);
    }
    if (rc != SY_E_OK) {
        pending_lose(t);
    }
    return rc;
}

enum sy_code
pending_draw(struct terminal *t)
{
    size_t end = t->log.len - utf8_incomplete_tail(buf_view(&t->log), t->log.len);
    enum sy_code rc = SY_E_OK;

    if (t->vt == NULL) {
        t->fed = 0;
        t->vt = vt_new(t->opt.rows, t->opt.cols);
        if (t->vt == NULL) {
            return SY_E_NOMEM;
        }
    }
    if (end > t->fed) {
        rc = draw_bytes(t, t->log.data + t->fed, end - t->fed);
        if (rc != SY_E_OK) {
            return rc;
        }
        t->fed = end;
    }
    if (!t->is_pristine) {
        drop(t, t->fed);
    }
    return SY_E_OK;
}

/* The first character after `at` is there and needs none before it. */
static bool
begins_clean(const struct terminal *t, size_t at)
{
    const char *s = t->log.data;
    size_t n = t->log.len;
    uint32_t c = 0;

    while (at < n && (unsigned char)s[at] < 0x20U) {
        at += s[at] == '\x1b' ? vt_sequence_len(s + at, n - at) : 1;
    }
    if (at >= n) {
        return false;
    }
    return (unsigned char)s[at] < 0x80U ||
           (utf8_decode(&c, s + at, n - at) > 0 && !vt_is_zero_width(c));
}

/* Where the stretch begins from which on the log has to be kept; 0: nowhere. */
static size_t
find_stretch(const struct terminal *t)
{
    const char *s = t->log.data;
    size_t end = t->log.len;
    size_t newlines = 0;

    while (end > t->plain_from) {
        const char *newline = memrchr(s + t->plain_from, '\n', end - t->plain_from);

        if (newline == NULL) {
            return 0;
        }
        end = (size_t)(newline - s);
        if (newlines >= 2 * (size_t)t->opt.rows && end > t->plain_from && s[end - 1] == '\r' &&
            begins_clean(t, end + 1)) {
            return end + 1;
        }
        newlines++;
    }
    return 0;
}

static bool
is_sgr(const char *s, size_t len)
{
    return len > 2 && s[1] == '[' && s[len - 1] == 'm';
}

/* It says what the pen is, whatever it was. */
static bool
is_sgr_reset(const char *s, size_t len)
{
    return len == 3 || (len == 4 && s[2] == '0') || (s[2] == '0' && s[3] == ';');
}

/* The next SGR sequence of the log in [from, to): its offset and length; false: none. */
static bool
next_sgr(const struct terminal *t, size_t *from, size_t to, size_t *ret_len)
{
    const char *s = t->log.data;

    while (*from < to) {
        const char *esc = memchr(s + *from, '\x1b', to - *from);

        if (esc == NULL) {
            return false;
        }
        *from = (size_t)(esc - s);
        *ret_len = vt_sequence_len(esc, to - *from);
        if (is_sgr(esc, *ret_len)) {
            return true;
        }
        *from += *ret_len;
    }
    return false;
}

/* The SGR sequences of the log in [from, to), from the last on that resets all; says
 * whether there is such a one. */
static enum sy_code
pen_of(const struct terminal *t, size_t from, size_t to, struct buf *pen, bool *ret_is_reset)
{
    enum sy_code rc = SY_E_OK;
    size_t len = 0;

    *ret_is_reset = false;
    for (size_t i = from; next_sgr(t, &i, to, &len); i += len) {
        if (is_sgr_reset(t->log.data + i, len)) {
            *ret_is_reset = true;
            from = i;
        }
    }
    for (; rc == SY_E_OK && next_sgr(t, &from, to, &len); from += len) {
        rc = buf_add(pen, t->log.data + from, len);
    }
    return rc;
}

/* An emulator that is there gets what the log has no longer, [fed, to). */
static enum sy_code
catch_up(struct terminal *t, size_t to, size_t from_pen, const struct buf *pen)
{
    enum sy_code rc = SY_E_OK;

    if (t->vt == NULL || t->fed >= to) {
        return SY_E_OK;
    }
    if (t->fed < from_pen) {
        rc = draw_bytes(t, t->log.data + t->fed, from_pen - t->fed);
    }
    return rc == SY_E_OK ? draw_bytes(t, pen->data, pen->len) : rc;
}

/* Puts `head` in front of what is left of the log behind `keep` and `to`. */
static void
splice(struct terminal *t, size_t keep, size_t to, const struct buf *head)
{
    size_t fed = t->fed > to ? t->fed - to : 0;
    size_t tail = t->log.len - to;

    /* It fits: what was taken out is longer than its own pen. */
    memmove(t->log.data + keep + head->len, t->log.data + to, tail);
    memcpy(t->log.data + keep, head->data, head->len);
    t->log.len = keep + head->len + tail;
    t->log.data[t->log.len] = '\0';
    t->fed = t->vt != NULL ? keep + head->len + fed : 0;
    t->plain_from = keep;
}

static bool
is_printable(char c)
{
    return c >= 0x20 && c < 0x7F;
}

#define BLOCK 64U

/* Where the printable bytes begin that s[0 .. n) ends with, not before `from`. */
static size_t
printable_from(const char *s, size_t from, size_t n)
{
    while (n - from >= BLOCK) {
        const unsigned char *u = (const unsigned char *)s + n - BLOCK;
        unsigned char other = 0;

        for (size_t i = 0; i < BLOCK; i++) {
            other |= (unsigned char)((unsigned char)(u[i] - 0x20U) > 0x5EU);
        }
        if (other != 0) {
            break;
        }
        n -= BLOCK;
    }
    while (n > from && is_printable(s[n - 1])) {
        n--;
    }
    return n;
}

/*
 * The same for a line without an end: each row full of characters that have one column is
 * as good as a newline, and leaves the column as it was. Whole rows are taken out of the
 * printable bytes at the end of the log; twice as many as the screen has stay behind them.
 */
static bool
cut_line(struct terminal *t)
{
    size_t cols = t->opt.cols;
    size_t keep = (2 * (size_t)t->opt.rows + 1) * cols;
    size_t start = printable_from(t->log.data, t->plain_from, t->log.len);
    size_t cut = 0;

    if (start > 0 && t->log.data[start - 1] == '\x1b') {
        start += vt_sequence_len(t->log.data + start - 1, t->log.len - start + 1) - 1;
    }
    start = start + 1 > t->fed ? start + 1 : t->fed;
    if (start + keep >= t->log.len) {
        return false;
    }
    cut = (t->log.len - start - keep) / cols * cols;
    if (cut < pending_max(t) / 4) {
        return false;
    }
    memmove(t->log.data + start, t->log.data + start + cut, t->log.len - start - cut);
    t->log.len -= cut;
    t->log.data[t->log.len] = '\0';
    return true;
}

/* Drops what can't be seen; true if that made room for at least a quarter. */
static bool
compact(struct terminal *t, enum sy_code *rc)
{
    SY_AUTO(buf_fini) struct buf pen = {.max = pending_max(t)};
    bool is_reset = false;
    /* With two columns a wide character in the last one stands in the first one too. */
    bool is_possible = (t->sticky & STICKY_BLOCKS) == 0 && t->opt.cols > 2;
    size_t to = is_possible ? find_stretch(t) : 0;
    /* Sticky states were made by sequences that are not plain: those stay. */
    size_t keep = t->sticky == 0 ? 0 : t->plain_from;

    if (to == 0 || to - keep < pending_max(t) / 4) {
        return is_possible && (t->sticky & (STICKY_NOWRAP | STICKY_INSERT)) == 0 && cut_line(t);
    }
    *rc = pen_of(t, keep, to, &pen, &is_reset);
    if (*rc == SY_E_OK) {
        *rc = buf_add_char(&pen, '\r');
    }
    if (*rc != SY_E_OK) {
        return false;
    }

    /* An emulator may get some of the pen twice: it only sets what it says. */
    *rc = catch_up(t, to, t->sticky == 0 ? 0 : keep, &pen);
    if (*rc != SY_E_OK) {
        return false;
    }
    if (t->is_pristine) {
        splice(t, keep, to, &pen);
        return pending_max(t) - t->log.len >= pending_max(t) / 4;
    }
    if (t->sticky == 0 && is_reset) {
        splice(t, 0, to, &pen);
        t->is_pristine = true;
        t->uses_alt = false;
        return pending_max(t) - t->log.len >= pending_max(t) / 4;
    }
    t->fed = t->fed > to ? t->fed : to;
    drop(t, t->fed);
    return true;
}

static enum sy_code
make_room(struct terminal *t)
{
    enum sy_code rc = SY_E_OK;

    if (compact(t, &rc) || rc != SY_E_OK) {
        return rc;
    }
    t->is_pristine = t->is_pristine && t->log.len == 0;
    rc = pending_draw(t);
    if (rc != SY_E_OK && t->log.len > 0) {
        /* There is no memory for the screen: it is blank from here on. */
        t->is_pristine = false;
        pending_lose(t);
    }
    return rc;
}

static void
add_piece(struct terminal *t, const char *bytes, size_t n)
{
    enum sy_code rc = SY_E_OK;

    if (t->log.len + n > pending_max(t)) {
        rc = make_room(t);
    }
    if (rc == SY_E_OK) {
        t->log.max = pending_max(t) * 2;
        rc = buf_add(&t->log, bytes, n);
    }
    if (rc != SY_E_OK && t->rc == SY_E_OK) {
        t->rc = rc;
    }
}

void
pending_add(struct terminal *t, const char *bytes, size_t n, enum pending_kind kind)
{
    size_t piece_max = 0;

    /* Mostly there is room. */
    if (t->log.len + n < t->log.cap && t->log.len + n <= LIMIT_TERMINAL_LOG) {
        memcpy(t->log.data + t->log.len, bytes, n);
        t->log.len += n;
        t->log.data[t->log.len] = '\0';
        n = 0;
    } else {
        piece_max = pending_max(t) / 4;
    }
    while (n > 0) {
        size_t piece = n < piece_max ? n : piece_max;

        add_piece(t, bytes, piece);
        bytes += piece;
        n -= piece;
    }
    if (kind == PENDING_OTHER) {
        t->plain_from = t->log.len;
    }
}
