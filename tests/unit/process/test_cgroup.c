/*
 * Control groups, where this machine gives any to this user; what is refused and what
 * is no group at all can be tested everywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fault.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "process/cgroup_internal.h"

static const struct resource_limits both = {
    .most = {[RESOURCE_MEMORY] = (uint64_t)64 << 20, [RESOURCE_PROCESSES] = 20}
};

static char directory[64];

static void
write_file(const char *path, const char *text)
{
    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), NULL), SY_E_OK);
}

/* The home of a machine whose one mount, in this directory, is this. */
static enum sy_code
home_of(struct cgroup_home **ret, const char *mount_tail, const char *own, struct sy_error *err)
{
    char mounts[128];
    char groups[128];
    char text[300];

    (void)snprintf(mounts, sizeof(mounts), "%s/mountinfo", directory);
    (void)snprintf(groups, sizeof(groups), "%s/cgroup", directory);
    (void)snprintf(text, sizeof(text), "21 26 0:20 / /proc rw - proc proc rw\n30 1 0:30 / %s %s\n",
                   directory, mount_tail);
    write_file(mounts, text);
    write_file(groups, own);
    return cgroup_home_new(ret, mounts, groups, err);
}

static void
must_find_none(const char *mount_tail, const char *own)
{
    struct cgroup_home *home = NULL;
    struct sy_error err = {0};

    assert_int_equal(home_of(&home, mount_tail, own, &err), SY_E_NOTFOUND);
    assert_null(home);
    assert_true(str_starts(err.msg, "no control groups: "));
    assert_int_equal(rmdir(directory), -1); /* still there: two files are in it */
    assert_int_equal(errno, ENOTEMPTY);
}

static void
what_is_no_hierarchy_is_not_used(void **state)
{
    (void)state;
    must_find_none("rw - ext4 /dev/sda rw", "0::/\n");
    must_find_none("rw - cgroup2 cgroup2 rw", "");
    must_find_none("rw - cgroup cgroup rw,cpu", "1:cpu:/\n");
    must_find_none("rw - cgroup cgroup rw,pids", "1:memory:/\n");
    must_find_none("rw", "0::/\n");
}

static void
a_plain_directory_is_found_out_by_the_try(void **state)
{
    char path[128];

    (void)state;
    /* It looks right up to the first file that only a hierarchy has. */
    must_find_none("rw - cgroup cgroup rw,pids", "1:pids:/\n");
    must_find_none("rw - cgroup cgroup rw,memory", "1:memory:/gone\n");
    (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", directory);
    write_file(path, "cpu memory pids\n");
    must_find_none("rw - cgroup2 cgroup2 rw", "0::/\n");
    assert_int_equal(unlink(path), 0);
}

static void
files_that_are_not_there_are_named(void **state)
{
    struct cgroup_home *home = NULL;
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(cgroup_home_new(&home, "/nowhere/mountinfo", NULL, &err), SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "/nowhere/mountinfo"));
    assert_int_equal(cgroup_home_new(&home, NULL, "/nowhere/cgroup", &err), SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "/nowhere/cgroup"));
}

static void
nothing_is_held_by_no_home(void **state)
{
    (void)state;
    assert_int_equal(cgroup_home_means(NULL, RESOURCE_MEMORY), MEANS_ABSENT);
    assert_int_equal(cgroup_means(NULL, RESOURCE_PROCESSES), MEANS_ABSENT);
    cgroup_home_free(NULL);
    cgroup_free(NULL);
}

/* NULL, with a word, where there are none here. */
static struct cgroup_home *
real_home(void)
{
    struct cgroup_home *home = NULL;
    struct sy_error err = {0};

    if (cgroup_home_new(&home, NULL, NULL, &err) != SY_E_OK) {
        assert_int_equal(err.code, SY_E_NOTFOUND);
        print_message("none here: %s\n", err.msg);
        return NULL;
    }
    return home;
}

