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
    if (edit_json(&out, &text, &entry, &outcome, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(buf_view(&out), after);
    assert_int_equal(outcome, expected);

    /* A second edit finds nothing to do. */
    assert_int_equal(edit_json(&again, &out, &entry, &outcome, &err), SY_E_OK);
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
    assert_int_equal(edit_json(&out, &text, &entry, &outcome, &err), SY_E_PARSE);
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
an_empty_file_becomes_one_with_the_entry(void **state)
{
    static const char whole[] = "{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n";

    (void)state;
    assert_edit("", whole, EDIT_ADDED);
    assert_edit(" \n", whole, EDIT_ADDED);
    assert_edit("{}\n", whole, EDIT_ADDED);
}

static void
the_rest_stays_byte_for_byte(void **state)
{
    (void)state;
    assert_edit("{\n  \"x\" :1.0,\n  \"servers\": {\n    \"a\": {\"k\":[1,\t2]}\n  },\n"
                "  \"u\": \"\\u00e9 } ] \\\" {\"\n}",
                "{\n  \"x\" :1.0,\n  \"servers\": {\n    \"a\": {\"k\":[1,\t2]},\n    " ENTRY
                "\n  },\n  \"u\": \"\\u00e9 } ] \\\" {\"\n}",
                EDIT_ADDED);
}

static void
a_file_without_the_section_gets_one_at_its_end(void **state)
{
    (void)state;
    assert_edit("{\n  \"theme\": \"dark\"\n}\n",
                "{\n  \"theme\": \"dark\",\n  \"servers\": {\n    " ENTRY "\n  }\n}\n", EDIT_ADDED);
}

static void
an_empty_section_is_filled(void **state)
{
    (void)state;
    assert_edit("{\n  \"servers\": {},\n  \"b\": 2\n}\n",
                "{\n  \"servers\": {\n    " ENTRY "\n  },\n  \"b\": 2\n}\n", EDIT_ADDED);
    assert_edit("{\n  \"servers\": {\n  }\n}\n", "{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n",
                EDIT_ADDED);
}

static void
members_keep_their_indentation(void **state)
{
    (void)state;
    assert_edit("{\n\t\"servers\": {\n\t\t\"a\": {}\n\t}\n}\n",
                "{\n\t\"servers\": {\n\t\t\"a\": {},\n\t\t\"shellyard\": {\n"
                "\t\t\t\"command\": \"/opt/shellyard\",\n\t\t\t\"args\": [\"mcp\"],\n"
                "\t\t\t\"timeout\": 120\n\t\t}\n\t}\n}\n",
                EDIT_ADDED);
}

static void
an_old_entry_is_replaced_but_keeps_what_the_person_set(void **state)
{
    (void)state;
    assert_edit("{\"servers\":{\"shellyard\":{\"command\":\"/old\",\"args\":[],\"timeout\":7,"
                "\"env\":{\"A\":\"b\"}},\"z\":{}}}",
                "{\"servers\":{\"shellyard\":{\n      \"command\": \"/opt/shellyard\",\n"
                "      \"args\": [\"mcp\"],\n      \"timeout\": 7,\n      \"env\": {\n"
                "        \"A\": \"b\"\n      }\n    },\"z\":{}}}",
                EDIT_CHANGED);
}

static void
an_entry_that_says_all_is_left_alone(void **state)
{
    static const char text[] = "{\"servers\": {\"shellyard\": {\"args\":[\"mcp\"],\"timeout\":1,"
                               "\"command\":\"/opt/shellyard\",\"disabled\":true}}}";

    (void)state;
    assert_edit(text, text, EDIT_UNCHANGED);
}

static void
what_stands_behind_our_arguments_stays(void **state)
{
    static const char kept[] = "{\"servers\":{\"shellyard\":{\"command\":\"/opt/shellyard\","
                               "\"args\":[\"mcp\",\"-s\",\"read-only\"],\"timeout\":7}}}";

    (void)state;
    assert_edit(kept, kept, EDIT_UNCHANGED);
    assert_edit("{\"servers\":{\"shellyard\":{\"command\":\"/old\",\"timeout\":7,"
                "\"args\":[\"mcp\",\"-s\",\"read-only\"]}}}",
                "{\"servers\":{\"shellyard\":{\n      \"command\": \"/opt/shellyard\",\n"
                "      \"args\": [\"mcp\", \"-s\", \"read-only\"],\n      \"timeout\": 7\n    }}}",
                EDIT_CHANGED);
    assert_edit("{\"servers\":{\"shellyard\":{\"command\":\"npx\",\"timeout\":7,"
                "\"args\":[\"-y\",\"mcp\"]}}}",
                "{\"servers\":{\"shellyard\":{\n      \"command\": \"/opt/shellyard\",\n"
                "      \"args\": [\"mcp\"],\n      \"timeout\": 7\n    }}}",
                EDIT_CHANGED);
}

static void
what_is_not_strict_json_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused("{\n  // comment\n  \"servers\": {}\n}\n", "line 2: a comment");
    assert_refused("{\"servers\": {},}", "line 1: a comment or a trailing comma");
    assert_refused("{\"servers\": {,}}", "line 1");
    assert_refused("{\"servers\": {}", "line 1");
    assert_refused("[]", "not an object");
    assert_refused("{\"servers\": []}", "'servers' is not an object");
    assert_refused("{\"servers\": {\"shellyard\": 1}}", "not an object");
}

static void
a_byte_order_mark_stays(void **state)
{
    (void)state;
    assert_edit("\xEF\xBB\xBF{\n  \"servers\": {}\n}\n",
                "\xEF\xBB\xBF{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n", EDIT_ADDED);
    assert_edit("\xEF\xBB\xBF", "{\n  \"servers\": {\n    " ENTRY "\n  }\n}\n", EDIT_ADDED);
}

/* "serv\u0065rs" is the same key; the text search does not see it. */
static void
a_key_in_escaped_form_is_not_edited(void **state)
{
    (void)state;
    assert_refused("{\"serv\\u0065rs\": {}}", "");
}

static void
pretty_printing_breaks_objects_and_not_arrays(void **state)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 4096};

    (void)state;
    assert_int_equal(edit_pretty(&out, "{\"a\":[1,{\"b\":{}},[]],\"c\":\",:{\"}", ">", "."),
                     SY_E_OK);
    assert_string_equal(buf_view(&out), "{\n>.\"a\": [1, {\n>...\"b\": {}\n>..}, []],\n"
                                        ">.\"c\": \",:{\"\n>}");
}

