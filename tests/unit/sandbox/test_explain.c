/* What explain says; that the kernel agrees is in test_explain_kernel.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "fixture.h"

/* One file is no reason to open the home directory or all of /. */
static void
the_remedy_opens_no_more_than_it_must(void **state)
{
    static const char late[] = "  # make it first: its directory would open too much";
    struct place *p = *state;
    char expected[512];
    char home[300];
    FILE *file = NULL;

    place_ready(p);
    (void)snprintf(home, sizeof(home), "%s", place_path(p, "O"));
    assert_int_equal(setenv("HOME", home, 1), 0);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s/new\"]%s", home,
                   late);
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/new")).fix, expected);
    assert_string_equal(place_ask(p, OPERATION_WRITE, home).fix,
                        "sandbox.writable_roots: [a directory in it]");
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"/no-such\"]%s", late);
    assert_string_equal(place_ask(p, OPERATION_WRITE, "/no-such").fix, expected);

    /* What exists can be named itself, in whatever directory. */
    file = fopen(place_path(p, "O/new"), "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s/new\"]", home);
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/new")).fix, expected);

    /* What can't be a root is not advised. */
    assert_string_equal(place_ask(p, OPERATION_WRITE, "/proc/self/mem").fix, "");
    assert_string_equal(place_ask(p, OPERATION_WRITE, "/dev/sda").fix, "");
    assert_string_equal(place_ask(p, OPERATION_WRITE, "/sys/power/state").fix, "");
    assert_string_equal(place_ask(p, OPERATION_WRITE, "/run/no-such").fix, "");

    /* The control: any other directory is the nearest that exists. */
    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    assert_int_equal(mkdir(place_path(p, "O/.git"), 0700), 0);
    assert_int_equal(mkdir(place_path(p, "O/.git/refs"), 0700), 0);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s/.git/refs\"]", home);
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/.git/refs/x")).fix,
                        expected);
    assert_int_equal(symlink("refs/x", place_path(p, "O/.git/HEAD")), 0); /* as old git has it */
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s/.git\"]", home);
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/.git/refs/x")).fix,
                        expected);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s\"]", home);
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/missing/file")).fix,
                        expected);
}

/* A name goes from what holds it: a root below would not help. */
static void
the_remedy_of_a_removal_is_what_holds_the_name(void **state)
{
    struct place *p = *state;
    struct sandbox_plan *plan = NULL;
    struct sandbox_explanation said;
    char expected[512];

    place_mkdir(p, "O/d");
    place_ready(p);
    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s\"]",
                   place_path(p, "O"));
    assert_string_equal(place_ask(p, OPERATION_DELETE, place_path(p, "O/d")).fix, expected);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s\"]", p->base);
    assert_string_equal(place_ask(p, OPERATION_DELETE, ".").fix, expected);
    assert_string_equal(place_ask(p, OPERATION_DELETE, "/usr").fix, "");
    assert_int_equal(setenv("HOME", place_path(p, "O/d"), 1), 0);
    assert_string_equal(place_ask(p, OPERATION_RENAME, ".").fix, "");

    /* A root that is a mount stays where it is, whatever else may be written. */
    place_add_root(p, p->base);
    p->policy.max_tier = TIER_FULL;
    p->caps.has_full_tier = true;
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_explain(&said, plan, OPERATION_RENAME, ".", NULL), SY_E_OK);
    assert_false(said.is_allowed);
    assert_string_equal(said.fix, "");
    assert_int_equal(sandbox_explain(&said, plan, OPERATION_RENAME, place_path(p, "O/d"), NULL),
                     SY_E_OK);
    assert_true(said.is_allowed);
    sandbox_plan_free(plan);
}

