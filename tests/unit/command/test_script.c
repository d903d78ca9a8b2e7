#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "command/script.h"
#include "fault.h"

static struct script_reader *reader;

static int
make_reader(void **state)
{
    (void)state;
    reader = script_reader_new();
    assert_non_null(reader);
    return 0;
}

static int
free_reader(void **state)
{
    (void)state;
    script_reader_free(reader);
    return 0;
}

/* The commands as text: words in brackets, commands on lines. */
static void
show(const struct script *s, char *ret, size_t size)
{
    size_t n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < s->n_commands; i++) {
        n += (size_t)snprintf(ret + n, size - n, "%s", i > 0 ? "\n" : "");
        for (size_t k = 0; k < s->commands[i].n; k++) {
            n += (size_t)snprintf(ret + n, size - n, "[%s]", s->commands[i].words[k].text);
            assert_true(n < size);
        }
    }
}

static void
expect(const char *text, enum script_form form, const char *commands)
{
    struct script s = {0};
    struct sy_error err = {0};
    char shown[4096];

    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), &err), SY_E_OK);
    show(&s, shown, sizeof(shown));
    if (s.form != form || (commands != NULL && strcmp(shown, commands) != 0)) {
        fail_msg("%s\n  form %d (wanted %d), reason: %s\n%s", text, (int)s.form, (int)form,
                 s.reason, shown);
    }
    if (form == SCRIPT_PLAIN) {
        assert_string_equal(s.reason, "");
    } else {
        assert_string_not_equal(s.reason, "");
    }
    script_fini(&s);
}

static void
plain_commands_are_lists_of_words(void **state)
{
    (void)state;
    expect("ls -1", SCRIPT_PLAIN, "[ls][-1]");
    expect("ls && pwd; echo 'hi there' | wc -l", SCRIPT_PLAIN,
           "[ls]\n[pwd]\n[echo][hi there]\n[wc][-l]");
    expect("echo \"hello world\"", SCRIPT_PLAIN, "[echo][hello world]");
    expect("git commit -m \"line1\nline2\"", SCRIPT_PLAIN, "[git][commit][-m][line1\nline2]");
    expect("echo \"/usr\"'/'\"local\"/bin", SCRIPT_PLAIN, "[echo][/usr/local/bin]");
    expect("echo '/usr'\"/\"'local'/bin", SCRIPT_PLAIN, "[echo][/usr/local/bin]");
    expect("echo 123 456", SCRIPT_PLAIN, "[echo][123][456]");
    expect("rg -n \"foo\" -g\"*.py\"", SCRIPT_PLAIN, "[rg][-n][foo][-g*.py]");
    expect("grep -n 'pattern' -g'*.txt'", SCRIPT_PLAIN, "[grep][-n][pattern][-g*.txt]");
    expect("ls \\\n  -la", SCRIPT_PLAIN, "[ls][-la]");
    expect("ls ||\n pwd\n\nid", SCRIPT_PLAIN, "[ls]\n[pwd]\n[id]");
}

static void
quotes_and_escapes_are_taken_away(void **state)
{
    (void)state;
    expect("echo \"a\\$b\\\"c\\\\d\\e\"", SCRIPT_PLAIN, "[echo][a$b\"c\\d\\e]");
    expect("echo a\\ b\\;c \"\" ''", SCRIPT_PLAIN, "[echo][a b;c][][]");
    expect("echo 'a\\b'", SCRIPT_PLAIN, "[echo][a\\b]");
    expect("grep 'a;b|c>d' a.txt", SCRIPT_PLAIN, "[grep][a;b|c>d][a.txt]");
}

static void
harmless_redirections_and_comments_pass(void **state)
{
    (void)state;
    expect("ls -la 2>/dev/null", SCRIPT_PLAIN, "[ls][-la]");
    expect("grep -rn TODO src 2>&1 | head -20", SCRIPT_PLAIN,
           "[grep][-rn][TODO][src]\n[head][-20]");
    expect("ls >/dev/null 2>&1", SCRIPT_PLAIN, "[ls]");
    expect("ls &>/dev/null", SCRIPT_PLAIN, "[ls]");
    expect("ls >& 2", SCRIPT_PLAIN, "[ls]");
    expect("wc -l < a.txt", SCRIPT_PLAIN, "[wc][-l]");
    expect("ls 2>&-", SCRIPT_PLAIN, "[ls]");
    expect("ls # what is here\n# more\npwd", SCRIPT_PLAIN, "[ls]\n[pwd]");
}

