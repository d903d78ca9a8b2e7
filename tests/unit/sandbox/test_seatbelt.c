#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "golden_text.h"
#include "seatbelt_world.h"

static const char *golden_dir;

static void
check_golden(const struct world *w, const char *name)
{
    SY_AUTO(buf_fini) struct buf text = {.max = 1U << 20};
    enum sy_code rc = buf_addf(&text, "mode %s\ntier %s\nnetwork %s\nproxy port %u\n",
                               sandbox_mode_name(w->plan.mode), seatbelt_plan_tier(&w->plan),
                               w->plan.has_network ? "on" : "off", (unsigned)w->plan.proxy_port);

    for (int i = 0; rc == SY_E_OK && i < FEATURE_COUNT; i++) {
        rc = buf_addf(&text, "feature %s %s\n", sandbox_feature_name((enum sandbox_feature)i),
                      feature_state_name(w->plan.features[i]));
    }
    for (size_t i = 0; rc == SY_E_OK && i < w->plan.params.n; i++) {
        rc = buf_addf(&text, "-D %s\n", w->plan.params.v[i]);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(&text, "profile\n%s", buf_view(&w->plan.profile));
    }
    assert_int_equal(rc, SY_E_OK);
    golden_check(golden_dir, name, &text);
}

static void
plans_are_those_of_the_golden_files(void **state)
{
    static const char *const networks[] = {"off", "on", "proxy"};

    (void)state;
    for (int mode = SANDBOX_READ_ONLY; mode <= SANDBOX_EXTERNAL; mode++) {
        for (int network = 0; network < 3; network++) {
            struct world w = {.policy = world_policy()};
            struct sy_error err = {0};
            char name[96];

            w.policy.mode = (enum sandbox_mode)mode;
            w.policy.has_network = network == 1;
            w.request.policy = &w.policy;
            w.request.proxy_port = network == 2 ? 3128 : 0;
            assert_int_equal(seatbelt_plan_init(&w.plan, &w.request, &err), SY_E_OK);
            (void)snprintf(name, sizeof(name), "macos-%s-network-%s.txt",
                           sandbox_mode_name(w.policy.mode), networks[network]);
            check_golden(&w, name);
            world_fini(&w);
        }
    }

    struct world w = {.policy = world_policy(), .request = {.deny_read = world_secrets}};

    world_make(&w);
    check_golden(&w, "macos-workspace-write-deny-read.txt");
    world_fini(&w);
}

static void
each_profile_is_one_that_a_strict_reader_takes(void **state)
{
    (void)state;
    for (int bits = 0; bits < 64; bits++) {
        struct world w = {.policy = world_policy()};
        static char *const no_names[] = {NULL};

        w.policy.mode = (bits & 1) != 0 ? SANDBOX_READ_ONLY : SANDBOX_WORKSPACE_WRITE;
        w.policy.has_network = (bits & 2) != 0;
        w.request.proxy_port = (bits & 4) != 0 ? 65535 : 0;
        w.request.deny_read = (bits & 8) != 0 ? world_secrets : NULL;
        w.policy.excludes_slash_tmp = (bits & 16) != 0;
        w.request.protected_names = (bits & 32) != 0 ? no_names : NULL;
        world_make(&w);
        world_fini(&w);
    }
}

static void
the_reader_refuses_what_is_broken(void **state)
{
    static const char *const good = "(version 1)\n(deny default)\n(allow file-write* (subpath "
                                    "(param \"A\")))\n; end\n";
    static const char *const broken[] = {
        "(version 1)",
        "(deny default)(version 1)",
        "(version 1)(allow default)",
        "(version 1)(deny default",
        "(version 1)(deny default))",
        "(version 1)(deny default)(allow file-write* (subpath \"/a)))",
        "(version 1)(deny default)(allow file-writ* (subpath \"/a\"))",
        "(version 1)(deny default)(allow file-write* (below \"/a\"))",
        "(version 1)(deny default)(allow file-write* (subpath (param \"B\")))",
        "(version 1)(deny default)(allow file-write* (subpath \"/a\" \"/b\"))",
        "(version 1)(deny default)(allow file-write* (global-name \"x\"))",
        "(version 1)(deny default)(allow file-write* (regex #\"(\"))",
        "(version 1)(deny default)(allow network-outbound (remote ip \"1.2.3.4:80\"))",
        "(version 1)(deny default)(allow signal (target others))",
        "(version 1)(deny default)(if (defined? 'nothing) (deny nvram*))",
        "(version 1)(deny default)(import \"system.sb\")",
        "(version 1)(deny default)\"text\"",
    };
    struct strv params = {.max = 4};
    char why[256];

    (void)state;
    assert_int_equal(strv_add(&params, "A=/x"), SY_E_OK);

    struct sbpl *p = sbpl_read(good, &params, why);

    assert_non_null(p);
    assert_true(sbpl_allows_file(p, "file-write-data", "/x/y"));
    assert_false(sbpl_allows_file(p, "file-write-data", "/xy"));
    sbpl_free(p);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        p = sbpl_read(broken[i], &params, why);
        if (p != NULL) {
            fail_msg("taken: %s", broken[i]);
        }
    }
    strv_fini(&params);
}

