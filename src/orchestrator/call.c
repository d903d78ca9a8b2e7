#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "orchestrator/call_internal.h"
#include "sandbox/linux/linked.h"

#define NS_PER_MS 1000000ULL

static const char *const state_names[] = {
    [ORCH_PREPARE] = "prepare", [ORCH_SNAPSHOT] = "snapshot", [ORCH_APPROVAL] = "approval",
    [ORCH_HOOK] = "hook",       [ORCH_REVIEW] = "review",     [ORCH_LOCK] = "lock",
    [ORCH_SANDBOX] = "sandbox", [ORCH_SPAWN] = "spawn",       [ORCH_RUN] = "run",
    [ORCH_KILL] = "kill",       [ORCH_SETTLE] = "settle",     [ORCH_DONE] = "done",
};

const char *
orch_state_name(enum orch_state s)
{
    return state_names[s];
}

/* What only looks, asks, or is a second attempt uses nothing up. */
static bool
takes_grants(const struct exec_request *r)
{
    return r->work.look == NULL && r->failed == NULL && (r->work.run == NULL || r->is_mutating);
}

enum sy_code
orch_submit(struct orch_call **ret, struct session *session, const struct turn_context *turn,
            struct exec_request *request, struct sy_error *err)
{
    struct orch_call *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL || turn_context_copy(&c->turn, turn) != SY_E_OK ||
        sandbox_policy_find_linked(&c->turn.sandbox) != SY_E_OK ||
        (request->work.look != NULL &&
         sandbox_policy_copy(&c->base, &c->turn.sandbox) != SY_E_OK) ||
        session_widen(session, &c->turn.sandbox, takes_grants(request) ? c : NULL) != SY_E_OK) {
        if (c != NULL) {
            sandbox_policy_fini(&c->base);
            turn_context_fini(&c->turn);
        }
        mem_free(c);
        exec_request_fini(request);
        return sy_err_nomem(err);
    }
    c->session = session;
    session_ref(session);
    if (request->client != NULL) {
        c->client = mem_strdup(request->client);
    }
    c->request = *request;
    *request = (struct exec_request){0};
    c->state = ORCH_PREPARE;
    c->is_mutating = c->request.is_mutating;
    if (c->is_mutating) {
        lock_queue(session_lock(session), c);
    }
    c->expires_ns = UINT64_MAX;
    c->audit_fd = -1;
    c->env.max = LIMIT_ENV;
    c->output.network_hosts.max = NETWORK_HOSTS;
    c->argv.max = LIMIT_ARGV;
    c->program.max = LIMIT_PATH;
    c->tail.max = (size_t)LIMIT_STREAM_KEEP * 4;
    *ret = c;
    return SY_E_OK;
}

bool
call_has_entry(struct orch_call *c)
{
    struct sy_error err = {0};
    char note[SY_ERR_MSG_MAX] = "";

    if (c->entry != NULL) {
        return true;
    }

    enum sy_code rc = session_acquire_sandbox(c->session, &c->turn.sandbox,
                                              c->turn.sandbox_required, &c->entry, note, &err);

    if (rc != SY_E_OK) {
        call_fail(c, EXEC_FAILED, &err);
        return false;
    }
    if (note[0] != '\0') {
        call_add_note(c, note);
    }
    return true;
}

static bool
wants_snapshot(struct orch_call *c, const struct shell *shell)
{
    return c->request.login && session_uses_snapshot(c->session) && shell->kind->has_login_env;
}

static void
on_prepare(struct orch_call *c)
{
    struct sy_error err = {0};

    c->state = ORCH_APPROVAL;
    if (c->request.script == NULL && !c->request.login) {
        return;
    }
    if (session_shell(c->session, &c->shell, &err) != SY_E_OK) {
        call_fail(c, EXEC_FAILED, &err);
        return;
    }
    if (wants_snapshot(c, c->shell)) {
        c->state = ORCH_SNAPSHOT;
    }
}

static void
on_lock(struct orch_call *c)
{
    if (lock_enter(session_lock(c->session), c)) {
        c->state = ORCH_SANDBOX;
    }
}

