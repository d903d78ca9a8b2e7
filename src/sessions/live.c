/* One session: its call, what it writes, how it ends. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "sessions/sessions_internal.h"
#include "terminal/state.h"

static void
on_timer_closed(uv_handle_t *handle)
{
    struct live *l = handle->data;

    transcript_free(l->transcript);
    live_forget_input(l);
    terminal_free(l->screen);
    mem_free(l->command);
    mem_free(l->cwd);
    mem_free(l);
}

/* It has ended and is known no more. */
static void
leave(struct live *l)
{
    live_tell_taps(l, LIVE_NEWS_ENDED);
    live_store_gone(l->store, l);
    orch_call_free(l->call);
    l->call = NULL;
    session_unref(l->heir);
    l->heir = NULL;
    session_unref(l->session);
    l->session = NULL;
    uv_timer_stop(&l->timer);
    uv_close((uv_handle_t *)&l->timer, on_timer_closed);
}

enum sy_code
live_new(struct live **ret, struct live_store *s, const struct live_options *options,
         struct sy_error *err)
{
    char id[LIMIT_SESSION_ID + 1] = "";
    enum sy_code rc = live_store_place(s, id, options->id, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    struct live *l = mem_alloc_zero(1, sizeof(*l));

    if (l == NULL) {
        return sy_err_nomem(err);
    }
    l->transcript = transcript_new(s->options.keep_bytes);
    if (l->transcript == NULL || uv_timer_init(s->options.loop, &l->timer) != 0) {
        transcript_free(l->transcript);
        mem_free(l);
        return sy_err_nomem(err);
    }
    memcpy(l->id, id, sizeof(id));
    l->timer.data = l;
    l->store = s;
    l->starter = *options;
    l->starter.id = NULL;
    l->used_ns = clock_mono_ns();
    live_store_add(s, l);
    *ret = l;
    return SY_E_OK;
}

static enum sy_code
on_raw(void *arg, enum output_stream s, const char *bytes, size_t n)
{
    struct live *l = arg;

    (void)s; /* in the order in which they came, as a terminal has them */
    l->heard_ns = clock_mono_ns();
    live_look_soon(l);
    live_tell(l, LIVE_CHANGED);
    live_tty_feed(l, bytes, n);
    live_tell_taps(l, LIVE_NEWS_WROTE);
    return transcript_push(l->transcript, bytes, n);
}

static void
on_begun(void *arg, struct orch_call *call)
{
    struct live *l = arg;

    if (!l->has_begun) {
        l->has_begun = true;
        l->store->running++;
    }
    l->began_ns = clock_mono_ns();
    l->heard_ns = l->began_ns;
    live_tell(l, LIVE_BEGAN);
    if (l->nonce[0] != '\0') {
        /* A shell that waits for what is typed changes nothing by itself. */
        orch_let_others(call);
    }
    if (l->starter.begun != NULL) {
        l->starter.begun(l->starter.arg, l);
    }
}

static void
settle(struct live *l)
{
    const struct exec_output *o = orch_output(l->call);

    l->is_over = true;
    l->status = o->status;
    l->exit_code = o->exit_code;
    l->signal = o->signal;
    l->error = o->err;
    l->ended_ns = clock_mono_ns();
    if (l->has_begun) {
        l->store->running--;
    }
    live_tell(l, LIVE_ENDED);
    live_tell_settled(l->store);
}

static void
on_over(void *arg, struct orch_call *call)
{
    struct live *l = arg;

    (void)call;
    l->driver = NULL;
    settle(l);
    if (l->is_removed) {
        leave(l);
        return;
    }
    if (l->starter.over != NULL) {
        l->starter.over(l->starter.arg, l);
    }
    if (l->is_over) { /* else it goes on by a second attempt */
        live_tell_taps(l, LIVE_NEWS_ENDED);
    }
    live_look_soon(l);
}

/* The command as a person would read it. */
static char *
command_text(const struct exec_request *request)
{
    struct buf text = {.max = LIMIT_SESSION_COMMAND};
    const char *script = request->script;

    for (size_t i = 0; script == NULL && i < request->params.argv.n; i++) {
        /* What does not fit is left out. */
        if ((i > 0 && buf_add_char(&text, ' ') != SY_E_OK) ||
            str_add_visible(&text, request->params.argv.v[i], strlen(request->params.argv.v[i]),
                            LIMIT_SESSION_COMMAND) != SY_E_OK) {
            break;
        }
    }
    if (script != NULL &&
        str_add_visible(&text, script, strlen(script), LIMIT_SESSION_COMMAND - 16) == SY_E_NOMEM) {
        buf_fini(&text);
    }
    return buf_take(&text);
}

static enum sy_code
describe(struct live *l, const struct exec_request *request)
{
    mem_free(l->command);
    mem_free(l->cwd);
    l->command = command_text(request);
    l->cwd = mem_strdup(request->params.cwd);
    l->has_terminal = request->input.kind == INPUT_TERMINAL;
    l->is_copy = live_is_copy(request);
    live_forget_input(l);
    return l->command != NULL && l->cwd != NULL ? SY_E_OK : SY_E_NOMEM;
}

enum sy_code
live_submit(struct live *l, struct session *session, const struct turn_context *turn,
            struct exec_request *request, struct sy_error *err)
{
    if (describe(l, request) != SY_E_OK) {
        exec_request_fini(request);
        return sy_err_nomem(err);
    }
    if (live_tty_begin(l, request, err) != SY_E_OK) {
        exec_request_fini(request);
        return err->code;
    }
    if (l->session == NULL) {
        session_ref(session);
        l->session = session;
    }
    request->on_raw = on_raw;
    request->on_raw_arg = l;
    request->on_begun = on_begun;
    request->on_begun_arg = l;
    request->input.is_session = true;

