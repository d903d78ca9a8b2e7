/*
 * shellyard-launch: the process in whose user namespace sandboxes of the full
 * tier stand. Small, static and single-threaded: what it forks costs little,
 * however large the engine is.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "launcher/launcher_internal.h"

static void
start_template(struct yard *y, int control_fd, const int fds[LAUNCH_FDS])
{
    struct template_start start = {.policy_fd = fds[0], .channel_fd = fds[1], .engine_fd = fds[2]};
    struct failure f = {STAGE_NONE, 0, ""};
    static const int none[LAUNCH_FDS] = {-1, -1, -1, -1};

    if (!yard_open(y, &f)) {
        (void)send_report(start.channel_fd, &f, none);
        return;
    }

    pid_t pid = fork();

    if (pid == 0) {
        fd_close(&control_fd);
        template_run(y, &start);
    }
    if (pid < 0) {
        (void)failed(&f, STAGE_CLONE, errno, "a template");
        (void)send_report(start.channel_fd, &f, none);
    }
}

/* False: the engine is gone, or speaks another version. */
static bool
take_request(struct yard *y, int control_fd)
{
    struct launch_request request = {0};
    int fds[LAUNCH_FDS];
    ssize_t got = receive_with_fds(control_fd, &request, sizeof(request), fds);
    bool is_known = got == (ssize_t)sizeof(request) && request.version == LAUNCH_VERSION &&
                    request.kind == LAUNCH_TEMPLATE && fds[1] >= 0;

    if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (is_known) {
        start_template(y, control_fd, fds);
    }
    for (size_t i = 0; i < LAUNCH_FDS; i++) {
        fd_close(&fds[i]);
    }
    return is_known;
}

static int
serve(int control_fd)
{
    struct yard yard = {.is_open = false};
    struct pollfd waits = {.fd = control_fd, .events = POLLIN};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t all;

    /* Children need no waiting for, and nobody interrupts: who ends us ends the
     * channel. */
    sigaction(SIGCHLD, &ignore, NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "sy-launch", 0, 0, 0);
    for (;;) {
        if (poll(&waits, 1, -1) < 0 && errno != EINTR) {
            return EXIT_SETUP;
        }
        if (waits.revents != 0 && !take_request(&yard, control_fd)) {
            return 0;
        }
    }
}

int
main(int argc, char **argv)
{
    int64_t fd = -1;

    if (argc == 3 && str_eq(argv[1], "--control") && str_to_i64(&fd, argv[2], 3, 1023)) {
        return serve((int)fd);
    }
    if (argc >= 5 && str_eq(argv[1], "--policy") && str_to_i64(&fd, argv[2], 3, INT32_MAX) &&
        str_eq(argv[3], "--")) {
        return wrapper_run((int)fd, argv + 4);
    }
    (void)fprintf(stderr,
                  "usage: shellyard-launch --policy FD -- COMMAND [ARGUMENT...]\n"
                  "\n"
                  "Runs a command in a sandbox of Shellyard's full tier. The descriptor FD,\n"
                  "above 2, holds the policy as JSON. See shellyard-launch(1).\n");
    return EXIT_USAGE;
}
