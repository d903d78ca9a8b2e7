/*
 * What of the patterns exists, and that the kernel hides exactly that.
 */
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
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "fault.h"
#include "fixture.h"
#include "sandbox/deny.h"
#include "sandbox/linux/deny_expand.h"
#include "sandbox/linux/ready.h"

static void
deny(struct place *p, const char *pattern)
{
    p->policy.deny_read.max = 64;
    assert_int_equal(strv_add(&p->policy.deny_read, pattern), SY_E_OK);
}

static void
deny_in(struct place *p, const char *name)
{
    deny(p, place_path(p, name));
}

/* --- acts --- */

static int
act_read(const void *path)
{
    char byte;
    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : errno;
}

static int
act_map(const void *path)
{
    SY_FD fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return errno;
    }
    return mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED ? 0 : errno;
}

static int
act_execute(const void *path)
{
    char *const argv[] = {mem_unconst(path), NULL};

    (void)execv(path, argv);
    return errno;
}

static int
act_list(const void *path)
{
    DIR *d = opendir(path);

    return d != NULL ? 0 : errno;
}

static int
act_read_at(const void *path)
{
    char dir[512];
    char byte;
    const char *slash = strrchr(path, '/');

    (void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - (const char *)path), (const char *)path);

    SY_FD at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    SY_FD fd = openat(at, slash + 1, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : errno;
}

/* A hard link of it into the workspace, to be read there. */
static int
act_link_in(const void *path)
{
    return link(path, "linked-in") == 0 ? act_read("linked-in") : errno;
}

static int
act_reopen(const void *path)
{
    char name[64];
    SY_FD fd = open(path, O_PATH | O_CLOEXEC);

    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return fd >= 0 ? act_read(name) : errno;
}

/* --- what exists --- */

