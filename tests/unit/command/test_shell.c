#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/command.h"
#include "command/exec_params.h"
#include "fault.h"

/* A directory of its own for each test, with one executable file "bash". */
struct place {
    char dir[64];
    char bash[80];
    char plain[80];
};

static void
write_file(const char *path, mode_t mode)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs("#!/bin/sh\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static int
make_place(void **state)
{
    struct place *p = mem_alloc_zero(1, sizeof(*p));

    assert_non_null(p);
    memcpy(p->dir, "/tmp/test_shell.XXXXXX", sizeof("/tmp/test_shell.XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    assert_true(snprintf(p->bash, sizeof(p->bash), "%s/bash", p->dir) > 0);
    assert_true(snprintf(p->plain, sizeof(p->plain), "%s/zsh", p->dir) > 0);
    write_file(p->bash, 0755);
    write_file(p->plain, 0644);
    *state = p;
    return 0;
}

static int
remove_place(void **state)
{
    struct place *p = *state;

    unlink(p->bash);
    unlink(p->plain);
    rmdir(p->dir);
    mem_free(p);
    return 0;
}

static void
the_type_follows_the_base_name(void **state)
{
    static const struct {
        const char *input;
        const char *name;
    } cases[] = {
        {"zsh",                                                           "zsh"       },
        {"/bin/zsh",                                                      "zsh"       },
        {"bash",                                                          "bash"      },
        {"/bin/bash",                                                     "bash"      },
        {"/usr/bin/bash",                                                 "bash"      },
        {"sh",                                                            "sh"        },
        {"/bin/sh",                                                       "sh"        },
        {"pwsh",                                                          "powershell"},
        {"pwsh.exe",                                                      "powershell"},
        {"/usr/local/bin/pwsh",                                           "powershell"},
        {"powershell",                                                    "powershell"},
        {"powershell.exe",                                                "powershell"},
        {"cmd",                                                           "cmd"       },
        {"cmd.exe",                                                       "cmd"       },
        {"bash.EXE",                                                      "bash"      },
        {"C:\\Windows\\System32\\cmd.exe",                                "cmd"       },
        {"C:\\Program Files\\Git\\bin\\Bash.exe",                         "bash"      },
        {"/mnt/c/Windows/System32/WindowsPowerShell/v1.0/PowerShell.exe", "powershell"},
        {"fish",                                                          NULL        },
        {"/usr/bin/fish",                                                 NULL        },
        {"nu",                                                            NULL        },
        {"other",                                                         NULL        },
        {"",                                                              NULL        },
        {"/",                                                             NULL        },
        {"/bin/",                                                         NULL        },
        {".exe",                                                          NULL        },
        {"BASH",                                                          NULL        },
        {"bashful",                                                       NULL        },
        {"bas",                                                           NULL        },
        {"bash.exe.exe",                                                  NULL        },
        {"bash.sh",                                                       NULL        },
        {"a\\bash",                                                       NULL        },
        {"x\\.exe",                                                       NULL        },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct shell_kind *kind = shell_kind_of(cases[i].input);

        if ((kind == NULL) != (cases[i].name == NULL) ||
            (kind != NULL && strcmp(kind->name, cases[i].name) != 0)) {
            fail_msg("'%s' is taken for %s", cases[i].input, kind != NULL ? kind->name : "none");
        }
    }
}

static void
every_kind_in_the_table_is_whole(void **state)
{
    size_t count = 0;

    (void)state;
    for (const struct shell_kind *const *k = shell_kinds(); *k != NULL; k++) {
        count++;
        assert_non_null((*k)->display);
        assert_non_null((*k)->profiles);
        assert_non_null((*k)->paths[0]);
        assert_non_null((*k)->derive_exec_args);
        assert_ptr_equal(shell_kind_of((*k)->name), *k);
        for (const char *const *path = (*k)->paths; *path != NULL; path++) {
            assert_ptr_equal(shell_kind_of(*path), *k);
        }
        for (const char *const *file = (*k)->profiles; *file != NULL; file++) {
            assert_true((*file)[0] == '/' || str_starts(*file, "~/"));
        }
        assert_true(!(*k)->has_login_env || (*k)->profiles[0] != NULL);
    }
    assert_true(count >= 5);
    assert_string_equal(shell_kinds()[0]->name, "bash");
}

static void
assert_derived(const char *path, bool login, const char *const *expected)
{
    SY_AUTO(strv_fini) struct strv argv = {.max = LIMIT_ARGV};
    SY_AUTO(mem_free_charp) char *owned = mem_strdup(path);
    const struct shell shell = {.kind = shell_kind_of(path), .path = owned};
    size_t i = 0;

    assert_non_null(shell.kind);
    assert_int_equal(shell_derive(&argv, &shell, "grep -r 'TODO' src/", login), SY_E_OK);
    for (; expected[i] != NULL; i++) {
        assert_true(i < argv.n);
        assert_string_equal(argv.v[i], expected[i]);
    }
    assert_int_equal(argv.n, i);
}

static void
each_kind_derives_its_arguments(void **state)
{
    static const char script[] = "grep -r 'TODO' src/";
    static const char *const posix[] = {"/bin/bash", "/bin/zsh", "/bin/sh"};

    (void)state;
    for (size_t i = 0; i < sizeof(posix) / sizeof(posix[0]); i++) {
        assert_derived(posix[i], true, (const char *const[]){posix[i], "-lc", script, NULL});
        assert_derived(posix[i], false, (const char *const[]){posix[i], "-c", script, NULL});
    }
    assert_derived("pwsh", true, (const char *const[]){"pwsh", "-Command", script, NULL});
    assert_derived("pwsh", false,
                   (const char *const[]){"pwsh", "-NoProfile", "-Command", script, NULL});
    assert_derived("cmd.exe", true, (const char *const[]){"cmd.exe", "/c", script, NULL});
    assert_derived("cmd.exe", false, (const char *const[]){"cmd.exe", "/c", script, NULL});
}

static void
a_script_reads_no_file_of_the_user_but_for_a_login(void **state)
{
    static const struct {
        const char *program;
        const char *derived[5];
        const char *bare[6];
    } cases[] = {
        {"/usr/bin/zsh",   {"/usr/bin/zsh", "-c", "x -lc"}, {"/usr/bin/zsh", "-f", "-c", "x -lc"}},
        {"/usr/bin/zsh",   {"zsh", "-lc", "x"},             {NULL}                               },
        {"/usr/bin/zsh",   {"zsh"},                         {NULL}                               },
        {"/bin/bash",      {"bash", "-c", "x"},             {NULL}                               },
        {"/bin/sh",        {"sh", "-c", "x"},               {NULL}                               },
        {"/usr/bin/other", {"zsh", "-c", "x"},              {NULL}                               },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(strv_fini) struct strv derived = {.max = 8};
        SY_AUTO(strv_fini) struct strv bare = {.max = 8};
        size_t n = 0;

        for (size_t k = 0; cases[i].derived[k] != NULL; k++) {
            assert_int_equal(strv_add(&derived, cases[i].derived[k]), SY_E_OK);
        }
        assert_int_equal(shell_bare(&bare, cases[i].program, strv_view(&derived)), SY_E_OK);
        for (; cases[i].bare[n] != NULL; n++) {
            assert_true(n < bare.n);
            assert_string_equal(bare.v[n], cases[i].bare[n]);
        }
        assert_int_equal(bare.n, n);
    }
}

/* The first of the kind's places that is here, as any other program sees it. */
static const char *
first_place(const char *name)
{
    const struct shell_kind *kind = shell_kind_of(name);

    for (const char *const *path = kind->paths; *path != NULL; path++) {
        if (access(*path, X_OK) == 0) {
            return *path;
        }
    }
    return NULL;
}

static const char *
best_place(void)
{
    const char *bash = first_place("bash");
    const char *zsh = bash == NULL ? first_place("zsh") : NULL;

    return bash != NULL ? bash : zsh != NULL ? zsh : "/bin/sh";
}

static void
assert_detected(const char *configured, const char *passwd_shell, const char *path)
{
    SY_AUTO(shell_fini) struct shell shell = {0};
    struct sy_error err = {0};

    assert_int_equal(shell_detect(&shell, configured, passwd_shell, &err), SY_E_OK);
    assert_string_equal(shell.path, path);
    assert_ptr_equal(shell.kind, shell_kind_of(path));
}

static void
the_passwd_shell_comes_first_and_must_exist(void **state)
{
    const struct place *p = *state;
    const char *zsh = first_place("zsh");

    assert_detected(NULL, p->bash, p->bash);
    assert_detected("", p->bash, p->bash);
    assert_detected(NULL, "/bin/sh", "/bin/sh");
    /* Gone, or no executable: the places of its type, then the others. */
    assert_detected(NULL, "/nowhere/bash", best_place());
    assert_detected(NULL, "/nowhere/zsh", zsh != NULL ? zsh : best_place());
    assert_detected(NULL, p->plain, zsh != NULL ? zsh : best_place());
    /* A directory is no shell, and neither is a path from who knows where. */
    assert_detected(NULL, "sh", "/bin/sh");
}

static void
an_unknown_passwd_shell_falls_back(void **state)
{
    (void)state;
    assert_detected(NULL, NULL, best_place());
    assert_detected(NULL, "", best_place());
    assert_detected(NULL, "/usr/bin/fish", best_place());
    assert_detected(NULL, "/usr/sbin/nologin", best_place());
}

static void
the_shell_variable_is_not_asked(void **state)
{
    const char *before = getenv("SHELL");
    SY_AUTO(mem_free_charp) char *saved = before != NULL ? mem_strdup(before) : NULL;
    const struct place *p = *state;

    assert_int_equal(setenv("SHELL", p->bash, 1), 0);
    assert_detected(NULL, NULL, best_place());
    if (saved != NULL) {
        assert_int_equal(setenv("SHELL", saved, 1), 0);
    } else {
        assert_int_equal(unsetenv("SHELL"), 0);
    }
}

static void
assert_config_error(const char *configured, const char *part)
{
    SY_AUTO(shell_fini) struct shell shell = {0};
    struct sy_error err = {0};

    assert_int_equal(shell_detect(&shell, configured, "/bin/sh", &err), SY_E_CONFIG);
    assert_int_equal(err.code, SY_E_CONFIG);
    assert_null(shell.path);
    if (strstr(err.msg, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, err.msg);
    }
}

static void
a_configured_shell_is_used_or_refused(void **state)
{
    const struct place *p = *state;

    assert_detected(p->bash, "/bin/sh", p->bash);
    assert_detected("sh", p->bash, "/bin/sh");
    assert_config_error(
        "/usr/bin/fish",
        "'/usr/bin/fish' is no shell that Shellyard knows (it knows bash, zsh, sh, ");
    assert_config_error("/usr/bin/fish", "cmd); give the path of one, or none to detect it");
    assert_config_error("/nowhere/bash", "'/nowhere/bash' is no executable file; give the path");
    assert_config_error(p->plain, "is no executable file");
    assert_config_error("./bash", "'./bash' is no absolute path");
    assert_config_error("cmd", "no cmd on this machine (looked for C:\\Windows");
    assert_config_error("/tmp/\x1b[31mx", "'/tmp/\\x1b[31mx'");
}

static void
a_shell_that_a_call_names_is_found_or_explained(void **state)
{
    const struct place *p = *state;
    SY_AUTO(shell_fini) struct shell file = {0};
    SY_AUTO(shell_fini) struct shell name = {0};
    SY_AUTO(shell_fini) struct shell gone = {0};
    SY_AUTO(shell_fini) struct shell bad = {0};
    struct sy_error err = {0};

    assert_int_equal(shell_find(&file, p->bash, &err), SY_E_OK);
    assert_string_equal(file.path, p->bash);
    assert_int_equal(shell_find(&name, "sh", &err), SY_E_OK);
    assert_string_equal(name.path, "/bin/sh");
    assert_int_equal(shell_find(&gone, "/nowhere/sh", &err), SY_E_OK);
    assert_string_equal(gone.path, "/bin/sh");

    assert_int_equal(shell_find(&bad, "fish", &err), SY_E_ARG);
    assert_non_null(strstr(err.msg, "bash, zsh, sh"));
    assert_int_equal(shell_find(&bad, "", &err), SY_E_ARG);
    assert_int_equal(shell_find(&bad, "./sh", &err), SY_E_ARG);
    assert_non_null(strstr(err.msg, "absolute path"));
    assert_int_equal(shell_find(&bad, "cmd", &err), SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "no cmd on this machine"));
    assert_null(bad.path);
}

static void
a_name_without_a_slash_is_never_a_file_of_the_working_directory(void **state)
{
    const struct place *p = *state;
    SY_AUTO(shell_fini) struct shell shell = {0};
    struct sy_error err = {0};
    char before[LIMIT_PATH];

    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(p->dir), 0);

    enum sy_code rc = shell_find(&shell, "bash", &err);

    assert_int_equal(chdir(before), 0);
    if (first_place("bash") != NULL) {
        assert_int_equal(rc, SY_E_OK);
        assert_string_equal(shell.path, first_place("bash"));
    } else {
        assert_int_equal(rc, SY_E_NOTFOUND);
    }
}

static enum sy_code
detect_and_derive(void *arg)
{
    SY_AUTO(shell_fini) struct shell shell = {0};
    SY_AUTO(strv_fini) struct strv argv = {.max = LIMIT_ARGV};
    enum sy_code rc = shell_detect(&shell, NULL, "/bin/sh", NULL);

    (void)arg;
    return rc != SY_E_OK ? rc : shell_derive(&argv, &shell, "true", true);
}

static enum sy_code
find_and_fill(void *arg)
{
    SY_AUTO(shell_fini) struct shell shell = {0};
    SY_AUTO(exec_params_fini) struct exec_params p = {.argv.max = 8, .env.max = 8};
    enum sy_code rc = shell_find(&shell, "sh", arg);

    if (rc == SY_E_OK) {
        rc = strv_add(&p.env, "A=b");
    }
    if (rc == SY_E_OK) {
        p.cwd = mem_strdup("/");
        p.arg0 = mem_strdup("x");
        p.justification = mem_strdup("because");
        rc = p.cwd == NULL || p.arg0 == NULL || p.justification == NULL ? SY_E_NOMEM : SY_E_OK;
    }
    return rc != SY_E_OK ? rc : shell_derive(&p.argv, &shell, "true", false);
}

static void
shells_survive_each_failed_allocation(void **state)
{
    struct sy_error err = {0};

    (void)state;
    fault_run(detect_and_derive, NULL);
    fault_run(find_and_fill, &err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_type_follows_the_base_name),
        cmocka_unit_test(every_kind_in_the_table_is_whole),
        cmocka_unit_test(each_kind_derives_its_arguments),
        cmocka_unit_test(a_script_reads_no_file_of_the_user_but_for_a_login),
        cmocka_unit_test_setup_teardown(the_passwd_shell_comes_first_and_must_exist, make_place,
                                        remove_place),
        cmocka_unit_test(an_unknown_passwd_shell_falls_back),
        cmocka_unit_test_setup_teardown(the_shell_variable_is_not_asked, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_configured_shell_is_used_or_refused, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(a_shell_that_a_call_names_is_found_or_explained, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(
            a_name_without_a_slash_is_never_a_file_of_the_working_directory, make_place,
            remove_place),
        cmocka_unit_test(shells_survive_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
