#include "tools/live_call.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "output/pattern.h"
#include "sessions/transcript.h"
#include "terminal/terminal.h"
#include "terminal/view.h"
#include "tools/retry.h"

struct live_call {
    struct tool_call *call; /* borrowed */
    struct live *live;      /* borrowed from the store; NULL: it is not known any more */
    struct live_wait wait;
    bool is_waiting;
    bool is_starter; /* it started the session, and has not been answered */
    bool has_begun;
    struct live_order order; /* its texts are ours */
    struct buf input;
    struct strv keys;
    struct pattern *pattern; /* NULL: none */
    struct pattern_scan *scan;
    enum live_reason reason;
    struct live_typing *typing; /* NULL: nothing is being typed */
    bool is_made;               /* `input` is what is typed */
    bool loses_input;           /* a line of it is too long for the terminal */
    bool wrote_nothing;         /* it had ended by its turn */
    bool has_signalled;         /* and by a signal of this call before that */
    struct sy_error refused;    /* what `begin` could not do */
    uint64_t began_ns;          /* when its turn came */
};

void
live_call_free(struct live_call *lc)
{
    if (lc != NULL) {
        live_typing_free(lc->typing);
        buf_fini(&lc->input);
        strv_fini(&lc->keys);
        pattern_scan_free(lc->scan);
        pattern_free(lc->pattern);
        mem_free(lc);
    }
}

/* The bytes that its texts and keys are, on a terminal of the size that it is to have. */
static bool
make_input(struct live_call *lc)
{
    const struct live_order *o = &lc->order;
    enum sy_code rc = SY_E_OK;

    if (o->ends_input && live_screen(lc->live) != NULL) {
        (void)sy_err_set(&lc->refused, SY_E_ARG,
                         "the input of session %s is a terminal, which has no end: type Ctrl-D at "
                         "the start of a line (chars \"\\u0004\", or keys [\"C-d\"])",
                         live_id(lc->live));
        return false;
    }
    if ((o->rows > 0 || o->columns > 0) && !live_resize(lc->live, o->rows, o->columns)) {
        (void)sy_err_set(&lc->refused, SY_E_ARG,
                         "session %s has no terminal that could get a size: start it with tty true",
                         live_id(lc->live));
        return false;
    }
    rc = live_input_make(&lc->input, lc->live, &lc->keys, o, &lc->refused);
    lc->is_made = rc == SY_E_OK;
    lc->wait.lines = live_input_lines(&lc->input);
    return lc->is_made;
}

static enum live_turn
give(struct live_call *lc)
{
    bool is_later = false;

    if (!lc->is_made && !make_input(lc)) {
        return LIVE_TURN_REFUSED;
    }
    if (lc->input.len == 0 && !lc->order.ends_input) {
        return LIVE_TURN_TAKEN;
    }
    if (lc->typing == NULL) {
        lc->typing = live_typing_new(lc->order.ends_input);
    }

    enum sy_code rc = lc->typing == NULL ? sy_err_nomem(&lc->refused)
                                         : live_write(lc->live, lc->typing, buf_view(&lc->input),
                                                      lc->input.len, &is_later, &lc->refused);

    if (rc == SY_E_OK && is_later) {
        return LIVE_TURN_LATER;
    }
    live_typing_free(lc->typing);
    lc->typing = NULL;
    lc->loses_input = rc == SY_E_OK && !lc->order.ends_input && live_has_lost_input(lc->live);
    return rc == SY_E_OK ? LIVE_TURN_TAKEN : LIVE_TURN_REFUSED;
}

/* Its turn. One that has ended meanwhile is told as ended, whatever it was to be given. */
static enum live_turn
on_turn(void *arg, struct live *l)
{
    struct live_call *lc = arg;
    struct live_state state;

    live_get_state(l, &state);
    lc->began_ns = lc->is_made ? lc->began_ns : clock_mono_ns();
    lc->wrote_nothing = !state.is_running;
    return state.is_running ? give(lc) : LIVE_TURN_TAKEN;
}

static void
on_waited(void *arg, struct live *l, enum live_reason reason)
{
    struct live_call *lc = arg;
    struct tool_call *call = lc->call;
    struct live_state state;

    live_get_state(l, &state);
    lc->is_waiting = false;
    lc->reason = reason;
    if (lc->is_starter) {
        live_detach(l);
    }
    tool_call_complete(call); /* lc is gone */
    if (!state.is_running) {
        live_forget_call(l);
    }
}

