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
 * The byte behind a Ctrl-C may be read with the line that goes: line editors have it in hand when
 * they come to the signal, and drop it. So the line behind one is judged without it, too.
 */
#include <string.h>

#include "base/limits.h"
#include "sessions/sessions_internal.h"
#include "terminal/state.h"

void
typed_init(struct typed *t, bool is_pipe)
{
    struct typed_reading plain = {
        .line.max = LIMIT_TYPED_LINE, .block.max = LIMIT_TYPED_LINE, .is_pipe = is_pipe};

    *t = (struct typed){.keys = plain, .pastes = plain, .losses = plain};
    t->pastes.minds_pastes = true;
    t->losses.minds_losses = true;
}

void
typed_fini(struct typed *t)
{
    buf_fini(&t->keys.line);
    buf_fini(&t->keys.block);
    buf_fini(&t->pastes.line);
    buf_fini(&t->pastes.block);
    buf_fini(&t->losses.line);
    buf_fini(&t->losses.block);
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
edit(struct typed_reading *t, unsigned char c)
{
    struct buf *line = &t->line;

    switch (c) {
    case 0x7F: /* Backspace: a whole character of UTF-8 */
    case 0x08:
        while (line->len > 0 && ((unsigned char)line->data[--line->len] & 0xC0U) == 0x80U) {
        }
        break;
    case TYPED_INTERRUPT: /* Ctrl-C, Ctrl-U: the line is gone, by the first with all before it */
        buf_fini(&t->block);
        line->len = 0;
        t->loses_next = t->minds_losses;
        t->had_loss = false;
        break;
    case 0x15:
        line->len = 0;
        break;
    case 0x16: /* Ctrl-V */
        t->is_quoted = true;
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
    while (t->n_starts > 0 && t->starts[t->n_starts - 1] > line->len) {
        t->n_starts--;
    }
}

/* A command may begin here. With too many such places the last one gives way. */
static void
add_start(struct typed_reading *t)
{
    if (t->line.len == 0 || (t->n_starts > 0 && t->starts[t->n_starts - 1] == t->line.len)) {
        return;
    }
    t->n_starts -= t->n_starts == TYPED_STARTS ? 1 : 0;
    t->starts[t->n_starts++] = t->line.len;
}

/* The line with the lines before it that it may complete. What can't be held any more was judged
 * line by line. */
static enum sy_code
judge_block(struct typed_reading *t, struct orch_call *call, bool is_open, struct sy_error *err)
{
    const bool is_first = t->block.len == 0;
    enum sy_code rc = SY_E_OK;

    if (is_first && !is_open) {
        return SY_E_OK;
    }
    rc = is_first ? SY_E_OK : buf_add_char(&t->block, '\n');
    if (rc == SY_E_OK) {
        rc = buf_add(&t->block, buf_view(&t->line), t->line.len);
    }
    if (rc == SY_E_OK && !is_first) {
        rc = orch_judge_typed(call, buf_view(&t->block), &is_open, err);
    } else if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    } else if (rc != SY_E_OK) {
        is_open = false;
        rc = SY_E_OK;
    }
    if (!is_open) {
        buf_fini(&t->block);
    }
    return rc;
}

static enum sy_code
judge(struct typed_reading *t, struct orch_call *call, struct sy_error *err)
{
    bool is_open = false;
    bool ignored = false;
    enum sy_code rc = SY_E_OK;

    if (call == NULL || (t->minds_pastes && !t->had_paste) || (t->minds_losses && !t->had_loss)) {
        return SY_E_OK;
    }
    if (t->line.len > 0) {
        rc = orch_judge_typed(call, buf_view(&t->line), &is_open, err);
    }
    for (size_t i = 0; i < t->n_starts && rc == SY_E_OK; i++) {
        rc = t->starts[i] < t->line.len
                 ? orch_judge_typed(call, t->line.data + t->starts[i], &ignored, err)
                 : SY_E_OK;
    }
    return rc == SY_E_OK ? judge_block(t, call, is_open, err) : rc;
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
submit(struct typed_reading *t, struct orch_call *call, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    if (is_continued(&t->line)) {
        t->line.data[--t->line.len] = '\0';
        add_start(t);
        return SY_E_OK;
    }
    rc = judge(t, call, err);
    buf_reset(&t->line);
    t->n_starts = 0;
    t->had_paste = t->is_paste;
    t->had_loss = t->had_loss && t->block.len > 0;
    return rc;
}

static enum sy_code
add(struct typed_reading *t, const char *bytes, size_t n, struct sy_error *err)
{
    /* Shells pass NUL over. */
    if (n == 1 && bytes[0] == '\0') {
        return SY_E_OK;
    }
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

    if (t->is_quoted) {
        t->is_quoted = false;
        return add(t, &c, 1, err);
    }
    /* Ctrl-O of readline and zsh: Enter, and the next line of the history. */
    if (c == '\r' || c == '\n' || u == 0x0F) {
        return submit(t, call, err);
    }
    if (u == 0x7F || (u < 0x20 && c != '\t')) {
        edit(t, u);
        return SY_E_OK;
    }
    return add(t, &c, 1, err);
}

/* Alt-A of zsh: the line is run, and stays. */
static bool
is_accept_and_hold(const struct typed_reading *t, char c)
{
    return t->escape == 0x1B && (c == 'a' || c == 'A');
}

static enum sy_code
follow_byte(struct typed_reading *t, struct orch_call *call, bool knows_paste, char c,
            struct sy_error *err)
{
    const bool is_run = is_accept_and_hold(t, c);

    if (t->loses_next && c != TYPED_INTERRUPT) {
        t->loses_next = false;
        t->had_loss = true;
        return SY_E_OK;
    }
    if (t->is_pipe && c == TYPED_INTERRUPT) {
        return SY_E_OK;
    }
    if (t->is_pipe) {
        return c == '\n' ? submit(t, call, err) : add(t, &c, 1, err);
    }
    if (t->is_paste) {
        return follow_paste(t, call, c, err);
    }
    if (!t->is_quoted && skip_escape(t, knows_paste, (unsigned char)c)) {
        return is_run ? judge(t, call, err) : SY_E_OK;
    }
    return follow_key(t, call, c, err);
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
    add_start(t);
    for (size_t i = 0; i < n && rc == SY_E_OK; i++) {
        rc = follow_byte(t, call, knows_paste, bytes[i], err);
    }
    return rc;
}

static enum sy_code
copy(struct typed_reading *ret, const struct typed_reading *t)
{
    *ret = *t;
    ret->line = (struct buf){.max = t->line.max};
    ret->block = (struct buf){.max = t->block.max};

    enum sy_code rc = buf_add(&ret->line, buf_view(&t->line), t->line.len);

    return rc == SY_E_OK ? buf_add(&ret->block, buf_view(&t->block), t->block.len) : rc;
}

static void
put(struct typed_reading *t, const struct typed_reading *now)
{
    buf_fini(&t->line);
    buf_fini(&t->block);
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
    enum sy_code rc = copy(&now.keys, &t->keys) == SY_E_OK &&
                              copy(&now.pastes, &t->pastes) == SY_E_OK &&
                              copy(&now.losses, &t->losses) == SY_E_OK
                          ? follow(&now.keys, call, false, bytes, n, err)
                          : sy_err_nomem(err);

    if (rc == SY_E_OK) {
        rc = follow(&now.pastes, call, knows_paste, bytes, n, err);
    }
    if (rc == SY_E_OK) {
        rc = follow(&now.losses, call, false, bytes, n, err);
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
    put(&t->losses, &now.losses);
    return SY_E_OK;
}
