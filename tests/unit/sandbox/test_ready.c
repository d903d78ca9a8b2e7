#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "fault.h"
#include "fixture.h"
#include "sandbox/linux/walk.h"

static int
act_create(const void *path)
{
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) >= 0 ? 0 : errno;
}

static int
act_unlink(const void *path)
{
    return unlink(path) == 0 ? 0 : errno;
}

static int
act_truncate(const void *path)
{
    return truncate(path, 0) == 0 ? 0 : errno;
}

static int
act_read(const void *path)
{
    return open(path, O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno;
}

struct pair {
    const char *from;
    const char *to;
};

static int
act_rename(const void *arg)
{
    const struct pair *p = arg;

    return rename(p->from, p->to) == 0 ? 0 : errno;
}

static int
act_link(const void *arg)
{
    const struct pair *p = arg;

    return link(p->from, p->to) == 0 ? 0 : errno;
}

static void
writes_stay_inside_the_roots(void **state)
{
    struct place *p = *state;

    place_file(p, "O/victim", "precious");
    place_file(p, "W/own", "text");
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "W/new")), 0);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/new")), EACCES);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/victim")), EACCES);
    assert_int_equal(place_run(p, true, act_unlink, place_path(p, "O/victim")), EACCES);
    assert_int_equal(place_run(p, true, act_truncate, place_path(p, "O/victim")),
                     p->caps.landlock_abi >= 3 ? EACCES : 0);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "O/victim")), 0);
    assert_int_equal(place_run(p, true, act_truncate, place_path(p, "W/own")), 0);
    assert_int_equal(place_run(p, true, act_unlink, place_path(p, "W/own")), 0);
    /* The same acts succeed without the sandbox. */
    assert_int_equal(place_run(p, false, act_create, place_path(p, "O/new")), 0);
    assert_int_equal(place_run(p, false, act_truncate, place_path(p, "O/victim")), 0);
    assert_int_equal(place_run(p, false, act_unlink, place_path(p, "O/victim")), 0);
}

static void
files_move_and_link_between_directories_of_a_root(void **state)
{
    struct place *p = *state;
    struct pair inside = {place_path(p, "W/a/f"), place_path(p, "W/b/f")};
    struct pair linked = {place_path(p, "W/b/f"), place_path(p, "W/a/g")};
    struct pair out = {place_path(p, "W/b/f"), place_path(p, "O/f")};
    struct pair in = {place_path(p, "O/x"), place_path(p, "W/x")};

    place_mkdir(p, "W/a");
    place_mkdir(p, "W/b");
    place_file(p, "W/a/f", "1");
    place_file(p, "O/x", "1");
    for (int network = 0; network < 2; network++) {
        p->policy.has_network = network == 1;
        place_ready(p);
        if (p->caps.landlock_abi >= 2) {
            assert_int_equal(place_run(p, true, act_rename, &inside), 0);
            assert_int_equal(place_run(p, true, act_link, &linked), 0);
            assert_int_equal(unlink(linked.to), 0);
        }
        assert_int_not_equal(place_run(p, true, act_rename, &out), 0);
        assert_int_not_equal(place_run(p, true, act_rename, &in), 0);
        assert_int_not_equal(place_run(p, true, act_link, &in), 0);
        assert_int_equal(rename(inside.to, inside.from), 0);
    }
    assert_int_equal(place_run(p, false, act_rename, &in), 0);
}

static void
a_read_only_policy_writes_to_devices_alone(void **state)
{
    struct place *p = *state;

    p->policy.mode = SANDBOX_READ_ONLY;
    place_file(p, "W/own", "text");
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "W/new")), EACCES);
    assert_int_equal(place_run(p, true, act_unlink, place_path(p, "W/own")), EACCES);
    assert_int_equal(place_run(p, true, act_create, "/dev/null"), 0);
    assert_int_equal(place_run(p, true, act_create, "/dev/zero"), 0);
    assert_int_equal(place_run(p, true, act_create, "/dev/shm/sandbox-test-never"), EACCES);
    assert_int_equal(place_run(p, true, act_read, place_path(p, "W/own")), 0);
}

static void
a_root_may_be_a_single_file(void **state)
{
    struct place *p = *state;

    place_file(p, "O/log", "x");
    place_file(p, "O/other", "x");
    place_add_root(p, place_path(p, "O/log"));
    place_ready(p);
    assert_int_equal(place_run(p, true, act_truncate, place_path(p, "O/log")), 0);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/other")), EACCES);
    assert_int_equal(place_run(p, true, act_unlink, place_path(p, "O/log")), EACCES);
}