/* Where a turn is narrower than it may be, another configuration would change nothing. */
static void
the_remedy_of_a_narrow_turn_is_the_turn(void **state)
{
    struct place *p = *state;

    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    p->policy.drops_network = true;
    p->policy.drops_roots = true;
    place_ready(p);
    assert_non_null(strstr(place_ask(p, OPERATION_WRITE, place_path(p, "O/x")).fix,
                           "\"]  # and in writable_roots of the turn"));
    assert_string_equal(place_ask(p, OPERATION_CONNECT, "192.0.2.1:80").fix,
                        "network_access of the turn: true");
    p->policy.mode = SANDBOX_READ_ONLY;
    place_ready(p);
    assert_string_equal(place_ask(p, OPERATION_WRITE, "x").fix, "sandbox.mode: workspace-write");
    p->policy.narrows_mode = true;
    place_ready(p);
    assert_string_equal(place_ask(p, OPERATION_WRITE, "x").fix,
                        "sandbox_mode of the turn: workspace-write");
    assert_non_null(strstr(place_ask(p, OPERATION_WRITE, place_path(p, "O/x")).fix,
                           "\"]  # with sandbox_mode of the turn: workspace-write"));
}

/* As configuration reads it: quoted, and whole however long it is. */
static void
the_remedy_is_a_line_of_configuration(void **state)
{
    struct place *p = *state;
    char expected[1200];
    char name[256];

    assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
    place_mkdir(p, "O/a \"b\" \\ c\n#");
    (void)memset(name, 'n', sizeof(name) - 1);
    name[0] = 'O';
    name[1] = '/';
    name[sizeof(name) - 1] = '\0';
    place_mkdir(p, name);
    place_mkdir(p, "O/\xff");
    place_ready(p);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s\"]",
                   place_path(p, "O/a \\\"b\\\" \\\\ c\\x0a#"));
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/a \"b\" \\ c\n#/f")).fix,
                        expected);
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s\"]",
                   place_path(p, name));
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, name)).fix, expected);
    /* What YAML can't name has no line. */
    assert_string_equal(place_ask(p, OPERATION_WRITE, place_path(p, "O/\xff/f")).fix, "");
}

static void
the_rule_and_the_remedy_are_named(void **state)
{
    struct place *p = *state;
    struct sandbox_explanation said;
    char expected[512];

    place_link(p, "../O", "W/out");
    place_ready(p);
    said = place_ask(p, OPERATION_WRITE, "new.txt");
    assert_true(said.is_allowed);
    (void)snprintf(expected, sizeof(expected), "writable root %.100s (policy cwd)", p->policy.cwd);
    assert_string_equal(said.rule, expected);
    assert_string_equal(said.resolved, place_path(p, "W/new.txt"));
    assert_string_equal(said.fix, "");

    said = place_ask(p, OPERATION_WRITE, "out/new.txt");
    assert_false(said.is_allowed);
    assert_string_equal(said.resolved, place_path(p, "O/new.txt"));
    assert_non_null(strstr(said.rule, "below no writable root"));
    (void)snprintf(expected, sizeof(expected), "sandbox.writable_roots: [\"%s\"]",
                   place_path(p, "O"));
    assert_string_equal(said.fix, expected);

    said = place_ask(p, OPERATION_WRITE, "/dev/null");
    assert_true(said.is_allowed);
    assert_non_null(strstr(said.rule, "device /dev/null"));

    said = place_ask(p, OPERATION_READ, "/etc/passwd");
    assert_true(said.is_allowed);

    p->policy.mode = SANDBOX_READ_ONLY;
    place_ready(p);
    said = place_ask(p, OPERATION_WRITE, "new.txt");
    assert_false(said.is_allowed);
    assert_string_equal(said.fix, "sandbox.mode: workspace-write");

    /* /tmp comes with that mode, unless it is left out. */
    p->policy.excludes_slash_tmp = false;
    place_ready(p);
    said = place_ask(p, OPERATION_WRITE, "/tmp/new.txt");
    assert_false(said.is_allowed);
    assert_string_equal(said.fix, "sandbox.mode: workspace-write");
    p->policy.excludes_slash_tmp = true;
    place_ready(p);
    said = place_ask(p, OPERATION_WRITE, "/tmp/new.txt");
    assert_string_equal(said.fix,
                        "sandbox.writable_roots: [\"/tmp\"]  # with sandbox.mode: workspace-write");
}

