#ifndef SY_PROCESS_WATCH_SET_H
#define SY_PROCESS_WATCH_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "process/process.h"

/*
 * What a process waits for, on a libuv loop: one uv_poll a descriptor. Whoever owns the process
 * compares the set after each step, since a step closes descriptors by itself.
 */
struct uv_loop_s;
struct watch;

typedef void watch_set_fn(void *arg);

struct watch_set {
    struct uv_loop_s *loop;
    watch_set_fn *ready; /* some descriptor is readable: step. May end the set */
    void *arg;
    bool keeps_no_loop; /* a loop that has nothing else may end */
    struct watch *watches[PROCESS_WATCHES];
};

/* From now on exactly these n are watched. false: one of them is not, look again soon: there is no
 * memory, or another set of the loop has it (it takes a descriptor once). */
bool watch_set_follow(struct watch_set *s, const struct process_watch *wanted, size_t n);
/* None any more; before the owner's memory goes. Accepts zeroed. */
void watch_set_end(struct watch_set *s);

#endif
