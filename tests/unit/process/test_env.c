#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <stdio.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "env_check.h"
#include "fault.h"
#include "process/env.h"

/* Builds with `base` a list of literals; fails the test when the build does. */
static struct strv
built(const struct env_policy *policy, const char *const *base, const char *const *extra,
      struct env_facts facts)
{
    SY_AUTO(strv_fini) struct strv base_list = {.max = LIMIT_ENV};
    SY_AUTO(strv_fini) struct strv extra_list = {.max = LIMIT_ENV};
    struct strv ret = {.max = LIMIT_ENV};

    for (; base != NULL && *base != NULL; base++) {
        assert_int_equal(strv_add(&base_list, *base), SY_E_OK);
    }
    for (; extra != NULL && *extra != NULL; extra++) {
        assert_int_equal(strv_add(&extra_list, *extra), SY_E_OK);
    }
    assert_int_equal(env_build(&ret, policy, strv_view(&base_list), strv_view(&extra_list), &facts),
                     SY_E_OK);
    return ret;
}

static const struct env_facts online = {.has_network = true};
static const struct env_policy plain = {.inherit = ENV_INHERIT_ALL, .default_excludes = true};

static void
secrets_of_the_server_stay_behind(void **state)
{
    static const char *const base[] = {
        "PATH=/usr/bin",
        "HOME=/home/u",
        "LANG=en_GB.UTF-8",
        "MY_PLAIN=keepme",
        "OPENAI_API_KEY=sk-test-0000",
        "GH_TOKEN=x",
        "AWS_SECRET_ACCESS_KEY=y",
        "DB_PASSWORD=z",
        "github_token=lower",
        "VAULT_PASSWD=p",
        "KEY_PASSPHRASE=p",
        "GOOGLE_APPLICATION_CREDENTIALS=/f",
        "SMTP_PASS=p",
        "MYSQL_PWD=p",
        "SSHPASS=p",
        "SSH_AUTH_SOCK=/run/agent",
        "SSH_AGENT_PID=12",
        "GIT_CONFIG_COUNT=1",
        "GIT_CONFIG_KEY_0=http.extraHeader",
        "GIT_CONFIG_VALUE_0=Authorization: x",
        "OLDPWD=/old",
        "COMPASS=north",
        NULL,
    };
    static const char *const gone[] = {
        "OPENAI_API_KEY",     "GH_TOKEN",         "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",        "github_token",     "VAULT_PASSWD",
        "SMTP_PASS",          "KEY_PASSPHRASE",   "GOOGLE_APPLICATION_CREDENTIALS",
        "MYSQL_PWD",          "SSHPASS",          "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",      "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_VALUE_0",
    };

    (void)state;
    SY_AUTO(strv_fini) struct strv env = built(&plain, base, NULL, online);

    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        assert_env(&env, gone[i], NULL);
    }
    assert_env(&env, "PATH", "/usr/bin");
    assert_env(&env, "HOME", "/home/u");
    assert_env(&env, "LANG", "en_GB.UTF-8");
    assert_env(&env, "MY_PLAIN", "keepme");
    assert_env(&env, "OLDPWD", "/old");
    assert_env(&env, "COMPASS", "north");

    /* What we set ourselves is not taken for a secret. */
    assert_env(&env, "GIT_ASKPASS", "false");
    assert_env(&env, "SUDO_ASKPASS", "false");
}

static void
a_call_and_a_policy_can_add_a_secret_back(void **state)
{
    static const char *const base[] = {"GH_TOKEN=server", "DB_PASSWORD=server", NULL};
    static const char *const extra[] = {"GH_TOKEN=call", NULL};
    struct env_policy policy = {.inherit = ENV_INHERIT_ALL, .default_excludes = true};

    (void)state;
    policy.set.max = 4;
    assert_int_equal(strv_add(&policy.set, "DB_PASSWORD=policy"), SY_E_OK);

    SY_AUTO(strv_fini) struct strv env = built(&policy, base, extra, online);

    assert_env(&env, "GH_TOKEN", "call");
    assert_env(&env, "DB_PASSWORD", "policy");
    env_policy_fini(&policy);
}

