#ifndef SY_TRANSPORT_LOCAL_H
#define SY_TRANSPORT_LOCAL_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The daemon's socket in the state directory, and the lock beside it that says who listens. Both
 * names are hidden from every sandbox, as all of that directory is.
 */
#define LOCAL_SOCKET "daemon.sock"
#define LOCAL_LOCK   "daemon.lock"

/* Of a client. */

/*
 * Is there a daemon's socket in the state directory of this environment? For whoever starts and
 * must not pay for the answer no: one system call, and no memory.
 */
bool local_is_there(char *const *environ_list);

/*
 * Connects to the daemon of this user, without waiting; the descriptor blocks. SY_E_NOTFOUND:
 * there is none (no directory, no socket, nobody listens). SY_E_DENIED: directory or daemon
 * belong to somebody else. `dir` is the state directory.
 */
enum sy_code local_connect(int *ret_fd, const char *dir, struct sy_error *err) SY_NODISCARD;

/* What tells one build of the program from another: its version and its file. */
#define LOCAL_BUILD_MAX 128U
void local_build(char ret[LOCAL_BUILD_MAX], const struct stat *program);

/*
 * Of the hosts: who serves a client is a process of its own, which outlives the daemon
 * (cli/host.h). Each listens as "host.PID" in the state directory, for the next daemon.
 */
#define LOCAL_HOST "host."

/* Listens for a daemon, by messages (SOCK_SEQPACKET), as the host of this process; replaces what a
 * dead one of that number left. */
enum sy_code local_host_listen(int *ret_fd, int dir_fd, const char *dir,
                               struct sy_error *err) SY_NODISCARD;
void local_host_unlink(int dir_fd);
/* Calls `fn` with a connection to each host of this user that lives, which becomes fn's; what dead
 * ones left is removed. */
void local_host_each(int dir_fd, const char *dir, void (*fn)(void *arg, int fd, pid_t pid),
                     void *arg);

/* Of the daemon. */

struct local_listener {
    int dir_fd;
    int lock_fd;
    int fd; /* listens, does not block */
};

/*
 * Takes the lock, replaces what a dead daemon left, and listens. `dir_fd` (taken) is the state
 * directory `dir`. SY_E_SYS with EBUSY: a daemon is up, the sentence has its process id. A lock is
 * the process's: children have none of it, and it ends with the process however that ends.
 */
enum sy_code local_listen(struct local_listener *ret, int dir_fd, const char *dir,
                          struct sy_error *err) SY_NODISCARD;
/* Removes the socket first. Accepts what local_listen has not filled, if zeroed by
 * LOCAL_LISTENER_NONE. */
#define LOCAL_LISTENER_NONE                                                                        \
    {                                                                                              \
        .dir_fd = -1, .lock_fd = -1, .fd = -1                                                      \
    }
void local_listener_fini(struct local_listener *l);

#endif
