#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "fixture.h"

/* One key that the system file requires, and what somebody else wants. */
struct judged {
    const char *system; /* the value there; NULL: not set there */
    const char *wanted;
    bool is_fine;
};

static void
write_system(char dst[1024], const char *key, const char *value)
{
    size_t section = strcspn(key, ".");

    if (value == NULL) {
        (void)snprintf(dst, 1024, "requirements: [%s]\n", key);
    } else {
        (void)snprintf(dst, 1024, "requirements: [%s]\n%.*s:\n  %s: %s\n", key, (int)section, key,
                       key + section + 1, value);
    }
}

static void
judge(const struct fixture *f, const char *key, const struct judged *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char system[1024];
        char flag[512];
        const char *flags[] = {flag, NULL};
        struct given given = {.system = system, .flags = flags};
        struct sy_error err = {0};
        struct config c = {0};

        write_system(system, key, rows[i].system);
        (void)snprintf(flag, sizeof(flag), "%s=%s", key, rows[i].wanted);

        enum sy_code rc = fixture_load(&c, f, &given, &err);

        config_fini(&c);
        if (rc != (rows[i].is_fine ? SY_E_OK : SY_E_CONFIG)) {
            fail_msg("%s: %s where %s is required: %s %s", key, rows[i].wanted,
                     rows[i].system != NULL ? rows[i].system : "the default", sy_code_name(rc),
                     err.msg);
        }
        if (!rows[i].is_fine && strstr(err.msg, key) == NULL) {
            fail_msg("'%s' does not name %s", err.msg, key);
        }
    }
}

#define JUDGE(f, key, rows) judge(f, key, rows, sizeof(rows) / sizeof((rows)[0]))

static void
choices_have_an_order(void **state)
{
    static const struct judged modes[] = {
        {"workspace-write",    "read-only",          true },
        {"workspace-write",    "workspace-write",    true },
        {"workspace-write",    "external-sandbox",   false},
        {"external-sandbox",   "workspace-write",    true },
        {"external-sandbox",   "danger-full-access", false},
        {"danger-full-access", "danger-full-access", true },
        {"read-only",          "workspace-write",    false},
        {NULL,                 "read-only",          true },
        {NULL,                 "external-sandbox",   false},
    };
    static const struct judged policies[] = {
        {"unless-trusted", "on-request",     false},
        {"on-request",     "unless-trusted", true },
        {"on-request",     "untrusted",      true },
        {"on-request",     "on-failure",     false},
        {"on-failure",     "on-request",     true },
        {"on-failure",     "never",          false},
        {"never",          "on-failure",     true },
        {NULL,             "never",          false},
    };
    static const struct judged inherits[] = {
        {"core", "none", true },
        {"core", "core", true },
        {"core", "all",  false},
        {NULL,   "all",  true },
    };

    JUDGE(*state, "sandbox.mode", modes);
    JUDGE(*state, "approval.policy", policies);
    JUDGE(*state, "environment.inherit", inherits);
}

static void
booleans_have_a_narrow_side(void **state)
{
    static const struct judged false_is_narrow[] = {
        {"false", "true",  false},
        {"false", "false", true },
        {"true",  "false", true },
        {"true",  "true",  true },
        {NULL,    "true",  false},
    };
    static const struct judged true_is_narrow[] = {
        {"true",  "false", false},
        {"true",  "true",  true },
        {"false", "true",  true },
        {"false", "false", true },
    };

    JUDGE(*state, "sandbox.network_access", false_is_narrow);
    JUDGE(*state, "sandbox.exclude_tmpdir_env_var", true_is_narrow);
    JUDGE(*state, "sandbox.exclude_slash_tmp", true_is_narrow);
    JUDGE(*state, "sandbox.required", true_is_narrow);
    JUDGE(*state, "sandbox.default_deny_read", true_is_narrow);
    JUDGE(*state, "environment.default_excludes", true_is_narrow);
}

static void
an_allow_list_may_only_lose_entries(void **state)
{
    static const struct judged lists[] = {
        {"[a.example, b.example]", "[a.example]",            true },
        {"[a.example, b.example]", "[b.example, a.example]", true },
        {"[a.example]",            "[]",                     true },
        {"[a.example]",            "[c.example]",            false},
        {"[a.example]",            "['a.example:*']",        false},
        {"[]",                     "[a.example]",            false},
        {NULL,                     "[a.example]",            false},
    };
    /* Full network would lift a list that is required. */
    struct given given = {
        .system = "requirements: [network.allow]\nnetwork: {allow: [a.example]}\n",
        .user = "sandbox: {network_access: true}\n",
    };

    JUDGE(*state, "network.allow", lists);
    fixture_must_fail(*state, &given,
                      "{user}:1:11: sandbox.network_access true may not be wider than false "
                      "({system}:1)");
}

