#ifndef SY_PROCESS_AUDIT_INTERNAL_H
#define SY_PROCESS_AUDIT_INTERNAL_H

#include "process/audit.h"

/* A reader of any socket on which messages come as netlink's do. Takes *fd, which does not
 * block, if it succeeds. */
enum sy_code audit_reader_on(struct audit_reader **ret, int *fd) SY_NODISCARD;

#endif
