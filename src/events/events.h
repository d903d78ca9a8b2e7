#ifndef SY_EVENTS_EVENTS_H
#define SY_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * The typed event bus: what happens to a call, told to whoever subscribed
 * (front ends, telemetry; later store, audit, dashboard). Synchronous, on the
 * loop's thread, in order of subscription. Texts are borrowed for the time of
 * the callback. Specification: begin, output delta, end.
 */
enum event_kind {
    EVENT_EXEC_BEGIN,
    EVENT_EXEC_OUTPUT_DELTA,
    EVENT_EXEC_INPUT, /* something was typed to it, or refused */
    EVENT_EXEC_END,
    EVENT_APPROVAL_REQUESTED, /* a person is asked about a call */
    EVENT_APPROVAL_COMMENTED, /* a model's comment has come to the question: u.request again */
    EVENT_APPROVAL_DECIDED,   /* what became of it, once for each request */
    EVENT_TOOL_DONE           /* a tool's call is answered, whether anything ran or not */
};
#define EVENT_KINDS 8U

/* A set of kinds, to subscribe to. */
#define EVENT_BIT(kind) (1U << (unsigned)(kind))
#define EVENT_ALL       (EVENT_BIT(EVENT_KINDS) - 1U)

struct event_begin {
    char *const *argv;
    const char *cwd;
    const char *tool;
    const char *source; /* "agent" or "user" */
};

struct event_delta {
    const char *stream; /* "stdout", "stderr" */
    uint64_t seq;
    const char *text; /* valid UTF-8 */
    size_t len;
    uint64_t dropped;      /* how many were not told before it, of the command */
    bool is_last;          /* no more are told until another call has to do with the command */
    uint64_t *ret_dropped; /* a subscriber that leaves this one out counts it here */
};

struct event_input {
    const char *text; /* valid UTF-8, as it was typed; "" where it is hidden */
    size_t len;
    bool is_hidden;      /* the terminal does not show it: a password, or the like */
    const char *by;      /* "agent", or "person" who has joined its session */
    const char *refusal; /* why nothing of it was typed, without a quote where it is hidden; NULL:
                            it was */
};

/* The limit that a command met. */
struct event_limit {
    const char *name; /* "memory", "cpu", ... */
    const char *key;  /* of the configuration */
    const char *unit;
    const char *by; /* who held it: "cgroup v2", "rlimit", ... */
    uint64_t most;
    bool is_exact;  /* else inferred */
    bool has_ended; /* it ended the command; else it refused something */
};

struct event_end {
    const char *status; /* "exited", "signaled", "timed_out", "cancelled", "failed", "denied" */
    int exit_code;
    int signal; /* 0: none */
    bool is_timed_out;
    uint64_t duration_ns;
    uint64_t deltas_dropped; /* not told: there were too many, or a subscriber left them out */
    const char *out_text;    /* stdout, stderr and both together, as kept */
    size_t out_len;
    const char *err_text;
    size_t err_len;
    const char *all_text;
    size_t all_len;
    const char *preview; /* telemetry preview of all_text */
    size_t preview_len;
    const struct event_limit *limit; /* NULL: none that we know of */
    const char *denials;             /* a JSON object with "denials"; NULL: nothing was refused */
    const char *error;               /* sentence if our machinery failed, else NULL */
};

/* A person has to answer; `text` is what they are shown. */
struct event_approval_request {
    const char *id; /* of the request, by which it is answered */
    const char *tool;
    const char *text; /* a JSON object (docs/protocol/proto.md, exec_approval_request) */
    bool is_repeated; /* an earlier call asked: the same request, told again */
};

struct event_approval_decision {
    const char *id;
    const char *tool;
    /* "approved", "approved_for_session", "approved_with_rule", "denied", "abort", "timed_out",
     * "cancelled" (the call ended before), "failed" (the answer could not be had) */
    const char *decision;
    const char *decided_by; /* "" unknown */
    const char *reason;     /* "" none given */
    uint64_t waited_ns;     /* from the question to the answer */
};

/* What the sandbox refused, `count` times. */
struct event_denial {
    const char *layer;     /* "landlock", "seccomp", ... */
    const char *operation; /* "read", "write", "connect", ... */
    uint32_t count;
};

struct event_tool_done {
    const char *tool;         /* its name in the list of tools */
    const char *status;       /* of event_end, "pending_approval": a person has still to answer, or
                                 "rejected": bad arguments */
    bool has_run;             /* a command was started */
    bool has_failed;          /* and ended with another status than 0, or by a signal */
    uint64_t duration_ns;     /* from the call to its answer */
    uint64_t run_duration_ns; /* of the command */
    const char *limit;        /* the name of the limit that it met; NULL: none that we know of */
    const struct event_denial *denials;
    size_t n_denials;
};

struct event {
    enum event_kind kind;
    const char *session_id;
    const char *turn_id;
    const char *call_id;
    bool outlives_call; /* its command may go on after the call's answer, and so its events do */
    union {
        struct event_begin begin;
        struct event_delta delta;
        struct event_input input;
        struct event_end end;
        struct event_approval_request request;
        struct event_approval_decision decision;
        struct event_tool_done done;
    } u;
};

typedef void event_fn(void *arg, const struct event *e);

struct event_bus;

struct event_bus *event_bus_new(void);
void event_bus_free(struct event_bus *bus);
/* To all kinds. Returns an id > 0 for unsubscribing, 0 when memory is out. Both may be
 * called from inside a callback; a new subscriber sees the next event. */
uint64_t event_subscribe(struct event_bus *bus, event_fn *fn, void *arg) SY_NODISCARD;
/* To a set of kinds. */
uint64_t event_subscribe_to(struct event_bus *bus, unsigned kinds, event_fn *fn,
                            void *arg) SY_NODISCARD;
void event_unsubscribe(struct event_bus *bus, uint64_t id);
void event_emit(struct event_bus *bus, const struct event *e);
/* Has the kind a subscriber? Texts that nobody reads need not be made. */
bool event_bus_wants(const struct event_bus *bus, enum event_kind kind);

/*
 * Telemetry preview: at most LIMIT_PREVIEW_BYTES and LIMIT_PREVIEW_LINES of
 * text, cut on a UTF-8 border, with the notice of the specification,
 * "[output truncated]", on a line of its own where something is missing.
 */
#define EVENTS_PREVIEW_NOTICE "[output truncated]"
enum sy_code events_preview(struct buf *out, const char *text, size_t n) SY_NODISCARD;

#endif