static enum sy_code
edit_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_UNCHANGED;
    struct sy_error err = {0};
    enum sy_code rc = buf_add_str(&text, arg);

    return rc == SY_E_OK ? edit_json(&out, &text, &entry, &outcome, &err) : rc;
}

static void
edits_survive_the_lack_of_memory(void **state)
{
    static char text[] = "{\"servers\": {\"shellyard\": {\"command\": 1, \"k\": [2]}}, \"x\": 1}";

    (void)state;
    fault_run(edit_once, text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_becomes_one_with_the_entry),
        cmocka_unit_test(the_rest_stays_byte_for_byte),
        cmocka_unit_test(a_file_without_the_section_gets_one_at_its_end),
        cmocka_unit_test(an_empty_section_is_filled),
        cmocka_unit_test(members_keep_their_indentation),
        cmocka_unit_test(an_old_entry_is_replaced_but_keeps_what_the_person_set),
        cmocka_unit_test(an_entry_that_says_all_is_left_alone),
        cmocka_unit_test(what_stands_behind_our_arguments_stays),
        cmocka_unit_test(what_is_not_strict_json_is_refused_with_its_place),
        cmocka_unit_test(a_byte_order_mark_stays),
        cmocka_unit_test(a_key_in_escaped_form_is_not_edited),
        cmocka_unit_test(pretty_printing_breaks_objects_and_not_arrays),
        cmocka_unit_test(edits_survive_the_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
