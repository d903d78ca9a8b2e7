#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "events/metrics_internal.h"

/* Where there is no room for a label. */
#define OTHER "other"

static const struct metric_family families[METRIC_COUNT] = {
#define METRIC_ROW(id, kind, name, label, label2, series, help)                                    \
    [id] = {kind, name, label, label2, series, help},
    METRICS(METRIC_ROW)
#undef METRIC_ROW
};

/* As many bytes as there are series, and one more for each family that has no buckets. */
struct series_room {
#define METRIC_ROOM(id, kind, name, label, label2, series, help) char room_##id[series];
    METRICS(METRIC_ROOM)
#undef METRIC_ROOM
};

struct bucket_room {
#define METRIC_ROOM(id, kind, name, label, label2, series, help)                                   \
    char room_##id[(kind) == METRIC_HISTOGRAM ? (series) : 1];
    METRICS(METRIC_ROOM)
#undef METRIC_ROOM
};

#define SERIES_ALL     sizeof(struct series_room)
#define HISTOGRAMS_ALL sizeof(struct bucket_room)

#define MS(n) ((uint64_t)(n)*1000000U)

/* From a short command to the longest that may run unless it says so, and a person at lunch. */
const uint64_t metric_bounds_ns[METRIC_BOUNDS] = {
    MS(5),    MS(10),   MS(25),    MS(50),    MS(100),   MS(250),    MS(500),    MS(1000),
    MS(2500), MS(5000), MS(10000), MS(30000), MS(60000), MS(300000), MS(900000), MS(3600000),
};

struct metrics {
    int64_t since_ns;
    size_t n[METRIC_COUNT];
    size_t first[METRIC_COUNT]; /* of a family's series */
    struct metric_series series[SERIES_ALL];
    uint64_t buckets[HISTOGRAMS_ALL][2 * METRIC_BUCKETS];
    bool has_news;
};

const struct metric_family *
metric_family(enum metric m)
{
    return &families[m];
}

const char *
metric_label(const struct metric_family *f, size_t k)
{
    return k == 0 ? f->first : f->second;
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
    size_t len = strlen(text);
    const char *from = utf8_is_valid(text, len) ? text : OTHER;
    size_t n = utf8_cut(from, strlen(from), LIMIT_METRIC_LABEL - 1);

    memset(ret, 0, LIMIT_METRIC_LABEL); /* labels are compared whole */
    memcpy(ret, from, n);
    ret[n] = '\0';
}

static void
fill_labels(struct metric_series *s, const struct metric_family *f, const char *const *labels)
{
    for (size_t k = 0; k < METRIC_LABELS && metric_label(f, k) != NULL; k++) {
        copy_label(s->labels[k], labels[k] != NULL ? labels[k] : OTHER);
    }
}

/* The series of these labels, made if it is new. The last of a family is for all others. */
static struct metric_series *
series_of(struct metrics *m, enum metric id, const char *first, const char *second)
{
    static const char *const others[METRIC_LABELS] = {OTHER, OTHER};
    const char *const labels[METRIC_LABELS] = {first, second};
    const struct metric_family *f = &families[id];
    struct metric_series *list = &m->series[m->first[id]];
    struct metric_series wanted = {0};

    fill_labels(&wanted, f, labels);
    for (size_t i = 0; i < m->n[id]; i++) {
        if (memcmp(list[i].labels, wanted.labels, sizeof(wanted.labels)) == 0) {
            return &list[i];
        }
    }
    if (m->n[id] == f->series_max) {
        return &list[f->series_max - 1];
    }

    struct metric_series *s = &list[m->n[id]++];

    fill_labels(s, f, m->n[id] < f->series_max ? labels : others);
    return s;
}

void
metrics_count(struct metrics *m, enum metric id, const char *first, const char *second, uint64_t n)
{
    SY_ASSERT(families[id].kind == METRIC_COUNTER);
    series_of(m, id, first, second)->sum += n;
    m->has_news = true;
}

static size_t
bucket_of(uint64_t ns)
{
    size_t i = 0;

    while (i < METRIC_BOUNDS && ns > metric_bounds_ns[i]) {
        i++;
    }
    return i;
}

void
metrics_observe(struct metrics *m, enum metric id, const char *first, uint64_t ns)
{
    SY_ASSERT(families[id].kind == METRIC_HISTOGRAM);

    struct metric_series *s = series_of(m, id, first, NULL);

    s->sum += ns;
    s->buckets[bucket_of(ns)]++;
    m->has_news = true;
}

