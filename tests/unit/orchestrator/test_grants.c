#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "orchestrator/call_internal.h"
#include "sandbox/access.h"

/* For which calls a grant holds, and when it is used up. */

struct yard {
    char dir[64];
    char object[96];
    struct sandbox_policy policy;
    struct grants *grants;
    struct access access;
};

static int
setup(void **state)
{
    struct yard *y = calloc(1, sizeof(*y));

    assert_non_null(y);
    (void)snprintf(y->dir, sizeof(y->dir), "/var/tmp/shellyard-grants-XXXXXX");
    assert_non_null(mkdtemp(y->dir));
    (void)snprintf(y->object, sizeof(y->object), "%s/x", y->dir);
    assert_int_equal(mkdir(y->object, 0700), 0);
    y->policy = (struct sandbox_policy){.mode = SANDBOX_WORKSPACE_WRITE,
                                        .writable_roots = {.max = LIMIT_ROOTS},
                                        .network_allow = {.max = LIMIT_PROXY_ALLOW}};
    y->policy.cwd = mem_strdup(y->dir);
    y->access = (struct access){.kind = ACCESS_WRITE, .lifts = {.max = 1}};
    y->access.object = mem_strdup(y->object);
    y->grants = grants_new();
    assert_non_null(y->policy.cwd);
    assert_non_null(y->access.object);
    assert_non_null(y->grants);
    *state = y;
    return 0;
}

static int
teardown(void **state)
{
    struct yard *y = *state;

    grants_free(y->grants);
    access_fini(&y->access);
    sandbox_policy_fini(&y->policy);
    (void)unlink(y->object);
    (void)rmdir(y->object);
    (void)rmdir(y->dir);
    free(y);
    return 0;
}

/* Does a call under `from` get it? */
static bool
holds(struct yard *y, const struct sandbox_policy *from, const struct orch_call *taker)
{
    struct sandbox_policy p = {0};
    bool ret = false;

    assert_int_equal(sandbox_policy_copy(&p, from), SY_E_OK);
    assert_int_equal(grants_take(y->grants, &p, taker), SY_E_OK);
    ret = strv_has(&p.writable_roots, y->object);
    sandbox_policy_fini(&p);
    return ret;
}

static void
grant(struct yard *y, enum grant_scope scope)
{
    assert_int_equal(grants_add(y->grants, &y->access, scope, &y->policy), SY_E_OK);
}

static void
once_is_for_one_call_that_begins(void **state)
{
    struct yard *y = *state;
    static const struct orch_call a;
    static const struct orch_call b;

    assert_false(holds(y, &y->policy, &a));
    grant(y, GRANT_ONCE);
    assert_true(holds(y, &y->policy, NULL)); /* a look takes nothing */
    assert_true(holds(y, &y->policy, &a));
    assert_false(holds(y, &y->policy, &b)); /* it is the other's */
    grants_settle(y->grants, &b, true);
    grants_settle(y->grants, &a, false); /* it never began */
    assert_true(holds(y, &y->policy, &b));
    grants_settle(y->grants, &b, true);
    assert_false(holds(y, &y->policy, &a));
}

/* Whatever was granted before. */
static void
what_an_administrator_requires_stays(void **state)
{
    struct yard *y = *state;
    static const struct orch_call a;

    y->policy.keeps_roots = true;
    grant(y, GRANT_SESSION);
    assert_false(holds(y, &y->policy, &a));
    assert_false(grants_rule_holds(&y->policy, &y->access));
    y->policy.keeps_roots = false;
    y->policy.keeps_network = y->policy.keeps_reads = true;
    assert_true(holds(y, &y->policy, &a));
    assert_true(grants_rule_holds(&y->policy, &y->access));
}

static void
a_session_has_it_under_the_policy_it_was_asked_under(void **state)
{
    struct yard *y = *state;
    struct sandbox_policy other = {0};
    static const struct orch_call a;

    grant(y, GRANT_SESSION);
    assert_true(holds(y, &y->policy, &a));
    grants_settle(y->grants, &a, true);
    assert_true(holds(y, &y->policy, &a));
    assert_int_equal(sandbox_policy_copy(&other, &y->policy), SY_E_OK);
    assert_true(holds(y, &other, &a));
    other.mode = SANDBOX_READ_ONLY;
    assert_false(holds(y, &other, &a));
    other.mode = SANDBOX_DANGER_FULL_ACCESS;
    assert_false(holds(y, &other, &a));
    other.mode = y->policy.mode;
    other.has_network = true;
    assert_false(holds(y, &other, &a));
    other.has_network = false;
    assert_int_equal(strv_add(&other.writable_roots, "/srv"), SY_E_OK);
    assert_false(holds(y, &other, &a));
    sandbox_policy_fini(&other);
}

