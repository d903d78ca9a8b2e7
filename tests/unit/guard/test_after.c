#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "fault.h"
#include "yard.h"

static void
ordinary_work_with_git_finds_nothing(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && echo 1 >f && git add f && git commit -q -m 1 && "
                "git init -q ../sub && git -C ../sub commit -q --allow-empty -m x");
    for (int mounts = 0; mounts < 2; mounts++) {
        yard_guard(y, mounts != 0);
        yard_begin(y);
        yard_run(y, "echo 2 >>f && git commit -qam 2 && git branch b && git stash list && "
                    "echo 3 >>f && git stash -q && git stash pop -q && git commit -qam 3 && "
                    "git checkout -q b && echo x >g && git add g && git commit -qm g && "
                    "git rebase -q master 2>/dev/null || git rebase -q main || git rebase --abort; "
                    "git gc -q; git worktree add -q w1 && cd w1 && echo y >h && git add h && "
                    "git commit -qm h && cd .. && git worktree remove w1 && git branch -D w1 && "
                    "git checkout -q - && git branch -D b");
        assert_string_equal(yard_after(y), "");
        guard_free(y->g);
        y->g = NULL;
    }
}

static void
a_clone_by_the_command_is_left_and_protected_from_then_on(void **state)
{
    struct yard *y = *state;
    struct guard_marks m = {0};

    yard_run(y, "git init -q ../origin && git -C ../origin commit -q --allow-empty -m x");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "mkdir d && git clone -q ../origin d/c && git -C d/c branch x && "
                "git -C d/c submodule -q add ../../../origin s && git -C d/c worktree add -q ../w");
    /* Not before it was looked at. */
    assert_string_equal(yard_refresh(y), "");
    assert_string_equal(yard_after(y), "");
    assert_int_equal(guard_begin(y->g, &m, NULL), SY_E_OK);
    assert_non_null(strstr(yard_marks(y, &m), "W/d/c/.git/config ro\n"));
    guard_marks_fini(&m);
    yard_run(y, "git -C d/c config core.fsmonitor ./evil");
    assert_string_equal(yard_after(y), "restored write W/d/c/.git/config (core.fsmonitor)\n");
    assert_null(strstr(yard_text(y, "W/d/c/.git/config"), "fsmonitor"));
    yard_run(y, "git -C d/c status");
}

/* The command would choose what is taken away. */
static void
a_link_that_the_command_makes_takes_nothing_with_it(void **state)
{
    struct yard *y = *state;

    yard_run(y, "mkdir src && echo 1 >src/a");
    for (int mounts = 0; mounts < 2; mounts++) {
        yard_guard(y, mounts != 0);
        yard_begin(y);
        yard_run(y, "mkdir d && echo 2 >src/a && echo 3 >src/b && ln -s ../src d/.vscode");
        assert_string_equal(yard_after(y), "quarantined create W/d/.vscode (a symbolic link)\n");
        assert_string_equal(yard_text(y, "W/src/a"), "2\n");
        assert_string_equal(yard_text(y, "W/src/b"), "3\n");
        yard_run(y, "rm -r d src/b");
        guard_free(y->g);
        y->g = NULL;
    }
}

static void
what_a_hook_that_is_a_link_leads_to_is_put_back(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && mkdir s && echo good >s/pre && chmod +x s/pre && "
                "ln -s ../../s/pre .git/hooks/pre-commit");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "echo evil >s/pre");
    assert_string_equal(yard_after(y), "restored write W/s/pre (an executable hook)\n");
    assert_string_equal(yard_text(y, "W/s/pre"), "good\n");
}

static void
a_planted_hook_goes_and_a_sample_stays(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q r");
    for (int mounts = 0; mounts < 2; mounts++) {
        yard_guard(y, mounts != 0);
        yard_begin(y);
        /* With mounts the known repository can't be written to; a new one can. */
        yard_run(y, mounts != 0
                        ? "git init -q n && echo x >n/.git/hooks/post-checkout && "
                          "chmod +x n/.git/hooks/post-checkout"
                        : "echo x >r/.git/hooks/post-checkout && "
                          "chmod +x r/.git/hooks/post-checkout && "
                          "echo x >r/.git/hooks/y.sample && chmod +x r/.git/hooks/y.sample");
        assert_string_equal(
            yard_after(y),
            mounts != 0 ? "quarantined create W/n/.git/hooks/post-checkout (an executable hook)\n"
                        : "quarantined create W/r/.git/hooks/post-checkout (an executable "
                          "hook)\n");
        assert_false(yard_exists(y, "W/r/.git/hooks/post-checkout"));
        assert_false(yard_exists(y, "W/n/.git/hooks/post-checkout"));
        guard_free(y->g);
        y->g = NULL;
    }
    assert_true(yard_exists(y, "W/r/.git/hooks/y.sample"));
}

