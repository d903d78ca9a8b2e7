#ifndef SY_ORCHESTRATOR_NETWORK_H
#define SY_ORCHESTRATOR_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "approval/assess.h"
#include "base/buf.h"
#include "base/err.h"
#include "process/gate.h"
#include "sandbox/denial.h"

/*
 * The way out of commands whose network is an allow list: the proxy (src/proxy), wired to the
 * calls of one policy. One for each prepared sandbox, made with the first call that needs it.
 *
 * It has a libuv loop of its own, which is driven by the calls: each waits on network_seat_fd and
 * network_deadline_ns besides what it waits on anyway, and calls network_step. So it works under
 * any driver, on poll(2) too. Without calls nothing is driven, and there is nothing to drive.
 *
 * Without a network namespace its listening socket is on 127.0.0.1, where any process of this
 * machine can connect to it. Only connections that the broker made for a seat are served: it holds
 * the socket that it connected until the other end of that very connection was accepted. Others are
 * hung up on unread.
 *
 * network_none.c stands in its place where there is no libuv (the small program, the library).
 */
struct network;

/* Whether this program has it at all. */
bool network_is_built(void);

/*
 * Does a thread still wait for a resolver, though nobody wants its answer any more? libuv waits
 * for its threads when a program exits: who does not want to has to _exit(2).
 */
bool network_is_waiting(void);

/* `allow` is borrowed for the call. `judge` has a second word on each host; it has to outlive the
 * network. */
enum sy_code network_new(struct network **ret, const struct strv *allow,
                         const struct assess_by *judge, struct sy_error *err) SY_NODISCARD;
/* There must be no seat. Never blocks: what waits for a resolver in another thread stays in memory
 * until that has answered. */
void network_free(struct network *n);

/*
 * For a sandbox with a network namespace of its own: serves two TCP sockets that were bound inside,
 * on 127.0.0.1, for HTTP and SOCKS5. Takes both (-1 then), also when it fails. There is no socket
 * in our own network then. Once at most, before the first seat; the namespace must hold nobody but
 * commands of this policy.
 *
 * Whoever is inside is served. A connection that the broker made is its seat's; any other (there is
 * no broker here, or it was made without connect(2)) belongs to the one call that is running, and
 * if there are several, its refusals are told to each of them, as inferred.
 */
enum sy_code network_hand_in(struct network *n, int *http_fd, int *socks_fd,
                             struct sy_error *err) SY_NODISCARD;

/* A call's place in it. */
struct network_seat;

enum sy_code network_join(struct network *n, struct network_seat **ret,
                          struct sy_error *err) SY_NODISCARD;
/* Ends the connections of the call. NULL is nothing. */
void network_leave(struct network_seat *seat);
/* For exec_env; lives as long as the seat. */
const struct process_gate *network_gate(const struct network_seat *seat);
/* Sets the proxy variables. */
enum sy_code network_environment(const struct network_seat *seat, struct strv *env,
                                 struct sy_error *err) SY_NODISCARD;
/* Readable: network_step has something to do. The seat's own. */
int network_seat_fd(const struct network_seat *seat);
uint64_t network_deadline_ns(const struct network_seat *seat);
void network_step(struct network_seat *seat);
/* What was refused to the call, as denials, and the hosts that it reached ("host:port", each once,
 * NETWORK_HOSTS at most). Borrowed; ask after network_step. */
#define NETWORK_HOSTS 64
const struct denial_list *network_denials(const struct network_seat *seat);
const struct strv *network_hosts(const struct network_seat *seat);

#endif
