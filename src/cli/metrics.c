#include <unistd.h>

#include "base/log.h"
#include "cli/metrics.h"
#include "cli/verbs.h"
#include "guard/guard.h"
#include "store/metric.h"

/* `metrics`: what the servers of this user have counted; and how a server counts. */

/* Every family full: 400 series with 20 lines of 150 bytes. */
#define METRICS_BYTES 4194304U

/* Without a store nothing was counted so far: none is made. */
static enum sy_code
read_store(struct metrics *into, int64_t *ret_since_ms, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    struct store *st = NULL;
    enum sy_code rc = cli_state_dir(&dir, err);
    const struct store_options options = {.dir = buf_view(&dir)};

    if (rc != SY_E_OK || !store_exists(buf_view(&dir))) {
        return rc;
    }
    rc = store_open(&st, &options, err);
    if (rc == SY_E_OK) {
        rc = store_metrics_read(into, ret_since_ms, st, err);
    }
    store_close(st);
    return rc;
}

static int
metrics_main(const struct cli_args *args)
{
    SY_AUTO(buf_fini) struct buf out = {.max = METRICS_BYTES};
    struct metrics *all = metrics_new();
    int64_t since_ms = 0;
    struct sy_error err = {0};
    enum sy_code rc = all != NULL ? read_store(all, &since_ms, &err) : sy_err_nomem(&err);

    if (rc == SY_E_OK && cli_get(args, "json") != NULL) {
        rc = metrics_write_json(&out, all, SY_VERSION, since_ms);
        rc = rc == SY_E_OK ? buf_add_char(&out, '\n') : rc;
    } else if (rc == SY_E_OK) {
        rc = metrics_write_prometheus(&out, all, SY_VERSION);
    }
    metrics_free(all);
    if (rc != SY_E_OK && err.code == SY_E_OK) {
        (void)sy_err_set(&err, rc, "writing the metrics: %s", sy_code_text(rc));
    }
    return rc == SY_E_OK ? cli_out(&out, 0) : cli_fail(&err);
}

static const struct cli_option metrics_options[] = {CLI_OPTION_JSON, CLI_OPTION_END};

const struct cli_verb verb_metrics = {
    .name = "metrics",
    .summary = "Print what was counted, as Prometheus text",
    .operands = "",
    .text = "Of all servers (mcp, proto) of this user, since they first counted.\n",
    .examples = "  shellyard metrics > /var/lib/node_exporter/shellyard.prom\n",
    .page = "shellyard-metrics.1",
    .options = metrics_options,
    .run = metrics_main,
};

static void
warn(const char *what, const struct sy_error *why)
{
    LOG(LOG_WARN, "telemetry", what, kv_str("error", why->msg));
}

enum sy_code
cli_telemetry_new(struct telemetry **ret, const struct cli_engine *engine,
                  struct tool_context *context, struct uv_loop_s *loop, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    char http[LIMIT_PATH];
    enum sy_code rc = guard_state_dir(&dir, engine->environ_list);

    if (rc != SY_E_OK && rc != SY_E_NOTFOUND) {
        return sy_err_nomem(err);
    }

    const struct telemetry_options options = {
        .config = &engine->config,
        .bus = session_bus(tool_context_session(context)),
        .loop = loop,
        .state_dir = rc == SY_E_OK ? buf_view(&dir) : NULL,
        .http_path = engine->config.telemetry.otlp_endpoint[0] != '\0' ? cli_http_path(http) : NULL,
        .environ_list = engine->environ_list,
        .warn = warn,
    };

    return telemetry_new(ret, &options, err);
}
