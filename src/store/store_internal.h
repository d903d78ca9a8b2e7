#ifndef SY_STORE_STORE_INTERNAL_H
#define SY_STORE_STORE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/err.h"
#include "base/limits.h"
#include "store/store.h"

#define STORE_FILE    "shellyard.db"
#define STORE_CHANGES "shellyard.changes"
#define BOOT_ID_SIZE  40U

struct store {
    sqlite3 *db;
    int changes_fd; /* writers hold it open, see watch.h */
    uint32_t busy_ms;
    uint64_t busy_until_ns; /* of the wait that goes on */
    bool is_writer;         /* of a writer thread: tells of changes by the batch */
    char boot_id[BOOT_ID_SIZE];
    char path[LIMIT_PATH];
};

/* Makes and checks the directory and its two files (place.c). ret_path: the
 * database's, links resolved. */
enum sy_code store_place_prepare(char ret_path[LIMIT_PATH], int *ret_changes_fd, const char *dir,
                                 struct sy_error *err) SY_NODISCARD;
/* What is wrong with a file system (f_type of statfs(2)) for shared memory; NULL: nothing. */
const char *store_place_fault(uint64_t fs_type);

/* The newest schema. store_migrate brings it up to `want`, for tests of older ones. */
#define STORE_SCHEMA 5
enum sy_code store_migrate(struct store *st, int want, struct sy_error *err) SY_NODISCARD;
/* Refuses what is newer or another program's; changes nothing. */
enum sy_code store_check_schema(struct store *st, struct sy_error *err) SY_NODISCARD;

/* The error of the call that just failed with `rc`. */
enum sy_code store_failed(const struct store *st, int rc, struct sy_error *err);

enum sy_code store_exec(struct store *st, const char *sql, struct sy_error *err) SY_NODISCARD;
void store_stmt_fini(sqlite3_stmt **s);
#define STORE_STMT SY_AUTO(store_stmt_fini) sqlite3_stmt *
enum sy_code store_prepare(sqlite3_stmt **ret, struct store *st, const char *sql,
                           struct sy_error *err) SY_NODISCARD;
/* *ret_row (may be NULL): there is a row. */
enum sy_code store_step(struct store *st, sqlite3_stmt *s, bool *ret_row,
                        struct sy_error *err) SY_NODISCARD;
/* The number in the first column of the only row. */
enum sy_code store_number(int64_t *ret, struct store *st, const char *sql,
                          struct sy_error *err) SY_NODISCARD;

/* Values for the parameters of that name; codes of SQLite, to be or'ed: none but OK is 0. */
int store_bind_text(sqlite3_stmt *s, const char *name, const char *text);
int store_bind_i64(sqlite3_stmt *s, const char *name, int64_t value);
int store_bind_digest(sqlite3_stmt *s, const char *name, const unsigned char *digest);
/* store_step for a statement whose bindings gave `rc`. */
enum sy_code store_run(struct store *st, sqlite3_stmt *s, int rc, bool *ret_row,
                       struct sy_error *err) SY_NODISCARD;
/* 128 random bits in hex, for `what`. */
enum sy_code store_make_id(char id[33], const char *what, struct sy_error *err) SY_NODISCARD;
/* A copy of a column, or NULL. */
char *store_column_text(sqlite3_stmt *s, int i);
/* The id in a column; that of no other length is damage. */
enum sy_code store_column_id(char ret[33], struct store *st, sqlite3_stmt *s, int i,
                             struct sy_error *err) SY_NODISCARD;

/*
 * All rows of a table into an array from the heap, which the caller frees, on failure too: *ret_n
 * is how many were begun. `count` gives their number, `select` has a LIMIT :n.
 */
struct store_listing {
    const char *count;
    const char *select;
    size_t size; /* of an element; zeroed before it is read */
    enum sy_code (*read)(void *element, struct store *st, sqlite3_stmt *s, struct sy_error *err);
};
enum sy_code store_list(void **ret_v, size_t *ret_n, struct store *st,
                        const struct store_listing *what, struct sy_error *err) SY_NODISCARD;
/* SY_E_NOTFOUND unless the statement, which deletes by :id, has deleted a rule. */
enum sy_code store_remove_rule(struct store *st, const char *sql, const char *id,
                               struct sy_error *err) SY_NODISCARD;
/* SY_E_ARG unless it is UTF-8 of at most `max` bytes; `what` is for the error. */
enum sy_code store_check_text(const char *what, const char *text, size_t max,
                              struct sy_error *err) SY_NODISCARD;

/*
 * A transaction that writes, or a part of the one that is open. store_end commits when
 * `rc` is SY_E_OK and else takes all back; it returns what became of it.
 */
struct store_txn {
    struct store *st;
    bool is_inner;
};
enum sy_code store_begin(struct store_txn *txn, struct store *st,
                         struct sy_error *err) SY_NODISCARD;
enum sy_code store_end(struct store_txn *txn, enum sy_code rc, struct sy_error *err) SY_NODISCARD;

/* Wakes who watches. */
void store_tell(const struct store *st);

/* Times for a thing that ends: by CLOCK_MONOTONIC within one run of the machine, by
 * the wall clock after it. */
struct store_term {
    int64_t created_ms; /* since 1970 */
    int64_t expires_ms;
    int64_t deadline_ns; /* CLOCK_MONOTONIC of the boot that boot_id names */
};
void store_term_make(struct store_term *ret, uint64_t ttl_ms);
/* The condition "it is over" over columns of a request or a grant, with the parameters
 * :boot, :mono and :wall that store_term_bind fills. */
#define STORE_IS_OVER                                                                              \
    "(CASE WHEN boot_id = :boot AND :boot <> '' THEN deadline_ns <= :mono"                         \
    " ELSE expires_ms <= :wall END)"
int store_term_bind(const struct store *st, sqlite3_stmt *s);

#endif
