#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/place.h"
#include "store/store_internal.h"

#define NS_PER_MS 1000000U

const char *
store_path(const struct store *st)
{
    return st->path;
}

static enum sy_code
fill(struct sy_error *err, int sys, const char *path, const char *sentence)
{
    struct place_shown_path shown;
    enum sy_code rc =
        sy_err_set(err, SY_E_SYS, "'%s' %s", place_visible_path(&shown, path), sentence);

    if (err != NULL) {
        err->sys = sys;
    }
    return rc;
}

static bool
is_no_room(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG;
}

/* errno of the last failed write. sqlite3_system_errno may be late: what SQLite did after
 * the failure counts for it too. The log and the database each keep their own. */
static int
last_errno(sqlite3 *db, int rc)
{
    int errnum = sqlite3_system_errno(db);
    sqlite3_file *log = NULL;

    if (rc != SQLITE_IOERR_WRITE || is_no_room(errnum)) {
        return errnum;
    }
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
        log != NULL && log->pMethods != NULL) {
        (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &errnum);
    }
    if (!is_no_room(errnum)) {
        (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &errnum);
    }
    return errnum;
}

enum sy_code
store_failed(const struct store *st, int rc, struct sy_error *err)
{
    int errnum = st->db != NULL ? last_errno(st->db, rc) : 0;
    int kind = rc & 0xff;

    if (kind == SQLITE_NOMEM) {
        return sy_err_nomem(err);
    }
    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) {
        return fill(
            err, EBUSY, st->path,
            "is held by another program for too long; end what holds it (fuser names it) and "
            "try again");
    }
    if (kind == SQLITE_FULL || (kind == SQLITE_IOERR && is_no_room(errnum))) {
        return fill(err, ENOSPC, st->path,
                    "cannot grow: disk, quota or file size limit is full; nothing was stored; make "
                    "room and try again");
    }
    if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB) {
        return fill(err, EUCLEAN, st->path,
                    "is damaged; move it away together with its -wal and -shm to start anew (open "
                    "requests and grants are lost)");
    }
    if (kind == SQLITE_READONLY || errnum == EROFS) {
        return fill(err, EROFS, st->path,
                    "cannot be written; make it and its directory writable for you");
    }
    if (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) {
        struct place_shown_path shown;

        return sy_err_sys(err, errnum != 0 ? errnum : EIO, "using '%s' (%s)",
                          place_visible_path(&shown, st->path), sqlite3_errstr(rc));
    }

    struct place_shown_path shown;

    return sy_err_set(err, SY_E_INTERNAL, "'%s': %s", place_visible_path(&shown, st->path),
                      st->db != NULL ? sqlite3_errmsg(st->db) : sqlite3_errstr(rc));
}

/* SQLite has nothing to wait for, so it is asked again, at most until the deadline. */
static int
on_busy(void *arg, int count)
{
    struct store *st = arg;
    uint64_t now = clock_mono_ns();

    if (count == 0) {
        st->busy_until_ns = now + (uint64_t)st->busy_ms * NS_PER_MS;
    }
    if (now >= st->busy_until_ns) {
        return 0;
    }

    uint64_t left_ms = (st->busy_until_ns - now) / NS_PER_MS + 1;
    uint64_t step_ms = count < 20 ? 1 + (uint64_t)count / 2 : 10;

    (void)poll(NULL, 0, (int)(step_ms < left_ms ? step_ms : left_ms));
    return 1;
}