static void
writes_go_below_the_canonical_roots_alone(void **state)
{
    struct world w = {.policy = world_policy()};

    (void)state;
    world_make(&w);
    world_allows(&w, "file-write-data", "/Users/u/work/a");
    world_allows(&w, "file-write-create", "/Users/u/cache/deep/a");
    world_allows(&w, "file-write-unlink", "/private/tmp/a");
    world_allows(&w, "file-write-data", "/private/var/folders/x/T/a");
    world_allows(&w, "file-write-data", "/dev/null");
    world_allows(&w, "file-read-data", "/etc/hosts");
    world_denies(&w, "file-write-data", "/Users/u/worker");
    world_denies(&w, "file-write-data", "/Users/u/a");
    world_denies(&w, "file-write-data", "/tmp/a");
    world_denies(&w, "file-write-data", "/var/folders/x/T/a");
    world_denies(&w, "file-write-mode", "/Users/u/a");
    world_denies(&w, "file-write-data", "/dev/disk0");
    world_denies(&w, "file-ioctl", "/dev/disk0");
    world_fini(&w);

    w = (struct world){.policy = world_policy()};
    w.policy.mode = SANDBOX_READ_ONLY;
    world_make(&w);
    world_denies(&w, "file-write-data", "/Users/u/work/a");
    world_denies(&w, "file-write-data", "/private/tmp/a");
    world_allows(&w, "file-write-data", "/dev/null");
    world_allows(&w, "file-read-data", "/Users/u/work/a");
    world_fini(&w);

    w = (struct world){.policy = world_policy()};
    w.policy.excludes_tmpdir = true;
    w.policy.excludes_slash_tmp = true;
    world_make(&w);
    world_denies(&w, "file-write-data", "/private/tmp/a");
    world_denies(&w, "file-write-data", "/private/var/folders/x/T/a");
    world_allows(&w, "file-write-data", "/Users/u/work/a");
    world_fini(&w);
}

static void
protected_names_hold_at_any_depth_and_in_either_case(void **state)
{
    static const char *const held[] = {
        "/Users/u/work/.git/hooks",
        "/Users/u/work/.git/hooks/pre-commit",
        "/Users/u/work/.git/config",
        "/Users/u/work/.git/config.lock",
        "/Users/u/work/.git/config.worktree",
        "/Users/u/work/.GIT/Hooks/pre-commit",
        "/Users/u/work/a/b/.git/hooks/x",
        "/Users/u/work/a\nb/.git/hooks/x",
        "/Users/u/work/.git/modules/m/hooks/x",
        "/Users/u/work/.git/modules/m/n/config",
        "/Users/u/work/.git/worktrees/w/config.worktree",
        "/Users/u/work/.git/info/attributes",
        "/Users/u/work/.codex",
        "/Users/u/work/.codex/config.toml",
        "/Users/u/work/sub/.Claude/settings.json",
        "/Users/u/work/.mcp.json",
        "/Users/u/work/.envrc",
        "/private/tmp/x/.git/hooks/y",
    };
    static const char *const free_to_write[] = {
        "/Users/u/work/.git/HEAD",
        "/Users/u/work/.git/index.lock",
        "/Users/u/work/.git/objects/aa/bb",
        "/Users/u/work/.git/refs/heads/main",
        "/Users/u/work/.git/logs/HEAD",
        "/Users/u/work/.git/worktrees/w/HEAD",
        "/Users/u/work/.git/modules/m/HEAD",
        "/Users/u/work/hooks/pre-commit",
        "/Users/u/work/x.git/hooks/pre-commit",
        "/Users/u/work/.codexes/a",
        "/Users/u/work/.gitignore",
        "/Users/u/work/config",
    };
    struct world w = {.policy = world_policy()};

    (void)state;
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_PROTECTED_NAMES], FEATURE_ENFORCED);
    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        world_denies(&w, "file-write-create", held[i]);
        world_denies(&w, "file-write-data", held[i]);
        world_denies(&w, "file-write-unlink", held[i]);
        world_denies(&w, "file-link", held[i]);
        world_allows(&w, "file-read-data", held[i]);
    }
    for (size_t i = 0; i < sizeof(free_to_write) / sizeof(free_to_write[0]); i++) {
        world_allows(&w, "file-write-create", free_to_write[i]);
        world_allows(&w, "file-write-unlink", free_to_write[i]);
    }
    world_fini(&w);

    /* The control: without names the same writes pass. */
    static char *const no_names[] = {NULL};

    w = (struct world){.policy = world_policy(), .request = {.protected_names = no_names}};
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_PROTECTED_NAMES], FEATURE_ABSENT);
    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        world_allows(&w, "file-write-create", held[i]);
    }
    world_fini(&w);
}

