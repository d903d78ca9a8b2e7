#ifndef SY_OUTPUT_PATTERN_H
#define SY_OUTPUT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Regular expressions over a stream that comes in pieces (PCRE2, in UTF-8; invalid bytes match
 * nothing). ^ and $ are borders of lines (CR, LF or both), and the end of what has come so far
 * is one too, so that "\$ $" finds a prompt.
 */
struct pattern;

/* SY_E_ARG with a sentence that has the place for what is no expression; its offset in *ret_at,
 * which may be NULL. SY_E_LIMIT: longer than LIMIT_PATTERN. */
enum sy_code pattern_new(struct pattern **ret, const char *text, size_t n, size_t *ret_at,
                         struct sy_error *err) SY_NODISCARD;
void pattern_free(struct pattern *p);

/* A search in one stream. Borrows the pattern, of which several may search, in one thread. */
struct pattern_scan;

struct pattern_match {
    uint64_t start; /* offsets in the stream; 0 where it began before that */
    uint64_t end;
};

struct pattern_scan *pattern_scan_new(struct pattern *p);
void pattern_scan_free(struct pattern_scan *s);

/* What stands before the stream, at most LIMIT_PATTERN_WINDOW bytes: it says whether a line or word
 * begins there, and a match may begin in it, but ends behind it. Before all else. */
enum sy_code pattern_scan_begin(struct pattern_scan *s, const char *bytes, size_t n) SY_NODISCARD;
/* More of the stream: at most LIMIT_PATTERN_WINDOW bytes (SY_E_LIMIT), and not before
 * pattern_scan_next has found nothing more in what was there. */
enum sy_code pattern_scan_feed(struct pattern_scan *s, const char *bytes, size_t n) SY_NODISCARD;
/* No more comes. What was held back as a cut character is looked at too. */
void pattern_scan_finish(struct pattern_scan *s);

/*
 * The next match, in the order of the stream; *ret_found false: none so far. A match that could
 * grow with more of the stream is told as it is. An empty match is none. A match may begin up to
 * LIMIT_PATTERN_WINDOW bytes before what was fed last; pattern_scan_given_up counts how often a
 * beginning that was older had to be given up.
 *
 * SY_E_LIMIT: the expression takes too many steps or too much memory for this text. That
 * is no answer; what was fed is passed over, and the search may go on behind it.
 */
enum sy_code pattern_scan_next(struct pattern_scan *s, struct pattern_match *ret, bool *ret_found,
                               struct sy_error *err) SY_NODISCARD;
uint64_t pattern_scan_given_up(const struct pattern_scan *s);

#endif
