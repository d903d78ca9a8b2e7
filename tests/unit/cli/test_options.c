#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/verbs.h"
#include "fault.h"

#define WORDS_MAX 16

/* Parses the words of one command line, NULL-terminated. cli_parse moves words
 * and does not write to them. */
static enum sy_code
parse(struct cli_args *ret, const struct cli_verb *verb, const char *const *words,
      char *argv[WORDS_MAX], struct sy_error *err)
{
    size_t n = 0;

    for (; words[n] != NULL; n++) {
        assert_true(n + 1 < WORDS_MAX);
        memcpy(&argv[n], &words[n], sizeof(argv[n]));
    }
    argv[n] = NULL;
    return cli_parse(ret, verb, verb->name, argv, err);
}

static void
assert_refused(const struct cli_verb *verb, const char *const *words, const char *sentence)
{
    SY_AUTO(cli_args_fini) struct cli_args args;
    char *argv[WORDS_MAX];
    struct sy_error err = {0};

    assert_int_equal(parse(&args, verb, words, argv, &err), SY_E_ARG);
    assert_string_equal(err.msg, sentence);
}

static void
options_take_values_in_every_form(void **state)
{
    static const char *const lines[][6] = {
        {"-s",          "read-only", "true"},
        {"-sread-only", "true"     },
        {"--sandbox",  "read-only",      "true"      },
        {"--sandbox=read-only",         "--",      "true"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        SY_AUTO(cli_args_fini) struct cli_args args;
        char *argv[WORDS_MAX];
        struct sy_error err = {0};

        assert_int_equal(parse(&args, &verb_exec, lines[i], argv, &err), SY_E_OK);
        assert_string_equal(cli_get(&args, "sandbox"), "read-only");
        assert_null(cli_get(&args, "json"));
        assert_null(cli_get(&args, "no-such-option"));
        assert_int_equal(args.n_operands, 1);
        assert_string_equal(args.operands[0], "true");
        assert_null(args.operands[1]);
    }
}

static void
options_after_the_command_of_exec_belong_to_it(void **state)
{
    static const char *const words[] = {"--json", "ls", "-l", "--", "--json", NULL};
    SY_AUTO(cli_args_fini) struct cli_args args;
    char *argv[WORDS_MAX];
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(parse(&args, &verb_exec, words, argv, &err), SY_E_OK);
    assert_non_null(cli_get(&args, "json"));
    assert_int_equal(args.n_operands, 4);
    assert_string_equal(args.operands[1], "-l");
    assert_string_equal(args.operands[2], "--");
    assert_string_equal(args.operands[3], "--json");
}

static void
other_verbs_take_options_anywhere(void **state)
{
    static const char *const words[] = {"codex", "--write", NULL};
    SY_AUTO(cli_args_fini) struct cli_args args;
    char *argv[WORDS_MAX];
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(parse(&args, &verb_setup, words, argv, &err), SY_E_OK);
    assert_non_null(cli_get(&args, "write"));
    assert_int_equal(args.n_operands, 1);
}

static void
configuration_keys_are_collected_in_order(void **state)
{
    static const char *const words[] = {"-c", "a=1", "--config=b=2", "-cc=3", "x", NULL};
    SY_AUTO(cli_args_fini) struct cli_args args;
    char *argv[WORDS_MAX];
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(parse(&args, &verb_exec, words, argv, &err), SY_E_OK);
    assert_int_equal(args.overrides.n, 3);
    assert_string_equal(args.overrides.v[0], "a=1");
    assert_string_equal(args.overrides.v[1], "b=2");
    assert_string_equal(args.overrides.v[2], "c=3");
}

static void
mistakes_are_named_with_the_nearest_right_word(void **state)
{
    (void)state;
    assert_refused(&verb_exec, (const char *const[]){"--jsom", "true", NULL},
                   "exec: unknown option '--jsom'; did you mean '--json'?");
    assert_refused(&verb_exec, (const char *const[]){"--tineout=3", "true", NULL},
                   "exec: unknown option '--tineout'; did you mean '--timeout'?");
    assert_refused(&verb_exec, (const char *const[]){"-z", "true", NULL},
                   "exec: unknown option '-z' (see 'shellyard help exec')");
    assert_refused(&verb_exec, (const char *const[]){"--json=yes", "true", NULL},
                   "exec: option '--json' takes no value, got 'yes'");
    assert_refused(&verb_exec, (const char *const[]){"-t", NULL},
                   "exec: option '--timeout' needs a value: TIME");
    assert_refused(&verb_exec, (const char *const[]){"--json", NULL},
                   "exec: expected [--] COMMAND [ARGUMENT...] (see 'shellyard help exec')");
    assert_refused(&verb_setup, (const char *const[]){"codex", "zed", NULL},
                   "setup: unexpected argument 'zed'");
}

static void
a_limit_of_words_is_told(void **state)
{
    char **argv = calloc(LIMIT_ARGV + 2, sizeof(argv[0]));
    struct cli_args args;
    struct sy_error err = {0};
    static char word[] = "w";

    (void)state;
    assert_non_null(argv);
    for (size_t i = 0; i <= LIMIT_ARGV; i++) {
        argv[i] = word;
    }
    assert_int_equal(cli_parse(&args, &verb_exec, "exec", argv, &err), SY_E_ARG);
    assert_string_equal(err.msg, "exec: 65537 words for [--] COMMAND [ARGUMENT...], at most 65536 "
                                 "are possible");
    cli_args_fini(&args);
    argv[LIMIT_ARGV] = NULL;
    assert_int_equal(cli_parse(&args, &verb_exec, "exec", argv, &err), SY_E_OK);
    cli_args_fini(&args);
    free(argv);
}

static void
help_is_asked_for_without_operands(void **state)
{
    static const char *const words[] = {"--help", NULL};
    SY_AUTO(cli_args_fini) struct cli_args args;
    char *argv[WORDS_MAX];
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(parse(&args, &verb_exec, words, argv, &err), SY_E_OK);
    assert_true(args.wants_help);
}

static void
durations_have_units_and_bounds(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms; /* 0: refused */
    } rows[] = {
        {"10",                   10000   },
        {"10s",                  10000   },
        {"500ms",                500     },
        {"2m",                   120000  },
        {"1h",                   3600000 },
        {"24h",                  86400000},
        {"1ms",                  1       },
        {"0",                    0       },
        {"0ms",                  0       },
        {"25h",                  0       },
        {"86401",                0       },
        {"-5",                   0       },
        {"",                     0       },
        {"s",                    0       },
        {"5x",                   0       },
        {"1.5",                  0       },
        {" 5",                   0       },
        {"5 s",                  0       },
        {"1d",                   0       },
        {"99999999999999999999", 0       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sy_error err = {0};
        uint64_t ms = 0;
        enum sy_code rc = cli_parse_duration(&ms, rows[i].text, &err);

        assert_int_equal(rc, rows[i].ms != 0 ? SY_E_OK : SY_E_ARG);
        assert_int_equal(ms, rows[i].ms);
        if (rc != SY_E_OK) {
            assert_non_null(strstr(err.msg, rows[i].text));
        }
    }
}

static void
verbs_are_found_by_name_and_guessed(void **state)
{
    (void)state;
    assert_ptr_equal(cli_verb_find(cli_verbs, "exec"), &verb_exec);
    assert_null(cli_verb_find(cli_verbs, "exe"));
    assert_string_equal(cli_verb_nearest(cli_verbs, "docter"), "doctor");
    assert_null(cli_verb_nearest(cli_verbs, "zzzzzzzz"));
}

static void
every_table_fits_the_parser(void **state)
{
    (void)state;
    for (size_t i = 0; cli_verbs[i] != NULL; i++) {
        const struct cli_verb *const alone[] = {cli_verbs[i], NULL};
        const struct cli_verb *const *list =
            cli_verbs[i]->verbs != NULL ? cli_verbs[i]->verbs : alone;

        for (size_t k = 0; list[k] != NULL; k++) {
            size_t n = 0;

            while (list[k]->options[n].name != NULL) {
                n++;
            }
            assert_true(n <= CLI_OPTIONS_MAX);
            assert_non_null(list[k]->run);
            assert_true(str_starts(list[k]->page, "shellyard"));
        }
    }
}

static enum sy_code
parse_many(void *arg)
{
    SY_AUTO(cli_args_fini) struct cli_args args;
    static char option[] = "-c";
    static char value[] = "a=1";
    static char operand[] = "x";
    char *argv[] = {option, value, option, value, operand, NULL};

    (void)arg;
    return cli_parse(&args, &verb_exec, "exec", argv, NULL);
}

static void
parsing_survives_the_lack_of_memory(void **state)
{
    (void)state;
    fault_run(parse_many, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_take_values_in_every_form),
        cmocka_unit_test(options_after_the_command_of_exec_belong_to_it),
        cmocka_unit_test(other_verbs_take_options_anywhere),
        cmocka_unit_test(configuration_keys_are_collected_in_order),
        cmocka_unit_test(mistakes_are_named_with_the_nearest_right_word),
        cmocka_unit_test(a_limit_of_words_is_told),
        cmocka_unit_test(help_is_asked_for_without_operands),
        cmocka_unit_test(durations_have_units_and_bounds),
        cmocka_unit_test(verbs_are_found_by_name_and_guessed),
        cmocka_unit_test(every_table_fits_the_parser),
        cmocka_unit_test(parsing_survives_the_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
