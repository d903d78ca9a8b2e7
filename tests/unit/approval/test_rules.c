#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "approval/rules.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fault.h"
#include "rules_yard.h"

static int
setup(void **state)
{
    *state = mem_alloc_zero(1, sizeof(struct rules));
    return *state != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
    rules_fini(*state);
    mem_free(*state);
    return 0;
}

static void
add_word(struct strv *list, const char *word)
{
    assert_int_equal(strv_add(list, word), SY_E_OK);
}

static void
decides(const struct rules *r, const char *script, enum rule_decision want)
{
    struct rule_verdict v = yard_decide(r, script);

    if (v.decision != want) {
        fail_msg("'%s': %s, expected %s", script, rule_decision_name(v.decision),
                 rule_decision_name(want));
    }
    assert_int_equal(v.by != NULL, want != RULE_NONE);
    assert_int_equal(v.reason[0] != '\0', want != RULE_NONE);
}

static void
a_prefix_with_alternatives_at_each_position_matches(void **state)
{
    struct rules *r = *state;

    yard_rule(r, RULE_ALLOW, "git|hg status|log -s|-v");
    decides(r, "git status -s", RULE_ALLOW);
    decides(r, "hg log -v more words", RULE_ALLOW);
    decides(r, "git log", RULE_NONE);
    decides(r, "git -s status", RULE_NONE);
    decides(r, "git status -s2", RULE_NONE);
    decides(r, "svn status -s", RULE_NONE);
    decides(r, "", RULE_NONE);
}

static void
the_strictest_of_all_rules_wins_whatever_their_order(void **state)
{
    struct rules *r = *state;

    yard_rule(r, RULE_FORBID, "git push --force");
    yard_rule(r, RULE_ALLOW, "git");
    yard_rule(r, RULE_ASK, "git push");
    decides(r, "git status", RULE_ALLOW);
    decides(r, "git push", RULE_ASK);
    decides(r, "git push --force", RULE_FORBID);
    assert_non_null(strstr(yard_decide(r, "git push --force").reason, "(rules.yaml:1)"));
    assert_non_null(strstr(yard_decide(r, "git push").reason, "(rules.yaml:3)"));
}

static void
a_script_is_allowed_only_if_each_command_is(void **state)
{
    struct rules *r = *state;

    yard_rule(r, RULE_ALLOW, "make");
    yard_rule(r, RULE_ALLOW, "git status");
    yard_rule(r, RULE_ASK, "git push");
    yard_rule(r, RULE_FORBID, "rm");
    decides(r, "make ; git status ; make test", RULE_ALLOW);
    decides(r, "make ; ls", RULE_NONE);
    decides(r, "make ; ls ; git push", RULE_ASK);
    decides(r, "make ; git push ; rm x", RULE_FORBID);
    assert_int_equal(yard_decide(r, "make ; git push ; rm x").command, 2);
}

static void
the_commands_that_rules_allow_are_told_one_by_one(void **state)
{
    struct rules *r = *state;
    struct strv commands[3];
    struct rule_script s = {.commands = commands, .n = 3, .is_whole = true, .cwd = "/work"};
    bool is_allowed[3];

    yard_rule(r, RULE_ALLOW, "git|cd");
    yard_rule(r, RULE_ASK, "git push");
    add_word(&yard_rule(r, RULE_ALLOW, "make")->cwds, "/work");
    yard_words(&commands[0], "make");
    yard_words(&commands[1], "cd x");
    yard_words(&commands[2], "make");
    rules_allowed(is_allowed, r, &s);
    assert_true(is_allowed[0] && is_allowed[1] && !is_allowed[2]);
    s.is_whole = false;
    rules_allowed(is_allowed, r, &s);
    assert_false(is_allowed[0] || is_allowed[1] || is_allowed[2]);
    for (size_t i = 0; i < 3; i++) {
        strv_fini(&commands[i]);
    }
}

