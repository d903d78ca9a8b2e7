#ifndef SY_COMMAND_DIALECT_H
#define SY_COMMAND_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Scripts are read by a grammar of bash. What other shells read in another way, and what bash
 * itself makes of braces, is put into words of bash here, so that the same grammar reads it: text
 * in, text out, and nothing is judged. It need not do the same as the script. What counts is that
 * each command which that shell would run stands in it.
 */
enum dialect {
    DIALECT_BASH = 1U << 0, /* {a,b} and $"..." */
    DIALECT_DASH = 1U << 1, /* sh that is no bash: $'', &>, ((, [[, $[ are none */
    DIALECT_ZSH = 1U << 2,
    DIALECT_FISH = 1U << 3,
    DIALECT_CSH = 1U << 4
};
#define DIALECT_ALL 0x1FU

/* With those: no text behind a # is a comment, for any of them, or for those that have none in
 * what is typed (zsh, csh). */
#define DIALECT_BARE  (1U << 8)
#define DIALECT_TYPED (1U << 9)

/* The dialects that a shell of this name may read; any where it is none that is known. */
unsigned dialect_of(const char *shell);

/*
 * `text` as it is read by one of the dialects (with the flags above). *ret_differs: not as bash
 * reads it without its braces; else `ret` is not to be used. SY_E_LIMIT, SY_E_NOMEM.
 */
enum sy_code dialect_read(struct buf *ret, bool *ret_differs, const char *text, size_t len,
                          unsigned dialect) SY_NODISCARD;

/* Does any of these read it differently? Braces of bash aside, which only make words. */
enum sy_code dialect_differs(bool *ret, const char *text, size_t len,
                             unsigned dialects) SY_NODISCARD;

/*
 * Adds what the grammar takes for text though the shell runs it, a line each: substitutions inside
 * of ${...}; `is_document`: of a here-document's text what stands between backticks.
 */
enum sy_code dialect_add_hidden(struct buf *ret, const char *text, size_t len,
                                bool is_document) SY_NODISCARD;

/* What ends a line where a text is cut: few marks of the syntax; those inside of words, too; or few
 * but quotes, which are left out, since they part no word. */
enum dialect_cut { DIALECT_CUT_FEW, DIALECT_CUT_MANY, DIALECT_CUT_UNQUOTED };

/*
 * Of a script that no grammar reads: each mark of the syntax ends a line, no text is quoted, and no
 * keyword stands before a command.
 */
enum sy_code dialect_pieces(struct buf *ret, const char *text, size_t len,
                            enum dialect_cut cut) SY_NODISCARD;

#endif
