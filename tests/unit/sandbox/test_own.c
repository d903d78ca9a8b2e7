/* Shellyard's own places: commands neither write nor read there, whatever is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "fixture.h"

static int
act_read(const void *path)
{
    char byte;
    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : errno;
}

static enum sy_code
try_with_own(struct place *p, const char *own, struct sy_error *err)
{
    strv_fini(&p->policy.own_dirs);
    p->policy.own_dirs.max = 1;
    assert_int_equal(strv_add(&p->policy.own_dirs, place_path(p, own)), SY_E_OK);
    return place_try(p, err);
}

/* What a command wrote there would be believed by the next call elsewhere. */
static void
what_is_our_own_lies_below_no_root(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    place_mkdir(p, "O/own");
    place_mkdir(p, "O/sub");
    place_link(p, "../O/sub", "W/link");
    assert_int_equal(try_with_own(p, "O/own", &err), SY_E_OK);
    assert_false(sandbox_policy_needs_mounts(&p->policy));
    /* Missing, it could be made. */
    assert_int_equal(try_with_own(p, "W/.config/own", &err), SY_E_SANDBOX);
    assert_true(sandbox_policy_needs_mounts(&p->policy));
    assert_non_null(strstr(err.msg, "W/.config/own"));
    /* It lies elsewhere, as long as nobody turns the link. */
    assert_int_equal(try_with_own(p, "W/link/own", &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "a symbolic link that commands could change"));
    /* The workspace itself. */
    assert_int_equal(try_with_own(p, "W", &err), SY_E_SANDBOX);
    place_link(p, "../W", "O/to-workspace");
    assert_int_equal(try_with_own(p, "O/to-workspace/own", &err), SY_E_SANDBOX);
    mem_free(p->policy.cwd);
    place_mkdir(p, "O/own/in");
    p->policy.cwd = mem_strdup(place_path(p, "O/own/in"));
    assert_int_equal(try_with_own(p, "O/own", &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "lies in"));
}

/* Whatever the policy leaves out of the defaults, and without any. */
static void
what_is_our_own_is_hidden_whatever_is_allowed(void **state)
{
    struct place *p = *state;
    const char *name = NULL;
    struct sandbox_explanation said;
    struct sy_error err = {0};

    place_mkdir(p, "O/own[1]");
    place_file(p, "O/own[1]/state", "s");
    place_file(p, "O/open", "o");
    p->policy.allow_read.max = 1;
    assert_int_equal(strv_add(&p->policy.allow_read, place_path(p, "O")), SY_E_OK);
    p->policy.own_dirs.max = 1;
    assert_int_equal(strv_add(&p->policy.own_dirs, place_path(p, "O/own[1]")), SY_E_OK);
    place_ready(p);
    name = place_path(p, "O/own[1]/state");
    assert_int_equal(place_run(p, true, act_read, name), EACCES);
    assert_int_equal(place_run(p, false, act_read, name), 0);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/open")), 0);
    assert_int_equal(
        sandbox_explain(&said, p->plan, OPERATION_READ, place_path(p, "O/own[1]/state"), &err),
        SY_E_OK);
    assert_false(said.is_allowed);
    assert_string_equal(said.fix, "");
    assert_non_null(strstr(said.rule, "Shellyard's own"));
    /* It is no secret of the user's: that feature tells of those alone. */
    assert_int_equal(sandbox_plan_feature(p->plan, FEATURE_DENY_READ), FEATURE_ABSENT);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(what_is_our_own_lies_below_no_root),
        IN_A_PLACE(what_is_our_own_is_hidden_whatever_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
