/* The login environment beside the engine's, and git in what comes of it. */
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
#include "env_check.h"
#include "fault.h"
#include "process/env.h"

static const struct env_facts online = {.has_network = true};
static const struct env_policy plain = {.inherit = ENV_INHERIT_ALL, .default_excludes = true};

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

static void
what_ssh_sets_makes_no_bash_read_its_rc(void **state)
{
    static const struct {
        const char *entries[3];
        const char *level;
    } cases[] = {
        {{"SSH_CLIENT=::1 1 22"},              "1"  },
        {{"SSH_CLIENT=::1 1 22", "SHLVL=0"},   "1"  },
        {{"SSH2_CLIENT=::1 1 22", "SHLVL="},   "1"  },
        {{"SSH_CLIENT=", "SHLVL=-3"},          "1"  },
        {{"SSH_CLIENT=::1 1 22", "SHLVL=999"}, "1"  },
        {{"SSH_CLIENT=::1 1 22", "SHLVL=998"}, "998"},
        {{"SSH_CLIENT=::1 1 22", "SHLVL=2"},   "2"  },
        {{"SSH_CONNECTION=::1 1 ::1 22"},      NULL },
        {{"SSH_CONNECTION=::1 1", "SHLVL=0"},  "0"  },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        /* From the engine, and from the call. */
        for (int by_call = 0; by_call < 2; by_call++) {
            SY_AUTO(strv_fini) struct strv list = {.max = 8};
            SY_AUTO(strv_fini) struct strv env = {.max = LIMIT_ENV};

            for (size_t k = 0; cases[i].entries[k] != NULL; k++) {
                assert_int_equal(strv_add(&list, cases[i].entries[k]), SY_E_OK);
            }
            assert_int_equal(env_build(&env, &plain, by_call ? NULL : strv_view(&list),
                                       by_call ? strv_view(&list) : NULL, &online),
                             SY_E_OK);
            assert_env(&env, "SHLVL", cases[i].level);
        }
    }
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
merging_survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(merge_once, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_that_resets_path_loses_no_directory),
        cmocka_unit_test(a_missing_path_is_taken_from_the_other_side),
        cmocka_unit_test(what_ssh_sets_makes_no_bash_read_its_rc),
        cmocka_unit_test(git_fails_at_once_where_it_would_ask),
        cmocka_unit_test(merging_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
