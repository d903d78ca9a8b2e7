#include "cli/edit_yaml.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"

void
yaml_file_fini(struct yaml_file *f)
{
    if (f->is_loaded) {
        yaml_document_delete(&f->doc);
    }
}

const yaml_node_t *
yaml_file_get(struct yaml_file *f, const yaml_node_t *map, const char *key,
              const yaml_node_t **ret_key)
{
    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        return NULL;
    }
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *k = yaml_document_get_node(&f->doc, p->key);

        if (k != NULL && k->type == YAML_SCALAR_NODE &&
            str_is(key, (const char *)k->data.scalar.value, k->data.scalar.length)) {
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

enum sy_code
yaml_file_load(struct yaml_file *ret, const struct buf *text, const struct edit_entry *entry,
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
        ret->section = yaml_file_get(ret, ret->root, entry->section, &ret->section_key);
        ret->entry = yaml_file_get(ret, ret->section, entry->name, NULL);
    }
    return rc;
}

static bool
scalar_is(const yaml_node_t *node, const char *text)
{
    return node != NULL && node->type == YAML_SCALAR_NODE &&
           str_is(text, (const char *)node->data.scalar.value, node->data.scalar.length);
}

/* A second pair with the key: readers take the first, the last, or none. */
static bool
stands_twice(struct yaml_file *f, const yaml_node_t *map, const char *key)
{
    size_t n = 0;

    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        return false;
    }
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        n += scalar_is(yaml_document_get_node(&f->doc, p->key), key) ? 1 : 0;
    }
    return n > 1;
}

enum sy_code
edit_yaml_check_once(struct yaml_file *f, const struct edit_entry *entry, struct sy_error *err)
{
    const char *what = stands_twice(f, f->root, entry->section)   ? entry->section
                       : stands_twice(f, f->section, entry->name) ? entry->name
                                                                  : NULL;

    for (size_t i = 0; what == NULL && entry->fields[i].key != NULL; i++) {
        what = stands_twice(f, f->entry, entry->fields[i].key) ? entry->fields[i].key : NULL;
    }
    return what == NULL ? SY_E_OK : sy_err_set(err, SY_E_PARSE, "'%s' stands there twice", what);
}

bool
edit_yaml_is_empty(const yaml_node_t *n)
{
    return (n->type == YAML_SCALAR_NODE && n->data.scalar.length == 0) ||
           (n->type == YAML_MAPPING_NODE &&
            n->data.mapping.pairs.top == n->data.mapping.pairs.start);
}

size_t
edit_yaml_count(const yaml_node_t *list)
{
    return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

/* Does a node say what the JSON value `want` does? Lists hold strings, and may go on where
 * only their head is ours. */
static bool
node_says(yaml_document_t *doc, const yaml_node_t *node, const struct js *want,
          enum edit_owner owner)
{
    if (js_type(want) == JS_STRING) {
        return scalar_is(node, js_str(want));
    }
    if (js_type(want) != JS_ARRAY || node == NULL || node->type != YAML_SEQUENCE_NODE ||
        edit_yaml_count(node) < js_count(want) ||
        (edit_yaml_count(node) > js_count(want) && owner != EDIT_OUR_HEAD)) {
        return false;
    }
    for (size_t i = 0; i < js_count(want); i++) {
        const struct js *item = js_at(want, i);

        if (js_type(item) != JS_STRING ||
            !scalar_is(yaml_document_get_node(doc, node->data.sequence.items.start[i]),
                       js_str(item))) {
            return false;
        }
    }
    return true;
}

/* Does the entry already say what we want of one field? */
static enum sy_code
field_is_set(bool *ret, struct yaml_file *f, const struct edit_field *field)
{
    SY_AUTO(json_doc_fini) struct json_doc doc = {0};
    SY_AUTO(buf_fini) struct buf text = {.max = LIMIT_CLIENT_FILE};
    const yaml_node_t *node = yaml_file_get(f, f->entry, field->key, NULL);

    *ret = node != NULL && (field->owner == EDIT_THEIRS || scalar_is(node, field->value));
    if (node == NULL || field->owner == EDIT_THEIRS || strchr("[\"", field->value[0]) == NULL) {
        return SY_E_OK;
    }

    /* The parser takes no bare string. */
    enum sy_code rc = buf_addf(&text, "[%s]", field->value);

    if (rc == SY_E_OK) {
        rc = json_parse(&doc, text.data, text.len, NULL);
    }
    if (rc == SY_E_OK) {
        *ret = node_says(&f->doc, node, js_at(doc.root, 0), field->owner);
    }
    return rc;
}

enum sy_code
edit_yaml_next_field(const struct edit_field **ret, struct yaml_file *f,
                     const struct edit_field *fields)
{
    enum sy_code rc = SY_E_OK;

    *ret = NULL;
    for (const struct edit_field *field = fields; field->key != NULL && rc == SY_E_OK; field++) {
        bool good = false;

        rc = field_is_set(&good, f, field);
        *ret = good ? *ret : field;
    }
    return rc;
}

/*
 * A walk through both documents. Level 0 is the root, 1 our section,
 * 2 our entry, whose fields may differ.
 */
struct compare {
    struct yaml_file *f[2];
    const struct edit_entry *entry;
    size_t budget; /* bounds what aliases can multiply */
};

/* The pair at or after `p` that must be the same in both, NULL if there is none. */
static const yaml_node_pair_t *
next_pair(const struct compare *c, int side, const yaml_node_t *map, const yaml_node_pair_t *p,
          size_t level)
{
    for (; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&c->f[side]->doc, p->key);
        bool is_ours = (level == 0 && scalar_is(key, c->entry->section)) ||
                       (level == 1 && scalar_is(key, c->entry->name));

        for (const struct edit_field *e = c->entry->fields; level == 2 && e->key != NULL; e++) {
            is_ours = is_ours || scalar_is(key, e->key);
        }
        if (!is_ours) {
            return p;
        }
    }
    return NULL;
}

