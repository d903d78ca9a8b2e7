#ifndef SY_CLI_EDIT_JSONC_H
#define SY_CLI_EDIT_JSONC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * What some clients allow in their files beyond JSON: comments, and a comma behind the
 * last member. And the byte order mark that some editors put first.
 */
#define EDIT_BOM "\xEF\xBB\xBF"

/*
 * Copies `text` with the mark blanked and, if `is_lax`, comments and trailing commas
 * too: spaces, newlines kept, so that each place is the same in both. *ret_odd is the
 * place of the first comment or trailing comma, SIZE_MAX if there is none. Whether the
 * rest is JSON is for the parser to say.
 */
enum sy_code edit_jsonc_blank(struct buf *ret, const struct buf *text, bool is_lax,
                              size_t *ret_odd) SY_NODISCARD;
/* `at` is the opening quote of a string: the place after the closing one, or the end. */
size_t edit_jsonc_string(const char *s, size_t at);
/* The place after the comma that follows at `at`, behind space and comments; 0: none does. */
size_t edit_jsonc_comma(const char *s, size_t at);
/* The place after the last comment that begins on the line of `at`; `at` if there is none. */
size_t edit_jsonc_line_comments(const char *s, size_t at);

#endif
