#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "config/config_internal.h"

static void
every_key_has_a_section_a_type_and_help(void **state)
{
    static const char *const types[] = {
        [CONFIG_CHOICE] = "choice", [CONFIG_BOOLEAN] = "boolean", [CONFIG_INTEGER] = "integer",
        [CONFIG_STRING] = "string", [CONFIG_LIST] = "list",       [CONFIG_MAP] = "map",
    };

    (void)state;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const struct config_key_info *info = config_key(i);
        size_t len = strcspn(info->key, ".");

        assert_non_null(config_find_section(info->key, len));
        assert_string_equal(info->type, types[config_rows[i].type]);
        assert_true(strlen(info->help) > 0);
        assert_null(strchr(info->help, '\n'));
        assert_int_equal(config_find_key(info->key, strlen(info->key)), i);
        assert_string_equal(config_short_name(&config_rows[i]), info->key + len + 1);
    }
    assert_null(config_key(CONFIG_KEYS));
    assert_null(config_key(SIZE_MAX));
}

static void
the_choices_as_text_are_those_that_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const struct config_row *row = &config_rows[i];
        SY_AUTO(buf_fini) struct buf joined = {.max = 200};

        assert_true((row->type == CONFIG_CHOICE) == (row->words != NULL));
        for (size_t w = 0; row->words != NULL && row->words[w] != NULL; w++) {
            assert_int_equal(buf_addf(&joined, "%s%s", w > 0 ? "|" : "", row->words[w]), SY_E_OK);
        }
        assert_string_equal(row->info.choices, buf_view(&joined));
    }
}

static void
no_two_keys_share_a_variable_or_a_member(void **state)
{
    char a[CONFIG_VARIABLE_MAX];
    char b[CONFIG_VARIABLE_MAX];

    (void)state;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        config_variable_name(a, &config_rows[i]);
        assert_int_equal(strlen(a), strlen("SHELLYARD_") + strlen(config_rows[i].info.key));
        for (size_t j = 0; j < i; j++) {
            config_variable_name(b, &config_rows[j]);
            assert_string_not_equal(a, b);
            assert_true(config_rows[i].offset != config_rows[j].offset);
        }
    }
    config_variable_name(a, &config_rows[0]);
    assert_string_equal(a, "SHELLYARD_SANDBOX_MODE");
}

static void
bounds_enclose_the_default(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const struct config_row *row = &config_rows[i];
        int64_t v = 0;

        if (row->type == CONFIG_INTEGER) {
            assert_true(str_to_i64(&v, row->info.fallback, row->min, row->max));
            assert_true(row->min < row->max);
        }
        assert_true((row->type == CONFIG_LIST || row->type == CONFIG_MAP) == (row->items_max > 0));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_a_section_a_type_and_help),
        cmocka_unit_test(the_choices_as_text_are_those_that_are_taken),
        cmocka_unit_test(no_two_keys_share_a_variable_or_a_member),
        cmocka_unit_test(bounds_enclose_the_default),
    };

    return cmocka_run_group_tests_name("config keys", tests, NULL, NULL);
}
