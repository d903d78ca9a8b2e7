#ifndef SY_TERMINAL_PARSER_H
#define SY_TERMINAL_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Bytes of an escape sequence that is no control string. Colours with all that goes with
 * them have some 40. */
#define PARSER_SEQUENCE_MAX 128U

/*
 * What a stream of a terminal is made of (ECMA-48). Borrowed for the call.
 */
struct parser_sink {
    /* Bytes that are neither part of a sequence nor a control; BS, HT, LF, VT, FF and CR are
     * among them, and whatever is 0x80 or more. */
    void (*text)(void *arg, const char *bytes, size_t n);
    /* One of the other controls below 0x20, or DEL. Never ESC. */
    void (*control)(void *arg, unsigned char c);
    /* Behind ESC: intermediate bytes and the final one. */
    void (*escape)(void *arg, const char *seq, size_t n);
    /* Behind ESC [: parameters, intermediate bytes and the final one. */
    void (*csi)(void *arg, const char *seq, size_t n);
    /* A control string of the kind ] P X ^ or _, without its ends; NUL-terminated. */
    void (*string)(void *arg, char kind, const char *body, size_t n);
    /* ESC and these bytes behind it are no sequence: something else came in between, or it is
     * too long. Not told of what was left out by skip_max. May be NULL. */
    void (*broken)(void *arg, const char *seq, size_t n);
    /* Instead: so many bytes behind ESC, some of which were passed over by skip_max, are no
     * sequence. May be NULL. */
    void (*lost)(void *arg, size_t n);
};

enum parser_state { PARSER_GROUND, PARSER_ESCAPE, PARSER_CSI, PARSER_STRING, PARSER_STRING_ESCAPE };

/*
 * Takes a stream in pieces: what it tells does not depend on where they are cut.
 * Controls inside of a sequence end a control string, which is then none; in
 * any other sequence they are told first, as terminals have it. A zeroed
 * one with its sink set is ready.
 */
struct parser {
    const struct parser_sink *sink;
    void *arg;
    /* Of sequences that are too long, this many bytes are passed over while their end is
     * looked for. 0: what is too long is no sequence at once. */
    size_t skip_max;
    enum parser_state state;
    char kind;    /* of the control string */
    bool is_bell; /* the last one was ended by BEL and not by ST */
    size_t n;
    size_t skipped;
    char seq[PARSER_SEQUENCE_MAX];
    struct buf string; /* LIMIT_TERMINAL_STRING at most */
};

void parser_fini(struct parser *p);
/* SY_E_NOMEM: the sequence that was being read is lost; all else was told. */
enum sy_code parser_feed(struct parser *p, const char *bytes, size_t n) SY_NODISCARD;
/* The end of the stream: an open sequence is told as broken. */
void parser_finish(struct parser *p);

/* How many of the n bytes are text from the beginning on, as struct parser_sink has it. */
size_t parser_text_len(const char *bytes, size_t n);

#endif
