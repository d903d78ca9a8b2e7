#include "orchestrator/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <uv.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "proxy/environment.h"
#include "proxy/proxy.h"

/* Rounds of one step; what is left wakes us again. */
#define STEP_ROUNDS 64
/* Connections that were made and not accepted yet. Each costs a descriptor. */
#define PENDING_MAX 256U

/* A socket of a tree on its way to us. */
struct pending {
    struct pending *next;
    uint64_t owner;
    uint16_t port; /* its own */
    int fd;
};

struct network_seat {
    struct network *network;
    struct network_seat *next;
    uint64_t id; /* never used twice; 0 is nobody's */
    int fd;
    struct process_gate gate;
    struct denial_list denials;
    struct strv hosts;
};

struct network {
    uv_loop_t loop;
    struct allow_list *list;
    struct proxy *proxy;
    struct network_seat *seats;
    struct pending *pending;
    size_t n_pending;
    uint64_t last_id;
    uint64_t deadline_ns;
    uint16_t port;       /* where commands connect to: 0: there is nothing yet */
    uint16_t socks_port; /* 0: the same */
    bool is_handed_in;
    bool names_loopback; /* the list does: this machine's is asked of the proxy */
    bool is_closed;
    const struct assess_by *judge;
};

static bool is_waiting; /* a network that could not be freed */

bool
network_is_waiting(void)
{
    return is_waiting;
}

bool
network_is_built(void)
{
    return true;
}

/* 0: not one of 127.0.0.1. */
static uint16_t
loopback_port(const struct sockaddr_storage *a)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (a->ss_family == AF_INET) {
        memcpy(&v4, a, sizeof(v4));
        return v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? ntohs(v4.sin_port) : 0;
    }
    if (a->ss_family != AF_INET6) {
        return 0;
    }
    memcpy(&v6, a, sizeof(v6));

    const uint8_t *ip = v6.sin6_addr.s6_addr;

    return IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && ip[12] == 127 && ip[13] == 0 && ip[14] == 0 &&
                   ip[15] == 1
               ? ntohs(v6.sin6_port)
               : 0;
}

static uint16_t
own_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t size = sizeof(a);

    return getsockname(fd, (struct sockaddr *)&a, &size) == 0 ? loopback_port(&a) : 0;
}

static uint16_t
peer_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t size = sizeof(a);

    return getpeername(fd, (struct sockaddr *)&a, &size) == 0 ? loopback_port(&a) : 0;
}

static void
pending_free(struct network *n, struct pending *p)
{
    fd_close(&p->fd);
    mem_free(p);
    n->n_pending--;
}

/* Of an owner, or (0) all. */
static void
drop_pending(struct network *n, uint64_t owner)
{
    struct pending **at = &n->pending;

    while (*at != NULL) {
        struct pending *p = *at;

        if (owner != 0 && p->owner != owner) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        pending_free(n, p);
    }
}

/* The broker has connected a socket of this seat. What is not remembered is hung up on. */
static void
on_connected(void *arg, int *fd)
{
    const struct network_seat *seat = arg;
    struct network *n = seat->network;
    uint16_t port = own_port(*fd);
    struct pending *p =
        port != 0 && n->n_pending < PENDING_MAX ? mem_alloc_zero(1, sizeof(*p)) : NULL;

    if (p == NULL) {
        return;
    }
    *p = (struct pending){.next = n->pending, .owner = seat->id, .port = port, .fd = fd_take(fd)};
    n->pending = p;
    n->n_pending++;
}

/*
 * The other end must be a socket that the broker connected: not one that has its port by now. We
 * hold that socket, so the port is its own as long as it is connected to us.
 */
static bool
take_pending(struct network *n, uint16_t to, int fd, uint64_t *ret_owner)
{
    uint16_t port = peer_port(fd);

    for (struct pending **at = &n->pending; port != 0 && *at != NULL; at = &(*at)->next) {
        struct pending *p = *at;

        if (p->port != port) {
            continue;
        }

        bool is_ours = own_port(p->fd) == port && peer_port(p->fd) == to;

        *ret_owner = p->owner;
        *at = p->next;
        pending_free(n, p);
        return is_ours;
    }
    return false;
}

static bool
admit(void *arg, size_t listener, int fd, uint64_t *ret_owner)
{
    struct network *n = arg;
    uint16_t to = listener == 0 || n->socks_port == 0 ? n->port : n->socks_port;
    bool is_known = take_pending(n, to, fd, ret_owner);

    if (is_known || !n->is_handed_in) {
        return is_known;
    }
    *ret_owner = n->seats != NULL && n->seats->next == NULL ? n->seats->id : 0;
    return true;
}

/* Plain YAML has no brackets, and no '*' in front. */
static void
fix_text(char *ret, size_t size, const char *hint)
{
    const char *quote = strpbrk(hint, "[]* ") != NULL ? "\"" : "";

    (void)snprintf(ret, size, "network.allow: [%s%s%s]", quote, hint, quote);
}