static void
default_excludes_can_be_switched_off(void **state)
{
    static const char *const base[] = {"GH_TOKEN=x", "SSH_AUTH_SOCK=/s", NULL};
    const struct env_policy policy = {.inherit = ENV_INHERIT_ALL};

    (void)state;
    SY_AUTO(strv_fini) struct strv env = built(&policy, base, NULL, online);

    assert_env(&env, "GH_TOKEN", "x");
    assert_env(&env, "SSH_AUTH_SOCK", "/s");
}

static void
nothing_that_runs_code_passes_whoever_sets_it(void **state)
{
    static const char *const hostile[] = {
        "LD_PRELOAD=/x.so",
        "LD_LIBRARY_PATH=/x",
        "DYLD_INSERT_LIBRARIES=/x",
        "BASH_ENV=/x",
        "ENV=/x",
        "PROMPT_COMMAND=x",
        "BASH_FUNC_ls%%=() { x; }",
        "SHELLOPTS=xtrace",
        "BASHOPTS=extdebug",
        "BASH_XTRACEFD=3",
        "SHELLYARD_CONFIG=/x",
        "SHELLYARD=0",
        "CODEX_SANDBOX=seatbelt",
        "CODEX_SANDBOX_NETWORK_DISABLED=1",
        "ENVOY=stays",
        NULL,
    };
    struct env_policy policy = {.inherit = ENV_INHERIT_ALL};

    (void)state;
    policy.set.max = 100;
    for (size_t i = 0; hostile[i] != NULL; i++) {
        assert_int_equal(strv_add(&policy.set, hostile[i]), SY_E_OK);
    }

    SY_AUTO(strv_fini) struct strv env = built(&policy, hostile, hostile, online);

    for (size_t i = 0; hostile[i] != NULL; i++) {
        SY_AUTO(mem_free_charp) char *name = mem_strndup(hostile[i], strcspn(hostile[i], "="));

        if (strcmp(name, "SHELLYARD") != 0 && strcmp(name, "ENVOY") != 0) {
            assert_env(&env, name, NULL);
        }
    }
    assert_env(&env, "SHELLYARD", "1");
    assert_env(&env, "ENVOY", "stays");
    env_policy_fini(&policy);
}

static void
core_inherits_the_core_and_none_nothing(void **state)
{
    static const char *const base[] = {
        "PATH=/bin",
        "HOME=/h",
        "SHELL=/bin/zsh",
        "USER=u",
        "LOGNAME=u",
        "TMPDIR=/t",
        "EXTRA=x",
        "LANG=de_DE.utf8",
        "https_Proxy",
        "LC_MESSAGES=de_DE.UTF-8",
        "Path=win",
        "PATHEXT=x",
        NULL,
    };
    struct env_policy policy = {.inherit = ENV_INHERIT_CORE, .default_excludes = true};

    (void)state;
    SY_AUTO(strv_fini) struct strv core = built(&policy, base, NULL, online);

    assert_env(&core, "PATH", "/bin");
    assert_env(&core, "Path", "win");
    assert_env(&core, "HOME", "/h");
    assert_env(&core, "SHELL", "/bin/zsh");
    assert_env(&core, "USER", "u");
    assert_env(&core, "LOGNAME", "u");
    assert_env(&core, "TMPDIR", "/t");
    assert_env(&core, "LANG", "de_DE.utf8");
    assert_env(&core, "EXTRA", NULL);
    assert_env(&core, "PATHEXT", NULL);
    assert_env(&core, "LC_MESSAGES", NULL);

    policy.inherit = ENV_INHERIT_NONE;

    SY_AUTO(strv_fini) struct strv none = built(&policy, base, NULL, online);

    assert_env(&none, "PATH", NULL);
    assert_env(&none, "HOME", NULL);
    assert_env(&none, "LANG", "C.UTF-8");
    assert_env(&none, "SHELLYARD", "1");
}

