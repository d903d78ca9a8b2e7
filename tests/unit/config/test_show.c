#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "fixture.h"

static const char *const env[] = {"SHELLYARD_SANDBOX_NETWORK_ACCESS=true", NULL};
static const char *const flags[] = {"tools.timeout_ms=5000", NULL};
static const struct given given = {
    .system = "sandbox:\n  mode: read-only\n",
    .user = "shell: {path: \"/opt/my shell\"}\n"
            "sandbox:\n"
            "  writable_roots:\n"
            "    - /srv/data\n"
            "environment:\n"
            "  exclude: ['*_URL', \"a\\tb\\u202e\\U0001F600\\\"\", \xc3\xa9]\n"
            "  set: {EDITOR: ed, MY_api_key: hunter2, EMPTY: \"\", WORD: null0}\n",
    .env = env,
    .flags = flags,
};

/* The paths in `text` replaced by {user} and {system}. */
static void
add_without_paths(struct buf *b, const char *text, const struct fixture *f)
{
    while (*text != '\0') {
        const char *word = NULL;
        const char *path = str_starts(text, f->user) ? f->user : f->system;

        if (str_starts(text, path)) {
            word = path == f->user ? "{user}" : "{system}";
            text += strlen(path);
        }
        assert_int_equal(word != NULL ? buf_add_str(b, word) : buf_add_char(b, *text++), SY_E_OK);
    }
}

static void
text_tells_each_value_and_where_it_comes_from(void **state)
{
    static const char golden[] =
        "sandbox.mode: read-only                      # {system}:2\n"
        "sandbox.writable_roots: [/srv/data]          # {user}:3\n"
        "sandbox.linked_worktrees: true               # default\n"
        "sandbox.deny_read: []                        # default\n"
        "sandbox.default_deny_read: true              # default\n"
        "sandbox.allow_read: []                       # default\n"
        "sandbox.network_access: true                 # SHELLYARD_SANDBOX_NETWORK_ACCESS\n"
        "sandbox.exclude_tmpdir_env_var: false        # default\n"
        "sandbox.exclude_slash_tmp: false             # default\n"
        "sandbox.required: true                       # default\n"
        "sandbox.report: default                      # default\n"
        "sandbox.read_audit: true                     # default\n"
        "sandbox.tier: auto                           # default\n"
        "sandbox.min_tier: no-namespace               # default\n"
        "sandbox.run_as: owner                        # default\n"
        "sandbox.protect: true                        # default\n"
        "sandbox.unprotected_names: []                # default\n"
        "network.allow: []                            # default\n"
        "approval.policy: on-request                  # default\n"
        "approval.on_request: default                 # default\n"
        "approval.retry_on_request: false             # default\n"
        "approval.granular_sandbox_approval: false    # default\n"
        "approval.granular_rules: false               # default\n"
        "approval.hold_ms: 45000                      # default\n"
        "approval.expires_ms: 600000                  # default\n"
        "assessment.url: \"\"                           # default\n"
        "assessment.model: \"\"                         # default\n"
        "assessment.style: anthropic                  # default\n"
        "assessment.key_file: \"\"                      # default\n"
        "hooks.pre_exec: []                           # default\n"
        "hooks.permission_request: []                 # default\n"
        "hooks.timeout_ms: 5000                       # default\n"
        "shell.path: \"/opt/my shell\"                  # {user}:1\n"
        "shell.login: true                            # default\n"
        "shell.snapshot: true                         # default\n"
        "shell.snapshot_timeout_ms: 10000             # default\n"
        "environment.inherit: all                     # default\n"
        "environment.default_excludes: true           # default\n"
        "environment.exclude: [\"*_URL\", \"a\\x09b\\u202E\xF0\x9F\x98\x80\\\"\", \"\xc3\xa9\"]    "
        "# {user}:6\n"
        "environment.set: {EDITOR: ed, MY_api_key: \"***\", EMPTY: \"\", WORD: null0}    "
        "# {user}:7\n"
        "environment.include_only: []                 # default\n"
        "tools.shell_type: all                        # default\n"
        "tools.timeout_ms: 5000                       # -c tools.timeout_ms\n"
        "sessions.max: 64                             # default\n"
        "sessions.keep_bytes: 1048576                 # default\n"
        "sessions.outlive: terminals                  # default\n"
        "output.max_bytes: 10000                      # default\n"
        "output.max_tokens: 10000                     # default\n"
        "output.keep_bytes: 1048576                   # default\n"
        "limits.memory_bytes: 0                       # default\n"
        "limits.processes: 0                          # default\n"
        "limits.open_files: 0                         # default\n"
        "limits.file_bytes: 0                         # default\n"
        "limits.cpu_seconds: 0                        # default\n"
        "limits.output_bytes: 0                       # default\n"
        "limits.temp_bytes: 0                         # default\n"
        "log.level: warn                              # default\n"
        "log.format: logfmt                           # default\n"
        "telemetry.metrics: true                      # default\n"
        "telemetry.otlp_endpoint: \"\"                  # default\n"
        "telemetry.otlp_headers_file: \"\"              # default\n"
        "telemetry.otlp_interval_ms: 60000            # default\n"
        "telemetry.otlp_headers_env: \"\"               # default\n"
        "daemon.use: auto                             # default\n"
        "daemon.start: never                          # default\n";
    SY_AUTO(config_fini) struct config c = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    SY_AUTO(buf_fini) struct buf shown = {.max = 100000};

    fixture_must_load(&c, *state, &given);
    assert_int_equal(config_show(&c, &out, false), SY_E_OK);
    add_without_paths(&shown, buf_view(&out), *state);
    assert_string_equal(buf_view(&shown), golden);
}

