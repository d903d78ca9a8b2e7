#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
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
assert_env(const struct strv *env, const char *name, const char *value)
{
    const char *got = strv_env_get(env, name);

    if (value == NULL && got != NULL) {
        fail_msg("%s is '%s', not unset", name, got);
    }
    if (value != NULL && (got == NULL || strcmp(got, value) != 0)) {
        fail_msg("%s is '%s', not '%s'", name, got != NULL ? got : "(unset)", value);
    }
}

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
        "OLDPWD=/old",
        "COMPASS=north",
        NULL,
    };
    static const char *const gone[] = {
        "OPENAI_API_KEY", "GH_TOKEN",       "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",    "github_token",   "VAULT_PASSWD",
        "SMTP_PASS",      "KEY_PASSPHRASE", "GOOGLE_APPLICATION_CREDENTIALS",
        "MYSQL_PWD",      "SSHPASS",        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
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

static struct strv
merged(const char *const *engine, const char *const *login)
{
    SY_AUTO(strv_fini) struct strv engine_list = {.max = LIMIT_ENV};
    SY_AUTO(strv_fini) struct strv login_list = {.max = LIMIT_ENV};
    struct strv ret = {.max = LIMIT_ENV};

    for (; *engine != NULL; engine++) {
        assert_int_equal(strv_add(&engine_list, *engine), SY_E_OK);
    }
    for (; *login != NULL; login++) {
        assert_int_equal(strv_add(&login_list, *login), SY_E_OK);
    }
    assert_int_equal(env_merge_login(&ret, strv_view(&engine_list), strv_view(&login_list)),
                     SY_E_OK);
    return ret;
}

static void
a_profile_that_resets_path_loses_no_directory(void **state)
{
    static const char *const engine[] = {"PATH=/opt/mytool/bin:/usr/bin::/bin:/usr/bin/x",
                                         "PWD=/w",
                                         "SHLVL=1",
                                         "ONLY_ENGINE=e",
                                         "BOTH=engine",
                                         "PS1=engine$ ",
                                         NULL};
    static const char *const login[] = {"PATH=/usr/bin:/bin",
                                        "PWD=/home/u",
                                        "OLDPWD=/x",
                                        "SHLVL=2",
                                        "_=/usr/bin/env",
                                        "PS1=login$ ",
                                        "ONLY_LOGIN=l",
                                        "BOTH=login",
                                        "BOTH=second",
                                        "garbage",
                                        NULL};

    (void)state;
    SY_AUTO(strv_fini) struct strv env = merged(engine, login);

    assert_env(&env, "PATH", "/usr/bin:/bin:/opt/mytool/bin:/usr/bin/x");
    assert_env(&env, "PWD", "/w");
    assert_env(&env, "OLDPWD", NULL);
    assert_env(&env, "SHLVL", "1");
    assert_env(&env, "_", NULL);
    assert_env(&env, "PS1", "engine$ ");
    assert_env(&env, "ONLY_ENGINE", "e");
    assert_env(&env, "ONLY_LOGIN", "l");
    assert_env(&env, "BOTH", "login");
    assert_int_equal(env.n, 7);
}

static void
a_missing_path_is_taken_from_the_other_side(void **state)
{
    static const char *const with_path[] = {"PATH=/a:/b", NULL};
    static const char *const without[] = {"X=1", NULL};
    static const char *const empty[] = {"PATH=", NULL};

    (void)state;
    SY_AUTO(strv_fini) struct strv one = merged(with_path, without);
    SY_AUTO(strv_fini) struct strv two = merged(without, with_path);
    SY_AUTO(strv_fini) struct strv three = merged(with_path, empty);
    SY_AUTO(strv_fini) struct strv four = merged(empty, with_path);
    SY_AUTO(strv_fini) struct strv five = merged(without, without);

    assert_env(&one, "PATH", "/a:/b");
    assert_env(&two, "PATH", "/a:/b");
    assert_env(&three, "PATH", "/a:/b");
    assert_env(&four, "PATH", "/a:/b");
    assert_env(&five, "PATH", NULL);
    assert_int_equal(five.n, 1);
}

/* Runs a program with the environment in the directory; its exit status. */
static int
run(const char *dir, const struct strv *env, const char *const *words)
{
    SY_AUTO(strv_fini) struct strv argv = {.max = 20};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = 0;

    for (; *words != NULL; words++) {
        assert_int_equal(strv_add(&argv, *words), SY_E_OK);
    }
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 1, 2), 0);
    assert_int_equal(posix_spawn_file_actions_addchdir_np(&actions, dir), 0);

    int rc = posix_spawnp(&pid, argv.v[0], &actions, NULL, argv.v, strv_view(env));

    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        return 127;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void
