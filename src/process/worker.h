#ifndef SY_PROCESS_WORKER_H
#define SY_PROCESS_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <linux/openat2.h>

/*
 * Threads that stay, for system calls that somebody may make wait for ever (limited.h). A thread
 * costs less than a process for each call, and it may do what Yama leaves to ancestors
 * (ptrace_scope 1), such as to read memory. It can't be ended: one that waits for ever is left
 * alone, and is good again if it comes back. Eight of each kind at most; the end of the program
 * ends all.
 */
#define WORKER_BYTES 4096U

struct worker {
    long nr;
    long args[5];
    bool returns_fd; /* closed if nobody waits for it any more */
    /* What the kernel reads or fills, possibly after whoever asked has given up. */
    struct open_how how;
    struct iovec to;
    struct iovec from;
    char bytes[WORKER_BYTES];
};

/* One that is idle, for a call that is then described in it; without capabilities unless it keeps
 * them. NULL: all wait, or none can be had. Given back by worker_give_back after worker_call. */
struct worker *worker_take(bool keeps_rights);
/* What the kernel returned, or -errno; -ETIMEDOUT: not in time, and it may not be looked at any
 * more. */
long worker_call(struct worker *w, int timeout_ms);
/* Also after -ETIMEDOUT. */
void worker_give_back(struct worker *w);

#endif
