#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/mem.h"
#include "fault.h"
#include "store/metric.h"
#include "telemetry/telemetry.h"

/* A bus with telemetry on a loop, over a state directory of the test's own. */
struct yard {
    char root[48];
    char dir[64];
    uv_loop_t loop;
    struct event_bus *bus;
    struct config config;
};

static unsigned warnings;
static char last_warning[SY_ERR_MSG_MAX];

static void
warn(const char *what, const struct sy_error *why)
{
    (void)what;
    warnings++;
    memcpy(last_warning, why->msg, sizeof(last_warning));
}

static int
setup(void **state)
{
    struct yard *y = mem_alloc_zero(1, sizeof(*y));

    if (y == NULL) {
        return -1;
    }
    warnings = 0;
    (void)snprintf(y->root, sizeof(y->root), "/var/tmp/shellyard-telemetry-XXXXXX");
    if (mkdtemp(y->root) == NULL) {
        return -1;
    }
    (void)snprintf(y->dir, sizeof(y->dir), "%s/state", y->root);
    y->bus = event_bus_new();
    y->config.telemetry.metrics = true;
    y->config.telemetry.otlp_endpoint = "";
    y->config.telemetry.otlp_headers_file = "";
    y->config.telemetry.otlp_headers_env = "";
    y->config.telemetry.otlp_interval_ms = 60000;
    *state = y;
    return y->bus != NULL ? uv_loop_init(&y->loop) : -1;
}

static int
teardown(void **state)
{
    struct yard *y = *state;
    static const char *const names[] = {"shellyard.db", "shellyard.db-wal", "shellyard.db-shm",
                                        "shellyard.changes"};
    char path[128];
    int rc = uv_loop_close(&y->loop);

    event_bus_free(y->bus);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", y->dir, names[i]);
        (void)unlink(path);
    }
    (void)unlink(y->dir);
    (void)rmdir(y->dir);
    (void)rmdir(y->root);
    mem_free(y);
    return rc;
}

static enum sy_code
begin(struct telemetry **ret, struct yard *y)
{
    const struct telemetry_options options = {
        .config = &y->config,
        .bus = y->bus,
        .loop = &y->loop,
        .state_dir = y->dir,
        .warn = warn,
    };
    struct sy_error err = {0};

    return telemetry_new(ret, &options, &err);
}

static void
end(struct telemetry *t, struct yard *y)
{
    telemetry_end(t);
    uv_run(&y->loop, UV_RUN_DEFAULT);
    telemetry_free(t);
}

static void
call(struct yard *y)
{
    const struct event e = {
        .kind = EVENT_TOOL_DONE, .u.done = {.tool = "shell", .status = "exited"}
    };

    event_emit(y->bus, &e);
}

/* How many calls the store knows of. */
static uint64_t
stored(const struct yard *y)
{
    const struct store_options options = {.dir = y->dir};
    struct store *st = NULL;
    struct sy_error err = {0};
    struct metrics *m = metrics_new();
    struct metric_cell *cells = NULL;
    int64_t since_ms = 0;
    size_t n = 0;
    uint64_t calls = 0;

    assert_non_null(m);
    assert_int_equal(store_open(&st, &options, &err), SY_E_OK);
    assert_int_equal(store_metrics_read(m, &since_ms, st, &err), SY_E_OK);
    assert_int_equal(metrics_take(m, &cells, &n), SY_E_OK);
    for (size_t i = 0; i < n; i++) {
        calls += strcmp(cells[i].name, "tool_calls_total") == 0 ? cells[i].value : 0;
    }
    mem_free(cells);
    metrics_free(m);
    store_close(st);
    return calls;
}

static void
what_was_counted_is_stored_at_the_end(void **state)
{
    struct yard *y = *state;
    struct telemetry *t = NULL;

    assert_int_equal(begin(&t, y), SY_E_OK);
    call(y);
    call(y);
    end(t, y);
    assert_int_equal(stored(y), 2);
    t = NULL;
    assert_int_equal(begin(&t, y), SY_E_OK);
    call(y);
    end(t, y);
    assert_int_equal(stored(y), 3);
    assert_int_equal(warnings, 0);
}

static void
on_look(uv_timer_t *timer)
{
    struct yard *y = timer->data;

    if (store_exists(y->dir) && stored(y) > 0) {
        uv_close((uv_handle_t *)timer, NULL);
    }
}

static void
what_was_counted_is_stored_meanwhile_too(void **state)
{
    struct yard *y = *state;
    struct telemetry *t = NULL;
    uv_timer_t look;

    assert_int_equal(begin(&t, y), SY_E_OK);
    call(y);
    assert_int_equal(uv_timer_init(&y->loop, &look), 0);
    look.data = y;
    uv_timer_start(&look, on_look, 50, 50);
    uv_run(&y->loop, UV_RUN_DEFAULT); /* until it is there */
    assert_int_equal(stored(y), 1);
    end(t, y);
    assert_int_equal(stored(y), 1);
}

static void
nothing_is_opened_where_nothing_was_counted(void **state)
{
    struct yard *y = *state;
    struct telemetry *t = NULL;

    assert_int_equal(begin(&t, y), SY_E_OK);
    end(t, y);
    assert_false(store_exists(y->dir));
    assert_int_not_equal(access(y->dir, F_OK), 0);
}

static void
without_need_there_is_none(void **state)
{
    struct yard *y = *state;
    struct telemetry *t = NULL;

    y->config.telemetry.metrics = false;
    assert_int_equal(begin(&t, y), SY_E_OK);
    assert_null(t);
    assert_false(event_bus_wants(y->bus, EVENT_TOOL_DONE));
    end(t, y);
}

static void
a_store_that_cannot_be_opened_is_told_and_hinders_nothing(void **state)
{
    struct yard *y = *state;
    struct telemetry *t = NULL;
    FILE *f = fopen(y->dir, "w"); /* a file where the directory should be */

    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(begin(&t, y), SY_E_OK);
    call(y);
    end(t, y);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, "state"));
}

static void
exports_that_cannot_begin_are_told_once(void **state)
{
    struct yard *y = *state;
    struct telemetry *t = NULL;

    /* There is no shellyard-http. */
    y->config.telemetry.metrics = false;
    y->config.telemetry.otlp_endpoint = "http://127.0.0.1:4318";
    assert_int_equal(begin(&t, y), SY_E_OK);
    assert_non_null(t);
    call(y);
    end(t, y);
    assert_int_equal(warnings, 1);
    t = NULL;
    assert_int_equal(begin(&t, y), SY_E_OK);
    end(t, y); /* nothing was counted: no export */
    assert_int_equal(warnings, 1);
}

static enum sy_code
whole_way(void *arg)
{
    struct yard *y = arg;
    struct telemetry *t = NULL;
    enum sy_code rc = begin(&t, y);

    if (rc == SY_E_OK) {
        call(y);
    }
    end(t, y);
    uv_run(&y->loop, UV_RUN_DEFAULT);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    struct yard *y = *state;

    y->config.telemetry.otlp_endpoint = "http://127.0.0.1:4318";
    assert_int_equal(whole_way(y), SY_E_OK); /* from now on the bus has its list */
    fault_run_lenient(whole_way, y);
    assert_true(stored(y) > 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_counted_is_stored_at_the_end),
        TEST(what_was_counted_is_stored_meanwhile_too),
        TEST(nothing_is_opened_where_nothing_was_counted),
        TEST(without_need_there_is_none),
        TEST(a_store_that_cannot_be_opened_is_told_and_hinders_nothing),
        TEST(exports_that_cannot_begin_are_told_once),
        TEST(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("telemetry", tests, NULL, NULL);
}
