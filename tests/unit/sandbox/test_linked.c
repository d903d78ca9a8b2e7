/* The repository of a workspace that is a linked worktree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "fixture.h"
#include "sandbox/linux/linked.h"

static int
act_create(const void *path)
{
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    return fd >= 0 ? 0 : errno;
}

/* What git has in a file: a word, a path, a line end. */
static void
put(const struct place *p, const char *name, const char *word, const char *path)
{
    char text[LIMIT_PATH + 16];

    (void)snprintf(text, sizeof(text), "%s%s\n", word, path);
    place_file(p, name, text);
}

static void
make_repository(const struct place *p, const char *git_dir)
{
    char name[300];

    place_mkdir(p, git_dir);
    (void)snprintf(name, sizeof(name), "%s/HEAD", git_dir);
    place_file(p, name, "ref: refs/heads/master\n");
    (void)snprintf(name, sizeof(name), "%s/objects", git_dir);
    place_mkdir(p, name);
    (void)snprintf(name, sizeof(name), "%s/refs", git_dir);
    place_mkdir(p, name);
    (void)snprintf(name, sizeof(name), "%s/worktrees", git_dir);
    place_mkdir(p, name);
    (void)snprintf(name, sizeof(name), "%s/worktrees/w", git_dir);
    place_mkdir(p, name);
    (void)snprintf(name, sizeof(name), "%s/worktrees/w/commondir", git_dir);
    place_file(p, name, "../..\n");
}

/* As `git worktree add W` in O/main has it. */
static void
link_worktree(struct place *p)
{
    place_mkdir(p, "O/main");
    make_repository(p, "O/main/.git");
    put(p, "O/main/.git/worktrees/w/gitdir", "", place_path(p, "W/.git"));
    put(p, "W/.git", "gitdir: ", place_path(p, "O/main/.git/worktrees/w"));
    p->policy.writable_roots.max = LIMIT_ROOTS;
    p->policy.finds_linked = true;
}

/* What is found; "": nothing. */
static const char *
found(struct place *p)
{
    assert_int_equal(sandbox_policy_find_linked(&p->policy), SY_E_OK);
    assert_true(p->policy.n_linked_roots <= 1);
    return p->policy.n_linked_roots == 0
               ? ""
               : p->policy.writable_roots.v[p->policy.writable_roots.n - 1];
}

static void
the_repository_of_a_linked_worktree_is_a_root(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/main/.git/x")), EACCES);
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
    assert_true(sandbox_policy_is_linked(&p->policy, 0));
    assert_false(sandbox_policy_is_granted(&p->policy, 0));
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/main/.git/x")), 0);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/main/x")), EACCES);

    const struct sandbox_explanation e =
        place_ask(p, OPERATION_WRITE, place_path(p, "O/main/.git/index"));

    assert_true(e.is_allowed);
    assert_non_null(strstr(e.rule, "the repository of a linked worktree"));
}

static void
it_is_looked_for_anew_each_time(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
    assert_int_equal(p->policy.writable_roots.n, 1);
    assert_int_equal(unlink(place_path(p, "W/.git")), 0);
    assert_string_equal(found(p), "");
    assert_int_equal(p->policy.writable_roots.n, 0);
}

static void
git_may_have_written_relative_paths(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    place_file(p, "W/.git", "gitdir: ../O/main/.git/worktrees/w\n");
    place_file(p, "O/main/.git/worktrees/w/gitdir", "../../../../../W/.git\r\n");
    put(p, "O/main/.git/worktrees/w/commondir", "", place_path(p, "O/main/.git"));
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
}

static void
a_configured_root_counts_too(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    place_mkdir(p, "V");
    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup(place_path(p, "V"));
    assert_string_equal(found(p), "");
    place_add_root(p, place_path(p, "W"));
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
    assert_int_equal(p->policy.writable_roots.n, 2);
}

