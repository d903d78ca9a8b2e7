#ifndef SY_CLI_EXEC_H
#define SY_CLI_EXEC_H

#include "base/buf.h"
#include "base/err.h"
#include "orchestrator/orchestrator.h"

/* What `exec --json` prints: one object, one line. `status` is the exit status
 * that shellyard ends with, `mode` the sandbox mode. (exec_json.c) */
enum sy_code exec_json(struct buf *out, const struct exec_output *o, int status,
                       const char *mode) SY_NODISCARD;

#endif