static void
variables_as_arguments_pass(void **state)
{
    (void)state;
    expect("echo \"hi ${USER}\" $HOME \"$X\"y", SCRIPT_PLAIN, "[echo][hi ${USER}][$HOME][$Xy]");
    expect("ls \"$1\" \"$@\"", SCRIPT_PLAIN, "[ls][$1][$@]");

    struct script s = {0};
    const char *text = "ls $A \"$B\" c$D \"e$F\" *.c ~/x {a,b} 'g' \"$@\"";

    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), NULL), SY_E_OK);
    assert_int_equal(s.n_commands, 1);

    const struct script_word *w = s.commands[0].words;

    assert_int_equal(w[1].flags, WORD_DYNAMIC | WORD_SPLITS | WORD_DYNAMIC_START);
    assert_int_equal(w[2].flags, WORD_DYNAMIC | WORD_QUOTED | WORD_DYNAMIC_START);
    assert_int_equal(w[3].flags, WORD_DYNAMIC | WORD_SPLITS);
    assert_int_equal(w[4].flags, WORD_DYNAMIC | WORD_QUOTED);
    assert_int_equal(w[5].flags, WORD_GLOB);
    assert_int_equal(w[6].flags, WORD_TILDE);
    assert_int_equal(w[7].flags, WORD_BRACE);
    assert_int_equal(w[8].flags, WORD_QUOTED);
    assert_int_equal(w[9].flags, WORD_DYNAMIC | WORD_QUOTED | WORD_SPLITS | WORD_DYNAMIC_START);
    script_fini(&s);
}

static void
everything_else_is_not_plain(void **state)
{
    static const char *const scripts[] = {
        "(ls)",
        "ls || (pwd && echo hi)",
        "ls > out.txt",
        "ls && cat a > f",
        "echo hi & echo bye",
        "echo $(pwd)",
        "echo `pwd`",
        "echo \"$(pwd)\"",
        "echo \"`touch pwn`\"",
        "FOO=bar ls",
        "X=1",
        "rg -g\"$(pwd)\" pattern",
        "rg -g\"$(echo '*.py')\" pattern",
        "ls |& tee pwn",
        "ls <(touch pwn)",
        "echo hi >| pwn",
        "echo hi &> pwn",
        "echo hi >& pwn",
        "{ touch pwn; }",
        "! touch pwn",
        "if ls; then touch pwn; fi",
        "echo ${x:=$(touch pwn)}",
        "echo ${x:=rm}",
        "r\"\"m -rf /",
        "'git status'",
        "\\rm x",
        "${x:=rm} y",
        "$X y",
        "\"$X\" y",
        "*m x",
        "foo() { rm x; }",
        "for i in a; do ls; done",
        "while true; do ls; done",
        "[[ a == b ]]",
        "export X=1",
        "case a in b) ls;; esac",
        "cat x <<E\n$(id)\nE",
        "cat <<< x",
        "echo $((1+2))",
        "echo $((1<<2))",
        "echo ${x%y}",
        "echo ${!x}",
        "echo ${#x}",
        "echo $\"x\"",
        "ls ;; pwd",
        "echo x > /dev/tcp/1.2.3.4/80",
        "cat < /dev/tcp/1.2.3.4/80",
        "cat < $X",
        "ls > $X",
        "echo ${a[$(id)]}",
        "select x in a; do ls; done",
        "((x=1))",
        "ls 2> err.txt",
        "> f",
        "",
        " \n",
        "# nothing",
        "a=(1 2)",
        "echo a >> b",
        "~/x y",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        expect(scripts[i], SCRIPT_COMPLEX, NULL);
    }
}

static void
wrong_syntax_gives_nothing(void **state)
{
    static const char *const scripts[] = {"ls &&",    "&& ls", "ls | | wc", "if then rm -rf x",
                                          "echo \"a", "ls )",  "rm 'x",     "$(",
                                          "a | "};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        expect(scripts[i], SCRIPT_UNREADABLE, "");
    }
}

