#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fault.h"

static void
prefixes_and_suffixes_are_compared_whole(void **state)
{
    (void)state;
    assert_true(str_eq("a", "a"));
    assert_false(str_eq("a", "ab"));
    assert_true(str_is("ab", "abc", 2));
    assert_false(str_is("ab", "abc", 3));
    assert_false(str_is("abc", "abc", 2));
    assert_false(str_is("ab", "a\0", 2));
    assert_true(str_is("", NULL, 0));
    assert_true(str_starts("abc", "ab"));
    assert_true(str_starts("abc", ""));
    assert_false(str_starts("a", "ab"));
    assert_true(str_ends("abc", "bc"));
    assert_true(str_ends("abc", ""));
    assert_false(str_ends("c", "bc"));
    assert_false(str_ends("abc", "ab"));
}

static void
only_plain_decimal_numbers_within_the_range_are_read(void **state)
{
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "0x10",
                                      "1e3",
                                      "1.0",
                                      "1\n2",
                                      "18446744073709551616",
                                      "99999999999999999999999",
                                      "\xd9\xa1"};
    uint64_t v = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(str_to_u64(&v, bad[i], 0, UINT64_MAX));
        assert_true(v == 77);
    }
    assert_true(str_to_u64(&v, "18446744073709551615", 0, UINT64_MAX));
    assert_true(v == UINT64_MAX);
    assert_true(str_to_u64(&v, "007", 0, 10));
    assert_true(v == 7);
    assert_true(str_to_u64(&v, "5", 5, 5));
    assert_false(str_to_u64(&v, "4", 5, 9));
    assert_false(str_to_u64(&v, "10", 5, 9));
    assert_true(v == 5);
}

static void
signed_numbers_reach_both_ends(void **state)
{
    int64_t v = 77;

    (void)state;
    assert_true(str_to_i64(&v, "-9223372036854775808", INT64_MIN, INT64_MAX));
    assert_true(v == INT64_MIN);
    assert_true(str_to_i64(&v, "9223372036854775807", INT64_MIN, INT64_MAX));
    assert_true(v == INT64_MAX);
    assert_true(str_to_i64(&v, "-0", -1, 1));
    assert_true(v == 0);
    assert_true(str_to_i64(&v, "-12", -12, 0));
    assert_true(v == -12);
    assert_false(str_to_i64(&v, "-13", -12, 0));
    assert_false(str_to_i64(&v, "1", -12, 0));
    assert_false(str_to_i64(&v, "--1", -12, 0));
    assert_false(str_to_i64(&v, "-", -12, 0));
    assert_false(str_to_i64(&v, "", -12, 0));
    assert_false(str_to_i64(&v, "9223372036854775808", INT64_MIN, INT64_MAX));
    assert_false(str_to_i64(&v, "-9223372036854775809", INT64_MIN, INT64_MAX));
    assert_true(v == -12);
}

