#include "transport/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#    define SO_PEERPIDFD 77
#endif

static const char *const space_names[PEER_SPACES] = {"mnt", "user", "pid", "net"};

static enum sy_code
read_status(char ret[PEER_STATUS_MAX], int proc_fd, struct sy_error *err)
{
    SY_FD fd = openat(proc_fd, "status", O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    while (fd >= 0 && n < PEER_STATUS_MAX) {
        ssize_t got = read(fd, ret + n, PEER_STATUS_MAX - n);

        if (got < 0) {
            break;
        }
        if (got == 0) {
            ret[n] = '\0';
            return SY_E_OK;
        }
        n += (size_t)got;
    }
    return sy_err_sys(err, n < PEER_STATUS_MAX ? errno : E2BIG, "reading a client's status");
}

enum sy_code
peer_facts_read(struct peer_facts *ret, pid_t pid, struct sy_error *err)
{
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof(path), pid > 0 ? "/proc/%d" : "/proc/self", (int)pid);

    /* One directory for all, which is of one process even if its number is used again. */
    SY_FD fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return sy_err_sys(err, errno, "looking at process %d", (int)pid);
    }

    enum sy_code rc = read_status(ret->status, fd, err);

    for (size_t i = 0; i < PEER_SPACES && rc == SY_E_OK; i++) {
        (void)snprintf(path, sizeof(path), "ns/%s", space_names[i]);
        if (fstatat(fd, path, &st, 0) != 0) {
            return sy_err_sys(err, errno, "looking at the %s namespace of process %d",
                              space_names[i], (int)pid);
        }
        ret->spaces[i] = st.st_ino;
    }
    if (rc == SY_E_OK && fstatat(fd, "root/", &st, 0) != 0) {
        return sy_err_sys(err, errno, "looking at the root directory of process %d", (int)pid);
    }
    if (rc == SY_E_OK) {
        ret->root[0] = st.st_dev;
        ret->root[1] = st.st_ino;
    }
    return rc;
}

/* The value of a line of /proc/PID/status, to its newline; length 0: it has no such line. */
static const char *
line_of(size_t *ret_len, const char *status, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = status; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n' ? 1 : 0;
        if (strncmp(at, name, len) == 0 && at[len] == ':') {
            *ret_len = strcspn(at, "\n");
            return at;
        }
    }
    *ret_len = 0;
    return "";
}

static bool
same_line(const struct peer_facts *a, const struct peer_facts *b, const char *name)
{
    size_t a_len = 0;
    size_t b_len = 0;
    const char *of_a = line_of(&a_len, a->status, name);
    const char *of_b = line_of(&b_len, b->status, name);

    return a_len == b_len && memcmp(of_a, of_b, a_len) == 0;
}

bool
peer_same_umask(const struct peer_facts *a, const struct peer_facts *b)
{
    return same_line(a, b, "Umask");
}

const char *
peer_difference(const struct peer_facts *a, const struct peer_facts *b)
{
    static const struct {
        const char *name;
        const char *what;
    } lines[] = {
        {"Uid",             "user ids"                               },
        {"Gid",             "group ids"                              },
        {"Groups",          "groups"                                 },
        {"CapEff",          "capabilities"                           },
        {"CapBnd",          "capabilities"                           },
        {"NoNewPrivs",      "confinement (no_new_privs)"             },
        {"Seccomp",         "confinement (seccomp)"                  },
        {"Seccomp_filters", "confinement (number of seccomp filters)"},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (!same_line(a, b, lines[i].name)) {
            return lines[i].what;
        }
    }
    if (memcmp(a->spaces, b->spaces, sizeof(a->spaces)) != 0) {
        return "namespaces";
    }
    return memcmp(a->root, b->root, sizeof(a->root)) != 0 ? "root directory" : NULL;
}

/* A descriptor of whoever connected. Before Linux 6.5 the number alone names it, which somebody
 * else could have by now if it ended at once. */
static int
pidfd_of(int fd, pid_t pid)
{
    int pidfd = -1;
    socklen_t len = sizeof(pidfd);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0) {
        return pidfd;
    }
    return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* Whether the facts are those of a process that is still there, and so were its own. */
static bool
is_alive(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return pidfd >= 0 && poll(&p, 1, 0) == 0;
}

static enum peer_verdict
compare(struct peer *ret, int fd, const struct peer_facts *self, struct sy_error *err)
{
    struct peer_facts *facts = mem_alloc(sizeof(*facts));
    SY_FD pidfd = pidfd_of(fd, ret->pid);
    const char *what = NULL;
    enum peer_verdict verdict = PEER_UNLIKE;

    if (facts == NULL) {
        (void)sy_err_nomem(err);
        return PEER_UNLIKE;
    }
    if (peer_facts_read(facts, ret->pid, err) == SY_E_OK) {
        what = peer_difference(facts, self);
        if (what != NULL) {
            (void)sy_err_set(err, SY_E_DENIED, "its %s differ from the daemon's", what);
        } else if (!is_alive(pidfd)) {
            (void)sy_err_set(err, SY_E_DENIED, "the process that connected has ended");
        } else {
            verdict = PEER_SAME;
            ret->other_umask = !peer_same_umask(facts, self);
        }
    }
    mem_free(facts);
    return verdict;
}

enum peer_verdict
peer_judge(struct peer *ret, int fd, const struct peer_facts *self, struct sy_error *err)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);

    *ret = (struct peer){0};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        (void)sy_err_sys(err, errno, "asking who has connected");
        return PEER_STRANGER;
    }
    ret->pid = peer.pid;
    if (peer.uid != geteuid()) {
        (void)sy_err_set(err, SY_E_DENIED, "this daemon serves user %u alone, not user %u",
                         (unsigned)geteuid(), (unsigned)peer.uid);
        return PEER_STRANGER;
    }
    return compare(ret, fd, self, err);
}
