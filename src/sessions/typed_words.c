/* What a Ctrl-W takes away. */
#include <string.h>

#include "sessions/sessions_internal.h"

/* As the terminal does it: what is no letter, and the letters before it (n_tty.c). */
static void
erase_letters(struct buf *line, size_t given)
{
    bool has_letter = false;

    for (size_t n = line->len; n > given; line->len = n) {
        do {
            n--;
        } while (n > given && ((unsigned char)line->data[n] & 0xC0U) == 0x80U);

        const unsigned char c = (unsigned char)line->data[n];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '_' || c >= 0x80;

        if (has_letter && !is_letter) {
            return;
        }
        has_letter = has_letter || is_letter;
    }
}

static size_t
skip_back(const struct buf *line, size_t n, const char *set, bool is_in)
{
    while (n > 0 && (strchr(set, line->data[n - 1]) != NULL) == is_in) {
        n--;
    }
    return n;
}

/* As readline does it: between blanks. */
static void
erase_word(struct buf *line)
{
    line->len = skip_back(line, skip_back(line, line->len, " \t", true), " \t", false);
}

/* As zsh does it: letters, and what WORDCHARS has by default, are one word. */
static void
erase_zsh_word(struct buf *line)
{
    static const char none[] = " \t\"'`,:|+@\\";

    line->len = skip_back(line, skip_back(line, line->len, none, true), none, false);
}

/* As fish does it: a part of a path, with what stands behind it. */
static void
erase_part(struct buf *line)
{
    static const char marks[] = "/={,}'\":@#;|&<>";
    static const char all[] = "/={,}'\":@#;|&<> \t";
    const size_t n = skip_back(line, skip_back(line, line->len, marks, true), " \t", true);
    const size_t before = skip_back(line, n, marks, true);

    line->len = before < n ? before : skip_back(line, n, all, false);
}

void
typed_erase_word(struct typed_reading *t)
{
    if (t->kind == TYPED_BYTES) {
        erase_letters(&t->line, t->given);
    } else if (t->kind == TYPED_TWO) {
        erase_part(&t->line);
    } else if (t->kind == TYPED_NONE) {
        erase_zsh_word(&t->line);
    } else {
        erase_word(&t->line);
    }
}
