#include "base/err.h"
#include "orchestrator/call_internal.h"

static bool
is_free(const struct session_lock *lock, const struct orch_call *c)
{
    return c->is_lock_wanted && !lock->has_writer && (!c->is_mutating || lock->readers == 0);
}

static void
take(struct session_lock *lock, struct orch_call *c)
{
    c->lock_place = LOCK_INSIDE;
    if (c->is_mutating) {
        lock->has_writer = true;
    } else {
        lock->readers++;
    }
}

/* All whose turn it is, in order: nobody overtakes, else a call that writes would wait for ever
 * behind those that read. */
static void
let_in(struct session_lock *lock, const struct orch_call *self)
{
    while (lock->first != NULL && is_free(lock, lock->first)) {
        struct orch_call *c = lock->first;

        lock->first = c->next_queued;
        take(lock, c);
        if (c != self) {
            call_wake(c);
        }
    }
}

void
lock_queue(struct session_lock *lock, struct orch_call *c)
{
    struct orch_call **last = &lock->first;

    if (c->lock_place != LOCK_OUTSIDE) {
        return;
    }
    while (*last != NULL) {
        last = &(*last)->next_queued;
    }
    *last = c;
    c->next_queued = NULL;
    c->lock_place = LOCK_QUEUED;
    c->is_lock_wanted = false;
}

bool
lock_enter(struct session_lock *lock, struct orch_call *c)
{
    lock_queue(lock, c);
    c->is_lock_wanted = true;
    let_in(lock, c);
    return c->lock_place == LOCK_INSIDE;
}

void
lock_leave(struct session_lock *lock, struct orch_call *c)
{
    struct orch_call **at = &lock->first;

    switch (c->lock_place) {
    case LOCK_OUTSIDE:
        return;
    case LOCK_QUEUED:
        while (*at != c) {
            at = &(*at)->next_queued;
        }
        *at = c->next_queued;
        break;
    case LOCK_INSIDE:
        if (c->is_mutating) {
            lock->has_writer = false;
        } else {
            lock->readers--;
        }
        break;
    }
    c->lock_place = LOCK_OUTSIDE;
    let_in(lock, c);
}
