#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "fixture.h"

struct bad {
    const char *text;
    const char *sentence;
};

static void
all_fail(const struct fixture *f, const struct bad *bad, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct given given = {.user = bad[i].text};

        fixture_must_fail(f, &given, bad[i].sentence);
    }
}

#define ALL_FAIL(f, bad) all_fail(f, bad, sizeof(bad) / sizeof((bad)[0]))

/* Its columns would tear the sentences of the tables apart. */
/* clang-format off */

static void
a_host_that_the_proxy_would_not_take_is_told_with_its_place(void **state)
{
    static const struct bad bad[] = {
        {"network:\n  allow:\n    - example.com\n    - https://example.com\n",
         "{user}:4:7: network.allow: entry 'https://example.com' is a URL: write the host alone, as "
         "in example.com or example.com:8080"},
        {"network: {allow: [\"*\"]}\n",
         "{user}:1:19: network.allow: entry '*' would allow every host: set "
         "sandbox.network_access: true for that"},
        {"network: {allow: [\"*.com\"]}\n",
         "{user}:1:19: network.allow: entry '*.com' is a whole top-level domain: name the domains "
         "below it"},
    };

    ALL_FAIL(*state, bad);
}

static void
an_unknown_key_gets_its_place_and_the_nearest_right_one(void **state)
{
    static const struct bad bad[] = {
        {"sandbox:\n  mod: read-only\n",
         "{user}:2:3: unknown key 'sandbox.mod' (did you mean 'mode'?)"},
        {"\nsandbx:\n  mode: read-only\n",
         "{user}:2:1: unknown key 'sandbx' (did you mean 'sandbox'?)"},
        {"sandbox.mode: read-only\n",
         "{user}:1:1: unknown key 'sandbox.mode' (write 'mode:' below 'sandbox:')"},
        {"mode: read-only\n", "{user}:1:1: unknown key 'mode' (did you mean 'sandbox.mode'?)"},
        {"sandbox: {policy: never}\n",
         "{user}:1:11: unknown key 'sandbox.policy' (did you mean 'approval.policy'?)"},
        {"timeout_ms: 1\n",
         "{user}:1:1: unknown key 'timeout_ms' (did you mean 'hooks.timeout_ms' or "
         "'tools.timeout_ms'?)"},
        {"sandbox: {colour_of_the_wall: red}\n",
         "{user}:1:11: unknown key 'sandbox.colour_of_the_wall' "
         "(`shellyard config show` lists the keys)"},
        {"weather: fine\n",
         "{user}:1:1: unknown key 'weather' (`shellyard config show` lists the keys)"},
        {"sandbox: {\"a\\0\\e[1m\\u202eb\": 1}\n",
         "{user}:1:11: unknown key 'sandbox.a??[1m?b' (`shellyard config show` lists the keys)"},
        {"<<: {}\n", "{user}:1:1: unknown key '<<' (`shellyard config show` lists the keys)"},
    };

    ALL_FAIL(*state, bad);
}

static void
a_wrong_choice_names_the_right_ones(void **state)
{
    static const struct bad bad[] = {
        {"log: {level: loud}\n",
         "{user}:1:14: log.level: expected one of error, warn, info, debug, trace, got 'loud'"},
        {"log:\n  level:\n",
         "{user}:2:9: log.level: expected one of error, warn, info, debug, trace, got nothing"},
        {"log:\n  level: ~\n",
         "{user}:2:10: log.level: expected one of error, warn, info, debug, trace, got null"},
        {"log: {level: [warn]}\n",
         "{user}:1:14: log.level: expected one of error, warn, info, debug, trace, got a list"},
        {"log: {level: {warn: x}}\n",
         "{user}:1:14: log.level: expected one of error, warn, info, debug, trace, got a mapping"},
        {"log: {level: \"warn\\0\"}\n",
         "{user}:1:14: a NUL character, which no path, name or variable holds"},
        {"log: {level: Warn}\n",
         "{user}:1:14: log.level: expected one of error, warn, info, debug, trace, got 'Warn'"},
    };
    struct given mode = {.user = "sandbox: {mode: foo}\n"};

    ALL_FAIL(*state, bad);
    fixture_must_fail(*state, &mode,
                      "{user}:1:17: sandbox.mode: expected one of read-only, workspace-write, "
                      "external-sandbox, danger-full-access, got 'foo'");
}