static void
a_missing_configured_root_is_an_error_that_names_it(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    place_add_root(p, place_path(p, "O/gone"));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "O/gone"));
    assert_non_null(strstr(err.msg, "writable_roots"));
    assert_null(p->ready);

    place_file(p, "O/file", "");
    mem_free(p->policy.writable_roots.v[0]);
    p->policy.writable_roots.v[0] = mem_strdup(place_path(p, "O/file/below"));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "O/file/below"));
}

static int
try_as_nobody(struct place *p)
{
    struct sy_error err = {0};

    /* Root passes everywhere. */
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
        return errno;
    }
    if (place_try(p, &err) != SY_E_SANDBOX) {
        return 200;
    }
    return strstr(err.msg, "Permission denied") != NULL &&
                   strstr(err.msg, "x on the directories above it") != NULL &&
                   strstr(err.msg, "make it") == NULL
               ? 0
               : 201;
}

static void
a_root_that_can_not_be_reached_is_not_to_be_made(void **state)
{
    struct place *p = *state;
    int status = 0;

    place_mkdir(p, "O/shut");
    place_mkdir(p, "O/shut/root");
    place_add_root(p, place_path(p, "O/shut/root"));
    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup("/"); /* which everybody reaches */
    place_ready(p);                  /* the control: now it is fine */
    assert_int_equal(chmod(place_path(p, "O/shut"), 0), 0);

    pid_t child = fork();

    if (child == 0) {
        _exit(try_as_nobody(p));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(place_path(p, "O/shut"), 0755), 0);
    assert_int_equal(status, 0);
}

static void
the_advice_fits_where_the_root_comes_from(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    place_add_root(p, place_path(p, "O/gone"));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "make it, or take it out of sandbox.writable_roots"));

    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup(place_path(p, "O/no-cwd"));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "make it, or work in another directory"));
    assert_null(strstr(err.msg, "take it out"));

    place_file(p, "O/file", "");
    mem_free(p->policy.cwd);
    p->policy.cwd = mem_strdup(place_path(p, "O/file/cwd"));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "Not a directory; work in another directory"));
}

static void
a_missing_tmpdir_is_left_out_and_told(void **state)
{
    struct place *p = *state;

    p->policy.excludes_tmpdir = false;
    p->policy.tmpdir = mem_strdup(place_path(p, "O/no-tmp"));
    place_ready(p);
    assert_string_equal(sandbox_ready_skipped(p->ready, 0), place_path(p, "O/no-tmp"));
    assert_true(sandbox_ready_is_fresh(p->ready));
    place_mkdir(p, "O/no-tmp");
    assert_false(sandbox_ready_is_fresh(p->ready));
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/no-tmp/x")), 0);
}

static void
a_root_through_a_link_that_commands_can_change_is_refused(void **state)
{
    struct place *p = *state;
    struct sy_error err = {0};

    place_mkdir(p, "O/real");
    place_link(p, "real", "O/link");
    place_add_root(p, place_path(p, "O/link"));
    place_ready(p); /* a link outside every root is the person's own */
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/real/x")), 0);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/y")), EACCES);

    place_link(p, place_path(p, "O"), "W/build");
    place_add_root(p, place_path(p, "W/build"));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "W/build"));
    assert_non_null(strstr(err.msg, "name the real"));

    /* A link that stays inside its root widens nothing. */
    assert_int_equal(unlink(place_path(p, "W/build")), 0);
    place_mkdir(p, "W/inner");
    place_link(p, "inner", "W/build");
    assert_int_equal(place_try(p, &err), SY_E_OK);
}

/* As it is where a command of somebody else swaps the two between the look at a grant and this. */
static void
a_granted_root_is_reached_by_no_link_at_all(void **state)
{
    struct place *p = *state;
    SY_AUTO(strv_fini) struct strv roots = {.max = 8};
    struct sy_error err = {0};

    place_mkdir(p, "O/real");
    place_mkdir(p, "O/victim");
    place_add_root(p, place_path(p, "O/real"));
    p->policy.n_granted_roots = 1;
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/real/x")), 0);
    assert_int_equal(rename(place_path(p, "O/real"), place_path(p, "O/was")), 0);
    place_link(p, "victim", "O/real");
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "granted by a person"));
    assert_int_equal(walk_add_roots(&roots, &p->policy, &err), SY_E_OK);
    assert_true(strv_has(&roots, place_path(p, "O/real")));
    assert_false(strv_has(&roots, place_path(p, "O/victim")));
    assert_int_equal(unlink(place_path(p, "O/real")), 0);
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "the grant does not hold"));

    /* The control: a root of configuration may be one, which is the person's own. */
    place_link(p, "victim", "O/real");
    p->policy.n_granted_roots = 0;
    assert_int_equal(place_try(p, &err), SY_E_OK);
}

