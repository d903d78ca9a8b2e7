#include <stdio.h>
#include <string.h>

#include "orchestrator/call_internal.h"

/* Exit codes of calls whose command gave none. */
#define EXIT_TIMED_OUT   124
#define EXIT_MACHINERY   125
#define EXIT_CANCELLED   130
#define EXIT_SIGNAL_BASE 128

void
call_conclude(struct orch_call *c, enum exec_status status)
{
    c->output.status = status;
    c->output.output = c->chain;
    if (c->entry != NULL) {
        c->output.plan = c->entry->plan;
    }
    switch (status) {
    case EXEC_EXITED:
        break;
    case EXEC_SIGNALED:
        c->output.exit_code = EXIT_SIGNAL_BASE + c->output.signal;
        break;
    case EXEC_TIMED_OUT:
        c->output.exit_code = EXIT_TIMED_OUT;
        c->output.is_timed_out = true;
        break;
    case EXEC_CANCELLED:
        c->output.exit_code = EXIT_CANCELLED;
        break;
    case EXEC_DENIED:
    case EXEC_PENDING:
        c->output.exit_code = EXIT_MACHINERY;
        break;
    case EXEC_FAILED:
        c->output.exit_code = sy_code_status(c->output.err.code);
        if (c->output.exit_code < EXIT_MACHINERY) {
            c->output.exit_code = EXIT_MACHINERY;
        }
        break;
    }
    if (c->chain != NULL && output_finish(c->chain) != SY_E_OK && c->output.note[0] == '\0') {
        snprintf(c->output.note, sizeof(c->output.note), "memory ran out at the end of the output");
    }
    call_judge_limits(c, status);
    call_take_denials(c);
    call_protect_end(c);
    call_gather_denials(c);
}

/* A process that could not become the command was none. */
static bool
has_begun(const struct orch_call *c)
{
    return c->has_begun &&
           (c->request.work.run != NULL ||
            (c->process != NULL && process_result(c->process)->outcome != PROCESS_FAILED));
}

void
call_settle_grants(struct orch_call *c)
{
    grants_settle(session_grants(c->session), c, has_begun(c));
}

void
call_end(struct orch_call *c)
{
    call_tell_denials(c);
    call_leave_network(c);
    lock_leave(session_lock(c->session), c);
    call_settle_grants(c);
    c->state = ORCH_DONE;
    call_emit_end(c);
}

void
call_finish(struct orch_call *c, enum exec_status status)
{
    call_conclude(c, status);
    call_end(c);
}

void
call_fail(struct orch_call *c, enum exec_status status, const struct sy_error *why)
{
    c->output.err = *why;
    call_finish(c, status);
}

void
call_add_note(struct orch_call *c, const char *text)
{
    exec_add_note(&c->output, text);
}