static void
steps_come_in_their_order(void **state)
{
    static const char *const base[] = {"A_ONE=1", "A_TWO=2", "B_ONE=1", "C=c", NULL};
    static const char *const extra[] = {"FROM_CALL=x", NULL};
    struct env_policy policy = {.inherit = ENV_INHERIT_ALL, .default_excludes = true};

    (void)state;
    policy.exclude.max = policy.set.max = policy.include_only.max = 4;
    assert_int_equal(strv_add(&policy.exclude, "a_*"), SY_E_OK);
    assert_int_equal(strv_add(&policy.set, "A_TWO=set"), SY_E_OK);
    assert_int_equal(strv_add(&policy.set, "D=set"), SY_E_OK);
    assert_int_equal(strv_add(&policy.include_only, "?_*"), SY_E_OK);

    SY_AUTO(strv_fini) struct strv env = built(&policy, base, extra, online);

    assert_env(&env, "A_ONE", NULL);    /* excluded */
    assert_env(&env, "A_TWO", "set");   /* excluded, then set */
    assert_env(&env, "B_ONE", "1");     /* inherited and included */
    assert_env(&env, "C", NULL);        /* not included */
    assert_env(&env, "D", NULL);        /* include_only removes set values too */
    assert_env(&env, "FROM_CALL", "x"); /* a call's own come after all that */
    assert_env(&env, "PAGER", "cat");   /* and so does what must hold */
    assert_env(&env, "LANG", "C.UTF-8");
    env_policy_fini(&policy);
}

static void
no_pager_waits_for_a_key(void **state)
{
    static const char *const base[] = {
        "PAGER=less",     "GIT_PAGER=less",      "LESS=",
        "BAT_PAGER=less", "AWS_PAGER=less",      "TERM=xterm-256color",
        "FORCE_COLOR=1",  "COLORTERM=truecolor", NULL};

    (void)state;
    SY_AUTO(strv_fini) struct strv env = built(&plain, base, NULL, online);

    assert_env(&env, "PAGER", "cat");
    assert_env(&env, "GIT_PAGER", "cat");
    assert_env(&env, "GH_PAGER", "cat");
    assert_env(&env, "MANPAGER", "cat");
    assert_env(&env, "SYSTEMD_PAGER", "cat");
    assert_env(&env, "AWS_PAGER", "cat");
    assert_env(&env, "BAT_PAGER", NULL);
    assert_env(&env, "TERM", "dumb");
    assert_env(&env, "NO_COLOR", "1");
    assert_env(&env, "COLORTERM", "");
    assert_env(&env, "FORCE_COLOR", NULL);
}

static void
a_session_has_the_variables_of_the_specification(void **state)
{
    static const char *const base[] = {"LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8", "TERM=xterm",
                                       "COLORTERM=truecolor", NULL};
    static const char *const golden[][2] = {
        {"NO_COLOR",  "1"      },
        {"TERM",      "dumb"   },
        {"LANG",      "C.UTF-8"},
        {"LC_CTYPE",  "C.UTF-8"},
        {"COLORTERM", ""       },
        {"LC_ALL",    "C.UTF-8"},
        {"PAGER",     "cat"    },
        {"GIT_PAGER", "cat"    },
        {"GH_PAGER",  "cat"    },
        {"CODEX_CI",  "1"      },
    };

    (void)state;
    SY_AUTO(strv_fini)
    struct strv env =
        built(&plain, base, NULL, (struct env_facts){.has_network = true, .is_session = true});

    for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
        assert_env(&env, golden[i][0], golden[i][1]);
    }

    SY_AUTO(strv_fini) struct strv one_shot = built(&plain, base, NULL, online);

    assert_env(&one_shot, "CODEX_CI", NULL);
    assert_env(&one_shot, "LC_ALL", "de_DE.UTF-8");

    /* ssh asks where somebody can answer. */
    SY_AUTO(strv_fini)
    struct strv terminal =
        built(&plain, base, NULL,
              (struct env_facts){.has_network = true, .is_session = true, .has_terminal = true});

    assert_env(&one_shot, "SSH_ASKPASS_REQUIRE", "force");
    assert_env(&env, "SSH_ASKPASS_REQUIRE", "force");
    assert_env(&terminal, "SSH_ASKPASS_REQUIRE", "never");
    assert_env(&terminal, "CODEX_CI", "1");
    assert_env(&terminal, "GIT_TERMINAL_PROMPT", "0");
}

