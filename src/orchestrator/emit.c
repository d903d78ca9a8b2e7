#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "orchestrator/call_internal.h"

static struct event
event_of(const struct orch_call *c, enum event_kind kind)
{
    return (struct event){
        .kind = kind,
        .session_id = session_id(c->session),
        .turn_id = c->request.turn_id,
        .call_id = orch_call_id(c),
        .outlives_call = c->request.input.is_session,
    };
}

void
call_emit_begin(struct orch_call *c)
{
    struct event e = event_of(c, EVENT_EXEC_BEGIN);

    e.u.begin = (struct event_begin){
        .argv = strv_view(&c->argv),
        .cwd = c->request.params.cwd,
        .tool = c->request.tool,
        .source = "agent",
    };
    c->has_begun = true;
    event_emit(session_bus(c->session), &e);
}

void
call_emit_asked(struct orch_call *c, const char *id, const char *text)
{
    struct event e = event_of(c, EVENT_APPROVAL_REQUESTED);

    e.u.request = (struct event_approval_request){
        .id = id,
        .tool = c->request.tool,
        .text = text,
        .is_repeated = !asked_add(session_asked(c->session), id, clock_mono_ns()),
    };
    event_emit(session_bus(c->session), &e);
}

void
call_emit_commented(struct orch_call *c, const char *id, const char *text)
{
    struct event e = event_of(c, EVENT_APPROVAL_COMMENTED);

    e.u.request = (struct event_approval_request){
        .id = id, .tool = c->request.tool, .text = text, .is_repeated = true};
    event_emit(session_bus(c->session), &e);
}

void
call_emit_decided(struct orch_call *c, const struct review_answer *a)
{
    struct event e = event_of(c, EVENT_APPROVAL_DECIDED);
    uint64_t since_ns = 0;

    if (!asked_take(session_asked(c->session), a->id, &since_ns)) {
        return;
    }
    /* One that was decided while no call waited: the store knows when that was. */
    bool is_late = a->is_remembered && a->waited_ms > 0;

    e.u.decision = (struct event_approval_decision){
        .id = a->id,
        .tool = c->request.tool,
        .decision = a->word,
        .decided_by = a->decided_by,
        .reason = a->reason,
        .waited_ns = is_late ? a->waited_ms * 1000000U : clock_mono_ns() - since_ns,
    };
    event_emit(session_bus(c->session), &e);
}

/* How many were not told so far. */
static uint64_t
dropped(const struct orch_call *c)
{
    return c->deltas_left_out + (c->chain != NULL ? output_deltas_dropped(c->chain) : 0);
}

void
call_on_delta(void *arg, enum output_stream s, uint64_t seq, const char *text, size_t n)
{
    struct orch_call *c = arg;
    struct event e = event_of(c, EVENT_EXEC_OUTPUT_DELTA);

    e.u.delta = (struct event_delta){
        .stream = output_stream_name(s),
        .seq = seq,
        .text = text,
        .len = n,
        .dropped = dropped(c),
        .is_last = output_deltas_left(c->chain) == 0,
        .ret_dropped = &c->deltas_left_out,
    };
    event_emit(session_bus(c->session), &e);
}

void
orch_renew_deltas(struct orch_call *c)
{
    if (c->chain != NULL) {
        output_deltas_renew(c->chain);
    }
}

void
orch_tell_typed(struct orch_call *c, const char *text, size_t n, bool is_hidden, bool is_person,
                const char *refusal)
{
    struct event e = event_of(c, EVENT_EXEC_INPUT);
    SY_AUTO(buf_fini) struct buf clean = {.max = n * 3 + 1};
    SY_AUTO(buf_fini) struct buf why = {.max = (size_t)SY_ERR_MSG_MAX * 3};
    bool is_replaced = false;

    if (!event_bus_wants(session_bus(c->session), EVENT_EXEC_INPUT)) {
        return;
    }
    /* Memory out: that something was typed is told all the same. */
    if (!is_hidden && output_clean_utf8(&clean, text, n, &is_replaced) != SY_E_OK) {
        buf_reset(&clean);
    }
    if (refusal != NULL &&
        output_clean_utf8(&why, refusal, strlen(refusal), &is_replaced) != SY_E_OK) {
        buf_reset(&why);
    }
    e.u.input = (struct event_input){.text = buf_view(&clean),
                                     .len = clean.len,
                                     .is_hidden = is_hidden,
                                     .by = is_person ? "person" : "agent",
                                     .refusal = refusal != NULL ? buf_view(&why) : NULL};
    event_emit(session_bus(c->session), &e);
}