static void
tell_denied(struct network_seat *seat, const struct proxy_verdict *v, bool is_sure)
{
    char object[HOST_AUTHORITY_MAX + 8];
    char fix[HOST_AUTHORITY_MAX + 40];
    struct denial d = {
        .layer = DENIAL_PROXY,
        .confidence = is_sure ? DENIAL_EXACT : DENIAL_INFERRED,
        .operation = "connect",
        .object = object,
        .rule = mem_unconst(v->why),
        .fix = v->hint[0] != '\0' ? fix : NULL,
    };

    (void)snprintf(object, sizeof(object), strchr(v->host, ':') != NULL ? "[%s]:%u" : "%s:%u",
                   v->host, (unsigned)v->port);
    fix_text(fix, sizeof(fix), v->hint);
    if (denial_add(&seat->denials, &d) != SY_E_OK) {
        seat->denials.more++;
    }
}

static void
note_host(struct network_seat *seat, const struct proxy_verdict *v)
{
    char host[HOST_AUTHORITY_MAX + 8];

    (void)snprintf(host, sizeof(host), strchr(v->host, ':') != NULL ? "[%s]:%u" : "%s:%u", v->host,
                   (unsigned)v->port);
    for (size_t i = 0; i < seat->hosts.n; i++) {
        if (str_eq(seat->hosts.v[i], host)) {
            return;
        }
    }
    if (strv_add(&seat->hosts, host) != SY_E_OK) {
        return; /* beyond the most, or without memory: it is missing from the list */
    }
}

/* Rules come after the list: they take back what it allows, and allow what it does not name. */
static void
judge_host(void *arg, const char *protocol, const struct host *h, uint16_t port,
           struct judgement *j)
{
    const struct network *n = arg;
    char why[SY_ERR_MSG_MAX];

    if (n->judge->host == NULL) {
        return;
    }
    switch (n->judge->host(n->judge->arg, protocol, h->text, why)) {
    case ASSESS_HOST_REFUSED:
        *j = (struct judgement){.is_allowed = false};
        (void)snprintf(j->why, sizeof(j->why), "%s", why);
        break;
    case ASSESS_HOST_ALLOWED:
        if (!j->is_allowed && (port == 80 || port == 443)) {
            *j = (struct judgement){.is_allowed = true, .rule = "a rule"};
        }
        break;
    case ASSESS_HOST_OPEN:
        break;
    }
}

static void
on_verdict(void *arg, const struct proxy_verdict *v)
{
    struct network *n = arg;

    for (struct network_seat *s = n->seats; s != NULL; s = s->next) {
        if (v->owner != 0 && v->owner != s->id) {
            continue;
        }
        switch (v->outcome) {
        case PROXY_ALLOWED:
            note_host(s, v);
            break;
        case PROXY_DENIED:
            tell_denied(s, v, v->owner != 0);
            break;
        case PROXY_MALFORMED:
        case PROXY_FAILED:
            break;
        }
    }
}

/*
 * Whether the last round left descriptors that libuv has not given to epoll yet: it does so when
 * it polls the next time, and until then the backend's descriptor does not speak for them. The
 * queue is a ring whose head points to itself when it is empty, in every libuv 1.x.
 */
static bool
has_unpolled(const uv_loop_t *loop)
{
    const void *first = NULL;

    memcpy(&first, &loop->watcher_queue, sizeof(first));
    return first != &loop->watcher_queue;
}

static void
run(struct network *n)
{
    int rounds = 0;

    do {
        (void)uv_run(&n->loop, UV_RUN_NOWAIT);
    } while (has_unpolled(&n->loop) && ++rounds < STEP_ROUNDS);

    int ms = uv_backend_timeout(&n->loop);
    uint64_t now = clock_mono_ns();

    n->deadline_ns = ms < 0 ? UINT64_MAX : now + (uint64_t)ms * 1000000U;
    if (has_unpolled(&n->loop)) {
        n->deadline_ns = now;
    }
}

static enum sy_code
listen_on_loopback(struct network *n, struct sy_error *err)
{
    SY_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
        return sy_err_sys(err, errno, "a listening socket on 127.0.0.1 for the network proxy");
    }

    uint16_t port = own_port(fd);
    enum sy_code rc = proxy_listen_fd(n->proxy, &fd, PROXY_ANY, err);

    if (rc == SY_E_OK) {
        n->port = port;
        run(n);
    }
    return rc;
}

static void
on_closed(void *arg)
{
    struct network *n = arg;

    n->is_closed = true;
}

static void
free_memory(struct network *n)
{
    allow_free(n->list);
    mem_free(n);
}

