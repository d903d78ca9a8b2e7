#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "fault.h"
#include "guard/place.h"
#include "yard.h"

static const char tops[] = "W/.agents ro/?\nW/.claude ro/?\nW/.codex ro/?\nW/.cursor ro/?\n"
                           "W/.envrc ro/?\n";

static void
missing_names_at_the_top_become_placeholders_for_a_run(void **state)
{
    struct yard *y = *state;

    yard_mkdir(y, "W/sub");
    yard_mkdir(y, "W/.vscode");

    unsigned long before = yard_hash(y);

    yard_guard(y, true);
    yard_begin(y);

    const char *marks = yard_marks_now(y);

    assert_true(strncmp(marks, tops, strlen(tops)) == 0);
    assert_non_null(strstr(marks, "W/.git ro/?\n"));
    assert_non_null(strstr(marks, "W/.mcp.json ro/?\n"));
    assert_non_null(strstr(marks, "W/.vscode ro/\n"));
    assert_null(strstr(marks, "W/sub"));
    /* No run: none. */
    assert_int_not_equal(yard_hash(y), before);
    guard_free(y->g);
    y->g = NULL;
    assert_int_equal(yard_hash(y), before);
}

static void
a_repository_gets_what_it_lacks_and_git_does_not_mind(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks .git/info && echo x >f && git add f && "
                "git commit -q -m 1");
    yard_guard(y, true);
    yard_begin(y);

    const char *marks = yard_marks_now(y);

    assert_non_null(strstr(marks, "W/.git pin/\nW/.git/config ro\nW/.git/config.worktree ro?\n"
                                  "W/.git/hooks ro/?\nW/.git/info"));
    assert_int_equal(yard_try(y, "test -z \"$(git status --porcelain)\""), 0);
    yard_run(y, "git -c extensions.worktreeConfig=true config --list && git log --oneline && "
                "git check-attr -a f && git stash list && git gc -q && git branch b && "
                "git fsck && rm -rf .git/logs");
    guard_free(y->g);
    y->g = NULL;
    assert_int_equal(
        yard_try(y,
                 "git status && test ! -e .git/hooks -a "
                 "! -e .git/info/attributes && test ! -e .git/config.worktree && test ! -e .codex"),
        0);
}

/* As the repository of a linked worktree is one. */
static void
a_git_directory_as_a_root_gets_no_names_of_editors(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W/.git")), NULL};
    const struct guard_options o = {
        .roots = roots,
        .state_dir = yard_path(y, "S"),
        .has_mounts = true,
    };

    yard_run(y, "git init -q && rm -r .git/hooks");
    yard_guard_options(y, &o);
    yard_begin(y);

    const char *marks = yard_marks_now(y);

    assert_non_null(strstr(marks, "W/.git/config ro\nW/.git/config.worktree ro?\n"
                                  "W/.git/hooks ro/?\n"));
    assert_null(strstr(marks, "W/.git/.git"));
    assert_null(strstr(marks, "W/.git/.vscode"));
    assert_false(yard_exists(y, "W/.git/.claude"));
}

static void
attributes_of_a_repository_get_a_placeholder_that_is_empty(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q");
    yard_guard(y, true);
    yard_begin(y);
    assert_non_null(strstr(yard_marks_now(y), "W/.git/info pin/\nW/.git/info/attributes ro?\n"));
    yard_run(y, "git check-attr -a f");
    guard_free(y->g);
    y->g = NULL;
    assert_int_equal(yard_try(y, "test -e .git/info/exclude -a ! -e .git/info/attributes"), 0);
}

static void
a_person_s_files_survive(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q");
    yard_guard(y, true);
    yard_begin(y);
    yard_file(y, "W/.codex/mine", "x");
    /* An empty directory of the same name that is not ours. */
    yard_run(y, "mkdir keep && rmdir .cursor && mv keep .cursor");
    yard_file(y, "W/.git/info/attributes", "* text\n");
    yard_run(y, "rmdir .idea");
    guard_free(y->g);
    y->g = NULL;
    assert_string_equal(yard_text(y, "W/.codex/mine"), "x");
    assert_true(yard_exists(y, "W/.cursor"));
    assert_string_equal(yard_text(y, "W/.git/info/attributes"), "* text\n");
    assert_false(yard_exists(y, "W/.idea"));
    assert_false(yard_exists(y, "W/.agents"));
}

