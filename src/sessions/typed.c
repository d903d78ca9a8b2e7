/*
 * The line that is being typed to a session, for the judges. It is what a shell would read if the
 * line was typed plainly: what its editor makes of history, completion and cursor keys can't be
 * known. The sandbox holds whatever is run.
 *
 * Who has read what stands in the line can't be known either: less(1) takes its "q", and the shell
 * reads what comes behind it. So a line is judged as a whole, and from each place on where a write
 * began. And lines that are no whole command are judged together with those that follow.
 *
 * Between the brackets of a paste a program that knows them takes each byte as itself, and any
 * other lets control characters edit. Which kind reads can't be known (the terminal's mode may be
 * somebody else's), so such a line is judged both ways.
 *
 * Nor can be known where an escape sequence ends for who reads it: editors differ in those that
 * they do not know, and where there is no editor it is text, as are all characters that the
 * terminal does not take for itself. So from the first such byte on the line is followed in each
 * way, until all of them are the same again.
 *
 * The byte behind a Ctrl-C may be read with the line that goes: line editors have it in hand when
 * they come to the signal, and drop it. So the line behind one is followed without it, too.
 */
#include <string.h>

#include "base/limits.h"
#include "sessions/sessions_internal.h"

void
typed_init(struct typed *t, bool is_pipe)
{
    *t = (struct typed){.n = 1};
    t->v[0] = (struct typed_reading){.line.max = LIMIT_TYPED_LINE,
                                     .block.max = LIMIT_TYPED_LINE,
                                     .starts.max = LIMIT_TYPED_LINE * sizeof(size_t),
                                     .killed.max = LIMIT_TYPED_LINE,
                                     .is_pipe = is_pipe};
}

void
typed_reading_fini(struct typed_reading *t)
{
    buf_fini(&t->line);
    buf_fini(&t->block);
    buf_fini(&t->starts);
    buf_fini(&t->killed);
}

void
typed_fini(struct typed *t)
{
    for (size_t i = 0; i < t->n; i++) {
        typed_reading_fini(&t->v[i]);
    }
    t->n = 0;
}

bool
typed_is_idle(const struct typed *t)
{
    const struct typed_reading *r = &t->v[0];
    const bool is_empty = r->line.len == 0 && r->block.len == 0 && r->starts.len == 0 &&
                          r->killed.len == 0 && r->given == 0 && r->closing == 0 &&
                          r->escape == 0 && r->spent_ns == 0;

    return t->n == 1 && is_empty && !r->is_cut && !r->is_loose && !r->is_quoted && !r->is_paste &&
           !r->loses_next && !r->has_moved;
}

void
typed_begin_anew(struct typed *t)
{
    for (size_t i = 0; i < t->n; i++) {
        typed_drop_block(&t->v[i]);
        t->v[i].is_loose = false;
        t->v[i].spent_ns = 0;
    }
}

size_t
typed_length(const struct typed *t)
{
    size_t ret = 0;

    for (size_t i = 0; i < t->n; i++) {
        ret = t->v[i].line.len > ret ? t->v[i].line.len : ret;
    }
    return ret;
}

#define PASTE_OPEN  200U
#define PASTE_CLOSE "\033[201~"

/* As ECMA-48 has them: CSI and SS3 go on, any other has one byte. */
static bool
skip_known(struct typed_reading *t, bool knows_paste, unsigned char c)
{
    if (t->escaped == 1) {
        t->escape = c == '[' || c == 'O' ? c : 0;
        t->param = 0;
        return true;
    }
    if (c >= '0' && c <= '9' && t->param <= PASTE_OPEN) {
        t->param = t->param * 10 + (c - '0');
    }
    if (t->escape == 'O' || (c >= '@' && c <= '~')) {
        t->is_paste = knows_paste && t->kind == TYPED_PASTES && t->escape == '[' && c == '~' &&
                      t->param == PASTE_OPEN;
        t->escape = 0;
    }
    return true;
}