static void
parents_of_protected_names_are_neither_moved_nor_brought(void **state)
{
    struct world w = {.policy = world_policy()};
    struct sbpl_question q = {.operation = "file-write-create", .path = "/Users/u/work/n/.git"};

    (void)state;
    world_make(&w);
    world_denies(&w, "file-write-unlink", "/Users/u/work/.git");
    world_denies(&w, "file-write-unlink", "/Users/u/work/sub/.git");
    world_denies(&w, "file-write-unlink", "/Users/u/work/.git/modules");
    /* The pointer file of a linked worktree may be made, not rewritten. */
    world_denies(&w, "file-write-data", "/Users/u/work/n/.git");
    assert_true(sbpl_allows(w.sbpl, &q));
    q.vnode = "DIRECTORY";
    assert_false(sbpl_allows(w.sbpl, &q));
    q.vnode = "SYMLINK";
    assert_false(sbpl_allows(w.sbpl, &q));
    q.path = "/Users/u/work/n/git";
    assert_true(sbpl_allows(w.sbpl, &q));
    world_allows(&w, "file-write-unlink", "/Users/u/work/sub");
    world_fini(&w);
}

static void
a_root_inside_a_protected_name_is_writable(void **state)
{
    struct world w = {.policy = world_policy()};
    char inner[] = "/Users/u/work/.claude/worktrees/w";
    char *inner_roots[] = {inner, NULL};

    (void)state;
    w.policy.writable_roots.v = inner_roots;
    world_make(&w);
    world_allows(&w, "file-write-create", "/Users/u/work/.claude/worktrees/w/a");
    world_denies(&w, "file-write-create", "/Users/u/work/.claude/worktrees/a");
    world_denies(&w, "file-write-create", "/Users/u/work/.claude/worktrees/w/.git/hooks/a");
    world_fini(&w);

    /* The same with the inner one as the workspace. */
    w = (struct world){.policy = world_policy()};
    inner_roots[0] = world_cwd;
    w.policy.cwd = inner;
    w.policy.writable_roots.v = inner_roots;
    world_make(&w);
    world_allows(&w, "file-write-create", "/Users/u/work/.claude/worktrees/w/a");
    world_denies(&w, "file-write-create", "/Users/u/work/.claude/settings.json");
    world_fini(&w);
}

