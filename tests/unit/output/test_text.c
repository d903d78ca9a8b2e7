#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fault.h"
#include "output/output_internal.h"

static void
assert_clean(const char *bytes, size_t n, const char *want)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};
    bool replaced = false;

    assert_int_equal(output_clean_utf8(&b, bytes, n, &replaced), SY_E_OK);
    assert_string_equal(buf_view(&b), want);
    assert_int_equal(replaced, strstr(want, REPLACEMENT) != NULL);
}

static void
valid_text_is_copied(void **state)
{
    (void)state;
    assert_clean("", 0, "");
    assert_clean("plain", 5, "plain");
    assert_clean("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x80", 9, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x80");
}

/* The table "U+FFFD for maximal subparts" of the Unicode standard. */
static void
each_maximal_invalid_subpart_becomes_one_replacement(void **state)
{
    (void)state;
    assert_clean("a\xFF\xFE"
                 "b",
                 4, "a" REPLACEMENT REPLACEMENT "b");
    assert_clean("\xF0\x9F\x9A", 3, REPLACEMENT);
    assert_clean("\xE2\x82"
                 "A",
                 3, REPLACEMENT "A");
    assert_clean("\xC0\xAF", 2, REPLACEMENT REPLACEMENT);
    assert_clean("\xED\xA0\x80", 3, REPLACEMENT REPLACEMENT REPLACEMENT);
    assert_clean("\xF4\x90\x80\x80", 4, REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT);
    assert_clean("\xF1\x80\x80\xE1\x80\xC2"
                 "b",
                 7, REPLACEMENT REPLACEMENT REPLACEMENT "b");
}

static void
a_small_room_takes_whole_characters_only(void **state)
{
    char dst[8];
    size_t used = 0;

    (void)state;
    assert_int_equal(output_clean_some(dst, 4, "ab\xE2\x82\xAC", 5, &used), 2);
    assert_int_equal(used, 2);
    assert_int_equal(output_clean_some(dst, 4, "ab\xFF", 3, &used), 2);
    assert_int_equal(used, 2);
    assert_int_equal(output_clean_some(dst, 5, "ab\xFFz", 4, &used), 5);
    assert_int_equal(used, 3);
    assert_int_equal(output_clean_some(dst, 8, "ab\xF0\x9F", 4, &used), 5);
    assert_int_equal(used, 4);
}

static void
assert_folds_in(unsigned columns, const char *text, const char *want)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};

    assert_int_equal(output_fold_cr(&b, text, strlen(text), columns), SY_E_OK);
    assert_string_equal(buf_view(&b), want);
}

static void
assert_folds(const char *text, const char *want)
{
    assert_folds_in(0, text, want);
}

/* As shells do where a command has not ended its last line. */
static void
what_stands_above_the_margin_of_a_terminal_is_kept(void **state)
{
    (void)state;
    assert_folds_in(10, "hello%         \r \r$ ls\n", "hello%\n$ ls\n");
    assert_folds_in(10, "hello%         \r \r\x1b[0m\x1b[J$ ", "hello%\n$ ");
    assert_folds_in(10, "one\r\ntwo lines of text%         \r \r$ ", "one\ntwo lines of text%\n$ ");
    /* It ended at the margin: there is nothing to keep. */
    assert_folds_in(10, "%         \r \r$ ", "$ ");
    assert_folds_in(10, "hello     \r$ ", "$ llo");
    /* Text that wraps is one line: progress, and a line editor that goes on behind a blank. */
    assert_folds_in(10, "at 1 of 100 files\rat 2 of 100 files\n", "at 2 of 100 files\n");
    assert_folds_in(10, "0123456789 \rab\n", "ab23456789\n");
    assert_folds_in(10, "012345678  \rab\n", "ab2345678\n");
    assert_folds_in(0, "hello%         \r \r$ ls\n", "$ lso%\n");
}

/* A12 */
static void
a_carriage_return_overwrites_columns_as_a_terminal_does(void **state)
{
    (void)state;
    assert_folds("start\rone\rtwo\n", "twort\n");
    assert_folds(" 10%\r 50%\r100%\ndone\n", "100%\ndone\n");
    assert_folds("50%\r", "50%");
    assert_folds("\r\r\rx", "x");
    assert_folds("", "");
}

