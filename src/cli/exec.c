#include "cli/exec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/exec_stream.h"
#include "cli/verbs.h"
#include "orchestrator/network.h"
#include "tools/tools.h"

/* How long a command may take to end after the first Ctrl-C. */
#define GRACE_NS (UINT64_C(2) * 1000 * 1000 * 1000)

struct exec_run {
    struct cli_engine engine;
    struct process_pool *pool;
    struct session *session;
    struct orch_call *call;
    struct exec_stream stream;
    int signal_fd;
    int first_signal; /* 0: none came */
    bool is_loaded;   /* the configuration */
    bool is_cancelled;
    uint64_t kill_at_ns;
};

/* Signals that end us are read from a descriptor. One that our parent ignores
 * (nohup, a background job of a script) stays ignored. */
static enum sy_code
watch_signals(int *ret_fd, struct sy_error *err)
{
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct sigaction now = {0};

        if (sigaction(wanted[i], NULL, &now) != 0 || now.sa_handler != SIG_IGN) {
            sigaddset(&set, wanted[i]);
        }
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? SY_E_OK : sy_err_sys(err, errno, "signalfd");
}

static void
cancel(struct exec_run *x)
{
    if (!x->is_cancelled) {
        x->is_cancelled = true;
        orch_cancel(x->call);
    }
}

static void
take_signals(struct exec_run *x)
{
    struct signalfd_siginfo info;

    while (read(x->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (x->first_signal == 0 && orch_state(x->call) == ORCH_RUN) {
            orch_signal(x->call, (int)info.ssi_signo);
            x->kill_at_ns = clock_mono_ns() + GRACE_NS;
        } else {
            cancel(x);
        }
        if (x->first_signal == 0) {
            x->first_signal = (int)info.ssi_signo;
        }
    }
}

/* Milliseconds for poll, rounded up so that it does not wake too early. */
static int
poll_timeout(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX) {
        return -1;
    }

    uint64_t now = clock_mono_ns();

    if (deadline_ns <= now) {
        return 0;
    }

    uint64_t ms = (deadline_ns - now + 999999) / 1000000;

    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static uint64_t
next_deadline(const struct exec_run *x)
{
    uint64_t call = orch_deadline_ns(x->call);

    return !x->is_cancelled && x->kill_at_ns < call ? x->kill_at_ns : call;
}

/* While a reader sleeps a running command is not read further, only served. One that is
 * being killed is: what it can still say is what the pipes hold. */
static bool
holds_back(const struct exec_run *x)
{
    return exec_stream_is_pending(&x->stream) && orch_state(x->call) == ORCH_RUN;
}

/* Waits until something can be done: a signal, a reader, or the command. */
static void
wait_for_work(struct exec_run *x)
{
    struct pollfd fds[1 + STREAM_COUNT + PROCESS_WATCHES];
    struct process_watch watches[PROCESS_WATCHES];
    size_t n = 0;

    fds[n++] = (struct pollfd){.fd = x->signal_fd, .events = POLLIN};
    n += exec_stream_watches(&x->stream, fds + n);

    size_t n_watches = orch_watches(x->call, watches);
    bool is_held_back = holds_back(x);

    for (size_t i = 0; i < n_watches; i++) {
        if (!is_held_back || !watches[i].is_output) {
            fds[n++] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
    }
    (void)poll(fds, (nfds_t)n, poll_timeout(next_deadline(x)));
    if (fds[0].revents != 0) {
        take_signals(x);
    }
}

/* Has the reader of our output made us give up on it? */
static bool
is_reader_lost(const struct exec_run *x)
{
    return x->stream.failed != 0 || (x->first_signal != 0 && x->is_cancelled);
}

static void
drive(struct exec_run *x)
{
    while (!orch_step(x->call, clock_mono_ns())) {
        if (x->stream.failed != 0) {
            cancel(x);
        }
        do {
            wait_for_work(x);
            exec_stream_flush(&x->stream);
            if (holds_back(x)) {
                orch_serve(x->call, clock_mono_ns());
            }
            if (x->kill_at_ns <= clock_mono_ns()) {
                cancel(x);
            }
        } while (holds_back(x) && orch_deadline_ns(x->call) > clock_mono_ns());
    }
    while (exec_stream_is_pending(&x->stream) && !is_reader_lost(x)) {
        wait_for_work(x);
        exec_stream_flush(&x->stream);
    }
}

static int
exit_status(const struct exec_run *x, const struct exec_output *o)
{
    if (x->stream.failed == EPIPE) {
        return CLI_STATUS_SIGPIPE;
    }
    if (x->stream.failed != 0) {
        return sy_code_status(SY_E_SYS);
    }
    switch (o->status) {
    case EXEC_EXITED:
    case EXEC_SIGNALED:
    case EXEC_TIMED_OUT:
        return o->exit_code;
    case EXEC_CANCELLED:
        return x->first_signal != 0 ? 128 + x->first_signal : o->exit_code;
    case EXEC_DENIED:
    case EXEC_PENDING:
    case EXEC_FAILED:
        break;
    }
    return sy_code_status(o->err.code);
}

static void
tell_denials(const struct denial_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 4 * (size_t)LIMIT_PATH};

        if (denial_sentence(&text, &list->v[i]) == SY_E_OK) {
            cli_note("sandbox: %s", buf_view(&text));
        }
    }
    if (list->more > 0) {
        cli_note("sandbox: %u more were refused", list->more);
    }
}

