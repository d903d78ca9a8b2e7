#include "process/audit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "process/audit_internal.h"
#include "sandbox/linux/landlock.h"

/* Of the longest record, with its header. */
#define MESSAGE_BYTES (NLMSG_HDRLEN + AUDIT_MESSAGE_TEXT_MAX + 512)

/* More than a busy machine's kernel takes to answer. */
#define ANSWER_MS 1000

/* Domains whose makers are known. */
#define DOMAINS 64

/* Records wait in the queue: the kernel gets so much time before it is asked again. */
#define AGAIN_NS 1000000ULL

#define NS_PER_MS 1000000ULL

/* auditctl -f 2: a record that is lost halts the machine. */
#define FAILURE_PANIC 2

struct domain {
    uint64_t id; /* 0: free */
    uint64_t stamp_ms;
    pid_t pid;
};

struct audit_reader {
    int fd;
    unsigned runs; /* that are open */
    struct domain domains[DOMAINS];
    size_t next_domain;
    struct audit_record *kept[AUDIT_KEPT]; /* oldest first */
    size_t n;
    uint32_t lost; /* how often records were, so far */
    uint32_t asked;
    uint32_t answered; /* the last question that was */
    uint32_t backlog;  /* how many records waited then */
    _Alignas(struct nlmsghdr) char message[MESSAGE_BYTES];
};