static void
a_root_below_another_does_not_undo_its_protection(void **state)
{
    struct world w = {.policy = world_policy()};
    char inner[] = "/Users/u/work/.git";
    char *inner_roots[] = {inner, NULL};

    (void)state;
    w.policy.writable_roots.v = inner_roots;
    world_make(&w);
    world_allows(&w, "file-write-create", "/Users/u/work/.git/HEAD");
    world_denies(&w, "file-write-create", "/Users/u/work/.git/hooks/a");
    world_denies(&w, "file-write-unlink", "/Users/u/work/.git");
    world_fini(&w);

    /* Hooks alone, by their own name, are given back. */
    char hooks[] = "/Users/u/work/.git/hooks";

    w = (struct world){.policy = world_policy()};
    inner_roots[0] = hooks;
    w.policy.writable_roots.v = inner_roots;
    world_make(&w);
    world_allows(&w, "file-write-create", "/Users/u/work/.git/hooks/a");
    world_denies(&w, "file-write-create", "/Users/u/work/.git/config");
    world_fini(&w);

    /* Sockets of a workspace below /tmp are those of a workspace. */
    char in_tmp[] = "/tmp/w";

    w = (struct world){.policy = world_policy()};
    w.policy.cwd = in_tmp;
    world_make(&w);
    assert_true(world_uses_socket(&w, "network-bind", "/private/tmp/w/s"));
    assert_false(world_uses_socket(&w, "network-bind", "/private/tmp/s"));
    world_denies(&w, "file-write-create", "/private/tmp/w/.git/hooks/a");
    world_fini(&w);
}

static void
names_are_matched_by_components(void **state)
{
    static const struct {
        const char *below;
        bool is_protected;
    } cases[] = {
        {".git/hooks",                    true },
        {"a/b/.GIT/Hooks/c",              true },
        {".git/config.lock",              true },
        {".git/modules/a/b/hooks/x",      true },
        {".git/modules/hooks",            true },
        {".git/worktrees/w/config",       true },
        {".git/worktrees/w/x/config",     false},
        {".git",                          false},
        {".git/hook",                     false},
        {".git/hooksx",                   false},
        {"x.git/hooks",                   false},
        {".claude/worktrees/w",           true },
        {"",                              false},
        {".git/modules/a/modules/b/HEAD", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (elsewhere_is_protected(elsewhere_protected, cases[i].below) != cases[i].is_protected) {
            fail_msg("'%s'", cases[i].below);
        }
    }
}

static void
secrets_are_out_of_reach_under_each_of_their_names(void **state)
{
    struct world w = {.policy = world_policy(), .request = {.deny_read = world_secrets}};

    (void)state;
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_DENY_READ], FEATURE_ENFORCED);
    world_denies(&w, "file-read-data", "/Users/u/.ssh");
    world_denies(&w, "file-read-metadata", "/Users/u/.ssh/id");
    world_denies(&w, "file-read-data", "/Users/u/work/keys/private/id");
    world_denies(&w, "file-write-data", "/Users/u/work/keys/private/id");
    world_denies(&w, "file-link", "/Users/u/work/keys/private/id");
    /* Nor may a parent inside a root be moved. */
    world_denies(&w, "file-write-unlink", "/Users/u/work/keys/private");
    world_denies(&w, "file-write-unlink", "/Users/u/work/keys");
    world_denies(&w, "network-outbound", "/Users/u/work/keys/private/id");
    world_allows(&w, "file-write-unlink", "/Users/u/work/other");
    world_allows(&w, "file-read-data", "/Users/u/.sshrc");
    world_fini(&w);

    w = (struct world){.policy = world_policy()};
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_DENY_READ], FEATURE_ABSENT);
    world_allows(&w, "file-read-data", "/Users/u/.ssh/id");
    world_fini(&w);
}

static void
the_network_is_off_on_or_one_port(void **state)
{
    struct world w = {.policy = world_policy()};

    (void)state;
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_NETWORK], FEATURE_ENFORCED);
    assert_false(world_connects(&w, "network-outbound", "example.com:443"));
    assert_false(world_connects(&w, "network-outbound", "localhost:3128"));
    assert_false(world_connects(&w, "network-bind", "*:80"));
    assert_true(world_uses_socket(&w, "network-outbound", "/Users/u/work/s"));
    assert_true(world_uses_socket(&w, "network-bind", "/Users/u/work/s"));
    assert_false(world_uses_socket(&w, "network-outbound", "/private/var/run/docker.sock"));
    assert_false(world_uses_socket(&w, "network-outbound", "/private/tmp/agent.sock"));
    assert_false(world_uses_socket(&w, "network-outbound", "/private/var/run/mDNSResponder"));
    world_fini(&w);

    w = (struct world){.policy = world_policy(), .request = {.proxy_port = 3128}};
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_NETWORK], FEATURE_EMULATED);
    assert_true(world_connects(&w, "network-outbound", "localhost:3128"));
    assert_false(world_connects(&w, "network-outbound", "localhost:3129"));
    assert_false(world_connects(&w, "network-outbound", "example.com:3128"));
    assert_false(world_connects(&w, "network-inbound", "localhost:3128"));
    world_fini(&w);

    w = (struct world){.policy = world_policy(), .request = {.proxy_port = 3128}};
    w.policy.has_network = true;
    world_make(&w);
    assert_int_equal(w.plan.features[FEATURE_NETWORK], FEATURE_ABSENT);
    assert_int_equal(w.plan.proxy_port, 0);
    assert_true(world_connects(&w, "network-outbound", "example.com:443"));
    assert_true(world_connects(&w, "network-bind", "*:80"));
    assert_true(world_uses_socket(&w, "network-outbound", "/private/var/run/mDNSResponder"));
    assert_false(world_uses_socket(&w, "network-outbound", "/private/var/run/docker.sock"));
    world_fini(&w);
}

