#include "output/output_internal.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* Columns of the one line that is rendered at a time; a longer one wraps, as
 * it does in a terminal. Bounds the memory of folding to 512 KiB. */
#define COLUMNS_MAX 65536U

#define ERASED UINT32_MAX

static bool
in_range(char c, unsigned low, unsigned high)
{
    return (unsigned char)c >= low && (unsigned char)c <= high;
}

static size_t
skip_range(const char *s, size_t n, size_t i, unsigned low, unsigned high)
{
    while (i < n && in_range(s[i], low, high)) {
        i++;
    }
    return i;
}

/* ESC ], P, X, ^, _ up to BEL or ESC \, however long: pictures and clipboards are. A newline or
 * another ESC means that it is none: it must not hide lines. So each byte is looked at once. */
static size_t
control_string_len(const char *s, size_t n)
{
    for (size_t i = 2; i < n; i++) {
        if (s[i] == '\a') {
            return i + 1;
        }
        if (s[i] == '\x1b') {
            return i + 1 < n && s[i + 1] == '\\' ? i + 2 : 0;
        }
        if (in_range(s[i], 0, 0x1F)) {
            return 0;
        }
    }
    return 0;
}

size_t
fold_escape_len(const char *s, size_t n)
{
    size_t i = 2;

    if (n < 2) {
        return 0;
    }
    if (s[1] == '[') {
        i = skip_range(s, n, i, 0x30, 0x3F);
        i = skip_range(s, n, i, 0x20, 0x2F);
        return i < n && in_range(s[i], 0x40, 0x7E) ? i + 1 : 0;
    }
    if (strchr("]PX^_", s[1]) != NULL && s[1] != '\0') {
        return control_string_len(s, n);
    }
    if (in_range(s[1], 0x20, 0x2F)) {
        i = skip_range(s, n, i, 0x20, 0x2F);
        return i < n && in_range(s[i], 0x30, 0x7E) ? i + 1 : 0;
    }
    return in_range(s[1], 0x30, 0x7E) ? 2 : 0;
}

/* One line as a terminal shows it: a cell a column. */
struct cell {
    uint32_t at; /* offset in the text, or ERASED */
    uint32_t len;
};

struct screen_line {
    struct cell *cells;
    size_t cap;
    size_t len;
    size_t cursor;
    size_t blank;   /* the first cells that are erased: not to be erased again */
    size_t columns; /* of the terminal; 0: none */
};

static enum sy_code
line_put(struct screen_line *l, struct cell cell)
{
    if (l->cursor >= l->cap) {
        size_t cap = l->cap > 0 ? l->cap * 2 : 256;
        struct cell *grown = mem_realloc(l->cells, cap * sizeof(*grown));

        if (grown == NULL) {
            return SY_E_NOMEM;
        }
        l->cells = grown;
        l->cap = cap;
    }
    l->blank = l->cursor < l->blank ? l->cursor : l->blank;
    l->cells[l->cursor++] = cell;
    l->len = l->cursor > l->len ? l->cursor : l->len;
    return SY_E_OK;
}

/* EL, and of ED what it does to this line: to the end (no parameter, or 0), the whole (2). Erasing
 * only to the left (1) leaves blanks that nobody reads. */
static void
line_erase(struct screen_line *l, const char *seq, size_t n)
{
    if (n == 3 || (n == 4 && (seq[2] == '0' || seq[2] == '2'))) {
        l->len = l->cursor < l->len ? l->cursor : l->len;
    }
    if (n == 4 && (seq[2] == '1' || seq[2] == '2')) {
        size_t end = l->cursor < l->len ? l->cursor : l->len;

        for (; l->blank < end; l->blank++) {
            l->cells[l->blank].at = ERASED;
        }
    }
}

static bool
is_blank(const struct screen_line *l, const char *text, size_t column)
{
    const struct cell *c = &l->cells[column];

    return c->at == ERASED || (column >= l->cursor && c->len == 1 && text[c->at] == ' ');
}

static enum sy_code
line_flush(struct screen_line *l, struct buf *out, const char *text)
{
    enum sy_code rc = SY_E_OK;

    /* Blanks behind the cursor were to wipe what stood there. */
    while (l->len > 0 && is_blank(l, text, l->len - 1)) {
        l->len--;
    }
    for (size_t i = 0; i < l->len && rc == SY_E_OK; i++) {
        const struct cell *c = &l->cells[i];

        rc = c->at == ERASED ? buf_add_char(out, ' ') : buf_add(out, text + c->at, c->len);
    }
    l->len = 0;
    l->cursor = 0;
    l->blank = 0;
    return rc;
}

