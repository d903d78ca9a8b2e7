#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "screens.h"
#include "terminal/stand_out.h"
#include "terminal/strip.h"
#include "terminal/view.h"

static struct terminal_screen
look(struct terminal *t, const char *s)
{
    struct terminal_screen screen;

    assert_int_equal(terminal_feed(t, s, strlen(s)), SY_E_OK);
    assert_int_equal(terminal_look(t, &screen), SY_E_OK);
    return screen;
}

static void
shows_rows_without_what_is_blank(void **state)
{
    struct terminal *t = screens_new(4, 20);
    struct terminal_screen s = look(t, "one  \r\n\r\n  three ");
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    (void)state;
    assert_int_equal(view_screen(t, &s, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "one\n\n  three\n");
    buf_reset(&out);
    s = look(t, "\x1b[2J");
    assert_int_equal(view_screen(t, &s, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "");
    terminal_free(t);
}

static void
tells_only_rows_that_changed_since(void **state)
{
    struct terminal *t = screens_new(4, 20);
    struct terminal_screen s = look(t, "one\r\ntwo\r\nthree");
    uint64_t since = s.seq;
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    (void)state;
    assert_int_equal(view_diff(t, &s, 0, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "0: one\n1: two\n2: three\n");
    buf_reset(&out);
    assert_int_equal(view_diff(t, &s, since, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "");
    s = look(t, "\x1b[1;1H\x1b[K\x1b[3;6H!");
    assert_int_equal(view_diff(t, &s, since, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "0: \n2: three!\n");
    terminal_free(t);
}

static void
tells_the_facts_as_json(void **state)
{
    struct terminal *t = screens_new(3, 20);
    struct terminal_screen s =
        look(t, "\x1b]2;a \"title\"\x07\x1b[?25l\x1b[7m     \x1b[m\r\n a\x1b[7m b\xC3\xA4 \x1b[m");
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct jw w = {.out = &out};

    (void)state;
    jw_object(&w);
    assert_int_equal(view_facts(&w, t, &s), SY_E_OK);
    jw_end_object(&w);
    assert_int_equal(jw_done(&w), SY_E_OK);
    assert_string_equal(
        buf_view(&out),
        "{\"rows\":3,\"cols\":20,\"cursor\":{\"row\":1,\"col\":6,\"visible\":false},"
        "\"alt_screen\":false,\"seq\":1,\"title\":\"a \\\"title\\\"\","
        "\"highlighted\":[{\"row\":1,\"col\":2,\"text\":\" b\xC3\xA4 \"}]}");
    terminal_free(t);
}

/* As "ROW,COL TEXT|" each. */
static void
assert_highlighted(struct terminal *t, const struct terminal_screen *s, const char *want)
{
    SY_AUTO(stand_out_fini) struct stand_out found = {.parts = NULL};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    assert_int_equal(stand_out_find(&found, t, s), SY_E_OK);
    for (size_t i = 0; i < found.n; i++) {
        const struct stand_out_part *p = &found.parts[i];

        if (!p->is_paper) {
            assert_int_equal(buf_addf(&out, "%u,%u ", p->row, p->run.col), SY_E_OK);
            assert_int_equal(terminal_part(t, p->row, p->run.col, p->run.cols, &out), SY_E_OK);
            assert_int_equal(buf_add_char(&out, '|'), SY_E_OK);
        }
    }
    assert_string_equal(buf_view(&out), want);
}

/* A white box with its shadow on a blue screen; the chosen line is as blue as that. */
static struct terminal_screen
draw_menu(struct terminal *t, unsigned chosen)
{
    static const char *const items[] = {"Apple ", "Banana", "Cherry"};
    SY_AUTO(buf_fini) struct buf in = {.max = 4096};

    assert_int_equal(buf_add_str(&in, "\x1b[44m\x1b[2J\x1b[2;4H\x1b[47m+--------+"), SY_E_OK);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(buf_addf(&in, "\x1b[%u;4H\x1b[47m| \x1b[%um%s\x1b[47m |\x1b[40m  ", i + 3,
                                  i == chosen ? 44U : 47U, items[i]),
                         SY_E_OK);
    }
    assert_int_equal(buf_add_str(&in, "\x1b[6;4H\x1b[47m+--------+\x1b[40m  \x1b[m"), SY_E_OK);
    return look(t, buf_view(&in));
}

static void
tells_what_is_chosen_in_a_menu_on_coloured_paper(void **state)
{
    struct terminal *t = screens_new(9, 30);
    struct terminal_screen s = draw_menu(t, 0);
    uint64_t since = s.seq;
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    (void)state;
    assert_highlighted(t, &s, "2,5 Apple |2,13   |3,13   |4,13   |5,13   |");
    s = draw_menu(t, 1);
    assert_int_equal(s.seq, since + 1);
    assert_highlighted(t, &s, "2,13   |3,5 Banana|3,13   |4,13   |5,13   |");
    assert_int_equal(view_diff(t, &s, since, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), "2:    | Apple  |\n3:    | Banana |\n");
    s = draw_menu(t, 1);
    assert_int_equal(s.seq, since + 1);
    terminal_free(t);
}

static void
tells_apart_paper_and_what_stands_out(void **state)
{
    static const struct {
        const char *in;
        const char *want;
    } rows[] = {
  /* backgrounds side by side, and reversed ones */
        {"\x1b[41mred\x1b[42mgreen\x1b[38;5;1m\x1b[7mno\x1b[31mte\x1b[m",
         "0,0 red|0,3 green|0,8 note|"                                                                },
 /* a status line over the whole row */
        {"text\x1b[4;1H\x1b[7mname          \x1b[m",                       "3,0 name          |"      },
 /* a whole screen */
        {"\x1b[44m\x1b[2Jtext\x1b[2;3Hmore\x1b[m",                         ""                         },
        {"\x1b[44m\x1b[2Jtext \x1b[48;2;1;2;3mmore\x1b[m",                 "0,5 more|"                },
 /* lines that are selected, with the cursor in them */
        {"\x1b[47mabc\x1b[m\r\nde\x1b[47mf\x1b[m\r\n",                     "0,0 abc|1,2 f|"           },
        {"\x1b[44m\x1b[2J\x1b[47mabcd\x1b[2;1Ha\x1b[44mb\x1b[47mcd\x1b[m",
         "0,0 abcd|1,0 a|1,2 cd|"                                                                     },
 /* labels in a row */
        {"\x1b[46mHelp\x1b[40m 2\x1b[46mSave\x1b[m",                       "0,0 Help|0,4  2|0,6 Save|"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct terminal *t = screens_new(4, 14);
        struct terminal_screen s = look(t, rows[i].in);

        assert_highlighted(t, &s, rows[i].want);
        terminal_free(t);
    }
}

/* What is seen behind a character, not how it came to be. */
static void
a_changed_background_changes_the_row(void **state)
{
    static const char *const changes[] = {"41",           "42",   "48;5;99", "48;2;1;2;3",
                                          "7;48;2;1;2;3", "7;31", "7;32",    "0"};
    struct terminal *t = screens_new(4, 14);
    uint64_t seq = look(t, "text").seq;

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char in[64];

        assert_true(snprintf(in, sizeof(in), "\x1b[1;1H\x1b[0;%smtext", changes[i]) > 0);
        assert_int_equal(look(t, in).seq, ++seq);
        assert_int_equal(look(t, in).seq, seq);
    }
    terminal_free(t);
}

static void
check_strip(const char *in, size_t n, const char *text)
{
    for (size_t piece = 1; piece < 20; piece++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 65536};
        struct strip s = {.held_n = 0};

        for (size_t i = 0; i < n; i += piece) {
            assert_int_equal(strip_feed(&s, in + i, piece < n - i ? piece : n - i, &out), SY_E_OK);
        }
        assert_int_equal(strip_finish(&s, &out), SY_E_OK);
        strip_fini(&s);
        assert_string_equal(buf_view(&out), text);
    }
}

static void
strips_sequences_and_shows_what_only_looks_like_one(void **state)
{
    static const struct {
        const char *in;
        const char *text;
    } rows[] = {
        {"plain\r\n\ttext\b",                                       "plain\r\n\ttext\b"                   },
        {"\x1b[1;31mred\x1b[m",                                     "red"                                 },
        {"\x1b]0;title\x07"
         "a\x1b]8;;http://x\x1b\\b",                       "ab"                                  },
        {"a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e", "abcde"                               },
        {"\x1b(B\x1b)0\x1b=\x1b>\x1b#8\0337x\0338",                 "x"                                   },
        {"a\a\x0e"
         "b\x0f",                                          "ab"                                  },
        {"\x1b[3\n1m",                                              "\n"                                  },
        {"\x1b]0;open\nnext",                                       "\\x1b]0;open\nnext"                  },
        {"\x1b]0;open",                                             "\\x1b]0;open"                        },
        {"\x1b[31",                                                 "\\x1b[31"                            },
        {"\x1b\x1b[m",                                              "\\x1b"                               },
        {"\x1b[\xC3\xA4",                                           "\\x1b[\xC3\xA4"                      },
        {"\x1b[1\x18m",                                             "\\x1b[1m"                            },
        {"a\xC2\x9B"
         "31mb",                                           "a\\u{9B}31mb"                        },
        {"a\342\200\256\342\200\254b\xE2\x80\x8B"
         "c",                                              "a\\u{202E}\\u{202C}b\\u{200B}c"      },
        {"\xC3\xA4\xE6\xBC\xA2\xF0\x9F\x99\x82",                    "\xC3\xA4\xE6\xBC\xA2\xF0\x9F\x99\x82"},
        {"\xFF\xE6\xBC"
         "x\xC3",                                          "\xFF\xE6\xBC"
         "x\xC3"                                                                },
        {"\xC2\x1b[m\x9B",                                          "\\u{9B}"                             },
    };
    char longer[PARSER_SEQUENCE_MAX + 16] = "\x1b[";

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_strip(rows[i].in, strlen(rows[i].in), rows[i].text);
    }
    memset(longer + 2, '1', sizeof(longer) - 4);
    longer[sizeof(longer) - 2] = 'm';
    check_strip(longer, strlen(longer), "");
}

/* Pictures and clipboards; and text is not hidden by one that has no end. */
static void
strips_long_strings_and_tells_how_long_one_without_an_end_was(void **state)
{
    static const struct {
        const char *end;
        const char *text;
    } rows[] = {
        {"\x1b\\b",       "ab"                                                       },
        {"\x07"
         "b",    "ab"                                                       },
        {"",              "a[10003 bytes of an escape sequence without an end]"      },
        {"\nnext",        "a[10003 bytes of an escape sequence without an end]\nnext"},
        {"\x1b[1mnext\n", "a[10003 bytes of an escape sequence without an end]next\n"},
    };
    char body[10001];

    (void)state;
    memset(body, 'B', sizeof(body) - 1);
    body[sizeof(body) - 1] = '\0';
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SY_AUTO(buf_fini) struct buf in = {.max = 20000};

        assert_int_equal(buf_addf(&in, "a\x1b]1;%s%s", body, rows[i].end), SY_E_OK);
        check_strip(buf_view(&in), in.len, rows[i].text);
    }
}

static enum sy_code
body(void *arg)
{
    static const char in[] = "a\x1b]0;title\x07\342\200\256\342\200\254b";
    struct strip s = {.held_n = 0};
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct terminal_options o = {.rows = 3, .cols = 20};
    struct terminal *t = NULL;
    struct terminal_screen screen;
    enum sy_code rc = strip_feed(&s, in, sizeof(in) - 1, &out);

    (void)arg;
    strip_fini(&s);
    if (rc == SY_E_OK) {
        rc = terminal_new(&t, &o, NULL);
    }
    if (rc == SY_E_OK) {
        rc = terminal_feed(t, "\x1b[7mone", 7);
    }
    if (rc == SY_E_OK) {
        rc = terminal_look(t, &screen);
    }
    if (rc == SY_E_OK) {
        rc = view_screen(t, &screen, &out);
    }
    if (rc == SY_E_OK) {
        rc = view_diff(t, &screen, 0, &out);
    }
    if (rc == SY_E_OK) {
        struct jw w = {.out = &out};

        jw_object(&w);
        rc = view_facts(&w, t, &screen);
        jw_end_object(&w);
        rc = rc != SY_E_OK ? rc : jw_done(&w);
    }
    terminal_free(t);
    return rc;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(body, NULL);
}

static void
leaves_out_what_was_drawn_and_left(void **state)
{
    static const struct {
        const char *in;
        bool is_alternate;
        const char *text;
    } rows[] = {
        {"",                                                   false, ""             },
        {"one\n",                                              true,  "one\n"        },
        {"a\033[?1049hdrawn\033[?1049lb",                      false, "ab"           },
        {"drawn\033[?1049lb\033[?47hx\033[?47lc",              true,  "bc"           },
        {"a\033[?1049lb",                                      false, "a\033[?1049lb"},
        {"a\033[?1049hstays",                                  false, "astays"       },
        {"a\033[?1049hx\033[?1049hy\033[?1047lb",              false, "ab"           },
        {"a\033[?1049",                                        false, "a\033[?1049"  },
        {"\033[?25h\033[?10490hb\033\033[?1049hx\033[?1049lc", false,
         "\033[?25h\033[?10490hb\033c"                                               },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = 1000};

        assert_int_equal(buf_add_str(&text, rows[i].in), SY_E_OK);
        strip_alternate(&text, rows[i].is_alternate);
        assert_string_equal(buf_view(&text), rows[i].text);
        assert_int_equal(text.len, strlen(rows[i].text));
    }
}

