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
    if (edit_yaml(&out, &text, &entry, &outcome, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(buf_view(&out), after);
    assert_int_equal(outcome, expected);

    /* A second edit finds nothing to do. */
    assert_int_equal(edit_yaml(&again, &out, &entry, &outcome, &err), SY_E_OK);
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
    assert_int_equal(edit_yaml(&out, &text, &entry, &outcome, &err), SY_E_PARSE);
    if (strstr(err.msg, sentence) == NULL) {
        fail_msg("'%s' is not in '%s'", sentence, err.msg);
    }
}

#define ENTRY                                                                                      \
    "  shellyard:\n"                                                                               \
    "    command: \"/opt/shellyard\"\n"                                                            \
    "    args: [\"mcp\"]\n"                                                                        \
    "    timeout: 120\n"

static void
a_file_without_the_section_gets_one(void **state)
{
    (void)state;
    assert_edit("", "servers:\n" ENTRY, EDIT_ADDED);
    assert_edit("# only a comment\n", "# only a comment\nservers:\n" ENTRY, EDIT_ADDED);
    assert_edit("a: 1", "a: 1\nservers:\n" ENTRY, EDIT_ADDED);
}

static void
an_empty_section_is_filled(void **state)
{
    (void)state;
    assert_edit("servers:\nb: 1\n", "servers:\n" ENTRY "b: 1\n", EDIT_ADDED);
    assert_edit("servers: {} # mine\nb: 1\n", "servers: # mine\n" ENTRY "b: 1\n", EDIT_ADDED);
    assert_edit("'servers':   # mine\n", "'servers': # mine\n" ENTRY, EDIT_ADDED);
    assert_edit("a: 0\nservers: {}\nb: 1\n", "a: 0\nservers:\n" ENTRY "b: 1\n", EDIT_ADDED);
}

static void
the_entry_goes_before_the_others_at_their_column(void **state)
{
    (void)state;
    assert_edit("a: x\nservers:\n  # first\n  dev:\n    on: true # keep\nz: |\n  servers:\n",
                "a: x\nservers:\n  # first\n" ENTRY "  dev:\n    on: true # keep\nz: |\n"
                "  servers:\n",
                EDIT_ADDED);
    assert_edit("servers:\n    dev: {}\n",
                "servers:\n    shellyard:\n      command: \"/opt/shellyard\"\n"
                "      args: [\"mcp\"]\n      timeout: 120\n    dev: {}\n",
                EDIT_ADDED);
}

static void
an_entry_that_says_all_is_left_alone(void **state)
{
    static const char text[] = "servers:\n  shellyard:\n    timeout: 3\n    enabled: no\n"
                               "    command: /opt/shellyard\n    args:\n    - mcp\n";

    (void)state;
    assert_edit(text, text, EDIT_UNCHANGED);
}

static void
what_stands_behind_our_arguments_stays(void **state)
{
    (void)state;
    assert_edit("servers:\n  shellyard:\n    command: /old\n    args:\n    - mcp\n    - -s\n"
                "    - read-only # pinned\n    timeout: 3\n",
                "servers:\n  shellyard:\n    command: \"/opt/shellyard\"\n    args:\n    - mcp\n"
                "    - -s\n    - read-only # pinned\n    timeout: 3\n",
                EDIT_CHANGED);
    assert_edit("servers: {shellyard: {command: /opt/shellyard, args: [mcp, -s, x], timeout: 3}}\n",
                "servers: {shellyard: {command: /opt/shellyard, args: [mcp, -s, x], timeout: 3}}\n",
                EDIT_UNCHANGED);
    assert_edit("servers: {shellyard: {command: /opt/shellyard, args: [x, mcp], timeout: 3}}\n",
                "servers: {shellyard: {command: /opt/shellyard, args: [\"mcp\"], timeout: 3}}\n",
                EDIT_CHANGED);
}

static void
an_old_entry_is_changed_where_it_differs(void **state)
{
    (void)state;
    assert_edit(
        "servers:\n  a: 1\n  shellyard:\n    # mine\n    command: /old # path\n"
        "    env: {A: b} # keep\n    args:\n      - x\n      - y\n    timeout: 3\n"
        "  # next\n  z: [\xC3\xA9]\n",
        "servers:\n  a: 1\n  shellyard:\n    # mine\n    command: \"/opt/shellyard\" # path\n"
        "    env: {A: b} # keep\n    args: [\"mcp\"]\n    timeout: 3\n"
        "  # next\n  z: [\xC3\xA9]\n",
        EDIT_CHANGED);
    assert_edit("servers:\n  shellyard:\n    env: {}\n",
                "servers:\n  shellyard:\n    command: \"/opt/shellyard\"\n"
                "    args: [\"mcp\"]\n    timeout: 120\n    env: {}\n",
                EDIT_CHANGED);
    assert_edit("servers:\n  \xC3\xA9: {}\n  shellyard: # note\n  b: 1\n",
                "servers:\n  \xC3\xA9: {}\n  shellyard: {command: \"/opt/shellyard\", "
                "args: [\"mcp\"], timeout: 120} # note\n  b: 1\n",
                EDIT_CHANGED);
}

static void
flow_mappings_are_edited_within_their_braces(void **state)
{
    (void)state;
    assert_edit("servers: {dev: {}} # c\n",
                "servers: {shellyard: {command: \"/opt/shellyard\", args: [\"mcp\"], "
                "timeout: 120}, dev: {}} # c\n",
                EDIT_ADDED);
    assert_edit("servers: {d\xC3\xA9v: {}, \"shellyard\": {command: '/old', env: {}}, z: 1}\n",
                "servers: {d\xC3\xA9v: {}, \"shellyard\": {args: [\"mcp\"], timeout: 120, "
                "command: \"/opt/shellyard\", env: {}}, z: 1}\n",
                EDIT_CHANGED);
}

static void
a_byte_order_mark_stays(void **state)
{
    (void)state;
    assert_edit("\xEF\xBB\xBFservers: {dev: {}}\n",
                "\xEF\xBB\xBFservers: {shellyard: {command: \"/opt/shellyard\", args: [\"mcp\"], "
                "timeout: 120}, dev: {}}\n",
                EDIT_ADDED);
}

static void
what_can_not_be_edited_safely_is_refused(void **state)
{
    (void)state;
    assert_refused("servers:\n  shellyard: on\n", "other values");
    assert_refused("servers:\n  shellyard: [1]\n", "change it by hand");
    assert_refused("servers:\n  shellyard:\n    command: |\n      /old\n", "change it by hand");
    assert_refused("servers:\n  shellyard:\n    command: # why\n      /old\n", "change it by hand");
    assert_refused("a: &x /old\nservers:\n  shellyard:\n    command: *x\n", "change it by hand");
    assert_refused("servers:\n  shellyard:\n    command: &x /old\nz: *x\n", "change it by hand");
    assert_refused("servers: &s {dev: {}}\n", "can't be edited safely");
    assert_refused("servers: [1]\n", "can't be edited safely");
    assert_refused("- a\n", "not a mapping");
    assert_refused("servers:\n  shellyard: {}\n  shellyard: {}\n",
                   "'shellyard' stands there twice");
    assert_refused("servers: {}\na: 1\nservers: {}\n", "'servers' stands there twice");
    assert_refused("servers:\n  shellyard:\n    command: a\n    command: b\n",
                   "'command' stands there twice");
    assert_refused("a: [1\n", "bad YAML at line");
    assert_refused("a: 1\n---\nb: 2\n", "more than one document");
    assert_refused("a: 1\n...\n", "can't be edited safely");
}

static enum sy_code
edit_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_UNCHANGED;
    struct sy_error err = {0};
    enum sy_code rc = buf_add_str(&text, arg);

    return rc == SY_E_OK ? edit_yaml(&out, &text, &entry, &outcome, &err) : rc;
}

static void
edits_survive_the_lack_of_memory(void **state)
{
    static char added[] = "servers:\n  dev: {}\n";
    static char changed[] = "servers: {dev: {}, shellyard: {command: x}}\n";

    (void)state;
    fault_run(edit_once, added);
    fault_run(edit_once, changed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_the_section_gets_one),
        cmocka_unit_test(an_empty_section_is_filled),
        cmocka_unit_test(the_entry_goes_before_the_others_at_their_column),
        cmocka_unit_test(an_entry_that_says_all_is_left_alone),
        cmocka_unit_test(what_stands_behind_our_arguments_stays),
        cmocka_unit_test(an_old_entry_is_changed_where_it_differs),
        cmocka_unit_test(flow_mappings_are_edited_within_their_braces),
        cmocka_unit_test(a_byte_order_mark_stays),
        cmocka_unit_test(what_can_not_be_edited_safely_is_refused),
        cmocka_unit_test(edits_survive_the_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
