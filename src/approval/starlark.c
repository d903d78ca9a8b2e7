#include "approval/starlark.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

static void
value_fini(struct starlark_value *v)
{
    for (size_t i = 0; i < v->n; i++) {
        strv_fini(&v->items[i].words);
    }
    mem_free(v->items);
    *v = (struct starlark_value){0};
}

void
starlark_call_fini(struct starlark_call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        value_fini(&c->args[i].value);
    }
    *c = (struct starlark_call){0};
}

/* The place of the next byte. It never lies before that of the last call, so
 * that the text is counted through once. */
static struct place
here(struct starlark *s)
{
    if (s->mark.line == 0) {
        s->mark.line = s->mark.column = 1;
    }
    for (; s->mark.at < s->at; s->mark.at++) {
        unsigned char c = (unsigned char)s->in->text[s->mark.at];

        if (c == '\n') {
            s->mark.line++;
            s->mark.column = 1;
        } else if ((c & 0xC0U) != 0x80U) {
            s->mark.column++;
        }
    }
    return (struct place){.name = s->name, .line = s->mark.line, .column = s->mark.column};
}

/* The byte `ahead`; NUL behind the end. */
static char
peek(const struct starlark *s, size_t ahead)
{
    if (s->at + ahead >= s->in->len) {
        return '\0';
    }
    return s->in->text[s->at + ahead];
}

static bool
is_end(const struct starlark *s)
{
    return s->at >= s->in->len;
}

/* Blanks and comments; line breaks too inside brackets. */
static void
skip_blanks(struct starlark *s, bool takes_lines)
{
    while (!is_end(s)) {
        char c = peek(s, 0);

        if (c == '#') {
            while (!is_end(s) && peek(s, 0) != '\n') {
                s->at++;
            }
        } else if (c == '\\' && peek(s, 1) == '\n') {
            s->at += 2;
        } else if (c == ' ' || c == '\t' || c == '\r' || (takes_lines && c == '\n')) {
            s->at++;
        } else {
            return;
        }
    }
}

