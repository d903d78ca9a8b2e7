#ifndef SY_TESTS_UNIT_SANDBOX_SBPL_INTERNAL_H
#define SY_TESTS_UNIT_SANDBOX_SBPL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "sbpl.h"

enum node_kind { NODE_LIST, NODE_STRING, NODE_SYMBOL, NODE_QUOTED };

struct node {
    enum node_kind kind;
    char *text;        /* of all but lists */
    struct node *head; /* of a list */
    struct node *next;
};

struct sbpl {
    struct node *forms;
    const struct strv *params;
};

struct reader {
    const char *at;
    const struct strv *params;
    char *why;
    bool has_failed;
};

/* sbpl.c: remembers the first fault; gives NULL. */
struct node *sbpl_fail(struct reader *r, const char *what, const char *detail);

/* sbpl_check.c: fails unless the forms are a profile that we could have written. */
void sbpl_check(struct reader *r, const struct node *forms);
/* What a filter takes: 's', 'r', 'w', 'f', 'a' (sbpl_check.c tells). */
char sbpl_filter_takes(const struct node *filter);
/* Appends what a string expression stands for; false if it is none. */
bool sbpl_string(struct buf *out, const struct strv *params, const struct node *n);
bool sbpl_regex_fits(const char *pattern, const char *text, bool *ret_is_valid);
/* The rule inside (if (defined? 'OPERATION) RULE), or NULL. */
const struct node *sbpl_guarded(const struct node *n);

#endif
