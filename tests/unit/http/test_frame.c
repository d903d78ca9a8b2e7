#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "http/frame.h"

static char *const two_headers[] = {(char[]){"Content-Type: application/json"},
                                    (char[]){"x-api-key: a secret"}, NULL};

static const struct frame_request usual = {
    .url = "https://example.org/v1?a=b",
    .headers = two_headers,
    .body = "{\"a\":\n\0 1}",
    .len = 10,
    .timeout_ms = 5000,
    .max_bytes = 1000,
};

static void
a_request_reads_as_it_was_written(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    SY_AUTO(frame_parsed_fini) struct frame_parsed p = {0};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(frame_write_request(&text, &usual, &err), SY_E_OK);
    assert_int_equal(frame_read_request(&p, &text, &err), SY_E_OK);
    assert_string_equal(p.request.url, usual.url);
    assert_int_equal(p.request.timeout_ms, 5000);
    assert_int_equal(p.request.max_bytes, 1000);
    assert_int_equal(p.request.len, usual.len);
    assert_memory_equal(p.request.body, usual.body, usual.len);
    assert_string_equal(p.request.headers[0], two_headers[0]);
    assert_string_equal(p.request.headers[1], two_headers[1]);
    assert_null(p.request.headers[2]);
}

static void
a_line_with_a_nul_is_refused(void **state)
{
    static const char request[] = "shellyard-http 1\nmethod POST\nurl http://a\0b/\ntimeout-ms 5\n"
                                  "max-bytes 6\nbody 0\n\n";
    static const char answer[] = "shellyard-http 1\nstatus 200\ntype a\0b\nbody 0\n\n";
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    SY_AUTO(buf_fini) struct buf other = {.max = 4096};
    SY_AUTO(frame_parsed_fini) struct frame_parsed p = {0};
    struct frame_answer a;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(buf_add(&text, request, sizeof(request) - 1), SY_E_OK);
    assert_int_equal(frame_read_request(&p, &text, &err), SY_E_PARSE);
    assert_int_equal(buf_add(&other, answer, sizeof(answer) - 1), SY_E_OK);
    assert_int_equal(frame_read_answer(&a, &other, &err), SY_E_PARSE);
}

static void
what_could_add_a_line_is_refused(void **state)
{
    static const char *const bad[] = {"a: b\nmax-bytes 9", "a: b\r", "a b: c", ": c",
                                      "no colon",          ""};
    struct sy_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 4096};
        char *const headers[] = {mem_unconst(bad[i]), NULL};
        struct frame_request r = usual;

        r.headers = headers;
        assert_int_equal(frame_write_request(&text, &r, &err), SY_E_ARG);
        assert_int_equal(text.len, 0);
        r = usual;
        r.url = i == 0 ? "http://a/\nmethod GET" : "";
        assert_int_equal(frame_write_request(&text, &r, &err), SY_E_ARG);
    }
    /* What an error says must not give the header away. */
    assert_null(strstr(err.msg, "colon"));
}

static void
too_much_is_refused(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 64};
    struct frame_request r = usual;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(frame_write_request(&text, &r, &err), SY_E_LIMIT);
    r.len = (size_t)LIMIT_HTTP_BODY + 1;
    assert_int_equal(frame_write_request(&text, &r, &err), SY_E_LIMIT);
    r = usual;
    r.max_bytes = (size_t)LIMIT_HTTP_ANSWER + 1;
    assert_int_equal(frame_write_request(&text, &r, &err), SY_E_LIMIT);
    r = usual;
    r.timeout_ms = 0;
    assert_int_equal(frame_write_request(&text, &r, &err), SY_E_ARG);
}