static bool
ask(int fd, uint32_t number)
{
    const struct nlmsghdr question = {.nlmsg_len = NLMSG_LENGTH(0),
                                      .nlmsg_type = AUDIT_GET,
                                      .nlmsg_flags = NLM_F_REQUEST,
                                      .nlmsg_seq = number};

    return send(fd, &question, question.nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* NLMSG_DATA(3), without taking `const` away. */
static const void *
payload_of(const struct nlmsghdr *m)
{
    return (const char *)m + NLMSG_HDRLEN;
}

/* Older kernels tell less; all of it is there since 2.6. */
static bool
read_status(struct audit_status *ret, const struct nlmsghdr *head, size_t n)
{
    const size_t needed = offsetof(struct audit_status, backlog) + sizeof(ret->backlog);

    *ret = (struct audit_status){0};
    if (head->nlmsg_type != AUDIT_GET || n < needed) {
        return false;
    }
    memcpy(ret, payload_of(head), n < sizeof(*ret) ? n : sizeof(*ret));
    return true;
}

/* Is auditing on, and harmless? */
static enum sy_code
ask_status(int fd, struct sy_error *why)
{
    _Alignas(struct nlmsghdr) char answer[NLMSG_SPACE(sizeof(struct audit_status)) + 256];
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    struct audit_status status;

    if (!ask(fd, 0)) {
        return sy_err_set(why, SY_E_NOTFOUND, "asking whether auditing is on: %s",
                          sy_errno_text(errno));
    }
    /* A thread of the kernel's answers. */
    (void)poll(&ready, 1, ANSWER_MS);

    ssize_t got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
    const struct nlmsghdr *head = (const void *)answer;

    if (got >= (ssize_t)NLMSG_LENGTH(sizeof(int32_t)) && head->nlmsg_type == NLMSG_ERROR) {
        int32_t sys = 0;

        memcpy(&sys, payload_of(head), sizeof(sys));
        return sy_err_set(why, SY_E_NOTFOUND,
                          "asking whether auditing is on: %s; it needs CAP_AUDIT_CONTROL and "
                          "CAP_AUDIT_READ outside of all containers",
                          sy_errno_text(-sys));
    }
    if (got < NLMSG_HDRLEN || !read_status(&status, head, (size_t)got - NLMSG_HDRLEN)) {
        return sy_err_set(why, SY_E_NOTFOUND, "asking whether auditing is on: no answer");
    }
    if (status.enabled == 0) {
        return sy_err_set(why, SY_E_NOTFOUND, "auditing is off on this machine (auditctl -e 1)");
    }
    /* Commands could fill the queue on purpose. */
    return status.failure != FAILURE_PANIC
               ? SY_E_OK
               : sy_err_set(why, SY_E_NOTFOUND,
                            "this machine halts when its audit log overflows (auditctl -f 2), "
                            "which a command could bring about");
}

/* What comes to us: answers, and Landlock's records. On a machine that is audited there is much
 * else, which is not for us to see. */
static bool
filter(int fd)
{
    /* BPF loads numbers in the network's order. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(AUDIT_RECORD_ACCESS), 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(AUDIT_RECORD_DOMAIN), 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(AUDIT_GET), 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(NLMSG_ERROR), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

/* To other network namespaces no record is sent, and nothing says so. Whose network is process 1's
 * may be hidden; what is one for the whole machine is shown in the first namespace alone. */
static bool
is_first_network(void)
{
    return access("/proc/sys/net/core/netdev_budget", F_OK) == 0;
}

static int
open_socket(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_AUDIT);

    if (fd >= 0 &&
        (!filter(fd) || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)) {
        int sys = errno;

        fd_close(&fd);
        errno = sys;
    }
    return fd;
}

enum sy_code
audit_reader_on(struct audit_reader **ret, int *fd)
{
    struct audit_reader *r = mem_alloc_zero(1, sizeof(*r));

    if (r == NULL) {
        return SY_E_NOMEM;
    }
    r->fd = fd_take(fd);
    *ret = r;
    return SY_E_OK;
}

enum sy_code
audit_reader_new(struct audit_reader **ret, int abi, struct sy_error *why)
{
    const int group = AUDIT_NLGRP_READLOG;

    if (abi < LANDLOCK_AUDIT_ABI) {
        return sy_err_set(why, SY_E_NOTFOUND,
                          "Landlock of this kernel writes nothing into the audit log (ABI %d; from "
                          "ABI %d on it does, Linux 6.15)",
                          abi, LANDLOCK_AUDIT_ABI);
    }

    SY_FD fd = open_socket();

    if (fd < 0) {
        return sy_err_set(why, SY_E_NOTFOUND, "the audit log can't be reached: %s",
                          sy_errno_text(errno));
    }

    enum sy_code rc = ask_status(fd, why);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (!is_first_network()) {
        return sy_err_set(why, SY_E_NOTFOUND,
                          "the audit log reaches none but the first network namespace, which this "
                          "is not, or can't be told to be");
    }
    if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) != 0) {
        return sy_err_set(why, SY_E_NOTFOUND,
                          "the audit log may not be read: %s; it needs CAP_AUDIT_READ",
                          sy_errno_text(errno));
    }
    return audit_reader_on(ret, &fd) == SY_E_OK ? SY_E_OK : sy_err_nomem(why);
}

/* Nobody wants anything of what was there up to now. */
static void
clear(struct audit_reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        mem_free(r->kept[i]);
    }
    r->n = 0;
    memset(r->domains, 0, sizeof(r->domains));
}

void
audit_reader_free(struct audit_reader *r)
{
    if (r == NULL) {
        return;
    }
    clear(r);
    fd_close(&r->fd);
    mem_free(r);
}

int
audit_reader_fd(const struct audit_reader *r)
{
    return r->fd;
}

static struct domain *
find_domain(struct audit_reader *r, uint64_t id)
{
    for (size_t i = 0; i < DOMAINS; i++) {
        if (r->domains[i].id == id) {
            return &r->domains[i];
        }
    }
    return NULL;
}

static void
learn_domain(struct audit_reader *r, const struct audit_record *record)
{
    struct domain *place = find_domain(r, record->domain);

    if (place == NULL) {
        place = find_domain(r, 0);
    }
    if (place == NULL) {
        place = &r->domains[r->next_domain];
        r->next_domain = (r->next_domain + 1) % DOMAINS;
        r->lost++; /* what comes of it, or waits here, is nobody's now */
    }
    *place = (struct domain){record->domain, record->stamp_ms, record->pid};
}