    enum sy_code rc = orch_submit(&l->call, session, turn, request, err);

    if (rc != SY_E_OK) {
        l->call = NULL;
        return rc;
    }
    rc = orch_attach(&l->driver, l->call, l->store->options.loop, on_over, l, err);
    if (rc != SY_E_OK) {
        l->driver = NULL;
        orch_call_free(l->call);
        l->call = NULL;
        return rc;
    }
    if (l->is_over && l->has_begun) {
        l->store->running++;
    }
    l->is_over = false;
    return SY_E_OK;
}

void
live_detach(struct live *l)
{
    l->starter = (struct live_options){0};
    if (l->call != NULL) {
        orch_let_others(l->call);
    }
}

void
live_remove(struct live *l, const char *why)
{
    if (l->is_removed) {
        return;
    }
    l->is_removed = true;
    l->starter = (struct live_options){0};
    live_tell(l, LIVE_GONE);
    if (why != NULL) {
        live_store_remember(l->store, l->id, why);
    }
    live_store_drop(l->store, l);
    live_look_soon(l);
    if (l->driver != NULL) {
        live_kill(l);
        return;
    }
    live_end_waits(l);
    leave(l);
}

const char *
live_id(const struct live *l)
{
    return l->id;
}

struct orch_call *
live_call(const struct live *l)
{
    return l->call;
}

struct orch_call *
live_take_call(struct live *l)
{
    struct orch_call *call = l->call;

    SY_ASSERT(l->driver == NULL);
    l->call = NULL;
    return call;
}

void
live_forget_call(struct live *l)
{
    if (l->driver == NULL) {
        orch_call_free(l->call);
        l->call = NULL;
    }
}

struct transcript *
live_transcript(struct live *l)
{
    return l->transcript;
}

void
live_get_state(const struct live *l, struct live_state *ret)
{
    *ret = (struct live_state){
        .is_running = l->has_begun && !l->is_over,
        .has_terminal = l->has_terminal,
        .status = l->status,
        .exit_code = l->exit_code,
        .signal = l->signal,
        .began_ns = l->began_ns,
        .ended_ns = l->ended_ns,
        .used_ns = l->used_ns,
        .unread = (size_t)(transcript_end(l->transcript) - transcript_unread(l->transcript)),
        .unwritten = l->driver != NULL ? orch_unwritten(l->call) : 0,
        .dropped = l->dropped,
        .command = l->command != NULL ? l->command : "",
        .cwd = l->cwd != NULL ? l->cwd : "",
        .error = &l->error,
    };
}

void
live_state_text(char ret[LIVE_STATE_TEXT], const struct live *l)
{
    char name[16];

    if (!l->is_over) {
        (void)snprintf(ret, LIVE_STATE_TEXT, "%s", l->has_begun ? "runs" : "has not begun");
        return;
    }
    switch (l->status) {
    case EXEC_EXITED:
        (void)snprintf(ret, LIVE_STATE_TEXT, "exited with code %d", l->exit_code);
        return;
    case EXEC_SIGNALED:
        exec_signal_name(name, l->signal);
        (void)snprintf(ret, LIVE_STATE_TEXT, "was ended by signal %d (%s)", l->signal, name);
        return;
    case EXEC_TIMED_OUT:
        (void)snprintf(ret, LIVE_STATE_TEXT, "was ended when its time was over");
        return;
    case EXEC_CANCELLED:
        (void)snprintf(ret, LIVE_STATE_TEXT, "was killed");
        return;
    case EXEC_DENIED:
    case EXEC_PENDING:
    case EXEC_FAILED:
        break;
    }
    (void)snprintf(ret, LIVE_STATE_TEXT, "failed%s%s", l->error.code != SY_E_OK ? ": " : "",
                   l->error.code != SY_E_OK ? l->error.msg : "");
}

static enum sy_code
has_ended(const struct live *l, struct sy_error *err)
{
    char state[LIVE_STATE_TEXT];

    live_state_text(state, l);
    return sy_err_set(err, SY_E_ARG, "session %s %s: start a new one", l->id, state);
}

/* Without a terminal nobody else makes a signal of Ctrl-C. What has no reader is told before
 * anything is given. The keeper sends them: what follows one may be read before it. */
static enum sy_code
give_pipe(struct live *l, const char *bytes, size_t n, struct sy_error *err)
{
    bool is_text = n == 0;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < n && !is_text; i++) {
        is_text = bytes[i] != TYPED_INTERRUPT;
    }
    if (is_text) {
        rc = orch_write(l->call, bytes, 0, err);
    }
    for (size_t at = 0; at < n && rc == SY_E_OK;) {
        const char *end = memchr(bytes + at, TYPED_INTERRUPT, n - at);
        size_t len = end != NULL ? (size_t)(end - bytes) - at : n - at;

        rc = len > 0 ? orch_write(l->call, bytes + at, len, err) : SY_E_OK;
        if (rc == SY_E_OK && end != NULL) {
            (void)orch_signal(l->call, SIGINT);
        }
        at += len + 1;
    }
    return rc;
}

