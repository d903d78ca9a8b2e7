#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "sandbox/sandbox_internal.h"

static const char *golden_dir;

static char cwd[] = "/home/u/work";
static char tmpdir[] = "/home/u/scratch/";
static char root_a[] = "/data//cache/.";
static char root_b[] = "/data/one/../two";
static char *roots[] = {root_a, root_b, NULL};
static char denied_a[] = "/elsewhere/kube.conf";
static char denied_b[] = "/home/u/work/**/.env/**";
static char *denied[] = {denied_a, denied_b, NULL};
static char home[] = "/home/u";
static char *homes[] = {home, NULL};
static char allowed_a[] = "/home/u/.ssh";
static char *allowed[] = {allowed_a, NULL};

static struct sandbox_caps
kernel(int abi)
{
    return (struct sandbox_caps){
        .landlock_abi = abi,
        .landlock_errno = abi > 0 ? 0 : ENOSYS,
        .landlock_errata = abi >= 6 ? 7 : 0,
        .has_seccomp_filter = true,
        .has_seccomp_notify = true,
        .has_close_range = true,
        .release = "5.10.0-30-amd64",
    };
}

static struct sandbox_policy
workspace(void)
{
    return (struct sandbox_policy){
        .mode = SANDBOX_WORKSPACE_WRITE,
        .cwd = cwd,
        .writable_roots = {.v = roots, .n = 2, .cap = 3, .max = 2},
        .tmpdir = tmpdir,
    };
}

/* Both sides in the same shape, so that the golden file may be laid out. */
static char *
canonical(const char *text, size_t len)
{
    struct json_doc doc;
    struct buf out = {.max = 1U << 20};
    struct sy_error err = {0};

    if (json_parse(&doc, text, len, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(js_dump(&out, doc.root), SY_E_OK);
    json_doc_fini(&doc);
    return buf_take(&out);
}

static void
check_golden(const char *name, const struct sandbox_policy *policy, const struct sandbox_caps *caps)
{
    SY_AUTO(buf_fini) struct buf dump = {.max = 1U << 20};
    SY_AUTO(buf_fini) struct buf golden = {.max = 1U << 20};
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    struct sandbox_plan *plan = NULL;
    struct sy_error err = {0};
    enum sy_code rc = sandbox_plan_new(&plan, policy, caps, &err);

    assert_true(rc == SY_E_OK || rc == SY_E_SANDBOX);
    assert_int_equal(sandbox_plan_dump(plan, &dump), SY_E_OK);
    sandbox_plan_free(plan);
    assert_int_equal(buf_addf(&path, "%s/%s.json", golden_dir, name), SY_E_OK);
    if (fd_read_file(buf_view(&path), &golden, &err) != SY_E_OK) {
        fail_msg("%s; the plan is %s", err.msg, buf_view(&dump));
    }

    char *is = canonical(dump.data, dump.len);
    char *should = canonical(golden.data, golden.len);

    if (strcmp(is, should) != 0) {
        fail_msg("%s: the plan is\n%s", name, is);
    }
    mem_free(is);
    mem_free(should);
}

static void
plans_are_those_of_the_golden_files(void **state)
{
    static const int abis[] = {1, 2, 3, 4, 5, 6, 7, 9, 10};
    static char host[] = "example.com";
    static char port[] = "*.example.org:8443";
    static char *hosts[] = {host, port, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++) {
        struct sandbox_policy policy = workspace();
        struct sandbox_caps caps = kernel(abis[i]);
        char name[64];

        (void)snprintf(name, sizeof(name), "workspace-write-abi%d", abis[i]);
        check_golden(name, &policy, &caps);
    }

    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(7);

    policy.has_network = true;
    check_golden("workspace-write-network", &policy, &caps);
    policy = workspace();
    policy.network_allow = (struct strv){.v = hosts, .n = 2, .cap = 3, .max = 4};
    check_golden("workspace-write-allow-list", &policy, &caps);
    policy.has_network = true;
    check_golden("workspace-write-network", &policy, &caps);
    policy.has_network = false;
    caps.has_seccomp_notify = false;
    check_golden("workspace-write-allow-list-no-notify", &policy, &caps);
    caps.has_seccomp_notify = true;
    policy = workspace();
    policy.excludes_tmpdir = true;
    policy.excludes_slash_tmp = true;
    check_golden("workspace-write-no-tmp", &policy, &caps);
    policy = workspace();
    policy.deny_read = (struct strv){.v = denied, .n = 2, .cap = 3, .max = 2};
    policy.n_default_deny_read = 1;
    policy.deny_homes = (struct strv){.v = homes, .n = 1, .cap = 2, .max = 1};
    policy.allow_read = (struct strv){.v = allowed, .n = 1, .cap = 2, .max = 1};
    policy.denies_system = true;
    check_golden("workspace-write-deny-read", &policy, &caps);
    policy = workspace();
    policy.mode = SANDBOX_READ_ONLY;
    check_golden("read-only", &policy, &caps);
    policy.has_network = true;
    check_golden("read-only-network", &policy, &caps);
    policy.has_network = false;
    policy.mode = SANDBOX_DANGER_FULL_ACCESS;
    check_golden("danger-full-access", &policy, &caps);
    policy.mode = SANDBOX_EXTERNAL;
    check_golden("external-sandbox", &policy, &caps);
    policy = workspace();
    policy.max_tier = TIER_FULL;
    caps.has_full_tier = true;
    check_golden("workspace-write-full", &policy, &caps);
    policy.network_allow = (struct strv){.v = hosts, .n = 2, .cap = 3, .max = 4};
    check_golden("workspace-write-full-allow-list", &policy, &caps);
    /* In a network of its own the list needs nobody who connects. */
    caps.has_seccomp_notify = false;
    check_golden("workspace-write-full-allow-list", &policy, &caps);
    caps.has_seccomp_notify = true;
    policy.network_allow = (struct strv){0};
    policy.has_network = true;
    caps.landlock_abi = 3;
    check_golden("workspace-write-full-network-abi3", &policy, &caps);
    policy = workspace();
    caps = kernel(0);
    check_golden("refused-no-landlock", &policy, &caps);
}

static void
the_same_input_gives_the_same_plan(void **state)
{
    SY_AUTO(buf_fini) struct buf first = {.max = 1U << 20};
    SY_AUTO(buf_fini) struct buf second = {.max = 1U << 20};
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(7);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sandbox_plan *plan = NULL;

        assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, NULL), SY_E_OK);
        assert_int_equal(sandbox_plan_dump(plan, i == 0 ? &first : &second), SY_E_OK);
        sandbox_plan_free(plan);
    }
    assert_string_equal(buf_view(&first), buf_view(&second));
}

