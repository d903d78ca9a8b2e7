#ifndef SY_PROCESS_ANCESTRY_H
#define SY_PROCESS_ANCESTRY_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The nearest ancestor of a thread or process that is wanted; 0 if there is none,
 * or it can't be found out, or the way there is longer than a thousand.
 *
 * Exact if `pid` lives all the time (a caller that is held by seccomp_unotify(2)
 * does, as long as its notification is valid after the call) and every orphan
 * among its ancestors goes to a wanted one: numbers may be used again while we
 * look, so each step is confirmed.
 */
pid_t ancestry_find(pid_t pid, bool (*is_wanted)(const void *arg, pid_t pid), const void *arg);

#endif