static void
count_done(struct metrics *m, const struct event_tool_done *d)
{
    metrics_count(m, METRIC_TOOL_CALLS, d->tool, d->status, 1);
    metrics_observe(m, METRIC_TOOL_DURATION, d->tool, d->duration_ns);
    if (d->has_run) {
        metrics_observe(m, METRIC_COMMAND_DURATION, d->tool, d->run_duration_ns);
    }
    if (d->has_failed) {
        metrics_count(m, METRIC_COMMANDS_FAILED, d->tool, NULL, 1);
    }
    if (strcmp(d->status, "timed_out") == 0) {
        metrics_count(m, METRIC_COMMANDS_TIMED_OUT, d->tool, NULL, 1);
    }
    if (d->limit != NULL) {
        metrics_count(m, METRIC_LIMITS, d->limit, NULL, 1);
    }
    for (size_t i = 0; i < d->n_denials; i++) {
        metrics_count(m, METRIC_DENIALS, d->denials[i].layer, d->denials[i].operation,
                      d->denials[i].count);
    }
}

void
metrics_on_event(void *arg, const struct event *e)
{
    struct metrics *m = arg;

    switch (e->kind) {
    case EVENT_APPROVAL_REQUESTED:
        if (!e->u.request.is_repeated) {
            metrics_count(m, METRIC_APPROVAL_ASKED, e->u.request.tool, NULL, 1);
        }
        break;
    case EVENT_APPROVAL_DECIDED:
        metrics_count(m, METRIC_APPROVAL_REQUESTED, e->u.decision.tool, e->u.decision.decision, 1);
        metrics_observe(m, METRIC_APPROVAL_WAIT, e->u.decision.tool, e->u.decision.waited_ns);
        break;
    case EVENT_TOOL_DONE:
        count_done(m, &e->u.done);
        break;
    case EVENT_EXEC_BEGIN:
    case EVENT_EXEC_OUTPUT_DELTA:
    case EVENT_EXEC_INPUT:
    case EVENT_EXEC_END:
    case EVENT_APPROVAL_COMMENTED:
        break;
    }
}

/* Taking and giving back. The numbers of a series: its sum, then its buckets. */

static size_t
n_numbers(const struct metric_series *s)
{
    return s->buckets != NULL ? 1 + METRIC_BUCKETS : 1;
}

static uint64_t *
number_of(struct metric_series *s, size_t i)
{
    return i == 0 ? &s->sum : &s->buckets[i - 1];
}

static uint64_t *
taken_of(struct metric_series *s, size_t i)
{
    return i == 0 ? &s->taken : &s->buckets[METRIC_BUCKETS + i - 1];
}

static int64_t
part_of(size_t i)
{
    if (i == 0) {
        return METRIC_PART_SUM;
    }
    return i <= METRIC_BOUNDS ? (int64_t)metric_bounds_ns[i - 1] : METRIC_PART_REST;
}

/* Into `out` unless it is NULL, and then they count as taken. Returns how many there are. */
static size_t
take_news(struct metrics *m, enum metric id, struct metric_cell *out)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n[id]; i++) {
        struct metric_series *s = &m->series[m->first[id] + i];

        for (size_t k = 0; k < n_numbers(s); k++) {
            uint64_t news = *number_of(s, k) - *taken_of(s, k);

            if (news > 0 && out != NULL) {
                out[n] = (struct metric_cell){
                    .name = families[id].name, .part = part_of(k), .value = news};
                memcpy(out[n].labels, s->labels, sizeof(s->labels));
                *taken_of(s, k) += news;
            }
            n += news > 0 ? 1 : 0;
        }
    }
    return n;
}

bool
metrics_has_news(const struct metrics *m)
{
    return m->has_news;
}

enum sy_code
metrics_take(struct metrics *m, struct metric_cell **ret, size_t *ret_n)
{
    size_t n = 0;

    *ret = NULL;
    *ret_n = 0;
    for (unsigned id = 0; id < METRIC_COUNT; id++) {
        n += take_news(m, (enum metric)id, NULL);
    }
    if (n == 0) {
        m->has_news = false;
        return SY_E_OK;
    }
    *ret = mem_alloc_zero(n, sizeof(**ret));
    if (*ret == NULL) {
        return SY_E_NOMEM;
    }
    for (unsigned id = 0; id < METRIC_COUNT; id++) {
        *ret_n += take_news(m, (enum metric)id, *ret + *ret_n);
    }
    m->has_news = false;
    return SY_E_OK;
}

/* Which number of a series is the part? */
static size_t
index_of(const struct metric_series *s, int64_t part)
{
    if (s->buckets == NULL || part == METRIC_PART_SUM) {
        return 0;
    }
    return part == METRIC_PART_REST ? METRIC_BUCKETS : 1 + bucket_of((uint64_t)part);
}

void
metrics_give_back(struct metrics *m, const struct metric_cell *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        enum metric id = metric_find(cells[i].name);
        struct metric_series *s = series_of(m, id, cells[i].labels[0], cells[i].labels[1]);

        *taken_of(s, index_of(s, cells[i].part)) -= cells[i].value;
        m->has_news = true;
    }
}

void
metrics_add(struct metrics *m, const struct metric_cell *cell)
{
    enum metric id = metric_find(cell->name);

    if (id == METRIC_COUNT || cell->part < 0) {
        return;
    }

    struct metric_series *s = series_of(m, id, cell->labels[0], cell->labels[1]);

    *number_of(s, index_of(s, cell->part)) += cell->value;
    m->has_news = true;
}
