#ifndef SY_CONFIG_WALKER_H
#define SY_CONFIG_WALKER_H

#include <yaml.h>

#include "config/config_internal.h"

/*
 * One pass over the events of libyaml, of which it holds one at a time.
 * walker.c moves it, walk_value.c reads the value of a key, walk_file.c the
 * sections of a file.
 */

#define CONFIG_SECTIONS_MAX 8

struct config_walker {
    yaml_parser_t parser;
    yaml_event_t event; /* YAML_NO_EVENT: none */
    size_t depth;
    const struct config_input *in;
    struct config_layer *layer;
    struct sy_error *err;
    struct {
        const char *name; /* static */
        struct config_place at;
    } sections[CONFIG_SECTIONS_MAX];
    size_t sections_n;
};

/* Begins at w->in; when it succeeds, close is due. */
enum sy_code config_walker_open(struct config_walker *w) SY_NODISCARD;
void config_walker_close(struct config_walker *w);
/* Up to the first event of the only node; *ret_empty when there is none. */
enum sy_code config_walker_enter(struct config_walker *w, bool *ret_empty) SY_NODISCARD;
/* From the end of the node to the end of the text. */
enum sy_code config_walker_leave(struct config_walker *w) SY_NODISCARD;
/* The next event, none of those that we do not take. */
enum sy_code config_walker_next(struct config_walker *w) SY_NODISCARD;
/* Passes over the node that the current event begins, since what is wrong
 * inside it is to be told before its type. */
enum sy_code config_walker_skip(struct config_walker *w) SY_NODISCARD;

struct config_place config_walker_place(const struct config_walker *w, yaml_mark_t mark);
/* Of the current event. */
struct config_place config_walker_here(const struct config_walker *w);

/* Of a scalar event. */
const char *config_walker_bytes(const yaml_event_t *e);
/* Nothing stands behind "key:", or null does. */
bool config_walker_is_nothing(const yaml_event_t *e);
/* "a list", "a mapping", "text" or "nothing". */
const char *config_walker_kind(const yaml_event_t *e);
/* The error for a node in the place of `what`. */
enum sy_code config_walker_wrong_part(struct config_walker *w, const char *what);

/* The current event begins the value of the row. */
enum sy_code config_walk_node(struct config_walker *w, struct config_value *v,
                              const struct config_row *row) SY_NODISCARD;

#endif
