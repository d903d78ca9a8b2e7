#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/utf8.h"

static void
every_code_has_its_row(void **state)
{
    (void)state;
#define CHECK_ROW(code, text, rpc, status)                                                         \
    assert_string_equal(sy_code_name(code), #code);                                                \
    assert_string_equal(sy_code_text(code), text);                                                 \
    assert_int_equal(sy_code_rpc(code), rpc);                                                      \
    assert_int_equal(sy_code_status(code), status);
    SY_CODES(CHECK_ROW)
#undef CHECK_ROW
    assert_string_equal(sy_code_name((enum sy_code)1000), "SY_E_INTERNAL");
}

static void
setting_fills_all_and_returns_the_code(void **state)
{
    struct sy_error err = {.sys = 5};

    (void)state;
    assert_int_equal(sy_err_set(&err, SY_E_ARG, "bad %s: %d", "size", 3), SY_E_ARG);
    assert_int_equal(err.code, SY_E_ARG);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.msg, "bad size: 3");
    sy_err_clear(&err);
    assert_int_equal(err.code, SY_E_OK);
    assert_string_equal(err.msg, "");
}

static void
no_error_wanted_is_fine(void **state)
{
    (void)state;
    assert_int_equal(sy_err_set(NULL, SY_E_ARG, "x"), SY_E_ARG);
    assert_int_equal(sy_err_sys(NULL, ENOENT, "x"), SY_E_SYS);
    assert_int_equal(sy_err_sys(NULL, ENOMEM, "x"), SY_E_NOMEM);
    sy_err_wrap(NULL, "x");
    assert_int_equal(sy_err_nomem(NULL), SY_E_NOMEM);
    sy_err_clear(NULL);
}

static void
a_failed_call_keeps_its_errno_and_says_it(void **state)
{
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(sy_err_sys(&err, ENOENT, "opening '%s'", "/x"), SY_E_SYS);
    assert_int_equal(err.sys, ENOENT);
    assert_string_equal(err.msg, "opening '/x': No such file or directory");
    assert_int_equal(sy_err_sys(&err, ENOMEM, "growing"), SY_E_NOMEM);
    assert_string_equal(err.msg, "growing: Cannot allocate memory");
    assert_string_equal(sy_errno_text(123456), "unknown error");
    assert_string_equal(sy_errno_name(EACCES), "EACCES");
    assert_string_equal(sy_errno_name(123456), "?");
}

static void
wrapping_puts_context_in_front(void **state)
{
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(sy_err_sys(&err, EACCES, "opening"), SY_E_SYS);
    sy_err_wrap(&err, "run %d", 7);
    assert_int_equal(err.code, SY_E_SYS);
    sy_err_wrap(&err, "starting");
    assert_int_equal(err.code, SY_E_SYS);
    assert_string_equal(err.msg, "starting: run 7: opening: Permission denied");
    assert_int_equal(err.sys, EACCES);
}

/* n bytes: '-' up to the last whole characters, so that each cut is met. */
static void
fill_text(char *text, size_t n, const char *character)
{
    size_t m = strlen(character);

    memset(text, '-', n);
    for (size_t i = n % m; i < n; i += m) {
        memcpy(text + i, character, m);
    }
    text[n] = '\0';
}

static void
a_long_sentence_is_cut_between_characters(void **state)
{
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    char text[SY_ERR_MSG_MAX * 2];

    (void)state;
    for (size_t c = 0; c < 4; c++) {
        for (size_t n = SY_ERR_MSG_MAX - 10; n < SY_ERR_MSG_MAX + 10; n++) {
            struct sy_error err = {0};

            fill_text(text, n, characters[c]);
            assert_int_equal(sy_err_set(&err, SY_E_ARG, "%s", text), SY_E_ARG);
            assert_true(utf8_is_valid(err.msg, strlen(err.msg)));
            assert_int_equal(strncmp(err.msg, text, strlen(err.msg)), 0);
            assert_true(strlen(err.msg) >= SY_ERR_MSG_MAX - 14);
            assert_int_equal(sy_err_sys(&err, ENOENT, "%s", text), SY_E_SYS);
            assert_true(utf8_is_valid(err.msg, strlen(err.msg)));
            sy_err_wrap(&err, "%s", text);
            assert_int_equal(err.code, SY_E_SYS);
            assert_true(utf8_is_valid(err.msg, strlen(err.msg)));
            assert_int_equal(sy_err_set(&err, SY_E_ARG, "%s", text), SY_E_ARG);
            sy_err_wrap(&err, "context");
            assert_int_equal(err.code, SY_E_ARG);
            assert_true(utf8_is_valid(err.msg, strlen(err.msg)));
            assert_int_equal(strncmp(err.msg, "context: ", 9), 0);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_row),
        cmocka_unit_test(setting_fills_all_and_returns_the_code),
        cmocka_unit_test(no_error_wanted_is_fine),
        cmocka_unit_test(a_failed_call_keeps_its_errno_and_says_it),
        cmocka_unit_test(wrapping_puts_context_in_front),
        cmocka_unit_test(a_long_sentence_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
