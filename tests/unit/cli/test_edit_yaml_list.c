#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/edit.h"
#include "fault.h"

static enum sy_code
append(const char *before, struct buf *out, struct sy_error *err)
{
    struct buf text = {.max = 4096};
    enum sy_code rc = buf_add_str(&text, before);

    if (rc == SY_E_OK) {
        rc = edit_yaml_append(out, &text, "rules", "  - a: 1\n    b: 2\n", err);
    }
    buf_fini(&text);
    return rc;
}

static void
becomes(const char *before, const char *after)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    struct sy_error err = {0};

    if (append(before, &out, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(buf_view(&out), after);
}

static void
entries_come_behind_those_that_are_there(void **state)
{
    (void)state;
    becomes("rules:\n  - x: 1\n", "rules:\n  - x: 1\n  - a: 1\n    b: 2\n");
    becomes("rules:\n- x: 1\nnext: []\n", "rules:\n- x: 1\n- a: 1\n  b: 2\nnext: []\n");
    becomes(
        "# top\nrules:\n    - {x: 1,\n       y: [2]} # why\n\n# about the next\nnext:\n  - z\n",
        "# top\nrules:\n    - {x: 1,\n       y: [2]} # why\n    - a: 1\n      b: 2\n\n# about the "
        "next\nnext:\n  - z\n");
    becomes("rules:\n  - x: \"two\n      lines\"\nnext:\n", "rules:\n  - x: \"two\n      lines\"\n"
                                                            "  - a: 1\n    b: 2\nnext:\n");
    becomes("next:\n  - rules:\n    - deep\nrules:\n  - x\n",
            "next:\n  - rules:\n    - deep\nrules:\n  - x\n  - a: 1\n    b: 2\n");
    becomes("rules:\n  - x", "rules:\n  - x\n  - a: 1\n    b: 2\n");
}

static void
a_list_that_is_not_there_is_made_at_the_end(void **state)
{
    (void)state;
    becomes("", "rules:\n  - a: 1\n    b: 2\n");
    becomes("# nothing\n", "# nothing\nrules:\n  - a: 1\n    b: 2\n");
    becomes("next: [x]", "next: [x]\nrules:\n  - a: 1\n    b: 2\n");
    becomes("rules:\nnext: [x]\n", "rules:\n  - a: 1\n    b: 2\nnext: [x]\n");
}

static void
a_list_in_brackets_is_left_alone(void **state)
{
    static const char *const refused[] = {"rules: []\n", "rules: [{x: 1}]\n", "rules: ~\n",
                                          "rules: text\n", "{rules: [x]}\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        SY_AUTO(buf_fini) struct buf out = {.max = 4096};
        struct sy_error err = {0};

        assert_int_equal(append(refused[i], &out, &err), SY_E_PARSE);
        assert_non_null(strstr(err.msg, "the list 'rules' is not written with one entry a line"));
    }
}

static void
what_is_no_yaml_is_refused(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};
    SY_AUTO(buf_fini) struct buf small = {.max = 8};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(append("rules: [\n", &out, &err), SY_E_PARSE);
    assert_non_null(strstr(err.msg, "bad YAML at line 2"));
    assert_int_equal(append("rules:\n- x\n", &small, &err), SY_E_LIMIT);
}

static enum sy_code
append_and_free(void *arg)
{
    struct buf out = {.max = 4096};
    struct sy_error err = {0};
    enum sy_code rc = append(arg, &out, &err);

    buf_fini(&out);
    return rc;
}

static void
memory_that_is_out_is_told(void **state)
{
    (void)state;
    fault_run(append_and_free, mem_unconst("rules:\n  - x: 1\n"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_behind_those_that_are_there),
        cmocka_unit_test(a_list_that_is_not_there_is_made_at_the_end),
        cmocka_unit_test(a_list_in_brackets_is_left_alone),
        cmocka_unit_test(what_is_no_yaml_is_refused),
        cmocka_unit_test(memory_that_is_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