static struct deny_view
expand(const struct place *p, bool is_for_landlock)
{
    struct strv roots = {.max = 8};
    const struct strv none = {0};
    struct deny_view v = {0};
    struct sy_error err = {0};
    const struct deny_request request = {.patterns = &p->policy.deny_read,
                                         .homes = &p->policy.deny_homes,
                                         .allow_read = &none,
                                         .roots = &roots,
                                         .is_for_landlock = is_for_landlock};

    assert_int_equal(strv_add(&roots, place_path(p, "W")), SY_E_OK);
    if (deny_expand(&v, &request, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    strv_fini(&roots);
    return v;
}

static const struct deny_object *
object(const struct place *p, const struct deny_view *v, const char *name)
{
    for (size_t i = 0; i < v->n_objects; i++) {
        if (str_eq(v->objects[i].path, place_path(p, name))) {
            return &v->objects[i];
        }
    }
    fail_msg("%s is not found", name);
    return &v->objects[0];
}

static void
links_lead_to_what_is_hidden_and_loops_end(void **state)
{
    struct place *p = *state;

    place_mkdir(p, "O/real");
    place_mkdir(p, "O/real/keys");
    place_file(p, "O/real/keys/id", "s");
    place_link(p, "real", "O/alias");
    place_link(p, "real/keys", "O/keys");
    place_link(p, "loop", "O/loop");
    place_link(p, "there", "O/back");
    place_link(p, "back", "O/there");
    place_link(p, "nowhere", "O/dangling");
    place_mkdir(p, "W/sub");
    place_link(p, "/etc", "W/sub/.env");
    deny_in(p, "O/alias/keys/i*");
    deny_in(p, "O/keys");
    deny_in(p, "O/loop");
    deny_in(p, "O/back/x");
    deny_in(p, "O/dangling");
    deny_in(p, "W/**/.env");

    struct deny_view v = expand(p, false);

    /* The directory as a whole; the file in it needs no further hiding. */
    assert_true(object(p, &v, "O/real/keys")->is_dir);
    /* A link that a command may have made hides nothing elsewhere. */
    assert_true(object(p, &v, "W/sub/.env")->is_link);
    assert_true(object(p, &v, "W/sub/.env")->is_in_root);
    assert_int_equal(v.n_objects, 2);
    deny_view_fini(&v);

    v = expand(p, true);
    assert_int_equal(v.unsearched.n, 1);
    assert_int_equal(v.n_objects, 1);
    deny_view_fini(&v);
}

static void
a_home_has_all_defaults_also_behind_a_link(void **state)
{
    struct place *p = *state;

    place_mkdir(p, "O/data");
    place_mkdir(p, "O/data/.ssh");
    place_mkdir(p, "O/data/.config");
    place_file(p, "O/data/.config/gh", "t");
    place_file(p, "O/data/.gitconfig", "t");
    place_link(p, "data", "O/home");
    p->policy.deny_homes.max = 1;
    assert_int_equal(strv_add(&p->policy.deny_homes, place_path(p, "O/home")), SY_E_OK);

    struct deny_view v = expand(p, true);

    assert_true(object(p, &v, "O/data/.config/gh")->rule >= DENY_HOME);
    assert_int_equal(v.n_objects, 2);
    assert_true(object(p, &v, "O/data/.ssh")->rule >= DENY_HOME);
    deny_view_fini(&v);
}

static void
a_wildcard_where_nothing_can_be_listed_is_an_error(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    assert_int_equal(chmod(p->base, 0755), 0);
    place_mkdir(p, "O/x-only");
    place_file(p, "O/x-only/known", "s");
    deny_in(p, "O/x-only/k*");
    place_ready(p); /* the control: listable, it is fine */
    assert_int_equal(chmod(place_path(p, "O/x-only"), 0111), 0);

    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        /* Root lists everything. */
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(99);
        }

        enum sy_code rc = place_try(p, &err);

        if (rc != SY_E_CONFIG || strstr(err.msg, "name the files themselves") == NULL) {
            _exit(1);
        }
        /* By its name it is found all the same. */
        mem_free(p->policy.deny_read.v[0]);
        p->policy.deny_read.v[0] = mem_strdup(place_path(p, "O/x-only/known"));
        _exit(place_try(p, &err) == SY_E_OK &&
                      place_run(p, true, act_read, place_path(p, "O/x-only/known")) == EACCES &&
                      sandbox_ready_unheld(p->ready, 0) == NULL
                  ? 0
                  : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(place_path(p, "O/x-only"), 0755), 0);
    assert_int_equal(status, 0);
}

/* --- what the kernel does --- */

static void
build_secrets(struct place *p)
{
    place_mkdir(p, "O/.ssh");
    place_mkdir(p, "O/.ssh/old");
    place_mkdir(p, "O/pub");
    place_file(p, "O/.ssh/id", "secret");
    place_file(p, "O/.ssh/old/id", "secret");
    place_file(p, "O/.netrc", "secret");
    place_file(p, "O/.gitconfig", "open");
    place_file(p, "O/pub/page", "open");
    place_file(p, "W/own", "open");
    place_link(p, "../O/.ssh/id", "W/to-secret");
    place_link(p, "../O/pub/page", "W/to-page");
    place_link(p, ".ssh", "O/pub-ssh");
    deny_in(p, "O/.ssh");
    deny_in(p, "O/.netrc");
    deny_in(p, "O/.missing");
}

static void
secrets_are_unreadable_by_every_way_and_neighbours_are_not(void **state)
{
    struct place *p = *state;
    place_act *const acts[] = {act_read, act_map, act_read_at, act_reopen};
    char names[6][512];

    build_secrets(p);
    (void)snprintf(names[0], sizeof(names[0]), "%s", place_path(p, "O/.ssh/id"));
    (void)snprintf(names[1], sizeof(names[1]), "%s", place_path(p, "O/.ssh/old/id"));
    (void)snprintf(names[2], sizeof(names[2]), "%s", place_path(p, "W/to-secret"));
    (void)snprintf(names[3], sizeof(names[3]), "/proc/self/root%s", place_path(p, "O/.netrc"));
    (void)snprintf(names[4], sizeof(names[4]), "%s", place_path(p, "W/../O/pub/../.ssh/id"));
    (void)snprintf(names[5], sizeof(names[5]), "%s", place_path(p, "O/pub-ssh/id"));
    place_ready(p);
    assert_int_equal(sandbox_plan_feature(p->plan, FEATURE_DENY_READ), FEATURE_ENFORCED);
    assert_null(sandbox_ready_unheld(p->ready, 0));
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]); k++) {
            assert_int_equal(place_run(p, false, acts[k], names[i]), 0);
            assert_int_equal(place_run(p, true, acts[k], names[i]), EACCES);
        }
    }
    for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]); k++) {
        assert_int_equal(place_run(p, true, acts[k], place_path(p, "O/.gitconfig")), 0);
        assert_int_equal(place_run(p, true, acts[k], place_path(p, "O/pub/page")), 0);
        assert_int_equal(place_run(p, true, acts[k], place_path(p, "W/to-page")), 0);
        assert_int_equal(place_run(p, true, acts[k], place_path(p, "W/own")), 0);
    }
    assert_int_equal(place_run(p, true, act_read, "/proc/self/status"), 0);
    assert_int_equal(place_run(p, true, act_read, "/proc/sys/kernel/osrelease"), 0);
    assert_int_equal(place_run(p, true, act_read, "/dev/zero"), 0);
    assert_int_equal(place_run(p, true, act_read, "/bin/sh"), 0);
    assert_int_equal(place_run(p, true, act_list, "/"), 0);
    assert_int_equal(place_run(p, true, act_list, place_path(p, "O")), 0);
}

