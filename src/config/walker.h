#ifndef SY_CONFIG_WALKER_H
#define SY_CONFIG_WALKER_H

#include "base/yaml_walk.h"
#include "config/config_internal.h"

/*
 * What a pass over a text fills. walk_value.c reads the value of a key,
 * walk_file.c the sections of a file.
 */

#define CONFIG_SECTIONS_MAX 8

struct config_walker {
    struct yaml_walk y;
    struct place_text text; /* of `in`; y borrows it */
    const struct config_input *in;
    struct config_layer *layer;
    struct sy_error *err;
    struct {
        const char *name; /* static */
        struct config_place at;
    } sections[CONFIG_SECTIONS_MAX];
    size_t sections_n;
};

/* Begins at w->in; when it succeeds, yaml_walk_close(&w->y) is due. */
enum sy_code config_walker_open(struct config_walker *w) SY_NODISCARD;

struct config_place config_walker_place(const struct config_walker *w, yaml_mark_t mark);
/* Of the current event. */
struct config_place config_walker_here(const struct config_walker *w);

/* The current event begins the value of the row. */
enum sy_code config_walk_node(struct config_walker *w, struct config_value *v,
                              const struct config_row *row) SY_NODISCARD;

#endif
