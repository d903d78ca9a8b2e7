#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fault.h"
#include "patch/patch.h"

#define PATCH "*** Begin Patch\n*** Add File: foo\n+hi\n*** End Patch\n"

static void
is_patch(const char *script, const char *body, const char *workdir)
{
    struct intercept i;

    assert_int_equal(patch_intercept_script(&i, script), SY_E_OK);
    if (i.kind != INTERCEPT_PATCH) {
        fail_msg("not taken: %s", script);
    }
    assert_string_equal(i.body, body);
    assert_int_equal(i.len, strlen(body));
    if (workdir == NULL) {
        assert_null(i.workdir);
    } else {
        assert_string_equal(i.workdir, workdir);
    }
    intercept_fini(&i);
}

static void
is_other(const char *script)
{
    struct intercept i;

    assert_int_equal(patch_intercept_script(&i, script), SY_E_OK);
    if (i.kind != INTERCEPT_NONE) {
        fail_msg("taken: %s", script);
    }
    assert_null(i.body);
    assert_null(i.workdir);
}

static void
here_documents_of_each_spelling_are_taken(void **state)
{
    (void)state;
    is_patch("apply_patch <<'EOF'\n" PATCH "EOF\n", PATCH, NULL);
    is_patch("applypatch <<\"E.O.F\"\n" PATCH "E.O.F", PATCH, NULL);
    is_patch("apply_patch <<'PATCH-1'\n" PATCH "PATCH-1\n\n", PATCH, NULL);
    is_patch("\n  apply_patch  <<  EOF  \n" PATCH "EOF\n", PATCH, NULL);
    is_patch("apply_patch<<EOF\n" PATCH "EOF", PATCH, NULL);
    is_patch("apply_patch <<-EOF\n\t*** Begin Patch\n \tx\n\tEOF\n", "*** Begin Patch\n \tx\n",
             NULL);
    /* As it is, also where a shell would compute. */
    is_patch("apply_patch <<EOF\n+$HOME `id` $(id) \\x\nEOF", "+$HOME `id` $(id) \\x\n", NULL);
    is_patch("apply_patch <<'EOF'\r\n*** Begin Patch\r\nEOF\r\n", "*** Begin Patch\r\n", NULL);
    is_patch("apply_patch <<'EOF'\nEOF", "", NULL);
}

static void
a_cd_in_front_is_where_it_is_applied(void **state)
{
    (void)state;
    is_patch("cd sub && apply_patch <<'EOF'\n" PATCH "EOF\n", PATCH, "sub");
    is_patch("cd /a/b-c.d && apply_patch <<'EOF'\n" PATCH "EOF\n", PATCH, "/a/b-c.d");
    is_patch("cd 'foo bar' && apply_patch <<'EOF'\n" PATCH "EOF\n", PATCH, "foo bar");
    is_patch("cd \"foo bar\" && applypatch <<'EOF'\n" PATCH "EOF\n", PATCH, "foo bar");
    is_patch("cd sub&&apply_patch <<EOF\n" PATCH "EOF", PATCH, "sub");
}

static void
anything_beside_it_makes_it_a_command(void **state)
{
    static const char *const heads[] = {
        "cd sub; apply_patch",
        "cd sub || apply_patch",
        "cd sub | apply_patch",
        "cd sub & apply_patch",
        "echo foo && apply_patch",
        "echo foo; cd bar && apply_patch",
        "cd bar && echo foo && apply_patch",
        "cd a && cd b && apply_patch",
        "cd a b && apply_patch",
        "cd && apply_patch",
        "cd - && apply_patch",
        "cd -P a && apply_patch",
        "cd $HOME && apply_patch",
        "cd \"$X\" && apply_patch",
        "cd ~ && apply_patch",
        "cd ~/x && apply_patch",
        "cd a* && apply_patch",
        "cd {a,b} && apply_patch",
        "cd $'a' && apply_patch",
        "cd a\\ b && apply_patch",
        "apply_patch foo",
        "apply_patch -",
        "FOO=1 apply_patch",
        "time apply_patch",
        "! apply_patch",
        "sudo apply_patch",
        "(apply_patch",
        "{ apply_patch",
        "if true; then apply_patch",
        "apply_patch > out",
        "apply_patch < in",
        "apply_patch #",
        "apply_patch # apply_patch",
        "cat",
        "apply_patches",
        "$(apply_patch)",
        "apply_patch &&",
        "coproc apply_patch",
        "command apply_patch",
        "function apply_patch",
        "",
    };
    SY_AUTO(buf_fini) struct buf b = {.max = 4096};

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        buf_reset(&b);
        assert_int_equal(buf_addf(&b, "%s <<'EOF'\n" PATCH "EOF\n", heads[i]), SY_E_OK);
        is_other(buf_view(&b));
    }
    is_other("apply_patch <<'EOF' && echo done\n" PATCH "EOF\n");
    is_other("apply_patch <<'EOF' > out\n" PATCH "EOF\n");
    is_other("apply_patch <<'EOF'; id\n" PATCH "EOF\n");
    is_other("apply_patch <<'EOF' <<'EOG'\n" PATCH "EOF\n" PATCH "EOG\n");
    is_other("apply_patch <<'EOF'\n" PATCH "EOF\necho done\n");
    is_other("apply_patch <<'EOF'\n" PATCH "EOF\nEOF\n");
    is_other("apply_patch <<'EOF'\n" PATCH);
    is_other("apply_patch <<'EOF'\n" PATCH " EOF\n");
    is_other("apply_patch <<'EOF\"\n" PATCH "EOF\n");
    is_other("apply_patch <<E'O'F\n" PATCH "EOF\n");
    is_other("apply_patch <<$EOF\n" PATCH "EOF\n");
    is_other("apply_patch <<<'EOF'\n" PATCH "EOF\n");
    is_other("apply_patch <<\\EOF\n" PATCH "EOF\n");
    is_other("apply_patch \\\n<<'EOF'\n" PATCH "EOF\n");
    is_other("cd sub &&\napply_patch <<'EOF'\n" PATCH "EOF\n");
    is_other("apply_patch '" PATCH "'");
    is_other("apply_patch");
    is_other("");
    is_other("\xff <<'EOF'\napply_patch\nEOF\n");
}

