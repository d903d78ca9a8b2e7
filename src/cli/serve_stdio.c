#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/metrics.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "protocol/protocol.h"
#include "tools/tools.h"
#include "transport/transport.h"

/* `mcp` and `proto`: one engine, one front, standard input and output. */

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

struct serve {
    struct cli_engine engine;
    uv_loop_t loop;
    uv_signal_t signals[STOP_SIGNALS];
    size_t n_signals; /* of them on the loop */
    struct tool_context *context;
    struct telemetry *telemetry; /* NULL: none */
    struct stdio_server *server;
    struct sy_error why; /* how it ended */
};

static void
on_stop_signal(uv_signal_t *handle, int number)
{
    struct serve *s = handle->data;

    (void)number;
    if (s->server != NULL) {
        stdio_server_stop(s->server);
    }
}

static void
forget_signals(struct serve *s)
{
    while (s->n_signals > 0) {
        uv_close((uv_handle_t *)&s->signals[--s->n_signals], NULL);
    }
}

static void
on_ended(void *arg, const struct sy_error *why)
{
    struct serve *s = arg;

    s->why = *why;
    tool_context_end_sessions(s->context);
    stdio_server_free(s->server);
    s->server = NULL;
    forget_signals(s);
}

static enum sy_code
watch_signals(struct serve *s, struct sy_error *err)
{
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        int rc = uv_signal_init(&s->loop, &s->signals[i]);

        if (rc == 0) {
            s->signals[i].data = s;
            s->n_signals++;
            rc = uv_signal_start(&s->signals[i], on_stop_signal, stop_signals[i]);
        }
        if (rc != 0) {
            return sy_err_sys(err, -rc, "watching signals");
        }
    }
    return SY_E_OK;
}

static void
set_log(const struct config *config)
{
    enum log_level level = LOG_WARN;

    /* The words have been checked by config_load. */
    if (log_level_parse(&level, config->log.level)) {
        log_set(level, str_eq(config->log.format, "json") ? LOG_JSON : LOG_LOGFMT);
    }
}

/* Serves until it ends; takes the descriptors. */
static enum sy_code
run_loop(struct serve *s, protocol_new_fn *front, int in_fd, int out_fd, struct sy_error *err)
{
    struct stdio_server_options options = {
        .loop = &s->loop,
        .context = s->context,
        .front = front,
        .in_fd = in_fd,
        .out_fd = out_fd,
        .ended = on_ended,
        .arg = s,
    };
    enum sy_code rc = watch_signals(s, err);

    if (rc != SY_E_OK) {
        fd_close(&options.in_fd);
        fd_close(&options.out_fd);
    } else {
        rc = stdio_server_new(&s->server, &options, err);
    }
    if (rc != SY_E_OK) {
        forget_signals(s);
        return rc;
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    *err = s->why;
    return err->code;
}

static enum sy_code
use_approval(struct tool_context *context, struct sy_error *err)
{
    SY_AUTO(cli_rules_place_fini) struct cli_rules_place place = {0};
    enum sy_code rc = cli_rules_place_find(&place, err);
    char http[LIMIT_PATH];
    const struct tool_approval options = {
        .home = place.home,
        .rules_path = place.user_path,
        .http_path = cli_http_path(http),
    };

    return rc == SY_E_OK ? tool_context_use_approval(context, &options, err) : rc;
}

/* The loop exists; what hangs on it is freed before it. */
static enum sy_code
run_engine(struct serve *s, protocol_new_fn *front, int in_fd, int out_fd, struct sy_error *err)
{
    char launcher[LIMIT_PATH];
    enum sy_code rc =
        tool_context_new(&s->context, &s->engine.config, s->engine.cwd, environ, &s->loop, err);

    if (rc == SY_E_OK) {
        rc = tool_context_use_launcher(s->context, cli_launcher_path(launcher), err);
        if (rc != SY_E_OK) {
            tool_context_free(s->context);
        }
    }
    if (rc == SY_E_OK) {
        rc = use_approval(s->context, err);
        if (rc == SY_E_OK) {
            rc = cli_telemetry_new(&s->telemetry, &s->engine, s->context, &s->loop, err);
        }
        if (rc != SY_E_OK) {
            tool_context_free(s->context);
        }
    }
    if (rc == SY_E_OK) {
        rc = run_loop(s, front, in_fd, out_fd, err);
        telemetry_end(s->telemetry);
        tool_context_free(s->context);
    } else {
        fd_close(&in_fd);
        fd_close(&out_fd);
    }
    /* What hung on the loop is freed by its close callbacks. */
    uv_run(&s->loop, UV_RUN_DEFAULT);
    telemetry_free(s->telemetry);
    return rc;
}

static int
serve(const struct cli_args *args, protocol_new_fn *front)
{
    struct serve s;
    struct sy_error err = {0};
    int in_fd = -1;
    int out_fd = -1;

    memset(&s, 0, sizeof(s));
    /* First of all: nothing that follows can write to the peer by accident. */
    if (transport_claim_stdio(&in_fd, &out_fd, &err) != SY_E_OK) {
        return cli_fail(&err);
    }

    enum sy_code rc =
        cli_engine_load(&s.engine, args, cli_get(args, "cwd"), cli_get(args, "sandbox"), &err);

    if (rc == SY_E_OK) {
        int uv = uv_loop_init(&s.loop);

        set_log(&s.engine.config);
        cli_warn_of_wide_roots(&s.engine);
        rc = uv == 0 ? run_engine(&s, front, in_fd, out_fd, &err)
                     : sy_err_sys(&err, -uv, "making the event loop");
        if (uv == 0) {
            (void)uv_loop_close(&s.loop);
        }
    }
    cli_engine_fini(&s.engine);
    return rc == SY_E_OK ? 0 : cli_fail(&err);
}

static int
mcp_main(const struct cli_args *args)
{
    return serve(args, protocol_mcp_new);
}

static int
proto_main(const struct cli_args *args)
{
    return serve(args, protocol_jsonl_new);
}

static const struct cli_option serve_options[] = {
    {'s', "sandbox", "MODE", "read-only|workspace-write|danger-full-access|external-sandbox",
     "sandbox mode, instead of the configured one"                                                                                      },
    {'C', "cwd",     "DIR",  "DIR",                                                           "work in DIR, which is then the workspace"},
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_mcp = {
    .name = "mcp",
    .summary = "Serve MCP on standard input and output, for AI clients",
    .operands = "",
    .text = "Started by the client; 'shellyard setup CLIENT' connects one.\n",
    .page = "shellyard-mcp.1",
    .options = serve_options,
    .run = mcp_main,
};

const struct cli_verb verb_proto = {
    .name = "proto",
    .summary = "Serve JSON Lines on standard input and output, for your own agent",
    .operands = "",
    .text = "Reads function_call, custom_tool_call, local_shell_call, turn, interrupt and\n"
            "shutdown, one JSON object a line; writes events and answers likewise.\n",
    .examples = "  shellyard proto < calls.jsonl\n",
    .page = "shellyard-proto.1",
    .options = serve_options,
    .run = proto_main,
};
