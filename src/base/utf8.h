#ifndef SY_BASE_UTF8_H
#define SY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * UTF-8 as in the Unicode standard, table 3-7: no overlong forms, no
 * surrogates, nothing above U+10FFFF.
 */

/* Decodes one character: returns its length (1-4) and sets *ret, or 0 when the
 * bytes at s are no valid character (or cut). */
size_t utf8_decode(uint32_t *ret, const char *s, size_t n);

/* Bytes of the longest character. */
#define UTF8_MAX 4

/* Writes the character c (a scalar value: no surrogate, at most U+10FFFF) and
 * returns its length. */
size_t utf8_put(char bytes[UTF8_MAX], uint32_t c);

/* Length of the longest valid prefix of s. ASCII is scanned by the word. */
size_t utf8_valid_prefix(const char *s, size_t n);

bool utf8_is_valid(const char *s, size_t n);

/*
 * A character that people do not see as what it is: controls, what hides or reorders text, what has
 * no look of its own (fillers, joiners, variation selectors, all that Unicode calls default
 * ignorable) or that of a space, and those for private use beyond the basic plane.
 */
bool utf8_is_unseen(uint32_t c);

/*
 * How many bytes at the end of s begin a character that is not complete yet
 * (0-3): what a stream must hold back. Invalid bytes are never held back.
 */
size_t utf8_incomplete_tail(const char *s, size_t n);

/*
 * The greatest k <= n at which s can be cut without splitting a character; one
 * that is not complete at the end of s counts as one, since the rest may come.
 * Among invalid bytes any place will do.
 */
size_t utf8_cut(const char *s, size_t len, size_t n);
/* The same of a text that is printed by "%.*s": as much of it as fits into n bytes. */
int utf8_room(const char *text, size_t n);

#endif