static void
a_secret_program_does_not_run_and_no_link_of_a_secret_is_made(void **state)
{
    struct place *p = *state;

    build_secrets(p);
    assert_int_equal(symlink("/bin/true", place_path(p, "O/t")), 0);
    place_file(p, "O/.ssh/tool", "#!/bin/sh\nexit 0\n");
    place_file(p, "O/pub/tool", "#!/bin/sh\nexit 0\n");
    assert_int_equal(chmod(place_path(p, "O/.ssh/tool"), 0755), 0);
    assert_int_equal(chmod(place_path(p, "O/pub/tool"), 0755), 0);
    place_ready(p);
    assert_int_equal(place_run(p, true, act_execute, place_path(p, "O/.ssh/tool")), EACCES);
    assert_int_equal(place_run(p, false, act_execute, place_path(p, "O/.ssh/tool")), 0);
    assert_int_equal(place_run(p, true, act_execute, place_path(p, "O/pub/tool")), 0);
    assert_int_equal(place_run(p, true, act_execute, place_path(p, "O/t")), 0);

    assert_int_equal(chdir(place_path(p, "W")), 0);
    assert_int_not_equal(place_run(p, true, act_link_in, place_path(p, "O/.netrc")), 0);
    assert_int_equal(place_run(p, false, act_link_in, place_path(p, "O/.netrc")), 0);
    assert_int_equal(unlink("linked-in"), 0);
    assert_int_equal(chdir("/"), 0);
}

/* A second name beside it is no way around; one elsewhere is, and is told. */
static void
hard_links_of_a_secret_are_told(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    build_secrets(p);
    assert_int_equal(link(place_path(p, "O/.netrc"), place_path(p, "O/beside")), 0);
    place_ready(p);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/beside")), EACCES);
    assert_int_equal(place_run(p, false, act_read, place_path(p, "O/beside")), 0);
    assert_string_equal(sandbox_ready_unheld(p->ready, 0), place_path(p, "O/.netrc"));
    assert_int_equal(sandbox_plan_adopt(p->plan, p->ready, &err), SY_E_OK);
    assert_int_equal(sandbox_plan_feature(p->plan, FEATURE_DENY_READ), FEATURE_EMULATED);
    assert_int_equal(rename(place_path(p, "O/beside"), place_path(p, "O/pub/far")), 0);
    place_ready(p);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/pub/far")), 0);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/.netrc")), EACCES);
}

/* Landlock grants a root with all that is in it: what can't be held is refused, not told. */
static void
what_lies_in_a_root_is_refused_without_mounts(void **state)
{
    struct place *p = *state;
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};

    place_file(p, "W/.env", "secret");
    deny_in(p, "W/.env");
    assert_true(sandbox_policy_needs_mounts(&p->policy));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, place_path(p, "W/.env")));
    assert_non_null(strstr(err.msg, "only the full tier can hold it: work in another directory"));
    assert_non_null(strstr(err.msg, "take it out of sandbox.deny_read"));
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_READ, ".env", &err), SY_E_SANDBOX);

    /* With nothing in a root, it is held. */
    p->policy.mode = SANDBOX_READ_ONLY;
    assert_false(sandbox_policy_needs_mounts(&p->policy));
    place_ready(p);
    assert_null(sandbox_ready_unheld(p->ready, 0));
    assert_int_equal(place_run(p, true, act_read, place_path(p, "W/.env")), EACCES);
    assert_int_equal(place_run(p, false, act_read, place_path(p, "W/.env")), 0);
}

