#include "process/broker_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "process/limited.h"
#include "process/listener.h"

/* One step's calls and time, so that a flood of them can't starve other work. */
#define STEP_CALLS 16
#define STEP_NS    20000000ULL

#ifndef PIDFD_THREAD
#    define PIDFD_THREAD O_EXCL
#endif

struct call {
    struct broker_caller caller;
    const struct process_gate *gate; /* NULL: none */
    const struct broker_place *place;
    int fd; /* in the caller */
    char bytes[sizeof(struct sockaddr_storage)];
    size_t length;
    struct broker_address address;   /* borrows from bytes */
    const struct limited_user *user; /* that of its tree, where it is not ours */
    struct limited_user user_room;
    bool is_listen_refused;
    bool is_refused; /* by the policy: the kernel alone might have said yes */
    enum own_miss miss;
};

/* The errno of a refusal that is the policy's. */
static int
refuse(struct call *c, int sys)
{
    c->is_refused = true;
    return sys;
}

bool
broker_is_waiting(const struct broker_caller *c)
{
    uint64_t id = c->id;

    return ioctl(c->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Reads the address once. Returns 0 or the errno that the kernel would give. */
static int
read_address(struct call *c, const struct seccomp_notif *n)
{
    /* An int for the kernel: the upper half of the register may hold anything. */
    int given = (int)(uint32_t)n->data.args[2];

    if (given < (int)sizeof(sa_family_t) || given > (int)sizeof(c->bytes)) {
        return EINVAL;
    }
    c->length = (size_t)given;

    int sys = limited_read(c->caller.tid, (uintptr_t)n->data.args[1], c->bytes, c->length,
                           BROKER_WAIT_MS);

    /* EPERM: the process lets nobody look (PR_SET_DUMPABLE, or Yama). */
    return sys == EPERM || sys == EBUSY || sys == ETIMEDOUT ? EACCES : sys == 0 ? 0 : EFAULT;
}

pid_t
broker_status_number(pid_t tid, const char *field)
{
    char path[64];
    /* The groups of its user stand in it too: up to 65536 of them. */
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)1 << 20};

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    return fd_read_file(path, &text, NULL) == SY_E_OK && text.len > 0
               ? proc_status_number(text.data, field)
               : 0;
}

pid_t
broker_process_of(pid_t tid)
{
    /* Which only a process's first thread has. */
    SY_FD process = (int)syscall(SYS_pidfd_open, tid, 0);

    return process >= 0 ? tid : broker_status_number(tid, "Tgid:");
}

/* A link of /proc that leads into the caller's file tree. */
static int
open_of_caller(const struct call *c, const char *link)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)c->caller.tid, link);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * In a tree of its own: from the top of that, so that no link leads out of it.
 * The name of the working directory is as the caller sees it.
 */
static int
open_in_tree(const struct call *c, const char *name, int *ret_fd)
{
    char whole[2 * LIMIT_PATH];
    char cwd[64];
    SY_FD top = open_of_caller(c, "root");
    ssize_t n = 0;

    if (top < 0) {
        return EACCES;
    }
    if (name[0] != '/') {
        (void)snprintf(cwd, sizeof(cwd), "/proc/%d/cwd", (int)c->caller.tid);
        n = readlink(cwd, whole, LIMIT_PATH);
        if (n <= 0 || whole[0] != '/') {
            return EACCES;
        }
        whole[n++] = '/';
    }
    memcpy(whole + n, name, strlen(name) + 1);
    return limited_open_inside(top, whole, c->user, ret_fd, BROKER_WAIT_MS);
}

/* The file that the caller's path names, as the caller would find it. */
static int
open_named(const struct call *c, int *ret_fd)
{
    char name[sizeof(struct sockaddr_un)];
    int sys = 0;

    memcpy(name, c->address.name, c->address.name_length);
    name[c->address.name_length] = '\0';
    if (c->place->has_own_tree) {
        sys = open_in_tree(c, name, ret_fd);
    } else {
        SY_FD cwd = open_of_caller(c, "cwd");

        sys = cwd < 0 ? EACCES : limited_open(cwd, name, c->user, ret_fd, BROKER_WAIT_MS);
    }
    return sys == EBUSY || sys == ETIMEDOUT ? EACCES : sys;
}

/*
 * The device of the file system that is mounted there, as sock_diag(7) tells
 * it: on overlayfs and btrfs stat(2) tells a layer's or a subvolume's.
 */
