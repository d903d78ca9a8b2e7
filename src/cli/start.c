#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"

/*
 * A descriptor 0, 1 or 2 that is closed would be given to the next file that
 * we open, and output would go there. Fill the hole with something on which
 * the wrong direction fails loudly.
 */
static void
fill_standard_descriptors(void)
{
    struct pollfd fds[3] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};

    if (poll(fds, 3, 0) <= 0) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        if ((fds[i].revents & POLLNVAL) == 0) {
            continue;
        }

        /* To be inherited, as standard descriptors are; lint: allow open */
        int fd = open("/dev/null", (i == 0 ? O_WRONLY : O_RDONLY) | O_NOCTTY);

        if (fd >= 0 && fd != i) {
            (void)dup2(fd, i);
        }
    }
}

void
cli_start(void)
{
    /* Writing to a closed pipe is an error to answer, not a death. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    fill_standard_descriptors();
    (void)sigaction(SIGPIPE, &ignore, NULL);
}
