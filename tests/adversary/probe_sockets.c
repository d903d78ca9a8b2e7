/* Acts on sockets: PROBE_PORT listens on 127.0.0.1 and ::1, by TCP and UDP. */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "probe.h"

static const struct sockaddr *
target4(void)
{
    static struct sockaddr_in to;

    to = (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_addr = {htonl(INADDR_LOOPBACK)},
                              .sin_port = htons((uint16_t)probe_env_number("PROBE_PORT"))};
    return (const struct sockaddr *)&to;
}

static const struct sockaddr *
target6(void)
{
    static struct sockaddr_in6 to;

    to = (struct sockaddr_in6){.sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                               .sin6_port = htons((uint16_t)probe_env_number("PROBE_PORT"))};
    return (const struct sockaddr *)&to;
}

static int
connect_by(int family, int type, int protocol, const struct sockaddr *to, socklen_t len)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);

    return fd < 0 ? errno : probe_result(connect(fd, to, len));
}

static int
make_only(int family, int type, int protocol)
{
    return probe_result(socket(family, type | SOCK_CLOEXEC, protocol));
}

static int
act_tcp(void)
{
    return connect_by(AF_INET, SOCK_STREAM, 0, target4(), sizeof(struct sockaddr_in));
}

static int
act_tcp6(void)
{
    return connect_by(AF_INET6, SOCK_STREAM, 0, target6(), sizeof(struct sockaddr_in6));
}

static int
act_mptcp(void)
{
    return connect_by(AF_INET, SOCK_STREAM, 262, target4(), sizeof(struct sockaddr_in));
}

static int
act_fast_open(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? errno
                  : probe_result(sendto(fd, "leak", 4, MSG_FASTOPEN | MSG_NOSIGNAL, target4(),
                                        sizeof(struct sockaddr_in)));
}

static int
act_udp(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? errno
                  : probe_result(sendto(fd, "leak", 4, 0, target4(), sizeof(struct sockaddr_in)));
}

static int
act_listen(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? errno : probe_result(listen(fd, 1));
}

/* A server and its client in one command. */
static int
serve_own(int type)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int server = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    char got = '\0';

    if (server < 0 || client < 0 || bind(server, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        getsockname(server, (struct sockaddr *)(void *)&at, &len) != 0 ||
        (type == SOCK_STREAM && listen(server, 1) != 0) ||
        connect(client, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        send(client, "x", 1, MSG_NOSIGNAL) != 1) {
        return errno;
    }

    int end = type == SOCK_STREAM ? accept4(server, NULL, NULL, SOCK_CLOEXEC) : server;

    return end >= 0 && recv(end, &got, 1, 0) == 1 && got == 'x' ? 0 : errno;
}

static int
act_own_server(void)
{
    return serve_own(SOCK_STREAM);
}

static int
act_own_server_udp(void)
{
    return serve_own(SOCK_DGRAM);
}

/* Outside of a sandbox it may be there, or nobody answers: never waited for. */
static int
act_metadata(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(0xa9fea9feU)}, /* 169.254.169.254 */
                             .sin_port = htons(80)};

    return connect_by(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, (const struct sockaddr *)&to,
                      sizeof(to));
}

/* 192.0.2.53: a name server that answers nobody (RFC 5737). */
static const struct sockaddr *
name_server(void)
{
    static struct sockaddr_in to;

    to = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = {htonl(0xc0000235U)}, .sin_port = htons(53)};
    return (const struct sockaddr *)&to;
}

static int
act_dns(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0
               ? errno
               : probe_result(sendto(fd, "leak", 4, 0, name_server(), sizeof(struct sockaddr_in)));
}

static int
act_dns_connected(void)
{
    return connect_by(AF_INET, SOCK_DGRAM, 0, name_server(), sizeof(struct sockaddr_in));
}

static int
act_raw(void)
{
    return make_only(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int
act_packet(void)
{
    return make_only(AF_PACKET, SOCK_RAW, 0);
}

static int
act_vsock(void)
{
    return make_only(AF_VSOCK, SOCK_STREAM, 0);
}

static int
act_alg(void)
{
    return make_only(AF_ALG, SOCK_SEQPACKET, 0);
}

static int
act_netlink_generic(void)
{
    return make_only(AF_NETLINK, SOCK_RAW, 16);
}

static int
act_netlink_route(void)
{
    return make_only(AF_NETLINK, SOCK_RAW, 0);
}

static int
act_unix_datagram(void)
{
    return make_only(AF_UNIX, SOCK_DGRAM, 0);
}

static int
act_abstract(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *name = probe_env("PROBE_ABSTRACT");
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));

    (void)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s", name);
    return connect_by(AF_UNIX, SOCK_STREAM, 0, (const struct sockaddr *)(const void *)&to, len);
}

/* Past connect(2), if such a socket could be made. */
static int
act_abstract_datagram(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *name = probe_env("PROBE_ABSTRACT");
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s", name);
    return fd < 0 ? errno
                  : probe_result(
                        sendto(fd, "leak", 4, 0, (const struct sockaddr *)(const void *)&to, len));
}

static int
act_unix_outside(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", probe_env("PROBE_SOCKET"));
    return connect_by(AF_UNIX, SOCK_STREAM, 0, (const struct sockaddr *)(const void *)&to,
                      sizeof(to));
}

/* Bound, listened to, connected and asked for its names by one process. */
static int
act_unix_inside(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(at);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int size = 4096;

    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/own.sock", probe_env("PROBE_INSIDE"));
    (void)unlink(at.sun_path);
    if (bind(listener, (const struct sockaddr *)(const void *)&at, sizeof(at)) != 0 ||
        listen(listener, 1) != 0 ||
        setsockopt(client, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) != 0 ||
        connect(client, (const struct sockaddr *)(const void *)&at, sizeof(at)) != 0) {
        return errno;
    }
    return probe_result(getsockname(client, (struct sockaddr *)(void *)&at, &len));
}

static int
act_socket_pair(void)
{
    int pair[2];

    return probe_result(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
}

const struct probe_act probe_socket_acts[] = {
    {"tcp",               act_tcp              },
    {"tcp6",              act_tcp6             },
    {"mptcp",             act_mptcp            },
    {"fast-open",         act_fast_open        },
    {"udp",               act_udp              },
    {"listen",            act_listen           },
    {"own-server",        act_own_server       },
    {"own-server-udp",    act_own_server_udp   },
    {"metadata",          act_metadata         },
    {"dns",               act_dns              },
    {"dns-connected",     act_dns_connected    },
    {"raw",               act_raw              },
    {"packet",            act_packet           },
    {"vsock",             act_vsock            },
    {"alg",               act_alg              },
    {"netlink-generic",   act_netlink_generic  },
    {"netlink-route",     act_netlink_route    },
    {"unix-datagram",     act_unix_datagram    },
    {"abstract",          act_abstract         },
    {"abstract-datagram", act_abstract_datagram},
    {"unix-outside",      act_unix_outside     },
    {"unix-inside",       act_unix_inside      },
    {"socket-pair",       act_socket_pair      },
};

const size_t probe_n_socket_acts = sizeof(probe_socket_acts) / sizeof(probe_socket_acts[0]);