static void
what_needs_mounts_is_known_by_text(void **state)
{
    struct place *p = *state;

    p->policy.deny_homes.max = 1;
    assert_int_equal(strv_add(&p->policy.deny_homes, place_path(p, "W/home")), SY_E_OK);
    assert_true(sandbox_policy_needs_mounts(&p->policy));
    strv_fini(&p->policy.deny_homes);
    p->policy.deny_homes.max = 1;
    assert_int_equal(strv_add(&p->policy.deny_homes, p->base), SY_E_OK);
    assert_false(sandbox_policy_needs_mounts(&p->policy)); /* no default is W or below it */
    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup(place_path(p, ".config"));
    assert_true(sandbox_policy_needs_mounts(&p->policy));
    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup(place_path(p, "W"));
    deny_in(p, "*/secrets");
    assert_true(sandbox_policy_needs_mounts(&p->policy));
}

/* Where mounts hide it, Landlock stays out of the way, and roots are no exception. */
static void
mounts_are_given_all_that_there_is_to_hide(void **state)
{
    struct place *p = *state;
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};

    build_secrets(p);
    place_mkdir(p, "W/d");
    place_file(p, "W/d/.env", "secret");
    deny_in(p, "W/**/.env");
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX); /* not without them */
    p->plan->denies_by_mount = true;
    assert_int_equal(sandbox_ready_new(&p->ready, p->plan, &err), SY_E_OK);
    assert_null(sandbox_ready_unheld(p->ready, 0));
    assert_true(object(p, ready_denied(p->ready), "W/d/.env")->is_in_root);
    assert_false(object(p, ready_denied(p->ready), "O/.netrc")->is_in_root);
    assert_true(object(p, ready_denied(p->ready), "O/.ssh")->is_dir);
    assert_int_equal(ready_denied(p->ready)->n_objects, 3);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/.netrc")), 0);

    static const struct {
        const char *object;
        bool is_allowed;
    } cases[] = {
        {"d/.env",          false},
        {"../O/.ssh",       false},
        {"../O/.ssh/old",   false},
        {"to-secret",       false},
        {"own",             true },
        {"../O",            true },
        {"../O/.gitconfig", true },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_READ, cases[i].object, &err),
                         SY_E_OK);
        assert_int_equal(said.is_allowed, cases[i].is_allowed);
    }
    assert_int_equal(sandbox_explain(&said, p->plan, OPERATION_READ, "../O/.env", &err), SY_E_OK);
    assert_non_null(strstr(said.rule, "nothing is there"));
}

/* As a session does it: made anew until it holds. */
static void
settle(struct place *p)
{
    do {
        place_ready(p);
    } while (!sandbox_ready_is_fresh(p->ready));
}

static void
what_appears_or_changes_makes_it_stale(void **state)
{
    struct place *p = *state;

    build_secrets(p);
    settle(p);
    place_file(p, "O/.missing", "secret");
    assert_false(sandbox_ready_is_fresh(p->ready));
    /* Even before it is made anew, nothing new beside a secret is read. */
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/.missing")), EACCES);
    settle(p);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/.missing")), EACCES);

    /* An editor saves by renaming: the file is another one then. */
    place_file(p, "O/.gitconfig.new", "open");
    assert_int_equal(rename(place_path(p, "O/.gitconfig.new"), place_path(p, "O/.gitconfig")), 0);
    assert_false(sandbox_ready_is_fresh(p->ready));
    settle(p);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/.gitconfig")), 0);

    /* What changes elsewhere does not matter. (Others may work above our place meanwhile.) */
    bool is_fresh = false;

    for (int i = 0; i < 100 && !is_fresh; i++) {
        settle(p);
        place_file(p, "O/pub/new", "open");
        is_fresh = sandbox_ready_is_fresh(p->ready);
    }
    assert_true(is_fresh);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/pub/new")), 0);
    assert_int_equal(rename(place_path(p, "O/.ssh"), place_path(p, "O/moved")), 0);
    assert_false(sandbox_ready_is_fresh(p->ready));
}

