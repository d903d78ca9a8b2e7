/* The terminal of a session: its screen, the answers to what programs ask it, what it waits for. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "output/pattern.h"
#include "sessions/sessions_internal.h"
#include "terminal/state.h"
#include "terminal/strip.h"

enum sy_code
live_tty_begin(struct live *l, struct exec_request *request, struct sy_error *err)
{
    const struct orch_input *input = &request->input;
    struct terminal_options options = {
        .rows = input->rows > 0 ? input->rows : LIMIT_TERMINAL_ROWS_DEFAULT,
        .cols = input->columns > 0 ? input->columns : LIMIT_TERMINAL_COLS_DEFAULT,
    };

    terminal_free(l->screen);
    l->screen = NULL;
    l->line = 0;
    if (marks_prepare(l, request, &options) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    return input->kind == INPUT_TERMINAL ? terminal_new(&l->screen, &options, err) : SY_E_OK;
}

void
live_tty_feed(struct live *l, const char *bytes, size_t n)
{
    struct buf *replies = NULL;

    if (l->screen == NULL) {
        return;
    }
    /* Memory out costs the screen, which says so (terminal_state.lost), not the command. */
    (void)!terminal_feed(l->screen, bytes, n);
    replies = terminal_replies(l->screen);
    if (replies->len > 0) {
        /* One that reads nothing any more gets no answer. */
        (void)!orch_write(l->call, buf_view(replies), replies->len, NULL);
        buf_drop(replies, replies->len);
    }
}

struct terminal *
live_screen(struct live *l)
{
    return l->screen;
}

static bool
is_char(const struct termios *modes, size_t kind, unsigned char c)
{
    return modes->c_cc[kind] != _POSIX_VDISABLE && modes->c_cc[kind] == c;
}

/* Is the line over with it? Handed to who reads, or dropped. */
static bool
ends_line(const struct termios *modes, unsigned char c)
{
    bool signals = (modes->c_lflag & (ISIG | NOFLSH)) == ISIG;

    return c == '\n' || is_char(modes, VEOF, c) || is_char(modes, VEOL, c) ||
           is_char(modes, VEOL2, c) || is_char(modes, VKILL, c) ||
           (signals &&
            (is_char(modes, VINTR, c) || is_char(modes, VQUIT, c) || is_char(modes, VSUSP, c)));
}

/* As the kernel has it on input; false: it drops the byte. */
static bool
map_return(const struct termios *modes, unsigned char *c)
{
    if (*c == '\r') {
        *c = (modes->c_iflag & ICRNL) != 0 ? '\n' : '\r';
        return (modes->c_iflag & IGNCR) == 0;
    }
    if (*c == '\n' && (modes->c_iflag & INLCR) != 0) {
        *c = '\r';
    }
    return true;
}

/*
 * A character erased takes one byte of the line, and a word none: so a line may be thought longer
 * than it is, and never shorter.
 */
size_t
live_tty_line(const struct live *l, const char *bytes, size_t n, bool *ret_is_lost)
{
    int master = orch_terminal_fd(l->call);
    struct termios modes;
    size_t line = l->line;
    bool is_literal = false;

    *ret_is_lost = false;
    if (master < 0 || tcgetattr(master, &modes) != 0 || (modes.c_lflag & ICANON) == 0) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (!map_return(&modes, &c)) {
            continue;
        }
        if (!is_literal && ends_line(&modes, c)) {
            line = 0;
        } else if (!is_literal && is_char(&modes, VERASE, c)) {
            line -= line > 0 ? 1 : 0;
        } else if (!is_literal && (modes.c_lflag & IEXTEN) != 0 && is_char(&modes, VLNEXT, c)) {
            is_literal = true;
        } else {
            is_literal = false;
            *ret_is_lost = *ret_is_lost || line >= LIMIT_TERMINAL_LINE;
            line += line <= LIMIT_TERMINAL_LINE ? 1 : 0;
        }
    }
    return line;
}

/* What the kernel has still to hand on, on either side, it hands on when it is polled
 * (n_tty_poll). An end of input alone counts no bytes; of keys that come by threes, one is not
 * ready. */
bool
live_has_typed_ahead(const struct live *l)
{
    int master = l->driver != NULL ? orch_terminal_fd(l->call) : -1;

    if (master < 0) {
        return false;
    }

    SY_FD slave =
        ioctl(master, TIOCGPTPEER, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC); /* 4.13 */
    struct pollfd p = {.fd = slave, .events = POLLIN};
    int n = 0;

    if (slave < 0 || (poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0)) {
        return true;
    }
    return ioctl(slave, FIONREAD, &n) == 0 && n > 0;
}