/* Each is as the good one but for one thing. */
static void
what_the_repository_does_not_know_of_is_none(void **state)
{
    struct place *p = *state;

    link_worktree(p);

    /* The repository has another worktree of that name, or none. */
    put(p, "O/main/.git/worktrees/w/gitdir", "", place_path(p, "O/.git"));
    assert_string_equal(found(p), "");
    assert_int_equal(unlink(place_path(p, "O/main/.git/worktrees/w/gitdir")), 0);
    assert_string_equal(found(p), "");
    put(p, "O/main/.git/worktrees/w/gitdir", "", place_path(p, "W/.git"));
    assert_string_equal(found(p), place_path(p, "O/main/.git"));

    /* Its common directory is another one. */
    put(p, "O/main/.git/worktrees/w/commondir", "", place_path(p, "O"));
    assert_string_equal(found(p), "");
    place_file(p, "O/main/.git/worktrees/w/commondir", "..\n");
    assert_string_equal(found(p), "");
    place_file(p, "O/main/.git/worktrees/w/commondir", "../..\n");
    assert_string_equal(found(p), place_path(p, "O/main/.git"));

    /* It is no repository. */
    assert_int_equal(rmdir(place_path(p, "O/main/.git/refs")), 0);
    assert_string_equal(found(p), "");
    place_mkdir(p, "O/main/.git/refs");
    assert_int_equal(unlink(place_path(p, "O/main/.git/HEAD")), 0);
    assert_string_equal(found(p), "");
}

static void
a_pointer_that_is_not_gits_is_none(void **state)
{
    struct place *p = *state;
    char good[LIMIT_PATH];
    char text[2 * LIMIT_PATH];
    static const char *const formats[] = {
        "%s\n",
        "gitdir:%s\n",
        "gitdir: \n%s\n",
        "gitdir: %s\nx\n",
        "gitdir: %s/../w/x\n",
        "gitdir: %s/..\n",
        "gitdir: /\n",
        "gitdir: /worktrees/w\n",
        "\n",
        "",
        "gitdir: \n",
    };

    link_worktree(p);
    (void)snprintf(good, sizeof(good), "%s", place_path(p, "O/main/.git/worktrees/w"));
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const char *at = strstr(formats[i], "%s");
        int before = (int)(at != NULL ? at - formats[i] : (ptrdiff_t)strlen(formats[i]));

        (void)snprintf(text, sizeof(text), "%.*s%s%s", before, formats[i], at != NULL ? good : "",
                       at != NULL ? at + 2 : "");
        place_file(p, "W/.git", text);
        assert_string_equal(found(p), "");
    }
    (void)memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "gitdir: /", 9);
    place_file(p, "W/.git", text);
    assert_string_equal(found(p), "");
    put(p, "W/.git", "gitdir: ", good);
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
}

static void
no_link_leads_there(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    link_worktree(p);
    place_link(p, "main", "O/link");
    put(p, "W/.git", "gitdir: ", place_path(p, "O/link/.git/worktrees/w"));
    assert_string_equal(found(p), "");
    put(p, "W/.git", "gitdir: ", place_path(p, "O/main/.git/worktrees/w"));
    assert_string_equal(found(p), place_path(p, "O/main/.git"));

    /* One that is put there after the look. */
    place_mkdir(p, "O/victim");
    assert_int_equal(rename(place_path(p, "O/main/.git"), place_path(p, "O/main/was")), 0);
    place_link(p, "../victim", "O/main/.git");
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "the repository of a linked worktree"));
    assert_non_null(strstr(err.msg, "symbolic link"));
    assert_string_equal(found(p), "");

    /* Nor is a pointer one, or what the repository has. */
    assert_int_equal(unlink(place_path(p, "O/main/.git")), 0);
    assert_int_equal(rename(place_path(p, "O/main/was"), place_path(p, "O/main/.git")), 0);
    assert_string_equal(found(p), place_path(p, "O/main/.git"));
    assert_int_equal(rename(place_path(p, "W/.git"), place_path(p, "O/pointer")), 0);
    place_link(p, place_path(p, "O/pointer"), "W/.git");
    assert_string_equal(found(p), "");
}

static void
it_all_has_one_owner_and_is_nobody_elses_to_write(void **state)
{
    struct place *p = *state;
    static const char *const parts[] = {"O/main/.git", "O/main/.git/worktrees/w",
                                        "O/main/.git/worktrees/w/gitdir",
                                        "O/main/.git/worktrees/w/commondir", "W/.git"};

    link_worktree(p);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct stat st;

        assert_int_equal(stat(place_path(p, parts[i]), &st), 0);
        assert_int_equal(chmod(place_path(p, parts[i]), 0777), 0);
        assert_string_equal(found(p), "");
        assert_int_equal(chmod(place_path(p, parts[i]), st.st_mode & 0777), 0);
        assert_string_equal(found(p), place_path(p, "O/main/.git"));
        if (geteuid() == 0) {
            assert_int_equal(chown(place_path(p, parts[i]), 1, (gid_t)-1), 0);
            assert_string_equal(found(p), "");
            assert_int_equal(chown(place_path(p, parts[i]), 0, (gid_t)-1), 0);
        }
    }
}