static void
a_rule_is_for_its_workspace_and_no_narrower_mode(void **state)
{
    struct yard *y = *state;
    const struct access_rule rule = {
        .access = &y->access, .workspace = y->dir, .mode = SANDBOX_WORKSPACE_WRITE};
    const struct access_rule elsewhere = {
        .access = &y->access, .workspace = "/", .mode = SANDBOX_WORKSPACE_WRITE};
    const struct access host = {.kind = ACCESS_CONNECT};
    const struct access hidden = {.kind = ACCESS_READ};
    static const struct orch_call a;

    grant(y, GRANT_ONCE);
    assert_int_equal(grants_set_rules(y->grants, &elsewhere, 1), SY_E_OK);
    assert_true(holds(y, &y->policy, &a)); /* by the first */
    grants_settle(y->grants, &a, true);
    assert_false(holds(y, &y->policy, &a));
    assert_int_equal(grants_set_rules(y->grants, &rule, 1), SY_E_OK);
    assert_true(holds(y, &y->policy, &a));
    y->policy.has_network = true; /* whatever else its policy is */
    assert_true(holds(y, &y->policy, &a));
    y->policy.mode = SANDBOX_READ_ONLY;
    assert_false(holds(y, &y->policy, &a));
    y->policy.mode = SANDBOX_WORKSPACE_WRITE;
    y->policy.drops_network = true; /* it is about another thing */
    assert_true(holds(y, &y->policy, &a));
    y->policy.drops_roots = true;
    assert_false(holds(y, &y->policy, &a));
    assert_false(grants_rule_holds(&y->policy, &host));
    assert_true(grants_rule_holds(&y->policy, &hidden));
    y->policy.drops_roots = false;
    assert_true(holds(y, &y->policy, &a));
    assert_int_equal(grants_set_rules(y->grants, NULL, 0), SY_E_OK);
    assert_false(holds(y, &y->policy, &a));
}

static void
what_is_gone_or_a_link_widens_nothing(void **state)
{
    struct yard *y = *state;
    static const struct orch_call a;

    grant(y, GRANT_SESSION);
    assert_int_equal(rmdir(y->object), 0);
    assert_false(holds(y, &y->policy, &a));
    assert_int_equal(symlink("/", y->object), 0);
    assert_false(holds(y, &y->policy, &a));
    assert_int_equal(unlink(y->object), 0);
    assert_int_equal(mkdir(y->object, 0700), 0);
    assert_true(holds(y, &y->policy, &a));
}

static enum sy_code
add_and_take(void *arg)
{
    struct yard *y = arg;
    struct grants *g = grants_new();
    struct sandbox_policy p = {0};
    static const struct orch_call a;
    const struct access_rule rule = {
        .access = &y->access, .workspace = y->dir, .mode = SANDBOX_WORKSPACE_WRITE};
    enum sy_code rc = g != NULL ? SY_E_OK : SY_E_NOMEM;

    if (rc == SY_E_OK) {
        rc = grants_add(g, &y->access, GRANT_ONCE, &y->policy);
    }
    if (rc == SY_E_OK) {
        rc = grants_set_rules(g, &rule, 1);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_policy_copy(&p, &y->policy);
    }
    if (rc == SY_E_OK) {
        rc = grants_take(g, &p, &a);
    }
    if (rc != SY_E_OK && p.writable_roots.n > 0) {
        rc = SY_E_INTERNAL; /* a policy that is half widened */
    }
    sandbox_policy_fini(&p);
    grants_free(g);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    /* A path that can't be looked at for want of memory is left out, which is narrower. */
    fault_run_lenient(add_and_take, *state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(once_is_for_one_call_that_begins, setup, teardown),
        cmocka_unit_test_setup_teardown(what_an_administrator_requires_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_has_it_under_the_policy_it_was_asked_under, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_rule_is_for_its_workspace_and_no_narrower_mode, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_gone_or_a_link_widens_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(each_allocation_may_fail, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
