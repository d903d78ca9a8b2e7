#include "tools/live_call_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "output/pattern.h"
#include "sessions/transcript.h"
#include "tools/retry.h"

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

/* Of one that uses the whole screen all are keys. */
static char
find_control(const struct live_call *lc)
{
    struct live_terminal t;

    if (live_screen(lc->live) == NULL || live_input_control(&lc->input, false) == '\0' ||
        !live_get_terminal(lc->live, &t) || t.draws) {
        return '\0';
    }
    /* Behind another program than the first one, a shell waits for what is typed ahead. */
    return live_input_control(&lc->input, t.key_reader == 0 && t.foreground == t.leader);
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
        lc->control = find_control(lc);
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
