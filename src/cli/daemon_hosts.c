/* Hosts: made, found again, asked, and clients passed on to them. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/daemon.h"
#include "cli/host.h"

static void on_spare_due(uv_timer_t *timer);

/* Questions that it won't answer any more. */
static void
give_up_answers(struct host_link *l)
{
    while (l->n_asked > 0) {
        caller_heard(l->daemon, l->asked[--l->n_asked], NULL);
    }
}

static void
on_link_closed(uv_handle_t *handle)
{
    struct host_link *l = handle->data;
    struct daemon *d = l->daemon;

    fd_close(&l->fd);
    for (struct host_link **at = &d->hosts; *at != NULL; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            break;
        }
    }
    mem_free(l);
    d->n_hosts--;
    daemon_look(d);
}

static void
link_close(struct host_link *l)
{
    if (!l->is_closed) {
        l->is_closed = true;
        uv_close((uv_handle_t *)&l->poll, on_link_closed);
        give_up_answers(l);
    }
}

static void
tell(struct host_link *l, enum host_kind kind)
{
    const struct host_message m = {.kind = kind};

    (void)host_send(l->fd, &m, NULL, 0);
}

/* Nobody uses it, and nothing that it keeps runs. */
static bool
is_idle(const struct host_link *l)
{
    return l->is_closed || l->is_stopping ||
           (l->sent == l->state.taken && l->state.clients == 0 && l->state.running == 0);
}

static void
on_state(struct host_link *l, const struct host_message *m)
{
    struct daemon *d = l->daemon;

    l->has_state = true;
    l->state = *m;
    d->last_id = m->number > d->last_id ? m->number : d->last_id;
    if (d->is_stopping || (!l->is_spare && is_idle(l) && m->guests == 0)) {
        l->is_stopping = true;
        tell(l, HOST_STOP);
    }
    daemon_look(d);
}

static void
on_listed(struct host_link *l, const struct host_message *m, int file)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_DAEMON_ANSWER};
    struct json_doc doc = {0};
    bool is_whole = host_read_file(file, &text, NULL) == SY_E_OK &&
                    json_parse(&doc, buf_view(&text), text.len, NULL) == SY_E_OK;

    for (size_t i = 0; i < l->n_asked; i++) {
        if (l->asked[i] == m->number) {
            l->asked[i] = l->asked[--l->n_asked];
            caller_heard(l->daemon, m->number, is_whole ? doc.root : NULL);
            break;
        }
    }
    json_doc_fini(&doc);
}

static void
on_link(uv_poll_t *poll, int status, int events)
{
    struct host_link *l = poll->data;
    struct host_message m;
    int fds[HOST_FDS];
    int got = 0;

    (void)status;
    (void)events;
    while (!l->is_closed && (got = host_receive(l->fd, &m, fds)) > 0) {
        if (m.kind == HOST_STATE) {
            on_state(l, &m);
        } else if (m.kind == HOST_LISTED) {
            on_listed(l, &m, fds[0]);
        }
        for (size_t i = 0; i < HOST_FDS; i++) {
            fd_close(&fds[i]);
        }
    }
    if (got < 0) {
        LOG(LOG_INFO, "daemon", "a host has ended", kv_int("pid", l->pid));
        link_close(l);
    }
}

/* Takes the descriptor. NULL: there is no memory, or no descriptor. */
static struct host_link *
link_new(struct daemon *d, int fd, pid_t pid)
{
    struct host_link *l = mem_alloc_zero(1, sizeof(*l));

    if (l == NULL || uv_poll_init(&d->loop, &l->poll, fd) != 0) {
        mem_free(l);
        fd_close(&fd);
        return NULL;
    }
    l->daemon = d;
    l->fd = fd;
    l->pid = pid;
    l->poll.data = l;
    l->next = d->hosts;
    d->hosts = l;
    d->n_hosts++;
    SY_ASSERT(uv_poll_start(&l->poll, UV_READABLE, on_link) == 0);
    return l;
}

