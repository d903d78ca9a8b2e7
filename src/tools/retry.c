#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "tools/retry.h"

/* Of the first attempt's output, for the person. */
#define FAILED_BYTES 2000U

static bool
is_asked_for(const struct tool_call *call, const struct turn_context *turn)
{
    switch (turn->approval) {
    case APPROVAL_UNLESS_TRUSTED:
    case APPROVAL_ON_FAILURE:
        return true;
    case APPROVAL_ON_REQUEST:
        return tool_context_config(call->context)->approval.retry_on_request;
    case APPROVAL_NEVER:
    case APPROVAL_GRANULAR:
        break;
    }
    return false;
}

static enum sy_code
write_failed(struct buf *ret, const struct exec_output *o)
{
    bool is_truncated = false;
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < o->denials.n && rc == SY_E_OK; i++) {
        rc = buf_add_str(ret, "sandbox: ");
        if (rc == SY_E_OK) {
            rc = denial_sentence(ret, &o->denials.v[i]);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(ret, '\n');
        }
    }
    return rc == SY_E_OK && o->output != NULL
               ? output_text_model(o->output, FAILED_BYTES, ret, &is_truncated)
               : rc;
}

bool
retry_make(struct exec_request *ret, struct tool_call *call)
{
    const struct exec_output *o = orch_output(call->orch);
    const struct turn_context *turn = orch_turn(call->orch);
    SY_AUTO(buf_fini) struct buf failed = {.max = LIMIT_STORE_TEXT};

    if (call->first != NULL || call->patch != NULL || call->access != NULL || call->is_cancelled ||
        !exec_has_failed(o) || o->denials.n == 0 || !sandbox_mode_is_enforced(turn->sandbox.mode) ||
        !is_asked_for(call, turn) || !session_can_ask(tool_context_session(call->context))) {
        return false;
    }
    /* What can't be shown is not asked about. */
    if (write_failed(&failed, o) != SY_E_OK) {
        return false;
    }

    char *text = buf_take(&failed);

    if (text == NULL) {
        return false;
    }
    orch_take_request(call->orch, ret);
    ret->failed = text;
    return true;
}

/* Why the first attempt's answer stands. */
static const char *
why_not(const struct exec_output *second)
{
    if (second->review == NULL) {
        return second->err.msg;
    }
    switch (second->review->outcome) {
    case REVIEW_DENIED:
    case REVIEW_ABORTED:
        return "a person was asked to let it run outside the sandbox, and said no";
    case REVIEW_TIMED_OUT:
        return "a person was asked to let it run outside the sandbox, and did not answer in time";
    case REVIEW_PENDING:
        return "a person is asked to let it run outside the sandbox: tell them to run `shellyard "
               "approvals`, then make the same call again";
    case REVIEW_FAILED:
    case REVIEW_APPROVED:
        break;
    }
    return second->err.msg;
}

void
retry_output(struct exec_output *ret, const struct tool_call *call)
{
    const struct exec_output *second = orch_output(call->orch);
    const char *note = "";

    *ret = *second;
    if (call->first == NULL) {
        return;
    }
    if (ret->hooked.rewritten_by == NULL) {
        ret->hooked.rewritten_by = orch_output(call->first)->hooked.rewritten_by;
        ret->hooked.command = orch_output(call->first)->hooked.command;
    }
    if (second->output != NULL) {
        note = "the sandbox refused what the first attempt needed; a person approved this one, "
               "outside the sandbox";
    } else if (second->status != EXEC_FAILED && second->status != EXEC_CANCELLED) {
        *ret = *orch_output(call->first);
        ret->review = second->review;
        note = why_not(second);
    }
    exec_add_note(ret, note);
}
