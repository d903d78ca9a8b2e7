#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "fault.h"
#include "yard.h"

static void
a_repository_has_its_hooks_and_configuration_marked_and_itself_pinned(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q a/b && mkdir c");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/a pin/\n"
                                           "W/a/b pin/\n"
                                           "W/a/b/.git pin/\n"
                                           "W/a/b/.git/config ro\n"
                                           "W/a/b/.git/hooks ro/\n");
}

static void
names_of_agents_and_editors_count_at_any_depth(void **state)
{
    struct yard *y = *state;

    yard_mkdir(y, "W/.claude/commands/.vscode");
    yard_mkdir(y, "W/x/y\nz/.vscode");
    yard_file(y, "W/x/.envrc", "");
    yard_file(y, "W/x/.bashrc", "");
    yard_file(y, "W/x/.vscode", ""); /* a file of that name */
    yard_link(y, "/etc", "W/x/.idea");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.claude ro/\n"
                                           "W/x pin/\n"
                                           "W/x/.envrc ro\n"
                                           "W/x/.idea ro@\n"
                                           "W/x/.vscode ro\n"
                                           "W/x/y\nz pin/\n"
                                           "W/x/y\nz/.vscode ro/\n");
}

static void
shell_files_count_in_a_home_directory_alone(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    char *homes[] = {mem_unconst(yard_path(y, "W/home/me")), NULL};
    const struct guard_options o = {.roots = roots, .homes = homes, .has_mounts = true};

    yard_mkdir(y, "W/home/me");
    yard_file(y, "W/home/me/.bashrc", "");
    yard_file(y, "W/home/.bashrc", "");
    yard_guard_options(y, &o);
    assert_string_equal(yard_marks_now(y), "W/home pin/\nW/home/me pin/\nW/home/me/.bashrc ro\n");
}

static void
submodules_and_linked_worktrees_are_found_in_the_git_directory(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q ../sub && git -C ../sub commit -q --allow-empty -m x && git init -q r "
                "&& cd r && git commit -q --allow-empty -m x && "
                "git submodule -q add ../../sub s/t && git worktree add -q ../w");
    yard_guard(y, true);

    const char *marks = yard_marks_now(y);

    assert_non_null(strstr(marks, "W/r/.git/modules pin/\nW/r/.git/modules/s pin/\n"
                                  "W/r/.git/modules/s/t pin/\n"
                                  "W/r/.git/modules/s/t/config ro\n"
                                  "W/r/.git/modules/s/t/hooks ro/\n"
                                  "W/r/.git/worktrees pin/\nW/r/.git/worktrees/w pin/\n"
                                  "W/r/.git/worktrees/w/commondir ro\n"));
    assert_non_null(strstr(marks, "W/r/s/t/.git ro\n"));
    assert_non_null(strstr(marks, "W/w pin/\nW/w/.git ro\n"));
}

static void
a_bare_repository_and_one_with_its_directory_elsewhere_count(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q --bare b.git && mkdir b.git/x && touch b.git/x/.envrc && "
                "git init -q --separate-git-dir=store r");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/b.git pin/\n"
                                           "W/b.git/config ro\n"
                                           "W/b.git/hooks ro/\n"
                                           "W/b.git/x pin/\n"
                                           "W/b.git/x/.envrc ro\n"
                                           "W/r pin/\n"
                                           "W/r/.git ro\n"
                                           "W/store pin/\n"
                                           "W/store/config ro\n"
                                           "W/store/hooks ro/\n");
}

static void
paths_that_git_configuration_names_count(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks && mkdir .husky sub && touch sub/inc && "
                "git config core.hooksPath .husky && git config include.path ../sub/inc");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.git pin/\n"
                                           "W/.git/config ro\n"
                                           "W/.husky ro/\n"
                                           "W/sub pin/\n"
                                           "W/sub/inc ro\n");
}

static void
what_an_included_file_includes_or_names_counts(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks && mkdir -p a/h && "
                "git config include.path ../one && git config -f one include.path a/two && "
                "printf '[include]\npath = ../one\n[core]\nhooksPath = a/h\n' >a/two");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.git pin/\n"
                                           "W/.git/config ro\n"
                                           "W/a pin/\n"
                                           "W/a/h ro/\n"
                                           "W/a/two ro\n"
                                           "W/one ro\n");
    /* What a person puts into an included file is known from then on. */
    yard_run(
        y, "touch three && cp a/two n && printf '[include]\npath = ../three\n' >>n && mv n a/two");
    assert_non_null(strstr(yard_refresh(y), "W/three ro\n"));
}