static void
requests_that_are_none_are_told(void **state)
{
    static const char *const bad[] = {
        "",
        "shellyard-http 2\n\n",
        "shellyard-http 1",
        "shellyard-http 1\nurl http://a/\ntimeout-ms 5\nbody 2\n\n{",
        "shellyard-http 1\nurl http://a/\ntimeout-ms 5\nbody 2\n\n{}x",
        "shellyard-http 1\nurl http://a/\ntimeout-ms 5\nbody 0\n",
        "shellyard-http 1\nurl http://a/\ntimeout-ms 0\nbody 0\n\n",
        "shellyard-http 1\nurl http://a/\nbody 0\n\n",
        "shellyard-http 1\ntimeout-ms 5\nbody 0\n\n",
        "shellyard-http 1\nmethod GET\nurl http://a/\ntimeout-ms 5\nbody 0\n\n",
        "shellyard-http 1\ncookie a\nurl http://a/\ntimeout-ms 5\nbody 0\n\n",
        "shellyard-http 1\nheader none\nurl http://a/\ntimeout-ms 5\nbody 0\n\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 4096};
        struct frame_parsed p = {0};
        struct sy_error err = {0};

        assert_int_equal(buf_add_str(&text, bad[i]), SY_E_OK);
        assert_int_equal(frame_read_request(&p, &text, &err), SY_E_PARSE);
        assert_null(p.headers.v);
    }
}

static void
answers_and_failures_read_as_they_were_written(void **state)
{
    static const struct frame_answer answers[] = {
        {.status = 200,        .type = "text/plain; charset=utf-8", .body = "a\0\nb",              .len = 4 },
        {.status = 500,        .type = "",                          .body = "",                    .len = 0 },
        {.failure = FRAME_TLS, .type = "",                          .body = "no such certificate", .len = 19},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 4096};
        struct frame_answer a = {0};
        struct sy_error err = {0};

        assert_int_equal(frame_write_answer(&text, &answers[i]), SY_E_OK);
        assert_int_equal(frame_read_answer(&a, &text, &err), SY_E_OK);
        assert_int_equal(a.failure, answers[i].failure);
        assert_int_equal(a.status, answers[i].status);
        assert_string_equal(a.type, answers[i].type);
        assert_int_equal(a.len, answers[i].len);
        assert_memory_equal(a.body, answers[i].body, a.len);
    }
}

static void
answers_that_are_none_are_told(void **state)
{
    static const char *const bad[] = {
        "",
        "HTTP/1.1 200 OK\r\n\r\n",
        "shellyard-http 1\nbody 0\n\n",
        "shellyard-http 1\nstatus 99\nbody 0\n\n",
        "shellyard-http 1\nstatus 200\nerror tls\nbody 0\n\n",
        "shellyard-http 1\nerror none\nbody 0\n\n",
        "shellyard-http 1\nerror what\nbody 0\n\n",
        "shellyard-http 1\nstatus 200\nbody 5\n\nabc",
        "shellyard-http 1\nstatus 200\nbody 1\n\nabc",
        "shellyard-http 1\nstatus 200\nbody -1\n\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 4096};
        struct frame_answer a = {0};
        struct sy_error err = {0};

        assert_int_equal(buf_add_str(&text, bad[i]), SY_E_OK);
        assert_int_equal(frame_read_answer(&a, &text, &err), SY_E_PARSE);
    }
}

static enum sy_code
both_ways(void *arg)
{
    struct buf text = {.max = 4096};
    struct frame_parsed p = {0};
    struct sy_error err = {0};
    enum sy_code rc = frame_write_request(&text, &usual, &err);

    (void)arg;
    if (rc == SY_E_OK) {
        rc = frame_read_request(&p, &text, &err);
        frame_parsed_fini(&p);
    }
    buf_fini(&text);
    return rc;
}

static void
memory_that_is_out_is_told(void **state)
{
    (void)state;
    fault_run(both_ways, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reads_as_it_was_written),
        cmocka_unit_test(a_line_with_a_nul_is_refused),
        cmocka_unit_test(what_could_add_a_line_is_refused),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(requests_that_are_none_are_told),
        cmocka_unit_test(answers_and_failures_read_as_they_were_written),
        cmocka_unit_test(answers_that_are_none_are_told),
        cmocka_unit_test(memory_that_is_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