git_fails_at_once_where_it_would_ask(void **state)
{
    static const char *const version[] = {"git", "--version", NULL};
    static const char *const setup[] = {
        "sh", "-c",
        "git init -q . && git config user.name n && git config user.email e@example.org && "
        "for i in 1 2 3; do echo $i >f && git add f && git commit -qm c$i || exit 1; done && "
        "git rev-parse HEAD >before && echo 4 >f && git add f",
        NULL};
    static const char *const commit[] = {"git", "commit", NULL};
    static const char *const amend[] = {"git", "commit", "--amend", NULL};
    static const char *const stash[] = {"git", "stash", "-q", NULL};
    static const char *const rebase[] = {"git", "rebase", "-i", "HEAD~2", NULL};
    static const char *const unchanged[] = {
        "sh", "-c", "test \"$(git rev-parse HEAD)\" = \"$(cat before)\"", NULL};
    static const char *const merge[] = {"sh", "-c",
                                        "git checkout -q -b side HEAD~1 && echo s >g && "
                                        "git add g && git commit -qm side && git merge -q @{-1}",
                                        NULL};
    static const char *const hostile_base[] = {"EDITOR=sleep 600", "VISUAL=sleep 600",
                                               "GIT_SEQUENCE_EDITOR=true", NULL};
    const char *path = getenv("PATH");
    const char *tmp = getenv("TMPDIR");
    SY_AUTO(strv_fini) struct strv base = {.max = 10};
    SY_AUTO(strv_fini) struct strv env = {.max = LIMIT_ENV};
    SY_AUTO(buf_fini) struct buf dir = {.max = LIMIT_PATH};

    (void)state;
    assert_int_equal(buf_addf(&dir, "%s/test_env.XXXXXX", tmp != NULL ? tmp : "/tmp"), SY_E_OK);
    assert_non_null(mkdtemp(dir.data));
    for (size_t i = 0; hostile_base[i] != NULL; i++) {
        assert_int_equal(strv_add(&base, hostile_base[i]), SY_E_OK);
    }
    assert_int_equal(strv_env_set(&base, "PATH", path != NULL ? path : "/usr/bin:/bin"), SY_E_OK);
    /* No configuration of whoever runs the tests. */
    assert_int_equal(strv_env_set(&base, "HOME", dir.data), SY_E_OK);
    assert_int_equal(strv_env_set(&base, "GIT_CONFIG_NOSYSTEM", "1"), SY_E_OK);
    assert_int_equal(env_build(&env, &plain, strv_view(&base), NULL, &online), SY_E_OK);

    bool has_git = run(dir.data, &env, version) == 0;

    if (has_git) {
        assert_int_equal(run(dir.data, &env, setup), 0);
        assert_int_not_equal(run(dir.data, &env, commit), 0);
        assert_int_equal(run(dir.data, &env, unchanged), 0);
        assert_int_not_equal(run(dir.data, &env, amend), 0);
        assert_int_equal(run(dir.data, &env, unchanged), 0);
        assert_int_equal(run(dir.data, &env, stash), 0);
        assert_int_not_equal(run(dir.data, &env, rebase), 0);
        assert_int_equal(run(dir.data, &env, unchanged), 0);
        assert_int_equal(run(dir.data, &env, merge), 0);
    }
    assert_int_equal(nftw(dir.data, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    if (!has_git) {
        skip();
    }
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

static enum sy_code
merge_once(void *arg)
{
    SY_AUTO(strv_fini) struct strv ret = {.max = LIMIT_ENV};
    char engine_path[] = "PATH=/private/bin:/bin";
    char login_path[] = "PATH=/bin";
    char mine[] = "MINE=1";
    char *const engine[] = {engine_path, mine, NULL};
    char *const login[] = {login_path, NULL};

    (void)arg;
    return env_merge_login(&ret, engine, login);
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
    fault_run(merge_once, NULL);
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
        cmocka_unit_test(the_locale_is_the_users_if_it_is_utf8),
        cmocka_unit_test(who_names_a_variable_means_it),
        cmocka_unit_test(the_sandbox_is_told_by_the_facts_alone),
        cmocka_unit_test(malformed_entries_are_dropped_and_the_first_of_two_stays),
        cmocka_unit_test(malformed_entries_of_a_call_are_its_mistake),
        cmocka_unit_test(inherit_has_three_names),
        cmocka_unit_test(a_profile_that_resets_path_loses_no_directory),
        cmocka_unit_test(a_missing_path_is_taken_from_the_other_side),
        cmocka_unit_test(git_fails_at_once_where_it_would_ask),
        cmocka_unit_test(environments_survive_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