static int
spawn_host(pid_t *ret, const struct daemon *d, int channel)
{
    static char name[] = "shellyard";
    static char verb[] = HOST_VERB;
    char *argv[] = {name, verb, mem_unconst(d->log_level), mem_unconst(d->log_format), NULL};
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0) {
        return rc;
    }
    for (int fd = 0; fd <= 1 && rc == 0; fd++) {
        rc = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, channel, HOST_CHANNEL_FD);
    }
    if (rc == 0) {
        rc = posix_spawn(ret, "/proc/self/exe", &actions, NULL, argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static enum sy_code
host_new(struct host_link **ret, struct daemon *d, struct sy_error *err)
{
    int pair[2];
    pid_t pid = -1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        return sy_err_sys(err, errno, "making a channel to a host");
    }

    SY_FD mine = pair[0];
    SY_FD its = pair[1];
    int rc = spawn_host(&pid, d, its);

    if (rc != 0) {
        return sy_err_sys(err, rc, "starting a host");
    }
    *ret = link_new(d, fd_take(&mine), pid);
    if (*ret == NULL) {
        return sy_err_nomem(err); /* the end of the channel ends it */
    }
    (*ret)->is_spare = true;
    return SY_E_OK;
}

static struct host_link *
find_spare(const struct daemon *d)
{
    struct host_link *l = d->hosts;

    while (l != NULL && !(l->is_spare && !l->is_closed && !l->is_stopping)) {
        l = l->next;
    }
    return l;
}

/* Whoever comes next need not wait for a program's start. */
static void
on_spare_due(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    struct host_link *l = NULL;
    struct sy_error err = {0};

    if (!d->is_stopping && find_spare(d) == NULL && host_new(&l, d, &err) != SY_E_OK) {
        LOG(LOG_WARN, "daemon", "no spare host", kv_str("error", err.msg));
    }
}

static void
on_found(void *arg, int fd, pid_t pid)
{
    if (link_new(arg, fd, pid) != NULL) {
        LOG(LOG_INFO, "daemon", "a host was found", kv_int("pid", pid));
    }
}

void
daemon_hosts_open(struct daemon *d)
{
    char *slash = strrchr(d->socket_path, '/');

    /* Its directory, by name; local_host_each needs it for short paths alone. */
    *slash = '\0';
    local_host_each(d->listener.dir_fd, d->socket_path, on_found, d);
    *slash = '/';
    SY_ASSERT(uv_timer_start(&d->spare_timer, on_spare_due, 0, 0) == 0);
}

void
daemon_hosts_stop(struct daemon *d)
{
    uv_timer_stop(&d->spare_timer);
    for (struct host_link *l = d->hosts; l != NULL; l = l->next) {
        if (!l->is_closed) {
            l->is_stopping = true;
            tell(l, HOST_STOP);
        }
    }
}

bool
daemon_hosts_are_idle(const struct daemon *d)
{
    for (const struct host_link *l = d->hosts; l != NULL; l = l->next) {
        if (!l->is_spare && (!is_idle(l) || (!l->has_state && !l->is_closed))) {
            return false;
        }
    }
    return true;
}

struct host_link *
daemon_host(struct daemon *d, pid_t pid)
{
    struct host_link *l = d->hosts;

    while (l != NULL && (l->pid != pid || l->is_closed)) {
        l = l->next;
    }
    return l;
}

/* Are its clients, and what they left, of those that this one may go on with? */
static bool
is_alike(const struct host_link *l, uint64_t key)
{
    return !l->is_closed && !l->is_stopping && l->state.key == key && l->state.guests > 0 &&
           str_eq(l->state.build, l->daemon->build);
}

size_t
daemon_ask(struct daemon *d, uint64_t number, uint64_t key)
{
    const struct host_message m = {.kind = HOST_LIST, .number = number};
    size_t n = 0;

    for (struct host_link *l = d->hosts; l != NULL; l = l->next) {
        /* There are no more callers than places, but some may have given up. */
        if (!l->is_closed && !l->is_spare && (key == 0 || is_alike(l, key)) &&
            l->n_asked < LIMIT_DAEMON_CLIENTS && host_send(l->fd, &m, NULL, 0)) {
            l->asked[l->n_asked++] = number;
            n++;
        }
    }
    return n;
}

/* One whose client has gone, and whose sessions this one may go on with. */
static struct host_link *
find_left(const struct daemon *d, uint64_t key)
{
    for (struct host_link *l = d->hosts; l != NULL; l = l->next) {
        if (is_alike(l, key) && l->sent == l->state.taken && l->state.clients == 0) {
            return l;
        }
    }
    return NULL;
}

bool
daemon_must_ask(const struct daemon *d, uint64_t key)
{
    bool has_alike = false;

    for (const struct host_link *l = d->hosts; l != NULL; l = l->next) {
        has_alike = has_alike || is_alike(l, key);
    }
    return has_alike && find_left(d, key) == NULL;
}

static size_t
count_clients(const struct daemon *d)
{
    size_t n = 0;

    for (const struct host_link *l = d->hosts; l != NULL; l = l->next) {
        n += l->state.clients + (l->sent - l->state.taken);
    }
    return n;
}

enum sy_code
daemon_pass(struct host_link *l, struct caller *c, const char *id, struct sy_error *err)
{
    struct host_message m = {
        .kind = HOST_GUEST,
        .number = ++c->daemon->last_id,
        .since_ns = c->since_ns,
        .pid = (int32_t)c->peer.pid,
    };
    SY_FD file = -1;

    (void)snprintf(m.id, sizeof(m.id), "%s", id);

    enum sy_code rc = fd_memory_file(&file, "shellyard hello", c->in.data, c->in.len, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    const int fds[HOST_FDS] = {file, c->fd, c->fds[0], c->fds[1]};
    size_t n = c->fds[0] < 0 ? 2 : c->fds[1] < 0 ? 3 : 4;

    if (!host_send(l->fd, &m, fds, n)) {
        return sy_err_set(err, SY_E_CANCELLED, "the host for it (process %d) takes nobody",
                          (int)l->pid);
    }
    l->sent++;
    return SY_E_OK;
}

enum sy_code
daemon_route(struct caller *c, struct sy_error *err)
{
    struct daemon *d = c->daemon;
    struct host_link *l = find_left(d, host_key(&c->hello));
    enum sy_code rc = SY_E_OK;

    if (d->is_stopping) {
        return sy_err_set(err, SY_E_CANCELLED, "it is about to end");
    }
    if (count_clients(d) >= LIMIT_DAEMON_CLIENTS) {
        return sy_err_set(err, SY_E_CANCELLED, "it serves %u clients already, and no more",
                          LIMIT_DAEMON_CLIENTS);
    }
    if (l == NULL) {
        l = find_spare(d);
        rc = l != NULL ? SY_E_OK : host_new(&l, d, err);
    }
    if (rc == SY_E_OK) {
        rc = daemon_pass(l, c, "", err);
    }
    if (rc == SY_E_OK) {
        l->is_spare = false;
        d->may_end = true;
        /* Not now, while that one starts. */
        SY_ASSERT(uv_timer_start(&d->spare_timer, on_spare_due, LIMIT_SPARE_HOST_MS, 0) == 0);
        return rc;
    }
    err->code = SY_E_CANCELLED; /* the client can do it by itself */
    return SY_E_CANCELLED;
}
