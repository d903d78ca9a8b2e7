#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/str.h"
#include "base/utf8.h"
#include "orchestrator/call_internal.h"

/*
 * ORCH_HOOK. The hooks of an event run one after another; then the call is judged anew
 * (call_approve), with what they said. One that rewrites has it judged anew at once, and all
 * hooks see the new command: what one of them forbids, another can't bring back.
 */
struct call_hooks {
    enum hook_event event;
    size_t next; /* of its programs */
    struct hook_run *run;
    struct buf input;
    bool is_over[HOOK_EVENTS];           /* they were all asked about the command as it is now */
    uint32_t has_rewritten[HOOK_EVENTS]; /* by the number of the program: each may once */
    bool asks;
    char why[SY_ERR_MSG_MAX];
    const char *allowed_by;
    struct strv command; /* what it became; empty: as it was */
};

#define REASON_BYTES 120U

_Static_assert(LIMIT_HOOKS <= 32, "a bit for each in has_rewritten");

static const struct strv *
programs_of(const struct orch_call *c, enum hook_event event)
{
    static const struct strv none;
    const struct strv *programs = session_hooks(c->session)->programs[event];

    return programs != NULL ? programs : &none;
}

static void
fail(struct orch_call *c, const struct sy_error *err)
{
    call_hooks_leave(c);
    call_fail(c, err->code == SY_E_CONFIG || err->code == SY_E_DENIED ? EXEC_DENIED : EXEC_FAILED,
              err);
}

static enum sy_code
write_input(struct orch_call *c, const struct assessment *a)
{
    bool is_work = c->request.work.run != NULL;
    const char *of[LIMIT_SESSION_DEPTH + 2];
    struct subagent subagent;
    bool is_below = session_subagent(&subagent, of, c->session);
    const struct hook_call call = {
        .event = c->hooks->event,
        .session = session_id(c->session),
        .subagent = is_below ? &subagent : NULL,
        .call_id = orch_call_id(c),
        .tool = c->request.tool,
        .argv = strv_view(&c->argv),
        .script = c->request.script,
        .patch = is_work && c->look.access == NULL && c->argv.n > 1 ? c->argv.v[1] : NULL,
        .access = c->look.access,
        .cwd = c->request.params.cwd,
        .sandbox = c->look.access != NULL ? &c->base : &c->turn.sandbox,
        .policy = c->turn.approval,
        .escalates = call_escalates(c) || c->request.failed != NULL,
        .justification = c->request.params.justification,
        .assessment = a,
    };

    buf_fini(&c->hooks->input);
    c->hooks->input.max = LIMIT_HOOK_INPUT;
    return hook_call_write(&c->hooks->input, &call);
}

bool
call_hooks_begin(struct orch_call *c, enum hook_event event, const struct assessment *a)
{
    struct sy_error err = {0};

    if (programs_of(c, event)->n == 0 || (c->hooks != NULL && c->hooks->is_over[event])) {
        return false;
    }
    if (c->hooks == NULL) {
        c->hooks = mem_alloc_zero(1, sizeof(*c->hooks));
    }
    if (c->hooks == NULL) {
        (void)sy_err_nomem(&err);
        fail(c, &err);
        return true;
    }
    c->hooks->event = event;
    c->hooks->next = 0;

    enum sy_code rc = write_input(c, a);

    if (rc != SY_E_OK) {
        (void)sy_err_set(&err, rc == SY_E_NOMEM ? rc : SY_E_DENIED, "telling a hook of it: %s",
                         sy_code_text(rc));
        fail(c, &err);
        return true;
    }
    c->state = ORCH_HOOK;
    return true;
}

/* The first reason is told. */
static void
ask(struct orch_call *c, const char *program, const struct hook_answer *a)
{
    struct call_hooks *h = c->hooks;
    struct place_shown_path shown;

    if (h->asks) {
        return;
    }
    h->asks = true;
    (void)snprintf(h->why, sizeof(h->why), "the hook '%s' %s%s%.*s",
                   place_visible_path(&shown, program), a->has_failed ? "failed" : "asks",
                   a->reason[0] != '\0' ? ": " : "", utf8_room(a->reason, REASON_BYTES), a->reason);
    if (a->has_failed) {
        call_add_note(c, h->why);
    }
}

