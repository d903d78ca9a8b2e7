#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "fault.h"
#include "screens.h"
#include "terminal/terminal_internal.h"

static void
feed(struct terminal *t, const char *s)
{
    assert_int_equal(terminal_feed(t, s, strlen(s)), SY_E_OK);
}

static void
check_text(struct terminal *t, const char *text)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 65536};

    assert_int_equal(screens_text(t, &out), SY_E_OK);
    assert_string_equal(buf_view(&out), text);
}

static void
check_cursor(struct terminal *t, unsigned row, unsigned col)
{
    struct terminal_screen s;

    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.cursor_row, row);
    assert_int_equal(s.cursor_col, col);
}

/* Feeds as a whole and byte by byte: the answers are the same. */
static void
check_answer(const char *stream, const char *answer)
{
    for (size_t piece = 1; piece <= 64; piece += 63) {
        struct terminal *t = screens_new(24, 80);
        size_t n = strlen(stream);

        for (size_t i = 0; i < n; i += piece) {
            assert_int_equal(terminal_feed(t, stream + i, piece < n - i ? piece : n - i), SY_E_OK);
        }
        assert_string_equal(buf_view(terminal_replies(t)), answer);
        terminal_free(t);
    }
}

static void
answers_what_programs_ask_in_order(void **state)
{
    static const struct {
        const char *stream;
        const char *answer;
    } rows[] = {
        {"\x1b[c",                                                   "\x1b[?62;22c"                                                },
        {"\x1b[0c",                                                  "\x1b[?62;22c"                                                },
        {"\x1bZ",                                                    "\x1b[?62;22c"                                                },
        {"\x1b[>c",                                                  "\x1b[>0;100;0c"                                              },
        {"\x1b[=c",                                                  ""                                                            },
        {"\x1b[5n",                                                  "\x1b[0n"                                                     },
        {"\x1b[6n",                                                  "\x1b[1;1R"                                                   },
        {"ab\r\nc\x1b[6nxyz",                                        "\x1b[2;2R"                                                   },
        {"ab\x1b[6n\x1b[10;20H\x1b[?6n\x1b[c",                       "\x1b[1;3R\x1b[?10;20R\x1b[?62;22c"                           },
        {"\x1b[?2004$p",                                             "\x1b[?2004;2$y"                                              },
        {"\x1b[?2004h\x1b[?2004$p",                                  "\x1b[?2004;1$y"                                              },
        {"\x1b[?2026$p",                                             "\x1b[?2026;2$y"                                              },
        {"\x1b[?1049h\x1b[?1049$p",                                  "\x1b[?1049;1$y"                                              },
        {"\x1b[?7$p\x1b[?25$p",                                      "\x1b[?7;1$y\x1b[?25;1$y"                                     },
        {"\x1b[?9999$p",                                             "\x1b[?9999;0$y"                                              },
        {"\x1b[4h\x1b[4$p\x1b[20$p\x1b[12$p",                        "\x1b[4;1$y\x1b[20;2$y\x1b[12;0$y"                            },
        {"\x1bP$q q\x1b\\",                                          "\x1bP1$r1 q\x1b\\"                                           },
        {"\x1b[6 q\x1bP$q q\x1b\\",                                  "\x1bP1$r6 q\x1b\\"                                           },
        {"\x1b[1;31m\x1bP$qm\x1b\\",                                 "\x1bP1$r1;31m\x1b\\"                                         },
        {"\x1b[3;9r\x1bP$qr\x1b\\",                                  "\x1bP1$r3;9r\x1b\\"                                          },
        {"\x1bP$qrm -rf /\x1b\\",                                    "\x1bP0$r\x1b\\"                                              },
        {"\x1b[>q",                                                  "\x1bP>|shellyard(" SY_VERSION ")\x1b\\"                      },
        {"\x1b[>0q",                                                 "\x1bP>|shellyard(" SY_VERSION ")\x1b\\"                      },
        {"\x1bP+q544e\x1b\\",                                        "\x1bP0+r\x1b\\"                                              },
        {"\x1b]11;?\x07",                                            "\x1b]11;rgb:0000/0000/0000\x07"                              },
        {"\x1b]10;?\x1b\\",                                          "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"                            },
        {"\x1b]10;?;?\x07",                                          "\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07"},
        {"\x1b]12;?\x07",                                            "\x1b]12;rgb:e5e5/e5e5/e5e5\x07"                              },
        {"\x1b]4;1;?\x07",                                           "\x1b]4;1;rgb:cdcd/0000/0000\x07"                             },
        {"\x1b]4;16;?;231;?\x07",
         "\x1b]4;16;rgb:0000/0000/0000\x07\x1b]4;231;rgb:ffff/ffff/ffff\x07"                                                       },
        {"\x1b]4;255;?\x07",                                         "\x1b]4;255;rgb:eeee/eeee/eeee\x07"                           },
        {"\x1b]4;256;?\x07\x1b]4;1;red\x07\x1b]4;99999999999;?\x07", ""                                                            },
        {"\x1b[14t\x1b[16t\x1b[18t",                                 "\x1b[4;384;640t\x1b[6;16;8t\x1b[8;24;80t"                    },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_answer(rows[i].stream, rows[i].answer);
    }
}

