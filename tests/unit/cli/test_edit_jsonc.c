#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "cli/edit.h"
#include "fault.h"

static const struct edit_field fields[] = {
    {"command", "\"/opt/shellyard\"", EDIT_OURS    },
    {"args",    "[\"mcp\"]",          EDIT_OUR_HEAD},
    {"timeout", "120",                EDIT_THEIRS  },
    {NULL,      NULL,                 EDIT_THEIRS  },
};

static const struct edit_entry entry = {"servers", "shellyard", fields};

/* Edits `before`; checks the outcome and that it became `after`. */
static void
assert_edit(const char *before, const char *after, enum edit_outcome expected)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf again = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_UNCHANGED;
    struct sy_error err = {0};

    assert_int_equal(buf_add_str(&text, before), SY_E_OK);
    if (edit_jsonc(&out, &text, &entry, &outcome, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(buf_view(&out), after);
    assert_int_equal(outcome, expected);

    /* A second edit finds nothing to do. */
    assert_int_equal(edit_jsonc(&again, &out, &entry, &outcome, &err), SY_E_OK);
    assert_int_equal(outcome, EDIT_UNCHANGED);
    assert_string_equal(buf_view(&again), after);
}

static void
assert_refused(const char *before, const char *sentence)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_UNCHANGED;
    struct sy_error err = {0};

    assert_int_equal(buf_add_str(&text, before), SY_E_OK);
    assert_int_equal(edit_jsonc(&out, &text, &entry, &outcome, &err), SY_E_PARSE);
    if (strstr(err.msg, sentence) == NULL) {
        fail_msg("'%s' is not in '%s'", sentence, err.msg);
    }
}

#define ENTRY                                                                                      \
    "\"shellyard\": {\n"                                                                           \
    "      \"command\": \"/opt/shellyard\",\n"                                                     \
    "      \"args\": [\"mcp\"],\n"                                                                 \
    "      \"timeout\": 120\n"                                                                     \
    "    }"

static void
comments_and_trailing_commas_stay(void **state)
{
    (void)state;
    assert_edit("// top, \"x\": {\n{\n  /* a\n     b */ \"x\": [1, 2,], // x\n"
                "  \"servers\": {\n    \"a\": {\"u\": \"http://h/*\"}, // last\n    // end }\n"
                "  },\n}\n// bye",
                "// top, \"x\": {\n{\n  /* a\n     b */ \"x\": [1, 2,], // x\n"
                "  \"servers\": {\n    \"a\": {\"u\": \"http://h/*\"}, // last\n    " ENTRY
                "\n    // end }\n  },\n}\n// bye",
                EDIT_ADDED);
}

static void
a_comma_goes_before_the_comment_of_the_last_member(void **state)
{
    (void)state;
    assert_edit("{\n  \"servers\": {\n    \"a\": {} // mine, too\n  }\n}\n",
                "{\n  \"servers\": {\n    \"a\": {}, // mine, too\n    " ENTRY "\n  }\n}\n",
                EDIT_ADDED);
    assert_edit("{\n  \"servers\": {\n    \"a\": {} /* x */ , /* y\n z */\n  }\n}\n",
                "{\n  \"servers\": {\n    \"a\": {} /* x */ , /* y\n z */\n    " ENTRY "\n  }\n}\n",
                EDIT_ADDED);
}

static void
an_empty_object_keeps_its_comments(void **state)
{
    (void)state;
    assert_edit("{\n  \"servers\": { // none { yet\n    // \"a\": {},\n  }\n}\n",
                "{\n  \"servers\": { // none { yet\n    // \"a\": {},\n    " ENTRY "\n  }\n}\n",
                EDIT_ADDED);
    assert_edit("{/* all */}", "{/* all */\n  \"servers\": {\n    " ENTRY "\n  }\n}", EDIT_ADDED);
}

static void
a_file_of_comments_alone_gets_an_object(void **state)
{
    (void)state;
    assert_edit("// mine", "// mine\n{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n", EDIT_ADDED);
    assert_edit("", "{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n", EDIT_ADDED);
}

