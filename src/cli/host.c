#include "cli/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "process/process.h"
#include "store/store.h"

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

_Static_assert(STOP_SIGNALS == sizeof(((struct host *)0)->signals) / sizeof(uv_signal_t),
               "a handle for each signal");

struct host_channel {
    struct host *host;
    int fd;
    uv_poll_t poll;
};

static void
on_channel_closed(uv_handle_t *handle)
{
    struct host_channel *ch = handle->data;

    fd_close(&ch->fd);
    mem_free(ch);
}

static void
channel_end(struct host *h)
{
    if (h->channel != NULL) {
        uv_close((uv_handle_t *)&h->channel->poll, on_channel_closed);
        h->channel = NULL;
        h->taken = 0;
    }
}

static void
end_loop(struct host *h)
{
    h->is_ending = true;
    channel_end(h);
    local_host_unlink(h->dir_fd);
    uv_close((uv_handle_t *)&h->listen_poll, NULL);
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        uv_close((uv_handle_t *)&h->signals[i], NULL);
    }
}

static void
tell_state(struct host *h)
{
    struct host_message m = {
        .kind = HOST_STATE,
        .number = h->last_id,
        .key = h->key,
        .taken = h->taken,
        .clients = (uint32_t)host_clients(h),
        .running = (uint32_t)host_running(h),
        .guests = (uint32_t)h->n_guests,
        .pid = (int32_t)getpid(),
    };

    if (h->channel != NULL) {
        (void)snprintf(m.build, sizeof(m.build), "%s", h->build);
        /* One that does not read, or is gone, is told by the end of the channel. */
        (void)host_send(h->channel->fd, &m, NULL, 0);
    }
}

void
host_look(struct host *h)
{
    if (h->is_ending) {
        return;
    }
    /* Without a daemon nobody would come any more. */
    if (h->n_guests == 0 && (h->is_stopping || h->channel == NULL)) {
        end_loop(h);
        return;
    }
    tell_state(h);
}

static void
stop(struct host *h)
{
    struct host_guest *next = NULL;

    h->is_stopping = true;
    for (struct host_guest *c = h->guests; c != NULL; c = next) {
        next = c->next;
        host_guest_stop(c);
    }
    host_look(h);
}

static void
answer_list(struct host *h, uint64_t number)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_DAEMON_ANSWER};
    SY_FD file = -1;
    struct host_message m = {.kind = HOST_LISTED, .number = number};
    enum sy_code rc = SY_E_OK;

    host_guests_look(h);
    rc = host_list(h, &text);
    if (rc == SY_E_OK) {
        rc = fd_memory_file(&file, "shellyard list", buf_view(&text), text.len, NULL);
    }
    if (rc != SY_E_OK) {
        LOG(LOG_WARN, "daemon", "a list is missing", kv_str("error", sy_code_text(rc)));
    }
    /* Without a file it is an answer too: the daemon says that something is missing. */
    (void)host_send(h->channel->fd, &m, &file, file >= 0 ? 1 : 0);
}

/* False: the channel is no more. */
static bool
take_message(struct host *h, const struct host_message *m, int fds[HOST_FDS])
{
    switch ((enum host_kind)m->kind) {
    case HOST_GUEST:
        h->taken++;
        host_guest_open(h, m, fds);
        return true;
    case HOST_LIST:
        answer_list(h, m->number);
        break;
    case HOST_KILL:
        host_kill(h, m->id);
        break;
    case HOST_STOP:
        stop(h);
        break;
    case HOST_STATE:
    case HOST_LISTED:
        break;
    }
    for (size_t i = 0; i < HOST_FDS; i++) {
        fd_close(&fds[i]);
    }
    return h->channel != NULL;
}

static void
on_channel(uv_poll_t *poll, int status, int events)
{
    struct host_channel *ch = poll->data;
    struct host *h = ch->host;
    struct host_message m;
    int fds[HOST_FDS];
    int got = 0;

    (void)status;
    (void)events;
    do {
        got = host_receive(ch->fd, &m, fds);
    } while (got > 0 && take_message(h, &m, fds));
    if (got < 0 && h->channel == ch) {
        LOG(LOG_INFO, "daemon", "a host goes on without its daemon", kv_int("pid", getpid()));
        channel_end(h);
        host_look(h);
    }
}

