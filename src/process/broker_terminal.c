/*
 * The terminals that commands make. Without namespaces /dev/pts has those of the person too, and
 * no rule of Landlock can be for files that are not there yet: all of them are shut, and the
 * other end of a new one is opened here, for whoever has the terminal itself. Nothing is given
 * that its holder could not do by it anyway.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "process/ancestry.h"
#include "process/broker_internal.h"
#include "process/limited.h"

/* A program that opens by name does so itself, or a child of it, or the child of a shell. */
#define PROCESSES_ABOVE 8

/* What tty_open() makes of flags (drivers/tty/tty_io.c); no flag that makes a file another thing.
 */
#define TERMINAL_FLAGS (O_ACCMODE | O_NONBLOCK)

#ifndef SECCOMP_ADDFD_FLAG_SEND
#    define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

static int
flags_of_open(const struct seccomp_notif *n)
{
    return (int)(uint32_t)n->data.args[n->data.nr == SYS_openat ? 2 : 1];
}

bool
broker_is_of_terminal(const struct seccomp_notif *n)
{
    bool opens = n->data.nr == SYS_openat;

#ifdef SYS_open
    opens = opens || n->data.nr == SYS_open;
#endif
    if (n->data.nr == SYS_ioctl) {
        return (uint32_t)n->data.args[1] == TIOCGPTPEER;
    }
    /* As the filter has it (SECCOMP_OF_TERMINALS). */
    return opens && (flags_of_open(n) & (O_NOCTTY | O_CREAT)) == O_NOCTTY;
}

/* Is it that pseudo terminal (negative: any), its first end? */
static bool
is_master(int fd, int number)
{
    unsigned of_fd = 0;

    return ioctl(fd, TIOCGPTN, &of_fd) == 0 && (number < 0 || of_fd == (unsigned)number);
}

/* The terminal among the descriptors of one process. Returns a descriptor of ours, or -1. */
static int
find_master_of(pid_t pid, int pidfd, int number, uint64_t until_ns)
{
    char path[64];
    DIR *fds = NULL;
    const struct dirent *e = NULL;
    int found = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    while (fds != NULL && found < 0 && clock_mono_ns() < until_ns && (e = readdir(fds)) != NULL) {
        char link[LIMIT_PATH];
        ssize_t got = readlinkat(dirfd(fds), e->d_name, link, sizeof(link) - 1);

        link[got > 0 ? got : 0] = '\0';
        if (!str_ends(link, "/ptmx")) {
            continue;
        }

        int64_t there = -1;
        bool is_number = str_to_i64(&there, e->d_name, 0, INT32_MAX);
        SY_FD fd = is_number ? (int)syscall(SYS_pidfd_getfd, pidfd, (int)there, 0) : -1;

        if (fd >= 0 && is_master(fd, number)) {
            found = fd_take(&fd);
        }
    }
    if (fds != NULL) {
        (void)closedir(fds);
    }
    return found;
}

static bool
is_keeper(const void *arg, pid_t pid)
{
    return *(const pid_t *)arg == pid;
}

/* A process held by a descriptor, which is of the caller's tree for certain: it was seen there
 * while it had its number. Returns the descriptor, or -1. */
static int
hold_process(const struct broker_caller *c, pid_t pid)
{
    SY_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool is_ours = pid == c->tgid ? broker_is_waiting(c)
                                  : pidfd >= 0 && ancestry_find(pid, is_keeper, &c->keeper) != 0 &&
                                        syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;

    return is_ours ? fd_take(&pidfd) : -1;
}

static int
find_master(const struct broker_caller *c, int number)
{
    uint64_t until_ns = clock_mono_ns() + BROKER_SEARCH_NS;
    pid_t pid = c->tgid;

    for (int i = 0; i < PROCESSES_ABOVE && pid > 0 && pid != c->keeper; i++) {
        SY_FD pidfd = hold_process(c, pid);
        int found = pidfd >= 0 ? find_master_of(pid, pidfd, number, until_ns) : -1;

        if (found >= 0) {
            return found;
        }
        pid = broker_status_number(pid, "PPid:");
    }
    return -1;
}

/* "/dev/pts/N" alone. Returns N, or -1. */
static int
number_of_name(const struct broker_caller *c, uintptr_t there)
{
    static const char dir[] = "/dev/pts/";
    char name[LIMITED_READ_MAX];
    const char *digits = name + sizeof(dir) - 1;
    int64_t number = -1;

    if (limited_read_string(c->tid, there, name, BROKER_WAIT_MS) != 0 || !str_starts(name, dir)) {
        return -1;
    }
    return str_to_i64(&number, digits, 0, INT32_MAX) ? (int)number : -1;
}

/* The first end of the terminal that the call is about; -1: of none that the tree has. */
static int
master_of_call(const struct broker_caller *c, const struct seccomp_notif *n)
{
    int number = 0;
    SY_FD fd = -1;

    if (n->data.nr == SYS_ioctl) {
        if (broker_take_fd(c, (int)(uint32_t)n->data.args[0], &fd) != 0 || !is_master(fd, -1)) {
            return -1;
        }
        return fd_take(&fd);
    }
    number = number_of_name(c, (uintptr_t)n->data.args[n->data.nr == SYS_openat ? 1 : 0]);
    return number >= 0 && broker_is_waiting(c) ? find_master(c, number) : -1;
}

int
broker_open_terminal(const struct broker_caller *c, const struct seccomp_notif *n)
{
    int flags = n->data.nr == SYS_ioctl ? (int)(uint32_t)n->data.args[2] : flags_of_open(n);
    SY_FD master = master_of_call(c, n);

    if (master < 0) {
        return OBSERVE_GO_ON;
    }

    SY_FD slave = ioctl(master, TIOCGPTPEER, (flags & TERMINAL_FLAGS) | O_NOCTTY | O_CLOEXEC);

    if (slave < 0) {
        return errno;
    }

    /* 5.14: put there, and the call answered with its number, at once. */
    struct seccomp_notif_addfd add = {
        .id = c->id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .srcfd = (uint32_t)slave,
        .newfd_flags = (uint32_t)(flags & O_CLOEXEC),
    };

    if (ioctl(c->listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0) {
        return BROKER_ANSWERED;
    }
    return errno == ENOENT ? BROKER_ANSWERED : errno == EMFILE ? EMFILE : EACCES;
}
