#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

/* Table 3-7 of the Unicode standard: ranges of each byte. */
struct row {
    size_t length;
    unsigned char low[4];
    unsigned char high[4];
};

static const struct row table[] = {
    {1, {0x00},                   {0x7F}                  },
    {2, {0xC2, 0x80},             {0xDF, 0xBF}            },
    {3, {0xE0, 0xA0, 0x80},       {0xE0, 0xBF, 0xBF}      },
    {3, {0xE1, 0x80, 0x80},       {0xEC, 0xBF, 0xBF}      },
    {3, {0xED, 0x80, 0x80},       {0xED, 0x9F, 0xBF}      },
    {3, {0xEE, 0x80, 0x80},       {0xEF, 0xBF, 0xBF}      },
    {4, {0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}},
    {4, {0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}},
    {4, {0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}},
};

/* How many of the n bytes agree with some row, and that row's length. */
static size_t
by_table(const unsigned char *s, size_t n, size_t *ret_length)
{
    size_t best = 0;

    *ret_length = 0;
    for (size_t r = 0; r < sizeof(table) / sizeof(table[0]); r++) {
        size_t i = 0;

        while (i < table[r].length && i < n && s[i] >= table[r].low[i] &&
               s[i] <= table[r].high[i]) {
            i++;
        }
        if (i > best) {
            best = i;
            *ret_length = table[r].length;
        }
    }
    return best;
}

/* The interesting values of a byte: the borders of each range, and beside. */
static const unsigned char edges[] = {
    0x00, 0x41, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x91, 0x9F, 0xA0, 0xA1, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
    0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF7, 0xF8, 0xFD, 0xFE, 0xFF,
};

#define EDGES (sizeof(edges) / sizeof(edges[0]))

static void
check_against_table(const unsigned char *s, size_t n)
{
    size_t length = 0;
    size_t got = by_table(s, n, &length);
    bool is_whole = got > 0 && got == length;
    uint32_t c = 0xDEAD;
    size_t decoded = utf8_decode(&c, (const char *)s, n);

    assert_int_equal(decoded, is_whole ? length : 0);
    assert_true(is_whole || c == 0xDEAD);
    if (is_whole) {
        assert_int_equal(utf8_valid_prefix((const char *)s, length), length);
    } else {
        assert_int_equal(utf8_valid_prefix((const char *)s, n), 0);
    }
    /* n bytes that all agree with a longer row are to be held back. */
    if (got == n && n < length) {
        assert_int_equal(utf8_incomplete_tail((const char *)s, n), n);
    }
}

static void
every_border_of_the_standards_table_is_kept(void **state)
{
    unsigned char s[4];

    (void)state;
    for (size_t i = 0; i < EDGES * EDGES * EDGES * EDGES; i++) {
        s[0] = edges[i % EDGES];
        s[1] = edges[i / EDGES % EDGES];
        s[2] = edges[i / EDGES / EDGES % EDGES];
        s[3] = edges[i / EDGES / EDGES / EDGES];
        check_against_table(s, 4);
        if (i < EDGES * EDGES * EDGES) {
            check_against_table(s, 3);
        }
        if (i < EDGES * EDGES) {
            check_against_table(s, 2);
        }
        if (i < EDGES) {
            check_against_table(s, 1);
        }
    }
}

static size_t
encode(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0U | (c >> 6));
        out[1] = (char)(0x80U | (c & 0x3FU));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0U | (c >> 12));
        out[1] = (char)(0x80U | ((c >> 6) & 0x3FU));
        out[2] = (char)(0x80U | (c & 0x3FU));
        return 3;
    }
    out[0] = (char)(0xF0U | (c >> 18));
    out[1] = (char)(0x80U | ((c >> 12) & 0x3FU));
    out[2] = (char)(0x80U | ((c >> 6) & 0x3FU));
    out[3] = (char)(0x80U | (c & 0x3FU));
    return 4;
}

static void
every_character_decodes_to_itself_and_is_encoded_so(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        char s[4] = {0};
        size_t n = encode(s, c);
        uint32_t got = 0;
        bool is_scalar = (c < 0xD800 || c > 0xDFFF) && c <= 0x10FFFF;

        if (utf8_decode(&got, s, n) != (is_scalar ? n : 0) || (is_scalar && got != c)) {
            fail_msg("U+%04X", (unsigned)c);
        }
        char own[UTF8_MAX] = {0};

        if (is_scalar && (utf8_put(own, c) != n || memcmp(own, s, n) != 0)) {
            fail_msg("U+%04X encoded", (unsigned)c);
        }
        /* Followed by more, and cut short. */
        if (is_scalar && n > 1 && utf8_decode(&got, s, n - 1) != 0) {
            fail_msg("U+%04X cut", (unsigned)c);
        }
    }
    assert_int_equal(utf8_decode(&(uint32_t){0}, "", 0), 0);
}