static void
no_rule_grants_what_the_kernel_does_not_handle(void **state)
{
    (void)state;
    for (int abi = 1; abi <= 14; abi++) {
        struct sandbox_policy policy = workspace();
        struct sandbox_caps caps = kernel(abi);
        struct sandbox_plan *plan = NULL;

        assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, NULL), SY_E_OK);
        assert_int_equal(sandbox_plan_abi(plan), abi);
        assert_true(plan->ruleset.handled_fs != 0);
        for (size_t i = 0; i < plan->n_rules; i++) {
            const struct plan_rule *rule = &plan->rules[i];

            assert_int_equal(rule->access & ~plan->ruleset.handled_fs, 0);
            assert_int_equal(rule->access & (LL_FS_MAKE_CHAR | LL_FS_MAKE_BLOCK), 0);
            if (abi >= 2 && rule->origin != ORIGIN_DEVICE) {
                assert_true((rule->access & LL_FS_REFER) != 0);
            }
        }
        sandbox_plan_free(plan);
    }
}

static void
read_only_creates_and_removes_nothing_anywhere(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(10);
    struct sandbox_plan *plan = NULL;

    (void)state;
    policy.mode = SANDBOX_READ_ONLY;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, NULL), SY_E_OK);
    for (size_t i = 0; i < plan->n_rules; i++) {
        assert_int_equal(plan->rules[i].origin, ORIGIN_DEVICE);
        assert_int_equal(
            plan->rules[i].access & ~(LL_FS_WRITE_FILE | LL_FS_TRUNCATE | LL_FS_IOCTL_DEV), 0);
    }
    sandbox_plan_free(plan);
}

static void
a_kernel_that_can_not_hold_it_is_refused_with_the_remedy(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(0);
    struct sandbox_plan *plan = NULL;
    struct sandbox_ready *ready = NULL;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_SANDBOX);
    assert_string_equal(
        err.msg,
        "Landlock is not available (kernel 5.10.0-30-amd64, landlock_create_ruleset: ENOSYS); it "
        "needs Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK and 'landlock' in lsm=; or set "
        "sandbox.required: false, or run with danger-full-access");
    assert_non_null(plan);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_FS_WRITE), FEATURE_ABSENT);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_SECCOMP), FEATURE_ABSENT);
    assert_int_equal(sandbox_plan_tier(plan), TIER_NONE);
    assert_int_equal(sandbox_ready_new(&ready, plan, &err), SY_E_SANDBOX);
    assert_null(ready);
    sandbox_plan_free(plan);

    caps = kernel(7);
    caps.has_seccomp_filter = false;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "seccomp filters are not available"));
    assert_non_null(strstr(err.msg, "danger-full-access"));
    sandbox_plan_free(plan);

    /* The longest release name leaves the remedy in the message. */
    caps = kernel(0);
    memset(caps.release, 'r', sizeof(caps.release) - 1);
    caps.landlock_errno = EOPNOTSUPP;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "danger-full-access"));
    sandbox_plan_free(plan);
}

