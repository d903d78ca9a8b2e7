#ifndef SY_PROCESS_TEMPLATE_INTERNAL_H
#define SY_PROCESS_TEMPLATE_INTERNAL_H

#include "process/launch_wire.h"
#include "process/template.h"

/* One that lives in another process, at the other end of that channel. Takes all descriptors
 * (launch_wire.h) if it succeeds: they are -1 then. */
enum sy_code template_new_remote(struct template **ret, int *channel_fd, int fds[LAUNCH_REPORT_FDS],
                                 struct sy_error *err) SY_NODISCARD;

/* A remote one's end of the channel, borrowed. */
int template_channel_fd(const struct template *t);
/* Takes the descriptor, in place of an earlier one. */
void template_set_watch(struct template *t, int fd);
/* Orders a remote one to take the marks of that file, or to hold the descriptor. False: it is gone.
 */
bool template_send_marks(struct template *t, int marks_fd);
bool template_send_hold(struct template *t, int fd);

#endif