/* A call without a command: all of it is one step. */
static void
on_work(struct orch_call *c)
{
    struct sy_error err = {0};
    enum sy_code rc = call_protect_look(c, &err);

    c->started_ns = clock_mono_ns();
    if (rc == SY_E_OK) {
        rc = call_make_argv(c, &err);
    }
    if (rc == SY_E_OK) {
        call_emit_begin(c);
        rc = c->request.work.run(c->request.work.arg, c, &err);
    }
    c->output.duration_ns = clock_mono_ns() - c->started_ns;
    if (rc == SY_E_OK) {
        call_finish(c, EXEC_EXITED);
    } else {
        call_fail(c, rc == SY_E_DENIED ? EXEC_DENIED : EXEC_FAILED, &err);
    }
}

static void
on_sandbox(struct orch_call *c)
{
    if (!call_has_entry(c)) {
        return;
    }
    if (c->request.work.run != NULL) {
        on_work(c);
        return;
    }
    c->state = ORCH_SPAWN;
}

static void
on_spawn(struct orch_call *c, uint64_t now_ns)
{
    struct sy_error err = {0};
    bool has_begun = false;
    enum sy_code rc = call_spawn(c, now_ns, &has_begun, &err);

    if (rc != SY_E_OK) {
        call_fail(c, EXEC_FAILED, &err);
        return;
    }
    if (!has_begun) {
        return;
    }

    const struct exec_expiration *e = &c->request.params.expiration;
    uint64_t ms = e->kind == EXPIRE_TIMEOUT ? e->timeout_ms : LIMIT_TIMEOUT_DEFAULT_MS;

    c->started_ns = clock_mono_ns();
    if (e->kind != EXPIRE_CANCELLATION) {
        c->expires_ns = c->started_ns + ms * NS_PER_MS;
    }
    c->state = ORCH_RUN;
    call_emit_begin(c);
    if (c->request.on_begun != NULL) {
        c->request.on_begun(c->request.on_begun_arg, c);
    }
}

static void
tell_background(struct orch_call *c, const struct process_result *r)
{
    char note[SY_ERR_MSG_MAX];

    /* Where we or a limit ended the tree, all of it ended by that. */
    if (r->ended_background == 0 || c->state != ORCH_RUN || r->hit.has_ended) {
        return;
    }
    c->output.ended_background = r->ended_background;
    snprintf(note, sizeof(note),
             "%u background process%s still running when the command exited and %s ended%s; to "
             "keep one, %s",
             r->ended_background, r->ended_background == 1 ? " was" : "es were",
             r->ended_background == 1 ? "was" : "were",
             r->pipe_was_held ? " after 0.5 s since the output was held open" : "",
             c->request.keep_by != NULL
                 ? c->request.keep_by
                 : "run it in the foreground of a call of its own with a long enough timeout");
    call_add_note(c, note);
}

static void
on_process_end(struct orch_call *c)
{
    const struct process_result *r = process_result(c->process);

    c->output.duration_ns = clock_mono_ns() - c->started_ns;
    c->output.pipe_was_held = r->pipe_was_held;
    c->output.exit_code = r->exit_code;
    c->output.signal = r->signal;
    tell_background(c, r);
    if (c->kill_status != EXEC_EXITED) {
        c->output.signal = 0;
        if (c->kill_status == EXEC_FAILED) {
            call_finish(c, EXEC_FAILED);
            return;
        }
        call_finish(c, c->kill_status);
        return;
    }
    /* The kernel answers while we look after the command. */
    call_audit_ask(c, clock_mono_ns());
    switch (r->outcome) {
    case PROCESS_EXITED:
        call_conclude(c, EXEC_EXITED);
        c->state = ORCH_SETTLE;
        return;
    case PROCESS_SIGNALED:
        call_conclude(c, EXEC_SIGNALED);
        c->state = ORCH_SETTLE;
        return;
    case PROCESS_RUNNING:
    case PROCESS_FAILED:
        break;
    }
    call_fail(c, EXEC_FAILED, &r->err);
}

