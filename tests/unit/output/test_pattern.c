#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/limits.h"
#include "fault.h"
#include "output/pattern.h"

static struct pattern *
make(const char *text)
{
    struct pattern *p = NULL;
    struct sy_error err = {0};

    if (pattern_new(&p, text, strlen(text), NULL, &err) != SY_E_OK) {
        fail_msg("%s: %s", text, err.msg);
    }
    return p;
}

/* All matches that are there, as "START-END ". */
static void
add_matches(struct pattern_scan *s, struct buf *out)
{
    struct pattern_match m = {0, 0};
    struct sy_error err = {0};
    bool found = true;

    while (found) {
        if (pattern_scan_next(s, &m, &found, &err) != SY_E_OK) {
            fail_msg("%s", err.msg);
        }
        if (found) {
            assert_int_equal(buf_addf(out, "%d-%d ", (int)m.start, (int)m.end), SY_E_OK);
        }
    }
}

/* Those of a text in pieces of that size. */
static void
search(const char *pattern, const char *text, size_t n, size_t piece, struct buf *out)
{
    struct pattern *p = make(pattern);
    struct pattern_scan *s = pattern_scan_new(p);

    assert_non_null(s);
    for (size_t i = 0; i < n; i += piece) {
        assert_int_equal(pattern_scan_feed(s, text + i, piece < n - i ? piece : n - i), SY_E_OK);
        add_matches(s, out);
    }
    pattern_scan_free(s);
    pattern_free(p);
}

static void
check(const char *pattern, const char *text, const char *matches)
{
    for (size_t piece = 1; piece < 20; piece++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 4096};

        search(pattern, text, strlen(text), piece, &out);
        if (strcmp(buf_view(&out), matches) != 0) {
            fail_msg("%s in pieces of %zu: %s", pattern, piece, buf_view(&out));
        }
    }
}

static void
finds_matches_over_the_borders_of_pieces(void **state)
{
    (void)state;
    check("needle", "hay needle hay needle", "4-10 15-21 ");
    check("a.c",
          "abcabc\xC3\xA4 a\xC3\xA4"
          "c",
          "0-3 3-6 9-13 ");
    check("ready on port (\\d{4})", "x\nready on port 8080\n", "2-20 ");
    check("^b", "a\nb ab\r\nb", "2-3 8-9 ");
    check("(?<=ab)c", "abc xbc abc", "2-3 10-11 ");
    check("\\bend\\b", "the end, trend end", "4-7 15-18 ");
    check("\\Ax", "xx\nx", "0-1 ");
    check("x{3}", "xxxxxxx", "0-3 3-6 ");
    check("a\\Kb", "ab", "1-2 ");
    check("(?s)a.{5}b", "a\n\n\n\n\nb", "0-7 ");
    check("(?i)password", "PassWord:", "0-8 ");
    check("\xC3\xA4", "a\xC3\xA4", "1-3 ");
    check("x*", "aaa", "");
    check("b",
          "a\xFF\xFE"
          "b\xC3",
          "3-4 ");
}

/* What an earlier search has seen. */
static void
check_behind(const char *before, const char *pattern, const char *text, const char *matches)
{
    for (size_t piece = 1; piece < 20; piece++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 4096};
        struct pattern *p = make(pattern);
        struct pattern_scan *s = pattern_scan_new(p);
        size_t n = strlen(text);

        assert_non_null(s);
        assert_int_equal(pattern_scan_begin(s, before, strlen(before)), SY_E_OK);
        add_matches(s, &out);
        for (size_t i = 0; i < n; i += piece) {
            assert_int_equal(pattern_scan_feed(s, text + i, piece < n - i ? piece : n - i),
                             SY_E_OK);
            add_matches(s, &out);
        }
        if (strcmp(buf_view(&out), matches) != 0) {
            fail_msg("%s behind '%s' in pieces of %zu: %s", pattern, before, piece, buf_view(&out));
        }
        pattern_scan_free(s);
        pattern_free(p);
    }
}

