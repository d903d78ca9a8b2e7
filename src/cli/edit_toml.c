#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/edit.h"
#include "cli/edit_jsonc.h"

/*
 * A TOML file as a row of items: headers, entries, and lines that are blank or
 * hold a comment. The scanner knows just enough of TOML not to take what
 * stands in strings and arrays for structure.
 */
enum item_kind { ITEM_BLANK, ITEM_HEADER, ITEM_ENTRY, ITEM_END };

struct item {
    enum item_kind kind;
    bool is_array; /* header: in double brackets */
    size_t start;
    size_t end;       /* after its newline */
    size_t name;      /* header: after the brackets; entry: the key */
    size_t name_end;  /* exclusive */
    size_t value;     /* entry: first byte of the value */
    size_t value_end; /* after its last byte, comment excluded */
};

struct scan {
    const char *s;
    size_t len;
    size_t at;
};

/* The place after the string that opens at `at`; 0 if it does not end. */
static size_t
skip_quoted(const char *s, size_t len, size_t at)
{
    char q = s[at];
    bool is_long = at + 2 < len && s[at + 1] == q && s[at + 2] == q;
    size_t width = is_long ? 3 : 1;

    for (size_t i = at + width; i < len; i++) {
        if (q == '"' && s[i] == '\\') {
            i++;
        } else if (s[i] == q && (!is_long || (i + 2 < len && s[i + 1] == q && s[i + 2] == q))) {
            i += width;
            /* Up to two more quotes belong to the text of a long string. */
            while (is_long && i < len && s[i] == q) {
                i++;
            }
            return i;
        } else if (s[i] == '\n' && !is_long) {
            return 0;
        }
    }
    return 0;
}

/* The place after the bracket that closes the one at `at`; strings and comments are skipped. */
static size_t
skip_brackets(const char *s, size_t end, size_t at)
{
    size_t depth = 0;

    while (at < end) {
        char c = s[at];

        if (c == '"' || c == '\'') {
            at = skip_quoted(s, end, at);
            if (at == 0) {
                return 0;
            }
            continue;
        }
        if (c == '#') {
            at += strcspn(s + at, "\n");
            continue;
        }
        depth += c == '[' || c == '{' ? 1 : 0;
        depth -= c == ']' || c == '}' ? 1 : 0;
        at++;
        if (depth == 0) {
            return at;
        }
    }
    return 0;
}

/* The place after a value that begins at `at`: the first newline or comment
 * outside of strings and brackets; 0 if it does not end. */
static size_t
skip_toml_value(const char *s, size_t len, size_t at)
{
    while (at < len && s[at] != '\n' && s[at] != '#') {
        if (s[at] == '"' || s[at] == '\'') {
            at = skip_quoted(s, len, at);
        } else if (s[at] == '[' || s[at] == '{') {
            at = skip_brackets(s, len, at);
        } else {
            at++;
        }
        if (at == 0) {
            return 0;
        }
    }
    return at;
}

