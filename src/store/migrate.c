#include <stdio.h>

#include "base/place.h"
#include "store/store_internal.h"

/* "SYst": whose file it is, for file(1) and for us. */
#define APPLICATION_ID 1398371188

/* By the number that they lead to, from 1. What was released is never changed. */
static const char *const migrations[STORE_SCHEMA] = {
    "CREATE TABLE request ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " digest BLOB NOT NULL CHECK (length(digest) = 32),"
    " text TEXT NOT NULL,"
    " session TEXT NOT NULL,"
    " principal TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL,"
    " boot_id TEXT NOT NULL,"
    " deadline_ns INTEGER NOT NULL,"
    " status INTEGER NOT NULL DEFAULT 0,"
    " reason TEXT NOT NULL DEFAULT '',"
    " decided_by TEXT NOT NULL DEFAULT '',"
    " decided_ms INTEGER NOT NULL DEFAULT 0,"
    " is_used INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE INDEX request_pending ON request (seq) WHERE status = 0;",

    "CREATE TABLE session_grant ("
    " session TEXT NOT NULL,"
    " key BLOB NOT NULL CHECK (length(key) = 32),"
    " decision INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL,"
    " boot_id TEXT NOT NULL,"
    " deadline_ns INTEGER NOT NULL,"
    " PRIMARY KEY (session, key)"
    ") STRICT, WITHOUT ROWID;",

    "CREATE INDEX request_same ON request (session, digest);"
    "CREATE TABLE allow_rule ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " prefix TEXT NOT NULL,"
    " lifts_sandbox INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " decided_by TEXT NOT NULL"
    ") STRICT;",

    "CREATE TABLE metric ("
    " name TEXT NOT NULL,"
    " first TEXT NOT NULL,"
    " second TEXT NOT NULL,"
    " part INTEGER NOT NULL,"
    " value INTEGER NOT NULL,"
    " since_ms INTEGER NOT NULL,"
    " PRIMARY KEY (name, first, second, part)"
    ") STRICT, WITHOUT ROWID;",

    "CREATE TABLE access_rule ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " kind TEXT NOT NULL,"
    " object TEXT NOT NULL,"
    " workspace TEXT NOT NULL,"
    " mode TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " decided_by TEXT NOT NULL"
    ") STRICT;",
};

enum sy_code
store_check_schema(struct store *st, struct sy_error *err)
{
    int64_t version = 0;
    int64_t owner = 0;
    int64_t tables = 0;
    struct place_shown_path shown;
    enum sy_code rc = store_number(&tables, st, "SELECT count(*) FROM sqlite_schema", err);

    if (rc == SY_E_OK) {
        rc = store_number(&version, st, "PRAGMA user_version", err);
    }
    if (rc == SY_E_OK) {
        rc = store_number(&owner, st, "PRAGMA application_id", err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (owner != APPLICATION_ID && (owner != 0 || version != 0 || tables != 0)) {
        return sy_err_set(err, SY_E_CONFIG, "'%s' is a database of another program; move it away",
                          place_visible_path(&shown, st->path));
    }
    if (version < 0) {
        return store_failed(st, SQLITE_CORRUPT, err);
    }
    if (version > STORE_SCHEMA) {
        return sy_err_set(err, SY_E_CONFIG,
                          "'%s' has schema %lld, made by a newer Shellyard; this one knows %d at "
                          "most: use the newer one, or move the file away",
                          place_visible_path(&shown, st->path), (long long)version, STORE_SCHEMA);
    }
    return SY_E_OK;
}

/* *ret_done: the schema is `want` or newer. */
static enum sy_code
one_step(struct store *st, int want, bool *ret_done, struct sy_error *err)
{
    int64_t version = 0;
    /* Read inside: another process may do the same. */
    enum sy_code rc = store_check_schema(st, err);

    if (rc == SY_E_OK) {
        rc = store_number(&version, st, "PRAGMA user_version", err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    *ret_done = version >= want;
    if (*ret_done) {
        return SY_E_OK;
    }

    char number[96];

    rc = store_exec(st, migrations[version], err);
    (void)snprintf(number, sizeof(number), "PRAGMA application_id=%d; PRAGMA user_version=%d",
                   APPLICATION_ID, (int)version + 1);
    return rc == SY_E_OK ? store_exec(st, number, err) : rc;
}

enum sy_code
store_migrate(struct store *st, int want, struct sy_error *err)
{
    int64_t version = 0;
    enum sy_code rc = store_number(&version, st, "PRAGMA user_version", err);
    bool is_done = version >= want;

    while (rc == SY_E_OK && !is_done) {
        struct store_txn txn;

        rc = store_begin(&txn, st, err);
        if (rc == SY_E_OK) {
            rc = store_end(&txn, one_step(st, want, &is_done, err), err);
        }
    }
    return rc;
}