static void
a_match_may_begin_before_the_stream_and_ends_in_it(void **state)
{
    (void)state;
    check_behind("Compiling foo... ", "Compiling foo\\.\\.\\. done", "done\nx", "0-4 ");
    check_behind("abc", "^def", "def\ndef\n", "4-7 ");
    check_behind("abc", "\\bdef", "def def\n", "4-7 ");
    check_behind("ab", "(?<=ab)c", "c", "0-1 ");
    check_behind("$ ", "^\\$ $", "ls\nx\n$ ", "5-7 ");
    check_behind("foo", "foo", " foo", "1-4 ");
    check_behind("foo foo f", "foo", "oo", "0-2 ");
    check_behind("", "x", "x", "0-1 ");
    check_behind("\xC3", "\xC3\xA4", "\xA4", "0-1 ");
}

static void
the_end_of_what_has_come_is_the_end_of_a_line(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    (void)state;
    search("\\$ $", "user:~$ ", 8, 8, &out);
    assert_string_equal(buf_view(&out), "6-8 ");
    buf_reset(&out);
    search("\\$ $", "cost: 5$ more\nuser:~$ ", 22, 22, &out);
    assert_string_equal(buf_view(&out), "20-22 ");
}

static void
tells_where_an_expression_is_wrong(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } rows[] = {
        {"ab(c",     4},
        {"a[b",      3},
        {"x**+{2",   0},
        {"(?<=a+)b", 0},
        {"\\C",      2},
        {"\xFF",     0}
    };
    struct pattern *p = NULL;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct sy_error err = {0};
        size_t at = 99;

        assert_int_equal(pattern_new(&p, rows[i].text, strlen(rows[i].text), &at, &err), SY_E_ARG);
        assert_int_equal(at, rows[i].at);
        assert_non_null(strstr(err.msg, "at offset"));
    }
    for (size_t i = 3; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sy_error err = {0};

        assert_int_equal(pattern_new(&p, rows[i].text, strlen(rows[i].text), NULL, &err), SY_E_ARG);
    }

    char longer[LIMIT_PATTERN + 1];
    struct sy_error err = {0};

    memset(longer, 'a', sizeof(longer));
    assert_int_equal(pattern_new(&p, longer, sizeof(longer), NULL, &err), SY_E_LIMIT);
}

static void
a_search_that_takes_too_long_is_an_error_and_no_answer(void **state)
{
    struct pattern *p = make("(a+)+$x|(?:(a|aa)+)+c");
    struct pattern_scan *s = pattern_scan_new(p);
    struct pattern_match m;
    struct sy_error err = {0};
    bool found = true;
    char text[64];

    (void)state;
    assert_non_null(s);
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 'b';
    assert_int_equal(pattern_scan_feed(s, text, sizeof(text)), SY_E_OK);
    assert_int_equal(pattern_scan_next(s, &m, &found, &err), SY_E_LIMIT);
    assert_false(found);
    assert_non_null(strstr(err.msg, "takes too long"));
    /* It goes on behind it. */
    assert_int_equal(pattern_scan_feed(s, " aac", 4), SY_E_OK);
    assert_int_equal(pattern_scan_next(s, &m, &found, &err), SY_E_OK);
    assert_true(found);
    assert_int_equal(m.start, 65);
    assert_int_equal(m.end, 68);
    pattern_scan_free(s);
    pattern_free(p);
}

/* More than the few steps that an expression is interpreted for. */
static void
what_takes_many_steps_is_found_all_the_same(void **state)
{
    struct pattern *p = make("x.*y.*z$|(?:end|ende) of [a-z]+\\d?!");
    struct pattern_scan *s = pattern_scan_new(p);
    struct pattern_match m;
    struct sy_error err = {0};
    bool found = false;
    char text[1024];

    (void)state;
    assert_non_null(s);
    assert_int_equal(pattern_scan_feed(s, "end of abc5!\n", 13), SY_E_OK);
    assert_int_equal(pattern_scan_next(s, &m, &found, &err), SY_E_OK);
    assert_true(found);
    assert_int_equal(m.end, 12);
    memset(text, 'y', sizeof(text));
    text[0] = 'x';
    text[sizeof(text) - 2] = 'z';
    text[sizeof(text) - 1] = '\n';
    assert_int_equal(pattern_scan_feed(s, text, sizeof(text)), SY_E_OK);
    assert_int_equal(pattern_scan_next(s, &m, &found, &err), SY_E_OK);
    assert_true(found);
    assert_int_equal(m.start, 13);
    assert_int_equal(m.end, 13 + sizeof(text) - 1);
    pattern_scan_free(s);
    pattern_free(p);
}

