#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/mem.h"
#include "yard.h"

const unsigned char yard_digest[STORE_DIGEST_SIZE] = {1, 2, 3, 4};

int
yard_setup(void **state)
{
    struct yard *y = mem_alloc_zero(1, sizeof(*y));

    if (y == NULL) {
        return -1;
    }
    (void)snprintf(y->root, sizeof(y->root), "/var/tmp/shellyard-store-XXXXXX");
    if (mkdtemp(y->root) == NULL) {
        return -1;
    }
    (void)snprintf(y->dir, sizeof(y->dir), "%s/state", y->root);
    (void)snprintf(y->db, sizeof(y->db), "%s/shellyard.db", y->dir);
    *state = y;
    return 0;
}

int
yard_teardown(void **state)
{
    static const char *const names[] = {"state/shellyard.db",      "state/shellyard.db-wal",
                                        "state/shellyard.db-shm",  "state/shellyard.db-journal",
                                        "state/shellyard.changes", "target"};
    struct yard *y = *state;
    char path[160];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", y->root, names[i]);
        (void)remove(path);
    }
    (void)remove(y->dir);

    int rc = rmdir(y->root);

    mem_free(y);
    return rc;
}

static enum sy_code
open_it(struct store **ret, const struct yard *y, struct sy_error *err)
{
    const struct store_options options = {.dir = y->dir};

    return store_open(ret, &options, err);
}

struct store *
yard_open(const struct yard *y)
{
    struct store *st = NULL;
    struct sy_error err = {0};

    if (open_it(&st, y, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
    return st;
}

int
yard_open_fails(const struct yard *y, enum sy_code code, const char *part)
{
    struct store *st = NULL;
    struct sy_error err = {0};
    enum sy_code rc = open_it(&st, y, &err);

    store_close(st);
    assert_null(st);
    if (rc != code || strstr(err.msg, part) == NULL) {
        fail_msg("%s: '%s', expected %s with '%s'", sy_code_name(rc), err.msg, sy_code_name(code),
                 part);
    }
    return err.sys;
}

void
yard_sql(const struct yard *y, const char *sql)
{
    sqlite3 *db = NULL;
    char *msg = NULL;

    assert_int_equal(sqlite3_open(y->db, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &msg) != SQLITE_OK) {
        fail_msg("%s: %s", sql, msg);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

enum sy_code
yard_create(char id[STORE_ID_SIZE], struct store *st, const char *text, struct sy_error *err)
{
    const struct store_request_new r = {.digest = yard_digest,
                                        .text = text,
                                        .session = "session",
                                        .principal = "agent",
                                        .ttl_ms = 600000};

    return store_request_create(id, st, &r, err);
}

void
yard_request(char id[STORE_ID_SIZE], struct store *st, const char *text)
{
    struct sy_error err = {0};

    if (yard_create(id, st, text, &err) != SY_E_OK) {
        fail_msg("%s", err.msg);
    }
}

pid_t
yard_fork(const struct yard *y, yard_child *body, void *arg)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(body(y, arg));
    }
    return pid;
}

int
yard_wait(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
