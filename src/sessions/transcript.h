#ifndef SY_SESSIONS_TRANSCRIPT_H
#define SY_SESSIONS_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * What a session has written, by sequence number: the offset of a byte in all that it wrote. At
 * most `max` bytes are kept; memory grows with what is. Pure.
 *
 * Where room is needed, what was read already goes first, oldest first, then the middle of what
 * was not: the first half of that stays (the specification's HeadTailBuffer, for each reading
 * anew). Nothing goes uncounted: a reader meets a marker with the number of bytes that are missing.
 */
struct transcript;

struct transcript *transcript_new(size_t max);
void transcript_free(struct transcript *t);
enum sy_code transcript_push(struct transcript *t, const char *bytes, size_t n) SY_NODISCARD;
/* The number of the next byte, and so how many there were. */
uint64_t transcript_end(const struct transcript *t);
/* Bytes in memory. */
size_t transcript_kept(const struct transcript *t);
/* Where the next reading goes on. */
uint64_t transcript_unread(const struct transcript *t);
/* All before `seq` was read. */
void transcript_mark_read(struct transcript *t, uint64_t seq);
/*
 * Adds what is kept of [from, to), with "\n... N bytes omitted ...\n" where something is missing.
 * *ret_omitted: how many are. `from` beyond `to` is nothing.
 */
enum sy_code transcript_read(const struct transcript *t, uint64_t from, uint64_t to,
                             struct buf *out, uint64_t *ret_omitted) SY_NODISCARD;
/* The number of the byte at offset `at` of what transcript_read adds for [from, to): of one of a
 * marker, that of the first byte that is kept behind it; beyond all of it, `to`. */
uint64_t transcript_seq_at(const struct transcript *t, uint64_t from, uint64_t to, size_t at);
/* How many lines end in [from, to), with those in what is missing; where `from` or `to` lies in
 * that, as many of them as it has a share of it. */
uint64_t transcript_lines(const struct transcript *t, uint64_t from, uint64_t to);
/*
 * Up to where text can be read that may still go on: behind the last whole character of UTF-8 and
 * the last whole escape sequence (ECMA-48), if one begins near the end.
 */
uint64_t transcript_whole_end(const struct transcript *t);
/* The same of the first n bytes of a text: how many of them can be read by themselves. */
size_t transcript_whole_part(const char *bytes, size_t n);

#endif
