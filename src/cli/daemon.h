#ifndef SY_CLI_DAEMON_H
#define SY_CLI_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/json.h"
#include "cli/serve_engine.h"
#include "transport/hello.h"
#include "transport/local.h"
#include "transport/peer.h"
#include "transport/transport.h"

/*
 * The daemon: what all connections share, and the connections. Everything runs on the loop's
 * thread; nothing waits for a client.
 */
struct daemon {
    uv_loop_t loop;
    struct local_listener listener;
    char socket_path[LIMIT_PATH]; /* for people */
    char build[LOCAL_BUILD_MAX];
    struct peer_facts self;
    uint64_t started_ns;

    struct guest *guests;
    size_t n_guests;
    unsigned last_id;

    uv_poll_t accept_poll;
    uv_signal_t signals[3];
    uv_timer_t idle_timer;
    bool has_log_file;    /* standard error is a file of ours */
    bool ends_when_empty; /* once no client is there and nothing is kept */
    bool is_paused;       /* no descriptor was left for another client */
    bool is_stopping;
};

/* Makes the loop serve; the listener is there. daemon_stop has its end brought about, and the
 * loop ends by itself then. (daemon.c) */
enum sy_code daemon_open(struct daemon *d, struct sy_error *err) SY_NODISCARD;
/* No new clients; those that are there see the end of their calls. */
void daemon_stop(struct daemon *d);
/* A connection is no more. */
void daemon_guest_gone(struct daemon *d);

/* One client. (daemon_guest.c) */
enum guest_state {
    GUEST_HELLO,     /* its hello is not whole */
    GUEST_SERVING,   /* its protocol runs */
    GUEST_ATTACHED,  /* a person has joined a session */
    GUEST_ANSWERING, /* a verb's answer goes out */
    GUEST_ENDING,    /* nothing is served any more; what still runs, and a last export, end */
    GUEST_CLOSED,    /* until its handles are */
};

struct guest {
    struct daemon *daemon;
    struct guest *next;
    unsigned id;
    enum guest_state state;
    struct peer peer;
    uint64_t since_ns;
    int fd;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_prepare_t prepare; /* runs while the end of what the engine still runs is waited for */
    unsigned n_handles;
    struct buf in;  /* the hello; lives as long as we do */
    struct buf out; /* GUEST_ANSWERING: from out_at on */
    size_t out_at;
    int fds[2]; /* of the client's, -1 once they are somebody's */
    struct hello hello;
    struct serve_engine engine;
    struct stdio_server *server;
    struct attach *attach; /* GUEST_ATTACHED */
    struct sy_error why;   /* how it ended */
};

/* Takes a connected socket. */
void guest_open(struct daemon *d, int fd, const struct peer *peer);
/* Its calls are ended, then it is closed. */
void guest_stop(struct guest *c);
/* One line, which fits into an empty socket. False: it can't be reached. */
bool guest_say(int fd, enum hello_kind kind, unsigned number, const char *sentence);
/* Frees the engine, if any, and closes, from the loop. */
void guest_end(struct guest *c, uint64_t after_ms);
/* A verb's answer is whole in c->out: it goes out, then the connection ends. */
void guest_answer(struct guest *c);
void guest_refuse(struct guest *c, enum hello_kind kind, const struct sy_error *err);

/* The protocols of the hello. (daemon_serve.c, daemon_attach.c, daemon_ctl.c) */
enum sy_code guest_start_mcp(struct guest *c, struct sy_error *err) SY_NODISCARD;
enum sy_code guest_start_proto(struct guest *c, struct sy_error *err) SY_NODISCARD;
enum sy_code guest_start_attach(struct guest *c, struct sy_error *err) SY_NODISCARD;
enum sy_code guest_start_ctl(struct guest *c, struct sy_error *err) SY_NODISCARD;

/*
 * What the daemon keeps and `list` shows and `kill` ends: one row a kind in daemon_kinds.c. An id
 * is the kind's letter and a number.
 */
struct daemon_kind {
    const char *name; /* the member of the answer: "clients" */
    char letter;
    /* Appends one object each to an array: id, kind, pid, cwd, age_ms. */
    void (*list)(struct daemon *d, struct jw *w);
    /* False: there is none of this number. */
    bool (*kill)(struct daemon *d, unsigned number);
    /* How many are there that a daemon must not end for? */
    size_t (*count)(const struct daemon *d);
};
extern const struct daemon_kind daemon_kinds[];
extern const size_t daemon_kinds_n;

#endif