static void
a_renamed_git_directory_gains_nothing(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q a && mkdir a/b");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "cd a && mv .git x && mkdir -p .git/hooks && cp -r x/* .git/ && "
                "echo evil >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && "
                "git config alias.st '!evil'");

    const char *told = yard_after(y);

    assert_non_null(strstr(told, "W/a/.git/hooks/pre-commit (an executable hook)"));
    assert_non_null(strstr(told, "W/a/.git/config (alias.st)"));
    assert_false(yard_exists(y, "W/a/.git/hooks/pre-commit"));
    assert_null(strstr(yard_text(y, "W/a/.git/config"), "evil"));
}

static void
a_repository_at_the_top_of_a_root_is_refused_unless_lifted(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    char *lifted[] = {mem_unconst(".git"), NULL};
    const struct guard_options o = {
        .roots = roots, .state_dir = yard_path(y, "S"), .unprotected = lifted};

    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "git init -q");
    assert_string_equal(yard_after(y),
                        "quarantined create W/.git (a repository at the top of a root)\n");
    assert_false(yard_exists(y, "W/.git"));
    yard_begin(y);
    yard_run(y, "mkdir prepared && mv prepared .git");
    assert_non_null(strstr(yard_after(y), "quarantined create W/.git"));
    yard_begin(y);
    yard_run(y, "ln -s /tmp .git");
    assert_string_equal(yard_after(y), "quarantined create W/.git (a symbolic link)\n");
    guard_free(y->g);
    yard_guard_options(y, &o);
    yard_begin(y);
    yard_run(y, "git init -q && git config core.pager evil");
    assert_string_equal(yard_after(y), "quarantined create W/.git/config (core.pager)\n");
    assert_true(yard_exists(y, "W/.git/HEAD"));
}

static void
agent_and_editor_files_are_put_back(void **state)
{
    struct yard *y = *state;

    yard_mkdir(y, "W/.vscode/deep");
    yard_file(y, "W/.vscode/deep/tasks.json", "old\n");
    yard_chmod(y, "W/.vscode/deep/tasks.json", 0640);
    yard_file(y, "W/.envrc", "one\n");
    yard_link(y, "somewhere", "W/.mcp.json");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "echo new >.vscode/deep/tasks.json && echo n >.vscode/n && rm .envrc && "
                "ln -sfn elsewhere .mcp.json && mkdir -p sub/.claude && touch sub/.claude/x");

    const char *told = yard_after(y);

    assert_non_null(strstr(told, "restored write W/.vscode/deep/tasks.json"));
    assert_non_null(strstr(told, "quarantined create W/.vscode/n"));
    assert_non_null(strstr(told, "restored remove W/.envrc"));
    assert_non_null(strstr(told, "restored write W/.mcp.json"));
    assert_non_null(strstr(told, "quarantined create W/sub/.claude (an agent's configuration)"));
    assert_string_equal(yard_text(y, "W/.vscode/deep/tasks.json"), "old\n");
    assert_string_equal(yard_text(y, "W/.envrc"), "one\n");
    assert_false(yard_exists(y, "W/.vscode/n"));
    assert_false(yard_exists(y, "W/sub/.claude"));

    struct stat st;
    char target[64];

    assert_int_equal(stat(yard_path(y, "W/.vscode/deep/tasks.json"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(readlink(yard_path(y, "W/.mcp.json"), target, sizeof(target)), 9);
    /* And again: nothing is left to find. */
    yard_begin(y);
    assert_string_equal(yard_after(y), "");
    yard_begin(y);
    yard_run(y, "rm -r .vscode");
    assert_non_null(strstr(yard_after(y), "restored remove W/.vscode/deep/tasks.json"));
    assert_string_equal(yard_text(y, "W/.vscode/deep/tasks.json"), "old\n");
}

static void
a_harmless_setting_is_told_and_stays(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && git config alias.mine '!mine'");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "git config branch.x.remote origin && git config remote.o.url https://a/b");
    assert_string_equal(yard_after(y), "harmless write W/.git/config ()\n");
    assert_non_null(strstr(yard_text(y, "W/.git/config"), "https://a/b"));
    yard_begin(y);
    yard_run(y, "git config remote.o.url 'ext::sh -c x'");
    assert_string_equal(yard_after(y), "restored write W/.git/config (remote.o.url)\n");
    assert_non_null(strstr(yard_text(y, "W/.git/config"), "https://a/b"));
    assert_non_null(strstr(yard_text(y, "W/.git/config"), "mine"));
}

