#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "events/metrics.h"
#include "fault.h"

#define MS ((uint64_t)1000000)

static struct metrics *
make(void)
{
    struct metrics *m = metrics_new();

    assert_non_null(m);
    return m;
}

static char *
prometheus(const struct metrics *m)
{
    struct buf out = {.max = 1048576};

    assert_int_equal(metrics_write_prometheus(&out, m, "1.2"), SY_E_OK);
    return buf_take(&out);
}

static void
assert_has_line(const struct metrics *m, const char *line)
{
    char *text = prometheus(m);
    char wanted[256];

    (void)snprintf(wanted, sizeof(wanted), "\n%s\n", line);
    if (strstr(text, wanted) == NULL) {
        fail_msg("no line %s in:\n%s", line, text);
    }
    mem_free(text);
}

static void
assert_lacks(const struct metrics *m, const char *text)
{
    char *all = prometheus(m);

    assert_null(strstr(all, text));
    mem_free(all);
}

static void
a_decision_is_counted_with_the_time_that_it_took(void **state)
{
    struct metrics *m = make();
    const struct event asked = {
        .kind = EVENT_APPROVAL_REQUESTED, .u.request = {.id = "1", .tool = "shell"}
    };
    const struct event again = {
        .kind = EVENT_APPROVAL_REQUESTED,
        .u.request = {.id = "1", .tool = "shell", .is_repeated = true}
    };
    const struct event decided = {
        .kind = EVENT_APPROVAL_DECIDED,
        .u.decision = {.tool = "shell", .decision = "approved", .waited_ns = 1500U * MS}
    };

    (void)state;
    metrics_on_event(m, &asked);
    metrics_on_event(m, &again);
    metrics_on_event(m, &decided);
    assert_has_line(m, "shellyard_approval_asked_total{tool=\"shell\"} 1");
    assert_has_line(m,
                    "shellyard_approval_requested_total{tool=\"shell\",decision=\"approved\"} 1");
    assert_has_line(m, "shellyard_approval_wait_seconds_bucket{tool=\"shell\",le=\"1\"} 0");
    assert_has_line(m, "shellyard_approval_wait_seconds_bucket{tool=\"shell\",le=\"2.5\"} 1");
    assert_has_line(m, "shellyard_approval_wait_seconds_bucket{tool=\"shell\",le=\"+Inf\"} 1");
    assert_has_line(m, "shellyard_approval_wait_seconds_sum{tool=\"shell\"} 1.5");
    assert_has_line(m, "shellyard_approval_wait_seconds_count{tool=\"shell\"} 1");
    metrics_free(m);
}

static void
an_answered_call_counts_in_each_family_that_it_is_of(void **state)
{
    struct metrics *m = make();
    const struct event_denial denials[] = {
        {"mount",   "write", 3},
        {"seccomp", "call",  1}
    };
    const struct event done = {
        .kind = EVENT_TOOL_DONE,
        .u.done = {.tool = "shell",
                   .status = "timed_out",
                   .has_run = true,
                   .has_failed = true,
                   .duration_ns = 30U * MS,
                   .run_duration_ns = 5U * MS,
                   .limit = "wall_clock",
                   .denials = denials,
                   .n_denials = 2}
    };
    const struct event rejected = {
        .kind = EVENT_TOOL_DONE, .u.done = {.tool = "shell", .status = "rejected"}
    };

    (void)state;
    metrics_on_event(m, &done);
    metrics_on_event(m, &rejected);
    assert_has_line(m, "shellyard_tool_calls_total{tool=\"shell\",status=\"timed_out\"} 1");
    assert_has_line(m, "shellyard_tool_calls_total{tool=\"shell\",status=\"rejected\"} 1");
    assert_has_line(m, "shellyard_tool_call_duration_seconds_count{tool=\"shell\"} 2");
    /* A bound holds what is equal to it. */
    assert_has_line(m, "shellyard_command_duration_seconds_bucket{tool=\"shell\",le=\"0.005\"} 1");
    assert_has_line(m, "shellyard_command_duration_seconds_count{tool=\"shell\"} 1");
    assert_has_line(m, "shellyard_commands_failed_total{tool=\"shell\"} 1");
    assert_has_line(m, "shellyard_commands_timed_out_total{tool=\"shell\"} 1");
    assert_has_line(m, "shellyard_command_limits_total{limit=\"wall_clock\"} 1");
    assert_has_line(m, "shellyard_sandbox_denials_total{layer=\"mount\",operation=\"write\"} 3");
    assert_has_line(m, "shellyard_sandbox_denials_total{layer=\"seccomp\",operation=\"call\"} 1");
    metrics_free(m);
}

