#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "events/events.h"
#include "fault.h"

/* The preview of `times` repetitions of `unit`. */
static void
preview(struct buf *out, const char *unit, size_t times)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 100000};

    for (size_t i = 0; i < times; i++) {
        assert_int_equal(buf_add_str(&text, unit), SY_E_OK);
    }
    buf_reset(out);
    assert_int_equal(events_preview(out, buf_view(&text), text.len), SY_E_OK);
}

static bool
has_notice(const struct buf *b)
{
    return strstr(buf_view(b), EVENTS_PREVIEW_NOTICE) != NULL;
}

static void
a_short_text_is_its_own_preview(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};

    (void)state;
    preview(&out, "", 1);
    assert_string_equal(buf_view(&out), "");
    preview(&out, "hello\n", 1);
    assert_string_equal(buf_view(&out), "hello\n");
}

static void
exactly_at_a_limit_there_is_no_notice(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};

    (void)state;
    preview(&out, "x", LIMIT_PREVIEW_BYTES);
    assert_int_equal(out.len, LIMIT_PREVIEW_BYTES);
    assert_false(has_notice(&out));
    preview(&out, "x\n", LIMIT_PREVIEW_LINES);
    assert_int_equal(out.len, 2 * LIMIT_PREVIEW_LINES);
    assert_false(has_notice(&out));
}

static void
too_many_bytes_are_cut_and_the_notice_has_its_own_line(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};

    (void)state;
    preview(&out, "x", LIMIT_PREVIEW_BYTES + 1);
    assert_int_equal(out.len, LIMIT_PREVIEW_BYTES + 1 + strlen(EVENTS_PREVIEW_NOTICE));
    assert_string_equal(out.data + LIMIT_PREVIEW_BYTES, "\n" EVENTS_PREVIEW_NOTICE);
}

static void
too_many_lines_are_cut_after_the_last_that_fits(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};

    (void)state;
    preview(&out, "x\n", LIMIT_PREVIEW_LINES + 1);
    assert_int_equal(out.len, (size_t)2 * LIMIT_PREVIEW_LINES + strlen(EVENTS_PREVIEW_NOTICE));
    assert_string_equal(out.data + (size_t)2 * LIMIT_PREVIEW_LINES - 2,
                        "x\n" EVENTS_PREVIEW_NOTICE);
}

static void
a_character_is_never_cut(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 10000};

    (void)state;
    preview(&out, "\xE2\x82\xAC", 1000); /* 2048 is no multiple of 3 */
    assert_true(utf8_is_valid(out.data, out.len));
    assert_string_equal(out.data + 2046, "\n" EVENTS_PREVIEW_NOTICE);
}

static enum sy_code
preview_of_long_text(void *arg)
{
    struct buf out = {.max = 10000};
    enum sy_code rc = events_preview(&out, arg, strlen(arg));

    buf_fini(&out);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    static char text[5000];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    fault_run(preview_of_long_text, text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_text_is_its_own_preview),
        cmocka_unit_test(exactly_at_a_limit_there_is_no_notice),
        cmocka_unit_test(too_many_bytes_are_cut_and_the_notice_has_its_own_line),
        cmocka_unit_test(too_many_lines_are_cut_after_the_last_that_fits),
        cmocka_unit_test(a_character_is_never_cut),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("events_preview", tests, NULL, NULL);
}