static void
a_single_command_before_a_heredoc_is_seen(void **state)
{
    (void)state;
    expect("python3 <<'PY'\nprint(1)\nPY", SCRIPT_HEREDOC, "[python3]");
    expect("python3 << PY\nprint($x)\nPY\n", SCRIPT_HEREDOC, "[python3]");
    expect("python3 <<'PY'\nx\nPY\necho done", SCRIPT_COMPLEX, NULL);
    expect("echo hello > /tmp/out.txt", SCRIPT_COMPLEX, NULL);
    expect("python3 <<'PY' > /tmp/out.txt\nx\nPY", SCRIPT_COMPLEX, NULL);
    expect("PATH=/tmp/evil:$PATH cat <<'EOF'\nx\nEOF", SCRIPT_COMPLEX, NULL);
    expect("python3 <<E\n$(rm -rf x)\nE", SCRIPT_COMPLEX, "[python3]\n[rm][-rf][x]");
    expect("python3 <<< \"$(rm -rf /)\"", SCRIPT_COMPLEX, "[python3]\n[rm][-rf][/]");
    expect("python3 $((1<<2)) <<'PY'\nx\nPY", SCRIPT_COMPLEX, NULL);
    expect("python3 \"$X\" <<'PY'\nx\nPY", SCRIPT_COMPLEX, NULL);
    expect("cat <<E | sh\nx\nE", SCRIPT_COMPLEX, "[cat]\n[sh]");
}

static void
all_commands_are_seen_wherever_they_stand(void **state)
{
    (void)state;
    expect("for t in a b; do rm -r -f \"$t\"; done", SCRIPT_COMPLEX, "[rm][-r][-f][$t]");
    expect("echo \"$(rm -rf x)\"", SCRIPT_COMPLEX, "[echo][$(rm -rf x)]\n[rm][-rf][x]");
    expect("echo ${a:-$(rm x)}", SCRIPT_COMPLEX, "[echo][${a:-$(rm x)}]\n[rm][x]");
    expect("f() { rm x; }; f", SCRIPT_COMPLEX, "[rm][x]\n[f]");
    expect("ls <(rm x)", SCRIPT_COMPLEX, "[ls][<(rm x)]\n[rm][x]");
    expect("X=$(rm x) ls", SCRIPT_COMPLEX, "[ls]\n[rm][x]");
    expect("r\"\"m x; \\rm y; $'r\\x6d' z", SCRIPT_COMPLEX, "[rm][x]\n[rm][y]\n[rm][z]");
    expect("time rm x", SCRIPT_PLAIN, "[time][rm][x]");
    expect("coproc rm x", SCRIPT_PLAIN, "[coproc][rm][x]");
}

static void
redirections_and_inputs_are_kept(void **state)
{
    struct script s = {0};
    const char *text = "a > f; b >> g 2> \"h i\"; c < \"$x\"";

    (void)state;
    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), NULL), SY_E_OK);
    assert_int_equal(s.n_redirects, 4);
    assert_string_equal(s.redirects[0].target.text, "f");
    assert_true(s.redirects[0].writes && s.redirects[0].truncates);
    assert_string_equal(s.redirects[1].target.text, "g");
    assert_true(s.redirects[1].writes && !s.redirects[1].truncates);
    assert_string_equal(s.redirects[2].target.text, "h i");
    assert_true(!s.redirects[3].writes);
    text = "sh <<E\nrm x\nE\n";
    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), NULL), SY_E_OK);
    assert_int_equal(s.n_inputs, 1);
    assert_string_equal(s.inputs[0].text, "rm x\n");
    text = "A=b c; sh | sh";
    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), NULL), SY_E_OK);
    assert_int_equal(s.n_assigned, 1);
    assert_string_equal(s.assigned[0].text, "A=b");
    assert_true((s.commands[0].flags & COMMAND_ASSIGNS) != 0);
    assert_true((s.commands[1].flags & COMMAND_READS_PIPE) == 0);
    assert_true((s.commands[2].flags & COMMAND_READS_PIPE) != 0);
    script_fini(&s);
}

