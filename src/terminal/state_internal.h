#ifndef SY_TERMINAL_STATE_INTERNAL_H
#define SY_TERMINAL_STATE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "terminal/state.h"

/* Is that descriptor of the process the terminal of that name? */
enum state_answer state_is_terminal(pid_t pid, unsigned fd, const char *name);

/* Is it a system call that waits for several descriptors (poll, select, epoll)? */
bool state_waits_for_many(uint64_t number);
/* Who waits, and whether it is for nothing but the terminal. */
struct state_waiter {
    pid_t pid;
    bool is_alone;
};
/* Is the terminal one of those that such a call waits for? `arguments`: as in /proc/PID/syscall. */
enum state_answer state_waits_for(struct state_waiter *waiter, uint64_t number,
                                  const char *arguments, const char *name, state_peek_fn *peek);

/* Does the process run, or is it about to have another descriptor (open(2))? True in doubt. */
bool state_is_opening(pid_t pid);

/* A file below /proc, as far as there is room. */
bool state_read_file(char *ret, size_t size, const char *path);
/* /proc/PID/stat from the state on, in `text`; NULL: there is none. */
const char *state_read_stat(char *text, size_t size, pid_t pid);
/* The name of its executable's file, since a program may be called by any. */
bool state_read_program(char *ret, size_t size, pid_t pid);
bool state_is_program(pid_t pid, const char *shell);

/* Processes that are to be looked at. */
struct state_looks {
    pid_t pids[LIMIT_STATE_PROCESSES];
    unsigned depths[LIMIT_STATE_PROCESSES];
    size_t n;
    bool is_cut; /* there are more */
};
/* Those that this one's threads have started, as long as there is room. */
void state_add_children(struct state_looks *todo, pid_t pid, unsigned depth);

#endif