/* Those that a prompt is awaited behind. While a program waits they are for that one. */
static size_t
count_owed(const struct live *l, const struct live_terminal *t, const char *bytes, size_t n)
{
    size_t ret = 0;

    for (size_t i = 0; i < n; i++) {
        ret += bytes[i] == '\n' || bytes[i] == '\r' ? 1 : 0;
    }
    if (l->owed == 0 || !t->is_waiting) {
        return l->owed + ret;
    }
    return ret > l->owed ? ret : l->owed;
}

/* A refusal may quote the line: not where nobody is to read it. */
static enum sy_code
keep_hidden(enum sy_code rc, struct sy_error *err)
{
    return rc != SY_E_DENIED
               ? rc
               : sy_err_set(err, rc,
                            "not typed: what the terminal hides is judged as well, since who reads "
                            "it may run it, and as a command this would be refused or asked about; "
                            "it is not quoted here");
}

/* What was judged is given to it. */
static enum sy_code
give(struct live *l, const struct live_terminal *t, const char *bytes, size_t n,
     struct sy_error *err)
{
    bool is_lost = false;
    size_t line = live_tty_line(l, bytes, n, &is_lost);

    l->dropped = orch_interrupt(l->call, bytes, n);

    enum sy_code rc =
        l->screen != NULL ? orch_write(l->call, bytes, n, err) : give_pipe(l, bytes, n, err);

