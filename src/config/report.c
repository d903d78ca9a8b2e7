#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "config/config_internal.h"

bool
config_is_deceptive(uint32_t c)
{
    return c < 0x20U || (c >= 0x7FU && c < 0xA0U) || c == 0xADU || c == 0x61CU ||
           (c >= 0x200BU && c <= 0x200FU) || (c >= 0x2028U && c <= 0x202EU) ||
           (c >= 0x2060U && c <= 0x206FU) || c == 0xFEFFU || c >= 0xE0000U;
}

/* Copies into dst, of which `size` bytes and a NUL can be used; returns how
 * much of the text was copied. */
static size_t
copy_visible(char *dst, size_t size, const char *text, size_t len)
{
    size_t used = 0;
    size_t i = 0;

    while (i < len) {
        uint32_t c = 0;
        size_t n = utf8_decode(&c, text + i, len - i);
        bool is_bad = n == 0 || config_is_deceptive(c);
        size_t step = is_bad ? 1 : n;

        if (used + step > size) {
            break;
        }
        if (is_bad) {
            dst[used] = '?';
        } else {
            memcpy(dst + used, text + i, n);
        }
        used += step;
        i += n > 0 ? n : 1;
    }
    dst[used] = '\0';
    return i;
}

const char *
config_visible(struct config_shown *shown, const char *text, size_t len)
{
    static const char dots[] = "...";
    size_t room = sizeof(shown->text) - sizeof(dots);

    if (copy_visible(shown->text, room, text, len) < len) {
        memcpy(shown->text + strlen(shown->text), dots, sizeof(dots));
    }
    return shown->text;
}

const char *
config_visible_path(struct config_shown_path *shown, const char *path)
{
    static const char dots[] = "...";
    size_t room = sizeof(shown->text) - sizeof(dots);
    size_t len = strlen(path);

    if (len <= room) {
        (void)copy_visible(shown->text, room, path, len);
        return shown->text;
    }

    const char *end = path + len - room;

    /* Not in the middle of a character. */
    while (((unsigned char)*end & 0xC0U) == 0x80U) {
        end++;
    }
    memcpy(shown->text, dots, sizeof(dots) - 1);
    (void)copy_visible(shown->text + sizeof(dots) - 1, room, end, strlen(end));
    return shown->text;
}

enum sy_code
config_error(struct sy_error *err, const struct config_place *at, const char *fmt, ...)
{
    char sentence[SY_ERR_MSG_MAX];
    struct config_shown_path path;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    switch (at->source) {
    case CONFIG_FROM_SYSTEM:
    case CONFIG_FROM_USER:
        if (at->line > 0) {
            return sy_err_set(err, SY_E_CONFIG, "%s:%zu:%zu: %s",
                              config_visible_path(&path, at->name), at->line, at->column, sentence);
        }
        break;
    case CONFIG_FROM_FLAG:
        return sy_err_set(err, SY_E_CONFIG, "-c %s: %s", at->name, sentence);
    case CONFIG_FROM_DEFAULT:
    case CONFIG_FROM_ENVIRONMENT:
        break;
    }
    return sy_err_set(err, SY_E_CONFIG, "%s: %s", config_visible_path(&path, at->name), sentence);
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
    struct config_shown shown;

    (void)config_visible(&shown, name, len);
    return first->line > 0
               ? config_error(err, at, "duplicate key '%s' (first at line %zu, column %zu)",
                              shown.text, first->line, first->column)
               : config_error(err, at, "duplicate key '%s'", shown.text);
}
