#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "approval/rules_import.h"
#include "approval/rules_read.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "rules_yard.h"

static enum sy_code
import_text(struct rules *r, const char *text, bool lifts_sandbox, struct sy_error *err)
{
    const struct place_text in = {.name = "a.rules", .text = text, .len = strlen(text)};
    const struct rules_import_options options = {.lifts_sandbox = lifts_sandbox};

    return rules_import(r, &in, &options, err);
}

static const char whole_file[] =
    "# what the team allows\n"
    "prefix_rule(\n"
    "    pattern = [\"git\", [\"status\", 'log']],  # both\n"
    "    decision = \"allow\",\n"
    "    justification = r\"reads \\ only\",\n"
    "    match = [[\"git\", \"status\"], \"git log '-n 1' \\\"a b\\\"\"],\n"
    "    not_match = [\"git push\"],\n"
    ")\n"
    "prefix_rule(pattern=[[\"rm\",\"rmdir\"]], decision=\"forbidden\"); prefix_rule([\"make\"])\n"
    "prefix_rule(pattern=[\"np\\u006d\", \"\"\"pu\\\nblish\"\"\"], decision=\"prompt\", match=None)\n"
    "host_executable(name=\"git\", paths=[\"/usr/bin/git\", \"/opt/homebrew/bin/git\"])\n"
    "host_executable(name=\"hg\", paths=[])\n"
    "network_rule(host=\"API.Example.com.\", protocol=\"https_connect\", decision=\"deny\")\n"
    "network_rule(host=\"example.com:443\", protocol=\"http\", decision=\"prompt\",\n"
    "             justification=\"why\")";

static const char as_yaml[] = "rules:\n"
                              "  - program: git\n"
                              "    args: [[status, log]]\n"
                              "    decision: allow\n"
                              "    reason: \"reads \\\\ only\"\n"
                              "    match:\n"
                              "      - [git, status]\n"
                              "      - [git, log, \"-n 1\", \"a b\"]\n"
                              "    not_match:\n"
                              "      - [git, push]\n"
                              "  - program: [rm, rmdir]\n"
                              "    decision: forbid\n"
                              "  - program: make\n"
                              "    decision: allow\n"
                              "  - program: npm\n"
                              "    args: [publish]\n"
                              "    decision: ask\n"
                              "programs:\n"
                              "  - name: git\n"
                              "    paths: [\"/usr/bin/git\", \"/opt/homebrew/bin/git\"]\n"
                              "  - name: hg\n"
                              "    paths: []\n"
                              "network:\n"
                              "  - host: api.example.com\n"
                              "    protocol: https\n"
                              "    decision: forbid\n"
                              "  - host: example.com\n"
                              "    protocol: http\n"
                              "    decision: ask\n"
                              "    reason: why\n";

