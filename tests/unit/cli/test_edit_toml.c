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
    if (edit_toml(&out, &text, &entry, &outcome, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(buf_view(&out), after);
    assert_int_equal(outcome, expected);

    /* A second edit finds nothing to do. */
    assert_int_equal(edit_toml(&again, &out, &entry, &outcome, &err), SY_E_OK);
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
    assert_int_equal(edit_toml(&out, &text, &entry, &outcome, &err), SY_E_PARSE);
    if (strstr(err.msg, sentence) == NULL) {
        fail_msg("'%s' is not in '%s'", sentence, err.msg);
    }
}

#define TABLE "[servers.shellyard]\n"
#define OURS                                                                                       \
    "command = \"/opt/shellyard\"\n"                                                               \
    "args = [\"mcp\"]\n"                                                                           \
    "timeout = 120\n"

static void
the_table_is_appended(void **state)
{
    (void)state;
    assert_edit("", TABLE OURS, EDIT_ADDED);
    assert_edit("model = \"x\"", "model = \"x\"\n\n" TABLE OURS, EDIT_ADDED);
    assert_edit("# top\n[servers.other]\ncommand = \"a\"\n",
                "# top\n[servers.other]\ncommand = \"a\"\n\n" TABLE OURS, EDIT_ADDED);
}

static void
a_comment_behind_a_value_stays(void **state)
{
    (void)state;
    assert_edit(TABLE "command = \"y\"  # mine\r\nargs = [\"x\"] # \"y\"\ntimeout = 1 # short\n",
                TABLE "command = \"/opt/shellyard\"  # mine\nargs = [\"mcp\"] # \"y\"\n"
                      "timeout = 1 # short\n",
                EDIT_CHANGED);
}

static void
only_our_table_is_changed(void **state)
{
    (void)state;
    assert_edit("a = 1\n\n" TABLE "command = \"/old\" # mine\nargs = [\n  \"x\", # [y\n]\n"
                "enabled = false\n\n# next\n[b]\ncommand = 2\n",
                "a = 1\n\n" TABLE
                "command = \"/opt/shellyard\" # mine\nargs = [\"mcp\"]\ntimeout = 120\n"
                "enabled = false\n\n# next\n[b]\ncommand = 2\n",
                EDIT_CHANGED);
}

static void
a_value_that_the_person_set_is_kept(void **state)
{
    (void)state;
    assert_edit(TABLE "timeout = 7\ncommand = \"/opt/shellyard\"\nargs = [\"mcp\"]\n",
                TABLE "timeout = 7\ncommand = \"/opt/shellyard\"\nargs = [\"mcp\"]\n",
                EDIT_UNCHANGED);
    assert_edit(TABLE "timeout = 7\n",
                TABLE "command = \"/opt/shellyard\"\nargs = [\"mcp\"]\ntimeout = 7\n",
                EDIT_CHANGED);
}

static void
what_stands_behind_our_arguments_stays(void **state)
{
    static const char *const kept[] = {
        "[\"mcp\", \"-s\", \"read-only\"]",
        "['mcp', '-C', '/a]\"']",
        "[ # why\n  \"mcp\", # mcp]\n  \"-s\", 'read-only', # pinned\n]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};

        assert_int_equal(buf_addf(&text,
                                  TABLE "command = \"/opt/shellyard\"\nargs = %s\n"
                                        "timeout = 1\n",
                                  kept[i]),
                         SY_E_OK);
        assert_edit(text.data, text.data, EDIT_UNCHANGED);
    }
    assert_edit(TABLE "command = \"/old\"\nargs = [\"mcp\", \"-s\", 'read-only']\ntimeout = 1\n",
                TABLE "command = \"/opt/shellyard\"\nargs = [\"mcp\", \"-s\", 'read-only']\n"
                      "timeout = 1\n",
                EDIT_CHANGED);
    assert_edit(TABLE "command = \"npx\"\nargs = [\"-y\", \"mcp\"]\ntimeout = 1\n",
                TABLE "command = \"/opt/shellyard\"\nargs = [\"mcp\"]\ntimeout = 1\n",
                EDIT_CHANGED);
}

static void
headers_are_read_in_every_form(void **state)
{
    (void)state;
    assert_edit("[ servers . \"shellyard\" ] # ours\n" OURS,
                "[ servers . \"shellyard\" ] # ours\n" OURS, EDIT_UNCHANGED);
    assert_edit("[[servers.list]]\nx = 1\n", "[[servers.list]]\nx = 1\n\n" TABLE OURS, EDIT_ADDED);
    assert_edit(TABLE OURS "\n[servers.shellyard.env]\ncommand = \"no\"\n",
                TABLE OURS "\n[servers.shellyard.env]\ncommand = \"no\"\n", EDIT_UNCHANGED);
}

static void
what_stands_in_strings_is_no_structure(void **state)
{
    (void)state;
    assert_edit(
        "t = \"\"\"\n[servers.shellyard]\n\"\"\"\nu = '''\n[x\n'''\nv = \"]\\\"\"\n",
        "t = \"\"\"\n[servers.shellyard]\n\"\"\"\nu = '''\n[x\n'''\nv = \"]\\\"\"\n\n" TABLE OURS,
        EDIT_ADDED);
}

static void
other_forms_of_the_table_are_refused(void **state)
{
    (void)state;
    assert_refused("servers = {}\n", "inline table or dotted key");
    assert_refused("servers.shellyard.command = 1\n", "inline table or dotted key");
    assert_refused("[servers]\nshellyard = { command = 1 }\n", "inline table or dotted key");
}

static void
arrays_of_tables_are_refused(void **state)
{
    (void)state;
    assert_refused("[[servers.shellyard]]\ncommand = 1\n",
                   "[[servers.shellyard]] stands there as an array of tables");
    assert_refused("[[ servers . 'shellyard' ]]\n", "array of tables");
    assert_refused("[[servers]]\nx = 1\n", "[[servers]] stands there as an array of tables");
}

static void
a_byte_order_mark_stays(void **state)
{
    (void)state;
    assert_edit("\xEF\xBB\xBF" TABLE "timeout = 7\n",
                "\xEF\xBB\xBF" TABLE
                "command = \"/opt/shellyard\"\nargs = [\"mcp\"]\ntimeout = 7\n",
                EDIT_CHANGED);
}

static void
broken_files_are_refused_with_the_line(void **state)
{
    (void)state;
    assert_edit(
        "a = 1979-05-27 07:32:00Z # when\nb = {c = [1, 2], d = 'x'}\ne = +1_0.5e-3\nf = [\n]\n",
        "a = 1979-05-27 07:32:00Z # when\nb = {c = [1, 2], d = 'x'}\ne = +1_0.5e-3\nf = [\n]\n"
        "\n[servers.shellyard]\n"
        "command = \"/opt/shellyard\"\nargs = [\"mcp\"]\ntimeout = 120\n",
        EDIT_ADDED);
    assert_refused("a = 1\nb = \"open\nc = 2\n", "line 2");
    assert_refused("a = [1,\n2\n", "line 1");
    assert_refused("a = 1\n\n[open\n", "line 3");
    assert_refused("word\n", "line 1");
    assert_refused("a = 1 b = 2\n", "line 1");
    assert_refused("a = 1\nb = \"x\" y\n", "line 2");
    assert_refused("a =\n", "line 1");
    assert_refused("a = [1] 2\n", "line 1");
    assert_refused("[a] b\n", "line 1");
    assert_refused("[[a]\n", "line 1");
    /* What stands twice is an error for who reads it. */
    assert_refused("[servers.shellyard]\ncommand = 1\n[servers.shellyard]\n", "line 3");
    assert_refused("[servers.shellyard]\ncommand = 1\n[servers.\"shellyard\"]\n", "twice");
    assert_refused("[servers.shellyard]\ncommand = 1\n'command' = 2\n", "twice");
}

static enum sy_code
edit_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    enum edit_outcome outcome = EDIT_UNCHANGED;
    struct sy_error err = {0};
    enum sy_code rc = buf_add_str(&text, arg);

    return rc == SY_E_OK ? edit_toml(&out, &text, &entry, &outcome, &err) : rc;
}

static void
edits_survive_the_lack_of_memory(void **state)
{
    static char text[] = TABLE "command = 1\nx = 2\n";

    (void)state;
    fault_run(edit_once, text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_appended),
        cmocka_unit_test(a_comment_behind_a_value_stays),
        cmocka_unit_test(only_our_table_is_changed),
        cmocka_unit_test(a_value_that_the_person_set_is_kept),
        cmocka_unit_test(what_stands_behind_our_arguments_stays),
        cmocka_unit_test(headers_are_read_in_every_form),
        cmocka_unit_test(what_stands_in_strings_is_no_structure),
        cmocka_unit_test(other_forms_of_the_table_are_refused),
        cmocka_unit_test(arrays_of_tables_are_refused),
        cmocka_unit_test(a_byte_order_mark_stays),
        cmocka_unit_test(broken_files_are_refused_with_the_line),
        cmocka_unit_test(edits_survive_the_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