static void
drop_kept(struct audit_reader *r, size_t i)
{
    mem_free(r->kept[i]);
    r->n--;
    for (; i < r->n; i++) {
        r->kept[i] = r->kept[i + 1];
    }
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

/* Before a run is open all that comes is of others. */
static void
take_message(struct audit_reader *r, const struct nlmsghdr *head, size_t n)
{
    struct audit_record record;
    struct audit_status status;

    if (read_status(&status, head, n)) {
        r->answered = head->nlmsg_seq;
        r->backlog = status.backlog;
        return;
    }
    audit_record_parse(&record, head->nlmsg_type, payload_of(head), n);
    if (r->runs == 0 || record.domain == 0) {
        return;
    }
    switch (record.kind) {
    case AUDIT_REFUSED:
        keep(r, &record);
        break;
    case AUDIT_DOMAIN_OF:
        learn_domain(r, &record);
        break;
    case AUDIT_DOMAIN_FREED: /* its number is never used again */
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
        } else if (got == 0 || (got < 0 && errno != EINTR)) {
            return;
        } else if (got >= NLMSG_HDRLEN && from.nl_pid == 0) {
            take_message(r, (const void *)r->message, (size_t)got - NLMSG_HDRLEN);
        }
    }
}

void
audit_reader_begin(struct audit_reader *r, struct audit_run *run)
{
    drain(r);
    if (r->runs == 0) {
        clear(r);
    }
    r->runs++;
    *run = (struct audit_run){
        .is_open = true,
        .since_ms = (uint64_t)clock_file_ns() / NS_PER_MS,
        .lost = r->lost,
    };
}

void
audit_reader_end(struct audit_reader *r, struct audit_run *run)
{
    if (!run->is_open) {
        return;
    }
    run->is_open = false;
    r->runs--;
    if (r->runs == 0) {
        clear(r);
    }
}

bool
audit_reader_settle(struct audit_reader *r, struct audit_run *run, uint64_t now_ns)
{
    if (run->until_ns == 0) {
        run->until_ns = now_ns + AUDIT_SETTLE_MS * NS_PER_MS;
    }
    drain(r);
    /* An answer to a later question of another run is one to ours too. */
    if (run->asked != 0 && (int32_t)(r->answered - run->asked) >= 0) {
        run->asked = 0;
        run->empty = r->backlog == 0 ? run->empty + 1 : 0;
        run->again_ns = r->backlog == 0 ? now_ns : now_ns + AGAIN_NS;
    }
    if (run->empty >= (r->n > 0 ? 2U : 1U) || now_ns >= run->until_ns) {
        return true;
    }
    if (run->asked == 0 && now_ns >= run->again_ns) {
        r->asked = r->asked == UINT32_MAX ? 1 : r->asked + 1;
        run->asked = r->asked;
        run->again_ns = run->until_ns;
        if (!ask(r->fd, run->asked)) {
            run->until_ns = now_ns;
            return true;
        }
    }
    return false;
}

static bool
is_of(struct audit_reader *r, const struct audit_record *record, const struct audit_run *run,
      pid_t pid)
{
    const struct domain *d = find_domain(r, record->domain);

    return d != NULL && d->pid == pid && d->stamp_ms >= run->since_ms &&
           record->stamp_ms >= run->since_ms;
}

bool
audit_reader_take(struct audit_reader *r, const struct audit_run *run, pid_t pid, audit_fn *fn,
                  void *arg)
{
    drain(r);
    for (size_t i = 0; i < r->n;) {
        if (is_of(r, r->kept[i], run, pid)) {
            fn(arg, r->kept[i]);
            drop_kept(r, i);
        } else {
            i++;
        }
    }
    return r->lost == run->lost;
}
