#ifndef SY_TERMINAL_STATE_INTERNAL_H
#define SY_TERMINAL_STATE_INTERNAL_H

#include <stdint.h>

#include "terminal/state.h"

/* Is that descriptor of the process the terminal of that name? */
enum state_answer state_is_terminal(pid_t pid, unsigned fd, const char *name);

/* Is it a system call that waits for several descriptors (poll, select, epoll)? */
bool state_waits_for_many(uint64_t number);
/* Is the terminal one of those that such a call waits for? `arguments`: as in /proc/PID/syscall. */
enum state_answer state_waits_for(pid_t pid, uint64_t number, const char *arguments,
                                  const char *name, state_peek_fn *peek);

#endif
