/* Words of what is typed: that which a Ctrl-W takes away, and that which ends a here-document. */
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

/* Letters, as few as anybody takes: in other words a shell may read something else. */
static size_t
plain_letters(const char *s, size_t n)
{
    size_t ret = 0;

    while (ret < n && ((s[ret] >= 'a' && s[ret] <= 'z') || (s[ret] >= 'A' && s[ret] <= 'Z') ||
                       (s[ret] >= '0' && s[ret] <= '9') || s[ret] == '_')) {
        ret++;
    }
    return ret;
}

bool
typed_find_here(const char *line, size_t n, size_t *ret_at, size_t *ret_len)
{
    const char *mark = n > 0 ? memmem(line, n, "<<", 2) : NULL;
    const char *end = line + n;
    const char *at = mark != NULL ? mark + 2 : end;
    char quote = '\0';

    if (mark == NULL || memmem(mark + 1, (size_t)(end - mark - 1), "<<", 2) != NULL) {
        return false;
    }
    at += at < end && *at == '-' ? 1 : 0;
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if (at < end && (*at == '\'' || *at == '"' || *at == '\\')) {
        quote = *at++;
    }
    *ret_at = (size_t)(at - line);
    *ret_len = plain_letters(at, (size_t)(end - at));
    at += *ret_len;
    if (quote == '\'' || quote == '"') {
        if (at == end || *at++ != quote) {
            return false;
        }
    }
    return *ret_len > 0 && (at == end || memchr(" \t;&|<>", *at, 8) != NULL);
}