/* Is the byte part of an escape sequence? Those have no part in the line. */
static bool
skip_escape(struct typed_reading *t, bool knows_paste, unsigned char c)
{
    const bool is_number = c >= ' ' && c <= '?';
    const bool is_count = (c >= '0' && c <= '9') || c == '-';

    if (t->escape == 0) {
        /* Ctrl-X begins keys of two bytes, of which few do anything. */
        const bool is_pair = c == 0x18 && (t->kind == TYPED_ONE || t->kind == TYPED_TWO);

        t->escape = c == 0x1B || is_pair ? c : 0;
        t->escaped = 0;
        return t->escape != 0;
    }
    t->escaped++;
    switch (t->kind) {
    case TYPED_KEYS:
    case TYPED_PASTES:
    case TYPED_LOST:
    case TYPED_SHARED:
        return skip_known(t, knows_paste, c);
    case TYPED_ONE:
    case TYPED_TWO:
    case TYPED_THREE:
        t->escape = t->escaped <= (unsigned)(t->kind - TYPED_ONE) ? t->escape : 0;
        return true;
    case TYPED_NUMBERS:
        t->escape = is_number || (t->escaped == 1 && (c == '[' || c == 'O')) ? t->escape : 0;
        return t->escape != 0;
    case TYPED_COUNTED:
        t->escape = is_count ? t->escape : 0;
        return true;
    case TYPED_BYTES:
    case TYPED_NONE:
    case TYPED_KINDS:
        break;
    }
    t->escape = 0;
    return false;
}

/* Some of the line is gone. */
static void
shorten(struct typed_reading *t)
{
    if (t->line.data != NULL) {
        t->line.data[t->line.len] = '\0';
    }
    t->is_cut = t->is_cut && t->line.len > 0;
    size_t n = 0;
    const size_t *starts = typed_starts(t, &n);

    while (n > 0 && starts[n - 1] > t->line.len) {
        n--;
    }
    t->starts.len = n * sizeof(*starts);
}

static void
erase_character(struct typed_reading *t)
{
    struct buf *line = &t->line;

    while (line->len > t->given && ((unsigned char)line->data[--line->len] & 0xC0U) == 0x80U) {
    }
}

const size_t *
typed_starts(const struct typed_reading *t, size_t *ret_n)
{
    *ret_n = t->starts.len / sizeof(size_t);
    return (const size_t *)(const void *)t->starts.data;
}

/* A command may begin here. */
enum sy_code
typed_add_start(struct typed_reading *t)
{
    size_t n = 0;
    const size_t *starts = typed_starts(t, &n);

    if (t->line.len == 0 || (n > 0 && starts[n - 1] == t->line.len)) {
        return SY_E_OK;
    }
    return buf_add(&t->starts, (const char *)&t->line.len, sizeof(t->line.len));
}

/* What is erased may come back by a key (Ctrl-Y, Ctrl-_). Where the cursor stands elsewhere it is
 * not what stands before it, and nothing goes. */
static enum sy_code
erase(struct typed_reading *t, unsigned char c)
{
    const size_t before = t->line.len;
    SY_AUTO(buf_fini) struct buf all = {.max = t->line.max};
    enum sy_code rc = SY_E_OK;

    if (t->has_moved) {
        return typed_add_start(t);
    }
    rc = buf_add(&all, buf_view(&t->line), before);
    if (c == 0x7F || c == 0x08) { /* Backspace: a whole character of UTF-8 */
        erase_character(t);
    } else if (c == 0x17) { /* Ctrl-W */
        typed_erase_word(t);
    } else { /* Ctrl-U */
        t->line.len = 0;
    }
    if (rc == SY_E_OK && before > t->killed.len) {
        buf_fini(&t->killed);
        t->killed = all;
        all = (struct buf){.max = t->line.max};
    }
    return rc;
}

static enum sy_code
bring_back(struct typed_reading *t)
{
    enum sy_code rc = typed_add_start(t);

    t->has_moved = true;
    if (rc == SY_E_OK && t->killed.len > 0) {
        rc = buf_add(&t->line, buf_view(&t->killed), t->killed.len);
        t->is_cut = t->is_cut || rc == SY_E_LIMIT;
    }
    return rc == SY_E_LIMIT ? SY_E_OK : rc;
}

