#ifndef SY_PROCESS_LISTENER_H
#define SY_PROCESS_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/broker_parse.h"

/*
 * Whose is a listening Unix socket? For the broker. Both look until a time
 * (monotonic) at most, so that no number of sockets, descriptors, threads or
 * processes stops the engine.
 */

enum listener_answer {
    LISTENER_ONE,
    LISTENER_NONE,   /* for certain: nobody listens there */
    LISTENER_UNSURE, /* two that look alike, or it can't be found out */
};

/* To be called before the time of a search is set: the first question of all makes the kernel load
 * a module where that is not built in (Debian), which takes longer than any search may. */
void listener_prepare(void);
/* Has the kernel said that it can't tell (no unix_diag, and no module of that name)? */
bool listener_is_blind(void);
/* Asks it for nothing but that. */
bool listener_can_ask(void);
/* The socket that listens there (sock_diag(7)). `diag_fd` is a socket for the question in
 * the network to look in; -1: ours. */
enum listener_answer listener_find(const struct listener_key *key, int diag_fd, uint64_t until_ns,
                                   struct listener *ret);

/*
 * A descriptor of ours for this socket if `first` holds it, or another
 * descendant of `keeper`; else -1. As long as we hold it, its name is its own.
 * `first` must be known to be of the tree. Never a false yes; in a tree that
 * can't be looked through in time the answer may be a false no.
 */
int listener_hold(const struct listener *l, pid_t first, pid_t keeper, uint64_t until_ns);

/*
 * May this file be the one that the socket is bound to? The kernel gives only
 * half of its number to everybody (struct listener_key); an engine that may
 * (CAP_NET_ADMIN) asks for the very file.
 */
bool listener_is_bound_to(int listener_fd, int file_fd);

#endif