static void
a_boolean_is_true_or_false_and_nothing_else(void **state)
{
    static const struct bad bad[] = {
        {"shell: {login: yes}\n",
         "{user}:1:16: shell.login: expected true or false, got 'yes' (write true)"},
        {"shell: {login: off}\n",
         "{user}:1:16: shell.login: expected true or false, got 'off' (write false)"},
        {"shell: {login: 'true'}\n", "{user}:1:16: shell.login: expected true or false, "
                                     "got the string 'true' (leave out the quotes)"},
        {"shell: {login: 1}\n",
         "{user}:1:16: shell.login: expected true or false, got '1' (write true)"},
        {"shell: {login: TRUE}\n",
         "{user}:1:16: shell.login: expected true or false, got 'TRUE' (write true)"},
        {"shell: {login: maybe}\n",
         "{user}:1:16: shell.login: expected true or false, got 'maybe'"},
        {"shell: {login: }\n", "{user}:1:16: shell.login: expected true or false, got nothing"},
    };

    ALL_FAIL(*state, bad);
}

static void
an_integer_is_decimal_and_within_its_bounds(void **state)
{
    static const char *const texts[] = {"18x", "0x10", "010",      "1_000",
                                        "1e3", "+5",   "5.0",      "0",
                                        "-1",  "",     "86400001", "99999999999999999999"};
    static const struct bad quoted[] = {
        {"tools: {timeout_ms: '5'}\n",
         "{user}:1:21: tools.timeout_ms: expected a decimal number from 1 to 86400000, "
         "got the string '5' (leave out the quotes)"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[100];
        char sentence[200];
        struct given given = {.user = text};

        (void)snprintf(text, sizeof(text), "tools: {timeout_ms: %s}\n", texts[i]);
        (void)snprintf(sentence, sizeof(sentence),
                       "{user}:1:21: tools.timeout_ms: expected a decimal number from 1 to "
                       "86400000, got %s%s%s",
                       texts[i][0] != '\0' ? "'" : "nothing", texts[i],
                       texts[i][0] != '\0' ? "'" : "");
        fixture_must_fail(*state, &given, sentence);
    }
    ALL_FAIL(*state, quoted);
}

static void
a_limit_has_a_floor_and_units_only_where_it_counts_bytes(void **state)
{
    static const struct bad bad[] = {
        {"limits: {memory_bytes: 1M}\n",
         "{user}:1:24: limits.memory_bytes: expected 0 (none) or a decimal number from 16777216 to "
         "1125899906842624, as bytes or with K, M or G behind it, got '1M'"},
        {"limits: {processes: 1}\n",
         "{user}:1:21: limits.processes: expected 0 (none) or a decimal number from 4 to 4194304, "
         "got '1'"},
        {"limits: {processes: 4K}\n",
         "{user}:1:21: limits.processes: expected 0 (none) or a decimal number from 4 to 4194304, "
         "got '4K'"},
        {"limits: {cpu_seconds: 1.5}\n",
         "{user}:1:23: limits.cpu_seconds: expected 0 (none) or a decimal number from 1 to "
         "31536000, got '1.5'"},
    };
    static const char *const bytes[] = {"-1M", "064M", "M", "1T", "64MB", "64m", "9999999999999G"};

    ALL_FAIL(*state, bad);
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        char text[100];
        char sentence[200];
        struct given given = {.user = text};

        (void)snprintf(text, sizeof(text), "limits: {file_bytes: %s}\n", bytes[i]);
        (void)snprintf(sentence, sizeof(sentence),
                       "{user}:1:22: limits.file_bytes: expected 0 (none) or a decimal number from "
                       "4096 to 1125899906842624, as bytes or with K, M or G behind it, got '%s'",
                       bytes[i]);
        fixture_must_fail(*state, &given, sentence);
    }
}

