#include <stdio.h>

#include "base/json.h"
#include "events/metrics_internal.h"

/* Prometheus' text format 0.0.4, and JSON for programs. */

#define NS_PER_S 1000000000U

/* Of a label: backslash, quote and line feed are written with a backslash. */
static enum sy_code
add_escaped(struct buf *out, const char *text, bool is_label)
{
    enum sy_code rc = SY_E_OK;

    for (; *text != '\0' && rc == SY_E_OK; text++) {
        if (*text == '\n') {
            rc = buf_add_str(out, "\\n");
        } else if (*text == '\\' || (*text == '"' && is_label)) {
            rc = buf_addf(out, "\\%c", *text);
        } else {
            rc = buf_add_char(out, *text);
        }
    }
    return rc;
}

/* Seconds without trailing zeros: "0.005", "1", "3600". */
static enum sy_code
add_seconds(struct buf *out, uint64_t ns)
{
    char text[48];
    int n = snprintf(text, sizeof(text), "%llu.%09llu", (unsigned long long)(ns / NS_PER_S),
                     (unsigned long long)(ns % NS_PER_S));
    size_t len = (size_t)n;

    while (text[len - 1] == '0') {
        len--;
    }
    len -= text[len - 1] == '.' ? 1 : 0;
    return buf_add(out, text, len);
}

/* "{a="b",c="d"" without the brace that ends it; "" where there are none. */
static enum sy_code
add_labels(struct buf *out, enum metric id, const struct metric_series *s)
{
    const struct metric_family *f = metric_family(id);
    enum sy_code rc = SY_E_OK;

    for (size_t k = 0; k < METRIC_LABELS && metric_label(f, k) != NULL && rc == SY_E_OK; k++) {
        rc = buf_addf(out, "%c%s=\"", k == 0 ? '{' : ',', metric_label(f, k));
        rc = rc == SY_E_OK ? add_escaped(out, s->labels[k], true) : rc;
        rc = rc == SY_E_OK ? buf_add_char(out, '"') : rc;
    }
    return rc;
}

/* The start of a line up to its last label: name, suffix, labels. */
static enum sy_code
begin_line(struct buf *out, enum metric id, const char *suffix, const struct metric_series *s)
{
    enum sy_code rc = buf_addf(out, METRIC_PREFIX "%s%s", metric_family(id)->name, suffix);

    return rc == SY_E_OK ? add_labels(out, id, s) : rc;
}

static enum sy_code
add_bucket(struct buf *out, enum metric id, const struct metric_series *s, size_t i, uint64_t n)
{
    enum sy_code rc = begin_line(out, id, "_bucket", s);

    rc = rc == SY_E_OK ? buf_add_str(out, ",le=\"") : rc;
    if (rc == SY_E_OK) {
        rc = i < METRIC_BOUNDS ? add_seconds(out, metric_bounds_ns[i]) : buf_add_str(out, "+Inf");
    }
    return rc == SY_E_OK ? buf_addf(out, "\"} %llu\n", (unsigned long long)n) : rc;
}

static enum sy_code
add_histogram(struct buf *out, enum metric id, const struct metric_series *s)
{
    enum sy_code rc = SY_E_OK;
    uint64_t n = 0;

    for (size_t i = 0; i < METRIC_BUCKETS && rc == SY_E_OK; i++) {
        n += s->buckets[i];
        rc = add_bucket(out, id, s, i, n);
    }
    rc = rc == SY_E_OK ? begin_line(out, id, "_sum", s) : rc;
    rc = rc == SY_E_OK ? buf_add_str(out, "} ") : rc;
    rc = rc == SY_E_OK ? add_seconds(out, s->sum) : rc;
    rc = rc == SY_E_OK ? buf_add_char(out, '\n') : rc;
    rc = rc == SY_E_OK ? begin_line(out, id, "_count", s) : rc;
    return rc == SY_E_OK ? buf_addf(out, "} %llu\n", (unsigned long long)n) : rc;
}

static enum sy_code
add_counter(struct buf *out, enum metric id, const struct metric_series *s)
{
    enum sy_code rc = begin_line(out, id, "", s);

    return rc == SY_E_OK ? buf_addf(out, "} %llu\n", (unsigned long long)s->sum) : rc;
}

static const char *
kind_name(enum metric id)
{
    return metric_family(id)->kind == METRIC_COUNTER ? "counter" : "histogram";
}