static void
await(struct live_call *lc)
{
    lc->is_waiting = true;
    live_wait(lc->live, &lc->wait);
}

/* What the order borrows, for as long as the call lives. */
static enum sy_code
keep(struct live_call *lc, const struct live_order *order, struct sy_error *err)
{
    struct sy_error why = {0};
    enum sy_code rc = buf_add(&lc->input, order->input, order->input_len);

    for (size_t i = 0; order->keys != NULL && i < js_count(order->keys) && rc == SY_E_OK; i++) {
        rc = strv_add(&lc->keys, js_str(js_at(order->keys, i)));
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_LIMIT ? sy_err_set(err, rc, "more than %u bytes or %u keys at once",
                                             LIMIT_INPUT_PENDING, LIMIT_ARGV)
                                : sy_err_nomem(err);
    }
    lc->order.keys = NULL;
    if (order->pattern == NULL) {
        return SY_E_OK;
    }
    rc = pattern_new(&lc->pattern, order->pattern, strlen(order->pattern), NULL, &why);
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err)
                                : sy_err_set(err, rc, "'pattern' is %s", why.msg);
    }
    lc->scan = pattern_scan_new(lc->pattern);
    return lc->scan != NULL ? SY_E_OK : sy_err_nomem(err);
}

static enum sy_code
live_call_new(struct live_call **ret, struct tool_call *call, const struct live_order *order,
              struct sy_error *err)
{
    struct live_call *lc = mem_alloc_zero(1, sizeof(*lc));

    if (lc == NULL) {
        (void)sy_err_nomem(err);
        return SY_E_NOMEM;
    }
    lc->keys.max = LIMIT_ARGV;
    lc->call = call;
    lc->order = *order;
    lc->input.max = LIMIT_INPUT_PENDING;
    lc->wait = (struct live_wait){
        .yield_ms = order->yield_ms,
        .idle_ms = order->idle_ms,
        .begin = on_turn,
        .done = on_waited,
        .arg = lc,
    };

    enum sy_code rc = keep(lc, order, err);

    if (rc != SY_E_OK) {
        live_call_free(lc);
        return rc;
    }
    lc->wait.until_prompt = order->until_prompt;
    lc->wait.until_input = order->until_input;
    lc->wait.until_stable = order->until_stable;
    lc->wait.scan = lc->scan;
    lc->wait.has_since = order->has_since;
    lc->wait.since_seq = order->since_seq;
    call->live = lc;
    call->max_bytes = order->max_bytes;
    *ret = lc;
    return SY_E_OK;
}

static void
on_begun(void *arg, struct live *l)
{
    struct tool_call *call = arg;
    struct live_call *lc = call->live;

    (void)l;
    if (!lc->has_begun) {
        lc->has_begun = true;
        await(lc);
    }
}

/* A second attempt, outside the sandbox, if there is to be one. */
static bool
try_again(struct tool_call *call, struct live *l)
{
    struct exec_request request = {0};
    struct sy_error err = {0};

    if (!retry_make(&request, call)) {
        return false;
    }
    call->first = live_take_call(l);
    tool_call_fill_request(call, &request);
    if (live_submit(l, call->session, orch_turn(call->first), &request, &err) != SY_E_OK) {
        /* What the first one came to stands. */
        call->orch = call->first;
        return false;
    }
    call->orch = live_call(l);
    return true;
}

static void
on_over(void *arg, struct live *l)
{
    struct tool_call *call = arg;

    if (try_again(call, l)) {
        return;
    }
    if (call->live->has_begun) {
        return; /* the wait says so */
    }
    /* It never ran: it was refused, or a person has still to answer. */
    const struct exec_output *o = orch_output(live_call(l));
    char why[SY_ERR_MSG_MAX];
    bool is_told = o->status == EXEC_FAILED || o->status == EXEC_DENIED;

    (void)snprintf(why, sizeof(why), "never began: %.200s", o->err.msg);
    call->live->live = NULL;
    tool_call_complete(call);
    live_remove(l, is_told ? why : NULL);
}

