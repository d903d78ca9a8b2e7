#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "danger_yard.h"

/* Programs and shells of Windows. */

static void
windows_ways_are_dangerous(void **state)
{
    static const char *const powershell[] = {
        "Start-Process 'https://x.y'",
        "Start-Process('https://x.y');",
        "saps HTTP://x.y",
        "ii hTtPs://x.y",
        "Remove-Item test -Force",
        "Remove-Item test -Recurse -Force",
        "Remove-Item -Path 'test' -Recurse -Force",
        "ri test -Force",
        "rm test -Force",
        "Remove-Item test -Force; Write-Host done",
        "if ($x) { Remove-Item test -Force }",
        "[void]( Remove-Item test -Force )]",
        "Write-Host hi;Remove-Item -Force C:\\tmp",
        "del,-Force,C:\\foo",
        "rm\ttest\t-Force",
        "Remove-Item test -Force:$true",
        "(New-Object -ComObject Shell.Application).ShellExecute('http://x')",
    };
    static const char *const cmd[] = {
        "start https://x.y",
        "start \"\" https://x.y",
        "start \"title\" \"https://x.y\"",
        "del /f x",
        "erase /f x",
        "DEL /F x",
        "rd /s /q x",
        "rmdir /s /q x",
        "rd /s/q x",
        "echo hello & del /f x",
        "echo hi&del /f x",
        "echo hi&&del /f x",
        "echo hi||del /f x",
        "echo hi&rmdir /s /q testdir",
    };
    struct judge_world world = test_world(test_reader);

    (void)state;
    world.is_windows = true;
    for (size_t i = 0; i < sizeof(powershell) / sizeof(powershell[0]); i++) {
        char *argv[] = {mem_unconst("powershell.exe"), mem_unconst("-Command"),
                        mem_unconst(powershell[i]), NULL};

        expect_verdict(danger_of(&world, argv), powershell[i], DANGER_DANGEROUS, NULL);
    }
    for (size_t i = 0; i < sizeof(cmd) / sizeof(cmd[0]); i++) {
        char *argv[] = {mem_unconst("cmd.exe"), mem_unconst("/c"), mem_unconst(cmd[i]), NULL};

        expect_verdict(danger_of(&world, argv), cmd[i], DANGER_DANGEROUS, NULL);
    }
    expect_words(&world, "cmd.exe /r del /f x", DANGER_DANGEROUS, "cmd.remove-forced");
    expect_words(&world, "cmd /c start https://x.y", DANGER_DANGEROUS, "windows.opens-address");
    expect_words(&world, "msedge.exe https://x.y", DANGER_DANGEROUS, "windows.opens-address");
    expect_words(&world, "rundll32 url.dll,FileProtocolHandler https://x", DANGER_DANGEROUS, NULL);
    expect_words(&world, "powershell -EncodedCommand AAAA", DANGER_UNKNOWN, "powershell.encoded");
}

static void
harmless_windows_ways_are_not(void **state)
{
    static const char *const powershell[] = {
        "Start-Process notepad.exe",
        "Remove-Item test",
        "Get-ChildItem -Force; Remove-Item test",
        "Write-Host https://x.y",
    };
    static const char *const cmd[] = {"del test.txt", "rd /s test",  "del C:/foo/bar.txt",
                                      "rd C:/source", "echo del /f", "start notepad"};
    struct judge_world world = test_world(test_reader);

    (void)state;
    world.is_windows = true;
    for (size_t i = 0; i < sizeof(powershell) / sizeof(powershell[0]); i++) {
        char *argv[] = {mem_unconst("pwsh"), mem_unconst("-NoProfile"), mem_unconst("-Command"),
                        mem_unconst(powershell[i]), NULL};

        expect_verdict(danger_of(&world, argv), powershell[i], DANGER_NONE, NULL);
    }
    for (size_t i = 0; i < sizeof(cmd) / sizeof(cmd[0]); i++) {
        char *argv[] = {mem_unconst("cmd"), mem_unconst("/c"), mem_unconst(cmd[i]), NULL};

        expect_verdict(danger_of(&world, argv), cmd[i], DANGER_NONE, NULL);
    }
    expect_words(&world, "explorer.exe .", DANGER_NONE, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_ways_are_dangerous),
        cmocka_unit_test(harmless_windows_ways_are_not),
    };

    return cmocka_run_group_tests(tests, test_reader_make, test_reader_free);
}
