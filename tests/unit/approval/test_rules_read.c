#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "approval/rules_read.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "rules_yard.h"

static enum sy_code
read_text(struct rules *r, const char *text, struct sy_error *err)
{
    const struct place_text in = {.name = "rules.yaml", .text = text, .len = strlen(text)};

    return rules_read(r, &in, "/home/u", err);
}

static void
must_read(struct rules *r, const char *text)
{
    struct sy_error err = {0};

    if (read_text(r, text, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
}

static void
must_fail(const char *text, const char *sentence)
{
    struct rules r = {0};
    struct sy_error err = {0};
    enum sy_code rc = read_text(&r, text, &err);

    rules_fini(&r);
    if (rc == SY_E_OK) {
        fail_msg("read, but expected: %s", sentence);
    }
    assert_string_equal(err.msg, sentence);
    assert_int_equal(rc, SY_E_CONFIG);
}

struct bad {
    const char *text;
    const char *sentence;
};

static void
all_fail(const struct bad *bad, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        must_fail(bad[i].text, bad[i].sentence);
    }
}

#define ALL_FAIL(bad) all_fail(bad, sizeof(bad) / sizeof((bad)[0]))

static const char whole_file[] =
    "rules:\n"
    "  - program: git\n"
    "    args: [[status, log], \"-s\"]\n"
    "    decision: allow\n"
    "    outside_sandbox: true\n"
    "    cwd: [~/src, /work/]\n"
    "    env: [CI, V=1]\n"
    "    expires: 2999-12-31T01:02:03Z\n"
    "    reason: \"because: it is 'ours'\"\n"
    "    match: [git status -s x, [git, log, \"-s\"], CI=1 git log -s]\n"
    "    not_match:\n"
    "      - git push\n"
    "  - {program: [pip, pip3], args: [install], decision: forbid,\n"
    "     steer: {command: [uv, pip, \"{rest}\"], run: true}}\n"
    "programs:\n"
    "  - {name: git, paths: [/usr/bin/git, ~/bin/git]}\n"
    "  - {name: hg, paths: []}\n"
    "network:\n"
    "  - {host: example.com, protocol: https, decision: ask, reason: x}\n";

static void
every_key_is_read(void **state)
{
    struct rules r = {0};
    const struct rule *git = NULL;

    (void)state;
    must_read(&r, whole_file);
    git = &r.rules[0];
    assert_int_equal(r.n, 2);
    assert_int_equal(git->at.line, 2);
    assert_int_equal(git->at.column, 5);
    assert_int_equal(git->args_n, 2);
    assert_string_equal(git->args[0].v[1], "log");
    assert_string_equal(git->args[1].v[0], "-s");
    assert_int_equal(git->decision, RULE_ALLOW);
    assert_true(git->lifts_sandbox);
    assert_string_equal(git->cwds.v[0], "/home/u/src");
    assert_string_equal(git->cwds.v[1], "/work");
    assert_string_equal(git->env.v[1], "V=1");
    assert_true(git->expires == 32503597323);
    assert_string_equal(git->reason, "because: it is 'ours'");
    assert_int_equal(git->examples_n, 4);
    assert_int_equal(r.rules[1].steer.n, 3);
    assert_true(r.rules[1].steer_runs);
    assert_string_equal(r.programs[0].paths.v[1], "/home/u/bin/git");
    assert_int_equal(r.programs[1].paths.n, 0);
    assert_string_equal(r.network[0].host, "example.com");
    assert_int_equal(r.network[0].decision, RULE_ASK);
    rules_fini(&r);
}

static void
an_empty_file_has_no_rules(void **state)
{
    static const char *const empty[] = {"", "# nothing\n", "rules:\n", "rules: []\nnetwork: ~\n",
                                        "---\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        struct rules r = {0};

        must_read(&r, empty[i]);
        assert_int_equal(r.n + r.programs_n + r.network_n, 0);
        rules_fini(&r);
    }
}

static void
what_is_written_reads_as_the_same(void **state)
{
    struct rules r = {0};
    struct rules again = {0};
    SY_AUTO(buf_fini) struct buf first = {.max = 1 << 20};
    SY_AUTO(buf_fini) struct buf second = {.max = 1 << 20};

    (void)state;
    must_read(&r, whole_file);
    must_read(&r, "rules: [{program: a, decision: ask, args: ['', 'null', \"1\", 'x: y', '#', "
                  "\"\xc3\xa4\", '~', '-', yes, \"a\\\"b\\\\c\"]}]");
    assert_int_equal(rules_write(&first, &r), SY_E_OK);
    must_read(&again, buf_view(&first));
    assert_int_equal(rules_write(&second, &again), SY_E_OK);
    assert_string_equal(buf_view(&first), buf_view(&second));
    assert_int_equal(again.rules[2].args_n, 10);
    assert_string_equal(again.rules[2].args[0].v[0], "");
    assert_string_equal(again.rules[2].args[9].v[0], "a\"b\\c");
    rules_fini(&r);
    rules_fini(&again);
}

/* clang-format off */

static void
a_wrong_key_gets_its_place_and_the_nearest_right_one(void **state)
{
    static const struct bad bad[] = {
        {"rulez: []\n", "rules.yaml:1:1: unknown key 'rulez' (did you mean 'rules'?)"},
        {"weather: fine\n",
         "rules.yaml:1:1: unknown key 'weather' (a file of rules has rules, programs, network)"},
        {"rules:\n- program: git\n  arg: [x]\n",
         "rules.yaml:3:3: unknown key 'arg' (did you mean 'args'?)"},
        {"rules:\n- program: git\n  colour: red\n",
         "rules.yaml:3:3: unknown key 'colour' (a rule has program, args, decision, "
         "outside_sandbox, cwd, env, expires, reason, steer, match, not_match)"},
        {"rules:\n- program: git\n  program: hg\n",
         "rules.yaml:3:3: duplicate key 'program' (first at line 2, column 3)"},
        {"rules: []\nrules: []\n",
         "rules.yaml:2:1: duplicate key 'rules' (first at line 1, column 1)"},
        {"rules: [{\"a\\0\\e\": 1}]\n",
         "rules.yaml:1:10: unknown key 'a?" "?' (a rule has program, args, decision, outside_sandbox, "
         "cwd, env, expires, reason, steer, match, not_match)"},
        {"rules: [{[a]: 1}]\n", "rules.yaml:1:10: expected a key, got a list"},
        {"rules: [{program: a, decision: forbid, steer: {comand: [b]}}]\n",
         "rules.yaml:1:48: unknown key 'comand' (did you mean 'command'?)"},
    };

    (void)state;
    ALL_FAIL(bad);
}

static void
a_wrong_type_is_told_with_the_right_one(void **state)
{
    static const struct bad bad[] = {
        {"[]", "rules.yaml:1:1: expected a file of rules, got a list"},
        {"rules: git\n", "rules.yaml:1:8: expected a list of rules, got text"},
        {"rules: [git]\n", "rules.yaml:1:9: expected a rule, got text"},
        {"rules: [{program: {}}]\n",
         "rules.yaml:1:19: expected the name of a program, got a mapping"},
        {"rules: [{program: }]\n", "rules.yaml:1:19: expected the name of a program, got nothing"},
        {"rules: [{program: []}]\n",
         "rules.yaml:1:19: expected the name of a program, got an empty list"},
        {"rules: [{program: ''}]\n",
         "rules.yaml:1:19: expected the name of a program, got an empty text"},
        {"rules: [{program: [[a]]}]\n",
         "rules.yaml:1:20: expected the name of a program, got a list"},
        {"rules: [{program: git status}]\n",
         "rules.yaml:1:19: 'git status' is no name of a program: its arguments go below 'args', "
         "variables below 'env'"},
        {"rules: [{program: a, args: status}]\n",
         "rules.yaml:1:28: expected a list of arguments such as [status, [-s, --short]], got text"},
        {"rules: [{program: a, args: [~]}]\n",
         "rules.yaml:1:29: expected an argument, got nothing (write \"\" for an empty one)"},
        {"rules: [{program: a, decision: alow}]\n",
         "rules.yaml:1:32: expected allow, ask or forbid, got 'alow' (did you mean 'allow'?)"},
        {"rules: [{program: a, decision: prompt}]\n",
         "rules.yaml:1:32: expected allow, ask or forbid, got 'prompt'"},
        {"rules: [{program: a, outside_sandbox: yes}]\n",
         "rules.yaml:1:39: expected true or false, got 'yes'"},
        {"rules: [{program: a, outside_sandbox: 'true'}]\n",
         "rules.yaml:1:39: expected true or false, got 'true' (leave out the quotes)"},
        {"rules: [{program: a, cwd: src}]\n",
         "rules.yaml:1:27: expected an absolute path or one that begins with '~/', got 'src'"},
        {"rules: [{program: a, cwd: /a/../b}]\n",
         "rules.yaml:1:27: '/a/../b': write the path out, without '.', '..' and '//'"},
        {"rules: [{program: a, env: 1X}]\n",
         "rules.yaml:1:27: expected NAME or NAME=value (letters, digits and '_', no digit first), "
         "got '1X'"},
        {"rules: [{program: a, expires: tomorrow}]\n",
         "rules.yaml:1:31: expected a time such as 2026-12-31 or 2026-12-31T12:00:00Z, got "
         "'tomorrow'"},
        {"rules: [{program: a, expires: 2026-02-29}]\n",
         "rules.yaml:1:31: expected a time such as 2026-12-31 or 2026-12-31T12:00:00Z, got "
         "'2026-02-29'"},
        {"rules: [{program: a, match: git}]\n",
         "rules.yaml:1:29: expected a list of commands, got text"},
        {"rules: [{program: a, match: ['a | b']}]\n",
         "rules.yaml:1:30: 'a | b' has a character that a shell would act on: quote it, or write "
         "the words as a list"},
        {"rules: [{program: a, match: [\"a 'b\"]}]\n",
         "rules.yaml:1:30: 'a 'b' has a quote that does not end"},
        {"rules: [{program: a, steer: b}]\n",
         "rules.yaml:1:29: expected a better command (command, run), got text"},
        {"rules: [{program: a, steer: {command: b c}}]\n",
         "rules.yaml:1:39: expected a list of words such as [uv, pip, \"{rest}\"], got text"},
        {"programs: [{name: a}]\n", "rules.yaml:1:12: a program needs 'paths'"},
        {"programs: [{name: a, paths: [/bin/b]}]\n",
         "rules.yaml:1:12: '/bin/b' is no path of the program 'a'"},
        {"programs: [{name: a, paths: []}, {name: a, paths: []}]\n",
         "rules.yaml:1:34: 'a' stands twice (first at line 1)"},
        {"network: [{host: a.b, protocol: ftp}]\n",
         "rules.yaml:1:33: expected http, https, socks5_tcp or socks5_udp, got 'ftp'"},
        {"network: [{host: '*.b'}]\n",
         "rules.yaml:1:18: '*.b' has a wildcard: a network rule is for one host"},
        {"network: [{host: 'https://b'}]\n",
         "rules.yaml:1:18: 'https://b' is a URL or a path: write the host alone"},
        {"network: [{host: 'b:1'}]\n",
         "rules.yaml:1:18: 'b:1' has a port: write the host alone"},
        {"network: [{host: B}]\n", "rules.yaml:1:18: 'B' is no host name in lower case"},
        {"network: [{host: b, decision: ask}]\n", "rules.yaml:1:11: a network rule needs 'protocol'"},
    };

    (void)state;
    ALL_FAIL(bad);
}

static void
a_rule_that_makes_no_sense_is_refused(void **state)
{
    static const struct bad bad[] = {
        {"rules:\n  - decision: ask\n", "rules.yaml:2:5: a rule needs 'program'"},
        {"rules: [{program: a}]\n",
         "rules.yaml:1:9: a rule needs 'decision': allow, ask or forbid"},
        {"rules: [{program: a, decision: ask, outside_sandbox: true}]\n",
         "rules.yaml:1:9: 'outside_sandbox' is for 'decision: allow'"},
        {"rules: [{program: a, decision: allow, steer: {command: [b]}}]\n",
         "rules.yaml:1:9: 'steer' is for 'decision: forbid': what is steered does not run itself"},
        {"rules: [{program: a, decision: forbid, steer: {run: true}}]\n",
         "rules.yaml:1:47: 'steer' needs 'command', the better command as a list"},
        {"rules: [{program: a, decision: forbid, steer: {command: [b, 'x{rest}']}}]\n",
         "rules.yaml:1:9: '{rest}' is a word by itself and stands once, for what follows the prefix"},
        {"rules: [{program: a, decision: forbid, steer: {command: ['{rest}']}}]\n",
         "rules.yaml:1:9: a better command begins with a program"},
        {"rules: [{program: ./a, decision: allow}]\n",
         "rules.yaml:1:9: './a' is another program in each directory: a rule that allows it needs "
         "'cwd'"},
        {"rules: [{program: a, decision: allow, env: [A, LD_PRELOAD=x]}]\n",
         "rules.yaml:1:9: the variable 'LD_PRELOAD' decides what runs: no rule that allows takes it"},
    };
    struct rules r = {0};

    (void)state;
    ALL_FAIL(bad);
    must_read(&r, "rules: [{program: ./a, decision: forbid, env: PATH}]\n");
    rules_fini(&r);
}

static void
what_yaml_can_do_and_nobody_needs_is_refused(void **state)
{
    static const struct bad bad[] = {
        {"rules: &a []\n",
         "rules.yaml:1:8: an anchor (&name), which has no use here; take it out"},
        {"rules: [*a]\n", "rules.yaml:1:9: an alias (*name); write the value out"},
        {"rules: !!seq []\n", "rules.yaml:1:8: a tag (!name), which has no use here; take it out"},
        {"rules: []\n---\nrules: []\n", "rules.yaml:2:1: a second document; a file of rules is one"},
        {"rules: [[[[[[[[[]]]]]]]]]\n", "rules.yaml:1:15: nesting deeper than 8 levels"},
        {"rules: [\n", "rules.yaml:2:1: not valid YAML: did not find expected node content"},
        {"rules: \x01\n", "rules.yaml:1:8: not valid YAML: control characters are not allowed"},
        {"rules: \xff\n", "rules.yaml:1:8: invalid UTF-8 (byte 0xff)"},
        {"rules: [{program: \"a\\x1b\"}]\n",
         "rules.yaml:1:19: the name of a program with the character U+001B, which people would not "
         "see"},
        {"rules: [{program: a, reason: \"x\xe2\x80\xaey\"}]\n",
         "rules.yaml:1:30: a sentence with the character U+202E, which people would not see"},
        {"rules: [{program: a, args: [\"\\uFFFF\"]}]\n",
         "rules.yaml:1:29: an argument with the character U+FFFF, which people would not see"},
        {"rules: [{program: a, args: [\"x\\0y\"]}]\n",
         "rules.yaml:1:29: an argument with the character U+0000, which people would not see"},
    };

    (void)state;
    ALL_FAIL(bad);
}

static void
an_example_that_does_not_hold_says_why(void **state)
{
    static const struct bad bad[] = {
        {"rules:\n- program: git\n  args: [status, -s]\n  decision: allow\n  match:\n"
         "  - git status\n",
         "rules.yaml:6:5: example 'git status' is not matched by its rule: the rule has 3 words, "
         "the example 2"},
        {"rules:\n- program: git\n  args: [status]\n  decision: allow\n  match: [git log]\n",
         "rules.yaml:5:11: example 'git log' is not matched by its rule: argument 1 is 'log'"},
        {"rules:\n- program: git\n  decision: allow\n  match: [hg log]\n",
         "rules.yaml:4:11: example 'hg log' is not matched by its rule: it is another program, or "
         "sets variables that 'env' does not name"},
        {"rules:\n- program: git\n  decision: allow\n  match: [A=1 git log]\n",
         "rules.yaml:4:11: example 'A=1 git log' is not matched by its rule: it is another "
         "program, or sets variables that 'env' does not name"},
        {"rules:\n- program: git\n  decision: allow\n  not_match: [git log]\n",
         "rules.yaml:4:15: example 'git log' must not match, but the rule matches it"},
        {"rules:\n- program: git\n  decision: allow\n  match: [git push]\n"
         "- program: git\n  args: [push]\n  decision: forbid\n",
         "rules.yaml:4:11: example 'git push' is decided by the rule at line 5 (forbid), not by "
         "this one (allow)"},
    };

    (void)state;
    ALL_FAIL(bad);
}

static void
better_commands_that_lead_in_a_circle_are_refused(void **state)
{
    static const struct bad bad[] = {
        {"rules:\n- {program: a, decision: forbid, steer: {command: [a, b]}}\n",
         "rules.yaml:2:3: the better commands lead in a circle: that of the rule at line 2 may be "
         "'a' again"},
        {"rules:\n- {program: x, decision: forbid, steer: {command: [a]}}\n"
         "- {program: a, decision: forbid, steer: {command: [b, '{rest}']}}\n"
         "- {program: b, args: [c], decision: forbid, steer: {command: [/bin/a]}}\n"
         "- {program: b, args: [d], decision: forbid, steer: {command: [y]}}\n",
         "rules.yaml:3:3: the better commands lead in a circle: that of the rule at line 4 may be "
         "'a' again"},
    };
    struct rules r = {0};

    (void)state;
    ALL_FAIL(bad);
    must_read(&r, "rules:\n"
                  "- {program: git, args: [push, --force], decision: forbid,\n"
                  "   steer: {command: [git, push, --force-with-lease, '{rest}'], run: true}}\n"
                  "- {program: pip, decision: forbid, steer: {command: [uv, pip, '{rest}']}}\n"
                  "- {program: easy_install, decision: forbid, steer: {command: [pip, install]}}\n");
    rules_fini(&r);
}

/* clang-format on */

static void
a_long_chain_of_better_commands_is_checked_at_once(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1 << 20};
    struct rules r = {0};

    (void)state;
    assert_int_equal(buf_add_str(&text, "rules:\n"), SY_E_OK);
    for (unsigned i = 0; i < 2048; i++) {
        assert_int_equal(buf_addf(&text,
                                  "- {program: p%u, decision: forbid, steer: {command: [p%u]}}\n",
                                  i + 1, i),
                         SY_E_OK);
    }
    must_read(&r, buf_view(&text));
    rules_fini(&r);
    assert_int_equal(buf_add_str(&text, "- {program: x, decision: ask}\n"), SY_E_OK);
    must_fail(buf_view(&text), "rules.yaml:2050:3: more than 2048 rules");
}

