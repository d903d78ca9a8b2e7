#ifndef SY_PROCESS_KEEPER_INTERNAL_H
#define SY_PROCESS_KEEPER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/keeper.h"
#include "sandbox/linux/raw_syscall.h"

/* The keeper's own descriptors; 0-2 are the command's until it has started. */
enum {
    KEEPER_CHANNEL_FD = 3,
    KEEPER_ENGINE_FD = 4,
    KEEPER_SIGNAL_FD = 5,
    KEEPER_RULESET_FD = 6, /* of a remote keeper */
    KEEPER_FIRST_FREE = 7
};

struct keeper {
    struct keeper_job *job;
    pid_t self;
    int32_t status;  /* of the command, once it has exited */
    int32_t ended;   /* others killed after the order to kill */
    bool has_exited; /* the command */
    bool is_killing;
    bool told_exited;
    bool is_orphan;     /* the engine wants no more of it, or is gone */
    bool is_last;       /* nobody but zombies is left under the filter */
    bool has_lent;      /* the engine has the listener too, and answers */
    bool has_engine_fd; /* an outer sandbox may refuse pidfd_open */
};

typedef unsigned long kernel_sigset; /* 64 signals on both architectures */

/* Moves fd out of the way of the fixed numbers. Returns it, or -errno. */
int keeper_lift(int fd);
/* Closes [first, last] whatever the kernel has: close_range(2) is 5.9. */
void keeper_close_span(unsigned first, unsigned last);
/* Back to the default action: an ignored signal stays ignored over clone(2) and
 * execve(2). 0, or -errno. */
long keeper_reset_signal(int n);
/* All of them that need it. */
void keeper_reset_signals(void);

/* The calling task may run again where the command may, if its keeper was moved. */
void keeper_restore_cpus(const struct keeper_job *job);

/*
 * Clones the child, which makes itself ready, waits for KEEPER_GO and executes
 * the command. Comes back when it has done so, or has died with job->stage
 * set. Returns its process id or a negative errno value.
 */
pid_t keeper_start_child(struct keeper *k);

/*
 * SIGKILL to each child of `self`, the calling task, now. Children can't be
 * reaped by anyone else, so their numbers are theirs until we wait.
 */
void keeper_kill_children(pid_t self);

#endif
