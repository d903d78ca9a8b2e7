#include "orchestrator/call_internal.h"

/* In the place of audited.c in the small program and the library: nobody reads the audit log. */
enum sy_code
session_audit_open(struct audit_reader **ret, const struct sandbox_caps *caps, struct sy_error *why)
{
    (void)ret;
    (void)caps;
    return sy_err_set(why, SY_E_NOTFOUND, "this program does not read the audit log");
}

void
session_audit_close(struct audit_reader *r)
{
    SY_ASSERT(r == NULL);
}

void
call_audit_begin(struct orch_call *c)
{
    (void)c;
}

void
call_audit_ask(struct orch_call *c, uint64_t now_ns)
{
    (void)c;
    (void)now_ns;
}

bool
call_audit_settle(struct orch_call *c, uint64_t now_ns)
{
    (void)c;
    (void)now_ns;
    return true;
}

size_t
call_audit_watch(const struct orch_call *c, struct process_watch out[PROCESS_WATCHES])
{
    (void)c;
    (void)out;
    return 0;
}

uint64_t
call_audit_again_ns(const struct orch_call *c)
{
    (void)c;
    return 0;
}

enum sy_code
call_audit_take(struct orch_call *c)
{
    (void)c;
    return SY_E_OK;
}

void
call_audit_end(struct orch_call *c)
{
    (void)c;
}
