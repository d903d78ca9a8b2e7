#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/private_group.h"
#include "fixture.h"

static void
a_file_of_a_mebibyte_is_refused_at_once(void **state)
{
    enum { SIZE = 1024 * 1024 };
    const struct fixture *f = *state;
    char *text = mem_alloc(SIZE);
    struct given nothing = {0};
    uint64_t began_ns = clock_mono_ns();

    assert_non_null(text);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = i % 64 == 63 ? '\n' : '#';
    }
    fixture_write(f->user, text, SIZE);
    mem_free(text);
    fixture_must_fail(f, &nothing, "{user}:4097:1: the file is larger than 262144 bytes");
    assert_true(clock_mono_ns() - began_ns < UINT64_C(1000000000));
}

static void
a_file_of_just_the_limit_is_read(void **state)
{
    const struct fixture *f = *state;
    SY_AUTO(config_fini) struct config c = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = (size_t)LIMIT_CONFIG_FILE + 1};
    struct given nothing = {0};

    assert_int_equal(buf_add_str(&text, "log: {level: info}\n"), SY_E_OK);
    while (text.len < (size_t)LIMIT_CONFIG_FILE) {
        assert_int_equal(buf_add_char(&text, text.len % 64 == 63 ? '\n' : '#'), SY_E_OK);
    }
    fixture_write(f->user, text.data, text.len);
    fixture_must_load(&c, f, &nothing);
    assert_string_equal(c.log.level, "info");

    assert_int_equal(buf_add_char(&text, '#'), SY_E_OK);
    fixture_write(f->user, text.data, text.len);
    fixture_must_fail(f, &nothing, "{user}:4098:1: the file is larger than 262144 bytes");
}

static void
what_is_no_regular_file_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct given nothing = {0};

    assert_int_equal(mkdir(f->user, 0700), 0);
    fixture_must_fail(f, &nothing, "{user}: is a directory, expected a file");
    assert_int_equal(rmdir(f->user), 0);
    /* Nobody writes to it: reading would wait for ever. */
    assert_int_equal(mkfifo(f->user, 0600), 0);
    fixture_must_fail(f, &nothing, "{user}: is a device or a pipe, expected a file");
}

static void
an_unreadable_file_is_an_error_and_no_default(void **state)
{
    const struct fixture *f = *state;
    struct given nothing = {0};

    if (geteuid() == 0) {
        /* Root reads everything; a loop of links no one can open. */
        assert_int_equal(symlink("user.yaml", f->user), 0);
        fixture_must_fail(f, &nothing,
                          "{user}: cannot be opened: Too many levels of symbolic links");
        return;
    }
    fixture_write_text(f->user, "log: {level: info}\n");
    assert_int_equal(chmod(f->user, 0), 0);
    fixture_must_fail(f, &nothing, "{user}: cannot be opened: Permission denied");
}

static void
a_link_to_nothing_is_an_error_and_no_default(void **state)
{
    const struct fixture *f = *state;
    struct given nothing = {0};
    SY_AUTO(config_fini) struct config c = {0};

    fixture_must_load(&c, f, &nothing);
    assert_int_equal(symlink("/nonexistent/config.yaml", f->user), 0);
    fixture_must_fail(f, &nothing, "{user}: is a symbolic link to a file that is not there");
    assert_int_equal(unlink(f->user), 0);
    assert_int_equal(symlink("/nonexistent/config.yaml", f->system), 0);
    fixture_must_fail(f, &nothing, "{system}: is a symbolic link to a file that is not there");
}