static enum sy_code
edit(struct typed_reading *t, unsigned char c)
{
    struct buf *line = &t->line;
    enum sy_code rc = SY_E_OK;

    switch (c) {
    case 0x7F:
    case 0x08:
    case 0x15:
    case 0x17:
        rc = erase(t, c);
        break;
    case TYPED_INTERRUPT: /* Ctrl-C: the line is gone, and all before it */
        typed_drop_block(t);
        buf_fini(&t->killed);
        t->is_loose = false;
        t->spent_ns = 0;
        line->len = 0;
        t->has_moved = false;
        t->loses_next = t->kind == TYPED_LOST;
        break;
    case 0x07: /* Ctrl-G: of zsh the line is gone, of readline it stays */
        line->len = t->kind == TYPED_NONE ? 0 : line->len;
        break;
    case 0x16: /* Ctrl-V; of fish it pastes */
        t->is_quoted = t->kind != TYPED_TWO;
        break;
    case 0x19: /* Ctrl-Y, Ctrl-_ */
    case 0x1F:
        rc = bring_back(t);
        break;
    default: /* other control characters move the cursor, or nothing */
        t->has_moved = t->has_moved || line->len > 0;
        rc = typed_add_start(t);
        break;
    }
    shorten(t);
    return rc;
}

/* Does it go on in the next line? Where not, as in a comment, that is a command by itself. */
static bool
is_continued(const struct buf *line)
{
    size_t n = line->len;

    while (n > 0 && line->data[n - 1] == '\\') {
        n--;
    }
    return (line->len - n) % 2 == 1;
}

/* Enter. */
static enum sy_code
submit(struct typed_reading *t, const struct typed_reader *r, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (is_continued(&t->line)) {
        t->line.data[--t->line.len] = '\0';
        t->given = t->kind == TYPED_BYTES ? t->line.len : 0;
        return typed_add_start(t) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
    }
    rc = typed_judge_line(t, r, err);
    if (t->is_later) {
        return SY_E_OK;
    }
    buf_reset(&t->line);
    buf_fini(&t->starts);
    buf_fini(&t->killed);
    t->given = 0;
    t->is_cut = false;
    t->has_moved = false;
    return rc;
}

static enum sy_code
add(struct typed_reading *t, const char *bytes, size_t n, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    /* Shells pass NUL over. */
    if (n == 1 && bytes[0] == '\0') {
        return SY_E_OK;
    }
    rc = buf_add(&t->line, bytes, n);
    t->is_cut = t->is_cut || rc == SY_E_LIMIT;
    return rc == SY_E_NOMEM ? sy_err_nomem(err) : SY_E_OK;
}

/* One byte between the brackets, or of the one that closes them. */
static enum sy_code
follow_paste(struct typed_reading *t, const struct typed_reader *r, char c, struct sy_error *err)
{
    size_t came = t->closing;
    enum sy_code rc = SY_E_OK;

    if (c == PASTE_CLOSE[came]) {
        t->closing = came + 2 < sizeof(PASTE_CLOSE) ? came + 1 : 0;
        t->is_paste = t->closing > 0;
        return SY_E_OK;
    }
    /* That was none. */
    t->closing = 0;
    rc = add(t, PASTE_CLOSE, came, err);
    if (rc != SY_E_OK) {
        return rc;
    }
    if (c == PASTE_CLOSE[0]) {
        t->closing = 1;
        return SY_E_OK;
    }
    return c == '\r' || c == '\n' ? submit(t, r, err) : add(t, &c, 1, err);
}

static enum sy_code
follow_key(struct typed_reading *t, const struct typed_reader *r, char c, struct sy_error *err)
{
    unsigned char u = (unsigned char)c;

    if (t->is_quoted) {
        t->is_quoted = false;
        return add(t, &c, 1, err);
    }
    /* Ctrl-O of readline and zsh: Enter, and the next line of the history. */
    if (c == '\r' || c == '\n' || u == 0x0F) {
        return submit(t, r, err);
    }
    /* Ctrl-D: of an editor it is a key; else what stands there is handed over. */
    if (u == 0x04) {
        return typed_judge_end(t, r, err);
    }
    if (u == 0x7F || (u < 0x20 && c != '\t')) {
        return edit(t, u) == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
    }
    return add(t, &c, 1, err);
}

static bool
is_one_of(const unsigned char *set, size_t n, unsigned char c)
{
    bool ret = false;

    for (size_t i = 0; i < n; i++) {
        ret = ret || (set[i] != 0 && set[i] == c);
    }
    return ret;
}

/* Does the terminal take it for itself, so that nobody gets it? */
static bool
is_gone(const struct typed_modes *m, unsigned char c)
{
    return (c == '\r' && m->drops_returns) || is_one_of(m->gone, sizeof(m->gone), c);
}

