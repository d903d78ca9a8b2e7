#ifndef SY_PROCESS_LIMITED_CALL_H
#define SY_PROCESS_LIMITED_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <linux/openat2.h>

#define LIMITED_CALL_BYTES 4096U

/* A system call that a thread (worker.h) or a helper process (limited.c) makes. */
struct limited_call {
    long nr;
    long args[5];
    bool returns_fd; /* a thread closes it if nobody waits for it any more */
    /* What the kernel reads or fills, possibly after whoever asked has given up. */
    struct open_how how;
    struct iovec to;
    struct iovec from;
    char bytes[LIMITED_CALL_BYTES];
};

/* How long a busy machine may keep it from beginning, in time limits. What waits is the call, not
 * one that nobody has let begin. */
#define LIMITED_BUSY_LIMITS 10U

/*
 * For how long to wait for a call now that was asked for and has begun (0: not yet) at these times;
 * 0: it is given up. That it begins is not told, so it is looked for after each limit.
 */
static inline uint64_t
limited_wait_ns(uint64_t asked_ns, uint64_t begun_ns, uint64_t limit_ns, uint64_t now_ns)
{
    uint64_t due_ns =
        begun_ns != 0 ? begun_ns + limit_ns : asked_ns + LIMITED_BUSY_LIMITS * limit_ns;
    uint64_t left_ns = now_ns < due_ns ? due_ns - now_ns : 0;

    return left_ns < limit_ns ? left_ns : limit_ns;
}

#endif
