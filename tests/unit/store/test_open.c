#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "fault.h"
#include "store/store_internal.h"
#include "yard.h"

static unsigned
mode_of(const char *path)
{
    struct stat s;

    assert_int_equal(lstat(path, &s), 0);
    return s.st_mode & 07777U;
}

static void
what_it_makes_is_for_the_user_alone(void **state)
{
    const struct yard *y = *state;
    mode_t before = umask(0);
    struct store *st = yard_open(y);

    (void)umask(before);
    assert_int_equal(mode_of(y->dir), 0700);
    assert_int_equal(mode_of(y->db), 0600);
    assert_string_equal(store_path(st), y->db);
    store_close(st);
}

static void
a_place_that_others_reach_is_refused(void **state)
{
    const struct yard *y = *state;

    store_close(yard_open(y));
    assert_int_equal(chmod(y->dir, 0750), 0);
    (void)yard_open_fails(y, SY_E_DENIED, "(mode 0750); fix: chmod 0700");
    assert_int_equal(chmod(y->dir, 0700), 0);
    assert_int_equal(chmod(y->db, 0604), 0);
    (void)yard_open_fails(y, SY_E_DENIED, "(mode 0604); fix: chmod 0600");
    assert_int_equal(chmod(y->db, 0600), 0);
    store_close(yard_open(y));
}

static void
links_are_refused(void **state)
{
    const struct yard *y = *state;
    char target[96];

    (void)snprintf(target, sizeof(target), "%s/target", y->root);
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, y->dir), 0);
    (void)yard_open_fails(y, SY_E_DENIED, "a link?");
    assert_int_equal(unlink(y->dir), 0);
    assert_int_equal(mkdir(y->dir, 0700), 0);
    assert_int_equal(symlink("/dev/null", y->db), 0);
    (void)yard_open_fails(y, SY_E_DENIED, "a link?");
    assert_int_equal(unlink(y->db), 0);
    store_close(yard_open(y));
}

static void
a_foreign_owner_is_refused(void **state)
{
    const struct yard *y = *state;

    if (geteuid() != 0) {
        struct yard root = {.dir = "/usr", .db = "/usr/none"}; /* root's */

        (void)yard_open_fails(&root, SY_E_DENIED, "belongs to user 0");
        return;
    }
    store_close(yard_open(y));
    assert_int_equal(chown(y->db, 65534, 65534), 0);
    (void)yard_open_fails(y, SY_E_DENIED, "belongs to user 65534");
    assert_int_equal(chown(y->db, 0, 0), 0);
    assert_int_equal(chown(y->dir, 65534, 65534), 0);
    (void)yard_open_fails(y, SY_E_DENIED, "belongs to user 65534");
}

static int
probe_as_somebody(const struct yard *y, void *arg)
{
    struct sy_error err = {0};

    (void)arg;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
        return 1;
    }
    return store_dir_probe(y->dir, &err) == SY_E_SYS && err.sys == EACCES ? 0 : 2;
}

static void
whether_a_directory_could_be_had_is_seen_without_making_it(void **state)
{
    const struct yard *y = *state;
    struct sy_error err = {0};
    struct stat s;
    char below[128];

    assert_int_equal(store_dir_probe(y->dir, &err), SY_E_OK);
    (void)snprintf(below, sizeof(below), "%s/a/b", y->dir);
    assert_int_equal(store_dir_probe(below, &err), SY_E_OK);
    assert_int_equal(lstat(y->dir, &s), -1);
    assert_int_equal(store_dir_probe("/dev/null/state", &err), SY_E_SYS);
    assert_int_equal(store_dir_probe("relative", &err), SY_E_SYS);

    assert_int_equal(chmod(y->root, 0555), 0);
    assert_int_equal(yard_wait(yard_fork(y, probe_as_somebody, NULL)), 0);
    assert_int_equal(chmod(y->root, 0700), 0);

    assert_int_equal(symlink("/nowhere", y->dir), 0);
    assert_int_equal(store_dir_probe(y->dir, &err), SY_E_DENIED);
    assert_int_equal(unlink(y->dir), 0);
    store_close(yard_open(y));
    assert_int_equal(store_dir_probe(y->dir, &err), SY_E_OK);
    assert_int_equal(chmod(y->dir, 0755), 0);
    assert_int_equal(store_dir_probe(y->dir, &err), SY_E_DENIED);
}

