#include "process/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "process/listener.h"

/* One step's calls and time, so that a flood of them can't starve other work. */
#define STEP_CALLS 16
#define STEP_NS    20000000ULL

#ifndef PIDFD_THREAD
#    define PIDFD_THREAD O_EXCL
#endif

struct call {
    uint64_t id;
    int listener_fd;
    pid_t keeper;
    pid_t tid;
    pid_t tgid;
    int fd; /* in the caller */
    union {
        struct sockaddr any;
        struct sockaddr_un unix_name;
        char bytes[sizeof(struct sockaddr_storage)];
    } address;
    size_t length;
};

/* Is the caller still in this call? Only then its numbers are its own. */
static bool
is_waiting(const struct call *c)
{
    return ioctl(c->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id) == 0;
}

/* Reads the address once. Returns 0 or the errno that the kernel would give. */
static int
read_address(struct call *c, const struct seccomp_notif *n)
{
    /* An int for the kernel: the upper half of the register may hold anything. */
    int given = (int)(uint32_t)n->data.args[2];

    if (given < (int)sizeof(sa_family_t) || given > (int)sizeof(c->address)) {
        return EINVAL;
    }

    size_t length = (size_t)given;
    struct iovec to = {.iov_base = &c->address, .iov_len = length};
    struct iovec from = {.iov_len = length};
    uintptr_t there = (uintptr_t)n->data.args[1];

    memcpy(&from.iov_base, &there, sizeof(there)); /* an address of the caller, not ours */

    c->length = length;

    ssize_t got = process_vm_readv(c->tid, &to, 1, &from, 1, 0);

    if (got < 0 && errno == EPERM) {
        return EACCES; /* the process lets nobody look (PR_SET_DUMPABLE, or Yama) */
    }
    return got == (ssize_t)length ? 0 : EFAULT;
}

/* A number that a line of /proc/<pid>/status holds, 0 if it can't be read. */
static pid_t
status_number(pid_t pid, const char *field)
{
    char path[64];
    SY_AUTO(buf_fini) struct buf text = {.max = 16384};
    uint64_t number = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (fd_read_file(path, &text, NULL) != SY_E_OK) {
        return 0;
    }

    char *at = strstr(text.data, field);

    if (at == NULL) {
        return 0;
    }
    at += strlen(field);
    at += strspn(at, " \t");
    at[strcspn(at, "\n")] = '\0';
    return str_to_u64(&number, at, 1, INT32_MAX) ? (pid_t)number : 0;
}

/* The file that the caller's path names, as the caller would find it. */
static int
open_named(const struct call *c, int *ret_fd)
{
    char name[sizeof(c->address.unix_name.sun_path) + 1];
    size_t n = c->length - offsetof(struct sockaddr_un, sun_path);
    char path[64];
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};

    memcpy(name, c->address.unix_name.sun_path, n);
    name[n] = '\0';
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)c->tid);

    SY_FD cwd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (cwd < 0) {
        return EACCES;
    }

    long fd = syscall(SYS_openat2, cwd, name, &how, sizeof(how));

    if (fd < 0) {
        return errno;
    }
    *ret_fd = (int)fd;
    return 0;
}

/*
 * The device of the file system that is mounted there, as sock_diag(7) tells
 * it: on overlayfs and btrfs stat(2) tells a layer's or a subvolume's.
 */
static bool
mounted_device(uint64_t mount_id, uint32_t *ret)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)4 << 20};

    if (fd_read_file("/proc/self/mountinfo", &text, NULL) != SY_E_OK || text.len == 0) {
        return false;
    }
    for (char *line = text.data; line != NULL && *line != '\0';) {
        char *next = strchr(line, '\n');
        uint64_t words[4] = {0}; /* id, parent, major:minor */
        size_t n = 0;
        bool is_number = true;

        for (char *word = line; n < 4 && is_number; n++) {
            size_t len = strcspn(word, " :\n");
            bool is_last = word[len] == '\0' || word[len] == '\n';

            word[len] = '\0';
            is_number = !is_last && str_to_u64(&words[n], word, 0, UINT32_MAX);
            word += is_last ? len : len + 1;
        }
        if (is_number && words[0] == mount_id) {
            *ret = (uint32_t)(words[2] << 20 | words[3]);
            return true;
        }
        line = next != NULL ? next + 1 : NULL;
    }
    return false;
}

/* Fills *t with the identity of the socket's file. */
static int
identify(int fd, struct listener_key *t)
{
    struct statx st;
    struct statfs fs;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_MNT_ID, &st) != 0 ||
        fstatfs(fd, &fs) != 0) {
        return EACCES;
    }
    if (!S_ISSOCK(st.stx_mode)) {
        return ECONNREFUSED;
    }
    t->ino = (uint32_t)st.stx_ino;
    t->dev = st.stx_dev_major << 20 | st.stx_dev_minor;
    if ((fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC) &&
        !mounted_device(st.stx_mnt_id, &t->dev)) {
        return EACCES;
    }
    return 0;
}

