#ifndef SY_CLI_EXEC_H
#define SY_CLI_EXEC_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "orchestrator/orchestrator.h"

/*
 * Runs the command of `exec`, tells what there is to tell, and fills
 * *ret_status. False, with *err, when the configuration could not be loaded:
 * then nothing was told and nothing is left running, but the working directory
 * may be another. (exec.c)
 */
bool exec_run(int *ret_status, const struct cli_args *args, struct sy_error *err) SY_NODISCARD;

/* Tells why nothing ran, as an object with --json; returns the exit status. (exec.c) */
int exec_fail(const struct cli_args *args, const struct sy_error *err);

/* What `exec --json` prints: one object, one line. `status` is the exit status
 * that shellyard ends with, `mode` the sandbox mode, NULL where none is known. (exec_json.c) */
enum sy_code exec_json(struct buf *out, const struct exec_output *o, int status,
                       const char *mode) SY_NODISCARD;

#endif