bool
live_has_unheard(const struct live *l)
{
    int master = l->driver != NULL ? orch_terminal_fd(l->call) : -1;
    struct pollfd p = {.fd = master, .events = POLLIN};

    return master >= 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0;
}

enum state_answer
live_reads_keys(const struct live_terminal *t, bool *ret_alone)
{
    *ret_alone = false;
    return t->name[0] != '\0' ? state_group_reads(t->key_reader, t->name, orch_peek, ret_alone)
                              : STATE_UNKNOWN;
}

uint64_t
live_seen(const struct live *l)
{
    return l->seen;
}

void
live_set_seen(struct live *l, uint64_t seq)
{
    l->seen = seq;
}

bool
live_was_drawing(const struct live *l)
{
    return l->was_drawing;
}

void
live_set_drawing(struct live *l, bool is_drawing)
{
    l->was_drawing = is_drawing;
}

bool
live_has_drawn(const struct live *l)
{
    return l->has_drawn;
}

void
live_set_drawn(struct live *l, bool has_drawn)
{
    l->has_drawn = has_drawn;
}

/* The process group of the session's first program: it leads the terminal's session. */
static pid_t
leader(int master)
{
    pid_t ret = 0;

    return ioctl(master, TIOCGSID, &ret) == 0 ? ret : 0;
}

/* The row of the cursor, up to it, asks for a password. */
static bool
asks_password(struct terminal *t)
{
    struct terminal_screen screen;
    SY_AUTO(buf_fini) struct buf line = {.max = LIMIT_TERMINAL_LINE};

    return terminal_look(t, &screen) == SY_E_OK && screen.cursor_col > 0 &&
           terminal_part(t, screen.cursor_row, 0, screen.cursor_col, &line) == SY_E_OK &&
           state_asks_password(buf_view(&line), line.len);
}

bool
live_is_at_own_prompt(const struct live *l)
{
    return l->prompted_ns != 0 && l->owed == 0;
}

/* What its modes alone do not tell. */
static void
look_closer(struct state_facts *facts, const char *name, const struct live *l)
{
    struct terminal *screen = l->screen;

    bool is_password = facts->canonical && !facts->echo;

    if (facts->canonical && name[0] != '\0') {
        facts->reads = state_group_reads(facts->foreground, name, orch_peek, &facts->reads_alone);
        facts->reads_commands = facts->reads == STATE_YES
                                    ? state_reads_commands(facts->foreground, name)
                                    : STATE_UNKNOWN;
    }
    if (is_password) {
        facts->asks_password = facts->reads == STATE_UNKNOWN && asks_password(screen);
        return;
    }
    if (!facts->canonical || facts->reads == STATE_YES) {
        /* A shell that runs a script has no line of its own: it asks, or who it has started. */
        const bool is_shell = state_is_shell(facts->foreground);

        const bool is_own = live_is_at_own_prompt(l) && facts->foreground == facts->shell;

        facts->asks_password = (!is_shell || (!is_own && state_runs_script(facts->foreground))) &&
                               asks_password(screen);
        facts->is_shell_line =
            is_shell && !facts->asks_password && !terminal_state(screen)->alt_screen;
    }
}

bool
live_get_terminal(const struct live *l, struct live_terminal *ret)
{
    int master = l->driver != NULL ? orch_terminal_fd(l->call) : -1;
    struct state_facts facts = {.reads = STATE_UNKNOWN, .reads_commands = STATE_UNKNOWN};
    unsigned number = 0;

    *ret = (struct live_terminal){.is_waiting = false};
    if (master < 0 || l->screen == NULL) {
        return false;
    }
    ret->has_unread = live_has_typed_ahead(l);
    ret->draws = terminal_state(l->screen)->alt_screen;
    if (state_read(master, &facts, NULL) != SY_E_OK) {
        return true;
    }
    facts.shell = leader(master);
    if (ioctl(master, TIOCGPTN, &number) == 0) {
        (void)snprintf(ret->name, sizeof(ret->name), "/dev/pts/%u", number);
    }
    look_closer(&facts, ret->name, l);
    ret->leader = facts.shell;
    ret->foreground = facts.foreground;
    ret->is_shell = facts.is_shell_line;
    ret->key_reader = facts.canonical ? 0 : facts.foreground;
    ret->reads = facts.reads == STATE_YES;
    ret->reads_alone = facts.reads_alone;
    ret->reads_for_others = facts.reads_commands == STATE_NO;
    ret->may_read = facts.reads != STATE_NO;
    ret->leads = facts.foreground != 0 && facts.foreground == facts.shell && facts.echo;
    switch (state_of(&facts)) {
    case STATE_RUNNING:
        break;
    case STATE_PROMPT:
        /* Without job control a program that draws is in the group of its shell. */
        ret->is_at_prompt = !ret->draws;
        ret->is_waiting = true;
        break;
    case STATE_PASSWORD:
        ret->echo_off = true;
        /* A script may have taken the echo away and not asked yet. What waits in another way than
         * by a read that we see tells by its last line, or else by its silence. */
        ret->is_waiting = facts.reads == STATE_YES || facts.asks_password ||
                          clock_mono_ns() >= l->heard_ns + LIVE_BLANK_MS * 1000000ULL;
        ret->hides_line = facts.canonical && !facts.echo && ret->is_waiting;
        break;
    case STATE_SCREEN:
    case STATE_LINE:
        ret->is_waiting = true;
        break;
    }
    return true;
}