static void
network_file_systems_are_known(void **state)
{
    (void)state;
    assert_string_equal(store_place_fault(NFS_SUPER_MAGIC), "NFS");
    assert_string_equal(store_place_fault(0xFF534D42U), "CIFS");
    assert_null(store_place_fault(EXT4_SUPER_MAGIC));
    assert_null(store_place_fault(TMPFS_MAGIC));
}

static void
overwrite(const char *path, off_t from, size_t len)
{
    char bytes[512];
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)memset(bytes, 0xA5, sizeof(bytes));
    assert_true(fd >= 0);
    for (size_t done = 0; done < len; done += sizeof(bytes)) {
        assert_int_equal(pwrite(fd, bytes, sizeof(bytes), from + (off_t)done), sizeof(bytes));
    }
    (void)close(fd);
}

static void
a_file_that_is_no_database_is_told(void **state)
{
    const struct yard *y = *state;

    store_close(yard_open(y));
    overwrite(y->db, 0, 4096);
    assert_int_equal(yard_open_fails(y, SY_E_SYS, "is damaged; move it away"), EUCLEAN);
    assert_int_equal(unlink(y->db), 0);
    store_close(yard_open(y));
}

static void
damage_inside_is_told_and_the_process_lives_on(void **state)
{
    const struct yard *y = *state;
    char id[STORE_ID_SIZE];
    struct sy_error err = {0};
    struct store_request r = {0};
    struct stat s;
    struct store *st = yard_open(y);

    yard_request(id, st, "ls");
    store_close(st);
    assert_int_equal(stat(y->db, &s), 0);
    assert_true(s.st_size > 8192);
    overwrite(y->db, 4096, (size_t)s.st_size - 4096);
    st = yard_open(y);
    assert_int_equal(store_request_get(&r, st, id, &err), SY_E_SYS);
    assert_int_equal(err.sys, EUCLEAN);
    assert_int_equal(yard_create(id, st, "ls", &err), SY_E_SYS);
    assert_int_equal(err.sys, EUCLEAN);
    store_close(st);
}

static void
newer_and_foreign_databases_are_left_alone(void **state)
{
    const struct yard *y = *state;

    store_close(yard_open(y));
    yard_sql(y, "PRAGMA user_version=999");
    (void)yard_open_fails(y, SY_E_CONFIG, "has schema 999, made by a newer Shellyard");
    yard_sql(y, "PRAGMA user_version=-3");
    (void)yard_open_fails(y, SY_E_SYS, "is damaged");
    yard_sql(y, "PRAGMA user_version=1; PRAGMA application_id=7");
    (void)yard_open_fails(y, SY_E_CONFIG, "a database of another program");
}

static void
an_older_schema_is_brought_up_and_keeps_its_rows(void **state)
{
    const struct yard *y = *state;
    char id[STORE_ID_SIZE];
    struct sy_error err = {0};
    struct store_request r = {0};
    struct store *st = yard_open(y);

    yard_request(id, st, "ls");
    store_close(st);
    yard_sql(
        y,
        "DROP TABLE session_grant; DROP TABLE allow_rule; DROP TABLE metric; DROP TABLE access_rule; DROP INDEX request_same; "
        "PRAGMA user_version=1");
    st = yard_open(y);

    int64_t version = 0;

    assert_int_equal(store_number(&version, st, "PRAGMA user_version", &err), SY_E_OK);
    assert_int_equal(version, STORE_SCHEMA);
    assert_int_equal(store_number(&version, st, "SELECT count(*) FROM session_grant", &err),
                     SY_E_OK);
    assert_int_equal(store_request_get(&r, st, id, &err), SY_E_OK);
    assert_string_equal(r.text, "ls");
    store_request_fini(&r);
    store_close(st);
}

static void
a_migration_that_fails_leaves_the_schema_before_it(void **state)
{
    const struct yard *y = *state;

    store_close(yard_open(y));
    /* The table of the second step is there already. */
    yard_sql(y, "PRAGMA user_version=1");
    (void)yard_open_fails(y, SY_E_INTERNAL, "session_grant already exists");
    yard_sql(
        y,
        "DROP TABLE session_grant; DROP TABLE allow_rule; DROP TABLE metric; DROP TABLE access_rule; DROP INDEX request_same");
    store_close(yard_open(y));
}

