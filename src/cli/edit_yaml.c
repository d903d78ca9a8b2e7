#include <string.h>

#include <yaml.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/edit.h"

/* A loaded document, and the places that an edit needs. */
struct yaml_file {
    yaml_document_t doc;
    bool is_loaded;
    const yaml_node_t *root;
    const yaml_node_t *section_key;
    const yaml_node_t *section;
    const yaml_node_t *entry;
};

static void
yaml_file_fini(struct yaml_file *f)
{
    if (f->is_loaded) {
        yaml_document_delete(&f->doc);
    }
}

/* The value of `key` in a mapping, and the key's own node. */
static const yaml_node_t *
get(struct yaml_file *f, const yaml_node_t *map, const char *key, const yaml_node_t **ret_key)
{
    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        return NULL;
    }
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *k = yaml_document_get_node(&f->doc, p->key);

        if (k != NULL && k->type == YAML_SCALAR_NODE && k->data.scalar.length == strlen(key) &&
            memcmp(k->data.scalar.value, key, strlen(key)) == 0) {
            if (ret_key != NULL) {
                *ret_key = k;
            }
            return yaml_document_get_node(&f->doc, p->value);
        }
    }
    return NULL;
}

static enum sy_code
refuse(const yaml_parser_t *parser, struct sy_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return sy_err_nomem(err);
    }
    return sy_err_set(err, SY_E_PARSE, "bad YAML at line %zu: %s", parser->problem_mark.line + 1,
                      parser->problem != NULL ? parser->problem : "unreadable");
}

/* Loads exactly one document whose root is a mapping (or nothing at all). */
static enum sy_code
load(struct yaml_file *ret, const struct buf *text, const struct edit_entry *entry,
     struct sy_error *err)
{
    yaml_parser_t parser;
    yaml_document_t second;
    enum sy_code rc = SY_E_OK;

    memset(ret, 0, sizeof(*ret));
    if (yaml_parser_initialize(&parser) == 0) {
        return sy_err_nomem(err);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)buf_view(text), text->len);
    if (yaml_parser_load(&parser, &ret->doc) == 0) {
        rc = refuse(&parser, err);
    } else {
        ret->is_loaded = true;
        ret->root = yaml_document_get_root_node(&ret->doc);
        if (ret->root != NULL && yaml_parser_load(&parser, &second) == 0) {
            rc = refuse(&parser, err);
        } else if (ret->root != NULL) {
            if (yaml_document_get_root_node(&second) != NULL) {
                rc = sy_err_set(err, SY_E_PARSE, "it holds more than one document");
            }
            yaml_document_delete(&second);
        }
    }
    yaml_parser_delete(&parser);
    if (rc == SY_E_OK && ret->root != NULL && ret->root->type != YAML_MAPPING_NODE) {
        rc = sy_err_set(err, SY_E_PARSE, "its root is not a mapping");
    }
    if (rc == SY_E_OK) {
        ret->section = get(ret, ret->root, entry->section, &ret->section_key);
        ret->entry = get(ret, ret->section, entry->name, NULL);
    }
    return rc;
}

/* A scalar equals a JSON text if it is the same word, or the same string
 * without its quotes and the backslashes before quotes and backslashes. */
static bool
scalar_says(const yaml_node_t *node, const char *json)
{
    bool is_string = json[0] == '"';
    size_t k = 0;

    if (node == NULL || node->type != YAML_SCALAR_NODE) {
        return false;
    }
    for (size_t i = is_string ? 1 : 0; json[i] != '\0'; i++) {
        if (is_string && json[i] == '"' && json[i + 1] == '\0') {
            break;
        }
        if (is_string && json[i] == '\\' && (json[i + 1] == '"' || json[i + 1] == '\\')) {
            i++;
        }
        if (k >= node->data.scalar.length || (char)node->data.scalar.value[k] != json[i]) {
            return false;
        }
        k++;
    }
    return k == node->data.scalar.length;
}

/* Only scalars are compared: the one list that we write, args, goes with cmd. */
static bool
entry_is_ours(struct yaml_file *f, const struct edit_field *fields)
{
    for (size_t i = 0; fields[i].key != NULL; i++) {
        const yaml_node_t *value = get(f, f->entry, fields[i].key, NULL);

        if (fields[i].is_ours && fields[i].value[0] != '[' &&
            !scalar_says(value, fields[i].value)) {
            return false;
        }
    }
    return f->entry != NULL;
}

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

/* `extensions:` with nothing, or with {}: its line is written anew. */
static enum sy_code
fill_section(struct buf *out, const struct buf *text, const struct yaml_file *f,
             const struct edit_entry *entry)
{
    size_t at = line_start(text, f->section_key->start_mark.line);
    size_t after = line_start(text, f->section_key->start_mark.line + 1);
    enum sy_code rc = put_text(out, text, 0, at);

    if (rc == SY_E_OK) {
        rc = buf_addf(out, "%s:\n", entry->section);
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

static bool
is_empty_node(const yaml_node_t *n)
{
    return (n->type == YAML_SCALAR_NODE && n->data.scalar.length == 0) ||
           (n->type == YAML_MAPPING_NODE &&
            n->data.mapping.pairs.top == n->data.mapping.pairs.start);
}

static enum sy_code
write_entry(struct buf *out, const struct buf *text, struct yaml_file *f,
            const struct edit_entry *entry)
{
    if (f->section == NULL) {
        return append_section(out, text, entry);
    }
    if (is_empty_node(f->section)) {
        return fill_section(out, text, f, entry);
    }
    if (f->section->type != YAML_MAPPING_NODE ||
        f->section->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
        return SY_E_PARSE;
    }
    return insert_entry(out, text, f, entry);
}

enum sy_code
edit_yaml(struct buf *out, const struct buf *text, const struct edit_entry *entry,
          enum edit_outcome *ret_outcome, struct sy_error *err)
{
    SY_AUTO(yaml_file_fini) struct yaml_file before = {0};
    SY_AUTO(yaml_file_fini) struct yaml_file after = {0};
    enum sy_code rc = load(&before, text, entry, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (before.entry != NULL && !entry_is_ours(&before, entry->fields)) {
        return sy_err_set(err, SY_E_PARSE, "'%s.%s' is there with other values", entry->section,
                          entry->name);
    }
    if (before.entry != NULL) {
        *ret_outcome = EDIT_UNCHANGED;
        rc = buf_add(out, buf_view(text), text->len);
        return rc == SY_E_OK ? rc : sy_err_nomem(err);
    }
    *ret_outcome = EDIT_ADDED;
    rc = write_entry(out, text, &before, entry);
    if (rc == SY_E_NOMEM || rc == SY_E_LIMIT) {
        return sy_err_set(err, rc, "%s", sy_code_text(rc));
    }
    /* Read back: an edit that we can't understand is not written. */
    if (rc != SY_E_OK || load(&after, out, entry, err) != SY_E_OK ||
        !entry_is_ours(&after, entry->fields)) {
        return sy_err_set(err, SY_E_PARSE, "its form is unusual: it can't be edited safely");
    }
    return SY_E_OK;
}
