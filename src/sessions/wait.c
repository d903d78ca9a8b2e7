/* Calls that wait for something of a session, one after the other. */
#include "base/clock.h"
#include "sessions/sessions_internal.h"
#include "terminal/state.h"

#define NS_PER_MS 1000000ULL

/* A program that has written nothing for so long has done what it was going to do at once. */
#define LIVE_QUIET_MS 30U
/* How often a terminal is looked at that was quiet and is waited for. */
#define LIVE_LOOK_MS 100U
/* And one that has just written and is not known to sleep. */
#define LIVE_SOON_MS 1U
/* How often a screen is drawn for one that waits until it is stable: drawing is what costs. */
#define LIVE_DRAW_MS 20U

static const char *const reason_names[] = {
    [LIVE_EXIT] = "exit",       [LIVE_DEADLINE] = "timeout",    [LIVE_IDLE] = "idle",
    [LIVE_PATTERN] = "pattern", [LIVE_PROMPT] = "prompt",       [LIVE_INPUT] = "input",
    [LIVE_STABLE] = "stable",   [LIVE_CANCELLED] = "cancelled", [LIVE_REFUSED] = "refused",
};

const char *
live_reason_name(enum live_reason r)
{
    return reason_names[r];
}

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When the wait ends if nothing happens; *ret_reason by what. */
static uint64_t
end_ns(const struct live *l, const struct live_wait *w, enum live_reason *ret_reason)
{
    uint64_t deadline = w->began_ns + w->yield_ms * NS_PER_MS;
    uint64_t idle = later(l->heard_ns, w->began_ns) + w->idle_ms * NS_PER_MS;

    if (w->idle_ms > 0 && !w->until_stable && idle < deadline) {
        *ret_reason = LIVE_IDLE;
        return idle;
    }
    *ret_reason = LIVE_DEADLINE;
    return deadline;
}

/* Does something stand before the cursor? A shell sets its terminal before it prints its prompt. */
static bool
is_behind_text(struct live *l)
{
    struct terminal_screen screen;

    return terminal_look(l->screen, &screen) == SY_E_OK && screen.cursor_col > 0;
}

/*
 * Of a shell that leaves the terminal as it is at its prompt (sh, bash --noediting): its mark, and
 * that it leads. It may not read yet right behind the mark, but does after a moment. One that does,
 * and for no command, or a sh that is not at its prompt by that, reads for somebody
 * (state_reads_commands).
 */
static bool
is_marked_plainly(const struct live *l, const struct live_wait *w, const struct live_terminal *t,
                  bool is_quiet)
{
    bool is_marked = l->prompted_ns >= w->began_ns || (is_quiet && l->prompted_ns > l->typed_ns);

    if (!is_marked || !t->leads || (is_quiet && !t->may_read)) {
        return false;
    }
    return (l->shell == MARKS_PLAIN_BASH && !t->reads_for_others) ||
           (l->shell == MARKS_SH && !t->reads);
}

/* Has what was typed been read, and begun to be worked on? A shell that has it may not have echoed
 * it for longer than a prompt has to be quiet. Of one that echoes nothing, nothing tells. */
static bool
is_taken(const struct live *l, const struct live_terminal *t)
{
    return !t->has_unread && (l->heard_ns >= l->typed_ns ||
                              clock_mono_ns() >= l->typed_ns + LIVE_BLANK_MS * NS_PER_MS);
}

/* Who reads lines sets the terminal before the prompt is worked out, and may write it in pieces: it
 * is whole once that program sleeps and what it wrote is read. A shell may start programs for it.
 * One that stays (exec > >(tee log)) is none of these: after a while it counts no more. */
static bool
works_out_prompt(const struct live *l, const struct live_wait *w, const struct live_terminal *t)
{
    uint64_t until = later(l->heard_ns, w->began_ns) + LIVE_BLANK_MS * NS_PER_MS;

    return t->key_reader != 0 && clock_mono_ns() < until &&
           (state_works(t->key_reader) || (t->is_shell && state_has_helper(t->key_reader)) ||
            live_has_unheard(l));
}

/*
 * A program in a read of its terminal that has read all of it, while nothing is at work behind it,
 * needs no silence to be known by, where it waits for nothing else and so will write no more. The
 * order counts: nothing was unread before it was seen to read, so it sleeps until more is typed;
 * and all that it wrote before that is heard.
 */
