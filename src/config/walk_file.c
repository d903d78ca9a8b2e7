#include "base/str.h"
#include "config/walker.h"

static enum sy_code
unknown_key(struct config_walker *w, const char *section)
{
    struct config_place at = config_walker_here(w);
    const char *got = yaml_walk_bytes(&w->y.event);
    size_t len = w->y.event.data.scalar.length;
    const char *near = config_nearest_in_section(section, got, len);
    struct place_shown shown;
    struct config_same same;

    (void)place_visible(&shown, got, len);
    if (near != NULL) {
        return config_error(w->err, &at, "unknown key '%s.%s' (did you mean '%s'?)", section,
                            shown.text, near);
    }
    near = config_same_elsewhere(&same, got, len);
    if (near != NULL) {
        return config_error(w->err, &at, "unknown key '%s.%s' (did you mean '%s'?)", section,
                            shown.text, near);
    }
    return config_error(w->err, &at, "unknown key '%s.%s' (`shellyard config show` lists the keys)",
                        section, shown.text);
}

static enum sy_code
duplicate_key(struct config_walker *w, const struct config_place *first)
{
    struct config_place at = config_walker_here(w);

    return config_error_duplicate(w->err, &at, yaml_walk_bytes(&w->y.event),
                                  w->y.event.data.scalar.length, first);
}

