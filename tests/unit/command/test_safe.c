#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "command/safe.h"
#include "fault.h"
#include "world.h"

static struct safe_verdict
judge(const struct judge_world *world, char *const *argv)
{
    struct safe_verdict v;

    assert_int_equal(safe_judge(&v, world, argv, NULL, NULL, NULL), SY_E_OK);
    assert_non_null(v.verdict.rule);
    assert_true(v.is_safe || v.env == NULL);
    return v;
}

/* A command line whose words stand between blanks: an argument list. */
static void
expect_words(const struct judge_world *world, const char *line, bool is_safe)
{
    struct strv argv = {.max = 64};

    for (const char *s = line + strspn(line, " "); *s != '\0'; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");

        assert_int_equal(strv_addn(&argv, s, len), SY_E_OK);
        s += len;
    }

    struct safe_verdict v = judge(world, strv_view(&argv));

    if (v.is_safe != is_safe) {
        fail_msg("argv %s: safe %d: %s %s (%s)", line, v.is_safe, v.verdict.rule,
                 v.verdict.argument, v.verdict.why);
    }
    strv_fini(&argv);
}

static void
expect_script(const char *script, bool is_safe)
{
    struct judge_world world = test_world(test_reader);
    char *argv[] = {mem_unconst("bash"), mem_unconst("-lc"), mem_unconst(script), NULL};
    struct safe_verdict v = judge(&world, argv);

    if (v.is_safe != is_safe) {
        fail_msg("script %s: safe %d: %s %s (%s)", script, v.is_safe, v.verdict.rule,
                 v.verdict.argument, v.verdict.why);
    }
}

static void
programs_that_only_look_are_safe(void **state)
{
    static const char *const lines[] = {
        "ls",
        "base64",
        "nl -nrz Cargo.toml",
        "find . -name file.txt",
        "sed -n 1,5p file.txt",
        "rg Cargo.toml -n",
        "git status",
        "git branch",
        "git branch --show-current",
        "git log -p -1",
        "git diff -p",
        "git show -p HEAD",
        "numfmt 1000",
        "tac Cargo.toml",
        "zsh -lc ls",
        "git log -p -2",
        "git status --short",
        "git diff HEAD~1 -- a.txt",
        "git show HEAD:a.txt",
        "git branch --list",
        "git diff --text",
        "git branch -vv -a",
        "cat -A x",
        "cut -f1 x",
        "expr 1 + 1",
        "false",
        "grep -r x .",
        "head -c 10 /dev/null",
        "id",
        "paste a b",
        "pwd",
        "rev x",
        "seq 3",
        "stat x",
        "tail -n 3 x",
        "tr a b",
        "true",
        "uname -a",
        "uniq -c x",
        "uniq -f 1 x",
        "wc -l x",
        "which ls",
        "whoami",
        "echo hi",
        "cut -d: -f1",
        "/bin/cat a",
        "/usr/bin/ls",
        "rg -e foo -g *.c -tpy",
        "rg -- --pre x",
        "rg -gz x",
        "base64 -w0 x",
        "git log --format=%H",
        "sed -n 3p",
    };
    struct judge_world world = test_world(test_reader);

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        expect_words(&world, lines[i], true);
    }
}

static const char *const not_known[] = {
    "foo",
    "cargo check",
    "sed -n xp file.txt",
    "git fetch",
    "git checkout status",
    "git branch -d feature",
    "git branch new-branch",
    "git log --output=/tmp/x -n 1",
    "git diff --output /tmp/x",
    "git show --output=/tmp/x HEAD",
    "git --paginate log -1",
    "git -p log -1",
    "git -C . status",
    "git -C. status",
    "git -c core.pager=cat log -n 1",
    "git -ccore.pager=cat status",
    "git --config-env X show HEAD",
    "git --config-env=X show HEAD",
    "git --git-dir .evil-git diff HEAD~1..HEAD",
    "git --git-dir=.evil-git diff HEAD~1..HEAD",
    "git --work-tree . status",
    "git --work-tree=. status",
    "git --exec-path .git/helpers show HEAD",
    "git --exec-path=.git/helpers show HEAD",
    "git --namespace attacker show HEAD",
    "git --namespace=attacker show HEAD",
    "git --super-prefix attacker/ show HEAD",
    "git --super-prefix=attacker/ show HEAD",
    "find . -exec rm {} ;",
    "find . -execdir python3 x ;",
    "find . -ok rm {} ;",
    "find . -okdir python3 x ;",
    "find . -delete -name x",
    "find . -fls /etc/passwd",
    "find . -fprint /etc/passwd",
    "find . -fprint0 /etc/passwd",
    "find . -fprintf /etc/suid.txt x",
    "base64 -o out.bin",
    "base64 --output out.bin",
    "base64 --output=out.bin",
    "base64 -ob64.txt",
    "rg --search-zip files",
    "rg -z files",
    "rg --pre pwned files",
    "rg --pre=pwned files",
    "rg --hostname-bin pwned files",
    "rg --hostname-bin=pwned files",
    "git -c alias.z=!touch z",
    "git diff --output=pwn HEAD",
    "git log --output=pwn",
    "git grep --open-files-in-pager=touch hi",
    "git branch pwn",
    "git archive -o pwn HEAD",
    "git config core.x y",
    "git diff --ext-diff HEAD",
    "git log --textconv -1",
    "git cat-file --filters HEAD:a.txt",
    "bash -lc git status",
    "bash",
    "bash -c",
    "git",
    "env",
    "env ls",
    "sudo ls",
    "time ls",
    "sort x",
    "missing",
    "xargs cat",
    /* what exact comparison of options and of names lets through */
    "rg -iz x",
    "rg --sear x",
    "base64 -do x",
    "base64 --out x",
    "git log --outp=x",
    "git diff --ext",
    "git log --show-sig",
    "git log --format=%G?",
    "git show --remerge-diff",
    "uniq a b",
    "uniq -c a b",
    "uniq -- a b",
    "sed -n 1p -i",
    "sed -n 1,2p -i x",
    "sed -i 1p x",
    "sed 1p x",
    "sed -n 1,p x",
    "git log --diff-merges=remerge",
};