static void
two_engines_share_them_and_the_last_removes_them(void **state)
{
    struct yard *y = *state;
    unsigned long before = yard_hash(y);

    yard_guard(y, true);
    yard_begin(y);

    struct guard *first = y->g;

    yard_guard(y, true);
    yard_begin(y);
    assert_true(strncmp(yard_marks_now(y), tops, strlen(tops)) == 0);
    guard_free(first);
    assert_true(yard_exists(y, "W/.codex"));
    /* A third one does not take them for anybody's. */
    assert_int_equal(guard_recover(yard_path(y, "S"), NULL, NULL), SY_E_OK);
    assert_true(yard_exists(y, "W/.codex"));
    guard_free(y->g);
    y->g = NULL;
    assert_int_equal(yard_hash(y), before);
}

static struct guard *
guard_of_another_user(struct yard *y, bool has_mounts)
{
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    const struct guard_options o = {
        .roots = roots,
        .state_dir = yard_path(y, "S2"),
        .has_mounts = has_mounts,
    };
    struct guard *mine = y->g;
    struct guard *ret = NULL;

    yard_guard_options(y, &o);
    ret = y->g;
    y->g = mine;
    return ret;
}

static void
begin_other(struct guard *g)
{
    struct guard_marks m = {0};

    assert_int_equal(guard_begin(g, &m, NULL), SY_E_OK);
    guard_marks_fini(&m);
}

/* Its journal is not ours. */
static void
what_another_user_s_engine_holds_is_nobody_s_doing(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q && rm -r .git/hooks");
    for (int i = 0; i < 4; i++) {
        bool is_first = i % 2 != 0;
        unsigned long before = yard_hash(y);
        struct guard *other = guard_of_another_user(y, true);

        yard_guard(y, i / 2 != 0);
        if (is_first) {
            begin_other(other);
            yard_begin(y);
            guard_free(other);
        } else {
            yard_begin(y);
            begin_other(other);
        }
        assert_string_equal(yard_after(y), "");
        assert_true(is_first || yard_exists(y, "W/.codex"));
        assert_true(is_first || yard_exists(y, "W/.git/config.worktree"));
        guard_free(y->g);
        y->g = NULL;
        if (!is_first) {
            guard_free(other);
        }
        assert_int_equal(yard_hash(y), before);
    }
}

static void
what_only_looks_like_a_placeholder_is_judged(void **state)
{
    struct yard *y = *state;
    char touch[96];
    char line[512];

    (void)snprintf(touch, sizeof(touch), "touch -h -d @%lld.%09ld", (long long)PLACE_TIME_S,
                   PLACE_TIME_NS);
    yard_guard(y, false);
    yard_begin(y);
    (void)snprintf(
        line, sizeof(line),
        "mkdir .vscode && echo 1 >.vscode/tasks.json && %s .vscode .vscode/tasks.json && "
        "echo 1 >.envrc && %s .envrc && ln -s x .mcp.json && %s .mcp.json",
        touch, touch, touch);
    yard_run(y, line);

    const char *told = yard_after(y);

    assert_non_null(strstr(told, "quarantined create W/.vscode"));
    assert_non_null(strstr(told, "quarantined create W/.envrc"));
    assert_non_null(strstr(told, "quarantined create W/.mcp.json"));
    assert_false(yard_exists(y, "W/.vscode"));
}

static void
what_was_removed_meanwhile_is_made_again_for_the_next_run(void **state)
{
    struct yard *y = *state;
    struct guard_marks m = {0};

    yard_guard(y, true);
    yard_begin(y);
    (void)yard_marks_now(y);
    yard_run(y, "rmdir .codex");
    assert_int_equal(guard_begin(y->g, &m, NULL), SY_E_OK);
    assert_string_equal(yard_marks(y, &m), "W/.codex ro/?\n");
    guard_marks_fini(&m);
    assert_true(yard_exists(y, "W/.codex"));
}

static uint32_t
entries_of_state(const struct yard *y)
{
    uint32_t n = 0;
    DIR *d = opendir(yard_path(y, "S/guard/owners"));

    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        n += e->d_name[0] != '.';
    }
    (void)closedir(d);
    return n;
}

