#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/edit.h"
#include "cli/edit_json.h"
#include "cli/edit_jsonc.h"

/*
 * The text has been parsed (what is no strict JSON is blanked for that, in a copy
 * of the same length, so that places hold for both), so that the scanner below may trust its form:
 * it only finds where things stand.
 */

static size_t
skip_space(const char *s, size_t at)
{
    return at + strspn(s + at, " \t\r\n");
}

static size_t
skip_value(const char *s, size_t at)
{
    size_t depth = 0;

    do {
        if (s[at] == '"') {
            at = edit_jsonc_string(s, at);
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
        size_t key_end = edit_jsonc_string(s, at);
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

/* A file's text, and the same with what is no strict JSON blanked (edit_jsonc.c). */
struct source {
    const char *text;
    const char *form;
    size_t len;
};

struct insertion {
    const struct source *source;
    const struct place *object; /* in which the member is set */
    const char *name;
    const char *indent;       /* of the object's members */
    const char *close_indent; /* of its closing brace */
    const char *value;        /* pretty */
};

/* In an object without members: behind its brace, and what comments stand there. */
static enum sy_code
splice_first(struct buf *out, const struct insertion *n)
{
    const struct source *f = n->source;
    size_t until = n->object->close;

    while (f->form[until - 1] != '{' && strchr(" \t\r\n", f->text[until - 1]) != NULL) {
        until--;
    }

    enum sy_code rc = buf_add(out, f->text, until);

    if (rc == SY_E_OK) {
        rc = buf_addf(out, "\n%s\"%s\": ", n->indent, n->name);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, n->value);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "\n%s", n->close_indent);
    }
    return rc == SY_E_OK ? buf_add(out, f->text + n->object->close, f->len - n->object->close) : rc;
}

/* Behind the last member, its trailing comma, and the comments on its line. */
static enum sy_code
splice_last(struct buf *out, const struct insertion *n)
{
    const struct source *f = n->source;
    size_t last = n->object->last_value;
    size_t comma = edit_jsonc_comma(f->text, last);
    size_t at = edit_jsonc_line_comments(f->text, comma != 0 ? comma : last);
    enum sy_code rc = buf_add(out, f->text, last);

    if (rc == SY_E_OK && comma == 0) {
        rc = buf_add_char(out, ',');
    }
    if (rc == SY_E_OK) {
        rc = buf_add(out, f->text + last, at - last);
    }
    if (rc == SY_E_OK) {
        rc = buf_addf(out, "\n%s\"%s\": ", n->indent, n->name);
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(out, n->value);
    }
    return rc == SY_E_OK ? buf_add(out, f->text + at, f->len - at) : rc;
}

/* The text with the member set: replaced, added after the last, or alone. */
static enum sy_code
splice(struct buf *out, const struct insertion *n)
{
    const struct place *p = n->object;

    if (!p->is_found) {
        return p->first_key != 0 ? splice_last(out, n) : splice_first(out, n);
    }

    enum sy_code rc = buf_add(out, n->source->text, p->value);

    if (rc == SY_E_OK) {
        rc = buf_add_str(out, n->value);
    }
    return rc == SY_E_OK
               ? buf_add(out, n->source->text + p->value_end, n->source->len - p->value_end)
               : rc;
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

/* Sets the entry; `value` is compact. */
static enum sy_code
set_entry(struct buf *out, const struct source *source, const struct edit_entry *entry,
          const char *value)
{
    const char *s = source->form;
    SY_AUTO(indents_fini) struct indents n = {0};
    SY_AUTO(buf_fini) struct buf pretty = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf whole = {.max = LIMIT_CLIENT_FILE};
    struct place root;
    struct place inner = {0};

    find_member(&root, s, skip_space(s, 0), entry->section);
    if (root.is_found) {
        find_member(&inner, s, root.value, entry->name);
    }

    enum sy_code rc = find_indents(&n, source->text, &root, &inner);
    struct insertion in = {.source = source, .value = NULL};

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

/* Sets one field of the entry that is there, and leaves the rest of it, comments too. */
static enum sy_code
set_field(struct buf *text, const struct edit_entry *entry, const char *key, const char *value)
{
    SY_AUTO(buf_fini) struct buf form = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf indent = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf close_indent = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf out = {.max = LIMIT_CLIENT_FILE};
    size_t odd = 0;
    enum sy_code rc = edit_jsonc_blank(&form, text, true, &odd);

    if (rc != SY_E_OK) {
        return rc;
    }

    const struct source source = {buf_view(text), buf_view(&form), text->len};
    struct place section;
    struct place inner;
    struct place place;

    find_member(&section, source.form, skip_space(source.form, 0), entry->section);
    find_member(&inner, source.form, section.value, entry->name);
    find_member(&place, source.form, inner.value, key);
    rc = indent_at(&close_indent, source.text, inner.first_key, "    ");
    if (rc == SY_E_OK) {
        rc = place.first_key != 0 ? indent_at(&indent, source.text, place.first_key, "      ")
                                  : buf_addf(&indent, "%s  ", buf_view(&close_indent));
    }

    const struct insertion in = {
        .source = &source,
        .object = &place,
        .name = key,
        .indent = buf_view(&indent),
        .close_indent = buf_view(&close_indent),
        .value = value,
    };

    if (rc == SY_E_OK) {
        rc = splice(&out, &in);
    }
    if (rc == SY_E_OK) {
        buf_reset(text);
        rc = buf_add(text, out.data, out.len);
    }
    return rc;
}

/* Does a comment stand inside our entry? */
static bool
has_comment_inside(const struct source *source, const struct edit_entry *entry)
{
    struct place section;
    struct place inner = {0};

    find_member(&section, source->form, skip_space(source->form, 0), entry->section);
    if (section.is_found) {
        find_member(&inner, source->form, section.value, entry->name);
    }
    for (size_t i = inner.value; inner.is_found && i < inner.value_end; i++) {
        if (source->text[i] != source->form[i] && source->text[i] != ',') {
            return true;
        }
    }
    return false;
}

/* Writing the entry anew would lose the comments in it: field by field then. */
static enum sy_code
set_fields(struct buf *out, const struct source *source, const struct edit_entry *entry,
           const struct js *now)
{
    enum sy_code rc = buf_add(out, source->text, source->len);

    for (size_t i = 0; entry->fields[i].key != NULL && rc == SY_E_OK; i++) {
        SY_AUTO(buf_fini) struct buf value = {.max = LIMIT_CLIENT_FILE};
        const struct edit_field *field = &entry->fields[i];
        bool good = false;

        rc = edit_json_field_is_set(&good, now, field);
        if (rc == SY_E_OK && !good) {
            rc = edit_json_value(&value, js_get(now, field->key), field);
            rc = rc == SY_E_OK ? set_field(out, entry, field->key, buf_view(&value)) : rc;
        }
    }
    return rc;
}

/* Reads the result back: an edit that we can't understand is not written. */
static enum sy_code
check_result(const struct buf *out, const struct edit_entry *entry, bool is_lax,
             struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    SY_AUTO(buf_fini) struct buf form = {.max = LIMIT_CLIENT_FILE};
    bool good = false;
    size_t odd = 0;
    enum sy_code rc = edit_jsonc_blank(&form, out, is_lax, &odd);

    if (rc == SY_E_OK) {
        rc = json_parse(&doc, form.data, form.len, err);
    }
    if (rc == SY_E_OK) {
        rc = edit_json_is_set(&good, js_get(js_get(doc.root, entry->section), entry->name),
                              entry->fields);
    }
    if (rc == SY_E_NOMEM) {
        return sy_err_nomem(err);
    }
    if (rc != SY_E_OK || !good) {
        return sy_err_set(err, SY_E_PARSE, "its form is unusual: it can't be edited safely");
    }
    return SY_E_OK;
}

/* `form` has been parsed to `root`. */
static enum sy_code
edit_parsed(struct buf *out, const struct source *source, const struct js *root,
            const struct edit_entry *entry, enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(buf_fini) struct buf value = {.max = LIMIT_CLIENT_FILE};
    const struct js *holder = js_get(root, entry->section);
    const struct js *now = js_get(holder, entry->name);
    bool already = false;

    if (js_type(root) != JS_OBJECT || (holder != NULL && js_type(holder) != JS_OBJECT) ||
        (now != NULL && js_type(now) != JS_OBJECT)) {
        return sy_err_set(err, SY_E_PARSE, "'%s' is not an object of objects there",
                          entry->section);
    }

    enum sy_code rc = edit_json_is_set(&already, now, entry->fields);

    if (rc == SY_E_OK && already) {
        *ret_outcome = EDIT_UNCHANGED;
        rc = buf_add(out, source->text, source->len);
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    *ret_outcome = now != NULL ? EDIT_CHANGED : EDIT_ADDED;
    if (rc == SY_E_OK && has_comment_inside(source, entry)) {
        rc = set_fields(out, source, entry, now);
    } else if (rc == SY_E_OK) {
        rc = edit_json_merge(&value, now, entry->fields);
        rc = rc == SY_E_OK ? set_entry(out, source, entry, buf_view(&value)) : rc;
    }
    return rc == SY_E_OK ? rc : sy_err_set(err, rc, "%s", sy_code_text(rc));
}

/* A file without a value: an empty object is put behind its comments, if it has any. */
static enum sy_code
begin_object(struct buf *fresh, struct buf *form, const struct buf *text)
{
    static const char empty[] = "{}\n";
    bool has_comments = strspn(buf_view(text), EDIT_BOM " \t\r\n") < text->len;
    enum sy_code rc = SY_E_OK;

    if (!has_comments) {
        buf_reset(form);
    } else {
        rc = buf_add(fresh, text->data, text->len);
        if (rc == SY_E_OK && text->data[text->len - 1] != '\n') {
            rc = buf_add_char(fresh, '\n');
            rc = rc == SY_E_OK ? buf_add_char(form, '\n') : rc;
        }
    }
    if (rc == SY_E_OK) {
        rc = buf_add_str(fresh, empty);
    }
    return rc == SY_E_OK ? buf_add_str(form, empty) : rc;
}

static size_t
line_of(const struct buf *text, size_t at)
{
    size_t line = 1;

    for (size_t i = 0; i < at; i++) {
        line += text->data[i] == '\n' ? 1 : 0;
    }
    return line;
}

static enum sy_code
edit(struct buf *out, const struct buf *text, const struct edit_entry *entry, bool is_lax,
     enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    SY_AUTO(buf_fini) struct buf form = {.max = LIMIT_CLIENT_FILE};
    SY_AUTO(buf_fini) struct buf fresh = {.max = LIMIT_CLIENT_FILE};
    const struct buf *source = text;
    size_t odd = SIZE_MAX;
    enum sy_code rc = edit_jsonc_blank(&form, text, is_lax, &odd);

    if (rc == SY_E_OK && strspn(buf_view(&form), " \t\r\n") == form.len) {
        rc = begin_object(&fresh, &form, text);
        source = &fresh;
    }
    if (rc == SY_E_OK) {
        rc = json_parse(&doc, form.data, form.len, err);
    }
    if (rc == SY_E_PARSE && !is_lax && odd != SIZE_MAX) {
        return sy_err_set(err, SY_E_PARSE,
                          "line %zu: a comment or a trailing comma, and this client's file is "
                          "strict JSON",
                          line_of(text, odd));
    }
    if (rc != SY_E_OK) {
        return rc == SY_E_NOMEM ? sy_err_nomem(err) : rc;
    }

    const struct source both = {buf_view(source), buf_view(&form), source->len};

    rc = edit_parsed(out, &both, doc.root, entry, ret_outcome, err);
    if (rc != SY_E_OK || *ret_outcome == EDIT_UNCHANGED) {
        return rc;
    }
    return check_result(out, entry, is_lax, err);
}

enum sy_code
edit_json(struct buf *out, const struct buf *text, const struct edit_entry *entry,
          enum edit_outcome *ret_outcome, struct sy_error *err)
{
    return edit(out, text, entry, false, ret_outcome, err);
}

enum sy_code
edit_jsonc(struct buf *out, const struct buf *text, const struct edit_entry *entry,
           enum edit_outcome *ret_outcome, struct sy_error *err)
{
    return edit(out, text, entry, true, ret_outcome, err);
}