static void
what_is_not_known_to_look_is_not_safe(void **state)
{
    struct judge_world world = test_world(test_reader);

    (void)state;
    for (size_t i = 0; i < sizeof(not_known) / sizeof(not_known[0]); i++) {
        expect_words(&world, not_known[i], false);
    }
}

static void
a_program_is_the_file_that_would_run(void **state)
{
    struct judge_world world = test_world(test_reader);

    (void)state;
    expect_words(&world, "./cat a.txt", false);
    expect_words(&world, "/W/cat a.txt", false);
    expect_words(&world, "../W/cat a.txt", false);
    expect_words(&world, "cat a.txt", true);
    expect_words(&world, "/bin/cat a.txt", true);
    expect_words(&world, "/tmp/evil/bash -c ls", false);
    expect_words(&world, "./pwsh -Command Get-ChildItem", false);
    world.find_program = NULL;
    expect_words(&world, "cat a.txt", false);
    expect_words(&world, "ls", false);
}

static const char *const good_scripts[] = {
    "ls",
    "ls -1",
    "git status",
    "git log -p -1",
    "grep -R \"Cargo.toml\" -n",
    "sed -n 1,5p file.txt",
    "sed -n '1,5p' file.txt",
    "find . -name file.txt",
    "grep x -n || true",
    "ls && pwd",
    "echo 'hi' ; ls",
    "ls | wc -l",
    /* harmless redirections and pipes */
    "ls -la 2>/dev/null",
    "grep -rn TODO src 2>&1 | head -20",
    "git diff --stat | grep md",
    "cat a.txt && wc -l a.txt",
    "grep 'a;b|c>d' a.txt",
    "echo \"x > y\"",
    "cd src && ls",
    "bash -lc 'ls && pwd'",
    "head -c 10 /dev/null",
    "echo \"$HOME\" $USER",
    "ls $DIR",
    "cat \"$f\" # shows it",
    "find . -name \"$pattern\"",
    "find src/*.d -name '*.c'",
    "find src -name '*.c' | head",
    "rg foo -- $DIRS",
    "rg foo src/*.c",
    "git diff -- \"$f\"",
    "ls *.c {a,b} ~/x",
    "cd src; git status",
    "find \"src/$d\" -name x",
};

