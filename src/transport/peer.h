#ifndef SY_TRANSPORT_PEER_H
#define SY_TRANSPORT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Whom a daemon serves. What it does for a client, the client could do itself: so a client that
 * can do less, a sandboxed command foremost, is none. Nor is one that would get something else
 * than from its own program: other files under the same names.
 */

/* What is compared. */
#define PEER_STATUS_MAX 16384U /* of /proc/PID/status; hundreds of groups fit */
#define PEER_SPACES     4U
struct peer_facts {
    char status[PEER_STATUS_MAX];
    uint64_t spaces[PEER_SPACES]; /* namespaces: mnt, user, pid, net */
    uint64_t root[2];             /* device and inode of its root directory */
};

/* Of a process; 0: this one. SY_E_SYS: it is gone, or can't be looked at. */
enum sy_code peer_facts_read(struct peer_facts *ret, pid_t pid, struct sy_error *err) SY_NODISCARD;
/* The first difference in words ("groups"); NULL: there is none but perhaps the umask. */
const char *peer_difference(const struct peer_facts *a, const struct peer_facts *b);
bool peer_same_umask(const struct peer_facts *a, const struct peer_facts *b);

enum peer_verdict {
    PEER_SAME,
    PEER_STRANGER, /* another user's */
    PEER_UNLIKE,   /* the same user's, but another in what counts */
};

struct peer {
    pid_t pid;        /* 0: it can't be told */
    bool other_umask; /* matters to what it has run, and to nothing else */
};

/* Judges who has connected `fd`; *err has the sentence unless PEER_SAME. Ask right after
 * accept(2). */
enum peer_verdict peer_judge(struct peer *ret, int fd, const struct peer_facts *self,
                             struct sy_error *err);

#endif