void
call_hooks_renew(struct orch_call *c)
{
    struct call_hooks *h = c->hooks;

    if (h != NULL) {
        h->is_over[HOOK_PRE_EXEC] = h->is_over[HOOK_PERMISSION_REQUEST] = false;
        h->asks = false;
        h->allowed_by = NULL;
    }
}

static enum sy_code
replace(struct orch_call *c, const struct strv *command)
{
    struct strv kept = {.max = LIMIT_ARGV};

    if (strv_add_all(&kept, strv_view(command)) != SY_E_OK ||
        call_replace_command(c, command) != SY_E_OK) {
        strv_fini(&kept);
        return SY_E_NOMEM;
    }
    strv_fini(&c->hooks->command);
    c->hooks->command = kept;
    return SY_E_OK;
}

static void
tell_rewritten(struct orch_call *c, const char *program)
{
    SY_AUTO(buf_fini) struct buf line = {.max = 256};
    struct place_shown_path shown;
    char note[SY_ERR_MSG_MAX];
    bool fits = true;

    for (size_t i = 0; fits && i < c->hooks->command.n; i++) {
        const char *word = c->hooks->command.v[i];

        fits = buf_add_str(&line, i > 0 ? " " : "") == SY_E_OK &&
               str_add_visible(&line, word, strlen(word), 60) == SY_E_OK;
    }
    (void)snprintf(note, sizeof(note), "the hook '%s' rewrote the command to: %.90s",
                   place_visible_path(&shown, program), line.len > 0 ? buf_view(&line) : "");
    call_add_note(c, note);
    c->output.hooked.rewritten_by = program;
    c->output.hooked.command = &c->hooks->command;
}

/* True: it is another command now, and is judged from the start. */
static bool
rewrite(struct orch_call *c, const char *program, const struct hook_answer *a)
{
    static const struct hook_answer no_patch = {
        .has_failed = true, .reason = "it wants another patch, which no hook can give"};
    static const struct hook_answer no_access = {
        .has_failed = true, .reason = "it wants other access, which no hook can ask for"};
    static const struct hook_answer no_second = {
        .has_failed = true, .reason = "it wants to rewrite the command a second time"};
    struct call_hooks *h = c->hooks;
    uint32_t bit = 1U << h->next;
    struct sy_error err = {0};

    if (c->request.work.run != NULL) {
        ask(c, program, c->look.access != NULL ? &no_access : &no_patch);
        return false;
    }
    if (c->request.script == NULL && strv_eq(&a->command, &c->argv)) {
        return false;
    }
    if ((h->has_rewritten[h->event] & bit) != 0) {
        ask(c, program, &no_second);
        return false;
    }
    if (replace(c, &a->command) != SY_E_OK) {
        (void)sy_err_nomem(&err);
        fail(c, &err);
        return true;
    }
    tell_rewritten(c, program);
    h->has_rewritten[h->event] |= bit;
    call_hooks_renew(c);
    c->state = ORCH_APPROVAL;
    return true;
}

static void
deny(struct orch_call *c, const char *program, const char *reason)
{
    struct place_shown_path shown;
    struct sy_error err = {0};

    (void)sy_err_set(&err, SY_E_DENIED, "the hook '%s' denied it%s%.*s",
                     place_visible_path(&shown, program), reason[0] != '\0' ? ": " : "",
                     utf8_room(reason, REASON_BYTES), reason);
    fail(c, &err);
}

/* True: the rest of the hooks is not asked now. */
static bool
take_answer(struct orch_call *c, const char *program, const struct hook_answer *a)
{
    switch (a->decision) {
    case HOOK_NONE:
        break;
    case HOOK_ALLOW:
        if (c->hooks->event == HOOK_PERMISSION_REQUEST && c->hooks->allowed_by == NULL) {
            c->hooks->allowed_by = program;
        }
        break;
    case HOOK_REWRITE:
        return rewrite(c, program, a);
    case HOOK_ASK:
        ask(c, program, a);
        break;
    case HOOK_DENY:
        deny(c, program, a->reason);
        return true;
    }
    return false;
}