static void
gives_nothing_back_that_a_program_wrote(void **state)
{
    (void)state;
    check_answer("\x1b]2;rm -rf /\x07\x1b[21t\x1b[20t", ""); /* titles */
    check_answer("\x05", "");                                /* answerback */
    check_answer("\x1b]52;c;?\x07\x1b]52;c;cm0K\x07\x1b]52;c;?\x1b\\", "");
    check_answer("\x1b[?u", "");   /* kitty's keyboard: the answer to DA1 comes first */
    check_answer("\x1b[?15n", ""); /* a printer */
    check_answer("\x1b[>1q\x1b[1c\x1b[x", "");
}

static void
drops_answers_that_nobody_reads(void **state)
{
    struct terminal *t = screens_new(24, 80);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        feed(t, "\x1b[c");
    }
    assert_true(terminal_replies(t)->len <= LIMIT_TERMINAL_REPLIES);
    assert_int_equal(terminal_replies(t)->len % strlen("\x1b[?62;22c"), 0);
    assert_int_equal(terminal_state(t)->unanswered,
                     1000 - terminal_replies(t)->len / strlen("\x1b[?62;22c"));
    buf_reset(terminal_replies(t));
    feed(t, "\x1b[5n");
    assert_string_equal(buf_view(terminal_replies(t)), "\x1b[0n");
    terminal_free(t);
}

static void
knows_the_modes_without_a_look(void **state)
{
    struct terminal *t = screens_new(24, 80);
    const struct terminal_state *s = terminal_state(t);

    (void)state;
    assert_true(s->cursor_visible && !s->alt_screen && !s->keys.app_cursor);
    feed(
        t,
        "\x1b[?1;2004h\x1b=\x1b[?25l\x1b[?1049h\x1b[?1002h\x1b[>4;2m\x1b]0;vim \xC3\xA4\x1b[31m\x07");
    assert_true(s->keys.app_cursor && s->keys.bracketed_paste && s->keys.app_keypad);
    assert_true(s->keys.other_keys && s->alt_screen && s->wants_mouse && !s->cursor_visible);
    feed(t, "\x1b]0;vim \xC3\xA4\xE2\x80\xAE\xE2\x80\xAC\xFF\x07");
    assert_string_equal(terminal_title(t), "vim \xC3\xA4");
    feed(t, "\x1b[?1;2004l\x1b>\x1b[?25h\x1b[?1049l\x1b[?1002l\x1b[>4m\a\a");
    assert_true(!s->keys.app_cursor && !s->keys.bracketed_paste && !s->keys.app_keypad);
    assert_true(!s->keys.other_keys && !s->alt_screen && !s->wants_mouse && s->cursor_visible);
    assert_int_equal(s->bells, 3); /* one ended a title that was none */
    feed(t, "\x1b[?2026h");
    assert_true(s->is_in_frame);
    feed(t, "\x1b[?2026l");
    assert_true(!s->is_in_frame);
    assert_int_equal(s->frames, 1);
    assert_int_equal(s->pastes, 1);
    feed(t, "\x1b[?2004l\x1b[?2004h\x1b[?2004h");
    assert_int_equal(s->pastes, 1);
    feed(t, "\x1b[?2004l\x1b[?2004l");
    assert_int_equal(s->pastes, 2);
    assert_null(t->vt);
    terminal_free(t);
}