static void
tells_which_names_never_pass(void **state)
{
    (void)state;
    assert_true(env_never_passes("LD_PRELOAD=x"));
    assert_true(env_never_passes("BASH_ENV="));
    assert_true(env_never_passes("ENV=x"));
    assert_false(env_never_passes("ENVIRONMENT=x"));
    assert_false(env_never_passes("PATH=/bin"));
    assert_false(env_never_passes(""));
    assert_false(env_never_passes("=LD_PRELOAD"));
}

static void
the_locale_is_the_users_if_it_is_utf8(void **state)
{
    static const struct {
        const char *base[4];
        const char *lang;
        const char *lc_all;
        const char *lc_ctype;
    } cases[] = {
        {{NULL},                                  "C.UTF-8",          NULL,          NULL     },
        {{"LANG="},                               "C.UTF-8",          NULL,          NULL     },
        {{"LANG=C"},                              "C.UTF-8",          NULL,          NULL     },
        {{"LANG=POSIX", "LC_ALL=POSIX"},          "C.UTF-8",          "C.UTF-8",     NULL     },
        {{"LANG=de_DE.UTF-8"},                    "de_DE.UTF-8",      NULL,          NULL     },
        {{"LANG=sr_RS.utf8@latin", "LC_CTYPE=C"}, "sr_RS.utf8@latin", NULL,          "C.UTF-8"},
        {{"LANG=de_DE.ISO-8859-1", "LC_ALL="},    "C.UTF-8",          "",            NULL     },
        {{"LC_ALL=en_US.UTF-8"},                  "C.UTF-8",          "en_US.UTF-8", NULL     },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(strv_fini) struct strv env = built(&plain, cases[i].base, NULL, online);

        assert_env(&env, "LANG", cases[i].lang);
        assert_env(&env, "LC_ALL", cases[i].lc_all);
        assert_env(&env, "LC_CTYPE", cases[i].lc_ctype);
    }
}

static void
who_names_a_variable_means_it(void **state)
{
    static const char *const base[] = {"EDITOR=sleep 600", "PAGER=less", NULL};
    static const char *const extra[] = {"GIT_SEQUENCE_EDITOR=sed -i s/pick/drop/", "TERM=xterm",
                                        "LANG=C", NULL};
    struct env_policy policy = {.inherit = ENV_INHERIT_ALL, .default_excludes = true};

    (void)state;
    policy.set.max = 4;
    assert_int_equal(strv_add(&policy.set, "PAGER=head"), SY_E_OK);
    assert_int_equal(strv_add(&policy.set, "FORCE_COLOR=1"), SY_E_OK);
    assert_int_equal(strv_add(&policy.set, "LC_ALL=C"), SY_E_OK);

    SY_AUTO(strv_fini) struct strv env = built(&policy, base, extra, online);

    assert_env(&env, "EDITOR", "false");
    assert_env(&env, "PAGER", "head");
    assert_env(&env, "FORCE_COLOR", "1");
    assert_env(&env, "LC_ALL", "C");
    assert_env(&env, "GIT_SEQUENCE_EDITOR", "sed -i s/pick/drop/");
    assert_env(&env, "TERM", "xterm");
    assert_env(&env, "LANG", "C");
    env_policy_fini(&policy);
}

