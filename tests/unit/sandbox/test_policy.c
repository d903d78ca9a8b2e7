#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "sandbox/sandbox.h"

static void
each_mode_is_parsed_from_its_own_name(void **state)
{
    static const enum sandbox_mode modes[] = {SANDBOX_READ_ONLY, SANDBOX_WORKSPACE_WRITE,
                                              SANDBOX_DANGER_FULL_ACCESS, SANDBOX_EXTERNAL};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        enum sandbox_mode mode = SANDBOX_READ_ONLY;

        assert_true(sandbox_mode_parse(&mode, sandbox_mode_name(modes[i])));
        assert_int_equal(mode, modes[i]);
    }

    enum sandbox_mode untouched = SANDBOX_EXTERNAL;

    assert_false(sandbox_mode_parse(&untouched, "readonly"));
    assert_false(sandbox_mode_parse(&untouched, ""));
    assert_false(sandbox_mode_parse(&untouched, "Read-Only"));
    assert_int_equal(untouched, SANDBOX_EXTERNAL);
}

static void
two_modes_are_ours_to_enforce(void **state)
{
    (void)state;
    assert_true(sandbox_mode_is_enforced(SANDBOX_READ_ONLY));
    assert_true(sandbox_mode_is_enforced(SANDBOX_WORKSPACE_WRITE));
    assert_false(sandbox_mode_is_enforced(SANDBOX_DANGER_FULL_ACCESS));
    assert_false(sandbox_mode_is_enforced(SANDBOX_EXTERNAL));
}

static void
unenforced_modes_have_the_network_whatever_is_asked(void **state)
{
    struct sandbox_policy p = {.mode = SANDBOX_READ_ONLY};

    (void)state;
    assert_false(sandbox_policy_has_network(&p));
    p.has_network = true;
    assert_true(sandbox_policy_has_network(&p));
    p.has_network = false;
    p.mode = SANDBOX_DANGER_FULL_ACCESS;
    assert_true(sandbox_policy_has_network(&p));
}

static void
every_feature_state_and_stage_has_a_text(void **state)
{
    (void)state;
    for (int i = 0; i < FEATURE_COUNT; i++) {
        assert_true(sandbox_feature_name((enum sandbox_feature)i)[0] != '\0');
        assert_true(sandbox_feature_text((enum sandbox_feature)i)[0] != '\0');
    }
    for (int i = STAGE_NONE; i <= STAGE_EXEC; i++) {
        assert_true(sandbox_stage_text((enum sandbox_stage)i)[0] != '\0');
    }
    assert_string_equal(feature_state_name(FEATURE_ENFORCED), "enforced");
    assert_string_equal(feature_state_name(FEATURE_EMULATED), "emulated");
    assert_string_equal(feature_state_name(FEATURE_ABSENT), "absent");
}

static enum sy_code
copy_a_policy(void *arg)
{
    static char cwd[] = "/w";
    static char tmp[] = "/t";
    static char *roots[] = {cwd, tmp, NULL};
    const struct sandbox_policy from = {
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = cwd,
        .tmpdir = tmp,
        .writable_roots = {.v = roots, .n = 2, .cap = 3, .max = 4},
        .has_network = true,
        .network_allow = {.v = roots, .n = 2, .cap = 3, .max = 4},
        .excludes_slash_tmp = true,
        .deny_read = {.v = roots, .n = 2, .cap = 3, .max = 4},
        .n_default_deny_read = 1,
        .deny_homes = {.v = roots, .n = 2, .cap = 3, .max = 4},
        .allow_read = {.v = roots, .n = 2, .cap = 3, .max = 4},
        .denies_system = true,
    };
    struct sandbox_policy copy = {0};
    enum sy_code rc = sandbox_policy_copy(&copy, &from);
    bool *is_equal = arg;

    if (rc == SY_E_OK) {
        *is_equal = copy.mode == from.mode && copy.has_network && copy.excludes_slash_tmp &&
                    !copy.excludes_tmpdir && copy.cwd != from.cwd && copy.cwd[1] == 'w' &&
                    copy.tmpdir[1] == 't' && copy.writable_roots.n == 2 &&
                    copy.writable_roots.v[1] != tmp && copy.writable_roots.v[1][1] == 't' &&
                    copy.network_allow.n == 2 && copy.network_allow.v[0] != cwd &&
                    copy.deny_read.n == 2 && copy.n_default_deny_read == 1 &&
                    copy.deny_homes.n == 2 && copy.allow_read.n == 2 && copy.denies_system;
    }
    sandbox_policy_fini(&copy);
    return rc;
}

static void
a_copy_owns_all_it_has_and_survives_each_failed_allocation(void **state)
{
    bool is_equal = false;

    (void)state;
    fault_run(copy_a_policy, &is_equal);
    assert_true(is_equal);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mode_is_parsed_from_its_own_name),
        cmocka_unit_test(two_modes_are_ours_to_enforce),
        cmocka_unit_test(unenforced_modes_have_the_network_whatever_is_asked),
        cmocka_unit_test(every_feature_state_and_stage_has_a_text),
        cmocka_unit_test(a_copy_owns_all_it_has_and_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
