/*
 * What is painted for another terminal makes it show the same, at once and in steps: random
 * streams (of fixed seeds), painted into a second terminal and compared cell by cell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "fault.h"
#include "screens.h"
#include "streams.h"
#include "terminal/paint.h"
#include "terminal/terminal_internal.h"

static void
feed(struct terminal *t, const char *s)
{
    assert_int_equal(terminal_feed(t, s, strlen(s)), SY_E_OK);
}

static struct paint *
new_paint(unsigned rows, unsigned cols, bool is_watching)
{
    struct paint *p = NULL;

    assert_int_equal(paint_new(&p, rows, cols, is_watching, NULL), SY_E_OK);
    return p;
}

/* All of it, in as many pieces as it takes. */
static void
paint_into(struct paint *p, struct terminal *from, struct terminal *to)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_PAINT_MOST};
    bool is_whole = false;

    while (!is_whole) {
        buf_reset(&out);
        assert_int_equal(paint_add(p, from, &out, &is_whole), SY_E_OK);
        assert_int_equal(terminal_feed(to, buf_view(&out), out.len), SY_E_OK);
    }
    assert_int_equal(terminal_replies(to)->len, 0);
}

/* What is painted of a new terminal that was fed with this, in text. */
static void
check_painted(const char *in, const char *shown, unsigned rows, unsigned cols)
{
    struct terminal *a = screens_new(4, 20);
    struct terminal *b = screens_new(rows, cols);
    struct paint *p = new_paint(rows, cols, false);
    SY_AUTO(buf_fini) struct buf text = {.max = 65536};

    feed(a, in);
    feed(b, PAINT_ENTER "\x1b[31mwhat was there before\x1b[2;3r");
    paint_into(p, a, b);
    assert_int_equal(screens_text(b, &text), SY_E_OK);
    assert_string_equal(buf_view(&text), shown);
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
}

static void
shows_the_part_with_the_cursor_where_there_is_less_room(void **state)
{
    (void)state;
    check_painted("one\r\ntwo\r\n three", "one\ntwo\n three", 4, 20);
    check_painted("one\r\ntwo\r\n three", "one\ntwo\n three", 9, 60);
    check_painted("one\r\ntwo\r\n three", "two\n three", 2, 20);
    check_painted("one\r\ntwo\r\n three", "e", 1, 2);
    check_painted("one\r\ntwo\r\n three\r", " t", 1, 2);
    /* By half the width, and no further than there is a screen. */
    check_painted("0123456789\r\nab", "012345\nab", 4, 6);
    check_painted("0123456789", "6789", 4, 6);
    check_painted("0123456789\r\nabcdef", "345678\ndef", 4, 6);
    check_painted("\x1b[1;15Hxyz123", "xyz123", 4, 6);
    check_painted("0123456789\x1b[A\x1b[6G", "012345", 4, 6);
    /* Half a character is none, on either side. */
    check_painted("ab\xE6\xBC\xA2z\r", "ab", 4, 3);
    check_painted("ab\xE6\xBC\xA2z\r", "ab\xE6\xBC\xA2", 4, 4);
    check_painted("ab\xE6\xBC\xA2z", " z", 4, 3);
    check_painted("ab\xE6\xBC\xA2z", "\xE6\xBC\xA2z", 4, 4);
    check_painted("one\r\ntwo\x1b[H", "one", 1, 20);
}

/* A mark over the left half of a wide character: the rest of the row stays in its columns. */
static void
leaves_a_row_in_place_behind_a_mark_that_stands_alone(void **state)
{
    (void)state;
    check_painted("\xE6\xBC\xA2z\r\xCC\x81", "  z", 4, 20);
    check_painted("\xE6\xBC\xA2z\r\xE2\x80\x8B", "  z", 4, 20);
}

static void
check_sends(struct paint *p, struct terminal *t, const char *in, const char *sent)
{
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_PAINT_MOST};
    bool is_whole = false;

    feed(t, in);
    assert_int_equal(paint_add(p, t, &out, &is_whole), SY_E_OK);
    assert_true(is_whole);
    assert_string_equal(buf_view(&out), sent);
}

static void
sends_what_has_changed_and_nothing_that_has_not(void **state)
{
    struct terminal *a = screens_new(4, 20);
    struct terminal *b = screens_new(4, 20);
    struct paint *p = new_paint(4, 20, false);

    (void)state;
    feed(a, "one\r\ntwo");
    paint_into(p, a, b);
    check_sends(p, a, "", "");
    check_sends(p, a, "\rtwo", "");
    check_sends(p, a, "!", "\x1b[?25l\x1b[2;1Htwo!\x1b[K\x1b[2;5H\x1b[?25h");
    check_sends(p, a, "\x1b[H", "\x1b[1;1H");
    check_sends(p, a, "\x1b[1;31mo",
                "\x1b[?25l\x1b[1;1H\x1b[0;1;31mo\x1b[0mne\x1b[K\x1b[1;2H\x1b[?25h");
    check_sends(p, a, "\a\a", "\a\x1b[1;2H");
    check_sends(p, a, "\x1b[4 q\x1b[?25l", "\x1b[4 q\x1b[1;2H\x1b[?25l");
    check_sends(p, a, "\x1b[1 q\x1b[?25h", "\x1b[0 q\x1b[1;2H\x1b[?25h");
    check_sends(p, a, "\x1b]2;a\x1b\\", "\x1b]2;a\x1b\\\x1b[1;2H");
    check_sends(p, a, "\x1b]2;\x1b\\", "\x1b]2;\x1b\\\x1b[1;2H");
    check_sends(p, a, "\x1b[?1h\x1b=\x1b[?1002;1006;2004h",
                "\x1b[?1h\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b=\x1b[1;2H");
    check_sends(p, a, "\x1b[?1049h\x1b[?1049l", "");
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
}

