#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config_internal.h"

static const char prefix[] = "SHELLYARD_";

static struct config_place
place_of(const struct config_input *in)
{
    return (struct config_place){.source = in->source, .name = in->name};
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A piece between commas, without the blanks around it. */
static enum sy_code
add_piece(struct config_value *v, const struct config_row *row, const struct config_input *in,
          struct sy_error *err)
{
    const char *from = in->text;
    size_t len = in->len;

    while (len > 0 && is_space(*from)) {
        from++;
        len--;
    }
    while (len > 0 && is_space(from[len - 1])) {
        len--;
    }

    SY_AUTO(mem_free_charp) char *copy = mem_strndup(from, len);

    if (copy == NULL) {
        return sy_err_nomem(err);
    }

    struct config_text item = {.bytes = copy, .len = len, .home = in->home, .at = place_of(in)};

    if (row->type == CONFIG_LIST) {
        return config_value_item(v, row, &item, err);
    }

    char *equals = strchr(copy, '=');

    /* Never the text: it may be a secret. */
    if (equals == NULL) {
        return config_error(err, &item.at, "expected NAME=value pairs with commas between them");
    }
    *equals = '\0';

    struct config_text name = {.bytes = copy, .len = (size_t)(equals - copy), .at = item.at};
    struct config_text value = {.bytes = equals + 1, .at = item.at};

    value.len = strlen(value.bytes);
    if (config_value_find(v, name.bytes, name.len) < v->list.n) {
        return config_error_duplicate(err, &item.at, name.bytes, name.len, &item.at);
    }
    return config_value_entry(v, row, &name, &value, err);
}

static enum sy_code
split_commas(struct config_value *v, const struct config_row *row, const struct config_input *in,
             struct sy_error *err)
{
    const char *from = in->text;

    for (;;) {
        struct config_input piece = *in;

        piece.text = from;
        piece.len = strcspn(from, ",");

        enum sy_code rc = add_piece(v, row, &piece, err);

        if (rc != SY_E_OK || from[piece.len] == '\0') {
            return rc;
        }
        from += piece.len + 1;
    }
}

/* A word that YAML can read in one way only: `exec -s MODE` is measured, and
 * setting up the YAML parser costs it more than all the rest of this room. */
static bool
is_plain_word(const char *text)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    return text[0] != '\0' && text[0] != '-' && text[strspn(text, word)] == '\0';
}

/*
 * The value of one key out of a variable or a flag. Lists and maps may be
 * written with commas alone; an empty text is an empty list, map or string.
 */
static enum sy_code
read_value(struct config_layer *layer, size_t key, const struct config_input *in,
           struct sy_error *err)
{
    const struct config_row *row = &config_rows[key];
    struct config_value *v = config_layer_open(layer, key);
    struct config_place at = place_of(in);
    bool is_many = row->type == CONFIG_LIST || row->type == CONFIG_MAP;
    size_t blank = strspn(in->text, " \t\r\n");
    bool is_empty = in->text[blank] == '\0';
    enum sy_code rc = config_check_utf8(in, err);

    if (rc != SY_E_OK) {
        return rc;
    }
    if (v == NULL) {
        return sy_err_nomem(err);
    }
    /* Whoever starts us for a workspace may set those: they must not name what runs unsandboxed,
     * nor take a guard away. */
    if (row->is_of_files) {
        return config_error(err, &at, "%s is read from the configuration files alone",
                            row->info.key);
    }
    if (is_many && is_empty) {
        config_value_begin(v, row, &at);
        return SY_E_OK;
    }
    if (is_many && in->text[blank] != (row->type == CONFIG_LIST ? '[' : '{')) {
        config_value_begin(v, row, &at);
        return split_commas(v, row, in, err);
    }
    if (!is_many && row->type != CONFIG_STRING && is_plain_word(in->text)) {
        struct config_text word = {
            .bytes = in->text, .len = strlen(in->text), .is_plain = true, .at = at};

        config_value_begin(v, row, &at);
        return config_value_scalar(v, row, &word, err);
    }
    if (row->type == CONFIG_STRING && is_empty) {
        struct config_text none = {.bytes = "", .at = at};

        config_value_begin(v, row, &at);
        return config_value_scalar(v, row, &none, err);
    }
    return config_walk_value(layer, key, in, err);
}

enum sy_code
config_value_default(struct config_value *v, size_t key, struct sy_error *err)
{
    const struct config_row *row = &config_rows[key];
    struct config_text t = {
        .bytes = row->info.fallback,
        .len = strlen(row->info.fallback),
        .is_plain = row->type != CONFIG_STRING,
        .at = {.source = CONFIG_FROM_DEFAULT, .name = row->info.key},
    };

    config_value_begin(v, row, &t.at);
    /* The default of every list and map is empty. */
    return row->type == CONFIG_LIST || row->type == CONFIG_MAP
               ? SY_E_OK
               : config_value_scalar(v, row, &t, err);
}

