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
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "command/command.h"
#include "fault.h"

/*
 * dir/a/tool  executable        dir/b/tool  executable
 * dir/a/data  not executable    dir/b/data  executable
 * dir/a/sub/  a directory       dir/a/only  not executable
 * dir/here    executable
 */
static char dir[64];

static void
put(const char *name, mode_t mode)
{
    char path[128];

    assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));

    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs("#!/bin/sh\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void
make_dir(const char *name)
{
    char path[128];

    assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));
    assert_int_equal(mkdir(path, 0755), 0);
}

static int
make_tree(void **state)
{
    (void)state;
    memcpy(dir, "/tmp/test_resolve.XXXXXX", sizeof("/tmp/test_resolve.XXXXXX"));
    assert_non_null(mkdtemp(dir));
    make_dir("a");
    make_dir("a/sub");
    make_dir("b");
    make_dir("locked");
    put("a/tool", 0755);
    put("b/tool", 0755);
    put("a/data", 0644);
    put("b/data", 0755);
    put("a/only", 0644);
    put("here", 0755);
    put("locked/hidden", 0755);
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

/* "%" in a text stands for the tree's directory. */
static char *
in_tree(const char *text)
{
    struct buf b = {.max = 4096};

    for (; *text != '\0'; text++) {
        assert_int_equal(*text == '%' ? buf_add_str(&b, dir) : buf_add_char(&b, *text), SY_E_OK);
    }
    return buf_take(&b);
}

static void
assert_resolves(const char *name, const char *path_list, const char *expected)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    SY_AUTO(mem_free_charp) char *real_name = in_tree(name);
    SY_AUTO(mem_free_charp) char *real_list = in_tree(path_list);
    SY_AUTO(mem_free_charp) char *want = in_tree(expected);
    struct sy_error err = {0};

    if (command_resolve(&got, real_name, dir, real_list, &err) != SY_E_OK) {
        fail_msg("%s in %s: %s", real_name, real_list, err.msg);
    }
    assert_string_equal(buf_view(&got), want);
}

static void
assert_fails(const char *name, const char *path_list, enum sy_code code, const char *message)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    SY_AUTO(mem_free_charp) char *real_name = in_tree(name);
    SY_AUTO(mem_free_charp) char *real_list = in_tree(path_list);
    SY_AUTO(mem_free_charp) char *want = in_tree(message);
    struct sy_error err = {0};

    assert_int_equal(command_resolve(&got, real_name, dir, real_list, &err), code);
    assert_string_equal(err.msg, want);
    assert_int_equal(command_resolve(&got, real_name, dir, real_list, NULL), code);
}

static void
the_first_executable_file_of_the_list_wins(void **state)
{
    (void)state;
    assert_resolves("tool", "%/a:%/b", "%/a/tool");
    assert_resolves("tool", "%/b:%/a", "%/b/tool");
    assert_resolves("tool", "/nowhere:%/b", "%/b/tool");
    assert_resolves("tool", "%/a/:%/b", "%/a/tool");
    /* A file without the bit does not hide a later one. */
    assert_resolves("data", "%/a:%/b", "%/b/data");
}

static void
empty_and_relative_entries_are_taken_from_the_working_directory(void **state)
{
    (void)state;
    assert_resolves("here", "", "%/here");
    assert_resolves("here", ":/nowhere", "%/here");
    assert_resolves("here", "/nowhere:", "%/here");
    assert_resolves("here", "/nowhere::/nowhere", "%/here");
    assert_resolves("tool", "b", "%/b/tool");
    assert_resolves("tool", "./a", "%/./a/tool");
}

static void
a_name_with_a_slash_is_not_searched(void **state)
{
    (void)state;
    assert_resolves("%/b/tool", "%/a", "%/b/tool");
    assert_resolves("a/tool", "%/b", "%/a/tool");
    assert_resolves("./here", "", "%/./here");
    assert_fails("./tool", "%/a:%/b", SY_E_NOTFOUND, "command not found: %/./tool (no such file)");
}