static void
what_may_be_a_file_is_one_to_read(void **state)
{
    const struct fixture *f = *state;
    char xdg[300];
    char path[256];
    char *const with_xdg[] = {xdg, NULL};
    char *const bare[] = {NULL};

    if (access(CONFIG_SYSTEM_PATH, F_OK) == 0) {
        /* This machine has one, whatever the environment says. */
        assert_true(config_has_files(with_xdg));
        return;
    }
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s", f->dir);
    assert_false(config_has_files(with_xdg));
    fixture_path(path, f, "shellyard");
    assert_int_equal(mkdir(path, 0700), 0);
    fixture_path(path, f, "shellyard/config.yaml");
    assert_false(config_has_files(with_xdg));
    assert_int_equal(symlink("nowhere", path), 0);
    assert_true(config_has_files(with_xdg));
    assert_int_equal(unlink(path), 0);
    fixture_write_text(path, "");
    assert_true(config_has_files(with_xdg));
    assert_true(config_has_files(bare));
}

static void
a_file_that_others_may_write_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct given nothing = {0};

    struct config c = {0};
    struct stat st;

    fixture_write_text(f->user, "");
    assert_int_equal(chmod(f->user, 0660), 0);
    assert_int_equal(stat(f->user, &st), 0);
    /* Of most ordinary users the group is nobody else's; root's counts as others'. */
    if (private_group_path(f->user, &st)) {
        assert_int_not_equal(geteuid(), 0);
        fixture_must_load(&c, f, &nothing);
        config_fini(&c);
    } else {
        fixture_must_fail(f, &nothing, "{user}: others may write it (mode 0660); fix: chmod go-w");
    }
    assert_int_equal(chmod(f->user, 0662), 0);
    fixture_must_fail(f, &nothing, "{user}: others may write it (mode 0662); fix: chmod go-w");
    assert_int_equal(chmod(f->user, 0602), 0);
    fixture_must_fail(f, &nothing, "{user}: others may write it (mode 0602); fix: chmod go-w");
    assert_int_equal(chmod(f->user, 0644), 0);
    fixture_write_text(f->system, "");
    assert_int_equal(chmod(f->system, 0622), 0);
    fixture_must_fail(f, &nothing, "{system}: others may write it (mode 0622); fix: chmod go-w");
}

static void
a_file_of_somebody_else_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct given nothing = {0};

    fixture_write_text(f->user, "");
    assert_int_equal(chown(f->user, 12345, 0), 0);
    fixture_must_fail(f, &nothing,
                      "{user}: belongs to user 12345, who could change it; fix: chown it to you, "
                      "or to root");
}

static void
a_file_in_the_workspace_is_refused(void **state)
{
    const struct fixture *f = *state;
    char link_to_dir[256];
    struct given given = {.user = "log: {level: info}\n", .workspace = f->dir};

    fixture_must_fail(f, &given,
                      "{user}: lies in the workspace, where commands could rewrite it; work in "
                      "another directory or move the file (XDG_CONFIG_HOME)");
    given.workspace = "/";
    fixture_must_fail(f, &given,
                      "{user}: lies in the workspace, where commands could rewrite it; work in "
                      "another directory or move the file (XDG_CONFIG_HOME)");
    fixture_path(link_to_dir, f, "home");
    assert_int_equal(symlink(".", link_to_dir), 0);
    given.workspace = link_to_dir;
    fixture_must_fail(f, &given,
                      "{user}: lies in the workspace, where commands could rewrite it; work in "
                      "another directory or move the file (XDG_CONFIG_HOME)");
    assert_int_equal(unlink(f->user), 0);
    given.user = NULL;
    given.system = "log: {level: info}\n";
    fixture_must_fail(f, &given,
                      "{system}: lies in the workspace, where commands could rewrite it; work in "
                      "another directory");
}

static void
a_link_to_a_file_in_the_workspace_is_refused(void **state)
{
    const struct fixture *f = *state;
    char workspace[256];
    char target[256];
    struct given given = {.workspace = workspace};

    fixture_path(workspace, f, "work");
    fixture_path(target, f, "work/config.yaml");
    assert_int_equal(mkdir(workspace, 0700), 0);
    fixture_write_text(target, "log: {level: info}\n");
    assert_int_equal(symlink(target, f->user), 0);
    fixture_must_fail(f, &given,
                      "{user}: lies in the workspace, where commands could rewrite it; work in "
                      "another directory or move the file (XDG_CONFIG_HOME)");
}

