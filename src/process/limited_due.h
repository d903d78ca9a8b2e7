#ifndef SY_PROCESS_LIMITED_DUE_H
#define SY_PROCESS_LIMITED_DUE_H

#include <stdint.h>

/* How long a busy machine may keep a helper from beginning, in time limits. What waits is the call,
 * not one that nobody has let begin. */
#define LIMITED_BUSY_LIMITS 10U

/* When a call is given up that was asked for and has begun (0: not yet) at these times. */
static inline uint64_t
limited_due_ns(uint64_t asked_ns, uint64_t begun_ns, uint64_t limit_ns)
{
    return begun_ns != 0 ? begun_ns + limit_ns : asked_ns + LIMITED_BUSY_LIMITS * limit_ns;
}

#endif
