#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "tools/live_show.h"

static const char *
last(struct buf *out, const char *text)
{
    assert_int_equal(live_show_last_line_of(out, text, strlen(text)), SY_E_OK);
    return buf_view(out);
}

static void
the_last_line_is_the_last_that_says_something(void **state)
{
    static const char *const rows[][2] = {
        {"",                               ""             },
        {"\n \r\n",                        ""             },
        {"one\ntwo\n",                     "two"          },
        {"one\r\ntwo\r\n\r\n",             "two"          },
        {"10%\r20%\r30%\r",                "30%"          },
        {"one\n\033[1mtwo\033[0m\n\033[K", "two"          },
        {"\033]0;title\007name\n",         "name"         },
        {"  kept blanks \n",               "  kept blanks"},
    };
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(last(&out, rows[i][0]), rows[i][1]);
    }
}

static void
a_long_text_costs_no_more_than_its_end(void **state)
{
    static char text[100000];
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_in_range(strlen(last(&out, text)), 1, 8191);
    text[sizeof(text) - 10] = '\n';
    assert_string_equal(last(&out, text), "xxxxxxxx");
}

static enum sy_code
find_line(void *arg)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 8192};

    (void)arg;
    return live_show_last_line_of(&out, "\033[1mone\n", 8);
}

static void
a_last_line_survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(find_line, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_is_the_last_that_says_something),
        cmocka_unit_test(a_long_text_costs_no_more_than_its_end),
        cmocka_unit_test(a_last_line_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
