#include "cli/edit_yaml.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/edit_jsonc.h"

static size_t
line_start(const struct buf *text, size_t line)
{
    size_t at = 0;

    while (line > 0 && at < text->len) {
        at += strcspn(text->data + at, "\n");
        at += at < text->len ? 1 : 0;
        line--;
    }
    return at;
}

static enum sy_code
put_entry(struct buf *out, const struct edit_entry *entry, int indent)
{
    const struct edit_field *fields = entry->fields;
    enum sy_code rc = buf_addf(out, "%*s%s:\n", indent, "", entry->name);

    for (size_t i = 0; fields[i].key != NULL && rc == SY_E_OK; i++) {
        rc = buf_addf(out, "%*s%s: %s\n", indent + 2, "", fields[i].key, fields[i].value);
    }
    return rc;
}

/* Copies text[from, to) and ends it with a newline. */
static enum sy_code
put_text(struct buf *out, const struct buf *text, size_t from, size_t to)
{
    enum sy_code rc = to > from ? buf_add(out, text->data + from, to - from) : SY_E_OK;

    if (rc == SY_E_OK && out->len > 0 && out->data[out->len - 1] != '\n') {
        rc = buf_add_char(out, '\n');
    }
    return rc;
}

/* Into a block mapping: as its first entry, at the column of the others. */
static enum sy_code
insert_entry(struct buf *out, const struct buf *text, struct yaml_file *f,
             const struct edit_entry *entry)
{
    const yaml_node_pair_t *first = f->section->data.mapping.pairs.start;
    const yaml_node_t *key = yaml_document_get_node(&f->doc, first->key);
    size_t at = line_start(text, key->start_mark.line);
    enum sy_code rc = put_text(out, text, 0, at);

    if (rc == SY_E_OK) {
        rc = put_entry(out, entry, (int)key->start_mark.column);
    }
    return rc == SY_E_OK ? put_text(out, text, at, text->len) : rc;
}

/* The place of a mark, whose columns are characters. */
static size_t
byte_at(const struct buf *text, yaml_mark_t mark)
{
    size_t at = line_start(text, mark.line);

    if (mark.line == 0 && str_starts(buf_view(text), EDIT_BOM)) {
        at += strlen(EDIT_BOM);
    }
    for (size_t k = 0; k < mark.column && at < text->len; k++) {
        for (at++; at < text->len && ((unsigned char)text->data[at] & 0xC0U) == 0x80; at++) {
        }
    }
    return at;
}

/* `extensions:` with nothing, or with {}: that goes, what stands around it stays. */
static enum sy_code
fill_section(struct buf *out, const struct buf *text, const struct yaml_file *f,
             const struct edit_entry *entry)
{
    bool is_braces = f->section->type == YAML_MAPPING_NODE;
    size_t key_end = byte_at(text, f->section_key->end_mark);
    size_t after = line_start(text, f->section_key->start_mark.line + 1);
    size_t rest = is_braces ? byte_at(text, f->section->end_mark) : key_end;
    enum sy_code rc = buf_add(out, buf_view(text), key_end);

    rest += is_braces ? 0 : strcspn(buf_view(text) + rest, ":") + 1;
    if (rc == SY_E_OK) {
        rc = buf_add_char(out, ':');
    }
    rest += strspn(buf_view(text) + rest, " \t");
    if (rest > after || rest > text->len) {
        return SY_E_PARSE; /* braces over more than one line */
    }
    if (rc == SY_E_OK && rest < text->len && text->data[rest] == '#') {
        rc = buf_add_char(out, ' ');
    }
    if (rc == SY_E_OK) {
        rc = put_text(out, text, rest, after);
    }
    if (rc == SY_E_OK) {
        rc = put_entry(out, entry, 2);
    }
    return rc == SY_E_OK ? put_text(out, text, after, text->len) : rc;
}

static enum sy_code
append_section(struct buf *out, const struct buf *text, const struct edit_entry *entry)
{
    enum sy_code rc = put_text(out, text, 0, text->len);

    if (rc == SY_E_OK) {
        rc = buf_addf(out, "%s:\n", entry->section);
    }
    return rc == SY_E_OK ? put_entry(out, entry, 2) : rc;
}

/* Where a node's text ends; false where its marks do not tell. */
static bool
node_end(yaml_mark_t *ret, struct yaml_file *f, const yaml_node_t *node)
{
    for (size_t depth = 0; node != NULL && depth < LIMIT_JSON_DEPTH; depth++) {
        *ret = node->end_mark;
        if (node->type == YAML_SCALAR_NODE) {
            return node->data.scalar.style != YAML_LITERAL_SCALAR_STYLE &&
                   node->data.scalar.style != YAML_FOLDED_SCALAR_STYLE;
        }
        if (node->type == YAML_MAPPING_NODE) {
            if (node->data.mapping.style == YAML_FLOW_MAPPING_STYLE || edit_yaml_is_empty(node)) {
                return true;
            }
            node = yaml_document_get_node(&f->doc, node->data.mapping.pairs.top[-1].value);
        } else {
            if (node->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE ||
                edit_yaml_count(node) == 0) {
                return true;
            }
            node = yaml_document_get_node(&f->doc, node->data.sequence.items.top[-1]);
        }
    }
    return false;
}