static bool
is_known_to_read(const struct live *l, const struct live_terminal *t)
{
    bool is_alone = t->reads_alone;

    if (t->has_unread || orch_unwritten(l->call) > 0) {
        return false;
    }
    if (t->key_reader != 0 && live_reads_keys(t, &is_alone) != STATE_YES) {
        return false;
    }
    return is_alone && !state_group_works(t->foreground) && !live_has_unheard(l);
}

/* A program that reads keys sets its terminal for them at its beginning, before it reads, and may
 * have to wait for what it shows: `man`. One whose waiting we do not see is believed after a while.
 */
static bool
has_yet_to_read(const struct live_wait *w, const struct live_terminal *t, uint64_t now_ns)
{
    bool ignored = false;

    return t->key_reader != 0 && !t->is_shell && now_ns < w->began_ns + LIVE_BLANK_MS * NS_PER_MS &&
           live_reads_keys(t, &ignored) == STATE_NO;
}

/*
 * A mark tells of a prompt at once (marks.c). Without marks one counts when the terminal was seen
 * otherwise since our turn began and stands behind a text. Else it must be known to read, or have
 * been quiet for a moment: what was typed may not have been read yet, and its echo comes from the
 * prompt before. So it must where a line is not the first that the shell reads, and nothing be
 * unread: each but the last may have a prompt of its own.
 */
static bool
is_prompted(struct live *l, const struct live_wait *w, const struct live_terminal *t, bool is_quiet)
{
    bool is_marked = l->prompted_ns >= w->began_ns;
    bool is_settled = is_quiet ? is_taken(l, t) && !state_works(t->key_reader)
                               : t->is_at_prompt && l->prompted_ns == 0 && is_known_to_read(l, t);

    if (w->has_more && !is_settled) {
        return false;
    }
    if (!t->is_at_prompt) {
        return is_marked_plainly(l, w, t, is_settled);
    }
    if (is_marked) {
        return true;
    }
    if (works_out_prompt(l, w, t)) {
        return false;
    }
    if (!is_settled && (l->prompted_ns != 0 || !w->saw_running)) {
        return false;
    }
    /* A job in the background may have written behind the prompt. */
    return is_behind_text(l) || (is_settled && t->is_shell && live_is_at_own_prompt(l)) ||
           clock_mono_ns() >= later(l->heard_ns, w->began_ns) + LIVE_BLANK_MS * NS_PER_MS;
}

/* The first of a pipeline may work for long while its last waits for a key: `find / | less`. */
static bool
is_at_work(const struct live *l, const struct live_wait *w, const struct live_terminal *t,
           uint64_t now_ns)
{
    return (t->is_shell || now_ns < later(l->heard_ns, w->began_ns) + LIVE_BLANK_MS * NS_PER_MS) &&
           state_works(t->key_reader);
}

static bool
is_met(struct live *l, struct live_wait *w, uint64_t now_ns, enum live_reason *ret_reason,
       uint64_t *ret_next)
{
    uint64_t quiet_ns = later(l->heard_ns, w->began_ns) + LIVE_QUIET_MS * NS_PER_MS;
    bool is_quiet = now_ns >= quiet_ns;
    struct live_terminal t;

    if (live_tty_matches(l, w)) {
        *ret_reason = LIVE_PATTERN;
        return true;
    }
    if (!(w->until_prompt || w->until_input) || !live_get_terminal(l, &t)) {
        return false;
    }
    w->saw_running = w->saw_running || !t.is_waiting;
    if (w->until_prompt && is_prompted(l, w, &t, is_quiet)) {
        *ret_reason = LIVE_PROMPT;
        return true;
    }
    if (w->until_input && t.is_waiting &&
        (is_quiet ? !has_yet_to_read(w, &t, now_ns) : is_known_to_read(l, &t)) &&
        !is_at_work(l, w, &t, now_ns) && !works_out_prompt(l, w, &t)) {
        *ret_reason = LIVE_INPUT;
        return true;
    }
    /* The kernel tells of no change: while input is waited for, we look again. What has drawn its
     * prompt sleeps within the same millisecond. */
    *ret_next = is_quiet ? now_ns + LIVE_LOOK_MS * NS_PER_MS : quiet_ns;
    if (!is_quiet && (w->until_input || (w->until_prompt && t.is_at_prompt &&
                                         (!t.is_shell || l->prompted_ns == 0)))) {
        *ret_next = now_ns + LIVE_SOON_MS * NS_PER_MS;
    }
    return false;
}

