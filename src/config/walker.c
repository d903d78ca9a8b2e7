#include <string.h>
#include <yaml.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/config_internal.h"

#define SECTIONS_MAX 8

/* One pass over the events of libyaml, which never holds more than one. */
struct walker {
    yaml_parser_t parser;
    yaml_event_t event; /* YAML_NO_EVENT: none */
    size_t depth;
    const struct config_input *in;
    struct config_layer *layer;
    struct sy_error *err;
    struct {
        const char *name;
        struct config_place at;
    } sections[SECTIONS_MAX];
    size_t sections_n;
};

static struct config_place
place_of(const struct walker *w, yaml_mark_t mark)
{
    struct config_place at = {.source = w->in->source, .name = w->in->name};

    /* A variable or a flag is one line. */
    if (at.source == CONFIG_FROM_SYSTEM || at.source == CONFIG_FROM_USER) {
        at.line = mark.line + 1;
        at.column = mark.column + 1;
    }
    return at;
}

static struct config_place
here(const struct walker *w)
{
    return place_of(w, w->event.start_mark);
}

struct config_place
config_place_of_byte(const struct config_input *in, size_t offset)
{
    struct config_place at = {.source = in->source, .name = in->name, .line = 1, .column = 1};

    for (size_t i = 0; i < offset && i < in->len; i++) {
        if (in->text[i] == '\n') {
            at.line++;
            at.column = 1;
        } else if (((unsigned char)in->text[i] & 0xC0U) != 0x80U) {
            at.column++;
        }
    }
    return at;
}

enum sy_code
config_check_utf8(const struct config_input *in, struct sy_error *err)
{
    size_t good = utf8_valid_prefix(in->text, in->len);

    if (good == in->len) {
        return SY_E_OK;
    }

    struct config_place at = config_place_of_byte(in, good);

    return config_error(err, &at, "invalid UTF-8 (byte 0x%02x)",
                        (unsigned)(unsigned char)in->text[good]);
}

static enum sy_code
syntax_error(struct walker *w)
{
    const yaml_parser_t *p = &w->parser;
    const char *problem = p->problem != NULL ? p->problem : "not understood";
    struct config_place at = place_of(w, p->problem_mark);

    if (p->error == YAML_MEMORY_ERROR) {
        return sy_err_nomem(w->err);
    }
    if (p->error == YAML_READER_ERROR) {
        at = config_place_of_byte(w->in, p->problem_offset);
    }
    return config_error(w->err, &at, "not valid YAML: %s", problem);
}

static const yaml_char_t *
anchor_of(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT) {
        return e->data.scalar.anchor;
    }
    if (e->type == YAML_SEQUENCE_START_EVENT) {
        return e->data.sequence_start.anchor;
    }
    return e->type == YAML_MAPPING_START_EVENT ? e->data.mapping_start.anchor : NULL;
}

static const yaml_char_t *
tag_of(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT) {
        return e->data.scalar.tag;
    }
    if (e->type == YAML_SEQUENCE_START_EVENT) {
        return e->data.sequence_start.tag;
    }
    return e->type == YAML_MAPPING_START_EVENT ? e->data.mapping_start.tag : NULL;
}

static bool
is_start(const yaml_event_t *e)
{
    return e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
}

static bool
is_end(const yaml_event_t *e)
{
    return e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;
}

/* The next event, none of those that we do not take. */
static enum sy_code
next(struct walker *w)
{
    yaml_event_delete(&w->event);
    if (yaml_parser_parse(&w->parser, &w->event) == 0) {
        return syntax_error(w);
    }

    const yaml_event_t *e = &w->event;
    struct config_place at = here(w);

    if (e->type == YAML_ALIAS_EVENT) {
        return config_error(w->err, &at, "an alias (*name); write the value out");
    }
    if (anchor_of(e) != NULL) {
        return config_error(w->err, &at, "an anchor (&name), which has no use here; take it out");
    }
    if (tag_of(e) != NULL) {
        return config_error(w->err, &at, "a tag (!name), which has no use here; take it out");
    }
    if (is_start(e) && ++w->depth > LIMIT_CONFIG_DEPTH) {
        return config_error(w->err, &at, "nesting deeper than %d levels", LIMIT_CONFIG_DEPTH);
    }
    if (is_end(e)) {
        w->depth--;
    }
    return SY_E_OK;
}

static const char *
bytes_of(const yaml_event_t *e)
{
    return (const char *)e->data.scalar.value;
}

static struct config_text
text_of(const struct walker *w, const yaml_event_t *e)
{
    return (struct config_text){
        .bytes = bytes_of(e),
        .len = e->data.scalar.length,
        .is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
        .home = w->in->home,
        .at = place_of(w, e->start_mark),
    };
}