static void
every_call_becomes_an_entry(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1 << 16};
    struct rules r = {0};
    struct rules again = {0};
    struct sy_error err = {0};
    const struct place_text in = {.name = "y", .text = as_yaml, .len = sizeof(as_yaml) - 1};

    (void)state;
    if (import_text(&r, whole_file, false, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(rules_write(&text, &r), SY_E_OK);
    assert_string_equal(buf_view(&text), as_yaml);
    assert_int_equal(rules_read(&again, &in, NULL, &err), SY_E_OK);
    assert_int_equal(yard_decide(&r, "git log").decision, RULE_ALLOW);
    assert_int_equal(yard_decide(&r, "/usr/bin/git log").decision, RULE_ALLOW);
    assert_int_equal(yard_decide(&r, "/bin/git log").decision, RULE_NONE);
    assert_int_equal(yard_decide(&r, "rmdir x").decision, RULE_FORBID);
    rules_fini(&r);
    rules_fini(&again);
}

static void
the_sandbox_is_lifted_only_where_that_is_asked_for(void **state)
{
    struct rules r = {0};
    struct sy_error err = {0};
    static const char text[] = "prefix_rule(pattern=['a'])\n"
                               "prefix_rule(pattern=['b'], decision='prompt')";

    (void)state;
    assert_int_equal(import_text(&r, text, false, &err), SY_E_OK);
    assert_false(r.rules[0].lifts_sandbox);
    rules_fini(&r);
    assert_int_equal(import_text(&r, text, true, &err), SY_E_OK);
    assert_true(r.rules[0].lifts_sandbox);
    assert_false(r.rules[1].lifts_sandbox);
    rules_fini(&r);
}

static void
an_empty_file_has_no_rules(void **state)
{
    static const char *const empty[] = {"", "\n\n", "# nothing", " ;; \n", "\xEF\xBB\xBF# mark\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        struct rules r = {0};
        struct sy_error err = {0};

        assert_int_equal(import_text(&r, empty[i], false, &err), SY_E_OK);
        assert_int_equal(r.n, 0);
        rules_fini(&r);
    }
}

/* clang-format off */

static const struct {
    const char *text;
    const char *sentence;
} bad[] = {
    {"x = [1]", "a.rules:1:1: 'x' is no call: rules are read from calls with strings and lists "
                "alone"},
    {"\n  for x in y:\n", "a.rules:2:3: 'for' is no call: rules are read from calls with "
                          "strings and lists alone"},
    {"load('x.bzl', 'y')", "a.rules:1:1: unknown function 'load' (rules are prefix_rule, "
                           "host_executable and network_rule)"},
    {"prefix_rul(pattern=['a'])",
     "a.rules:1:1: unknown function 'prefix_rul' (did you mean 'prefix_rule'?)"},
    {"prefix_rule()", "a.rules:1:1: prefix_rule needs 'pattern'"},
    {"prefix_rule(pattern=['a'], patern=['b'])",
     "a.rules:1:28: prefix_rule has no argument 'patern' (did you mean 'pattern'?)"},
    {"prefix_rule(pattern=['a'], pattern=['b'])",
     "a.rules:1:28: 'pattern' stands twice (first at line 1, column 13)"},
    {"prefix_rule(['b'], pattern=['a'])", "a.rules:1:20: 'pattern' stands twice"},
    {"prefix_rule(['b'], 'allow')",
     "a.rules:1:20: an argument without a name: write 'decision = ...'"},
    {"prefix_rule(pattern=['a' + 'b'])", "a.rules:1:26: expected ',' or ']', got '+'"},
    {"prefix_rule(pattern=['a', x])",
     "a.rules:1:27: expected a string or a list of them, got 'x'"},
    {"prefix_rule(pattern=X)",
     "a.rules:1:21: expected a string or a list (nothing is computed here), got 'X'"},
    {"prefix_rule(pattern=[['a', ['b']]])", "a.rules:1:28: expected a string, got '['"},
    {"prefix_rule(pattern='a')",
     "a.rules:1:21: 'pattern' has to be a list of at least one word"},
    {"prefix_rule(pattern=[])", "a.rules:1:21: 'pattern' has to be a list of at least one word"},
    {"prefix_rule(pattern=['a', []])", "a.rules:1:27: a word of 'pattern' without alternatives"},
    {"prefix_rule(pattern=['a b'])",
     "a.rules:1:22: 'a b' is no name of a program: its arguments go below 'args', variables "
     "below 'env'"},
    {"prefix_rule(pattern=['./a'])",
     "a.rules:1:1: './a' is another program in each directory: a rule that allows it needs "
     "'cwd'"},
    {"prefix_rule(pattern=['a'], decision='ask')",
     "a.rules:1:37: expected allow, prompt or forbidden, got 'ask'"},
    {"prefix_rule(pattern=['a'], decision='deny')",
     "a.rules:1:37: expected allow, prompt or forbidden, got 'deny'"},
    {"prefix_rule(pattern=['a'], justification=' ')", "a.rules:1:42: an empty justification"},
    {"prefix_rule(pattern=['a'], match='a')",
     "a.rules:1:34: 'match' has to be a list of commands"},
    {"prefix_rule(pattern=['a'], match=[\"a 'b\"])",
     "a.rules:1:35: 'a 'b' has a quote that does not end"},
    {"prefix_rule(pattern=['a'],\n match=['a',\n 'b'])",
     "a.rules:3:2: example 'b' is not matched by its rule: it is another program, or sets "
     "variables that 'env' does not name"},
    {"prefix_rule(pattern=['a'], not_match=['a x'])",
     "a.rules:1:39: example 'a x' must not match, but the rule matches it"},
    {"prefix_rule(pattern=['a\n'])", "a.rules:1:22: a string that does not end"},
    {"prefix_rule(pattern=['''a])", "a.rules:1:22: a string that does not end"},
    {"prefix_rule(pattern=['\\q'])",
     "a.rules:1:24: '\\q' is no escape that is read here: write '\\\\' for a backslash"},
    {"prefix_rule(pattern=['\\x0'])",
     "a.rules:1:24: '\\x' takes 2 hexadecimal digits of a character"},
    {"prefix_rule(pattern=['\\x00'])",
     "a.rules:1:24: '\\x' makes no character that a word can hold"},
    {"prefix_rule(pattern=['\\x1b'])",
     "a.rules:1:22: a string with the character U+001B, which people would not see"},
    {"prefix_rule(pattern=['\\u202e'])",
     "a.rules:1:22: a string with the character U+202E, which people would not see"},
    {"prefix_rule(pattern=['\\ud800'])",
     "a.rules:1:24: '\\u' makes no character that a word can hold"},
    {"prefix_rule(pattern=['a']", "a.rules:1:26: expected ',' or ')', got the end of the file"},
    {"prefix_rule(pattern=['a']) prefix_rule(pattern=['a'])",
     "a.rules:1:28: expected the end of the line after ')', got 'prefix_rule'"},
    {"prefix_rule(pattern=['\xff'])", "a.rules:1:23: invalid UTF-8 (byte 0xff)"},
    {"prefix_rule(pattern=[1])", "a.rules:1:22: expected a string or a list of them, got '1'"},
    {"host_executable(name='a')", "a.rules:1:1: host_executable needs 'paths'"},
    {"host_executable(name='a/b', paths=[])",
     "a.rules:1:1: expected a name without '/': the paths go below 'paths'"},
    {"host_executable(name='a', paths=['/b'])", "a.rules:1:1: '/b' is no path of the program 'a'"},
    {"host_executable(name='a', paths=['bin/a'])",
     "a.rules:1:1: 'bin/a': expected an absolute path, written out without '.', '..' and '//'"},
    {"host_executable(name='a', paths=[])\nhost_executable(name='a', paths=['/a'])",
     "a.rules:2:1: 'a' stands twice (first at line 1)"},
    {"network_rule(host='*.a', protocol='http', decision='allow')",
     "a.rules:1:19: '*.a' has a wildcard: a network rule is for one host"},
    {"network_rule(host='http://a', protocol='http', decision='allow')",
     "a.rules:1:19: 'http://a' is a URL or a path: write the host alone"},
    {"network_rule(host='a', protocol='ftp', decision='allow')",
     "a.rules:1:33: expected http, https, socks5_tcp or socks5_udp, got 'ftp'"},
    {"network_rule(host='a', protocol='http', decision='x')",
     "a.rules:1:50: expected allow, prompt, deny or forbidden, got 'x'"},
    {"network_rule(host='a', protocol='http', decision='deny')\n"
     "network_rule(host='A', protocol='http', decision='allow')",
     "a.rules:2:1: 'a' stands twice (first at line 1): the last decides there, the strictest "
     "here; keep one"},
};
/* clang-format on */

static void
what_cannot_be_converted_is_an_error_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct rules r = {0};
        struct sy_error err = {0};
        enum sy_code rc = import_text(&r, bad[i].text, false, &err);

        rules_fini(&r);
        if (rc == SY_E_OK) {
            fail_msg("read: %s", bad[i].text);
        }
        assert_string_equal(err.msg, bad[i].sentence);
        assert_int_equal(rc, SY_E_CONFIG);
    }
}

static enum sy_code
import_and_free(void *arg)
{
    struct rules r = {0};
    struct sy_error err = {0};
    enum sy_code rc = import_text(&r, arg, false, &err);

    rules_fini(&r);
    return rc;
}

static void
memory_that_is_out_is_told(void **state)
{
    (void)state;
    fault_run(import_and_free, mem_unconst(whole_file));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_becomes_an_entry),
        cmocka_unit_test(the_sandbox_is_lifted_only_where_that_is_asked_for),
        cmocka_unit_test(an_empty_file_has_no_rules),
        cmocka_unit_test(what_cannot_be_converted_is_an_error_with_its_place),
        cmocka_unit_test(memory_that_is_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