/* Each key, with the type of its value. */
static const char golden_json[] =
    "{\"sandbox.mode\":{\"value\":\"read-only\",\"source\":\"{system}:2\"},"
    "\"sandbox.writable_roots\":{\"value\":[\"/srv/data\"],\"source\":\"{user}:3\"},"
    "\"sandbox.linked_worktrees\":{\"value\":true,\"source\":\"default\"},"
    "\"sandbox.deny_read\":{\"value\":[],\"source\":\"default\"},"
    "\"sandbox.default_deny_read\":{\"value\":true,\"source\":\"default\"},"
    "\"sandbox.allow_read\":{\"value\":[],\"source\":\"default\"},"
    "\"sandbox.network_access\":{\"value\":true,"
    "\"source\":\"SHELLYARD_SANDBOX_NETWORK_ACCESS\"},"
    "\"sandbox.exclude_tmpdir_env_var\":{\"value\":false,\"source\":\"default\"},"
    "\"sandbox.exclude_slash_tmp\":{\"value\":false,\"source\":\"default\"},"
    "\"sandbox.required\":{\"value\":true,\"source\":\"default\"},"
    "\"sandbox.report\":{\"value\":\"default\",\"source\":\"default\"},"
    "\"sandbox.read_audit\":{\"value\":true,\"source\":\"default\"},"
    "\"sandbox.tier\":{\"value\":\"auto\",\"source\":\"default\"},"
    "\"sandbox.min_tier\":{\"value\":\"no-namespace\",\"source\":\"default\"},"
    "\"sandbox.run_as\":{\"value\":\"owner\",\"source\":\"default\"},"
    "\"sandbox.protect\":{\"value\":true,\"source\":\"default\"},"
    "\"sandbox.unprotected_names\":{\"value\":[],\"source\":\"default\"},"
    "\"network.allow\":{\"value\":[],\"source\":\"default\"},"
    "\"approval.policy\":{\"value\":\"on-request\",\"source\":\"default\"},"
    "\"approval.on_request\":{\"value\":\"default\",\"source\":\"default\"},"
    "\"approval.retry_on_request\":{\"value\":false,\"source\":\"default\"},"
    "\"approval.granular_sandbox_approval\":{\"value\":false,\"source\":\"default\"},"
    "\"approval.granular_rules\":{\"value\":false,\"source\":\"default\"},"
    "\"approval.hold_ms\":{\"value\":45000,\"source\":\"default\"},"
    "\"approval.expires_ms\":{\"value\":600000,\"source\":\"default\"},"
    "\"assessment.url\":{\"value\":\"\",\"source\":\"default\"},"
    "\"assessment.model\":{\"value\":\"\",\"source\":\"default\"},"
    "\"assessment.style\":{\"value\":\"anthropic\",\"source\":\"default\"},"
    "\"assessment.key_file\":{\"value\":\"\",\"source\":\"default\"},"
    "\"hooks.pre_exec\":{\"value\":[],\"source\":\"default\"},"
    "\"hooks.permission_request\":{\"value\":[],\"source\":\"default\"},"
    "\"hooks.timeout_ms\":{\"value\":5000,\"source\":\"default\"},"
    "\"shell.path\":{\"value\":\"/opt/my shell\",\"source\":\"{user}:1\"},"
    "\"shell.login\":{\"value\":true,\"source\":\"default\"},"
    "\"shell.snapshot\":{\"value\":true,\"source\":\"default\"},"
    "\"shell.snapshot_timeout_ms\":{\"value\":10000,\"source\":\"default\"},"
    "\"environment.inherit\":{\"value\":\"all\",\"source\":\"default\"},"
    "\"environment.default_excludes\":{\"value\":true,\"source\":\"default\"},"
    "\"environment.exclude\":{\"value\":[\"*_URL\",\"a\\tb\xE2\x80\xAE\xF0\x9F\x98\x80\\\"\","
    "\"\xc3\xa9\"],\"source\":\"{user}:6\"},"
    "\"environment.set\":{\"value\":{\"EDITOR\":\"ed\",\"MY_api_key\":\"***\",\"EMPTY\":\"\","
    "\"WORD\":\"null0\"},\"source\":\"{user}:7\"},"
    "\"environment.include_only\":{\"value\":[],\"source\":\"default\"},"
    "\"tools.shell_type\":{\"value\":\"all\",\"source\":\"default\"},"
    "\"tools.timeout_ms\":{\"value\":5000,\"source\":\"-c tools.timeout_ms\"},"
    "\"sessions.max\":{\"value\":64,\"source\":\"default\"},"
    "\"sessions.keep_bytes\":{\"value\":1048576,\"source\":\"default\"},"
    "\"sessions.outlive\":{\"value\":\"terminals\",\"source\":\"default\"},"
    "\"output.max_bytes\":{\"value\":10000,\"source\":\"default\"},"
    "\"output.max_tokens\":{\"value\":10000,\"source\":\"default\"},"
    "\"output.keep_bytes\":{\"value\":1048576,\"source\":\"default\"},"
    "\"limits.memory_bytes\":{\"value\":0,\"source\":\"default\"},"
    "\"limits.processes\":{\"value\":0,\"source\":\"default\"},"
    "\"limits.open_files\":{\"value\":0,\"source\":\"default\"},"
    "\"limits.file_bytes\":{\"value\":0,\"source\":\"default\"},"
    "\"limits.cpu_seconds\":{\"value\":0,\"source\":\"default\"},"
    "\"limits.output_bytes\":{\"value\":0,\"source\":\"default\"},"
    "\"limits.temp_bytes\":{\"value\":0,\"source\":\"default\"},"
    "\"log.level\":{\"value\":\"warn\",\"source\":\"default\"},"
    "\"log.format\":{\"value\":\"logfmt\",\"source\":\"default\"},"
    "\"telemetry.metrics\":{\"value\":true,\"source\":\"default\"},"
    "\"telemetry.otlp_endpoint\":{\"value\":\"\",\"source\":\"default\"},"
    "\"telemetry.otlp_headers_file\":{\"value\":\"\",\"source\":\"default\"},"
    "\"telemetry.otlp_interval_ms\":{\"value\":60000,\"source\":\"default\"},"
    "\"telemetry.otlp_headers_env\":{\"value\":\"\",\"source\":\"default\"},"
    "\"daemon.use\":{\"value\":\"auto\",\"source\":\"default\"},"
    "\"daemon.start\":{\"value\":\"never\",\"source\":\"default\"}}\n";

