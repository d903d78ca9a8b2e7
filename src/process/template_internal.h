#ifndef SY_PROCESS_TEMPLATE_INTERNAL_H
#define SY_PROCESS_TEMPLATE_INTERNAL_H

#include "process/template.h"

/* One that lives in another process, at the other end of that channel, with what came along when
 * it was ready (launch_wire.h). Takes the descriptors if it succeeds. */
enum sy_code template_new_remote(struct template **ret, int channel_fd, const int *ready_fds,
                                 struct sy_error *err) SY_NODISCARD;

/* A remote one's end of the channel, borrowed. */
int template_channel_fd(const struct template *t);
/* Orders a remote one to take the marks of that file. False: it is gone. */
bool template_send_marks(struct template *t, int marks_fd);

#endif