static void
a_carriage_return_before_a_newline_is_a_line_ending(void **state)
{
    (void)state;
    assert_folds("one\r\ntwo\r\r\n\r\nthree", "one\ntwo\n\nthree");
    assert_folds("one\rtwo\r\n", "two\n");
}

static void
columns_are_characters_not_bytes(void **state)
{
    (void)state;
    assert_folds("éé-\rab\n", "ab-\n");
    assert_folds("ab-\réé\n", "éé-\n");
}

static void
erasing_the_line_removes_what_was_longer(void **state)
{
    (void)state;
    assert_folds("a long line\r\x1b[Kshort\n", "short\n");
    assert_folds("a long line\rshort\x1b[0K\n", "short\n");
    assert_folds("a long line\x1b[2K\rshort\n", "short\n");
    assert_folds("long\x1b[2Kx\ry\n", "y   x\n");
    assert_folds("long\x1b[1K\rx\n", "x\n");
    /* ED does so to what is behind the cursor. */
    assert_folds("%          \r\x1b[0m\x1b[Jvm% \x1b[K", "vm% ");
    assert_folds("long\x1b[2J\rx\n", "x\n");
    /* So do blanks behind it; one before it is meant. */
    assert_folds("%          \r \rvm% ", "vm% ");
    assert_folds("working\r       \rdone\n", "done\n");
    /* CHA goes back, and no further than the line is long. */
    assert_folds("10%\x1b[1G100%\n", "100%\n");
    assert_folds("\x1b[1G\x1b[0J> \x1b[3G6\x1b[1G\x1b[0J> 6*7\x1b[6G\n", "> 6*7\n");
    assert_folds("ab\x1b[2Gc\x1b[99Gd\x1b[Ge\n", "ecd\n");
    assert_folds("a\x1b[99999999999999999999G\x1b[1;2G\x1b[?1Gb\r\n",
                 "a\x1b[99999999999999999999G\x1b[1;2G\x1b[?1Gb\n");
}

static void
backspaces_move_back_by_a_column(void **state)
{
    (void)state;
    assert_folds("|\b/\b-\b \bdone\n", "done\n");
    assert_folds("abc\b\bX\n", "aXc\n");
    assert_folds("\b\bx\n", "x\n");
    assert_folds("N\bNA\bAM\bME\bE\n", "NAME\n");
}

static void
colours_do_not_count_as_columns(void **state)
{
    (void)state;
    assert_folds("\x1b[31mred\x1b[0m!\rgre\n", "gre!\n");
    assert_folds("\x1b[31mkept\x1b[0m\n", "\x1b[31mkept\x1b[0m\n");
}

/* Each of these is quadratic in a naive renderer: 2 MiB would take minutes. */
static void
hostile_lines_fold_in_linear_time(void **state)
{
    static const char *const units[] = {"\rx",      "\b\b",        "x\b",     "\x1b[2K",
                                        "\x1b[1Kx", "\x1b[",       "\x1b]x",  "x",
                                        "\r\x1b[K", "\x1b[60000G", "x\x1b[1G"};
    const size_t size = (size_t)2 * 1024 * 1024;

    (void)state;
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
        SY_AUTO(buf_fini) struct buf text = {.max = size * 2};
        SY_AUTO(buf_fini) struct buf out = {.max = size * 8};
        SY_AUTO(buf_fini) struct buf shown = {.max = size * 8};
        uint64_t start = clock_mono_ns();

        for (size_t i = 0; i < 60000; i++) {
            assert_int_equal(buf_add_char(&text, 'y'), SY_E_OK);
        }
        while (text.len < size) {
            assert_int_equal(buf_add_str(&text, units[u]), SY_E_OK);
        }
        assert_int_equal(buf_add_char(&text, '\r'), SY_E_OK);
        assert_int_equal(output_fold_cr(&out, text.data, text.len, 0), SY_E_OK);
        assert_int_equal(fold_visible_add(&shown, buf_view(&out), out.len), SY_E_OK);
        assert_true(clock_mono_ns() - start < 20ULL * 1000 * 1000 * 1000);
    }
}

