#include "store/metric.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/store_internal.h"

#define NS_PER_MS 1000000

static enum sy_code
add_cells(struct store *st, const struct metric_cell *cells, size_t n, struct sy_error *err)
{
    STORE_STMT s = NULL;
    enum sy_code rc = store_prepare(
        &s, st,
        "INSERT INTO metric (name, first, second, part, value, since_ms)"
        " VALUES (:name, :first, :second, :part, :value, :since)"
        " ON CONFLICT (name, first, second, part) DO UPDATE SET value = value + excluded.value",
        err);
    int64_t now_ms = clock_wall_ns() / NS_PER_MS;

    for (size_t i = 0; rc == SY_E_OK && i < n; i++) {
        (void)sqlite3_reset(s);

        int bound = store_bind_text(s, ":name", cells[i].name) |
                    store_bind_text(s, ":first", cells[i].labels[0]) |
                    store_bind_text(s, ":second", cells[i].labels[1]) |
                    store_bind_i64(s, ":part", cells[i].part) |
                    store_bind_i64(s, ":value", (int64_t)cells[i].value) |
                    store_bind_i64(s, ":since", now_ms);

        rc = store_run(st, s, bound, NULL, err);
    }
    return rc;
}

static enum sy_code
check_count(struct store *st, struct sy_error *err)
{
    int64_t n = 0;
    enum sy_code rc = store_number(&n, st, "SELECT count(*) FROM metric", err);

    if (rc == SY_E_OK && n > (int64_t)LIMIT_METRICS_ROWS) {
        rc = sy_err_set(err, SY_E_LIMIT, "at most %u different counts are stored",
                        LIMIT_METRICS_ROWS);
    }
    return rc;
}

enum sy_code
store_metrics_add(struct store *st, const struct metric_cell *cells, size_t n, struct sy_error *err)
{
    struct store_txn txn;
    enum sy_code rc = store_begin(&txn, st, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = add_cells(st, cells, n, err);
    if (rc == SY_E_OK) {
        rc = check_count(st, err);
    }
    return store_end(&txn, rc, err);
}

/* false: a text is missing or longer than a label, so it is no row of ours. */
static bool
read_label(char ret[LIMIT_METRIC_LABEL], sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    size_t n = text != NULL ? strlen(text) : LIMIT_METRIC_LABEL;

    if (n >= LIMIT_METRIC_LABEL) {
        return false;
    }
    memset(ret, 0, LIMIT_METRIC_LABEL);
    memcpy(ret, text, n);
    ret[n] = '\0';
    return true;
}

static void
add_row(struct metrics *into, sqlite3_stmt *s)
{
    struct metric_cell cell = {.name = (const char *)sqlite3_column_text(s, 0)};
    int64_t value = sqlite3_column_int64(s, 4);

    if (cell.name == NULL || value < 0 || !read_label(cell.labels[0], s, 1) ||
        !read_label(cell.labels[1], s, 2)) {
        return;
    }
    cell.part = sqlite3_column_int64(s, 3);
    cell.value = (uint64_t)value;
    metrics_add(into, &cell);
}

enum sy_code
store_metrics_read(struct metrics *into, int64_t *ret_since_ms, struct store *st,
                   struct sy_error *err)
{
    STORE_STMT s = NULL;
    bool is_row = true;
    int64_t since_ms = 0;
    enum sy_code rc = store_prepare(&s, st,
                                    "SELECT name, first, second, part, value, since_ms FROM metric"
                                    " ORDER BY name, first, second, part",
                                    err);

    while (rc == SY_E_OK && is_row) {
        rc = store_step(st, s, &is_row, err);
        if (rc == SY_E_OK && is_row) {
            int64_t since = sqlite3_column_int64(s, 5);

            add_row(into, s);
            since_ms = since_ms == 0 || since < since_ms ? since : since_ms;
        }
    }
    if (rc == SY_E_OK) {
        *ret_since_ms = since_ms;
    }
    return rc;
}
