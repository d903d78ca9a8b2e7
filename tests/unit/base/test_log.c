#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

/* Standard error goes into a pipe between these two; what came is in *b. */
struct capture {
    int saved;
    int read_end;
};

static struct capture
capture_start(void)
{
    struct capture c = {.saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), .read_end = -1};
    SY_FD write_end = -1;

    assert_true(c.saved >= 0);
    assert_int_equal(fd_pipe(&c.read_end, &write_end, NULL), SY_E_OK);
    assert_int_equal(dup2(write_end, STDERR_FILENO), STDERR_FILENO);
    return c;
}

static void
capture_end(struct capture *c, struct buf *b)
{
    int rc = dup2(c->saved, STDERR_FILENO);

    fd_close(&c->saved);
    assert_int_equal(rc, STDERR_FILENO);
    assert_int_equal(fd_read_all(c->read_end, b, NULL), SY_E_OK);
    fd_close(&c->read_end);
}

static void
levels_have_names_and_a_threshold(void **state)
{
    static const char *const names[] = {"error", "warn", "info", "debug", "trace"};
    enum log_level level = LOG_INFO;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_true(log_level_parse(&level, names[i]));
        assert_int_equal(level, i);
        assert_string_equal(log_level_name(level), names[i]);
    }
    assert_false(log_level_parse(&level, "WARN"));
    assert_false(log_level_parse(&level, ""));
    assert_int_equal(level, LOG_TRACE);
    log_set(LOG_WARN, LOG_LOGFMT);
    assert_true(log_enabled(LOG_ERROR));
    assert_true(log_enabled(LOG_WARN));
    assert_false(log_enabled(LOG_INFO));
}

static void
a_line_below_the_threshold_is_not_written(void **state)
{
    SY_AUTO(buf_fini) struct buf got = {.max = 10000};

    (void)state;
    log_set(LOG_WARN, LOG_LOGFMT);

    struct capture c = capture_start();

    LOG(LOG_INFO, "test", "hidden", kv_int("n", 1));
    LOG(LOG_ERROR, "test", "shown", kv_int("n", 2));
    capture_end(&c, &got);
    assert_null(strstr(buf_view(&got), "hidden"));
    assert_non_null(strstr(buf_view(&got), "shown"));
}

/* The line without its time stamp, which is checked here. */
static const char *
after_time(const char *line)
{
    assert_true(str_starts(line, "ts=2"));

    const char *space = strchr(line, ' ');

    assert_non_null(space);
    assert_int_equal(space - line, 3 + CLOCK_WALL_LEN - 1);
    assert_int_equal(space[-1], 'Z');
    return space + 1;
}

static void
logfmt_lines_quote_what_is_not_plain(void **state)
{
    SY_AUTO(buf_fini) struct buf got = {.max = 10000};

    (void)state;
    log_set(LOG_INFO, LOG_LOGFMT);

    struct capture c = capture_start();

    LOG(LOG_WARN, "process", "command ended", kv_str("plain", "abc"), kv_int("n", -5),
        kv_str("empty", ""), kv_str("null", NULL), kv_str("space", "a b"),
        kv_str("quote", "x\" level=error y=\""), kv_str("backslash", "a\\"),
        kv_str("newline", "one\ntwo"), kv_str("bytes", "\xff\x1b[0m"),
        kv_str("utf8", "caf\xc3\xa9"));
    capture_end(&c, &got);
    assert_string_equal(after_time(buf_view(&got)),
                        "level=warn room=process msg=\"command ended\" plain=abc n=-5 empty=\"\" "
                        "null=\"\" space=\"a b\" quote=\"x\\\" level=error y=\\\"\" "
                        "backslash=\"a\\\\\" newline=\"one\\\\x0atwo\" bytes=\"\\\\xff\\\\x1b[0m\" "
                        "utf8=caf\xc3\xa9\n");
    log_set(LOG_WARN, LOG_LOGFMT);
}

