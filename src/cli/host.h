#ifndef SY_CLI_HOST_H
#define SY_CLI_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/json.h"
#include "cli/host_wire.h"
#include "cli/serve_engine.h"
#include "sessions/sessions.h"
#include "transport/hello.h"
#include "transport/local.h"
#include "transport/peer.h"
#include "transport/transport.h"

/*
 * A host: the process that serves one client of the daemon, and keeps the sessions that outlive it.
 * The daemon passes clients on and asks; whoever kills it takes away neither client nor session:
 * the next daemon finds the hosts by their sockets. Everything runs on the loop's thread.
 */
struct host {
    uv_loop_t loop;
    struct host_channel *channel; /* to the daemon; NULL: there is none now */
    int dir_fd;                   /* the state directory, where we listen for the next daemon */
    int listen_fd;
    uv_poll_t listen_poll;
    uv_signal_t signals[3];
    char build[LOCAL_BUILD_MAX];
    struct peer_facts self;

    struct host_guest *guests;
    size_t n_guests;
    uint32_t taken; /* over this channel */
    uint64_t last_id;
    uint64_t key;
    bool is_stopping;
    bool is_ending; /* the loop */
};

/* `shellyard daemon-host LEVEL FORMAT`: started by the daemon alone, with the channel as descriptor
 * HOST_CHANNEL_FD. */
#define HOST_VERB       "daemon-host"
#define HOST_CHANNEL_FD 3
int host_main(char *const *args);

/* Tells the daemon of our counts, and ends when nothing is left. */
void host_look(struct host *h);

/* One client, or what it left. (host_guest.c) */
enum host_guest_state {
    HOST_GUEST_SERVING,  /* its protocol runs */
    HOST_GUEST_ATTACHED, /* a person who looks on at a session of any client of the host */
    HOST_GUEST_ENDING,   /* nothing is served any more; what still runs, and a last export, end */
    HOST_GUEST_KEPT,     /* it has gone, and sessions of it go on */
    HOST_GUEST_CLOSED,   /* until its handles are */
};

struct host_guest {
    struct host *host;
    struct host_guest *next;
    unsigned id;
    enum host_guest_state state;
    pid_t pid; /* of the client */
    uint64_t since_ns;
    int fd;        /* its connection; -1: it has gone */
    bool has_gone; /* its end was seen, and what is served to it is ended */
    uv_poll_t poll;
    uv_timer_t timer;
    uv_prepare_t prepare; /* runs while the end of what the engine still runs is waited for */
    unsigned n_handles;
    struct buf in; /* its hello; lives as long as we do */
    int fds[2];    /* of the client's, -1 once they are somebody's */
    struct hello hello;
    struct serve_engine engine;
    struct live_watch watch; /* of its sessions */
    struct stdio_server *server;
    struct attach *attach; /* HOST_GUEST_ATTACHED (host_attach.c) */
    struct sy_error why;   /* how it ended */
};

/* Takes all descriptors of the message. */
void host_guest_open(struct host *h, const struct host_message *m, int fds[HOST_FDS]);
/* Its calls are ended, and its sessions too if the host is to stop; then it is closed. */
void host_guest_stop(struct host_guest *c);

/* Its protocol runs, and as far as we know it is still there. */
bool host_guest_is_served(const struct host_guest *c);
/* Sees which clients have gone, before the loop tells. */
void host_guests_look(struct host *h);

/* Ends what is nothing but a connection. */
void host_guest_close(struct host_guest *c);

/* Has a person join the session "c2/1234". */
enum sy_code host_attach_start(struct host_guest *c, const char *id,
                               struct sy_error *err) SY_NODISCARD;

/* {"clients": [], "sessions": []} (host_list.c) */
enum sy_code host_list(struct host *h, struct buf *out) SY_NODISCARD;
/* "c2/1234"; NULL: there is none. */
struct live *host_find_session(struct host *h, const char *id);
/* What has that id (host_wire.h). */
void host_kill(struct host *h, const char *id);
/* All sessions that it has; NULL: it has no engine. */
struct live_store *host_sessions(const struct host_guest *c);
/* Sessions that run though their client has gone. */
size_t host_running(const struct host *h);
size_t host_clients(const struct host *h);

#endif
