#ifndef SY_TESTS_UNIT_PATCH_YARD_H
#define SY_TESTS_UNIT_PATCH_YARD_H

#include <stdbool.h>

#include "base/buf.h"
#include "patch/patch.h"

/* A directory for one test: W is the workspace and the only root, O is outside. */
struct yard {
    char base[64];
    char *roots[2];
    struct patch_world world;
    struct buf fault;
    struct sy_error err;
    patch_before_fn *before;
    void *before_arg;
};

int yard_setup(void **state);
int yard_teardown(void **state);

/* base + "/" + name; a few of them live at a time. */
const char *yard_path(const struct yard *y, const char *name);
/* With parents. */
void yard_file(const struct yard *y, const char *name, const char *text);
void yard_mkdir(const struct yard *y, const char *name);
void yard_link(const struct yard *y, const char *target, const char *name);
/* All that is in W and O, a line an entry: type, mode, path and content. Static buffer of two. */
const char *yard_tree(const struct yard *y);
/* Whole content; "(none)" if it is not there. Static buffer. */
const char *yard_text(const struct yard *y, const char *name);
/* A shell line in the directory; fails the test unless it exits 0. */
void yard_run(const struct yard *y, const char *line);
bool yard_exists(const struct yard *y, const char *name);

/* Reads, plans and applies; texts of errors in y->err and y->fault. `summary` and `diff` may be
 * NULL. `body` is what stands between the markers. */
enum sy_code yard_patch(struct yard *y, const char *body, struct buf *summary, struct buf *diff);
/* It succeeds, and says this. */
void yard_applies(struct yard *y, const char *body, const char *summary);
/* It fails with these words, and nothing has changed. */
void yard_refuses(struct yard *y, const char *body, const char *words);

/* A patch of each kind of section, and the files for it. */
extern const char yard_all_kinds[];
void yard_make_all_kinds(const struct yard *y);

#endif