/* One line on standard error for what the exit status alone does not tell. */
static void
tell(const struct exec_run *x, const struct exec_output *o)
{
    if (x->stream.failed != 0 && x->stream.failed != EPIPE) {
        cli_note("writing the command's output failed: %s", sy_errno_text(x->stream.failed));
    }
    if (o->status == EXEC_FAILED || o->status == EXEC_DENIED) {
        (void)cli_fail(&o->err);
    } else if (o->status == EXEC_TIMED_OUT) {
        double ms = (double)o->duration_ns / 1e6;

        cli_note("the command did not end in time (-t) and was killed after %.*f %s",
                 ms < 1000 ? 0 : 1, ms < 1000 ? ms : ms / 1000, ms < 1000 ? "ms" : "s");
    }
    if (o->hit.resource != RESOURCE_NONE && o->hit.resource != RESOURCE_WALL_CLOCK) {
        char text[EXEC_LIMIT_TEXT];

        exec_limit_text(text, &o->hit);
        cli_note("limit: %s", text);
    }
    tell_denials(&o->denials);
    if (o->note[0] != '\0') {
        cli_note("%s", o->note);
    }
}

static enum sy_code
make_request(struct exec_request *ret, const struct cli_args *args, const char *cwd,
             struct sy_error *err)
{
    const char *timeout = cli_get(args, "timeout");

    ret->tool = "exec";
    ret->login = cli_get(args, "login") != NULL;
    ret->params.argv.max = LIMIT_ARGV;
    ret->params.env.max = LIMIT_ENV;
    ret->params.expiration.kind = EXPIRE_CANCELLATION;
    if (timeout != NULL) {
        enum sy_code rc = cli_parse_duration(&ret->params.expiration.timeout_ms, timeout, err);

        if (rc != SY_E_OK) {
            return rc;
        }
        ret->params.expiration.kind = EXPIRE_TIMEOUT;
    }
    ret->params.cwd = mem_strdup(cwd);
    ret->call_id = mem_strdup("exec");
    if (ret->params.cwd == NULL || ret->call_id == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = strv_add_all(&ret->params.argv, args->operands);

    if (rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "the command has more than %u arguments", LIMIT_ARGV);
    }
    return rc == SY_E_OK ? SY_E_OK : sy_err_nomem(err);
}

static void
exec_run_fini(struct exec_run *x)
{
    if (x->call != NULL) {
        orch_call_free(x->call);
    }
    if (x->session != NULL) {
        session_free(x->session);
    }
    process_pool_free(x->pool);
    cli_engine_fini(&x->engine);
    exec_stream_fini(&x->stream);
    fd_close(&x->signal_fd);
}

/*
 * One command from a fresh process: namespaces would cost more than all the rest,
 * so they are made where they are asked for (sandbox.tier, sandbox.min_tier), and
 * where nothing else holds what has to be held (a home directory as the workspace).
 */
static void
choose_tier(struct cli_engine *e)
{
    if (str_eq(e->config.sandbox.tier, "auto") && e->turn.sandbox.min_tier != TIER_FULL &&
        !sandbox_policy_needs_mounts(&e->turn.sandbox)) {
        e->turn.sandbox.max_tier = TIER_NO_NAMESPACE;
        /* A rule for each name in /etc, once per command, would cost a fifth of it. */
        e->turn.sandbox.denies_system = false;
    }
}

