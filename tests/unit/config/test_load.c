#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "fixture.h"

static void
without_any_source_the_defaults_hold(void **state)
{
    SY_AUTO(config_fini) struct config c = {0};
    struct given nothing = {0};

    fixture_must_load(&c, *state, &nothing);
    assert_string_equal(c.sandbox.mode, "workspace-write");
    assert_int_equal(c.sandbox.writable_roots.n, 0);
    assert_false(c.sandbox.network_access);
    assert_false(c.sandbox.exclude_tmpdir_env_var);
    assert_false(c.sandbox.exclude_slash_tmp);
    assert_true(c.sandbox.required);
    assert_string_equal(c.approval.policy, "on-request");
    assert_string_equal(c.shell.path, "");
    assert_true(c.shell.login);
    assert_true(c.shell.snapshot);
    assert_int_equal(c.shell.snapshot_timeout_ms, LIMIT_SNAPSHOT_MS);
    assert_string_equal(c.environment.inherit, "all");
    assert_true(c.environment.default_excludes);
    assert_int_equal(c.environment.exclude.n, 0);
    assert_int_equal(c.environment.set.n, 0);
    assert_int_equal(c.environment.include_only.n, 0);
    assert_string_equal(c.tools.shell_type, "all");
    assert_int_equal(c.tools.timeout_ms, LIMIT_TIMEOUT_DEFAULT_MS);
    assert_int_equal(c.output.max_bytes, LIMIT_MODEL_BYTES_MCP);
    assert_int_equal(c.output.max_tokens, LIMIT_MODEL_TOKENS);
    assert_int_equal(c.output.keep_bytes, LIMIT_STREAM_KEEP);
    assert_string_equal(c.log.level, "warn");
    assert_string_equal(c.log.format, "logfmt");
}

static void
a_file_with_every_key_is_taken_as_it_stands(void **state)
{
    static const char *const env[] = {"HOME=/home/u/", NULL};
    SY_AUTO(config_fini) struct config c = {0};
    struct given given = {
        .env = env,
        .user = "\xEF\xBB\xBF# every key\n"
                "%YAML 1.1\n---\n"
                "sandbox:\n"
                "  mode: \"read-only\"\n"
                "  writable_roots: [~/build, \"~\", //srv/./data/, /]\n"
                "  network_access: true\n"
                "  exclude_tmpdir_env_var: true\n"
                "  exclude_slash_tmp: true\n"
                "  required: false\n"
                "approval: {policy: untrusted}\n"
                "shell:\n"
                "  path: ~/bin/zsh\n"
                "  login: false\n"
                "  snapshot: false\n"
                "  snapshot_timeout_ms: 100\n"
                "environment:\n"
                "  inherit: core\n"
                "  default_excludes: false\n"
                "  exclude:\n"
                "    - AWS_*\n"
                "    - 'GH_*'\n"
                "  set:\n"
                "    A: 5\n"
                "    B: true\n"
                "    C: \"\"\n"
                "    D: \"x=y, \\u00e9\"\n"
                "  include_only: []\n"
                "tools: {shell_type: unified_exec, timeout_ms: 86400000}\n"
                "output: {max_bytes: 40000, max_tokens: 250, keep_bytes: 4096}\n"
                "log:\n"
                "  level: trace\n"
                "  format: json\n",
    };

    fixture_must_load(&c, *state, &given);
    assert_string_equal(c.sandbox.mode, "read-only");
    assert_int_equal(c.sandbox.writable_roots.n, 4);
    assert_string_equal(c.sandbox.writable_roots.v[0], "/home/u/build");
    assert_string_equal(c.sandbox.writable_roots.v[1], "/home/u");
    assert_string_equal(c.sandbox.writable_roots.v[2], "/srv/data");
    assert_string_equal(c.sandbox.writable_roots.v[3], "/");
    assert_true(c.sandbox.network_access);
    assert_true(c.sandbox.exclude_tmpdir_env_var);
    assert_true(c.sandbox.exclude_slash_tmp);
    assert_false(c.sandbox.required);
    assert_string_equal(c.approval.policy, "unless-trusted");
    assert_string_equal(c.shell.path, "/home/u/bin/zsh");
    assert_false(c.shell.login);
    assert_false(c.shell.snapshot);
    assert_int_equal(c.shell.snapshot_timeout_ms, 100);
    assert_string_equal(c.environment.inherit, "core");
    assert_false(c.environment.default_excludes);
    assert_int_equal(c.environment.exclude.n, 2);
    assert_string_equal(c.environment.exclude.v[1], "GH_*");
    assert_int_equal(c.environment.set.n, 4);
    assert_string_equal(c.environment.set.v[0], "A=5");
    assert_string_equal(c.environment.set.v[1], "B=true");
    assert_string_equal(c.environment.set.v[2], "C=");
    assert_string_equal(c.environment.set.v[3], "D=x=y, \xc3\xa9");
    assert_int_equal(c.environment.include_only.n, 0);
    assert_string_equal(c.tools.shell_type, "unified_exec");
    assert_int_equal(c.tools.timeout_ms, 86400000);
    assert_int_equal(c.output.max_bytes, 40000);
    assert_int_equal(c.output.max_tokens, 250);
    assert_int_equal(c.output.keep_bytes, 4096);
    assert_string_equal(c.log.level, "trace");
    assert_string_equal(c.log.format, "json");
}

