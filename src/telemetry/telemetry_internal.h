#ifndef SY_TELEMETRY_TELEMETRY_INTERNAL_H
#define SY_TELEMETRY_TELEMETRY_INTERNAL_H

#include <stdbool.h>

#include <uv.h>

#include "base/buf.h"
#include "telemetry/telemetry.h"

/* Failures by their kind, so that each is told once until things go well again. */
#define TOLD_MAX 8U
struct told {
    int64_t kinds[TOLD_MAX];
    size_t n;
};

/* True: this kind was not told yet, and counts as told from now on. */
bool told_is_new(struct told *told, int64_t kind);

/* Adding up in the store (keep.c). */
struct keeper;
struct keeper_options {
    struct metrics *metrics;
    uv_loop_t *loop;
    const char *state_dir;
    telemetry_warn_fn *warn;
};
enum sy_code keeper_new(struct keeper **ret, const struct keeper_options *options,
                        struct sy_error *err) SY_NODISCARD;
/* Something was counted: it is stored within LIMIT_METRICS_KEEP_MS. */
void keeper_news(struct keeper *k);
/* Hands in what is there. Its handles go with the loop. */
void keeper_end(struct keeper *k);
/* Waits for the store. Accepts NULL. */
void keeper_free(struct keeper *k);

/* Exporting (export.c). */
struct exporter;
struct exporter_options {
    struct metrics *metrics;
    uv_loop_t *loop;
    const struct config *config;
    const char *http_path;
    char *const *environ_list;
    telemetry_warn_fn *warn;
};
enum sy_code exporter_new(struct exporter **ret, const struct exporter_options *options,
                          struct sy_error *err) SY_NODISCARD;
/* Something was counted: exports begin, if they have not. */
void exporter_news(struct exporter *x);
/* The last export, if anything was ever counted. */
void exporter_end(struct exporter *x);
/* Accepts NULL. */
void exporter_free(struct exporter *x);

/* The headers that configuration gives, "Name: value" (headers.c). `secret` holds their text and
 * is wiped by headers_fini; `list` points into it and is NULL-terminated. */
#define HEADERS_MAX   16U
#define HEADERS_BYTES 16384U
struct headers {
    struct buf secret;
    char *list[HEADERS_MAX + 2];
    size_t n;
};
enum sy_code headers_read(struct headers *ret, const struct config *config,
                          char *const *environ_list, struct sy_error *err) SY_NODISCARD;
void headers_fini(struct headers *h);

/* A timer of its own memory, which keeps no loop running, and its end. */
uv_timer_t *telemetry_timer_new(uv_loop_t *loop, void *data);
void telemetry_timer_end(uv_timer_t *timer);

#endif