static void
a_list_or_a_map_is_not_text(void **state)
{
    static const struct bad bad[] = {
        {"environment: {exclude: A}\n",
         "{user}:1:24: environment.exclude: expected a list such as [a, b], got 'A'"},
        {"environment: {exclude: {A: b}}\n",
         "{user}:1:24: environment.exclude: expected a list such as [a, b], got a mapping"},
        {"environment:\n  exclude:\n    - [A]\n",
         "{user}:3:7: expected text as an entry of the list, got a list"},
        {"environment: {exclude: [\"\"]}\n", "{user}:1:25: an empty entry"},
        {"environment: {exclude: [A=b]}\n",
         "{user}:1:25: expected a pattern of variable names such as *_URL, got 'A=b'"},
        {"environment: {set: API_KEY=hunter2}\n",
         "{user}:1:20: environment.set: expected a mapping such as {NAME: value}, got text"},
        {"environment: {set: [A]}\n",
         "{user}:1:20: environment.set: expected a mapping such as {NAME: value}, got a list"},
        {"environment: {set: {A: [b]}}\n",
         "{user}:1:24: expected text as the value of a variable, got a list"},
        {"environment: {set: {[A]: b}}\n", "{user}:1:21: expected a variable name, got a list"},
        {"environment: {set: {A: }}\n",
         "{user}:1:24: variable 'A' has no value (write \"\" for an empty one)"},
        {"shell: {path: [/bin/sh]}\n", "{user}:1:15: shell.path: expected a string, got a list"},
        {"shell: {path: ~}\n", "{user}:1:15: shell.path: expected a string, got null"},
        {"assessment: {url: 'http://example.org/'}\n",
         "{user}:1:19: expected a URL that begins with https://, or with http:// and this machine "
         "(127.0.0.1, localhost, [::1]), without a user name, got 'http://example.org/'"},
        {"assessment: {model: 'a b'}\n",
         "{user}:1:21: expected a name of visible ASCII characters, at most 200, got 'a b'"},
        {"assessment: {key_file: key}\n",
         "{user}:1:24: expected an absolute path or one that begins with '~/', got 'key'"},
        {"shell: [path]\n", "{user}:1:8: expected keys of the section, got a list"},
        {"shell: bash\n", "{user}:1:8: expected keys of the section, got text"},
        {"[shell]\n", "{user}:1:1: expected sections such as 'sandbox:', got a list"},
        {"shell\n", "{user}:1:1: expected sections such as 'sandbox:', got text"},
        {"[shell]: {}\n", "{user}:1:1: expected the name of a section, got a list"},
        {"shell: {[path]: x}\n", "{user}:1:9: expected a key, got a list"},
    };

    ALL_FAIL(*state, bad);
}

static void
a_duplicate_names_both_places(void **state)
{
    static const struct bad bad[] = {
        {"sandbox:\n  mode: read-only\n  required: true\n  mode: workspace-write\n",
         "{user}:4:3: duplicate key 'mode' (first at line 2, column 3)"},
        {"shell: {}\nlog: {}\nshell: {}\n",
         "{user}:3:1: duplicate key 'shell' (first at line 1, column 1)"},
        {"environment:\n  set:\n    A: b\n    B: c\n    \"A\": d\n",
         "{user}:5:5: duplicate key 'A' (first at line 3, column 5)"},
    };

    ALL_FAIL(*state, bad);
}

static void
aliases_anchors_tags_and_further_documents_are_refused(void **state)
{
    static const struct bad bad[] = {
        {"log: {level: &x warn}\n",
         "{user}:1:14: an anchor (&name), which has no use here; take it out"},
        {"log: &x {level: warn}\n",
         "{user}:1:6: an anchor (&name), which has no use here; take it out"},
        {"environment: {exclude: &x [A]}\n",
         "{user}:1:24: an anchor (&name), which has no use here; take it out"},
        {"log: {level: *x}\n", "{user}:1:14: an alias (*name); write the value out"},
        {"log: {level: !!str warn}\n",
         "{user}:1:14: a tag (!name), which has no use here; take it out"},
        {"log: !mine {level: warn}\n",
         "{user}:1:6: a tag (!name), which has no use here; take it out"},
        {"environment: {exclude: !x [A]}\n",
         "{user}:1:24: a tag (!name), which has no use here; take it out"},
        {"%TAG ! tag:x,2000:\n---\nlog: {}\n",
         "{user}:1:1: a %TAG directive, which has no use here; take it out"},
        {"log: {}\n---\nshell: {}\n", "{user}:2:1: a second document; a configuration is one"},
        {"log: {}\n...\ngarbage\n", "{user}:3:1: not valid YAML: did not find expected "
                                    "<document start>"},
        {"log: {level: warn}}\n", "{user}:1:19: not valid YAML: did not find expected key"},
        {"%YAML 9.9\n---\nlog: {}\n", "{user}:1:1: not valid YAML: found incompatible YAML "
                                      "document"},
    };

    ALL_FAIL(*state, bad);
}

