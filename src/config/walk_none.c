#include "config/config_internal.h"

/*
 * In the place of walk_file.c and walk_value.c for the small program, which
 * has no YAML reader: what needs one is an error there, and the full program is
 * asked instead. Nobody reads the sentence.
 */
static enum sy_code
no_reader(const struct config_input *in, struct sy_error *err)
{
    struct config_place at = {.source = in->source, .name = in->name};

    return config_error(err, &at, "is read by the full program alone");
}

enum sy_code
config_walk_file(struct config_layer *layer, const struct config_input *in, struct sy_error *err)
{
    (void)layer;
    return no_reader(in, err);
}

enum sy_code
config_walk_value(struct config_layer *layer, size_t key, const struct config_input *in,
                  struct sy_error *err)
{
    (void)layer;
    (void)key;
    return no_reader(in, err);
}
