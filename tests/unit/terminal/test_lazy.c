/*
 * A screen that is drawn when somebody looks is the same as one that is drawn at once: random
 * streams (of fixed seeds) in random pieces, with looks, rests and new sizes between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "screens.h"
#include "streams.h"
#include "terminal/terminal_internal.h"

static unsigned compacted;

static void
feed_both(struct terminal *lazy, struct terminal *eager, const char *bytes, size_t n)
{
    assert_int_equal(terminal_feed(lazy, bytes, n), SY_E_OK);
    assert_int_equal(screens_feed_eagerly(eager, bytes, n), SY_E_OK);
}

static void
resize_both(struct terminal *lazy, struct terminal *eager)
{
    unsigned rows = 1 + streams_pick(30);
    unsigned cols = 2 + streams_pick(90);

    assert_int_equal(terminal_resize(lazy, rows, cols, NULL), SY_E_OK);
    eager->is_pristine = false;
    assert_int_equal(terminal_resize(eager, rows, cols, NULL), SY_E_OK);
}

static void
compare(struct terminal *lazy, struct terminal *eager, uint64_t s, size_t at)
{
    const char *what = screens_differ(lazy, eager);

    if (what != NULL) {
        SY_AUTO(buf_fini) struct buf a = {.max = STREAMS_MAX};
        SY_AUTO(buf_fini) struct buf b = {.max = STREAMS_MAX};

        (void)!screens_text(lazy, &a);
        (void)!screens_text(eager, &b);
        fail_msg("seed %llu, byte %zu: %s differs\n%s\n----\n%s", (unsigned long long)s, at, what,
                 buf_view(&a), buf_view(&b));
    }
}

static void
run_seed(uint64_t s)
{
    SY_AUTO(buf_fini) struct buf stream = {.max = STREAMS_MAX};
    struct terminal *lazy = NULL;
    struct terminal *eager = NULL;
    struct terminal_screen screen;

    streams_make(&stream, s);
    /* One after the other: compilers evaluate arguments in an order of their own. */
    unsigned cols = 2 + streams_pick(81);
    unsigned rows = 1 + streams_pick(26);

    lazy = screens_new(rows, cols);
    eager = screens_new(lazy->opt.rows, lazy->opt.cols);
    for (size_t i = 0; i < stream.len;) {
        size_t n = 1 + streams_pick(streams_pick(2) == 0 ? 40 : 9000);

        n = n < stream.len - i ? n : stream.len - i;
        feed_both(lazy, eager, stream.data + i, n);
        i += n;
        compacted += lazy->is_pristine && lazy->state.bytes > pending_max(lazy) ? 1U : 0U;
        switch (streams_pick(30)) {
        case 0:
            compare(lazy, eager, s, i);
            break;
        case 1:
            assert_int_equal(terminal_look(lazy, &screen), SY_E_OK);
            break;
        case 2:
            terminal_rest(lazy);
            break;
        case 3:
            resize_both(lazy, eager);
            break;
        default:
            break;
        }
    }
    compare(lazy, eager, s, stream.len);
    terminal_rest(lazy);
    compare(lazy, eager, s, stream.len);
    terminal_free(lazy);
    terminal_free(eager);
}

static void
what_is_drawn_late_is_what_is_drawn_at_once(void **state)
{
    const char *seeds = getenv("SHELLYARD_TEST_SEEDS");
    const char *from = getenv("SHELLYARD_TEST_FROM");
    uint64_t first = from != NULL ? (uint64_t)strtoull(from, NULL, 10) : 1;
    uint64_t n = seeds != NULL ? (uint64_t)strtoull(seeds, NULL, 10) : 60;

    (void)state;
    for (uint64_t s = first; s < first + n; s++) {
        run_seed(s);
    }
    /* Else the test shows nothing. */
    assert_true(compacted > 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_drawn_late_is_what_is_drawn_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