static void
what_is_no_yaml_gets_its_place(void **state)
{
    static const struct bad bad[] = {
        {"log:\n\tlevel: warn\n",
         "{user}:2:1: not valid YAML: found character that cannot start any token"},
        {"log: {level: warn\n", "{user}:2:1: not valid YAML: did not find expected ',' or '}'"},
        {"log: {level: 'warn}\n", "{user}:2:1: not valid YAML: found unexpected end of stream"},
        {"log: {}\n# \xc3\xa9 \xff\n", "{user}:2:5: invalid UTF-8 (byte 0xff)"},
        {"log: {}\n# \xc3\xa9 \x01\n",
         "{user}:2:5: not valid YAML: control characters are not allowed"},
        {"environment: {exclude: [[[[[[[[[[[A]]]]]]]]]]]}\n",
         "{user}:1:30: nesting deeper than 8 levels"},
        {"log: {level: [a, *b]}\n", "{user}:1:18: an alias (*name); write the value out"},
    };

    ALL_FAIL(*state, bad);
}

static void
a_root_is_an_absolute_path_that_leads_where_it_reads(void **state)
{
    static const struct bad bad[] = {
        {"sandbox:\n  writable_roots:\n    - /srv\n    - build\n",
         "{user}:4:7: expected an absolute path or one that begins with '~/', got 'build'"},
        {"sandbox: {writable_roots: [~bob/x]}\n",
         "{user}:1:28: '~bob/x': only '~' and '~/...' are expanded"},
        {"sandbox: {writable_roots: [~/x]}\n",
         "{user}:1:28: '~/x': HOME is not set to an absolute path"},
        {"sandbox: {writable_roots: [/srv/../etc]}\n",
         "{user}:1:28: '/srv/../etc': '..' leads elsewhere behind a symbolic link; write the path "
         "out"},
        {"sandbox: {writable_roots: [\"/a\\0b\"]}\n",
         "{user}:1:28: a NUL character, which no path, name or variable holds"},
        {"sandbox: {deny_read: [/etc/../x]}\n",
         "{user}:1:23: '/etc/../x': '..' leads elsewhere behind a symbolic link; write the path "
         "out"},
        {"sandbox: {deny_read: [secrets]}\n",
         "{user}:1:23: expected an absolute path or one that begins with '~/', got 'secrets'"},
        {"sandbox: {deny_read: [/srv/a**]}\n",
         "{user}:1:23: '/srv/a**' holds '**' beside other characters: it stands alone between two "
         "'/'"},
        {"sandbox: {deny_read: [/**]}\n",
         "{user}:1:23: '/**' would hide all that there is: begin with the name of a directory"},
        {"sandbox: {deny_read: [\"/srv/[ab\"]}\n",
         "{user}:1:23: '/srv/[ab' has a '[' without its ']': write '[[]' for a literal one"},
        {"sandbox: {deny_read: [\"\"]}\n", "{user}:1:23: an empty entry"},
        {"shell: {path: bash}\n",
         "{user}:1:15: expected an absolute path or one that begins with '~/', got 'bash'"},
    };

    ALL_FAIL(*state, bad);
}