/* Nothing stands behind "key:", or null does. */
static bool
is_nothing(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (e->data.scalar.length == 0 || str_eq(bytes_of(e), "~") || str_eq(bytes_of(e), "null"));
}

/* "a list", "a mapping" or "text". */
static const char *
kind_of(const yaml_event_t *e)
{
    if (e->type == YAML_SEQUENCE_START_EVENT) {
        return "a list";
    }
    if (e->type == YAML_MAPPING_START_EVENT) {
        return "a mapping";
    }
    return is_nothing(e) ? "nothing" : "text";
}

/* Passes over the node that the current event begins, since what is wrong
 * inside it is to be told before its type. */
static enum sy_code
skip_node(struct walker *w)
{
    if (!is_start(&w->event)) {
        return SY_E_OK;
    }

    size_t outside = w->depth - 1;

    while (!is_end(&w->event) || w->depth != outside) {
        enum sy_code rc = next(w);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

static enum sy_code
wrong_node(struct walker *w, const struct config_row *row)
{
    struct config_place at = here(w);
    const char *kind = kind_of(&w->event);
    enum sy_code rc = skip_node(w);

    return rc != SY_E_OK ? rc : config_error_type(w->err, &at, row, kind);
}

/* An item or a name that has to be text. */
static enum sy_code
wrong_part(struct walker *w, const char *what)
{
    struct config_place at = here(w);
    const char *kind = kind_of(&w->event);
    enum sy_code rc = skip_node(w);

    return rc != SY_E_OK ? rc : config_error(w->err, &at, "expected %s, got %s", what, kind);
}

static enum sy_code
walk_list(struct walker *w, struct config_value *v, const struct config_row *row)
{
    for (;;) {
        enum sy_code rc = next(w);

        if (rc != SY_E_OK || w->event.type == YAML_SEQUENCE_END_EVENT) {
            return rc;
        }
        if (w->event.type != YAML_SCALAR_EVENT) {
            return wrong_part(w, "text as an entry of the list");
        }

        struct config_text t = text_of(w, &w->event);

        rc = config_value_item(v, row, &t, w->err);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

/* The current event is a name; its value follows. */
static enum sy_code
walk_entry(struct walker *w, struct config_value *v, const struct config_row *row,
           struct config_place *places)
{
    if (w->event.type != YAML_SCALAR_EVENT) {
        return wrong_part(w, "a variable name");
    }

    struct config_text name = text_of(w, &w->event);
    size_t found = config_value_find(v, name.bytes, name.len);

    if (found < v->list.n) {
        struct config_shown shown;

        return config_error(w->err, &name.at, "duplicate key '%s' (first at line %zu, column %zu)",
                            config_visible(&shown, name.bytes, name.len), places[found].line,
                            places[found].column);
    }

    /* next() lets go of the event; the name is needed beyond it. */
    yaml_event_t name_event = w->event;

    w->event = (yaml_event_t){0};

    enum sy_code rc = next(w);

    if (rc == SY_E_OK && w->event.type != YAML_SCALAR_EVENT) {
        rc = wrong_part(w, "text as the value of a variable");
    } else if (rc == SY_E_OK) {
        struct config_text value = text_of(w, &w->event);

        places[v->list.n] = name.at;
        rc = config_value_entry(v, row, &name, &value, w->err);
    }
    yaml_event_delete(&name_event);
    return rc;
}

static enum sy_code
walk_map(struct walker *w, struct config_value *v, const struct config_row *row)
{
    /* One more than can be added, for the entry that is refused. */
    struct config_place *places = mem_alloc_zero(row->items_max + 1, sizeof(*places));
    enum sy_code rc = SY_E_OK;

    if (places == NULL) {
        return sy_err_nomem(w->err);
    }
    while (rc == SY_E_OK) {
        rc = next(w);
        if (rc != SY_E_OK || w->event.type == YAML_MAPPING_END_EVENT) {
            break;
        }
        rc = walk_entry(w, v, row, places);
    }
    mem_free(places);
    return rc;
}

/* The current event begins the value of the row. */
static enum sy_code
walk_node(struct walker *w, struct config_value *v, const struct config_row *row)
{
    if (w->event.type == YAML_SCALAR_EVENT) {
        struct config_text t = text_of(w, &w->event);

        return config_value_scalar(v, row, &t, w->err);
    }
    if (row->type == CONFIG_LIST && w->event.type == YAML_SEQUENCE_START_EVENT) {
        return walk_list(w, v, row);
    }
    if (row->type == CONFIG_MAP && w->event.type == YAML_MAPPING_START_EVENT) {
        return walk_map(w, v, row);
    }
    return wrong_node(w, row);
}

static enum sy_code
unknown_key(struct walker *w, const char *section)
{
    struct config_place at = here(w);
    const char *got = bytes_of(&w->event);
    size_t len = w->event.data.scalar.length;
    const char *near = config_nearest_in_section(section, got, len);
    struct config_shown shown;

    (void)config_visible(&shown, got, len);
    if (near != NULL) {
        return config_error(w->err, &at, "unknown key '%s.%s' (did you mean '%s'?)", section,
                            shown.text, near);
    }
    near = config_same_elsewhere(got, len);
    if (near != NULL) {
        return config_error(w->err, &at, "unknown key '%s.%s' (did you mean '%s'?)", section,
                            shown.text, near);
    }
    return config_error(w->err, &at, "unknown key '%s.%s' (`shellyard config show` lists the keys)",
                        section, shown.text);
}

static enum sy_code
duplicate_key(struct walker *w, const struct config_place *first)
{
    struct config_place at = here(w);
    struct config_shown shown;

    return config_error(w->err, &at, "duplicate key '%s' (first at line %zu, column %zu)",
                        config_visible(&shown, bytes_of(&w->event), w->event.data.scalar.length),
                        first->line, first->column);
}

/* The current event is the value of a section. */
static enum sy_code
walk_section(struct walker *w, const char *section)
{
    if (is_nothing(&w->event)) {
        return SY_E_OK;
    }
    if (w->event.type != YAML_MAPPING_START_EVENT) {
        return wrong_part(w, "keys of the section");
    }
    for (;;) {
        enum sy_code rc = next(w);

        if (rc != SY_E_OK || w->event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        if (w->event.type != YAML_SCALAR_EVENT) {
            return wrong_part(w, "a key");
        }

        size_t key =
            config_find_in_section(section, bytes_of(&w->event), w->event.data.scalar.length);

        if (key == CONFIG_KEYS) {
            return unknown_key(w, section);
        }

        struct config_value *v = &w->layer->values[key];
        struct config_place key_at = here(w);

        if (v->is_set) {
            return duplicate_key(w, &v->place);
        }
        config_value_begin(v, &config_rows[key], &key_at);
        rc = next(w);
        if (rc == SY_E_OK) {
            rc = walk_node(w, v, &config_rows[key]);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

static enum sy_code
walk_requirement(struct walker *w)
{
    if (w->event.type != YAML_SCALAR_EVENT) {
        return wrong_part(w, "a key such as sandbox.mode");
    }

    struct config_place at = here(w);
    const char *got = bytes_of(&w->event);
    size_t len = w->event.data.scalar.length;
    size_t key = config_find_key(got, len);
    struct config_shown shown;

    if (key == CONFIG_KEYS) {
        const char *near = config_nearest_key(got, len);

        (void)config_visible(&shown, got, len);
        return near != NULL ? config_error(w->err, &at, "unknown key '%s' (did you mean '%s'?)",
                                           shown.text, near)
                            : config_error(w->err, &at,
                                           "unknown key '%s' (requirements lists whole keys such "
                                           "as sandbox.mode)",
                                           shown.text);
    }
    if (w->layer->required_line[key] != 0) {
        return config_error(w->err, &at, "'%s' is listed twice (first at line %zu)",
                            config_rows[key].info.key, w->layer->required_line[key]);
    }
    w->layer->required_line[key] = at.line;
    return SY_E_OK;
}

/* The current event is the value of `requirements`. */
static enum sy_code
walk_requirements(struct walker *w)
{
    if (is_nothing(&w->event)) {
        return SY_E_OK;
    }
    if (w->event.type != YAML_SEQUENCE_START_EVENT) {
        return wrong_part(w, "a list of keys such as [sandbox.mode]");
    }
    for (;;) {
        enum sy_code rc = next(w);

        if (rc != SY_E_OK || w->event.type == YAML_SEQUENCE_END_EVENT) {
            return rc;
        }
        rc = walk_requirement(w);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

static enum sy_code
unknown_section(struct walker *w)
{
    struct config_place at = here(w);
    const char *got = bytes_of(&w->event);
    size_t len = w->event.data.scalar.length;
    struct config_shown shown;
    size_t key = config_find_key(got, len);
    const char *near = config_nearest_section(got, len, w->in->source == CONFIG_FROM_SYSTEM);

    (void)config_visible(&shown, got, len);
    if (key < CONFIG_KEYS) {
        const char *name = config_short_name(&config_rows[key]);

        return config_error(w->err, &at, "unknown key '%s' (write '%s:' below '%.*s:')", shown.text,
                            name, (int)(name - config_rows[key].info.key - 1),
                            config_rows[key].info.key);
    }
    if (near == NULL) {
        near = config_same_elsewhere(got, len);
    }
    if (near != NULL) {
        return config_error(w->err, &at, "unknown key '%s' (did you mean '%s'?)", shown.text, near);
    }
    return config_error(w->err, &at, "unknown key '%s' (`shellyard config show` lists the keys)",
                        shown.text);
}

/* The current event is a key of the outermost mapping. */
static enum sy_code
walk_root_key(struct walker *w)
{
    static const char requirements[] = "requirements";

    if (w->event.type != YAML_SCALAR_EVENT) {
        return wrong_part(w, "the name of a section");
    }

    struct config_place at = here(w);
    const char *got = bytes_of(&w->event);
    size_t len = w->event.data.scalar.length;
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
    SY_ASSERT(w->sections_n < SECTIONS_MAX);
    w->sections[w->sections_n].name = section;
    w->sections[w->sections_n++].at = at;

    enum sy_code rc = next(w);

    if (rc != SY_E_OK) {
        return rc;
    }
    return section == requirements ? walk_requirements(w) : walk_section(w, section);
}

/* The current event is the outermost node of a file. */
static enum sy_code
walk_root(struct walker *w)
{
    if (is_nothing(&w->event)) {
        return SY_E_OK;
    }
    if (w->event.type != YAML_MAPPING_START_EVENT) {
        return wrong_part(w, "sections such as 'sandbox:'");
    }
    for (;;) {
        enum sy_code rc = next(w);

        if (rc != SY_E_OK || w->event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        rc = walk_root_key(w);
        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

/* Up to the first event of the only node; *ret_empty when there is none. */
static enum sy_code
enter_document(struct walker *w, bool *ret_empty)
{
    enum sy_code rc = next(w);

    if (rc == SY_E_OK) {
        rc = next(w);
    }
    if (rc != SY_E_OK) {
        return rc;
    }
    *ret_empty = w->event.type == YAML_STREAM_END_EVENT;
    if (*ret_empty) {
        return SY_E_OK;
    }

    const yaml_event_t *e = &w->event;

    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end) {
        struct config_place at = here(w);

        return config_error(w->err, &at, "a %%TAG directive, which has no use here; take it out");
    }
    return next(w);
}

/* From the end of the node to the end of the text. */
static enum sy_code
leave_document(struct walker *w)
{
    enum sy_code rc = next(w);

    if (rc == SY_E_OK) {
        rc = next(w);
    }
    if (rc == SY_E_OK && w->event.type != YAML_STREAM_END_EVENT) {
        struct config_place at = here(w);

        return config_error(w->err, &at, "a second document; a configuration is one");
    }
    return rc;
}

static enum sy_code
open_walker(struct walker *w)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t skip = 0;
    enum sy_code rc = config_check_utf8(w->in, w->err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (yaml_parser_initialize(&w->parser) == 0) {
        return sy_err_nomem(w->err);
    }
    /* libyaml looks for a byte order mark only while it guesses the encoding. */
    if (w->in->len >= sizeof(mark) - 1 && memcmp(w->in->text, mark, sizeof(mark) - 1) == 0) {
        skip = sizeof(mark) - 1;
    }
    yaml_parser_set_encoding(&w->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w->parser, (const unsigned char *)w->in->text + skip,
                                 w->in->len - skip);
    return SY_E_OK;
}

static void
close_walker(struct walker *w)
{
    yaml_event_delete(&w->event);
    yaml_parser_delete(&w->parser);
}

enum sy_code
config_walk_file(struct config_layer *layer, const struct config_input *in, struct sy_error *err)
{
    struct walker w = {.in = in, .layer = layer, .err = err};
    bool is_empty = false;
    enum sy_code rc = open_walker(&w);

    if (rc != SY_E_OK) {
        return rc;
    }
    rc = enter_document(&w, &is_empty);
    if (rc == SY_E_OK && !is_empty) {
        rc = walk_root(&w);
        if (rc == SY_E_OK) {
            rc = leave_document(&w);
        }
    }
    close_walker(&w);
    return rc;
}

enum sy_code
config_walk_value(struct config_layer *layer, size_t key, const struct config_input *in,
                  struct sy_error *err)
{
    struct walker w = {.in = in, .layer = layer, .err = err};
    const struct config_row *row = &config_rows[key];
    struct config_value *v = &layer->values[key];
    struct config_place at = {.source = in->source, .name = in->name};
    struct config_text nothing = {.bytes = "", .is_plain = true, .at = at};
    bool is_empty = false;
    enum sy_code rc = open_walker(&w);

    if (rc != SY_E_OK) {
        return rc;
    }
    config_value_begin(v, row, &at);
    rc = enter_document(&w, &is_empty);
    if (rc == SY_E_OK && is_empty) {
        rc = config_value_scalar(v, row, &nothing, err);
    } else if (rc == SY_E_OK) {
        rc = walk_node(&w, v, row);
        if (rc == SY_E_OK) {
            rc = leave_document(&w);
        }
    }
    close_walker(&w);
    return rc;
}