static enum sy_code
start(struct exec_run *x, const struct cli_args *args, struct sy_error *err)
{
    SY_AUTO(exec_request_fini) struct exec_request request = {0};
    struct session_options options = {0};
    char launcher[LIMIT_PATH];
    enum sy_code rc = process_pool_new(&x->pool, false, err);

    if (rc == SY_E_OK) {
        /* On the other core, while the configuration is read. */
        process_pool_make_spare(x->pool, NULL);
        rc = cli_engine_load(&x->engine, args, cli_get(args, "cwd"), cli_get(args, "sandbox"), err);
        x->is_loaded = rc == SY_E_OK;
        process_pool_give_way(x->pool);
    }
    if (rc == SY_E_OK) {
        rc = cli_engine_turn(&x->engine, err);
    }
    if (rc == SY_E_OK && !network_is_built() &&
        sandbox_policy_network(&x->engine.turn.sandbox) == NETWORK_ALLOW_LIST) {
        x->is_loaded = false; /* the full program has the proxy */
        return sy_err_set(err, SY_E_NOTFOUND, "this program has no network proxy");
    }
    if (rc == SY_E_OK) {
        choose_tier(&x->engine);
        rc = make_request(&request, args, x->engine.cwd, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    session_options_from_config(&options, &x->engine.config, environ);
    options.login_snapshot = request.login;
    options.spare = SPARE_FIRST;
    options.pool = x->pool;
    request.keep_bytes = (size_t)x->engine.config.output.keep_bytes;
    if (cli_get(args, "json") == NULL) {
        request.on_raw = exec_stream_raw;
        request.on_raw_arg = &x->stream;
    }
    rc = session_new(&x->session, &options, err);
    if (rc == SY_E_OK && x->engine.turn.sandbox.max_tier == TIER_FULL) {
        rc = session_use_launcher(x->session, cli_launcher_path(launcher), err);
    }
    if (rc == SY_E_OK) {
        rc = watch_signals(&x->signal_fd, err);
    }
    return rc == SY_E_OK ? orch_submit(&x->call, x->session, &x->engine.turn, &request, err) : rc;
}

static int
print_json(const struct exec_output *o, int status, const char *mode)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    struct sy_error err = {0};
    enum sy_code rc = exec_json(&text, o, status, mode);

    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "printing the result: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(&text, status);
}

int
exec_fail(const struct cli_args *args, const struct sy_error *err)
{
    if (cli_get(args, "json") == NULL) {
        return cli_fail(err);
    }

    const struct exec_output o = {.status = EXEC_FAILED, .err = *err};

    return print_json(&o, sy_code_status(err->code), NULL);
}

bool
exec_run(int *ret_status, const struct cli_args *args, struct sy_error *err)
{
    SY_AUTO(exec_run_fini) struct exec_run x = {.signal_fd = -1, .kill_at_ns = UINT64_MAX};

    exec_stream_init(&x.stream);
    if (start(&x, args, err) != SY_E_OK) {
        *ret_status = x.is_loaded ? exec_fail(args, err) : 0;
        return x.is_loaded;
    }
    drive(&x);

    const struct exec_output *o = orch_output(x.call);

    if (cli_get(args, "json") != NULL) {
        *ret_status = print_json(o, exit_status(&x, o), x.engine.config.sandbox.mode);
        return true;
    }
    tell(&x, o);
    *ret_status = exit_status(&x, o);
    return true;
}

static int
exec_main(const struct cli_args *args)
{
    struct sy_error err = {0};
    int status = 0;

    return exec_run(&status, args, &err) ? status : exec_fail(args, &err);
}

static const struct cli_option exec_options[] = {
    {'s', "sandbox", "MODE", "read-only|workspace-write|danger-full-access|external-sandbox",
     "sandbox mode, instead of the configured one"                                                                                                 },
    {'C', "cwd",     "DIR",  "DIR",                                                           "run in DIR, which is then the workspace"            },
    {'t', "timeout", "TIME", NULL,                                                            "kill the command after TIME: 10, 10s, 500ms, 2m, 1h"},
    CLI_OPTION_JSON,
    {0,   "login",   NULL,   NULL,                                                            "give it the environment of your login shell"        },
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_exec = {
    .name = "exec",
    .summary = "Run one command in the sandbox",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .text = "The command gets no input (/dev/null); its output streams through, and its exit\n"
            "status becomes that of shellyard: 128+N after signal N, 124 when -t ended it, 126\n"
            "and 127 when it can't be run, 125 when Shellyard itself failed. Without -t it may\n"
            "run for as long as it likes. Ctrl-C goes to the command; a second one, or two\n"
            "seconds, end it with all its children.\n",
    .examples = "  shellyard exec -- make test\n"
                "  shellyard exec -s read-only -t 30s -- grep -rn TODO .\n"
                "  shellyard exec -c sandbox.network_access=true -- npm ci\n",
    .page = "shellyard-exec.1",
    .options = exec_options,
    .min_operands = 1,
    .max_operands = LIMIT_ARGV,
    .ends_options = true,
    .run = exec_main,
    .fail = exec_fail,
};
