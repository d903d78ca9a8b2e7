#ifndef SY_CLI_EDIT_YAML_H
#define SY_CLI_EDIT_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include <yaml.h>

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

/* Loads exactly one document whose root is a mapping (or nothing at all). */
enum sy_code yaml_file_load(struct yaml_file *ret, const struct buf *text,
                            const struct edit_entry *entry, struct sy_error *err) SY_NODISCARD;
void yaml_file_fini(struct yaml_file *f);
/* The value of `key` in a mapping (else NULL), and in *ret_key, if not NULL, the key's node. */
const yaml_node_t *yaml_file_get(struct yaml_file *f, const yaml_node_t *map, const char *key,
                                 const yaml_node_t **ret_key);

/* SY_E_PARSE where the section, the entry or one of its fields stands there twice. */
enum sy_code edit_yaml_check_once(struct yaml_file *f, const struct edit_entry *entry,
                                  struct sy_error *err) SY_NODISCARD;
/* Nothing, or {}. */
bool edit_yaml_is_empty(const yaml_node_t *node);
/* Of a sequence. */
size_t edit_yaml_count(const yaml_node_t *list);
/* The last field that is not as we want it (what lacks is put first, so that it ends up
 * in our order); NULL: none. */
enum sy_code edit_yaml_next_field(const struct edit_field **ret, struct yaml_file *f,
                                  const struct edit_field *fields) SY_NODISCARD;
/* Did an edit leave alone what is not ours? */
bool edit_yaml_rest_is_same(struct yaml_file *before, struct yaml_file *after,
                            const struct edit_entry *entry);

#endif
