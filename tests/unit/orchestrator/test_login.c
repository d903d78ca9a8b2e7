#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "call_yard.h"

/* The login environment, which a profile makes as it likes. */

static void
the_login_environment_is_read_once_and_again_after_a_change(void **state)
{
    struct spot *p = *state;
    struct session *session = NULL;
    SY_AUTO(answer_fini) struct answer first;
    SY_AUTO(answer_fini) struct answer second;
    SY_AUTO(answer_fini) struct answer third;

    write_file(
        p->home, ".bash_profile",
        "echo noise; echo noise >&2; date +%s%N > $HOME/../work/ran; export FROM_PROFILE=one; "
        "PATH=/usr/bin:/bin\n");
    assert_int_equal(session_of(&session, p), SY_E_OK);
    run_in_session(&first, session, p, SANDBOX_WORKSPACE_WRITE,
                   "echo $FROM_PROFILE $PATH; cat ran > ran1", true, 5000);
    run_in_session(
        &second, session, p, SANDBOX_WORKSPACE_WRITE,
        "echo $FROM_PROFILE; cmp ran ran1 && shopt -q login_shell || echo same-and-no-login", true,
        5000);
    write_file(p->home, ".bash_profile", "export FROM_PROFILE=changed-now\n");
    run_in_session(&third, session, p, SANDBOX_WORKSPACE_WRITE, "echo $FROM_PROFILE", true, 5000);
    session_free(session);
    assert_string_equal(buf_view(&first.text), "one /usr/bin:/bin:/private/tools\n");
    assert_string_equal(buf_view(&second.text), "one\nsame-and-no-login\n");
    assert_string_equal(buf_view(&third.text), "changed-now\n");
}

/* zsh looks for its files where ZDOTDIR says, whoever has set it. */
static void
a_change_is_noticed_where_zsh_has_its_profiles(void **state)
{
    static const char *const zshenvs[] = {
        "",                               /* the engine's environment says so */
        "export ZDOTDIR=$HOME/../work\n", /* a profile does, for others too, */
        "ZDOTDIR=$HOME/../work\n",        /* or for this shell alone */
    };
    struct spot *p = *state;

    if (access("/usr/bin/zsh", X_OK) != 0) {
        skip();
    }
    for (size_t i = 0; i < sizeof(zshenvs) / sizeof(zshenvs[0]); i++) {
        SY_AUTO(strv_fini) struct strv variables = {.max = 8};
        SY_AUTO(answer_fini) struct answer first;
        SY_AUTO(answer_fini) struct answer second;
        SY_AUTO(answer_fini) struct answer third;
        struct session *session = NULL;
        struct session_options options = {
            .session_id = "test",
            .shell_path = "/usr/bin/zsh",
            .login_snapshot = true,
            .snapshot_timeout_ms = 5000,
        };

        assert_int_equal(strv_add_all(&variables, strv_view(&p->environ_list)), SY_E_OK);
        if (i == 0) {
            assert_int_equal(strv_env_set(&variables, "ZDOTDIR", p->work), SY_E_OK);
        }
        options.environ_list = strv_view(&variables);
        write_file(p->home, ".zshenv", zshenvs[i]);
        write_file(p->work, ".zprofile", "export FROM_PROFILE=one; echo x >>$HOME/../work/runs\n");
        write_file(p->work, "runs", "");
        assert_int_equal(session_new(&session, &options, NULL), SY_E_OK);
        run_in_session(&first, session, p, SANDBOX_WORKSPACE_WRITE, "echo $FROM_PROFILE", true,
                       5000);
        run_in_session(&second, session, p, SANDBOX_WORKSPACE_WRITE, "cat runs", true, 5000);
        write_file(p->work, ".zprofile", "export FROM_PROFILE=changed-now\n");
        run_in_session(&third, session, p, SANDBOX_WORKSPACE_WRITE, "echo $FROM_PROFILE", true,
                       5000);
        session_free(session);
        assert_string_equal(buf_view(&first.text), "one\n");
        assert_string_equal(buf_view(&second.text), "x\n");
        assert_string_equal(buf_view(&third.text), "changed-now\n");
    }
}

static void
a_profile_may_print_much_and_end_slowly(void **state)
{
    static const char *const profiles[] = {
        "export FROM_PROFILE=here\nhead -c 6000000 /dev/zero | tr '\\0' x\n",
        "export FROM_PROFILE=here\nprintf 'SHELLYARD-'; head -c 40000 /dev/zero\n",
        "export FROM_PROFILE=here\ntrap 'sleep 1000' EXIT\n",
    };
    struct spot *p = *state;

    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        write_file(p->home, ".bash_profile", profiles[i]);
        run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "echo $FROM_PROFILE", true, 5000);
        assert_string_equal(a.output.note, "");
        assert_string_equal(buf_view(&a.text), "here\n");
    }
}

static void
a_login_environment_that_can_not_be_read_is_told_exactly(void **state)
{
    static const struct {
        const char *profile;
        const char *sentence;
    } cases[] = {
        {"exec >/dev/null\n",                                                                  "sends standard output elsewhere"},
        {"exec >&-\n",                                                                         "sends standard output elsewhere"},
        {"exit 9\n",                                                                           "ended the shell (status 9)"     },
        {"exec sh\n",                                                                          "ended the shell (status 0)"     },
        {"kill -9 $$\n",                                                                       "ended the shell (signal 9)"     },
        {"sleep 1000\n",                                                                       "did not end within 1500 ms"     },
        {"printf () { command printf '%s\\0' \"$2\"; head -c 3000000 /dev/zero; }\n",
         "longer than 1048576 bytes"                                                                                            },
        {"export A=5; export B=$(head -c 3000000 /dev/zero | tr '\\0' x)\n",                   "/usr/bin/env failed"            },
        {"for i in $(seq 30); do export B$i=$(head -c 100000 /dev/zero | tr '\\0' x); done\n",
         "/usr/bin/env failed"                                                                                                  },
    };
    struct spot *p = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        write_file(p->home, ".bash_profile", cases[i].profile);
        run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "echo hi", true, 5000);
        assert_string_equal(buf_view(&a.text), "hi\n");
        if (strstr(a.output.note, cases[i].sentence) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", cases[i].profile, cases[i].sentence, a.output.note);
        }
    }
}

static void
profiles_that_misbehave_break_nothing(void **state)
{
    static const char *const profiles[] = {
        "exec sh\n",
        "sleep 1000\n",
        "exit 9\n",
        "while :; do echo flood; done\n",
        "trap '' TERM; setsid sleep 1000 & exec sleep 1000\n",
        "kill -9 $$\n",
    };
    struct spot *p = *state;

    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        SY_AUTO(answer_fini) struct answer a;

        write_file(p->home, ".bash_profile", profiles[i]);
        run_script(&a, p, SANDBOX_WORKSPACE_WRITE, "echo hi; exit 3", true, 5000);
        assert_int_equal(a.output.status, EXEC_EXITED);
        assert_int_equal(a.output.exit_code, 3);
        assert_string_equal(buf_view(&a.text), "hi\n");
        assert_non_null(strstr(a.output.note, "login environment not used"));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_login_environment_is_read_once_and_again_after_a_change),
        cmocka_unit_test(a_change_is_noticed_where_zsh_has_its_profiles),
        cmocka_unit_test(a_profile_may_print_much_and_end_slowly),
        cmocka_unit_test(a_login_environment_that_can_not_be_read_is_told_exactly),
        cmocka_unit_test(profiles_that_misbehave_break_nothing),
    };

    return cmocka_run_group_tests(tests, spot_make, spot_remove);
}
