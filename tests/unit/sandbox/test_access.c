/*
 * The narrowest widening of a policy, and what a person is told of it: the same as what explain
 * says before and after.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "fixture.h"
#include "sandbox/access.h"
#include "sandbox/delta.h"

static struct access
access_of(enum access_kind kind, const char *object)
{
    struct access a = {.kind = kind, .object = mem_strdup(object), .lifts = {.max = 8}};

    assert_non_null(a.object);
    return a;
}

static void
widen(struct sandbox_policy *p, enum access_kind kind, const char *object, const char *hidden_by)
{
    struct access a = access_of(kind, object);

    p->writable_roots.max = LIMIT_ROOTS;
    p->network_allow.max = LIMIT_PROXY_ALLOW;
    p->allow_read.max = LIMIT_DENY_READ;
    if (hidden_by != NULL) {
        assert_int_equal(strv_add(&a.lifts, hidden_by), SY_E_OK);
    }
    assert_int_equal(access_widen(p, &a), SY_E_OK);
    access_fini(&a);
}

/* --- judging --- */

static enum access_weight
judge(enum access_kind kind, const char *object, const char *why)
{
    static char home[] = "/home/me";
    static char own[] = "/home/me/.local/state/shellyard";
    static char program[] = "/opt/shellyard/bin";
    static char git[] = ".git";
    char *const homes[] = {home, NULL};
    char *const owns[] = {own, NULL};
    char *const programs[] = {program, NULL};
    char *const names[] = {git, NULL};
    const struct access_world w = {
        .homes = homes, .own = owns, .programs = programs, .protected = names};
    struct access a = access_of(kind, object);
    struct access_verdict v;

    access_judge(&v, &a, &w);
    access_fini(&a);
    if (why != NULL && strstr(v.why, why) == NULL) {
        fail_msg("%s: '%s' does not say '%s'", object, v.why, why);
    }
    return v.weight;
}

