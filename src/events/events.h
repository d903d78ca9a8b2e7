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
enum event_kind { EVENT_EXEC_BEGIN, EVENT_EXEC_OUTPUT_DELTA, EVENT_EXEC_END };

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
    const char *out_text; /* stdout, stderr and both together, as kept */
    size_t out_len;
    const char *err_text;
    size_t err_len;
    const char *all_text;
    size_t all_len;
    const char *preview;             /* telemetry preview of all_text */
    const struct event_limit *limit; /* NULL: none that we know of */
    const char *denials;             /* a JSON object with "denials"; NULL: nothing was refused */
    const char *error;               /* sentence if our machinery failed, else NULL */
};

struct event {
    enum event_kind kind;
    const char *session_id;
    const char *turn_id;
    const char *call_id;
    union {
        struct event_begin begin;
        struct event_delta delta;
        struct event_end end;
    } u;
};

typedef void event_fn(void *arg, const struct event *e);

struct event_bus;

struct event_bus *event_bus_new(void);
void event_bus_free(struct event_bus *bus);
/* Returns an id > 0 for unsubscribing, 0 when memory is out. Both may be
 * called from inside a callback; a new subscriber sees the next event. */
uint64_t event_subscribe(struct event_bus *bus, event_fn *fn, void *arg) SY_NODISCARD;
void event_unsubscribe(struct event_bus *bus, uint64_t id);
void event_emit(struct event_bus *bus, const struct event *e);
/* Texts that nobody reads need not be made. */
bool event_bus_has_subscribers(const struct event_bus *bus);

/*
 * Telemetry preview: at most LIMIT_PREVIEW_BYTES and LIMIT_PREVIEW_LINES of
 * text, cut on a UTF-8 border, with the notice of the specification,
 * "[output truncated]", on a line of its own where something is missing.
 */
#define EVENTS_PREVIEW_NOTICE "[output truncated]"
enum sy_code events_preview(struct buf *out, const char *text, size_t n) SY_NODISCARD;

#endif
