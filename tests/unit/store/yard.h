#ifndef SY_TESTS_UNIT_STORE_YARD_H
#define SY_TESTS_UNIT_STORE_YARD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/request.h"
#include "store/store.h"

/* A directory of the test's own; `dir` below it is the store's and not there yet. */
struct yard {
    char root[64];
    char dir[80];
    char db[112];
};

/* For cmocka: *state is a struct yard. */
int yard_setup(void **state);
int yard_teardown(void **state);

struct store *yard_open(const struct yard *y);
/* Fails the test unless opening fails with this code and a sentence that holds `part`;
 * returns err.sys. */
int yard_open_fails(const struct yard *y, enum sy_code code, const char *part);
/* Runs a statement by another connection than the store's. */
void yard_sql(const struct yard *y, const char *sql);

extern const unsigned char yard_digest[STORE_DIGEST_SIZE];
enum sy_code yard_create(char id[STORE_ID_SIZE], struct store *st, const char *text,
                         struct sy_error *err);
void yard_request(char id[STORE_ID_SIZE], struct store *st, const char *text);

/* Forks; the child runs `body` and ends with what it returns. */
typedef int yard_child(const struct yard *y, void *arg);
pid_t yard_fork(const struct yard *y, yard_child *body, void *arg);
/* Waits; -1 when a signal ended it. */
int yard_wait(pid_t pid);

#endif
