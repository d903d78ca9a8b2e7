#include <uv.h>

#include "base/clock.h"
#include "base/mem.h"
#include "orchestrator/orchestrator.h"
#include "process/watch_set.h"

/* A call on a libuv loop. */
struct orch_driver {
    struct orch_call *call;
    uv_loop_t *loop;
    uv_timer_t timer;
    struct watch_set watches;
    orch_done_fn *done;
    void *arg;
    bool is_stepping;
    bool is_woken; /* during the step, which may not have seen why */
    bool is_over;
};

static void step(struct orch_driver *d);

static void
on_ready(void *arg)
{
    step(arg);
}

static void
on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

static void
on_driver_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void
rearm(struct orch_driver *d, bool is_watching)
{
    uint64_t deadline = orch_deadline_ns(d->call);
    uint64_t now = clock_mono_ns();
    uint64_t ms = 0;

    if (!is_watching) {
        deadline = now + 10000000ULL;
    }
    if (d->is_woken) {
        deadline = now;
    }
    d->is_woken = false;
    if (deadline == UINT64_MAX) {
        uv_timer_stop(&d->timer);
        return;
    }
    if (deadline > now) {
        ms = (deadline - now + 999999) / 1000000;
    }
    /* libuv counts from its cached time: a stale one would fire early. */
    uv_update_time(d->loop);
    uv_timer_start(&d->timer, on_timer, ms, 0);
}

static void
step(struct orch_driver *d)
{
    struct process_watch wanted[PROCESS_WATCHES];

    /* A callback of this very step (an event's subscriber) may wake us. */
    if (d->is_stepping || d->is_over) {
        return;
    }
    d->is_stepping = true;

    bool is_done = orch_step(d->call, clock_mono_ns());
    size_t n = orch_watches(d->call, wanted);

    d->is_stepping = false;
    if (!is_done) {
        rearm(d, watch_set_follow(&d->watches, wanted, n));
        return;
    }
    watch_set_end(&d->watches);

    struct orch_call *call = d->call;
    orch_done_fn *done = d->done;
    void *arg = d->arg;

    d->is_over = true;
    orch_set_waker(call, NULL, NULL);
    uv_timer_stop(&d->timer);
    uv_close((uv_handle_t *)&d->timer, on_driver_closed);
    done(arg, call);
}

void
orch_wake(struct orch_driver *d)
{
    /* The timer is set at the step's end, which would forget this. */
    d->is_woken = d->is_stepping;
    if (!d->is_over && !d->is_stepping) {
        uv_timer_start(&d->timer, on_timer, 0, 0);
    }
}

static void
wake_by_call(void *arg)
{
    orch_wake(arg);
}

enum sy_code
orch_attach(struct orch_driver **ret, struct orch_call *call, struct uv_loop_s *loop,
            orch_done_fn *done, void *arg, struct sy_error *err)
{
    struct orch_driver *d = mem_alloc_zero(1, sizeof(*d));

    if (d == NULL) {
        return sy_err_nomem(err);
    }

    int rc = uv_timer_init(loop, &d->timer);

    if (rc != 0) {
        mem_free(d);
        return sy_err_set(err, SY_E_INTERNAL, "event loop: %s", uv_strerror(rc));
    }
    d->timer.data = d;
    d->call = call;
    d->loop = loop;
    d->watches = (struct watch_set){.loop = loop, .ready = on_ready, .arg = d};
    d->done = done;
    d->arg = arg;
    orch_set_waker(call, wake_by_call, d);
    /* The first step comes from the loop, never from inside the caller. */
    uv_timer_start(&d->timer, on_timer, 0, 0);
    *ret = d;
    return SY_E_OK;
}