static void
what_is_not_the_whole_script_allows_nothing(void **state)
{
    struct rules *r = *state;
    struct strv hidden = {0};
    struct rule_script as = {.cwd = "/work"};

    yard_rule(r, RULE_ALLOW, "make");
    yard_rule(r, RULE_FORBID, "rm");
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_NONE);
    assert_int_equal(yard_decide_as(r, "rm", &as).decision, RULE_FORBID);
    as.is_whole = true;
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_ALLOW);
    yard_words(&hidden, "rm -rf x");
    as.hidden = &hidden;
    as.hidden_n = 1;
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_FORBID);
    assert_int_equal(yard_decide_as(r, "make", &as).command, 1);
    strv_fini(&hidden);
    /* What is only seen is never what makes it allowed. */
    yard_words(&hidden, "make");
    assert_int_equal(yard_decide_as(r, "ls", &as).decision, RULE_NONE);
    strv_fini(&hidden);
}

static void
the_sandbox_is_lifted_only_if_each_commands_rules_say_so(void **state)
{
    static const bool one[] = {true, false};
    struct rules *r = *state;
    struct rule_script as = {.is_whole = true, .is_trusted = one};

    yard_rule(r, RULE_ALLOW, "docker build")->lifts_sandbox = true;
    yard_rule(r, RULE_ALLOW, "docker");
    yard_rule(r, RULE_ALLOW, "make");
    assert_true(yard_decide(r, "docker build").lifts_sandbox);
    assert_true(yard_decide(r, "docker build ; docker build .").lifts_sandbox);
    assert_false(yard_decide(r, "docker ps").lifts_sandbox);
    assert_int_equal(yard_decide(r, "docker build ; make").decision, RULE_ALLOW);
    assert_false(yard_decide(r, "docker build ; make").lifts_sandbox);
    /* Nor where the program may be one that a sandboxed command put there. */
    assert_true(yard_decide_as(r, "docker build", &as).lifts_sandbox);
    assert_false(yard_decide_as(r, "docker build ; docker build", &as).lifts_sandbox);
    as.is_trusted = NULL;
    assert_int_equal(yard_decide_as(r, "docker build", &as).decision, RULE_ALLOW);
    assert_false(yard_decide_as(r, "docker build", &as).lifts_sandbox);
    yard_rule(r, RULE_ASK, "docker build");
    assert_false(yard_decide(r, "docker build").lifts_sandbox);
}

static void
an_allowing_rule_takes_no_other_program_of_that_name(void **state)
{
    struct rules *r = *state;
    struct rule_program p = {.name = mem_strdup("cargo"), .paths = {.max = 4}};

    yard_rule(r, RULE_ALLOW, "git|cargo|/opt/x/tool");
    decides(r, "git", RULE_ALLOW);
    decides(r, "/usr/bin/git", RULE_ALLOW);
    decides(r, "/usr/bin/x/git", RULE_NONE);
    decides(r, "/usr/bin/../../work/git", RULE_NONE);
    decides(r, "/work/git", RULE_NONE);
    decides(r, "./git", RULE_NONE);
    decides(r, "bin/git", RULE_NONE);
    decides(r, "/opt/x/tool", RULE_ALLOW);
    decides(r, "tool", RULE_NONE);
    /* A list of paths takes the place of the system's directories. */
    add_word(&p.paths, "/home/u/.cargo/bin/cargo");
    assert_int_equal(rules_add_program(r, &p), SY_E_OK);
    decides(r, "/home/u/.cargo/bin/cargo", RULE_ALLOW);
    decides(r, "/usr/bin/cargo", RULE_NONE);
    decides(r, "cargo", RULE_ALLOW);
    /* An empty one lets no path be it. */
    p = (struct rule_program){.name = mem_strdup("cargo")};
    assert_int_equal(rules_add_program(r, &p), SY_E_OK);
    decides(r, "/home/u/.cargo/bin/cargo", RULE_NONE);
}

static void
a_forbidding_rule_takes_whatever_may_be_that_program(void **state)
{
    struct rules *r = *state;

    yard_rule(r, RULE_FORBID, "rm|/opt/x/tool");
    decides(r, "rm", RULE_FORBID);
    decides(r, "/bin/rm", RULE_FORBID);
    decides(r, "../../bin/rm", RULE_FORBID);
    decides(r, "tool", RULE_FORBID);
    decides(r, "./tool", RULE_FORBID);
    decides(r, "/opt/x/tool", RULE_FORBID);
    decides(r, "/opt/y/tool", RULE_NONE);
    decides(r, "rmdir", RULE_NONE);
}