static bool
is_blank(struct live *l)
{
    struct terminal_screen screen;
    SY_AUTO(buf_fini) struct buf row = {.max = (size_t)LIMIT_TERMINAL_LINE * 4};
    bool ret = terminal_look(l->screen, &screen) == SY_E_OK;

    for (unsigned i = 0; ret && i < screen.rows; i++) {
        ret = terminal_row(l->screen, i, &row) == SY_E_OK && row.len == 0;
    }
    return ret;
}

/* Before a program has drawn anything, or read what was typed, it has still to begin. */
static bool
has_to_begin(struct live *l)
{
    return l->screen != NULL && (live_has_typed_ahead(l) || is_blank(l));
}

/* A program says that its screen is not whole yet. One that never says so again is not believed for
 * ever. */
static bool
is_drawing(const struct live *l, const struct live_wait *w, uint64_t now_ns, uint64_t *ret_next)
{
    uint64_t until = later(l->heard_ns, w->began_ns) + LIVE_BLANK_MS * NS_PER_MS;

    if (l->screen == NULL || !terminal_state(l->screen)->is_in_frame || now_ns >= until) {
        return false;
    }
    *ret_next = until;
    return true;
}

/* Has the screen been the same for so long? Otherwise *ret_next is when to look again, at the
 * latest. */
static bool
is_stable(struct live *l, struct live_wait *w, uint64_t now_ns, uint64_t *ret_next)
{
    struct terminal_screen screen;
    uint64_t quiet_ns = 0;

    if (l->screen == NULL || (w->looked_ns != 0 && l->heard_ns < w->looked_ns)) {
        /* Nothing new to look at. */
        quiet_ns = l->screen == NULL ? later(l->heard_ns, w->began_ns) : w->changed_ns;
    } else if (w->looked_ns != 0 && now_ns < w->looked_ns + LIVE_DRAW_MS * NS_PER_MS) {
        *ret_next = w->looked_ns + LIVE_DRAW_MS * NS_PER_MS;
        return false;
    } else {
        /* Without memory it has no screen, which is no change. */
        bool is_drawn = terminal_look(l->screen, &screen) == SY_E_OK;

        if (w->looked_ns == 0 || terminal_state(l->screen)->is_in_frame ||
            (is_drawn && screen.seq != w->screen_seq)) {
            w->changed_ns = w->looked_ns == 0 ? later(l->heard_ns, w->began_ns) : now_ns;
        }
        w->screen_seq = is_drawn ? screen.seq : w->screen_seq;
        w->looked_ns = now_ns;
        quiet_ns = w->changed_ns;
    }
    if (is_drawing(l, w, now_ns, ret_next)) {
        return false;
    }
    *ret_next = quiet_ns + w->idle_ms * NS_PER_MS;
    if (now_ns >= *ret_next && w->idle_ms < LIVE_BLANK_MS &&
        now_ns < quiet_ns + LIVE_BLANK_MS * NS_PER_MS && has_to_begin(l)) {
        *ret_next = now_ns + LIVE_LOOK_MS * NS_PER_MS;
        return false;
    }
    return now_ns >= *ret_next;
}

/* Is it over? Otherwise *ret_next is when to look again. */
static bool
is_done(struct live *l, struct live_wait *w, uint64_t now_ns, enum live_reason *ret_reason,
        uint64_t *ret_next)
{
    if (w->is_cancelled || l->is_removed) {
        *ret_reason = LIVE_CANCELLED;
        return true;
    }
    if (l->is_over) {
        *ret_reason = LIVE_EXIT;
        return true;
    }

    uint64_t again = UINT64_MAX;

    if (is_met(l, w, now_ns, ret_reason, &again)) {
        return true;
    }
    if (w->until_stable) {
        uint64_t still = 0;

        if (is_stable(l, w, now_ns, &still)) {
            *ret_reason = LIVE_STABLE;
            return true;
        }
        again = still < again ? still : again;
    }
    *ret_next = end_ns(l, w, ret_reason);
    if (now_ns >= *ret_next) {
        return true;
    }
    *ret_next = again < *ret_next ? again : *ret_next;
    return false;
}

static void
finish(struct live *l, struct live_wait *w, enum live_reason reason)
{
    l->waits = w->next;
    w->next = NULL;
    w->done(w->arg, l, reason);
}