static void
the_sandbox_is_told_by_the_facts_alone(void **state)
{
    static const char *const base[] = {"CODEX_SANDBOX=old", "CODEX_SANDBOX_NETWORK_DISABLED=1",
                                       "TMPDIR=/old", NULL};

    (void)state;
    SY_AUTO(strv_fini) struct strv open = built(&plain, base, NULL, online);

    assert_env(&open, "CODEX_SANDBOX", NULL);
    assert_env(&open, "CODEX_SANDBOX_NETWORK_DISABLED", NULL);
    assert_env(&open, "TMPDIR", "/old");
    assert_env(&open, "SHELLYARD", "1");

    SY_AUTO(strv_fini)
    struct strv closed =
        built(&plain, base, NULL, (struct env_facts){.sandbox_tag = "seatbelt", .tmpdir = "/new"});

    assert_env(&closed, "CODEX_SANDBOX", "seatbelt");
    assert_env(&closed, "CODEX_SANDBOX_NETWORK_DISABLED", "1");
    assert_env(&closed, "TMPDIR", "/new");
}

static void
an_inherited_working_directory_is_the_one_of_the_command(void **state)
{
    static const char *const base[] = {"PWD=/engine", "OLDPWD=/before", NULL};
    static const char *const by_link[] = {"PWD=/proc/self/root", NULL};
    static const char *const chosen[] = {"PWD=/call", NULL};
    const struct env_facts facts = {.has_network = true, .cwd = "/"};

    (void)state;
    SY_AUTO(strv_fini) struct strv stale = built(&plain, base, NULL, facts);
    SY_AUTO(strv_fini) struct strv same = built(&plain, by_link, NULL, facts);
    SY_AUTO(strv_fini) struct strv asked = built(&plain, base, chosen, facts);
    SY_AUTO(strv_fini) struct strv none = built(&plain, NULL, NULL, facts);

    assert_env(&stale, "PWD", "/");
    assert_env(&stale, "OLDPWD", "/before");
    assert_env(&same, "PWD", "/proc/self/root");
    assert_env(&asked, "PWD", "/call");
    assert_env(&none, "PWD", NULL);
}

static void
malformed_entries_are_dropped_and_the_first_of_two_stays(void **state)
{
    SY_AUTO(mem_free_charp) char *huge = mem_alloc_zero(LIMIT_ARG_STRLEN + 10, 1);
    SY_AUTO(mem_free_charp) char *longest = mem_alloc_zero(LIMIT_ARG_STRLEN, 1);
    const char *const base[] = {
        "NOVALUE", "=empty", "",       "SP ACE=x", "CTRL\x01=x",
        "GOOD=1",  "GOOD=2", "EQ=a=b", "EMPTY=",   "npm_config_@a:registry=x",
        huge,      longest,  "\xff=x", NULL,
    };

    (void)state;
    memset(huge, '=', LIMIT_ARG_STRLEN);
    huge[0] = 'H';
    memset(longest, '=', LIMIT_ARG_STRLEN - 1);
    longest[0] = 'L';

    SY_AUTO(strv_fini) struct strv env = built(&plain, base, NULL, online);

    assert_env(&env, "GOOD", "1");
    assert_env(&env, "EQ", "a=b");
    assert_env(&env, "EMPTY", "");
    assert_env(&env, "npm_config_@a:registry", "x");
    assert_env(&env, "H", NULL);
    assert_non_null(strv_env_get(&env, "L"));
    for (size_t i = 0; i < env.n; i++) {
        const char *equals = strchr(env.v[i], '=');

        assert_non_null(equals);
        assert_ptr_not_equal(equals, env.v[i]);
        for (size_t j = 0; j < i; j++) {
            size_t n = (size_t)(equals - env.v[i]) + 1;

            assert_int_not_equal(strncmp(env.v[i], env.v[j], n), 0);
        }
    }
    assert_env(&env, "SP ACE", NULL);
    assert_env(&env, "CTRL\x01", NULL);
    assert_env(&env, "\xff", NULL);
}

