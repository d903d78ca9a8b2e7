#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/private_group.h"

static bool
is_private(const char *passwd, const char *group)
{
    return private_group_in(passwd, strlen(passwd), group, strlen(group), 1000, 1000);
}

#define ANN "ann:x:1000:1000:Ann,,,:/home/ann:/bin/bash\n"

static void
the_group_that_comes_with_a_user_is_private(void **state)
{
    (void)state;
    assert_true(is_private("root:x:0:0:root:/root:/bin/bash\n" ANN, "root:x:0:\nann:x:1000:\n"));
    assert_true(is_private(ANN, "ann:x:1000:ann"));
    assert_true(is_private(ANN "bob:x:1001:1001::/:\n", "bob:x:1001:ann\nann:x:1000:"));
}

static void
a_group_that_others_are_in_is_not(void **state)
{
    (void)state;
    assert_false(is_private(ANN, "ann:x:1000:bob\n"));
    assert_false(is_private(ANN, "ann:x:1000:ann,bob\n"));
    assert_false(is_private(ANN "bob:x:1001:1000::/home/bob:/bin/sh\n", "ann:x:1000:\n"));
    assert_false(is_private("bob:x:1001:1000::/:/bin/sh\n" ANN, "ann:x:1000:\n"));
    assert_false(is_private(ANN, "users:x:1000:\n"));
    assert_false(is_private(ANN, "ann:x:1000:\nstaff:x:1000:bob\n"));
    assert_false(is_private("ann:x:1000:100:::\n", "ann:x:1000:\n"));
}

static void
what_the_files_do_not_tell_is_not(void **state)
{
    (void)state;
    assert_false(is_private("", ""));
    assert_false(is_private(ANN, ""));
    assert_false(is_private("", "ann:x:1000:\n"));
    assert_false(is_private("ann:x:1000\n", "ann:x:1000:\n"));
    assert_false(is_private("ann:x:1000:\n", "ann:x:1000:\n"));
    assert_false(is_private(ANN, "ann:x:10000000000000000:\n"));
    assert_false(is_private("+::::::\n\n:::\n", "+:::\n\n"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_group_that_comes_with_a_user_is_private),
        cmocka_unit_test(a_group_that_others_are_in_is_not),
        cmocka_unit_test(what_the_files_do_not_tell_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
