#ifndef SY_CLI_METRICS_H
#define SY_CLI_METRICS_H

#include "cli/cli.h"
#include "telemetry/telemetry.h"
#include "tools/tools.h"

/* The telemetry of a server; *ret stays NULL where configuration wants none. */
enum sy_code cli_telemetry_new(struct telemetry **ret, const struct cli_engine *engine,
                               struct tool_context *context, struct uv_loop_s *loop,
                               struct sy_error *err) SY_NODISCARD;

#endif