static void
malformed_entries_of_a_call_are_its_mistake(void **state)
{
    static const char *const bad[] = {"NOVALUE", "=x", "", "A B=x"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        SY_AUTO(strv_fini) struct strv ret = {.max = LIMIT_ENV};
        SY_AUTO(strv_fini) struct strv extra = {.max = 2};

        assert_int_equal(strv_add(&extra, bad[i]), SY_E_OK);
        assert_int_equal(env_build(&ret, &plain, NULL, strv_view(&extra), &online), SY_E_ARG);
    }
}

static void
inherit_has_three_names(void **state)
{
    enum env_inherit v = ENV_INHERIT_NONE;

    (void)state;
    assert_true(env_inherit_parse(&v, "all"));
    assert_int_equal(v, ENV_INHERIT_ALL);
    assert_true(env_inherit_parse(&v, "core"));
    assert_int_equal(v, ENV_INHERIT_CORE);
    assert_true(env_inherit_parse(&v, "none"));
    assert_int_equal(v, ENV_INHERIT_NONE);
    v = ENV_INHERIT_CORE;
    assert_false(env_inherit_parse(&v, "All"));
    assert_false(env_inherit_parse(&v, ""));
    assert_int_equal(v, ENV_INHERIT_CORE);
}

static enum sy_code
build_once(void *arg)
{
    SY_AUTO(strv_fini) struct strv ret = {.max = LIMIT_ENV};
    char path[] = "PATH=/bin";
    char lang[] = "LANG=C";
    char lc_all[] = "LC_ALL=C";
    char mine[] = "MINE=1";
    char *const base[] = {path, lang, lc_all, NULL};
    char *const extra[] = {mine, path, NULL};
    const struct env_facts facts = {.tmpdir = "/t", .sandbox_tag = "seatbelt"};

    return env_build(&ret, arg, base, extra, &facts);
}

static void
environments_survive_each_failed_allocation(void **state)
{
    struct env_policy policy = {.inherit = ENV_INHERIT_ALL, .default_excludes = true};

    (void)state;
    policy.set.max = policy.include_only.max = 4;
    assert_int_equal(strv_add(&policy.set, "A=b"), SY_E_OK);
    assert_int_equal(strv_add(&policy.set, "PATH=/sbin"), SY_E_OK);
    assert_int_equal(strv_add(&policy.include_only, "*A*"), SY_E_OK);
    fault_run(build_once, &policy);
    env_policy_fini(&policy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_of_the_server_stay_behind),
        cmocka_unit_test(a_call_and_a_policy_can_add_a_secret_back),
        cmocka_unit_test(default_excludes_can_be_switched_off),
        cmocka_unit_test(nothing_that_runs_code_passes_whoever_sets_it),
        cmocka_unit_test(core_inherits_the_core_and_none_nothing),
        cmocka_unit_test(steps_come_in_their_order),
        cmocka_unit_test(no_pager_waits_for_a_key),
        cmocka_unit_test(a_session_has_the_variables_of_the_specification),
        cmocka_unit_test(tells_which_names_never_pass),
        cmocka_unit_test(the_locale_is_the_users_if_it_is_utf8),
        cmocka_unit_test(who_names_a_variable_means_it),
        cmocka_unit_test(the_sandbox_is_told_by_the_facts_alone),
        cmocka_unit_test(an_inherited_working_directory_is_the_one_of_the_command),
        cmocka_unit_test(malformed_entries_are_dropped_and_the_first_of_two_stays),
        cmocka_unit_test(malformed_entries_of_a_call_are_its_mistake),
        cmocka_unit_test(inherit_has_three_names),
        cmocka_unit_test(environments_survive_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