static void
json_has_the_types_of_the_values(void **state)
{
    SY_AUTO(config_fini) struct config c = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};
    SY_AUTO(buf_fini) struct buf shown = {.max = 100000};
    struct json_doc doc = {0};

    fixture_must_load(&c, *state, &given);
    assert_int_equal(config_show(&c, &out, true), SY_E_OK);
    add_without_paths(&shown, buf_view(&out), *state);
    assert_string_equal(buf_view(&shown), golden_json);
    assert_int_equal(json_parse(&doc, out.data, out.len, NULL), SY_E_OK);
    json_doc_fini(&doc);
}

static void
a_mode_of_the_command_line_counts_over_the_keys(void **state)
{
    static const char *const full[] = {"sandbox.mode=danger-full-access", NULL};
    const struct given with = {.flags = full, .mode = "read-only"};
    SY_AUTO(config_fini) struct config c = {0};
    SY_AUTO(buf_fini) struct buf out = {.max = 100000};

    fixture_must_load(&c, *state, &with);
    assert_int_equal(config_show(&c, &out, true), SY_E_OK);
    assert_non_null(
        strstr(buf_view(&out), "\"sandbox.mode\":{\"value\":\"read-only\",\"source\":\"-s\"}"));
}

static void
every_name_that_looks_secret_is_masked(void **state)
{
    static const char *const names[] = {"KEY",         "MY_TOKEN",         "Secret_X",
                                        "DB_PASSWORD", "AWS_CREDENTIALS_", "tokens"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char flag[100];
        const char *one[] = {flag, NULL};
        struct given with = {.flags = one};
        SY_AUTO(config_fini) struct config c = {0};
        SY_AUTO(buf_fini) struct buf out = {.max = 100000};

        (void)snprintf(flag, sizeof(flag), "environment.set=%s=hunter2,KIND=KEY", names[i]);
        fixture_must_load(&c, *state, &with);
        assert_int_equal(config_show(&c, &out, false), SY_E_OK);
        assert_int_equal(config_show(&c, &out, true), SY_E_OK);
        assert_null(strstr(buf_view(&out), "hunter2"));
        assert_non_null(strstr(buf_view(&out), "KIND: KEY"));
        assert_non_null(strstr(buf_view(&out), "\"KIND\":\"KEY\""));
    }
}

