#ifndef SY_PROCESS_OBSERVE_H
#define SY_PROCESS_OBSERVE_H

#include <linux/seccomp.h>

#include "process/process.h"

/*
 * The observer of `report: full`. What the filter refuses is refused here too,
 * and told. Calls that change names or files (SECCOMP_OBSERVED) always go on: the
 * wall is another one, and only whether it will refuse them is told, by asking the plan about
 * the path that the caller has in its memory now. A caller that changes it meanwhile deceives
 * the report and nothing else.
 */

/* Tells what it finds to p. Returns OBSERVE_GO_ON or an errno value (broker.h). */
int observe_call(struct process *p, int listener_fd, const struct seccomp_notif *n);

#endif