    if (rc == SY_E_OK) {
        l->line = line;
        l->has_lost_input = is_lost;
        l->typed_ns = clock_mono_ns();
        l->owed = count_owed(l, t, bytes, n);
    }
    return rc;
}

static enum sy_code
write_input(struct live *l, struct live_typing *typing, const void *bytes, size_t n,
            bool *ret_later, struct sy_error *err)
{
    struct sy_error own = {.code = SY_E_OK};
    struct sy_error *why = err != NULL ? err : &own;
    struct live_terminal t;

    if (l->driver == NULL || l->is_over) {
        return has_ended(l, err);
    }
    (void)live_get_terminal(l, &t);

    enum sy_code rc = live_follow_input(l, &t, typing, bytes, n, why);

    *ret_later = rc == SY_E_OK && typing->is_later;
    if (*ret_later) {
        return SY_E_OK;
    }

    bool is_hidden = typing->is_hidden || live_tty_hides(l, &t);
    bool is_refused = rc == SY_E_DENIED;

    rc = is_hidden ? keep_hidden(rc, why) : rc;
    rc = rc == SY_E_OK && n > 0 ? give(l, &t, bytes, n, why) : rc;
    if (is_refused || (rc == SY_E_OK && n > 0)) {
        orch_tell_typed(l->call, bytes, n, is_hidden, typing->is_person,
                        is_refused ? why->msg : NULL);
    }
    if (rc == SY_E_OK && typing->is_last) {
        orch_close_input(l->call);
    }
    orch_wake(l->driver);
    return rc;
}

struct live_typing *
live_typing_new(bool is_last)
{
    struct live_typing *ret = mem_alloc_zero(1, sizeof(*ret));

    if (ret != NULL) {
        ret->is_last = is_last;
    }
    return ret;
}

void
live_typing_free(struct live_typing *typing)
{
    if (typing != NULL) {
        live_typing_fini(typing);
        mem_free(typing);
    }
}

enum sy_code
live_write(struct live *l, struct live_typing *typing, const void *bytes, size_t n, bool *ret_later,
           struct sy_error *err)
{
    *ret_later = false;
    return write_input(l, typing, bytes, n, ret_later, err);
}

enum sy_code
live_type(struct live *l, const void *bytes, size_t n, struct sy_error *err)
{
    struct live_typing typing = {.is_person = true};
    enum sy_code rc = SY_E_OK;
    bool is_later = true;

    /* Without a judge it takes no time. */
    while (rc == SY_E_OK && is_later) {
        is_later = false;
        rc = write_input(l, &typing, bytes, n, &is_later, err);
    }
    return rc;
}

bool
live_has_lost_input(const struct live *l)
{
    return l->has_lost_input;
}

bool
live_signal(struct live *l, int signal_number)
{
    return l->driver != NULL && orch_signal(l->call, signal_number);
}

bool
live_resize(struct live *l, unsigned rows, unsigned columns)
{
    struct terminal_screen now;

    if (l->driver == NULL || l->screen == NULL) {
        return false;
    }
    if (rows == 0 || columns == 0) {
        if (terminal_look(l->screen, &now) != SY_E_OK) {
            return false;
        }
        rows = rows > 0 ? rows : now.rows;
        columns = columns > 0 ? columns : now.cols;
    }
    if (terminal_resize(l->screen, rows, columns, NULL) == SY_E_ARG) {
        return false;
    }
    live_tell(l, LIVE_CHANGED);
    live_tell_taps(l, LIVE_NEWS_RESIZED);
    return orch_resize(l->call, rows, columns);
}

void
live_kill(struct live *l)
{
    if (l->driver != NULL) {
        orch_cancel(l->call);
        orch_wake(l->driver);
    }
}
