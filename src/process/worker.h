#ifndef SY_PROCESS_WORKER_H
#define SY_PROCESS_WORKER_H

#include <stdbool.h>

#include "process/limited_call.h"

/*
 * Threads that stay, for system calls that somebody may make wait for ever (limited.h). A thread
 * costs less than a process for each call, and it may do what Yama leaves to ancestors
 * (ptrace_scope 1), such as to read memory. It can't be ended: one that waits for ever is left
 * alone, and is good again if it comes back. Eight of each kind at most; the end of the program
 * ends all.
 */

/* A call to describe, with an idle thread for it; without capabilities unless it keeps them. NULL:
 * all wait, or none can be had. */
struct limited_call *worker_take(bool keeps_rights);
/* Makes it. *ret: what the kernel returned, or -errno. False: not in time, and the call is the
 * thread's from now on: it is neither looked at nor given back. */
bool worker_call(struct limited_call *call, int timeout_ms, long *ret);
void worker_give_back(struct limited_call *call);

#endif