static void
assert_shows(const char *text, size_t n, const char *want)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 1000};

    assert_int_equal(fold_visible_add(&b, text, n), SY_E_OK);
    assert_string_equal(buf_view(&b), want);
}

static void
control_characters_are_visible_and_runs_of_them_bounded(void **state)
{
    char zeros[1000] = {0};

    (void)state;
    assert_shows("\0hello\n", 7, "\\x00hello\n");
    assert_shows("a\tb\nc\x7F\a", 7, "a\tb\nc\\x7f\\x07");
    assert_shows("\xC2\x9Bx\xC2\xA0", 5, "\\u{9B}x\xC2\xA0");
    assert_shows(zeros, 4, "\\x00\\x00\\x00\\x00");
    assert_shows(zeros, sizeof(zeros), "[1000 x \\x00]");
}

static void
escape_sequences_are_left_out_and_broken_ones_shown(void **state)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"\x1b[1;31mred\x1b[0m",                      "red"                         },
        {"\x1b[?25lx\x1b[38;2;1;2;3my",               "xy"                          },
        {"\x1b]0;title\ax",                           "x"                           },
        {"\x1b]8;;http://e/\x1b\\link\x1b]8;;\x1b\\", "link"                        },
        {"\x1bPdata\x1b\\x",                          "x"                           },
        {"\x1b(Bx\x1b=\x1b"
         "7",                                "x"                           },
        {"\x1b",                                      "\\x1b"                       },
        {"\x1b[31",                                   "\\x1b[31"                    },
        {"\x1b]0;no end\nhidden?\a",                  "\\x1b]0;no end\nhidden?\\x07"},
        {"\x1b\x1b[31mx",                             "\\x1bx"                      },
        {"\x1b\x1b\x1b\x1b\x1b\x1b[31mx",             "[5 x \\x1b]x"                },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_shows(cases[i].text, strlen(cases[i].text), cases[i].want);
    }
}

static void
long_control_strings_are_left_out_too(void **state)
{
    static const char *const ends[] = {"\x1b\\after", "\aafter", "\x1b\\\rafter", "\nafter"};
    static const char open[] = "[100002 bytes of an escape sequence without an end]\nafter";

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 200000};
        SY_AUTO(buf_fini) struct buf folded = {.max = 200000};
        SY_AUTO(buf_fini) struct buf shown = {.max = 200000};

        assert_int_equal(buf_addf(&text, "\x1b_G"), SY_E_OK);
        for (size_t n = 0; n < 100000; n++) {
            assert_int_equal(buf_add_char(&text, 'A'), SY_E_OK);
        }
        assert_int_equal(buf_addf(&text, "%s", ends[i]), SY_E_OK);
        assert_int_equal(output_fold_cr(&folded, buf_view(&text), text.len, 0), SY_E_OK);
        assert_int_equal(fold_visible_add(&shown, buf_view(&folded), folded.len), SY_E_OK);
        assert_string_equal(buf_view(&shown), ends[i][0] == '\n' ? open : "after");
    }
}

static void
assert_truncates(const char *text, size_t max, uint64_t total, uint64_t lines, const char *want)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 10000};
    bool is_truncated = false;

    assert_int_equal(output_truncate_middle(&b, text, strlen(text), max,
                                            (struct output_totals){.bytes = total, .lines = lines},
                                            &is_truncated),
                     SY_E_OK);
    assert_string_equal(buf_view(&b), want);
    assert_true(b.len <= max);
    assert_int_equal(is_truncated, total > strlen(text) || strlen(text) > max);
}

static void
a_text_within_the_budget_is_untouched(void **state)
{
    (void)state;
    assert_truncates("", 0, 0, 0, "");
    assert_truncates("abc\n", 4, 4, 1, "abc\n");
}

