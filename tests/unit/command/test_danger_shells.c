#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "command/dialect.h"
#include "danger_yard.h"
#include "fault.h"

/* What is dangerous as another shell reads it than bash. */

/* A shell runs the lines before what is wrong, or knows what the grammar does not. */
static void
what_cannot_be_read_is_judged_by_its_pieces(void **state)
{
    (void)state;
    expect("rm -rf x\n)", DANGER_DANGEROUS, "rm.forced");
    expect("if then rm -rf x", DANGER_DANGEROUS, "rm.forced");
    expect("case x { y) \"rm\" -rf x;; }", DANGER_UNKNOWN, "script.unreadable");
    expect("{rm,-rf,/}", DANGER_CATASTROPHIC, "catastrophe.system");
}

/* What another shell than bash makes of it. */
static void
each_shell_reads_in_its_own_way(void **state)
{
    static const struct {
        const char *shell, *script;
        enum danger_level level;
    } rows[] = {
        {"bash",    "rm {-rf,x}",                     DANGER_DANGEROUS},
        {"bash",    "eval {rm,-rf,x}",                DANGER_DANGEROUS},
        {"bash",    ": $'\\'; rm -rf x #'",           DANGER_NONE     },
        {"dash",    ": $'\\'; rm -rf x #'",           DANGER_DANGEROUS},
        {"/bin/sh", ": $'\\'; rm -rf x #'",           DANGER_DANGEROUS},
        {"sh",      ": &>/dev/null rm -rf x",         DANGER_DANGEROUS},
        {"bash",    ": &>/dev/null rm -rf x",         DANGER_NONE     },
        {"bash",    "sh -c ': &>/dev/null rm -rf x'", DANGER_DANGEROUS},
        {"sh",      "((rm -rf x))",                   DANGER_DANGEROUS},
        {"sh",      "[[ a || rm -rf x ]]",            DANGER_DANGEROUS},
        {"ksh",     ": ${ rm -rf x;}",                DANGER_DANGEROUS},
        {"zsh",     "=rm -rf x",                      DANGER_DANGEROUS},
        {"zsh",     "true; - rm -rf x",               DANGER_DANGEROUS},
        {"zsh",     "repeat 1 { rm -rf x }",          DANGER_DANGEROUS},
        {"zsh",     "for x (a b) rm -rf x",           DANGER_DANGEROUS},
        {"zsh",     "if [[ a ]] { rm -rf x }",        DANGER_DANGEROUS},
        {"zsh",     "echo x >! /etc/old",             DANGER_DANGEROUS},
        {"zsh",     "# x; rm -rf x",                  DANGER_NONE     },
        {"fish",    "true; and rm -rf x",             DANGER_DANGEROUS},
        {"fish",    "if true; rm -rf x; end",         DANGER_DANGEROUS},
        {"fish",    "begin rm -rf x; end",            DANGER_DANGEROUS},
        {"fish",    "r\\x6d -rf x",                   DANGER_DANGEROUS},
        {"fish",    "echo 'a\\' '; rm -rf x #'",      DANGER_DANGEROUS},
        {"tcsh",    "echo \"a\\\"; rm -rf x #\"",     DANGER_DANGEROUS},
        {"bash",    "su -c 'true; and rm -rf x'",     DANGER_DANGEROUS},
    };
    const struct judge_world world = test_world(test_reader);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const argv[] = {rows[i].shell, "-c", rows[i].script, NULL};
        struct danger_verdict v = danger_of(&world, mem_unconst(argv));

        if (v.level != rows[i].level &&
            !(rows[i].level == DANGER_NONE && v.level < DANGER_DANGEROUS)) {
            fail_msg("%s: %s: %s", rows[i].shell, rows[i].script, danger_level_name(v.level));
        }
    }
}

/* Builtins that take a script, and what stands before a command. */
static void
what_a_shell_runs_by_itself_is_known(void **state)
{
    static const char *const scripts[] = {
        "$\"rm\" -f x",
        "coproc X { rm -f x; }",
        ". /dev/stdin <<< 'rm -f x'",
        "source /dev/stdin <<E\nrm -f x\nE",
        "bash /dev/stdin <<< 'rm -f x'",
        "compgen -C 'rm -f x'",
        "mapfile -c 1 -C 'rm -f x #' y <<< a",
        "test -v 'a[$(rm -f x)]'",
        "printf -v 'a[`rm -f x`]' y",
        "emulate sh -c 'rm -f x'",
        "repeat 1; do rm -f x; done",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        expect(scripts[i], DANGER_DANGEROUS, "rm.forced");
    }
    expect("echo 'a[$(rm -f x)]'", DANGER_NONE, NULL);
    expect(". /dev/stdin <<< 'ls'", DANGER_NONE, NULL);
}

