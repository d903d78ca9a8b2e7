#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/edit.h"

/*
 * The text has been parsed, so that the scanner below may trust its form: it
 * only finds where things stand.
 */

static size_t
skip_space(const char *s, size_t at)
{
    return at + strspn(s + at, " \t\r\n");
}

/* `at` is the opening quote; returns the place after the closing one. */
static size_t
skip_string(const char *s, size_t at)
{
    for (at++; s[at] != '"'; at++) {
        if (s[at] == '\\') {
            at++;
        }
    }
    return at + 1;
}

static size_t
skip_value(const char *s, size_t at)
{
    size_t depth = 0;

    do {
        if (s[at] == '"') {
            at = skip_string(s, at);
        } else if (s[at] == '{' || s[at] == '[') {
            depth++;
            at++;
        } else if (s[at] == '}' || s[at] == ']') {
            depth--;
            at++;
        } else if (depth == 0) {
            return at + strcspn(s + at, ",}] \t\r\n");
        } else {
            at++;
        }
    } while (depth > 0);
    return at;
}

/* Places in the text. */
struct place {
    bool is_found;
    size_t value;      /* where the member's value begins */
    size_t value_end;  /* and ends */
    size_t first_key;  /* of the object: its first member, 0 if it is empty */
    size_t last_value; /* where its last member ends */
    size_t close;      /* its closing brace */
};

/* Looks through the object that opens at `at` for `key` as it is written. */
static void
find_member(struct place *ret, const char *s, size_t at, const char *key)
{
    size_t len = strlen(key);

    memset(ret, 0, sizeof(*ret));
    at = skip_space(s, at + 1);
    while (s[at] != '}') {
        size_t key_at = at;
        size_t key_end = skip_string(s, at);
        size_t value = skip_space(s, skip_space(s, key_end) + 1);
        size_t end = skip_value(s, value);

        if (ret->first_key == 0) {
            ret->first_key = key_at;
        }
        if (key_end - key_at == len + 2 && memcmp(s + key_at + 1, key, len) == 0) {
            ret->is_found = true;
            ret->value = value;
            ret->value_end = end;
        }
        ret->last_value = end;
        at = skip_space(s, end);
        if (s[at] == ',') {
            at = skip_space(s, at + 1);
        }
    }
    ret->close = at;
}

struct pretty {
    struct buf *out;
    const char *base;
    const char *unit;
    size_t depth;
    uint64_t is_object; /* one bit a level; LIMIT_JSON_DEPTH is 64 */
};

static enum sy_code
break_line(const struct pretty *p)
{
    enum sy_code rc = buf_addf(p->out, "\n%s", p->base);

    for (size_t k = 0; k < p->depth && rc == SY_E_OK; k++) {
        rc = buf_add_str(p->out, p->unit);
    }
    return rc;
}

/* One byte of the compact text that stands outside of strings. */
static enum sy_code
put_mark(struct pretty *p, const char *at)
{
    bool breaks = false;
    enum sy_code rc = SY_E_OK;

    switch (*at) {
    case '{':
    case '[':
        breaks = *at == '{' && at[1] != '}';
        p->is_object = p->is_object << 1 | (*at == '{' ? 1U : 0U);
        p->depth++;
        rc = buf_add_char(p->out, *at);
        break;
    case '}':
    case ']':
        p->depth--;
        p->is_object >>= 1;
        rc = *at == '}' && at[-1] != '{' ? break_line(p) : SY_E_OK;
        return rc == SY_E_OK ? buf_add_char(p->out, *at) : rc;
    case ',':
        breaks = (p->is_object & 1) != 0;
        rc = buf_add_str(p->out, breaks ? "," : ", ");
        break;
    case ':':
        return buf_add_str(p->out, ": ");
    default:
        return buf_add_char(p->out, *at);
    }
    return rc == SY_E_OK && breaks ? break_line(p) : rc;
}

enum sy_code
edit_pretty(struct buf *out, const char *json, const char *base, const char *unit)
{
    struct pretty p = {.out = out, .base = base, .unit = unit};
    enum sy_code rc = SY_E_OK;
    size_t i = 0;

    while (json[i] != '\0' && rc == SY_E_OK) {
        size_t end = json[i] == '"' ? skip_string(json, i) : i + 1;

        rc = json[i] == '"' ? buf_add(out, json + i, end - i) : put_mark(&p, json + i);
        i = end;
    }
    return rc;
}

