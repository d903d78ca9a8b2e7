#ifndef SY_TELEMETRY_TELEMETRY_H
#define SY_TELEMETRY_TELEMETRY_H

#include "base/err.h"
#include "config/config.h"
#include "events/events.h"
#include "events/metrics.h"

/*
 * Counts what an engine does (events/metrics.h), adds it up in the user's store for `shellyard
 * metrics`, and exports it by OTLP where that is configured. It stands beside the calls: nothing
 * is opened and no timer runs before the first event, and what fails is told once and costs no
 * call anything.
 */
struct telemetry;
struct uv_loop_s;

/* One sentence for whoever looks after this machine. */
typedef void telemetry_warn_fn(const char *what, const struct sy_error *why);

/* Borrowed until telemetry_free, but `bus` until telemetry_end. */
struct telemetry_options {
    const struct config *config;
    struct event_bus *bus;
    struct uv_loop_s *loop;
    const char *state_dir; /* NULL: nothing is stored */
    const char *http_path; /* of shellyard-http; NULL: there is none */
    char *const *environ_list;
    telemetry_warn_fn *warn;
};

/* *ret stays NULL where neither storing nor exporting is wanted. */
enum sy_code telemetry_new(struct telemetry **ret, const struct telemetry_options *options,
                           struct sy_error *err) SY_NODISCARD;
/* The engine ends: hands what was counted to the store, and begins the last export, which keeps
 * the loop running for LIMIT_EXPORT_END_MS at most. Then run the loop, and free. Accepts NULL. */
void telemetry_end(struct telemetry *t);
/* Waits until the store has it (store_writer_close). After telemetry_end. Accepts NULL. */
void telemetry_free(struct telemetry *t);

#endif
