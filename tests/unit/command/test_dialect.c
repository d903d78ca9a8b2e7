#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "command/dialect.h"

struct row {
    const char *text;
    const char *as_bash; /* NULL: as it is */
};

static void
expect_rows(const struct row *rows, size_t n, unsigned dialect)
{
    for (size_t i = 0; i < n; i++) {
        struct buf b = {.max = LIMIT_SCRIPT};
        bool differs = false;

        assert_int_equal(dialect_read(&b, &differs, rows[i].text, strlen(rows[i].text), dialect),
                         SY_E_OK);
        if (differs != (rows[i].as_bash != NULL) ||
            strcmp(buf_view(&b), differs ? rows[i].as_bash : rows[i].text) != 0) {
            fail_msg("<%s> is <%s>, not <%s>", rows[i].text, buf_view(&b),
                     rows[i].as_bash != NULL ? rows[i].as_bash : rows[i].text);
        }
        buf_fini(&b);
    }
}
#define EXPECT(rows, dialect) expect_rows(rows, sizeof(rows) / sizeof((rows)[0]), dialect)

static void
braces_are_the_words_that_they_make(void **state)
{
    static const struct row rows[] = {
        {"{touch,F}",                              "touch F"                           },
        {"git {push,-f} x",                        "git push -f x"                     },
        {"t{ouch,x} F",                            "touch tx F"                        },
        {"touc{h..h} F",                           "touch F"                           },
        {"echo {1..3} {c..a}",                     "echo 1 2 3 c b a"                  },
        {"echo a{1,2}{b,c}",                       "echo a1b a1c a2b a2c"              },
        {"echo \"$({rm,x})\"",                     "echo \"$(rm x)\""                  },
        {"echo {\"a b\",c}x",                      "echo \"a b\"x cx"                  },
        {"{touch,$(echo F)}",                      "touch $(echo F)"                   },
        {"cp a{,.bak}",                            "cp a a.bak"                        },
        {"a && {rm,-f}|{b,c}",                     "a && rm -f|b c"                    },
        {"echo '{a,b}' \"{a,b}\"",                 NULL                                },
        {"echo ${x,,} {} {a} \\{a,b}",             NULL                                },
        {"{ a, b; }",                              NULL                                },
        {"cat <<'E'; {a,b}\nit's {a,b}\nE\n{c,d}", "cat <<'E'; a b\nit's {a,b}\nE\nc d"},
        {"cat <<-E\n\"{a,b}\n\tE\n{c,d}",          "cat <<-E\n\"{a,b}\n\tE\nc d"       },
        {"echo $((1<<E))\n{a,b}\nE",               "echo $((1<<E))\na b\nE"            },
        {"cat <<E\n{a,b}",                         "cat <<E\na b"                      },
        {"# {a,b}",                                NULL                                },
        {"ls",                                     NULL                                },
        {"{{{",                                    NULL                                },
        {"",                                       NULL                                },
    };

    (void)state;
    EXPECT(rows, DIALECT_BASH);
}

static void
sh_may_be_no_bash(void **state)
{
    static const struct row rows[] = {
        {": $'\\'; touch F #'",        ": \\$'\\'; touch F #'"       },
        {": &>/dev/null touch F",      ": & >/dev/null touch F"      },
        {"((touch F))",                "( (touch F))"                },
        {"[[ a || touch F ]]",         ": a || touch F ]]"           },
        {"echo $[1; touch F ]",        "echo \\$[1; touch F ]"       },
        {"echo \"$(: $'\\'; rm #')\"", "echo \"$(: \\$'\\'; rm #')\""},
        {"echo \"$'a'\" '&>'",         NULL                          },
        {"echo $((1 + 2)) 2>&1",       NULL                          },
        {"{touch,F}",                  NULL                          },
        {"a # &> $'x'",                NULL                          },
    };

    (void)state;
    EXPECT(rows, DIALECT_DASH);
}

static void
zsh_has_marks_of_its_own(void **state)
{
    static const struct row rows[] = {
        {"=touch F",               "touch F"       },
        {"noglob =touch F",        "noglob touch F"},
        {": &| touch F",           ": &\n touch F" },
        {": &! touch F",           ": &\n touch F" },
        {"echo x >! y",            "echo x >| y"   },
        {"{touch F}",              "{ touch F}"    },
        {"[[ a == b ]]; x=1 b==c", NULL            },
        {"echo '=x' \"a =x\"",     NULL            },
        {": # =touch",             NULL            },
    };
    static const struct row typed[] = {
        {"# see; touch F",    "\\# see; touch F"  },
        {"ls # a | =touch F", "ls \\# a | touch F"},
        {"echo a#b $#",       NULL                },
    };

    (void)state;
    EXPECT(rows, DIALECT_ZSH);
    EXPECT(typed, DIALECT_ZSH | DIALECT_TYPED);
}