static void
knows_what_is_drawn_and_stands_on_the_screen(void **state)
{
    static const struct {
        const char *in;
        bool draws;
    } rows[] = {
        {"",                                            false},
        {"text\n",                                      false},
        {"\033[Htop\r\n\033[2;1Hrow",                   true },
        {"a\r\nb\r\n\033[Hc\r\nd\r\n",                  true },
        {"\033[2d",                                     true },
        {"\033[2;1f",                                   true },
        {"\033[2J",                                     true },
        {"\033[2",                                      false},
        {"\033",                                        false},
 /* prompts, bars, menus that move from where they are */
        {"\r50%\033[K\b\b\033[2A\033[3G\033[J\033[0J",  false},
        {"\033[?2004h\033[0;1m$ \033[m\033[?2J\033[ H", false},
        {"\0337\033[24;1Hstatus\0338text\n",            false},
        {"\033[s\033[24;1Hstatus\033[utext\n",          false},
        {"\0337\033[1;1Hx\0338\033[1;1Hx",              true },
 /* more lines than there are rows */
        {"1\n2\n3\n\033[Hx",                            false},
        {"\033[H\033[2J1\n2\n3\n",                      false},
        {"1\n\033[Hx\n\n\033[Hy\n\n\033[Hz\n\n",        true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strip_draws(rows[i].in, strlen(rows[i].in), 3) != rows[i].draws) {
            fail_msg("row %zu", i);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_out_what_was_drawn_and_left),
        cmocka_unit_test(knows_what_is_drawn_and_stands_on_the_screen),
        cmocka_unit_test(shows_rows_without_what_is_blank),
        cmocka_unit_test(tells_only_rows_that_changed_since),
        cmocka_unit_test(tells_the_facts_as_json),
        cmocka_unit_test(tells_what_is_chosen_in_a_menu_on_coloured_paper),
        cmocka_unit_test(tells_apart_paper_and_what_stands_out),
        cmocka_unit_test(a_changed_background_changes_the_row),
        cmocka_unit_test(strips_sequences_and_shows_what_only_looks_like_one),
        cmocka_unit_test(strips_long_strings_and_tells_how_long_one_without_an_end_was),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
