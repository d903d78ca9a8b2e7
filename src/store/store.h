#ifndef SY_STORE_STORE_H
#define SY_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What outlives a process and is shared by all of one user: an SQLite database in
 * the state directory. A `struct store` is one connection and belongs to one thread
 * at a time; processes and threads have connections of their own.
 *
 * Errors of all functions of the room name the file and what to do. Their code, and
 * `sys` where several share one:
 *
 *     SY_E_SYS EBUSY       somebody else writes for longer than busy_ms
 *     SY_E_SYS ENOSPC      no room: disk, quota or limit of file size
 *     SY_E_SYS EROFS       cannot be written
 *     SY_E_SYS EUCLEAN     damaged, or no database
 *     SY_E_SYS otherwise   another system call failed
 *     SY_E_DENIED          others than the user could read or change it
 *     SY_E_CONFIG          made by a newer version or another program, or on a
 *                          network file system
 *
 * What failed has changed nothing, and the connection can be used again.
 */
struct store;

struct store_options {
    const char *dir;  /* absolute; made (0700, missing parents too) if it is not there */
    uint32_t busy_ms; /* how long to wait for other writers; 0: LIMIT_STORE_BUSY_MS */
};

/* Opens the database, makes it if there is none, brings it up to date if it is older. */
enum sy_code store_open(struct store **ret, const struct store_options *options,
                        struct sy_error *err) SY_NODISCARD;
/* Accepts NULL. */
void store_close(struct store *st);

/* The directory itself, made and judged as store_open does it; a descriptor to be closed. */
enum sy_code store_dir_open(int *ret_fd, const char *dir, struct sy_error *err) SY_NODISCARD;

/* Could that be had, as far as can be seen without making anything? */
enum sy_code store_dir_probe(const char *dir, struct sy_error *err) SY_NODISCARD;

/* Is there a database in that directory? */
bool store_exists(const char *dir);
/* Another number after each commit of another connection. */
enum sy_code store_version(uint64_t *ret, struct store *st, struct sy_error *err) SY_NODISCARD;

/* Are its files no longer those of these names? Then nobody else writes there: open it anew. */
bool store_is_lost(const struct store *st);

/* For messages; lives as long as the store. */
const char *store_path(const struct store *st);

#endif