static void
globs_match_whole_names_in_either_case(void **state)
{
    static const struct {
        const char *pattern;
        const char *name;
        bool matches;
    } cases[] = {
        {"*KEY*",    "OPENAI_API_KEY", true },
        {"*KEY*",    "monkey",         true },
        {"*KEY*",    "KEY",            true },
        {"*KEY*",    "KE_Y",           false},
        {"*key",     "API_KEY_ID",     false},
        {"AWS_*",    "aws_region",     true },
        {"AWS_*",    "AWS_",           true },
        {"AWS_*",    "MAWS_X",         false},
        {"",         "",               true },
        {"",         "a",              false},
        {"*",        "",               true },
        {"**",       "abc",            true },
        {"?",        "",               false},
        {"?",        "a",              true },
        {"??",       "a",              false},
        {"?*",       "a",              true },
        {"a*b*c",    "aXbXbc",         true },
        {"a*b*c",    "aXbXbd",         false},
        {"*ab",      "aab",            true },
        {"*aab",     "aaaaaab",        true },
        {"[ab]x",    "Bx",             true },
        {"[ab]x",    "cx",             false},
        {"[a-f]x",   "Ex",             true },
        {"[a-f]x",   "gx",             false},
        {"[!a-f]x",  "gx",             true },
        {"[!a-f]x",  "ax",             false},
        {"[^a]x",    "bx",             true },
        {"[]]x",     "]x",             true },
        {"[!]]x",    "]x",             false},
        {"[a-]x",    "-x",             true },
        {"[ab",      "[ab",            true },
        {"[ab",      "a",              false},
        {"[",        "[",              true },
        {"[!",       "[!",             true },
        {"a.c",      "abc",            false},
        {"a.c",      "A.C",            true },
        {"\xff*",    "\xff\xfe",       true },
        {"*[0-9]",   "LINE12",         true },
        {"*[0-9]_*", "LINE12_3",       true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (str_glob_nocase(cases[i].pattern, cases[i].name) != cases[i].matches) {
            fail_msg("'%s' against '%s'", cases[i].pattern, cases[i].name);
        }
    }
}

static void
a_hostile_glob_does_not_explode(void **state)
{
    char name[2001];

    (void)state;
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    /* Backtracking over each star would take for ever; over the last, not. */
    assert_false(str_glob_nocase("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

static void
the_nearest_name_is_one_that_could_be_meant(void **state)
{
    static const char *const names[] = {"sandbox", "approval", "shell", "environment", "log", "x"};
    size_t n = sizeof(names) / sizeof(names[0]);
    char long_name[100];

    (void)state;
    assert_string_equal(str_nearest("sandbx", names, n), "sandbox");
    assert_string_equal(str_nearest("enviroment", names, n), "environment");
    assert_string_equal(str_nearest("aproval", names, n), "approval");
    assert_string_equal(str_nearest("lag", names, n), "log");
    assert_string_equal(str_nearest("lgo", names, n), "log");
    assert_string_equal(str_nearest("shell", names, n), "shell");
    assert_null(str_nearest("telemetry", names, n));
    assert_null(str_nearest("sandbox", names, 0));
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_null(str_nearest(long_name, names, n));
}

static void
assert_visible(const char *s, size_t len, const char *expected)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};

    assert_int_equal(str_add_visible(&b, s, len, 900), SY_E_OK);
    assert_string_equal(buf_view(&b), expected);
}

static void
what_could_deceive_is_shown(void **state)
{
    /* Letter by letter: as literals they would deceive whoever reads this. */
    static const char override[] = {'\xe2', '\x80', '\xae', 't', 'x', 't'};
    static const char isolate[] = {'\xe2', '\x81', '\xa6'};

    (void)state;
    assert_visible("plain text", 10, "plain text");
    assert_visible("caf\xC3\xA9 \xE6\x97\xA5\xF0\x9F\x98\x80", 13,
                   "caf\xC3\xA9 \xE6\x97\xA5\xF0\x9F\x98\x80");
    assert_visible("a\0b", 3, "a\\x00b");
    assert_visible("\x1b[31m\n\t\r\x7f", 9, "\\x1b[31m\\x0a\\x09\\x0d\\x7f");
    assert_visible("\xff\xc3", 2, "\\xff\\xc3");
    assert_visible("\xc2\x9b", 2, "\\u{9B}");                   /* C1 control: CSI */
    assert_visible(override, sizeof(override), "\\u{202E}txt"); /* right-to-left override */
    assert_visible("\xe2\x80\x8b", 3, "\\u{200B}");             /* zero width space */
    assert_visible(isolate, sizeof(isolate), "\\u{2066}");      /* left-to-right isolate */
    assert_visible("\xef\xbb\xbf", 3, "\\u{FEFF}");             /* byte order mark */
    assert_visible("\xf3\xa0\x81\x81", 4, "\\u{E0041}");        /* tag character */
    /* What looks like nothing, or like a space. */
    assert_visible("\xe3\x85\xa4\xe1\x85\x9f", 6, "\\u{3164}\\u{115F}");
    assert_visible("a\xcd\x8f\xef\xb8\x8f", 6, "a\\u{34F}\\u{FE0F}");
    assert_visible("\xe1\xa0\x8e\xf0\x9d\x85\xb3", 7, "\\u{180E}\\u{1D173}");
    assert_visible("\xc2\xa0\xe3\x80\x80\xe2\xa0\x80", 8, "\\u{A0}\\u{3000}\\u{2800}");
    assert_visible("\xf3\xa0\x84\x80", 4, "\\u{E0100}");
    assert_visible("", 0, "");
}

static void
visible_text_is_cut_at_the_limit_and_says_so(void **state)
{
    static const char text[] = "ab\xe2\x82\xac\x1b!";

    (void)state;
    for (size_t max = 0; max <= 12; max++) {
        SY_AUTO(buf_fini) struct buf b = {.max = 100};

        assert_int_equal(buf_add_str(&b, "before:"), SY_E_OK);
        assert_int_equal(str_add_visible(&b, text, sizeof(text) - 1, max), SY_E_OK);

        const char *got = buf_view(&b) + 7;
        size_t n = strlen(got);

        assert_true(utf8_is_valid(got, n));
        if (max >= 10) {
            assert_string_equal(got, "ab\xe2\x82\xac\\x1b!");
        } else {
            assert_true(str_ends(got, "..."));
            assert_true(n - 3 <= max);
            assert_int_equal(strncmp(got, "ab\xe2\x82\xac\\x1b!", n - 3), 0);
        }
    }

    SY_AUTO(buf_fini) struct buf small = {.max = 3};

    assert_int_equal(str_add_visible(&small, "abcdef", 6, 100), SY_E_LIMIT);
}

static void
base_names_are_the_last_component(void **state)
{
    (void)state;
    assert_string_equal(path_base("/usr/bin/sh"), "sh");
    assert_string_equal(path_base("sh"), "sh");
    assert_string_equal(path_base("/sh"), "sh");
    assert_string_equal(path_base("/"), "/");
    assert_string_equal(path_base(""), "");
    assert_string_equal(path_base("a/"), "");
}

static void
paths_are_joined_with_one_slash(void **state)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 20};

    (void)state;
    assert_int_equal(path_join(&b, "/a", "b"), SY_E_OK);
    assert_string_equal(buf_view(&b), "/a/b");
    assert_int_equal(path_join(&b, "/a/", "b"), SY_E_OK);
    assert_string_equal(buf_view(&b), "/a/b");
    assert_int_equal(path_join(&b, "/", "b/c"), SY_E_OK);
    assert_string_equal(buf_view(&b), "/b/c");
    assert_int_equal(path_join(&b, "/a", "/b"), SY_E_OK);
    assert_string_equal(buf_view(&b), "/b");
    assert_int_equal(path_join(&b, "/1234567890", "1234567890"), SY_E_LIMIT);
}