static void
what_nobody_gets_is_refused_and_what_is_beside_it_is_not(void **state)
{
    static const struct {
        const char *refused;
        const char *why;
        enum access_weight weight; /* of `beside` */
        const char *beside;
    } cases[] = {
        {"/",                               "everything",        ACCESS_PLAIN, "/data"             },
        {"/etc",                            "whole directory",   ACCESS_GRAVE, "/etc/ssl"          },
        {"/usr",                            "whole directory",   ACCESS_GRAVE, "/usr/lib"          },
        {"/proc/sys/kernel",                "kernel",            ACCESS_PLAIN, "/processes"        },
        {"/dev/sda",                        "kernel",            ACCESS_PLAIN, "/devel"            },
        {"/home",                           "whole",             ACCESS_PLAIN, "/home/other/x"     },
        {"/home/me",                        "whole home",        ACCESS_PLAIN, "/home/me/work"     },
        {"/home/me/.local/state/shellyard", "rules and answers", ACCESS_GRAVE,
         "/home/me/.local/state/other"                                                             },
        {"/home/me/.local/state",           "rules and answers", ACCESS_GRAVE, "/home/me/.config"  },
        {"/opt/shellyard",                  "programs or hooks", ACCESS_PLAIN, "/opt/other"        },
        {"/data/repo/.git/hooks",           "protected name",    ACCESS_PLAIN, "/data/repo/.github"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(judge(ACCESS_WRITE, cases[i].refused, cases[i].why), ACCESS_REFUSED);
        assert_int_equal(judge(ACCESS_WRITE, cases[i].beside, NULL), cases[i].weight);
    }
    assert_int_equal(judge(ACCESS_READ, "/home/me/.local/state/shellyard/x", "answers"),
                     ACCESS_REFUSED);
    assert_int_equal(judge(ACCESS_READ, "/opt/shellyard/bin", NULL), ACCESS_PLAIN);
}

static void
a_host_that_is_not_on_the_internet_is_grave(void **state)
{
    (void)state;
    assert_int_equal(judge(ACCESS_CONNECT, "example.com", NULL), ACCESS_PLAIN);
    assert_int_equal(judge(ACCESS_CONNECT, "192.0.32.8:443", NULL), ACCESS_PLAIN);
    assert_int_equal(judge(ACCESS_CONNECT, "127.0.0.1:80", "loopback"), ACCESS_GRAVE);
    assert_int_equal(judge(ACCESS_CONNECT, "[::1]:80", "loopback"), ACCESS_GRAVE);
    assert_int_equal(judge(ACCESS_CONNECT, "10.1.2.3", "private"), ACCESS_GRAVE);
    assert_int_equal(judge(ACCESS_CONNECT, "169.254.169.254", "credentials"), ACCESS_GRAVE);
    assert_int_equal(judge(ACCESS_CONNECT, "localhost:80 local", "may lead"), ACCESS_GRAVE);
    assert_int_equal(judge(ACCESS_CONNECT, "*.example.com", "no single host"), ACCESS_REFUSED);
}

static void
secrets_are_grave(void **state)
{
    struct access a = access_of(ACCESS_READ, "/home/me/.netrc");
    const struct access_world w = {0};
    struct access_verdict v;

    (void)state;
    access_judge(&v, &a, &w);
    assert_int_equal(v.weight, ACCESS_PLAIN);
    assert_int_equal(strv_add(&a.lifts, "/home/me/.netrc"), SY_E_OK);
    access_judge(&v, &a, &w);
    assert_int_equal(v.weight, ACCESS_GRAVE);
    assert_non_null(strstr(v.why, "SECRETS"));
    access_fini(&a);
}

/* --- the delta is what explain says --- */

static const char *const names[] = {
    "W",      "W/a",     "O",         "O/x",      "O/x/a",     "O/x/a/b",     "O/x2",
    "O/y",    "O/file",  "O/file2",   "H/.netrc", "H/.pgpass", "H/.aws",      "H/.aws/key",
    "H/work", "O/x/new", "O/x/a/new", "O/new",    "H/.netrc2", "H/.aws/none", "O/x/a/b/new",
};

static const char *const hosts[] = {"example.com:443", "example.com:80", "example.com:8080",
                                    "127.0.0.1:80",    "127.0.0.1:81",   "other.example:443"};

static void
make_files(struct place *p)
{
    static const char *const dirs[] = {"O/x", "O/x/a", "O/x2", "H", "H/.aws", "H/work"};
    static const char *const files[] = {"O/x/a/b",  "O/y",       "O/file",     "O/file2",
                                        "H/.netrc", "H/.pgpass", "H/.aws/key", "W/a"};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        place_mkdir(p, dirs[i]);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        place_file(p, files[i], "x");
    }
    p->policy.deny_homes.max = 1;
    assert_int_equal(strv_add(&p->policy.deny_homes, place_path(p, "H")), SY_E_OK);
}

struct pair {
    struct sandbox_plan *before;
    struct sandbox_plan *after;
    struct sandbox_delta delta;
};

static bool
is_allowed(const struct sandbox_plan *plan, enum sandbox_operation op, const char *object)
{
    struct sandbox_explanation e;
    struct sy_error err = {0};

    assert_int_equal(sandbox_explain(&e, plan, op, object, &err), SY_E_OK);
    return e.is_allowed;
}

static size_t
compare(const struct pair *p, enum sandbox_operation op, const char *object)
{
    struct sy_error err = {0};
    bool is_new = !is_allowed(p->before, op, object) && is_allowed(p->after, op, object);
    bool is_told = false;

    assert_int_equal(sandbox_delta_covers(&is_told, &p->delta, op, object, &err), SY_E_OK);
    if (is_told != is_new) {
        fail_msg("%s of %s: told %d, explained %d", sandbox_operation_name(op), object, is_told,
                 is_new);
    }
    return is_new ? 1 : 0;
}

