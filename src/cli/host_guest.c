#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/host.h"
#include "cli/verbs.h"
#include "sessions/attach.h"

/*
 * A client of `mcp` or `proto`, and what it leaves: the same server as in a process of its own,
 * over the descriptors that it handed over, under the environment and the flags that it has.
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
load(struct host_guest *c, const struct cli_verb *verb, struct sy_error *err)
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
tell_of_wide_roots(const struct host_guest *c)
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
        (void)host_say(c->fd, HELLO_NOTE, 0, note.msg);
    }
}

static void on_timer(uv_timer_t *timer);
static void on_prepare(uv_prepare_t *prepare);

static void
on_handle_closed(uv_handle_t *handle)
{
    struct host_guest *c = handle->data;
    struct host *h = c->host;

    if (--c->n_handles > 0) {
        return;
    }
    fd_close(&c->fd);
    fd_close(&c->fds[0]);
    fd_close(&c->fds[1]);
    hello_fini(&c->hello);
    buf_fini(&c->in);
    for (struct host_guest **at = &h->guests; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    mem_free(c);
    h->n_guests--;
    host_look(h);
}

void
host_guest_close(struct host_guest *c)
{
    if (c->state != HOST_GUEST_CLOSED) {
        c->state = HOST_GUEST_CLOSED;
        uv_close((uv_handle_t *)&c->poll, on_handle_closed);
        uv_close((uv_handle_t *)&c->timer, on_handle_closed);
        uv_close((uv_handle_t *)&c->prepare, on_handle_closed);
    }
}

static void
end_engine(struct host_guest *c)
{
    uint64_t after_ms = serve_engine_end(&c->engine) ? LIMIT_EXPORT_END_MS : 0;

    c->state = HOST_GUEST_ENDING;
    SY_ASSERT(uv_timer_start(&c->timer, on_timer, after_ms, 0) == 0);
}

/* Of one that was kept: when what has ended is forgotten. Of one that ends: its end. */
static void
on_timer(uv_timer_t *timer)
{
    struct host_guest *c = timer->data;

    if (c->state == HOST_GUEST_KEPT) {
        tool_context_end_sessions(c->engine.context);
        SY_ASSERT(uv_prepare_start(&c->prepare, on_prepare) == 0);
        return;
    }
    if (c->state == HOST_GUEST_ENDING) {
        serve_engine_fini(&c->engine);
    }
    host_guest_close(c);
}

bool
host_guest_is_served(const struct host_guest *c)
{
    return c->state == HOST_GUEST_SERVING && !c->has_gone;
}

/* Is it the same place and the same policy? Then the one may go on with what the other left. */
static bool
is_alike(const struct host_guest *a, const struct host_guest *b)
{
    SY_AUTO(buf_fini) struct buf one = {.max = LIMIT_CLI_TEXT};
    SY_AUTO(buf_fini) struct buf other = {.max = LIMIT_CLI_TEXT};

    return str_eq(a->engine.base.cwd, b->engine.base.cwd) &&
           str_eq(a->hello.protocol, b->hello.protocol) &&
           config_show(&a->engine.base.config, &one, true) == SY_E_OK &&
           config_show(&b->engine.base.config, &other, true) == SY_E_OK && one.len == other.len &&
           memcmp(buf_view(&one), buf_view(&other), one.len) == 0;
}

/* Sessions that go on without their client become those of one that is alike, if there is one. */
static void
pass_on(struct host_guest *left)
{
    for (struct host_guest *c = left->host->guests; c != NULL; c = c->next) {
        if (host_guest_is_served(c) && is_alike(left, c)) {
            live_store_lend(host_sessions(c), tool_context_session(c->engine.context),
                            host_sessions(left));
            return;
        }
    }
}

/* A session that was kept has ended, or is another's now. */
static void
look_at_kept(struct host_guest *c)
{
    if (tool_context_is_over(c->engine.context)) {
        uv_timer_stop(&c->timer);
        end_engine(c);
    } else if (live_store_running(host_sessions(c)) > 0) {
        uv_timer_stop(&c->timer);
    } else if (!uv_is_active((uv_handle_t *)&c->timer)) {
        SY_ASSERT(uv_timer_start(&c->timer, on_timer, LIMIT_KEPT_MS, 0) == 0);
    }
    host_look(c->host);
}

/* The client hears how it ended; its descriptor is closed. */
static void
part(struct host_guest *c)
{
    bool is_failed = c->why.code != SY_E_OK;
    const char *sentence = c->host->is_stopping ? "the daemon was stopped" : "";

    (void)host_say(c->fd, HELLO_END, is_failed ? (unsigned)sy_code_status(c->why.code) : 0,
                   is_failed ? c->why.msg : sentence);
    uv_poll_stop(&c->poll);
    fd_close(&c->fd);
    LOG(LOG_INFO, "daemon", "a client has ended", kv_int("id", c->id), kv_int("pid", c->pid));
}