/* Where the row of the cursor begins. Behind the last column it is on that row still. */
static size_t
row_start(const struct screen_line *l)
{
    return l->columns > 0 && l->cursor > l->columns ? (l->cursor - 1) / l->columns * l->columns : 0;
}

/* Did blanks lead over the margin there? One alone may be text. */
static bool
is_led_by_blanks(const struct screen_line *l, const char *text, size_t start)
{
    for (size_t i = start - 2; i < start; i++) {
        const struct cell *c = &l->cells[i];

        if (c->at != ERASED && (c->len != 1 || text[c->at] != ' ')) {
            return false;
        }
    }
    return true;
}

/* The rows above the cursor's become a line of their own: nothing in this one reaches them. */
static enum sy_code
line_return(struct screen_line *l, struct buf *out, const char *text)
{
    size_t start = row_start(l);
    size_t len = l->len;
    enum sy_code rc = SY_E_OK;

    if (start < 2 || !is_led_by_blanks(l, text, start)) {
        l->cursor = 0;
        return SY_E_OK;
    }
    l->len = start;
    l->cursor = 0; /* all blanks at its end are to be left out */
    rc = line_flush(l, out, text);
    memmove(l->cells, l->cells + start, (len - start) * sizeof(*l->cells));
    l->len = len - start;
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

/* The column of CHA (ESC [ N G), from 0; COLUMNS_MAX: it is none, or further than a line goes. */
static size_t
column_of(const char *seq, size_t n)
{
    size_t ret = 0;

    if (n < 3 || seq[1] != '[' || seq[n - 1] != 'G') {
        return COLUMNS_MAX;
    }
    for (size_t i = 2; i + 1 < n; i++) {
        if (!in_range(seq[i], '0', '9') || ret >= COLUMNS_MAX) {
            return COLUMNS_MAX;
        }
        ret = ret * 10 + (size_t)(seq[i] - '0');
    }
    ret = ret > 0 ? ret - 1 : 0;
    return ret < COLUMNS_MAX ? ret : COLUMNS_MAX;
}

/* An escape sequence: what it does to the line. No further than its end: a few bytes must not
 * become thousands of blanks. */
static void
line_control(struct screen_line *l, const char *seq, size_t n)
{
    size_t column = column_of(seq, n);

    if (column < COLUMNS_MAX) {
        l->cursor = column < l->len ? column : l->len;
    } else if (seq[1] == '[' && (seq[n - 1] == 'K' || seq[n - 1] == 'J')) {
        line_erase(l, seq, n);
    }
}

/* Does anything in the line go back in it? */
static bool
goes_back(const char *line, size_t n)
{
    const char *end = line + n;
    const char *at = line;

    if (memchr(line, '\r', n) != NULL || memchr(line, '\b', n) != NULL) {
        return true;
    }
    while ((at = memchr(at, '\x1b', (size_t)(end - at))) != NULL) {
        if (column_of(at, fold_escape_len(at, (size_t)(end - at))) < COLUMNS_MAX) {
            return true;
        }
        at++;
    }
    return false;
}

/* Takes one character, control or escape sequence at text + i; returns its
 * length in *ret_len. */
static enum sy_code
line_take(struct screen_line *l, struct buf *out, const char *text, size_t i, size_t n,
          size_t *ret_len)
{
    uint32_t c = 0;
    size_t len = text[i] == '\x1b' ? fold_escape_len(text + i, n - i) : 0;

    *ret_len = len > 0 ? len : 1;
    if (len > 0) {
        line_control(l, text + i, len);
        return SY_E_OK;
    }
    if (text[i] == '\r') {
        return line_return(l, out, text);
    }
    if (text[i] == '\b') {
        l->cursor -= l->cursor > 0 ? 1U : 0U;
        return SY_E_OK;
    }
    len = utf8_decode(&c, text + i, n - i);
    len = len > 0 ? len : 1;
    *ret_len = len;
    return line_put(l, (struct cell){(uint32_t)i, (uint32_t)len});
}

static enum sy_code
line_render(struct screen_line *l, struct buf *out, const char *line, size_t n)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < n && rc == SY_E_OK;) {
        size_t len = 0;

        rc = line_take(l, out, line, i, n, &len);
        i += len;
        if (rc == SY_E_OK && l->cursor >= COLUMNS_MAX) {
            rc = line_flush(l, out, line);
        }
    }
    return rc != SY_E_OK ? rc : line_flush(l, out, line);
}

