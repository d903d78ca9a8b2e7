#ifndef SY_OUTPUT_OUTPUT_INTERNAL_H
#define SY_OUTPUT_OUTPUT_INTERNAL_H

#include "output/output.h"

#define REPLACEMENT     "\xEF\xBF\xBD" /* U+FFFD */
#define REPLACEMENT_LEN 3

struct span {
    const char *p;
    size_t n;
};

/*
 * headtail.c. The tail is linear (start 0) while it grows and a ring once it
 * has its full size, so growing never has to unroll a ring.
 */
struct headtail {
    char *head;
    size_t head_len;
    size_t head_cap;
    size_t head_max;
    char *tail;
    size_t tail_start;
    size_t tail_len;
    size_t tail_cap;
    size_t tail_max;
    uint64_t omitted;
    bool is_sealed; /* the head takes no more: a gap follows it */
};

/* A zeroed headtail becomes usable; fini leaves it zeroed. */
void headtail_init(struct headtail *h, size_t max);
void headtail_fini(struct headtail *h);
/* After it, pushes of up to n bytes in total cannot fail. */
enum sy_code headtail_reserve(struct headtail *h, size_t n) SY_NODISCARD;
void headtail_put(struct headtail *h, const char *bytes, size_t n);

/* What a headtail holds, cut so that no character is torn at a gap. */
struct kept {
    struct span spans[3]; /* head, and the two pieces of the ring */
    uint64_t omitted;     /* with the torn characters */
    bool has_gap;
};

struct kept kept_view(const struct headtail *h);

/* Gets valid characters whole; invalid bytes whole maximal subparts. */
typedef enum sy_code kept_fn(void *arg, const char *bytes, size_t n);

/* `count` spans that follow each other without a gap. Unless is_final, an
 * incomplete character at the end is left out. */
enum sy_code kept_walk(const struct span *spans, size_t count, bool is_final, kept_fn *fn,
                       void *arg) SY_NODISCARD;
bool kept_has_invalid(const struct kept *k, bool is_final);
/* The spans as valid UTF-8. */
enum sy_code kept_add_text(const struct span *spans, size_t count, bool is_final,
                           struct buf *out) SY_NODISCARD;

/*
 * utf8_text.c. A joiner makes characters whole that were cut between two
 * pushes: it gives out what was held (completed, or disproved) and the part of
 * the new bytes that ends on a character, and holds the rest (at most three
 * bytes). prefix is followed by body in the stream.
 */
struct joiner {
    char held[4];
    size_t len;
};

struct joined {
    char prefix[4];
    size_t prefix_n;
    const char *body;
    size_t body_n;
};

struct joined joiner_push(struct joiner *j, const char *bytes, size_t n);
struct joined joiner_flush(struct joiner *j);

/* Length of the invalid sequence at s (n > 0) that one U+FFFD stands for: the
 * "maximal subpart" of the Unicode standard, chapter 3.9. */
size_t output_invalid_len(const char *s, size_t n);
/* Converts as much of src as fits into cap bytes at dst, at least one
 * character if cap >= 4; returns the bytes written. */
size_t output_clean_some(char *dst, size_t cap, const char *src, size_t n, size_t *ret_used);

/* scan.c: newlines, and whether there is a NUL byte. */
uint64_t scan_bytes(const char *bytes, size_t n, bool *ret_nul);
/* How many of the n bytes are no text (see docs/internals/output.md). */
size_t scan_not_text(const char *bytes, size_t n);

/* fold.c. Length of the escape sequence at s (s[0] is ESC), 0 if it is none or
 * not complete. */
size_t fold_escape_len(const char *s, size_t n);
/* Appends valid UTF-8 without escape sequences and with the control
 * characters that are left made visible, long runs of one as a count. */
enum sy_code fold_visible_add(struct buf *out, const char *text, size_t n) SY_NODISCARD;

/* chain.c */
struct stream_state {
    struct headtail kept;
    struct joiner joiner; /* towards deltas and the combined buffer */
    uint64_t total;
    uint64_t newlines;
    size_t sample_seen; /* of the first SAMPLE_BYTES */
    size_t sample_bad;
    bool is_sampled;
    bool has_nul;
    bool is_flushed;
    bool ends_line; /* the last byte was a newline */
};

struct output_chain {
    struct output_options opt;
    struct stream_state streams[STREAM_COUNT];
    struct headtail all;
    uint64_t seq;  /* bytes given to `all` */
    size_t deltas; /* since the last call began */
    uint64_t deltas_dropped;
    bool all_ends_line;
    bool is_finished;
};

#define SAMPLE_BYTES 8192U
/* Below this the share of odd bytes says nothing: `printf 'a\377\376b\n'`. */
#define SAMPLE_MIN 64U

/* More than 30 % of the sample is no text. NUL alone does not make it so. */
bool output_stream_is_mostly_binary(const struct stream_state *st);

/* truncate.c: a text in two parts with a gap between, or (has_gap false) one
 * text, which is then both head and tail. */
struct middle {
    struct span head;
    struct span tail;
    bool has_gap;
    uint64_t gap_bytes; /* what is missing already */
    uint64_t total_bytes;
    uint64_t total_lines;
    size_t max_bytes;
};

/* *ret_head: how many bytes of the text stand before what is left out. */
enum sy_code middle_cut(struct buf *out, const struct middle *m, size_t *ret_head) SY_NODISCARD;
/* As output_truncate_middle; *ret_head is all of the text where nothing is left out. */
enum sy_code truncate_middle(struct buf *out, struct span text, size_t max_bytes,
                             struct output_totals total, bool *ret_truncated,
                             size_t *ret_head) SY_NODISCARD;

#endif