/* ORCH_RUN and ORCH_KILL. */
static void
on_process(struct orch_call *c, uint64_t now_ns)
{
    struct sy_error err = {0};
    bool is_done = false;
    enum sy_code rc = SY_E_OK;

    call_network_step(c);
    call_protect_refresh(c);
    rc = process_step(c->process, now_ns, &is_done, &err);
    if (rc != SY_E_OK && c->state != ORCH_KILL) {
        call_kill(c, EXEC_FAILED);
        c->output.err = err;
        return;
    }
    if (rc != SY_E_OK) {
        /* Even ending it fails: process_free ends it by force. */
        c->output.err = err;
        call_finish(c, EXEC_FAILED);
        return;
    }
    if (is_done) {
        on_process_end(c);
        return;
    }
    call_forget_environment(c);
    if (c->state == ORCH_RUN && now_ns >= c->expires_ns &&
        process_result(c->process)->outcome == PROCESS_RUNNING) {
        call_kill(c, EXEC_TIMED_OUT);
    }
}

void
call_kill(struct orch_call *c, enum exec_status status)
{
    c->state = ORCH_KILL;
    c->kill_status = status;
    process_kill(c->process);
}

bool
orch_step(struct orch_call *c, uint64_t now_ns)
{
    enum orch_state before;

    /* On while the state changes: most calls go from approval to run at once. */
    do {
        before = c->state;
        switch (c->state) {
        case ORCH_PREPARE:
            on_prepare(c);
            break;
        case ORCH_SNAPSHOT:
            call_snapshot_step(c, now_ns);
            break;
        case ORCH_APPROVAL:
            call_approve(c);
            break;
        case ORCH_HOOK:
            call_hooks_step(c, now_ns);
            break;
        case ORCH_REVIEW:
            call_review(c);
            break;
        case ORCH_LOCK:
            on_lock(c);
            break;
        case ORCH_SANDBOX:
            on_sandbox(c);
            break;
        case ORCH_SPAWN:
            on_spawn(c, now_ns);
            break;
        case ORCH_RUN:
        case ORCH_KILL:
            on_process(c, now_ns);
            break;
        case ORCH_SETTLE:
            if (call_audit_settle(c, now_ns)) {
                call_end(c);
            }
            break;
        case ORCH_DONE:
            break;
        }
    } while (c->state != before && c->state != ORCH_DONE && c->state != ORCH_RUN);
    return c->state == ORCH_DONE;
}

void
orch_serve(struct orch_call *c, uint64_t now_ns)
{
    struct sy_error err = {0};

    call_network_step(c);
    if (c->state == ORCH_RUN && process_serve(c->process, now_ns, &err) != SY_E_OK) {
        call_kill(c, EXEC_FAILED);
        c->output.err = err;
    }
}

void
orch_cancel(struct orch_call *c)
{
    switch (c->state) {
    case ORCH_PREPARE:
    case ORCH_SNAPSHOT:
    case ORCH_APPROVAL:
    case ORCH_HOOK:
    case ORCH_REVIEW:
    case ORCH_LOCK:
    case ORCH_SANDBOX:
    case ORCH_SPAWN:
        call_leave_snapshot(c);
        call_hooks_leave(c);
        call_leave_review(c);
        process_free(c->process);
        c->process = NULL;
        sy_err_set(&c->output.err, SY_E_CANCELLED, "cancelled before it ran");
        call_finish(c, EXEC_CANCELLED);
        break;
    case ORCH_RUN:
        if (process_result(c->process)->outcome == PROCESS_RUNNING) {
            sy_err_set(&c->output.err, SY_E_CANCELLED, "cancelled");
            call_kill(c, EXEC_CANCELLED);
        }
        break;
    case ORCH_KILL:
    case ORCH_SETTLE:
    case ORCH_DONE:
        break;
    }
}

static size_t
watch_run(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES])
{
    size_t n = call_network_watch(c, out, process_watches(c->process, out));
    int fd = call_protect_fd(c);

    if (fd >= 0) {
        /* It is the sandbox's, as its id. */
        out[n++] = (struct process_watch){.fd = fd, .events = POLLIN, .id = 0};
    }
    return n;
}