/* A daemon; it replaces an earlier one. Takes the descriptor. */
static void
channel_begin(struct host *h, int fd)
{
    struct host_channel *ch = mem_alloc_zero(1, sizeof(*ch));

    if (ch == NULL || uv_poll_init(&h->loop, &ch->poll, fd) != 0) {
        mem_free(ch);
        fd_close(&fd);
        return;
    }
    ch->host = h;
    ch->fd = fd;
    ch->poll.data = ch;
    channel_end(h);
    h->channel = ch;
    SY_ASSERT(uv_poll_start(&ch->poll, UV_READABLE, on_channel) == 0);
    tell_state(h);
}

static void
on_listening(uv_poll_t *poll, int status, int events)
{
    struct host *h = poll->data;
    int fd = accept4(h->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct sy_error err = {0};
    struct peer peer;

    (void)status;
    (void)events;
    if (fd < 0) {
        return;
    }
    if (peer_judge(&peer, fd, &h->self, &err) != PEER_SAME) {
        LOG(LOG_WARN, "daemon", "a stranger was refused by a host", kv_str("error", err.msg));
        fd_close(&fd);
        return;
    }
    channel_begin(h, fd);
}

static void
on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    stop(handle->data);
}

/* The place where the next daemon finds us. */
static enum sy_code
listen_there(struct host *h, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};
    enum sy_code rc = cli_state_dir(&dir, err);

    if (rc == SY_E_OK) {
        rc = store_dir_open(&h->dir_fd, buf_view(&dir), err);
    }
    return rc == SY_E_OK ? local_host_listen(&h->listen_fd, h->dir_fd, buf_view(&dir), err) : rc;
}

static enum sy_code
open_handles(struct host *h, struct sy_error *err)
{
    int rc = uv_poll_init(&h->loop, &h->listen_poll, h->listen_fd);

    h->listen_poll.data = h;
    rc = rc == 0 ? uv_poll_start(&h->listen_poll, UV_READABLE, on_listening) : rc;
    for (size_t i = 0; i < STOP_SIGNALS && rc == 0; i++) {
        rc = uv_signal_init(&h->loop, &h->signals[i]);
        h->signals[i].data = h;
        rc = rc == 0 ? uv_signal_start(&h->signals[i], on_signal, stop_signals[i]) : rc;
    }
    return rc == 0 ? SY_E_OK : sy_err_sys(err, -rc, "making a host's event loop");
}

static enum sy_code
run(struct host *h, struct sy_error *err)
{
    struct stat program;
    enum sy_code rc = SY_E_OK;

    if (stat("/proc/self/exe", &program) != 0) {
        return sy_err_sys(err, errno, "looking at this program's file");
    }
    local_build(h->build, &program);
    rc = peer_facts_read(&h->self, 0, err);
    if (rc == SY_E_OK) {
        rc = listen_there(h, err);
    }
    if (rc == SY_E_OK) {
        int uv = -fd_check_room(FD_ROOM_LOOP);

        uv = uv == 0 ? uv_loop_init(&h->loop) : uv;
        rc = uv == 0 ? open_handles(h, err) : sy_err_sys(err, -uv, "making the event loop");
    }
    if (rc == SY_E_OK) {
        channel_begin(h, HOST_CHANNEL_FD);
        uv_run(&h->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&h->loop);
    }
    return rc;
}

int
host_main(char *const *args)
{
    struct sy_error err = {0};
    struct stat st;
    enum log_level level = LOG_WARN;

    if (args[0] == NULL || args[1] == NULL || !log_level_parse(&level, args[0]) ||
        fstat(HOST_CHANNEL_FD, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        (void)sy_err_set(&err, SY_E_ARG, HOST_VERB " is started by 'shellyard serve' alone");
        return cli_fail(&err);
    }

    struct host *h = mem_alloc_zero(1, sizeof(*h));

    if (h == NULL) {
        (void)sy_err_nomem(&err);
        return cli_fail(&err);
    }
    log_set(level, args[1][0] == 'j' ? LOG_JSON : LOG_LOGFMT);
    h->dir_fd = -1;
    h->listen_fd = -1;
    /* What ends the daemon's terminal is nothing to us. */
    (void)setsid();
    process_raise_open_files(LIMIT_DAEMON_FILES);

    enum sy_code rc = fd_set_nonblock(HOST_CHANNEL_FD, &err);

    if (rc == SY_E_OK && fcntl(HOST_CHANNEL_FD, F_SETFD, FD_CLOEXEC) != 0) {
        rc = sy_err_sys(&err, errno, "keeping the channel");
    }
    if (rc == SY_E_OK) {
        rc = run(h, &err);
    }
    fd_close(&h->listen_fd);
    fd_close(&h->dir_fd);
    mem_free(h);
    return rc == SY_E_OK ? 0 : cli_fail(&err);
}