enum sy_code
output_fold_cr(struct buf *out, const char *text, size_t n, unsigned columns)
{
    struct screen_line l = {.columns = columns};
    enum sy_code rc = SY_E_OK;

    while (n > 0 && rc == SY_E_OK) {
        const char *newline = memchr(text, '\n', n);
        size_t whole = newline != NULL ? (size_t)(newline - text) + 1 : n;
        size_t len = newline != NULL ? whole - 1 : n;

        while (newline != NULL && len > 0 && text[len - 1] == '\r') {
            len--;
        }
        if (len > 0 && goes_back(text, len)) {
            /* Offsets of cells have 32 bits; no kept text is near that. */
            rc = len < ERASED ? line_render(&l, out, text, len) : SY_E_LIMIT;
        } else {
            rc = buf_add(out, text, len);
        }
        if (rc == SY_E_OK && newline != NULL) {
            rc = buf_add_char(out, '\n');
        }
        text += whole;
        n -= whole;
    }
    mem_free(l.cells);
    return rc;
}

/* Length of the control character at s that must be made visible, else 0. */
static size_t
control_len(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];

    if (c < 0x20U) {
        return c == '\n' || c == '\t' ? 0 : 1;
    }
    if (c == 0x7FU) {
        return 1;
    }
    /* C1: U+0080 to U+009F. */
    return c == 0xC2U && n > 1 && (unsigned char)s[1] < 0xA0U ? 2 : 0;
}

/* A run of up to this many equal control characters is written out. */
#define RUN_MAX 4U

static enum sy_code
add_control_run(struct buf *out, const char *s, size_t len, size_t times)
{
    unsigned code = (unsigned char)s[len - 1];

    if (times > RUN_MAX) {
        return buf_addf(out, "[%zu x \\x%02x]", times, code);
    }

    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < times && rc == SY_E_OK; i++) {
        rc = len > 1 ? buf_addf(out, "\\u{%X}", code) : buf_addf(out, "\\x%02x", code);
    }
    return rc;
}

/* So much of a control string without an end is shown as the text that it may be; more is not. */
#define OPEN_STRING_SHOWN 4096U

/* ESC and what is behind it, if that is a control string that is too long to be shown and has no
 * end; else 0. */
static size_t
open_string_len(const char *s, size_t n)
{
    size_t i = 2;

    if (n <= OPEN_STRING_SHOWN || s[1] == '\0' || strchr("]PX^_", s[1]) == NULL) {
        return 0;
    }
    while (i < n && !in_range(s[i], 0, 0x1F)) {
        i++;
    }
    return i > OPEN_STRING_SHOWN ? i : 0;
}

/* A control character and its repetitions, or an escape sequence; sets the
 * bytes used. */
static enum sy_code
visible_control(struct buf *out, const char *s, size_t n, size_t *ret_used)
{
    size_t len = control_len(s, n);
    size_t times = 1;

    if (s[0] == '\x1b') {
        size_t seq = fold_escape_len(s, n);

        if (seq > 0) {
            *ret_used = seq;
            return SY_E_OK;
        }
        seq = open_string_len(s, n);
        if (seq > 0) {
            *ret_used = seq;
            return buf_addf(out, "[%zu bytes of an escape sequence without an end]", seq - 1);
        }
    }
    while ((times + 1) * len <= n && memcmp(s, s + times * len, len) == 0) {
        times++;
    }
    /* The last of several ESC may begin a sequence. */
    if (s[0] == '\x1b' && times > 1 && fold_escape_len(s + (times - 1), n - (times - 1)) > 0) {
        times--;
    }
    *ret_used = times * len;
    return add_control_run(out, s, len, times);
}

enum sy_code
fold_visible_add(struct buf *out, const char *text, size_t n)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < n && rc == SY_E_OK;) {
        size_t start = i;

        while (i < n && control_len(text + i, n - i) == 0) {
            i++;
        }
        rc = buf_add(out, text + start, i - start);
        if (rc == SY_E_OK && i < n) {
            size_t used = 0;

            rc = visible_control(out, text + i, n - i, &used);
            i += used;
        }
    }
    return rc;
}