static void
empty_files_and_empty_sections_change_nothing(void **state)
{
    static const char *const texts[] = {"",
                                        "# only a comment\n",
                                        "---\n",
                                        "--- {}\n...\n",
                                        "sandbox:\nlog:\n  # level: info\n",
                                        "sandbox: {}\n",
                                        "\xEF\xBB\xBF",
                                        "null\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        SY_AUTO(config_fini) struct config c = {0};
        struct given given = {.system = texts[i], .user = texts[i]};

        fixture_must_load(&c, *state, &given);
        assert_string_equal(c.sandbox.mode, "workspace-write");
        assert_string_equal(c.log.level, "warn");
    }
}

static void
each_source_is_stronger_than_those_before_it(void **state)
{
    static const char *const env[] = {"PATH=/bin", "SHELLYARD_LOG_LEVEL=debug",
                                      "SHELLYARD_TOOLS_TIMEOUT_MS=3", NULL};
    static const char *const flags[] = {"log.level=error", "log.level=trace", NULL};
    SY_AUTO(config_fini) struct config c = {0};
    struct given given = {
        .system = "log: {level: error, format: json}\n"
                  "tools: {timeout_ms: 1}\nshell: {snapshot_timeout_ms: 101}\n",
        .user = "log: {level: info}\ntools: {timeout_ms: 2}\nshell: {snapshot_timeout_ms: 102}\n",
        .env = env,
        .flags = flags,
    };

    fixture_must_load(&c, *state, &given);
    assert_string_equal(c.log.format, "json");
    assert_int_equal(c.shell.snapshot_timeout_ms, 102);
    assert_int_equal(c.tools.timeout_ms, 3);
    assert_string_equal(c.log.level, "trace");
}

static void
variables_and_flags_take_every_type(void **state)
{
    static const char *const env[] = {"SHELLYARD_SANDBOX_WRITABLE_ROOTS=/a, ~/b",
                                      "SHELLYARD_SANDBOX_NETWORK_ACCESS=true",
                                      "SHELLYARD_SHELL_PATH=\"/bin/my shell\"",
                                      "SHELLYARD_ENVIRONMENT_SET=A=b=c,D=",
                                      "SHELLYARD_ENVIRONMENT_EXCLUDE=",
                                      "SHELLYARD_SANDBOX_MODE=read-only",
                                      "SHELLYARD=1",
                                      "SHELLYARD_TESTS_ANYTHING=x",
                                      "SHELLYARD_BENCH_ANYTHING=x",
                                      "SHELLYARD_NO_EQUALS_SIGN",
                                      "HOME=/home/u",
                                      NULL};
    static const char *const flags[] = {"environment.set={E: \"f, g\", H: 'i'}",
                                        "environment.include_only= [ A*, \"B\" ] ",
                                        "shell.path=", "output.max_bytes= 1000 ", NULL};
    SY_AUTO(config_fini) struct config c = {0};
    struct given given = {.env = env, .user = "environment: {exclude: [X]}\n"};

    fixture_must_load(&c, *state, &given);
    assert_int_equal(c.sandbox.writable_roots.n, 2);
    assert_string_equal(c.sandbox.writable_roots.v[1], "/home/u/b");
    assert_true(c.sandbox.network_access);
    assert_string_equal(c.shell.path, "/bin/my shell");
    assert_int_equal(c.environment.set.n, 2);
    assert_string_equal(c.environment.set.v[0], "A=b=c");
    assert_string_equal(c.environment.set.v[1], "D=");
    assert_int_equal(c.environment.exclude.n, 0);
    assert_string_equal(c.sandbox.mode, "read-only");
    config_fini(&c);

    given.flags = flags;
    fixture_must_load(&c, *state, &given);
    assert_int_equal(c.environment.set.n, 2);
    assert_string_equal(c.environment.set.v[0], "E=f, g");
    assert_string_equal(c.environment.set.v[1], "H=i");
    assert_int_equal(c.environment.include_only.n, 2);
    assert_string_equal(c.environment.include_only.v[1], "B");
    assert_string_equal(c.shell.path, "");
    assert_int_equal(c.output.max_bytes, 1000);
}

