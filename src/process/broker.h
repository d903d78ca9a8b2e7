#ifndef SY_PROCESS_BROKER_H
#define SY_PROCESS_BROKER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Answers for connect(2) of a sandboxed tree while its network is off
 * (seccomp_unotify(2)). A socket may be connected to only if a process of the
 * same tree listens on it: nothing of docker, ssh-agent, a session bus or
 * another run is in reach, while servers and clients of one command work.
 *
 * The broker never lets the call go on: it reads the address once, opens the
 * very file, checks who listens on it, and connects the caller's socket to
 * that file itself, so that neither the address in memory nor the path can be
 * changed in between.
 */

/*
 * Handles what waits on the listener (a bounded number), without blocking for
 * more than BROKER_WAIT_MS a call. `keeper_of` gives the root of a caller's tree,
 * 0 if it has none: then it gets nothing. Returns false once nobody is left under the filter: the
 * listener can be closed.
 */
#define BROKER_WAIT_MS 100

/* Where the callers are. */
struct broker_place {
    int diag_fd;       /* for sock_diag(7) in their network; -1: they are in ours */
    bool has_own_tree; /* their paths are in a mount namespace of their own */
};
bool broker_step(int listener_fd, const struct broker_place *place,
                 pid_t (*keeper_of)(const void *arg, pid_t caller), const void *arg);

#endif