enum sy_code
store_exec(struct store *st, const char *sql, struct sy_error *err)
{
    int rc = sqlite3_exec(st->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? SY_E_OK : store_failed(st, rc, err);
}

void
store_stmt_fini(sqlite3_stmt **s)
{
    (void)sqlite3_finalize(*s);
    *s = NULL;
}

enum sy_code
store_prepare(sqlite3_stmt **ret, struct store *st, const char *sql, struct sy_error *err)
{
    int rc = sqlite3_prepare_v2(st->db, sql, -1, ret, NULL);

    return rc == SQLITE_OK ? SY_E_OK : store_failed(st, rc, err);
}

static bool
is_that_file(int fd, const char *path)
{
    struct stat held;
    struct stat named;

    return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

bool
store_is_lost(const struct store *st)
{
    char changes[LIMIT_PATH];
    int has_moved = 0;
    int n = snprintf(changes, sizeof(changes), "%.*s%s",
                     (int)(strlen(st->path) - strlen(STORE_FILE)), st->path, STORE_CHANGES);

    return n < 0 || (size_t)n >= sizeof(changes) || !is_that_file(st->changes_fd, changes) ||
           sqlite3_file_control(st->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) != SQLITE_OK ||
           has_moved != 0;
}

enum sy_code
store_step(struct store *st, sqlite3_stmt *s, bool *ret_row, struct sy_error *err)
{
    int rc = sqlite3_step(s);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return store_failed(st, rc, err);
    }
    if (ret_row != NULL) {
        *ret_row = rc == SQLITE_ROW;
    }
    return SY_E_OK;
}

enum sy_code
store_number(int64_t *ret, struct store *st, const char *sql, struct sy_error *err)
{
    STORE_STMT s = NULL;
    enum sy_code rc = store_prepare(&s, st, sql, err);

    if (rc == SY_E_OK) {
        rc = store_step(st, s, NULL, err);
    }
    if (rc == SY_E_OK) {
        *ret = sqlite3_column_int64(s, 0);
    }
    return rc;
}

enum sy_code
store_begin(struct store_txn *txn, struct store *st, struct sy_error *err)
{
    *txn = (struct store_txn){.st = st, .is_inner = sqlite3_get_autocommit(st->db) == 0};
    /* IMMEDIATE: to become a writer later could fail at once, without a wait. */
    return store_exec(st, txn->is_inner ? "SAVEPOINT part" : "BEGIN IMMEDIATE", err);
}

enum sy_code
store_end(struct store_txn *txn, enum sy_code rc, struct sy_error *err)
{
    struct store *st = txn->st;

    if (rc == SY_E_OK) {
        rc = store_exec(st, txn->is_inner ? "RELEASE part" : "COMMIT", err);
        if (rc == SY_E_OK && !txn->is_inner && !st->is_writer) {
            store_tell(st);
        }
    }
    /* SQLite may have taken all back by itself: then there is nothing to do. */
    if (rc != SY_E_OK && sqlite3_get_autocommit(st->db) == 0) {
        (void)sqlite3_exec(st->db, txn->is_inner ? "ROLLBACK TO part; RELEASE part" : "ROLLBACK",
                           NULL, NULL, NULL);
    }
    return rc;
}

void
store_tell(const struct store *st)
{
    /* Times alone: it must work on a full disk. Who misses it sees the close (watch.h). */
    (void)futimens(st->changes_fd, NULL);
}

void
store_term_make(struct store_term *ret, uint64_t ttl_ms)
{
    ret->created_ms = clock_wall_ns() / NS_PER_MS;
    ret->expires_ms = ret->created_ms + (int64_t)ttl_ms;
    ret->deadline_ns = (int64_t)(clock_mono_ns() + ttl_ms * NS_PER_MS);
}

static int
bind_i64(sqlite3_stmt *s, const char *name, int64_t value)
{
    return sqlite3_bind_int64(s, sqlite3_bind_parameter_index(s, name), value);
}

int
store_term_bind(const struct store *st, sqlite3_stmt *s)
{
    int rc = sqlite3_bind_text(s, sqlite3_bind_parameter_index(s, ":boot"), st->boot_id, -1,
                               SQLITE_STATIC);

    if (rc == SQLITE_OK) {
        rc = bind_i64(s, ":mono", (int64_t)clock_mono_ns());
    }
    return rc == SQLITE_OK ? bind_i64(s, ":wall", clock_wall_ns() / NS_PER_MS) : rc;
}

/* Without one, the wall clock decides alone. */
static enum sy_code
read_boot_id(struct store *st)
{
    SY_AUTO(buf_fini) struct buf b = {.max = BOOT_ID_SIZE - 1};
    enum sy_code rc = fd_read_file("/proc/sys/kernel/random/boot_id", &b, NULL);

    if (rc == SY_E_NOMEM) {
        return rc;
    }
    if (rc == SY_E_OK) {
        memcpy(st->boot_id, buf_view(&b), b.len);
        st->boot_id[strcspn(st->boot_id, "\n")] = '\0';
    }
    return SY_E_OK;
}

static enum sy_code
use_wal(struct store *st, struct sy_error *err)
{
    STORE_STMT s = NULL;
    enum sy_code rc = store_prepare(&s, st, "PRAGMA journal_mode=WAL", err);

    if (rc == SY_E_OK) {
        rc = store_step(st, s, NULL, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    const char *mode = (const char *)sqlite3_column_text(s, 0);

    if (mode == NULL || strcmp(mode, "wal") != 0) {
        struct place_shown_path shown;

        return sy_err_set(err, SY_E_CONFIG,
                          "'%s' is on a file system where processes cannot share a database; set "
                          "XDG_STATE_HOME to a local directory",
                          place_visible_path(&shown, st->path));
    }
    return SY_E_OK;
}

static enum sy_code
set_up(struct store *st, struct sy_error *err)
{
    (void)sqlite3_extended_result_codes(st->db, 1);
    (void)sqlite3_busy_handler(st->db, on_busy, st);
    (void)sqlite3_db_config(st->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(st->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (sqlite3_db_readonly(st->db, "main") != 0) {
        return store_failed(st, SQLITE_READONLY, err);
    }

    enum sy_code rc = store_check_schema(st, err);

    if (rc == SY_E_OK) {
        rc = use_wal(st, err);
    }
    if (rc == SY_E_OK) {
        rc = store_exec(st,
                        "PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; "
                        "PRAGMA cell_size_check=ON; PRAGMA secure_delete=ON",
                        err);
    }
    return rc == SY_E_OK ? store_migrate(st, STORE_SCHEMA, err) : rc;
}

/* One after the other: where two switch a new database to its log at once, SQLite (3.40) fails
 * with SQLITE_BUSY without asking on_busy, or with SQLITE_IOERR_FSTAT as the journal goes. The
 * lock is not on the database, whose locks are SQLite's. */
static enum sy_code
set_up_alone(struct store *st, struct sy_error *err)
{
    for (int count = 0; flock(st->changes_fd, LOCK_EX | LOCK_NB) != 0; count++) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            struct place_shown_path shown;

            return sy_err_sys(err, errno, "locking the directory of '%s'",
                              place_visible_path(&shown, st->path));
        }
        if (on_busy(st, count) == 0) {
            return store_failed(st, SQLITE_BUSY, err);
        }
    }

    enum sy_code rc = set_up(st, err);

    /* Said, for a process that was forked meanwhile holds the file too. */
    (void)flock(st->changes_fd, LOCK_UN);
    return rc;
}

enum sy_code
store_open(struct store **ret, const struct store_options *options, struct sy_error *err)
{
    struct store *st = mem_alloc_zero(1, sizeof(*st));

    if (st == NULL) {
        return sy_err_nomem(err);
    }
    st->changes_fd = -1;
    st->busy_ms = options->busy_ms != 0 ? options->busy_ms : LIMIT_STORE_BUSY_MS;

    enum sy_code rc = store_place_prepare(st->path, &st->changes_fd, options->dir, err);

    if (rc == SY_E_OK && read_boot_id(st) != SY_E_OK) {
        rc = sy_err_nomem(err);
    }
    if (rc == SY_E_OK) {
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
        int code = sqlite3_open_v2(st->path, &st->db, flags, NULL);

        rc = code == SQLITE_OK ? set_up_alone(st, err) : store_failed(st, code, err);
    }
    if (rc != SY_E_OK) {
        store_close(st);
        return rc;
    }
    *ret = st;
    return SY_E_OK;
}

void
store_close(struct store *st)
{
    if (st == NULL) {
        return;
    }
    (void)sqlite3_close(st->db);
    fd_close(&st->changes_fd);
    mem_free(st);
}

bool
store_exists(const char *dir)
{
    char path[LIMIT_PATH];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, STORE_FILE);

    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

enum sy_code
store_version(uint64_t *ret, struct store *st, struct sy_error *err)
{
    int64_t version = 0;
    enum sy_code rc = store_number(&version, st, "PRAGMA data_version", err);

    *ret = (uint64_t)version;
    return rc;
}
