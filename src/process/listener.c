#include "process/listener.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/unix_diag.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "process/ancestry.h"

/* A list of children lacks some if others exit while it is read (proc(5)). */
#define WALKS 3

#define ASK_NS 1000000000ULL

#define TCP_LISTEN_STATE 10 /* the state number that unix_diag uses too */

#ifndef SIOCUNIXFILE /* linux/un.h, which clashes with sys/un.h */
#    define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)
#endif

static atomic_bool is_blind;

bool
listener_is_blind(void)
{
    return is_blind;
}

static bool
is_over(uint64_t until_ns)
{
    return clock_mono_ns() >= until_ns;
}

static bool
ask(int fd, uint32_t sequence)
{
    struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                   .nlmsg_seq = sequence},
        .request = {.sdiag_family = AF_UNIX,
                   .udiag_states = 1U << TCP_LISTEN_STATE,
                   .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS   },
    };

    return send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question);
}

/* One datagram of the dump; whatever makes the list less than whole breaks the
 * search: a socket that we do not see may be the one that would be reached. */
static void
receive(int fd, struct diag_search *s)
{
    _Alignas(struct nlmsghdr) char reply[32768];
    struct sockaddr_nl from = {0};
    struct iovec part = {.iov_base = reply, .iov_len = sizeof(reply)};
    struct msghdr message = {
        .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1};
    ssize_t got = recvmsg(fd, &message, 0);

    if (got < 0 && errno == EINTR) {
        return;
    }
    if (got <= 0 || (message.msg_flags & MSG_TRUNC) != 0 || from.nl_pid != 0) {
        s->is_broken = true;
        return;
    }
    diag_search_take(s, reply, (size_t)got);
}

static void
forget_answers(int diag_fd)
{
    char byte = 0;

    while (diag_fd >= 0 && recv(diag_fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) > 0) {
    }
}

void
listener_prepare(void)
{
    static atomic_flag is_asked = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_asked)) {
        SY_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

        (void)!(fd >= 0 && ask(fd, 0));
    }
}

enum listener_answer
listener_find(const struct listener_key *key, int diag_fd, uint64_t until_ns, struct listener *ret)
{
    /* A shared socket may still hold answers to a question that was given up. */
    static atomic_uint last_sequence;
    struct diag_search s = {.key = key, .sequence = atomic_fetch_add(&last_sequence, 1) + 1};
    SY_FD own = diag_fd < 0 ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG) : -1;
    int fd = diag_fd < 0 ? own : diag_fd;

    if (fd < 0) {
        return LISTENER_UNSURE;
    }
    forget_answers(diag_fd);
    if (!ask(fd, s.sequence)) {
        return LISTENER_UNSURE;
    }
    while (!s.is_complete && !s.is_broken && !is_over(until_ns)) {
        receive(fd, &s);
    }
    is_blind = s.sys == ENOENT; /* sock_diag_rcv_msg(): nobody answers for the family */
    if (!s.is_complete || s.n_found > 1) {
        return LISTENER_UNSURE;
    }
    *ret = s.found;
    return s.n_found == 1 ? LISTENER_ONE : LISTENER_NONE;
}

bool
listener_can_ask(void)
{
    static const char name[] = "shellyard-nobody";
    const struct listener_key key = {.name = name, .name_length = sizeof(name) - 1};
    struct listener ignored = {0};

    listener_prepare();
    (void)listener_find(&key, -1, clock_mono_ns() + ASK_NS, &ignored);
    return !is_blind;
}

static bool
is_same_process(const void *arg, pid_t pid)
{
    return pid == *(const pid_t *)arg;
}

/* Is it below the keeper? Sure only if `pidfd`, opened before, still lives. */
static bool
is_descendant(pid_t pid, int pidfd, pid_t keeper)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    return ancestry_find(pid, is_same_process, &keeper) == keeper && poll(&end, 1, 0) == 0;
}

/* That descriptor of the process, if it is the socket. The number of its inode
 * is not enough: 2^32 sockets later another has the same. */