/* What the grammar takes for text. */
static void
substitutions_are_found_in_whatever_they_stand(void **state)
{
    static const char *const scripts[] = {
        "echo ${x:-`rm -f x`}",
        "echo \"${x:=`rm -f x`}\"",
        "echo ${x#$(rm -f x)}",
        "echo ${x^^`rm -f x`} ${x/a/`ls`}",
        "echo ${x:-${y:-`rm -f x`}}",
        "for i in ${x:-`rm -f x`}; do :; done",
        "y=${x:-`rm -f x`}",
        "cat <<E\na `rm -f x` b\nE",
        "cat <<A <<'B'\n`rm -f x`\nA\n`ls`\nB",
        "cat <<-E\n${x:-`rm -f x`}\nE",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        expect(scripts[i], DANGER_DANGEROUS, "rm.forced");
    }
    expect("cat <<'E'\na `rm -f x` ${x:-`rm -f x`} b\nE", DANGER_NONE, NULL);
    expect("cat <<\\E\na `rm -f x` b\nE", DANGER_NONE, NULL);
    expect("cat <<E\na \\`rm -f x\\` b\nE", DANGER_NONE, NULL);
    expect("echo '${x:-`rm -f x`}' ${x} $(ls) # ${x:-`rm -f x`}", DANGER_NONE, NULL);
}

/* Wherever the script stands among a shell's words. */
static void
each_option_that_brings_a_script_is_known(void **state)
{
    static const char *const rows[][6] = {
        {"bash",     "-c",       "-", "rm -f x"},
        {"zsh", "-c",           "--", "- rm -f x"},
        {"bash",      "-c",  "+e", "rm -f x"},
        {"bash",          "-Oc",               "extglob", "rm -f x"},
        {"bash",      "-ceo",      "posix", "rm -f x"},
        {"zsh",     "-oposixaliases", "-c", "rm -f x"},
        {"zsh", "--emulate",           "sh", "-c", "rm -f x"},
        {"fish","--command","rm -f x"},
        {"fish",          "--comm=rm -f x"               },
        {"fish",      "-C",       "rm -f x", "-c", "true"},
        {"fish",      "-c",     "true", "-c", "rm -f x"},
        {"fish",      "-Nc",       "rm -f x"},
        {"fish",     "-crm -f x"     },
        {"fish",          "-d",               "3", "-c", "rm -f x"},
        {"fish",          "--init-command=rm -f x"},
    };
    const struct judge_world world = test_world(test_reader);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_verdict(danger_of(&world, mem_unconst(rows[i])), rows[i][1], DANGER_DANGEROUS, NULL);
    }
}

/* zsh and csh take no comment that is typed; nor does who was told so. */
static void
what_is_typed_behind_a_mark_may_be_no_comment(void **state)
{
    static const struct {
        unsigned typed;
        enum danger_level level;
    } rows[] = {
        {DIALECT_BASH | DIALECT_TYPED,                DANGER_NONE     },
        {DIALECT_BASH | DIALECT_DASH | DIALECT_TYPED, DANGER_NONE     },
        {DIALECT_ZSH | DIALECT_TYPED,                 DANGER_DANGEROUS},
        {DIALECT_CSH | DIALECT_TYPED,                 DANGER_DANGEROUS},
        {DIALECT_ALL | DIALECT_TYPED,                 DANGER_DANGEROUS},
        {DIALECT_BASH | DIALECT_TYPED | DIALECT_BARE, DANGER_DANGEROUS},
    };
    static const char *const lines[] = {"# clean up; rm -rf x", ": # ; rm -rf x",
                                        "ls # it's; rm -rf x"};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct judge_world world = test_world(test_reader);

        world.typed = rows[i].typed;

        const char *const option[] = {"bash", "-c", "-x; rm -rf x", NULL};

        expect_verdict(danger_of(&world, mem_unconst(option)), option[2], DANGER_DANGEROUS, NULL);
        for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++) {
            const char *const argv[] = {"bash", "-c", lines[k], NULL};

            expect_verdict(danger_of(&world, mem_unconst(argv)), lines[k], rows[i].level, NULL);
        }
    }
}

static enum sy_code
judge_each_reading(void *arg)
{
    static const char *const scripts[] = {"a {b,c..d} {1..3} ${x:-`y`}; [[ x ]] &>y # z",
                                          "'a\\''; =b (c"};
    struct script_reader *own = script_reader_new();
    struct judge_world world = test_world(own);
    enum sy_code rc = own != NULL ? SY_E_OK : SY_E_NOMEM;

    world.typed = DIALECT_ALL | DIALECT_TYPED;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]) && rc == SY_E_OK; i++) {
        const char *const argv[] = {"sh", "-c", scripts[i], NULL};
        struct danger_verdict v;

        rc = danger_judge(&v, &world, mem_unconst(argv), NULL, NULL, arg);
    }
    script_reader_free(own);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    struct sy_error err = {0};

    (void)state;
    fault_run_lenient(judge_each_reading, &err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_is_judged_by_its_pieces),
        cmocka_unit_test(each_shell_reads_in_its_own_way),
        cmocka_unit_test(what_a_shell_runs_by_itself_is_known),
        cmocka_unit_test(substitutions_are_found_in_whatever_they_stand),
        cmocka_unit_test(each_option_that_brings_a_script_is_known),
        cmocka_unit_test(what_is_typed_behind_a_mark_may_be_no_comment),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, test_reader_make, test_reader_free);
}