/* The entry as it should be: what is there, our fields over it. */
static enum sy_code
merge_entry(struct buf *out, const struct js *now, const struct edit_field *fields)
{
    struct jw w = {.out = out};
    void *it = NULL;
    const char *key = NULL;
    const struct js *value = NULL;

    jw_object(&w);
    for (size_t i = 0; fields[i].key != NULL; i++) {
        const struct js *kept = fields[i].is_ours ? NULL : js_get(now, fields[i].key);

        jw_key(&w, fields[i].key);
        if (kept != NULL) {
            jw_value(&w, kept);
        } else {
            jw_raw(&w, fields[i].value, strlen(fields[i].value));
        }
    }
    while (js_next(now, &it, &key, &value)) {
        bool is_written = false;

        for (size_t i = 0; fields[i].key != NULL; i++) {
            is_written = is_written || str_eq(fields[i].key, key);
        }
        if (!is_written) {
            jw_key(&w, key);
            jw_value(&w, value);
        }
    }
    jw_end_object(&w);
    return jw_done(&w);
}

/* Does the entry already say all that we want? */
static enum sy_code
is_set(bool *ret, const struct js *now, const struct edit_field *fields)
{
    *ret = js_type(now) == JS_OBJECT;
    for (size_t i = 0; fields[i].key != NULL && *ret; i++) {
        const struct js *value = js_get(now, fields[i].key);
        SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};

        if (value == NULL) {
            *ret = false;
            return SY_E_OK;
        }

        enum sy_code rc = js_dump(&text, value);

        if (rc != SY_E_OK) {
            return rc;
        }
        *ret = !fields[i].is_ours || str_eq(buf_view(&text), fields[i].value);
    }
    return SY_E_OK;
}

/* The white space in front of the line on which `at` stands, if nothing else
 * stands between; else `fallback`. */
static enum sy_code
indent_at(struct buf *ret, const char *s, size_t at, const char *fallback)
{
    size_t start = at;

    while (start > 0 && (s[start - 1] == ' ' || s[start - 1] == '\t')) {
        start--;
    }
    if (at == 0 || start == 0 || s[start - 1] != '\n') {
        return buf_add_str(ret, fallback);
    }
    return buf_add(ret, s + start, at - start);
}

struct insertion {
    const char *text;
    size_t len;
    const struct place *object; /* in which the member is set */
    const char *name;
    const char *indent;       /* of the object's members */
    const char *close_indent; /* of its closing brace */
    const char *value;        /* pretty */
};

/* The text with the member set: replaced, added after the last, or alone. */
static enum sy_code
splice(struct buf *out, const struct insertion *n)
{
    const struct place *p = n->object;
    size_t until = p->is_found ? p->value : p->first_key != 0 ? p->last_value : 0;
    size_t after = p->is_found ? p->value_end : p->first_key != 0 ? p->last_value : p->close;

    if (!p->is_found && p->first_key == 0) {
        /* Up to and with the opening brace of the empty object. */
        until = p->close;
        while (n->text[until - 1] != '{') {
            until--;
        }
    }

    enum sy_code rc = buf_add(out, n->text, until);

    if (rc == SY_E_OK && !p->is_found) {
        rc = buf_addf(out, "%s\n%s\"%s\": ", p->first_key != 0 ? "," : "", n->indent, n->name);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, n->value);
    }
    if (rc == SY_E_OK && !p->is_found && p->first_key == 0) {
        rc = buf_addf(out, "\n%s", n->close_indent);
    }
    return rc == SY_E_OK ? buf_add(out, n->text + after, n->len - after) : rc;
}

/* Indentation of the three levels. */
struct indents {
    struct buf unit;
    struct buf section;
    struct buf entry;
};

static void
indents_fini(struct indents *n)
{
    buf_fini(&n->unit);
    buf_fini(&n->section);
    buf_fini(&n->entry);
}

