#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/daemon_start.h"
#include "cli/pass.h"
#include "cli/serve_engine.h"
#include "cli/verbs.h"
#include "transport/local.h"
#include "transport/transport.h"

/* `mcp` and `proto`: one engine, one front, standard input and output. */

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

struct serve {
    struct serve_engine engine;
    uv_loop_t loop;
    uv_signal_t signals[STOP_SIGNALS];
    size_t n_signals; /* of them on the loop */
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
on_leaving(void *arg)
{
    struct serve *s = arg;

    tool_context_end_sessions(s->engine.context);
}

static void
on_ended(void *arg, const struct sy_error *why)
{
    struct serve *s = arg;

    s->why = *why;
    tool_context_end_sessions(s->engine.context);
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

/* Serves until it ends; takes the descriptors. */
static enum sy_code
run_loop(struct serve *s, protocol_new_fn *front, int in_fd, int out_fd, struct sy_error *err)
{
    struct stdio_server_options options = {
        .loop = &s->loop,
        .context = s->engine.context,
        .front = front,
        .in_fd = in_fd,
        .out_fd = out_fd,
        .leaving = on_leaving,
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

/* The loop exists; what hangs on it is freed before it. */
static enum sy_code
run_engine(struct serve *s, protocol_new_fn *front, int in_fd, int out_fd, struct sy_error *err)
{
    enum sy_code rc = serve_engine_start(&s->engine, &s->loop, err);

    if (rc == SY_E_OK) {
        rc = run_loop(s, front, in_fd, out_fd, err);
    } else {
        fd_close(&in_fd);
        fd_close(&out_fd);
    }
    (void)serve_engine_end(&s->engine);
    /* What hung on the loop is freed by its close callbacks. */
    uv_run(&s->loop, UV_RUN_DEFAULT);
    return rc;
}

/* Serves in this process; takes the descriptors. */
static enum sy_code
serve_here(struct serve *s, protocol_new_fn *front, const int stdio[2], struct sy_error *err)
{
    int uv = -fd_check_room(FD_ROOM_LOOP);

    uv = uv == 0 ? uv_loop_init(&s->loop) : uv;
    serve_set_log(&s->engine.base.config);
    cli_warn_of_wide_roots(&s->engine.base);

    enum sy_code rc = uv == 0 ? run_engine(s, front, stdio[0], stdio[1], err)
                              : sy_err_sys(err, -uv, "making the event loop");

    if (uv == 0) {
        (void)uv_loop_close(&s->loop);
    }
    return rc;
}

/* Is a daemon to be started, and does it serve us then? */
static bool
is_passed_on_demand(int *ret_status, const struct serve *s, const struct cli_args *args,
                    const int stdio[2], int start_fd)
{
    const struct config *config = &s->engine.base.config;
    struct sy_error err = {0};
    struct stat program;

    if (cli_get(args, "no-daemon") != NULL || str_eq(config->daemon.use, "never") ||
        str_eq(config->daemon.start, "never")) {
        return false;
    }
    if (daemon_start(&err) != SY_E_OK || stat("/proc/self/exe", &program) != 0) {
        cli_note("not served by a daemon: %s", err.msg);
        return false;
    }
    /* Where the words were said: -C is among them. */
    if (fchdir(start_fd) != 0) {
        return false;
    }

    bool is_passed =
        cli_pass(ret_status, args->verb->name, args->words, &program, stdio) == PASS_DONE;

    return is_passed || chdir(s->engine.base.cwd) != 0;
}

static int
serve(const struct cli_args *args, protocol_new_fn *front)
{
    struct serve s;
    struct sy_error err = {0};
    SY_FD start_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int stdio[] = {-1, -1};
    int status = sy_code_status(SY_E_CWD);

    memset(&s, 0, sizeof(s));
    /* First of all: nothing that follows can write to the peer by accident. */
    if (transport_claim_stdio(&stdio[0], &stdio[1], &err) != SY_E_OK) {
        return cli_fail(&err);
    }

    enum sy_code rc =
        cli_engine_load(&s.engine.base, args, cli_get(args, "cwd"), cli_get(args, "sandbox"), &err);
    bool is_passed = rc == SY_E_OK && is_passed_on_demand(&status, &s, args, stdio, start_fd);

    if (rc == SY_E_OK && !is_passed) {
        status = 0;
        rc = serve_here(&s, front, stdio, &err);
    }
    serve_engine_fini(&s.engine);
    return rc == SY_E_OK ? status : cli_fail(&err);
}

/* A daemon that is up does it. */
static int
pass_or_serve(const struct cli_args *args, protocol_new_fn *front)
{
    static const int stdio[] = {STDIN_FILENO, STDOUT_FILENO};
    struct stat program;
    int status = 0;

    if (cli_get(args, "no-daemon") == NULL && local_is_there(environ) &&
        stat("/proc/self/exe", &program) == 0 &&
        cli_pass(&status, args->verb->name, args->words, &program, stdio) == PASS_DONE) {
        return status;
    }
    return serve(args, front);
}

static int
mcp_main(const struct cli_args *args)
{
    return pass_or_serve(args, protocol_mcp_new);
}

static int
proto_main(const struct cli_args *args)
{
    return pass_or_serve(args, protocol_jsonl_new);
}

const struct cli_verb verb_mcp = {
    .name = "mcp",
    .summary = "Serve MCP on standard input and output, for AI clients",
    .operands = "",
    .text = "Started by the client; 'shellyard setup CLIENT' connects one.\n",
    .page = "shellyard-mcp.1",
    .options = cli_pass_options,
    .run = mcp_main,
};

const struct cli_verb verb_proto = {
    .name = "proto",
    .summary = "Serve JSON Lines on standard input and output, for your own agent",
    .operands = "",
    .text = "Reads function_call, custom_tool_call, local_shell_call, batch, turn, session,\n"
            "interrupt, exec_approval, tools and shutdown, one JSON object a line; writes\n"
            "events and answers likewise.\n",
    .examples = "  shellyard proto < calls.jsonl\n",
    .page = "shellyard-proto.1",
    .options = cli_pass_options,
    .run = proto_main,
};