static void
nothing_to_hide_restricts_no_reading(void **state)
{
    struct place *p = *state;

    place_file(p, "O/open", "1");
    deny_in(p, "O/.missing");
    settle(p);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/open")), 0);
    place_file(p, "O/late", "1");
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/late")), 0);
    assert_false(sandbox_ready_is_fresh(p->ready));
}

static void
patterns_that_can_not_be_exact_are_errors_of_the_plan(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    deny(p, "relative");
    assert_int_equal(place_try(p, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "'relative' is not absolute"));
    strv_fini(&p->policy.deny_read);
    deny(p, "/etc/**/secret");
    assert_int_equal(place_try(p, &err), SY_E_CONFIG);
    assert_non_null(strstr(err.msg, "searches whole trees outside of the writable roots"));
    strv_fini(&p->policy.deny_read);
    deny_in(p, "W/**/.env");
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "W/**/.env"));
    strv_fini(&p->policy.deny_read);
    deny_in(p, "O/whole/**");
    place_mkdir(p, "O/whole");
    place_file(p, "O/whole/f", "1");
    place_ready(p);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/whole/f")), EACCES);
    assert_int_equal(place_run(p, false, act_read, place_path(p, "O/whole/f")), 0);
}

static enum sy_code
make_ready(void *arg)
{
    struct place *p = arg;
    struct sandbox_plan *plan = NULL;
    struct sandbox_ready *ready = NULL;
    struct sandbox_explanation said = {0};
    struct sy_error err = {0};
    enum sy_code rc = sandbox_plan_new(&plan, &p->policy, &p->caps, &err);

    if (rc != SY_E_OK) {
        return rc;
    }
    plan->denies_by_mount = p->caps.has_full_tier;
    rc = sandbox_ready_new(&ready, plan, &err);
    if (rc == SY_E_OK) {
        rc = sandbox_plan_adopt(plan, ready, &err);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_explain(&said, plan, OPERATION_READ, "to-secret", &err);
    }
    if (rc == SY_E_OK) {
        rc = sandbox_explain(&said, plan, OPERATION_RENAME, "own", &err);
    }
    sandbox_ready_free(ready);
    sandbox_plan_free(plan);
    return rc;
}

static void
all_of_it_survives_each_failed_allocation(void **state)
{
    struct place *p = *state;

    build_secrets(p);
    deny_in(p, "O/pub-ssh/i*");
    p->policy.deny_homes.max = 1;
    assert_int_equal(strv_add(&p->policy.deny_homes, place_path(p, "O")), SY_E_OK);
    p->policy.own_dirs.max = 2;
    assert_int_equal(strv_add(&p->policy.own_dirs, place_path(p, "O/to/own")), SY_E_OK);
    fault_run(make_ready, p);
    /* The same with mounts, which hold what is in a root too. */
    deny_in(p, "W/**/.env");
    assert_int_equal(strv_add(&p->policy.own_dirs, place_path(p, "W/own")), SY_E_OK);
    p->caps.has_full_tier = true;
    fault_run(make_ready, p);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(links_lead_to_what_is_hidden_and_loops_end),
        IN_A_PLACE(a_home_has_all_defaults_also_behind_a_link),
        IN_A_PLACE(a_wildcard_where_nothing_can_be_listed_is_an_error),
        IN_A_PLACE(secrets_are_unreadable_by_every_way_and_neighbours_are_not),
        IN_A_PLACE(a_secret_program_does_not_run_and_no_link_of_a_secret_is_made),
        IN_A_PLACE(hard_links_of_a_secret_are_told),
        IN_A_PLACE(what_lies_in_a_root_is_refused_without_mounts),
        IN_A_PLACE(what_needs_mounts_is_known_by_text),
        IN_A_PLACE(mounts_are_given_all_that_there_is_to_hide),
        IN_A_PLACE(what_appears_or_changes_makes_it_stale),
        IN_A_PLACE(nothing_to_hide_restricts_no_reading),
        IN_A_PLACE(patterns_that_can_not_be_exact_are_errors_of_the_plan),
        IN_A_PLACE(all_of_it_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