/* text[0, from), `put`, text[to, end). */
static enum sy_code
put_between(struct buf *out, const struct buf *text, size_t from, size_t to, const struct buf *put)
{
    enum sy_code rc = buf_add(out, buf_view(text), from);

    if (rc == SY_E_OK) {
        rc = buf_add(out, buf_view(put), put->len);
    }
    return rc == SY_E_OK ? buf_add(out, buf_view(text) + to, text->len - to) : rc;
}

/* Writes a value in the place of the one of `key`, from the key's end. */
static enum sy_code
replace_value(struct buf *out, const struct buf *text, struct yaml_file *f,
              const yaml_node_t *const node[2], const struct buf *value)
{
    yaml_mark_t mark = {0};

    if (!node_end(&mark, f, node[1])) {
        return SY_E_PARSE;
    }

    size_t key_end = byte_at(text, node[0]->end_mark);
    size_t start = byte_at(text, node[1]->start_mark);
    size_t end = byte_at(text, mark);
    size_t colons = 0;

    /* A comment between them, or an alias, whose node is elsewhere. */
    if (start < key_end || end < start ||
        strspn(buf_view(text) + key_end, " \t\r\n:") < start - key_end) {
        return SY_E_PARSE;
    }
    for (size_t i = key_end; i < start; i++) {
        colons += text->data[i] == ':' ? 1 : 0;
    }
    return colons == 1 ? put_between(out, text, key_end, end, value) : SY_E_PARSE;
}

/* {key: value, key: value}, which YAML reads as it does JSON. */
static enum sy_code
put_flow(struct buf *out, const struct edit_field *fields)
{
    enum sy_code rc = buf_add_char(out, '{');

    for (size_t i = 0; fields[i].key != NULL && rc == SY_E_OK; i++) {
        rc = buf_addf(out, "%s%s: %s", i > 0 ? ", " : "", fields[i].key, fields[i].value);
    }
    return rc == SY_E_OK ? buf_add_char(out, '}') : rc;
}

static bool
is_flow(const yaml_node_t *map)
{
    return map->data.mapping.style == YAML_FLOW_MAPPING_STYLE;
}

/* As the first pair of a mapping in braces that has others. */
static enum sy_code
insert_flow(struct buf *out, const struct buf *text, const yaml_node_t *map, struct buf *pair)
{
    size_t at = byte_at(text, map->start_mark);

    if (at >= text->len || text->data[at] != '{') {
        return SY_E_PARSE; /* an anchor or a tag */
    }

    enum sy_code rc = buf_add_str(pair, ", ");

    return rc == SY_E_OK ? put_between(out, text, at + 1, at + 1, pair) : rc;
}

static enum sy_code
insert_field(struct buf *out, const struct buf *text, struct yaml_file *f,
             const struct edit_field *field)
{
    SY_AUTO(buf_fini) struct buf pair = {.max = LIMIT_CLIENT_FILE};
    const yaml_node_t *key =
        yaml_document_get_node(&f->doc, f->entry->data.mapping.pairs.start->key);
    enum sy_code rc = buf_addf(&pair, "%s: %s", field->key, field->value);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (is_flow(f->entry)) {
        return insert_flow(out, text, f->entry, &pair);
    }

    size_t at = line_start(text, key->start_mark.line);
    size_t first = byte_at(text, key->start_mark);

    if (strspn(buf_view(text) + at, " ") < first - at) {
        return SY_E_PARSE;
    }
    rc = buf_addf(&pair, "\n%*s", (int)(first - at), "");
    return rc == SY_E_OK ? put_between(out, text, first, first, &pair) : rc;
}

/* One step towards the entry as we want it; `field` is the first that is not so. */
static enum sy_code
change_entry(struct buf *out, const struct buf *text, struct yaml_file *f,
             const struct edit_entry *entry, const struct edit_field *field)
{
    SY_AUTO(buf_fini) struct buf value = {.max = LIMIT_CLIENT_FILE};
    const yaml_node_t *node[2] = {NULL, f->entry};
    enum sy_code rc = buf_add_char(&value, ':');

    if (rc == SY_E_OK && edit_yaml_is_empty(f->entry)) {
        (void)yaml_file_get(f, f->section, entry->name, &node[0]);
        rc = buf_add_char(&value, ' ');
        rc = rc == SY_E_OK ? put_flow(&value, entry->fields) : rc;
        return rc == SY_E_OK ? replace_value(out, text, f, node, &value) : rc;
    }
    if (rc != SY_E_OK || f->entry->type != YAML_MAPPING_NODE) {
        return rc != SY_E_OK ? rc : SY_E_PARSE;
    }
    node[1] = yaml_file_get(f, f->entry, field->key, &node[0]);
    if (node[1] == NULL) {
        return insert_field(out, text, f, field);
    }
    rc = buf_addf(&value, " %s", field->value);
    return rc == SY_E_OK ? replace_value(out, text, f, node, &value) : rc;
}