bool
live_tty_hides(const struct live *l, const struct live_terminal *t)
{
    /* At its own prompt a shell shows what was typed; behind it, who asks can't be known. On the
     * whole screen it may be one in a window (tmux), or a text that is edited: it is hidden too. */
    return t->echo_off ||
           (l->screen != NULL && !live_is_at_own_prompt(l) && asks_password(l->screen));
}

/* What was written since the last look, through the filter, into the search. */
static bool
scan(struct live_wait *w, const char *bytes, size_t n)
{
    SY_AUTO(buf_fini) struct buf text = {.max = n * 12 + 64};
    struct strip strip = {.rc = SY_E_OK};
    struct pattern_match match;
    bool is_found = false;
    enum sy_code rc = strip_feed(&strip, bytes, n, &text);

    if (rc == SY_E_OK) {
        rc = strip_finish(&strip, &text);
    }
    strip_fini(&strip);
    for (size_t at = 0; rc == SY_E_OK && !is_found && at < text.len; at += LIMIT_PATTERN_WINDOW) {
        size_t left = text.len - at;

        rc = pattern_scan_feed(w->scan, text.data + at,
                               left < LIMIT_PATTERN_WINDOW ? left : LIMIT_PATTERN_WINDOW);
        if (rc == SY_E_OK) {
            rc = pattern_scan_next(w->scan, &match, &is_found, NULL);
        }
    }
    w->has_scan_failed = w->has_scan_failed || rc != SY_E_OK;
    return is_found;
}

/* The line that the first new bytes go on with. */
static enum sy_code
read_before(struct buf *ret, const struct live *l, uint64_t seq)
{
    SY_AUTO(buf_fini) struct buf raw = {.max = (size_t)LIMIT_PATTERN_BEFORE * 2};
    struct strip strip = {.rc = SY_E_OK};
    uint64_t from = seq > LIMIT_PATTERN_BEFORE ? seq - LIMIT_PATTERN_BEFORE : 0;
    uint64_t omitted = 0;
    enum sy_code rc = transcript_read(l->transcript, from, seq, &raw, &omitted);
    size_t at = raw.len;

    while (at > 0 && raw.data[at - 1] != '\n') {
        at--;
    }
    if (rc == SY_E_OK && at < raw.len) {
        rc = strip_feed(&strip, raw.data + at, raw.len - at, ret);
    }
    if (rc == SY_E_OK) {
        rc = strip_finish(&strip, ret);
    }
    strip_fini(&strip);
    return rc;
}

void
live_tty_scan_from(struct live *l, struct live_wait *w, uint64_t seq)
{
    SY_AUTO(buf_fini) struct buf before = {.max = (size_t)LIMIT_PATTERN_BEFORE * 12 + 64};

    w->scanned = seq;
    if (w->scan != NULL && seq > 0) {
        w->has_scan_failed = read_before(&before, l, seq) != SY_E_OK ||
                             pattern_scan_begin(w->scan, buf_view(&before), before.len) != SY_E_OK;
    }
}

bool
live_tty_matches(struct live *l, struct live_wait *w)
{
    uint64_t end = transcript_whole_end(l->transcript);
    SY_AUTO(buf_fini) struct buf raw = {.max = (size_t)LIMIT_SESSION_KEEP_MOST * 2};
    uint64_t omitted = 0;

    if (w->scan == NULL || w->scanned >= end ||
        transcript_read(l->transcript, w->scanned, end, &raw, &omitted) != SY_E_OK) {
        return false;
    }
    w->scanned = end;
    return scan(w, buf_view(&raw), raw.len);
}