/* The key that a variable means, by its name up to the '='. */
static size_t
find_variable(const char *name, size_t len)
{
    char variable[CONFIG_VARIABLE_MAX];
    size_t i = 0;

    for (; i < CONFIG_KEYS; i++) {
        config_variable_name(variable, &config_rows[i]);
        if (str_is(variable, name, len)) {
            break;
        }
    }
    return i;
}

static enum sy_code
unknown_variable(const char *name, size_t len, struct sy_error *err)
{
    char variables[CONFIG_KEYS][CONFIG_VARIABLE_MAX];
    const char *names[CONFIG_KEYS];
    char got[CONFIG_VARIABLE_MAX];
    size_t n = len < sizeof(got) - 1 ? len : sizeof(got) - 1;
    struct place_shown shown;
    const char *after = name + sizeof(prefix) - 1;

    /* Without the prefix, which would make anything look near. */
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        config_variable_name(variables[i], &config_rows[i]);
        names[i] = variables[i] + sizeof(prefix) - 1;
    }
    n -= n < sizeof(prefix) - 1 ? n : sizeof(prefix) - 1;
    memcpy(got, after, n);
    got[n] = '\0';

    const char *near = str_nearest(got, names, CONFIG_KEYS);

    (void)place_visible(&shown, name, len);
    return near != NULL
               ? sy_err_set(err, SY_E_CONFIG, "%s: unknown variable (did you mean '%s%s'?)",
                            shown.text, prefix, near)
               : sy_err_set(err, SY_E_CONFIG,
                            "%s: unknown variable; names with %s in front are settings "
                            "(`shellyard config show` lists them)",
                            shown.text, prefix);
}

enum sy_code
config_read_environment(struct config_layer *layer, char *const *environ_list, const char *home,
                        struct sy_error *err)
{
    for (; environ_list != NULL && *environ_list != NULL; environ_list++) {
        const char *entry = *environ_list;
        size_t len = strcspn(entry, "=");

        if (!str_starts(entry, prefix) || entry[len] == '\0' ||
            str_starts(entry, "SHELLYARD_TESTS_") || str_starts(entry, "SHELLYARD_BENCH_")) {
            continue;
        }

        size_t key = find_variable(entry, len);

        if (key == CONFIG_KEYS) {
            return unknown_variable(entry, len, err);
        }

        char variable[CONFIG_VARIABLE_MAX];
        struct config_input in = {.source = CONFIG_FROM_ENVIRONMENT,
                                  .name = variable,
                                  .text = entry + len + 1,
                                  .len = strlen(entry + len + 1),
                                  .home = home};

        config_variable_name(variable, &config_rows[key]);
        if (config_layer_value(layer, key) != NULL) {
            return sy_err_set(err, SY_E_CONFIG, "%s: stands twice in the environment", variable);
        }

        enum sy_code rc = read_value(layer, key, &in, err);
        struct config_value *v = config_layer_value(layer, key);

        /* `variable` ends here; whoever needs the name makes it from the key. */
        if (v != NULL) {
            v->place.name = config_rows[key].info.key;
        }
        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

enum sy_code
config_read_flags(struct config_layer *layer, char *const *overrides, const char *home,
                  struct sy_error *err)
{
    for (; overrides != NULL && *overrides != NULL; overrides++) {
        const char *flag = *overrides;
        size_t len = strcspn(flag, "=");
        size_t key = config_find_key(flag, len);
        struct place_shown shown;

        (void)place_visible(&shown, flag, len);
        if (key == CONFIG_KEYS) {
            const char *near = config_nearest_key(flag, len);
            struct config_same same;

            near = near != NULL ? near : config_same_elsewhere(&same, flag, len);
            return near != NULL
                       ? sy_err_set(err, SY_E_CONFIG, "-c %s: unknown key (did you mean '%s'?)",
                                    shown.text, near)
                       : sy_err_set(err, SY_E_CONFIG,
                                    "-c %s: unknown key (`shellyard config show` lists the keys)",
                                    shown.text);
        }
        if (flag[len] == '\0') {
            return sy_err_set(err, SY_E_CONFIG, "-c %s: expected key=value", shown.text);
        }

        struct config_input in = {.source = CONFIG_FROM_FLAG,
                                  .name = config_rows[key].info.key,
                                  .text = flag + len + 1,
                                  .len = strlen(flag + len + 1),
                                  .home = home};
        /* Of several flags with one key the last one counts. */
        enum sy_code rc = read_value(layer, key, &in, err);

        if (rc != SY_E_OK) {
            return rc;
        }
    }
    return SY_E_OK;
}

enum sy_code
config_read_mode(struct config_layer *layer, const char *mode, struct sy_error *err)
{
    static const char key[] = "sandbox.mode";
    const struct config_input in = {
        .source = CONFIG_FROM_FLAG, .name = "-s", .text = mode, .len = strlen(mode)};

    return read_value(layer, config_find_key(key, strlen(key)), &in, err);
}
