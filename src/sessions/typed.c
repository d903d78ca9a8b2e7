/*
 * The line that is being typed to a session, for the judges. It is what a shell would read if the
 * line was typed plainly: what its editor makes of history, completion and cursor keys can't be
 * known. The sandbox holds whatever is run.
 *
 * Between the brackets of a paste a program that knows them takes each byte as itself, and any
 * other lets control characters edit. Which kind reads can't be known (the terminal's mode may be
 * somebody else's), so such a line is judged both ways.
 */
#include <string.h>

#include "base/limits.h"
#include "sessions/sessions_internal.h"
#include "terminal/state.h"

void
typed_init(struct typed *t)
{
    *t = (struct typed){.keys.line.max = LIMIT_TYPED_LINE,
                        .pastes.line.max = LIMIT_TYPED_LINE,
                        .pastes.minds_pastes = true};
}

void
typed_fini(struct typed *t)
{
    buf_fini(&t->keys.line);
    buf_fini(&t->pastes.line);
}

bool
typed_is_hidden(int terminal_fd)
{
    struct state_facts facts = {.reads = STATE_UNKNOWN};

    return terminal_fd >= 0 && state_read(terminal_fd, &facts, NULL) == SY_E_OK && !facts.echo &&
           facts.canonical;
}

#define PASTE_OPEN  200U
#define PASTE_CLOSE "\033[201~"

/* Is the byte part of an escape sequence? Those have no part in the line. */
static bool
skip_escape(struct typed_reading *t, bool knows_paste, unsigned char c)
{
    if (t->escape == 0) {
        t->escape = c == 0x1B ? c : 0;
        return t->escape != 0;
    }
    if (t->escape == 0x1B) {
        /* CSI and SS3 go on, any other has one byte. */
        t->escape = c == '[' || c == 'O' ? c : 0;
        t->param = 0;
        return true;
    }
    if (c >= '0' && c <= '9' && t->param <= PASTE_OPEN) {
        t->param = t->param * 10 + (c - '0');
    }
    if (t->escape == 'O' || (c >= '@' && c <= '~')) {
        t->is_paste = knows_paste && t->escape == '[' && c == '~' && t->param == PASTE_OPEN;
        t->had_paste = t->had_paste || t->is_paste;
        t->escape = 0;
    }
    return true;
}

static void
erase_word(struct buf *line)
{
    size_t n = line->len;

    while (n > 0 && line->data[n - 1] == ' ') {
        n--;
    }
    while (n > 0 && line->data[n - 1] != ' ') {
        n--;
    }
    line->len = n;
}

static void
edit(struct buf *line, unsigned char c)
{
    switch (c) {
    case 0x7F: /* Backspace: a whole character of UTF-8 */
    case 0x08:
        while (line->len > 0 && ((unsigned char)line->data[--line->len] & 0xC0U) == 0x80U) {
        }
        break;
    case 0x03: /* Ctrl-C, Ctrl-U: the line is gone */
    case 0x15:
        line->len = 0;
        break;
    case 0x17: /* Ctrl-W */
        erase_word(line);
        break;
    default:
        break; /* other control characters move the cursor, or nothing */
    }
    if (line->data != NULL) {
        line->data[line->len] = '\0';
    }
}

/* Enter. A line that ends with a backslash goes on in the next one. */
static enum sy_code
submit(struct typed_reading *t, struct orch_call *call, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (t->line.len > 0 && t->line.data[t->line.len - 1] == '\\') {
        t->line.data[--t->line.len] = '\0';
        return SY_E_OK;
    }
    if (t->line.len > 0 && call != NULL && (t->had_paste || !t->minds_pastes)) {
        rc = orch_judge_typed(call, buf_view(&t->line), err);
    }
    buf_reset(&t->line);
    t->had_paste = t->is_paste;
    return rc;
}

static enum sy_code
add(struct typed_reading *t, const char *bytes, size_t n, struct sy_error *err)
{
    return buf_add(&t->line, bytes, n) == SY_E_NOMEM ? sy_err_nomem(err) : SY_E_OK;
}

/* One byte between the brackets, or of the one that closes them. */
static enum sy_code
follow_paste(struct typed_reading *t, struct orch_call *call, char c, struct sy_error *err)
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
    return c == '\r' || c == '\n' ? submit(t, call, err) : add(t, &c, 1, err);
}

static enum sy_code
follow_key(struct typed_reading *t, struct orch_call *call, char c, struct sy_error *err)
{
    unsigned char u = (unsigned char)c;

    if (c == '\r' || c == '\n') {
        return submit(t, call, err);
    }
    if (u == 0x7F || (u < 0x20 && c != '\t')) {
        edit(&t->line, u);
        return SY_E_OK;
    }
    return add(t, &c, 1, err);
}

static enum sy_code
follow(struct typed_reading *t, struct orch_call *call, bool knows_paste, const char *bytes,
       size_t n, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (!knows_paste) {
        t->is_paste = false;
        t->closing = 0;
    }
    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        if (t->is_paste) {
            rc = follow_paste(t, call, bytes[i], err);
        } else if (!skip_escape(t, knows_paste, (unsigned char)bytes[i])) {
            rc = follow_key(t, call, bytes[i], err);
        }
    }
    return rc;
}

static enum sy_code
copy(struct typed_reading *ret, const struct typed_reading *t)
{
    *ret = *t;
    ret->line = (struct buf){.max = t->line.max};
    return buf_add(&ret->line, buf_view(&t->line), t->line.len);
}

static void
put(struct typed_reading *t, const struct typed_reading *now)
{
    buf_fini(&t->line);
    *t = *now;
    if (t->line.len == 0) {
        buf_fini(&t->line); /* an idle one holds no memory */
    }
}

/* A refusal of what seems harmless is the fault of what stands before it on the line. */
static void
tell_line(const struct typed *t, const char *bytes, size_t n, struct sy_error *err)
{
    bool is_first =
        n > 0 && memchr(bytes, '\n', n - 1) == NULL && memchr(bytes, '\r', n - 1) == NULL;

    if (err != NULL && t->keys.line.len > 0 && is_first) {
        const struct sy_error why = *err;

        (void)sy_err_set(err, why.code,
                         "%.170s; %zu bytes of it stand there already (Ctrl-U clears)", why.msg,
                         t->keys.line.len);
    }
}

enum sy_code
typed_follow(struct typed *t, struct orch_call *call, bool knows_paste, const char *bytes, size_t n,
             struct sy_error *err)
{
    /* What is refused leaves no trace. */
    struct typed now = {.keys.line.max = 0};
    enum sy_code rc =
        copy(&now.keys, &t->keys) == SY_E_OK && copy(&now.pastes, &t->pastes) == SY_E_OK
            ? follow(&now.keys, call, false, bytes, n, err)
            : sy_err_nomem(err);

    if (rc == SY_E_OK) {
        rc = follow(&now.pastes, call, knows_paste, bytes, n, err);
    }
    if (rc != SY_E_OK) {
        if (rc == SY_E_DENIED) {
            tell_line(t, bytes, n, err);
        }
        typed_fini(&now);
        return rc;
    }
    put(&t->keys, &now.keys);
    put(&t->pastes, &now.pastes);
    return SY_E_OK;
}