/* An editor that has taken the terminal's characters for its own keys, as readline does. */
static char
as_key(const struct typed_modes *m, char c)
{
    const unsigned char u = (unsigned char)c;
    char ret = c;

    if (u == 0) {
        return c;
    }
    if (m->lowers && c >= 'A' && c <= 'Z') {
        ret = (char)(c - 'A' + 'a');
    }
    if (u == m->signals[0]) {
        ret = TYPED_INTERRUPT;
    } else if (u == m->next_literal) {
        ret = '\x16';
    } else if (u == m->kill) {
        ret = '\x15';
    } else if (u == m->word_erase) {
        ret = '\x17';
    } else if (u == m->erase) {
        ret = '\x7F';
    }
    return ret;
}

/* What the terminal does with a byte for one who reads lines and edits nothing. */
static enum sy_code
follow_line(struct typed_reading *t, const struct typed_reader *r, char c, struct sy_error *err)
{
    const struct typed_modes *m = &r->modes;
    unsigned char u = (unsigned char)c & (m->strips ? 0x7FU : 0xFFU);

    u = m->lowers && u >= 'A' && u <= 'Z' ? (unsigned char)(u | 0x20U) : u;
    c = (char)u;
    if (t->is_quoted) {
        t->is_quoted = false;
        return add(t, &c, 1, err);
    }
    if (u == '\n' || (u == '\r' && !m->keeps_returns && !m->drops_returns)) {
        return submit(t, r, err);
    }
    if (u == 0 || is_gone(m, u)) {
        return SY_E_OK;
    }
    if (u == m->end || is_one_of(m->ends_line, sizeof(m->ends_line), u)) {
        enum sy_code rc = u == m->end ? SY_E_OK : add(t, &c, 1, err);

        t->given = t->line.len;
        return rc == SY_E_OK ? typed_judge_end(t, r, err) : rc;
    }
    t->is_quoted = u == m->next_literal;
    if (u == m->kill || is_one_of(m->signals, sizeof(m->signals), u)) {
        /* What was handed over may stay: a signal can be ignored. */
        t->line.len = t->given;
        t->is_loose = t->is_loose && u != m->signals[0];
    } else if (u == m->erase && m->erases_bytes) {
        t->line.len -= t->line.len > t->given ? 1 : 0;
    } else if (u == m->erase) {
        erase_character(t);
    } else if (u == m->word_erase) {
        typed_erase_word(t);
    } else if (!t->is_quoted) {
        return add(t, &c, 1, err);
    }
    shorten(t);
    return SY_E_OK;
}

/* Alt-A of zsh: the line is run, and stays. No such letter is farther behind: Up is one. */
static bool
is_accept_and_hold(const struct typed_reading *t, char c)
{
    return t->escape == 0x1B && t->escaped == 0 && (c == 'a' || c == 'A');
}

enum sy_code
typed_follow_byte(struct typed_reading *t, const struct typed_reader *r, char c,
                  struct sy_error *err)
{
    const bool is_run = is_accept_and_hold(t, c);
    enum sy_code rc = SY_E_OK;

    if (t->loses_next && c != TYPED_INTERRUPT) {
        t->loses_next = false;
        return SY_E_OK;
    }
    if (t->is_pipe && c == TYPED_INTERRUPT) {
        return SY_E_OK;
    }
    if (t->is_pipe) {
        return c == '\n' ? submit(t, r, err) : add(t, &c, 1, err);
    }
    if (t->kind == TYPED_BYTES) {
        return follow_line(t, r, c, err);
    }
    if (t->kind == TYPED_SHARED && is_gone(&r->modes, (unsigned char)c)) {
        return SY_E_OK;
    }
    if (t->kind == TYPED_SHARED) {
        c = as_key(&r->modes, c);
    }
    if (t->is_paste) {
        return follow_paste(t, r, c, err);
    }
    if (!t->is_quoted && skip_escape(t, r->knows_paste, (unsigned char)c)) {
        /* It may have moved the cursor before all that stands there. */
        if (t->escape == 0) {
            t->has_moved = t->has_moved || t->line.len > 0;
            rc = typed_add_start(t);
        }
        if (rc != SY_E_OK) {
            return sy_err_nomem(err);
        }
        return is_run ? typed_judge_end(t, r, err) : SY_E_OK;
    }
    return follow_key(t, r, c, err);
}
