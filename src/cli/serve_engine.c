#include "cli/serve_engine.h"

#include "base/log.h"
#include "base/str.h"
#include "cli/metrics.h"
#include "cli/rules.h"

void
serve_set_log(const struct config *config)
{
    enum log_level level = LOG_WARN;

    /* The words have been checked by config_load. */
    if (log_level_parse(&level, config->log.level)) {
        log_set(level, str_eq(config->log.format, "json") ? LOG_JSON : LOG_LOGFMT);
    }
}

static enum sy_code
use_approval(struct serve_engine *e, struct sy_error *err)
{
    SY_AUTO(cli_rules_place_fini) struct cli_rules_place place = {0};
    enum sy_code rc = cli_rules_place_find(&place, e->base.environ_list, err);
    char http[LIMIT_PATH];
    const struct tool_approval options = {
        .home = place.home,
        .rules_path = place.user_path,
        .http_path = cli_http_path(http),
    };

    return rc == SY_E_OK ? tool_context_use_approval(e->context, &options, err) : rc;
}

enum sy_code
serve_engine_start(struct serve_engine *e, struct uv_loop_s *loop, struct sy_error *err)
{
    char launcher[LIMIT_PATH];
    enum sy_code rc = tool_context_new(&e->context, &e->base.config, e->base.cwd,
                                       e->base.environ_list, loop, err);

    if (rc != SY_E_OK) {
        e->context = NULL;
        return rc;
    }
    rc = tool_context_use_launcher(e->context, cli_launcher_path(launcher), err);
    if (rc == SY_E_OK) {
        rc = use_approval(e, err);
    }
    return rc == SY_E_OK ? cli_telemetry_new(&e->telemetry, &e->base, e->context, loop, err) : rc;
}

bool
serve_engine_end(struct serve_engine *e)
{
    telemetry_end(e->telemetry);
    tool_context_free(e->context);
    e->context = NULL;
    return e->telemetry != NULL && e->base.config.telemetry.otlp_endpoint[0] != '\0';
}

void
serve_engine_fini(struct serve_engine *e)
{
    telemetry_free(e->telemetry);
    e->telemetry = NULL;
    cli_engine_fini(&e->base);
}