static void
modes_that_are_not_ours_need_nothing_of_the_kernel(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(0);
    struct sandbox_plan *plan = NULL;
    struct sandbox_ready *ready = NULL;

    (void)state;
    caps.has_seccomp_filter = false;
    policy.mode = SANDBOX_DANGER_FULL_ACCESS;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_plan_tier(plan), TIER_NONE);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_RLIMITS), FEATURE_ENFORCED);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_NETWORK), FEATURE_ABSENT);
    assert_int_equal(sandbox_ready_new(&ready, plan, NULL), SY_E_OK);
    assert_int_equal(sandbox_ready_fd(ready), -1);
    assert_true(sandbox_ready_is_fresh(ready));
    sandbox_ready_free(ready);
    sandbox_plan_free(plan);
}

static void
what_the_policy_asks_for_is_told_from_what_the_kernel_lacks(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(5);
    struct sandbox_plan *plan = NULL;

    (void)state;
    caps.has_close_range = false;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_NETWORK), FEATURE_ENFORCED);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_DEVICE_IOCTL), FEATURE_ENFORCED);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_SIGNAL_SCOPE), FEATURE_ABSENT);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_FS_METADATA), FEATURE_ABSENT);
    assert_int_equal(sandbox_plan_feature(plan, FEATURE_FD_CLOSE), FEATURE_EMULATED);
    sandbox_plan_free(plan);
}

static void
a_root_that_can_not_be_one_is_named(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(7);
    struct sandbox_plan *plan = NULL;
    struct sy_error err = {0};
    char relative[] = "some/where";
    char *long_path = mem_alloc(LIMIT_PATH + 10);
    char *one[] = {relative, NULL};

    (void)state;
    policy.writable_roots.v = one;
    policy.writable_roots.n = 1;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "'some/where' is not absolute"));
    assert_non_null(strstr(err.msg, "writable_roots"));

    static const char *const others[] = {"/proc", "/proc/sys/kernel", "/sys",
                                         "/dev",  "/dev//null",       "/run/"};
    static const char *const right[] = {"/dev/shm", "/run/user", "/procs", "/"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        one[0] = mem_unconst(others[i]);
        assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_CONFIG);
        assert_non_null(strstr(err.msg, "can't be a writable root"));
    }
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        one[0] = mem_unconst(right[i]);
        assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_OK);
        sandbox_plan_free(plan);
        plan = NULL;
    }

    memset(long_path, 'x', LIMIT_PATH + 9);
    long_path[0] = '/';
    long_path[LIMIT_PATH + 9] = '\0';
    one[0] = long_path;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "longer than 4096 bytes"));
    mem_free(long_path);

    policy = workspace();
    policy.writable_roots.n = LIMIT_ROOTS + 1;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "257 writable roots, at most 256"));

    policy = workspace();
    policy.cwd = relative;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_ARG);
    policy.cwd = NULL;
    assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, &err), SY_E_ARG);
    assert_null(plan);
}

static enum sy_code
plan_and_dump(void *arg)
{
    SY_AUTO(buf_fini) struct buf dump = {.max = 1U << 20};
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(7);
    struct sandbox_plan *plan = NULL;
    struct sy_error err = {0};
    enum sy_code rc = sandbox_plan_new(&plan, &policy, &caps, &err);

    (void)arg;
    if (rc == SY_E_OK) {
        rc = sandbox_plan_dump(plan, &dump);
    }
    sandbox_plan_free(plan);
    return rc;
}

static void
planning_survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(plan_and_dump, NULL);
}

/* The plan's error, and what tier it has. */
static enum sy_code
plan_tier(const struct sandbox_policy *policy, const struct sandbox_caps *caps,
          enum sandbox_tier *ret_tier, struct sy_error *err)
{
    struct sandbox_plan *plan = NULL;
    enum sy_code rc = sandbox_plan_new(&plan, policy, caps, err);

    *ret_tier = sandbox_plan_tier(plan);
    sandbox_plan_free(plan);
    return rc;
}