/* Before each wait of the loop: has all ended that was to end? Then the client hears of it. */
static void
on_prepare(uv_prepare_t *prepare)
{
    struct host_guest *c = prepare->data;
    bool is_over = tool_context_is_over(c->engine.context);

    if (c->state == HOST_GUEST_KEPT) {
        uv_prepare_stop(prepare);
        look_at_kept(c);
        return;
    }
    if (!is_over && (c->host->is_stopping || !live_store_has_settled(host_sessions(c)))) {
        return;
    }
    uv_prepare_stop(prepare);
    part(c);
    if (is_over) {
        end_engine(c);
        return;
    }
    c->state = HOST_GUEST_KEPT;
    pass_on(c);
    look_at_kept(c);
}

/* Something has become of a session: looked at from the loop. */
static void
on_settled(void *arg)
{
    struct host_guest *c = arg;

    if (c->state == HOST_GUEST_KEPT) {
        SY_ASSERT(uv_prepare_start(&c->prepare, on_prepare) == 0);
    }
}

/* What does not go on without it ends. */
static void
on_leaving(void *arg)
{
    struct host_guest *c = arg;
    const char *outlive = c->engine.base.config.sessions.outlive;

    if (c->host->is_stopping || str_eq(outlive, "never")) {
        tool_context_end_sessions(c->engine.context);
    } else {
        live_store_keep(host_sessions(c), str_eq(outlive, "all"));
    }
}

static void
on_ended(void *arg, const struct sy_error *why)
{
    struct host_guest *c = arg;

    c->why = *why;
    c->state = HOST_GUEST_ENDING;
    stdio_server_free(c->server);
    c->server = NULL;
    on_leaving(c); /* again: the host may have been told to stop since, and MCP has no other */
    SY_ASSERT(uv_prepare_start(&c->prepare, on_prepare) == 0);
    host_look(c->host); /* the next one like it may come here */
}

/* What goes on without a client ends with the host. */
static void
end_sessions(struct host_guest *c)
{
    if (c->host->is_stopping && c->engine.context != NULL) {
        tool_context_end_sessions(c->engine.context);
        SY_ASSERT(uv_prepare_start(&c->prepare, on_prepare) == 0);
    }
}

void
host_guest_stop(struct host_guest *c)
{
    switch (c->state) {
    case HOST_GUEST_SERVING:
        stdio_server_stop(c->server);
        break;
    case HOST_GUEST_ATTACHED:
        attach_stop(c->attach, c->host->is_stopping ? "the daemon was stopped" : "");
        break;
    case HOST_GUEST_KEPT:
    case HOST_GUEST_ENDING:
        end_sessions(c);
        break;
    case HOST_GUEST_CLOSED: /* has its own end */
        break;
    }
}

/* It has gone, or is as good as gone: what is served to it ends. */
static void
leave(struct host_guest *c)
{
    c->has_gone = true;
    uv_poll_stop(&c->poll);
    host_guest_stop(c);
    host_look(c->host); /* the next one like it may come here */
}

/* A client that is served says nothing here: all that can come is its end. */
static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct host_guest *c = poll->data;
    char rest[64];

    (void)status;
    (void)events;

    ssize_t n = recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);

    if (c->state != HOST_GUEST_SERVING || n >= 0 || (errno != EAGAIN && errno != EINTR)) {
        leave(c);
    }
}

/* Between the client's last word and ours it may have given up, and may be reading by itself. */
static bool
is_still_there(const struct host_guest *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) == 0;
}

void
host_guests_look(struct host *h)
{
    struct host_guest *next = NULL;

    for (struct host_guest *c = h->guests; c != NULL; c = next) {
        next = c->next;
        if (host_guest_is_served(c) && !is_still_there(c)) {
            leave(c);
        }
    }
}

static enum sy_code
serve(struct host_guest *c, protocol_new_fn *front, struct sy_error *err)
{
    struct stdio_server_options options = {
        .loop = &c->host->loop,
        .context = c->engine.context,
        .front = front,
        .leaving = on_leaving,
        .ended = on_ended,
        .arg = c,
    };

    tell_of_wide_roots(c);
    if (!is_still_there(c) || !host_say(c->fd, HELLO_OK, (unsigned)getpid(), "")) {
        return sy_err_set(err, SY_E_SYS, "the client has ended");
    }
    options.in_fd = fd_take(&c->fds[0]);
    options.out_fd = fd_take(&c->fds[1]);
    return stdio_server_new(&c->server, &options, err);
}