static void
numbers_may_only_fall(void **state)
{
    static const struct judged numbers[] = {
        {"5000", "5000",  true },
        {"5000", "4999",  true },
        {"5000", "5001",  false},
        {NULL,   "10001", false},
    };

    JUDGE(*state, "shell.snapshot_timeout_ms", numbers);
    JUDGE(*state, "tools.timeout_ms", numbers);
    JUDGE(*state, "output.max_bytes", numbers);
    JUDGE(*state, "output.keep_bytes",
          ((const struct judged[]){
              {"5000", "4999", true },
              {"5000", "5001", false}
    }));
    JUDGE(*state, "output.max_tokens",
          ((const struct judged[]){
              {"5000", "4999", true },
              {"5000", "5001", false}
    }));
}

static void
a_limit_may_only_fall_and_none_is_the_widest(void **state)
{
    static const struct judged limits[] = {
        {"64M", "67108864", true },
        {"64M", "64M",      true },
        {"64M", "32M",      true },
        {"64M", "65M",      false},
        {"64M", "0",        false},
        {"0",   "1G",       true },
        {NULL,  "1G",       true },
        {NULL,  "0",        true },
    };

    JUDGE(*state, "limits.memory_bytes", limits);
    JUDGE(*state, "limits.file_bytes", limits);
    JUDGE(*state, "limits.output_bytes", limits);
    JUDGE(*state, "limits.processes",
          ((const struct judged[]){
              {"100", "99",  true },
              {"100", "101", false},
              {"100", "0",   false}
    }));
}

static void
what_has_no_order_must_stay(void **state)
{
    static const struct judged flags[] = {
        {"true",  "true",  true },
        {"true",  "false", false},
        {"false", "true",  false},
    };
    static const struct judged paths[] = {
        {"/bin/sh", "/bin/sh",   true },
        {"/bin/sh", "/bin/bash", false},
        {"/bin/sh", "",          false},
        {NULL,      "/bin/sh",   false},
    };
    static const struct judged maps[] = {
        {"{A: b, C: d}", "{C: d, A: b}", true },
        {"{A: b, C: d}", "{A: b}",       false},
        {"{A: b}",       "{A: c}",       false},
        {"{A: b}",       "{A: b, C: d}", false},
        {NULL,           "A=b",          false},
        {NULL,           "",             true },
    };
    static const struct judged levels[] = {
        {"info", "info",  true },
        {"info", "error", false}
    };
    static const struct judged formats[] = {
        {"json", "json",   true },
        {"json", "logfmt", false}
    };
    static const struct judged types[] = {
        {"default", "default",  true },
        {"default", "disabled", false}
    };

    JUDGE(*state, "shell.login", flags);
    JUDGE(*state, "shell.snapshot", flags);
    JUDGE(*state, "shell.path", paths);
    JUDGE(*state, "environment.set", maps);
    JUDGE(*state, "log.level", levels);
    JUDGE(*state, "log.format", formats);
    JUDGE(*state, "tools.shell_type", types);
}

static void
lists_of_patterns_narrow_each_in_its_way(void **state)
{
    static const struct judged excludes[] = {
        {"[A, B]", "[B, A, C]", true },
        {"[A, B]", "[A]",       false},
        {"[A]",    "",          false},
        {NULL,     "[A]",       true },
    };
    static const struct judged includes[] = {
        {"[A, B]", "[B]",    true },
        {"[A, B]", "[B, A]", true },
        {"[A, B]", "[A, C]", false},
        {"[A, B]", "",       false},
        {NULL,     "[A]",    true },
        {NULL,     "",       true },
    };

    static const struct judged denied[] = {
        {"[/a, /b/x*]", "[/b/x*, /a, /c]", true },
        {"[/a]",        "",                false},
        {NULL,          "[/a]",            true },
    };
    static const struct judged allowed[] = {
        {"[/a, /b]", "[/b]", true },
        {"[/a]",     "",     true },
        {"[/a]",     "[/c]", false},
        {NULL,       "[/a]", false},
        {NULL,       "",     true },
    };

    JUDGE(*state, "environment.exclude", excludes);
    JUDGE(*state, "sandbox.deny_read", denied);
    JUDGE(*state, "sandbox.allow_read", allowed);
    JUDGE(*state, "environment.include_only", includes);
}