/* `before` n times, `middle`, `after` n times. */
static char *
nested(const char *before, const char *middle, const char *after, size_t n)
{
    struct buf b = {.max = (size_t)16 * 1024 * 1024};

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(buf_add_str(&b, before), SY_E_OK);
    }
    assert_int_equal(buf_add_str(&b, middle), SY_E_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(buf_add_str(&b, after), SY_E_OK);
    }
    return buf_take(&b);
}

static void
expect_refused(const char *text, size_t len, enum sy_code code, const char *words)
{
    struct script s = {0};
    struct sy_error err = {0};

    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, len, &err), code);
    assert_non_null(strstr(err.msg, words));
    assert_int_equal(s.form, SCRIPT_UNREADABLE);
    assert_int_equal(s.n_commands, 0);
    script_fini(&s);
}

static void
too_deep_scripts_are_refused_without_recursion(void **state)
{
    static const struct {
        const char *before, *middle, *after;
    } kinds[] = {
        {"(",            "ls",  ")"   },
        {"$(",           "ls",  ")"   },
        {"echo $(echo ", "ls",  ")"   },
        {"echo \"$(",    "ls",  ")\"" },
        {"${a:-",        "x",   "}"   },
        {"if a; then ",  "b; ", "fi; "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char *text = nested(kinds[i].before, kinds[i].middle, kinds[i].after, 10000);

        expect_refused(text, strlen(text), SY_E_LIMIT, "levels deep");
        mem_free(text);
        text = nested(kinds[i].before, kinds[i].middle, kinds[i].after, 20);
        expect(text, SCRIPT_COMPLEX, NULL);
        mem_free(text);
    }
}

static void
what_is_no_text_is_refused(void **state)
{
    char *text = nested("a", "", "", LIMIT_SCRIPT + 1);

    (void)state;
    expect_refused("ls\0rm", 5, SY_E_PARSE, "NUL byte at byte 2");
    expect_refused("ls \xff", 4, SY_E_PARSE, "no UTF-8 text at byte 3");
    expect_refused(text, LIMIT_SCRIPT + 1, SY_E_LIMIT, "1048577 bytes");
    mem_free(text);
}

static void
scripts_of_a_megabyte_are_read_or_refused(void **state)
{
    char *text = nested("", "", "grep -rn 'some pattern' src/lib 2>/dev/null | head -20\n", 19000);
    struct script s = {0};
    struct sy_error err = {0};

    (void)state;
    assert_true(strlen(text) > 1000000);
    assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), &err), SY_E_OK);
    assert_int_equal(s.form, SCRIPT_PLAIN);
    assert_int_equal(s.n_commands, 38000);
    script_fini(&s);
    mem_free(text);
    text = nested("a | ", "a", "", 200000);
    expect_refused(text, strlen(text), SY_E_LIMIT, "too intricate");
    mem_free(text);
}

/* One step of the parser may take all the memory that there is, and each may take long. */
static void
scripts_that_take_too_much_are_refused(void **state)
{
    char *pipes = nested("cat file | ", "", "", 9091);
    char *groups = nested("(a)", "", "", 20000);
    struct script s = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        enum sy_code rc = script_read(reader, &s, SCRIPT_BASH, pipes, strlen(pipes), NULL);

        assert_true(rc == SY_E_LIMIT || (rc == SY_E_OK && s.form == SCRIPT_UNREADABLE));
        assert_int_equal(script_read(reader, &s, SCRIPT_BASH, "ls", 2, NULL), SY_E_OK);
        assert_int_equal(s.form, SCRIPT_PLAIN);
        expect_refused(groups, strlen(groups), SY_E_LIMIT, " ms; split it");
    }
    /* The second time it is known. */
    const uint64_t began_ns = clock_work_ns();

    expect_refused(groups, strlen(groups), SY_E_LIMIT, " ms; split it");
    assert_true(clock_work_ns() - began_ns < LIMIT_SCRIPT_WORK_MS * 1000000ULL);
    script_fini(&s);
    mem_free(pipes);
    mem_free(groups);
}