/* The current event is the value of a section. */
static enum sy_code
walk_section(struct config_walker *w, const char *section)
{
    if (yaml_walk_is_nothing(&w->y.event)) {
        return SY_E_OK;
    }
    if (w->y.event.type != YAML_MAPPING_START_EVENT) {
        return yaml_walk_wrong_part(&w->y, "keys of the section");
    }
    for (;;) {
        enum sy_code rc = yaml_walk_next(&w->y);

        if (rc != SY_E_OK || w->y.event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        if (w->y.event.type != YAML_SCALAR_EVENT) {
            return yaml_walk_wrong_part(&w->y, "a key");
        }

        size_t key = config_find_in_section(section, yaml_walk_bytes(&w->y.event),
                                            w->y.event.data.scalar.length);

        if (key == CONFIG_KEYS) {
            return unknown_key(w, section);
        }

        struct config_value *v = config_layer_open(w->layer, key);
        struct config_place key_at = config_walker_here(w);

        if (v == NULL) {
            return sy_err_nomem(w->err);
        }
        if (v->is_set) {
            return duplicate_key(w, &v->place);
        }
        config_value_begin(v, &config_rows[key], &key_at);
        rc = yaml_walk_next(&w->y);
        if (rc == SY_E_OK) {
            rc = config_walk_node(w, v, &config_rows[key]);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

static enum sy_code
walk_requirement(struct config_walker *w)
{
    if (w->y.event.type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&w->y, "a key such as sandbox.mode");
    }

    struct config_place at = config_walker_here(w);
    const char *got = yaml_walk_bytes(&w->y.event);
    size_t len = w->y.event.data.scalar.length;
    size_t key = config_find_key(got, len);
    struct place_shown shown;

    if (key == CONFIG_KEYS) {
        const char *near = config_nearest_key(got, len);

        (void)place_visible(&shown, got, len);
        return near != NULL ? config_error(w->err, &at, "unknown key '%s' (did you mean '%s'?)",
                                           shown.text, near)
                            : config_error(w->err, &at,
                                           "unknown key '%s' (requirements lists whole keys such "
                                           "as sandbox.mode)",
                                           shown.text);
    }

    size_t first = config_layer_required_line(w->layer, key);

    if (first != 0) {
        return config_error(w->err, &at, "'%s' is listed twice (first at line %zu)",
                            config_rows[key].info.key, first);
    }
    return config_layer_require(w->layer, key, at.line, w->err);
}

/* The current event is the value of `requirements`. */
static enum sy_code
walk_requirements(struct config_walker *w)
{
    if (yaml_walk_is_nothing(&w->y.event)) {
        return SY_E_OK;
    }
    if (w->y.event.type != YAML_SEQUENCE_START_EVENT) {
        return yaml_walk_wrong_part(&w->y, "a list of keys such as [sandbox.mode]");
    }
    for (;;) {
        enum sy_code rc = yaml_walk_next(&w->y);

        if (rc != SY_E_OK || w->y.event.type == YAML_SEQUENCE_END_EVENT) {
            return rc;
        }
        rc = walk_requirement(w);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

static enum sy_code
unknown_section(struct config_walker *w)
{
    struct config_place at = config_walker_here(w);
    const char *got = yaml_walk_bytes(&w->y.event);
    size_t len = w->y.event.data.scalar.length;
    struct place_shown shown;
    struct config_same same;
    size_t key = config_find_key(got, len);
    const char *near = config_nearest_section(got, len, w->in->source == CONFIG_FROM_SYSTEM);

    (void)place_visible(&shown, got, len);
    if (key < CONFIG_KEYS) {
        const char *name = config_short_name(&config_rows[key]);

        return config_error(w->err, &at, "unknown key '%s' (write '%s:' below '%.*s:')", shown.text,
                            name, (int)(name - config_rows[key].info.key - 1),
                            config_rows[key].info.key);
    }
    if (near == NULL) {
        near = config_same_elsewhere(&same, got, len);
    }
    if (near != NULL) {
        return config_error(w->err, &at, "unknown key '%s' (did you mean '%s'?)", shown.text, near);
    }
    return config_error(w->err, &at, "unknown key '%s' (`shellyard config show` lists the keys)",
                        shown.text);
}

/* The current event is a key of the outermost mapping. */
static enum sy_code
walk_root_key(struct config_walker *w)
{
    static const char requirements[] = "requirements";

    if (w->y.event.type != YAML_SCALAR_EVENT) {
        return yaml_walk_wrong_part(&w->y, "the name of a section");
    }

    struct config_place at = config_walker_here(w);
    const char *got = yaml_walk_bytes(&w->y.event);
    size_t len = w->y.event.data.scalar.length;
    const char *section = config_find_section(got, len);

    if (section == NULL && len == sizeof(requirements) - 1 && str_eq(got, requirements)) {
        if (w->in->source != CONFIG_FROM_SYSTEM) {
            return config_error(w->err, &at,
                                "'requirements' has a meaning in the system file only");
        }
        section = requirements;
    }
    if (section == NULL) {
        return unknown_section(w);
    }
    for (size_t i = 0; i < w->sections_n; i++) {
        if (w->sections[i].name == section) {
            return duplicate_key(w, &w->sections[i].at);
        }
    }
    SY_ASSERT(w->sections_n < CONFIG_SECTIONS_MAX);
    w->sections[w->sections_n].name = section;
    w->sections[w->sections_n++].at = at;

    enum sy_code rc = yaml_walk_next(&w->y);

    if (rc != SY_E_OK) {
        return rc;
    }
    return section == requirements ? walk_requirements(w) : walk_section(w, section);
}

/* The current event is the outermost node of a file. */
static enum sy_code
walk_root(struct config_walker *w)
{
    if (yaml_walk_is_nothing(&w->y.event)) {
        return SY_E_OK;
    }
    if (w->y.event.type != YAML_MAPPING_START_EVENT) {
        return yaml_walk_wrong_part(&w->y, "sections such as 'sandbox:'");
    }
    for (;;) {
        enum sy_code rc = yaml_walk_next(&w->y);

        if (rc != SY_E_OK || w->y.event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        rc = walk_root_key(w);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

enum sy_code
config_walk_file(struct config_layer *layer, const struct config_input *in, struct sy_error *err)
{
    struct config_walker w = {.in = in, .layer = layer, .err = err};
    bool is_empty = false;
    enum sy_code rc = config_walker_open(&w);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = yaml_walk_enter(&w.y, &is_empty);
    if (rc == SY_E_OK && !is_empty) {
        rc = walk_root(&w);
        if (rc == SY_E_OK) {
            rc = yaml_walk_leave(&w.y);
        }
    }
    yaml_walk_close(&w.y);
    return rc;
}
