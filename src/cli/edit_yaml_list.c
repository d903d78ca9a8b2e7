#include <string.h>

#include <yaml.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/edit.h"

/* Nesting that is followed; readers of such files take less. */
#define DEPTH_MAX 64

/* Where a list of the root mapping stands. Lines from 0. */
struct section {
    yaml_parser_t parser;
    yaml_event_t event;
    bool is_there;
    bool is_block;   /* entries begin with a dash, at the column */
    bool is_nothing; /* nothing stands behind the key */
    size_t column;
    size_t last_line;
};

static enum sy_code
next(struct section *s, struct sy_error *err)
{
    yaml_event_delete(&s->event);
    if (yaml_parser_parse(&s->parser, &s->event) != 0) {
        return SY_E_OK;
    }
    return s->parser.error == YAML_MEMORY_ERROR
               ? sy_err_nomem(err)
               : sy_err_set(err, SY_E_PARSE, "bad YAML at line %zu: %s",
                            s->parser.problem_mark.line + 1,
                            s->parser.problem != NULL ? s->parser.problem : "unreadable");
}

static bool
begins(const yaml_event_t *e)
{
    return e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
}

static bool
is_flow(const yaml_event_t *e)
{
    return e->type == YAML_SEQUENCE_START_EVENT
               ? e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE
               : e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
}

static bool
ends(const yaml_event_t *e)
{
    return e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;
}

/* Over the node that the current event begins, noting its last line. A block
 * ends where the next thing begins, so that its own end says nothing. */
static enum sy_code
pass_node(struct section *s, size_t *last_line, struct sy_error *err)
{
    bool flows[DEPTH_MAX] = {false};
    size_t depth = 0;

    for (;;) {
        bool counts = !begins(&s->event) && !ends(&s->event);

        if (begins(&s->event)) {
            if (depth == DEPTH_MAX) {
                return sy_err_set(err, SY_E_PARSE, "nesting deeper than %d levels", DEPTH_MAX);
            }
            flows[depth++] = is_flow(&s->event);
        } else if (ends(&s->event)) {
            counts = flows[--depth];
        }
        if (counts) {
            yaml_mark_t end = s->event.end_mark;
            bool is_next = end.column == 0 && end.line > s->event.start_mark.line;

            *last_line = end.line - (is_next ? 1 : 0);
        }
        if (depth == 0) {
            return SY_E_OK;
        }

        enum sy_code rc = next(s, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
}

static enum sy_code
read_section(struct section *s, size_t key_line, struct sy_error *err)
{
    const yaml_event_t *e = &s->event;

    s->is_there = true;
    s->is_block = e->type == YAML_SEQUENCE_START_EVENT && !is_flow(e);
    s->is_nothing = e->type == YAML_SCALAR_EVENT && e->data.scalar.length == 0 &&
                    e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    s->column = s->is_block ? e->start_mark.column : 2;
    s->last_line = key_line;
    if (s->is_nothing) {
        return SY_E_OK;
    }
    return pass_node(s, &s->last_line, err);
}

/* The current event begins the root's pairs. */
static enum sy_code
find_section(struct section *s, const char *name, struct sy_error *err)
{
    enum sy_code rc = next(s, err);

    while (rc == SY_E_OK && s->event.type == YAML_SCALAR_EVENT) {
        bool is_it = str_eq((const char *)s->event.data.scalar.value, name);
        size_t line = s->event.start_mark.line;
        size_t unused = 0;

        rc = next(s, err);
        if (rc == SY_E_OK) {
            rc = is_it ? read_section(s, line, err) : pass_node(s, &unused, err);
        }
        if (rc == SY_E_OK && is_it) {
            return rc;
        }
        if (rc == SY_E_OK) {
            rc = next(s, err);
        }
    }
    return rc;
}

static enum sy_code
open_and_find(struct section *s, const struct buf *text, const char *name, struct sy_error *err)
{
    enum sy_code rc = SY_E_OK;

    yaml_parser_set_input_string(&s->parser, (const unsigned char *)buf_view(text), text->len);
    while (rc == SY_E_OK && s->event.type != YAML_MAPPING_START_EVENT &&
           s->event.type != YAML_STREAM_END_EVENT) {
        rc = next(s, err);
    }
    if (rc != SY_E_OK || s->event.type == YAML_STREAM_END_EVENT) {
        return rc;
    }
    return find_section(s, name, err);
}

static enum sy_code
find(struct section *s, const struct buf *text, const char *name, struct sy_error *err)
{
    if (yaml_parser_initialize(&s->parser) == 0) {
        return sy_err_nomem(err);
    }

    enum sy_code rc = open_and_find(s, text, name, err);

    yaml_event_delete(&s->event);
    yaml_parser_delete(&s->parser);
    if (rc == SY_E_OK && s->is_there && !s->is_block && !s->is_nothing) {
        return sy_err_set(err, SY_E_PARSE,
                          "the list '%s' is not written with one entry a line, beginning with "
                          "'- ': nothing is put into it",
                          name);
    }
    return rc;
}

/* The byte where the line behind that one begins. */
static size_t
line_end(const struct buf *text, size_t line)
{
    size_t at = 0;

    for (size_t i = 0; i <= line && at < text->len; i++) {
        const char *end = memchr(text->data + at, '\n', text->len - at);

        at = end != NULL ? (size_t)(end - text->data) + 1 : text->len;
    }
    return at;
}

/* Each line with `column` blanks in the place of two. */
static enum sy_code
add_lines(struct buf *out, const char *lines, size_t column)
{
    enum sy_code rc = SY_E_OK;

    while (rc == SY_E_OK && *lines != '\0') {
        size_t len = strcspn(lines, "\n");
        size_t skip = len < 2 ? len : 2;

        rc = buf_addf(out, "%*s", (int)column, "");
        if (rc == SY_E_OK) {
            rc = buf_add(out, lines + skip, len - skip);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\n');
        }
        lines += len + (lines[len] == '\n' ? 1 : 0);
    }
    return rc;
}

enum sy_code
edit_yaml_append(struct buf *out, const struct buf *text, const char *section, const char *lines,
                 struct sy_error *err)
{
    struct section s = {.column = 2};
    enum sy_code rc = find(&s, text, section, err);

    if (rc != SY_E_OK) {
        return rc;
    }

    size_t at = s.is_there ? line_end(text, s.last_line) : text->len;

    buf_reset(out);
    rc = buf_add(out, buf_view(text), at);
    if (rc == SY_E_OK && at > 0 && text->data[at - 1] != '\n') {
        rc = buf_add_char(out, '\n');
    }
    if (rc == SY_E_OK && !s.is_there) {
        rc = buf_addf(out, "%s:\n", section);
    }
    if (rc == SY_E_OK) {
        rc = add_lines(out, lines, s.column);
    }
    if (rc == SY_E_OK) {
        rc = buf_add(out, buf_view(text) + at, text->len - at);
    }
    return rc == SY_E_LIMIT
               ? sy_err_set(err, rc, "the new file would be larger than %zu bytes", out->max)
           : rc != SY_E_OK ? sy_err_nomem(err)
                           : SY_E_OK;
}