static void
what_is_not_there_is_not_found(void **state)
{
    (void)state;
    assert_fails("nosuch", "%/a:%/b", SY_E_NOTFOUND, "command not found: nosuch");
    assert_fails("", "%/a", SY_E_NOTFOUND, "command not found: its name is empty");
    assert_fails("%/none", "", SY_E_NOTFOUND, "command not found: %/none (no such file)");
    assert_fails("%/here/x", "", SY_E_NOTFOUND, "command not found: %/here/x (no such file)");
    assert_fails("a\x1b[2J", "%/a", SY_E_NOTFOUND, "command not found: a\\x1b[2J");
    assert_fails("caf\xc3\xa9", "%/a", SY_E_NOTFOUND, "command not found: caf\xc3\xa9");
}

static void
what_cannot_run_says_why(void **state)
{
    (void)state;
    assert_fails("only", "%/a:%/b", SY_E_NOEXEC,
                 "not executable: %/a/only (no execute permission)");
    assert_fails("%/a/only", "", SY_E_NOEXEC, "not executable: %/a/only (no execute permission)");
    assert_fails("sub", "%/a:%/b", SY_E_NOEXEC, "not executable: %/a/sub (is a directory)");
    assert_fails("a/sub", "", SY_E_NOEXEC, "not executable: %/a/sub (is a directory)");
    assert_fails("/dev/null", "", SY_E_NOEXEC, "not executable: /dev/null (not a regular file)");
}

static void
a_directory_that_may_not_be_searched_hides_nothing_else(void **state)
{
    SY_AUTO(mem_free_charp) char *locked = in_tree("%/locked");

    (void)state;
    assert_int_equal(chmod(locked, 0), 0);
    assert_resolves("tool", "%/locked:%/b", "%/b/tool");
    assert_fails("nosuch", "%/locked:%/b", SY_E_NOTFOUND, "command not found: nosuch");
    if (geteuid() != 0) {
        assert_fails("%/locked/hidden", "", SY_E_NOEXEC,
                     "not executable: %/locked/hidden (Permission denied)");
    }
    assert_int_equal(chmod(locked, 0755), 0);
}

static void
a_path_beyond_the_limit_is_not_found(void **state)
{
    SY_AUTO(mem_free_charp) char *name = mem_alloc_zero(LIMIT_PATH + 10, 1);
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    struct sy_error err = {0};

    (void)state;
    memset(name, 'n', LIMIT_PATH + 1);
    assert_int_equal(command_resolve(&got, name, "/", "/bin:/usr/bin", &err), SY_E_NOTFOUND);
    name[0] = '/';
    assert_int_equal(command_resolve(&got, name, "/", "/bin:/usr/bin", &err), SY_E_NOTFOUND);
    assert_string_equal(err.msg, "command not found: its path has over 4096 bytes");
    name[300] = '\0'; /* longer than NAME_MAX */
    assert_int_equal(command_resolve(&got, name, "/", "/bin", &err), SY_E_NOTFOUND);
    assert_non_null(strstr(err.msg, "..."));
}

static void
without_a_list_the_system_directories_are_searched(void **state)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    struct sy_error err = {0};

    (void)state;
    assert_int_equal(command_resolve(&got, "sh", dir, NULL, &err), SY_E_OK);
    assert_int_equal(access(buf_view(&got), X_OK), 0);
    assert_int_equal(buf_view(&got)[0], '/');
}

static void
link_to(const char *target, const char *name)
{
    char path[128];

    assert_true(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));
    assert_int_equal(symlink(target, path), 0);
}