static enum sy_code
add_family(struct buf *out, const struct metrics *m, enum metric id)
{
    const struct metric_family *f = metric_family(id);
    enum sy_code rc = buf_addf(out, "# HELP " METRIC_PREFIX "%s ", f->name);

    rc = rc == SY_E_OK ? add_escaped(out, f->help, false) : rc;
    rc = rc == SY_E_OK ? buf_addf(out, "\n# TYPE " METRIC_PREFIX "%s %s\n", f->name, kind_name(id))
                       : rc;
    for (size_t i = 0; i < metrics_n_series(m, id) && rc == SY_E_OK; i++) {
        const struct metric_series *s = metrics_series(m, id, i);

        rc = f->kind == METRIC_COUNTER ? add_counter(out, id, s) : add_histogram(out, id, s);
    }
    return rc;
}

enum sy_code
metrics_write_prometheus(struct buf *out, const struct metrics *m, const char *version)
{
    enum sy_code rc = buf_add_str(
        out, "# HELP " METRIC_PREFIX "build_info The version of shellyard that wrote this.\n"
             "# TYPE " METRIC_PREFIX "build_info gauge\n" METRIC_PREFIX "build_info{version=\"");

    rc = rc == SY_E_OK ? add_escaped(out, version, true) : rc;
    rc = rc == SY_E_OK ? buf_add_str(out, "\"} 1\n") : rc;
    for (unsigned id = 0; id < METRIC_COUNT && rc == SY_E_OK; id++) {
        rc = add_family(out, m, (enum metric)id);
    }
    return rc;
}

/* Seconds as a number of JSON. */
static void
json_seconds(struct jw *w, const char *key, uint64_t ns)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64};

    jw_key(w, key);
    if (add_seconds(&text, ns) == SY_E_OK) {
        jw_raw(w, buf_view(&text), text.len);
    } else {
        w->rc = SY_E_NOMEM;
    }
}

static void
json_buckets(struct jw *w, const struct metric_series *s)
{
    uint64_t n = 0;

    jw_key(w, "buckets");
    jw_array(w);
    for (size_t i = 0; i < METRIC_BOUNDS; i++) {
        n += s->buckets[i];
        jw_object(w);
        json_seconds(w, "le", metric_bounds_ns[i]);
        jw_key_int(w, "count", (int64_t)n);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void
json_series(struct jw *w, enum metric id, const struct metric_series *s)
{
    const struct metric_family *f = metric_family(id);

    jw_object(w);
    jw_key(w, "labels");
    jw_object(w);
    for (size_t k = 0; k < METRIC_LABELS && metric_label(f, k) != NULL; k++) {
        jw_key_str(w, metric_label(f, k), s->labels[k]);
    }
    jw_end_object(w);
    if (f->kind == METRIC_COUNTER) {
        jw_key_int(w, "value", (int64_t)s->sum);
    } else {
        jw_key_int(w, "count", (int64_t)metric_series_count(s));
        json_seconds(w, "sum", s->sum);
        json_buckets(w, s);
    }
    jw_end_object(w);
}

static void
json_family(struct jw *w, const struct metrics *m, enum metric id)
{
    char name[64];

    (void)snprintf(name, sizeof(name), METRIC_PREFIX "%s", metric_family(id)->name);
    jw_object(w);
    jw_key_str(w, "name", name);
    jw_key_str(w, "type", kind_name(id));
    jw_key_str(w, "help", metric_family(id)->help);
    jw_key(w, "series");
    jw_array(w);
    for (size_t i = 0; i < metrics_n_series(m, id); i++) {
        json_series(w, id, metrics_series(m, id, i));
    }
    jw_end_array(w);
    jw_end_object(w);
}

enum sy_code
metrics_write_json(struct buf *out, const struct metrics *m, const char *version, int64_t since_ms)
{
    struct jw w = {.out = out};

    jw_object(&w);
    jw_key_str(&w, "version", version);
    if (since_ms > 0) {
        jw_key_int(&w, "since_ms", since_ms);
    }
    jw_key(&w, "metrics");
    jw_array(&w);
    for (unsigned id = 0; id < METRIC_COUNT; id++) {
        json_family(&w, m, (enum metric)id);
    }
    jw_end_array(&w);
    jw_end_object(&w);
    return jw_done(&w);
}