static void
what_is_shown_can_be_read_back(void **state)
{
    static const char *const texts[] = {
        "a",  "-",  "--- a", "null", "~",         "a: b",  "a #b",         "#",    "*a",
        "&a", "!a", "[a]",   "{a",   "a,b",       " a ",   "%a",           "@a",   "`",
        "|",  ">",  "a\"",   "a\\",  "'a'",       "\\x41", "\x7f\t",       "true", "5",
        ".",  "?",  "a:",    "\n",   "\xc2\x85x", "=",     "\xe2\x80\x8f", "..."};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        SY_AUTO(config_fini) struct config c = {0};
        SY_AUTO(config_fini) struct config again = {0};
        SY_AUTO(buf_fini) struct buf out = {.max = 100000};
        char flag[200];
        char back[200];
        const char *first[] = {flag, NULL};
        const char *second[] = {back, NULL};
        struct given with = {.flags = first};

        /* With commas the text is taken as it stands. */
        if (strpbrk(texts[i], ", \n\t") != NULL) {
            continue;
        }
        (void)snprintf(flag, sizeof(flag), "environment.set=A=%s", texts[i]);
        fixture_must_load(&c, *state, &with);
        assert_int_equal(config_show(&c, &out, false), SY_E_OK);

        const char *from = strstr(buf_view(&out), "environment.set: ");

        assert_non_null(from);
        from += strlen("environment.set: ");

        const char *end = strstr(from, "    # ");

        assert_non_null(end);
        (void)snprintf(back, sizeof(back), "environment.set=%.*s", (int)(end - from), from);
        with.flags = second;
        fixture_must_load(&again, *state, &with);
        assert_int_equal(again.environment.set.n, 1);
        assert_string_equal(again.environment.set.v[0], c.environment.set.v[0]);
    }
}

static void
a_buffer_too_small_is_an_error(void **state)
{
    SY_AUTO(config_fini) struct config c = {0};

    fixture_must_load(&c, *state, &given);
    for (size_t max = 0; max < 500; max += 7) {
        SY_AUTO(buf_fini) struct buf text = {.max = max};
        SY_AUTO(buf_fini) struct buf json = {.max = max};

        assert_int_equal(config_show(&c, &text, false), SY_E_LIMIT);
        assert_int_equal(config_show(&c, &json, true), SY_E_LIMIT);
    }
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(text_tells_each_value_and_where_it_comes_from),
        T(json_has_the_types_of_the_values),
        T(a_mode_of_the_command_line_counts_over_the_keys),
        T(every_name_that_looks_secret_is_masked),
        T(what_is_shown_can_be_read_back),
        T(a_buffer_too_small_is_an_error),
    };

    return cmocka_run_group_tests_name("config show", tests, NULL, NULL);
}
