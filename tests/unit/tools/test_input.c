#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/live_call.h"

static void
finds_control_characters_behind_a_line(void **state)
{
    static const struct {
        const char *in;
        char behind_editor;
        char behind_lines; /* that one program alone reads */
    } rows[] = {
        {"",                               '\0',   '\0'  },
        {"text\n",                         '\0',   '\0'  },
        {"\003text\n",                     '\0',   '\0'  },
        {"text\004",                       '\0',   '\0'  },
        {"cat\n\004",                      '\004', '\0'  },
        {"cat\r\004",                      '\004', '\0'  },
        {"cat\none\004\003",               '\004', '\003'},
        {"sleep 5\n\032",                  '\032', '\032'},
        {"sleep 5\n\034",                  '\034', '\034'},
        {"\033[200~one\ntwo\033[201~\003", '\0',   '\0'  }, /* no line of a paste is read yet, */
        {"\033[200~one\033[201~\r\003",    '\003', '\003'}, /* before one is ended behind it */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SY_AUTO(buf_fini) struct buf in = {.max = 64};

        assert_int_equal(buf_add_str(&in, rows[i].in), SY_E_OK);
        assert_int_equal(live_input_control(&in, false), rows[i].behind_editor);
        assert_int_equal(live_input_control(&in, true), rows[i].behind_lines);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_control_characters_behind_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