static void
roots_lie_within_the_required_ones(void **state)
{
    static const struct judged roots[] = {
        {"[/srv/sy/a, /opt/sy]", "/srv/sy/a",               true },
        {"[/srv/sy/a, /opt/sy]", "/opt/sy/x/y,/srv/sy/a/b", true },
        {"[/srv/sy/a, /opt/sy]", "",                        true },
        {"[/srv/sy/a]",          "/srv/sy/ab",              false},
        {"[/srv/sy/a]",          "/srv/sy",                 false},
        {"[/srv/sy/a]",          "/srv/sy/a,/etc",          false},
        {"[/]",                  "/etc",                    true },
        {NULL,                   "/etc",                    false},
    };

    JUDGE(*state, "sandbox.writable_roots", roots);
}

static void
required_roots_are_all_that_there_are(void **state)
{
    const struct fixture *f = *state;
    const char *on[] = {"sandbox.linked_worktrees=true", NULL};
    struct given given = {
        .system = "requirements: [sandbox.writable_roots]\nsandbox: {writable_roots: [/srv]}\n"};
    struct config c = {0};

    fixture_must_load(&c, f, &given);
    assert_false(c.sandbox.linked_worktrees);
    config_fini(&c);
    given.flags = on;
    assert_int_equal(fixture_load(&c, f, &given, NULL), SY_E_CONFIG);

    /* Unless the administrator lets them be. */
    given.system = "requirements: [sandbox.writable_roots]\n"
                   "sandbox: {writable_roots: [/srv], linked_worktrees: true}\n";
    fixture_must_load(&c, f, &given);
    assert_true(c.sandbox.linked_worktrees);
    config_fini(&c);
}

static void
a_root_is_judged_by_where_it_lies(void **state)
{
    const struct fixture *f = *state;
    char yard[256];
    char link[256];
    char dangling[256];
    char system[1024];
    char flag[600];
    const char *flags[] = {flag, NULL};
    struct given given = {.system = system, .flags = flags};
    struct config c = {0};

    fixture_path(yard, f, "yard");
    fixture_path(link, f, "yard/link");
    fixture_path(dangling, f, "yard/dangling");
    assert_int_equal(mkdir(yard, 0700), 0);
    assert_int_equal(symlink("/etc", link), 0);
    assert_int_equal(symlink("/nonexistent/x", dangling), 0);
    (void)snprintf(system, sizeof(system),
                   "requirements: [sandbox.writable_roots]\nsandbox: {writable_roots: [%s]}\n",
                   yard);

    /* By name it is below the yard. */
    (void)snprintf(flag, sizeof(flag), "sandbox.writable_roots=%s", link);
    assert_int_equal(fixture_load(&c, f, &given, NULL), SY_E_CONFIG);
    (void)snprintf(flag, sizeof(flag), "sandbox.writable_roots=%s/cron.d", link);
    assert_int_equal(fixture_load(&c, f, &given, NULL), SY_E_CONFIG);
    (void)snprintf(flag, sizeof(flag), "sandbox.writable_roots=%s", dangling);
    assert_int_equal(fixture_load(&c, f, &given, NULL), SY_E_CONFIG);
    (void)snprintf(flag, sizeof(flag), "sandbox.writable_roots=%s/new/dir", yard);
    fixture_must_load(&c, f, &given);
    config_fini(&c);

    /* And the other way: a name elsewhere for a directory in the yard. */
    fixture_path(link, f, "alias");
    assert_int_equal(symlink("yard", link), 0);
    (void)snprintf(flag, sizeof(flag), "sandbox.writable_roots=%s/new", link);
    fixture_must_load(&c, f, &given);
    config_fini(&c);
}

