/* What fish reads, as bash would have it. */
#include <string.h>

#include "base/str.h"
#include "command/dialect_internal.h"
#include "command/judge_internal.h"

#define KEYWORD_MAX 16

struct fish {
    const char *text;
    size_t len;
    size_t at;
    struct buf *out;
    bool is_command; /* a command may begin here */
    bool has_word;   /* something stands since the last one ended */
    bool is_word;    /* no word begins here */
    unsigned depth;
    char in[DIALECT_DEPTH]; /* " or ( */
};

static bool
is_in(const struct fish *f, char what)
{
    return f->depth > 0 && f->in[f->depth - 1] == what;
}

static char
peek(const struct fish *f, size_t n)
{
    if (n < f->len - f->at) {
        return f->text[f->at + n];
    }
    return '\0';
}

static unsigned
digit_of(char c)
{
    static const char all[] = "0123456789abcdefABCDEF";
    const char *at = c != '\0' ? strchr(all, c) : NULL;
    const unsigned n = at != NULL ? (unsigned)(at - all) : 99;

    return n >= 16 && n < 22 ? n - 6 : n;
}

/* The character that an escape at s stands for (of bytes above ASCII any), and its length; 0: it
 * is that of its second byte. */
static size_t
escape_length(const char *s, size_t len, char *ret)
{
    static const char nothing[] = "\\";
    const char kind = (len > 1 ? s : nothing)[1];
    const bool is_hex = kind != '\0' && strchr("xXuU", kind) != NULL;
    const unsigned base = is_hex ? 16 : 8;
    const size_t begin = is_hex ? 2 : 1;
    const size_t max = kind == 'u' ? 4 : kind == 'U' ? 8 : is_hex ? 2 : 3;
    unsigned value = 0;
    size_t n = 0;

    while (n < max && begin + n < len && digit_of(s[begin + n]) < base) {
        value = value < 0x10000000 ? value * base + digit_of(s[begin + n]) : value;
        n++;
    }
    if (n > 0) {
        *ret = '?';
        if (value > 0 && value < 0x80) {
            *ret = (char)value;
        }
        return begin + n;
    }
    *ret = ' ';
    if (kind == 'c' && len > 2) {
        return 3;
    }
    return kind != '\0' && strchr("abefnrtv", kind) != NULL ? 2 : 0;
}

static enum sy_code
add_escape(struct fish *f)
{
    char c = ' ';
    const size_t n = escape_length(f->text + f->at, f->len - f->at, &c);
    const bool is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || strchr("_-./+:@%=", c) != NULL;

    f->is_word = true;
    if (n == 0) {
        const size_t copied = f->len - f->at > 1 ? 2 : 1;

        f->at += copied;
        return buf_add(f->out, f->text + f->at - copied, copied);
    }
    f->at += n;
    return is_name     ? buf_add_char(f->out, c)
           : c == '\'' ? buf_add_str(f->out, "\\'")
                       : buf_addf(f->out, "'%c'", c);
}

/* '...', in which \' and \\ are escapes. */
static enum sy_code
add_single(struct fish *f)
{
    enum sy_code rc = buf_add_char(f->out, '\'');

    f->at++;
    f->is_word = true;
    while (f->at < f->len && f->text[f->at] != '\'' && rc == SY_E_OK) {
        const bool is_escape = f->text[f->at] == '\\' && (peek(f, 1) == '\'' || peek(f, 1) == '\\');

        f->at += is_escape ? 1 : 0;
        rc = f->text[f->at] == '\'' ? buf_add_str(f->out, "'\\''")
                                    : buf_add(f->out, f->text + f->at, 1);
        f->at++;
    }
    if (f->at < f->len && rc == SY_E_OK) {
        f->at++;
        rc = buf_add_char(f->out, '\'');
    }
    return rc;
}

static enum sy_code
open_list(struct fish *f)
{
    const size_t used = f->text[f->at] == '$' ? 2 : 1;

    f->at += used;
    if (f->depth < DIALECT_DEPTH) {
        f->in[f->depth++] = '(';
    }
    f->is_command = true;
    f->has_word = false;
    f->is_word = false;
    return buf_add_str(f->out, "$(");
}

static enum sy_code
add_text(struct fish *f, const char *text, size_t used)
{
    f->at += used;
    return buf_add_str(f->out, text);
}

static enum sy_code
add_as_is(struct fish *f, size_t n)
{
    f->at += n;
    return buf_add(f->out, f->text + f->at - n, n);
}

static enum sy_code
follow_double(struct fish *f)
{
    const char c = f->text[f->at];

    f->is_word = true;
    if (c == '\\') {
        return add_as_is(f, f->len - f->at > 1 ? 2 : 1);
    }
    if (c == '`') {
        return add_text(f, "\\`", 1);
    }
    if (c == '$' && peek(f, 1) == '(') {
        return open_list(f);
    }
    f->depth -= c == '"' ? 1 : 0;
    return add_as_is(f, 1);
}

/* Which quotes are open behind this one. */
static char
after_quote(char quote, char c)
{
    if (c == quote) {
        return '\0';
    }
    return c;
}

/* The word at hand without its quotes, as keywords are known: *ret_len, 0 for one that is too
 * long, or goes on behind a substitution. */
