#include "config/config_internal.h"

#include <string.h>

#include "base/str.h"

static const char *const sections[] = {
    "sandbox",  "network", "approval", "assessment", "hooks",     "shell",  "environment", "tools",
    "sessions", "output",  "limits",   "log",        "telemetry", "daemon", "requirements"};
/* `requirements` is no section of keys. */
#define SECTIONS (sizeof(sections) / sizeof(sections[0]) - 1)

const struct config_key_info *
config_key(size_t i)
{
    return i < CONFIG_KEYS ? &config_rows[i].info : NULL;
}

const char *
config_short_name(const struct config_row *row)
{
    return strchr(row->info.key, '.') + 1;
}

size_t
config_find_key(const char *key, size_t len)
{
    size_t i = 0;

    while (i < CONFIG_KEYS && !str_is(config_rows[i].info.key, key, len)) {
        i++;
    }
    return i;
}

static bool
is_in_section(const struct config_row *row, const char *section)
{
    size_t n = strlen(section);

    return strncmp(row->info.key, section, n) == 0 && row->info.key[n] == '.';
}

size_t
config_find_in_section(const char *section, const char *name, size_t len)
{
    size_t i = 0;

    while (i < CONFIG_KEYS && !(is_in_section(&config_rows[i], section) &&
                                str_is(config_short_name(&config_rows[i]), name, len))) {
        i++;
    }
    return i;
}

const char *
config_find_section(const char *name, size_t len)
{
    for (size_t i = 0; i < SECTIONS; i++) {
        if (str_is(sections[i], name, len)) {
            return sections[i];
        }
    }
    return NULL;
}

void
config_variable_name(char dst[CONFIG_VARIABLE_MAX], const struct config_row *row)
{
    static const char prefix[] = "SHELLYARD_";
    size_t n = sizeof(prefix) - 1;

    memcpy(dst, prefix, n);
    for (const char *s = row->info.key; *s != '\0' && n + 1 < CONFIG_VARIABLE_MAX; s++) {
        unsigned char c = (unsigned char)*s;

        if (c >= 'a' && c <= 'z') {
            c = (unsigned char)(c - 'a' + 'A');
        }
        if (c == '.') {
            c = '_';
        }
        dst[n++] = (char)c;
    }
    dst[n] = '\0';
}

/* The longest text that can still be near a name. */
#define NEAR_MAX 64

struct near_text {
    char text[NEAR_MAX + 1];
};

static const char *
terminated(struct near_text *copy, const char *got, size_t len)
{
    size_t n = len < NEAR_MAX ? len : NEAR_MAX;

    memcpy(copy->text, got, n);
    copy->text[n] = '\0';
    return copy->text;
}

const char *
config_nearest_key(const char *got, size_t len)
{
    const char *names[CONFIG_KEYS];
    struct near_text copy;

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        names[i] = config_rows[i].info.key;
    }
    return str_nearest(terminated(&copy, got, len), names, CONFIG_KEYS);
}

const char *
config_nearest_section(const char *got, size_t len, bool with_requirements)
{
    struct near_text copy;

    return str_nearest(terminated(&copy, got, len), sections,
                       with_requirements ? SECTIONS + 1 : SECTIONS);
}

const char *
config_nearest_in_section(const char *section, const char *got, size_t len)
{
    const char *names[CONFIG_KEYS];
    size_t n = 0;
    struct near_text copy;

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (is_in_section(&config_rows[i], section)) {
            names[n++] = config_short_name(&config_rows[i]);
        }
    }
    return str_nearest(terminated(&copy, got, len), names, n);
}

const char *
config_same_elsewhere(struct config_same *ret, const char *got, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const char *key = config_rows[i].info.key;
        const char *between = n > 0 ? "' or '" : "";
        size_t more = strlen(between) + strlen(key);

        if (str_is(config_short_name(&config_rows[i]), got, len) && n + more < sizeof(ret->text)) {
            memcpy(ret->text + n, between, strlen(between));
            memcpy(ret->text + n + strlen(between), key, strlen(key) + 1);
            n += more;
        }
    }
    return n > 0 ? ret->text : NULL;
}