static void
json_lines_are_json(void **state)
{
    SY_AUTO(buf_fini) struct buf got = {.max = 10000};

    (void)state;
    log_set(LOG_INFO, LOG_JSON);

    struct capture c = capture_start();

    LOG(LOG_INFO, "tools", "two \"words\"", kv_str("text", "a\nb\xff\"\\"), kv_int("n", INT64_MIN));
    capture_end(&c, &got);
    log_set(LOG_WARN, LOG_LOGFMT);
    assert_true(str_ends(buf_view(&got), "}\n"));

    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    int64_t n = 0;

    assert_int_equal(json_parse(&doc, got.data, got.len, NULL), SY_E_OK);
    assert_int_equal(js_str_len(js_get(doc.root, "ts")), CLOCK_WALL_LEN - 1);
    assert_string_equal(js_str(js_get(doc.root, "level")), "info");
    assert_string_equal(js_str(js_get(doc.root, "room")), "tools");
    assert_string_equal(js_str(js_get(doc.root, "msg")), "two \"words\"");
    assert_string_equal(js_str(js_get(doc.root, "text")), "a\\x0ab\\xff\"\\");
    assert_true(js_int(&n, js_get(doc.root, "n")));
    assert_true(n == INT64_MIN);
}

static void
a_long_value_is_cut_and_a_line_stays_one_line(void **state)
{
    SY_AUTO(buf_fini) struct buf got = {.max = 100000};
    char text[5001];

    (void)state;
    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_set(LOG_INFO, LOG_LOGFMT);

    struct capture c = capture_start();

    LOG(LOG_INFO, "test", "long", kv_str("v", text));
    capture_end(&c, &got);
    log_set(LOG_WARN, LOG_LOGFMT);
    assert_ptr_equal(strchr(buf_view(&got), '\n'), buf_view(&got) + got.len - 1);
    assert_non_null(strstr(buf_view(&got), "...\""));
    assert_true(got.len < 600);
}

static void
a_line_that_cannot_be_made_leaves_a_bare_one(void **state)
{
    static const enum log_format formats[] = {LOG_LOGFMT, LOG_JSON};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        SY_AUTO(buf_fini) struct buf got = {.max = 10000};
        struct log_kv many[200];
        char text[200];

        memset(text, 'v', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        for (size_t k = 0; k < 200; k++) {
            many[k] = kv_str("key", text);
        }
        log_set(LOG_INFO, formats[i]);

        struct capture c = capture_start();

        log_write(LOG_INFO, "test", "too long", many, 200);
        mem_fault_set(1);
        log_write(LOG_ERROR, "test", "no memory", many, 1);
        mem_fault_set(0);
        capture_end(&c, &got);
        log_set(LOG_WARN, LOG_LOGFMT);
        assert_non_null(strstr(buf_view(&got), "too long"));
        assert_non_null(strstr(buf_view(&got), "no memory"));
        assert_null(strstr(buf_view(&got), "vvv"));
        if (formats[i] == LOG_JSON) {
            size_t first = (size_t)(strchr(got.data, '\n') - got.data);
            SY_AUTO(json_doc_fini) struct json_doc doc = {0};

            assert_int_equal(json_parse(&doc, got.data, first, NULL), SY_E_OK);
            assert_string_equal(js_str(js_get(doc.root, "msg")), "too long");
        }
    }
}

static void
the_clock_runs_forward(void **state)
{
    uint64_t before = clock_mono_ns();
    char text[CLOCK_WALL_LEN];

    (void)state;
    clock_wall_text(text);
    assert_int_equal(strlen(text), CLOCK_WALL_LEN - 1);
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[19], '.');
    assert_true(before > 0);
    assert_true(clock_mono_ns() >= before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_have_names_and_a_threshold),
        cmocka_unit_test(a_line_below_the_threshold_is_not_written),
        cmocka_unit_test(logfmt_lines_quote_what_is_not_plain),
        cmocka_unit_test(json_lines_are_json),
        cmocka_unit_test(a_long_value_is_cut_and_a_line_stays_one_line),
        cmocka_unit_test(a_line_that_cannot_be_made_leaves_a_bare_one),
        cmocka_unit_test(the_clock_runs_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
