#include "orchestrator/call_internal.h"

/* The small program and the library judge no commands: there is nothing that hooks could say. */

bool
call_hooks_begin(struct orch_call *c, enum hook_event event, const struct assessment *a)
{
    (void)c;
    (void)event;
    (void)a;
    return false;
}

void
call_hooks_judge(struct orch_call *c, struct assessment *a)
{
    (void)c;
    (void)a;
}

bool
call_hooks_allow(struct orch_call *c, const struct assessment *a)
{
    (void)c;
    (void)a;
    return false;
}

void
call_hooks_step(struct orch_call *c, uint64_t now_ns)
{
    (void)c;
    (void)now_ns;
}

void
call_hooks_renew(struct orch_call *c)
{
    (void)c;
}

size_t
call_hooks_watch(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES])
{
    (void)c;
    (void)out;
    return 0;
}

uint64_t
call_hooks_deadline_ns(const struct orch_call *c)
{
    (void)c;
    return UINT64_MAX;
}

void
call_hooks_leave(struct orch_call *c)
{
    (void)c;
}

void
call_hooks_end(struct orch_call *c)
{
    (void)c;
}