enum sy_code
live_call_start(struct tool_call *call, struct exec_request *request,
                const struct live_order *order, struct sy_error *err)
{
    const struct live_options options = {
        .id = order->id, .begun = on_begun, .over = on_over, .arg = call};
    struct live_store *store = tool_context_sessions(call->context);
    struct live_call *lc = NULL;
    enum sy_code rc = live_call_new(&lc, call, order, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = live_new(&lc->live, store, &options, err);

    if (rc != SY_E_OK) {
        lc->live = NULL;
        return rc;
    }
    lc->is_starter = true;
    request->call_id = mem_strdup(call->call_id);
    if (request->call_id == NULL) {
        rc = sy_err_nomem(err);
    }
    call->timeout_ms = request->params.expiration.timeout_ms;
    tool_call_fill_request(call, request);
    if (rc == SY_E_OK) {
        rc = live_submit(lc->live, call->session, call->turn, request, err);
    }
    if (rc != SY_E_OK) {
        live_remove(lc->live, NULL);
        lc->live = NULL;
        return rc;
    }
    call->orch = live_call(lc->live);
    return SY_E_OK;
}

/* A number that is nobody's yet is another session's, and what comes would be missed. */
static enum sy_code
check_since(struct live *l, const struct live_order *order, struct sy_error *err)
{
    uint64_t end = transcript_end(live_transcript(l));

    return !order->has_since || order->since_seq <= end
               ? SY_E_OK
               : sy_err_set(err, SY_E_ARG,
                            "'since_seq' is %" PRIu64 ", but session %s has written %" PRIu64
                            " bytes: give next_seq of one of its answers, or leave it out for what "
                            "is new",
                            order->since_seq, live_id(l), end);
}

enum sy_code
live_call_drive(struct tool_call *call, const struct live_order *order, struct sy_error *err)
{
    struct live *l = NULL;
    enum sy_code rc =
        live_find(&l, tool_context_sessions(call->context), call->session, order->id, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    struct live_call *lc = NULL;

    rc = check_since(l, order, err);
    if (rc == SY_E_OK) {
        rc = live_call_new(&lc, call, order, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    lc->live = l;
    call->orch = live_call(l);
    if (order->kills) {
        live_kill(l);
    } else if (order->signal != 0) {
        /* It waits for no other call: it may be what ends that one. */
        lc->has_signalled = live_signal(l, order->signal);
    }
    await(lc);
    return SY_E_OK;
}

struct live *
live_call_session(const struct live_call *lc)
{
    return lc->live;
}

void
live_call_cancel(struct live_call *lc)
{
    if (lc->is_waiting) {
        live_wait_cancel(lc->live, &lc->wait);
    } else if (lc->live != NULL) {
        live_kill(lc->live); /* it has not begun */
    }
}

bool
live_call_may_ask(const struct live_call *lc)
{
    return lc->is_starter && !lc->is_waiting && lc->live != NULL && lc->call->orch != NULL;
}

void
live_call_output(struct exec_output *ret, const struct tool_call *call)
{
    struct live_state state;

    if (call->live == NULL || call->live->live == NULL) {
        retry_output(ret, call);
        return;
    }
    live_get_state(call->live->live, &state);
    if (!state.is_running && live_call(call->live->live) != NULL) {
        retry_output(ret, call);
        ret->duration_ns = clock_mono_ns() - call->live->began_ns;
        return;
    }
    /* It still runs, or an earlier call has told all about its end. */
    *ret = (struct exec_output){
        .status = state.status,
        .exit_code = state.exit_code,
        .signal = state.signal,
        .is_timed_out = state.status == EXEC_TIMED_OUT,
        .duration_ns = clock_mono_ns() - call->live->began_ns,
    };
    if (state.status == EXEC_FAILED) {
        ret->err = *state.error;
    }
    if (state.is_running && call->live->is_starter) {
        ret->plan = orch_plan(call->orch);
    }
}

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
    if (lc->input.len > 0 && !lc->wrote_nothing && state->dropped > 0) {
        (void)snprintf(note, sizeof(note),
                       "%zu bytes that were typed before and not read yet were dropped",
                       state->dropped);
        exec_add_note(o, note);
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

    if (lc->loses_input) {
        exec_add_note(
            answer,
            "a line of it, with what stood there before, is longer than a terminal takes that "
            "reads whole lines (4095 bytes): the rest is lost; send it by a file, or with "
            "stdin pipe");
    }
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