/* What follows on an invalid byte begins no line, however the text comes. */
static void
invalid_bytes_begin_no_line(void **state)
{
    static const char text[] = "\xa4\n\xa4\xae"
                               "b- and more\n";
    struct pattern *p = make("^b");
    struct pattern_scan *s = pattern_scan_new(p);
    struct pattern_match m;
    bool found = true;

    (void)state;
    assert_non_null(s);
    assert_int_equal(pattern_scan_feed(s, text, sizeof(text) - 1), SY_E_OK);
    assert_int_equal(pattern_scan_next(s, &m, &found, NULL), SY_E_OK);
    assert_false(found);
    pattern_scan_free(s);
    pattern_free(p);
}

static void
what_is_kept_of_a_stream_is_bounded(void **state)
{
    struct pattern *p = make("(?s)begin.*end");
    struct pattern_scan *s = pattern_scan_new(p);
    struct pattern_match m;
    bool found = false;
    static char text[LIMIT_PATTERN_WINDOW];

    (void)state;
    assert_non_null(s);
    memset(text, '.', sizeof(text));
    for (size_t i = 0; i < 5; i++) {
        text[i] = "begin"[i];
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pattern_scan_feed(s, text, sizeof(text)), SY_E_OK);
        assert_int_equal(pattern_scan_next(s, &m, &found, NULL), SY_E_OK);
        assert_false(found);
    }
    assert_true(pattern_scan_given_up(s) > 0);
    assert_int_equal(pattern_scan_feed(s, text, sizeof(text) + 1), SY_E_LIMIT);
    assert_int_equal(pattern_scan_feed(s, "begin end", 9), SY_E_OK);
    assert_int_equal(pattern_scan_next(s, &m, &found, NULL), SY_E_OK);
    assert_true(found);
    assert_int_equal(m.end, 20 * sizeof(text) + 9);
    pattern_scan_free(s);
    pattern_free(p);
}

static enum sy_code
body(void *arg)
{
    struct pattern *p = NULL;
    struct pattern_scan *s = NULL;
    struct pattern_match m;
    bool found = false;
    char text[256];
    enum sy_code rc = pattern_new(&p, "a(b|c)+d", 8, NULL, NULL);

    (void)arg;
    /* So many that machine code is made. */
    memset(text, 'b', sizeof(text));
    text[0] = 'a';
    text[sizeof(text) - 1] = 'd';
    if (rc == SY_E_OK) {
        s = pattern_scan_new(p);
        rc = s != NULL ? pattern_scan_feed(s, text, sizeof(text)) : SY_E_NOMEM;
    }
    if (rc == SY_E_OK) {
        rc = pattern_scan_next(s, &m, &found, NULL);
    }
    pattern_scan_free(s);
    pattern_free(p);
    return rc != SY_E_OK || found ? rc : SY_E_INTERNAL;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(body, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_matches_over_the_borders_of_pieces),
        cmocka_unit_test(a_match_may_begin_before_the_stream_and_ends_in_it),
        cmocka_unit_test(the_end_of_what_has_come_is_the_end_of_a_line),
        cmocka_unit_test(tells_where_an_expression_is_wrong),
        cmocka_unit_test(a_search_that_takes_too_long_is_an_error_and_no_answer),
        cmocka_unit_test(what_takes_many_steps_is_found_all_the_same),
        cmocka_unit_test(invalid_bytes_begin_no_line),
        cmocka_unit_test(what_is_kept_of_a_stream_is_bounded),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
