#ifndef SY_TESTS_UNIT_GUARD_YARD_H
#define SY_TESTS_UNIT_GUARD_YARD_H

#include <stdbool.h>
#include <stddef.h>

#include "guard/guard.h"

/* A directory for one test: W is a writable root, S the state directory. */
struct yard {
    char base[256];
    struct guard *g;
};

int yard_setup(void **state);
int yard_teardown(void **state);

/* base + "/" + name; a few of them live at a time. */
const char *yard_path(const struct yard *y, const char *name);
void yard_mkdir(const struct yard *y, const char *name); /* with parents */
void yard_file(const struct yard *y, const char *name, const char *text);
void yard_chmod(const struct yard *y, const char *name, unsigned mode);
void yard_link(const struct yard *y, const char *target, const char *name);
/* Whole content; "" if it is not there. Static buffer. */
const char *yard_text(const struct yard *y, const char *name);
bool yard_exists(const struct yard *y, const char *name);
/* Runs a shell line in W with git set up for tests; fails the test unless it exits 0. */
void yard_run(const struct yard *y, const char *line);
int yard_try(const struct yard *y, const char *line);
/* A number that changes with any name, type, mode or content below W. */
unsigned long yard_hash(const struct yard *y);

/* y->g over W. `mounts`: has_mounts; with placeholders. */
void yard_guard(struct yard *y, bool mounts);
void yard_guard_options(struct yard *y, const struct guard_options *o);
/*
 * Files are stamped by a clock of some milliseconds a tick. What was made in the
 * very tick in which a run begins may be its own, for all the guard can tell. Returns
 * in a later tick than that of the call.
 */
void yard_await_tick(void);
void yard_begin(struct yard *y); /* in a tick of its own */
/* "PATH ACTION" lines below W, sorted as told ("W/.git pin\n"). Static buffer. */
const char *yard_marks(const struct yard *y, const struct guard_marks *m);
const char *yard_marks_now(struct yard *y);
const char *yard_refresh(struct yard *y);
/* What guard_after tells: "VERDICT OPERATION PATH (WHY)" lines. Static buffer. */
const char *yard_after(struct yard *y);

#endif
