/* The network namespace of a template. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "launcher/launcher_internal.h"

/* It begins with a loopback interface that is down, and no other. */
bool
network_raise_loopback(struct failure *f)
{
    SY_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        return failed(f, STAGE_LOOPBACK, errno, NULL);
    }
    return true;
}

bool
network_bind_loopback(int *ret_fd, uint16_t port, struct failure *f)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    SY_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
        return failed(f, STAGE_LOOPBACK, errno, "a socket for the network proxy");
    }
    *ret_fd = fd_take(&fd);
    return true;
}
