#include "process/audit.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/netlink.h>

#include "base/fd.h"
#include "base/mem.h"

/* Of the longest record, with its header. */
#define MESSAGE_BYTES (NLMSG_HDRLEN + AUDIT_MESSAGE_TEXT_MAX + 512)

/* More than a busy machine's kernel takes to answer. */
#define ANSWER_MS 1000

/* Domains whose makers are known. A domain lives as long as the last process under it. */
#define DOMAINS 64

struct domain {
    uint64_t id; /* 0: free */
    pid_t pid;
};

struct audit_reader {
    int fd;
    struct domain domains[DOMAINS];
    size_t next_domain;
    struct audit_record *kept[AUDIT_KEPT]; /* oldest first */
    size_t n;
    uint32_t lost;
    _Alignas(struct nlmsghdr) char message[MESSAGE_BYTES];
};

/* One question and its answer: is auditing on? */
static enum sy_code
ask_status(int fd, struct sy_error *why)
{
    const struct nlmsghdr question = {
        .nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = AUDIT_GET, .nlmsg_flags = NLM_F_REQUEST};
    _Alignas(struct nlmsghdr) char answer[NLMSG_SPACE(sizeof(struct audit_status)) + 256];

    if (send(fd, &question, question.nlmsg_len, MSG_DONTWAIT) < 0) {
        return sy_err_set(why, SY_E_NOTFOUND, "asking whether auditing is on: %s",
                          sy_errno_text(errno));
    }

    /* A thread of the kernel's answers. */
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    (void)poll(&ready, 1, ANSWER_MS);

    ssize_t got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
    const struct nlmsghdr *head = (const void *)answer;
    struct audit_status status = {0};

    if (got >= (ssize_t)NLMSG_LENGTH(sizeof(int32_t)) && head->nlmsg_type == NLMSG_ERROR) {
        int32_t sys = 0;

        memcpy(&sys, NLMSG_DATA(head), sizeof(sys));
        return sy_err_set(why, SY_E_NOTFOUND, "asking whether auditing is on: %s",
                          sy_errno_text(-sys));
    }
    if (got < (ssize_t)NLMSG_LENGTH(offsetof(struct audit_status, failure)) ||
        head->nlmsg_type != AUDIT_GET) {
        return sy_err_set(why, SY_E_NOTFOUND, "asking whether auditing is on: no answer");
    }

    size_t size = (size_t)got - NLMSG_HDRLEN;

    memcpy(&status, NLMSG_DATA(head), size < sizeof(status) ? size : sizeof(status));
    return status.enabled != 0 ? SY_E_OK
                               : sy_err_set(why, SY_E_NOTFOUND, "auditing is off on this machine");
}

static int
open_socket(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_AUDIT);

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int sys = errno;

        fd_close(&fd);
        errno = sys;
    }
    return fd;
}

enum sy_code
audit_reader_new(struct audit_reader **ret, struct sy_error *why)
{
    const int group = AUDIT_NLGRP_READLOG;
    SY_FD fd = open_socket();

    if (fd < 0) {
        return sy_err_set(why, SY_E_NOTFOUND, "the audit log can't be reached: %s",
                          sy_errno_text(errno));
    }

    enum sy_code rc = ask_status(fd, why);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) != 0) {
        return sy_err_set(why, SY_E_NOTFOUND, "the audit log may not be read: %s",
                          sy_errno_text(errno));
    }

    struct audit_reader *r = mem_alloc_zero(1, sizeof(*r));

    if (r == NULL) {
        return sy_err_nomem(why);
    }
    r->fd = fd_take(&fd);
    *ret = r;
    return SY_E_OK;
}

void
audit_reader_free(struct audit_reader *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < r->n; i++) {
        mem_free(r->kept[i]);
    }
    fd_close(&r->fd);
    mem_free(r);
}

int
audit_reader_fd(const struct audit_reader *r)
{
    return r->fd;
}

static void
learn_domain(struct audit_reader *r, const struct audit_record *record)
{
    r->domains[r->next_domain] = (struct domain){record->domain, record->pid};
    r->next_domain = (r->next_domain + 1) % DOMAINS;
}

static void
drop_kept(struct audit_reader *r, size_t i)
{
    mem_free(r->kept[i]);
    r->n--;
    memmove(&r->kept[i], &r->kept[i + 1], (r->n - i) * sizeof(r->kept[0]));
}

static void
keep(struct audit_reader *r, const struct audit_record *record)
{
    if (r->n == AUDIT_KEPT) {
        drop_kept(r, 0);
        r->lost++;
    }
    r->kept[r->n] = mem_alloc(sizeof(*record));
    if (r->kept[r->n] == NULL) {
        r->lost++;
        return;
    }
    *r->kept[r->n++] = *record;
}

static void
take_record(struct audit_reader *r, const struct nlmsghdr *head, size_t n)
{
    struct audit_record record;

    audit_record_parse(&record, head->nlmsg_type, NLMSG_DATA(head), n);
    switch (record.kind) {
    case AUDIT_REFUSED:
        keep(r, &record);
        break;
    case AUDIT_DOMAIN_OF:
        learn_domain(r, &record);
        break;
    case AUDIT_DOMAIN_FREED:
    case AUDIT_OTHER:
        break;
    }
}

/* Audit's messages count their length without the header, unlike other netlink's: one comes at
 * a time, and what was received tells how long it is. */
static void
drain(struct audit_reader *r)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        socklen_t size = sizeof(from);
        ssize_t got =
            recvfrom(r->fd, r->message, sizeof(r->message), 0, (struct sockaddr *)&from, &size);

        if (got < 0 && errno == ENOBUFS) {
            r->lost++;
        } else if (got < 0 && errno != EINTR) {
            return;
        } else if (got >= NLMSG_HDRLEN && from.nl_pid == 0) {
            take_record(r, (const void *)r->message, (size_t)got - NLMSG_HDRLEN);
        }
    }
}

static bool
is_of(const struct audit_reader *r, uint64_t domain, pid_t pid)
{
    for (size_t i = 0; i < DOMAINS; i++) {
        if (r->domains[i].id == domain && r->domains[i].pid == pid && domain != 0) {
            return true;
        }
    }
    return false;
}

uint32_t
audit_reader_take(struct audit_reader *r, pid_t pid, audit_fn *fn, void *arg)
{
    drain(r);
    for (size_t i = 0; i < r->n;) {
        if (is_of(r, r->kept[i]->domain, pid)) {
            fn(arg, r->kept[i]);
            drop_kept(r, i);
        } else {
            i++;
        }
    }

    uint32_t lost = r->lost;

    r->lost = 0;
    return lost;
}

void
audit_reader_forget(struct audit_reader *r, pid_t pid)
{
    for (size_t i = 0; i < DOMAINS; i++) {
        if (r->domains[i].pid == pid) {
            r->domains[i] = (struct domain){0, 0};
        }
    }
}