static enum sy_code
read_and_free(void *arg)
{
    struct rules r = {0};
    struct sy_error err = {0};
    enum sy_code rc = read_text(&r, arg, &err);

    rules_fini(&r);
    return rc;
}

static enum sy_code
write_and_free(void *arg)
{
    struct buf out = {.max = 1 << 20};
    enum sy_code rc = rules_write(&out, arg);

    buf_fini(&out);
    return rc;
}

static void
memory_that_is_out_is_told(void **state)
{
    struct rules r = {0};

    (void)state;
    fault_run(read_and_free, mem_unconst(whole_file));
    must_read(&r, whole_file);
    fault_run(write_and_free, &r);
    rules_fini(&r);
}

struct yard {
    char dir[64];
    char system[96];
    char user[96];
};

static void
write_file(const char *path, const char *text, mode_t mode)
{
    struct sy_error err = {0};
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &err), SY_E_OK);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void
make_yard(struct yard *y)
{
    (void)snprintf(y->dir, sizeof(y->dir), "/tmp/sy-rules-XXXXXX");
    assert_non_null(mkdtemp(y->dir));
    (void)snprintf(y->system, sizeof(y->system), "%s/system.yaml", y->dir);
    (void)snprintf(y->user, sizeof(y->user), "%s/user.yaml", y->dir);
}