static void
it_waits_for_another_writer_but_not_for_ever(void **state)
{
    const struct yard *y = *state;
    const struct store_options options = {.dir = y->dir, .busy_ms = 50};
    char id[STORE_ID_SIZE];
    struct sy_error err = {0};
    struct store *st = NULL;
    struct store_txn txn;
    struct store *other = yard_open(y);

    assert_int_equal(store_open(&st, &options, &err), SY_E_OK);
    assert_int_equal(store_begin(&txn, other, &err), SY_E_OK);

    uint64_t before = clock_mono_ns();

    assert_int_equal(yard_create(id, st, "ls", &err), SY_E_SYS);

    uint64_t took_ms = (clock_mono_ns() - before) / 1000000;

    assert_int_equal(err.sys, EBUSY);
    assert_non_null(strstr(err.msg, "held by another program"));
    assert_true(took_ms >= 50 && took_ms < 20000);
    assert_int_equal(store_end(&txn, SY_E_OK, &err), SY_E_OK);
    yard_request(id, st, "ls");
    store_close(other);
    store_close(st);
}

#define OPENERS       6
#define OPENER_ROUNDS 40

/* All wait for the pipe to end, so that they are as close together as can be. */
static int
open_at_once(const struct yard *y, void *arg)
{
    const int *pipe_fds = arg;
    const struct store_options options = {.dir = y->dir};
    struct sy_error err = {0};
    struct store *st = NULL;
    char c = 0;

    (void)close(pipe_fds[1]);
    if (read(pipe_fds[0], &c, 1) != 0) {
        return 2;
    }

    enum sy_code rc = store_open(&st, &options, &err);

    if (rc != SY_E_OK) {
        print_message("%s\n", err.msg);
    }
    store_close(st);
    return rc == SY_E_OK ? 0 : 1;
}

static void
remove_database(const struct yard *y)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[sizeof(y->db) + 16];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", y->db, ends[i]);
        (void)unlink(path);
    }
}

static void
a_new_one_is_made_by_many_at_once(void **state)
{
    const struct yard *y = *state;

    for (int round = 0; round < OPENER_ROUNDS; round++) {
        pid_t pids[OPENERS];
        int pipe_fds[2];

        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        for (size_t i = 0; i < OPENERS; i++) {
            pids[i] = yard_fork(y, open_at_once, pipe_fds);
        }
        (void)close(pipe_fds[0]);
        (void)close(pipe_fds[1]);
        for (size_t i = 0; i < OPENERS; i++) {
            assert_int_equal(yard_wait(pids[i]), 0);
        }
        remove_database(y);
    }
}

static void
who_makes_it_is_not_waited_for_for_ever(void **state)
{
    const struct yard *y = *state;
    const struct store_options options = {.dir = y->dir, .busy_ms = 50};
    char changes[sizeof(y->dir) + 32];
    struct sy_error err = {0};
    struct store *st = NULL;

    store_close(yard_open(y));
    (void)snprintf(changes, sizeof(changes), "%s/shellyard.changes", y->dir);

    int fd = open(changes, O_RDONLY | O_CLOEXEC);

    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(store_open(&st, &options, &err), SY_E_SYS);
    assert_int_equal(err.sys, EBUSY);
    assert_non_null(strstr(err.msg, "held by another program"));
    (void)close(fd);
    store_close(yard_open(y));
}

static void
files_that_were_moved_or_removed_are_noticed(void **state)
{
    const struct yard *y = *state;
    char changes[sizeof(y->dir) + 32];
    char old[sizeof(y->db) + 8];
    struct store *st = yard_open(y);

    assert_false(store_is_lost(st));
    (void)snprintf(changes, sizeof(changes), "%s/shellyard.changes", y->dir);
    assert_int_equal(unlink(changes), 0);
    assert_true(store_is_lost(st));
    store_close(st);
    st = yard_open(y);
    (void)snprintf(old, sizeof(old), "%s-old", y->db);
    assert_int_equal(rename(y->db, old), 0);
    assert_true(store_is_lost(st));
    store_close(yard_open(y)); /* another one by that name */
    assert_true(store_is_lost(st));
    store_close(st);
    st = yard_open(y);
    assert_false(store_is_lost(st));
    store_close(st);
    assert_int_equal(unlink(old), 0);
}