static void
variables_that_never_pass_cannot_be_set(void **state)
{
    static const char *const names[] = {"LD_PRELOAD", "LD_X",           "BASH_ENV",
                                        "ENV",        "PROMPT_COMMAND", "SHELLYARD_LOG_LEVEL"};
    static const struct bad bad[] = {
        {"environment: {set: {1A: b}}\n",
         "{user}:1:21: '1A' is no variable name (letters, digits and '_', no digit first)"},
        {"environment: {set: {\"\": b}}\n",
         "{user}:1:21: '' is no variable name (letters, digits and '_', no digit first)"},
        {"environment: {set: {A-B: b}}\n",
         "{user}:1:21: 'A-B' is no variable name (letters, digits and '_', no digit first)"},
        {"environment: {set: {\"A\\0\": b}}\n",
         "{user}:1:21: a NUL character, which no path, name or variable holds"},
        {"environment: {set: {A: \"\\0\"}}\n",
         "{user}:1:24: a NUL character, which no path, name or variable holds"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[100];
        char sentence[100];
        struct given given = {.user = text};

        (void)snprintf(text, sizeof(text), "environment: {set: {%s: x}}\n", names[i]);
        (void)snprintf(sentence, sizeof(sentence),
                       "{user}:1:21: variable '%s' is never passed to commands", names[i]);
        fixture_must_fail(*state, &given, sentence);
    }
    ALL_FAIL(*state, bad);
}

static void
an_entry_too_many_is_told(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_CONFIG_FILE};
    struct given given = {0};

    assert_int_equal(buf_add_str(&text, "sandbox:\n  writable_roots:\n"), SY_E_OK);
    for (unsigned i = 0; i <= LIMIT_ROOTS; i++) {
        assert_int_equal(buf_addf(&text, "    - /r%u\n", i), SY_E_OK);
    }
    given.user = buf_view(&text);
    fixture_must_fail(*state, &given, "{user}:259:7: more than 256 entries");

    buf_reset(&text);
    assert_int_equal(buf_add_str(&text, "environment:\n  set:\n"), SY_E_OK);
    for (unsigned i = 0; i <= LIMIT_CONFIG_ITEMS; i++) {
        assert_int_equal(buf_addf(&text, "    A%u: b\n", i), SY_E_OK);
    }
    given.user = buf_view(&text);
    fixture_must_fail(*state, &given, "{user}:1027:12: more than 1024 entries");
}

static void
a_long_path_and_a_long_variable_are_told(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_CONFIG_FILE};
    struct given given = {0};

    assert_int_equal(buf_add_str(&text, "sandbox:\n  writable_roots:\n    - /"), SY_E_OK);
    for (unsigned i = 0; i < LIMIT_PATH; i++) {
        assert_int_equal(buf_add_char(&text, 'x'), SY_E_OK);
    }
    given.user = buf_view(&text);
    fixture_must_fail(*state, &given, "{user}:3:7: a path of more than 4096 bytes");

    buf_reset(&text);
    assert_int_equal(buf_add_str(&text, "environment:\n  set:\n    A: "), SY_E_OK);
    for (unsigned i = 0; i < LIMIT_ARG_STRLEN; i++) {
        assert_int_equal(buf_add_char(&text, 'x'), SY_E_OK);
    }
    given.user = buf_view(&text);
    fixture_must_fail(*state, &given, "{user}:3:8: variable 'A' takes more than 131072 bytes");
}

static void
an_unknown_variable_gets_the_nearest_right_one(void **state)
{
    static const char *const near[] = {"SHELLYARD_SANDBOX_MOD=x", NULL};
    static const char *const far[] = {"SHELLYARD_WEATHER=x", NULL};
    static const char *const twice[] = {"SHELLYARD_LOG_LEVEL=info", "SHELLYARD_LOG_LEVEL=warn",
                                        NULL};
    struct given given = {.env = near};

    fixture_must_fail(*state, &given,
                      "SHELLYARD_SANDBOX_MOD: unknown variable (did you mean "
                      "'SHELLYARD_SANDBOX_MODE'?)");
    given.env = far;
    fixture_must_fail(*state, &given,
                      "SHELLYARD_WEATHER: unknown variable; names with SHELLYARD_ in front are "
                      "settings (`shellyard config show` lists them)");
    given.env = twice;
    fixture_must_fail(*state, &given, "SHELLYARD_LOG_LEVEL: stands twice in the environment");
}