static enum sy_code
write_entry(struct buf *out, const struct buf *text, struct yaml_file *f,
            const struct edit_entry *entry)
{
    if (f->section == NULL) {
        return append_section(out, text, entry);
    }
    if (edit_yaml_is_empty(f->section)) {
        return fill_section(out, text, f, entry);
    }
    if (f->section->type != YAML_MAPPING_NODE) {
        return SY_E_PARSE;
    }
    if (!is_flow(f->section)) {
        return insert_entry(out, text, f, entry);
    }

    SY_AUTO(buf_fini) struct buf pair = {.max = LIMIT_CLIENT_FILE};
    enum sy_code rc = buf_addf(&pair, "%s: ", entry->name);

    if (rc == SY_E_OK) {
        rc = put_flow(&pair, entry->fields);
    }
    return rc == SY_E_OK ? insert_flow(out, text, f->section, &pair) : rc;
}

/* Field by field, each time from the text as it is by then. */
static enum sy_code
change_fields(struct buf *out, const struct buf *text, const struct edit_entry *entry)
{
    SY_AUTO(buf_fini) struct buf now = {.max = LIMIT_CLIENT_FILE};
    enum sy_code rc = buf_add(out, buf_view(text), text->len);

    for (size_t i = 0; rc == SY_E_OK && entry->fields[i].key != NULL; i++) {
        SY_AUTO(yaml_file_fini) struct yaml_file f = {0};
        const struct edit_field *field = NULL;

        rc = yaml_file_load(&f, out, entry, NULL);
        if (rc == SY_E_OK && f.entry == NULL) {
            rc = SY_E_PARSE;
        }
        if (rc == SY_E_OK) {
            rc = edit_yaml_next_field(&field, &f, entry->fields);
        }
        if (rc != SY_E_OK || field == NULL) {
            return rc;
        }
        buf_reset(&now);
        rc = change_entry(&now, out, &f, entry, field);
        if (rc == SY_E_OK) {
            buf_reset(out);
            rc = buf_add(out, now.data, now.len);
        }
    }
    return rc;
}

/* Reads the result back: an edit that we can't understand is not written. */
static enum sy_code
check_result(struct yaml_file *before, const struct buf *out, const struct edit_entry *entry,
             struct sy_error *err)
{
    SY_AUTO(yaml_file_fini) struct yaml_file after = {0};
    const struct edit_field *field = entry->fields;
    enum sy_code rc = yaml_file_load(&after, out, entry, err);

    if (rc == SY_E_OK) {
        rc = after.entry != NULL ? edit_yaml_next_field(&field, &after, entry->fields) : SY_E_PARSE;
    }
    if (rc == SY_E_OK && (field != NULL || !edit_yaml_rest_is_same(before, &after, entry))) {
        rc = SY_E_PARSE;
    }
    return rc;
}

enum sy_code
edit_yaml(struct buf *out, const struct buf *text, const struct edit_entry *entry,
          enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(yaml_file_fini) struct yaml_file before = {0};
    const struct edit_field *field = NULL;
    enum sy_code rc = yaml_file_load(&before, text, entry, err);

    if (rc == SY_E_OK) {
        rc = edit_yaml_check_once(&before, entry, err);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    if (before.entry != NULL) {
        rc = edit_yaml_next_field(&field, &before, entry->fields);
    }
    if (rc == SY_E_OK && before.entry != NULL && field == NULL) {
        *ret_outcome = EDIT_UNCHANGED;
        rc = buf_add(out, buf_view(text), text->len);
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    *ret_outcome = before.entry != NULL ? EDIT_CHANGED : EDIT_ADDED;
    if (rc == SY_E_OK) {
        rc = before.entry != NULL ? change_fields(out, text, entry)
                                  : write_entry(out, text, &before, entry);
    }
    if (rc == SY_E_OK) {
        rc = check_result(&before, out, entry, err);
    }
    if (rc == SY_E_NOMEM || rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "%s", sy_code_text(rc));
    }
    if (rc != SY_E_OK && before.entry != NULL) {
        return sy_err_set(err, SY_E_PARSE,
                          "'%s.%s' is there with other values, in a form that can't be edited "
                          "safely: change it by hand",
                          entry->section, entry->name);
    }
    return rc == SY_E_OK
               ? rc
               : sy_err_set(err, SY_E_PARSE, "its form is unusual: it can't be edited safely");
}