static void
what_is_named_inside_of_the_git_directory_counts(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks && mkdir -p .git/my/hooks && touch .git/more && "
                "git config core.hooksPath .git/my/hooks && git config include.path more");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.git pin/\n"
                                           "W/.git/config ro\n"
                                           "W/.git/more ro\n"
                                           "W/.git/my pin/\n"
                                           "W/.git/my/hooks ro/\n");
}

static void
relative_hooks_begin_at_each_work_tree(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q --separate-git-dir store r && rm -r store/hooks && cd r && "
                "git commit -q --allow-empty -m x && git config core.hooksPath h && "
                "git worktree add -q ../w && mkdir h ../w/h");
    yard_guard(y, true);
    assert_non_null(strstr(yard_marks_now(y), "W/r/h ro/\n"));
    assert_non_null(strstr(yard_marks_now(y), "W/w/h ro/\n"));
    /* Also of one that is met after the configuration was read. */
    yard_run(y, "cd r && git worktree add -q ../late && mkdir ../late/h");
    assert_non_null(strstr(yard_refresh(y), "W/late/h ro/\n"));
    yard_run(y, "mkdir worktrees && cd worktrees && git init -q r && cd r && "
                "git commit -q --allow-empty -m x && git config core.hooksPath h");
    (void)yard_refresh(y);
    yard_run(y, "cd worktrees/r && git worktree add -q ../later && mkdir ../later/h");
    assert_non_null(strstr(yard_refresh(y), "W/worktrees/later/h ro/\n"));
}

static void
what_a_protected_link_leads_to_counts(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && mv .git store && ln -s store .git && mv store/config cfg && "
                "ln -s ../cfg store/config && rm store/hooks/* && mkdir hooks conf && "
                "touch hooks/pre && ln -s ../../hooks/pre store/hooks/pre-commit && "
                "touch env && ln -s env env2 && ln -s env2 .envrc && ln -s conf .vscode && "
                "ln -s . .idea && ln -s missing .mcp.json");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.envrc ro@\n"
                                           "W/.git ro@\n"
                                           "W/.idea ro@\n"
                                           "W/.mcp.json ro@\n"
                                           "W/.vscode ro@\n"
                                           "W/cfg ro\n"
                                           "W/conf ro/\n"
                                           "W/env ro\n"
                                           "W/env2 ro@\n"
                                           "W/hooks pin/\n"
                                           "W/hooks/pre ro\n"
                                           "W/store pin/\n"
                                           "W/store/config ro@\n"
                                           "W/store/hooks ro/\n");
    /* And no longer once the link is gone. */
    yard_run(y, "rm .vscode .envrc");
    (void)yard_refresh(y);
    assert_null(strstr(yard_marks_now(y), "W/conf"));
    assert_null(strstr(yard_marks_now(y), "W/env"));
}

static void
links_on_the_way_to_what_is_named_stay(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks && mkdir -p a/b/h && ln -s a l && ln -s b a/m && "
                "git config core.hooksPath l/m/h");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.git pin/\n"
                                           "W/.git/config ro\n"
                                           "W/a pin/\n"
                                           "W/a/b pin/\n"
                                           "W/a/b/h ro/\n"
                                           "W/a/m ro@\n"
                                           "W/l ro@\n");
}

/* In whichever order a directory lists them: each look finds what the last one found. */
static void
a_link_that_is_protected_and_on_a_way_is_followed(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks && mkdir -p vs/h n && ln -s vs .vscode && "
                "git config core.hooksPath .vscode/h && git init -q --bare n/store && "
                "rm n/store/hooks/* && mkdir n/store/my && touch n/store/my/pre-push && "
                "git -C n/store config core.bare false && ln -s store n/.git && "
                "git -C n config core.hooksPath .git/my && mkdir e && ln -s ../n/.git e/.git");
    yard_guard(y, true);
    for (int i = 0; i < 3; i++) {
        const char *marks = yard_marks_now(y);

        assert_non_null(strstr(marks, "W/.vscode ro@\n"));
        assert_non_null(strstr(marks, "W/vs ro/\n"));
        assert_non_null(strstr(marks, "W/n/.git ro@\n"));
        assert_non_null(strstr(marks, "W/n/store/my ro/\n"));
        /* What counts for the work tree around the link is read anew. */
        yard_run(y, "touch passing && rm passing && git -C n config x.y z");
        (void)yard_refresh(y);
    }
}

static void
what_is_named_is_known_however_few_directories_may_be(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {.roots = roots, .has_mounts = true, .dirs_max = 1};

    yard_run(y, "git init -q && rm -r .git/hooks && mkdir -p a/b/h c/.vscode && "
                "git config core.hooksPath a/b/h");
    yard_guard_options(y, &o);
    assert_string_equal(yard_marks_now(y), "W/.git pin/\n"
                                           "W/.git/config ro\n"
                                           "W/a pin/\n"
                                           "W/a/b pin/\n"
                                           "W/a/b/h ro/\n");
}