static void
clear_yard(const struct yard *y)
{
    (void)unlink(y->system);
    (void)unlink(y->user);
    assert_int_equal(rmdir(y->dir), 0);
}

static enum sy_code
load(struct rules *r, const struct yard *y, const char *workspace, struct sy_error *err)
{
    const struct rules_sources sources = {
        .system_path = y->system, .user_path = y->user, .workspace = workspace, .home = "/home/u"};

    return rules_load(r, &sources, err);
}

static void
both_files_count_and_the_strictest_of_all_wins(void **state)
{
    struct yard y;
    struct rules r;
    struct sy_error err = {0};

    (void)state;
    make_yard(&y);
    assert_int_equal(load(&r, &y, NULL, &err), SY_E_OK);
    assert_int_equal(r.n, 0);
    rules_fini(&r);
    write_file(y.system, "rules: [{program: git, args: [push], decision: forbid}]\n", 0644);
    /* Its example holds by the file itself. */
    write_file(y.user, "rules: [{program: git, decision: allow, match: [git push]}]\n", 0600);
    assert_int_equal(load(&r, &y, NULL, &err), SY_E_OK);
    assert_int_equal(yard_decide(&r, "git push").decision, RULE_FORBID);
    assert_non_null(strstr(yard_decide(&r, "git push").reason, "system.yaml:1"));
    assert_int_equal(yard_decide(&r, "git log").decision, RULE_ALLOW);
    rules_fini(&r);
    clear_yard(&y);
}

