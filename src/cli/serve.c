#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/daemon.h"
#include "cli/serve_engine.h"
#include "cli/verbs.h"
#include "store/store.h"

/* `serve`: the daemon, in the foreground or in the background; and asking one. */

#define LOG_FILE "daemon.log"

/* Makes the state directory's socket ours. */
static enum sy_code
listen_there(struct daemon *d, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    int dir_fd = -1;
    enum sy_code rc = cli_state_dir(&dir, err);

    if (rc == SY_E_OK) {
        rc = store_dir_open(&dir_fd, buf_view(&dir), err);
    }
    if (rc == SY_E_OK) {
        (void)snprintf(d->socket_path, sizeof(d->socket_path), "%s/" LOCAL_SOCKET, buf_view(&dir));
        rc = local_listen(&d->listener, dir_fd, buf_view(&dir), err);
    }
    return rc;
}

/* What it logs, as the configuration says. */
static enum sy_code
load_log(struct daemon *d, const struct cli_args *args, struct sy_error *err)
{
    struct cli_engine engine;
    enum log_level level = LOG_WARN;
    enum sy_code rc = cli_engine_load(&engine, args, NULL, NULL, err);

    if (rc == SY_E_OK) {
        serve_set_log(&engine.config);
        /* Its words are the configuration's, which goes. */
        if (log_level_parse(&level, engine.config.log.level)) {
            d->log_level = log_level_name(level);
        }
        d->log_format = str_eq(engine.config.log.format, "json") ? "json" : "logfmt";
    }
    cli_engine_fini(&engine);
    return rc;
}

/* Our standard descriptors are nobody's any more, and what is logged goes to a file. */
static enum sy_code
go_to_background(struct daemon *d, struct sy_error *err)
{
    SY_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
    SY_FD log = openat(d->listener.dir_fd, LOG_FILE,
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (null < 0 || log < 0) {
        return sy_err_sys(err, errno, "opening the log '" LOG_FILE "' in the state directory");
    }
    if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0) {
        return sy_err_sys(err, errno, "replacing the standard descriptors");
    }
    d->has_log_file = true;
    return SY_E_OK;
}

/* Serves until its end. `ready_fd` gets a byte and is closed once clients are served; -1: in the
 * foreground, where a person is told. */
static enum sy_code
serve(struct daemon *d, int ready_fd, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;
    int uv = -fd_check_room(FD_ROOM_LOOP);

    uv = uv == 0 ? uv_loop_init(&d->loop) : uv;
    if (uv != 0) {
        return sy_err_sys(err, -uv, "making the event loop");
    }
    rc = daemon_open(d, err);
    if (rc == SY_E_OK && ready_fd >= 0) {
        rc = fd_write_all(ready_fd, "", 1, err);
        fd_close(&ready_fd);
    } else if (rc == SY_E_OK) {
        cli_note("serving at %s, process %d", d->socket_path, (int)getpid());
    }
    if (rc == SY_E_OK) {
        uv_run(&d->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&d->loop);
    }
    return rc;
}

static int
run(const struct cli_args *args, int ready_fd)
{
    struct daemon *d = mem_alloc_zero(1, sizeof(*d));
    struct sy_error err = {0};

    if (d == NULL) {
        (void)sy_err_nomem(&err);
        return cli_fail(&err);
    }
    d->listener = (struct local_listener)LOCAL_LISTENER_NONE;
    d->ends_when_empty = cli_get(args, "exit-empty") != NULL;

    enum sy_code rc = load_log(d, args, &err);

    if (rc == SY_E_OK) {
        rc = listen_there(d, &err);
    }
    /* No directory is held, and none that is removed is missed. */
    if (rc == SY_E_OK && chdir("/") != 0) {
        rc = sy_err_sys(&err, errno, "entering /");
    }
    if (rc == SY_E_OK && ready_fd >= 0) {
        rc = go_to_background(d, &err);
    }
    if (rc == SY_E_OK) {
        rc = serve(d, ready_fd, &err);
    }
    local_listener_fini(&d->listener);
    mem_free(d);
    return rc == SY_E_OK ? 0 : cli_fail(&err);
}

