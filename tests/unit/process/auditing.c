#include "auditing.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/netlink.h>

#include "base/fd.h"

#define ANSWER_MS     5000
#define FAILURE_PANIC 2

struct message {
    struct nlmsghdr head;
    struct audit_status status;
};

/* Each question has one answer: the status, or an error, be it none. */
static bool
ask(int fd, struct message *m)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};

    return send(fd, m, m->head.nlmsg_len, 0) > 0 && poll(&answer, 1, ANSWER_MS) > 0 &&
           recv(fd, m, sizeof(*m), 0) > 0;
}

static bool
may_read(int fd)
{
    const int group = AUDIT_NLGRP_READLOG;

    return access("/proc/sys/net/core/netdev_budget", F_OK) == 0 &&
           setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0;
}

int
auditing(int to)
{
    struct message set = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(set.status)),
                 .nlmsg_type = AUDIT_SET,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .status = {.mask = AUDIT_STATUS_ENABLED,                                             .enabled = to > 0 ? 1 : 0},
    };
    struct message get = {
        .head = {.nlmsg_len = NLMSG_LENGTH(0),
                 .nlmsg_type = AUDIT_GET,
                 .nlmsg_flags = NLM_F_REQUEST},
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
    int ret = -1;

    if (fd >= 0 && (to < 0 || ask(fd, &set)) && ask(fd, &get) && get.head.nlmsg_type == AUDIT_GET &&
        get.status.failure != FAILURE_PANIC && may_read(fd)) {
        ret = get.status.enabled != 0 ? 1 : 0;
    }
    fd_close(&fd);
    return ret;
}
