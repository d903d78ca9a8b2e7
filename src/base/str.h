#ifndef SY_BASE_STR_H
#define SY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

bool str_eq(const char *a, const char *b);
/* Is the string made of these bytes, and no others? */
bool str_is(const char *s, const char *bytes, size_t n);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Decimal digits only (i64: one leading '-'), whole string, within [min, max];
 * false otherwise, *ret untouched. */
bool str_to_u64(uint64_t *ret, const char *s, uint64_t min, uint64_t max) SY_NODISCARD;
bool str_to_i64(int64_t *ret, const char *s, int64_t min, int64_t max) SY_NODISCARD;

/* Shell-style pattern (`*`, `?`, `[a-z]`, `[!x]`) over a whole name, ASCII
 * letters of either case alike, byte by byte. For environment names. */
bool str_glob_nocase(const char *pattern, const char *name);

/*
 * The entry of `names` (n of them) that is nearest to `got`, or NULL when none
 * is near enough to be meant (edit distance over a third of the length).
 * For "did you mean" in errors.
 */
const char *str_nearest(const char *got, const char *const *names, size_t n);

/*
 * Appends `s` with what could deceive a reader made visible: control
 * characters, invalid UTF-8 and bidi or zero-width characters become \xNN or
 * \u{NNNN}. Cuts after max_bytes of output with "...". For logs and prompts.
 */
enum sy_code str_add_visible(struct buf *b, const char *s, size_t len,
                             size_t max_bytes) SY_NODISCARD;

/* Last path component, borrowed from s. "/" gives "/". */
const char *path_base(const char *s);
/* dir + "/" + name into b (name alone if absolute); b is reset first. */
enum sy_code path_join(struct buf *b, const char *dir, const char *name) SY_NODISCARD;
/* Removes ".", "..", and double slashes by text alone; b is reset first. The
 * path must be absolute. */
enum sy_code path_normalize(struct buf *b, const char *path) SY_NODISCARD;
/* path is dir or below it; both normalized and absolute. */
bool path_is_below(const char *path, const char *dir);

/*
 * The length of the name in "NAME=value"; 0: it has none that programs can be given: one to
 * ENV_NAME_MAX visible characters of ASCII.
 */
#define ENV_NAME_MAX 255
size_t str_env_name(const char *entry);

#endif
