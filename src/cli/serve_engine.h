#ifndef SY_CLI_SERVE_ENGINE_H
#define SY_CLI_SERVE_ENGINE_H

#include "cli/cli.h"
#include "telemetry/telemetry.h"
#include "tools/tools.h"

/*
 * What serves one agent, in a process of its own or in the daemon: tools under the agent's
 * configuration, with approval and counting. `base` is loaded first (engine.c).
 */
struct serve_engine {
    struct cli_engine base;
    struct tool_context *context;
    struct telemetry *telemetry; /* NULL: none */
};

/* An engine that could not be started is ended as well. */
enum sy_code serve_engine_start(struct serve_engine *e, struct uv_loop_s *loop,
                                struct sy_error *err) SY_NODISCARD;
/*
 * All calls are over. True: a last export is under way, and the loop should have
 * LIMIT_EXPORT_END_MS for it before serve_engine_fini.
 */
bool serve_engine_end(struct serve_engine *e);
/* Accepts zeroed, and one that was only loaded. */
void serve_engine_fini(struct serve_engine *e);

/* Level and format of this process's log. */
void serve_set_log(const struct config *config);

#endif
