/* Substitutions that the grammar does not see. */
#include <string.h>

#include "command/dialect_internal.h"

#define EXPANSIONS_MAX 64U

/* Of nested ones the inner ones are found when the outer one's text is read. */
struct search {
    unsigned open[EXPANSIONS_MAX]; /* of each ${ around, the walk's depth */
    unsigned n;
    unsigned depth; /* of the substitution that is being copied */
    size_t begin;   /* behind its mark; 0: there is none */
};

static enum sy_code
add_line(struct buf *ret, const char *text, size_t len)
{
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < len && rc == SY_E_OK; i++) {
        /* Between backticks, a backslash quotes them once more. */
        i += text[i] == '\\' && i + 1 < len && text[i + 1] == '`' ? 1 : 0;
        rc = buf_add(ret, text + i, 1);
    }
    return rc == SY_E_OK ? buf_add_char(ret, '\n') : rc;
}

static enum sy_code
add_of_document(struct buf *ret, const char *text, size_t len)
{
    size_t begin = 0; /* behind the first backtick of a pair */
    enum sy_code rc = SY_E_OK;

    for (size_t i = 0; i < len && rc == SY_E_OK; i++) {
        if (text[i] == '\\') {
            i++;
        } else if (text[i] == '`' && begin == 0) {
            begin = i + 1;
        } else if (text[i] == '`') {
            rc = add_line(ret, text + begin, i - begin);
            begin = 0;
        }
    }
    return rc;
}

static void
follow_braces(struct search *s, const struct dialect_walk *w)
{
    const char c = w->text[w->at];

    if (c == '{' && w->at > 0 && w->text[w->at - 1] == '$' && s->n < EXPANSIONS_MAX) {
        s->open[s->n++] = w->depth;
    } else if (c == '}' && s->n > 0 && s->open[s->n - 1] == w->depth) {
        s->n--;
    }
}

enum sy_code
dialect_add_hidden(struct buf *ret, const char *text, size_t len, bool is_document)
{
    struct dialect_walk w = {
        .text = text, .len = len, .has_ansi_c = true, .has_comments = true, .has_escapes = true};
    struct search s = {.n = 0};
    enum sy_code rc = SY_E_OK;

    if (is_document) {
        return add_of_document(ret, text, len);
    }
    if (len == 0 || memchr(text, '{', len) == NULL ||
        (memchr(text, '`', len) == NULL && memchr(text, '(', len) == NULL)) {
        return SY_E_OK;
    }
    while (w.at < len && rc == SY_E_OK) {
        size_t used = 1;
        enum dialect_token token = dialect_next(&w, &used);

        if (used == 1 && s.begin == 0) {
            follow_braces(&s, &w);
        }
        if (token == TOKEN_OPEN && s.begin == 0 && s.n > 0) {
            s.begin = w.at + used;
            s.depth = w.depth;
        } else if (token == TOKEN_CLOSE && s.begin != 0 && w.depth < s.depth) {
            rc = add_line(ret, text + s.begin, w.at - s.begin);
            s.begin = 0;
        }
        w.at += used;
    }
    return rc;
}