static void
a_violation_names_who_what_and_by_which_line(void **state)
{
    static const char *const env[] = {"SHELLYARD_SANDBOX_MODE=danger-full-access", NULL};
    static const char *const flags[] = {"tools.timeout_ms=10001", NULL};
    static const char *const secret[] = {"environment.set=API_KEY=hunter2", NULL};
    struct given given = {
        .system = "requirements:\n"
                  "  - sandbox.mode\n"
                  "  - tools.timeout_ms\n"
                  "  - environment.set\n"
                  "sandbox:\n"
                  "  mode: read-only\n",
        .user = "sandbox:\n  mode: workspace-write\n",
    };

    fixture_must_fail(*state, &given,
                      "{user}:2:3: sandbox.mode workspace-write may not be wider than read-only "
                      "({system}:6)");
    given.user = "";
    given.env = env;
    fixture_must_fail(*state, &given,
                      "SHELLYARD_SANDBOX_MODE: sandbox.mode danger-full-access may not be wider "
                      "than read-only ({system}:6)");
    given.env = NULL;
    given.flags = flags;
    /* Not set there: held at its default, by the line that requires it. */
    fixture_must_fail(*state, &given,
                      "-c tools.timeout_ms: tools.timeout_ms 10001 may not be more than 10000 "
                      "({system}:3)");
    given.flags = secret;
    fixture_must_fail(*state, &given,
                      "-c environment.set: environment.set {API_KEY: \"***\"} must stay {} "
                      "({system}:4)");
}

static void
a_stronger_source_does_not_hide_a_violation(void **state)
{
    static const char *const flags[] = {"sandbox.mode=read-only", NULL};
    struct given given = {
        .system = "requirements: [sandbox.mode]\n",
        .user = "sandbox: {mode: danger-full-access}\n",
        .flags = flags,
    };

    fixture_must_fail(*state, &given,
                      "{user}:1:11: sandbox.mode danger-full-access may not be wider than "
                      "workspace-write ({system}:1)");
}

static void
keys_that_are_not_listed_are_free(void **state)
{
    SY_AUTO(config_fini) struct config c = {0};
    struct given given = {
        .system = "requirements: [sandbox.network_access]\nsandbox: {mode: read-only}\n",
        .user = "sandbox: {mode: danger-full-access}\n",
    };

    fixture_must_load(&c, *state, &given);
    assert_string_equal(c.sandbox.mode, "danger-full-access");
}

static void
the_list_itself_is_checked(void **state)
{
    struct given given = {.user = "requirements: [sandbox.mode]\n"};

    fixture_must_fail(*state, &given,
                      "{user}:1:1: 'requirements' has a meaning in the system file only");
    given.user = NULL;
    assert_int_equal(unlink(((const struct fixture *)*state)->user), 0);
    given.system = "requirements: [sandbox.mod]\n";
    fixture_must_fail(*state, &given,
                      "{system}:1:16: unknown key 'sandbox.mod' (did you mean 'sandbox.mode'?)");
    given.system = "requirements: [sandbox]\n";
    fixture_must_fail(*state, &given,
                      "{system}:1:16: unknown key 'sandbox' (requirements lists whole keys such "
                      "as sandbox.mode)");
    given.system = "requirements:\n  - log.level\n  - log.level\n";
    fixture_must_fail(*state, &given,
                      "{system}:3:5: 'log.level' is listed twice (first at line 2)");
    given.system = "requirements: {sandbox: mode}\n";
    fixture_must_fail(*state, &given,
                      "{system}:1:15: expected a list of keys such as [sandbox.mode], got a "
                      "mapping");
    given.system = "requirements: [[sandbox.mode]]\n";
    fixture_must_fail(*state, &given,
                      "{system}:1:16: expected a key such as sandbox.mode, got a list");
    given.system = "requirement: [log.level]\n";
    fixture_must_fail(*state, &given,
                      "{system}:1:1: unknown key 'requirement' (did you mean 'requirements'?)");

    SY_AUTO(config_fini) struct config c = {0};

    given.system = "requirements:\n";
    fixture_must_load(&c, *state, &given);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(choices_have_an_order),
        T(booleans_have_a_narrow_side),
        T(numbers_may_only_fall),
        T(an_allow_list_may_only_lose_entries),
        T(a_limit_may_only_fall_and_none_is_the_widest),
        T(what_has_no_order_must_stay),
        T(lists_of_patterns_narrow_each_in_its_way),
        T(roots_lie_within_the_required_ones),
        T(required_roots_are_all_that_there_are),
        T(a_root_is_judged_by_where_it_lies),
        T(a_violation_names_who_what_and_by_which_line),
        T(a_stronger_source_does_not_hide_a_violation),
        T(keys_that_are_not_listed_are_free),
        T(the_list_itself_is_checked),
    };

    return cmocka_run_group_tests_name("config requirements", tests, NULL, NULL);
}
