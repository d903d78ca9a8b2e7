#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/yaml_text.h"
#include "config/config_internal.h"

/* Sources stand in one column, unless a value is longer than this. */
#define PAD_MAX  48U
#define PAD_MORE 4U

static const char masked[] = "***";

/* The name of an entry "NAME=value" looks like that of a secret. */
static bool
is_secret(const char *entry, size_t name_len)
{
    static const char *const words[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"};

    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        size_t n = strlen(words[w]);

        for (size_t i = 0; i + n <= name_len; i++) {
            if (strncasecmp(entry + i, words[w], n) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Can stand in the file without quotes, in a list too. */
static bool
is_plain(const char *s)
{
    static const char safe[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/+-.";

    return *s != '\0' && *s != '-' && *s != '.' && s[strspn(s, safe)] == '\0' && !str_eq(s, "null");
}

static enum sy_code
add_text(struct buf *b, const char *s)
{
    return is_plain(s) ? buf_add_str(b, s) : yaml_text_quote(b, s);
}

static enum sy_code
add_items(struct buf *b, const struct config_row *row, const struct strv *list)
{
    bool is_map = row->type == CONFIG_MAP;
    enum sy_code rc = buf_add_char(b, is_map ? '{' : '[');

    for (size_t i = 0; i < list->n && rc == SY_E_OK; i++) {
        const char *item = list->v[i];
        size_t name_len = is_map ? strcspn(item, "=") : 0;

        rc = i > 0 ? buf_add_str(b, ", ") : SY_E_OK;
        if (rc == SY_E_OK && is_map) {
            rc = buf_addf(b, "%.*s: ", (int)name_len, item);
        }
        if (rc == SY_E_OK) {
            rc = add_text(b, !is_map                     ? item
                             : is_secret(item, name_len) ? masked
                                                         : item + name_len + 1);
        }
    }
    return rc != SY_E_OK ? rc : buf_add_char(b, is_map ? '}' : ']');
}

enum sy_code
config_format_value(struct buf *b, const struct config_row *row, const struct config_value *v)
{
    switch (row->type) {
    case CONFIG_CHOICE:
        return buf_add_str(b, v->word);
    case CONFIG_BOOLEAN:
        return buf_add_str(b, v->flag ? "true" : "false");
    case CONFIG_INTEGER:
        return buf_addf(b, "%" PRId64, v->number);
    case CONFIG_STRING:
        return add_text(b, v->text);
    case CONFIG_LIST:
    case CONFIG_MAP:
        break;
    }
    return add_items(b, row, &v->list);
}

/* Reads the struct, so that what is shown is what holds. The lists stay the
 * struct's. */
static struct config_value
view_of(const struct config *c, size_t key)
{
    const struct config_row *row = &config_rows[key];
    const void *from = (const char *)c + row->offset;
    struct config_value v = {.is_set = true, .place = c->impl->places[key]};

    switch (row->type) {
    case CONFIG_CHOICE:
        v.word = *(const char *const *)from;
        break;
    case CONFIG_BOOLEAN:
        v.flag = *(const bool *)from;
        break;
    case CONFIG_INTEGER:
        v.number = *(const int64_t *)from;
        break;
    case CONFIG_STRING:
        v.text = c->impl->texts[key];
        break;
    case CONFIG_LIST:
    case CONFIG_MAP:
        v.list = *(const struct strv *)from;
        break;
    }
    return v;
}

static enum sy_code
add_source(struct buf *b, const struct config *c, size_t key)
{
    const struct config_place *at = &c->impl->places[key];
    char variable[CONFIG_VARIABLE_MAX];

    switch (at->source) {
    case CONFIG_FROM_SYSTEM:
        return buf_addf(b, "%s:%zu", c->impl->system_path, at->line);
    case CONFIG_FROM_USER:
        return buf_addf(b, "%s:%zu", c->impl->user_path, at->line);
    case CONFIG_FROM_ENVIRONMENT:
        config_variable_name(variable, &config_rows[key]);
        return buf_add_str(b, variable);
    case CONFIG_FROM_FLAG:
        return at->name[0] == '-' ? buf_add_str(b, at->name)
                                  : buf_addf(b, "-c %s", config_rows[key].info.key);
    case CONFIG_FROM_DEFAULT:
        break;
    }
    return buf_add_str(b, "default");
}

enum sy_code
config_where(struct buf *ret, const struct config *c, const char *key)
{
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (str_eq(config_rows[i].info.key, key)) {
            return c->impl != NULL ? add_source(ret, c, i) : buf_add_str(ret, "default");
        }
    }
    return SY_E_NOTFOUND;
}

static enum sy_code
format_line(struct buf *line, const struct config *c, size_t key)
{
    struct config_value v = view_of(c, key);
    enum sy_code rc = buf_addf(line, "%s: ", config_rows[key].info.key);

    return rc != SY_E_OK ? rc : config_format_value(line, &config_rows[key], &v);
}

static size_t
width_of(const struct buf *line)
{
    size_t n = 0;

    for (size_t i = 0; i < line->len; i++) {
        n += ((unsigned char)line->data[i] & 0xC0U) != 0x80U ? 1U : 0U;
    }
    return n;
}

static enum sy_code
show_text(const struct config *c, struct buf *out)
{
    SY_AUTO(buf_fini) struct buf line = {.max = CONFIG_SHOWN_MAX};
    SY_AUTO(buf_fini) struct buf source = {.max = CONFIG_SHOWN_MAX};
    size_t column = 0;
    enum sy_code rc = SY_E_OK;

    for (size_t key = 0; key < CONFIG_KEYS && rc == SY_E_OK; key++) {
        buf_reset(&line);
        rc = format_line(&line, c, key);

        size_t width = width_of(&line);

        if (width > column && width <= PAD_MAX) {
            column = width;
        }
    }
    for (size_t key = 0; key < CONFIG_KEYS && rc == SY_E_OK; key++) {
        buf_reset(&line);
        buf_reset(&source);
        rc = format_line(&line, c, key);
        if (rc == SY_E_OK) {
            rc = add_source(&source, c, key);
        }
        if (rc != SY_E_OK) {
            break;
        }

        size_t width = width_of(&line);
        size_t pad = PAD_MORE + (width < column ? column - width : 0);

        rc = buf_addf(out, "%s%*s# ", buf_view(&line), (int)pad, "");
        if (rc == SY_E_OK) {
            rc = str_add_visible(out, buf_view(&source), source.len, CONFIG_SHOWN_MAX);
        }
        if (rc == SY_E_OK) {
            rc = buf_add_char(out, '\n');
        }
    }
    return rc;
}

static enum sy_code
write_map(struct jw *w, const struct strv *list)
{
    SY_AUTO(buf_fini) struct buf name = {.max = (size_t)LIMIT_ARG_STRLEN};

    jw_object(w);
    for (size_t i = 0; i < list->n; i++) {
        const char *item = list->v[i];
        size_t n = strcspn(item, "=");

        buf_reset(&name);

        enum sy_code rc = buf_add(&name, item, n);

        if (rc != SY_E_OK) {
            return rc;
        }
        jw_key_str(w, buf_view(&name), is_secret(item, n) ? masked : item + n + 1);
    }
    jw_end_object(w);
    return SY_E_OK;
}

static enum sy_code
write_value(struct jw *w, const struct config_row *row, const struct config_value *v)
{
    switch (row->type) {
    case CONFIG_CHOICE:
        jw_str(w, v->word);
        return SY_E_OK;
    case CONFIG_BOOLEAN:
        jw_bool(w, v->flag);
        return SY_E_OK;
    case CONFIG_INTEGER:
        jw_int(w, v->number);
        return SY_E_OK;
    case CONFIG_STRING:
        jw_str(w, v->text);
        return SY_E_OK;
    case CONFIG_LIST:
        jw_array(w);
        for (size_t i = 0; i < v->list.n; i++) {
            jw_str(w, v->list.v[i]);
        }
        jw_end_array(w);
        return SY_E_OK;
    case CONFIG_MAP:
        break;
    }
    return write_map(w, &v->list);
}

static enum sy_code
show_json(const struct config *c, struct buf *out)
{
    SY_AUTO(buf_fini) struct buf source = {.max = CONFIG_SHOWN_MAX};
    struct jw w = {.out = out};

    jw_object(&w);
    for (size_t key = 0; key < CONFIG_KEYS; key++) {
        struct config_value v = view_of(c, key);

        jw_key(&w, config_rows[key].info.key);
        jw_object(&w);
        jw_key(&w, "value");

        enum sy_code rc = write_value(&w, &config_rows[key], &v);

        buf_reset(&source);
        if (rc == SY_E_OK) {
            rc = add_source(&source, c, key);
        }
        if (rc != SY_E_OK) {
            return rc;
        }
        jw_key_strn(&w, "source", buf_view(&source), source.len);
        jw_end_object(&w);
    }
    jw_end_object(&w);

    enum sy_code rc = jw_done(&w);

    return rc != SY_E_OK ? rc : buf_add_char(out, '\n');
}

enum sy_code
config_show(const struct config *c, struct buf *out, bool as_json)
{
    return as_json ? show_json(c, out) : show_text(c, out);
}