static void
a_file_that_may_be_one_of_the_workspace_is_refused(void **state)
{
    const struct fixture *f = *state;
    char workspace[256];
    char twin[256];
    struct given given = {.workspace = workspace};
    struct config config = {0};

    fixture_path(workspace, f, "work");
    fixture_path(twin, f, "work/twin.yaml");
    assert_int_equal(mkdir(workspace, 0700), 0);
    fixture_write_text(twin, "log: {level: info}\n");
    assert_int_equal(link(twin, f->user), 0);
    fixture_must_fail(f, &given,
                      "{user}: has 2 names (hard links), and a file within a workspace may be one "
                      "of them; make it a copy of its own");
    if (geteuid() != 0) { /* to whom no mode is a hindrance */
        assert_int_equal(chmod(f->user, 0400), 0);
        fixture_must_load(&config, f, &given);
        config_fini(&config);
        assert_int_equal(chmod(f->user, 0600), 0);
    }
    /* Its only name is outside then. */
    assert_int_equal(unlink(twin), 0);
    fixture_must_load(&config, f, &given);
    config_fini(&config);
}

static void
a_file_beside_the_workspace_is_read(void **state)
{
    const struct fixture *f = *state;
    SY_AUTO(config_fini) struct config c = {0};
    char workspace[256];
    struct given given = {.user = "log: {level: info}\n", .workspace = workspace};

    /* Its name is the beginning of the file's. */
    fixture_path(workspace, f, "user");
    assert_int_equal(mkdir(workspace, 0700), 0);
    fixture_must_load(&c, f, &given);
    assert_string_equal(c.log.level, "info");
}

static void
a_workspace_that_cannot_be_resolved_is_told(void **state)
{
    const struct fixture *f = *state;
    SY_AUTO(config_fini) struct config c = {0};
    struct given given = {.user = "", .workspace = "/nonexistent/work"};

    fixture_must_fail(f, &given,
                      "{user}: workspace '/nonexistent/work' cannot be resolved: No such file or "
                      "directory");
    /* No file, nothing to judge. */
    assert_int_equal(unlink(f->user), 0);
    given.user = NULL;
    fixture_must_load(&c, f, &given);
}

static void
a_path_through_a_file_is_a_missing_file(void **state)
{
    const struct fixture *f = *state;
    SY_AUTO(config_fini) struct config c = {0};
    char below[256];
    struct config_sources sources = {.system_path = f->system, .user_path = below};

    fixture_write_text(f->user, "");
    fixture_path(below, f, "user.yaml/config.yaml");
    assert_int_equal(config_load(&c, &sources, NULL), SY_E_OK);
    assert_string_equal(c.log.level, "warn");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_file_of_a_mebibyte_is_refused_at_once),
        T(a_file_of_just_the_limit_is_read),
        T(what_is_no_regular_file_is_refused),
        T(an_unreadable_file_is_an_error_and_no_default),
        T(a_link_to_nothing_is_an_error_and_no_default),
        T(what_may_be_a_file_is_one_to_read),
        T(a_file_that_others_may_write_is_refused),
        T(a_file_in_the_workspace_is_refused),
        T(a_link_to_a_file_in_the_workspace_is_refused),
        T(a_file_that_may_be_one_of_the_workspace_is_refused),
        T(a_file_beside_the_workspace_is_read),
        T(a_workspace_that_cannot_be_resolved_is_told),
        T(a_path_through_a_file_is_a_missing_file),
    };

    const struct CMUnitTest tests_of_root[] = {
        T(a_file_of_somebody_else_is_refused),
    };

    int failed = cmocka_run_group_tests_name("config files", tests, NULL, NULL);

    /* Only root can give a file to somebody else. */
    if (geteuid() == 0) {
        failed += cmocka_run_group_tests_name("config files of root", tests_of_root, NULL, NULL);
    }
    return failed;
}
