#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sys/types.h>

#include <pwd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "command/command_internal.h"
#include "fault.h"

static const char file[] = "root:x:0:0:root:/root:/bin/bash\n"
                           "# a comment: of no form\n"
                           "\n"
                           "+::::::\n"
                           "short:x:1000:1000\n"
                           "long:x:1000:1000:a:/b:/c:more\n"
                           "minus:x:-1:0::/:/bin/sh\n"
                           "word:x:1000x:0::/:/bin/sh\n"
                           "user:x:1000:1000:A Person,,,:/home/user:/usr/bin/zsh\n"
                           "again:x:1000:1000::/home/again:/bin/sh\n"
                           "empty:x:1001:1001:::\n"
                           "top:x:4294967295:1::/top:/bin/sh\n"
                           "beyond:x:4294967296:1::/beyond:/bin/sh\n"
                           "last:x:1002:1002::/home/last:/bin/last";

static void
assert_user(unsigned uid, const char *shell, const char *home)
{
    SY_AUTO(mem_free_charp) char *got_shell = NULL;
    SY_AUTO(mem_free_charp) char *got_home = NULL;

    assert_int_equal(passwd_scan(file, sizeof(file) - 1, uid, &got_shell, &got_home), SY_E_OK);
    if (shell == NULL) {
        assert_null(got_shell);
        assert_null(got_home);
        return;
    }
    assert_non_null(got_shell);
    assert_non_null(got_home);
    assert_string_equal(got_shell, shell);
    assert_string_equal(got_home, home);
}

static void
the_first_whole_line_of_the_user_counts(void **state)
{
    (void)state;
    assert_user(0, "/bin/bash", "/root");
    assert_user(1000, "/usr/bin/zsh", "/home/user");
    assert_user(1001, "", "");
    assert_user(4294967295U, "/bin/sh", "/top");
    assert_user(1002, "/bin/last", "/home/last");
    assert_user(77, NULL, NULL);
}

static void
the_name_is_that_of_the_first_whole_line(void **state)
{
    static const struct {
        unsigned uid;
        const char *name; /* NULL: nobody */
    } cases[] = {
        {0,           "root" },
        {1000,        "user" },
        {1001,        "empty"},
        {4294967295U, "top"  },
        {1002,        "last" },
        {77,          NULL   },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(mem_free_charp) char *name = NULL;

        assert_int_equal(passwd_scan_name(file, sizeof(file) - 1, cases[i].uid, &name), SY_E_OK);
        if (cases[i].name == NULL) {
            assert_null(name);
        } else {
            assert_non_null(name);
            assert_string_equal(name, cases[i].name);
        }
    }
}

static void
an_empty_file_has_no_users(void **state)
{
    char *shell = NULL;
    char *home = NULL;

    (void)state;
    assert_int_equal(passwd_scan("", 0, 0, &shell, &home), SY_E_OK);
    assert_null(shell);
    assert_null(home);
    assert_int_equal(passwd_scan_name("", 0, 0, &shell), SY_E_OK);
    assert_null(shell);
}

static void
this_machine_gives_what_the_c_library_gives(void **state)
{
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *home = NULL;
    SY_AUTO(mem_free_charp) char *name = NULL;
    struct sy_error err = {0};
    const struct passwd *expected = getpwuid(getuid());

    (void)state;
    assert_int_equal(passwd_lookup(getuid(), &shell, &home, &err), SY_E_OK);
    assert_int_equal(passwd_name(getuid(), &name, &err), SY_E_OK);
    if (shell != NULL && expected != NULL) {
        assert_non_null(name);
        assert_string_equal(name, expected->pw_name);
        assert_string_equal(shell, expected->pw_shell);
        assert_string_equal(home, expected->pw_dir);
    } else {
        skip(); /* no entry, or one that only a name service has */
    }
}

static enum sy_code
scan_once(void *arg)
{
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *home = NULL;

    (void)arg;
    return passwd_scan(file, sizeof(file) - 1, 1000, &shell, &home);
}

static enum sy_code
look_up_once(void *arg)
{
    SY_AUTO(mem_free_charp) char *shell = NULL;
    SY_AUTO(mem_free_charp) char *home = NULL;

    return passwd_lookup(0, &shell, &home, arg);
}

static enum sy_code
scan_name_once(void *arg)
{
    SY_AUTO(mem_free_charp) char *name = NULL;

    (void)arg;
    return passwd_scan_name(file, sizeof(file) - 1, 1000, &name);
}

static enum sy_code
name_once(void *arg)
{
    SY_AUTO(mem_free_charp) char *name = NULL;

    return passwd_name(0, &name, arg);
}

static void
look_ups_survive_each_failed_allocation(void **state)
{
    struct sy_error err = {0};

    (void)state;
    fault_run(scan_once, NULL);
    fault_run(look_up_once, &err);
    fault_run(scan_name_once, NULL);
    fault_run(name_once, &err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_whole_line_of_the_user_counts),
        cmocka_unit_test(the_name_is_that_of_the_first_whole_line),
        cmocka_unit_test(an_empty_file_has_no_users),
        cmocka_unit_test(this_machine_gives_what_the_c_library_gives),
        cmocka_unit_test(look_ups_survive_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