static void
passes_nothing_that_asks_or_tells(void **state)
{
    static const char *const odd[] = {
        "\x1b[c",
        "\x1b[>c",
        "\x1b[5n",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[18t",
        "\x1b[21t",
        "\x1b[>q",
        "\x1b]10;?\a",
        "\x1b]11;?\a",
        "\x1b]4;1;?\a",
        "\x1b]52;c;aGk=\a",
        "\x1b]52;c;?\a",
        "\x05",
        "\x1bZ",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b[?2004$p",
        "\x1b]8;;http://x\a",
        "\x1b]1337;x\a",
        "\x1b_Gx\x1b\\",
        "\x1b[?u",
        "\x1b[8;1;1t",
        "\x1b]4;1;rgb:0/0/0\a",
        "\x1b[?1049h",
        "\x1b]50;x\a",
        "\x1b[3t",
        "\x1b[5i",
    };
    struct terminal *a = screens_new(4, 20);
    struct paint *p = new_paint(4, 20, false);
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_PAINT_MOST};
    bool is_whole = false;

    (void)state;
    assert_int_equal(paint_add(p, a, &out, &is_whole), SY_E_OK);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        check_sends(p, a, odd[i], "");
    }
    paint_free(p);
    terminal_free(a);
}

static void
leaves_the_keys_of_one_who_watches(void **state)
{
    struct terminal *a = screens_new(4, 20);
    struct terminal *b = screens_new(4, 20);
    struct paint *p = new_paint(4, 20, true);

    (void)state;
    paint_into(p, a, b);
    check_sends(p, a, "\x1b[?1;1000;1006;2004h\x1b=\x1b[>4;1m", "");
    check_sends(p, a, "\x1b[?5h", "\x1b[?5h\x1b[1;1H");
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
}

static void
takes_its_changes_back(void **state)
{
    struct terminal *a = screens_new(4, 20);
    struct terminal *b = screens_new(4, 20);
    struct terminal *born = screens_new(4, 20);
    struct paint *p = new_paint(4, 20, false);

    (void)state;
    feed(a, "\x1b[?1;5;1000;1002;1003;1004;1005;1006;1015;2004h\x1b=\x1b[>4;2m\x1b[4 q\x1b[?25l"
            "\x1b[7;31mx");
    feed(b, "mine\r\n" PAINT_ENTER);
    feed(born, "mine\r\n");
    paint_into(p, a, b);
    assert_true(b->state.alt_screen && b->state.wants_mouse && b->state.keys.other_keys);
    feed(b, PAINT_LEAVE);
    assert_null(screens_differ(b, born));
    assert_null(screens_cells_differ(b, born));
    assert_int_equal(b->modes, born->modes);
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
    terminal_free(born);
}

/* A row of the widest terminal in the dearest colours fits, and a screen of them takes several
 * pieces. */
static void
stops_behind_a_row_and_goes_on(void **state)
{
    struct terminal *a = screens_new(60, LIMIT_TERMINAL_COLS);
    struct terminal *b = screens_new(60, LIMIT_TERMINAL_COLS);
    struct paint *p = new_paint(60, LIMIT_TERMINAL_COLS, false);
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_PAINT_MOST};
    bool is_whole = false;
    unsigned pieces = 0;

    (void)state;
    for (unsigned row = 1; row <= 60; row++) {
        char cell[160];

        (void)snprintf(cell, sizeof(cell), "\x1b[%u;1H", row);
        feed(a, cell);
        for (unsigned col = 0; col < LIMIT_TERMINAL_COLS; col++) {
            (void)snprintf(cell, sizeof(cell),
                           "\x1b[1;3;4:3;5;7;9;38;2;2%u;255;2%02um\x1b[48;2;255;2%u;2%02um"
                           "e\xCC\x81\xCC\x82\xCC\x83\xCC\x84\xCC\x85",
                           row % 10, col % 50, col % 10, row % 50);
            feed(a, cell);
        }
    }
    for (; !is_whole; pieces++) {
        buf_reset(&out);
        assert_int_equal(paint_add(p, a, &out, &is_whole), SY_E_OK);
        feed(b, buf_view(&out));
    }
    assert_in_range(pieces, 20, 200);
    assert_null(screens_cells_differ(a, b));
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
}

