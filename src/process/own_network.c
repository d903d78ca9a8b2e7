#include "process/own_network.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "process/broker.h"
#include "process/limited.h"
#include "process/process_internal.h"

#define SEARCH_NS 20000000ULL

static bool
ask(int fd, int family, uint16_t port)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = { .sdiag_family = (uint8_t)family,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_states = 1U << TCP_LISTEN,
                   .id = {.idiag_sport = htons(port)}}
    };

    return send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question);
}

/* Would a connection to that address come to this socket? One for all of IPv6 is for IPv4 as well,
 * unless it says otherwise, which is rare: then we are wrong. */
static bool
listens_at(const struct inet_diag_msg *m, const struct broker_address *a)
{
    uint32_t words[4];
    bool is_any = true;

    memcpy(words, m->id.idiag_src, sizeof(words));
    for (size_t i = 0; i < (m->idiag_family == AF_INET ? 1 : 4); i++) {
        is_any = is_any && words[i] == 0;
    }
    if (is_any || a->is_any) {
        return true;
    }
    return m->idiag_family == AF_INET ? !a->is_v6 && ntohl(words[0]) == a->ip
                                      : a->is_v6 && words[0] == 0 && words[1] == 0 &&
                                            words[2] == 0 && ntohl(words[3]) == 1;
}

/* One datagram of the dump. True: there is no more to come, or it is found. */
static bool
take(int fd, const struct broker_address *a, bool *ret_is_found)
{
    _Alignas(struct nlmsghdr) char reply[16384];
    ssize_t got = recv(fd, reply, sizeof(reply), 0);
    size_t at = 0;

    if (got <= 0) {
        return got == 0 || errno != EINTR;
    }
    while (at + sizeof(struct nlmsghdr) <= (size_t)got) {
        struct nlmsghdr h;
        struct inet_diag_msg m;

        memcpy(&h, reply + at, sizeof(h));
        if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > (size_t)got - at ||
            h.nlmsg_type != SOCK_DIAG_BY_FAMILY || h.nlmsg_len < NLMSG_LENGTH(sizeof(m))) {
            return true; /* the end, an error, or nothing that we know */
        }
        memcpy(&m, reply + at + NLMSG_HDRLEN, sizeof(m));
        if (m.id.idiag_sport == htons(a->port) && listens_at(&m, a)) {
            *ret_is_found = true;
            return true;
        }
        at += NLMSG_ALIGN((size_t)h.nlmsg_len);
    }
    return false;
}

bool
own_network_is_served_outside(const struct broker_address *a)
{
    static const int families[] = {AF_INET, AF_INET6};
    uint64_t until_ns = 0;
    bool is_found = false;

    for (size_t i = 0; i < 2 && !is_found; i++) {
        SY_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
        bool is_over = fd < 0 || !ask(fd, families[i], a->port);

        /* The first question may load modules of the kernel, which takes longer than a search. */
        until_ns = i == 0 ? clock_mono_ns() + SEARCH_NS : until_ns;
        while (!is_over && clock_mono_ns() < until_ns) {
            is_over = take(fd, a, &is_found);
        }
    }
    return is_found;
}

static int
option(int sock, int name)
{
    int value = -1;
    socklen_t size = sizeof(value);

    return getsockopt(sock, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/* Without waiting, too: on a loopback the answer has come before connect(2) returns. It stays the
 * caller's to read (SO_ERROR). */
static bool
was_refused(int sock, int sys)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);

    return sys == ECONNREFUSED ||
           (sys == EINPROGRESS && getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
            info.tcpi_state == TCP_CLOSE);
}

struct own_answer
own_network_connect(int sock, const struct broker_address *a, const void *bytes, size_t n)
{
    int domain = option(sock, SO_DOMAIN);
    struct own_answer answer = {.is_tcp = option(sock, SO_PROTOCOL) == IPPROTO_TCP};

    if ((domain == AF_INET || domain == AF_INET6) && !a->is_local) {
        answer.sys = ENETUNREACH; /* as the namespace has it */
        answer.miss = answer.is_tcp ? MISS_OUTSIDE : MISS_DATAGRAM;
        return answer;
    }
    answer.sys = limited_connect(sock, bytes, (socklen_t)n, NULL, BROKER_WAIT_MS);
    if (answer.sys == EBUSY) {
        answer.sys = ETIMEDOUT;
    }
    if (answer.is_tcp && was_refused(sock, answer.sys) && own_network_is_served_outside(a)) {
        answer.miss = MISS_HOST;
    }
    return answer;
}

/* A server of this machine, that is not on the command's loopback. */
static void
explain_host(struct sandbox_explanation *why, bool has_list, const char *object)
{
    const char *quote = object[0] == '[' ? "\"" : "";
    bool is_any = str_starts(object, "0.0.0.0:") || str_starts(object, "[::]:");

    if (has_list && why->is_allowed && str_starts(why->rule, "network.allow:")) {
        return; /* the list names it: through the proxy, as the rule says */
    }
    (void)snprintf(
        why->rule, sizeof(why->rule),
        "the command has a loopback of its own, which servers of this machine are not on");
    if (has_list && !is_any) {
        (void)snprintf(why->fix, sizeof(why->fix), "network.allow: [%s%s%s]", quote, object, quote);
    } else {
        (void)snprintf(why->fix, sizeof(why->fix), "sandbox.network_access: true");
    }
}

void
own_network_tell(struct process *p, const char *object, enum own_miss miss)
{
    struct sandbox_explanation why = {0};
    bool has_list = sandbox_plan_network(p->plan) == NETWORK_ALLOW_LIST;

    if (sandbox_explain(&why, p->plan, OPERATION_CONNECT, object, NULL) != SY_E_OK) {
        why = (struct sandbox_explanation){0};
    }
    if (miss == MISS_HOST) {
        explain_host(&why, has_list, object);
    } else if (miss == MISS_DATAGRAM && has_list) {
        (void)snprintf(why.rule, sizeof(why.rule),
                       "network.allow: TCP through the proxy and nothing else");
        (void)snprintf(why.fix, sizeof(why.fix), "sandbox.network_access: true");
    }
    process_tell_denial(p, miss == MISS_HOST ? DENIAL_NAMESPACE : DENIAL_BROKER,
                        sandbox_operation_name(OPERATION_CONNECT), object, &why);
}
