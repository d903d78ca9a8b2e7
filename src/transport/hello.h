#ifndef SY_TRANSPORT_HELLO_H
#define SY_TRANSPORT_HELLO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

/*
 * What a client and the daemon say to each other before and after the protocol of the
 * connection (docs/internals/transport.md). Pure; the small program in front has it too, which
 * reads no JSON. The client's frame:
 *
 *     shellyard 1 BYTES\n     then BYTES bytes: texts, each with a NUL behind it
 *
 * The texts are protocol, build, working directory, the number of arguments, the arguments, and
 * the environment. Environments and paths need not be UTF-8, so they go as they are. The daemon
 * answers by lines "KIND NUMBER SENTENCE\n".
 */

/* Of the frame. Another one is another language. */
#define HELLO_VERSION "1"

/* Of one connection. The arrays are NULL-terminated. */
struct hello {
    const char *protocol; /* "mcp", "proto", "attach", "ctl" */
    const char *build;    /* of the program: the same one only speaks on */
    const char *cwd;      /* absolute */
    char *const *args;    /* as they follow the verb */
    char *const *environ_list;
    char **words; /* the memory of both arrays; NULL in one that is to be written */
};

/* Appends the frame. SY_E_LIMIT: it would be longer than LIMIT_HELLO. */
enum sy_code hello_write(struct buf *out, const struct hello *h, struct sy_error *err) SY_NODISCARD;

enum hello_state {
    HELLO_MORE,  /* so far right, and not whole */
    HELLO_WHOLE, /* *ret is filled */
    HELLO_OTHER, /* of a version that we don't speak; `err` says it */
    HELLO_BAD,   /* `err` says what is wrong, SY_E_PARSE, or that memory is out */
};

/* Reads what has come so far. What is in *ret points into `bytes`, which must have a NUL behind
 * its n bytes. */
enum hello_state hello_read(struct hello *ret, const char *bytes, size_t n, struct sy_error *err);
/* Accepts zeroed. */
void hello_fini(struct hello *h);

/* The daemon's lines. */
enum hello_kind {
    HELLO_OK,    /* the protocol begins; the number is the daemon's process id */
    HELLO_NOTE,  /* for the person, before HELLO_OK */
    HELLO_OWN,   /* not for this client: it can do the work by itself, and says why it does */
    HELLO_ERROR, /* the number is an exit status */
    HELLO_END,   /* the protocol is over; the number is an exit status, 0 for an orderly end */
};

struct hello_answer {
    enum hello_kind kind;
    unsigned number;
    char sentence[SY_ERR_MSG_MAX];
};

/* The longest line, with its newline. */
#define HELLO_ANSWER_MAX (SY_ERR_MSG_MAX + 32U)

/* Writes the line, returns its length. What would not be one line becomes spaces. */
size_t hello_answer_write(char ret[HELLO_ANSWER_MAX], const struct hello_answer *a);
/* A line without its newline. False: it is none. */
bool hello_answer_read(struct hello_answer *ret, const char *line, size_t n);

#endif
