#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

enum sy_code
config_error(struct sy_error *err, const struct config_place *at, const char *fmt, ...)
{
    char sentence[SY_ERR_MSG_MAX];
    const struct place_text in = config_named(at->source, at->name);
    const struct place place = {
        .prefix = in.prefix,
        .name = in.name,
        .line = in.is_one_line ? 0 : at->line,
        .column = at->column,
    };
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    return place_error(err, &place, "%s", sentence);
}

/* Enough for the choices of any row. */
struct phrase {
    char text[128];
};

static void
add(struct phrase *p, const char *text)
{
    size_t used = strlen(p->text);

    (void)snprintf(p->text + used, sizeof(p->text) - used, "%s", text);
}

static const char *
expected(struct phrase *p, const struct config_row *row)
{
    p->text[0] = '\0';
    switch (row->type) {
    case CONFIG_CHOICE:
        add(p, "one of ");
        for (const char *const *word = row->words; *word != NULL; word++) {
            add(p, *word);
            add(p, word[1] != NULL ? ", " : "");
        }
        break;
    case CONFIG_BOOLEAN:
        add(p, "true or false");
        break;
    case CONFIG_INTEGER:
        (void)snprintf(p->text, sizeof(p->text), "%sa decimal number from %lld to %lld%s",
                       row->order == CONFIG_ORDER_LIMIT ? "0 (none) or " : "",
                       (long long)(row->floor != 0 ? row->floor : row->min), (long long)row->max,
                       row->has_units ? ", as bytes or with K, M or G behind it" : "");
        break;
    case CONFIG_STRING:
        add(p, "a string");
        break;
    case CONFIG_LIST:
        add(p, "a list such as [a, b]");
        break;
    case CONFIG_MAP:
        add(p, "a mapping such as {NAME: value}");
        break;
    }
    return p->text;
}

enum sy_code
config_error_type(struct sy_error *err, const struct config_place *at, const struct config_row *row,
                  const char *got)
{
    struct phrase p;

    /* A variable or a flag names the key itself. */
    if (at->source == CONFIG_FROM_ENVIRONMENT || at->source == CONFIG_FROM_FLAG) {
        return config_error(err, at, "expected %s, got %s", expected(&p, row), got);
    }
    return config_error(err, at, "%s: expected %s, got %s", row->info.key, expected(&p, row), got);
}

enum sy_code
config_error_duplicate(struct sy_error *err, const struct config_place *at, const char *name,
                       size_t len, const struct config_place *first)
{
    struct place_shown shown;

    (void)place_visible(&shown, name, len);
    return first->line > 0
               ? config_error(err, at, "duplicate key '%s' (first at line %zu, column %zu)",
                              shown.text, first->line, first->column)
               : config_error(err, at, "duplicate key '%s'", shown.text);
}