static void
writes_that_no_event_tells_are_seen(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "ln .git/config c && printf '[core]\\n\\tsshCommand = evil\\n' >>c");
    assert_string_equal(yard_after(y), "restored write W/.git/config (core.sshcommand)\n");
    assert_null(strstr(yard_text(y, "W/.git/config"), "evil"));
    /* A link alone changes nothing. */
    yard_begin(y);
    yard_run(y, "ln .git/config d");
    assert_string_equal(yard_after(y), "");
}

static void
what_a_person_does_between_runs_is_theirs(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q");
    yard_guard(y, false);
    yard_begin(y);
    assert_string_equal(yard_after(y), "");
    yard_run(y, "git config alias.st '!mine' && mkdir .vscode && echo m >.vscode/m && "
                "echo h >.git/hooks/pre-push && chmod +x .git/hooks/pre-push");
    yard_begin(y);
    assert_string_equal(yard_after(y), "");
    assert_true(yard_exists(y, "W/.vscode/m"));
    assert_true(yard_exists(y, "W/.git/hooks/pre-push"));
}

static void
with_mounts_a_person_may_change_what_is_known_during_a_run(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && mkdir .vscode");
    yard_guard(y, true);
    yard_begin(y);
    (void)yard_marks_now(y);
    yard_run(y, "git config alias.st '!mine' && echo m >.vscode/m && rm -r .git/hooks && "
                "mkdir .git/hooks && echo h >.git/hooks/pre-push && chmod +x .git/hooks/pre-push");

    const char *changes = yard_refresh(y);

    /* Other inodes: marked at once. */
    assert_non_null(strstr(changes, "W/.git/config ro\n"));
    assert_non_null(strstr(changes, "W/.git/hooks ro/\n"));
    assert_string_equal(yard_after(y), "");
    assert_true(yard_exists(y, "W/.git/hooks/pre-push"));
    assert_non_null(strstr(yard_text(y, "W/.git/config"), "mine"));
}

static void
a_moved_tree_keeps_what_a_person_had_in_it(void **state)
{
    struct yard *y = *state;

    yard_run(y, "mkdir a && git init -q a/r && echo h >a/r/.git/hooks/pre-push && "
                "chmod +x a/r/.git/hooks/pre-push && git -C a/r config alias.st '!mine' && "
                "mkdir a/.vscode && echo m >a/.vscode/m");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "mv a b");
    assert_string_equal(yard_after(y), "");
    assert_true(yard_exists(y, "W/b/r/.git/hooks/pre-push"));
    assert_true(yard_exists(y, "W/b/.vscode/m"));
    yard_begin(y);
    yard_run(y, "mv b/r/.git/hooks/pre-push b/r/.git/hooks/pre-commit");
    assert_non_null(strstr(yard_after(y), "quarantined create W/b/r/.git/hooks/pre-commit"));
}

static void
pointers_must_lead_to_what_is_looked_after(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q ../evil && git init -q r && mkdir p q && ln -s ../evil e");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "echo 'gitdir: ../../evil/.git' >p/.git && echo 'gitdir: ../r/.git' >q/.git");
    assert_string_equal(yard_after(y),
                        "quarantined create W/p/.git (names a git directory that is not known)\n");
    assert_true(yard_exists(y, "W/q/.git"));
    /* A blank at the end is of the name, as git takes it. */
    yard_begin(y);
    yard_run(y, "mkdir t && ln -s ../../evil/.git 'r/.git ' && echo 'gitdir: ../r/.git ' >t/.git");
    assert_string_equal(yard_after(y),
                        "quarantined create W/t/.git (names a git directory that is not known)\n");
    yard_begin(y);
    yard_run(y, "echo ../../e/.git >r/.git/commondir");
    assert_non_null(strstr(yard_after(y), "quarantined create W/r/.git/commondir"));
    yard_begin(y);
    yard_run(y, "mkdir -p z/objects z/refs && cp r/.git/HEAD z && "
                "printf '[core]\\nfsmonitor = evil\\n' >z/config");
    assert_string_equal(yard_after(y), "quarantined create W/z/config (core.fsmonitor)\n");
}

static void
a_directory_that_becomes_a_repository_loses_what_made_it_one(void **state)
{
    struct yard *y = *state;

    yard_file(y, "W/config", "[alias]\nst = !mine\n");
    yard_guard(y, false);
    /* Files are stamped by a clock that ticks: older than the run. */
    yard_await_tick();
    yard_begin(y);
    yard_run(y, "mkdir objects refs && echo 'ref: refs/heads/x' >HEAD");
    assert_string_equal(yard_after(y), "quarantined create W/HEAD (alias.st)\n");
    assert_true(yard_exists(y, "W/config"));
    assert_false(yard_exists(y, "W/HEAD"));
}

