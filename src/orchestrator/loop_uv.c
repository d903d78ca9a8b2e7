#include <uv.h>

#include "base/clock.h"
#include "base/mem.h"
#include "orchestrator/orchestrator.h"

/*
 * A call on a libuv loop. One uv_poll a descriptor, one timer; the set of
 * descriptors is compared after each step, since the call closes them itself.
 */
struct watch {
    uv_poll_t handle;
    struct orch_driver *driver;
    int fd;
    uint64_t id;
};

struct orch_driver {
    struct orch_call *call;
    uv_loop_t *loop;
    uv_timer_t timer;
    struct watch *watches[PROCESS_WATCHES];
    orch_done_fn *done;
    void *arg;
    bool is_stepping;
    bool is_over;
};

static void step(struct orch_driver *d);

static void
on_ready(uv_poll_t *handle, int status, int events)
{
    struct watch *w = handle->data;

    (void)status; /* An error is found again by the call's own read. */
    (void)events;
    if (w->driver != NULL) {
        step(w->driver);
    }
}

static void
on_timer(uv_timer_t *timer)
{
    step(timer->data);
}

static void
on_watch_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

/* Before the descriptor is closed or reused: libuv must forget it first. */
static void
watch_end(struct watch *w)
{
    w->driver = NULL;
    uv_poll_stop(&w->handle);
    uv_close((uv_handle_t *)&w->handle, on_watch_closed);
}

static struct watch *
watch_new(struct orch_driver *d, const struct process_watch *wanted)
{
    struct watch *w = mem_alloc_zero(1, sizeof(*w));

    if (w == NULL) {
        return NULL;
    }
    if (uv_poll_init(d->loop, &w->handle, wanted->fd) != 0) {
        mem_free(w);
        return NULL;
    }
    w->handle.data = w;
    w->driver = d;
    w->fd = wanted->fd;
    w->id = wanted->id;
    if (uv_poll_start(&w->handle, UV_READABLE, on_ready) != 0) {
        watch_end(w);
        return NULL;
    }
    return w;
}

static bool
is_wanted(const struct watch *w, const struct process_watch *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (wanted[i].fd == w->fd && wanted[i].id == w->id) {
            return true;
        }
    }
    return false;
}

static bool
is_watched(const struct orch_driver *d, const struct process_watch *wanted)
{
    for (size_t i = 0; i < PROCESS_WATCHES; i++) {
        if (d->watches[i] != NULL && is_wanted(d->watches[i], wanted, 1)) {
            return true;
        }
    }
    return false;
}

static void
drop_unwanted(struct orch_driver *d, const struct process_watch *wanted, size_t n)
{
    for (size_t i = 0; i < PROCESS_WATCHES; i++) {
        if (d->watches[i] != NULL && !is_wanted(d->watches[i], wanted, n)) {
            watch_end(d->watches[i]);
            d->watches[i] = NULL;
        }
    }
}

/* false: no memory for a watch. The timer then looks again soon. */
static bool
add_wanted(struct orch_driver *d, const struct process_watch *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t slot = 0;

        if (is_watched(d, &wanted[i])) {
            continue;
        }
        while (slot < PROCESS_WATCHES && d->watches[slot] != NULL) {
            slot++;
        }
        SY_ASSERT(slot < PROCESS_WATCHES);
        d->watches[slot] = watch_new(d, &wanted[i]);
        if (d->watches[slot] == NULL) {
            return false;
        }
    }
    return true;
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
    drop_unwanted(d, wanted, is_done ? 0 : n);
    if (!is_done) {
        rearm(d, add_wanted(d, wanted, n));
        return;
    }

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
    if (!d->is_over) {
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
    d->done = done;
    d->arg = arg;
    orch_set_waker(call, wake_by_call, d);
    /* The first step comes from the loop, never from inside the caller. */
    uv_timer_start(&d->timer, on_timer, 0, 0);
    *ret = d;
    return SY_E_OK;
}
