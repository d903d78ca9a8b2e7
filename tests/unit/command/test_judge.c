#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "command/danger.h"
#include "command/safe.h"
#include "fault.h"

/* dir/cat, dir/bin/cat, dir/pwsh: scripts that make dir/pwn; dir/link -> /bin; dir/to-rm. */
static char dir[64];

/* How far the wall clock is ahead of its own, and how often stat(2) was called. */
static time_t ahead_s;
static unsigned n_stats;

/* In the place of the C library's. */
int
clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    int rc = (int)syscall(SYS_clock_gettime, clock_id, tp);

    if (rc == 0 && (clock_id == CLOCK_REALTIME || clock_id == CLOCK_REALTIME_COARSE)) {
        tp->tv_sec += ahead_s;
    }
    return rc;
}

int
stat(const char *file, struct stat *buf)
{
    n_stats++;
    return fstatat(AT_FDCWD, file, buf, 0);
}

static void
put(const char *name)
{
    char path[128];

    assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));

    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\ntouch %s/pwn\n", dir) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static int
make_tree(void **state)
{
    char path[128];

    (void)state;
    memcpy(dir, "/tmp/test_judge.XXXXXX", sizeof("/tmp/test_judge.XXXXXX"));
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/bin", dir);
    assert_int_equal(mkdir(path, 0755), 0);
    put("cat");
    put("bin/cat");
    put("pwsh");
    snprintf(path, sizeof(path), "%s/link", dir);
    assert_int_equal(symlink("/bin", path), 0);
    snprintf(path, sizeof(path), "%s/to-cat", dir);
    assert_int_equal(symlink("/bin/cat", path), 0);
    return 0;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int
remove_tree(void **state)
{
    (void)state;
    return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static struct judge_world
world_here(void)
{
    static char *roots[2];

    roots[0] = dir;
    return (struct judge_world){
        .cwd = dir,
        .home = "/home/u",
        .path_list = "/usr/local/bin:/usr/bin:/bin",
        .roots = roots,
        .find_program = judge_find_program,
        .has_file = judge_has_file,
    };
}

static bool
is_safe(const struct judge_world *world, const char *word, const char *more, const char *last)
{
    struct script_reader *reader = script_reader_new();
    struct judge_world own = *world;
    char *argv[] = {mem_unconst(word), mem_unconst(more), mem_unconst(last), NULL};
    struct safe_verdict v;

    assert_non_null(reader);
    own.reader = reader;
    assert_int_equal(safe_judge(&v, &own, argv, NULL, NULL, NULL), SY_E_OK);
    script_reader_free(reader);
    return v.is_safe;
}

static void
only_the_systems_own_programs_are_trusted(void **state)
{
    struct judge_world world = world_here();
    char own[128];
    char up[160];
    char linked[128];

    (void)state;
    snprintf(own, sizeof(own), "%s/cat", dir);
    snprintf(up, sizeof(up), "..%s/cat", strrchr(dir, '/'));
    snprintf(linked, sizeof(linked), "%s/link/cat", dir);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    assert_true(is_safe(&world, "/bin/cat", "a.txt", NULL));
    assert_true(is_safe(&world, "/usr/bin/cat", "a.txt", NULL));
    assert_false(is_safe(&world, "./cat", "a.txt", NULL));
    assert_false(is_safe(&world, own, "a.txt", NULL));
    assert_false(is_safe(&world, up, "a.txt", NULL));
    /* A link of the workspace may lead elsewhere at any time. */
    assert_false(is_safe(&world, linked, "a.txt", NULL));
    assert_false(is_safe(&world, "no-such-program-here", NULL, NULL));
    assert_true(is_safe(&world, "bash", "-c", "cat a.txt"));
    assert_false(is_safe(&world, "bash", "-c", "./cat a.txt"));
}

static void
path_decides_which_file_runs(void **state)
{
    struct judge_world world = world_here();
    char list[128];

    (void)state;
    snprintf(list, sizeof(list), "%s/bin:/usr/bin:/bin", dir);
    world.path_list = list;
    assert_false(is_safe(&world, "cat", "a.txt", NULL));
    /* Not there yet, but a command may put it there. */
    assert_false(is_safe(&world, "head", "a.txt", NULL));
    snprintf(list, sizeof(list), "/usr/bin:/bin:%s/bin", dir);
    assert_true(is_safe(&world, "head", "a.txt", NULL));
    /* After cd, a relative entry is another directory. */
    world.path_list = "/usr/bin:/bin:.";
    assert_false(is_safe(&world, "head", "a.txt", NULL));
    world.path_list = ":/usr/bin:/bin";
    assert_false(is_safe(&world, "head", "a.txt", NULL));
    world.path_list = "bin:/usr/bin:/bin";
    assert_false(is_safe(&world, "head", "a.txt", NULL));
    world.path_list = NULL;
    assert_true(is_safe(&world, "head", "a.txt", NULL));
}

static void
a_program_below_the_workspace_is_never_trusted(void **state)
{
    struct judge_world world = world_here();
    char *root[] = {mem_unconst("/"), NULL};
    char *bin[] = {mem_unconst("/usr"), NULL};

    (void)state;
    world.roots = root;
    assert_false(is_safe(&world, "cat", "a.txt", NULL));
    world.roots = bin;
    assert_false(is_safe(&world, "cat", "a.txt", NULL));
}

static void
what_was_found_is_forgotten_when_something_changes(void **state)
{
    struct judge_world world = world_here();
    char list[160];
    char own[160];

    (void)state;
    snprintf(list, sizeof(list), "%s/first:/usr/bin:/bin", dir);
    snprintf(own, sizeof(own), "%s/first", dir);
    world.roots = NULL; /* so that this directory is only one that others may write to */
    world.path_list = list;
    world.programs = judge_programs_new();
    assert_non_null(world.programs);
    for (int i = 0; i < 3; i++) {
        assert_true(is_safe(&world, "cat", "a.txt", NULL));
        assert_true(is_safe(&world, "head", "a.txt", NULL));
    }
    assert_int_equal(mkdir(own, 0755), 0);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    put("first/cat");
    for (int i = 0; i < 3; i++) {
        assert_false(is_safe(&world, "cat", "a.txt", NULL));
        assert_true(is_safe(&world, "head", "a.txt", NULL));
    }
    snprintf(own, sizeof(own), "%s/first/cat", dir);
    assert_int_equal(unlink(own), 0);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    judge_programs_free(world.programs);
}

static void
what_may_run_tomorrow_is_looked_for_each_time(void **state)
{
    struct judge_world world = world_here();
    char list[256];
    char link[192];
    char target[192];

    (void)state;
    snprintf(list, sizeof(list), "%s/links:/usr/bin:/bin", dir);
    snprintf(link, sizeof(link), "%s/links", dir);
    snprintf(target, sizeof(target), "%s/made-later", dir);
    assert_int_equal(mkdir(link, 0755), 0);
    snprintf(link, sizeof(link), "%s/links/cat", dir);
    assert_int_equal(symlink(target, link), 0);
    ahead_s = 60; /* as if it had been there for long */
    world.roots = NULL;
    world.path_list = list;
    world.programs = judge_programs_new();
    assert_non_null(world.programs);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    put("made-later");
    assert_false(is_safe(&world, "cat", "a.txt", NULL));
    judge_programs_free(world.programs);
    ahead_s = 0;
}

static void
what_changed_just_now_is_not_remembered(void **state)
{
    struct judge_world world = world_here();
    char list[256];
    char own[192];

    (void)state;
    snprintf(list, sizeof(list), "%s/young:/usr/bin:/bin", dir);
    snprintf(own, sizeof(own), "%s/young", dir);
    assert_int_equal(mkdir(own, 0755), 0);
    world.roots = NULL;
    world.path_list = list;
    world.programs = judge_programs_new();
    assert_non_null(world.programs);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    n_stats = 0;
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    /* Looked for in both directories again, beside their own times. */
    assert_true(n_stats > 3);
    ahead_s = 60;
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    n_stats = 0;
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    assert_int_equal(n_stats, 2);
    ahead_s = 0;
    judge_programs_free(world.programs);
}

/* Developers' PATHs have dozens of directories: each is looked at once a judgement. */
static void
a_long_path_costs_one_look_at_each_directory(void **state)
{
    enum { DIRS = 40 };
    struct judge_world world = world_here();
    char list[DIRS * 32 + 32];
    size_t n = 0;

    (void)state;
    for (unsigned i = 0; i < DIRS; i++) {
        n += (size_t)snprintf(list + n, sizeof(list) - n, "/usr/lib/none-of-it/%u:", i);
    }
    snprintf(list + n, sizeof(list) - n, "/usr/bin");
    ahead_s = 60; /* packages may have come just now */
    world.roots = NULL;
    world.path_list = list;
    world.programs = judge_programs_new();
    assert_non_null(world.programs);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    assert_true(is_safe(&world, "head", "a.txt", NULL));
    assert_false(is_safe(&world, "no-such-program", "a.txt", NULL));
    n_stats = 0;
    judge_programs_begin(world.programs);
    assert_true(is_safe(&world, "cat", "a.txt", NULL));
    assert_true(is_safe(&world, "head", "a.txt", NULL));
    assert_false(is_safe(&world, "no-such-program", "a.txt", NULL));
    judge_programs_end(world.programs);
    assert_int_equal(n_stats, DIRS + 1);
    ahead_s = 0;
    judge_programs_free(world.programs);
}

static void
nothing_runs_while_it_is_judged(void **state)
{
    struct judge_world world = world_here();
    char path[128];

    (void)state;
    assert_false(is_safe(&world, "./pwsh", "-Command", "Get-ChildItem"));
    assert_false(is_safe(&world, "./cat", "$(./cat)", "`./cat`"));
    assert_false(is_safe(&world, "sh", "-c", "echo $(./cat) `./cat`; ./cat"));
    snprintf(path, sizeof(path), "%s/pwn", dir);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void
files_are_looked_for_before_they_are_overwritten(void **state)
{
    struct script_reader *reader = script_reader_new();
    struct judge_world world = world_here();
    char *existing[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst("ls > cat"), NULL};
    char *missing[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst("ls > new"), NULL};
    char *other[] = {mem_unconst("sh"), mem_unconst("-c"), mem_unconst("ls > /etc/passwd"), NULL};
    struct danger_verdict v;

    (void)state;
    assert_non_null(reader);
    world.reader = reader;
    assert_int_equal(danger_judge(&v, &world, existing, NULL, NULL, NULL), SY_E_OK);
    assert_int_equal(v.level, DANGER_NOTED);
    assert_int_equal(danger_judge(&v, &world, missing, NULL, NULL, NULL), SY_E_OK);
    assert_int_equal(v.level, DANGER_NONE);
    assert_int_equal(danger_judge(&v, &world, other, NULL, NULL, NULL), SY_E_OK);
    assert_int_equal(v.level, DANGER_DANGEROUS);
    script_reader_free(reader);
}

static enum sy_code
find_cat(void *arg)
{
    struct judge_world world = world_here();
    SY_AUTO(buf_fini) struct buf path = {.max = LIMIT_PATH};
    bool is_trusted = false;

    (void)arg;
    return judge_find_program(NULL, &path, &is_trusted, "cat", &world);
}

static void
each_allocation_may_fail(void **state)
{
    (void)state;
    fault_run(find_cat, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_systems_own_programs_are_trusted),
        cmocka_unit_test(path_decides_which_file_runs),
        cmocka_unit_test(a_program_below_the_workspace_is_never_trusted),
        cmocka_unit_test(what_was_found_is_forgotten_when_something_changes),
        cmocka_unit_test(what_may_run_tomorrow_is_looked_for_each_time),
        cmocka_unit_test(what_changed_just_now_is_not_remembered),
        cmocka_unit_test(a_long_path_costs_one_look_at_each_directory),
        cmocka_unit_test(nothing_runs_while_it_is_judged),
        cmocka_unit_test(files_are_looked_for_before_they_are_overwritten),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
