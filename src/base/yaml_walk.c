#include "base/yaml_walk.h"

#include <string.h>

#include "base/limits.h"
#include "base/str.h"

struct place
yaml_walk_place(const struct yaml_walk *w, yaml_mark_t mark)
{
    struct place at = {.prefix = w->in->prefix, .name = w->in->name};

    if (!w->in->is_one_line) {
        at.line = mark.line + 1;
        at.column = mark.column + 1;
    }
    return at;
}

struct place
yaml_walk_here(const struct yaml_walk *w)
{
    return yaml_walk_place(w, w->event.start_mark);
}

static enum sy_code
syntax_error(struct yaml_walk *w)
{
    const yaml_parser_t *p = &w->parser;
    const char *problem = p->problem != NULL ? p->problem : "not understood";
    struct place at = yaml_walk_place(w, p->problem_mark);

    if (p->error == YAML_MEMORY_ERROR) {
        return sy_err_nomem(w->err);
    }
    if (p->error == YAML_READER_ERROR) {
        at = place_of_byte(w->in, p->problem_offset);
    }
    return place_error(w->err, &at, "not valid YAML: %s", problem);
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

enum sy_code
yaml_walk_next(struct yaml_walk *w)
{
    yaml_event_delete(&w->event);
    if (yaml_parser_parse(&w->parser, &w->event) == 0) {
        return syntax_error(w);
    }

    const yaml_event_t *e = &w->event;
    struct place at = yaml_walk_here(w);

    if (e->type == YAML_ALIAS_EVENT) {
        return place_error(w->err, &at, "an alias (*name); write the value out");
    }
    if (anchor_of(e) != NULL) {
        return place_error(w->err, &at, "an anchor (&name), which has no use here; take it out");
    }
    if (tag_of(e) != NULL) {
        return place_error(w->err, &at, "a tag (!name), which has no use here; take it out");
    }
    if (is_start(e) && ++w->depth > LIMIT_CONFIG_DEPTH) {
        return place_error(w->err, &at, "nesting deeper than %d levels", LIMIT_CONFIG_DEPTH);
    }
    if (is_end(e)) {
        w->depth--;
    }
    return SY_E_OK;
}

const char *
yaml_walk_bytes(const yaml_event_t *e)
{
    return (const char *)e->data.scalar.value;
}

bool
yaml_walk_is_nothing(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (e->data.scalar.length == 0 || str_eq(yaml_walk_bytes(e), "~") ||
            str_eq(yaml_walk_bytes(e), "null"));
}

const char *
yaml_walk_kind(const yaml_event_t *e)
{
    if (e->type == YAML_SEQUENCE_START_EVENT) {
        return "a list";
    }
    if (e->type == YAML_MAPPING_START_EVENT) {
        return "a mapping";
    }
    return yaml_walk_is_nothing(e) ? "nothing" : "text";
}

enum sy_code
yaml_walk_skip(struct yaml_walk *w)
{
    if (!is_start(&w->event)) {
        return SY_E_OK;
    }

    size_t outside = w->depth - 1;

    while (!is_end(&w->event) || w->depth != outside) {
        enum sy_code rc = yaml_walk_next(w);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

enum sy_code
yaml_walk_wrong_part(struct yaml_walk *w, const char *what)
{
    struct place at = yaml_walk_here(w);
    const char *kind = yaml_walk_kind(&w->event);
    enum sy_code rc = yaml_walk_skip(w);

    return rc != SY_E_OK ? rc : place_error(w->err, &at, "expected %s, got %s", what, kind);
}

enum sy_code
yaml_walk_enter(struct yaml_walk *w, bool *ret_empty)
{
    enum sy_code rc = yaml_walk_next(w);

    if (rc == SY_E_OK) {
        rc = yaml_walk_next(w);
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
        struct place at = yaml_walk_here(w);

        return place_error(w->err, &at, "a %%TAG directive, which has no use here; take it out");
    }
    return yaml_walk_next(w);
}

enum sy_code
yaml_walk_leave(struct yaml_walk *w)
{
    enum sy_code rc = yaml_walk_next(w);

    if (rc == SY_E_OK) {
        rc = yaml_walk_next(w);
    }
    if (rc == SY_E_OK && w->event.type != YAML_STREAM_END_EVENT) {
        struct place at = yaml_walk_here(w);

        return place_error(w->err, &at, "a second document; %s is one", w->noun);
    }
    return rc;
}

enum sy_code
yaml_walk_open(struct yaml_walk *w)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t skip = 0;
    enum sy_code rc = place_check_utf8(w->in, w->err);

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

void
yaml_walk_close(struct yaml_walk *w)
{
    yaml_event_delete(&w->event);
    yaml_parser_delete(&w->parser);
}
