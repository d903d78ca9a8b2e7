#include "base/mem.h"
#include "config/config_internal.h"

void
config_layer_fini(struct config_layer *layer)
{
    for (size_t i = 0; layer->given != NULL && i < CONFIG_KEYS; i++) {
        if (layer->given->values[i] != NULL) {
            config_value_fini(layer->given->values[i]);
            mem_free(layer->given->values[i]);
        }
    }
    mem_free(layer->given);
    *layer = (struct config_layer){0};
}

static bool
has_room(struct config_layer *layer)
{
    if (layer->given == NULL) {
        layer->given = mem_alloc_zero(1, sizeof(*layer->given));
    }
    return layer->given != NULL;
}

struct config_value *
config_layer_open(struct config_layer *layer, size_t key)
{
    if (!has_room(layer)) {
        return NULL;
    }

    struct config_value **v = &layer->given->values[key];

    if (*v == NULL) {
        *v = mem_alloc_zero(1, sizeof(**v));
    }
    return *v;
}

struct config_value *
config_layer_value(const struct config_layer *layer, size_t key)
{
    struct config_value *v = layer->given != NULL ? layer->given->values[key] : NULL;

    return v != NULL && v->is_set ? v : NULL;
}

enum sy_code
config_layer_require(struct config_layer *layer, size_t key, size_t line, struct sy_error *err)
{
    if (!has_room(layer)) {
        return sy_err_nomem(err);
    }
    layer->given->required_line[key] = line;
    return SY_E_OK;
}

size_t
config_layer_required_line(const struct config_layer *layer, size_t key)
{
    return layer->given != NULL ? layer->given->required_line[key] : 0;
}