static const char *const bad_scripts[] = {
    "git branch -d feature",
    "git --paginate log -1",
    "git -p log -1",
    "git -C .project-deps/test-fixtures status",
    "git --git-dir=.evil-git diff HEAD~1..HEAD",
    "'git status'",
    "find . -name file.txt -delete",
    "ls && rm -rf /",
    "(ls)",
    "ls || (pwd && echo hi)",
    "ls > out.txt",
    /* composition */
    "git log -1; touch pwn",
    "git log -1 & touch pwn",
    "git log -1 |& tee pwn",
    "ls\ntouch pwn",
    "echo $(touch pwn)",
    "echo \"`touch pwn`\"",
    "ls <(touch pwn)",
    "echo hi > pwn",
    "echo hi >| pwn",
    "echo hi &> pwn",
    "echo hi >& pwn",
    "cat a.txt #\ntouch pwn",
    "{ touch pwn; }",
    "! touch pwn",
    "if ls; then touch pwn; fi",
    "find . -maxdepth 0 -exec touch pwn {} +",
    "find . -fprintf pwn x",
    "find . -fls pwn -maxdepth 0",
    "find . -delete",
    "echo ${x:=$(touch pwn)}",
    "GIT_PAGER='touch pwn' git -p log",
    "git grep --open-files-in-pager='touch pwn;:' hi",
    /* what the shell makes of a word */
    "rg foo $OPTS",
    "rg foo \"$x\"",
    "find $DIR -name x",
    "find *",
    "rg foo *",
    "uniq *",
    "uniq $f",
    "sed -n \"$x\" f",
    "git log {--output=x,y}",
    "git log \"$x\"",
    "git $x",
    "rg foo -$x",
    "base64 [-]o",
    "find . -name $p",
    "git branch $x",
    "git log -n$x",
    "time rm x",
    "coproc rm x",
    "r\"\"m x",
    "cat <<E\nx\nE",
    "exec ls",
    "eval ls",
    ". ./x",
    "ls() { rm x; }; ls",
    "alias ls=rm; ls",
    "PATH=/W ls",
    "export PATH=/W; ls",
    "/W/ls && ls",
    "cd $X && git status",
    "cd evil && git status",
    "cd - && git log",
    "git status; cd evil; git status",
    "bash -c \"ls $x\"",
    "bash -c ls -x",
    "zsh -c '=ls'",
};

static void
scripts_are_safe_when_each_command_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_scripts) / sizeof(good_scripts[0]); i++) {
        expect_script(good_scripts[i], true);
    }
    for (size_t i = 0; i < sizeof(bad_scripts) / sizeof(bad_scripts[0]); i++) {
        expect_script(bad_scripts[i], false);
    }
}

static void
git_needs_its_environment_and_a_tame_repository(void **state)
{
    struct judge_world world = test_world(test_reader);
    char *argv[] = {mem_unconst("git"), mem_unconst("status"), NULL};
    char *ls[] = {mem_unconst("ls"), NULL};
    struct safe_verdict v = judge(&world, argv);

    (void)state;
    assert_true(v.is_safe);
    assert_ptr_equal(v.env, safe_git_env());
    assert_null(judge(&world, ls).env);
    world.cwd = "/W/evil/sub";
    v = judge(&world, argv);
    assert_false(v.is_safe);
    assert_string_equal(v.verdict.rule, "git.repository");
    assert_string_equal(v.verdict.argument, "/W/evil/sub");
    world = test_world(test_reader);
    world.git_is_tame = NULL;
    assert_false(judge(&world, argv).is_safe);
}

static void
variables_of_the_call_may_change_programs(void **state)
{
    struct judge_world world = test_world(test_reader);
    char *good[] = {mem_unconst("LC_ALL=C"), mem_unconst("NO_COLOR=1"), NULL};
    char *bad[] = {mem_unconst("LC_ALL=C"), mem_unconst("LD_PRELOAD=/W/x.so"), NULL};

    (void)state;
    world.env = good;
    expect_words(&world, "ls", true);
    world.env = bad;
    expect_words(&world, "ls", false);
}

static void
a_verdict_names_rule_command_and_argument(void **state)
{
    static const struct {
        const char *script, *rule, *command, *argument;
    } rows[] = {
        {"ls; find . -delete",  "find.action",        "find . -delete",   "-delete"  },
        {"rg --pre x y",        "rg.program",         "rg --pre x y",     "--pre"    },
        {"touch a",             "program.unknown",    "touch a",          "touch"    },
        {"./ls",                "program.untrusted",  "./ls",             "./ls"     },
        {"ls > x",              "script.not-plain",   "bash -lc ls > x",  ""         },
        {"git -C x log",        "git.global-option",  "git -C x log",     "-C"       },
        {"rg \"$x\" a",         "safe.hidden-option", "rg $x a",          "$x"       },
        {"uniq a b",            "uniq.output",        "uniq a b",         "b"        },
        {"uniq a \xe2\x80\x8b", "uniq.output",        "uniq a \\u{200B}", "\\u{200B}"},
    };
    struct judge_world world = test_world(test_reader);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *argv[] = {mem_unconst("bash"), mem_unconst("-lc"), mem_unconst(rows[i].script), NULL};
        struct safe_verdict v = judge(&world, argv);

        assert_false(v.is_safe);
        assert_string_equal(v.verdict.rule, rows[i].rule);
        assert_string_equal(v.verdict.command, rows[i].command);
        assert_string_equal(v.verdict.argument, rows[i].argument);
        assert_string_not_equal(v.verdict.why, "");
    }
}

static void
count(void *arg, bool is_safe, const struct verdict *v)
{
    int *counts = arg;

    assert_non_null(v->rule);
    counts[is_safe ? 1 : 0]++;
}

