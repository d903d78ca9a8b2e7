#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/daemon.h"
#include "cli/pass.h"
#include "cli/verbs.h"

/*
 * A client of `mcp` or `proto`: the same server as in a process of its own, over the descriptors
 * that it handed over, under the environment and the flags that it has.
 */

/*
 * Makes a client's descriptor one that never blocks. A pipe is opened anew: the flags of the one
 * that came are the client's too, which could make it block again. A socket is never waited for
 * (transport/stdio.c). Nothing else is taken: a file may be on a file system that hangs.
 */
static enum sy_code
make_ours(int *fd, int direction, struct sy_error *err)
{
    struct stat st;
    char path[32];

    if (*fd < 0 || fstat(*fd, &st) != 0 || (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))) {
        return sy_err_set(err, SY_E_PARSE,
                          "the hello must come with two descriptors, pipes or sockets");
    }
    if (S_ISSOCK(st.st_mode)) {
        return SY_E_OK;
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);

    int anew = open(path, direction | O_NONBLOCK | O_CLOEXEC);

    if (anew < 0) {
        (void)sy_err_sys(err, errno, "opening its standard %s",
                         direction == O_RDONLY ? "input" : "output");
        return SY_E_CANCELLED; /* it may be another user's pipe: the client can use it itself */
    }
    fd_close(fd);
    *fd = anew;
    return SY_E_OK;
}

static enum sy_code
load(struct guest *c, const struct cli_verb *verb, struct sy_error *err)
{
    SY_AUTO(cli_args_fini) struct cli_args args;
    /* Its memory is ours. */
    enum sy_code rc = cli_parse(&args, verb, verb->name, c->hello.words, err);

    if (rc == SY_E_OK && args.wants_help) {
        return sy_err_set(err, SY_E_ARG, "help is not the daemon's to give");
    }
    return rc == SY_E_OK ? cli_engine_load_for(&c->engine.base, &args, c->hello.cwd,
                                               c->hello.environ_list, err)
                         : rc;
}

/* What a process of the client's own would log. */
static void
tell_of_wide_roots(const struct guest *c)
{
    struct cli_wide list[CLI_WIDE_MAX];
    enum log_level level = LOG_WARN;
    struct sy_error note;
    size_t n = log_level_parse(&level, c->engine.base.config.log.level) && level >= LOG_WARN
                   ? cli_wide_roots(list, &c->engine.base)
                   : 0;

    for (size_t i = 0; i < n; i++) {
        (void)sy_err_set(&note, SY_E_OK, "commands may write %s (%s): %s", list[i].extent,
                         list[i].what, list[i].fix);
        (void)guest_say(c->fd, HELLO_NOTE, 0, note.msg);
    }
}

static void
end_engine(struct guest *c)
{
    guest_end(c, serve_engine_end(&c->engine) ? LIMIT_EXPORT_END_MS : 0);
}

/* Before each wait of the loop: has all ended that the engine ran? Then the client hears of it. */
static void
on_prepare(uv_prepare_t *prepare)
{
    struct guest *c = prepare->data;
    bool is_failed = c->why.code != SY_E_OK;
    const char *sentence = c->daemon->is_stopping ? "the daemon was stopped" : "";

    if (!tool_context_is_over(c->engine.context)) {
        return;
    }
    uv_prepare_stop(prepare);
    (void)guest_say(c->fd, HELLO_END, is_failed ? (unsigned)sy_code_status(c->why.code) : 0,
                    is_failed ? c->why.msg : sentence);
    LOG(LOG_INFO, "daemon", "a client has ended", kv_int("id", c->id), kv_int("pid", c->peer.pid));
    end_engine(c);
}

static void
on_ended(void *arg, const struct sy_error *why)
{
    struct guest *c = arg;

    c->why = *why;
    c->state = GUEST_ENDING;
    stdio_server_free(c->server);
    c->server = NULL;
    tool_context_end_sessions(c->engine.context);
    SY_ASSERT(uv_prepare_start(&c->prepare, on_prepare) == 0);
}

/* Between the client's last word and ours it may have given up, and may be reading by itself. */
static bool
is_still_there(const struct guest *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) == 0;
}

static enum sy_code
serve(struct guest *c, protocol_new_fn *front, struct sy_error *err)
{
    struct stdio_server_options options = {
        .loop = &c->daemon->loop,
        .context = c->engine.context,
        .front = front,
        .ended = on_ended,
        .arg = c,
    };

    tell_of_wide_roots(c);
    if (!is_still_there(c) || !guest_say(c->fd, HELLO_OK, (unsigned)getpid(), "")) {
        return sy_err_set(err, SY_E_SYS, "the client has ended");
    }
    options.in_fd = fd_take(&c->fds[0]);
    options.out_fd = fd_take(&c->fds[1]);
    return stdio_server_new(&c->server, &options, err);
}

static enum sy_code
start(struct guest *c, const struct cli_verb *verb, protocol_new_fn *front, struct sy_error *err)
{
    enum sy_code rc = make_ours(&c->fds[0], O_RDONLY, err);

    if (rc == SY_E_OK) {
        rc = make_ours(&c->fds[1], O_WRONLY, err);
    }
    if (rc == SY_E_OK) {
        rc = load(c, verb, err);
    }
    if (rc == SY_E_OK && str_eq(c->engine.base.config.daemon.use, "never")) {
        (void)sy_err_set(err, SY_E_DENIED, "daemon.use is never");
        rc = SY_E_CANCELLED;
    }
    if (rc != SY_E_OK) {
        serve_engine_fini(&c->engine);
        return rc;
    }
    rc = serve_engine_start(&c->engine, &c->daemon->loop, err);
    if (rc == SY_E_OK) {
        rc = serve(c, front, err);
    }
    if (rc == SY_E_OK) {
        c->state = GUEST_SERVING;
        LOG(LOG_INFO, "daemon", "a client is served", kv_int("id", c->id),
            kv_int("pid", c->peer.pid), kv_str("protocol", c->hello.protocol));
        return rc;
    }
    (void)guest_say(c->fd, HELLO_ERROR, (unsigned)sy_code_status(rc), err->msg);
    end_engine(c);
    return SY_E_OK; /* it ends by itself */
}

enum sy_code
guest_start_mcp(struct guest *c, struct sy_error *err)
{
    return start(c, &verb_mcp, protocol_mcp_new, err);
}

enum sy_code
guest_start_proto(struct guest *c, struct sy_error *err)
{
    return start(c, &verb_proto, protocol_jsonl_new, err);
}