/* 0: as it should be; else the line that was wrong. */
static int
write_to_full_disk(const struct yard *y, void *arg)
{
    static char text[200000];
    const struct rlimit limit = {.rlim_cur = 300000, .rlim_max = 4000000};
    const struct rlimit none = {.rlim_cur = 4000000, .rlim_max = 4000000};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    char id[STORE_ID_SIZE];
    struct sy_error err = {0};
    struct store_requests list = {0};
    struct store *st = yard_open(y);
    size_t n = 0;

    (void)arg;
    (void)memset(text, 'x', sizeof(text) - 1);
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    while (n < 100 && yard_create(id, st, text, &err) == SY_E_OK) {
        n++;
    }
    if (n == 0 || n == 100 || err.code != SY_E_SYS || err.sys != ENOSPC ||
        strstr(err.msg, "make room") == NULL) {
        return __LINE__ % 256;
    }
    /* What failed is not there, what did not is. */
    if (store_requests_pending(&list, st, &err) != SY_E_OK || list.n != n) {
        return __LINE__ % 256;
    }
    store_requests_fini(&list);
    (void)setrlimit(RLIMIT_FSIZE, &none);
    if (yard_create(id, st, text, &err) != SY_E_OK) {
        return __LINE__ % 256;
    }
    store_close(st);
    return 0;
}

static void
a_full_disk_is_told_and_does_no_harm(void **state)
{
    const struct yard *y = *state;

    assert_int_equal(yard_wait(yard_fork(y, write_to_full_disk, NULL)), 0);
}

static int
open_read_only(const struct yard *y, void *arg)
{
    const struct store_options options = {.dir = y->dir};
    struct sy_error err = {0};
    struct store *st = NULL;

    (void)arg;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
        return 1;
    }
    if (store_open(&st, &options, &err) != SY_E_SYS || err.sys != EROFS) {
        return 2;
    }
    return strstr(err.msg, "make it and its directory writable") != NULL ? 0 : 3;
}

static void
a_database_that_cannot_be_written_is_told(void **state)
{
    const struct yard *y = *state;
    char changes[112];

    (void)snprintf(changes, sizeof(changes), "%s/shellyard.changes", y->dir);
    store_close(yard_open(y));
    assert_int_equal(chmod(y->db, 0400), 0);
    if (geteuid() == 0) { /* nothing is read-only for root */
        assert_int_equal(chmod(y->root, 0755), 0);
        assert_int_equal(chown(y->dir, 65534, 65534), 0);
        assert_int_equal(chown(y->db, 65534, 65534), 0);
        assert_int_equal(chown(changes, 65534, 65534), 0);
    }
    assert_int_equal(yard_wait(yard_fork(y, open_read_only, NULL)), 0);
}

static enum sy_code
open_and_close(void *arg)
{
    const struct yard *y = arg;
    const struct store_options options = {.dir = y->dir};
    struct store *st = NULL;
    enum sy_code rc = store_open(&st, &options, NULL);

    store_close(st);
    return rc;
}

static void
each_allocation_may_fail(void **state)
{
    fault_run(open_and_close, *state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_it_makes_is_for_the_user_alone, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_place_that_others_reach_is_refused, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(links_are_refused, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_foreign_owner_is_refused, yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(whether_a_directory_could_be_had_is_seen_without_making_it,
                                        yard_setup, yard_teardown),
        cmocka_unit_test(network_file_systems_are_known),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_database_is_told, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(damage_inside_is_told_and_the_process_lives_on, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(newer_and_foreign_databases_are_left_alone, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(an_older_schema_is_brought_up_and_keeps_its_rows,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(a_migration_that_fails_leaves_the_schema_before_it,
                                        yard_setup, yard_teardown),
        cmocka_unit_test_setup_teardown(it_waits_for_another_writer_but_not_for_ever, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_new_one_is_made_by_many_at_once, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(who_makes_it_is_not_waited_for_for_ever, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(files_that_were_moved_or_removed_are_noticed, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told_and_does_no_harm, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(a_database_that_cannot_be_written_is_told, yard_setup,
                                        yard_teardown),
        cmocka_unit_test_setup_teardown(each_allocation_may_fail, yard_setup, yard_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