static int
take_if_same(int pidfd, uint64_t number, const struct listener *l)
{
    SY_FD fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
    uint64_t cookie = 0;
    socklen_t size = sizeof(cookie);

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 &&
                   cookie == l->cookie
               ? fd_take(&fd)
               : -1;
}

/* The socket, out of the descriptors of the process behind pidfd. */
static int
find_in_table(pid_t pid, int pidfd, const struct listener *l, uint64_t until_ns)
{
    char path[64];
    char wanted[64];
    int found = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    (void)snprintf(wanted, sizeof(wanted), "socket:[%llu]", (unsigned long long)l->inode);

    DIR *fds = opendir(path);

    if (fds == NULL) {
        return -1;
    }
    for (struct dirent *e = readdir(fds); e != NULL && found < 0 && !is_over(until_ns);
         e = readdir(fds)) {
        char target[64];
        uint64_t number = 0;
        ssize_t len = readlinkat(dirfd(fds), e->d_name, target, sizeof(target) - 1);

        if (len > 0) {
            target[len] = '\0';
            if (str_eq(target, wanted) && str_to_u64(&number, e->d_name, 0, INT32_MAX)) {
                found = take_if_same(pidfd, number, l);
            }
        }
    }
    closedir(fds);
    return found;
}

/* `keeper` 0: the process is known to be of the tree. */
static int
take_from(pid_t pid, pid_t keeper, const struct listener *l, uint64_t until_ns)
{
    SY_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0) {
        return -1;
    }

    SY_FD found = find_in_table(pid, pidfd, l, until_ns);

    /* Its number came from a list: meanwhile it may be a stranger's. */
    return found >= 0 && (keeper == 0 || is_descendant(pid, pidfd, keeper)) ? fd_take(&found) : -1;
}

/* Processes still to be looked at. What does not fit is not looked at: such a
 * tree may be refused a connection, never given one. */
#define TREE_MAX 4096

struct tree {
    pid_t pids[TREE_MAX];
    size_t n;
};

/* Adds the children of one thread. */
static void
add_children(struct tree *t, pid_t pid, const char *tid)
{
    char path[300];
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)1 << 20};

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, tid);
    if (fd_read_file(path, &text, NULL) == SY_E_OK && text.len > 0) {
        t->n += proc_children(text.data, t->pids + t->n, TREE_MAX - t->n);
    }
}

static void
add_descendants(struct tree *t, pid_t pid, uint64_t until_ns)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);

    DIR *tasks = opendir(path);

    if (tasks == NULL) {
        return;
    }
    for (struct dirent *e = readdir(tasks); e != NULL && !is_over(until_ns); e = readdir(tasks)) {
        if (e->d_name[0] != '.') {
            add_children(t, pid, e->d_name);
        }
    }
    closedir(tasks);
}

/* Orphans are children of the keeper, so nothing of the tree is missed. */
static int
take_from_tree(pid_t keeper, const struct listener *l, uint64_t until_ns)
{
    struct tree t;

    t.n = 0;
    add_descendants(&t, keeper, until_ns);
    for (size_t i = 0; i < t.n && !is_over(until_ns); i++) {
        int found = take_from(t.pids[i], keeper, l, until_ns);

        if (found >= 0) {
            return found;
        }
        add_descendants(&t, t.pids[i], until_ns);
    }
    return -1;
}

int
listener_hold(const struct listener *l, pid_t first, pid_t keeper, uint64_t until_ns)
{
    int found = take_from(first, 0, l, until_ns);

    for (int i = 0; i < WALKS && found < 0 && !is_over(until_ns); i++) {
        found = take_from_tree(keeper, l, until_ns);
    }
    return found;
}

bool
listener_is_bound_to(int listener_fd, int file_fd)
{
    SY_FD bound = ioctl(listener_fd, SIOCUNIXFILE);
    struct stat a;
    struct stat b;

    if (bound < 0) {
        return errno == EPERM; /* else it is bound to none */
    }
    return fstat(bound, &a) == 0 && fstat(file_fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}
