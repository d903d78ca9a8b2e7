#include "cli/daemon.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

_Static_assert(STOP_SIGNALS == sizeof(((struct daemon *)0)->signals) / sizeof(uv_signal_t),
               "a handle for each signal");

/* Clients that one turn of the loop takes: the others wait no longer than those take. */
#define ACCEPTS 16

static void on_listening(uv_poll_t *poll, int status, int events);

static void
watch_listener(struct daemon *d)
{
    SY_ASSERT(uv_poll_start(&d->accept_poll, UV_READABLE, on_listening) == 0);
}

/* Whoever can't be served is told at once; what they still say is not read. */
static void
take_client(struct daemon *d, int fd)
{
    struct sy_error err = {0};
    struct peer peer;

    switch (peer_judge(&peer, fd, &d->self, &err)) {
    case PEER_STRANGER:
        LOG(LOG_WARN, "daemon", "a stranger was refused", kv_str("error", err.msg));
        (void)host_say(fd, HELLO_ERROR, (unsigned)sy_code_status(SY_E_DENIED), err.msg);
        break;
    case PEER_UNLIKE:
        LOG(LOG_INFO, "daemon", "a client was refused", kv_int("pid", peer.pid),
            kv_str("error", err.msg));
        (void)host_say(fd, HELLO_OWN, 0, err.msg);
        break;
    case PEER_SAME:
        if (d->n_callers < LIMIT_DAEMON_CLIENTS) {
            caller_open(d, fd, &peer);
            return;
        }
        (void)sy_err_set(&err, SY_E_LIMIT, "%u callers wait for it already", LIMIT_DAEMON_CLIENTS);
        (void)host_say(fd, HELLO_OWN, 0, err.msg);
        break;
    }
    fd_close(&fd);
}

/* Is it for want of something that a client which goes gives back? Then that is waited for. */
static void
look_why_none_came(struct daemon *d, int errnum)
{
    if (errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == ENOBUFS) {
        LOG(LOG_WARN, "daemon", "a caller has to wait", kv_str("error", sy_errno_text(errnum)));
        d->is_paused = true;
        uv_poll_stop(&d->accept_poll);
    }
}

static void
on_listening(uv_poll_t *poll, int status, int events)
{
    struct daemon *d = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(d->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0) {
            look_why_none_came(d, errno);
            return;
        }
        take_client(d, fd);
    }
}

/* A log that grows for ever would fill the disk; what is told last counts. */
static void
trim_log(const struct daemon *d)
{
    struct stat st;

    if (d->has_log_file && fstat(STDERR_FILENO, &st) == 0 && st.st_size > LIMIT_DAEMON_LOG &&
        ftruncate(STDERR_FILENO, 0) != 0) {
        LOG(LOG_WARN, "daemon", "the log can't be shortened",
            kv_str("error", sy_errno_text(errno)));
    }
}

/* The last one is gone: what kept the loop running. */
static void
end_loop(struct daemon *d)
{
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        uv_close((uv_handle_t *)&d->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&d->child_signal, NULL);
    uv_close((uv_handle_t *)&d->spare_timer, NULL);
    uv_close((uv_handle_t *)&d->idle_timer, NULL);
}

static void
look_whether_over(struct daemon *d)
{
    if (d->is_stopping && d->n_callers == 0 && d->n_hosts == 0 &&
        !uv_is_closing((uv_handle_t *)&d->idle_timer)) {
        end_loop(d);
    } else if (!d->is_stopping && d->ends_when_empty && d->may_end && d->n_callers == 0 &&
               daemon_hosts_are_idle(d)) {
        LOG(LOG_INFO, "daemon", "nothing is left to do", kv_int("pid", getpid()));
        daemon_stop(d);
    }
}

void
daemon_look(struct daemon *d)
{
    trim_log(d);
    if (d->is_paused && !d->is_stopping) {
        d->is_paused = false;
        watch_listener(d);
    }
    look_whether_over(d);
}

static void
on_idle(uv_timer_t *timer)
{
    struct daemon *d = timer->data;

    d->may_end = true;
    look_whether_over(d);
}

void
daemon_stop(struct daemon *d)
{
    if (d->is_stopping) {
        return;
    }
    d->is_stopping = true;
    uv_close((uv_handle_t *)&d->accept_poll, NULL);
    /* From now on whoever starts finds no socket, and a new daemon can't be up before this one
     * has ended: the lock is kept. */
    (void)unlinkat(d->listener.dir_fd, LOCAL_SOCKET, 0);

    struct caller *next = NULL;

    for (struct caller *c = d->callers; c != NULL; c = next) {
        next = c->next;
        caller_stop(c);
    }
    daemon_hosts_stop(d);
    /* From the loop: whoever stops may be a connection. */
    SY_ASSERT(uv_timer_start(&d->idle_timer, on_idle, 0, 0) == 0);
}

static void
on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    daemon_stop(handle->data);
}

/* Hosts are our children; how they ended says the end of their channel. */
static void
on_child(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

enum sy_code
daemon_open(struct daemon *d, struct sy_error *err)
{
    struct stat program;
    int rc = 0;

    if (stat("/proc/self/exe", &program) != 0) {
        return sy_err_sys(err, errno, "looking at this program's file");
    }
    local_build(d->build, &program);
    if (peer_facts_read(&d->self, 0, err) != SY_E_OK) {
        return SY_E_SYS;
    }
    d->started_ns = clock_mono_ns();
    rc = uv_poll_init(&d->loop, &d->accept_poll, d->listener.fd);
    SY_ASSERT(uv_timer_init(&d->loop, &d->idle_timer) == 0);
    d->accept_poll.data = d;
    SY_ASSERT(uv_timer_init(&d->loop, &d->spare_timer) == 0);
    d->idle_timer.data = d;
    d->spare_timer.data = d;
    for (size_t i = 0; i < STOP_SIGNALS && rc == 0; i++) {
        rc = uv_signal_init(&d->loop, &d->signals[i]);
        d->signals[i].data = d;
        rc = rc == 0 ? uv_signal_start(&d->signals[i], on_signal, stop_signals[i]) : rc;
    }
    rc = rc == 0 ? uv_signal_init(&d->loop, &d->child_signal) : rc;
    rc = rc == 0 ? uv_signal_start(&d->child_signal, on_child, SIGCHLD) : rc;
    if (rc != 0) {
        return sy_err_sys(err, -rc, "making the daemon's event loop");
    }
    daemon_hosts_open(d);
    watch_listener(d);
    /* Whoever started it is about to come. */
    SY_ASSERT(uv_timer_start(&d->idle_timer, on_idle, LIMIT_HELLO_WAIT_MS, 0) == 0);
    return SY_E_OK;
}