static void
labels_beyond_the_room_of_a_family_are_counted_as_other(void **state)
{
    struct metrics *m = make();
    size_t most = metric_family(METRIC_COMMANDS_FAILED)->series_max;
    char name[32];

    (void)state;
    for (size_t i = 0; i < most + 20; i++) {
        (void)snprintf(name, sizeof(name), "tool%zu", i);
        metrics_count(m, METRIC_COMMANDS_FAILED, name, NULL, 1);
    }
    metrics_count(m, METRIC_COMMANDS_FAILED, "tool0", NULL, 1);
    (void)snprintf(name, sizeof(name), "tool%zu", most - 2);

    char line[128];

    (void)snprintf(line, sizeof(line), "shellyard_commands_failed_total{tool=\"%s\"} 1", name);
    assert_has_line(m, line);
    assert_has_line(m, "shellyard_commands_failed_total{tool=\"tool0\"} 2");
    assert_has_line(m, "shellyard_commands_failed_total{tool=\"other\"} 21");
    (void)snprintf(name, sizeof(name), "\"tool%zu\"", most - 1);
    assert_lacks(m, name);
    metrics_free(m);
}

static void
labels_are_escaped_and_cut(void **state)
{
    struct metrics *m = make();

    (void)state;
    metrics_count(m, METRIC_LIMITS, "a\"b\\c\nd", NULL, 1);
    metrics_count(m, METRIC_LIMITS, "a label that is longer than any of ours", NULL, 1);
    metrics_count(m, METRIC_LIMITS, "\xff\xfe", NULL, 1);
    assert_has_line(m, "shellyard_command_limits_total{limit=\"a\\\"b\\\\c\\nd\"} 1");
    assert_has_line(m,
                    "shellyard_command_limits_total{limit=\"a label that is longer than any\"} 1");
    assert_has_line(m, "shellyard_command_limits_total{limit=\"other\"} 1");
    metrics_free(m);
}

static void
counting_needs_no_memory(void **state)
{
    struct metrics *m = make();

    (void)state;
    mem_fault_set(1);
    metrics_count(m, METRIC_TOOL_CALLS, "shell", "exited", 1);
    metrics_observe(m, METRIC_COMMAND_DURATION, "shell", MS);
    assert_false(mem_fault_fired());
    mem_fault_set(0);
    metrics_free(m);
}

static void
what_was_taken_does_not_come_again_unless_it_is_given_back(void **state)
{
    struct metrics *m = make();
    struct metric_cell *cells = NULL;
    size_t n = 0;

    (void)state;
    assert_false(metrics_has_news(m));
    assert_int_equal(metrics_take(m, &cells, &n), SY_E_OK);
    assert_int_equal(n, 0);
    metrics_count(m, METRIC_TOOL_CALLS, "shell", "exited", 2);
    metrics_observe(m, METRIC_COMMAND_DURATION, "shell", 7000U * MS);
    assert_true(metrics_has_news(m));
    assert_int_equal(metrics_take(m, &cells, &n), SY_E_OK);
    assert_int_equal(n, 3); /* the counter, the sum, one bucket */
    assert_false(metrics_has_news(m));
    metrics_count(m, METRIC_TOOL_CALLS, "shell", "exited", 1);
    metrics_give_back(m, cells, n);
    mem_free(cells);
    assert_true(metrics_has_news(m));
    assert_int_equal(metrics_take(m, &cells, &n), SY_E_OK);
    assert_int_equal(n, 3);
    assert_string_equal(cells[0].name, "tool_calls_total");
    assert_int_equal(cells[0].value, 3);
    mem_free(cells);
    assert_int_equal(metrics_take(m, &cells, &n), SY_E_OK);
    assert_int_equal(n, 0);
    metrics_free(m);
}

/* Moves all that m counted into another one. */
static void
cells_add_up_to_what_they_were_taken_from(void **state)
{
    struct metrics *m = make();
    struct metrics *sum = make();
    struct metric_cell *cells = NULL;
    size_t n = 0;

    (void)state;
    metrics_count(m, METRIC_DENIALS, "mount", "write", 4);
    for (uint64_t ms = 1; ms < 10000000; ms *= 3) {
        metrics_observe(m, METRIC_TOOL_DURATION, "shell", ms * MS);
    }
    assert_int_equal(metrics_take(m, &cells, &n), SY_E_OK);
    for (size_t i = 0; i < n; i++) {
        metrics_add(sum, &cells[i]);
    }
    mem_free(cells);

    char *a = prometheus(m);
    char *b = prometheus(sum);

    assert_string_equal(a, b);
    mem_free(a);
    mem_free(b);
    metrics_free(m);
    metrics_free(sum);
}

