#ifndef SY_PROCESS_BROKER_H
#define SY_PROCESS_BROKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "process/gate.h"
#include "process/own_network.h"
#include <linux/seccomp.h>

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
 *
 * With an allow list (network.allow) the tree may make TCP sockets, and there is one internet
 * address that they can be connected to: its gate, the engine's own proxy. listen(2) asks too
 * then, since a server would be reached from outside; the broker makes it for Unix sockets.
 *
 * A tree with a network namespace of its own connects to whatever is in it (own_network.h); there
 * the gate is where the proxy listens inside.
 */

#define OBSERVE_GO_ON (-1)

/* Where the callers are. */
struct broker_place {
    int diag_fd;       /* for sock_diag(7) in their network; -1: they are in ours */
    bool has_own_tree; /* their paths are in a mount namespace of their own */
    bool has_own_network;
};

/* Whose calls they are. */
struct broker_host {
    struct broker_place place;
    /* The root of a caller's tree; 0 if it has none: then it gets nothing. */
    pid_t (*keeper_of)(void *arg, pid_t caller);
    /* Something of that tree asked for this address ("unix:PATH", "unix:@NAME", "HOST:PORT", as
     * it wrote it) and the policy, not the kernel, said no. May be NULL. */
    void (*on_refused)(void *arg, pid_t keeper, const char *object);
    /* The same for an internet address in a network of its own. May be NULL. */
    void (*on_missed)(void *arg, pid_t keeper, const char *object, enum own_miss miss);
    /* The gate of that tree; NULL: none. May be NULL itself. */
    const struct process_gate *(*gate_of)(void *arg, pid_t keeper);
    /* Something of that tree called listen(2) on an internet socket. May be NULL. */
    void (*on_listen_refused)(void *arg, pid_t keeper);
    /*
     * Any other call that the filter asks about. Returns OBSERVE_GO_ON, or the errno value that
     * the caller gets. NULL: they are refused, but for those that may open a terminal
     * (SECCOMP_OF_TERMINALS), which the kernel judges.
     */
    int (*on_call)(void *arg, pid_t keeper, int listener_fd, const struct seccomp_notif *n);
    void *arg;
};

/*
 * Handles what waits on the listener (a bounded number), without blocking for
 * more than BROKER_WAIT_MS a call. Returns false once nobody is left under the filter: the
 * listener can be closed.
 */
#define BROKER_WAIT_MS 100
bool broker_step(int listener_fd, const struct broker_host *host);

#endif
