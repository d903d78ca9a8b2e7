#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "sessions/sessions_internal.h"

static bool
is_shell(const char *script)
{
    SY_AUTO(strv_fini) struct strv words = {.max = LIMIT_ARGV};

    assert_int_equal(marks_split(&words, script), SY_E_OK);
    return marks_is_shell(&words);
}

static void
knows_a_bash_that_reads_what_is_typed(void **state)
{
    static const char *const yes[] = {
        "bash",
        "bash -i",
        "exec bash",
        "/bin/bash --norc -i",
        "bash --rcfile own -i",
        "bash -l +O extglob",
    };
    static const char *const no[] = {
        "",           "exec",      "bash -c ls",      "bash -lc ls", "bash x.sh", "bash -i; ls",
        "bash <file", "bash -s",   "bash -i | tee x", "zsh -i",      "A=1 bash",  "bash 'x'",
        "bashful",    "sudo bash", "bash -- x.sh",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (!is_shell(yes[i])) {
            fail_msg("'%s' is none", yes[i]);
        }
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (is_shell(no[i])) {
            fail_msg("'%s' is one", no[i]);
        }
    }
}

static enum sy_code
split(void *arg)
{
    SY_AUTO(strv_fini) struct strv words = {.max = LIMIT_ARGV};

    return marks_split(&words, arg);
}

static void
each_allocation_may_fail(void **state)
{
    static char script[] = "exec bash --norc -i";

    (void)state;
    fault_run(split, script);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_a_bash_that_reads_what_is_typed),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