/* A process goes in, and out again with what its body returns. */
static int
inside(const struct cgroup *g, int (*body)(void))
{
    int fds[CGROUP_PLACES];
    size_t n = cgroup_entrances(g, fds);
    int status = 0;
    pid_t pid = fork();

    assert_true(n > 0 && pid >= 0);
    if (pid == 0) {
        for (size_t i = 0; i < n; i++) {
            if (write(fds[i], "0", 1) != 1) {
                _exit(99);
            }
        }
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
few_bytes(void)
{
    return 7;
}

static int
many_bytes(void)
{
    for (int i = 0; i < 300; i++) {
        char *p = malloc(1 << 20);

        if (p != NULL) {
            memset(p, 1, 1 << 20);
        }
    }
    return 8;
}

static void
a_group_holds_memory_and_tells(void **state)
{
    struct cgroup_home *home = real_home();
    struct cgroup *g = NULL;

    (void)state;
    if (home == NULL || cgroup_home_means(home, RESOURCE_MEMORY) == MEANS_ABSENT) {
        cgroup_home_free(home);
        return;
    }
    assert_int_equal(cgroup_new(&g, home, &both, NULL), SY_E_OK);
    assert_int_equal(inside(g, few_bytes), 7);
    assert_false(cgroup_was_hit(g, RESOURCE_MEMORY));
    assert_int_equal(inside(g, many_bytes), 128 + SIGKILL);
    assert_true(cgroup_was_hit(g, RESOURCE_MEMORY));
    cgroup_free(g);
    cgroup_home_free(home);
}

/* A group around those of a home, with a limit of its own; false where memory is no group's. */
static bool
make_around(struct cgroup_home **ret, char around[LIMIT_PATH])
{
    struct cgroup_home *home = real_home();
    char tail[64];
    char mounts[128];
    char groups[128];
    char path[2 * LIMIT_PATH];
    char text[2 * LIMIT_PATH];
    const struct cgroup_place *p = NULL;

    for (size_t i = 0; home != NULL && i < home->n; i++) {
        p = home->places[i].holds[RESOURCE_MEMORY] ? &home->places[i] : p;
    }
    if (p == NULL) {
        cgroup_home_free(home);
        return false;
    }

    bool is_v2 = p->means == MEANS_CGROUP_V2;

    (void)snprintf(around, LIMIT_PATH, "%s/shellyard-around-%d", p->path, (int)getpid());
    (void)snprintf(tail, sizeof(tail), is_v2 ? "cgroup2 c rw" : "cgroup c rw,memory");
    cgroup_home_free(home);
    assert_int_equal(mkdir(around, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/%s", around,
                   is_v2 ? "memory.max" : "memory.limit_in_bytes");
    write_file(path, "33554432");
    if (is_v2) {
        (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", around);
        write_file(path, "+memory");
    }
    (void)snprintf(mounts, sizeof(mounts), "%s/mountinfo", directory);
    (void)snprintf(text, sizeof(text), "30 1 0:30 / %s rw - %s\n", around, tail);
    write_file(mounts, text);
    (void)snprintf(groups, sizeof(groups), "%s/cgroup", directory);
    write_file(groups, is_v2 ? "0::/\n" : "1:memory:/\n");
    assert_int_equal(cgroup_home_new(ret, mounts, groups, NULL), SY_E_OK);
    return true;
}

static void
a_limit_of_somebody_else_is_not_told_as_ours(void **state)
{
    struct cgroup_home *home = NULL;
    struct cgroup *g = NULL;
    char around[LIMIT_PATH];

    (void)state;
    if (!make_around(&home, around)) {
        return;
    }
    assert_int_equal(cgroup_new(&g, home, &both, NULL), SY_E_OK);
    assert_int_equal(inside(g, many_bytes), 128 + SIGKILL);
    assert_false(cgroup_was_hit(g, RESOURCE_MEMORY));
    cgroup_free(g);
    cgroup_home_free(home);
    assert_int_equal(rmdir(around), 0);
}

static int
fork_until_refused(void)
{
    pid_t pids[64];
    int made = 0;

    while (made < 60 && (pids[made] = fork()) >= 0) {
        if (pids[made] == 0) {
            (void)pause();
            _exit(0);
        }
        made++;
    }
    for (int i = 0; i < made; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    return made;
}

static void
a_group_holds_processes_and_tells(void **state)
{
    struct cgroup_home *home = real_home();
    struct cgroup *g = NULL;

    (void)state;
    if (home == NULL || cgroup_home_means(home, RESOURCE_PROCESSES) == MEANS_ABSENT) {
        cgroup_home_free(home);
        return;
    }
    assert_int_equal(cgroup_new(&g, home, &both, NULL), SY_E_OK);
    assert_int_equal(inside(g, few_bytes), 7);
    assert_false(cgroup_was_hit(g, RESOURCE_PROCESSES));
    assert_int_equal(inside(g, fork_until_refused), 19);
    assert_true(cgroup_was_hit(g, RESOURCE_PROCESSES));
    cgroup_free(g);
    cgroup_home_free(home);
}

static bool
has_dir(const struct cgroup_place *p, const char *name)
{
    struct stat st;

    return fstatat(p->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
what_an_engine_left_behind_is_cleared_away_unless_it_lives(void **state)
{
    struct cgroup_home *home = real_home();
    struct cgroup_home *other = NULL;

    (void)state;
    if (home == NULL) {
        return;
    }

    const struct cgroup_place *p = &home->places[0];

    assert_int_equal(mkdirat(p->dir_fd, "shellyard-0-left", 0755), 0);
    assert_int_equal(mkdirat(p->dir_fd, "shellyard-0-held", 0755), 0);
    assert_int_equal(mkdirat(p->dir_fd, "strangers-0-left", 0755), 0);

    SY_FD held = openat(p->dir_fd, "shellyard-0-held", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(flock(held, LOCK_SH | LOCK_NB), 0);
    assert_int_equal(cgroup_home_new(&other, NULL, NULL, NULL), SY_E_OK);
    assert_false(has_dir(p, "shellyard-0-left"));
    assert_true(has_dir(p, "shellyard-0-held"));
    assert_true(has_dir(p, "strangers-0-left"));
    fd_close(&held);
    cgroup_home_free(other);
    assert_false(has_dir(p, "shellyard-0-held"));
    assert_int_equal(unlinkat(p->dir_fd, "strangers-0-left", AT_REMOVEDIR), 0);
    cgroup_home_free(home);
}

static void
only_what_has_a_limit_gets_a_directory_and_none_stays(void **state)
{
    static const struct resource_limits none = {.most = {[RESOURCE_CPU] = 1}};
    struct cgroup_home *home = real_home();
    struct cgroup *g = NULL;
    int fds[CGROUP_PLACES];
    const char *paths[CGROUP_PLACES];
    char kept[2][LIMIT_PATH];

    (void)state;
    if (home == NULL) {
        return;
    }
    assert_int_equal(cgroup_new(&g, home, &none, NULL), SY_E_OK);
    assert_int_equal(cgroup_entrances(g, fds), 0);
    cgroup_free(g);
    assert_int_equal(cgroup_new(&g, home, &both, NULL), SY_E_OK);
    assert_int_equal(cgroup_entrances(g, fds), home->n);
    cgroup_paths(g, paths);
    for (size_t i = 0; i < home->n; i++) {
        (void)snprintf(kept[i], sizeof(kept[i]), "%s", paths[i]);
        assert_int_equal(access(kept[i], F_OK), 0);
    }
    cgroup_free(g);
    for (size_t i = 0; i < home->n; i++) {
        assert_int_equal(access(kept[i], F_OK), -1);
    }
    cgroup_home_free(home);
}

static enum sy_code
look_for_groups(void *arg)
{
    struct cgroup_home *home = NULL;
    struct cgroup *g = NULL;
    enum sy_code rc = cgroup_home_new(&home, NULL, NULL, NULL);

    (void)arg;
    if (rc == SY_E_OK) {
        rc = cgroup_new(&g, home, &both, NULL);
        cgroup_free(g);
    }
    cgroup_home_free(home);
    return rc == SY_E_NOTFOUND ? SY_E_OK : rc;
}

static void
memory_out_at_any_moment_leaves_nothing(void **state)
{
    (void)state;
    /* Where a part can be read no more, less is held by groups and more by looks. */
    fault_run_lenient(look_for_groups, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_hierarchy_is_not_used),
        cmocka_unit_test(a_plain_directory_is_found_out_by_the_try),
        cmocka_unit_test(files_that_are_not_there_are_named),
        cmocka_unit_test(nothing_is_held_by_no_home),
        cmocka_unit_test(a_group_holds_memory_and_tells),
        cmocka_unit_test(a_limit_of_somebody_else_is_not_told_as_ours),
        cmocka_unit_test(a_group_holds_processes_and_tells),
        cmocka_unit_test(what_an_engine_left_behind_is_cleared_away_unless_it_lives),
        cmocka_unit_test(only_what_has_a_limit_gets_a_directory_and_none_stays),
        cmocka_unit_test(memory_out_at_any_moment_leaves_nothing),
    };

    (void)snprintf(directory, sizeof(directory), "/tmp/shellyard-cgroup-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return 1;
    }

    int rc = cmocka_run_group_tests_name("control groups", tests, NULL, NULL);
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/mountinfo", directory);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/cgroup", directory);
    (void)unlink(path);
    (void)rmdir(directory);
    return rc;
}