/* The tree of the test is the whole world of the command, as a mount namespace's is. */
static void
another_tree_is_searched_from_its_own_top(void **state)
{
    static const struct {
        const char *name;
        const char *list;
        const char *found; /* NULL: nothing */
        enum sy_code rc;
    } cases[] = {
        {"tool",     "/a:/b",         "/a/tool",         SY_E_OK      },
        {"data",     "/a:/b",         "/b/data",         SY_E_OK      },
        {"only",     "/a:/b",         NULL,              SY_E_NOEXEC  },
        {"sub",      "/a",            NULL,              SY_E_NOEXEC  },
        {"nosuch",   "/a:/b",         NULL,              SY_E_NOTFOUND},
        {"/b/tool",  "",              "/b/tool",         SY_E_OK      },
        {"./tool",   "",              "/a/./tool",       SY_E_OK      }, /* of the working directory there */
        {"/bin/sh",  "/bin",          NULL,              SY_E_NOTFOUND},
        {"sh",       "/bin:/usr/bin", NULL,              SY_E_NOTFOUND},
 /* Links lead to what is at that place of that tree, and not out of it. */
        {"absolute", "/links",        "/links/absolute", SY_E_OK      },
        {"upwards",  "/links",        "/links/upwards",  SY_E_OK      },
        {"outside",  "/links",        NULL,              SY_E_NOTFOUND},
    };
    SY_FD top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(top >= 0);
    make_dir("links");
    link_to("/b/tool", "links/absolute");
    link_to("../../../../b/tool", "links/upwards");
    link_to("/bin/sh", "links/outside");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
        struct sy_error err = {0};

        if (command_resolve_in(&got, cases[i].name, "/a", cases[i].list, top, &err) !=
            cases[i].rc) {
            fail_msg("%s in %s: %s", cases[i].name, cases[i].list, err.msg);
        }
        if (cases[i].found != NULL) {
            assert_string_equal(buf_view(&got), cases[i].found);
        } else {
            assert_string_not_equal(err.msg, "");
        }
    }
}

/* /proc is each process's own: ours stands for the command's. */
static void
proc_is_ours_in_whichever_tree(void **state)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    struct sy_error err = {0};
    SY_FD top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(top >= 0);
    assert_int_equal(command_resolve_in(&got, "/proc/self/exe", "/", "", top, &err), SY_E_OK);
    assert_int_equal(command_resolve_in(&got, "/proc/self/nosuch", "/", "", top, &err),
                     SY_E_NOTFOUND);
}

static enum sy_code
resolve_in_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    SY_FD top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    enum sy_code rc = command_resolve_in(&got, "data", "/", "/nowhere:/a:/b", top, arg);

    return rc != SY_E_OK ? rc : command_resolve_in(&got, "./here", "/", "", top, arg);
}

static enum sy_code
resolve_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    char list[200];

    if (snprintf(list, sizeof(list), "/nowhere:%s/a:%s/b", dir, dir) < 0) {
        return SY_E_INTERNAL;
    }

    enum sy_code rc = command_resolve(&got, "data", dir, list, arg);

    return rc != SY_E_OK ? rc : command_resolve(&got, "./here", dir, list, arg);
}

static enum sy_code
miss_once(void *arg)
{
    SY_AUTO(buf_fini) struct buf got = {.max = LIMIT_PATH};
    enum sy_code rc = command_resolve(&got, "nosuch", dir, "/nowhere", arg);

    return rc == SY_E_NOTFOUND ? SY_E_OK : rc;
}

static void
resolving_survives_each_failed_allocation(void **state)
{
    struct sy_error err = {0};

    (void)state;
    fault_run(resolve_once, &err);
    fault_run(miss_once, &err);
    fault_run(resolve_in_once, &err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_executable_file_of_the_list_wins),
        cmocka_unit_test(empty_and_relative_entries_are_taken_from_the_working_directory),
        cmocka_unit_test(a_name_with_a_slash_is_not_searched),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(what_cannot_run_says_why),
        cmocka_unit_test(a_directory_that_may_not_be_searched_hides_nothing_else),
        cmocka_unit_test(a_path_beyond_the_limit_is_not_found),
        cmocka_unit_test(without_a_list_the_system_directories_are_searched),
        cmocka_unit_test(another_tree_is_searched_from_its_own_top),
        cmocka_unit_test(proc_is_ours_in_whichever_tree),
        cmocka_unit_test(resolving_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