size_t
orch_watches(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES])
{
    switch (c->state) {
    case ORCH_SNAPSHOT:
        return c->owns_snapshot ? snapshot_watches(session_snapshot(c->session), out) : 0;
    case ORCH_SPAWN:
        return c->process != NULL ? process_watches(c->process, out) : 0;
    case ORCH_RUN:
    case ORCH_KILL:
        return watch_run(c, out);
    case ORCH_SETTLE:
        return call_audit_watch(c, out);
    case ORCH_HOOK:
        return call_hooks_watch(c, out);
    case ORCH_PREPARE:
    case ORCH_APPROVAL:
    case ORCH_REVIEW:
    case ORCH_LOCK:
    case ORCH_SANDBOX:
    case ORCH_DONE:
        break;
    }
    return 0;
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t
orch_deadline_ns(const struct orch_call *c)
{
    uint64_t at = UINT64_MAX;

    switch (c->state) {
    case ORCH_PREPARE:
    case ORCH_APPROVAL:
    case ORCH_SANDBOX:
        return 0;
    case ORCH_SPAWN:
        return c->process != NULL ? process_deadline_ns(c->process) : 0;
    case ORCH_HOOK:
        return call_hooks_deadline_ns(c);
    case ORCH_REVIEW:
        return UINT64_MAX; /* the reviewer wakes */
    case ORCH_LOCK:
        return c->lock_place == LOCK_QUEUED ? UINT64_MAX : 0;
    case ORCH_SNAPSHOT:
        if (c->owns_snapshot) {
            return snapshot_deadline_ns(session_snapshot(c->session));
        }
        return c->is_waiting ? UINT64_MAX : 0;
    case ORCH_RUN:
        at = earlier(process_deadline_ns(c->process), call_network_deadline_ns(c));
        if (c->expires_ns < at && process_result(c->process)->outcome == PROCESS_RUNNING) {
            at = c->expires_ns;
        }
        return at;
    case ORCH_KILL:
        return earlier(process_deadline_ns(c->process), call_network_deadline_ns(c));
    case ORCH_SETTLE:
        return call_audit_again_ns(c);
    case ORCH_DONE:
        break;
    }
    return UINT64_MAX;
}

enum orch_state
orch_state(const struct orch_call *c)
{
    return c->state;
}

const struct exec_output *
orch_output(const struct orch_call *c)
{
    return &c->output;
}

const char *
orch_call_id(const struct orch_call *c)
{
    return c->request.call_id != NULL ? c->request.call_id : "";
}

void
call_wake(struct orch_call *c)
{
    c->is_waiting = false;
    if (c->wake != NULL) {
        c->wake(c->wake_arg);
    }
}

void
orch_set_waker(struct orch_call *c, orch_wake_fn *wake, void *arg)
{
    c->wake = wake;
    c->wake_arg = arg;
}

void
orch_call_free(struct orch_call *c)
{
    if (c == NULL) {
        return;
    }
    c->wake = NULL;
    call_leave_snapshot(c);
    call_leave_review(c);
    call_hooks_end(c);
    mem_free(c->client);
    lock_leave(session_lock(c->session), c);
    /* It asks the process. */
    call_settle_grants(c);
    process_free(c->process);
    network_leave(c->seat);
    call_hidden_end(c, false);
    call_protect_end(c);
    call_audit_end(c);
    output_free(c->chain);
    session_release_sandbox(c->session, c->entry);
    session_release_sandbox(c->session, c->trial);
    sandbox_policy_fini(&c->base);
    strv_fini(&c->env);
    strv_fini(&c->argv);
    strv_fini(&c->bare_argv);
    buf_fini(&c->program);
    buf_fini(&c->tail);
    denial_list_fini(&c->output.denials);
    strv_fini(&c->output.network_hosts);
    exec_request_fini(&c->request);
    turn_context_fini(&c->turn);
    session_unref(c->session);
    mem_free(c);
}
