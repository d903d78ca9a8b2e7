#ifndef SY_CLI_HOST_WIRE_H
#define SY_CLI_HOST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "transport/hello.h"
#include "transport/local.h"

/*
 * What the daemon and its hosts say to each other, over sockets of SOCK_SEQPACKET: one structure a
 * message, and descriptors. A host may be older than the daemon that adopts it, so the version is
 * in each message, and one of another version is the end of the channel.
 *
 *   daemon to host
 *     HOST_GUEST: a client, with its hello (a file in memory), its connection and, but for
 *       `attach`, its standard input and output; `number`, `pid` and `since_ns` are the client's
 *     HOST_LIST: wants HOST_LISTED with the same `number`
 *     HOST_KILL: ends what has that `id`: "c2", or "c2/1234" for a session
 *     HOST_STOP: ends all, and itself
 *   host to daemon
 *     HOST_STATE: first of all, and whenever one of its counts has changed
 *     HOST_LISTED: one line of JSON in a file in memory: {"clients": [], "sessions": []}
 */
#define HOST_VERSION 1U
#define HOST_FDS     4U
/* "c4294967295/" and a session's id. */
#define HOST_ID (LIMIT_SESSION_ID + 16U)

enum host_kind { HOST_STATE = 1, HOST_GUEST, HOST_LIST, HOST_LISTED, HOST_KILL, HOST_STOP };

struct host_message {
    uint32_t version;
    uint32_t kind;
    uint64_t number; /* HOST_STATE: the highest of its clients so far */
    uint64_t since_ns;
    uint64_t key;     /* HOST_STATE: of its clients (host_key); 0: it had none yet */
    uint32_t taken;   /* HOST_STATE: clients that came over this channel */
    uint32_t clients; /* HOST_STATE: that it serves */
    uint32_t running; /* HOST_STATE: sessions that go on without their client */
    uint32_t guests;  /* HOST_STATE: of any kind; none: it has nothing to tell either */
    int32_t pid;      /* HOST_STATE: its own */
    char build[LOCAL_BUILD_MAX];
    char id[HOST_ID];
};

/* Sends without waiting; the descriptors stay the caller's. False: it is gone, or does not read. */
bool host_send(int fd, const struct host_message *m, const int *fds, size_t n);
/* 1: there is one, with descriptors (-1: none) that are the caller's; 0: none is there now; -1: the
 * channel has ended, or speaks another version. */
int host_receive(int fd, struct host_message *ret, int ret_fds[HOST_FDS]);

/* Reads a file in memory that came along, from its beginning; -1: none did, which is an error. */
enum sy_code host_read_file(int fd, struct buf *ret, struct sy_error *err) SY_NODISCARD;

/* One line to a client, which fits into an empty socket. False: it can't be reached. */
bool host_say(int fd, enum hello_kind kind, unsigned number, const char *sentence);

/* The same for one that is not served: told and logged. */
void host_refuse(int fd, pid_t pid, enum hello_kind kind, const struct sy_error *err);

/* Of clients that may go on with each other's sessions: protocol, directory and arguments. */
uint64_t host_key(const struct hello *h);

#endif
