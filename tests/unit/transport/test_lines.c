#include "test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "transport/lines.h"

/* What came: "[line]" and "!" for a dropped one. */
struct got {
    struct lines lines;
    struct buf text;
    size_t n_dropped;
    enum sy_code why;
};

static void
on_line(void *arg, const char *text, size_t len)
{
    struct got *g = arg;

    assert_int_equal(buf_add_char(&g->text, '['), SY_E_OK);
    assert_int_equal(buf_add(&g->text, text, len), SY_E_OK);
    assert_int_equal(buf_add_char(&g->text, ']'), SY_E_OK);
}

static void
on_dropped(void *arg, enum sy_code why)
{
    struct got *g = arg;

    g->n_dropped++;
    g->why = why;
    assert_int_equal(buf_add_char(&g->text, '!'), SY_E_OK);
}

static void
start(struct got *g, size_t max)
{
    *g = (struct got){
        .lines = {.partial = {.max = max},   .on_line = on_line, .on_dropped = on_dropped, .arg = g},
        .text = {.max = 4096},
    };
    /* So that a failing allocation hits the lines alone. */
    assert_int_equal(buf_reserve(&g->text, 2048), SY_E_OK);
}

/* Feeds `input` in pieces of `piece` bytes. */
static void
expect(const char *input, size_t piece, size_t max, const char *want)
{
    struct got g;
    size_t n = strlen(input);

    start(&g, max);
    for (size_t i = 0; i < n; i += piece) {
        lines_push(&g.lines, input + i, n - i < piece ? n - i : piece);
    }
    lines_finish(&g.lines);
    assert_string_equal(g.text.data, want);
    lines_fini(&g.lines);
    buf_fini(&g.text);
}

static void
cuts_the_same_lines_however_the_bytes_arrive(void **state)
{
    static const char input[] = "one\ntwo\r\n\n\r\nthr\ree\nlast";

    (void)state;
    for (size_t piece = 1; piece < sizeof(input); piece++) {
        expect(input, piece, 100, "[one][two][][][thr\ree][last]");
    }
}

static void
an_overlong_line_is_dropped_once_and_the_next_is_whole(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        expect("12345\n123456\n12345\n1234567890123\nab", piece, 5, "[12345]![12345]![ab]");
    }
}

static void
an_overlong_line_without_an_end_is_dropped_once(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 20; piece++) {
        expect("ok\n123456789", piece, 5, "[ok]!");
    }
}

static void
a_line_may_hold_nul(void **state)
{
    struct got g;

    (void)state;
    start(&g, 10);
    lines_push(&g.lines, "a\0b\n", 4);
    assert_int_equal(g.text.len, 5);
    assert_memory_equal(g.text.data, "[a\0b]", 5);
    lines_fini(&g.lines);
    buf_fini(&g.text);
}

static void
no_memory_for_a_line_drops_that_line_alone(void **state)
{
    struct got g;

    (void)state;
    start(&g, 1000);
    mem_fault_set(1);
    lines_push(&g.lines, "begin", 5);
    assert_true(mem_fault_fired());
    mem_fault_set(0);
    lines_push(&g.lines, "end\nnext\n", 9);
    assert_string_equal(g.text.data, "![next]");
    assert_int_equal(g.why, SY_E_NOMEM);
    lines_fini(&g.lines);
    buf_fini(&g.text);
}

static void
a_large_buffer_is_given_back(void **state)
{
    static char big[1024 * 1024];
    struct got g;

    (void)state;
    start(&g, sizeof(big) * 2);
    g.text.max = sizeof(big) * 2;
    memset(big, 'x', sizeof(big));
    lines_push(&g.lines, big, sizeof(big));
    assert_true(g.lines.partial.cap > sizeof(big));
    lines_push(&g.lines, "\n", 1);
    assert_int_equal(g.lines.partial.cap, 0);
    assert_int_equal(g.text.len, sizeof(big) + 2);
    lines_fini(&g.lines);
    buf_fini(&g.text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_the_same_lines_however_the_bytes_arrive),
        cmocka_unit_test(an_overlong_line_is_dropped_once_and_the_next_is_whole),
        cmocka_unit_test(an_overlong_line_without_an_end_is_dropped_once),
        cmocka_unit_test(a_line_may_hold_nul),
        cmocka_unit_test(no_memory_for_a_line_drops_that_line_alone),
        cmocka_unit_test(a_large_buffer_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
