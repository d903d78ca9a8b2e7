#ifndef SY_PROCESS_GATE_H
#define SY_PROCESS_GATE_H

#include <stdint.h>

/*
 * The one internet address that connect(2) of a tree reaches while its network is an allow list:
 * a listening socket of the engine on 127.0.0.1. The broker connects the caller's own socket. In a
 * network of its own there are two, for HTTP and for SOCKS.
 */
struct process_gate {
    uint16_t port;
    uint16_t socks_port; /* 0: the same */
    /*
     * A socket of the tree has been connected to the gate, or is being connected. *fd is a
     * descriptor of ours for it, which may be taken (left -1): as long as one is held, nobody else
     * can have its local port. Never called for a socket that was not connected by the broker.
     */
    void (*on_connected)(void *arg, int *fd);
    void *arg;
};

#endif