static void
a_tier_below_the_least_wanted_is_refused_with_the_reason(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(7);
    enum sandbox_tier tier = TIER_NONE;
    struct sy_error err = {0};

    (void)state;
    policy.max_tier = TIER_FULL;
    policy.min_tier = TIER_FULL;
    (void)snprintf(caps.full_reason, sizeof(caps.full_reason), "making namespaces failed: EPERM");
    assert_int_equal(plan_tier(&policy, &caps, &tier, &err), SY_E_SANDBOX);
    assert_int_equal(tier, TIER_NONE);
    assert_non_null(strstr(err.msg, "making namespaces failed: EPERM"));
    assert_non_null(strstr(err.msg, "sandbox.min_tier: no-namespace"));
    /* The control: with the tier there, or a lower one wanted, it is made. */
    caps.has_full_tier = true;
    assert_int_equal(plan_tier(&policy, &caps, &tier, &err), SY_E_OK);
    assert_int_equal(tier, TIER_FULL);
    caps.has_full_tier = false;
    policy.min_tier = TIER_NO_NAMESPACE;
    assert_int_equal(plan_tier(&policy, &caps, &tier, &err), SY_E_OK);
    assert_int_equal(tier, TIER_NO_NAMESPACE);
}

static void
limits_of_the_tier_that_contradict_each_other_are_named(void **state)
{
    struct sandbox_policy policy = workspace();
    struct sandbox_caps caps = kernel(7);
    enum sandbox_tier tier = TIER_FULL;
    struct sy_error err = {0};

    (void)state;
    caps.has_full_tier = true;
    policy.max_tier = TIER_NO_NAMESPACE;
    policy.min_tier = TIER_FULL;
    assert_int_equal(plan_tier(&policy, &caps, &tier, &err), SY_E_SANDBOX);
    assert_int_equal(tier, TIER_NONE);
    assert_non_null(strstr(err.msg, "sandbox.tier"));
}

/* Where nobody reads them, records would only fill the machine's log. */
static void
refusals_are_logged_where_somebody_reads_them(void **state)
{
    static const struct {
        int abi;
        bool reads;
        bool has_full_tier;
        enum sandbox_mode mode;
        bool is_logged;
    } cases[] = {
        {7,  true,  false, SANDBOX_WORKSPACE_WRITE,    true },
        {10, true,  false, SANDBOX_READ_ONLY,          true },
        {6,  true,  false, SANDBOX_WORKSPACE_WRITE,    false},
        {7,  false, false, SANDBOX_WORKSPACE_WRITE,    false},
        {7,  true,  true,  SANDBOX_WORKSPACE_WRITE,    false},
        {7,  true,  false, SANDBOX_DANGER_FULL_ACCESS, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sandbox_policy policy = workspace();
        struct sandbox_caps caps = kernel(cases[i].abi);
        struct sandbox_plan *plan = NULL;

        policy.mode = cases[i].mode;
        policy.max_tier = TIER_FULL;
        caps.reads_audit = cases[i].reads;
        caps.has_full_tier = cases[i].has_full_tier;
        assert_int_equal(sandbox_plan_new(&plan, &policy, &caps, NULL), SY_E_OK);

        bool is_logged = sandbox_plan_is_logged(plan);
        bool is_told = sandbox_plan_feature(plan, FEATURE_AUDIT_RECORDS) == FEATURE_ENFORCED;
        bool is_base = sandbox_plan_base(plan).is_logged;

        sandbox_plan_free(plan);
        if (is_logged != cases[i].is_logged || is_told != is_logged || is_base != is_logged) {
            fail_msg("case %zu: logged %d, told %d, base %d", i, is_logged, is_told, is_base);
        }
    }
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_the_golden_files),
        cmocka_unit_test(the_same_input_gives_the_same_plan),
        cmocka_unit_test(no_rule_grants_what_the_kernel_does_not_handle),
        cmocka_unit_test(read_only_creates_and_removes_nothing_anywhere),
        cmocka_unit_test(a_kernel_that_can_not_hold_it_is_refused_with_the_remedy),
        cmocka_unit_test(modes_that_are_not_ours_need_nothing_of_the_kernel),
        cmocka_unit_test(what_the_policy_asks_for_is_told_from_what_the_kernel_lacks),
        cmocka_unit_test(a_root_that_can_not_be_one_is_named),
        cmocka_unit_test(planning_survives_each_failed_allocation),
        cmocka_unit_test(a_tier_below_the_least_wanted_is_refused_with_the_reason),
        cmocka_unit_test(limits_of_the_tier_that_contradict_each_other_are_named),
        cmocka_unit_test(refusals_are_logged_where_somebody_reads_them),
    };

    assert_int_equal(argc, 2);
    golden_dir = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