static enum sy_code
find_indents(struct indents *ret, const char *s, const struct place *root,
             const struct place *section)
{
    ret->unit.max = ret->section.max = ret->entry.max = LIMIT_CLIENT_FILE;

    enum sy_code rc = indent_at(&ret->unit, s, root->first_key, "  ");

    if (rc == SY_E_OK) {
        rc = buf_add_str(&ret->section, buf_view(&ret->unit));
    }
    if (rc != SY_E_OK) {
        return rc;
    }

    SY_AUTO(buf_fini) struct buf twice = {.max = LIMIT_CLIENT_FILE};

    rc = buf_addf(&twice, "%s%s", buf_view(&ret->unit), buf_view(&ret->unit));
    if (rc != SY_E_OK) {
        return rc;
    }
    return indent_at(&ret->entry, s, section->first_key, buf_view(&twice));
}

/* Sets the entry in `s` (valid JSON, an object); `value` is compact. */
static enum sy_code
set_entry(struct buf *out, const struct buf *text, const struct edit_entry *entry,
          const char *value)
{
    const char *s = buf_view(text);
    SY_AUTO(indents_fini) struct indents n = {0};
    SY_AUTO(buf_fini) struct buf pretty = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_CLIENT_FILE};
    struct place root;
    struct place inner = {0};

    find_member(&root, s, skip_space(s, 0), entry->section);
    if (root.is_found) {
        find_member(&inner, s, root.value, entry->name);
    }

    enum sy_code rc = find_indents(&n, s, &root, &inner);
    struct insertion in = {.text = s, .len = text->len, .value = NULL};

    if (rc == SY_E_OK && root.is_found) {
        rc = edit_pretty(&pretty, value, buf_view(&n.entry), buf_view(&n.unit));
        in.object = &inner;
        in.name = entry->name;
        in.indent = buf_view(&n.entry);
        in.close_indent = buf_view(&n.section);
    } else if (rc == SY_E_OK) {
        rc = buf_addf(&whole, "{\"%s\":%s}", entry->name, value);
        if (rc == SY_E_OK) {
            rc = edit_pretty(&pretty, buf_view(&whole), buf_view(&n.section), buf_view(&n.unit));
        }
        in.object = &root;
        in.name = entry->section;
        in.indent = buf_view(&n.section);
        in.close_indent = "";
    }
    in.value = buf_view(&pretty);
    return rc == SY_E_OK ? splice(out, &in) : rc;
}

/* Reads the result back: an edit that we can't understand is not written. */
static enum sy_code
check_result(const struct buf *out, const struct edit_entry *entry, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    bool good = false;
    enum sy_code rc = json_parse(&doc, buf_view(out), out->len, err);

    if (rc == SY_E_OK) {
        rc = is_set(&good, js_get(js_get(doc.root, entry->section), entry->name), entry->fields);
    }
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK || !good) {
        return sy_err_set(err, SY_E_PARSE, "its form is unusual: it can't be edited safely");
    }
    return SY_E_OK;
}

enum sy_code
edit_json(struct buf *out, const struct buf *text, const struct edit_entry *entry,
          enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    SY_AUTO(buf_fini) struct buf source = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf value = {.max = LIMIT_CLIENT_FILE};
    bool is_empty = strspn(buf_view(text), " \t\r\n") == text->len;
    bool already = false;
    enum sy_code rc =
        is_empty ? buf_add_str(&source, "{}\n") : buf_add(&source, text->data, text->len);

    if (rc == SY_E_OK) {
        rc = json_parse(&doc, source.data, source.len, err);
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
    }

    const struct js *holder = js_get(doc.root, entry->section);
    const struct js *now = js_get(holder, entry->name);

    if (js_type(doc.root) != JS_OBJECT || (holder != NULL && js_type(holder) != JS_OBJECT) ||
        (now != NULL && js_type(now) != JS_OBJECT)) {
        return sy_err_set(err, SY_E_PARSE, "'%s' is not an object of objects there",
                          entry->section);
    }
    rc = is_set(&already, now, entry->fields);
    if (rc == SY_E_OK && already) {
        *ret_outcome = EDIT_UNCHANGED;
        rc = buf_add(out, source.data, source.len);
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    *ret_outcome = now != NULL ? EDIT_CHANGED : EDIT_ADDED;
    if (rc == SY_E_OK) {
        rc = merge_entry(&value, now, entry->fields);
    }
    if (rc == SY_E_OK) {
        rc = set_entry(out, &source, entry, buf_view(&value));
    }
    if (rc != SY_E_OK) {
        return sy_err_set(err, rc, "%s", sy_code_text(rc));
    }
    return check_result(out, entry, err);
}
