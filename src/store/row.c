#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "store/request.h"
#include "store/store_internal.h"

/* What the functions over tables share. */

enum sy_code
store_check_text(const char *what, const char *text, size_t max, struct sy_error *err)
{
    size_t len = strlen(text);

    if (len > max) {
        return sy_err_set(err, SY_E_ARG, "the %s has %zu bytes, %zu at most", what, len, max);
    }
    return utf8_is_valid(text, len) ? SY_E_OK
                                    : sy_err_set(err, SY_E_ARG, "the %s is no valid UTF-8", what);
}

enum sy_code
store_make_id(char id[STORE_ID_SIZE], const char *what, struct sy_error *err)
{
    unsigned char bytes[(STORE_ID_SIZE - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return sy_err_sys(err, errno, "making the id of %s", what);
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    }
    return SY_E_OK;
}

int
store_bind_text(sqlite3_stmt *s, const char *name, const char *text)
{
    return sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, name), text, -1, SQLITE_STATIC);
}

int
store_bind_i64(sqlite3_stmt *s, const char *name, int64_t value)
{
    return sqlite3_bind_int64(s, sqlite3_bind_parameter_index(s, name), value);
}

int
store_bind_digest(sqlite3_stmt *s, const char *name, const unsigned char *digest)
{
    return sqlite3_bind_blob(s, sqlite3_bind_parameter_index(s, name), digest,
                             (int)STORE_DIGEST_SIZE, SQLITE_STATIC);
}

enum sy_code
store_run(struct store *st, sqlite3_stmt *s, int rc, bool *ret_row, struct sy_error *err)
{
    return rc == SQLITE_OK ? store_step(st, s, ret_row, err) : store_failed(st, SQLITE_NOMEM, err);
}

char *
store_column_text(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);

    return text != NULL ? mem_strdup(text) : NULL;
}

enum sy_code
store_column_id(char ret[STORE_ID_SIZE], struct store *st, sqlite3_stmt *s, int i,
                struct sy_error *err)
{
    const char *id = (const char *)sqlite3_column_text(s, i);

    if (id == NULL || strlen(id) != STORE_ID_SIZE - 1) {
        return store_failed(st, SQLITE_CORRUPT, err);
    }
    memcpy(ret, id, STORE_ID_SIZE);
    return SY_E_OK;
}

enum sy_code
store_list(void **ret_v, size_t *ret_n, struct store *st, const struct store_listing *what,
           struct sy_error *err)
{
    STORE_STMT s = NULL;
    unsigned char *v = NULL;
    int64_t n = 0;
    bool is_row = false;
    enum sy_code rc = store_number(&n, st, what->count, err);

    *ret_n = 0;
    if (rc == SY_E_OK) {
        *ret_v = mem_alloc_zero((size_t)n + 1, what->size);
        v = *ret_v;
        rc = v != NULL ? SY_E_OK : sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        rc = store_prepare(&s, st, what->select, err);
    }
    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_i64(s, ":n", n), &is_row, err);
    }
    while (rc == SY_E_OK && is_row && v != NULL) {
        rc = what->read(v + what->size * (*ret_n)++, st, s, err);
        if (rc == SY_E_OK) {
            rc = store_step(st, s, &is_row, err);
        }
    }
    return rc;
}

enum sy_code
store_remove_rule(struct store *st, const char *sql, const char *id, struct sy_error *err)
{
    STORE_STMT s = NULL;
    struct store_txn txn;
    enum sy_code rc = store_begin(&txn, st, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = store_prepare(&s, st, sql, err);
    if (rc == SY_E_OK) {
        rc = store_run(st, s, store_bind_text(s, ":id", id), NULL, err);
    }
    if (rc == SY_E_OK && sqlite3_changes(st->db) == 0) {
        rc = sy_err_set(err, SY_E_NOTFOUND,
                        "there is no rule of that id; shellyard rules list shows them");
    }
    store_stmt_fini(&s);
    return store_end(&txn, rc, err);
}