static void
draws_text_and_keeps_the_alternate_screen_apart(void **state)
{
    struct terminal *t = screens_new(5, 20);

    (void)state;
    feed(t, "one\r\ntwo \x1b[7mthree\x1b[m   \r\n");
    check_text(t, "one\ntwo three");
    check_cursor(t, 2, 0);
    feed(t, "\x1b[?1049h\x1b[2J\x1b[H\x1b[3;5Hvim");
    check_text(t, "\n\n    vim");
    feed(t, "\x1b[?1049l");
    check_text(t, "one\ntwo three");
    check_cursor(t, 2, 0);
    feed(t, "\x1b[s\x1b[4;4Hx\x1b[uy"); /* SCO's names of saving and restoring */
    check_text(t, "one\ntwo three\ny\n   x");
    feed(t, "\033cnew");
    check_text(t, "new");
    feed(t, "\rab\x1b[4bc"); /* REP */
    check_text(t, "abbbbbc");
    feed(t, "\r\x1b(0lqqk\x1b(B");
    check_text(t, "\xE2\x94\x8C\xE2\x94\x80\xE2\x94\x80\xE2\x94\x90"
                  "bbc");
    terminal_free(t);
}

static void
finds_what_stands_out(void **state)
{
    struct terminal *t = screens_new(4, 20);
    struct terminal_run runs[4];
    struct terminal_screen s;

    (void)state;
    feed(t, "a \x1b[7mmenu\x1b[m b \x1b[44mxy\x1b[7mz\x1b[m\r\n\x1b[7m \xE6\xBC\xA2 \x1b[m");
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(terminal_row_runs(t, 0, runs, 4), 3);
    assert_true(runs[0].col == 2 && runs[0].cols == 4 && runs[0].is_reverse);
    assert_true(runs[1].col == 9 && runs[1].cols == 2 && !runs[1].is_reverse);
    assert_true(runs[2].col == 11 && runs[2].cols == 1 && runs[2].is_reverse);
    assert_int_equal(terminal_row_runs(t, 1, runs, 1), 1);
    assert_true(runs[0].col == 0 && runs[0].cols == 4);
    assert_int_equal(terminal_row_runs(t, 2, runs, 4), 0);
    terminal_free(t);
}

static void
numbers_rows_by_when_they_changed(void **state)
{
    struct terminal *t = screens_new(5, 20);
    struct terminal_screen s;

    (void)state;
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.seq, 0);
    feed(t, "one\r\ntwo");
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.seq, 1);
    feed(t, "\x1b[Hone\x1b[2;4H"); /* nothing new */
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.seq, 1);
    feed(t, "!");
    terminal_rest(t);
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.seq, 2);
    assert_int_equal(terminal_row_seq(t, 0), 1);
    assert_int_equal(terminal_row_seq(t, 1), 2);
    assert_int_equal(terminal_row_seq(t, 2), 0);
    feed(t, "\x1b[?25l");
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.seq, 3);
    assert_int_equal(terminal_resize(t, 3, 10, NULL), SY_E_OK);
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    assert_int_equal(s.seq, 4);
    assert_int_equal(terminal_row_seq(t, 2), 4);
    terminal_free(t);
}

struct heard {
    char text[64];
};

static void
on_mark(void *arg, enum terminal_mark mark, int code)
{
    struct heard *h = arg;
    size_t n = strlen(h->text);

    (void)snprintf(h->text + n, sizeof(h->text) - n, "%c%d ", "ABCD"[mark], code);
}