static void
comments_inside_our_entry_stay_when_it_changes(void **state)
{
    (void)state;
    assert_edit("{\n  \"servers\": {\n    \"shellyard\": {\n      // where, what\n"
                "      \"command\": \"/old\", // old\n      \"args\": [\"mcp\",],\n"
                "      \"x\": 1, // one\n    },\n  },\n}\n",
                "{\n  \"servers\": {\n    \"shellyard\": {\n      // where, what\n"
                "      \"command\": \"/opt/shellyard\", // old\n      \"args\": [\"mcp\",],\n"
                "      \"x\": 1, // one\n      \"timeout\": 120\n    },\n  },\n}\n",
                EDIT_CHANGED);
}

static void
an_entry_that_says_all_is_left_alone(void **state)
{
    static const char text[] = "{\"servers\": {\"shellyard\": {\"args\":[\"mcp\"],\"timeout\":1,"
                               "/* here */\"command\":\"/opt/shellyard\",},}}";

    (void)state;
    assert_edit(text, text, EDIT_UNCHANGED);
}

static void
what_stands_behind_our_arguments_stays(void **state)
{
    (void)state;
    assert_edit("{\n  \"servers\": {\n    \"shellyard\": {\n"
                "      \"command\": \"/old\",\n"
                "      \"args\": [\"mcp\", \"-s\", /* pinned */ \"read-only\",],\n"
                "      \"timeout\": 1\n    }\n  }\n}\n",
                "{\n  \"servers\": {\n    \"shellyard\": {\n"
                "      \"command\": \"/opt/shellyard\",\n"
                "      \"args\": [\"mcp\", \"-s\", /* pinned */ \"read-only\",],\n"
                "      \"timeout\": 1\n    }\n  }\n}\n",
                EDIT_CHANGED);
}

static void
a_byte_order_mark_stays(void **state)
{
    (void)state;
    assert_edit("\xEF\xBB\xBF// c\n{\"servers\": {},}",
                "\xEF\xBB\xBF// c\n{\"servers\": {\n    " ENTRY "\n  },}", EDIT_ADDED);
}

static void
what_is_wrong_with_comments_too_is_refused(void **state)
{
    (void)state;
    assert_refused("{\n  // c\n  \"servers\": {}\n", "line");
    assert_refused("{\"servers\": {,}}", "line 1");
    assert_refused("{\"servers\": {},,}", "line 1");
    assert_refused(",{}", "line 1");
    assert_refused("{\"a\": 1 / 2}", "line 1");
    assert_refused("{\"servers\": {}} /* open", "line 1");
    assert_refused("{\"servers\": {\"a\": \"open // }}", "line 1");
    assert_refused("/* c */ []", "not an object");
}

static enum sy_code
edit_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_UNCHANGED;
    struct sy_error err = {0};
    enum sy_code rc = buf_add_str(&text, arg);

    return rc == SY_E_OK ? edit_jsonc(&out, &text, &entry, &outcome, &err) : rc;
}

static void
edits_survive_the_lack_of_memory(void **state)
{
    static char changed[] = "{\"servers\": {\"shellyard\": {/* c */ \"command\": 1, \"k\": [2,]}}}";
    static char added[] = "{\"servers\": {\"a\": {}, /* c */ }, \"x\": 1}";

    (void)state;
    fault_run(edit_once, changed);
    fault_run(edit_once, added);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_and_trailing_commas_stay),
        cmocka_unit_test(a_comma_goes_before_the_comment_of_the_last_member),
        cmocka_unit_test(an_empty_object_keeps_its_comments),
        cmocka_unit_test(a_file_of_comments_alone_gets_an_object),
        cmocka_unit_test(comments_inside_our_entry_stay_when_it_changes),
        cmocka_unit_test(an_entry_that_says_all_is_left_alone),
        cmocka_unit_test(what_stands_behind_our_arguments_stays),
        cmocka_unit_test(a_byte_order_mark_stays),
        cmocka_unit_test(what_is_wrong_with_comments_too_is_refused),
        cmocka_unit_test(edits_survive_the_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