/* The texts of an end event. Memory out here leaves a text empty. */
struct end_texts {
    struct buf out;
    struct buf err;
    struct buf all;
    struct buf preview;
    struct buf denials;
};

static void
fill_texts(struct end_texts *t, const struct output_chain *chain)
{
    if (chain == NULL) {
        return;
    }
    if (output_text_stream(chain, STREAM_STDOUT, &t->out) != SY_E_OK) {
        buf_fini(&t->out);
    }
    if (output_text_stream(chain, STREAM_STDERR, &t->err) != SY_E_OK) {
        buf_fini(&t->err);
    }
    if (output_text_all(chain, &t->all) != SY_E_OK) {
        buf_fini(&t->all);
    }
    if (events_preview(&t->preview, buf_view(&t->all), t->all.len) != SY_E_OK) {
        buf_fini(&t->preview);
    }
}

/* As events carry it: they know no sandbox. */
static bool
write_denials(struct buf *ret, const struct denial_list *list)
{
    struct jw w = {.out = ret};

    if (list->n == 0) {
        return true;
    }
    jw_object(&w);
    denial_list_write(&w, list);
    jw_end_object(&w);
    return jw_done(&w) == SY_E_OK;
}

void
call_emit_end(struct orch_call *c)
{
    if (!event_bus_wants(session_bus(c->session), EVENT_EXEC_END)) {
        return;
    }

    /* Invalid bytes grow threefold when they are replaced. */
    size_t max = (size_t)LIMIT_STREAM_KEEP * 4;
    struct end_texts t = {.out = {.max = max},
                          .err = {.max = max},
                          .all = {.max = max},
                          .preview = {.max = max},
                          .denials = {.max = max}};
    struct event e = event_of(c, EVENT_EXEC_END);
    const struct event_limit limit = {
        .name = resource_name(c->output.hit.resource),
        .key = resource_key(c->output.hit.resource),
        .unit = resource_unit(c->output.hit.resource),
        .by = resource_means_name(c->output.hit.means),
        .most = c->output.hit.most,
        .is_exact = c->output.hit.is_exact,
        .has_ended = c->output.hit.has_ended,
    };

    fill_texts(&t, c->chain);
    if (!write_denials(&t.denials, &c->output.denials)) {
        buf_fini(&t.denials);
    }
    e.u.end = (struct event_end){
        .status = exec_status_name(c->output.status),
        .exit_code = c->output.exit_code,
        .signal = c->output.signal,
        .is_timed_out = c->output.is_timed_out,
        .duration_ns = c->output.duration_ns,
        .deltas_dropped = dropped(c),
        .out_text = buf_view(&t.out),
        .out_len = t.out.len,
        .err_text = buf_view(&t.err),
        .err_len = t.err.len,
        .all_text = buf_view(&t.all),
        .all_len = t.all.len,
        .preview = buf_view(&t.preview),
        .preview_len = t.preview.len,
        .limit = c->output.hit.resource != RESOURCE_NONE ? &limit : NULL,
        .denials = t.denials.len > 0 ? buf_view(&t.denials) : NULL,
        .error = c->output.err.code != SY_E_OK ? c->output.err.msg : NULL,
    };
    event_emit(session_bus(c->session), &e);
    buf_fini(&t.out);
    buf_fini(&t.err);
    buf_fini(&t.all);
    buf_fini(&t.preview);
    buf_fini(&t.denials);
}