static void
links_swapped_in_lead_nowhere(void **state)
{
    struct yard *y = *state;

    yard_run(y, "mkdir ../victim && echo v >../victim/.envrc && mkdir d && echo o >d/.envrc");
    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "rm -r d && ln -s ../victim d && echo x >../victim/.envrc");
    (void)yard_after(y);
    assert_string_equal(yard_text(y, "victim/.envrc"), "x\n");
    yard_begin(y);
    yard_run(y, "mkdir .vscode && ln -s ../../victim .vscode/l");
    assert_non_null(strstr(yard_after(y), "quarantined create W/.vscode"));
    assert_true(yard_exists(y, "victim/.envrc"));
}

static void
names_with_newlines_are_names(void **state)
{
    struct yard *y = *state;

    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "d='a\nb %'; mkdir -p \"$d\" && touch \"$d/.envrc\"");
    assert_string_equal(yard_after(y),
                        "quarantined create W/a\nb %/.envrc (commands that direnv runs)\n");
}

static void
runs_that_overlap_are_looked_at_by_the_first_to_end(void **state)
{
    struct yard *y = *state;

    yard_guard(y, false);
    yard_begin(y);
    yard_run(y, "touch .envrc");
    yard_begin(y);
    assert_non_null(strstr(yard_after(y), "quarantined create W/.envrc"));
    yard_run(y, "touch .mcp.json");
    assert_non_null(strstr(yard_after(y), "quarantined create W/.mcp.json"));
}

/* Some directory on another file system than W; NULL: this machine has none. */
static char *
other_file_system(const struct yard *y)
{
    static char template[64];
    struct stat here;
    struct stat there;

    (void)snprintf(template, sizeof(template), "/dev/shm/guard-test-XXXXXX");
    if (stat(y->base, &here) != 0 || stat("/dev/shm", &there) != 0 || here.st_dev == there.st_dev) {
        return NULL;
    }
    return mkdtemp(template);
}

static void
a_quarantine_on_another_file_system_gets_a_whole_copy(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    char *far = other_file_system(y);
    const struct guard_options o = {.roots = roots, .state_dir = far};
    char line[256];

    if (far == NULL) {
        print_message("no second file system here: nothing to see\n");
        return;
    }
    yard_guard_options(y, &o);
    yard_begin(y);
    yard_run(y, "mkdir -p .vscode/a/b && echo deep >.vscode/a/b/f && ln -s nowhere .vscode/l && "
                "echo env >.envrc");

    const char *told = yard_after(y);

    assert_non_null(strstr(told, "quarantined create W/.vscode"));
    assert_non_null(strstr(told, "quarantined create W/.envrc"));
    assert_int_equal(yard_try(y, "test -z \"$(ls -A)\""), 0);
    (void)snprintf(line, sizeof(line),
                   "cd %s/quarantine/* && grep -q deep *-.vscode/a/b/f && test -L *-.vscode/l && "
                   "grep -q env *-.envrc",
                   far);
    assert_int_equal(yard_try(y, line), 0);
    guard_free(y->g);
    y->g = NULL;
    (void)snprintf(line, sizeof(line), "rm -r %s", far);
    yard_run(y, line);
}

