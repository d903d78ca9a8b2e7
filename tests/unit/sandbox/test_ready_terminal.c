/* A command's own terminal where those of everybody are in reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "fixture.h"

static int
try_create(const char *path)
{
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    return fd >= 0 ? 0 : errno;
}

static int
act_open(const void *path)
{
    SY_FD fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);

    return fd >= 0 ? 0 : errno;
}

/* A pseudo terminal: both ends, and the name of the second. */
struct terminal {
    int master;
    int slave;
    char name[64];
};

static struct terminal
terminal_open(void)
{
    struct terminal t = {.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};

    assert_true(t.master >= 0);
    assert_int_equal(grantpt(t.master), 0);
    assert_int_equal(unlockpt(t.master), 0);
    assert_int_equal(ptsname_r(t.master, t.name, sizeof(t.name)), 0);
    t.slave = open(t.name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(t.slave >= 0);
    return t;
}

static void
terminal_close(struct terminal *t)
{
    fd_close(&t->slave);
    fd_close(&t->master);
}

/* Opens each way, and closes. The errno values are or'ed: all of them are the same here. */
static int
open_all_ways(const char *path, bool only_reading)
{
    static const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR};
    int sys = 0;

    for (size_t i = 0; i < (only_reading ? 1 : 3); i++) {
        SY_FD fd = open(path, flags[i] | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

        sys |= fd < 0 ? errno : 0;
    }
    return sys;
}

struct terminal_question {
    struct place *p;
    const char *own;
    const char *other;
};

/* In a ruleset that has a terminal: what is wrong with it, by number; 0: nothing. */
static int
judge_terminals(const struct terminal_question *q, int ruleset_fd)
{
    struct sandbox_base base = sandbox_ready_base(q->p->ready);
    enum sandbox_stage stage = STAGE_NONE;

    if (sandbox_apply_privileges(&stage) != 0 ||
        sandbox_apply_paths(&base, ruleset_fd, &stage) != 0) {
        return 1;
    }
    if (open_all_ways(q->own, false) != 0) {
        return 2;
    }
    if (open_all_ways(q->other, false) != EACCES || open_all_ways(q->other, true) != EACCES) {
        return 3;
    }
    if (open_all_ways("/dev/null", false) != 0 || open_all_ways("/dev/ptmx", true) != 0) {
        return 4;
    }
    return try_create(place_path(q->p, "W/new")) == 0 &&
                   try_create(place_path(q->p, "O/new")) == EACCES
               ? 0
               : 5;
}

static size_t
open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

/* 0: nothing is wrong in that ruleset (judge_terminals). */
static int
judge_apart(const struct terminal_question *q, int ruleset_fd)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(judge_terminals(q, ruleset_fd));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void
a_command_may_open_its_own_terminal_and_no_other(void **state)
{
    struct place *p = *state;
    struct terminal own = terminal_open();
    struct terminal other = terminal_open();
    const struct terminal_question q = {p, own.name, other.name};
    struct sy_error err = {0};
    bool keeps = false;
    SY_FD ruleset = -1;

    p->policy.closes_devices = true;
    p->policy.max_tier = TIER_NO_NAMESPACE;
    place_ready(p);
    assert_int_equal(
        sandbox_ready_for_terminal(&ruleset, &keeps, p->ready, p->plan, own.slave, &err), SY_E_OK);
    assert_int_equal(fcntl(ruleset, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);

    assert_int_equal(judge_apart(&q, ruleset), 0);
    /* Outside nothing refuses it; in a sandbox without a terminal both are shut. */
    assert_int_equal(open_all_ways(other.name, false), 0);
    assert_int_equal(place_run(p, true, act_open, own.name), EACCES);
    assert_int_equal(place_run(p, true, act_open, "/dev/tty"),
                     place_run(p, false, act_open, "/dev/tty"));

    /* A root that is another file by now. */
    fd_close(&ruleset);
    assert_int_equal(rename(place_path(p, "W"), place_path(p, "W.old")), 0);
    place_mkdir(p, "W");
    assert_int_equal(
        sandbox_ready_for_terminal(&ruleset, &keeps, p->ready, p->plan, own.slave, &err),
        SY_E_SANDBOX);
    assert_non_null(strstr(err.msg, "replaced"));
    assert_int_equal(ruleset, -1);
    terminal_close(&own);
    terminal_close(&other);
}

/* What was granted stays open for those that follow at once; that makes no difference but in time.
 */
static void
rulesets_made_one_after_the_other_are_alike(void **state)
{
    struct place *p = *state;
    struct terminal own = terminal_open();
    struct terminal other = terminal_open();
    const struct terminal_question forth = {p, own.name, other.name};
    const struct terminal_question back = {p, other.name, own.name};
    struct sy_error err = {0};
    bool keeps = false;

    p->policy.closes_devices = true;
    p->policy.max_tier = TIER_NO_NAMESPACE;
    place_ready(p);
    assert_true(sandbox_ready_rest(p->ready, 0) == UINT64_MAX);

    const size_t before = open_fds();

    /* The first of them keeps nothing; on a busy machine the next may come too late as well. */
    while (!keeps) {
        SY_FD ruleset = -1;

        assert_int_equal(
            sandbox_ready_for_terminal(&ruleset, &keeps, p->ready, p->plan, other.slave, &err),
            SY_E_OK);
        assert_int_equal(judge_apart(&back, ruleset), 0);
    }
    assert_true(open_fds() > before);
    for (int i = 0; i < 2; i++) {
        const struct terminal *t = i == 0 ? &own : &other;
        SY_FD ruleset = -1;

        assert_int_equal(
            sandbox_ready_for_terminal(&ruleset, &keeps, p->ready, p->plan, t->slave, &err),
            SY_E_OK);
        assert_false(keeps); /* it is kept already */
        assert_int_equal(judge_apart(i == 0 ? &forth : &back, ruleset), 0);
    }

    const uint64_t until = sandbox_ready_rest(p->ready, 0);

    assert_true(until > 0 && until < UINT64_MAX);
    assert_true(sandbox_ready_rest(p->ready, until - 1) == until);
    assert_true(open_fds() > before);
    assert_true(sandbox_ready_rest(p->ready, until) == UINT64_MAX);
    assert_int_equal(open_fds(), before);
    terminal_close(&own);
    terminal_close(&other);
}

/* Then each is made anew. */
static void
nothing_is_kept_where_descriptors_are_few(void **state)
{
    struct place *p = *state;
    struct terminal own = terminal_open();
    struct terminal other = terminal_open();
    const struct terminal_question q = {p, own.name, other.name};
    struct rlimit limit = {0};
    struct sy_error err = {0};

    p->policy.closes_devices = true;
    p->policy.max_tier = TIER_NO_NAMESPACE;
    place_ready(p);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);

    const struct rlimit few = {.rlim_cur = 72, .rlim_max = limit.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);

    const size_t before = open_fds();

    for (int i = 0; i < 4; i++) {
        bool keeps = true;
        SY_FD ruleset = -1;

        assert_int_equal(
            sandbox_ready_for_terminal(&ruleset, &keeps, p->ready, p->plan, own.slave, &err),
            SY_E_OK);
        assert_false(keeps);
        assert_int_equal(judge_apart(&q, ruleset), 0);
        fd_close(&ruleset);
        assert_int_equal(open_fds(), before);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    terminal_close(&own);
    terminal_close(&other);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rulesets_made_one_after_the_other_are_alike, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(nothing_is_kept_where_descriptors_are_few, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(a_command_may_open_its_own_terminal_and_no_other,
                                        place_setup, place_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
