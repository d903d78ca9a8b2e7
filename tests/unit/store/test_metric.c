#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "store/metric.h"
#include "store/store_internal.h"
#include "yard.h"

static const struct metric_cell cells[] = {
    {.name = "tool_calls_total", .labels = {"shell", "exited"}, .value = 2},
    {                                  .name = "command_duration_seconds",       .labels = {"shell"},              .value = 3000000          },
    { .name = "command_duration_seconds",           .labels = {"shell"},                              .part = 5000000,           .value = 1},
    { .name = "command_duration_seconds",  .labels = {"shell"},                     .part = METRIC_PART_REST,           .value = 1},
};

#define N_CELLS (sizeof(cells) / sizeof(cells[0]))

/* What is stored, as cells again. */
static size_t
read_back(struct metric_cell **ret, const struct yard *y, int64_t *ret_since_ms)
{
    struct store *st = yard_open(y);
    struct metrics *m = metrics_new();
    struct sy_error err = {0};
    size_t n = 0;

    assert_non_null(m);
    assert_int_equal(store_metrics_read(m, ret_since_ms, st, &err), SY_E_OK);
    assert_int_equal(metrics_take(m, ret, &n), SY_E_OK);
    metrics_free(m);
    store_close(st);
    return n;
}

static void
counts_of_all_processes_add_up(void **state)
{
    struct store *a = yard_open(*state);
    struct store *b = yard_open(*state);
    struct sy_error err = {0};
    struct metric_cell *stored = NULL;
    int64_t since_ms = 0;

    assert_int_equal(store_metrics_add(a, cells, N_CELLS, &err), SY_E_OK);
    assert_int_equal(store_metrics_add(b, cells, N_CELLS, &err), SY_E_OK);
    store_close(a);
    store_close(b);
    assert_int_equal(read_back(&stored, *state, &since_ms), N_CELLS);
    assert_true(since_ms > 0);
    assert_string_equal(stored[0].name, "tool_calls_total");
    assert_string_equal(stored[0].labels[1], "exited");
    assert_int_equal(stored[0].value, 4);
    assert_int_equal(stored[1].part, METRIC_PART_SUM);
    assert_int_equal(stored[1].value, 6000000);
    assert_int_equal(stored[2].part, 5000000);
    assert_int_equal(stored[2].value, 2);
    assert_true(stored[3].part == METRIC_PART_REST);
    mem_free(stored);
}

#define ROUNDS 40

static int
add_often(const struct yard *y, void *arg)
{
    const struct store_options options = {.dir = y->dir};
    struct store *st = NULL;
    struct sy_error err = {0};
    enum sy_code rc = store_open(&st, &options, &err);

    (void)arg;
    for (int i = 0; i < ROUNDS && rc == SY_E_OK; i++) {
        rc = store_metrics_add(st, cells, N_CELLS, &err);
    }
    store_close(st);
    return rc == SY_E_OK ? 0 : 1;
}

static void
processes_that_add_at_once_lose_nothing(void **state)
{
    pid_t pids[3];
    struct metric_cell *stored = NULL;
    int64_t since_ms = 0;

    for (size_t i = 0; i < 3; i++) {
        pids[i] = yard_fork(*state, add_often, NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(yard_wait(pids[i]), 0);
    }
    assert_int_equal(read_back(&stored, *state, &since_ms), N_CELLS);
    assert_int_equal(stored[0].value, 2 * 3 * ROUNDS);
    assert_int_equal(stored[2].value, 3 * ROUNDS);
    mem_free(stored);
}

static void
rows_that_are_none_of_ours_are_left_out(void **state)
{
    struct metric_cell *stored = NULL;
    int64_t since_ms = 0;

    store_close(yard_open(*state));
    yard_sql(*state, "INSERT INTO metric VALUES ('of_the_future_total', 'a', 'b', 0, 5, 1);"
                     "INSERT INTO metric VALUES ('tool_calls_total', 'shell', 'exited', 0, -5, 1);"
                     "INSERT INTO metric VALUES ('tool_calls_total', "
                     "'a label that is longer than any of those that we have', 'exited', 0, 5, 1)");
    assert_int_equal(read_back(&stored, *state, &since_ms), 0);
    assert_null(stored);
}

static void
the_number_of_rows_is_limited(void **state)
{
    struct store *st = yard_open(*state);
    struct metric_cell *stored = NULL;
    struct sy_error err = {0};
    int64_t since_ms = 0;

    yard_sql(*state,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8190)"
             " INSERT INTO metric SELECT 'x', 'y', 'z', i, 1, 1 FROM n");
    _Static_assert(LIMIT_METRICS_ROWS == 8192, "the number above is two less");
    assert_int_equal(store_metrics_add(st, cells, 2, &err), SY_E_OK);
    assert_int_equal(store_metrics_add(st, cells, N_CELLS, &err), SY_E_LIMIT);
    store_close(st);
    assert_int_equal(read_back(&stored, *state, &since_ms), 2);
    mem_free(stored);
}

static enum sy_code
add_and_read(void *arg)
{
    const struct yard *y = arg;
    const struct store_options options = {.dir = y->dir};
    struct store *st = NULL;
    struct sy_error err = {0};
    int64_t since_ms = 0;
    struct metrics *m = metrics_new();
    enum sy_code rc = m != NULL ? store_open(&st, &options, &err) : SY_E_NOMEM;

    rc = rc == SY_E_OK ? store_metrics_add(st, cells, N_CELLS, &err) : rc;
    rc = rc == SY_E_OK ? store_metrics_read(m, &since_ms, st, &err) : rc;
    store_close(st);
    metrics_free(m);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    fault_run(add_and_read, *state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_of_all_processes_add_up),
        TEST(processes_that_add_at_once_lose_nothing),
        TEST(rows_that_are_none_of_ours_are_left_out),
        TEST(the_number_of_rows_is_limited),
        TEST(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