static void
a_hooks_path_that_is_the_whole_workspace_protects_nothing(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks && git config core.hooksPath .");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.git pin/\nW/.git/config ro\n");
}

static void
links_are_not_followed(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q ../out && ln -s ../out l && ln -s ../out/.git .git");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/.git ro@\n");
}

static void
what_comes_later_is_told_and_nothing_twice(void **state)
{
    struct yard *y = *state;

    yard_guard(y, false);
    (void)yard_marks_now(y);
    assert_string_equal(yard_refresh(y), "");
    yard_mkdir(y, "W/a/b/.git/hooks");
    assert_string_equal(yard_refresh(y), "W/a pin/\nW/a/b pin/\nW/a/b/.git pin/\n"
                                         "W/a/b/.git/hooks ro/\n");
    assert_string_equal(yard_refresh(y), "");
    yard_file(y, "W/a/b/.git/config", "");
    assert_string_equal(yard_refresh(y), "W/a/b/.git/config ro\n");
    /* As git rewrites it. */
    yard_run(y, "git -C a/b init -q && git -C a/b config x.y z");

    const char *changes = yard_refresh(y);

    assert_non_null(strstr(changes, "W/a/b/.git/config ro\n"));
    assert_null(strstr(changes, "W/a/b/.git/hooks"));
    yard_run(y, "rm -r a");
    assert_string_equal(yard_refresh(y), "");
    assert_string_equal(yard_marks_now(y), "");
}

static void
the_descriptor_says_when_there_is_something_to_do(void **state)
{
    struct yard *y = *state;

    yard_guard(y, true);

    struct pollfd p = {.fd = guard_fd(y->g), .events = POLLIN};

    assert_true(p.fd >= 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    yard_mkdir(y, "W/x");
    assert_int_equal(poll(&p, 1, 1000), 1);
    (void)yard_refresh(y);
    assert_int_equal(poll(&p, 1, 0), 0);
    yard_mkdir(y, "W/x/.codex");
    assert_int_equal(poll(&p, 1, 1000), 1);
    assert_string_equal(yard_refresh(y), "W/x pin/\nW/x/.codex ro/\n");
}

static void
a_moved_directory_is_known_under_its_new_name(void **state)
{
    struct yard *y = *state;

    yard_mkdir(y, "W/a/b/.vscode");
    yard_guard(y, true);
    assert_string_equal(yard_marks_now(y), "W/a pin/\nW/a/b pin/\nW/a/b/.vscode ro/\n");
    yard_run(y, "mv a c");
    assert_string_equal(yard_refresh(y), "W/c pin/\nW/c/b pin/\nW/c/b/.vscode ro/\n");
    yard_mkdir(y, "W/c/b/.idea");
    assert_string_equal(yard_refresh(y), "W/c/b/.idea ro/\n");
}

static void
bounds_are_told(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    struct guard_options o = {.roots = roots, .has_mounts = true, .depth_max = 3};
    struct guard_status st;

    yard_mkdir(y, "W/1/2/3/4/5/.claude");
    yard_guard_options(y, &o);
    guard_status(y->g, &st);
    assert_false(st.is_complete);
    assert_string_equal(st.incomplete_in, yard_path(y, "W"));
    assert_string_equal(st.why, "directories are too deep");
    assert_string_equal(yard_marks_now(y), "");
    guard_free(y->g);
    o.depth_max = 0;
    o.dirs_max = 3;
    yard_guard_options(y, &o);
    guard_status(y->g, &st);
    assert_false(st.is_complete);
    assert_string_equal(st.why, "too many directories");
    guard_free(y->g);
    o.dirs_max = 0;
    yard_guard_options(y, &o);
    guard_status(y->g, &st);
    assert_true(st.is_complete);
    assert_true(st.is_watching);
    assert_non_null(strstr(yard_marks_now(y), "W/1/2/3/4/5/.claude ro/\n"));
}

static void
without_watches_each_refresh_walks(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {.roots = roots, .has_mounts = true, .is_short = true};
    struct guard_status st;

    yard_guard_options(y, &o);
    assert_int_equal(guard_fd(y->g), -1);
    yard_mkdir(y, "W/a/.cursor");
    assert_string_equal(yard_refresh(y), "W/a pin/\nW/a/.cursor ro/\n");
    yard_run(y, "rm -r a");
    assert_string_equal(yard_refresh(y), "");
    assert_string_equal(yard_marks_now(y), "");
    guard_status(y->g, &st);
    assert_false(st.is_watching);
    assert_int_equal(st.walks, 3);
}

static void
a_lifted_name_is_not_marked_and_an_unknown_one_is_an_error(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    char *lifted[] = {mem_unconst(".git/config"), mem_unconst(".vscode"), NULL};
    char *wrong[] = {mem_unconst(".vscod"), NULL};
    struct guard_options o = {.roots = roots, .unprotected = lifted};
    struct sy_error err = {0};

    yard_run(y, "git init -q && mkdir .vscode .vscode/.idea");
    yard_guard_options(y, &o);
    assert_string_equal(yard_marks_now(y),
                        "W/.git pin/\nW/.git/hooks ro/\nW/.vscode pin/\nW/.vscode/.idea ro/\n");
    guard_free(y->g);
    y->g = NULL;
    o.unprotected = wrong;
    assert_int_equal(guard_new(&y->g, &o, &err), SY_E_CONFIG);
    assert_string_equal(err.msg, "'.vscod' is no protected name; did you mean '.vscode'? "
                                 "(docs/sandbox.md lists them)");
}

static void
a_root_below_a_protected_name_stays_writable(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), mem_unconst(yard_path(y, "W/.claude/w")),
                     mem_unconst(yard_path(y, "missing")), NULL};
    const struct guard_options o = {.roots = roots, .has_mounts = true};

    yard_mkdir(y, "W/.claude/w/.vscode");
    yard_guard_options(y, &o);
    assert_string_equal(yard_marks_now(y), "W/.claude pin/\nW/.claude/w/.vscode ro/\n");
}

