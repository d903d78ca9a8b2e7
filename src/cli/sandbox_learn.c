/*
 * `sandbox learn`: a command runs in its sandbox, on our own standard descriptors, and each
 * refusal is noted. At the end all of them together become the smallest change of the
 * configuration that allows them. Nothing runs outside of a sandbox.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/learned.h"
#include "cli/verbs.h"
#include "tools/tools.h"

struct learning {
    struct cli_engine engine;
    struct session *session;
    struct orch_call *call;
    int signal_fd;
    unsigned signals; /* that came */
    struct learned learned;
};

static void
learning_fini(struct learning *l)
{
    orch_call_free(l->call);
    if (l->session != NULL) {
        session_free(l->session);
    }
    cli_engine_fini(&l->engine);
    learned_fini(&l->learned);
    fd_close(&l->signal_fd);
}

static enum sy_code
watch_signals(int *ret_fd, struct sy_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? SY_E_OK : sy_err_sys(err, errno, "signalfd");
}

/* The command gets them; an interactive one lives on after Ctrl-C. What ends us ends it. */
static void
take_signals(struct learning *l)
{
    struct signalfd_siginfo info;

    while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGINT) {
            orch_signal(l->call, SIGINT);
        } else if (l->signals++ == 0) {
            orch_signal(l->call, (int)info.ssi_signo);
        } else {
            orch_cancel(l->call);
        }
    }
}

static void
drive(struct learning *l)
{
    while (!orch_step(l->call, clock_mono_ns())) {
        struct pollfd fds[1 + PROCESS_WATCHES];
        struct process_watch watches[PROCESS_WATCHES];
        size_t n = orch_watches(l->call, watches);
        uint64_t deadline_ns = orch_deadline_ns(l->call);
        uint64_t now_ns = clock_mono_ns();
        int timeout_ms = -1;

        if (deadline_ns <= now_ns) {
            timeout_ms = 0;
        } else if (deadline_ns != UINT64_MAX) {
            timeout_ms = (int)((deadline_ns - now_ns) / 1000000 % 60000) + 1;
        }
        fds[0] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
        for (size_t i = 0; i < n; i++) {
            fds[1 + i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
        }
        (void)poll(fds, (nfds_t)(1 + n), timeout_ms);
        if (fds[0].revents != 0) {
            take_signals(l);
        }
    }
}

static enum sy_code
start(struct learning *l, const struct cli_args *args, struct sy_error *err)
{
    /* With --json, standard output is for the answer alone. */
    static const int plain[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    static const int json[3] = {STDIN_FILENO, STDERR_FILENO, STDERR_FILENO};
    SY_AUTO(exec_request_fini)
    struct exec_request request = {
        .tool = "learn",
        .stdio = cli_get(args, "json") != NULL ? json : plain,
    };
    struct session_options options = {0};
    char launcher[LIMIT_PATH];
    enum sy_code rc =
        cli_engine_load(&l->engine, args, cli_get(args, "cwd"), cli_get(args, "sandbox"), err);

    if (rc == SY_E_OK) {
        rc = cli_engine_turn_found(&l->engine, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (!sandbox_mode_is_enforced(l->engine.turn.sandbox.mode)) {
        return sy_err_set(err, SY_E_ARG,
                          "sandbox learn runs a command in a sandbox only, and %s is none: use "
                          "-s workspace-write or -s read-only",
                          sandbox_mode_name(l->engine.turn.sandbox.mode));
    }
    l->engine.turn.sandbox.reports_all = true;
    l->engine.turn.sandbox_required = true;
    request.params.argv.max = LIMIT_ARGV;
    request.params.env.max = LIMIT_ENV;
    request.params.expiration.kind = EXPIRE_CANCELLATION;
    request.params.cwd = mem_strdup(l->engine.cwd);
    request.call_id = mem_strdup("learn");
    if (request.params.cwd == NULL || request.call_id == NULL ||
        strv_add_all(&request.params.argv, args->operands) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    session_options_from_config(&options, &l->engine.config, environ);
    options.login_snapshot = false;
    rc = session_new(&l->session, &options, err);
    if (rc == SY_E_OK && l->engine.turn.sandbox.max_tier == TIER_FULL) {
        rc = session_use_launcher(l->session, cli_launcher_path(launcher), err);
    }
    if (rc == SY_E_OK) {
        rc = watch_signals(&l->signal_fd, err);
    }
    return rc == SY_E_OK ? orch_submit(&l->call, l->session, &l->engine.turn, &request, err) : rc;
}

/* ---- telling it ---- */

/* Objects are foreign text, and a terminal shows it. */
static enum sy_code
put_refused(struct buf *out, const struct denial_list *list)
{
    enum sy_code rc = buf_add_str(out, "refused:\n");

    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        const struct denial *d = &list->v[i];

        rc = buf_addf(out, "  %s ", d->operation);
        if (rc == SY_E_OK) {
            rc = str_add_visible(out, d->object, strlen(d->object), LIMIT_CLI_TEXT);
        }
        if (rc == SY_E_OK) {
            rc = buf_addf(out, " (%s, %s)\n", denial_layer_name(d->layer),
                          denial_confidence_name(d->confidence));
        }
    }
    return rc == SY_E_OK && list->more > 0
               ? buf_addf(out, "  and %u more: grant what is below and learn again\n", list->more)
               : rc;
}

/* "PREFIX TEXT" a line. */
static enum sy_code
put_each(struct buf *out, const char *prefix, const struct strv *list)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        rc = buf_add_str(out, prefix);
        if (rc == SY_E_OK) {
            rc = str_add_visible(out, list->v[i], strlen(list->v[i]), LIMIT_CLI_TEXT);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\n');
        }
    }
    return rc;
}

/* A limit is no refusal of the policy, and yet what the command lacked. */
static enum sy_code
put_limit(struct buf *out, const struct resource_hit *hit)
{
    char text[EXEC_LIMIT_TEXT];

    if (hit->resource == RESOURCE_NONE) {
        return SY_E_OK;
    }
    exec_limit_text(text, hit);
    return buf_addf(out, "limit: %s\n", text);
}

static enum sy_code
learn_text(struct buf *out, const struct learning *l, const struct exec_output *o)
{
    const struct learned *learned = &l->learned;
    enum sy_code rc = put_limit(out, &o->hit);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (o->denials.n == 0) {
        return buf_add_str(out, o->hit.resource == RESOURCE_NONE
                                    ? "nothing was refused: the policy of today is enough\n"
                                    : "nothing else was refused\n");
    }
    rc = put_refused(out, &o->denials);
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, "\n# today\n");
    }
    if (rc == SY_E_OK) {
        rc = learned_put_today(out, &l->engine);
    }
    if (rc == SY_E_OK && learned_has_any(learned)) {
        rc = buf_add_str(out, learned->never.n == 0 ? "\n# to allow all of it\n"
                                                    : "\n# to allow what a line can allow\n");
    }
    if (rc == SY_E_OK) {
        rc = put_each(out, "# make it first, since a root has to exist: ", &learned->late);
    }
    if (rc == SY_E_OK) {
        rc = learned_put_needed(out, learned, &l->engine);
    }
    if (rc == SY_E_OK && learned->never.n > 0) {
        rc = buf_add_char(out, '\n');
    }
    return rc == SY_E_OK ? put_each(out, "no line allows: ", &learned->never) : rc;
}

