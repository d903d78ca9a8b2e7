/* Calls and sessions for whoever watches them: progress, and sessions as documents. */
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "sessions/transcript.h"
#include "terminal/terminal.h"
#include "tools/live_call.h"

const char *
tool_last_line(struct tool_call *call)
{
    struct live *l = call->live != NULL ? live_call_session(call->live) : NULL;
    size_t n = 0;
    const char *tail = "";
    enum sy_code rc = SY_E_OK;

    if (l != NULL) {
        rc = live_show_last_line(&call->last_line, l);
    } else if (call->live == NULL && call->orch != NULL) {
        tail = orch_tail(call->orch, LIMIT_LAST_LINE, &n);
        rc = live_show_last_line_of(&call->last_line, tail, n);
    }
    return rc == SY_E_OK ? buf_view(&call->last_line) : "";
}

uint64_t
tool_output_bytes(const struct tool_call *call)
{
    struct live *l = call->live != NULL ? live_call_session(call->live) : NULL;

    if (l != NULL) {
        return transcript_end(live_transcript(l));
    }
    return call->live == NULL && call->orch != NULL ? orch_total(call->orch) : 0;
}

static void
describe(struct tool_session *ret, const struct live *l)
{
    struct live_state state;

    _Static_assert(sizeof(ret->state) >= LIVE_STATE_TEXT, "a state fits");
    live_get_state(l, &state);
    ret->id = live_id(l);
    ret->command = state.command;
    ret->has_terminal = state.has_terminal;
    live_state_text(ret->state, l);
}

static enum sy_code
find(struct live **ret, struct tool_context *c, const char *id, struct sy_error *err)
{
    return live_find(ret, tool_context_sessions(c), tool_context_session(c), id, err);
}

enum sy_code
tool_session_find(struct tool_session *ret, struct tool_context *c, const char *id,
                  struct sy_error *err)
{
    struct live *l = NULL;
    enum sy_code rc = find(&l, c, id, err);

    if (rc == SY_E_OK) {
        describe(ret, l);
    }
    return rc;
}

bool
tool_session_next(struct tool_session *ret, struct tool_context *c, const char *id)
{
    struct live *l = NULL;

    if (id != NULL && find(&l, c, id, NULL) != SY_E_OK) {
        return false;
    }
    l = live_next(tool_context_sessions(c), tool_context_session(c), l);
    if (l == NULL) {
        return false;
    }
    describe(ret, l);
    return true;
}

enum sy_code
tool_session_read(struct buf *out, struct tool_context *c, const char *id,
                  enum tool_session_part part, struct sy_error *err)
{
    struct live *l = NULL;
    struct terminal_screen screen;
    struct live_shown shown = {.text = {.max = LIMIT_RESOURCE_LOG + 4096}};
    enum sy_code rc = find(&l, c, id, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (part == TOOL_SESSION_SCREEN && live_screen(l) == NULL) {
        return sy_err_set(err, SY_E_NOTFOUND,
                          "session %.64s has no terminal, and so no screen: it has a log", id);
    }
    if (part == TOOL_SESSION_SCREEN) {
        rc = live_show_screen(out, l, &screen, false);
    } else {
        rc = live_show_stream(&shown, l, &(struct live_part){.max_bytes = LIMIT_RESOURCE_LOG});
        if (rc == SY_E_OK) {
            rc = buf_add(out, buf_view(&shown.text), shown.text.len);
        }
        buf_fini(&shown.text);
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "session %.64s: %s", id, sy_code_text(rc));
}

struct tool_watch {
    struct live_watch live;
    struct tool_context *context;
    tool_session_fn *fn;
    void *arg;
};

static void
on_changed(void *arg, const struct live *l, enum live_change change)
{
    static const enum tool_session_change changes[] = {
        [LIVE_BEGAN] = TOOL_SESSION_BEGAN,
        [LIVE_CHANGED] = TOOL_SESSION_CHANGED,
        [LIVE_ENDED] = TOOL_SESSION_ENDED,
        [LIVE_GONE] = TOOL_SESSION_GONE,
    };
    struct tool_watch *w = arg;

    if (live_is_of(l, tool_context_session(w->context))) {
        w->fn(w->arg, live_id(l), changes[change]);
    }
}

static void
on_settled(void *arg)
{
    struct tool_watch *w = arg;

    w->fn(w->arg, "", TOOL_SESSION_SETTLED);
}

enum sy_code
tool_watch_new(struct tool_watch **ret, struct tool_context *c, tool_session_fn *fn, void *arg,
               struct sy_error *err)
{
    struct tool_watch *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return sy_err_nomem(err);
    }
    w->context = c;
    w->fn = fn;
    w->arg = arg;
    w->live = (struct live_watch){.changed = on_changed, .settled = on_settled, .arg = w};
    live_store_watch(tool_context_sessions(c), &w->live);
    *ret = w;
    return SY_E_OK;
}

void
tool_watch_free(struct tool_watch *w)
{
    if (w != NULL) {
        live_store_unwatch(tool_context_sessions(w->context), &w->live);
        mem_free(w);
    }
}
