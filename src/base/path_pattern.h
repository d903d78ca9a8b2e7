#ifndef SY_BASE_PATH_PATTERN_H
#define SY_BASE_PATH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Patterns of paths: absolute, components split by '/'. In a component `*`
 * stands for any bytes, `?` for one character, `[a-z]` or `[!a-z]` for one
 * character; none of them for a '/', each also for a leading '.'. A component
 * "**" stands for any number of directories. There are no escapes: `[*]` is a
 * literal star. Letters of either case differ. By text alone.
 */

/* What is wrong with a pattern and what would be right, a static phrase that
 * goes on from its quoted text; NULL: nothing. */
const char *path_pattern_fault(const char *pattern);

/* Of a component: no wildcard in it; it fits a name (which holds no '/'). */
bool path_pattern_is_plain(const char *component, size_t len);
bool path_pattern_fits(const char *component, size_t len, const char *name, size_t name_len);

/* How many bytes of the pattern, in whole components, come before the first
 * component that stands for several names (without the '/' between): all, if there is none. */
size_t path_pattern_fixed_len(const char *pattern);
/* That part is dir (absolute, normalized) or lies below it. */
bool path_pattern_is_below(const char *pattern, const char *dir);
/* May something that fits the pattern be dir, or lie below it? */
bool path_pattern_may_be_below(const char *pattern, const char *dir);
/* A component "**" stands in it. */
bool path_pattern_is_deep(const char *pattern);

/* Appends a path so that it stands for itself as a part of a pattern. */
enum sy_code path_pattern_quote(struct buf *b, const char *path) SY_NODISCARD;

#endif
