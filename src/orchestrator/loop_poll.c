#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "orchestrator/orchestrator.h"

/* Milliseconds to wait for `deadline`, rounded up; -1: for ever. */
static int
wait_ms(uint64_t deadline_ns, uint64_t now_ns)
{
    if (deadline_ns == UINT64_MAX) {
        return -1;
    }
    if (deadline_ns <= now_ns) {
        return 0;
    }

    uint64_t ms = (deadline_ns - now_ns + 999999) / 1000000;

    return ms > 86400000 ? 86400000 : (int)ms;
}

static bool
is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&p, 1, 0) > 0;
}

void
orch_run(struct orch_call *call, int stop_fd)
{
    /* Before the first step, which may start it. */
    if (is_readable(stop_fd)) {
        orch_cancel(call);
        stop_fd = -1;
    }
    while (!orch_step(call, clock_mono_ns())) {
        struct process_watch watches[PROCESS_WATCHES];
        struct pollfd fds[PROCESS_WATCHES + 1];
        size_t n = orch_watches(call, watches);

        for (size_t i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        fds[n] = (struct pollfd){.fd = stop_fd, .events = POLLIN};

        int ready = poll(fds, (nfds_t)n + 1, wait_ms(orch_deadline_ns(call), clock_mono_ns()));

        if (ready > 0 && fds[n].revents != 0) {
            orch_cancel(call);
            stop_fd = -1;
        }
    }
}
