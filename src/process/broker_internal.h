#ifndef SY_PROCESS_BROKER_INTERNAL_H
#define SY_PROCESS_BROKER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/broker.h"

/* Who waits for an answer. */
struct broker_caller {
    uint64_t id;
    int listener_fd;
    pid_t tid;
    pid_t tgid; /* 0: not looked for yet */
    pid_t keeper;
};

/* Looking for what the caller or its tree holds takes well under 1 ms; a command that
 * makes it long (threads, descriptors, sockets without number) is refused. */
#define BROKER_SEARCH_NS 100000000ULL

/* Is it still in this call? Only then its numbers are its own. */
bool broker_is_waiting(const struct broker_caller *c);
/* A process that the status of a thread names ("Tgid:", "PPid:"; proc(5)); 0: it is gone. */
pid_t broker_status_number(pid_t tid, const char *field);
/* The process whose thread that is; 0: it is gone. */
pid_t broker_process_of(pid_t tid);
/* A descriptor of the caller as one of ours too. Returns 0 or an errno: EBADF, EACCES. */
int broker_take_fd(const struct broker_caller *c, int fd, int *ret_fd);

/* --- broker_terminal.c --- */

#define BROKER_ANSWERED (-2)

/* May this call open the other end of a pseudo terminal of the caller's tree? */
bool broker_is_of_terminal(const struct seccomp_notif *n);
/*
 * Opens it for the caller: by the descriptor that the call has (TIOCGPTPEER), or by its name if
 * the caller, or one of the processes above it in its tree, has the terminal itself
 * (/dev/ptmx). It never becomes the controlling terminal of anybody by that. Returns
 * BROKER_ANSWERED, an errno for the caller, or OBSERVE_GO_ON: it is none of those, and the kernel
 * is to judge.
 */
int broker_open_terminal(const struct broker_caller *c, const struct seccomp_notif *n);

#endif