/* What rendering takes out (the CR of a terminal's lines, colours) is not missing. */
static void
a_rendered_text_is_whole(void **state)
{
    static const char line[] = "\x1b[31mred\x1b[0m\r\nb\x00\r\n";
    const size_t n = sizeof(line) - 1;
    const size_t left_out[] = {0, 5};

    (void)state;
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 1000};
        struct output_marks marks = {0};

        assert_int_equal(
            output_text_bytes(&out, line, n, 500,
                              (struct output_totals){.bytes = n + left_out[i], .lines = 3}, &marks),
            SY_E_OK);
        assert_int_equal(marks.is_truncated, left_out[i] > 0);
        assert_string_equal(buf_view(&out), "red\nb\\x00\n");
    }
}

static void
the_marker_stands_on_its_own_line_and_names_the_totals(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 10000};
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};
    bool is_truncated = false;

    (void)state;
    for (int i = 1; i <= 100; i++) {
        assert_int_equal(buf_addf(&text, "line %d\n", i), SY_E_OK);
    }
    assert_int_equal(output_truncate_middle(&out, text.data, text.len, 112,
                                            (struct output_totals){.bytes = text.len, .lines = 100},
                                            &is_truncated),
                     SY_E_OK);
    assert_true(is_truncated);
    assert_string_equal(out.data, "line 1\nline 2\nline 3\n"
                                  "[... 754 bytes (95 lines) omitted of 792 bytes, 100 lines ...]\n"
                                  "line 99\nline 100\n");
}

static void
a_single_long_line_is_cut_between_characters(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 10000};
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};
    bool is_truncated = false;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buf_add_str(&text, "€"), SY_E_OK);
    }
    for (size_t max = 0; max < 200; max++) {
        buf_reset(&out);
        assert_int_equal(output_truncate_middle(
                             &out, text.data, text.len, max,
                             (struct output_totals){.bytes = text.len, .lines = 1}, &is_truncated),
                         SY_E_OK);
        assert_true(is_truncated);
        assert_true(out.len <= max);
        assert_true(utf8_is_valid(buf_view(&out), out.len));
    }
    assert_non_null(strstr(out.data, "€\n[... "));
    assert_non_null(strstr(out.data, "(0 lines) omitted of 3000 bytes, 1 lines ...]\n€"));
}

static uint64_t
number_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    uint64_t v = 0;

    assert_non_null(at);
    for (at += strlen(before); *at >= '0' && *at <= '9'; at++) {
        v = v * 10 + (uint64_t)(*at - '0');
    }
    return v;
}

/* Text that has become longer than its bytes is told in bytes all the same. */
static void
omits_no_more_bytes_than_there_are(void **state)
{
    SY_AUTO(buf_fini) struct buf bytes = {.max = 8192};
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};
    struct output_marks marks = {0};
    const struct output_totals total = {.bytes = 4000, .lines = 1};

    (void)state;
    for (int i = 0; i < 4000; i++) {
        assert_int_equal(buf_add_char(&bytes, '\377'), SY_E_OK);
    }
    assert_int_equal(output_text_bytes(&out, buf_view(&bytes), bytes.len, 1500, total, &marks),
                     SY_E_OK);
    assert_true(marks.is_truncated);
    /* A third of what is shown, since each byte became three. */
    assert_in_range(number_after(out.data, "[... "), 4000 - 500, 4000 - 400);
}

/* head + omitted + tail = all, for each budget. */
static void
the_numbers_of_the_marker_add_up(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 10000};
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};

    (void)state;
    for (int i = 1; i <= 300; i++) {
        assert_int_equal(buf_addf(&text, "%d\n", i * i), SY_E_OK);
    }
    for (size_t max = 80; max < text.len; max += 11) {
        bool is_truncated = false;

        buf_reset(&out);
        assert_int_equal(
            output_truncate_middle(&out, text.data, text.len, max,
                                   (struct output_totals){.bytes = text.len, .lines = 300},
                                   &is_truncated),
            SY_E_OK);

        const char *marker = strstr(out.data, "[... ");
        const char *after = NULL;
        uint64_t shown_lines = 0;

        assert_non_null(marker);
        uint64_t omitted = number_after(marker, "[... ");
        uint64_t lines = number_after(marker, " bytes (");

        after = strchr(marker, '\n') + 1;

        size_t head_n = (size_t)(marker - out.data);

        /* The newline before the marker is ours if the head was cut mid-line. */
        head_n -= memcmp(out.data, text.data, head_n) != 0 ? 1U : 0U;
        assert_memory_equal(out.data, text.data, head_n);
        assert_string_equal(after, text.data + text.len - strlen(after));
        assert_int_equal(head_n + omitted + strlen(after), text.len);
        for (size_t i = 0; i < head_n; i++) {
            shown_lines += out.data[i] == '\n' ? 1U : 0U;
        }
        for (const char *p = after; *p != '\0'; p++) {
            shown_lines += *p == '\n' ? 1U : 0U;
        }
        assert_int_equal(shown_lines + lines, 300);
    }
}