static void
a_bad_variable_or_flag_is_named_without_its_text(void **state)
{
    static const struct bad bad[] = {
        {"log.level=loud",
         "-c log.level: expected one of error, warn, info, debug, trace, got 'loud'"},
        {"log.level=", "-c log.level: expected one of error, warn, info, debug, trace, got "
                       "nothing"},
        {"log.level=# x", "-c log.level: expected one of error, warn, info, debug, trace, got "
                          "nothing"},
        {"log.level", "-c log.level: expected key=value"},
        {"log.levl=info", "-c log.levl: unknown key (did you mean 'log.level'?)"},
        {"level=info", "-c level: unknown key (did you mean 'log.level'?)"},
        {"requirements=[log.level]",
         "-c requirements: unknown key (`shellyard config show` lists the keys)"},
        {"environment.set=API_KEY hunter2",
         "-c environment.set: expected NAME=value pairs with commas between them"},
        {"environment.set=A=hunter2,A=hunter3", "-c environment.set: duplicate key 'A'"},
        {"environment.set={A: hunter2, A: b}", "-c environment.set: duplicate key 'A'"},
        {"environment.set={A: b", "-c environment.set: not valid YAML: did not find expected ',' "
                                  "or '}'"},
        {"environment.set={A: b} c", "-c environment.set: not valid YAML: did not find expected "
                                     "<document start>"},
        {"environment.exclude=A,,B", "-c environment.exclude: an empty entry"},
        {"environment.exclude=[A, [B]]",
         "-c environment.exclude: expected text as an entry of the list, got a list"},
        {"shell.login=yes", "-c shell.login: expected true or false, got 'yes' (write true)"},
        {"shell.path=\xff", "-c shell.path: invalid UTF-8 (byte 0xff)"},
        {"sandbox.writable_roots=build", "-c sandbox.writable_roots: expected an absolute path or "
                                         "one that begins with '~/', got 'build'"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *flags[] = {bad[i].text, NULL};
        struct given given = {.flags = flags};

        fixture_must_fail(*state, &given, bad[i].sentence);
    }

    static const struct given mode = {.mode = "bogus"};

    fixture_must_fail(*state, &mode,
                      "-s: expected one of read-only, workspace-write, external-sandbox, "
                      "danger-full-access, got 'bogus'");

    static const char *const env[] = {"SHELLYARD_ENVIRONMENT_SET=hunter2", NULL};
    struct given given = {.env = env};

    fixture_must_fail(*state, &given,
                      "SHELLYARD_ENVIRONMENT_SET: expected NAME=value pairs with commas between "
                      "them");
}

static void
hostile_nesting_is_refused_in_no_time(void **state)
{
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_CONFIG_FILE};
    struct given given = {0};
    uint64_t began_ns = clock_mono_ns();

    assert_int_equal(buf_add_str(&text, "environment: {exclude: "), SY_E_OK);
    for (unsigned i = 0; i < 200000; i++) {
        assert_int_equal(buf_add_char(&text, '['), SY_E_OK);
    }
    given.user = buf_view(&text);
    fixture_must_fail(*state, &given, "{user}:1:30: nesting deeper than 8 levels");
    /* Milliseconds in fact; the bound tells quadratic work from linear. */
    assert_true(clock_mono_ns() - began_ns < UINT64_C(5000000000));
}

/* clang-format on */

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(an_unknown_key_gets_its_place_and_the_nearest_right_one),
        T(a_host_that_the_proxy_would_not_take_is_told_with_its_place),
        T(a_wrong_choice_names_the_right_ones),
        T(a_boolean_is_true_or_false_and_nothing_else),
        T(an_integer_is_decimal_and_within_its_bounds),
        T(a_limit_has_a_floor_and_units_only_where_it_counts_bytes),
        T(a_list_or_a_map_is_not_text),
        T(a_duplicate_names_both_places),
        T(aliases_anchors_tags_and_further_documents_are_refused),
        T(what_is_no_yaml_gets_its_place),
        T(a_root_is_an_absolute_path_that_leads_where_it_reads),
        T(variables_that_never_pass_cannot_be_set),
        T(an_entry_too_many_is_told),
        T(a_long_path_and_a_long_variable_are_told),
        T(an_unknown_variable_gets_the_nearest_right_one),
        T(a_bad_variable_or_flag_is_named_without_its_text),
        T(hostile_nesting_is_refused_in_no_time),
    };

    return cmocka_run_group_tests_name("config errors", tests, NULL, NULL);
}