static void
hears_marks_that_know_the_nonce_and_no_others(void **state)
{
    struct heard h = {""};
    struct terminal_options o = {
        .rows = 24, .cols = 80, .nonce = "k3y", .on_mark = on_mark, .arg = &h};
    struct terminal *t = NULL;

    (void)state;
    assert_int_equal(terminal_new(&t, &o, NULL), SY_E_OK);
    feed(t, "\x1b]133;A;sy=k3y\x07$ \x1b]133;B;sy=k3y\x1b\\ls\r\n\x1b]133;C;x=1;sy=k3y\x07");
    feed(t, "\x1b]133;D;0\x07\x1b]133;D;0;sy=k3\x07\x1b]133;D;0;sy=k3yy\x07\x1b]133;Asy=k3y\x07");
    feed(t, "\x1b]133;E;sy=k3y\x07\x1b]133;\x07\x1b]133;D;0;ky=k3y\x07");
    feed(t, "\x1b]633;D;7;sy=k3y\x07\x1b]133;D;sy=k3y\x07\x1b]133;D;300;sy=k3y\x07");
    assert_string_equal(h.text, "A-1 B-1 C-1 D7 D-1 D-1 ");
    check_text(t, "$ ls");
    terminal_free(t);
}

static void
rejects_sizes_that_are_not_possible(void **state)
{
    static const unsigned sizes[][2] = {
        {0,                       80                     },
        {24,                      0                      },
        {24,                      1                      },
        {LIMIT_TERMINAL_ROWS + 1, 80                     },
        {24,                      LIMIT_TERMINAL_COLS + 1}
    };
    struct terminal *t = screens_new(LIMIT_TERMINAL_ROWS, LIMIT_TERMINAL_COLS);
    struct sy_error err = {0};

    (void)state;
    feed(t, "x");
    check_text(t, "x");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct terminal_options o = {.rows = sizes[i][0], .cols = sizes[i][1]};
        struct terminal *none = NULL;

        assert_int_equal(terminal_new(&none, &o, &err), SY_E_ARG);
        assert_null(none);
        assert_int_equal(terminal_resize(t, o.rows, o.cols, &err), SY_E_ARG);
    }
    terminal_free(t);
}

static void
shows_no_character_that_hides_or_turns_text(void **state)
{
    struct terminal *t = screens_new(3, 20);

    (void)state;
    feed(t, "a\342\200\256\342\200\254b\xC2\x9B"
            "c\xE2\x80\x8B"
            "d\xFF"
            "e\xC3\xA4");
    check_text(t, "ab\xEF\xBF\xBD"
                  "cd\xEF\xBF\xBD"
                  "e\xC3\xA4");
    terminal_free(t);
}

static void
an_unfinished_character_waits_for_its_end(void **state)
{
    struct terminal *t = screens_new(3, 20);

    (void)state;
    feed(t, "a\xE6\xBC");
    check_text(t, "a");
    feed(t, "\xA2"
            "b");
    check_text(t, "a\xE6\xBC\xA2"
                  "b");
    terminal_free(t);
}

/* The table agrees with the libvterm that this was built with. */
static void
knows_which_characters_libvterm_joins(void **state)
{
    (void)state;

    struct vt *v = vt_new(2, 20);

    assert_non_null(v);
    for (uint32_t c = 0xA0; c <= 0x10FFFF; c++) {
        char bytes[UTF8_MAX];
        unsigned row = 0;
        unsigned col = 0;

        if (c >= 0xD800 && c <= 0xDFFF) {
            continue;
        }
        assert_int_equal(vt_write(v, "\rx", 2), SY_E_OK);
        assert_int_equal(vt_write(v, bytes, utf8_put(bytes, c)), SY_E_OK);
        vt_cursor(v, &row, &col);
        if ((col == 1) != vt_is_zero_width(c)) {
            fail_msg("U+%04X is %s", (unsigned)c, col == 1 ? "joined" : "not joined");
        }
    }
    vt_free(v);
}

/* libvterm would put it on the next line, or over the character. */
static void
leaves_out_a_mark_behind_a_wide_character_at_the_end(void **state)
{
    struct terminal *wraps = screens_new(4, 5);
    struct terminal *stays = screens_new(4, 5);

    (void)state;
    feed(wraps, "aaa\xE6\xBC\xA2\xCC\x81"
                "b");
    check_text(wraps, "aaa\xE6\xBC\xA2\nb");
    feed(stays, "\x1b[?7laaa\xE6\xBC\xA2\xCC\x81");
    check_text(stays, "aaa\xE6\xBC\xA2");
    terminal_free(wraps);
    terminal_free(stays);
}

