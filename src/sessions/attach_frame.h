#ifndef SY_SESSIONS_ATTACH_FRAME_H
#define SY_SESSIONS_ATTACH_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What somebody who has joined a session and who lets them say to each other. Pure. A frame is its
 * kind, the number of its bytes (4 bytes, the lowest first), and these.
 */
enum attach_kind {
    /* From the person's side. */
    ATTACH_INPUT = 'i',  /* what was typed; not empty */
    ATTACH_SIZE = 's',   /* rows and columns of the terminal, 2 bytes each; all is painted anew */
    ATTACH_DETACH = 'd', /* it leaves; empty */
    /* To it. */
    ATTACH_OUTPUT = 'o', /* for its terminal; not empty */
    ATTACH_NOTE = 'n',   /* a sentence for the person */
    ATTACH_END = 'e'     /* the last one: an exit status, 1 byte, and a sentence */
};

struct attach_frame {
    enum attach_kind kind;
    const char *bytes; /* of those that were read */
    size_t n;
};

#define ATTACH_FRAME_HEAD 5U

/* Appends frames of this kind; more than LIMIT_ATTACH_FRAME bytes become several. */
enum sy_code attach_frame_write(struct buf *out, enum attach_kind kind, const void *bytes,
                                size_t n) SY_NODISCARD;
enum sy_code attach_frame_write_size(struct buf *out, unsigned rows, unsigned cols) SY_NODISCARD;
enum sy_code attach_frame_write_end(struct buf *out, unsigned status,
                                    const char *sentence) SY_NODISCARD;

enum attach_frame_state {
    ATTACH_FRAME_MORE,  /* so far right, and not whole */
    ATTACH_FRAME_WHOLE, /* *ret is filled; the frame has ATTACH_FRAME_HEAD + ret->n bytes */
    ATTACH_FRAME_BAD    /* `err` says what is wrong, SY_E_PARSE */
};

/* Reads the first frame; `from_person`: only of those kinds, else only of the others. */
enum attach_frame_state attach_frame_read(struct attach_frame *ret, const char *bytes, size_t n,
                                          bool from_person, struct sy_error *err);
/* Of ATTACH_SIZE. */
void attach_frame_size(const struct attach_frame *f, unsigned *ret_rows, unsigned *ret_cols);

#endif