static enum sy_code
start(struct host_guest *c, const struct cli_verb *verb, protocol_new_fn *front,
      struct sy_error *err)
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
    rc = serve_engine_start(&c->engine, &c->host->loop, err);
    if (rc == SY_E_OK) {
        c->watch = (struct live_watch){.settled = on_settled, .arg = c};
        live_store_watch(host_sessions(c), &c->watch);
        rc = serve(c, front, err);
    }
    if (rc == SY_E_OK) {
        c->state = HOST_GUEST_SERVING;
        for (struct host_guest *left = c->host->guests; left != NULL; left = left->next) {
            if (left->state == HOST_GUEST_KEPT) {
                pass_on(left);
                look_at_kept(left);
            }
        }
        LOG(LOG_INFO, "daemon", "a client is served", kv_int("id", c->id), kv_int("pid", c->pid),
            kv_str("protocol", c->hello.protocol));
        return rc;
    }
    host_refuse(c->fd, c->pid, HELLO_ERROR, err);
    end_engine(c);
    return SY_E_OK; /* it ends by itself */
}

static const struct {
    const char *name;
    const struct cli_verb *verb;
    protocol_new_fn *front;
} protocols[] = {
    {"mcp",   &verb_mcp,   protocol_mcp_new  },
    {"proto", &verb_proto, protocol_jsonl_new},
};

/* The hello, which the daemon has found to be whole. */
static enum sy_code
read_hello(struct host_guest *c, int file, struct sy_error *err)
{
    enum sy_code rc = host_read_file(file, &c->in, err);

    if (rc == SY_E_OK && hello_read(&c->hello, buf_view(&c->in), c->in.len, err) != HELLO_WHOLE) {
        rc = sy_err_set(err, SY_E_PARSE, "the hello that the daemon passed on is not whole");
    }
    return rc;
}

static enum sy_code
begin(struct host_guest *c, const char *id, int file, struct sy_error *err)
{
    enum sy_code rc = read_hello(c, file, err);

    if (rc == SY_E_OK && str_eq(c->hello.protocol, "attach")) {
        return host_attach_start(c, id, err);
    }
    for (size_t i = 0; rc == SY_E_OK && i < sizeof(protocols) / sizeof(protocols[0]); i++) {
        if (str_eq(protocols[i].name, c->hello.protocol)) {
            c->host->key = host_key(&c->hello);
            return start(c, protocols[i].verb, protocols[i].front, err);
        }
    }
    return rc == SY_E_OK ? sy_err_set(err, SY_E_PARSE, "a host serves no such protocol") : rc;
}

static struct host_guest *
guest_new(struct host *h, const struct host_message *m, int fds[HOST_FDS])
{
    struct host_guest *c = mem_alloc_zero(1, sizeof(*c));

    if (c == NULL || uv_poll_init(&h->loop, &c->poll, fds[1]) != 0) {
        mem_free(c);
        return NULL;
    }
    SY_ASSERT(uv_timer_init(&h->loop, &c->timer) == 0);
    SY_ASSERT(uv_prepare_init(&h->loop, &c->prepare) == 0);
    c->n_handles = 3;
    c->prepare.data = c;
    c->poll.data = c;
    c->timer.data = c;
    c->host = h;
    c->state = HOST_GUEST_ENDING;
    c->in.max = LIMIT_HELLO;
    c->id = (unsigned)m->number;
    c->pid = m->pid;
    c->since_ns = m->since_ns;
    c->fd = fd_take(&fds[1]);
    c->fds[0] = fd_take(&fds[2]);
    c->fds[1] = fd_take(&fds[3]);
    c->next = h->guests;
    h->guests = c;
    h->n_guests++;
    h->last_id = m->number > h->last_id ? m->number : h->last_id;
    return c;
}

void
host_guest_open(struct host *h, const struct host_message *m, int fds[HOST_FDS])
{
    struct sy_error err = {0};
    SY_FD file = fd_take(&fds[0]);
    struct host_guest *c = h->is_stopping || fds[1] < 0 ? NULL : guest_new(h, m, fds);

    for (size_t i = 0; i < HOST_FDS; i++) {
        fd_close(&fds[i]);
    }
    if (c == NULL) {
        host_look(h);
        return;
    }

    enum sy_code rc = begin(c, m->id, file, &err);

    if (rc != SY_E_OK) {
        /* Another way is open to a client that is not to be served here. */
        host_refuse(c->fd, c->pid, rc == SY_E_CANCELLED ? HELLO_OWN : HELLO_ERROR, &err);
        host_guest_close(c);
    } else if (c->state != HOST_GUEST_ATTACHED &&
               uv_poll_start(&c->poll, UV_READABLE, on_poll) != 0) {
        host_guest_stop(c);
    }
    host_look(h);
}
