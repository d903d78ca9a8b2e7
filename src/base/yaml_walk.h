#ifndef SY_BASE_YAML_WALK_H
#define SY_BASE_YAML_WALK_H

#include <yaml.h>

#include "base/place.h"

/*
 * One pass over the events of libyaml, of which it holds one at a time. What
 * has no use in a file that people write is an error: aliases, anchors, tags,
 * a second document, nesting deeper than LIMIT_CONFIG_DEPTH. Errors are
 * SY_E_CONFIG with their place. A user sets `in`, `noun` and `err` and leaves
 * the rest zero. Not in the small program, which has no libyaml.
 */
struct yaml_walk {
    const struct place_text *in;
    const char *noun; /* "a configuration": what the text is, for errors */
    struct sy_error *err;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; YAML_NO_EVENT: none */
    size_t depth;
};

/* Begins at the text; when it succeeds, close is due. */
enum sy_code yaml_walk_open(struct yaml_walk *w) SY_NODISCARD;
void yaml_walk_close(struct yaml_walk *w);
/* Up to the first event of the only node; *ret_empty when there is none. */
enum sy_code yaml_walk_enter(struct yaml_walk *w, bool *ret_empty) SY_NODISCARD;
/* From the end of the node to the end of the text. */
enum sy_code yaml_walk_leave(struct yaml_walk *w) SY_NODISCARD;
/* The next event, none of those that we do not take. */
enum sy_code yaml_walk_next(struct yaml_walk *w) SY_NODISCARD;
/* Passes over the node that the current event begins, since what is wrong
 * inside it is to be told before its type. */
enum sy_code yaml_walk_skip(struct yaml_walk *w) SY_NODISCARD;

struct place yaml_walk_place(const struct yaml_walk *w, yaml_mark_t mark);
/* Of the current event. */
struct place yaml_walk_here(const struct yaml_walk *w);

/* Of a scalar event. */
const char *yaml_walk_bytes(const yaml_event_t *e);
/* Nothing stands behind "key:", or null does. */
bool yaml_walk_is_nothing(const yaml_event_t *e);
/* "a list", "a mapping", "text" or "nothing". */
const char *yaml_walk_kind(const yaml_event_t *e);
/* The error for a node in the place of `what`. */
enum sy_code yaml_walk_wrong_part(struct yaml_walk *w, const char *what);

#endif
