/* The answer of a call about a session. */
#include <stdio.h>

#include "base/limits.h"
#include "sessions/transcript.h"
#include "terminal/terminal.h"
#include "terminal/view.h"
#include "tools/live_call_internal.h"

/* Text that it wrote and this call is given. */
static enum sy_code
read_text(struct result_session *s, struct live_call *lc)
{
    struct transcript *t = live_transcript(lc->live);
    const struct live_part part = {
        .from = lc->order.has_since ? lc->order.since_seq : transcript_unread(t),
        .max_bytes = lc->order.max_bytes,
        .leaves_drawing_out = lc->order.view == LIVE_VIEW_AUTO && !lc->order.has_since &&
                              live_screen(lc->live) != NULL,
        .was_drawing = live_was_drawing(lc->live),
    };
    enum sy_code rc = live_show_stream(&s->shown, lc->live, &part);

    transcript_mark_read(t, s->shown.next_seq);
    return rc;
}

/* The screen in place of the stream; what it scrolled over counts as read. */
static enum sy_code
read_screen(struct result_session *s, struct live_call *lc)
{
    struct terminal *t = live_screen(lc->live);
    struct transcript *all = live_transcript(lc->live);
    struct terminal_screen screen;
    struct jw w = {.out = &s->screen};
    bool has_changes = lc->order.view == LIVE_VIEW_DIFF;
    enum sy_code rc = live_show_screen(&s->shown.text, lc->live, &screen, has_changes);

    if (rc == SY_E_OK) {
        jw_object(&w);
        rc = view_facts(&w, t, &screen);
        jw_end_object(&w);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    live_set_seen(lc->live, screen.seq);
    transcript_mark_read(all, transcript_end(all));
    s->shown.next_seq = transcript_end(all);
    s->shown.stats.total_bytes = s->shown.text.len;
    s->shown.stats.total_lines = live_show_lines(&s->shown.text);
    return jw_done(&w);
}

/* With nothing new it is what it was. */
static bool
draws(struct live *l)
{
    const struct transcript *t = live_transcript(l);
    uint64_t unread = transcript_unread(t);

    if (unread < transcript_whole_end(t)) {
        live_set_drawn(l, live_show_draws(l, unread));
    }
    return live_has_drawn(l);
}

static bool
shows_screen(const struct live_call *lc, const struct live_state *state)
{
    struct terminal *t = live_screen(lc->live);

    if (t == NULL) {
        return false;
    }
    switch (lc->order.view) {
    case LIVE_VIEW_AUTO:
        return !lc->order.has_since && state->is_running &&
               (terminal_state(t)->alt_screen || draws(lc->live));
    case LIVE_VIEW_STREAM:
        return false;
    case LIVE_VIEW_SCREEN:
    case LIVE_VIEW_DIFF:
        break;
    }
    return true;
}

/* What it asks for only a terminal tells. */
static bool
wants_terminal(const struct live_order *o)
{
    return o->until_prompt || o->until_input || o->view == LIVE_VIEW_SCREEN ||
           o->view == LIVE_VIEW_DIFF;
}

/* Does it ask for something that the specification's tools do not know? */
static bool
asks_more(const struct live_order *o)
{
    return o->has_until || o->idle_ms > 0 || o->pattern != NULL || o->has_since ||
           o->view != LIVE_VIEW_AUTO;
}

/* It was to be given something that it was not: it had ended. */
static bool
came_too_late(const struct live_call *lc)
{
    const struct live_order *o = &lc->order;

    return lc->wrote_nothing &&
           (lc->input.len > 0 || lc->keys.n > 0 || o->presses_enter || o->ends_input ||
            o->rows > 0 || o->columns > 0 || (o->signal != 0 && !lc->has_signalled));
}

/* Of what it was given. */
static void
add_input_notes(struct exec_output *o, const struct live_call *lc, const struct live_state *state)
{
    char note[SY_ERR_MSG_MAX];

    if (lc->wrote_nothing) {
        return;
    }
    if (lc->input.len > 0 && state->dropped > 0) {
        (void)snprintf(note, sizeof(note),
                       "%zu bytes that were typed before and not read yet were dropped",
                       state->dropped);
        exec_add_note(o, note);
    }
    if (lc->control != '\0') {
        (void)snprintf(note, sizeof(note),
                       "Ctrl-%c came in one call with the line before it: the terminal may have "
                       "taken it before that line was read, and one of the two is lost then; send "
                       "it in a call of its own, once the line is at work",
                       lc->control + '@');
        exec_add_note(o, note);
    }
    if (lc->loses_input) {
        exec_add_note(
            o, "a line of it, with what stood there before, is longer than a terminal takes that "
               "reads whole lines (4095 bytes): the rest is lost; send it by a file, or with "
               "stdin pipe");
    }
}

static void
add_notes(struct exec_output *o, const struct live_call *lc, const struct live_state *state)
{
    const struct live_store *store = tool_context_sessions(lc->call->context);
    char note[SY_ERR_MSG_MAX];

    if (state->is_running && !state->has_terminal && wants_terminal(&lc->order)) {
        exec_add_note(
            o, "it has no terminal, which until (prompt, input) and view (screen, diff) need: "
               "start it with tty true");
    }
    if (!state->is_running && came_too_late(lc)) {
        exec_add_note(o, "it had ended before it was given anything");
    }
    if (!state->is_running && state->status == EXEC_CANCELLED) {
        /* That it was ended is what somebody wanted, and no error. */
        o->err = (struct sy_error){.code = SY_E_OK};
        exec_add_note(o, "it was killed, with all that it had started");
    }
    if (lc->is_starter && state->is_running &&
        live_store_running(store) + LIMIT_SESSIONS_WARN >= live_store_max(store)) {
        (void)snprintf(note, sizeof(note),
                       "%zu of at most %zu sessions run: end those that are not needed, or the one "
                       "used least recently will be",
                       live_store_running(store), live_store_max(store));
        exec_add_note(o, note);
    }
}

/* The call that goes on, and that which reads what was left out, in the words of the tool that was
 * called. */
static void
write_next(char ret[RESULT_NEXT], const struct tool_call *call, const struct result_session *s)
{
    const bool is_shell = call->handler == tool_find("shell");
    const char *tool = is_shell ? "shell {\"action\":\"wait\"," : "write_stdin {";
    char cut[96] = "";

    if (s->shown.cut_seq > 0) {
        (void)snprintf(cut, sizeof(cut), "%s\"since_seq\":%llu%s", s->is_running ? "; with " : ",",
                       (unsigned long long)s->shown.cut_seq,
                       s->is_running ? " it reads what was left out" : "} reads what was left out");
    }
    if (s->is_running) {
        (void)snprintf(ret, RESULT_NEXT, "%s\"session_id\":\"%s\"} waits for more; %s%s", tool,
                       s->id, is_shell ? "send_text and send_keys type" : "chars types", cut);
    } else if (cut[0] != '\0') {
        (void)snprintf(ret, RESULT_NEXT, "%s\"session_id\":\"%s\"%s", tool, s->id, cut);
    }
}

static enum sy_code
build(struct tool_output *ret, struct tool_call *call, struct exec_output *answer)
{
    struct live_call *lc = call->live;
    struct live_state state;
    struct result_session s = {.reason = live_reason_name(lc->reason),
                               .tells_more = asks_more(&lc->order)};

    live_get_state(lc->live, &state);
    s.id = live_id(lc->live);
    s.is_running = state.is_running;
    s.pending_input = state.unwritten;
    s.shown.text.max = lc->order.max_bytes + LIVE_SCREEN_BYTES;
    s.screen.max = LIVE_SCREEN_BYTES * 4;
    (void)live_get_terminal(lc->live, &s.terminal);
    if (lc->reason == LIVE_PROMPT || lc->reason == LIVE_INPUT) {
        s.terminal.is_waiting = true; /* a mark is there before its shell reads */
    }
    add_notes(answer, lc, &state);
    add_input_notes(answer, lc, &state);
    if (lc->wait.has_scan_failed) {
        exec_add_note(answer,
                      "the pattern takes too many steps for this output: it may have been missed");
    }

    enum sy_code rc = shows_screen(lc, &state) ? read_screen(&s, lc) : read_text(&s, lc);

    write_next(s.next, call, &s);
    live_set_drawing(lc->live, s.terminal.draws);
    if (rc == SY_E_OK) {
        rc = result_build_session(ret, call, answer, &s);
    }
    buf_fini(&s.screen);
    buf_fini(&s.shown.text);
    return rc;
}

enum sy_code
live_call_result(struct tool_output *ret, struct tool_call *call)
{
    struct exec_output answer;

    if (call->live->refused.code != SY_E_OK) {
        return result_build_untyped(ret, &call->live->refused);
    }
    live_call_output(&answer, call);
    return call->live->live == NULL ? result_build(ret, call, &answer) : build(ret, call, &answer);
}