static void
connections_are_judged_by_their_kind(void **state)
{
    struct place *p = *state;
    struct sandbox_explanation said;
    struct sy_error err = {0};

    place_ready(p);
    said = place_ask(p, OPERATION_CONNECT, "example.org:443");
    assert_false(said.is_allowed);
    assert_string_equal(said.fix, "sandbox.network_access: true");
    said = place_ask(p, OPERATION_CONNECT, "[::1]:80");
    assert_false(said.is_allowed);
    said = place_ask(p, OPERATION_CONNECT, "unix:@other");
    assert_int_equal(said.is_allowed, p->caps.landlock_abi < 6 && !p->caps.has_seccomp_notify);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_CONNECT, "example.org", &err),
                     SY_E_ARG);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_CONNECT, "example.org:99999", &err),
                     SY_E_ARG);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_CONNECT, ":80", &err), SY_E_ARG);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_CONNECT, "::1:80", &err), SY_E_ARG);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_CONNECT, "[]:80", &err), SY_E_ARG);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_CONNECT, "[::1:80", &err), SY_E_ARG);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_READ, "", &err), SY_E_ARG);

    p->policy.has_network = true;
    place_ready(p);
    said = place_ask(p, OPERATION_CONNECT, "example.org:443");
    assert_true(said.is_allowed);
}

static struct sandbox_explanation
ask_plan(const struct sandbox_plan *plan, const char *object)
{
    struct sandbox_explanation said = {0};

    assert_int_equal(sandbox_explain(&said, plan, OPERATION_CONNECT, object, NULL), SY_E_OK);
    return said;
}

static void
a_network_of_its_own_is_its_own_loopback(void **state)
{
    static const char *const own[] = {"127.0.0.1:8080", "127.9.9.9:1",  "[::1]:80",
                                      "0.0.0.0:80",     "localhost:80", "a.localhost:80"};
    static const char *const others[] = {"example.org:443", "169.254.169.254:80", "10.0.0.1:22",
                                         "notlocalhost:80", "[2001:db8::1]:80"};
    struct place *p = *state;
    struct sandbox_plan *plan = NULL;
    struct sandbox_explanation said;

    p->policy.max_tier = TIER_FULL;
    p->caps.has_full_tier = true;
    p->caps.has_seccomp_notify = true;
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_true(sandbox_plan_has_own_network(plan));
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        said = ask_plan(plan, own[i]);
        assert_true(said.is_allowed);
        assert_non_null(strstr(said.rule, "none of this machine's"));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        said = ask_plan(plan, others[i]);
        assert_false(said.is_allowed);
        assert_string_equal(said.fix, "sandbox.network_access: true");
    }
    assert_false(ask_plan(plan, "unix:@other").is_allowed);
    sandbox_plan_free(plan);

    p->policy.network_allow.max = 4;
    assert_int_equal(strv_add(&p->policy.network_allow, "127.0.0.1:8080"), SY_E_OK);
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_non_null(strstr(ask_plan(plan, "127.0.0.1:8080").rule, "through the proxy alone"));
    assert_non_null(strstr(ask_plan(plan, "127.0.0.1:8081").rule, "none of this machine's"));
    said = ask_plan(plan, "example.org:443");
    assert_false(said.is_allowed);
    assert_string_equal(said.fix, "network.allow: [example.org]");
    sandbox_plan_free(plan);

    p->policy.has_network = true;
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_false(sandbox_plan_has_own_network(plan));
    sandbox_plan_free(plan);
}

static void
named_sockets_are_told_by_what_the_kernel_restricts(void **state)
{
    struct place *p = *state;
    struct sandbox_explanation said;
    struct sandbox_plan *plan = NULL;
    char inside[300];
    char outside[300];

    (void)snprintf(inside, sizeof(inside), "unix:%s", place_path(p, "W/s"));
    (void)snprintf(outside, sizeof(outside), "unix:%s", place_path(p, "O/s"));
    p->caps.landlock_abi = 8;
    p->caps.has_seccomp_notify = true;
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_explain(&said, plan, OPERATION_CONNECT, inside, NULL), SY_E_OK);
    assert_false(said.is_allowed);
    assert_non_null(strstr(said.rule, "a process of the same command listens"));
    sandbox_plan_free(plan);

    p->policy.has_network = true;
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_explain(&said, plan, OPERATION_CONNECT, outside, NULL), SY_E_OK);
    assert_true(said.is_allowed);
    assert_non_null(strstr(said.rule, "Landlock ABI 8, 9 needed"));
    sandbox_plan_free(plan);

    p->caps.landlock_abi = 9;
    assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
    assert_int_equal(sandbox_explain(&said, plan, OPERATION_CONNECT, outside, NULL), SY_E_OK);
    assert_false(said.is_allowed);
    assert_int_equal(sandbox_explain(&said, plan, OPERATION_CONNECT, inside, NULL), SY_E_OK);
    assert_true(said.is_allowed);
    sandbox_plan_free(plan);
}

