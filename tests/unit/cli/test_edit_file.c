#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/edit.h"

/* A directory of its own for each test, in *state. */
static int
make_dir(void **state)
{
    static char dir[64];
    const char *tmp = getenv("TMPDIR");

    if (snprintf(dir, sizeof(dir), "%s/sy-edit-XXXXXX", tmp != NULL ? tmp : "/tmp") >=
            (int)sizeof(dir) ||
        mkdtemp(dir) == NULL) {
        return -1;
    }
    *state = dir;
    return 0;
}

static int
remove_dir(void **state)
{
    static const char *const names[] = {"f", "f.bak-1", "f.bak-2", "link", "a/b/f", "a/b", "a", ""};
    char path[LIMIT_PATH];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", (const char *)*state, names[i]);
        (void)remove(path);
    }
    return 0;
}

static void
put(const char *dir, const char *name, const char *text, mode_t mode)
{
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);

    SY_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), NULL), SY_E_OK);
}

static void
assert_file(const char *dir, const char *name, const char *text)
{
    SY_AUTO(buf_fini) struct buf got = {.max = 4096};
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(fd_read_file(path, &got, NULL), SY_E_OK);
    assert_string_equal(buf_view(&got), text);
}

/* Reads dir/name, writes `text` over it. */
static void
replace(const char *dir, const char *name, const char *text, char backup[LIMIT_PATH])
{
    SY_AUTO(edit_file_fini) struct edit_file f = {0};
    SY_AUTO(buf_fini) struct buf new_text = {.max = 4096};
    SY_AUTO(buf_fini) struct buf made = {.max = LIMIT_PATH};
    struct sy_error err = {0};
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(buf_add_str(&new_text, text), SY_E_OK);
    assert_int_equal(edit_file_read(&f, path, &err), SY_E_OK);
    if (edit_file_write(&f, &new_text, &made, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    (void)snprintf(backup, LIMIT_PATH, "%s", buf_view(&made));
}

static void
the_old_text_is_kept_under_a_free_name(void **state)
{
    char backup[LIMIT_PATH];

    put(*state, "f", "one", 0600);
    replace(*state, "f", "two", backup);
    assert_non_null(strstr(backup, "/f.bak-1"));
    replace(*state, "f", "three", backup);
    assert_non_null(strstr(backup, "/f.bak-2"));
    assert_file(*state, "f", "three");
    assert_file(*state, "f.bak-1", "one");
    assert_file(*state, "f.bak-2", "two");
}

static void
the_mode_is_kept_also_by_the_backup(void **state)
{
    static const char *const names[] = {"f", "f.bak-1"};
    char backup[LIMIT_PATH];
    char path[LIMIT_PATH];

    put(*state, "f", "one", 0640);
    replace(*state, "f", "two", backup);
    for (size_t i = 0; i < 2; i++) {
        struct stat st;

        (void)snprintf(path, sizeof(path), "%s/%s", (const char *)*state, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
    }
}

static void
a_new_file_is_private_and_gets_its_directories(void **state)
{
    char backup[LIMIT_PATH];
    char path[LIMIT_PATH];
    struct stat st;

    replace(*state, "a/b/f", "new", backup);
    assert_string_equal(backup, "");
    assert_file(*state, "a/b/f", "new");
    (void)snprintf(path, sizeof(path), "%s/a/b/f", (const char *)*state);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void
a_symbolic_link_keeps_pointing(void **state)
{
    char backup[LIMIT_PATH];
    char path[LIMIT_PATH];
    struct stat st;

    put(*state, "f", "one", 0600);
    (void)snprintf(path, sizeof(path), "%s/link", (const char *)*state);
    assert_int_equal(symlink("f", path), 0);
    replace(*state, "link", "two", backup);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_file(*state, "f", "two");
}

static void
a_symbolic_link_to_nothing_is_left_alone(void **state)
{
    SY_AUTO(edit_file_fini) struct edit_file f = {0};
    struct sy_error err = {0};
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/link", (const char *)*state);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(edit_file_read(&f, path, &err), SY_E_ARG);
    assert_non_null(strstr(err.msg, "symbolic link to a file that is not there"));
}

static void
a_directory_is_no_file(void **state)
{
    SY_AUTO(edit_file_fini) struct edit_file f = {0};
    struct sy_error err = {0};

    assert_int_equal(edit_file_read(&f, *state, &err), SY_E_ARG);
    assert_non_null(strstr(err.msg, "not a regular file"));
}

/* Reads dir/f, lets somebody else write `theirs` (NULL: remove it), writes. */
static void
write_late(const char *dir, const char *theirs)
{
    SY_AUTO(edit_file_fini) struct edit_file f = {0};
    SY_AUTO(buf_fini) struct buf ours = {.max = 4096};
    SY_AUTO(buf_fini) struct buf made = {.max = LIMIT_PATH};
    struct sy_error err = {0};
    char path[LIMIT_PATH];

    (void)snprintf(path, sizeof(path), "%s/f", dir);
    assert_int_equal(buf_add_str(&ours, "ours"), SY_E_OK);
    assert_int_equal(edit_file_read(&f, path, &err), SY_E_OK);
    if (theirs != NULL) {
        put(dir, "f", theirs, 0600);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(edit_file_write(&f, &ours, &made, &err), SY_E_ARG);
    assert_non_null(strstr(err.msg, "changed by another program"));
    assert_int_equal(edit_file_write(&f, &ours, &made, NULL), SY_E_ARG);
}

static void
what_another_program_wrote_meanwhile_stays(void **state)
{
    char backup[LIMIT_PATH];

    write_late(*state, "new and theirs");
    assert_file(*state, "f", "new and theirs");
    write_late(*state, "xew and theirs"); /* of the same length */
    assert_file(*state, "f", "xew and theirs");
    replace(*state, "f", "two", backup); /* the control */
    assert_file(*state, "f", "two");
    write_late(*state, NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_old_text_is_kept_under_a_free_name, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(the_mode_is_kept_also_by_the_backup, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_new_file_is_private_and_gets_its_directories, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_symbolic_link_keeps_pointing, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_another_program_wrote_meanwhile_stays, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_symbolic_link_to_nothing_is_left_alone, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_directory_is_no_file, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
