#ifndef SY_STORE_METRIC_H
#define SY_STORE_METRIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "events/metrics.h"
#include "store/store.h"

/*
 * What all processes of a user have counted, one row for each number (struct metric_cell). They
 * only add, so that any number of them may at once.
 */

/* All of them or none. SY_E_LIMIT beyond LIMIT_METRICS_ROWS different rows. */
enum sy_code store_metrics_add(struct store *st, const struct metric_cell *cells, size_t n,
                               struct sy_error *err) SY_NODISCARD;

/* Adds all that is stored to `into`. *ret_since_ms: since when, 0: nothing is stored. */
enum sy_code store_metrics_read(struct metrics *into, int64_t *ret_since_ms, struct store *st,
                                struct sy_error *err) SY_NODISCARD;

#endif
