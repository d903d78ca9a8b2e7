#ifndef SY_TOOLS_RETRY_H
#define SY_TOOLS_RETRY_H

#include "tools/tools_internal.h"

/*
 * A command that failed since the sandbox refused it something may run once more, outside of
 * it, if a person says so: they see what it printed and what was refused. The first
 * attempt's answer stands if they don't.
 */

/* The request for the second attempt of call->orch, which is over; false: there is none. */
bool retry_make(struct exec_request *ret, struct tool_call *call);

/* What the call answers: the second attempt's output, or the first one's and why it stands.
 * Borrows from both. */
void retry_output(struct exec_output *ret, const struct tool_call *call);

#endif
