#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "events/metrics_internal.h"

/* Where there is no room for a label. */
#define OTHER "other"

static const struct metric_family families[METRIC_COUNT] = {
#define METRIC_ROW(id, kind, name, label, label2, series, help)                                    \
    [id] = {kind, name, {label, label2}, series, help},
    METRICS(METRIC_ROW)
#undef METRIC_ROW
};

enum {
#define METRIC_SUM(id, kind, name, label, label2, series, help) +(series)
    SERIES_ALL = 0 METRICS(METRIC_SUM),
#undef METRIC_SUM
#define METRIC_SUM(id, kind, name, label, label2, series, help)                                    \
    +((kind) == METRIC_HISTOGRAM ? (series) : 0)
    HISTOGRAMS_ALL = 0 METRICS(METRIC_SUM)
#undef METRIC_SUM
};

#define MS(n) ((uint64_t)(n)*1000000U)

/* From a short command to the longest that may run unless it says so, and a person at lunch. */
const uint64_t metric_bounds_ns[METRIC_BOUNDS] = {
    MS(5),    MS(10),    MS(25),    MS(50),    MS(100),    MS(250),    MS(500),     MS(1000),
    MS(2500), MS(5000), MS(10000), MS(30000), MS(60000), MS(300000), MS(900000), MS(3600000),
};

struct metrics {
    int64_t since_ns;
    size_t n[METRIC_COUNT];
    size_t first[METRIC_COUNT]; /* of a family's series */
    struct metric_series series[SERIES_ALL];
    uint64_t buckets[HISTOGRAMS_ALL][2 * METRIC_BUCKETS];
    bool has_news;
    bool is_keeping;
    struct metric_cell *keeping; /* borrowed between begin and end: the caller's */
    size_t n_keeping;
};

const struct metric_family *
metric_family(enum metric m)
{
    return &families[m];
}

enum metric
metric_find(const char *name)
{
    unsigned i = 0;

    while (i < METRIC_COUNT && strcmp(families[i].name, name) != 0) {
        i++;
    }
    return (enum metric)i;
}

struct metrics *
metrics_new(void)
{
    struct metrics *m = mem_alloc_zero(1, sizeof(*m));
    size_t series = 0;
    size_t histograms = 0;

    if (m == NULL) {
        return NULL;
    }
    m->since_ns = clock_wall_ns();
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        m->first[i] = series;
        for (size_t k = 0; families[i].kind == METRIC_HISTOGRAM && k < families[i].series_max;
             k++) {
            m->series[series + k].buckets = m->buckets[histograms++];
        }
        series += families[i].series_max;
    }
    return m;
}

void
metrics_free(struct metrics *m)
{
    mem_free(m);
}

int64_t
metrics_since_ns(const struct metrics *m)
{
    return m->since_ns;
}

size_t
metrics_n_series(const struct metrics *m, enum metric id)
{
    return m->n[id];
}

const struct metric_series *
metrics_series(const struct metrics *m, enum metric id, size_t i)
{
    return &m->series[m->first[id] + i];
}

uint64_t
metric_series_count(const struct metric_series *s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < METRIC_BUCKETS; i++) {
        n += s->buckets[i];
    }
    return n;
}

static void
copy_label(char ret[LIMIT_METRIC_LABEL], const char *text)
{
    size_t n = utf8_cut(text, strlen(text), LIMIT_METRIC_LABEL - 1);

    memcpy(ret, text, n);
    ret[n] = '\0';
}

/* The series of these labels, made if it is new. The last of a family is for all others. */
static struct metric_series *
series_of(struct metrics *m, enum metric id, const char *first, const char *second)
{
    const struct metric_family *f = &families[id];
    const char *given[METRIC_LABELS] = {first, second};
    char labels[METRIC_LABELS][LIMIT_METRIC_LABEL] = {{0}};

    for (size_t k = 0; k < METRIC_LABELS && f->labels[k] != NULL; k++) {
        copy_label(labels[k], m->n[id] < f->series_max && given[k] != NULL ? given[k] : OTHER);
        if (given[k] != NULL) {
            copy_label(labels[k], given[k]);
        }
    }
    for (size_t i = 0; i < m->n[id]; i++) {
        struct metric_series *s = &m->series[m->first[id] + i];

        if (memcmp(s->labels, labels, sizeof(labels)) == 0) {
            return s;
        }
    }
    if (m->n[id] == f->series_max) {
        return &m->series[m->first[id] + f->series_max - 1];
    }

    struct metric_series *s = &m->series[m->first[id] + m->n[id]++];

    if (m->n[id] == f->series_max) {
        for (size_t k = 0; k < METRIC_LABELS && f->labels[k] != NULL; k++) {
            copy_label(labels[k], OTHER);
        }
    }
    memcpy(s->labels, labels, sizeof(labels));
    return s;
}
