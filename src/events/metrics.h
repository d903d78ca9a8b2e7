#ifndef SY_EVENTS_METRICS_H
#define SY_EVENTS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "events/events.h"

/*
 * Counters and histograms of one process, on the loop's thread. All memory is taken at birth, so
 * counting allocates nothing and can't fail. Labels are bounded: a family has so many series, and
 * what comes beyond them is counted under "other". Nothing a caller chose (a path, a command, an
 * id) is ever a label.
 *
 * Families (X-macro): id, kind, name after "shellyard_", labels, how many series, help.
 */
#define METRICS(X)                                                                                  \
    X(METRIC_APPROVAL_REQUESTED, METRIC_COUNTER, "approval_requested_total", "tool", "decision",    \
      96, "Requests for approval that were decided, by what was decided.")                          \
    X(METRIC_APPROVAL_ASKED, METRIC_COUNTER, "approval_asked_total", "tool", NULL, 12,              \
      "Requests for approval that were put to a person.")                                           \
    X(METRIC_APPROVAL_WAIT, METRIC_HISTOGRAM, "approval_wait_seconds", "tool", NULL, 12,            \
      "Time from a request for approval to its decision.")                                          \
    X(METRIC_TOOL_CALLS, METRIC_COUNTER, "tool_calls_total", "tool", "status", 96,                  \
      "Calls of tools that were answered, by how they ended.")                                      \
    X(METRIC_TOOL_DURATION, METRIC_HISTOGRAM, "tool_call_duration_seconds", "tool", NULL, 12,       \
      "Time from a call of a tool to its answer, waits for a person and for other calls included.") \
    X(METRIC_COMMAND_DURATION, METRIC_HISTOGRAM, "command_duration_seconds", "tool", NULL, 12,      \
      "Time that commands ran.")                                                                    \
    X(METRIC_COMMANDS_FAILED, METRIC_COUNTER, "commands_failed_total", "tool", NULL, 12,            \
      "Commands that ended with another status than 0, or by a signal.")                            \
    X(METRIC_COMMANDS_TIMED_OUT, METRIC_COUNTER, "commands_timed_out_total", "tool", NULL, 12,      \
      "Commands that were ended because their time was over.")                                      \
    X(METRIC_LIMITS, METRIC_COUNTER, "command_limits_total", "limit", NULL, 12,                     \
      "Commands that met a limit of what they may use.")                                            \
    X(METRIC_DENIALS, METRIC_COUNTER, "sandbox_denials_total", "layer", "operation", 64,            \
      "Acts of commands that the sandbox refused.")                                                 \
    X(METRIC_EXPORTS, METRIC_COUNTER, "otlp_exports_total", "result", NULL, 4,                      \
      "Exports of metrics by OTLP, by their result.")

enum metric_kind { METRIC_COUNTER, METRIC_HISTOGRAM };

enum metric {
#define METRIC_ENUM(id, kind, name, label, label2, series, help) id,
    METRICS(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};

#define METRIC_PREFIX "shellyard_"
#define METRIC_LABELS 2U

struct metric_family {
    enum metric_kind kind;
    const char *name;  /* without the prefix */
    const char *first; /* label; NULL: it has fewer */
    const char *second;
    size_t series_max;
    const char *help;
};

const struct metric_family *metric_family(enum metric m);
/* The name of its k-th label from 0; NULL: it has fewer. */
const char *metric_label(const struct metric_family *f, size_t k);
/* By its name without the prefix; METRIC_COUNT: none. */
enum metric metric_find(const char *name);

/* The upper bounds of a histogram's buckets in nanoseconds, ascending; the last has none. */
#define METRIC_BOUNDS 16U
extern const uint64_t metric_bounds_ns[METRIC_BOUNDS];

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
/* When it was made, in nanoseconds since 1970. */
int64_t metrics_since_ns(const struct metrics *m);

/* `second` NULL for a family with one label. */
void metrics_count(struct metrics *m, enum metric id, const char *first, const char *second,
                   uint64_t n);
void metrics_observe(struct metrics *m, enum metric id, const char *first, uint64_t ns);
/* An event_fn, for METRICS_EVENTS; `arg` is the metrics. */
#define METRICS_EVENTS                                                                             \
    (EVENT_BIT(EVENT_APPROVAL_REQUESTED) | EVENT_BIT(EVENT_APPROVAL_DECIDED) |                     \
     EVENT_BIT(EVENT_TOOL_DONE))
void metrics_on_event(void *arg, const struct event *e);

/*
 * One number of a series, for keeping and adding up: of a counter its value (part METRIC_PART_SUM);
 * of a histogram the sum of all in nanoseconds (METRIC_PART_SUM), and how many fell into each
 * bucket, by itself: `part` is the upper bound in nanoseconds, METRIC_PART_REST that of the last.
 */
#define METRIC_PART_SUM  0
#define METRIC_PART_REST INT64_MAX

struct metric_cell {
    const char *name;                               /* static, without the prefix */
    char labels[METRIC_LABELS][LIMIT_METRIC_LABEL]; /* "" where there are fewer */
    int64_t part;
    uint64_t value;
};

/*
 * What was counted since it was last taken, as copies that the caller frees; n 0 and NULL: nothing.
 * Give back what could not be kept, and it comes again.
 */
bool metrics_has_news(const struct metrics *m);
enum sy_code metrics_take(struct metrics *m, struct metric_cell **ret, size_t *ret_n) SY_NODISCARD;
void metrics_give_back(struct metrics *m, const struct metric_cell *cells, size_t n);

/* Adds a cell to its series. One of an unknown family is left out; a bound that is none of ours
 * counts in the first bucket that holds it. */
void metrics_add(struct metrics *m, const struct metric_cell *cell);

/* Prometheus' text format 0.0.4. */
enum sy_code metrics_write_prometheus(struct buf *out, const struct metrics *m,
                                      const char *version) SY_NODISCARD;
/* One JSON object. since_ms: when counting began, 0: nothing was counted. */
enum sy_code metrics_write_json(struct buf *out, const struct metrics *m, const char *version,
                                int64_t since_ms) SY_NODISCARD;
/* The body of an OTLP/HTTP request in JSON (ExportMetricsServiceRequest), cumulative. */
struct metrics_otlp {
    const char *version;  /* service.version */
    const char *instance; /* service.instance.id */
    int64_t now_ns;       /* since 1970 */
};
enum sy_code metrics_write_otlp(struct buf *out, const struct metrics *m,
                                const struct metrics_otlp *about) SY_NODISCARD;

#endif