/* Another engine's commands may write above the workspace, and swap it. */
static void
a_workspace_that_was_resolved_is_reached_by_no_link(void **state)
{
    struct place *p = *state;
    SY_AUTO(strv_fini) struct strv roots = {.max = 8};
    struct sy_error err = {0};

    place_mkdir(p, "O/victim");
    p->policy.cwd_has_no_links = true;
    place_ready(p);
    assert_int_equal(walk_check_cwd(&p->policy, &err), SY_E_OK);
    assert_int_equal(rename(place_path(p, "W"), place_path(p, "was")), 0);
    place_link(p, "O/victim", "W");
    assert_false(sandbox_ready_is_fresh(p->ready));
    assert_int_equal(place_try(p, &err), SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "is reached by the symbolic link"));
    assert_int_equal(walk_check_cwd(&p->policy, &err), SY_E_SANDBOX);
    assert_int_equal(walk_add_roots(&roots, &p->policy, &err), SY_E_SANDBOX);
    assert_int_equal(roots.n, 0);

    /* One that was made again is the workspace. */
    assert_int_equal(unlink(place_path(p, "W")), 0);
    place_mkdir(p, "W");
    place_ready(p);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "W/x")), 0);

    /* The control: a policy of somebody who has not resolved it. */
    p->policy.cwd_has_no_links = false;
    assert_int_equal(unlink(place_path(p, "W/x")), 0);
    assert_int_equal(rmdir(place_path(p, "W")), 0);
    place_link(p, "O/victim", "W");
    assert_int_equal(place_try(p, &err), SY_E_OK);
    assert_int_equal(unlink(place_path(p, "W")), 0);
    assert_int_equal(rename(place_path(p, "was"), place_path(p, "W")), 0);
}

static void
a_replaced_root_is_not_fresh(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_true(sandbox_ready_is_fresh(p->ready));
    place_file(p, "W/f", "");
    assert_true(sandbox_ready_is_fresh(p->ready));
    assert_int_equal(rename(place_path(p, "W"), place_path(p, "W.old")), 0);
    assert_false(sandbox_ready_is_fresh(p->ready));
    place_mkdir(p, "W");
    assert_false(sandbox_ready_is_fresh(p->ready));
    assert_int_equal(rmdir(place_path(p, "W")), 0);
    assert_int_equal(rename(place_path(p, "W.old"), place_path(p, "W")), 0);
    assert_true(sandbox_ready_is_fresh(p->ready));
}

static void
the_ruleset_is_closed_on_exec_and_serves_many(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_true(sandbox_ready_fd(p->ready) >= 0);
    assert_int_equal(fcntl(sandbox_ready_fd(p->ready), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(place_run(p, true, act_create, place_path(p, "O/new")), EACCES);
    }
}

/* What /proc/self/status and the limits say after sandbox_apply. */
static int
act_inspect(const void *arg)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    struct rlimit core;

    (void)arg;
    if (syscall(SYS_capget, &header, caps) != 0 ||
        (caps[0].effective | caps[0].permitted | caps[0].inheritable | caps[1].effective |
         caps[1].permitted | caps[1].inheritable) != 0) {
        return 1;
    }
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur != 0 || core.rlim_max != 0) {
        return 2;
    }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) {
        return 3;
    }
    if (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0) {
        return 4;
    }
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0 ? 5 : 0;
}

static void
the_child_has_no_privilege_left_and_no_core_dumps(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_int_equal(place_run(p, true, act_inspect, NULL), 0);
    assert_int_not_equal(place_run(p, false, act_inspect, NULL), 0);
}

static int
act_limits_alone(const void *arg)
{
    enum sandbox_stage stage = STAGE_NONE;
    struct rlimit core;

    if (sandbox_apply(arg, &stage) != 0 || getrlimit(RLIMIT_CORE, &core) != 0) {
        return 1;
    }
    if (core.rlim_cur != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) {
        return 2;
    }
    return 0;
}

static void
an_unenforced_mode_applies_nothing_but_the_limits(void **state)
{
    struct place *p = *state;

    assert_int_equal(place_run(p, false, act_limits_alone, NULL), 0);
    p->policy.mode = SANDBOX_DANGER_FULL_ACCESS;
    place_ready(p);
    assert_int_equal(place_run(p, false, act_limits_alone, p->ready), 0);
    assert_int_equal(place_run(p, true, act_create, place_path(p, "O/new")), 0);
}

static int
act_errno_untouched(const void *arg)
{
    enum sandbox_stage stage = STAGE_NONE;
    char stays[] = "stays";

    errno = E2BIG;
    if (sandbox_apply(arg, &stage) != 0) {
        return 1;
    }
    (void)stays;
    return errno == E2BIG ? 0 : 2;
}