static void
each_command_is_told_of(void **state)
{
    struct judge_world world = test_world(test_reader);
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"),
                    mem_unconst("ls; touch a; bash -c 'pwd | rm x'; id"), NULL};
    struct safe_verdict v;
    int counts[2] = {0};

    (void)state;
    assert_int_equal(safe_judge(&v, &world, argv, count, counts, NULL), SY_E_OK);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 3);
    assert_string_equal(v.verdict.command, "touch a");
}

static void
windows_names_are_understood(void **state)
{
    struct judge_world world = test_world(test_reader);
    char *git[] = {mem_unconst("C:\\Program Files\\Git\\cmd\\GIT.exe"), mem_unconst("status"),
                   NULL};

    (void)state;
    world.is_windows = true;
    assert_true(judge(&world, git).is_safe);
    expect_words(&world, "numfmt 1000", false);
    expect_words(&world, "tac Cargo.toml", false);
    expect_words(&world, "LS.EXE", true);
    world.is_windows = false;
    expect_words(&world, "LS.EXE", false);
}

static void
hostile_scripts_are_not_safe_and_no_error(void **state)
{
    struct judge_world world = test_world(test_reader);
    struct buf b = {.max = (size_t)4 * 1024 * 1024};
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), NULL, NULL};

    (void)state;
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(buf_add_str(&b, "echo $("), SY_E_OK);
    }
    argv[2] = b.data;
    assert_false(judge(&world, argv).is_safe);
    argv[2] = mem_unconst("ls \xff");
    assert_string_equal(judge(&world, argv).verdict.rule, "script.refused");
    argv[0] = NULL;
    assert_false(judge(&world, argv).is_safe);
    buf_reset(&b);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(buf_addf(&b, "bash -c bash\\ "), SY_E_OK);
    }
    buf_fini(&b);
}

static void
scripts_in_scripts_end_somewhere(void **state)
{
    struct judge_world world = test_world(test_reader);
    struct strv inner = {.max = 64};
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"), NULL, NULL};

    (void)state;
    /* Each layer's quotes: ' becomes '\'' in the next. */
    assert_int_equal(strv_add(&inner, "ls"), SY_E_OK);
    for (size_t i = 0; i < 12; i++) {
        struct buf b = {.max = (size_t)1 << 22};

        assert_int_equal(buf_add_str(&b, "sh -c '"), SY_E_OK);
        for (const char *s = inner.v[i]; *s != '\0'; s++) {
            assert_int_equal(*s == '\'' ? buf_add_str(&b, "'\\''") : buf_add_char(&b, *s), SY_E_OK);
        }
        assert_int_equal(buf_add_char(&b, '\''), SY_E_OK);
        assert_int_equal(strv_add_take(&inner, buf_take(&b)), SY_E_OK);
    }
    argv[2] = inner.v[3];
    assert_true(judge(&world, argv).is_safe);
    argv[2] = inner.v[10];
    assert_string_equal(judge(&world, argv).verdict.rule, "script.layers");
    strv_fini(&inner);
}

static enum sy_code
judge_all_kinds(void *arg)
{
    struct script_reader *own = script_reader_new();
    struct judge_world world = test_world(own);
    char *argv[] = {mem_unconst("sh"), mem_unconst("-c"),
                    mem_unconst("cd src; git status | sh -c 'ls && rm x'"), NULL};
    char *pwsh[] = {mem_unconst("pwsh"), mem_unconst("-c"), mem_unconst("Get-Item x"), NULL};
    struct safe_verdict v;
    enum sy_code rc = own != NULL ? SY_E_OK : SY_E_NOMEM;

    if (rc == SY_E_OK) {
        rc = safe_judge(&v, &world, argv, NULL, NULL, arg);
    }
    if (rc == SY_E_OK) {
        rc = safe_judge(&v, &world, pwsh, NULL, NULL, arg);
    }
    script_reader_free(own);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    struct sy_error err = {0};

    (void)state;
    /* A text that could not be made visible is left out. */
    fault_run_lenient(judge_all_kinds, &err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_that_only_look_are_safe),
        cmocka_unit_test(what_is_not_known_to_look_is_not_safe),
        cmocka_unit_test(a_program_is_the_file_that_would_run),
        cmocka_unit_test(scripts_are_safe_when_each_command_is),
        cmocka_unit_test(git_needs_its_environment_and_a_tame_repository),
        cmocka_unit_test(variables_of_the_call_may_change_programs),
        cmocka_unit_test(a_verdict_names_rule_command_and_argument),
        cmocka_unit_test(each_command_is_told_of),
        cmocka_unit_test(windows_names_are_understood),
        cmocka_unit_test(hostile_scripts_are_not_safe_and_no_error),
        cmocka_unit_test(scripts_in_scripts_end_somewhere),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, test_reader_make, test_reader_free);
}