static bool
mounted_device(const struct call *c, uint64_t mount_id, uint32_t *ret)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)4 << 20};
    char path[64] = "/proc/self/mountinfo";

    if (c->place->has_own_tree) {
        (void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)c->caller.tid);
    }
    return fd_read_file(path, &text, NULL) == SY_E_OK && text.len > 0 &&
           proc_mount_device(text.data, mount_id, ret);
}

/* Who the tree runs as: as root, the workspace's owner may. */
static bool
is_user_of_tree(const struct call *c, uid_t uid)
{
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)c->caller.tid);
    return stat(path, &st) == 0 && st.st_uid == uid;
}

/* Fills *t with the identity of the socket's file. */
static int
identify(struct call *c, int fd, struct listener_key *t)
{
    struct statx st;
    struct statfs fs;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_UID | STATX_INO | STATX_MNT_ID, &st) != 0 ||
        fstatfs(fd, &fs) != 0) {
        return EACCES;
    }
    if (!S_ISSOCK(st.stx_mode)) {
        return ECONNREFUSED;
    }
    /* bind(2) makes the file as its caller, and the tree can be nobody else. */
    if (c->place->has_own_tree ? !is_user_of_tree(c, st.stx_uid) : st.stx_uid != geteuid()) {
        return refuse(c, EACCES);
    }
    t->ino = (uint32_t)st.stx_ino;
    t->dev = st.stx_dev_major << 20 | st.stx_dev_minor;
    if ((fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC) &&
        !mounted_device(c, st.stx_mnt_id, &t->dev)) {
        return refuse(c, EACCES);
    }
    return 0;
}

int
broker_take_fd(const struct broker_caller *c, int fd, int *ret_fd)
{
    /* A thread may have a table of its own; kernels before 6.9 find only that
     * of its process. */
    SY_FD process = (int)syscall(SYS_pidfd_open, c->tid, PIDFD_THREAD);

    if (process < 0) {
        process = (int)syscall(SYS_pidfd_open, c->tgid, 0);
    }
    /* Once more: the number may be another process's by now. */
    if (process < 0 || !broker_is_waiting(c)) {
        return EACCES;
    }

    *ret_fd = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    return *ret_fd >= 0 ? 0 : errno == EBADF ? EBADF : EACCES;
}

