#ifndef SY_OUTPUT_OUTPUT_H
#define SY_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum output_stream { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* "stdout", "stderr". */
const char *output_stream_name(enum output_stream s);

/*
 * Keeps the first half and the last half of `max` bytes of a stream and counts
 * what it dropped between (specification, HeadTailBuffer; head max/2, tail the
 * rest). Memory grows with what is kept, never beyond max. Pure.
 */
struct headtail;

struct headtail *headtail_new(size_t max);
void headtail_free(struct headtail *h);
enum sy_code headtail_push(struct headtail *h, const char *bytes, size_t n) SY_NODISCARD;
uint64_t headtail_total(const struct headtail *h);
uint64_t headtail_omitted(const struct headtail *h);
/* Head, then "\n... K bytes omitted ...\n" if any were, then tail; raw bytes. */
enum sy_code headtail_render(const struct headtail *h, struct buf *out) SY_NODISCARD;
/* Empties it into `into` (NULL: nowhere), which takes over the omission count. */
enum sy_code headtail_drain(struct headtail *h, struct headtail *into) SY_NODISCARD;

/*
 * A filter stage between the command's bytes and everything else (design
 * section 7). The secrets filter will be one. May hold bytes back; `flush`
 * passes on the rest. A stage calls `next` with what it lets through.
 */
typedef enum sy_code output_next_fn(void *arg, enum output_stream s, const char *bytes, size_t n);

struct output_stage {
    enum sy_code (*push)(struct output_stage *self, enum output_stream s, const char *bytes,
                         size_t n, output_next_fn *next, void *next_arg);
    enum sy_code (*flush)(struct output_stage *self, enum output_stream s, output_next_fn *next,
                          void *next_arg);
    void (*free)(struct output_stage *self);
};

/* One delta: at most LIMIT_DELTA_BYTES, valid UTF-8 (invalid bytes replaced),
 * seq = offset in the call's filtered bytes, both streams counted together. */
typedef void output_delta_fn(void *arg, enum output_stream s, uint64_t seq, const char *text,
                             size_t n);
/* The filtered bytes as they are, for a front end that streams through. */
typedef enum sy_code output_raw_fn(void *arg, enum output_stream s, const char *bytes, size_t n);

struct output_options {
    size_t keep_bytes;         /* per stream; 0: LIMIT_STREAM_KEEP */
    output_delta_fn *on_delta; /* may be NULL */
    output_raw_fn *on_raw;     /* may be NULL */
    void *arg;
    struct output_stage *stage; /* taken; may be NULL */
    size_t max_deltas;          /* 0: LIMIT_DELTAS_PER_CALL */
};

/* The output of one call: both streams and the two together in the order in
 * which they arrived. */
struct output_chain;

struct output_chain *output_new(const struct output_options *options);
void output_free(struct output_chain *c);
enum sy_code output_push(struct output_chain *c, enum output_stream s, const char *bytes,
                         size_t n) SY_NODISCARD;
/* No more input: what filters and UTF-8 hold back is passed on. Idempotent. */
enum sy_code output_finish(struct output_chain *c) SY_NODISCARD;

struct output_stats {
    uint64_t total_bytes;   /* filtered bytes of the stream, or of both */
    uint64_t total_lines;   /* newlines, plus one for an unfinished last line */
    uint64_t omitted_bytes; /* beyond what is kept */
    bool has_invalid_utf8;  /* something kept was replaced in the text */
    bool is_binary;         /* NUL bytes, or mostly not text */
};

void output_stats_stream(const struct output_chain *c, enum output_stream s,
                         struct output_stats *ret);
void output_stats_all(const struct output_chain *c, struct output_stats *ret);
/* Filtered bytes so far, of both streams. */
uint64_t output_total(const struct output_chain *c);
/* What was not given as deltas, max_deltas being reached: in pieces of LIMIT_DELTA_BYTES at most.
 */
uint64_t output_deltas_dropped(const struct output_chain *c);
/* How many more there may be. */
size_t output_deltas_left(const struct output_chain *c);
/* Another call goes on with what writes here: there may be max_deltas again. */
void output_deltas_renew(struct output_chain *c);

/*
 * What was kept of a stream, or of both (`output_text_all`), as valid UTF-8:
 * invalid bytes become U+FFFD, the omission marker stands in the middle.
 */
enum sy_code output_text_stream(const struct output_chain *c, enum output_stream s,
                                struct buf *out) SY_NODISCARD;
enum sy_code output_text_all(const struct output_chain *c, struct buf *out) SY_NODISCARD;

/*
 * The text for the model out of both streams: carriage-return progress folded
 * to what a terminal would show last, NUL and other control characters made
 * visible and bounded, then head + tail within max_bytes on UTF-8 borders with
 * a marker that names the true totals. ret_truncated tells whether anything
 * the command wrote is missing from the text.
 */
enum sy_code output_text_model(const struct output_chain *c, size_t max_bytes, struct buf *out,
                               bool *ret_truncated) SY_NODISCARD;

/*
 * The pieces of output_text_model, pure, for other texts. `columns`: the width of the terminal that
 * it was written to, 0 for none. Behind its margin a carriage return goes to the beginning of the
 * last row alone, if blanks led there: so shells keep a last line without a newline (PROMPT_SP of
 * zsh). It is kept then. Longer progress is folded as a line, wrapped or not.
 */
enum sy_code output_fold_cr(struct buf *out, const char *text, size_t n,
                            unsigned columns) SY_NODISCARD;
enum sy_code output_clean_utf8(struct buf *out, const char *bytes, size_t n,
                               bool *ret_replaced) SY_NODISCARD;

/* What the command wrote in all, of which the text may be what was kept. */
struct output_totals {
    uint64_t bytes;
    uint64_t lines;
    uint64_t kept; /* bytes that the text was made of, which rendering may have shortened; 0: it is
                      as they were */
    unsigned columns; /* of output_fold_cr */
};

/* What was done to a text. */
struct output_marks {
    bool has_invalid_utf8;
    bool is_truncated;
    size_t head; /* of the text, before what was left out in its middle */
};

/* As output_text_model, of bytes that somebody else has kept; `total` is what they are a part of.
 */
enum sy_code output_text_bytes(struct buf *out, const char *bytes, size_t n, size_t max_bytes,
                               struct output_totals total, struct output_marks *ret) SY_NODISCARD;

enum sy_code output_truncate_middle(struct buf *out, const char *text, size_t n, size_t max_bytes,
                                    struct output_totals total, bool *ret_truncated) SY_NODISCARD;

#endif
