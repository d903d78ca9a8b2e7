#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "yard.h"

/* How the process inside ends. */
enum { INSIDE_OK, INSIDE_NO_NAMESPACE, INSIDE_NO_LOOPBACK, INSIDE_NO_PROXY, INSIDE_DIRECT };

static bool
send_fd(int channel, int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    return sendmsg(channel, &m, MSG_NOSIGNAL) == 1;
}

/* -1: the other side ended without one. */
static int
receive_fd(int channel)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    int fd = -1;

    if (recvmsg(channel, &m, MSG_CMSG_CLOEXEC) == 1 && control.header.cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
    }
    return fd;
}

static bool
set_loopback_up(void)
{
    SY_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};

    request.ifr_flags = IFF_UP;
    return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

static int
connect_to(uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    SY_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&in, sizeof(in)) != 0) {
        return -1;
    }
    return fd_take(&fd);
}

/* Makes the namespace and the socket, then asks the proxy for the server. */
static int
inside(int channel, uint16_t server_port)
{
    static const char ok[] = "HTTP/1.1 200 ";
    char text[200];
    char answer[sizeof(ok)] = "";
    uint16_t port = 0;
    int flags = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;

    if (unshare(flags) != 0) {
        return INSIDE_NO_NAMESPACE;
    }
    if (!set_loopback_up()) {
        return INSIDE_NO_LOOPBACK;
    }

    SY_FD listener = yard_listener(&port, 16);
    SY_FD proxy = -1;

    if (listener < 0 || !send_fd(channel, listener)) {
        return INSIDE_NO_PROXY;
    }
    fd_close(&listener);
    proxy = connect_to(port);

    int n = snprintf(text, sizeof(text), "CONNECT local.test:%u HTTP/1.0\r\n\r\n",
                     (unsigned)server_port);

    if (proxy < 0 || send(proxy, text, (size_t)n, MSG_NOSIGNAL) != n ||
        recv(proxy, answer, sizeof(ok) - 1, MSG_WAITALL) != sizeof(ok) - 1 ||
        strcmp(answer, ok) != 0) {
        return INSIDE_NO_PROXY;
    }
    return connect_to(server_port) < 0 ? INSIDE_OK : INSIDE_DIRECT;
}

static void
a_socket_made_in_a_namespace_is_served_from_outside(void **state)
{
    static const struct proxy_options plain = {.max_connections = 0};
    int channel[2] = {-1, -1};
    int status = -1;
    struct yard y;

    (void)state;
    yard_open(&y, &plain, PROXY_ANY);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);

    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        fd_close(&channel[0]);
        _exit(inside(channel[1], y.server_port));
    }
    fd_close(&channel[1]);

    int fd = receive_fd(channel[0]);

    if (fd >= 0) {
        assert_int_equal(proxy_listen_fd(y.proxy, &fd, PROXY_ANY, NULL), SY_E_OK);
        /* Until the process has ended: its end of the channel is then closed. */
        assert_true(yard_run_until(&y, channel[0], POLLIN));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    fd_close(&channel[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == INSIDE_NO_NAMESPACE) {
        yard_close(&y);
        skip(); /* Neither root nor user namespaces. */
    }
    assert_int_equal(status, INSIDE_OK);
    yard_expect_verdict(&y, "allowed connect CONNECT local.test");
    yard_close(&y);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_made_in_a_namespace_is_served_from_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
