#include "cli/edit_jsonc.h"

#include <stdint.h>
#include <string.h>

/* The place after the comment that begins at `at`; `at` if none does, or it has no end. */
static size_t
skip_comment(const char *s, size_t at)
{
    if (s[at] == '/' && s[at + 1] == '/') {
        return at + strcspn(s + at, "\r\n");
    }
    if (s[at] != '/' || s[at + 1] != '*') {
        return at;
    }

    const char *end = strstr(s + at + 2, "*/");

    return end != NULL ? (size_t)(end - s) + 2 : at;
}

size_t
edit_jsonc_string(const char *s, size_t at)
{
    for (at++; s[at] != '\0' && s[at] != '"'; at++) {
        if (s[at] == '\\' && s[at + 1] != '\0') {
            at++;
        }
    }
    return s[at] == '"' ? at + 1 : at;
}

/* What the scan of a text has seen. */
struct blank {
    char *form;
    bool is_lax;
    size_t odd;
    char last;        /* the last byte that is no space and no comment */
    char before_last; /* and the one before it */
    size_t last_at;
};

static void
blank_range(struct blank *b, size_t from, size_t to)
{
    b->odd = b->odd < from ? b->odd : from;
    for (size_t i = from; b->is_lax && i < to; i++) {
        if (b->form[i] != '\n' && b->form[i] != '\r') {
            b->form[i] = ' ';
        }
    }
}

/* A byte outside of strings and comments. A comma before a closing bracket is
 * blanked only where a value stands before it: "[,]" stays wrong. */
static void
see(struct blank *b, size_t at, char c)
{
    if ((c == '}' || c == ']') && b->last == ',' && strchr("{[,:", b->before_last) == NULL) {
        blank_range(b, b->last_at, b->last_at + 1);
    }
    b->before_last = b->last;
    b->last = c;
    b->last_at = at;
}

enum sy_code
edit_jsonc_blank(struct buf *ret, const struct buf *text, bool is_lax, size_t *ret_odd)
{
    const char *s = buf_view(text);
    struct blank b = {.is_lax = is_lax, .odd = SIZE_MAX};
    enum sy_code rc = text->len > 0 ? buf_add(ret, s, text->len) : SY_E_OK;
    size_t at = 0;

    *ret_odd = SIZE_MAX;
    if (rc != SY_E_OK || text->len == 0) {
        return rc;
    }
    b.form = ret->data;
    if (strncmp(s, EDIT_BOM, strlen(EDIT_BOM)) == 0) {
        memset(b.form, ' ', strlen(EDIT_BOM));
        at = strlen(EDIT_BOM);
    }
    while (s[at] != '\0') {
        size_t end = skip_comment(s, at);

        if (end > at) {
            blank_range(&b, at, end);
        } else if (s[at] == '"') {
            end = edit_jsonc_string(s, at);
            see(&b, at, '"');
        } else {
            end = at + 1;
            if (strchr(" \t\r\n", s[at]) == NULL) {
                see(&b, at, s[at]);
            }
        }
        at = end;
    }
    *ret_odd = b.odd;
    return SY_E_OK;
}

size_t
edit_jsonc_comma(const char *s, size_t at)
{
    for (;;) {
        size_t next = skip_comment(s, at + strspn(s + at, " \t\r\n"));

        if (s[next] == ',') {
            return next + 1;
        }
        if (next == at || (s[next] != '/' && strchr(" \t\r\n", s[next]) == NULL)) {
            return 0;
        }
        at = next;
    }
}

size_t
edit_jsonc_line_comments(const char *s, size_t at)
{
    size_t end = at;

    for (;;) {
        size_t start = end + strspn(s + end, " \t");
        size_t next = skip_comment(s, start);

        if (next == start) {
            return end;
        }
        end = next;
        if (memchr(s + start, '\n', next - start) != NULL) {
            return end;
        }
    }
}