static void
look_at_word(const struct fish *f, char ret[KEYWORD_MAX], size_t *ret_len)
{
    size_t at = f->at;
    size_t n = 0;
    char quote = '\0';

    while (at < f->len && n < KEYWORD_MAX - 1) {
        char c = f->text[at];
        size_t used = 1;

        if (quote == '\0' && strchr(" \t\n;&|()<>$#*{[", c) != NULL) {
            break;
        }
        if (c == quote || (quote == '\0' && (c == '\'' || c == '"'))) {
            quote = after_quote(quote, c);
            at++;
            continue;
        }
        if (c == '\\' && quote == '\0') {
            used = escape_length(f->text + at, f->len - at, &c);
            if (used == 0 && at + 1 < f->len) {
                c = f->text[at + 1];
            }
            used = used == 0 ? 2 : used;
        }
        ret[n++] = c;
        at += used;
    }
    ret[n] = '\0';
    at = at < f->len ? at : f->len;
    *ret_len = at == f->len || strchr(" \t\n;&|)<>", f->text[at]) != NULL ? at - f->at : 0;
}

/* A word where a command may begin. *ret_done: it was one of the language's. */
static enum sy_code
follow_keyword(struct fish *f, bool *ret_done)
{
    char word[KEYWORD_MAX];
    size_t used = 0;

    *ret_done = true;
    look_at_word(f, word, &used);
    if (used > 0 && judge_in_list("and or not begin if else while time", word)) {
        return add_text(f, "", used); /* a command comes behind it */
    }
    if (used > 0 && judge_in_list("end for function switch case", word)) {
        f->is_command = false;
        f->has_word = true;
        f->is_word = true;
        return add_text(f, ":", used);
    }
    *ret_done = false;
    return used > 0 &&
                   judge_in_list("then fi do done elif esac until select in coproc { } [[", word)
               ? buf_add_char(f->out, '\\') /* to fish it is a name */
               : SY_E_OK;
}

static enum sy_code
end_command(struct fish *f, const char *text, size_t used)
{
    const bool is_empty = !f->has_word;

    f->is_command = true;
    f->has_word = false;
    f->is_word = false;
    return add_text(f, is_empty && text[0] == ';' ? " " : text, used);
}

static enum sy_code
follow_mark(struct fish *f, bool *ret_done)
{
    static const struct {
        const char *mark, *ours;
    } ends[] = {
        {";",  ";" },
        {"\n", "\n"},
        {"&&", "&&"},
        {"||", "||"},
        {"&|", "|" },
        {">|", "|" },
        {"|",  "|" },
    };

    *ret_done = true;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const size_t n = strlen(ends[i].mark);

        if (n <= f->len - f->at && memcmp(f->text + f->at, ends[i].mark, n) == 0) {
            return end_command(f, ends[i].ours, n);
        }
    }
    switch (f->text[f->at]) {
    case '&':
        return peek(f, 1) == '>' ? add_as_is(f, 2) : end_command(f, "&", 1);
    case '(':
        return open_list(f);
    case ')':
        f->depth -= is_in(f, '(') ? 1 : 0;
        f->is_command = false;
        f->is_word = true;
        return add_as_is(f, 1);
    case ' ':
    case '\t':
        f->is_word = false;
        return add_as_is(f, 1);
    case '\'':
        return add_single(f);
    case '\\':
        return add_escape(f);
    case '`':
        f->is_word = true;
        return add_text(f, "\\`", 1);
    default:
        *ret_done = false;
        return SY_E_OK;
    }
}

static enum sy_code
follow(struct fish *f)
{
    const char c = f->text[f->at];
    bool is_done = false;
    enum sy_code rc = SY_E_OK;

    if (is_in(f, '"')) {
        return follow_double(f);
    }
    if (f->is_command && !f->is_word && strchr(" \t\n;&|()<>#", c) == NULL) {
        rc = follow_keyword(f, &is_done);
        if (rc != SY_E_OK || is_done) {
            return rc;
        }
        f->is_command = false;
        f->has_word = true;
    }
    if (c == '#' && !f->is_word) {
        const char *end = memchr(f->text + f->at, '\n', f->len - f->at);

        return add_as_is(f, (end != NULL ? (size_t)(end - f->text) : f->len) - f->at);
    }
    if (c == '$' && peek(f, 1) == '(') {
        return open_list(f);
    }
    rc = follow_mark(f, &is_done);
    if (rc != SY_E_OK || is_done) {
        return rc;
    }
    f->is_word = true;
    if (c == '"' && f->depth < DIALECT_DEPTH) {
        f->in[f->depth++] = '"';
    }
    if (c == '$' && (peek(f, 1) == '\'' || peek(f, 1) == '"')) {
        return add_text(f, "\\$", 1);
    }
    return add_as_is(f, 1);
}

enum sy_code
dialect_read_fish(struct buf *ret, const char *text, size_t len)
{
    struct fish f = {.text = text, .len = len, .out = ret, .is_command = true};
    enum sy_code rc = SY_E_OK;

    while (f.at < len && rc == SY_E_OK) {
        rc = follow(&f);
    }
    return rc;
}
