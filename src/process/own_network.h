#ifndef SY_PROCESS_OWN_NETWORK_H
#define SY_PROCESS_OWN_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#include "process/broker_parse.h"

/*
 * connect(2) on internet sockets of a tree with a network namespace of its own, in which there is
 * nothing but a loopback interface. The namespace is the wall; this makes the call on the caller's
 * socket, since the filter can't tell it from one on a Unix socket, and tells what was missed.
 */

/* What a refused connection was for. */
enum own_miss {
    MISS_NOTHING,
    MISS_OUTSIDE,  /* TCP to an address that this network has not */
    MISS_DATAGRAM, /* the same by UDP */
    MISS_HOST      /* loopback: nobody listens there, but a server outside does */
};

struct own_answer {
    int sys; /* the errno that the caller gets, or 0 */
    bool is_tcp;
    enum own_miss miss;
};

/* `sock` is the caller's, held by us; `bytes` the address that *a was made of. Never blocks for
 * longer than BROKER_WAIT_MS. */
struct own_answer own_network_connect(int sock, const struct broker_address *a, const void *bytes,
                                      size_t n);

struct process;
/* Puts it on the list of what was refused to that process, which has a plan. */
void own_network_tell(struct process *p, const char *object, enum own_miss miss);

/* Does somebody in the network of this program listen on TCP at that address (of 127/8, ::1)? False
 * also where it can't be found out. */
bool own_network_is_served_outside(const struct broker_address *a);

#endif