static enum sy_code
learn_json(struct buf *out, const struct learning *l, const struct exec_output *o)
{
    SY_AUTO(buf_fini) struct buf today = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(buf_fini) struct buf needed = {.max = LIMIT_CLI_TEXT};
    struct jw w = {.out = out};
    enum sy_code rc = learned_put_today(&today, &l->engine);

    if (rc == SY_E_OK) {
        rc = learned_put_needed(&needed, &l->learned, &l->engine);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    jw_object(&w);
    jw_key_str(&w, "status", exec_status_name(o->status));
    jw_key_int(&w, "exit_code", o->exit_code);
    if (o->hit.resource != RESOURCE_NONE) {
        jw_key(&w, "limit");
        exec_limit_write(&w, &o->hit);
    }
    denial_list_write(&w, &o->denials);
    jw_key_strn(&w, "today", buf_view(&today), today.len);
    jw_key_strn(&w, "needed", buf_view(&needed), needed.len);
    jw_key_list(&w, "make_first", strv_view(&l->learned.late));
    jw_key_list(&w, "never", strv_view(&l->learned.never));
    jw_end_object(&w);
    rc = jw_done(&w);
    return rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
}

static int
tell(struct learning *l, bool as_json)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLI_TEXT};
    const struct exec_output *o = orch_output(l->call);
    struct sy_error err = {0};
    enum sy_code rc = SY_E_OK;

    if (o->status == EXEC_FAILED || o->status == EXEC_DENIED) {
        return cli_fail(&o->err);
    }
    if (o->is_unobserved) {
        sy_err_set(&err, SY_E_SANDBOX, "%s", o->note);
        return cli_fail(&err);
    }
    if (learned_decide(&l->learned, &l->engine, &o->denials, &err) != SY_E_OK) {
        return cli_fail(&err);
    }
    rc = as_json ? learn_json(&text, l, o) : learn_text(&text, l, o);
    if (rc != SY_E_OK) {
        sy_err_set(&err, rc, "telling what was learned: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    if (as_json) {
        return cli_out(&text, o->exit_code);
    }
    /* Beside the command's own output, which may go into a pipe. */
    rc = fd_write_all(STDERR_FILENO, buf_view(&text), text.len, &err);
    return rc == SY_E_OK ? o->exit_code : cli_fail(&err);
}

static int
learn_main(const struct cli_args *args)
{
    SY_AUTO(learning_fini) struct learning l = {.signal_fd = -1};
    struct sy_error err = {0};

    if (start(&l, args, &err) != SY_E_OK) {
        return cli_fail(&err);
    }
    drive(&l);
    return tell(&l, cli_get(args, "json") != NULL);
}

static const struct cli_option learn_options[] = {
    {0,   "json",    NULL,   NULL,                        "print one JSON object; the command's output goes to standard error"},
    {'s', "sandbox", "MODE", "read-only|workspace-write",
     "sandbox mode, instead of the configured one"                                                                            },
    {'C', "cwd",     "DIR",  "DIR",                       "run in DIR, which is then the workspace"                           },
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_sandbox_learn = {
    .name = "learn",
    .summary = "Run a command in its sandbox and tell which policy it would need",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .text = "The command has your terminal and runs in the sandbox: what it may not do is\n"
            "refused, noted, and at the end put together into the smallest change of the\n"
            "configuration, on standard error. Ends with the command's exit status.\n",
    .examples = "  shellyard sandbox learn -- make install\n"
                "  shellyard sandbox learn -s read-only --json -- ./build.sh\n",
    .page = "shellyard-sandbox.1",
    .options = learn_options,
    .min_operands = 1,
    .max_operands = LIMIT_ARGV,
    .ends_options = true,
    .run = learn_main,
};