static void
paths_are_normalized_by_text(void **state)
{
    static const char *const cases[][2] = {
        {"/",                           "/"                          },
        {"//",                          "/"                          },
        {"/a",                          "/a"                         },
        {"/a/",                         "/a"                         },
        {"//a///b//",                   "/a/b"                       },
        {"/a/./b/.",                    "/a/b"                       },
        {"/a/../b",                     "/b"                         },
        {"/a/b/../..",                  "/"                          },
        {"/..",                         "/"                          },
        {"/../../a",                    "/a"                         },
        {"/a/...",                      "/a/..."                     },
        {"/a/..b/.c",                   "/a/..b/.c"                  },
        {"/it's $(id)/-n/\xe6\x97\xa5", "/it's $(id)/-n/\xe6\x97\xa5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(buf_fini) struct buf b = {.max = 100};

        assert_int_equal(path_normalize(&b, cases[i][0]), SY_E_OK);
        assert_string_equal(buf_view(&b), cases[i][1]);
        assert_int_equal(b.len, strlen(cases[i][1]));
    }

    SY_AUTO(buf_fini) struct buf small = {.max = 3};

    assert_int_equal(path_normalize(&small, "/abcdef"), SY_E_LIMIT);
}

static void
below_means_the_directory_or_inside_it(void **state)
{
    (void)state;
    assert_true(path_is_below("/a/b", "/a"));
    assert_true(path_is_below("/a", "/a"));
    assert_false(path_is_below("/ab", "/a"));
    assert_false(path_is_below("/", "/a"));
    assert_true(path_is_below("/a", "/"));
    assert_true(path_is_below("/", "/"));
    assert_false(path_is_below("/b/a", "/a"));
}

static enum sy_code
make_paths(void *arg)
{
    SY_AUTO(buf_fini) struct buf a = {.max = 100};
    SY_AUTO(buf_fini) struct buf b = {.max = 100};
    SY_AUTO(buf_fini) struct buf c = {.max = 100};
    enum sy_code rc = path_join(&a, "/usr", "bin");

    (void)arg;
    if (rc == SY_E_OK) {
        rc = path_normalize(&b, "/usr/../bin");
    }
    return rc != SY_E_OK ? rc : str_add_visible(&c, "a\x1b", 2, 50);
}

static void
strings_survive_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(make_paths, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_and_suffixes_are_compared_whole),
        cmocka_unit_test(only_plain_decimal_numbers_within_the_range_are_read),
        cmocka_unit_test(signed_numbers_reach_both_ends),
        cmocka_unit_test(globs_match_whole_names_in_either_case),
        cmocka_unit_test(a_hostile_glob_does_not_explode),
        cmocka_unit_test(the_nearest_name_is_one_that_could_be_meant),
        cmocka_unit_test(what_could_deceive_is_shown),
        cmocka_unit_test(visible_text_is_cut_at_the_limit_and_says_so),
        cmocka_unit_test(base_names_are_the_last_component),
        cmocka_unit_test(paths_are_joined_with_one_slash),
        cmocka_unit_test(paths_are_normalized_by_text),
        cmocka_unit_test(below_means_the_directory_or_inside_it),
        cmocka_unit_test(strings_survive_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
