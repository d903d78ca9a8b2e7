#ifndef SY_PROCESS_USAGE_H
#define SY_PROCESS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the tree of one command uses, by /proc. */
struct usage {
    uint64_t tasks; /* processes and threads */
    /* Resident memory: shared pages count in each process that has them, unless
     * `is_proportional`. */
    uint64_t memory_bytes;
    uint64_t cpu_ms; /* of those that have ended too */
};

/* More are not looked at. */
#define USAGE_PROCESSES 32768U

/* Can the tree be looked at here (CONFIG_PROC_CHILDREN)? */
bool usage_is_available(void);
/*
 * The descendants of `keeper`, itself not counted. Stops once there are more than
 * `tasks_max` tasks. `is_proportional`: shared pages are divided among those who
 * share them, which costs the kernel a walk over all of their memory.
 */
void usage_look(struct usage *ret, pid_t keeper, uint64_t tasks_max, bool is_proportional);

#endif
