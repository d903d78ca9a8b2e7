/* What a policy without an engine protects and hides, as marks. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "fault.h"
#include "launcher/launcher_internal.h"

#define NOBODY 65534U

static char git_hooks[] = ".git/hooks";
static char git_config[] = ".git/config*";
static char envrc[] = ".envrc";
static char *const names[] = {git_hooks, git_config, envrc, NULL};

struct world {
    char dir[64];
    struct sandbox_policy policy;
    struct sandbox_plan *plan;
};

static void
put(const struct world *w, const char *name)
{
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    for (char *at = path + strlen(w->dir) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *at = '/';
    }
    if (name[strlen(name) - 1] != '/') {
        SY_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
    }
}

static void
link_to(const struct world *w, const char *target, const char *name)
{
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static void
add_root(struct world *w, const char *name)
{
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    assert_int_equal(strv_add(&w->policy.writable_roots, path), SY_E_OK);
}

static void
make_plan(struct world *w)
{
    struct sandbox_caps caps;
    struct sy_error err = {0};

    sandbox_probe(&caps);
    caps.has_full_tier = true;
    if (sandbox_plan_new(&w->plan, &w->policy, &caps, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
}

static int
setup(void **state)
{
    static struct world w;

    w = (struct world){.dir = "/var/tmp/sy-protect-XXXXXX"};
    assert_non_null(mkdtemp(w.dir));
    assert_int_equal(chmod(w.dir, 0755), 0);
    put(&w, "W/");
    w.policy = (struct sandbox_policy){.mode = SANDBOX_WORKSPACE_WRITE,
                                       .max_tier = TIER_FULL,
                                       .excludes_slash_tmp = true,
                                       .writable_roots = {.max = 4},
                                       .deny_read = {.max = 4}};
    w.policy.cwd = mem_alloc(LIMIT_PATH);
    assert_non_null(w.policy.cwd);
    (void)snprintf(w.policy.cwd, LIMIT_PATH, "%s/W", w.dir);
    *state = &w;
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int
teardown(void **state)
{
    struct world *w = *state;

    sandbox_plan_free(w->plan);
    sandbox_policy_fini(&w->policy);
    return nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Marks, sorted, without what they all begin with: "p .git\nr .git/config\n". */
static void
assert_marks(const struct world *w, const struct buf *marks, const char *expected)
{
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_MARKS};
    char *lines[64];
    size_t n = 0;

    for (size_t i = 0; i < marks->len; i += strlen(marks->data + i) + 1) {
        assert_true(n < sizeof(lines) / sizeof(lines[0]));
        lines[n++] = marks->data + i;
    }
    qsort(lines, n, sizeof(lines[0]), by_text);
    for (size_t i = 0; i < n; i++) {
        size_t skipped = strlen(w->dir) + 2;

        assert_int_equal(strncmp(lines[i] + 1, w->dir, strlen(w->dir)), 0);
        assert_int_equal(buf_addf(&text, "%c %s\n", lines[i][0], lines[i] + skipped), SY_E_OK);
    }
    assert_string_equal(buf_view(&text), expected);
}

static void
assert_names(const struct world *w, const char *expected)
{
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};

    if (!protect_find_names(&marks, w->plan, names, &f)) {
        fail_msg("%s: errno %d", f.detail, f.sys);
    }
    assert_int_equal(f.stage, STAGE_NONE);
    assert_marks(w, &marks, expected);
}

static void
names_are_found_at_any_depth_with_all_above_them_pinned(void **state)
{
    struct world *w = *state;

    put(w, "W/.git/hooks/post-checkout");
    put(w, "W/.git/config");
    put(w, "W/.git/config.worktree");
    put(w, "W/.git/HEAD");
    put(w, "W/x/.EnvRC");
    put(w, "W/x/y/.git/config");
    put(w, "W/x/z/nothing");
    put(w, "W/hooks/not");
    put(w, "W/config");
    put(w, "elsewhere/.git/config");
    make_plan(w);
    assert_names(w, "p W/.git\np W/x\np W/x/y\np W/x/y/.git\n"
                    "r W/.git/config\nr W/.git/config.worktree\nr W/.git/hooks\n"
                    "r W/x/.EnvRC\nr W/x/y/.git/config\n");
}

static void
no_names_and_nothing_of_them_is_no_mark(void **state)
{
    struct world *w = *state;
    static char *const none[] = {NULL};
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};

    put(w, "W/a/b/c");
    make_plan(w);
    assert_names(w, "");
    put(w, "W/.envrc");
    assert_names(w, "r W/.envrc\n");
    assert_true(protect_find_names(&marks, w->plan, none, &f));
    assert_int_equal(marks.len, 0);
}

static void
links_are_marked_and_not_followed(void **state)
{
    struct world *w = *state;

    put(w, "elsewhere/.git/config");
    link_to(w, "../elsewhere", "W/away");
    link_to(w, "../elsewhere/.git/config", "W/.envrc");
    link_to(w, "nowhere", "W/dangling");
    make_plan(w);
    assert_names(w, "r W/.envrc\n");
}