static void
deep_trees_are_walked_without_a_deep_stack(void **state)
{
    struct yard *y = *state;
    struct guard_status st;

    yard_run(y, "d=; i=0; while [ $i -lt 300 ]; do d=$d/d; i=$((i+1)); done; mkdir -p .$d && "
                "mkdir -p wide && cd wide && seq 1 500 | xargs mkdir");
    yard_guard(y, true);
    guard_status(y->g, &st);
    assert_true(st.is_complete);
    assert_true(st.dirs > 800);
    yard_run(y, "rm -r d wide");
    (void)yard_refresh(y);
    guard_status(y->g, &st);
    assert_int_equal(st.dirs, 1);
}

static enum sy_code
walk_once(void *arg)
{
    struct yard *y = arg;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {.roots = roots, .state_dir = yard_path(y, "S")};
    struct guard *g = NULL;
    struct guard_marks m = {0};
    enum sy_code rc = guard_new(&g, &o, NULL);

    if (rc == SY_E_OK) {
        rc = guard_marks_now(g, &m);
    }
    guard_marks_fini(&m);
    guard_free(g);
    return rc;
}

static void
each_allocation_of_a_walk_may_fail(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && mkdir .husky .claude && touch .claude/x .envrc && "
                "git config core.hooksPath .husky && git config include.path ../one && "
                "git config -f two core.hooksPath h && git config -f one include.path two && "
                "ln -s two .mcp.json && ln -s ../../one .git/hooks/pre-commit");
    fault_run_lenient(walk_once, y);
}

#define IN_YARD(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_YARD(a_repository_has_its_hooks_and_configuration_marked_and_itself_pinned),
        IN_YARD(names_of_agents_and_editors_count_at_any_depth),
        IN_YARD(shell_files_count_in_a_home_directory_alone),
        IN_YARD(submodules_and_linked_worktrees_are_found_in_the_git_directory),
        IN_YARD(a_bare_repository_and_one_with_its_directory_elsewhere_count),
        IN_YARD(paths_that_git_configuration_names_count),
        IN_YARD(what_an_included_file_includes_or_names_counts),
        IN_YARD(what_is_named_inside_of_the_git_directory_counts),
        IN_YARD(relative_hooks_begin_at_each_work_tree),
        IN_YARD(what_a_protected_link_leads_to_counts),
        IN_YARD(links_on_the_way_to_what_is_named_stay),
        IN_YARD(a_link_that_is_protected_and_on_a_way_is_followed),
        IN_YARD(what_is_named_is_known_however_few_directories_may_be),
        IN_YARD(a_hooks_path_that_is_the_whole_workspace_protects_nothing),
        IN_YARD(links_are_not_followed),
        IN_YARD(what_comes_later_is_told_and_nothing_twice),
        IN_YARD(the_descriptor_says_when_there_is_something_to_do),
        IN_YARD(a_moved_directory_is_known_under_its_new_name),
        IN_YARD(bounds_are_told),
        IN_YARD(without_watches_each_refresh_walks),
        IN_YARD(a_lifted_name_is_not_marked_and_an_unknown_one_is_an_error),
        IN_YARD(a_root_below_a_protected_name_stays_writable),
        IN_YARD(deep_trees_are_walked_without_a_deep_stack),
        IN_YARD(each_allocation_of_a_walk_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