static bool
is_name_byte(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

static size_t
name_len(const struct starlark *s)
{
    size_t len = 0;

    while (is_name_byte(peek(s, len), len == 0)) {
        len++;
    }
    return len;
}

/* The error at the current byte, which is not `what`. */
static enum sy_code
expected(struct starlark *s, const char *what)
{
    struct place at = here(s);
    size_t len = name_len(s);
    struct place_shown shown;

    if (is_end(s)) {
        return place_error(s->err, &at, "expected %s, got the end of the file", what);
    }
    if (len == 0) {
        len = 1;
        while (((unsigned char)peek(s, len) & 0xC0U) == 0x80U) {
            len++;
        }
    }
    return place_error(s->err, &at, "expected %s, got '%s'", what,
                       place_visible(&shown, s->in->text + s->at, len));
}

static enum sy_code
read_name(struct starlark *s, char ret[STARLARK_NAME_MAX], const char *what)
{
    size_t len = name_len(s);
    struct place at = here(s);

    if (len == 0) {
        return expected(s, what);
    }
    if (len >= STARLARK_NAME_MAX) {
        return place_error(s->err, &at, "a name of more than %d letters", STARLARK_NAME_MAX - 1);
    }
    memcpy(ret, s->in->text + s->at, len);
    ret[len] = '\0';
    s->at += len;
    return SY_E_OK;
}

static bool
hex_digit(char c, uint32_t *value)
{
    const char *digits = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

    if (found == NULL) {
        return false;
    }
    *value = *value * 16 + (uint32_t)(found - digits);
    return true;
}

/* Behind "\x", "\u" or "\U". */
static enum sy_code
add_numbered(struct starlark *s, struct buf *b, const struct place *at)
{
    char kind = peek(s, 0);
    size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    uint32_t c = 0;

    s->at++;
    for (size_t i = 0; i < digits; i++) {
        if (!hex_digit(peek(s, 0), &c) || c > 0x10FFFFU) {
            return place_error(s->err, at, "'\\%c' takes %zu hexadecimal digits of a character",
                               kind, digits);
        }
        s->at++;
    }
    if (c == 0 || (kind == 'x' && c > 0x7FU) || (c >= 0xD800U && c <= 0xDFFFU)) {
        return place_error(s->err, at, "'\\%c' makes no character that a word can hold", kind);
    }

    char bytes[UTF8_MAX];

    return buf_add(b, bytes, utf8_put(bytes, c)) == SY_E_OK ? SY_E_OK : sy_err_nomem(s->err);
}

/* Behind a backslash. */
static enum sy_code
add_escape(struct starlark *s, struct buf *b)
{
    static const char from[] = "nrtabfv\\'\"";
    static const char to[] = "\n\r\t\a\b\f\v\\'\"";
    struct place at = here(s);
    char c = peek(s, 0);
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    struct place_shown shown;

    if (c == '\n') {
        s->at++;
        return SY_E_OK;
    }
    if (found != NULL) {
        s->at++;
        return buf_add_char(b, to[found - from]) == SY_E_OK ? SY_E_OK : sy_err_nomem(s->err);
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        return add_numbered(s, b, &at);
    }
    return place_error(s->err, &at,
                       "'\\%s' is no escape that is read here: write '\\\\' for a "
                       "backslash",
                       place_visible(&shown, &c, 1));
}

/* The current byte is a quote; three of them begin a string of several lines. */
static enum sy_code
read_quoted(struct starlark *s, struct buf *b, bool is_raw)
{
    struct place at = here(s);
    char quote = peek(s, 0);
    bool is_long = peek(s, 1) == quote && peek(s, 2) == quote;
    size_t quotes = is_long ? 3 : 1;
    enum sy_code rc = SY_E_OK;

    s->at += quotes;
    while (rc == SY_E_OK) {
        char c = peek(s, 0);

        if (is_end(s) || (c == '\n' && !is_long)) {
            return place_error(s->err, &at, "a string that does not end");
        }
        if (c == quote && (!is_long || (peek(s, 1) == quote && peek(s, 2) == quote))) {
            s->at += quotes;
            return SY_E_OK;
        }
        s->at++;
        if (c == '\\' && !is_raw) {
            rc = add_escape(s, b);
        } else if (c == '\0') {
            rc = place_error(s->err, &at, "a string with a NUL character");
        } else if (buf_add_char(b, c) != SY_E_OK) {
            rc = sy_err_nomem(s->err);
        }
        if (rc == SY_E_OK && c == '\\' && is_raw && peek(s, 0) == quote) {
            /* It stays, and keeps the quote from ending the string. */
            s->at++;
            rc = buf_add_char(b, quote) == SY_E_OK ? SY_E_OK : sy_err_nomem(s->err);
        }
    }
    return rc;
}

static bool
is_string(const struct starlark *s)
{
    size_t raw = peek(s, 0) == 'r' ? 1 : 0;

    return peek(s, raw) == '"' || peek(s, raw) == '\'';
}

static enum sy_code
read_string(struct starlark *s, struct strv *ret)
{
    SY_AUTO(buf_fini) struct buf b = {.max = LIMIT_RULES_FILE};
    struct place at = here(s);
    bool is_raw = peek(s, 0) == 'r';

    s->at += is_raw ? 1 : 0;

    enum sy_code rc = read_quoted(s, &b, is_raw);

    if (rc != SY_E_OK) {
        return rc;
    }
    ret->max = LIMIT_RULE_WORDS;
    rc = strv_add(ret, buf_view(&b));
    return rc == SY_E_LIMIT ? place_error(s->err, &at, "more than %u words", LIMIT_RULE_WORDS)
           : rc != SY_E_OK  ? sy_err_nomem(s->err)
                            : SY_E_OK;
}

/* After an element: a comma, or the bracket that ends. */
static enum sy_code
read_comma(struct starlark *s, char end, bool *ret_end)
{
    skip_blanks(s, true);
    if (peek(s, 0) == ',') {
        s->at++;
        skip_blanks(s, true);
    } else if (peek(s, 0) != end) {
        return expected(s, end == ']' ? "',' or ']'" : "',' or ')'");
    }
    *ret_end = peek(s, 0) == end;
    s->at += *ret_end ? 1 : 0;
    return SY_E_OK;
}

/* Reads what stands between two commas into `arg`. */
typedef enum sy_code item_fn(struct starlark *s, void *arg);

/* What is between two brackets, with commas; the current byte follows the first. */
static enum sy_code
read_items(struct starlark *s, char end, item_fn *fn, void *arg)
{
    bool is_over = false;

    skip_blanks(s, true);
    if (peek(s, 0) == end) {
        s->at++;
        return SY_E_OK;
    }
    while (!is_over) {
        enum sy_code rc = fn(s, arg);

        if (rc == SY_E_OK) {
            rc = read_comma(s, end, &is_over);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

/* Into a list of strings. */
static enum sy_code
read_word(struct starlark *s, void *arg)
{
    return is_string(s) ? read_string(s, arg) : expected(s, "a string");
}

/* Into a value's items. */
static enum sy_code
read_item(struct starlark *s, void *arg)
{
    struct starlark_value *v = arg;
    struct place at = here(s);

    if (v->n == LIMIT_RULE_WORDS) {
        return place_error(s->err, &at, "more than %u entries", LIMIT_RULE_WORDS);
    }

    struct starlark_item *more = mem_realloc(v->items, (v->n + 1) * sizeof(*more));

    if (more == NULL) {
        return sy_err_nomem(s->err);
    }
    v->items = more;
    more += v->n++;
    *more = (struct starlark_item){.at = at, .is_list = peek(s, 0) == '['};
    if (more->is_list) {
        s->at++;
        return read_items(s, ']', read_word, &more->words);
    }
    return is_string(s) ? read_string(s, &more->words) : expected(s, "a string or a list of them");
}

static enum sy_code
read_value(struct starlark *s, struct starlark_value *v)
{
    static const char none[] = "None";

    v->at = here(s);
    if (peek(s, 0) == '[') {
        v->type = STARLARK_LIST;
        s->at++;
        return read_items(s, ']', read_item, v);
    }
    if (is_string(s)) {
        v->type = STARLARK_STRING;
        return read_item(s, v);
    }
    if (name_len(s) == sizeof(none) - 1 && memcmp(s->in->text + s->at, none, 4) == 0) {
        s->at += sizeof(none) - 1;
        return SY_E_OK;
    }
    return expected(s, "a string or a list (nothing is computed here)");
}

/* `name = value` or a value, into a call. */
static enum sy_code
read_arg(struct starlark *s, void *ret_call)
{
    struct starlark_call *c = ret_call;
    struct place at = here(s);

    if (c->n == STARLARK_ARGS_MAX) {
        return place_error(s->err, &at, "more than %d arguments", STARLARK_ARGS_MAX);
    }

    struct starlark_arg *arg = &c->args[c->n++];

    *arg = (struct starlark_arg){.at = at};

    size_t len = is_string(s) ? 0 : name_len(s);
    struct starlark ahead = *s;

    ahead.at += len;
    skip_blanks(&ahead, true);
    if (len > 0 && peek(&ahead, 0) == '=' && peek(&ahead, 1) != '=') {
        enum sy_code rc = read_name(s, arg->name, "an argument");

        if (rc != SY_E_OK) {
            return rc;
        }
        s->at = ahead.at + 1;
        skip_blanks(s, true);
    }
    for (size_t i = 0; arg->name[0] != '\0' && i + 1 < c->n; i++) {
        if (str_eq(c->args[i].name, arg->name)) {
            return place_error(s->err, &at, "'%s' stands twice (first at line %zu, column %zu)",
                               arg->name, c->args[i].at.line, c->args[i].at.column);
        }
    }
    return read_value(s, &arg->value);
}

enum sy_code
starlark_next(struct starlark *s, struct starlark_call *ret, bool *ret_end)
{
    static const char mark[] = "\xEF\xBB\xBF";

    *ret = (struct starlark_call){0};
    if (s->at == 0 && s->in->len >= 3 && memcmp(s->in->text, mark, 3) == 0) {
        s->at = 3;
    }
    while (!is_end(s)) {
        skip_blanks(s, true);
        if (peek(s, 0) != ';') {
            break;
        }
        s->at++;
    }
    *ret_end = is_end(s);
    if (*ret_end) {
        return SY_E_OK;
    }
    ret->at = here(s);

    enum sy_code rc = read_name(s, ret->name, "a call such as prefix_rule(...)");

    if (rc != SY_E_OK) {
        return rc;
    }
    skip_blanks(s, false);
    if (peek(s, 0) != '(') {
        return place_error(s->err, &ret->at,
                           "'%s' is no call: rules are read from calls with strings and lists "
                           "alone",
                           ret->name);
    }
    s->at++;
    rc = read_items(s, ')', read_arg, ret);
    if (rc != SY_E_OK) {
        return rc;
    }
    skip_blanks(s, false);
    return is_end(s) || peek(s, 0) == '\n' || peek(s, 0) == ';'
               ? SY_E_OK
               : expected(s, "the end of the line after ')'");
}
