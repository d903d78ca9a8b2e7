#ifndef SY_APPROVAL_STARLARK_H
#define SY_APPROVAL_STARLARK_H

#include "base/buf.h"
#include "base/place.h"

/*
 * The part of Starlark that files of rules are made of: calls, with arguments
 * that are strings, lists of strings, or lists of such lists. Nothing is
 * executed: names, loops and definitions are errors with their place.
 */
struct starlark {
    const struct place_text *in; /* valid UTF-8 */
    const char *name;            /* what places are named by; borrowed */
    struct sy_error *err;
    size_t at; /* the next byte */
    struct {
        size_t at; /* the byte, behind whose place the next one is sought */
        size_t line;
        size_t column;
    } mark;
};

/* A string, or a list of strings. */
struct starlark_item {
    struct place at;
    bool is_list;
    struct strv words; /* one, if it is a string */
};

enum starlark_type { STARLARK_NONE, STARLARK_STRING, STARLARK_LIST };

struct starlark_value {
    enum starlark_type type;
    struct place at;
    struct starlark_item *items; /* of a string: one; owned */
    size_t n;
};

#define STARLARK_ARGS_MAX 8
#define STARLARK_NAME_MAX 32

struct starlark_arg {
    char name[STARLARK_NAME_MAX]; /* "": by position */
    struct place at;
    struct starlark_value value;
};

struct starlark_call {
    char name[STARLARK_NAME_MAX];
    struct place at;
    struct starlark_arg args[STARLARK_ARGS_MAX];
    size_t n;
};

void starlark_call_fini(struct starlark_call *c);
/* The next call; *ret_end when there is none. Errors are SY_E_CONFIG. Whatever it
 * gives back, starlark_call_fini is due. */
enum sy_code starlark_next(struct starlark *s, struct starlark_call *ret,
                           bool *ret_end) SY_NODISCARD;

#endif