/* In a child that is killed without a word, after about `us` or once all is made. */
static void
be_killed(struct yard *y, unsigned us, bool is_after)
{
    int ready[2];
    pid_t pid;
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
        const struct guard_options o = {
            .roots = roots, .state_dir = yard_path(y, "S"), .has_mounts = true};
        struct guard *g = NULL;

        if (!is_after) {
            (void)!write(ready[1], "x", 1);
        }
        for (;;) {
            if (guard_new(&g, &o, NULL) == SY_E_OK && guard_begin(g, NULL, NULL) == SY_E_OK &&
                is_after) {
                (void)!write(ready[1], "x", 1);
                (void)pause();
            }
            guard_free(g);
            g = NULL;
        }
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    if (us > 0) {
        const struct timespec moment = {.tv_nsec = (long)us * 1000};

        (void)ppoll(NULL, 0, &moment, NULL);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
a_killed_engine_leaves_what_the_next_one_clears(void **state)
{
    struct yard *y = *state;
    unsigned long before;
    uint32_t removed = 0;

    yard_run(y, "git init -q");
    before = yard_hash(y);
    be_killed(y, 0, true);
    assert_int_not_equal(yard_hash(y), before);
    yard_file(y, "W/.idea/mine", "x");
    assert_int_equal(guard_recover(yard_path(y, "S"), &removed, NULL), SY_E_OK);
    assert_true(removed > 5);
    assert_string_equal(yard_text(y, "W/.idea/mine"), "x");
    yard_run(y, "rm -r .idea");
    assert_int_equal(yard_hash(y), before);
    assert_int_equal(entries_of_state(y), 0);
}

static void
two_hundred_runs_and_kills_at_any_moment_leave_the_tree_as_it_was(void **state)
{
    struct yard *y = *state;
    unsigned long before;

    yard_run(y, "git init -q && mkdir -p a/b .vscode && touch .envrc");
    before = yard_hash(y);
    for (unsigned i = 0; i < 60; i++) {
        be_killed(y, 1 + i * 137 % 5000, false);
    }
    for (int i = 0; i < 200; i++) {
        yard_guard(y, true);
        yard_begin(y);
        guard_free(y->g);
        y->g = NULL;
    }
    assert_int_equal(yard_hash(y), before);
    assert_int_equal(entries_of_state(y), 0);
}

static void
rest_removes_them_until_the_next_run(void **state)
{
    struct yard *y = *state;
    unsigned long before = yard_hash(y);

    yard_guard(y, true);
    yard_begin(y);
    guard_rest(y->g); /* a run is active: nothing */
    assert_int_not_equal(yard_hash(y), before);
}

static void
they_go_from_a_root_that_was_renamed_and_nothing_else_does(void **state)
{
    struct yard *y = *state;

    yard_mkdir(y, "W/sub");
    yard_guard(y, true);
    yard_begin(y);
    assert_true(yard_exists(y, "W/.codex"));
    yard_file(y, "W/.vscode/mine", "x");
    assert_int_equal(rename(yard_path(y, "W"), yard_path(y, "V")), 0);
    /* Of another, at the same place. */
    yard_mkdir(y, "W");
    yard_mkdir(y, "W/.codex");
    guard_free(y->g);
    y->g = NULL;
    assert_true(yard_exists(y, "W/.codex"));
    assert_true(yard_exists(y, "V/.vscode/mine"));
    assert_true(yard_exists(y, "V/sub"));
    assert_false(yard_exists(y, "V/.codex"));
    assert_false(yard_exists(y, "V/.envrc"));
    assert_false(yard_exists(y, "V/.git"));
}

static void
a_state_directory_that_others_can_write_is_refused(void **state)
{
    struct yard *y = *state;
    struct sy_error err = {0};

    yard_mkdir(y, "S");
    yard_chmod(y, "S", 0777);
    assert_int_equal(guard_recover(yard_path(y, "S"), NULL, &err), SY_E_SYS);
    assert_non_null(strstr(err.msg, "can be written by others"));
    yard_chmod(y, "S", 0700);
    assert_int_equal(guard_recover(yard_path(y, "S"), NULL, &err), SY_E_OK);
}

static enum sy_code
begin_once(void *arg)
{
    struct yard *y = arg;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    /* Few names, or it takes long. */
    char *lifted[] = {mem_unconst(".codex"),  mem_unconst(".agents"),
                      mem_unconst(".claude"), mem_unconst(".cursor"),
                      mem_unconst(".vscode"), mem_unconst(".idea"),
                      mem_unconst(".envrc"),  NULL};
    const struct guard_options o = {
        .roots = roots, .state_dir = yard_path(y, "S"), .unprotected = lifted, .has_mounts = true};
    struct guard *g = NULL;
    struct guard_marks m = {0};
    enum sy_code rc = guard_new(&g, &o, NULL);

    if (rc == SY_E_OK) {
        rc = guard_begin(g, &m, NULL);
    }
    guard_marks_fini(&m);
    guard_free(g);
    return rc;
}

static void
each_allocation_may_fail_and_leaves_nothing_for_long(void **state)
{
    struct yard *y = *state;
    unsigned long before;

    yard_mkdir(y, "W/.git");
    yard_file(y, "W/.git/config", "");
    before = yard_hash(y);
    fault_run_lenient(begin_once, y);
    assert_int_equal(guard_recover(yard_path(y, "S"), NULL, NULL), SY_E_OK);
    assert_int_equal(yard_hash(y), before);
}

static void
a_home_that_is_not_there_is_not_made(void **state)
{
    struct yard *y = *state;
    SY_AUTO(buf_fini) struct buf dir = {.max = 4096};
    SY_AUTO(buf_fini) struct buf home = {.max = 4096};
    char *environ_list[] = {NULL, NULL};

    assert_int_equal(buf_addf(&home, "HOME=%s", yard_path(y, "none")), SY_E_OK);
    environ_list[0] = home.data;
    assert_int_equal(guard_state_dir(&dir, environ_list), SY_E_NOTFOUND);
    yard_mkdir(y, "none");
    assert_int_equal(guard_state_dir(&dir, environ_list), SY_E_OK);
    assert_true(strstr(buf_view(&dir), "/none/.local/state/shellyard") != NULL);
    assert_int_equal(rmdir(yard_path(y, "none")), 0);
    yard_file(y, "none", "a file");
    assert_int_equal(guard_state_dir(&dir, environ_list), SY_E_NOTFOUND);
    assert_int_equal(unlink(yard_path(y, "none")), 0);
}

/* "rule | fix", "" if nothing holds it. Static buffer. */
static const char *
held(const struct yard *y, enum sandbox_operation op, const char *name)
{
    static char text[sizeof(((struct sandbox_explanation *)0)->rule) +
                     sizeof(((struct sandbox_explanation *)0)->fix) + 8];
    struct sandbox_explanation why = {0};

    text[0] = '\0';
    if (guard_holds(y->g, &why, op, yard_path(y, name))) {
        (void)snprintf(text, sizeof(text), "%s | %s", why.rule, why.fix);
    }
    return text;
}

static void
what_marks_refuse_is_told_by_its_name_and_all_else_is_free(void **state)
{
    static const char config[] =
        "protected name .git/config | sandbox.unprotected_names: [.git/config]";
    static const char hooks[] =
        "protected name .git/hooks | sandbox.unprotected_names: [.git/hooks]";
    static const char vscode[] = "protected name .vscode | sandbox.unprotected_names: [.vscode]";
    struct yard *y = *state;

    yard_run(y, "git init -q && echo x >f");
    yard_guard(y, true);
    yard_begin(y);
    (void)yard_marks_now(y); /* told: what is bound from now on */
    assert_string_equal(held(y, OPERATION_WRITE, "W/.git/config"), config);
    assert_string_equal(held(y, OPERATION_CHMOD, "W/.git/config"), config);
    assert_string_equal(held(y, OPERATION_DELETE, "W/.git/config"), config);
    assert_string_equal(held(y, OPERATION_WRITE, "W/.git/hooks/h"), hooks);
    assert_string_equal(held(y, OPERATION_CREATE, "W/.git/hooks/h"), hooks);
    assert_string_equal(held(y, OPERATION_CREATE, "W/.vscode"), vscode);
    assert_non_null(strstr(held(y, OPERATION_RENAME, "W/.git"), "protected names are in it: "));
    /* Free: reading, names beside, what is kept in its place and no more, names of another root. */
    assert_string_equal(held(y, OPERATION_READ, "W/.git/config"), "");
    assert_string_equal(held(y, OPERATION_CREATE, "W/.git/config"), "");
    assert_string_equal(held(y, OPERATION_WRITE, "W/.git/configs"), "");
    assert_string_equal(held(y, OPERATION_WRITE, "W/.git/index"), "");
    assert_string_equal(held(y, OPERATION_DELETE, "W/f"), "");
    assert_string_equal(held(y, OPERATION_WRITE, "S/.git/config"), "");
}

/* The line that is told for a whole git directory is enough, and with a name less it is not. */
static void
a_git_directory_is_free_once_all_that_is_told_is_lifted(void **state)
{
    struct yard *y = *state;
    char *roots[] = {mem_unconst(yard_path(y, "W")), NULL};
    char state_dir[300];
    char *names[] = {mem_unconst(".git"),
                     mem_unconst(".git/config"),
                     mem_unconst(".git/config.worktree"),
                     mem_unconst(".git/hooks"),
                     mem_unconst(".git/info/attributes"),
                     NULL};
    struct guard_options o = {.roots = roots, .has_mounts = true, .state_dir = state_dir};

    (void)snprintf(state_dir, sizeof(state_dir), "%s", yard_path(y, "S"));
    yard_run(y, "git init -q");
    for (int round = 0; round < 3; round++) {
        names[round == 1 ? 4 : 5] = NULL;
        o.unprotected = round > 0 ? names : NULL;
        yard_guard_options(y, &o);
        yard_begin(y);
        (void)yard_marks_now(y);
        if (round == 0) {
            assert_non_null(strstr(held(y, OPERATION_RENAME, "W/.git"),
                                   "names: [.git, .git/config, .git/config.worktree, .git/hooks, "
                                   ".git/info/attributes]"));
        } else {
            assert_int_equal(held(y, OPERATION_RENAME, "W/.git")[0] != '\0', round == 1);
        }
        guard_free(y->g);
        y->g = NULL;
        names[4] = mem_unconst(".git/info/attributes");
    }
}

static void
without_mounts_nothing_is_said_to_be_held(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q");
    yard_guard(y, false);
    yard_begin(y);
    (void)yard_marks_now(y); /* told: what is bound from now on */
    assert_string_equal(held(y, OPERATION_WRITE, "W/.git/config"), "");
}

/* Where memory is out it may say no, never something that is not true. */
static enum sy_code
ask_once(void *arg)
{
    struct yard *y = arg;
    struct sandbox_explanation why = {0};
    bool is_held = guard_holds(y->g, &why, OPERATION_WRITE, yard_path(y, "W/.git/config"));

    if (!is_held) {
        return SY_E_NOMEM;
    }
    return strcmp(why.fix, "sandbox.unprotected_names: [.git/config]") == 0 ? SY_E_OK : SY_E_SYS;
}

static void
each_allocation_of_a_question_may_fail(void **state)
{
    struct yard *y = *state;

    yard_run(y, "git init -q");
    yard_guard(y, true);
    yard_begin(y);
    (void)yard_marks_now(y); /* told: what is bound from now on */
    fault_run(ask_once, y);
}

#define IN_YARD(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_YARD(missing_names_at_the_top_become_placeholders_for_a_run),
        IN_YARD(a_repository_gets_what_it_lacks_and_git_does_not_mind),
        IN_YARD(a_git_directory_as_a_root_gets_no_names_of_editors),
        IN_YARD(attributes_of_a_repository_get_a_placeholder_that_is_empty),
        IN_YARD(a_person_s_files_survive),
        IN_YARD(two_engines_share_them_and_the_last_removes_them),
        IN_YARD(what_another_user_s_engine_holds_is_nobody_s_doing),
        IN_YARD(what_only_looks_like_a_placeholder_is_judged),
        IN_YARD(what_was_removed_meanwhile_is_made_again_for_the_next_run),
        IN_YARD(a_killed_engine_leaves_what_the_next_one_clears),
        IN_YARD(two_hundred_runs_and_kills_at_any_moment_leave_the_tree_as_it_was),
        IN_YARD(rest_removes_them_until_the_next_run),
        IN_YARD(they_go_from_a_root_that_was_renamed_and_nothing_else_does),
        IN_YARD(a_home_that_is_not_there_is_not_made),
        IN_YARD(a_state_directory_that_others_can_write_is_refused),
        IN_YARD(each_allocation_may_fail_and_leaves_nothing_for_long),
        IN_YARD(what_marks_refuse_is_told_by_its_name_and_all_else_is_free),
        IN_YARD(a_git_directory_is_free_once_all_that_is_told_is_lifted),
        IN_YARD(without_mounts_nothing_is_said_to_be_held),
        IN_YARD(each_allocation_of_a_question_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
