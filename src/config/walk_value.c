#include "base/mem.h"
#include "config/walker.h"

static struct config_text
text_of(const struct config_walker *w, const yaml_event_t *e)
{
    return (struct config_text){
        .bytes = yaml_walk_bytes(e),
        .len = e->data.scalar.length,
        .is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
        .home = w->in->home,
        .at = config_walker_place(w, e->start_mark),
    };
}

static enum sy_code
wrong_node(struct config_walker *w, const struct config_row *row)
{
    struct config_place at = config_walker_here(w);
    const char *kind = yaml_walk_kind(&w->y.event);
    enum sy_code rc = yaml_walk_skip(&w->y);

    return rc != SY_E_OK ? rc : config_error_type(w->err, &at, row, kind);
}

static enum sy_code
walk_list(struct config_walker *w, struct config_value *v, const struct config_row *row)
{
    for (;;) {
        enum sy_code rc = yaml_walk_next(&w->y);

        if (rc != SY_E_OK || w->y.event.type == YAML_SEQUENCE_END_EVENT) {
            return rc;
        }
        if (w->y.event.type != YAML_SCALAR_EVENT) {
            return yaml_walk_wrong_part(&w->y, "text as an entry of the list");
        }

        struct config_text t = text_of(w, &w->y.event);

        rc = config_value_item(v, row, &t, w->err);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

/* The current event is a name; its value follows. */
static enum sy_code
walk_entry(struct config_walker *w, struct config_value *v, const struct config_row *row,
           struct config_place *places)
{
    if (w->y.event.type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&w->y, "a variable name");
    }

    struct config_text name = text_of(w, &w->y.event);
    size_t found = config_value_find(v, name.bytes, name.len);

    if (found < v->list.n) {
        return config_error_duplicate(w->err, &name.at, name.bytes, name.len, &places[found]);
    }

    /* yaml_walk_next() lets go of the event; the name is needed beyond it. */
    yaml_event_t name_event = w->y.event;

    w->y.event = (yaml_event_t){0};

    enum sy_code rc = yaml_walk_next(&w->y);

    if (rc == SY_E_OK && w->y.event.type != YAML_SCALAR_EVENT) {
        rc = yaml_walk_wrong_part(&w->y, "text as the value of a variable");
    } else if (rc == SY_E_OK) {
        struct config_text value = text_of(w, &w->y.event);

        places[v->list.n] = name.at;
        rc = config_value_entry(v, row, &name, &value, w->err);
    }
    yaml_event_delete(&name_event);
    return rc;
}

static enum sy_code
walk_map(struct config_walker *w, struct config_value *v, const struct config_row *row)
{
    /* One more than can be added, for the entry that is refused. */
    struct config_place *places = mem_alloc_zero(row->items_max + 1, sizeof(*places));
    enum sy_code rc = SY_E_OK;

    if (places == NULL) {
        return sy_err_nomem(w->err);
    }
    while (rc == SY_E_OK) {
        rc = yaml_walk_next(&w->y);
        if (rc != SY_E_OK || w->y.event.type == YAML_MAPPING_END_EVENT) {
            break;
        }
        rc = walk_entry(w, v, row, places);
    }
    mem_free(places);
    return rc;
}

enum sy_code
config_walk_node(struct config_walker *w, struct config_value *v, const struct config_row *row)
{
    if (w->y.event.type == YAML_SCALAR_EVENT) {
        struct config_text t = text_of(w, &w->y.event);

        return config_value_scalar(v, row, &t, w->err);
    }
    if (row->type == CONFIG_LIST && w->y.event.type == YAML_SEQUENCE_START_EVENT) {
        return walk_list(w, v, row);
    }
    if (row->type == CONFIG_MAP && w->y.event.type == YAML_MAPPING_START_EVENT) {
        return walk_map(w, v, row);
    }
    return wrong_node(w, row);
}

enum sy_code
config_walk_value(struct config_layer *layer, size_t key, const struct config_input *in,
                  struct sy_error *err)
{
    struct config_walker w = {.in = in, .layer = layer, .err = err};
    const struct config_row *row = &config_rows[key];
    struct config_value *v = config_layer_open(layer, key);
    struct config_place at = {.source = in->source, .name = in->name};
    struct config_text nothing = {.bytes = "", .is_plain = true, .at = at};
    bool is_empty = false;

    if (v == NULL) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = config_walker_open(&w);

    if (rc != SY_E_OK) {
        return rc;
    }
    config_value_begin(v, row, &at);
    rc = yaml_walk_enter(&w.y, &is_empty);
    if (rc == SY_E_OK && is_empty) {
        rc = config_value_scalar(v, row, &nothing, err);
    } else if (rc == SY_E_OK) {
        rc = config_walk_node(&w, v, row);
        if (rc == SY_E_OK) {
            rc = yaml_walk_leave(&w.y);
        }
    }
    yaml_walk_close(&w.y);
    return rc;
}