static void
a_bash_session_at_rest_is_small(void **state)
{
    struct terminal *t = screens_new(24, 80);
    struct terminal_screen s;
    char line[128];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(
            line, sizeof(line),
            "\x1b[?2004h\x1b]0;user@host: ~\x07\x1b[01;32muser@host\x1b[00m:~$ echo %d\b\b\x1b[K\r\n"
            "\x1b[?2004l\x1b(B\x1b[moutput %d of this command\r\n",
            i, i);
        feed(t, line);
        if (i % 100 == 0) {
            assert_int_equal(terminal_look(t, &s), SY_E_OK);
        }
    }
    assert_true(t->is_pristine);
    terminal_rest(t);
    assert_null(t->vt);
    print_message("at rest: %zu bytes\n", terminal_memory(t));
    assert_true(terminal_memory(t) <= 12288);
    assert_int_equal(terminal_look(t, &s), SY_E_OK);
    print_message("looked at: %zu bytes\n", terminal_memory(t));
    terminal_free(t);
}

static enum sy_code
body(void *arg)
{
    struct terminal_options o = {.rows = 6, .cols = 20};
    struct terminal *t = NULL;
    struct terminal_screen s;
    SY_AUTO(buf_fini) struct buf row = {.max = 4096};
    enum sy_code rc = terminal_new(&t, &o, NULL);

    (void)arg;
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = terminal_feed(t, "\x1b]0;a title\x07one\x1b[6n\x1b[c", 21);
    for (int i = 0; i < 2000 && rc == SY_E_OK; i++) {
        rc = terminal_feed(t, "\x1b[1mline\x1b[m\r\n", 13);
    }
    if (rc == SY_E_OK) {
        rc = terminal_feed(t, "\x1b[?1049h\x1b[Hx", 12);
    }
    if (rc == SY_E_OK) {
        rc = terminal_look(t, &s);
    }
    if (rc == SY_E_OK) {
        rc = terminal_resize(t, 10, 40, NULL);
    }
    if (rc == SY_E_OK) {
        rc = terminal_look(t, &s);
    }
    if (rc == SY_E_OK) {
        rc = terminal_row(t, 0, &row);
    }
    terminal_rest(t);
    terminal_free(t);
    return rc;
}

static void
survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run_lenient(body, NULL);
}

/* After a failure a terminal goes on, if it comes to that without its old screen. */
static void
goes_on_when_memory_was_out(void **state)
{
    (void)state;
    for (size_t nth = 1; nth < 40; nth++) {
        struct terminal *t = screens_new(6, 20);
        struct terminal_screen s;
        enum sy_code rc = SY_E_OK;

        feed(t, "\x1b[?1049h\x1b[2;4rx");
        mem_fault_set(nth);
        rc = terminal_feed(t, "a\x1b[6nb", 6);
        if (rc == SY_E_OK) {
            rc = terminal_look(t, &s);
        }
        if (rc == SY_E_OK) {
            rc = terminal_resize(t, 5 + (unsigned)nth % 5, 30, NULL);
        }
        mem_fault_set(0);
        assert_true(rc == SY_E_OK || rc == SY_E_NOMEM);
        feed(t, "\033cfresh");
        check_text(t, "fresh");
        terminal_free(t);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_what_programs_ask_in_order),
        cmocka_unit_test(gives_nothing_back_that_a_program_wrote),
        cmocka_unit_test(drops_answers_that_nobody_reads),
        cmocka_unit_test(knows_the_modes_without_a_look),
        cmocka_unit_test(draws_text_and_keeps_the_alternate_screen_apart),
        cmocka_unit_test(finds_what_stands_out),
        cmocka_unit_test(numbers_rows_by_when_they_changed),
        cmocka_unit_test(hears_marks_that_know_the_nonce_and_no_others),
        cmocka_unit_test(rejects_sizes_that_are_not_possible),
        cmocka_unit_test(shows_no_character_that_hides_or_turns_text),
        cmocka_unit_test(an_unfinished_character_waits_for_its_end),
        cmocka_unit_test(knows_which_characters_libvterm_joins),
        cmocka_unit_test(leaves_out_a_mark_behind_a_wide_character_at_the_end),
        cmocka_unit_test(a_bash_session_at_rest_is_small),
        cmocka_unit_test(survives_each_failed_allocation),
        cmocka_unit_test(goes_on_when_memory_was_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