/* Bounded: `level` counts the depth. */
static bool same_nodes(struct compare *c, int x, int y, size_t level);

static bool
same_pairs(struct compare *c, // NOLINT(misc-no-recursion)
           const yaml_node_t *a, const yaml_node_t *b, size_t level)
{
    const yaml_node_pair_t *p = next_pair(c, 0, a, a->data.mapping.pairs.start, level);
    const yaml_node_pair_t *q = next_pair(c, 1, b, b->data.mapping.pairs.start, level);

    while (p != NULL && q != NULL) {
        /* Others' pairs are theirs all the way down. */
        if (!same_nodes(c, p->key, q->key, 3 + level) ||
            !same_nodes(c, p->value, q->value, 3 + level)) {
            return false;
        }
        p = next_pair(c, 0, a, p + 1, level);
        q = next_pair(c, 1, b, q + 1, level);
    }
    return p == NULL && q == NULL;
}

static bool
same_nodes(struct compare *c, int x, int y, size_t level) // NOLINT(misc-no-recursion)
{
    const yaml_node_t *a = yaml_document_get_node(&c->f[0]->doc, x);
    const yaml_node_t *b = yaml_document_get_node(&c->f[1]->doc, y);

    if (a == NULL || b == NULL || a->type != b->type || level > LIMIT_JSON_DEPTH ||
        c->budget-- == 0) {
        return false;
    }
    if (a->type == YAML_MAPPING_NODE) {
        return same_pairs(c, a, b, level);
    }
    if (a->type == YAML_SCALAR_NODE) {
        return a->data.scalar.style == b->data.scalar.style &&
               a->data.scalar.length == b->data.scalar.length &&
               memcmp(a->data.scalar.value, b->data.scalar.value, a->data.scalar.length) == 0;
    }
    if (edit_yaml_count(a) != edit_yaml_count(b)) {
        return false;
    }
    for (size_t i = 0; i < edit_yaml_count(a); i++) {
        if (!same_nodes(c, a->data.sequence.items.start[i], b->data.sequence.items.start[i],
                        level + 1)) {
            return false;
        }
    }
    return true;
}

static bool
is_filled_map(const yaml_node_t *node)
{
    return node != NULL && node->type == YAML_MAPPING_NODE;
}

bool
edit_yaml_rest_is_same(struct yaml_file *before, struct yaml_file *after,
                       const struct edit_entry *entry)
{
    struct compare c = {
        .f = {before, after},
          .entry = entry, .budget = 100000
    };
    const yaml_node_t *const levels[][2] = {
        {before->root,    after->root   },
        {before->section, after->section},
        {before->entry,   after->entry  }
    };

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        /* What was nothing, or empty, has lost nothing. */
        if (is_filled_map(levels[i][0]) &&
            (!is_filled_map(levels[i][1]) || !same_pairs(&c, levels[i][0], levels[i][1], i))) {
            return false;
        }
    }
    return true;
}