static void
nothing_is_a_comment_where_there_are_none(void **state)
{
    static const struct row with[] = {
        {"# x; touch F", "\\# x; touch F"},
    };
    static const struct row without[] = {
        {"# x; touch F", NULL},
    };

    (void)state;
    EXPECT(with, DIALECT_BASH | DIALECT_BARE);
    EXPECT(with, DIALECT_CSH | DIALECT_TYPED);
    EXPECT(without, DIALECT_BASH | DIALECT_TYPED);
    EXPECT(without, DIALECT_DASH | DIALECT_TYPED);
    EXPECT(without, DIALECT_FISH | DIALECT_TYPED);
}

static void
fish_is_another_language(void **state)
{
    static const struct row rows[] = {
        {"true; and touch F",           "true;  touch F"            },
        {"or touch F",                  " touch F"                  },
        {"not touch F",                 " touch F"                  },
        {"begin touch F; end",          " touch F; :"               },
        {"if true; touch F; end",       " true; touch F; :"         },
        {"begin; touch F; end",         "  touch F; :"              },
        {"for x in a; touch F; end",    ": x in a; touch F; :"      },
        {"a | while read x; rm x; end", "a |  read x; rm x; :"      },
        {"'and' touch F",               " touch F"                  },
        {"t\\x6fuch F",                 "touch F"                   },
        {"t\\X6fuch t\\157 \\u006f",    "touch to o"                },
        {"echo 'a\\' '; touch F #'",    "echo 'a'\\'' '; touch F #'"},
        {"echo (touch F)",              "echo $(touch F)"           },
        {"echo `; touch F",             "echo \\`; touch F"         },
        {"a &| touch F",                "a | touch F"               },
        {"then; touch F",               "\\then; touch F"           },
        {"echo and; echo a'b'",         NULL                        },
        {"echo \"$(touch F)\" $x",      NULL                        },
        {"a && b || c # and d",         NULL                        },
    };

    (void)state;
    EXPECT(rows, DIALECT_FISH);
}

static void
csh_has_no_escapes_between_double_quotes(void **state)
{
    static const struct row rows[] = {
        {"echo \"a\\\"; touch F #\"", "echo \"a\\\\\"; touch F #\""},
        {"echo \"ab\" a\\\"b",        NULL                         },
    };

    (void)state;
    EXPECT(rows, DIALECT_CSH);
}

static void
a_name_tells_the_dialects(void **state)
{
    (void)state;
    assert_int_equal(dialect_of("bash"), DIALECT_BASH);
    assert_int_equal(dialect_of("dash"), DIALECT_DASH);
    assert_int_equal(dialect_of("sh"), DIALECT_BASH | DIALECT_DASH);
    assert_int_equal(dialect_of("zsh"), DIALECT_BASH | DIALECT_ZSH);
    assert_int_equal(dialect_of("python3"), DIALECT_ALL);
    assert_int_equal(dialect_of(""), DIALECT_ALL);
}

static void
what_is_hard_is_refused_in_time(void **state)
{
    static const char *const parts[] = {"{a,b}",           "{",   "$(",    "\"$(", "`",
                                        "{1..999999999}",  "\\x", "<<a\n", "${x`", "${x$(",
                                        "cat <<a\n`\na\n", "'"};

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct buf text = {.max = LIMIT_SCRIPT};

        while (text.len < (size_t)100 * 1024) {
            assert_int_equal(buf_add_str(&text, parts[i]), SY_E_OK);
        }
        for (unsigned one = DIALECT_BASH; one <= DIALECT_CSH; one <<= 1U) {
            struct buf b = {.max = (size_t)LIMIT_SCRIPT * 4};
            bool differs = false;
            enum sy_code rc =
                dialect_read(&b, &differs, buf_view(&text), text.len, one | DIALECT_BARE);

            assert_true(rc == SY_E_OK || rc == SY_E_LIMIT);
            buf_reset(&b);
            assert_int_equal(dialect_add_hidden(&b, buf_view(&text), text.len, false), SY_E_OK);
            buf_fini(&b);
        }
        buf_fini(&text);
    }
}

static void
pieces_have_no_marks(void **state)
{
    struct buf b = {.max = LIMIT_SCRIPT};
    const char *text = "if \"a\" {rm -f x=1}";

    (void)state;
    assert_int_equal(dialect_pieces(&b, text, strlen(text), DIALECT_CUT_FEW), SY_E_OK);
    assert_string_equal(buf_view(&b), "   \na\n \nrm -f x=1\n");
    assert_int_equal(dialect_pieces(&b, text, strlen(text), DIALECT_CUT_MANY), SY_E_OK);
    assert_string_equal(buf_view(&b), "   \na\n \nrm -f x\n1\n");
    buf_fini(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_are_the_words_that_they_make),
        cmocka_unit_test(sh_may_be_no_bash),
        cmocka_unit_test(zsh_has_marks_of_its_own),
        cmocka_unit_test(nothing_is_a_comment_where_there_are_none),
        cmocka_unit_test(fish_is_another_language),
        cmocka_unit_test(csh_has_no_escapes_between_double_quotes),
        cmocka_unit_test(a_name_tells_the_dialects),
        cmocka_unit_test(what_is_hard_is_refused_in_time),
        cmocka_unit_test(pieces_have_no_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