/* What an entry for this machine itself begins with. */
static bool
names_loopback(const struct strv *allow)
{
    static const char *const begins[] = {"127.", "[::1]", "localhost", "*.localhost", "0.0.0.0"};

    for (size_t i = 0; i < allow->n; i++) {
        for (size_t k = 0; k < sizeof(begins) / sizeof(begins[0]); k++) {
            if (strncasecmp(allow->v[i], begins[k], strlen(begins[k])) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum sy_code
network_new(struct network **ret, const struct strv *allow, const struct assess_by *judge,
            struct sy_error *err)
{
    struct network *n = mem_alloc_zero(1, sizeof(*n));
    const struct proxy_options options = {
        .admit = admit,
        .on_verdict = on_verdict,
        .judge = judge_host,
        .arg = n,
    };

    if (n == NULL) {
        return sy_err_nomem(err);
    }
    n->judge = judge;
    n->deadline_ns = UINT64_MAX;

    enum sy_code rc = allow_new(&n->list, (const char *const *)strv_view(allow), allow->n, err);
    int uv = rc == SY_E_OK ? -fd_check_room(FD_ROOM_LOOP) : 0;

    if (rc == SY_E_OK && uv == 0) {
        uv = uv_loop_init(&n->loop);
    }
    if (rc != SY_E_OK || uv != 0) {
        free_memory(n);
        return rc != SY_E_OK ? rc : sy_err_sys(err, -uv, "an event loop for the network proxy");
    }
    n->names_loopback = names_loopback(allow);
    rc = proxy_new(&n->proxy, &n->loop, n->list, &options, err);
    if (rc != SY_E_OK) {
        network_free(n);
        return rc;
    }
    run(n);
    *ret = n;
    return SY_E_OK;
}

void
network_free(struct network *n)
{
    if (n == NULL) {
        return;
    }
    SY_ASSERT(n->seats == NULL);
    drop_pending(n, 0);
    if (n->proxy != NULL) {
        proxy_close(n->proxy, on_closed, n);
        n->proxy = NULL;
    }
    for (int i = 0; i < STEP_ROUNDS && uv_run(&n->loop, UV_RUN_NOWAIT) != 0; i++) {
    }
    /* A name that is being resolved has a thread that will write here. */
    if (uv_loop_close(&n->loop) == 0) {
        free_memory(n);
    } else {
        is_waiting = true;
    }
}

enum sy_code
network_hand_in(struct network *n, int *http_fd, int *socks_fd, struct sy_error *err)
{
    SY_FD http = fd_take(http_fd);
    SY_FD socks = fd_take(socks_fd);

    SY_ASSERT(!n->is_handed_in && n->port == 0 && n->seats == NULL);
    n->is_handed_in = true;
    n->port = own_port(http);
    n->socks_port = own_port(socks);

    enum sy_code rc = proxy_listen_fd(n->proxy, &http, PROXY_HTTP, err);

    rc = rc == SY_E_OK ? proxy_listen_fd(n->proxy, &socks, PROXY_SOCKS, err) : rc;
    run(n);
    return rc;
}

enum sy_code
network_join(struct network *n, struct network_seat **ret, struct sy_error *err)
{
    enum sy_code rc = n->port == 0 ? listen_on_loopback(n, err) : SY_E_OK;
    struct network_seat *s = rc == SY_E_OK ? mem_alloc_zero(1, sizeof(*s)) : NULL;

    if (s == NULL) {
        return rc != SY_E_OK ? rc : sy_err_nomem(err);
    }
    s->fd = fcntl(uv_backend_fd(&n->loop), F_DUPFD_CLOEXEC, 0);
    if (s->fd < 0) {
        int sys = errno;

        mem_free(s);
        return sy_err_sys(err, sys, "a descriptor of the network proxy's event loop");
    }
    s->network = n;
    s->id = ++n->last_id;
    s->hosts.max = NETWORK_HOSTS;
    s->gate = (struct process_gate){
        .port = n->port, .socks_port = n->socks_port, .on_connected = on_connected, .arg = s};
    s->next = n->seats;
    n->seats = s;
    *ret = s;
    return SY_E_OK;
}

void
network_leave(struct network_seat *seat)
{
    if (seat == NULL) {
        return;
    }

    struct network *n = seat->network;

    for (struct network_seat **at = &n->seats; *at != NULL; at = &(*at)->next) {
        if (*at == seat) {
            *at = seat->next;
            break;
        }
    }
    drop_pending(n, seat->id);
    proxy_end_owner(n->proxy, seat->id);
    if (n->seats == NULL) {
        proxy_end_owner(n->proxy, 0);
    }
    run(n);
    fd_close(&seat->fd);
    denial_list_fini(&seat->denials);
    strv_fini(&seat->hosts);
    mem_free(seat);
}

const struct process_gate *
network_gate(const struct network_seat *seat)
{
    return &seat->gate;
}

enum sy_code
network_environment(const struct network_seat *seat, struct strv *env, struct sy_error *err)
{
    const struct network *n = seat->network;
    const struct proxy_environment p = {
        .http_port = n->port,
        .socks_port = n->socks_port != 0 ? n->socks_port : n->port,
        .is_loopback_direct = n->is_handed_in && !n->names_loopback,
    };

    return proxy_environment_apply(env, &p, err);
}

int
network_seat_fd(const struct network_seat *seat)
{
    return seat->fd;
}

uint64_t
network_deadline_ns(const struct network_seat *seat)
{
    return seat->network->deadline_ns;
}

void
network_step(struct network_seat *seat)
{
    run(seat->network);
}

const struct denial_list *
network_denials(const struct network_seat *seat)
{
    return &seat->denials;
}

const struct strv *
network_hosts(const struct network_seat *seat)
{
    return &seat->hosts;
}
