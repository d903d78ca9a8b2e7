#include "process/listener.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>

#include "base/fd.h"
#include "base/str.h"

/* Descriptors looked at for one call: a tree with more of them may be refused
 * a connection, it can't stop the engine. */
#define LOOKS_MAX 32768

/* A list of children lacks some if others exit while it is read (proc(5)). */
#define WALKS 3

#define TCP_LISTEN_STATE 10 /* the state number that unix_diag uses too */

static bool
is_target(const struct listener_key *key, struct nlmsghdr *h)
{
    const struct unix_diag_msg *m = NLMSG_DATA(h);
    size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

    for (const struct nlattr *a = (const void *)(m + 1);
         left >= sizeof(*a) && a->nla_len >= sizeof(*a) && a->nla_len <= left;) {
        const char *value = (const char *)(a + 1);
        size_t size = a->nla_len - sizeof(*a);
        size_t step = NLMSG_ALIGN(a->nla_len);

        if (key->name == NULL && a->nla_type == UNIX_DIAG_VFS &&
            size >= sizeof(struct unix_diag_vfs)) {
            struct unix_diag_vfs vfs;

            memcpy(&vfs, value, sizeof(vfs));
            return vfs.udiag_vfs_ino == key->ino && vfs.udiag_vfs_dev == key->dev;
        }
        if (key->name != NULL && a->nla_type == UNIX_DIAG_NAME) {
            return size == key->name_length && memcmp(value, key->name, size) == 0;
        }
        if (step >= left) {
            break;
        }
        left -= step;
        a = (const void *)((const char *)a + step);
    }
    return false;
}

/* Takes what one datagram of the dump holds. Returns false at its end. */
static bool
take_listeners(const struct listener_key *key, char *reply, size_t left, uint64_t *inode,
               bool *is_ambiguous)
{
    for (struct nlmsghdr *h = (void *)reply; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
        if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR) {
            return false;
        }
        if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)) && is_target(key, h)) {
            uint64_t found = ((const struct unix_diag_msg *)NLMSG_DATA(h))->udiag_ino;

            *is_ambiguous = *is_ambiguous || (*inode != 0 && *inode != found);
            *inode = found;
        }
    }
    return true;
}

uint64_t
listener_find(const struct listener_key *key)
{
    struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } ask = {
        .header = {.nlmsg_len = sizeof(ask),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP     },
        .request = {.sdiag_family = AF_UNIX,
                   .udiag_states = 1U << TCP_LISTEN_STATE,
                   .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS},
    };
    _Alignas(struct nlmsghdr) char reply[32768];
    uint64_t inode = 0;
    bool is_ambiguous = false;
    bool has_more = true;
    SY_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0 || send(fd, &ask, sizeof(ask), 0) != (ssize_t)sizeof(ask)) {
        return 0;
    }
    while (has_more) {
        ssize_t got = recv(fd, reply, sizeof(reply), 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        has_more = got > 0 && take_listeners(key, reply, (size_t)got, &inode, &is_ambiguous);
    }
    return is_ambiguous ? 0 : inode;
}

static bool
holds_socket(pid_t pid, uint64_t inode, unsigned *looks)
{
    char path[64];
    char wanted[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    (void)snprintf(wanted, sizeof(wanted), "socket:[%llu]", (unsigned long long)inode);

    DIR *fds = opendir(path);
    bool is_held = false;

    if (fds == NULL) {
        return false;
    }
    for (struct dirent *e = readdir(fds); e != NULL && !is_held && *looks > 0; e = readdir(fds)) {
        char target[64];
        ssize_t len = readlinkat(dirfd(fds), e->d_name, target, sizeof(target) - 1);

        *looks -= 1;
        if (len > 0) {
            target[len] = '\0';
            is_held = str_eq(target, wanted);
        }
    }
    closedir(fds);
    return is_held;
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
    if (fd_read_file(path, &text, NULL) != SY_E_OK || text.len == 0) {
        return;
    }
    for (char *word = text.data; *word != '\0' && t->n < TREE_MAX;) {
        uint64_t child = 0;
        size_t n = strcspn(word, " ");
        bool is_last = word[n] == '\0';

        word[n] = '\0';
        if (str_to_u64(&child, word, 1, INT32_MAX)) {
            t->pids[t->n++] = (pid_t)child;
        }
        word += is_last ? n : n + 1;
    }
}

static void
add_descendants(struct tree *t, pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);

    DIR *tasks = opendir(path);

    if (tasks == NULL) {
        return;
    }
    for (struct dirent *e = readdir(tasks); e != NULL; e = readdir(tasks)) {
        if (e->d_name[0] != '.') {
            add_children(t, pid, e->d_name);
        }
    }
    closedir(tasks);
}

/* Orphans are children of the keeper, so nothing of the tree is missed. */
static bool
is_held_below(pid_t keeper, uint64_t inode, unsigned *looks)
{
    struct tree t;

    t.n = 0;
    add_descendants(&t, keeper);
    for (size_t i = 0; i<t.n && * looks> 0; i++) {
        if (holds_socket(t.pids[i], inode, looks)) {
            return true;
        }
        add_descendants(&t, t.pids[i]);
    }
    return false;
}

bool
listener_is_held(uint64_t inode, pid_t first, pid_t keeper)
{
    unsigned looks = LOOKS_MAX;

    if (holds_socket(first, inode, &looks)) {
        return true;
    }
    for (int i = 0; i < WALKS; i++) {
        if (is_held_below(keeper, inode, &looks)) {
            return true;
        }
    }
    return false;
}
