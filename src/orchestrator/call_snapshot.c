#include <stdio.h>

#include "orchestrator/call_internal.h"

void
call_snapshot_step(struct orch_call *c, uint64_t now_ns)
{
    struct snapshot *snapshot = session_snapshot(c->session);

    if (c->owns_snapshot) {
        if (!snapshot_step(snapshot, now_ns)) {
            return;
        }
        c->owns_snapshot = false;
        session_wake_waiters(c->session);
    }

    struct sy_error err = {0};
    char note[SY_ERR_MSG_MAX];

    switch (snapshot_state(snapshot, c->shell, session_home(c->session))) {
    case SNAPSHOT_NONE:
        /* Profiles that change all the time must not keep the call here. */
        if (!call_has_entry(c)) {
            return;
        }
        if (c->snapshot_tries++ < 2 &&
            snapshot_start(snapshot, c->session, &c->turn, c->entry, &err) == SY_E_OK) {
            c->owns_snapshot = true;
            return;
        }
        snprintf(note, sizeof(note), "no login environment: %.180s",
                 err.msg[0] != '\0' ? err.msg : "the profile files keep changing");
        call_add_note(c, note);
        break;
    case SNAPSHOT_RUNNING:
        if (!c->is_waiting) {
            c->is_waiting = true;
            session_add_waiter(c->session, c);
        }
        return;
    case SNAPSHOT_READY:
        c->has_login_env = true;
        break;
    case SNAPSHOT_FAILED:
        snprintf(note, sizeof(note), "login environment not used: %.180s",
                 snapshot_reason(snapshot));
        call_add_note(c, note);
        break;
    }
    c->state = ORCH_APPROVAL;
}

void
call_leave_snapshot(struct orch_call *c)
{
    if (c->is_waiting) {
        session_remove_waiter(c->session, c);
        c->is_waiting = false;
    }
    if (c->owns_snapshot) {
        c->owns_snapshot = false;
        snapshot_abandon(session_snapshot(c->session));
        session_wake_waiters(c->session);
    }
}

struct orch_call *
call_next_waiter(struct orch_call *c)
{
    return c->next_waiter;
}

void
call_set_next_waiter(struct orch_call *c, struct orch_call *next)
{
    c->next_waiter = next;
}
