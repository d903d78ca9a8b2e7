#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fault.h"
#include "yard.h"

static char *const nothing_else[] = {NULL};

/* The name of the rule, or "" where it is free. */
static const char *
rule_with(const struct yard *y, const char *name, char *const *all)
{
    bool is_forbidden = false;
    enum guard_name rule = GUARD_GIT;

    assert_int_equal(guard_forbids(&is_forbidden, &rule, y->g, yard_path(y, name), all), SY_E_OK);
    return is_forbidden ? guard_name_text(rule) : "";
}

static const char *
rule(const struct yard *y, const char *name)
{
    return rule_with(y, name, nothing_else);
}

static void
what_git_runs_is_held_and_its_data_is_not(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q . && git init -q sub && git init -q --bare bare.git && touch file");
    yard_guard(y, false);
    assert_string_equal(rule(y, "W/.git/hooks/pre-commit"), ".git/hooks");
    assert_string_equal(rule(y, "W/.git/config"), ".git/config");
    assert_string_equal(rule(y, "W/.git/config.worktree"), ".git/config.worktree");
    assert_string_equal(rule(y, "W/.git/commondir"), ".git/commondir");
    assert_string_equal(rule(y, "W/.git/info/attributes"), ".git/info/attributes");
    assert_string_equal(rule(y, "W/.git/modules/a/b/hooks/x"), ".git/hooks");
    assert_string_equal(rule(y, "W/.git/modules/a/config"), ".git/config");
    assert_string_equal(rule(y, "W/.git/worktrees/a/config.worktree"), ".git/config.worktree");
    assert_string_equal(rule(y, "W/.git"), ".git-file");
    assert_string_equal(rule(y, "W/sub/.git/hooks/x"), ".git/hooks");
    assert_string_equal(rule(y, "W/bare.git/hooks/x"), ".git/hooks");
    assert_string_equal(rule(y, "W/bare.git/x/.envrc"), ".envrc");
    assert_string_equal(rule(y, "W/deep/new/.git"), ".git-file");
    assert_string_equal(rule(y, "W/new/.git/HEAD"), ".git");
    assert_string_equal(rule(y, "W/.git/info/exclude"), "");
    assert_string_equal(rule(y, "W/.git/refs/heads/config"), "");
    assert_string_equal(rule(y, "W/.git/worktrees/a/HEAD"), "");
    assert_string_equal(rule(y, "W/hooks/config"), "");
    assert_string_equal(rule(y, "W/.gitignore"), "");
    assert_string_equal(rule(y, "W/file"), "");
    assert_string_equal(rule(y, "S/.git/config"), "");
}

static void
names_of_agents_and_editors_are_held_before_they_are_there(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    char *homes[] = {mem_unconst(yard_path(y, "W/home")), NULL};
    char *lifted[] = {mem_unconst(".idea"), NULL};
    const struct guard_options o = {.roots = roots, .homes = homes, .unprotected = lifted};

    yard_mkdir(y, "W/home");
    yard_guard_options(y, &o);
    assert_string_equal(rule(y, "W/a/b/.vscode/settings.json"), ".vscode");
    assert_string_equal(rule(y, "W/.mcp.json"), ".mcp.json");
    assert_string_equal(rule(y, "W/home/.bashrc"), ".bashrc");
    assert_string_equal(rule(y, "W/.bashrc"), "");
    assert_string_equal(rule(y, "W/.idea/x"), "");
    assert_string_equal(rule(y, "W/.vscodes"), "");
}

static void
files_that_make_a_repository_together_are_seen(void **state)
{
    struct yard *y = *state;
    char *all[] = {mem_unconst(yard_path(y, "W/r/HEAD")),
                   mem_unconst(yard_path(y, "W/r/objects/x")),
                   mem_unconst(yard_path(y, "W/r/refs/x")),
                   mem_unconst(yard_path(y, "W/r/hooks/post-checkout")), NULL};

    yard_guard(y, false);
    assert_string_equal(rule_with(y, "W/r/hooks/post-checkout", all), ".git/hooks");
    assert_string_equal(rule(y, "W/r/hooks/post-checkout"), "");
}

static void
paths_that_git_s_configuration_names_are_held(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q . && mkdir my-hooks && touch my-hooks/pre-push && git config "
                "core.hooksPath my-hooks");
    yard_guard(y, false);
    assert_string_equal(rule(y, "W/my-hooks/pre-commit"), "core.hooksPath");
    assert_string_equal(rule(y, "W/my-hook"), "");
}

static enum sy_code
forbids_body(void *arg)
{
    const struct yard *y = arg;
    bool is_forbidden = false;
    enum guard_name name;

    return guard_forbids(&is_forbidden, &name, y->g, yard_path(y, "W/file"), nothing_else);
}

static void
memory_that_runs_out_is_told(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q . && touch file");
    yard_guard(y, false);
    fault_run_lenient(forbids_body, y);
}

#define YARD_TEST(f) cmocka_unit_test_setup_teardown(f, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        YARD_TEST(what_git_runs_is_held_and_its_data_is_not),
        YARD_TEST(names_of_agents_and_editors_are_held_before_they_are_there),
        YARD_TEST(files_that_make_a_repository_together_are_seen),
        YARD_TEST(paths_that_git_s_configuration_names_are_held),
        YARD_TEST(memory_that_runs_out_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