static void
the_valid_prefix_ends_at_the_first_bad_byte_wherever_it_is(void **state)
{
    char s[200];

    (void)state;
    for (size_t n = 0; n < 140; n++) {
        for (size_t at = 0; at <= n; at++) {
            memset(s, 'a', sizeof(s));
            s[at] = '\xFF';
            assert_int_equal(utf8_valid_prefix(s, n), at < n ? at : n);
            assert_int_equal(utf8_is_valid(s, n), at >= n);
            if (at + 2 <= n) {
                s[at] = '\xC3';
                s[at + 1] = '\xA9';
                assert_int_equal(utf8_valid_prefix(s, n), n);
                assert_int_equal(utf8_valid_prefix(s, at + 1), at);
            }
        }
    }
    assert_int_equal(utf8_valid_prefix(NULL, 0), 0);
}

static void
only_a_character_that_may_still_come_is_held_back(void **state)
{
    static const struct {
        const char *s;
        size_t tail;
    } cases[] = {
        {"",                      0},
        {"a",                     0},
        {"a\xC3",                 1},
        {"a\xC3\xA9",             0},
        {"\xE2",                  1},
        {"\xE2\x82",              2},
        {"\xE2\x82\xAC",          0},
        {"a\xE2\x82\xAC\xE2\x82", 2},
        {"\xF0",                  1},
        {"\xF0\x9F",              2},
        {"\xF0\x9F\x98",          3},
        {"\xF0\x9F\x98\x80",      0},
        {"xyz\xF0\x9F\x98",       3},
 /* Never to become valid: overlong, surrogate, too high, stray. */
        {"\xC0",                  0},
        {"\xC1",                  0},
        {"\xE0\x80",              0},
        {"\xED\xA0",              0},
        {"\xF0\x80",              0},
        {"\xF4\x90",              0},
        {"\xF5",                  0},
        {"\xFF",                  0},
        {"\x80",                  0},
        {"\x80\x80\x80",          0},
        {"\xE2\x41",              0},
        {"\xC3\xA9\x80",          0},
        {"\xE2\x82\xE2",          1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = strlen(cases[i].s);

        if (utf8_incomplete_tail(cases[i].s, n) != cases[i].tail) {
            fail_msg("case %zu: %zu", i, utf8_incomplete_tail(cases[i].s, n));
        }
    }
}

static void
a_cut_never_splits_a_character_and_wastes_nothing(void **state)
{
    static const char text[] = "a\xC3\xA9z\xE2\x82\xAC\xF0\x9F\x98\x80\xF0\x9F\x98\x80"
                               "b\xE2\x82\xAC\xC3\xA9";
    size_t len = sizeof(text) - 1;

    (void)state;
    for (size_t n = 0; n <= len + 3; n++) {
        size_t expected = 0;

        /* The greatest border that is not beyond n. */
        for (size_t at = 0; at <= n && at < len;) {
            uint32_t c = 0;

            expected = at;
            at += utf8_decode(&c, text + at, len - at);
            if (at == len && at <= n) {
                expected = len;
            }
        }
        assert_int_equal(utf8_cut(text, len, n), expected);
    }
}

static void
a_cut_keeps_a_character_whole_whose_end_is_still_to_come(void **state)
{
    (void)state;
    assert_int_equal(utf8_cut("ab\xF0\x9F\x98", 5, 4), 2);
    assert_int_equal(utf8_cut("ab\xF0\x9F\x98", 5, 3), 2);
    assert_int_equal(utf8_cut("ab\xF0\x9F\x98", 5, 5), 5);
    assert_int_equal(utf8_cut("ab\xE2\x82", 4, 3), 2);
}

/* Whatever the bytes: not beyond n or len, at most 3 before n, never inside a
 * valid character. */
static void
a_cut_among_invalid_bytes_stays_near(void **state)
{
    unsigned char s[6];

    (void)state;
    for (size_t i = 0; i < EDGES * EDGES * EDGES * EDGES; i++) {
        s[0] = 'x';
        s[1] = edges[i % EDGES];
        s[2] = edges[i / EDGES % EDGES];
        s[3] = edges[i / EDGES / EDGES % EDGES];
        s[4] = edges[i / EDGES / EDGES / EDGES];
        s[5] = 0x80;
        for (size_t n = 0; n <= 6; n++) {
            size_t k = utf8_cut((const char *)s, 6, n);

            assert_true(k <= n && k + 3 >= n);
            for (size_t at = 0; at < 6;) {
                uint32_t c = 0;
                size_t m = utf8_decode(&c, (const char *)s + at, 6 - at);

                assert_false(k > at && k < at + m);
                at += m > 0 ? m : 1;
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_border_of_the_standards_table_is_kept),
        cmocka_unit_test(every_character_decodes_to_itself_and_is_encoded_so),
        cmocka_unit_test(the_valid_prefix_ends_at_the_first_bad_byte_wherever_it_is),
        cmocka_unit_test(only_a_character_that_may_still_come_is_held_back),
        cmocka_unit_test(a_cut_never_splits_a_character_and_wastes_nothing),
        cmocka_unit_test(a_cut_keeps_a_character_whole_whose_end_is_still_to_come),
        cmocka_unit_test(a_cut_among_invalid_bytes_stays_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
