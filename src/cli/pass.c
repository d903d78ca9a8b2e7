#include "cli/pass.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

const struct cli_option cli_pass_options[] = {
    {'s', "sandbox",   "MODE", "read-only|workspace-write|danger-full-access|external-sandbox",
     "sandbox mode, instead of the configured one"                                                                                          },
    {'C', "cwd",       "DIR",  "DIR",                                                           "work in DIR, which is then the workspace"  },
    CLI_OPTION_CONFIG,
    {0,   "no-daemon", NULL,   NULL,                                                            "do the work in this process, daemon or not"},
    CLI_OPTION_END,
};

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

/* Makes signals that ask for the end readable: the daemon is told, and ends things in order. */
static int
watch_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++) {
        (void)sigaddset(&set, stop_signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Status to end with after a second signal, -1 for the first one. */
static int
on_signal(int signals_fd, const struct pass_client *c, bool *is_asked)
{
    struct signalfd_siginfo info;

    if (read(signals_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return -1;
    }
    if (*is_asked) {
        return 128 + (int)info.ssi_signo;
    }
    *is_asked = true;
    (void)shutdown(c->fd, SHUT_WR);
    return -1;
}

/* What the daemon said at its end, and what it can't know: what the pumps lost. */
static int
end_of(const struct hello_answer *answer, const struct pass_pumps *pumps)
{
    if (pumps->why.code != SY_E_OK) {
        return cli_fail(&pumps->why); /* the daemon's sentence tells of what follows from it */
    }
    if (answer->sentence[0] != '\0') {
        cli_note("%s", answer->sentence);
    }
    return (int)answer->number;
}

/* The daemon serves; until it says that it has ended. Returns the status. */
static int
wait_for_end(struct pass_client *c, struct pass_pumps *pumps)
{
    SY_FD signals_fd = watch_signals();
    bool is_asked = false;
    bool has_failed = false;

    for (;;) {
        struct pollfd fds[4] = {
            {.fd = c->fd,      .events = POLLIN},
            {.fd = signals_fd, .events = POLLIN}
        };
        struct hello_answer answer;
        struct sy_error err = {0};

        pass_pumps_want(pumps, &fds[2]);
        if (poll(fds, 4, -1) < 0) {
            continue; /* EINTR; nothing else can happen to these */
        }
        if (fds[1].revents != 0) {
            int status = on_signal(signals_fd, c, &is_asked);

            if (status >= 0) {
                return status;
            }
        }
        pass_pumps_step(pumps, &fds[2]);
        if (pumps->why.code != SY_E_OK && !has_failed) {
            /* As without a daemon: calls whose answers nobody gets end. */
            has_failed = true;
            (void)shutdown(c->fd, SHUT_WR);
        }
        if (fds[0].revents == 0) {
            continue;
        }

        enum sy_code rc = pass_try_read(&answer, c, &err);

        if (rc == SY_E_LIMIT) {
            continue;
        }
        pass_pumps_finish(pumps);
        if (rc != SY_E_OK) {
            return cli_fail(&err);
        }
        return end_of(&answer, pumps);
    }
}

/* Up to the daemon's word whether it serves us. */
static enum cli_pass
begin(int *ret_status, struct pass_client *c, struct sy_error *err)
{
    uint64_t deadline_ns = pass_deadline_ns();
    struct hello_answer answer = {0};

    for (;;) {
        if (pass_read(&answer, c, deadline_ns, err) != SY_E_OK) {
            if (err->sys == EPIPE) {
                /* Before it said that it serves us it has touched nothing of ours. */
                cli_note("not served by the daemon: it ended before it answered");
                return PASS_OWN;
            }
            *ret_status = cli_fail(err);
            return PASS_DONE;
        }
        switch (answer.kind) {
        case HELLO_NOTE:
            cli_note("%s", answer.sentence);
            break;
        case HELLO_OWN:
            cli_note("not served by the daemon: %s", answer.sentence);
            return PASS_OWN;
        case HELLO_ERROR:
        case HELLO_END:
            cli_note("%s", answer.sentence);
            *ret_status = (int)answer.number;
            return PASS_DONE;
        case HELLO_OK:
            return PASS_ALONE; /* which is to be waited for */
        }
    }
}

static enum cli_pass
failed_to_open(int *ret_status, enum sy_code rc, const struct sy_error *err)
{
    if (rc == SY_E_NOTFOUND) {
        return PASS_ALONE;
    }
    if (rc == SY_E_LIMIT || rc == SY_E_DENIED) {
        cli_note("not served by the daemon: %s", err->msg);
        return PASS_OWN;
    }
    *ret_status = cli_fail(err);
    return PASS_DONE;
}

enum cli_pass
cli_pass(int *ret_status, const char *protocol, char *const *words, const struct stat *program,
         const int stdio[2])
{
    struct pass_pumps pumps = PASS_PUMPS_NONE;
    struct pass_client c;
    struct sy_error err = {0};
    int fds[2];
    int far[2] = {-1, -1};
    enum sy_code rc = pass_pumps_open(&pumps, fds, far, stdio, &err);

    if (rc == SY_E_OK) {
        rc = pass_open(&c, protocol, words, program, fds, &err);
    }
    fd_close(&far[0]);
    fd_close(&far[1]);

    enum cli_pass pass = PASS_DONE;

    if (rc != SY_E_OK) {
        pass = failed_to_open(ret_status, rc, &err);
    } else {
        pass = begin(ret_status, &c, &err);
        if (pass == PASS_ALONE) {
            *ret_status = wait_for_end(&c, &pumps);
            pass = PASS_DONE;
        }
        pass_close(&c);
    }
    fd_close(&pumps.in_to);
    fd_close(&pumps.out_from);
    mem_free(pumps.bytes);
    return pass;
}