/* A process of its own session; this one waits until it serves. */
static int
run_in_background(const struct cli_args *args)
{
    struct sy_error err = {0};
    SY_FD ready = -1;
    SY_FD tell = -1;
    int status = 0;
    char byte = 0;

    if (fd_pipe(&ready, &tell, &err) != SY_E_OK) {
        return cli_fail(&err);
    }

    /* One thread so far, and a heap of nothing. */
    pid_t child = fork();

    if (child < 0) {
        (void)sy_err_sys(&err, errno, "starting a process");
        return cli_fail(&err);
    }
    if (child == 0) {
        fd_close(&ready);
        (void)setsid();
        _exit(run(args, fd_take(&tell)));
    }
    fd_close(&tell);
    if (read(ready, &byte, 1) == 1) {
        cli_note("serving in the background, process %d; 'shellyard serve --stop' ends it",
                 (int)child);
        return 0;
    }
    /* It has said why. */
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 0
               ? WEXITSTATUS(status)
               : sy_code_status(SY_E_SYS);
}

/* `--status` and `--stop`: one line about the daemon. */
static int
ask(const char *request, const char *format)
{
    const char *const words[] = {request, NULL};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLI_TEXT};
    struct json_doc doc = {0};
    struct sy_error err = {0};
    char age[24];
    int64_t pid = 0;
    int64_t age_ms = 0;
    enum sy_code rc = cli_ask(&doc, words, &err);

    if (rc != SY_E_OK) {
        return cli_fail(&err);
    }

    const char *version = js_str(js_get(doc.root, "version"));
    const char *socket = js_str(js_get(doc.root, "socket"));

    if (version == NULL || socket == NULL || !js_int(&pid, js_get(doc.root, "pid")) ||
        !js_int(&age_ms, js_get(doc.root, "age_ms"))) {
        rc = SY_E_PARSE;
    }
    cli_add_age(age, age_ms);
    if (rc == SY_E_OK) {
        rc = buf_addf(&out, "%s: process %lld, version %s, for %s, %s\n", format, (long long)pid,
                      version, age, socket);
    }
    json_doc_fini(&doc);
    if (rc != SY_E_OK) {
        (void)sy_err_set(&err, rc, "printing the daemon's answer: %s", sy_code_text(rc));
        return cli_fail(&err);
    }
    return cli_out(&out, 0);
}

static int
serve_main(const struct cli_args *args)
{
    if (cli_get(args, "status") != NULL) {
        return ask("status", "serving");
    }
    if (cli_get(args, "stop") != NULL) {
        return ask("stop", "stopping");
    }
    return cli_get(args, "background") != NULL ? run_in_background(args) : run(args, -1);
}

static const struct cli_option serve_options[] = {
    {'b', "background", NULL, NULL, "detach from the terminal, once it serves"             },
    {0,   "exit-empty", NULL, NULL, "end when the last client has gone and nothing is kept"},
    {0,   "status",     NULL, NULL, "tell which daemon is up"                              },
    {0,   "stop",       NULL, NULL, "end the daemon that is up, and what it runs"          },
    CLI_OPTION_CONFIG,
    CLI_OPTION_END,
};

const struct cli_verb verb_serve = {
    .name = "serve",
    .summary = "Run the daemon that serves the mcp and proto of this user",
    .operands = "",
    .text = "On a Unix socket in the state directory. While it is up, 'shellyard mcp' and\n"
            "'shellyard proto' hand their input and output over to it.\n",
    .examples = "  shellyard serve --background\n  shellyard list\n  shellyard serve --stop\n",
    .page = "shellyard-serve.1",
    .options = serve_options,
    .run = serve_main,
};