static void
a_file_that_others_could_write_is_not_read(void **state)
{
    struct yard y;
    struct rules r;
    struct sy_error err = {0};

    (void)state;
    make_yard(&y);
    write_file(y.user, "rules: []\n", 0622);
    assert_int_equal(load(&r, &y, NULL, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "others may write it (mode 0622); fix: chmod go-w"));
    write_file(y.user, "rules: []\n", 0600);
    assert_int_equal(load(&r, &y, y.dir, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "lies in the workspace"));
    assert_int_equal(load(&r, &y, "/usr", &err), SY_E_OK);
    rules_fini(&r);
    assert_int_equal(unlink(y.user), 0);
    assert_int_equal(symlink("/nowhere", y.user), 0);
    assert_int_equal(load(&r, &y, NULL, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "is a symbolic link to a file that is not there"));
    clear_yard(&y);
}

static void
a_file_of_a_mebibyte_is_refused_before_it_is_read(void **state)
{
    char *text = mem_alloc((1 << 20) + 1);
    struct yard y;
    struct rules r;
    struct sy_error err = {0};

    (void)state;
    assert_non_null(text);
    memset(text, '#', 1 << 20);
    text[1 << 20] = '\0';
    make_yard(&y);
    write_file(y.user, text, 0600);
    mem_free(text);
    assert_int_equal(load(&r, &y, NULL, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "the file is larger than 262144 bytes"));
    clear_yard(&y);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(an_empty_file_has_no_rules),
        cmocka_unit_test(what_is_written_reads_as_the_same),
        cmocka_unit_test(a_wrong_key_gets_its_place_and_the_nearest_right_one),
        cmocka_unit_test(a_wrong_type_is_told_with_the_right_one),
        cmocka_unit_test(a_rule_that_makes_no_sense_is_refused),
        cmocka_unit_test(what_yaml_can_do_and_nobody_needs_is_refused),
        cmocka_unit_test(an_example_that_does_not_hold_says_why),
        cmocka_unit_test(better_commands_that_lead_in_a_circle_are_refused),
        cmocka_unit_test(a_long_chain_of_better_commands_is_checked_at_once),
        cmocka_unit_test(memory_that_is_out_is_told),
        cmocka_unit_test(both_files_count_and_the_strictest_of_all_wins),
        cmocka_unit_test(a_file_that_others_could_write_is_not_read),
        cmocka_unit_test(a_file_of_a_mebibyte_is_refused_before_it_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