/* It gives what it has to give. */
static enum live_turn
begin(struct live *l, struct live_wait *w)
{
    struct live_terminal t;
    bool is_busy = w->until_prompt && live_get_terminal(l, &t) &&
                   (!t.is_waiting || !is_taken(l, &t) || state_works(t.key_reader));

    if (l->call != NULL) {
        orch_renew_deltas(l->call);
    }
    if (!w->is_beginning) {
        live_tty_scan_from(l, w, w->has_since ? w->since_seq : transcript_unread(l->transcript));
    }

    enum live_turn turn = w->begin != NULL ? w->begin(w->arg, l) : LIVE_TURN_TAKEN;

    if (turn != LIVE_TURN_TAKEN) {
        return turn;
    }
    w->has_more = w->lines > 1 || (is_busy && (w->lines > 0 || live_has_typed_ahead(l)));
    return LIVE_TURN_TAKEN;
}

/* The first one's turn. True: it is done, and so is its memory. */
static bool
look_at(struct live *l, struct live_wait *w, uint64_t *ret_next)
{
    enum live_reason reason = LIVE_CANCELLED;
    uint64_t now = clock_mono_ns();

    if ((w->began_ns == 0 || w->is_beginning) && !w->is_cancelled && !l->is_removed) {
        w->began_ns = now;
        l->used_ns = now;

        enum live_turn turn = begin(l, w);

        w->is_beginning = turn == LIVE_TURN_LATER;
        if (turn == LIVE_TURN_REFUSED) {
            finish(l, w, LIVE_REFUSED);
            return true;
        }
        if (turn == LIVE_TURN_LATER) {
            *ret_next = now;
            return false;
        }
    }
    if (!is_done(l, w, now, &reason, ret_next)) {
        return false;
    }
    l->used_ns = now;
    finish(l, w, reason);
    return true;
}

static void
look(struct live *l)
{
    uint64_t next = UINT64_MAX;

    if (l->is_looking) {
        return;
    }
    l->is_looking = true;
    while (l->waits != NULL && look_at(l, l->waits, &next)) {
        next = UINT64_MAX;
    }
    l->is_looking = false;
    if (l->waits == NULL && l->screen != NULL) {
        /* Drawn anew by the next look, from LIMIT_TERMINAL_LOG bytes at most. */
        terminal_rest(l->screen);
    }
    if (l->waits == NULL || next == UINT64_MAX) {
        uv_timer_stop(&l->timer);
        return;
    }

    uint64_t now = clock_mono_ns();
    uint64_t wait_ms = next > now ? (next - now) / NS_PER_MS + 1 : 0;

    /* One that is due at once runs again before anything is read (libuv before 1.45). */
    wait_ms = l->waits->is_beginning && wait_ms == 0 ? 1 : wait_ms;
    uv_update_time(l->timer.loop);
    uv_timer_start(&l->timer, live_on_timer, wait_ms, 0);
}

/*
 * A loop that was held up runs its timers before it reads: a silence is judged when what has been
 * written meanwhile is read. Put off once alone, since some of it may have to stay unread.
 */
void
live_on_timer(uv_timer_t *timer)
{
    struct live *l = timer->data;

    l->is_put_off = !l->is_put_off && live_has_unheard(l);
    if (l->is_put_off) {
        uv_timer_start(timer, live_on_timer, 1, 0);
        return;
    }
    look(l);
}

void
live_look_soon(struct live *l)
{
    if (l->waits != NULL && !l->is_looking) {
        uv_timer_start(&l->timer, live_on_timer, 0, 0);
    }
}

void
live_wait(struct live *l, struct live_wait *w)
{
    struct live_wait **last = &l->waits;

    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = w;
    w->next = NULL;
    w->began_ns = 0;
    w->is_beginning = false;
    w->is_cancelled = false;
    w->saw_running = false;
    w->lines = 0;
    w->has_more = false;
    w->looked_ns = 0;
    w->has_scan_failed = false;
    l->used_ns = clock_mono_ns();
    live_look_soon(l);
}

void
live_wait_cancel(struct live *l, struct live_wait *w)
{
    for (struct live_wait **at = &l->waits; *at != NULL; at = &(*at)->next) {
        if (*at != w) {
            continue;
        }
        w->is_cancelled = true;
        /* One that was not its turn needs not wait for it. */
        if (at != &l->waits && w->began_ns == 0) {
            *at = w->next;
            w->next = l->waits;
            l->waits = w;
        }
        live_look_soon(l);
        return;
    }
}

void
live_end_waits(struct live *l)
{
    while (l->waits != NULL) {
        finish(l, l->waits, LIVE_CANCELLED);
    }
}