static void
directories_swapped_for_links_during_walks_lead_nowhere(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {.roots = roots, .is_short = true};
    pid_t pid;

    yard_run(y, "mkdir -p ../out/.git/hooks ../out/.vscode d e && git init -q d/r");
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* d is a directory and a link out of the root, in turn. */
        char real[512];
        char link_path[512];
        char spare[512];

        (void)snprintf(real, sizeof(real), "%s/W/d", y->base);
        (void)snprintf(link_path, sizeof(link_path), "%s/l", y->base);
        (void)snprintf(spare, sizeof(spare), "%s/out", y->base);
        if (symlink(spare, link_path) != 0) {
            _exit(1);
        }
        for (;;) {
            (void)renameat2(AT_FDCWD, real, AT_FDCWD, link_path, RENAME_EXCHANGE);
        }
    }
    for (int i = 0; i < 300; i++) {
        yard_guard_options(y, &o);

        const char *marks = yard_marks_now(y);

        /* Either the directory that was there, or nothing. */
        assert_null(strstr(marks, "W/d/.git"));
        assert_null(strstr(marks, "W/d/.vscode"));
        assert_null(strstr(marks, "out/"));
        guard_free(y->g);
        y->g = NULL;
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
without_a_state_directory_it_says_that_it_could_not(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {.roots = roots};

    yard_guard_options(y, &o);
    yard_begin(y);
    yard_run(y, "touch .envrc");
    assert_string_equal(yard_after(y), "left create W/.envrc (there is no state directory for a "
                                       "quarantine)\n");
    assert_true(yard_exists(y, "W/.envrc"));
}

static void
a_finding_is_a_denial_with_a_way_out(void **state)
{
    SY_AUTO(denial_list_fini) struct denial_list list = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = 4096};
    struct guard_finding f = {.verdict = GUARD_QUARANTINED,
                              .name = GUARD_ENVRC,
                              .operation = "create",
                              .path = mem_unconst("/W/.envrc"),
                              .quarantine = mem_unconst("/S/quarantine/1/1-.envrc"),
                              .why = mem_unconst("commands that direnv runs")};

    (void)state;
    assert_int_equal(guard_finding_denial(&list, &f), SY_E_OK);
    assert_int_equal(list.n, 1);
    assert_string_equal(list.v[0].fix, "sandbox.unprotected_names: [.envrc]");
    assert_int_equal(list.v[0].layer, DENIAL_GUARD);
    assert_int_equal(guard_finding_sentence(&text, &f), SY_E_OK);
    assert_string_equal(buf_view(&text), "/W/.envrc is protected (commands that direnv runs) and "
                                         "was moved to /S/quarantine/1/1-.envrc");
    f.verdict = GUARD_HARMLESS;
    assert_int_equal(guard_finding_denial(&list, &f), SY_E_OK);
    assert_int_equal(list.n, 1);
}

static enum sy_code
run_once(void *arg)
{
    struct yard *y = arg;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {.roots = roots, .state_dir = yard_path(y, "S")};
    struct guard *g = NULL;
    struct guard_findings f = {0};
    enum sy_code rc;

    (void)unlink(yard_path(y, "W/.git/hooks/x"));
    yard_file(y, "W/.git/config", "[core]\n\tbare = false\n");
    rc = guard_new(&g, &o, NULL);
    if (rc == SY_E_OK) {
        rc = guard_begin(g, NULL, NULL);
    }
    if (rc == SY_E_OK) {
        yard_file(y, "W/.git/hooks/x", "x");
        yard_chmod(y, "W/.git/hooks/x", 0755);
        yard_file(y, "W/.git/config", "[core]\n\tpager = evil\n");
        rc = guard_after(g, &f, NULL);
    }
    guard_findings_fini(&f);
    guard_free(g);
    return rc;
}

static void
each_allocation_of_a_look_may_fail(void **state)
{
    struct yard *y = *state;

    yard_mkdir(y, "W/.git/hooks");
    fault_run_lenient(run_once, y);
}

#define IN_YARD(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_YARD(ordinary_work_with_git_finds_nothing),
        IN_YARD(a_clone_by_the_command_is_left_and_protected_from_then_on),
        IN_YARD(a_link_that_the_command_makes_takes_nothing_with_it),
        IN_YARD(what_a_hook_that_is_a_link_leads_to_is_put_back),
        IN_YARD(a_planted_hook_goes_and_a_sample_stays),
        IN_YARD(a_renamed_git_directory_gains_nothing),
        IN_YARD(a_repository_at_the_top_of_a_root_is_refused_unless_lifted),
        IN_YARD(agent_and_editor_files_are_put_back),
        IN_YARD(a_harmless_setting_is_told_and_stays),
        IN_YARD(writes_that_no_event_tells_are_seen),
        IN_YARD(what_a_person_does_between_runs_is_theirs),
        IN_YARD(with_mounts_a_person_may_change_what_is_known_during_a_run),
        IN_YARD(a_moved_tree_keeps_what_a_person_had_in_it),
        IN_YARD(pointers_must_lead_to_what_is_looked_after),
        IN_YARD(a_directory_that_becomes_a_repository_loses_what_made_it_one),
        IN_YARD(links_swapped_in_lead_nowhere),
        IN_YARD(names_with_newlines_are_names),
        IN_YARD(runs_that_overlap_are_looked_at_by_the_first_to_end),
        IN_YARD(a_quarantine_on_another_file_system_gets_a_whole_copy),
        IN_YARD(directories_swapped_for_links_during_walks_lead_nowhere),
        IN_YARD(without_a_state_directory_it_says_that_it_could_not),
        IN_YARD(a_finding_is_a_denial_with_a_way_out),
        IN_YARD(each_allocation_of_a_look_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
