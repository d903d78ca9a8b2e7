#include <stdio.h>

#include "base/json.h"
#include "events/metrics_internal.h"

/*
 * The metrics of one process as the body of an OTLP/HTTP request in JSON. 64-bit integers are
 * strings there, names are in lowerCamelCase, enumerations are numbers.
 */

#define TEMPORALITY_CUMULATIVE 2

static void
key_u64(struct jw *w, const char *key, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    jw_key_str(w, key, text);
}

static void
attribute(struct jw *w, const char *key, const char *value)
{
    jw_object(w);
    jw_key_str(w, "key", key);
    jw_key(w, "value");
    jw_object(w);
    jw_key_str(w, "stringValue", value);
    jw_end_object(w);
    jw_end_object(w);
}

static void
write_resource(struct jw *w, const struct metrics_otlp *about)
{
    jw_key(w, "resource");
    jw_object(w);
    jw_key(w, "attributes");
    jw_array(w);
    attribute(w, "service.name", "shellyard");
    attribute(w, "service.version", about->version);
    attribute(w, "service.instance.id", about->instance);
    jw_end_array(w);
    jw_end_object(w);
}

/* How many in each bucket, not added up, and the bounds between them in seconds. */
static void
write_buckets(struct jw *w, const struct metric_series *s)
{
    char text[24];

    jw_key(w, "bucketCounts");
    jw_array(w);
    for (size_t i = 0; i < METRIC_BUCKETS; i++) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)s->buckets[i]);
        jw_str(w, text);
    }
    jw_end_array(w);
    jw_key(w, "explicitBounds");
    jw_array(w);
    for (size_t i = 0; i < METRIC_BOUNDS; i++) {
        jw_real(w, (double)metric_bounds_ns[i] / 1e9, 3);
    }
    jw_end_array(w);
}

static void
write_point(struct jw *w, enum metric id, const struct metric_series *s, const struct metrics *m,
            int64_t now_ns)
{
    const struct metric_family *f = metric_family(id);

    jw_object(w);
    jw_key(w, "attributes");
    jw_array(w);
    for (size_t k = 0; k < METRIC_LABELS && metric_label(f, k) != NULL; k++) {
        attribute(w, metric_label(f, k), s->labels[k]);
    }
    jw_end_array(w);
    key_u64(w, "startTimeUnixNano", (uint64_t)metrics_since_ns(m));
    key_u64(w, "timeUnixNano", (uint64_t)now_ns);
    if (f->kind == METRIC_COUNTER) {
        key_u64(w, "asInt", s->sum);
    } else {
        key_u64(w, "count", metric_series_count(s));
        jw_key(w, "sum");
        jw_real(w, (double)s->sum / 1e9, 9);
        write_buckets(w, s);
    }
    jw_end_object(w);
}

static void
write_metric(struct jw *w, const struct metrics *m, enum metric id, int64_t now_ns)
{
    const struct metric_family *f = metric_family(id);
    bool is_counter = f->kind == METRIC_COUNTER;
    char name[64];

    (void)snprintf(name, sizeof(name), METRIC_PREFIX "%s", f->name);
    jw_object(w);
    jw_key_str(w, "name", name);
    jw_key_str(w, "description", f->help);
    jw_key_str(w, "unit", is_counter ? "1" : "s");
    jw_key(w, is_counter ? "sum" : "histogram");
    jw_object(w);
    jw_key_int(w, "aggregationTemporality", TEMPORALITY_CUMULATIVE);
    if (is_counter) {
        jw_key_bool(w, "isMonotonic", true);
    }
    jw_key(w, "dataPoints");
    jw_array(w);
    for (size_t i = 0; i < metrics_n_series(m, id); i++) {
        write_point(w, id, metrics_series(m, id, i), m, now_ns);
    }
    jw_end_array(w);
    jw_end_object(w);
    jw_end_object(w);
}

enum sy_code
metrics_write_otlp(struct buf *out, const struct metrics *m, const struct metrics_otlp *about)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key(&w, "resourceMetrics");
    jw_array(&w);
    jw_object(&w);
    write_resource(&w, about);
    jw_key(&w, "scopeMetrics");
    jw_array(&w);
    jw_object(&w);
    jw_key(&w, "scope");
    jw_object(&w);
    jw_key_str(&w, "name", "shellyard");
    jw_key_str(&w, "version", about->version);
    jw_end_object(&w);
    jw_key(&w, "metrics");
    jw_array(&w);
    for (unsigned id = 0; id < METRIC_COUNT; id++) {
        if (metrics_n_series(m, (enum metric)id) > 0) {
            write_metric(&w, m, (enum metric)id, about->now_ns);
        }
    }
    jw_end_array(&w);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_end_object(&w);
    jw_end_array(&w);
    jw_end_object(&w);
    return jw_done(&w);
}