static void
what_a_person_has_to_think_about_is_theirs(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    p->policy.deny_homes.max = 4;
    p->policy.own_dirs.max = 4;

    /* A whole home; hidden in one. */
    assert_int_equal(strv_add(&p->policy.deny_homes, place_path(p, "O/main/.git/u")), SY_E_OK);
    assert_string_equal(found(p), "");
    strv_remove(&p->policy.deny_homes, 0);
    assert_int_equal(strv_add(&p->policy.deny_homes, place_path(p, "O/main")), SY_E_OK);
    assert_string_equal(found(p), "");
    strv_remove(&p->policy.deny_homes, 0);

    /* Shellyard's own. */
    assert_int_equal(strv_add(&p->policy.own_dirs, place_path(p, "O/main/.git/state")), SY_E_OK);
    assert_string_equal(found(p), "");
    strv_remove(&p->policy.own_dirs, 0);
    assert_string_equal(found(p), place_path(p, "O/main/.git"));

    /* A turn inside of another's directory, and who may write nothing. */
    p->policy.cwd_is_inner = true;
    assert_string_equal(found(p), "");
    p->policy.cwd_is_inner = false;
    p->policy.finds_linked = false;
    assert_string_equal(found(p), "");
    p->policy.finds_linked = true;
    p->policy.mode = SANDBOX_READ_ONLY;
    assert_string_equal(found(p), "");
}

static void
a_repository_that_is_in_a_root_or_around_one_is_none(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    place_add_root(p, place_path(p, "O"));
    assert_string_equal(found(p), "");
    strv_fini(&p->policy.writable_roots);
    p->policy.writable_roots.max = LIMIT_ROOTS;
    assert_string_equal(found(p), place_path(p, "O/main/.git"));

    /* A bare repository, and its worktree in it. */
    make_repository(p, "O/bare");
    place_mkdir(p, "O/bare/in");
    put(p, "O/bare/in/.git", "gitdir: ", place_path(p, "O/bare/worktrees/w"));
    put(p, "O/bare/worktrees/w/gitdir", "", place_path(p, "O/bare/in/.git"));
    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup(place_path(p, "O/bare/in"));
    assert_string_equal(found(p), "");
}

/* Where nothing but mounts could hide what is in it, it would end every command. */
static void
where_mounts_would_be_needed_it_is_none(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    p->policy.deny_read.max = 4;
    assert_int_equal(strv_add(&p->policy.deny_read, place_path(p, "O/main/.git/secret")), SY_E_OK);
    assert_string_equal(found(p), "");
    place_ready(p);
}

static void
a_full_policy_stays_as_narrow(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    p->policy.writable_roots.max = 0;
    assert_string_equal(found(p), "");
}

static enum sy_code
find_it(void *arg)
{
    struct sandbox_policy p = {0};
    enum sy_code rc = sandbox_policy_copy(&p, arg);

    if (rc == SY_E_OK) {
        rc = sandbox_policy_find_linked(&p);
    }
    sandbox_policy_fini(&p);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    struct place *p = *state;

    link_worktree(p);
    fault_run(find_it, &p->policy);
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(the_repository_of_a_linked_worktree_is_a_root),
        IN_PLACE(it_is_looked_for_anew_each_time),
        IN_PLACE(git_may_have_written_relative_paths),
        IN_PLACE(a_configured_root_counts_too),
        IN_PLACE(what_the_repository_does_not_know_of_is_none),
        IN_PLACE(a_pointer_that_is_not_gits_is_none),
        IN_PLACE(no_link_leads_there),
        IN_PLACE(it_all_has_one_owner_and_is_nobody_elses_to_write),
        IN_PLACE(what_a_person_has_to_think_about_is_theirs),
        IN_PLACE(a_repository_that_is_in_a_root_or_around_one_is_none),
        IN_PLACE(where_mounts_would_be_needed_it_is_none),
        IN_PLACE(a_full_policy_stays_as_narrow),
        IN_PLACE(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
