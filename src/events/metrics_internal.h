#ifndef SY_EVENTS_METRICS_INTERNAL_H
#define SY_EVENTS_METRICS_INTERNAL_H

#include "events/metrics.h"

/* The numbers of one series; a counter uses `sum` alone. */
#define METRIC_BUCKETS (METRIC_BOUNDS + 1U)

struct metric_series {
    char labels[METRIC_LABELS][LIMIT_METRIC_LABEL];
    uint64_t sum;
    uint64_t taken;
    uint64_t *buckets; /* METRIC_BUCKETS, and behind them what of each was taken; NULL: a counter */
};

/* Series 0 to n-1 of a family, in the order in which they came. */
size_t metrics_n_series(const struct metrics *m, enum metric id);
const struct metric_series *metrics_series(const struct metrics *m, enum metric id, size_t i);
/* How many a histogram has seen. */
uint64_t metric_series_count(const struct metric_series *s);

#endif