/* How many of all questions are answered otherwise: each has to be told, and no other. */
static size_t
compare_all(struct place *p, enum access_kind kind, const char *object, const char *hidden_by)
{
    static const enum sandbox_operation ops[] = {OPERATION_READ, OPERATION_WRITE, OPERATION_CREATE,
                                                 OPERATION_DELETE, OPERATION_TRUNCATE};
    struct sandbox_policy wide = {0};
    struct pair pair = {0};
    struct sy_error err = {0};
    size_t n = 0;

    p->caps.has_full_tier = false;
    p->caps.landlock_abi = p->caps.landlock_abi < 3 ? 3 : p->caps.landlock_abi;
    assert_int_equal(sandbox_policy_copy(&wide, &p->policy), SY_E_OK);
    widen(&wide, kind, object, hidden_by);
    assert_int_equal(sandbox_plan_new(&pair.before, &p->policy, &p->caps, &err), SY_E_OK);
    assert_int_equal(sandbox_plan_new(&pair.after, &wide, &p->caps, &err), SY_E_OK);

    const struct delta_input in = {.before = &p->policy, .after = &wide};

    assert_int_equal(sandbox_delta_new(&pair.delta, &in), SY_E_OK);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
            n += compare(&pair, ops[k], place_path(p, names[i]));
        }
    }
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        n += compare(&pair, OPERATION_CONNECT, hosts[i]);
    }
    sandbox_delta_fini(&pair.delta);
    sandbox_plan_free(pair.before);
    sandbox_plan_free(pair.after);
    sandbox_policy_fini(&wide);
    return n;
}

static void
what_is_told_is_what_explain_says_before_and_after(void **state)
{
    struct place *p = *state;

    make_files(p);
    /* Six names at and below O/x: written and cut, and all but itself made and removed. */
    assert_int_equal(compare_all(p, ACCESS_WRITE, place_path(p, "O/x"), NULL), 22);
    assert_int_equal(compare_all(p, ACCESS_WRITE, place_path(p, "O/file"), NULL), 2);
    assert_int_equal(compare_all(p, ACCESS_WRITE, place_path(p, "W/a"), NULL), 0);
    assert_int_equal(
        compare_all(p, ACCESS_READ, place_path(p, "H/.netrc"), place_path(p, "H/.netrc")), 1);
    assert_true(compare_all(p, ACCESS_RUN, place_path(p, "H/.aws/key"), place_path(p, "H/.aws")) >=
                2);
    if (p->caps.has_seccomp_notify) {
        assert_int_equal(compare_all(p, ACCESS_CONNECT, "example.com", NULL), 2);
        assert_int_equal(compare_all(p, ACCESS_CONNECT, "example.com:8080", NULL), 1);
        assert_int_equal(compare_all(p, ACCESS_CONNECT, "127.0.0.1:81", NULL), 1);
    }
}

static void
what_stays_protected_and_hidden_is_told(void **state)
{
    struct place *p = *state;
    static char git[] = ".git";
    char *const kept[] = {git, NULL};
    struct sandbox_policy wide = {0};
    struct sandbox_delta d = {0};
    struct delta_input in = {.before = &p->policy, .after = &wide, .protected = kept};

    make_files(p);
    p->policy.deny_read.max = 1;
    assert_int_equal(strv_add(&p->policy.deny_read, place_path(p, "O/x/*.key")), SY_E_OK);
    assert_int_equal(sandbox_policy_copy(&wide, &p->policy), SY_E_OK);
    assert_int_equal(sandbox_delta_new(&d, &in), SY_E_OK);
    assert_true(sandbox_delta_is_empty(&d));
    assert_int_equal(d.kept.n, 0);
    sandbox_delta_fini(&d);

    widen(&wide, ACCESS_WRITE, place_path(p, "O"), NULL);
    in.has_mounts = true;
    assert_int_equal(sandbox_delta_new(&d, &in), SY_E_OK);
    assert_int_equal(d.n, 1);
    assert_string_equal(d.kept.v[0], ".git");
    assert_string_equal(d.hidden.v[0], place_path(p, "O/x/*.key"));
    sandbox_delta_fini(&d);

    /* Without mounts nothing hides it there: then it is a gain, and a secret. */
    in.has_mounts = false;
    assert_int_equal(sandbox_delta_new(&d, &in), SY_E_OK);
    assert_int_equal(d.n, 2);
    assert_true(d.v[1].is_secret);
    assert_string_equal(d.v[1].object, place_path(p, "O/x/*.key"));
    sandbox_delta_fini(&d);
    sandbox_policy_fini(&wide);
}