static void
a_root_that_is_a_link_is_searched_where_it_is(void **state)
{
    struct world *w = *state;

    put(w, "other/.envrc");
    link_to(w, "other", "by-name");
    add_root(w, "by-name");
    make_plan(w);
    assert_names(w, "r other/.envrc\n");
}

/* What the policy makes writable by name stays so, and stays where it is; all beside it is held. */
static void
a_root_in_a_protected_directory_stays_writable(void **state)
{
    struct world *w = *state;

    put(w, "W/.git/hooks/mine/f");
    put(w, "W/.git/hooks/post-checkout");
    put(w, "W/.git/hooks/other/f");
    put(w, "W/.git/config");
    add_root(w, "W/.git/hooks/mine");
    make_plan(w);

    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};

    assert_true(protect_find_names(&marks, w->plan, names, &f));
    assert_marks(w, &marks,
                 "p W/.git\np W/.git/hooks\np W/.git/hooks/mine\nr W/.git/config\n"
                 "r W/.git/hooks/other\nr W/.git/hooks/post-checkout\n");
}

/* As a user to whom that directory belongs: he could open it, and write below a name he knows. */
static void
a_directory_that_can_not_be_searched_ends_it(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};
    char shut[128];
    uid_t uid = geteuid();
    bool is_found = false;

    put(w, "W/shut/.envrc");
    (void)snprintf(shut, sizeof(shut), "%s/W/shut", w->dir);
    make_plan(w);
    assert_int_equal(chmod(shut, 0), 0);
    if (uid == 0) {
        assert_int_equal(chown(shut, NOBODY, NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    is_found = protect_find_names(&marks, w->plan, names, &f);
    assert_int_equal(seteuid(uid), 0);
    assert_int_equal(chmod(shut, 0755), 0);
    assert_false(is_found);
    assert_int_equal(f.stage, STAGE_MOUNTS);
    assert_int_equal(f.sys, EACCES);
    assert_names(w, "p W/shut\nr W/shut/.envrc\n");
}

static void
more_levels_than_are_searched_end_it(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};
    char deep[4 + 2 * LIMIT_PROTECT_DEPTH] = "W/";

    for (size_t i = 0; i < LIMIT_PROTECT_DEPTH; i++) {
        (void)memcpy(deep + 2 + 2 * i, "d/", 3);
    }
    put(w, deep);
    make_plan(w);
    assert_false(protect_find_names(&marks, w->plan, names, &f));
    assert_int_equal(f.stage, STAGE_MOUNTS);
    assert_int_equal(f.sys, ELOOP);
}

static void
secrets_are_found_in_roots_too(void **state)
{
    struct world *w = *state;
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct sandbox_ready *ready = NULL;
    struct sy_error err = {0};
    struct failure f = {STAGE_NONE, 0, ""};
    char pattern[128];

    put(w, "W/a/.env");
    put(w, "W/.env");
    put(w, "W/env");
    put(w, "keys/one");
    (void)snprintf(pattern, sizeof(pattern), "%s/W/**/.env", w->dir);
    assert_int_equal(strv_add(&w->policy.deny_read, pattern), SY_E_OK);
    (void)snprintf(pattern, sizeof(pattern), "%s/keys", w->dir);
    assert_int_equal(strv_add(&w->policy.deny_read, pattern), SY_E_OK);
    make_plan(w);
    if (sandbox_ready_new(&ready, w->plan, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    assert_true(protect_find_secrets(&marks, w->plan, ready, &f));
    sandbox_ready_free(ready);
    assert_marks(w, &marks, "h W/.env\nh W/a/.env\nh keys\np W/a\n");
}

static enum sy_code
find_once(void *arg)
{
    const struct world *w = arg;
    SY_AUTO(buf_fini) struct buf marks = {.max = LIMIT_MARKS};
    struct failure f = {STAGE_NONE, 0, ""};

    if (protect_find_names(&marks, w->plan, names, &f)) {
        return f.stage == STAGE_NONE && marks.len > 0 ? SY_E_OK : SY_E_INTERNAL;
    }
    return f.sys == ENOMEM ? SY_E_NOMEM : SY_E_SYS;
}

static void
each_failed_allocation_ends_the_search(void **state)
{
    struct world *w = *state;

    put(w, "W/x/.git/config");
    put(w, "W/x/.envrc");
    make_plan(w);
    fault_run(find_once, w);
}

int
main(void)
{
#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_WORLD(names_are_found_at_any_depth_with_all_above_them_pinned),
        IN_WORLD(no_names_and_nothing_of_them_is_no_mark),
        IN_WORLD(links_are_marked_and_not_followed),
        IN_WORLD(a_root_that_is_a_link_is_searched_where_it_is),
        IN_WORLD(a_root_in_a_protected_directory_stays_writable),
        IN_WORLD(a_directory_that_can_not_be_searched_ends_it),
        IN_WORLD(more_levels_than_are_searched_end_it),
        IN_WORLD(secrets_are_found_in_roots_too),
        IN_WORLD(each_failed_allocation_ends_the_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