static void
abstract_sockets_are_told_by_who_holds_them(void **state)
{
    static const struct {
        int abi;
        bool has_network;
        bool is_held;
    } rows[] = {
        {2, false, true }, /* by the broker */
        {2, true,  false},
        {6, true,  true },
    };
    struct place *p = *state;

    p->caps.has_seccomp_notify = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sandbox_plan *plan = NULL;

        p->caps.landlock_abi = rows[i].abi;
        p->policy.has_network = rows[i].has_network;
        assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
        assert_int_equal(ask_plan(plan, "unix:@other").is_allowed, !rows[i].is_held);
        assert_int_equal(sandbox_plan_feature(plan, FEATURE_UNIX_ABSTRACT) == FEATURE_ENFORCED,
                         rows[i].is_held);
        sandbox_plan_free(plan);
    }
}

static void
without_a_broker_no_socket_leaves_a_network_of_its_own(void **state)
{
    struct place *p = *state;
    struct sandbox_plan *plan = NULL;
    char outside[300];

    (void)snprintf(outside, sizeof(outside), "unix:%s", place_path(p, "O/s"));
    p->policy.max_tier = TIER_FULL;
    p->caps.has_full_tier = true;
    p->caps.has_seccomp_notify = false;
    for (int abi = 2; abi <= 9; abi++) {
        p->caps.landlock_abi = abi;
        assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
        assert_int_equal(sandbox_plan_feature(plan, FEATURE_UNIX_PATH), FEATURE_ENFORCED);
        assert_int_equal(sandbox_plan_feature(plan, FEATURE_UNIX_ABSTRACT), FEATURE_ENFORCED);
        assert_false(ask_plan(plan, "unix:@other").is_allowed);
        assert_false(ask_plan(plan, outside).is_allowed);
        assert_string_equal(ask_plan(plan, outside).fix, "sandbox.network_access: true");
        sandbox_plan_free(plan);
    }
}

static void
truncation_is_told_by_who_holds_it(void **state)
{
    static const struct {
        int abi;
        bool is_full;
        bool is_held;
    } rows[] = {
        {2, false, false},
        {2, true,  true }, /* by mounts */
        {3, false, true },
        {3, true,  true },
    };
    struct place *p = *state;

    p->caps.has_full_tier = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sandbox_plan *plan = NULL;
        struct sandbox_explanation said;

        p->caps.landlock_abi = rows[i].abi;
        p->policy.max_tier = rows[i].is_full ? TIER_FULL : TIER_NO_NAMESPACE;
        assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
        assert_int_equal(
            sandbox_explain(&said, plan, OPERATION_TRUNCATE, place_path(p, "O/f"), NULL), SY_E_OK);
        assert_int_equal(said.is_allowed, !rows[i].is_held);
        assert_int_equal(said.fix[0] != '\0', rows[i].is_held);
        assert_int_equal(sandbox_plan_feature(plan, FEATURE_FS_TRUNCATE) == FEATURE_ENFORCED,
                         rows[i].is_held);
        assert_int_equal(
            sandbox_explain(&said, plan, OPERATION_TRUNCATE, place_path(p, "W/f"), NULL), SY_E_OK);
        assert_true(said.is_allowed);
        sandbox_plan_free(plan);
    }
}