static void
a_text_that_was_cut_before_counts_as_truncated(void **state)
{
    (void)state;
    assert_truncates("abc", 100, 5000, 10, "abc");
}

/* More than one pass of the vector loop, and every remainder. */
static void
lines_are_counted_right_in_long_chunks(void **state)
{
    static char text[70000];

    (void)state;
    for (size_t n = 0; n < sizeof(text); n = n < 300 ? n + 1 : n + 4999) {
        bool has_nul = true;
        uint64_t want = 0;

        memset(text, '\n', n);
        for (size_t i = 0; i < n; i += 3) {
            text[i] = 'x';
        }
        for (size_t i = 0; i < n; i++) {
            want += text[i] == '\n' ? 1U : 0U;
        }
        assert_int_equal(scan_bytes(text, n, &has_nul), want);
        assert_false(has_nul);
        if (n > 0) {
            text[n / 2] = '\0';
            (void)scan_bytes(text, n, &has_nul);
            assert_true(has_nul);
        }
    }
}

static enum sy_code
all_pieces(void *arg)
{
    static const char text[] = "one\rtwo\nthree\xFF\x1b[31m\nlast\b\b\a\n";
    struct buf b = {.max = 1000};
    bool flag = false;
    enum sy_code rc = output_clean_utf8(&b, text, sizeof(text), &flag);

    (void)arg;
    if (rc == SY_E_OK) {
        rc = output_fold_cr(&b, text, sizeof(text), 0);
    }
    if (rc == SY_E_OK) {
        rc = fold_visible_add(&b, text, sizeof(text));
    }
    if (rc == SY_E_OK) {
        rc = output_truncate_middle(&b, text, sizeof(text), 10,
                                    (struct output_totals){.bytes = sizeof(text), .lines = 3},
                                    &flag);
    }
    buf_fini(&b);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    (void)state;
    fault_run(all_pieces, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(omits_no_more_bytes_than_there_are),
        cmocka_unit_test(valid_text_is_copied),
        cmocka_unit_test(each_maximal_invalid_subpart_becomes_one_replacement),
        cmocka_unit_test(a_small_room_takes_whole_characters_only),
        cmocka_unit_test(what_stands_above_the_margin_of_a_terminal_is_kept),
        cmocka_unit_test(a_carriage_return_overwrites_columns_as_a_terminal_does),
        cmocka_unit_test(a_carriage_return_before_a_newline_is_a_line_ending),
        cmocka_unit_test(columns_are_characters_not_bytes),
        cmocka_unit_test(erasing_the_line_removes_what_was_longer),
        cmocka_unit_test(backspaces_move_back_by_a_column),
        cmocka_unit_test(colours_do_not_count_as_columns),
        cmocka_unit_test(hostile_lines_fold_in_linear_time),
        cmocka_unit_test(control_characters_are_visible_and_runs_of_them_bounded),
        cmocka_unit_test(escape_sequences_are_left_out_and_broken_ones_shown),
        cmocka_unit_test(long_control_strings_are_left_out_too),
        cmocka_unit_test(a_text_within_the_budget_is_untouched),
        cmocka_unit_test(a_rendered_text_is_whole),
        cmocka_unit_test(the_marker_stands_on_its_own_line_and_names_the_totals),
        cmocka_unit_test(a_single_long_line_is_cut_between_characters),
        cmocka_unit_test(the_numbers_of_the_marker_add_up),
        cmocka_unit_test(a_text_that_was_cut_before_counts_as_truncated),
        cmocka_unit_test(lines_are_counted_right_in_long_chunks),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("output_text", tests, NULL, NULL);
}