static void
cells_of_another_version_do_no_harm(void **state)
{
    struct metrics *m = make();
    const struct metric_cell unknown = {.name = "of_the_future_total", .value = 1};
    const struct metric_cell negative = {.name = "tool_calls_total", .part = -1, .value = 1};
    const struct metric_cell bound = {
        .name = "command_duration_seconds", .labels = {"shell"}, .part = 7000000, .value = 1};

    (void)state;
    metrics_add(m, &unknown);
    metrics_add(m, &negative);
    assert_false(metrics_has_news(m));
    metrics_add(m, &bound);
    assert_has_line(m, "shellyard_command_duration_seconds_bucket{tool=\"shell\",le=\"0.005\"} 0");
    assert_has_line(m, "shellyard_command_duration_seconds_bucket{tool=\"shell\",le=\"0.01\"} 1");
    metrics_free(m);
}

static const struct js *
at(const struct js *v, const char *key, size_t i)
{
    const struct js *list = js_get(v, key);

    assert_int_equal(js_type(list), JS_ARRAY);
    assert_true(js_count(list) > i);
    return js_at(list, i);
}

static void
otlp_has_cumulative_sums_and_numbers_of_64_bits_as_strings(void **state)
{
    struct metrics *m = make();
    struct buf out = {.max = 1048576};
    struct json_doc doc = {0};
    const struct metrics_otlp about = {.version = "1.2", .instance = "abc", .now_ns = 2000000000};
    int64_t number = 0;

    (void)state;
    metrics_count(m, METRIC_TOOL_CALLS, "shell", "exited", 5);
    metrics_observe(m, METRIC_COMMAND_DURATION, "shell", 7000U * MS);
    assert_int_equal(metrics_write_otlp(&out, m, &about), SY_E_OK);
    assert_int_equal(json_parse(&doc, buf_view(&out), out.len, NULL), SY_E_OK);

    const struct js *scope = at(at(doc.root, "resourceMetrics", 0), "scopeMetrics", 0);
    const struct js *counter = at(scope, "metrics", 0);
    const struct js *sum = js_get(counter, "sum");
    const struct js *point = at(sum, "dataPoints", 0);

    assert_string_equal(js_str(js_get(counter, "name")), "shellyard_tool_calls_total");
    assert_true(js_int(&number, js_get(sum, "aggregationTemporality")));
    assert_int_equal(number, 2);
    assert_string_equal(js_str(js_get(point, "asInt")), "5");
    assert_string_equal(js_str(js_get(point, "timeUnixNano")), "2000000000");

    const struct js *histogram = js_get(at(scope, "metrics", 1), "histogram");

    point = at(histogram, "dataPoints", 0);
    assert_string_equal(js_str(js_get(point, "count")), "1");
    assert_int_equal(js_count(js_get(point, "bucketCounts")),
                     js_count(js_get(point, "explicitBounds")) + 1);
    json_doc_fini(&doc);
    buf_fini(&out);
    metrics_free(m);
}

static enum sy_code
use_all(void *arg)
{
    struct metrics *m = metrics_new();
    struct buf out = {.max = 1048576};
    struct metric_cell *cells = NULL;
    size_t n = 0;
    const struct metrics_otlp about = {.version = "1", .instance = "i", .now_ns = 1};

    (void)arg;
    if (m == NULL) {
        return SY_E_NOMEM;
    }
    metrics_count(m, METRIC_TOOL_CALLS, "shell", "exited", 1);
    metrics_observe(m, METRIC_COMMAND_DURATION, "shell", 1);

    enum sy_code rc = metrics_take(m, &cells, &n);

    mem_free(cells);
    rc = rc == SY_E_OK ? metrics_write_prometheus(&out, m, "1") : rc;
    rc = rc == SY_E_OK ? metrics_write_json(&out, m, "1", 5) : rc;
    rc = rc == SY_E_OK ? metrics_write_otlp(&out, m, &about) : rc;
    buf_fini(&out);
    metrics_free(m);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    fault_run(use_all, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_is_counted_with_the_time_that_it_took),
        cmocka_unit_test(an_answered_call_counts_in_each_family_that_it_is_of),
        cmocka_unit_test(labels_beyond_the_room_of_a_family_are_counted_as_other),
        cmocka_unit_test(labels_are_escaped_and_cut),
        cmocka_unit_test(counting_needs_no_memory),
        cmocka_unit_test(what_was_taken_does_not_come_again_unless_it_is_given_back),
        cmocka_unit_test(cells_add_up_to_what_they_were_taken_from),
        cmocka_unit_test(cells_of_another_version_do_no_harm),
        cmocka_unit_test(otlp_has_cumulative_sums_and_numbers_of_64_bits_as_strings),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