/* A line that lets nothing run is no remedy. */
static void
what_is_shellyards_own_has_no_remedy(void **state)
{
    static const char *const ours[] = {"O/conf/shellyard", "O/conf/shellyard/config.yaml",
                                       "O/conf/shellyard/none/x", "O/link/shellyard/x"};
    static const enum sandbox_operation ops[] = {
        OPERATION_WRITE, OPERATION_CREATE, OPERATION_DELETE, OPERATION_RENAME, OPERATION_TRUNCATE};
    struct place *p = *state;

    place_mkdir(p, "O/conf");
    place_mkdir(p, "O/conf/shellyard");
    place_mkdir(p, "O/conf/other");
    place_file(p, "O/conf/shellyard/config.yaml", "");
    place_link(p, "conf", "O/link");
    p->policy.own_dirs.max = 1;
    assert_int_equal(strv_add(&p->policy.own_dirs, place_path(p, "O/link/shellyard")), SY_E_OK);
    p->caps.has_full_tier = true;
    for (int is_full = 0; is_full < 2; is_full++) {
        struct sandbox_plan *plan = NULL;
        struct sandbox_explanation said;

        p->policy.max_tier = is_full == 1 ? TIER_FULL : TIER_NO_NAMESPACE;
        assert_int_equal(sandbox_plan_new(&plan, &p->policy, &p->caps, NULL), SY_E_OK);
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
            for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
                assert_int_equal(sandbox_explain(&said, plan, ops[k], place_path(p, ours[i]), NULL),
                                 SY_E_OK);
                assert_false(said.is_allowed);
                assert_string_equal(said.fix, "");
                assert_non_null(strstr(said.rule, "what Shellyard believes"));
            }
        }
        /* Beside it there is one, which without mounts holds nothing of ours. */
        assert_int_equal(
            sandbox_explain(&said, plan, OPERATION_WRITE, place_path(p, "O/conf/new/f"), NULL),
            SY_E_OK);
        assert_int_equal(strstr(said.fix, "new/f") == NULL, is_full == 1);
        assert_int_equal(
            sandbox_explain(&said, plan, OPERATION_WRITE, place_path(p, "O/conf/other"), NULL),
            SY_E_OK);
        assert_non_null(strstr(said.fix, "other\"]"));
        sandbox_plan_free(plan);
    }
}

static void
loops_and_endless_names_are_errors(void **state)
{
    struct place *p = *state;
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};
    char *endless = mem_alloc_zero(1, 6000);

    place_link(p, "loop", "W/loop");
    place_ready(p);
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_WRITE, "loop", &err), SY_E_SYS);
    assert_int_equal(err.sys, ELOOP);
    for (size_t i = 0; i + 1 < 6000; i++) {
        endless[i] = i % 2 == 0 ? '/' : 'a';
    }
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_WRITE, endless, &err), SY_E_SYS);
    assert_int_equal(err.sys, ENAMETOOLONG);
    mem_free(endless);
}

static enum sy_code
explain_something(void *arg)
{
    struct place *p = arg;
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};

    return sandbox_explain(&said, p->plan, OPERATION_WRITE, "to_out/x", &err);
}

static void
explaining_survives_each_failed_allocation(void **state)
{
    struct place *p = *state;

    place_link(p, "../O", "W/to_out");
    place_ready(p);
    fault_run(explain_something, p);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(the_rule_and_the_remedy_are_named),
        IN_A_PLACE(the_remedy_is_a_line_of_configuration),
        IN_A_PLACE(the_remedy_of_a_narrow_turn_is_the_turn),
        IN_A_PLACE(the_remedy_opens_no_more_than_it_must),
        IN_A_PLACE(the_remedy_of_a_removal_is_what_holds_the_name),
        IN_A_PLACE(connections_are_judged_by_their_kind),
        IN_A_PLACE(a_network_of_its_own_is_its_own_loopback),
        IN_A_PLACE(named_sockets_are_told_by_what_the_kernel_restricts),
        IN_A_PLACE(abstract_sockets_are_told_by_who_holds_them),
        IN_A_PLACE(without_a_broker_no_socket_leaves_a_network_of_its_own),
        IN_A_PLACE(truncation_is_told_by_who_holds_it),
        IN_A_PLACE(what_is_shellyards_own_has_no_remedy),
        IN_A_PLACE(loops_and_endless_names_are_errors),
        IN_A_PLACE(explaining_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
