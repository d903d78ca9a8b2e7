#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "sessions/sessions_internal.h"

static enum marks_shell
shell_of(const char *script)
{
    SY_AUTO(strv_fini) struct strv words = {.max = LIMIT_ARGV};

    assert_int_equal(marks_split(&words, script), SY_E_OK);
    return marks_shell(&words);
}

static const struct {
    enum marks_shell shell;
    const char *scripts[16];
} shells[] = {
    {MARKS_BASH,
     {"bash", "bash -i", "exec bash", "/bin/bash --norc -i", "bash --rcfile own -i",
      "bash -l +O extglob"}                                                             },
    {MARKS_PLAIN_BASH, {"bash --noediting", "exec bash --norc --noediting -i"}          },
    {MARKS_ZSH,        {"zsh", "zsh -i", "zsh -il", "exec /bin/zsh -l"}                 },
    {MARKS_SH,         {"sh", "dash -i", "/bin/sh -li"}                                 },
    {MARKS_NONE,
     {"", "exec", "bash -c ls", "bash -lc ls", "bash x.sh", "bash -i; ls", "bash <file", "bash -s",
      "bash -i | tee x", "A=1 bash", "bash 'x'", "bashful", "sudo bash", "bash -- x.sh"}},
    {MARKS_NONE,
     {"zsh -f", "zsh -c ls", "zsh x.sh", "zsh -", "zsh --no-rcs -i", "zsh -o vi", "sh -c ls",
      "sh x", "sh -s", "sh -", "dash -e", "sh --posix", "fish", "ksh -i"}               },
};

static void
assert_shell(const char *script, enum marks_shell want)
{
    if (shell_of(script) != want) {
        fail_msg("'%s' is not %d", script, want);
    }
}

static void
knows_a_shell_that_reads_what_is_typed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        for (size_t k = 0; k < 16 && shells[i].scripts[k] != NULL; k++) {
            assert_shell(shells[i].scripts[k], shells[i].shell);
        }
    }
}

#define NONCE "0123456789abcdef0123456789abcdef"

static void
assert_env(const struct strv *env, const char *name, const char *want)
{
    const char *value = strv_env_get(env, name);

    if (want == NULL) {
        assert_null(value);
    } else {
        assert_non_null(value);
        assert_string_equal(value, want);
    }
}

static void
names_a_file_and_keeps_what_named_the_persons(void **state)
{
    SY_AUTO(strv_fini) struct strv env = {.max = LIMIT_ENV};

    (void)state;
    assert_int_equal(strv_env_set(&env, "SHELLYARD_ZDOTDIR", "left over"), SY_E_OK);
    assert_int_equal(marks_environment(&env, MARKS_ZSH, NONCE, NULL), SY_E_OK);
    assert_int_equal(marks_environment(&env, MARKS_SH, NONCE, NULL), SY_E_OK);
    assert_int_equal(env.n, 1);
    assert_int_equal(marks_environment(&env, MARKS_ZSH, NONCE, "/x"), SY_E_OK);
    assert_env(&env, "ZDOTDIR", "/x/prompt");
    assert_env(&env, "SHELLYARD_ZDOTDIR", NULL);
    assert_env(&env, "SHELLYARD_MARK", NONCE);
    assert_int_equal(strv_env_set(&env, "ZDOTDIR", "mine"), SY_E_OK);
    assert_int_equal(marks_environment(&env, MARKS_ZSH, NONCE, "/x"), SY_E_OK);
    assert_env(&env, "ZDOTDIR", "/x/prompt");
    assert_env(&env, "SHELLYARD_ZDOTDIR", "mine");
    assert_int_equal(marks_environment(&env, MARKS_SH, NONCE, "/x"), SY_E_OK);
    assert_env(&env, "ENV", "/x/prompt/sh");
}

/* bash compares the length of what it was given: nothing was added by the person's files then. */
static void
gives_bash_a_command_that_knows_its_length(void **state)
{
    SY_AUTO(strv_fini) struct strv env = {.max = LIMIT_ENV};
    char want[64];
    const char *command = NULL;

    (void)state;
    assert_int_equal(marks_environment(&env, MARKS_NONE, NONCE, NULL), SY_E_OK);
    assert_int_equal(env.n, 0);
    assert_int_equal(marks_environment(&env, MARKS_BASH, NONCE, NULL), SY_E_OK);
    assert_int_equal(env.n, 1);
    command = strv_env_get(&env, "PROMPT_COMMAND");
    (void)snprintf(want, sizeof(want), "${#PROMPT_COMMAND} = %03zu ]", strlen(command));
    assert_non_null(strstr(command, want));
}

static enum sy_code
split(void *arg)
{
    SY_AUTO(strv_fini) struct strv words = {.max = LIMIT_ARGV};

    return marks_split(&words, arg);
}

static enum sy_code
surround(void *arg)
{
    SY_AUTO(strv_fini) struct strv env = {.max = LIMIT_ENV};
    enum marks_shell shell = *(enum marks_shell *)arg;
    enum sy_code rc = strv_env_set(&env, "ZDOTDIR", "mine");

    return rc == SY_E_OK ? marks_environment(&env, shell, NONCE, "/x") : rc;
}

static void
each_allocation_may_fail(void **state)
{
    static char script[] = "exec bash --norc -i";

    (void)state;
    fault_run(split, script);
    for (enum marks_shell shell = MARKS_BASH; shell <= MARKS_SH; shell++) {
        fault_run(surround, &shell);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_a_shell_that_reads_what_is_typed),
        cmocka_unit_test(names_a_file_and_keeps_what_named_the_persons),
        cmocka_unit_test(gives_bash_a_command_that_knows_its_length),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
