/* What the sandbox refused to a call: what was seen, and what can be inferred. */
#include "orchestrator/call_internal.h"

void
call_gather_denials(struct orch_call *c)
{
    if (c->process != NULL) {
        process_take_denials(c->process, &c->output.denials);
    }
    c->output.may_escalate = c->turn.approval == APPROVAL_ON_REQUEST;
}