static void
the_user_file_is_found_by_xdg_then_by_home(void **state)
{
    const struct fixture *f = *state;
    char xdg[300];
    char home[300];
    char path[256];
    char relative_xdg[] = "XDG_CONFIG_HOME=xdg";
    char *const relative[] = {relative_xdg, home, NULL};
    char *const both[] = {xdg, home, NULL};
    char empty_xdg[] = "XDG_CONFIG_HOME=";
    char relative_home[] = "HOME=not/absolute";
    char *const none[] = {empty_xdg, relative_home, NULL};
    struct config_sources sources = {.system_path = f->system, .environ_list = both};
    static const char *const dirs[] = {"home", "home/.config", "home/.config/shellyard", "xdg",
                                       "xdg/shellyard"};
    SY_AUTO(config_fini) struct config c = {0};

    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/xdg", f->dir);
    (void)snprintf(home, sizeof(home), "HOME=%s/home", f->dir);
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        fixture_path(path, f, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    fixture_path(path, f, "home/.config/shellyard/config.yaml");
    fixture_write_text(path, "log: {level: info}\n");
    fixture_path(path, f, "xdg/shellyard/config.yaml");
    fixture_write_text(path, "log: {level: debug}\n");

    assert_int_equal(config_load(&c, &sources, NULL), SY_E_OK);
    assert_string_equal(c.log.level, "debug");
    config_fini(&c);
    sources.environ_list = relative;
    assert_int_equal(config_load(&c, &sources, NULL), SY_E_OK);
    assert_string_equal(c.log.level, "info");
    config_fini(&c);
    sources.environ_list = none;
    assert_int_equal(config_load(&c, &sources, NULL), SY_E_OK);
    assert_string_equal(c.log.level, "warn");
    config_fini(&c);
    sources.environ_list = NULL;
    assert_int_equal(config_load(&c, &sources, NULL), SY_E_OK);
    assert_string_equal(c.log.level, "warn");
}

static void
without_home_the_users_file_is_that_of_the_passwd_entry(void **state)
{
    const struct fixture *f = *state;
    char relative_home[] = "HOME=not/absolute";
    char empty_home[] = "HOME=";
    char other_home[] = "HOME=/nonexistent";
    char *const envs[][2] = {
        {NULL },
        { relative_home, NULL},
        { empty_home, NULL},
        { other_home, NULL}
    };
    static const char *const dirs[] = {".config", ".config/shellyard"};
    struct config_sources sources = {.system_path = f->system, .home = f->dir};
    char path[256];

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        fixture_path(path, f, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    fixture_path(path, f, ".config/shellyard/config.yaml");
    fixture_write_text(path, "log: {level: info}\nsandbox: {writable_roots: [~/x]}\n");
    for (size_t i = 0; i < sizeof(envs) / sizeof(envs[0]); i++) {
        SY_AUTO(config_fini) struct config c = {0};
        bool is_known = envs[i][0] == other_home;

        sources.environ_list = envs[i];
        assert_int_equal(config_load(&c, &sources, NULL), SY_E_OK);
        assert_string_equal(c.log.level, is_known ? "warn" : "info");
        if (!is_known) {
            fixture_path(path, f, "x");
            assert_string_equal(c.sandbox.writable_roots.v[0], path);
        }
    }
}

static void
a_home_too_long_is_told(void **state)
{
    static char home[LIMIT_PATH + 20];
    const struct fixture *f = *state;
    char *const env[] = {home, NULL};
    struct config_sources sources = {.system_path = f->system, .environ_list = env};
    struct config c = {0};
    struct sy_error err = {0};

    (void)snprintf(home, sizeof(home), "HOME=/%0*d", LIMIT_PATH, 0);
    assert_int_equal(config_load(&c, &sources, &err), SY_E_CONFIG);
    assert_string_equal(err.msg, "HOME is longer than 4096 bytes");
}

static void
fini_accepts_zero_and_leaves_zero(void **state)
{
    struct config c = {0};
    struct config zero = {0};
    struct given nothing = {0};

    config_fini(&c);
    fixture_must_load(&c, *state, &nothing);
    config_fini(&c);
    assert_memory_equal(&c, &zero, sizeof(c));
}

static void
a_load_that_fails_leaves_no_memory_behind(void **state)
{
    static const char *const flags[] = {"log.level=loud", NULL};
    struct given given = {
        .system = "environment: {set: {A: b}, exclude: [C]}\nshell: {path: /bin/sh}\n",
        .user = "sandbox: {writable_roots: [/a, /b]}\n",
        .flags = flags,
    };
    struct config c = {0};
    struct config zero = {0};
    size_t before = mem_live();

    assert_int_equal(fixture_load(&c, *state, &given, NULL), SY_E_CONFIG);
    assert_int_equal(mem_live(), before);
    assert_memory_equal(&c, &zero, sizeof(c));
}

static enum sy_code
load_and_show(void *arg)
{
    static const char *const env[] = {"HOME=/home/u", "SHELLYARD_ENVIRONMENT_EXCLUDE=A,B",
                                      "SHELLYARD_LOG_LEVEL=info", NULL};
    static const char *const flags[] = {"shell.path=/bin/sh", "environment.set={A: b}",
                                        "log.level=debug", NULL};
    const struct fixture *f = arg;
    struct config_sources sources = {.system_path = f->system,
                                     .user_path = f->user,
                                     .workspace = "/proc",
                                     .environ_list = fixture_list(env),
                                     .overrides = fixture_list(flags)};
    SY_AUTO(config_fini) struct config c = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    struct sy_error err = {0};
    enum sy_code rc = config_load(&c, &sources, &err);

    if (rc != SY_E_OK) {
        return err.code == rc ? rc : SY_E_INTERNAL;
    }
    rc = config_show(&c, &out, false);
    return rc != SY_E_OK ? rc : config_show(&c, &out, true);
}

static void
each_allocation_may_fail(void **state)
{
    const struct fixture *f = *state;

    fixture_write_text(f->system, "sandbox: {writable_roots: [/srv]}\n"
                                  "environment: {set: {A: b, C: d}}\n"
                                  "requirements: [sandbox.writable_roots, environment.inherit]\n");
    fixture_write_text(f->user, "sandbox: {writable_roots: [/srv/a, /srv/b]}\n"
                                "shell: {path: ~/zsh}\n");
    fault_run(load_and_show, *state);
}

static enum sy_code
load_by_home(void *arg)
{
    static const char *const env[] = {"HOME=/nonexistent", NULL};
    const struct fixture *f = arg;
    struct config_sources sources = {.system_path = f->system, .environ_list = fixture_list(env)};
    SY_AUTO(config_fini) struct config c = {0};

    return config_load(&c, &sources, NULL);
}

static void
each_allocation_may_fail_on_the_way_to_the_user_file(void **state)
{
    fault_run(load_by_home, *state);
}

/* The violation is the expected end; running out of memory on the way is
 * still told as such. */
static enum sy_code
load_against_requirements(void *arg)
{
    const struct fixture *f = arg;
    struct config_sources sources = {.system_path = f->system, .user_path = f->user};
    struct config c = {0};
    enum sy_code rc = config_load(&c, &sources, NULL);

    return rc == SY_E_CONFIG ? SY_E_OK : rc;
}

static void
each_allocation_may_fail_while_a_violation_is_told(void **state)
{
    const struct fixture *f = *state;

    fixture_write_text(f->system, "sandbox: {writable_roots: [/srv]}\n"
                                  "requirements: [sandbox.writable_roots]\n");
    fixture_write_text(f->user, "sandbox: {writable_roots: [/etc]}\n");
    fault_run(load_against_requirements, *state);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(without_any_source_the_defaults_hold),
        T(a_file_with_every_key_is_taken_as_it_stands),
        T(empty_files_and_empty_sections_change_nothing),
        T(each_source_is_stronger_than_those_before_it),
        T(variables_and_flags_take_every_type),
        T(the_user_file_is_found_by_xdg_then_by_home),
        T(without_home_the_users_file_is_that_of_the_passwd_entry),
        T(a_home_too_long_is_told),
        T(fini_accepts_zero_and_leaves_zero),
        T(a_load_that_fails_leaves_no_memory_behind),
        T(each_allocation_may_fail),
        T(each_allocation_may_fail_on_the_way_to_the_user_file),
        T(each_allocation_may_fail_while_a_violation_is_told),
    };

    return cmocka_run_group_tests_name("config load", tests, NULL, NULL);
}