static void
services_that_act_outside_are_not_to_be_found(void **state)
{
    static const char *const services[] = {
        "com.apple.SecurityServer",           "com.apple.coreservices.launchservicesd",
        "com.apple.coreservices.appleevents", "com.apple.pasteboard.1",
        "com.apple.xpc.launchd.domain.user",
    };
    struct world w = {.policy = world_policy()};

    (void)state;
    w.policy.has_network = true;
    world_make(&w);
    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
        assert_false(sbpl_allows(
            w.sbpl, &(struct sbpl_question){.operation = "mach-lookup", .name = services[i]}));
    }
    assert_true(sbpl_allows(
        w.sbpl, &(struct sbpl_question){.operation = "mach-lookup", .name = "com.apple.networkd"}));
    assert_true(sbpl_allows(
        w.sbpl, &(struct sbpl_question){.operation = "sysctl-read", .name = "hw.ncpu"}));
    assert_false(sbpl_allows(
        w.sbpl, &(struct sbpl_question){.operation = "sysctl-read", .name = "kern.proc.all"}));
    assert_false(sbpl_allows(w.sbpl, &(struct sbpl_question){.operation = "sysctl-write"}));
    assert_false(sbpl_allows(w.sbpl, &(struct sbpl_question){.operation = "job-creation"}));
    assert_false(sbpl_allows(w.sbpl, &(struct sbpl_question){.operation = "appleevent-send"}));
    assert_false(sbpl_allows(w.sbpl, &(struct sbpl_question){.operation = "iokit-open"}));
    assert_false(sbpl_allows(w.sbpl, &(struct sbpl_question){.operation = "forbidden-exec-sugid"}));
    world_fini(&w);
}

static enum sy_code
plan_and_write(void *arg)
{
    SY_AUTO(buf_fini) struct buf out = {.max = 1U << 20};
    struct sandbox_policy policy = world_policy();
    struct elsewhere_request request = {.policy = &policy, .deny_read = world_secrets};
    struct jw w = {.out = &out};
    struct seatbelt_plan plan;
    enum sy_code rc = seatbelt_plan_init(&plan, &request, NULL);

    (void)arg;
    if (rc != SY_E_OK) {
        return rc;
    }
    jw_object(&w);
    seatbelt_plan_write(&w, &plan);
    jw_end_object(&w);
    seatbelt_plan_fini(&plan);
    return jw_done(&w);
}

static void
planning_survives_each_failed_allocation(void **state)
{
    (void)state;
    fault_run(plan_and_write, NULL);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_the_golden_files),
        cmocka_unit_test(each_profile_is_one_that_a_strict_reader_takes),
        cmocka_unit_test(the_reader_refuses_what_is_broken),
        cmocka_unit_test(writes_go_below_the_canonical_roots_alone),
        cmocka_unit_test(protected_names_hold_at_any_depth_and_in_either_case),
        cmocka_unit_test(parents_of_protected_names_are_neither_moved_nor_brought),
        cmocka_unit_test(a_root_inside_a_protected_name_is_writable),
        cmocka_unit_test(a_root_below_another_does_not_undo_its_protection),
        cmocka_unit_test(names_are_matched_by_components),
        cmocka_unit_test(secrets_are_out_of_reach_under_each_of_their_names),
        cmocka_unit_test(the_network_is_off_on_or_one_port),
        cmocka_unit_test(services_that_act_outside_are_not_to_be_found),
        cmocka_unit_test(planning_survives_each_failed_allocation),
    };

    assert_int_equal(argc, 2);
    golden_dir = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
