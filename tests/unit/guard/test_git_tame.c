#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "command/safe.h"
#include "guard/git_tame.h"
#include "yard.h"

static bool
is_tame(const struct yard *y, const char *name)
{
    return git_tame_check(yard_path(y, name));
}

static void
harmless_settings_are_tame(void **state)
{
    const struct yard *y = *state;

    yard_mkdir(y, "W/a/.git");
    yard_mkdir(y, "W/a/src/deep");
    yard_file(y, "W/a/.git/config",
              "[core]\n\tbare = false\n[user]\n\tname = x\n[remote \"o\"]\n"
              "\turl = https://example.org/x\n");
    assert_true(is_tame(y, "W/a"));
    assert_true(is_tame(y, "W/a/src/deep"));
    yard_run(y, "git init -q fresh");
    assert_true(is_tame(y, "W/fresh"));
}

static void
whatever_may_start_a_program_is_not(void **state)
{
    static const char *const configs[] = {
        "[filter \"x\"]\n\tclean = touch pwn\n",
        "[diff \"x\"]\n\ttextconv = touch pwn\n",
        "[diff]\n\texternal = x\n",
        "[merge \"x\"]\n\tdriver = x\n",
        "[include]\n\tpath = x\n",
        "[includeIf \"gitdir:/\"]\n\tpath = x\n",
        "[gpg]\n\tprogram = x\n",
        "[core]\n\tpager = x\n",
        "[pager]\n\tlog = x\n",
        "[core]\n\tfsmonitor = x\n",
        "[unknown]\n\tkey = x\n",
        "[format]\n\tpretty = %G?\n",
        "[broken\n",
        "[core]\n\tsshCommand = x\n",
    };
    const struct yard *y = *state;

    yard_mkdir(y, "W/b/.git");
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        yard_file(y, "W/b/.git/config", configs[i]);
        if (is_tame(y, "W/b")) {
            fail_msg("tame: %s", configs[i]);
        }
    }
    yard_file(y, "W/b/.git/config", "[core]\n\tbare = false\n");
    assert_true(is_tame(y, "W/b"));
    yard_file(y, "W/b/.git/config.worktree", "[core]\n\tpager = x\n");
    assert_false(is_tame(y, "W/b"));
}

static void
what_is_not_looked_into_is_not(void **state)
{
    const struct yard *y = *state;

    yard_mkdir(y, "W/c");
    yard_file(y, "W/c/.git", "gitdir: /x\n");
    assert_false(is_tame(y, "W/c"));
    yard_mkdir(y, "W/d/objects");
    yard_mkdir(y, "W/d/refs");
    assert_true(is_tame(y, "W/d"));
    yard_file(y, "W/d/HEAD", "ref: x\n");
    assert_false(is_tame(y, "W/d"));
    assert_false(is_tame(y, "W/d/objects"));
    yard_mkdir(y, "W/e/.git/modules");
    assert_false(is_tame(y, "W/e"));
    assert_false(is_tame(y, "W/no/such/directory"));
    /* A link into a repository: git goes up from where it leads. */
    yard_mkdir(y, "W/f/.git");
    yard_mkdir(y, "W/evil/.git");
    yard_mkdir(y, "W/evil/sub");
    yard_file(y, "W/evil/.git/config", "[core]\n\tpager = x\n");
    yard_link(y, yard_path(y, "W/evil/sub"), "W/f/link");
    assert_true(is_tame(y, "W/f"));
    assert_false(is_tame(y, "W/f/link"));
}

/* Runs it as it is, where it must make the file pwn, and with the environment of safe
 * commands, where it must not. */
static void
expect_switched_off(const struct yard *y, const char *prepare, const char *line)
{
    SY_AUTO(buf_fini) struct buf b = {.max = 4096};

    yard_run(y, "rm -rf r pwn && git init -q r && cd r && git config user.name u && "
                "git config user.email u@example.org && echo 1 > a && git add a && "
                "git commit -qm one");
    assert_int_equal(buf_addf(&b, "cd r && %s", prepare), SY_E_OK);
    yard_run(y, buf_view(&b));
    buf_reset(&b);
    assert_int_equal(buf_addf(&b, "cd r && rm -f ../pwn && touch a && %s", line), SY_E_OK);
    (void)yard_try(y, buf_view(&b));
    if (!yard_exists(y, "W/pwn")) {
        fail_msg("not a trap: %s", prepare);
    }
    buf_reset(&b);
    assert_int_equal(buf_add_str(&b, "cd r && rm -f ../pwn && touch a && export"), SY_E_OK);
    for (const char *const *e = safe_git_env(); *e != NULL; e++) {
        assert_int_equal(buf_addf(&b, " %s", *e), SY_E_OK);
    }
    assert_int_equal(buf_addf(&b, " && %s", line), SY_E_OK);
    (void)yard_try(y, buf_view(&b));
    if (yard_exists(y, "W/pwn")) {
        fail_msg("not switched off: %s", prepare);
    }
}

static void
the_environment_of_safe_commands_switches_off(void **state)
{
    const struct yard *y = *state;

    expect_switched_off(y, "git config core.fsmonitor 'touch ../pwn; false'", "git status");
    expect_switched_off(y,
                        "printf '#!/bin/sh\\ntouch ../pwn\\n' > .git/hooks/post-index-change && "
                        "chmod +x .git/hooks/post-index-change",
                        "git status");
    expect_switched_off(y,
                        "mkdir h && printf '#!/bin/sh\\ntouch ../pwn\\n' > h/post-index-change && "
                        "chmod +x h/post-index-change && git config core.hooksPath h",
                        "git status");
    expect_switched_off(
        y,
        "git config gpg.program $PWD/g && git config log.showSignature true && "
        "printf '#!/bin/sh\\ntouch ../pwn\\n' > g && chmod +x g && "
        "git update-ref HEAD $(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP "
        "SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' | git hash-object -t commit -w "
        "--stdin)",
        "git log -1");
    expect_switched_off(
        y,
        "git config extensions.partialClone o && git config remote.o.promisor true && "
        "git config remote.o.url 'ext::sh -c touch% ../pwn' && "
        "git config protocol.ext.allow always && git config core.repositoryFormatVersion "
        "1 && rm -f .git/objects/$(git rev-parse HEAD:a | sed 's|^..|&/|')",
        "git show HEAD");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(harmless_settings_are_tame, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(whatever_may_start_a_program_is_not, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(what_is_not_looked_into_is_not, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(the_environment_of_safe_commands_switches_off, yard_setup,
                                        yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