static int
act_closed_ruleset(const void *arg)
{
    enum sandbox_stage stage = STAGE_NONE;

    (void)close(sandbox_ready_fd(arg)); // a broken descriptor, on purpose
    return sandbox_apply(arg, &stage) == EBADF && stage == STAGE_LANDLOCK ? 0 : 1;
}

static void
applying_keeps_errno_and_names_the_failing_stage(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_int_equal(place_run(p, false, act_errno_untouched, p->ready), 0);
    assert_int_equal(place_run(p, false, act_closed_ruleset, p->ready), 0);
}

static int
act_kill_parent(const void *arg)
{
    (void)arg;
    return kill(getppid(), 0) == 0 ? 0 : errno;
}

static int
act_kill_own_child(const void *arg)
{
    pid_t pid = fork();
    int status = 0;

    (void)arg;
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    if (pid < 0 || kill(pid, SIGKILL) != 0) {
        return errno;
    }
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 0 : 1;
}

static void
signals_reach_own_children_and_nobody_else(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_int_equal(place_run(p, true, act_kill_own_child, NULL), 0);
    assert_int_equal(place_run(p, true, act_kill_parent, NULL),
                     p->caps.landlock_abi >= 6 ? EPERM : 0);
    assert_int_equal(place_run(p, false, act_kill_parent, NULL), 0);
}

static int
act_nested(const void *arg)
{
    enum sandbox_stage stage = STAGE_NONE;

    return sandbox_apply(arg, &stage);
}

static void
a_sandbox_can_be_made_inside_a_sandbox(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_int_equal(place_run(p, true, act_nested, p->ready), 0);
}

static void
the_probe_finds_what_this_kernel_has(void **state)
{
    struct place *p = *state;
    struct sandbox_caps deep;

    sandbox_probe_deep(&deep);
    assert_true(deep.landlock_abi == p->caps.landlock_abi);
    assert_true(deep.release[0] != '\0');
    assert_true(deep.landlock_abi > 0 || deep.landlock_errno != 0);
    assert_true(waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD);
}

static int
act_probe_inside(const void *arg)
{
    struct sandbox_caps caps;

    (void)arg;
    sandbox_probe_deep(&caps);
    return caps.landlock_abi > 0 && caps.has_seccomp_filter && !caps.has_user_namespaces ? 0 : 1;
}

static void
the_probe_tells_the_truth_inside_a_sandbox(void **state)
{
    struct place *p = *state;

    place_ready(p);
    assert_int_equal(place_run(p, true, act_probe_inside, NULL), 0);
}

static enum sy_code
make_ready(void *arg)
{
    struct place *p = arg;
    struct sandbox_ready *ready = NULL;
    struct sy_error err = {0};
    enum sy_code rc = sandbox_ready_new(&ready, p->plan, &err);

    sandbox_ready_free(ready);
    return rc;
}

static void
preparing_survives_each_failed_allocation(void **state)
{
    struct place *p = *state;

    place_mkdir(p, "O/real");
    place_link(p, "real", "O/link");
    place_add_root(p, place_path(p, "O/link"));
    place_ready(p);
    fault_run(make_ready, p);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_setup, place_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_PLACE(writes_stay_inside_the_roots),
        IN_A_PLACE(files_move_and_link_between_directories_of_a_root),
        IN_A_PLACE(a_read_only_policy_writes_to_devices_alone),
        IN_A_PLACE(a_root_may_be_a_single_file),
        IN_A_PLACE(a_missing_configured_root_is_an_error_that_names_it),
        IN_A_PLACE(a_root_that_can_not_be_reached_is_not_to_be_made),
        IN_A_PLACE(the_advice_fits_where_the_root_comes_from),
        IN_A_PLACE(a_missing_tmpdir_is_left_out_and_told),
        IN_A_PLACE(a_root_through_a_link_that_commands_can_change_is_refused),
        IN_A_PLACE(a_granted_root_is_reached_by_no_link_at_all),
        IN_A_PLACE(a_workspace_that_was_resolved_is_reached_by_no_link),
        IN_A_PLACE(a_replaced_root_is_not_fresh),
        IN_A_PLACE(the_ruleset_is_closed_on_exec_and_serves_many),
        IN_A_PLACE(the_child_has_no_privilege_left_and_no_core_dumps),
        IN_A_PLACE(an_unenforced_mode_applies_nothing_but_the_limits),
        IN_A_PLACE(applying_keeps_errno_and_names_the_failing_stage),
        IN_A_PLACE(signals_reach_own_children_and_nobody_else),
        IN_A_PLACE(a_sandbox_can_be_made_inside_a_sandbox),
        IN_A_PLACE(the_probe_finds_what_this_kernel_has),
        IN_A_PLACE(the_probe_tells_the_truth_inside_a_sandbox),
        IN_A_PLACE(preparing_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
