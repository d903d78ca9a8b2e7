#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "approval/approval.h"

static const enum approval_policy policies[] = {APPROVAL_NEVER, APPROVAL_UNLESS_TRUSTED,
                                                APPROVAL_ON_FAILURE, APPROVAL_ON_REQUEST};

static const enum sandbox_mode modes[] = {SANDBOX_READ_ONLY, SANDBOX_WORKSPACE_WRITE,
                                          SANDBOX_DANGER_FULL_ACCESS, SANDBOX_EXTERNAL};

static enum requirement_kind
kind_of(enum approval_policy policy, enum sandbox_mode mode, enum sandbox_permissions permissions)
{
    struct exec_params params = {.permissions = permissions};
    struct sandbox_policy sandbox = {.mode = mode};
    struct requirement r;

    requirement_compute(&r, &params, policy, &sandbox);
    assert_false(r.bypass_sandbox);
    assert_true(r.kind == REQUIREMENT_SKIP || r.reason[0] != '\0');
    return r.kind;
}

static void
policy_names_are_those_of_the_specification(void **state)
{
    enum approval_policy p = APPROVAL_NEVER;

    (void)state;
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        assert_true(approval_policy_parse(&p, approval_policy_name(policies[i])));
        assert_int_equal(p, policies[i]);
    }
    assert_false(approval_policy_parse(&p, "always"));
    assert_true(approval_policy_parse(&p, "granular"));
    assert_int_equal(p, APPROVAL_GRANULAR);
    assert_string_equal(approval_policy_name(APPROVAL_UNLESS_TRUSTED), "unless-trusted");
}

static void
a_plain_command_runs_unless_only_trusted_ones_may(void **state)
{
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        for (size_t p = 0; p < 4; p++) {
            enum requirement_kind want = policies[p] == APPROVAL_UNLESS_TRUSTED
                                             ? REQUIREMENT_NEEDS_APPROVAL
                                             : REQUIREMENT_SKIP;

            assert_int_equal(kind_of(policies[p], modes[m], PERMISSIONS_USE_DEFAULT), want);
        }
    }
}

static void
escalation_is_possible_on_request_alone(void **state)
{
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        for (size_t p = 0; p < 4; p++) {
            enum requirement_kind want = REQUIREMENT_FORBIDDEN;

            if (policies[p] == APPROVAL_ON_REQUEST) {
                want = sandbox_mode_is_enforced(modes[m]) ? REQUIREMENT_NEEDS_APPROVAL
                                                          : REQUIREMENT_SKIP;
            }
            assert_int_equal(kind_of(policies[p], modes[m], PERMISSIONS_REQUIRE_ESCALATED), want);
        }
    }
}

static void
what_nobody_can_be_asked_is_refused_and_says_so(void **state)
{
    struct requirement ask = {.kind = REQUIREMENT_NEEDS_APPROVAL, .reason = "it leaves the yard"};
    struct requirement skip_it = {.kind = REQUIREMENT_SKIP};

    (void)state;
    requirement_refuse_unasked(&ask);
    assert_int_equal(ask.kind, REQUIREMENT_FORBIDDEN);
    assert_non_null(strstr(ask.reason, "it leaves the yard"));
    assert_non_null(strstr(ask.reason, "nobody can be asked"));
    requirement_refuse_unasked(&skip_it);
    assert_int_equal(skip_it.kind, REQUIREMENT_SKIP);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_names_are_those_of_the_specification),
        cmocka_unit_test(a_plain_command_runs_unless_only_trusted_ones_may),
        cmocka_unit_test(escalation_is_possible_on_request_alone),
        cmocka_unit_test(what_nobody_can_be_asked_is_refused_and_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