static enum intercept_kind
kind_of(const char *a, const char *b, const char *c, const char *d)
{
    char *argv[] = {mem_unconst(a), mem_unconst(b), mem_unconst(c), mem_unconst(d), NULL};
    struct intercept i;

    assert_int_equal(patch_intercept_argv(&i, argv), SY_E_OK);

    enum intercept_kind kind = i.kind;

    if (kind == INTERCEPT_PATCH) {
        assert_string_equal(i.body, PATCH);
    }
    intercept_fini(&i);
    return kind;
}

static void
argument_lists_of_shells_and_the_program_itself_are_taken(void **state)
{
    static const char script[] = "apply_patch <<'EOF'\n" PATCH "EOF\n";

    (void)state;
    assert_int_equal(kind_of("apply_patch", PATCH, NULL, NULL), INTERCEPT_PATCH);
    assert_int_equal(kind_of("applypatch", PATCH, NULL, NULL), INTERCEPT_PATCH);
    assert_int_equal(kind_of("bash", "-lc", script, NULL), INTERCEPT_PATCH);
    assert_int_equal(kind_of("/usr/bin/zsh", "-c", script, NULL), INTERCEPT_PATCH);
    assert_int_equal(kind_of("/bin/sh", "-c", script, NULL), INTERCEPT_PATCH);
    assert_int_equal(kind_of("pwsh", "-Command", script, NULL), INTERCEPT_PATCH);
    assert_int_equal(kind_of("powershell.exe", "-NoProfile", "-Command", script), INTERCEPT_PATCH);
    assert_int_equal(
        kind_of("C:\\Program Files\\PowerShell\\7\\pwsh.EXE", "-NoProfile", "-command", script),
        INTERCEPT_PATCH);
    assert_int_equal(kind_of("cmd.exe", "/C", script, NULL), INTERCEPT_PATCH);
}

static void
other_argument_lists_are_commands(void **state)
{
    static const char script[] = "apply_patch <<'EOF'\n" PATCH "EOF\n";

    (void)state;
    assert_int_equal(kind_of("apply_patch", PATCH, "x", NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("apply_patch", NULL, NULL, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("Apply_Patch", PATCH, NULL, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("bash", "-xc", script, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("bash", "-c", script, "x"), INTERCEPT_NONE);
    assert_int_equal(kind_of("bash", script, NULL, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("fish", "-c", script, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("pwsh", "-NoProfile", "-File", script), INTERCEPT_NONE);
    assert_int_equal(kind_of("pwsh", "-NoLogo", "-Command", script), INTERCEPT_NONE);
    assert_int_equal(kind_of("cmd", "/k", script, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("averyverylongprogramname", "-c", script, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("env", "apply_patch", PATCH, NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of(NULL, NULL, NULL, NULL), INTERCEPT_NONE);
}

static void
a_patch_in_place_of_a_command_is_told_from_both(void **state)
{
    (void)state;
    assert_int_equal(kind_of(PATCH, NULL, NULL, NULL), INTERCEPT_BARE);
    assert_int_equal(kind_of("bash", "-lc", PATCH, NULL), INTERCEPT_BARE);
    assert_int_equal(kind_of("bash", "-lc", "*** Begin Patch\nrubbish\n", NULL), INTERCEPT_NONE);
    assert_int_equal(kind_of("echo", PATCH, NULL, NULL), INTERCEPT_NONE);
}

static enum sy_code
script_body(void *arg)
{
    struct intercept i;
    enum sy_code rc = patch_intercept_script(&i, arg);

    if (rc == SY_E_OK && i.kind == INTERCEPT_NONE) {
        rc = SY_E_INTERNAL;
    }
    intercept_fini(&i);
    return rc;
}

static enum sy_code
argv_body(void *arg)
{
    char *argv[] = {mem_unconst("apply_patch"), arg, NULL};
    struct intercept i;
    enum sy_code rc = patch_intercept_argv(&i, argv);

    intercept_fini(&i);
    return rc;
}

static void
memory_that_runs_out_is_told(void **state)
{
    (void)state;
    fault_run(script_body, mem_unconst("cd a && apply_patch <<'EOF'\n" PATCH "EOF\n"));
    fault_run(script_body, mem_unconst(PATCH));
    fault_run(argv_body, mem_unconst(PATCH));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(here_documents_of_each_spelling_are_taken),
        cmocka_unit_test(a_cd_in_front_is_where_it_is_applied),
        cmocka_unit_test(anything_beside_it_makes_it_a_command),
        cmocka_unit_test(argument_lists_of_shells_and_the_program_itself_are_taken),
        cmocka_unit_test(other_argument_lists_are_commands),
        cmocka_unit_test(a_patch_in_place_of_a_command_is_told_from_both),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