static void
compare(struct terminal *a, struct terminal *b, uint64_t s, size_t at)
{
    const char *what = screens_cells_differ(a, b);
    const struct terminal_state *p = terminal_state(a);
    const struct terminal_state *q = terminal_state(b);

    if (what == NULL && (a->screen.cursor_row != b->screen.cursor_row ||
                         a->screen.cursor_col != b->screen.cursor_col)) {
        what = "the cursor";
    }
    if (what == NULL &&
        (memcmp(&p->keys, &q->keys, sizeof(p->keys)) != 0 ||
         p->cursor_visible != q->cursor_visible || p->wants_mouse != q->wants_mouse)) {
        what = "a mode";
    }
    if (what == NULL && strcmp(terminal_title(a), terminal_title(b)) != 0) {
        what = "the title";
    }
    if (what != NULL) {
        SY_AUTO(buf_fini) struct buf x = {.max = STREAMS_MAX};
        SY_AUTO(buf_fini) struct buf y = {.max = STREAMS_MAX};

        (void)!screens_text(a, &x);
        (void)!screens_text(b, &y);
        fail_msg("seed %llu, byte %zu: %s differs\n%s\n----\n%s", (unsigned long long)s, at, what,
                 buf_view(&x), buf_view(&y));
    }
}

static void
resize(struct terminal *a, struct terminal **b, struct paint *p)
{
    unsigned rows = 1 + streams_pick(30);
    unsigned cols = 2 + streams_pick(90);

    assert_int_equal(terminal_resize(a, rows, cols, NULL), SY_E_OK);
    assert_int_equal(paint_resize(p, rows, cols, NULL), SY_E_OK);
    assert_int_equal(terminal_resize(*b, rows, cols, NULL), SY_E_OK);
}

static void
run_seed(uint64_t s)
{
    SY_AUTO(buf_fini) struct buf stream = {.max = STREAMS_MAX};
    struct terminal *a = NULL;
    struct terminal *b = NULL;
    struct paint *p = NULL;

    streams_make(&stream, s);
    /* One after the other: compilers evaluate arguments in an order of their own. */
    unsigned cols = 2 + streams_pick(81);
    unsigned rows = 1 + streams_pick(26);

    a = screens_new(rows, cols);
    b = screens_new(a->opt.rows, a->opt.cols);
    p = new_paint(a->opt.rows, a->opt.cols, false);
    for (size_t i = 0; i < stream.len;) {
        size_t n = 1 + streams_pick(streams_pick(2) == 0 ? 40 : 9000);

        n = n < stream.len - i ? n : stream.len - i;
        assert_int_equal(terminal_feed(a, stream.data + i, n), SY_E_OK);
        buf_reset(terminal_replies(a));
        i += n;
        if (streams_pick(30) == 0) {
            resize(a, &b, p);
        }
        if (streams_pick(3) == 0 || i == stream.len) {
            paint_into(p, a, b);
            compare(a, b, s, i);
        }
    }
    paint_free(p);
    terminal_free(a);
    terminal_free(b);
}

static void
shows_in_another_terminal_what_the_first_one_shows(void **state)
{
    const char *seeds = getenv("SHELLYARD_TEST_SEEDS");
    const char *from = getenv("SHELLYARD_TEST_FROM");
    uint64_t first = from != NULL ? (uint64_t)strtoull(from, NULL, 10) : 1;
    uint64_t n = seeds != NULL ? (uint64_t)strtoull(seeds, NULL, 10) : 60;

    (void)state;
    for (uint64_t s = first; s < first + n; s++) {
        run_seed(s);
    }
}

static enum sy_code
paint_once(void *arg)
{
    struct terminal_options o = {.rows = 5, .cols = 30};
    struct buf out = {.max = LIMIT_PAINT_MOST};
    struct terminal *t = NULL;
    struct paint *p = NULL;
    bool is_whole = false;
    enum sy_code rc = terminal_new(&t, &o, NULL);

    (void)arg;
    rc = rc == SY_E_OK ? terminal_feed(t, "\x1b[31mred\x1b]2;t\a", 13) : rc;
    rc = rc == SY_E_OK ? paint_new(&p, 5, 30, false, NULL) : rc;
    rc = rc == SY_E_OK ? paint_add(p, t, &out, &is_whole) : rc;
    rc = rc == SY_E_OK ? paint_resize(p, 6, 20, NULL) : rc;
    rc = rc == SY_E_OK ? paint_add(p, t, &out, &is_whole) : rc;
    paint_free(p);
    terminal_free(t);
    buf_fini(&out);
    return rc;
}

static void
survives_without_memory(void **state)
{
    (void)state;
    fault_run(paint_once, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_the_part_with_the_cursor_where_there_is_less_room),
        cmocka_unit_test(leaves_a_row_in_place_behind_a_mark_that_stands_alone),
        cmocka_unit_test(sends_what_has_changed_and_nothing_that_has_not),
        cmocka_unit_test(passes_nothing_that_asks_or_tells),
        cmocka_unit_test(leaves_the_keys_of_one_who_watches),
        cmocka_unit_test(takes_its_changes_back),
        cmocka_unit_test(stops_behind_a_row_and_goes_on),
        cmocka_unit_test(shows_in_another_terminal_what_the_first_one_shows),
        cmocka_unit_test(survives_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
