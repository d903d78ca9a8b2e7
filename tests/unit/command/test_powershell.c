#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "command/safe.h"
#include "world.h"

/* Up to eight words. */
static void
expect(bool is_windows, const char *const *words, bool is_safe)
{
    struct judge_world world = test_world(test_reader);
    struct safe_verdict v;
    char *argv[9] = {NULL};

    for (size_t i = 0; words[i] != NULL; i++) {
        assert_true(i < 8);
        argv[i] = mem_unconst(words[i]);
    }
    world.is_windows = is_windows;
    assert_int_equal(safe_judge(&v, &world, argv, NULL, NULL, NULL), SY_E_OK);
    if (v.is_safe != is_safe) {
        fail_msg("%s: safe %d: %s %s (%s)", v.verdict.command, v.is_safe, v.verdict.rule,
                 v.verdict.argument, v.verdict.why);
    }
}

static void
expect_script(const char *script, bool is_safe)
{
    const char *const words[] = {"powershell.exe", "-NoProfile", "-Command", script, NULL};

    expect(true, words, is_safe);
}

static void
scripts_that_only_look_are_safe(void **state)
{
    static const char *const scripts[] = {
        "Get-ChildItem -Path .",
        "git status",
        "Get-Content Cargo.toml",
        "rg --files-with-matches foo | Measure-Object | Select-Object -ExpandProperty Count",
        "Get-Content foo.rs | Select-Object -Skip 200",
        "git show HEAD:foo.rs",
        "(Get-Content foo.rs -Raw)",
        "Get-Item foo.rs | Select-Object Length",
        "Get-Content 'foo bar'",
        "Get-Content \"foo bar\"",
        "ls; pwd",
        "GET-CHILDITEM # all of it",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        expect_script(scripts[i], true);
    }
}

static void
all_other_scripts_are_not(void **state)
{
    static const char *const scripts[] = {
        "git -C . status",
        "git -c core.pager=cat log",
        "git --git-dir=.evil diff",
        "git diff --output f",
        "git diff --ext-diff HEAD",
        "git log --textconv -1",
        "git show --output=f HEAD",
        "git cat-file --filters HEAD:a.txt",
        "git log --% HEAD --output=f",
        "param($x) ls",
        "begin { ls } end { ls }",
        "using module x",
        "trap { ls }",
        "Remove-Item foo.txt",
        "rg --pre cat x",
        "RG --PRE cat x",
        "Set-Content x y",
        "echo hi > out.txt",
        "Get-Content x | Out-File y",
        "ls 2> err.txt",
        "& Remove-Item foo",
        "Get-ChildItem; Remove-Item foo",
        "Write-Output (Set-Content x)",
        "Write-Host (Remove-Item x)",
        "Get-Content (New-Item x)",
        "ls @(calc.exe)",
        "ls && pwd",
        "Write-Output $(Get-Content foo)",
        "''",
        "Get-Content $foo",
        "Write-Output \"foo $bar\"",
        "Get-Content foo`nbar",
        "$x = 1",
        "ls | % { rm $_ }",
        ". ./x.ps1",
        "./x.ps1",
        "foo",
        "git log (Get-Content x) --output=f",
        "ls \xe2\x80\x93x",
        "[System.IO.File]::Delete('x')",
        "function ls { rm x }; ls",
        "ls -x:(rm y)",
        "Write-Host Remove-Item",
        "ls |",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        expect_script(scripts[i], false);
    }
}

static void
words_of_the_command_line_are_known_or_refused(void **state)
{
    static const char *const good[][8] = {
        {"powershell.exe", "-NoLogo",                    "-Command",                  "Get-ChildItem -Path ."},
        {"powershell",                "Get-Content",                                 "Cargo.toml"                               },
        {"C:\\Program Files\\PowerShell\\7\\pwsh.exe",                "-NoProfile", "-c","git status"},
        {"pwsh",    "-NonInteractive",                                "-Command",                                                                                     "pwd && ls"},
        {"pwsh",      "-MTA","-Command:Get-Item x"},
        {"powershell",     "/Command",                     "ls"                                                                                                                 },
    };
    static const char *const bad[][8] = {
        {"powershell.exe", "-EncodedCommand",          "bABzAA=="        },
        {"powershell.exe", "-ec",                      "bABzAA=="        },
        {"powershell.exe", "-File",                    "x.ps1"           },
        {"powershell.exe", "/File",                    "x.ps1"           },
        {"powershell.exe", "-WindowStyle",             "Hidden",           "-Command", "ls"},
        {"powershell.exe",            "-ExecutionPolicy",                                      "Bypass",                                         "-Command", "ls"},
        {"powershell.exe",        "-WorkingDirectory","x","-Command", "ls"},
        {"powershell.exe", "-Command", "ls",                              "x"},
        {"powershell.exe",            "-Command"                                     },
        {"powershell.exe"           },
        {"powershell.exe","-Command",                                   "pwd && ls"                                        },
        {"D:\\repo\\pwsh.exe", "-Command","Get-ChildItem"                       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        expect(true, good[i], true);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect(true, bad[i], false);
    }
}

static void
elsewhere_aliases_are_programs(void **state)
{
    static const char *const cmdlet[] = {"pwsh", "-c", "Get-ChildItem | select-object x", NULL};
    static const char *const program[] = {"pwsh", "-c", "cat x | wc -l", NULL};
    static const char *const not_alias[] = {"pwsh", "-c", "dir x", NULL};
    static const char *const unsafe[] = {"pwsh", "-c", "uniq a b", NULL};
    static const char *const untrusted[] = {"./pwsh", "-Command", "Get-ChildItem", NULL};

    (void)state;
    expect(false, cmdlet, true);
    expect(false, program, true);
    expect(false, not_alias, false);
    expect(false, unsafe, false);
    expect(false, untrusted, false);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_that_only_look_are_safe),
        cmocka_unit_test(all_other_scripts_are_not),
        cmocka_unit_test(words_of_the_command_line_are_known_or_refused),
        cmocka_unit_test(elsewhere_aliases_are_programs),
    };

    return cmocka_run_group_tests(tests, test_reader_make, test_reader_free);
}
