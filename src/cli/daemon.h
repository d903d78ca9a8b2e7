#ifndef SY_CLI_DAEMON_H
#define SY_CLI_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/json.h"
#include "cli/host_wire.h"
#include "transport/hello.h"
#include "transport/local.h"
#include "transport/peer.h"

/*
 * The daemon: takes callers, passes those that are clients on to hosts (host.h), and answers verbs
 * that ask. Everything runs on the loop's thread; nothing waits for a caller or a host.
 */
struct daemon {
    uv_loop_t loop;
    struct local_listener listener;
    char socket_path[LIMIT_PATH]; /* for people */
    char build[LOCAL_BUILD_MAX];
    struct peer_facts self;
    uint64_t started_ns;
    const char *log_level; /* for hosts; words of the configuration */
    const char *log_format;

    struct caller *callers;
    size_t n_callers;
    struct host_link *hosts;
    size_t n_hosts;
    uint64_t last_id;  /* of a client */
    uint64_t last_ask; /* of a question to hosts */

    uv_poll_t accept_poll;
    uv_signal_t signals[3];
    uv_signal_t child_signal;
    uv_timer_t idle_timer;
    uv_timer_t spare_timer;
    bool has_log_file;    /* standard error is a file of ours */
    bool ends_when_empty; /* once no client is there and nothing is kept */
    bool is_paused;       /* no descriptor was left for another caller */
    bool may_end;         /* somebody came, or has had the time to */
    bool is_stopping;
};

/* Makes the loop serve; the listener is there. daemon_stop has its end brought about, and the
 * loop ends by itself then. (daemon.c) */
enum sy_code daemon_open(struct daemon *d, struct sy_error *err) SY_NODISCARD;
/* No new clients; those that are there see the end of their calls, and all hosts end. */
void daemon_stop(struct daemon *d);
/* A caller or a host is no more, or a host has less to do. */
void daemon_look(struct daemon *d);

/* A host, as the daemon knows it. (daemon_hosts.c) */
struct host_link {
    struct daemon *daemon;
    struct host_link *next;
    int fd;
    uv_poll_t poll;
    pid_t pid;
    struct host_message state;
    bool has_state;                       /* it has said how it stands */
    bool is_spare;                        /* it waits for its first client */
    bool is_stopping;                     /* it was told to end */
    bool is_closed;                       /* until its handle is */
    uint32_t sent;                        /* clients */
    uint64_t asked[LIMIT_DAEMON_CLIENTS]; /* questions that it has not answered yet */
    size_t n_asked;
};

/* Finds the hosts that an earlier daemon left, and makes a spare one. */
void daemon_hosts_open(struct daemon *d);
void daemon_hosts_stop(struct daemon *d);
/* Passes a caller on, with a hello that is whole; its descriptors stay the caller's. */
enum sy_code daemon_route(struct caller *c, struct sy_error *err) SY_NODISCARD;
/* To one host; `id` is the session that a person wants to join, or "". */
enum sy_code daemon_pass(struct host_link *l, struct caller *c, const char *id,
                         struct sy_error *err) SY_NODISCARD;
struct host_link *daemon_host(struct daemon *d, pid_t pid);
/* Is there nothing that this daemon must be up for? */
bool daemon_hosts_are_idle(const struct daemon *d);
/* Asks hosts what they have: those of clients with that key (host_key), or, if it is 0, all.
 * Returns how many will answer, to caller_heard. What a host has told by its answer is known. */
size_t daemon_ask(struct daemon *d, uint64_t number, uint64_t key);
/* Is there a host whose client may have gone just now, so that one with that key has to go there?
 */
bool daemon_must_ask(const struct daemon *d, uint64_t key);

/* One connection, until it is passed on or answered. (daemon_caller.c) */
enum caller_state {
    CALLER_HELLO,     /* its hello is not whole */
    CALLER_ASKING,    /* hosts are asked what it wants to know */
    CALLER_ANSWERING, /* a verb's answer goes out */
    CALLER_CLOSED,    /* until its handles are */
};

struct caller {
    struct daemon *daemon;
    struct caller *next;
    enum caller_state state;
    struct peer peer;
    uint64_t since_ns;
    int fd;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned n_handles;
    struct buf in;  /* the hello */
    struct buf out; /* CALLER_ANSWERING: from out_at on */
    size_t out_at;
    int fds[2]; /* of the client's */
    struct hello hello;
    struct question *question; /* CALLER_ASKING (daemon_ctl.c) */
};

/* Takes a connected socket. */
void caller_open(struct daemon *d, int fd, const struct peer *peer);
/* Ends one that has not been understood yet. */
void caller_stop(struct caller *c);
void caller_close(struct caller *c);
/* A verb's answer is whole in c->out: it goes out, then the connection ends. */
void caller_answer(struct caller *c);
void caller_refuse(struct caller *c, enum hello_kind kind, const struct sy_error *err);

/* What verbs ask. (daemon_ctl.c) */
enum sy_code caller_start_ctl(struct caller *c, struct sy_error *err) SY_NODISCARD;
/* A person wants to join a session: whose is it? */
enum sy_code caller_start_attach(struct caller *c, struct sy_error *err) SY_NODISCARD;
/* A client: passed on, once it is known which hosts of clients like it have lost theirs. */
enum sy_code caller_start_client(struct caller *c, struct sy_error *err) SY_NODISCARD;
/* A host's answer to that question; NULL: it gave none. */
void caller_heard(struct daemon *d, uint64_t number, const struct js *what);
/* No more answers are waited for. */
void caller_stop_asking(struct caller *c);
void question_free(struct question *q);

#endif