static void
assignments_are_for_rules_that_name_them(void **state)
{
    struct rules *r = *state;
    struct rule *allow = yard_rule(r, RULE_ALLOW, "make test");
    struct rule_script as = {.is_whole = true, .cwd = "/work"};

    add_word(&allow->env, "CI");
    add_word(&allow->env, "V=1");
    decides(r, "make test", RULE_ALLOW);
    decides(r, "CI=yes make test", RULE_ALLOW);
    decides(r, "CI= V=1 make test", RULE_ALLOW);
    decides(r, "V=2 make test", RULE_NONE);
    decides(r, "CI=1 X=1 make test", RULE_NONE);
    decides(r, "CIX=1 make test", RULE_NONE);
    decides(r, "CI=1", RULE_NONE);
    /* Outside a shell the word is the program. */
    assert_int_equal(yard_decide_as(r, "CI=yes make test", &as).decision, RULE_NONE);
    yard_rule(r, RULE_FORBID, "rm");
    decides(r, "A=b rm x", RULE_FORBID);
    decides(r, "a[0]=b rm x", RULE_FORBID);
    decides(r, "a+=b rm x", RULE_FORBID);
    add_word(&yard_rule(r, RULE_FORBID, "git")->env, "GIT_DIR");
    decides(r, "git status", RULE_NONE);
    decides(r, "A=1 GIT_DIR=x git status", RULE_FORBID);
}

static void
a_directory_bounds_an_allowing_rule_and_an_unknown_one_is_outside(void **state)
{
    struct rules *r = *state;
    struct rule_script as = {.is_whole = true};

    add_word(&yard_rule(r, RULE_ALLOW, "make")->cwds, "/work");
    add_word(&yard_rule(r, RULE_FORBID, "git push")->cwds, "/work/secret");
    yard_rule(r, RULE_ALLOW, "cd");
    decides(r, "make", RULE_ALLOW);
    as.cwd = "/work/sub";
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_ALLOW);
    as.cwd = "/works";
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_NONE);
    as.cwd = NULL;
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_NONE);
    assert_int_equal(yard_decide_as(r, "git push", &as).decision, RULE_FORBID);
    decides(r, "git push", RULE_NONE);
    decides(r, "make ; cd /elsewhere", RULE_ALLOW);
    decides(r, "cd /elsewhere ; make", RULE_NONE);
    decides(r, "cd secret ; git push", RULE_FORBID);
    decides(r, "builtin cd secret ; git push", RULE_FORBID);
}

static void
a_relative_program_is_allowed_in_its_own_directory_alone(void **state)
{
    struct rules *r = *state;
    struct rule_script as = {.is_whole = true, .cwd = "/work"};

    add_word(&yard_rule(r, RULE_ALLOW, "./gradlew")->cwds, "/work");
    assert_int_equal(yard_decide_as(r, "./gradlew build", &as).decision, RULE_ALLOW);
    assert_int_equal(yard_decide_as(r, "gradlew build", &as).decision, RULE_NONE);
    as.cwd = "/work/evil";
    assert_int_equal(yard_decide_as(r, "./gradlew build", &as).decision, RULE_NONE);
}

static void
an_expired_rule_says_nothing(void **state)
{
    struct rules *r = *state;
    struct rule_script as = {.is_whole = true, .now = 99};

    yard_rule(r, RULE_ALLOW, "make")->expires = 100;
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_ALLOW);
    as.now = 100;
    assert_int_equal(yard_decide_as(r, "make", &as).decision, RULE_NONE);
}

static enum sy_code
steer_and_compare(void *arg)
{
    const struct rule *r = arg;
    struct strv out = {.max = 16};
    char *const words[] = {mem_unconst("pip"), mem_unconst("install"), mem_unconst("a"),
                           mem_unconst("b"), NULL};
    const struct strv argv = {.v = mem_unconst(words), .n = 4};
    enum sy_code rc = rule_steer(&out, r, &argv, true);
    bool is_right = rc != SY_E_OK || (out.n == 5 && str_eq(out.v[3], "a") && str_eq(out.v[4], "b"));

    strv_fini(&out);
    assert_true(is_right);
    return rc;
}