/* The caller's socket as a descriptor of ours too. Returns 0 or an errno. */
static int
take_socket(const struct call *c, int *ret_fd)
{
    /* A thread may have a table of its own; kernels before 6.9 find only that
     * of its process. */
    SY_FD process = (int)syscall(SYS_pidfd_open, c->tid, PIDFD_THREAD);

    if (process < 0) {
        process = (int)syscall(SYS_pidfd_open, c->tgid, 0);
    }
    /* Once more: the number may be another process's by now. */
    if (process < 0 || !is_waiting(c)) {
        return EACCES;
    }

    int fd = (int)syscall(SYS_pidfd_getfd, process, c->fd, 0);

    if (fd < 0) {
        return errno == EBADF ? EBADF : EACCES;
    }
    *ret_fd = fd;
    return 0;
}

/* connect(2) on the caller's own socket. Never longer than BROKER_WAIT_MS: a
 * full backlog gives EAGAIN, as it does to a socket that does not block. */
static int
connect_for(const struct call *c, const struct sockaddr *address, socklen_t length)
{
    SY_FD sock = -1;
    int taken = take_socket(c, &sock);

    if (taken != 0) {
        return taken;
    }

    struct timeval before = {0};
    struct timeval brief = {.tv_usec = (suseconds_t)BROKER_WAIT_MS * 1000};
    socklen_t size = sizeof(before);
    bool is_timed = getsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &before, &size) == 0 &&
                    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof(brief)) == 0;

    if (!is_timed) {
        return errno;
    }

    int sys = connect(sock, address, length) == 0 ? 0 : errno;

    (void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &before, sizeof(before));
    return sys;
}

static int
connect_named(const struct call *c)
{
    struct listener_key t = {.name = NULL};
    struct sockaddr_un through = {.sun_family = AF_UNIX};
    SY_FD file = -1;
    int sys = open_named(c, &file);

    if (sys == 0) {
        sys = identify(file, &t);
    }
    if (sys != 0) {
        return sys;
    }

    uint64_t inode = listener_find(&t);

    if (inode == 0 || !listener_is_held(inode, c->tgid, c->keeper)) {
        return EACCES;
    }
    (void)snprintf(through.sun_path, sizeof(through.sun_path), "/proc/self/fd/%d", file);
    return connect_for(c, (const struct sockaddr *)&through, sizeof(through));
}

static int
connect_abstract(const struct call *c)
{
    struct listener_key t = {
        .name = c->address.unix_name.sun_path,
        .name_length = c->length - offsetof(struct sockaddr_un, sun_path),
    };
    uint64_t inode = listener_find(&t);

    if (inode == 0 || !listener_is_held(inode, c->tgid, c->keeper)) {
        return EPERM; /* as Landlock's scope has it */
    }
    return connect_for(c, &c->address.any, (socklen_t)c->length);
}

/* To the kernel alone (socket(2) gives NETLINK_ROUTE only): we may have the
 * right to address other programs, which the caller has not. */
static int
connect_netlink(const struct call *c)
{
    struct sockaddr_nl to;

    if (c->length < sizeof(to)) {
        return EINVAL;
    }
    memcpy(&to, &c->address, sizeof(to));
    if (to.nl_pid != 0 || to.nl_groups != 0) {
        return EPERM;
    }
    return connect_for(c, (const struct sockaddr *)&to, sizeof(to));
}

/* The errno that the caller's connect(2) gets, or 0. */
static int
decide(struct call *c, const struct seccomp_notif *n)
{
    int sys = read_address(c, n);

    if (sys != 0) {
        return sys;
    }
    c->tgid = status_number(c->tid, "\nTgid:");
    if (c->tgid == 0) {
        return EFAULT;
    }
    /* All that was read is the caller's only if it is still in this very call. */
    if (!is_waiting(c)) {
        return EINTR;
    }
    switch (c->address.any.sa_family) {
    case AF_UNIX:
        if (c->length <= offsetof(struct sockaddr_un, sun_path) ||
            c->length > sizeof(struct sockaddr_un)) {
            return EINVAL; /* as the kernel; the name has room for no more */
        }
        return c->address.unix_name.sun_path[0] == '\0' ? connect_abstract(c) : connect_named(c);
    case AF_NETLINK:
        return connect_netlink(c);
    case AF_UNSPEC:
        return connect_for(c, &c->address.any, (socklen_t)c->length);
    default:
        return EACCES;
    }
}

/* One notification. false: there is none. */
static bool
answer_one(int listener_fd, pid_t (*keeper_of)(const void *arg, pid_t caller), const void *arg)
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
        .id = got.n.id,
        .listener_fd = listener_fd,
        .tid = (pid_t)got.n.pid,
        .fd = (int)got.n.data.args[0],
    };

    c.keeper = keeper_of(arg, c.tid);
    answer.r.id = got.n.id;
    answer.r.error = c.keeper > 0 ? -decide(&c, &got.n) : -EACCES;
    /* ENOENT: the caller was killed meanwhile. */
    (void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return true;
}

bool
broker_step(int listener_fd, pid_t (*keeper_of)(const void *arg, pid_t caller), const void *arg)
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
        if (!answer_one(listener_fd, keeper_of, arg)) {
            return true;
        }
    }
    return true;
}