/* The place after a date, a number or a boolean that begins at `at`. */
static size_t
skip_bare(const char *s, size_t at)
{
    static const char bare[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-._:";
    size_t n = strspn(s + at, bare);

    /* "1979-05-27 07:32:00" */
    if (n == 10 && s[at + 4] == '-' && s[at + n] == ' ' && strchr("012", s[at + n + 1]) != NULL &&
        s[at + n + 1] != '\0') {
        n += 1 + strspn(s + at + n + 1, bare);
    }
    return at + n;
}

/* Is s[at, end) one value, with nothing behind it? */
static bool
is_one_value(const char *s, size_t at, size_t end)
{
    if (at >= end) {
        return false;
    }
    if (s[at] == '"' || s[at] == '\'') {
        return skip_quoted(s, end, at) == end;
    }
    return (s[at] == '[' || s[at] == '{' ? skip_brackets(s, end, at) : skip_bare(s, at)) == end;
}

static size_t
line_end(const struct scan *n, size_t at)
{
    at += strcspn(n->s + at, "\n");
    return at < n->len ? at + 1 : at;
}

static size_t
trim_end(const char *s, size_t start, size_t end)
{
    while (end > start && strchr(" \t\r\n", s[end - 1]) != NULL) {
        end--;
    }
    return end;
}

static bool
next_header(struct scan *n, struct item *ret, size_t at)
{
    size_t open = n->s[at + 1] == '[' ? 2 : 1;
    size_t close = at + open;

    while (close < n->len && n->s[close] != ']' && n->s[close] != '\n') {
        close = n->s[close] == '"' || n->s[close] == '\'' ? skip_quoted(n->s, n->len, close)
                                                          : close + 1;
        if (close == 0) {
            return false;
        }
    }
    if (close >= n->len || n->s[close] != ']') {
        return false;
    }
    if (open == 2 && n->s[close + 1] != ']') {
        return false;
    }
    ret->kind = ITEM_HEADER;
    ret->is_array = open == 2;
    ret->name = at + open;
    ret->name_end = close;
    ret->end = line_end(n, close);
    close += open;
    close += strspn(n->s + close, " \t\r");
    return close >= n->len || n->s[close] == '\n' || n->s[close] == '#';
}

static bool
next_entry(struct scan *n, struct item *ret, size_t at)
{
    size_t eq = at;

    while (eq < n->len && n->s[eq] != '=' && n->s[eq] != '\n') {
        eq = n->s[eq] == '"' || n->s[eq] == '\'' ? skip_quoted(n->s, n->len, eq) : eq + 1;
        if (eq == 0) {
            return false;
        }
    }
    if (eq >= n->len || n->s[eq] != '=') {
        return false;
    }
    ret->kind = ITEM_ENTRY;
    ret->name = at;
    ret->name_end = trim_end(n->s, at, eq);
    ret->value = eq + 1 + strspn(n->s + eq + 1, " \t");

    size_t end = skip_toml_value(n->s, n->len, ret->value);

    if (end == 0) {
        return false;
    }
    ret->value_end = trim_end(n->s, ret->value, end);
    ret->end = line_end(n, end);
    return is_one_value(n->s, ret->value, ret->value_end);
}

/* The next item; false where the text is not TOML. */
static bool
next_item(struct scan *n, struct item *ret)
{
    size_t at = n->at;
    bool good = true;

    memset(ret, 0, sizeof(*ret));
    ret->start = at;
    at += strspn(n->s + at, " \t\r");
    if (n->at >= n->len) {
        ret->kind = ITEM_END;
        ret->end = n->len;
    } else if (at >= n->len || n->s[at] == '\n' || n->s[at] == '#') {
        ret->kind = ITEM_BLANK;
        ret->end = line_end(n, at);
    } else if (n->s[at] == '[') {
        good = next_header(n, ret, at);
    } else {
        good = next_entry(n, ret, at);
    }
    n->at = ret->end;
    return good;
}

/* Is the (dotted, perhaps quoted) name s[start..end) this one? A longer name
 * that begins with it and goes on after a dot sets *ret_is_below. */
static bool
name_is(const char *s, size_t start, size_t end, const char *want, bool *ret_is_below)
{
    size_t k = 0;

    for (size_t i = start; i < end; i++) {
        if (strchr(" \t\"'", s[i]) != NULL) {
            continue;
        }
        if (want[k] == '\0') {
            if (ret_is_below != NULL) {
                *ret_is_below = s[i] == '.';
            }
            return false;
        }
        if (s[i] != want[k++]) {
            return false;
        }
    }
    return want[k] == '\0';
}

/* What was found of our table. */
struct table {
    bool is_found;
    size_t header_end; /* where its entries begin */
    size_t end;        /* after its last entry */
};

static enum sy_code
bad_toml(const char *s, size_t at, struct sy_error *err)
{
    int line = 1;

    for (size_t i = 0; i < at; i++) {
        line += s[i] == '\n' ? 1 : 0;
    }
    return sy_err_set(err, SY_E_PARSE, "line %d is not valid TOML", line);
}

static enum sy_code
bad_twice(const char *s, size_t at, const char *what, struct sy_error *err)
{
    struct sy_error where = {0};

    (void)bad_toml(s, at, &where);
    return sy_err_set(err, SY_E_PARSE, "%s: '%s' stands there twice", where.msg, what);
}

/* Is this entry our table, written as a dotted key or as an inline table? */
static bool
is_other_form(const char *s, const struct item *item, size_t depth, const struct edit_entry *entry)
{
    bool is_below = false;
    const char *want = depth == 0 ? entry->section : entry->name;

    return depth < 2 && (name_is(s, item->name, item->name_end, want, &is_below) || is_below);
}

/* False if it has begun before. */
static bool
begin_table(struct table *ret, const struct item *header)
{
    if (ret->is_found) {
        return false;
    }
    *ret = (struct table){.is_found = true, .header_end = header->end, .end = header->end};
    return true;
}

/* Walks the file once. `depth` of the current table: 0 root, 1 [section],
 * 2 anything else. */
static enum sy_code
find_table(struct table *ret, const struct buf *text, const struct edit_entry *entry,
           struct sy_error *err)
{
    struct scan n = {.s = buf_view(text), .len = text->len};
    SY_AUTO(buf_fini) struct buf full = {.max = LIMIT_PATH};
    struct item item;
    size_t depth = 0;
    bool is_inside = false;

    if (buf_addf(&full, "%s.%s", entry->section, entry->name) != SY_E_OK) {
        return sy_err_nomem(err);
    }
    n.at = str_starts(n.s, EDIT_BOM) ? strlen(EDIT_BOM) : 0;
    for (;;) {
        if (!next_item(&n, &item)) {
            return bad_toml(n.s, item.start, err);
        }
        if (item.kind == ITEM_END) {
            return SY_E_OK;
        }
        if (item.kind == ITEM_HEADER) {
            is_inside = name_is(n.s, item.name, item.name_end, buf_view(&full), NULL);
            depth = name_is(n.s, item.name, item.name_end, entry->section, NULL) ? 1 : 2;
            if (item.is_array && (is_inside || depth == 1)) {
                return sy_err_set(
                    err, SY_E_PARSE,
                    "[[%.*s]] stands there as an array of tables, not as a [%s] table",
                    (int)(item.name_end - item.name), n.s + item.name, buf_view(&full));
            }
            if (is_inside && !begin_table(ret, &item)) {
                return bad_twice(n.s, item.start, buf_view(&full), err);
            }
        } else if (item.kind == ITEM_ENTRY && is_inside) {
            ret->end = item.end;
        } else if (item.kind == ITEM_ENTRY && is_other_form(n.s, &item, depth, entry)) {
            return sy_err_set(err, SY_E_PARSE,
                              "'%s' stands there as an inline table or dotted key, not as a "
                              "[%s] table",
                              entry->section, buf_view(&full));
        }
    }
}

/* The entry of our table that sets `key`; false if there is none. */
static bool
find_entry(struct item *ret, const struct buf *text, const struct table *t, const char *key)
{
    struct scan n = {.s = buf_view(text), .len = t->end, .at = t->header_end};

    while (t->is_found && next_item(&n, ret) && ret->kind != ITEM_END) {
        if (ret->kind == ITEM_ENTRY && name_is(n.s, ret->name, ret->name_end, key, NULL)) {
            return true;
        }
    }
    return false;
}

/* A key of ours that is set twice. */
static enum sy_code
check_once(const struct buf *text, const struct table *t, const struct edit_field *fields,
           struct sy_error *err)
{
    struct table rest = *t;
    struct item item;

    for (size_t i = 0; fields[i].key != NULL; i++) {
        if (!find_entry(&item, text, t, fields[i].key)) {
            continue;
        }
        rest.header_end = item.end;
        if (find_entry(&item, text, &rest, fields[i].key)) {
            return bad_twice(buf_view(text), item.start, fields[i].key, err);
        }
    }
    return SY_E_OK;
}

static bool
says(const struct buf *text, const struct item *item, const char *value)
{
    size_t len = strlen(value);

    return item->value_end - item->value == len &&
           memcmp(text->data + item->value, value, len) == 0;
}

/* Steps over the next item of the array s[at, end), *at being behind its bracket or the item
 * before; false where there is none. */
static bool
next_of_array(const char *s, size_t end, size_t *at, size_t *ret_start)
{
    while (*at < end && strchr(" \t\r\n,#", s[*at]) != NULL) {
        *at += s[*at] == '#' ? strcspn(s + *at, "\n") : 1;
    }
    if (*at >= end || s[*at] == ']') {
        return false;
    }
    *ret_start = *at;
    if (s[*at] == '"' || s[*at] == '\'') {
        *at = skip_quoted(s, end, *at);
    } else {
        *at = s[*at] == '[' || s[*at] == '{' ? skip_brackets(s, end, *at) : skip_bare(s, *at);
    }
    return *at > *ret_start;
}

/* In either kind of quotes. */
static bool
is_same_string(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && a_len >= 2 && memcmp(a + 1, b + 1, a_len - 2) == 0 &&
           strchr("\"'", a[0]) != NULL && memchr(b, '\\', b_len) == NULL;
}

/* Where the items of the person begin, behind all that `ours` has (*ret_is_ours: which are
 * there as they should be); 0 if its last does not stand in its place. */
static size_t
head_end(const char *s, const struct item *item, const char *ours, bool *ret_is_ours)
{
    size_t ours_end = strlen(ours);
    size_t at = item->value + 1;
    size_t k = 1;
    size_t start = 0;
    size_t ours_start = 0;
    bool is_last = false;

    *ret_is_ours = true;
    if (s[item->value] != '[' || ours[0] != '[') {
        return 0;
    }
    while (next_of_array(ours, ours_end, &k, &ours_start)) {
        if (!next_of_array(s, item->value_end, &at, &start)) {
            return 0;
        }
        is_last = is_same_string(s + start, at - start, ours + ours_start, k - ours_start);
        *ret_is_ours = *ret_is_ours && is_last;
    }
    return is_last ? at : 0;
}

/* Does the entry say what we want of the field? */
static bool
is_right(const struct buf *text, const struct item *item, const struct edit_field *field)
{
    bool is_ours = false;

    switch (field->owner) {
    case EDIT_THEIRS:
        return true;
    case EDIT_OURS:
        break;
    case EDIT_OUR_HEAD:
        return head_end(text->data, item, field->value, &is_ours) != 0 && is_ours;
    }
    return says(text, item, field->value);
}

/* The comment behind the value, with the space before it; *ret_n is 0 where there is none. */
static const char *
comment_behind(const struct buf *text, const struct item *item, size_t *ret_n)
{
    size_t end = trim_end(text->data, item->value_end, item->end);
    const char *ret = text->data + item->value_end;

    *ret_n = memchr(ret, '#', end - item->value_end) != NULL ? end - item->value_end : 0;
    return ret;
}

/* Our field, with what the person put behind the head of it, and behind all, in `item` (NULL:
 * nothing). */
static enum sy_code
put_field(struct buf *out, const struct buf *text, const struct item *item,
          const struct edit_field *field)
{
    bool unused = false;
    size_t at = item != NULL && field->owner == EDIT_OUR_HEAD
                    ? head_end(text->data, item, field->value, &unused)
                    : 0;

    size_t n = 0;
    const char *comment = item != NULL ? comment_behind(text, item, &n) : "";

    if (at == 0) {
        return buf_addf(out, "%s = %s%.*s\n", field->key, field->value, (int)n, comment);
    }
    return buf_addf(out, "%s = %.*s%.*s%.*s\n", field->key, (int)strlen(field->value) - 1,
                    field->value, (int)(item->value_end - at), text->data + at, (int)n, comment);
}

/* Our fields that are missing or different, one line each; *ret_n of them. */
static enum sy_code
put_fields(struct buf *out, const struct buf *text, const struct table *t,
           const struct edit_field *fields, size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; fields[i].key != NULL; i++) {
        struct item item;
        bool is_there = find_entry(&item, text, t, fields[i].key);

        if (is_there && is_right(text, &item, &fields[i])) {
            continue;
        }
        (*ret_n)++;

        enum sy_code rc = put_field(out, text, is_there ? &item : NULL, &fields[i]);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

/* The old entries of the table, without those that put_fields wrote anew. */
static enum sy_code
put_rest(struct buf *out, const struct buf *text, const struct table *t,
         const struct edit_field *fields)
{
    struct scan n = {.s = buf_view(text), .len = t->end, .at = t->header_end};
    struct item item;

    while (next_item(&n, &item) && item.kind != ITEM_END) {
        bool is_replaced = false;

        for (size_t i = 0; item.kind == ITEM_ENTRY && fields[i].key != NULL; i++) {
            is_replaced =
                is_replaced || (name_is(n.s, item.name, item.name_end, fields[i].key, NULL) &&
                                !is_right(text, &item, &fields[i]));
        }

        enum sy_code rc =
            is_replaced ? SY_E_OK : buf_add(out, n.s + item.start, item.end - item.start);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
append_table(struct buf *out, const struct buf *text, const struct edit_entry *entry,
             const struct buf *lines)
{
    enum sy_code rc = buf_add(out, buf_view(text), text->len);

    if (rc == SY_E_OK && text->len > 0 && text->data[text->len - 1] != '\n') {
        rc = buf_add_char(out, '\n');
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "%s[%s.%s]\n%s", text->len > 0 ? "\n" : "", entry->section, entry->name,
                      buf_view(lines));
    }
    return rc;
}

enum sy_code
edit_toml(struct buf *out, const struct buf *text, const struct edit_entry *entry,
          enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf lines = {.max = LIMIT_CLIENT_FILE};
    struct table t = {0};
    size_t n = 0;
    enum sy_code rc = SY_E_OK;

    if (text->len > 0 && strlen(text->data) != text->len) {
        return sy_err_set(err, SY_E_PARSE, "it holds NUL bytes");
    }
    rc = find_table(&t, text, entry, err);
    if (rc == SY_E_OK) {
        rc = check_once(text, &t, entry->fields, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    rc = put_fields(&lines, text, &t, entry->fields, &n);
    if (rc == SY_E_OK && t.is_found && n == 0) {
        *ret_outcome = EDIT_UNCHANGED;
        rc = buf_add(out, buf_view(text), text->len);
    } else if (rc == SY_E_OK && t.is_found) {
        *ret_outcome = EDIT_CHANGED;
        rc = buf_add(out, text->data, t.header_end);
        if (rc == SY_E_OK && out->data[out->len - 1] != '\n') {
            rc = buf_add_char(out, '\n');
        }
        if (rc == SY_E_OK) {
            rc = buf_add(out, lines.data, lines.len);
        }
        if (rc == SY_E_OK) {
            rc = put_rest(out, text, &t, entry->fields);
        }
        if (rc == SY_E_OK) {
            rc = buf_add(out, text->data + t.end, text->len - t.end);
        }
    } else if (rc == SY_E_OK) {
        *ret_outcome = EDIT_ADDED;
        rc = append_table(out, text, entry, &lines);
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "%s", sy_code_text(rc));
}