static void
a_better_command_is_told_and_run_only_where_it_stands_for_all(void **state)
{
    struct rules *r = *state;
    struct rule *steer = yard_rule(r, RULE_FORBID, "pip install");
    struct rule_verdict v;

    strv_fini(&steer->steer);
    yard_words(&steer->steer, "uv pip install {rest}");
    steer->steer_runs = true;
    v = yard_decide(r, "pip install a b");
    assert_int_equal(v.decision, RULE_FORBID);
    assert_true(v.steers && v.steer_runs);
    assert_non_null(strstr(v.reason, "better: uv pip install {rest}"));
    fault_run(steer_and_compare, steer);
    assert_true(yard_decide(r, "pip install a ; make").steers);
    assert_false(yard_decide(r, "pip install a ; make").steer_runs);
    assert_false(yard_decide(r, "A=b pip install a").steer_runs);
    /* To tell is stricter than to run, and a plain prohibition than both. */
    steer = yard_rule(r, RULE_FORBID, "pip install");
    strv_fini(&steer->steer);
    yard_words(&steer->steer, "echo no");
    v = yard_decide(r, "pip install a b");
    assert_true(v.steers && !v.steer_runs);
    yard_rule(r, RULE_FORBID, "pip");
    assert_false(yard_decide(r, "pip install a b").steers);
}

static void
network_rules_are_by_host_and_protocol_and_the_strictest_wins(void **state)
{
    struct rules *r = *state;
    const struct rule_network *by = NULL;

    for (int i = 0; i < 2; i++) {
        struct rule_network n = {.host = mem_strdup("example.com"),
                                 .protocol = RULE_PROTOCOL_HTTPS,
                                 .decision = i == 0 ? RULE_FORBID : RULE_ALLOW};

        assert_int_equal(rules_add_network(r, &n), SY_E_OK);
    }
    assert_int_equal(rules_decide_network(r, "Example.com", RULE_PROTOCOL_HTTPS, &by), RULE_FORBID);
    assert_ptr_equal(by, &r->network[0]);
    assert_int_equal(rules_decide_network(r, "example.com", RULE_PROTOCOL_HTTP, &by), RULE_NONE);
    assert_null(by);
    assert_int_equal(rules_decide_network(r, "a.example.com", RULE_PROTOCOL_HTTPS, NULL),
                     RULE_NONE);
}

static void
names_that_could_deceive_are_harmless_in_a_reason(void **state)
{
    static const char euros[] =
        "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
        "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
    struct rules *r = *state;

    yard_rule(r, RULE_FORBID, "rm");
    /* A long one is cut between characters. */
    for (const char *pad = "xxxx"; *pad != '\0'; pad++) {
        char line[128];
        struct rule_verdict v;

        (void)snprintf(line, sizeof(line), "rm %s%s%s%s", pad, euros, " ", euros);
        v = yard_decide(r, line);
        assert_true(utf8_is_valid(v.reason, strlen(v.reason)));
    }
    assert_null(strchr(yard_decide(r, "rm \x1b[2J\xe2\x80\x8b").reason, '\x1b'));
    assert_non_null(strstr(yard_decide(r, "rm \x1b[2J").reason, "'rm ?[2J' is forbidden"));
}

static void
more_rules_than_the_limit_are_refused(void **state)
{
    struct rules *r = *state;
    struct rule one = {.decision = RULE_ASK};

    for (size_t i = 0; i < 2048; i++) {
        assert_int_equal(rules_add(r, &one), SY_E_OK);
        one.decision = RULE_ASK;
    }
    assert_int_equal(rules_add(r, &one), SY_E_LIMIT);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_prefix_with_alternatives_at_each_position_matches),
        T(the_strictest_of_all_rules_wins_whatever_their_order),
        T(a_script_is_allowed_only_if_each_command_is),
        T(the_commands_that_rules_allow_are_told_one_by_one),
        T(what_is_not_the_whole_script_allows_nothing),
        T(the_sandbox_is_lifted_only_if_each_commands_rules_say_so),
        T(an_allowing_rule_takes_no_other_program_of_that_name),
        T(a_forbidding_rule_takes_whatever_may_be_that_program),
        T(assignments_are_for_rules_that_name_them),
        T(a_directory_bounds_an_allowing_rule_and_an_unknown_one_is_outside),
        T(a_relative_program_is_allowed_in_its_own_directory_alone),
        T(an_expired_rule_says_nothing),
        T(a_better_command_is_told_and_run_only_where_it_stands_for_all),
        T(network_rules_are_by_host_and_protocol_and_the_strictest_wins),
        T(names_that_could_deceive_are_harmless_in_a_reason),
        T(more_rules_than_the_limit_are_refused),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