/* Each time: what commands may write depends on the turn, and files change. */
static bool
start(struct orch_call *c, const char *program)
{
    const struct hook_run_options options = {
        .program = program,
        .input = buf_view(&c->hooks->input),
        .environ_list = session_environ(c->session),
        .timeout_ms = session_hooks(c->session)->timeout_ms,
    };
    struct sy_error err = {0};

    if (!call_has_entry(c)) {
        return false;
    }
    if (hook_check_program(program, &c->turn.sandbox, c->entry->plan, &err) != SY_E_OK ||
        hook_run_new(&c->hooks->run, &options, &err) != SY_E_OK) {
        fail(c, &err);
        return false;
    }
    return true;
}

void
call_hooks_step(struct orch_call *c, uint64_t now_ns)
{
    struct call_hooks *h = c->hooks;
    const struct strv *programs = programs_of(c, h->event);

    while (h->next < programs->n) {
        const char *program = programs->v[h->next];

        if (h->run == NULL && !start(c, program)) {
            return;
        }
        if (!hook_run_step(h->run, now_ns)) {
            return;
        }

        bool is_decided = take_answer(c, program, hook_run_answer(h->run));

        call_hooks_leave(c);
        if (is_decided) {
            return;
        }
        h->next++;
    }
    h->is_over[h->event] = true;
    c->state = ORCH_APPROVAL;
}

void
call_hooks_judge(struct orch_call *c, struct assessment *a)
{
    struct requirement *need = &a->need;
    char reason[SY_ERR_MSG_MAX];

    if (c->hooks == NULL || !c->hooks->asks || need->kind == REQUIREMENT_FORBIDDEN) {
        return;
    }
    if (need->kind == REQUIREMENT_NEEDS_APPROVAL) {
        (void)snprintf(reason, sizeof(reason), "%.*s; %.*s", utf8_room(need->reason, 100),
                       need->reason, utf8_room(c->hooks->why, REASON_BYTES), c->hooks->why);
    } else {
        (void)snprintf(reason, sizeof(reason), "%s", c->hooks->why);
    }
    /* A hook is the user's word as a rule is. */
    *need = (struct requirement){.kind = REQUIREMENT_NEEDS_APPROVAL, .cause = REQUIREMENT_BY_RULE};
    memcpy(need->reason, reason, sizeof(reason));
    if (!approval_may_ask(c->turn.approval, &c->turn.granular, REQUIREMENT_BY_RULE)) {
        requirement_refuse_unasked(need);
    }
}

/* Only the policy's own question, and that about what is dangerous; a rule's, one about a
 * catastrophe and one about the sandbox stay a person's. */
bool
call_hooks_allow(struct orch_call *c, const struct assessment *a)
{
    struct place_shown_path shown;
    char note[SY_ERR_MSG_MAX];

    if (c->hooks == NULL || c->hooks->allowed_by == NULL || c->hooks->asks ||
        a->class == APPROVAL_CLASS_CATASTROPHIC || call_escalates(c) || c->request.failed != NULL ||
        (a->need.cause != REQUIREMENT_BY_POLICY && a->need.cause != REQUIREMENT_BY_CLASS)) {
        return false;
    }
    (void)snprintf(note, sizeof(note), "the hook '%s' allowed it instead of a person",
                   place_visible_path(&shown, c->hooks->allowed_by));
    call_add_note(c, note);
    c->output.hooked.allowed_by = c->hooks->allowed_by;
    return true;
}

size_t
call_hooks_watch(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES])
{
    return c->hooks->run != NULL ? hook_run_watches(c->hooks->run, out) : 0;
}

uint64_t
call_hooks_deadline_ns(const struct orch_call *c)
{
    return c->hooks->run != NULL ? hook_run_deadline_ns(c->hooks->run) : 0;
}

void
call_hooks_leave(struct orch_call *c)
{
    if (c->hooks != NULL) {
        hook_run_free(c->hooks->run);
        c->hooks->run = NULL;
    }
}

void
call_hooks_end(struct orch_call *c)
{
    if (c->hooks == NULL) {
        return;
    }
    call_hooks_leave(c);
    buf_fini(&c->hooks->input);
    strv_fini(&c->hooks->command);
    mem_free(c->hooks);
    c->hooks = NULL;
}