static void
twice_is_once_and_a_full_policy_says_so(void **state)
{
    struct place *p = *state;
    struct access a = access_of(ACCESS_WRITE, "/srv/a");

    p->policy.writable_roots.max = p->policy.writable_roots.n + 1;
    assert_int_equal(access_widen(&p->policy, &a), SY_E_OK);
    assert_int_equal(access_widen(&p->policy, &a), SY_E_OK);
    assert_int_equal(p->policy.writable_roots.n, p->policy.writable_roots.max);
    a.object[5] = 'b';
    assert_int_equal(access_widen(&p->policy, &a), SY_E_LIMIT);
    access_fini(&a);
}

static void
a_default_that_a_variable_names_is_taken_out_by_itself(void **state)
{
    struct place *p = *state;

    p->policy.deny_read.max = 3;
    assert_int_equal(strv_add(&p->policy.deny_read, "/k/a"), SY_E_OK);
    assert_int_equal(strv_add(&p->policy.deny_read, "/k/b"), SY_E_OK);
    assert_int_equal(strv_add(&p->policy.deny_read, "/k/a"), SY_E_OK);
    p->policy.n_default_deny_read = 2;
    widen(&p->policy, ACCESS_READ, "/k/a", "/k/a");
    assert_int_equal(p->policy.n_default_deny_read, 1);
    assert_int_equal(p->policy.deny_read.n, 2);
    assert_string_equal(p->policy.deny_read.v[0], "/k/b");
    assert_string_equal(p->policy.deny_read.v[1], "/k/a"); /* a person's own */
}

static enum sy_code
all_of_it(void *arg)
{
    const struct place *p = arg;
    struct access a = {.kind = ACCESS_WRITE, .object = mem_strdup("/srv/x"), .lifts = {.max = 1}};
    struct access copy = {0};
    struct sandbox_policy wide = {0};
    struct sandbox_delta d = {0};
    struct buf out = {.max = 100000};
    struct sy_error err = {0};
    bool is_told = false;
    enum sy_code rc = a.object == NULL ? SY_E_NOMEM : access_copy(&copy, &a);

    if (rc == SY_E_OK) {
        rc = sandbox_policy_copy(&wide, &p->policy);
    }
    wide.writable_roots.max = LIMIT_ROOTS;
    if (rc == SY_E_OK) {
        rc = access_widen(&wide, &copy);
    }

    const struct delta_input in = {.before = &p->policy, .after = &wide};

    if (rc == SY_E_OK) {
        rc = sandbox_delta_new(&d, &in);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_delta_covers(&is_told, &d, OPERATION_WRITE, "/srv/x/y", &err);
    }
    if (rc == SY_E_OK) {
        struct jw w = {.out = &out};

        jw_object(&w);
        sandbox_delta_write(&w, &d);
        jw_end_object(&w);
        rc = jw_done(&w);
    }
    rc = rc == SY_E_OK && !is_told ? SY_E_INTERNAL : rc;
    buf_fini(&out);
    sandbox_delta_fini(&d);
    sandbox_policy_fini(&wide);
    access_fini(&copy);
    access_fini(&a);
    return rc;
}

static void
every_allocation_may_fail(void **state)
{
    fault_run(all_of_it, *state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_gets_is_refused_and_what_is_beside_it_is_not),
        cmocka_unit_test(a_host_that_is_not_on_the_internet_is_grave),
        cmocka_unit_test(secrets_are_grave),
        cmocka_unit_test_setup_teardown(what_is_told_is_what_explain_says_before_and_after,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(what_stays_protected_and_hidden_is_told, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(twice_is_once_and_a_full_policy_says_so, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_default_that_a_variable_names_is_taken_out_by_itself,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, place_setup, place_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