static void
a_reader_goes_on_after_any_script(void **state)
{
    char *deep = nested("(", "", "", 20000);
    struct script s = {0};

    (void)state;
    for (int i = 0; i < 300; i++) {
        const char *text = i % 3 == 0 ? "a | | b" : i % 3 == 1 ? "ls -la; pwd" : deep;

        enum sy_code rc = script_read(reader, &s, SCRIPT_BASH, text, strlen(text), NULL);

        assert_true(rc == SY_E_OK || rc == SY_E_LIMIT);
        assert_int_equal(script_read(reader, &s, SCRIPT_BASH, "ls", 2, NULL), SY_E_OK);
        assert_int_equal(s.form, SCRIPT_PLAIN);
        deep[1000] = '\0'; /* the long way once is enough */
    }
    script_fini(&s);
    mem_free(deep);
}

/* The last one is kept as it was parsed: another, the same again, and one of the same length. */
static void
a_script_is_read_the_same_again(void **state)
{
    static const struct {
        const char *text;
        enum script_form form;
        const char *program;
    } scripts[] = {
        {"ls -la",          SCRIPT_PLAIN,      "ls" },
        {"ls -la",          SCRIPT_PLAIN,      "ls" },
        {"rm -rf",          SCRIPT_PLAIN,      "rm" },
        {"rm -r(",          SCRIPT_UNREADABLE, NULL },
        {"rm -r(",          SCRIPT_UNREADABLE, NULL },
        {"rm -rf",          SCRIPT_PLAIN,      "rm" },
        {"",                SCRIPT_COMPLEX,    NULL },
        {"",                SCRIPT_COMPLEX,    NULL },
        {"if a; then b",    SCRIPT_UNREADABLE, NULL },
        {"cat <<E\nx\nE\n", SCRIPT_HEREDOC,    "cat"},
        {"cat <<E\nx\nE\n", SCRIPT_HEREDOC,    "cat"},
    };
    struct script s = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        /* Its text may be gone, and another be where it was. */
        char *text = mem_strdup(scripts[i].text);

        assert_non_null(text);
        assert_int_equal(script_read(reader, &s, SCRIPT_BASH, text, strlen(text), NULL), SY_E_OK);
        memset(text, 'x', strlen(text));
        mem_free(text);
        assert_int_equal(s.form, scripts[i].form);
        assert_int_equal(s.n_commands, scripts[i].program != NULL ? 1 : 0);
        if (scripts[i].program != NULL) {
            assert_string_equal(s.commands[0].words[0].text, scripts[i].program);
        }
    }
    script_fini(&s);
}

static enum sy_code
read_all_kinds(void *arg)
{
    static const char *const scripts[] = {"ls -la \"$X\" | wc 2>&1", "X=1 cat <<E > f\n$(rm x)\nE",
                                          "((", "if a; then rm -rf $X; fi"};
    struct script_reader *own = script_reader_new();
    struct script s = {0};
    enum sy_code rc = own != NULL ? SY_E_OK : SY_E_NOMEM;

    for (size_t i = 0; i < 4 && rc == SY_E_OK; i++) {
        rc = script_read(own, &s, SCRIPT_BASH, scripts[i], strlen(scripts[i]), arg);
    }
    if (rc == SY_E_OK) {
        rc = script_read(own, &s, SCRIPT_POWERSHELL, "Get-Item x | select y", 21, arg);
    }
    script_fini(&s);
    script_reader_free(own);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    struct sy_error err = {0};

    (void)state;
    fault_run(read_all_kinds, &err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_commands_are_lists_of_words),
        cmocka_unit_test(quotes_and_escapes_are_taken_away),
        cmocka_unit_test(harmless_redirections_and_comments_pass),
        cmocka_unit_test(variables_as_arguments_pass),
        cmocka_unit_test(everything_else_is_not_plain),
        cmocka_unit_test(wrong_syntax_gives_nothing),
        cmocka_unit_test(a_single_command_before_a_heredoc_is_seen),
        cmocka_unit_test(all_commands_are_seen_wherever_they_stand),
        cmocka_unit_test(redirections_and_inputs_are_kept),
        cmocka_unit_test(too_deep_scripts_are_refused_without_recursion),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(scripts_of_a_megabyte_are_read_or_refused),
        cmocka_unit_test(scripts_that_take_too_much_are_refused),
        cmocka_unit_test(a_reader_goes_on_after_any_script),
        cmocka_unit_test(a_script_is_read_the_same_again),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, make_reader, free_reader);
}