/* The caller's socket as a descriptor of ours too. Returns 0 or an errno. */
static int
take_socket(const struct call *c, int *ret_fd)
{
    SY_FD fd = -1;
    struct stat st;
    int sys = broker_take_fd(&c->caller, c->fd, &fd);

    if (sys != 0) {
        return sys;
    }
    if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode)) {
        return ENOTSOCK;
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

/*
 * connect(2) on the caller's own socket. Never longer than BROKER_WAIT_MS: a
 * full backlog gives EAGAIN, as it does to a socket that does not block. The
 * socket's own time limit would not do: the caller can change it meanwhile.
 */
static int
connect_for(const struct call *c, const void *address, size_t length)
{
    SY_FD sock = -1;
    int sys = take_socket(c, &sock);

    if (sys == 0) {
        sys = limited_connect(sock, address, (socklen_t)length, c->user, BROKER_WAIT_MS);
    }
    return sys == EBUSY || sys == ETIMEDOUT ? EAGAIN : sys;
}

/*
 * The listener there, held: as long as we hold it nobody else can have its
 * name. `denied` is the errno for one that is not of the tree.
 */
static int
hold_own(struct call *c, const struct listener_key *key, int denied, int *ret_fd)
{
    struct listener l = {0};

    listener_prepare();

    uint64_t until_ns = clock_mono_ns() + BROKER_SEARCH_NS;

    switch (listener_find(key, c->place->diag_fd, until_ns, &l)) {
    case LISTENER_NONE:
        /* A file that a dead server left, say; or its server is in our network. */
        return c->place->diag_fd >= 0 && listener_find(key, -1, until_ns, &l) != LISTENER_NONE
                   ? refuse(c, denied)
                   : ECONNREFUSED;
    case LISTENER_UNSURE:
        return refuse(c, denied);
    case LISTENER_ONE:
        break;
    }
    *ret_fd = listener_hold(&l, c->caller.tgid, c->caller.keeper, until_ns);
    return *ret_fd >= 0 ? 0 : refuse(c, denied);
}

static int
connect_named(struct call *c)
{
    struct listener_key t = {.name = NULL};
    struct sockaddr_un through = {.sun_family = AF_UNIX};
    SY_FD file = -1;
    SY_FD held = -1;

    c->user = limited_user_of(c->caller.tid, &c->user_room);

    int sys = open_named(c, &file);

    if (sys == 0) {
        sys = identify(c, file, &t);
    }
    if (sys == 0) {
        sys = hold_own(c, &t, EACCES, &held);
    }
    if (sys == 0 && !listener_is_bound_to(held, file)) {
        sys = refuse(c, EACCES);
    }
    if (sys != 0) {
        return sys;
    }
    (void)snprintf(through.sun_path, sizeof(through.sun_path), "/proc/self/fd/%d", file);
    return connect_for(c, &through, sizeof(through));
}

static int
connect_abstract(struct call *c)
{
    struct listener_key t = {.name = c->address.name, .name_length = c->address.name_length};
    SY_FD held = -1;

    c->user = limited_user_of(c->caller.tid, &c->user_room);

    int sys = hold_own(c, &t, EPERM, &held); /* EPERM: as Landlock's scope has it */

    return sys == 0 ? connect_for(c, c->bytes, c->length) : sys;
}

/*
 * The caller's own socket to the gate: nothing but TCP, whose destination is fixed once connect(2)
 * was called, also where TCP_FASTOPEN_CONNECT puts the first packet off.
 */
static int
connect_gate(const struct call *c)
{
    SY_FD sock = -1;
    int protocol = 0;
    socklen_t size = sizeof(protocol);
    int sys = take_socket(c, &sock);

    if (sys != 0) {
        return sys;
    }
    if (getsockopt(sock, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 ||
        protocol != IPPROTO_TCP) {
        return EACCES;
    }
    sys = limited_connect(sock, (const void *)c->bytes, (socklen_t)c->length, NULL, BROKER_WAIT_MS);
    if (sys == 0 || sys == EINPROGRESS) {
        c->gate->on_connected(c->gate->arg, &sock);
    }
    return sys == EBUSY || sys == ETIMEDOUT ? EAGAIN : sys;
}

static bool
is_gate(const struct call *c)
{
    return c->gate != NULL && c->address.is_loopback &&
           (c->address.port == c->gate->port ||
            (c->gate->socks_port != 0 && c->address.port == c->gate->socks_port));
}

static int
connect_in_own(struct call *c)
{
    SY_FD sock = -1;
    int sys = take_socket(c, &sock);

    if (sys != 0) {
        return sys;
    }

    struct own_answer answer = own_network_connect(sock, &c->address, c->bytes, c->length);

    c->miss = answer.miss;
    if (answer.is_tcp && (answer.sys == 0 || answer.sys == EINPROGRESS) && is_gate(c)) {
        c->gate->on_connected(c->gate->arg, &sock);
    }
    return answer.sys;
}

static int
connect_inet(struct call *c)
{
    if (c->place->has_own_network) {
        return connect_in_own(c);
    }
    return is_gate(c) ? connect_gate(c) : refuse(c, EACCES);
}

/*
 * listen(2) where it is asked about (an allow list). A descriptor may become another socket while
 * we look, so that the call can't be let go on: it is made here, on the socket that was looked at.
 */
static int
listen_for(struct call *c, int backlog)
{
    SY_FD sock = -1;
    int domain = 0;
    socklen_t size = sizeof(domain);
    int sys = take_socket(c, &sock);

    if (sys != 0) {
        return sys;
    }
    if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) {
        c->is_listen_refused = true;
        return EACCES;
    }
    return listen(sock, backlog) == 0 ? 0 : errno;
}

/* The errno that the caller's call gets, or 0. */
static int
decide(struct call *c, const struct seccomp_notif *n)
{
    bool is_listen = n->data.nr == SYS_listen;
    int sys = is_listen ? 0 : read_address(c, n);

    if (sys != 0) {
        return sys;
    }
    c->caller.tgid = broker_process_of(c->caller.tid);
    if (c->caller.tgid == 0) {
        return EFAULT;
    }
    /* All that was read is the caller's only if it is still in this very call. */
    if (!broker_is_waiting(&c->caller)) {
        return EINTR;
    }
    if (is_listen) {
        return listen_for(c, (int)(uint32_t)n->data.args[1]);
    }
    c->address = broker_address_parse(c->bytes, c->length);
    switch (c->address.kind) {
    case ADDRESS_NAMED:
        return connect_named(c);
    case ADDRESS_ABSTRACT:
        return connect_abstract(c);
    case ADDRESS_NETLINK:
        return connect_for(c, c->bytes, sizeof(struct sockaddr_nl));
    case ADDRESS_INET:
        return connect_inet(c);
    case ADDRESS_NONE:
        return connect_for(c, c->bytes, c->length);
    case ADDRESS_REFUSED:
        break;
    }
    /* EINVAL is the kernel's own answer to such an address. */
    return c->address.sys != EINVAL ? refuse(c, c->address.sys) : EINVAL;
}

/* All calls but those of sockets. Returns an errno, OBSERVE_GO_ON or BROKER_ANSWERED. */
static int
decide_other(struct call *c, const struct seccomp_notif *n, const struct broker_host *host)
{
    int sys = OBSERVE_GO_ON;

    if (broker_is_of_terminal(n) && c->caller.keeper > 0 && !c->place->has_own_tree) {
        c->caller.tgid = broker_process_of(c->caller.tid);
        sys = broker_open_terminal(&c->caller, n);
    }
    if (sys != OBSERVE_GO_ON || (broker_is_of_terminal(n) && n->data.nr == SYS_ioctl)) {
        return sys;
    }
    return host->on_call != NULL
               ? host->on_call(host->arg, c->caller.keeper, c->caller.listener_fd, n)
           : broker_is_of_terminal(n) ? OBSERVE_GO_ON
                                      : EPERM;
}

static void
tell_refused(const struct broker_host *host, const struct call *c)
{
    /* A name of Unix sockets in visible characters is at most eight times as long. */
    SY_AUTO(buf_fini) struct buf object = {.max = 1024};

    if (broker_address_text(&object, c->bytes, c->length) != SY_E_OK) {
        return;
    }
    if (c->miss != MISS_NOTHING && host->on_missed != NULL) {
        host->on_missed(host->arg, c->caller.keeper, buf_view(&object), c->miss);
    } else if (c->is_refused && host->on_refused != NULL) {
        host->on_refused(host->arg, c->caller.keeper, buf_view(&object));
    }
}

/* One notification. false: there is none. */
static bool
answer_one(int listener_fd, const struct broker_host *host)
{
    /* The kernel may know a longer struct than our headers. */
    union {
        struct seccomp_notif n;
        char room[512];
    } got;
    union {
        struct seccomp_notif_resp r;
        char room[512];
    } answer;

    memset(&got, 0, sizeof(got));
    memset(&answer, 0, sizeof(answer));
    if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &got) != 0) {
        return errno == EINTR;
    }

    struct call c = {
        .caller = {.id = got.n.id, .listener_fd = listener_fd, .tid = (pid_t)got.n.pid},
        .place = &host->place,
        .fd = (int)got.n.data.args[0],
    };

    c.caller.keeper = host->keeper_of(host->arg, c.caller.tid);
    c.gate = host->gate_of != NULL ? host->gate_of(host->arg, c.caller.keeper) : NULL;
    answer.r.id = got.n.id;
    if (got.n.data.nr != SYS_connect && got.n.data.nr != SYS_listen) {
        int sys = decide_other(&c, &got.n, host);

        if (sys == BROKER_ANSWERED) {
            return true;
        }
        answer.r.error = sys == OBSERVE_GO_ON ? 0 : -sys;
        answer.r.flags = sys == OBSERVE_GO_ON ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    } else {
        answer.r.error = c.caller.keeper > 0 ? -decide(&c, &got.n) : -EACCES;
    }
    /* ENOENT: the caller was killed meanwhile. */
    (void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    if (c.is_refused || c.miss != MISS_NOTHING) {
        tell_refused(host, &c);
    }
    if (c.is_listen_refused && host->on_listen_refused != NULL) {
        host->on_listen_refused(host->arg, c.caller.keeper);
    }
    return true;
}

bool
broker_step(int listener_fd, const struct broker_host *host)
{
    uint64_t end_ns = clock_mono_ns() + STEP_NS;

    for (int i = 0; i < STEP_CALLS && (i == 0 || clock_mono_ns() < end_ns); i++) {
        struct pollfd ready = {.fd = listener_fd, .events = POLLIN};

        if (poll(&ready, 1, 0) <= 0) {
            return true;
        }
        if ((ready.revents & POLLIN) == 0) {
            return false;
        }
        if (!answer_one(listener_fd, host)) {
            return true;
        }
    }
    return true;
}
