#ifndef SY_TESTS_UNIT_CONFIG_FIXTURE_H
#define SY_TESTS_UNIT_CONFIG_FIXTURE_H

#include "config/config.h"

/* A directory of its own for each test, its path without symbolic links. */
struct fixture {
    char dir[160];
    char system[200]; /* dir/system.yaml, not there at first */
    char user[200];   /* dir/user.yaml */
    char home[200];   /* dir/home, not there at first */
};

/* cmocka set-up and tear-down; *state is the struct fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Writes a whole file with mode 0600. */
void fixture_write(const char *path, const char *bytes, size_t len);
void fixture_write_text(const char *path, const char *text);
/* dir/name into dst. */
void fixture_path(char dst[256], const struct fixture *f, const char *name);

/* A list of words as an execve-like interface takes it. */
char *const *fixture_list(const char *const *list);

/* What a test loads; members may be NULL. */
struct given {
    const char *system; /* text of the system file; NULL: as it is */
    const char *user;
    const char *const *env;
    const char *const *flags;
    const char *workspace;
    const char *mode;
};

enum sy_code fixture_load(struct config *ret, const struct fixture *f, const struct given *given,
                          struct sy_error *err);
/* Loads, asserts success. */
void fixture_must_load(struct config *ret, const struct fixture *f, const struct given *given);
/* Loads, asserts SY_E_CONFIG with exactly this sentence; "{user}", "{system}"
 * and "{dir}" in it stand for the paths. */
void fixture_must_fail(const struct fixture *f, const struct given *given, const char *sentence);

#endif
